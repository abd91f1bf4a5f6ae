"""Roster -> ranges of days of each household, as the household register counts them; and their digest.

    A 2012-06-01 to 2013-02-10, through 2013-01-01 .. 2013-03-05   ->   ((2013-01-01, 2013-02-10),)
    B 2013-01-20 onwards                                           ->   ((2013-01-20, 2013-03-05),)

Days are whole numbers, days since 1970-01-01. Rows of one household that follow each other, as when it changes its
group, are one range.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agedp_data.datasets.validation import Ints
from agedp_data.roster import Roster

DayRange = tuple[int, int]
"""First and last day, both included."""

_HOUSEHOLD, _ROSTER, _CHECK = b"household:", b"roster:", b"check"


@dataclass(frozen=True, slots=True)
class HouseholdKey:
    """The secret key of a register's digests, 32 bytes."""

    secret: bytes

    @property
    def check(self) -> str:
        """A value by which two keys are compared; the key does not follow from it."""
        return self._digest(_CHECK).hex()

    def household(self, household_id: str) -> bytes:
        """Return the digest of a household, HMAC-SHA-256 of its id."""
        return self._digest(_HOUSEHOLD + household_id.encode())

    def roster(self, text: bytes) -> str:
        """Return the digest of a roster's text."""
        return self._digest(_ROSTER + text).hex()

    def _digest(self, message: bytes) -> bytes:
        return hmac.digest(self.secret, message, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class RosterRanges:
    """The rows of a roster that touch the days from `first` to `newest`, cut to them.

    `household` are indices into `ids`; a row that ends on `newest` or later has an open end.
    """

    ids: Sequence[str]
    household: Ints
    begin: Ints
    end: Ints
    newest: int

    @classmethod
    def of(cls, roster: Roster, first: int, newest: int) -> RosterRanges:
        """Return the ranges of a roster within these days."""
        rows = np.flatnonzero((roster.first <= newest) & (roster.last >= first))
        begin, end = np.maximum(roster.first[rows], first), np.minimum(roster.last[rows], newest)
        return cls(roster.ids, roster.household[rows], begin, end, newest)

    def digest(self, key: HouseholdKey) -> str:
        """Return a keyed digest of who is counted when; it is the same on later days while nobody joins or leaves."""
        open_ended = np.where(self.end == self.newest, -1, self.end)
        days = np.stack([self.begin, open_ended]).astype("<i8").tobytes()
        ids = tuple(self.ids)
        members = json.dumps([ids[code] for code in self.household.tolist()])
        return key.roster(members.encode() + days)

    def by_household(self) -> dict[str, tuple[DayRange, ...]]:
        """Return the ranges of each household; equal ranges are one object."""
        ranges: dict[int, tuple[DayRange, ...]] = {}
        shared: dict[DayRange, tuple[DayRange, ...]] = {}
        rows = zip(self.household.tolist(), self.begin.tolist(), self.end.tolist(), strict=True)
        for code, begin, end in rows:
            span = (begin, end)
            if code in ranges:
                ranges[code] = merge_ranges((*ranges[code], span))
            else:
                ranges[code] = shared.setdefault(span, (span,))
        ids = tuple(self.ids)
        return {ids[code]: spans for code, spans in ranges.items()}


def merge_ranges(ranges: Iterable[DayRange]) -> tuple[DayRange, ...]:
    """Return the union of ranges of days, sorted; ranges that overlap or follow each other become one.

    >>> merge_ranges([(5, 9), (1, 3), (4, 4), (12, 12)])
    ((1, 9), (12, 12))
    """
    merged: list[DayRange] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return tuple(merged)
