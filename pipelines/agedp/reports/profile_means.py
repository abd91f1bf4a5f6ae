"""Load profiles by group, and their means over days, from the published table (`profile_tables.PROFILES`). Public.

Decisions:

* A mean over days is the sum of their noisy sums over their household-days, as in the averages by month. Its noise is
  the sum of the days' noises, and its interval that of this sum (`noise_sums`), not a normal approximation.
* A cell is at the clock time at which it begins. On the day on which the clock goes forward two half-hours are empty.
  On the day on which it goes back two cells have twice the minutes: the means leave them out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.arrays import Floats
from agedp_data.series.noise_sums import sum_deviation, sum_interval

MINUTES_OF_DAY = 1440
_Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class GroupProfile:
    """Half-hours of one group, shape (days, cells of a day), NaN where a day has none.

    `step` is the usual length of a cell [minutes], `scale` the noise scale of `noisy_wh` [Wh].
    """

    days: tuple[date, ...]
    step: int
    noisy_wh: Floats
    households: Floats
    minutes: Floats
    scale: Floats
    low_kwh: Floats
    high_kwh: Floats

    @property
    def mean_kwh(self) -> Floats:
        """Return the published means [kWh per household and cell]."""
        mean: Floats = self.noisy_wh / self.households / 1000
        return mean

    @property
    def noise_kwh(self) -> Floats:
        r"""Return the standard deviations of the noise of the means, of discrete Laplace noise [kWh per household].

        .. math:: \sigma^2 = \frac{1}{\cosh(1/b) - 1} = \frac{1}{2 \sinh^2(1/2b)}
        """
        noise: Floats = 1 / (np.sqrt(2) * np.sinh(0.5 / self.scale)) / self.households / 1000
        return noise

    @property
    def comparable_kwh(self) -> Floats:
        """Return the means per usual length of a cell [kWh per household]."""
        return self.mean_kwh * self.step / self.minutes

    def clock_at(self, position: float) -> str:
        """Return the time at which the cell at a position of an axis begins."""
        return self.clock(round(position))

    def clock(self, cell: int) -> str:
        """Return the time at which a cell begins."""
        return f"{cell * self.step // 60:02d}:{cell * self.step % 60:02d}"


@dataclass(frozen=True, slots=True)
class MeanProfile:
    """Mean over some days by cell [kWh per household], with its interval and standard deviation; NaN for none."""

    days: int
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    sd: tuple[float, ...]


def group_profile(rows: pa.Table, group: str) -> GroupProfile:
    """Return the half-hours of one group of a table of profiles."""
    of_group = rows.filter(pc.equal(rows["group"], group))
    column = {name: of_group[name].to_numpy() for name in of_group.schema.names if name not in ("group", "day")}
    days = np.array(of_group["day"].to_pylist(), dtype="datetime64[D]")
    distinct, day = np.unique(days, return_inverse=True)
    step = int(column["minutes"].min())
    place = day, column["start_minute"] // step
    sd_wh = column["noise_sd_kwh"] * 1000 * column["households"]

    def grid(values: Floats) -> Floats:
        cells = np.full((len(distinct), MINUTES_OF_DAY // step), np.nan)
        cells[place] = values
        return cells

    return GroupProfile(
        days=tuple(distinct.tolist()),
        step=step,
        noisy_wh=grid(column["noisy_sum_wh"]),
        households=grid(column["households"]),
        minutes=grid(column["minutes"]),
        scale=grid(noise_scale(sd_wh)),
        low_kwh=grid(column["low_kwh"]),
        high_kwh=grid(column["high_kwh"]),
    )


def noise_scale(deviation: Floats) -> Floats:
    r"""Return the scale of discrete Laplace noise with a standard deviation, rounded up in the tenth digit.

    .. math:: \sigma^2 = \frac{2q}{(1-q)^2} = \frac{1}{\cosh(1/b) - 1}, \quad q = e^{-1/b}

    >>> noise_scale(np.array([4.22306, 141421.356])).round(3).tolist()
    [3.0, 100000.0]
    """
    inverse = 1 / np.square(deviation)
    scale = (1 + 1e-10) / np.log1p(inverse + np.sqrt(inverse * (inverse + 2)))
    digits = 10.0 ** (9 - np.floor(np.log10(scale)))
    rounded: Floats = np.ceil(scale * digits) / digits
    return rounded


def mean_profile(profile: GroupProfile, is_selected: _Flags, *, coverage: Decimal) -> MeanProfile:
    """Return the mean over the selected days by cell, of cells of usual length."""
    values: list[tuple[float, ...]] = []
    for cell in range(profile.noisy_wh.shape[1]):
        enters = is_selected & (profile.minutes[:, cell] == profile.step)
        if not enters.any():
            values.append((math.nan,) * 4)
            continue
        scales = profile.scale[enters, cell].tolist()
        energy, wh_per_kwh_mean = profile.noisy_wh[enters, cell].sum(), 1000 * profile.households[enters, cell].sum()
        half_width = sum_interval(scales, coverage)
        ends = energy, energy - half_width, energy + half_width, sum_deviation(scales)
        values.append(tuple(float(value / wh_per_kwh_mean) for value in ends))
    mean, low, high, sd = zip(*values, strict=True)
    return MeanProfile(int(is_selected.sum()), mean, low, high, sd)
