"""LEDGER rows of profiles of months -> the published table, a row for each month, group, kind of day and half-hour.

Example: the cell "Std weekday 18:30" of January 2013, drawn as 2 x 92,000 Wh over 230 household-days of 23 weekdays,
becomes the line (day 2013-01-31, Std, weekday, 1110, household_days 230, weight 2, noisy_weighted_wh 184000,
mean_kwh 0.4, ...).

The mean is of the household-days of the kind, and of half-hours of equal length: it is divided by how long the
half-hour is on the days of the kind, in parts of what it would be if all their clocks had it once. A ledger row does
not contain households by day, so this factor is of the calendar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.release_folder.profile_table import ProfileTerms, cell_minutes
from agedp_data import mechanisms, table_schemas
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.validation import INTERVAL_MINUTES, Ints
from agedp_data.epsilon import to_float
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.day_kinds import DAY_KINDS, DayKind, day_kind
from agedp_data.series.monthly_profile import WEIGHTS
from agedp_data.series.periods import days_of

_WH_PER_KWH: Final = 1000.0


def monthly_profile_table(
    rows: Sequence[ReleaseRecord], *, terms: Mapping[str, ProfileTerms], coverage: Decimal
) -> pa.Table:
    """Return the half-hours of released rows by group and kind of day; intervals cover only the noise of `mean_kwh`.

    Args:
        rows: released rows of one series of months, in any order.
        terms: by the hash of each contract that has the series.
        coverage: probability with which an interval covers the noise.

    Raises:
        ValueError: a cell is not a half-hour of the series.
    """
    ordered = sorted(rows, key=lambda row: (row.day, row.revision))
    tables = [_month_table(row, terms[row.contract], coverage) for row in ordered]
    return pa.concat_tables([table_schemas.PROFILE_RELEASES.empty_table(), *tables])


def _month_table(row: ReleaseRecord, terms: ProfileTerms, coverage: Decimal) -> pa.Table:
    last = date.fromisoformat(row.day)
    first, _ = terms.profile.covered_days(last)
    places = [terms.profile.place(cell) for cell in row.cells]
    parts = [terms.profile.split_part(part) for part, _ in places]
    slot = np.array([slot for _, slot in places], np.int64)
    kind = np.array([DAY_KINDS.index(of) for _, of in parts], np.int64)
    length = slot_step(terms.layout.interval_minutes) * INTERVAL_MINUTES
    days, minutes = (np.array(of_kind) for of_kind in zip(*_calendar(terms, first, last), strict=True))
    weight, values = np.array([WEIGHTS[of] for of in DAY_KINDS])[kind], np.array(row.values, np.int64)
    household_days = np.array(row.households, np.int64)
    wh_per_kwh_mean = _WH_PER_KWH * weight * household_days * minutes[kind, slot] / (days[kind] * length)
    deviation, half_width = mechanisms.standard_deviation(row.scale), mechanisms.interval(row.scale, coverage)
    constants = {
        "day": last,
        "first_day": first,
        "minutes": length,
        "revision": row.revision,
        "published_on": date.fromisoformat(row.published_on),
        "epsilon": to_float(row.loss),
        "version": terms.version,
    }
    return table_schemas.table_from_columns(
        table_schemas.PROFILE_RELEASES,
        **{name: pa.repeat(pa.scalar(value), len(places)) for name, value in constants.items()},
        group=[group for group, _ in parts],
        day_kind=[of for _, of in parts],
        start_minute=slot * INTERVAL_MINUTES,
        days_of_kind=days[kind],
        minutes_in_period=minutes[kind, slot],
        household_days=household_days,
        weight=weight,
        noisy_weighted_wh=values,
        mean_kwh=values / wh_per_kwh_mean,
        noise_sd_kwh=deviation / wh_per_kwh_mean,
        low_kwh=(values - half_width) / wh_per_kwh_mean,
        high_kwh=(values + half_width) / wh_per_kwh_mean,
    )


def _calendar(terms: ProfileTerms, first: date, last: date) -> list[tuple[int, Ints]]:
    """Return the number of days of each kind, and how long each half-hour is on all of them, shape (48,) [minutes]."""
    by_kind: dict[DayKind, list[Ints]] = {kind: [] for kind in DAY_KINDS}
    for day in days_of(first, last):
        by_kind[day_kind(day)].append(cell_minutes(terms.layout, day))
    return [(len(of_kind), np.sum(of_kind, axis=0)) for of_kind in by_kind.values()]
