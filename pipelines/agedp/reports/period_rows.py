"""LEDGER rows that cover a week, month or year -> the rows that a chart of periods shows. Public."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.periods import Every, period_of


def period_rows(rows: Sequence[ReleaseRecord], *, every: Every, coverage: Decimal) -> list[dict[str, Any]]:
    """Return a row for each released period and group, with the columns of the averages by period.

    Args:
        rows: released rows of one series; each names the last day of its period.
        every: length of the periods.
        coverage: of the noise intervals.
    """
    shown = []
    for row in sorted(rows, key=lambda row: (row.day, row.revision)):
        first, last = period_of(date.fromisoformat(row.day), every)
        days, half_width = (last - first).days + 1, mechanisms.interval(row.scale, coverage)
        deviation = mechanisms.standard_deviation(row.scale)
        for group, value, household_days in zip(row.cells, row.values, row.households, strict=True):
            wh_per_kwh_mean = 1000.0 * household_days
            shown.append(
                {
                    "first_day": first,
                    "group": group,
                    "days_released": days,
                    "days_in_period": days,
                    "is_complete": 1,
                    "household_days": household_days,
                    "mean_kwh": value / wh_per_kwh_mean,
                    "low_kwh": (value - half_width) / wh_per_kwh_mean,
                    "high_kwh": (value + half_width) / wh_per_kwh_mean,
                    "noise_sd_kwh": deviation / wh_per_kwh_mean,
                }
            )
    return shown
