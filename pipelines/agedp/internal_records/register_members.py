"""Rosters -> the memberships of the household register: who is counted in a source, from which day to which.

Ranges only grow, by days and by households, because the rosters of released days cannot change. While nobody joins or
leaves, the digest of the roster is the same and a night costs no more than comparing it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from agedp.internal_records.roster_ranges import DayRange, HouseholdKey, HouseholdRanges, RosterRanges, merge_ranges
from agedp_data.ledger.register_rows import (
    DIGEST_BYTES,
    FIRST_BYTES,
    Membership,
    Ranges,
    RegisterRows,
    RegisterSource,
)

_BUCKET_HOUSEHOLDS: Final = 10_000


def record_roster(
    rows: RegisterRows,
    key: HouseholdKey,
    source: RegisterSource,
    roster: RosterRanges,
    *,
    period: DayRange | None = None,
) -> RegisterSource:
    """Add the ranges of a roster to those of a source; the cost does not grow with a roster that is unchanged.

    Args:
        rows: the register.
        key: its key.
        source: the source.
        roster: the roster, through its newest released or due day.
        period: for a calibration, the period, on each day of which its households count.

    Returns:
        The source with its newest day.
    """
    digest = roster.digest(key)
    if digest == source.roster and (roster.newest <= source.through or source.through == source.newest):
        if roster.newest > source.newest:
            source = replace(source, newest=roster.newest, through=roster.newest)
            rows.update_source(source)
        return source
    wanted = roster.by_household()
    if period is not None:
        wanted = HouseholdRanges(wanted.ids, np.zeros_like(wanted.number), ((period,),))
    newest = max(source.newest, roster.newest)
    _Memberships(rows, source, newest).add(wanted, key)
    source = replace(source, roster=digest, newest=newest, through=roster.newest)
    rows.update_source(source)
    return source


class _Memberships:
    """The memberships of all households, while the ranges of one source are added."""

    def __init__(self, rows: RegisterRows, source: RegisterSource, newest: int) -> None:
        self._rows, self._source, self._newest = rows, source, newest
        self._ranges = {number: entry.ranges for number, entry in rows.memberships().items()}
        self._ids = {ranges: number for number, ranges in self._ranges.items()}
        self._counts = {number: entry.households for number, entry in rows.memberships().items()}
        self._targets: dict[tuple[int, tuple[DayRange, ...]], int] = {}

    def add(self, wanted: HouseholdRanges, key: HouseholdKey) -> None:
        """Add ranges by household; open ranges of other households in the source end with its newest day so far.

        The households are compared bucket by bucket of their digests: a million of them are never in memory at once as
        Python values.
        """
        inside = {
            number for number, ranges in self._ranges.items() if any(entry[0] == self._source.id for entry in ranges)
        }
        digests = np.frombuffer(b"".join(key.households(wanted.ids)), np.uint8).reshape(-1, DIGEST_BYTES)
        order = np.argsort(digests[:, 0], kind="stable")
        households = max(len(order), sum(self._counts.values()))
        buckets = min(FIRST_BYTES, 2 ** (households // _BUCKET_HOUSEHOLDS).bit_length())
        for first in range(0, FIRST_BYTES, FIRST_BYTES // buckets):
            stop = first + FIRST_BYTES // buckets
            chosen = order[slice(*np.searchsorted(digests[order, 0], (first, stop)))]
            content = digests[chosen].tobytes()
            names = [content[place : place + DIGEST_BYTES] for place in range(0, len(content), DIGEST_BYTES)]
            numbers = dict(zip(names, wanted.number[chosen].tolist(), strict=True))
            self._add_bucket(self._rows.households(first, stop), numbers, wanted.ranges, inside)
        used = [Membership(number, self._ranges[number], count) for number, count in self._counts.items() if count]
        self._rows.replace_memberships(used)

    def _add_bucket(
        self,
        stored: Mapping[bytes, int],
        wanted: Mapping[bytes, int],
        ranges: Sequence[tuple[DayRange, ...]],
        inside: Collection[int],
    ) -> None:
        """Add the ranges of the households of a bucket, `wanted` by their number among `ranges`."""
        targets = {household: self._target(stored.get(household, 0), ranges[i]) for household, i in wanted.items()}
        for household, number in stored.items():
            if number in inside and household not in wanted:
                targets[household] = self._target(number, ())
        added, moved = dict[bytes, int](), dict[bytes, int]()
        for household, target in targets.items():
            number = stored.get(household, 0)
            if target == number:
                continue
            (moved if number else added)[household] = target
            self._counts[target] = self._counts.get(target, 0) + 1
            if number:
                self._counts[number] -= 1
        self._rows.move_households(added=added, moved=moved)

    def _target(self, number: int, ranges: tuple[DayRange, ...]) -> int:
        """Return the membership of a household that has the membership `number`, 0 for none, and gets these ranges."""
        if (number, ranges) not in self._targets:
            self._targets[number, ranges] = self._number(self._with(self._ranges.get(number, ()), ranges))
        return self._targets[number, ranges]

    def _with(self, before: Ranges, added: tuple[DayRange, ...]) -> Ranges:
        spans = [
            (begin, self._source.newest if end is None else end)
            for source, begin, end in before
            if source == self._source.id
        ]
        merged = merge_ranges([*spans, *added])
        ranges = [(self._source.id, begin, None if end >= self._newest else end) for begin, end in merged]
        return tuple(
            sorted([*(entry for entry in before if entry[0] != self._source.id), *ranges], key=lambda entry: entry[:2])
        )

    def _number(self, ranges: Ranges) -> int:
        if ranges not in self._ids:
            number = max(self._ranges, default=0) + 1
            self._ids[ranges], self._ranges[number] = number, ranges
        return self._ids[ranges]
