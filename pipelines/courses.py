"""LEDGER + model -> how every figure grew day by day, and how much noise it would have asked for. Public.

Everything here goes over accounts and knows no notion by name: a figure that a notion states has a course and a price.
The figures of the first k days are those of a ledger that ends there, so the last point of a course is the statement's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from agedp_data.ledger import Release
from agedp_data.losses import NANO
from agedp_data.notions.notion import Account, Figure, Forgetting

POINTS = 48
"""Days at which a course is worked out: a chart shows no more."""

_LARGEST_DAY = 100 * NANO
_CLOSE = 0.002


class Key(NamedTuple):
    """What tells figures apart."""

    name: str
    about: str
    assumption: str


@dataclass(frozen=True, slots=True)
class Course:
    """A figure by day of the data, whole 1e-9 epsilon; None where it is infinite."""

    days: tuple[str, ...]
    values: tuple[int | None, ...]


def key_of(figure: Figure) -> Key:
    """Return what tells a figure from others."""
    return Key(figure.name, figure.about, figure.assumption)


def courses(
    accounts: Sequence[Account], rows: Sequence[Release], envelope: Forgetting | None, *, points: int = POINTS
) -> dict[Key, Course]:
    """Return what the figures of all accounts came to, counting the days up to each of some days, the last included."""
    released = _released(rows)
    days = sorted({row.day for row in released})
    count = min(points, len(days))
    chosen = [days[round(i * (len(days) - 1) / max(1, count - 1))] for i in range(count)]
    if count == 1:
        chosen = days
    values: dict[Key, dict[str, int | None]] = {}
    for day in chosen:
        known = [row for row in released if row.day <= day]
        for account in accounts:
            for figure in account.figures(known, envelope, None):
                values.setdefault(key_of(figure), {})[day] = figure.value
    return {key: Course(tuple(found), tuple(found.values())) for key, found in values.items()}


def noise_times(
    accounts: Sequence[Account], rows: Sequence[Release], envelope: Forgetting | None, *, goal: int = NANO
) -> dict[Key, float | None]:
    """Return by figure how many times the noise would have been what it was, had the figure been held to `goal`.

    All losses are multiplied by the same number, noise is divided by it; that number is found by trying, to .2 %. None
    where no loss of a day up to 100 brings the figure to the goal. Figures that are infinite or 0 are left out.
    """
    released = _released(rows)
    found: dict[Key, float | None] = {}
    for account in accounts:
        price = _Price(account, released, envelope, goal)
        for key, value in price.figures(1.0).items():
            if value and key not in found:
                found[key] = price.of(key, value)
    return found


@dataclass(frozen=True, slots=True)
class _Price:
    account: Account
    rows: Sequence[Release]
    envelope: Forgetting | None
    goal: int

    def figures(self, times: float) -> dict[Key, int | None]:
        """Return the figures of these rows with every loss so many times as large."""
        factor = Fraction(times)
        rows = [replace(row, loss=math.ceil(row.loss * factor)) for row in self.rows] if times != 1.0 else self.rows
        return {key_of(figure): figure.value for figure in self.account.figures(rows, self.envelope, None)}

    def of(self, key: Key, value: int) -> float | None:
        """Return how many times the noise of the rows brings a figure of this value to the goal."""
        largest = _LARGEST_DAY / max(row.loss for row in self.rows)
        low, high, times = 0.0, math.inf, min(self.goal / value, largest)
        while True:
            reached = self.figures(times).get(key)
            if reached is not None and abs(reached - self.goal) <= _CLOSE * self.goal:
                return 1.0 / times
            if reached is not None and reached <= self.goal:
                if times >= largest:
                    return None
                low = times
            else:
                high = times
            if high / max(low, 1e-300) < 1 + _CLOSE:
                return 1.0 / low if low > 0 else None
            times = min(2 * times, largest) if math.isinf(high) else math.sqrt(low * high) if low > 0 else times / 2
            if times < 1e-12:
                return None


def _released(rows: Sequence[Release]) -> list[Release]:
    return sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.seq))


def noise_of(means: Mapping[str, float], *, clamp_wh: int, share: float, households: int) -> dict[str, float]:
    """Return by schedule the mean standard deviation of a daily mean's noise, kWh a home, from scales in clamps.

    >>> noise_of({"even": 2.0}, clamp_wh=50_000, share=0.5, households=100)["even"] == math.sqrt(2) * 2
    True
    """
    per_clamp = math.sqrt(2.0) * clamp_wh / (1000.0 * share * households)
    return {name: mean * per_clamp for name, mean in means.items()}
