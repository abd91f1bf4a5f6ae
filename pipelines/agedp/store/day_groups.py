"""Parts of a month -> groups of parts that share days, which are deduplicated apart: a new night costs its own rows.

A group is some consecutive days of a month with all parts that have rows of them. Its DAYS are stored under the hash of
its parts, so they remain while no part with rows of its days arrives.

Example: a delivery of the days 1 to 14, then nightly files of the days 15, 16 and 17 are four groups.

Decisions:

* The first reading of a nightly file often belongs to the day before. So a part with at most two days may be in two
  groups, which read its rows of their own days; a part with more days is in one group only.
* A file that is ingested again may be split into other parts with the same names. So the hash contains the number of
  rows before each part and in it.
* A store that is made anew may have another number of household buckets, and the same parts. So the hash contains the
  number; with one bucket the names are those of earlier versions.
* Manifests of earlier versions name no days: their parts have the complete month, which then is one group under the
  name that it had.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np

from agedp.store.manifest import Manifest, PartSpan, SpansByMonth
from agedp.store.store import PartMonth, Store
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Ints

_ALL_DAYS: Final = (0, 2**31 - 1)


@dataclass(frozen=True, slots=True)
class DayGroup:
    """Some days of a month and bucket, with the parts that have rows of them, in the order of the files.

    Attributes:
        name: the hash under which its tables are stored.
        parts: the parts.
        first: the first day, since 1970.
        last: the last day, included.
        is_cut: whether a part has rows of further days of the month.
    """

    name: str
    parts: tuple[PartMonth, ...]
    first: int
    last: int
    is_cut: bool

    @property
    def days(self) -> Ints | None:
        """Return the days whose rows are read, ascending; None: all rows of the parts."""
        return np.arange(self.first, self.last + 1) if self.is_cut else None

    def overlaps(self, days: Ints | None) -> bool:
        """Return whether one of these days is in the group; None: all days."""
        return days is None or bool(((days >= self.first) & (days <= self.last)).any())

    def key(self, extra_key: Mapping[str, Any]) -> str:
        """Return the name of a table that depends on further settings as well."""
        return _hash([self.name, extra_key])


def stored_groups(store: Store, month: str, contents: Sequence[str], bucket: int = 0) -> tuple[DayGroup, ...]:
    """Return the groups of a month and bucket, from the stored parts and the manifests of their files.

    Raises:
        InputError: the system denies access.
    """
    parts = store.month_parts(month, contents, bucket)
    return group_parts(store, month, parts, {part.content: store.part_spans(part.content) for part in parts})


def planned_parts(
    manifests: Mapping[str, Manifest], contents: Sequence[tuple[int, str]], month_bucket: tuple[str, int], store: Store
) -> tuple[PartMonth, ...]:
    """Return what `Store.month_parts` returns, from manifests and not from the folder.

    Args:
        manifests: the manifests by content id.
        contents: index and content id of the files with rows of the month, in order.
        month_bucket: the month and the household bucket.
        store: the confidential store.
    """
    month, bucket = month_bucket
    return tuple(
        PartMonth(file_index, content, number)
        for file_index, content in contents
        for number, part in enumerate(manifests[content].parts)
        if (month in part.months if store.buckets == 1 else str(bucket) in part.buckets.get(month, ()))
    )


def group_parts(
    store: Store, month: str, parts: Sequence[PartMonth], spans_by_content: Mapping[str, Sequence[SpansByMonth]]
) -> tuple[DayGroup, ...]:
    """Return the groups of some parts of a month, all of one bucket, by the spans of all parts of their files."""
    if not parts:
        return ()
    spans = [
        in_file[part.number].get(month) if part.number < len(in_file := spans_by_content[part.content]) else None
        for part in parts
    ]
    if not any(spans):
        names = [part.name for part in parts]
        return (DayGroup(_hash([*_settings(store), names]), tuple(parts), *_ALL_DAYS, False),)
    first = day_number(date.fromisoformat(f"{month}-01"))
    bounds = np.array([(span.first, span.last) if span else (first, first + 30) for span in spans], np.int64)
    groups = [(days, _indices(bounds, days)) for days in _segments(bounds)]
    return tuple(_group(store, parts, spans, bounds, group) for group in _join_equal(groups))


_Days = tuple[int, int]


def _segments(bounds: Ints) -> list[_Days]:
    """Return runs of days, between which only parts with at most two days lie."""
    first, last = bounds.T
    days = range(int(first.min()), int(last.max()))
    is_long = last - first > 1
    cuts = [day for day in days if not (is_long & (first <= day) & (last > day)).any()]
    starts = [days.start, *(day + 1 for day in cuts)]
    return list(zip(starts, [*cuts, days.stop], strict=True))


def _indices(bounds: Ints, days: _Days) -> tuple[int, ...]:
    """Return the parts with rows of these days."""
    first, last = bounds.T
    return tuple(np.flatnonzero((first <= days[1]) & (last >= days[0])).tolist())


def _join_equal(groups: Sequence[tuple[_Days, tuple[int, ...]]]) -> list[tuple[_Days, tuple[int, ...]]]:
    """Return the groups with parts; consecutive ones with the same parts are one."""
    joined: list[tuple[_Days, tuple[int, ...]]] = []
    for days, indices in groups:
        if joined and joined[-1][1] == indices:
            joined[-1] = ((joined[-1][0][0], days[1]), indices)
        elif indices:
            joined.append((days, indices))
    return joined


def _group(
    store: Store,
    parts: Sequence[PartMonth],
    spans: Sequence[PartSpan | None],
    bounds: Ints,
    group: tuple[_Days, tuple[int, ...]],
) -> DayGroup:
    (first, last), indices = group
    chosen = tuple(parts[i] for i in indices)
    is_cut = any(bounds[i, 0] < first or bounds[i, 1] > last for i in indices)
    rows = [None if (span := spans[i]) is None else [span.rows_before, span.rows] for i in indices]
    names = [part.name for part in chosen]
    name = _hash([*_settings(store), names, [first, last], rows])
    return DayGroup(name, chosen, first, last, is_cut)


def _settings(store: Store) -> list[Any]:
    """Return what DAYS depend on beside their parts: of a store that is made anew with other buckets none is used."""
    meters = [] if store.meters is None else [store.meters.digest]
    return [store.dataset, store.order.criterion, *([store.buckets] if store.buckets > 1 else []), *meters]


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
