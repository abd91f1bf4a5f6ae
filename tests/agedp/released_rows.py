"""Released rows of a mean with chosen values: of the ledger's columns only those that an estimate reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

FIRST = date(2013, 1, 1)


@dataclass
class Row:
    day: str
    values: tuple[int, ...]
    scale: float = 1.0
    households: tuple[int, ...] = (100,)
    cells: tuple[str, ...] = ("all",)
    series: str = "daily_mean"
    sensitivity: int = 30_000
    state: str = "released"


def rows_of(values_wh: Sequence[int], *, every: int = 1, **columns: object) -> list[Row]:
    """Return releases of one value each, a number of days apart."""
    days = (FIRST + timedelta(days=every * i) for i in range(len(values_wh)))
    return [Row(str(day), (int(value),), **columns) for day, value in zip(days, values_wh, strict=True)]


def noisy_rows(means_kwh: Sequence[float], sd_kwh: float, seed: int, **columns: object) -> list[Row]:
    """Return releases of 100 households with these true means and Laplace noise of this standard deviation."""
    scale_wh = sd_kwh / np.sqrt(2) * 100_000
    noise = np.random.default_rng(seed).laplace(scale=scale_wh, size=len(means_kwh))
    return rows_of([*np.rint(np.array(means_kwh) * 100_000 + noise)], scale=scale_wh, **columns)


def alternating(days: int, change_kwh: float) -> list[float]:
    """Return true means that change by this much from each day to the next."""
    return [10.0 + change_kwh * (i % 2) for i in range(days)]
