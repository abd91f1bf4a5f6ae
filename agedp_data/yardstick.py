"""The yardstick of errors and clamps: open households, whose figures stand for those that nobody may look at.

What noise and a clamp do to a release is judged against 40 households of the Low Carbon London trial in 2013, never
against the readings that are published. Their mean is 11.0 kWh a day. A clamp of 20 kWh cuts 15 % of their days and
13 % of their energy: 1.4 kWh of a mean day, 3.2 kWh in March. Noise of 2 kWh a day leaves an error of 0.8 kWh in the
smoothed estimate of a day of a year.

Decisions:

* The table is `yardstick.json`; a test counts it again from the readings.
* What a clamp cuts between two clamps of the table is interpolated, and nothing is cut above the largest day.
* An error of smoothed days is that of a series of the next shorter length, interpolated between the two noises around
  it, never above the noise. Outside of the table nothing is said of smoothing.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

SHORTEST_SMOOTHED: Final = 91
"""Days of the shortest series of which the error of smoothed days was measured."""

FIT: Final = 0.10
ROUGH: Final = 0.25
"""Half-widths of an interval, as parts of the yardstick's mean, up to which a span is fit, or rough; public."""
NORMAL_90: Final = 1.6449
"""Half-width of the 90 % interval of a normal law, in standard deviations."""
SPANS: Final[Mapping[str, int]] = {"day": 1, "week": 7, "month": 30, "year": 365}
Grade = Literal["fit", "rough", ""]


def grade(ratio: float) -> Grade:
    """Return whether a span is fit, rough, or neither, by the half-width of its interval as a part of the mean.

    >>> grade(0.1), grade(0.11), grade(0.3)
    ('fit', 'rough', '')
    """
    return "fit" if ratio <= FIT else "rough" if ratio <= ROUGH else ""


class Cut(NamedTuple):
    """What a clamp cuts: the part of the household-days (or half-hours) that exceed it, and of their energy [-]."""

    days: float
    energy: float


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return table


def yardstick_name() -> str:
    """Return what the yardstick is, with number and year, for texts.

    >>> yardstick_name()
    '40 households of the Low Carbon London trial, 2013'
    """
    return f"{_table()['name']}, {_table()['year']}"


def mean_kwh(*, half_hour: bool = False) -> float:
    """Return the mean of a household's day, or of a half-hour [kWh].

    >>> mean_kwh(), round(48 * mean_kwh(half_hour=True), 1)
    (11.012, 11.0)
    """
    return float(_table()["half_hour_mean_kwh" if half_hour else "mean_kwh"])


def cut_by(clamp_kwh: float, *, half_hour: bool = False) -> Cut:
    """Return what a clamp of a day, or of a half-hour, cuts of the yardstick.

    Args:
        clamp_kwh: the clamp, > 0 [kWh].
        half_hour: whether it is the clamp of a half-hour.

    >>> cut_by(20), cut_by(100)
    (Cut(days=0.151, energy=0.131), Cut(days=0.0, energy=0.0))
    """
    cuts = _table()["half_hour_cut" if half_hour else "cut"]
    largest = float(_table()["largest_half_hour_kwh" if half_hour else "largest_kwh"])
    clamps = [0.0, *map(float, cuts), largest]
    parts = [(1.0, 1.0), *cuts.values(), (0.0, 0.0)]
    if clamp_kwh >= largest:
        return Cut(0.0, 0.0)
    place = bisect_right(clamps, clamp_kwh)
    below, above = clamps[place - 1], clamps[place]
    weight = (clamp_kwh - below) / (above - below)
    return Cut(*(low + weight * (high - low) for low, high in zip(parts[place - 1], parts[place], strict=True)))


def worst_month_kwh(clamp_kwh: float) -> float:
    """Return what a clamp of a day cuts of the yardstick's mean day in the month that loses most [kWh].

    >>> worst_month_kwh(20), round(cut_by(20).energy * mean_kwh(), 2)
    (3.23, 1.44)
    """
    months = _table()["worst_month_kwh"]
    clamps, cuts = [*map(float, months), float(_table()["largest_kwh"])], [*months.values(), 0.0]
    place = bisect_right(clamps, clamp_kwh)
    if place in (0, len(clamps)):  # below the table all is cut but the clamp itself
        return 0.0 if place else cuts[0] + clamps[0] - clamp_kwh
    below, above = clamps[place - 1 : place + 1]
    return float(cuts[place - 1] + (clamp_kwh - below) / (above - below) * (cuts[place] - cuts[place - 1]))


def layers() -> tuple[tuple[float, float, float], ...]:
    """Return the layers of which the error of smoothed days was measured: lower and upper bound [kWh], and share [-].

    >>> layers()
    ((0.0, 20.0, 0.77), (20.0, 75.0, 0.23))
    """
    return tuple((float(low), float(high), float(share)) for low, high, share in _table()["layers"])


def smoothed_error(noise_kwh: float, *, days: int | None, layered: bool = False) -> float | None:
    """Return the root mean square error of a smoothed day of the yardstick's mean [kWh per household].

    Args:
        noise_kwh: standard deviation of the noise of a day [kWh per household].
        days: length of the series for archive estimates [days]; None for live ones, after their first 91 days.
        layered: whether the noise is that of the sum of `layers`, and these are smoothed.

    Returns:
        At most `noise_kwh`; None if the series is too short, or the noise larger than what was measured.

    >>> smoothed_error(0.01, days=365), smoothed_error(1000, days=365), smoothed_error(1, days=14)
    (0.01, None, None)
    """
    noises, lengths = _table()["noise_kwh"], sorted({SHORTEST_SMOOTHED, 182, 365})
    if noise_kwh > noises[-1] or (days is not None and days < SHORTEST_SMOOTHED):
        return None
    length = "live" if days is None else lengths[bisect_right(lengths, days) - 1]
    errors = _table()["smoothed_error_kwh"][f"{'layered' if layered else 'single'} {length}"]
    if noise_kwh <= noises[0]:
        return noise_kwh
    place = min(bisect_right(noises, noise_kwh), len(noises) - 1)
    (low, high), (below, above) = noises[place - 1 : place + 1], errors[place - 1 : place + 1]
    weight = log(noise_kwh / low) / log(high / low)
    return min(noise_kwh, exp(log(below) + weight * log(above / below)))
