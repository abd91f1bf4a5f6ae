"""Roster + due days -> the household-days that a finding touches, by group. Confidential.

Example: 20 households on the roster on 4 due days are 80 household-days; readings of one household that are rejected on
two of the days touch 2 of them, 2.5 %.

Decisions:

* A rejected row with a household, but without a day, touches one household-day: any one of the household's.
* Households that are not on the roster are ignored, as their readings are. Of a roster that was read off the files they
  are those whose times cannot be read: they count like rows without a household, beside the roster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.store.month_reader import distinct_keys, household_day_key, split_household_day_key
from agedp_data.datasets.validation import Ints
from agedp_data.roster import Roster
from agedp_data.roster_counts import ALL, GroupColumns, columns_text, number_groups
from agedp_data.text_columns import as_strings

NO_DAY = -1


@dataclass(frozen=True, slots=True)
class Touched:
    """What a finding touches; numbers of distinct households add up.

    Attributes:
        households: number of households.
        days: number of household-days by group, "all" for all.
        rows: number of rows; 0 if the finding is not about single rows.
        details: what the rows show, with numbers.
        is_sampled: whether the numbers are those of a sample, in proportion.
    """

    households: int = 0
    days: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    details: Mapping[str, int] = field(default_factory=dict)
    is_sampled: bool = False

    def __add__(self, further: Touched) -> Touched:
        """Return what both touch, which have no household in common."""
        days, details = (Counter(part) + Counter(more) for part, more in
                         ((self.days, further.days), (self.details, further.details)))  # fmt: skip
        is_sampled = self.is_sampled or further.is_sampled
        return Touched(self.households + further.households, days, self.rows + further.rows, details, is_sampled)


class RosterDays:
    """The household-days of a roster, or of a bucket of it, on the due days."""

    def __init__(self, roster: Roster, days: Sequence[int], by: Iterable[GroupColumns] = ()) -> None:
        """Number the rows of the roster; `days` are the due days since 1970, `by` the groups that are published."""
        self.days = np.array(sorted(days), np.int64)
        self.read_off = roster.read_off
        self._names = as_strings(roster.ids)
        self.every = np.arange(len(self._names))
        order = np.lexsort((roster.first, roster.household))
        self._household, self._first, self._last = (
            values[order].astype(np.int64) for values in (roster.household, roster.first, roster.last)
        )
        self._begin = np.searchsorted(self.days, self._first)
        self._number = np.maximum(np.searchsorted(self.days, self._last, "right") - self._begin, 0)
        self._groups = [(columns_text(columns), *number_groups(roster.groups, columns)) for columns in by if columns]
        self._groups = [(name, labels, numbers[order]) for name, labels, numbers in self._groups]
        self.households = len(np.unique(self._household[self._number > 0]))
        self.totals = self._by_group(np.arange(len(order)), self._number)

    def codes(self, names: pa.Array | pa.ChunkedArray) -> Ints:
        """Return the number of each household on the roster, -1 for all others."""
        found = pc.fill_null(pc.index_in(names, value_set=self._names), -1)
        codes: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes

    def on_roster(self, household: Ints, day: Ints) -> Ints:
        """Return the distinct keys of the household-days that are on the roster and due."""
        is_due = (household >= 0) & np.isin(day, self.days)
        key = distinct_keys(household_day_key(household[is_due], day[is_due]))
        row = self._rows(key)
        return key[row >= 0]

    def days_of(self, household: Ints, number: Ints, *, since: Ints | None = None) -> Ints:
        """Return keys of that many due days of each household, at most all of them, the first ones."""
        keys = [np.zeros(0, np.int64)]
        for i, (code, most) in enumerate(zip(household.tolist(), number.tolist(), strict=True)):
            rows = slice(*np.searchsorted(self._household, [code, code + 1]).tolist())
            spans = zip(self._begin[rows].tolist(), self._number[rows].tolist(), strict=True)
            days = np.concatenate([keys[0], *(self.days[begin : begin + length] for begin, length in spans)])
            days = days if since is None else days[days >= since[i]]
            keys.append(household_day_key(np.full(len(days), code), days)[:most])
        return np.concatenate(keys)

    def touched(
        self, keys: Ints, *, rows: int = 0, others: tuple[int, int] = (0, 0), details: Mapping[str, int] | None = None
    ) -> Touched:
        """Return what household-days on the roster are; `others` are households and household-days beside it."""
        keys = distinct_keys(keys)
        days = self._by_group(self._rows(keys), np.ones(len(keys), np.int64))
        days[ALL] = min(days[ALL] + others[1], max(self.totals[ALL], days[ALL]))
        return Touched(len(np.unique(split_household_day_key(keys)[0])) + others[0], days, rows, details or {})

    def _rows(self, key: Ints) -> Ints:
        household, day = split_household_day_key(key)
        row = np.searchsorted(household_day_key(self._household, self._first), key, side="right") - 1
        is_member = (row >= 0) & (self._household[row] == household) & (self._last[row] >= day)
        return np.where(is_member, row, -1)

    def _by_group(self, row: Ints, number: Ints) -> dict[str, int]:
        days = {ALL: int(number.sum())}
        for name, labels, of_row in self._groups:
            counts = np.bincount(of_row[row], number, len(labels)).astype(int)
            days |= {f"{name} {label}": count for label, count in zip(labels, counts.tolist(), strict=True) if count}
        return days
