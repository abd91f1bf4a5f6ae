"""The released rows of a public report: those that it charts, and the headers of all.

With the layout "monthly" a night reads the rows of its own month, so that it costs the same in every year. The report
then charts the days of thirteen months; the privacy loss is that of all days, from the headers of their rows.

Decisions:

* The charted days begin with a month, so that its average is that of the whole month.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.ledger import ReleaseRecord
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.series_terms import mean_name

_EARLIER_MONTHS: Final = 12


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """Complete rows of the days that a report charts, outlines of all rows, and the averages of the charted months."""

    charted: Sequence[ReleaseRecord]
    history: Sequence[ReleaseRecord]
    months: pa.Table | None = None

    @property
    def since(self) -> str:
        """Return the first charted day if released days are before it, "" otherwise."""
        first = min((row.day for row in self.charted), default="")
        is_cut = any(row.day < first for row in self.history if row.state == "released")
        return first if is_cut else ""


def charted_rows(history: Sequence[ReleaseRecord]) -> list[ReleaseRecord]:
    """Return the rows of the newest day's month and the twelve months before it."""
    newest = date.fromisoformat(max((row.day for row in history), default="0002-01-01"))
    number = newest.year * 12 + newest.month - 1 - _EARLIER_MONTHS
    first = date(number // 12, number % 12 + 1, 1).isoformat()
    return [row for row in history if row.day >= first]


def month_rows(months: pa.Table | None, mean: str, *, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the averages by month of a mean's largest groups as rows, and the number of its other groups.

    Args:
        months: the table of averages by month; None without one.
        mean: name of the mean in the run file; of its layers the first one counts.
        most: number of groups, those of most household-days.
    """
    if months is None:
        return [], 0
    names = [name for name in pc.unique(months["series"]).to_pylist() if mean_name(name) == mean and not is_upper(name)]
    of_mean = months.filter(pc.is_in(months["series"], pa.array(names, months["series"].type)))
    sums = of_mean.group_by("group").aggregate([("household_days", "sum")])
    groups, days = sums["group"].to_pylist(), sums["household_days_sum"].to_pylist()
    largest = sorted(range(len(groups)), key=lambda i: (-days[i], groups[i]))[:most]
    if len(largest) < len(groups):
        shown = np.isin(np.array(of_mean["group"].to_pylist()), [groups[i] for i in largest])
        of_mean = of_mean.filter(pa.array(shown))
    return of_mean.to_pylist(), len(groups) - len(largest)
