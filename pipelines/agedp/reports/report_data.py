"""The released rows of a public report: those that it charts, and outlines of all. Public.

With the layout "monthly" a night reads the rows of its own month, so that it costs the same in every year. The report
then charts the days of thirteen months; the privacy loss is that of all days, from the outlines of their rows.

Decisions:

* The charted days begin with a month, so that its average is that of the whole month.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from agedp_data.ledger import ReleaseRecord

_EARLIER_MONTHS: Final = 12


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """Complete rows of the days that a report charts, and outlines of all rows."""

    charted: Sequence[ReleaseRecord]
    history: Sequence[ReleaseRecord]

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
