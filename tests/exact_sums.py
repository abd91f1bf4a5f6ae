"""Exact vectors of household-days as tuples, and daily sums as dictionaries by group, to be compared with ==."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from agedp.stage_values import COUNTS, DailySum
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Cell, HouseholdDays


def vector(series: AnySeries, days_wh: Any, usable: Any = True) -> tuple[int, ...]:
    """The exact vector of one group of households: of its usable days, and of the missing ones."""
    totals = np.atleast_1d(np.array(days_wh, np.int64))
    is_usable = np.broadcast_to(usable, totals.shape)
    counted = series.counted(HouseholdDays(totals[is_usable][:, None])).values.sum(axis=0)
    return tuple((counted + (~is_usable).sum() * series.missing((), minutes=30)).tolist())


def cells(series: AnySeries, group: str, **slots: Any) -> tuple[str, ...]:
    """The cells of a group of a row, as the ledger has them."""
    return series.write_cells(series.cells([Cell(group, kind) for kind in series.kinds], **slots))


def by_group(one: DailySum, what: str = "exact") -> dict[str, Any]:
    """A count, or the exact vectors, by name of the part."""
    values = one.exact if what == "exact" else one.counts[:, COUNTS.index(what)]
    found = map(tuple, values.tolist()) if what == "exact" else values.tolist()
    return dict(zip(map(one.series.write_part, one.parts), found, strict=True))


def sum_wh(one: DailySum) -> dict[str, int]:
    """The sums of a mean by group."""
    return {group: exact for group, (exact,) in by_group(one).items()}


def as_values(one: DailySum) -> tuple[Any, ...]:
    """All of a daily sum."""
    return one.series, one.slots, one.parts, one.counts.tolist(), one.exact.tolist()


def profile_of(half_hour_wh: int, day_wh: int, missing_wh: int, max_missing: int, **keys: Any) -> Profile:
    """A profile with these clamps."""
    names = ("half_hour_clamp_kwh", "clamp_kwh", "missing_kwh")
    amounts = {name: Decimal(wh) / 1000 for name, wh in zip(names, (half_hour_wh, day_wh, missing_wh), strict=True)}
    return Profile(statistic="profile", max_missing=max_missing, **amounts, **keys)
