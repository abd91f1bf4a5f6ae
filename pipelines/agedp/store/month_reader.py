"""The readings of a month from its parts; household-days with rows in several parts are deduplicated together.

A household-day with rows in one part only has the readings of that part. A household-day with rows in several parts is
shared (a file split within a day, a delivery repeated or corrected), and so is one of several meters ([population]
meters): only rows of shared household-days are read again and deduplicated together. The result equals the
deduplication of all rows of the month at once.

Household-days are integer keys, to sort and to look up. The total of a household-day is a function of its rows alone,
so household-days can be deduplicated independently.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import read_derived
from agedp.store.store import Manifest, PartMonth, PartSpan, SpansByMonth, Store, store_changed
from agedp_data import table_schemas
from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows, join_rows
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS, Flags, Integers, Ints
from agedp_data.meters import join_labels

# --------------------------------------------------------------------------------------------------
# Parts of a month -> groups of parts that share days, which are deduplicated apart: a new night costs its own rows.
#
# A group is some consecutive days of a month with all parts that have rows of them. Its DAYS are stored under the hash
# of its parts, so they remain while no part with rows of its days arrives.
#
# Example: a delivery of the days 1 to 14, then nightly files of the days 15, 16 and 17 are four groups.
#
# Decisions:
#
# * The first reading of a nightly file often belongs to the day before. So a part with at most two days may be in two
#   groups, which read its rows of their own days; a part with more days is in one group only.
# * A file that is ingested again may be split into other parts with the same names. So the hash contains the number of
#   rows before each part and in it.
# * A store that is made anew may have another number of household buckets, and the same parts. So the hash contains
#   the number; with one bucket the names are those of earlier versions.
# * Manifests of earlier versions name no days: their parts have the complete month, which then is one group under the
#   name that it had.
# --------------------------------------------------------------------------------------------------

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
    contents_of_parts = {part.content for part in parts}
    spans = {content: [part.spans for part in store.stored_parts(content)] for content in contents_of_parts}
    return group_parts(store, month, parts, spans)


def planned_parts(
    manifests: Mapping[str, Manifest], contents: Sequence[tuple[int, str]], month: str, bucket: int
) -> tuple[PartMonth, ...]:
    """Return what `Store.month_parts` returns, from manifests and not from the folder.

    Args:
        manifests: the manifests by content id.
        contents: index and content id of the files with rows of the month, in order.
        month: the month, as in its folder.
        bucket: the household bucket.
    """
    return tuple(
        PartMonth(file_index, content, number, *place)
        for file_index, content in contents
        for number, part in enumerate(manifests[content].parts)
        if (place := part.place(month, bucket)) is not None
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
    groups: list[tuple[_Days, tuple[int, ...]]] = []
    for first_day, last_day in _segments(bounds):
        indices = tuple(np.flatnonzero((bounds[:, 0] <= last_day) & (bounds[:, 1] >= first_day)).tolist())
        if groups and groups[-1][1] == indices:  # consecutive days with the same parts are one group
            groups[-1] = (groups[-1][0][0], last_day), indices
        elif indices:
            groups.append(((first_day, last_day), indices))
    return tuple(_group(store, parts, spans, bounds, group) for group in groups)


_Days = tuple[int, int]


def _segments(bounds: Ints) -> list[_Days]:
    """Return runs of days, between which only parts with at most two days lie."""
    first, last = bounds.T
    days = range(int(first.min()), int(last.max()))
    is_long = last - first > 1
    cuts = [day for day in days if not (is_long & (first <= day) & (last > day)).any()]
    starts = [days.start, *(day + 1 for day in cuts)]
    return list(zip(starts, [*cuts, days.stop], strict=True))


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


_DAY_BITS = 17
"""Days since 1970 up to 2328; the readers accept days up to 2199."""


def household_day_key(household: Integers, day: Integers) -> Ints:
    """Return one integer per (household code, day since 1970); keys sort by household and day.

    >>> split_household_day_key(household_day_key(np.array([3]), np.array([15706])))
    (array([3]), array([15706]))
    """
    return (household.astype(np.int64, copy=False) << _DAY_BITS) | day


def split_household_day_key(key: Ints) -> tuple[Ints, Ints]:
    """Return the household codes and days since 1970 of keys; the inverse of `household_day_key`."""
    return key >> _DAY_BITS, key & ((1 << _DAY_BITS) - 1)


def distinct_keys(key: Ints) -> Ints:
    """Return the distinct keys, sorted; linear in time if `key` is sorted already.

    >>> distinct_keys(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    if len(key) and not (key[1:] >= key[:-1]).all():
        return np.unique(key)
    return key[is_first_of_key(key)]


def is_first_of_key(key: Ints) -> Flags:
    """Return which elements of sorted keys are the first with their key, shape (n,).

    >>> is_first_of_key(np.array([3, 3, 7])).tolist()
    [True, False, True]
    """
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    return first


def is_in_sorted(key: Ints, sorted_keys: Ints) -> Flags:
    """Return which keys are in `sorted_keys`, shape of `key`; binary search, so `sorted_keys` must ascend.

    >>> is_in_sorted(np.array([1, 3, 9]), np.array([3, 7])).tolist()
    [False, True, False]
    """
    if len(sorted_keys) == 0:
        return np.zeros(len(key), bool)
    is_in: Flags = sorted_keys[np.minimum(np.searchsorted(sorted_keys, key), len(sorted_keys) - 1)] == key
    return is_in


def day_starts(household: Integers, time: Integers) -> Ints:
    """Return the index at which each household-day of sorted rows begins; shapes (n,), (n,) -> (d,).

    >>> day_starts(np.array([3, 3, 3, 4]), np.array([46, 47, 48, 48])).tolist()
    [0, 2, 3]
    """
    day, is_first = time // SLOTS, np.ones(len(time), bool)
    np.not_equal(day[1:], day[:-1], out=is_first[1:])
    is_first[1:] |= household[1:] != household[:-1]
    return np.flatnonzero(is_first)


def household_days(deduplicated: Readings) -> tuple[Ints, Ints, Ints]:
    """Return the key of each household-day, its energy [Wh] and the number of its readings; shapes (d,), (d,), (d,).

    A net export of a day counts as 0.

    Args:
        deduplicated: readings sorted by household and time.
    """
    household, time, energy_wh = deduplicated.household, deduplicated.time, deduplicated.energy_wh
    starts = day_starts(household, time)
    key = household_day_key(household[starts], time[starts] // SLOTS)
    if not len(key):
        return key, key, key
    energy = np.maximum(np.add.reduceat(energy_wh, starts, dtype=np.int64), 0)
    return key, energy, np.diff(starts, append=len(time))


def daily_totals(deduplicated: Readings, keys: Ints) -> tuple[Ints, Ints]:
    """Return energy and number of readings, as `household_days`, of each household-day in `keys`.

    Args:
        deduplicated: readings sorted by household and time.
        keys: sorted distinct keys, which contain every household-day of the readings.

    Returns:
        Two arrays of the shape of `keys`; 0 for a household-day without a reading.
    """
    energy, readings = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    of_readings, *totals = household_days(deduplicated)
    position = np.searchsorted(keys, of_readings)
    energy[position], readings[position] = totals
    return energy, readings


_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MonthIndex:
    """The household-days of a month by part, from which shared household-days are found without reading any reading.

    Attributes:
        ids: the household ids of the month, sorted; a household's code is its index here.
        code_by_id: the inverse of `ids`.
        tables: the PART_DAYS of each part.
        keys: the `household_day_key` of each row of these tables.
        shared: sorted keys of the household-days with rows in more than one part, or of more than one meter.
        incomplete: those that lack a meter of [population] meters; they are shared too.
    """

    ids: tuple[str, ...]
    code_by_id: Mapping[str, int]
    tables: tuple[pa.Table, ...]
    keys: tuple[Ints, ...]
    shared: Ints
    incomplete: Ints


def index_month(store: Store, parts: Sequence[PartMonth], *, days: Ints | None = None) -> MonthIndex:
    """Return the PART_DAYS of the parts of a month, and the household-days with rows in more than one part.

    Args:
        store: the confidential store.
        parts: the parts, of one month and bucket.
        days: the days since 1970 that are looked at, ascending. None: all.

    Raises:
        FolderRemoved: a table is missing or damaged.
    """
    tables = (load_part_days(store, part) for part in parts)
    if days is not None:
        tables = (table.filter(pa.array(is_in_sorted(day_numbers(table), days))) for table in tables)
    loaded = tuple(tables)
    labels: tuple[Ints, ...] = ()
    if store.meters is not None and loaded:
        loaded, labels = zip(*map(store.meters.households, loaded), strict=True)
    ids = tuple(sorted({name for table in loaded for name in household_ids(table)}))
    code_by_id = {name: i for i, name in enumerate(ids)}
    keys = tuple(household_day_key(household_codes(table, code_by_id), day_numbers(table)) for table in loaded)
    all_keys = np.sort(np.concatenate([_NONE, *keys]), kind="stable")
    repeated = all_keys[~is_first_of_key(all_keys)]
    shared, incomplete = repeated[is_first_of_key(repeated)], _NONE
    if store.meters is not None and labels:
        of_meters = np.unique(np.stack([np.concatenate(keys), np.concatenate(labels)]), axis=1)[0]
        household_days, present = np.unique(of_meters, return_counts=True)
        incomplete = household_days[present < store.meters.numbers(ids, *split_household_day_key(household_days))]
        shared = np.union1d(shared, incomplete)
    return MonthIndex(ids, code_by_id, loaded, keys, shared, incomplete)


def load_shared_rows(store: Store, month_parts: Sequence[PartMonth], index: MonthIndex) -> StoredRows:
    """Return the rows of all shared household-days, which must be deduplicated together.

    Only the affected parts are read. `file` of a row is the index of its file in the order of all files.
    """
    affected = [
        part for part, key in zip(month_parts, index.keys, strict=True) if is_in_sorted(key, index.shared).any()
    ]
    loaded = (load_part_rows(store, part, index) for part in affected)
    part_rows = [_select_rows(rows, _is_of_days(rows, index.shared)) for rows in loaded]
    return join_rows(index.ids, part_rows, width=store.layout.width)


def _is_of_days(rows: StoredRows | Readings, household_days: Ints) -> Flags:
    """Return which rows are of these household-days, as sorted keys."""
    return is_in_sorted(household_day_key(rows.household, rows.time // SLOTS), household_days)


def shared_readings(store: Store, parts: Sequence[PartMonth], index: MonthIndex) -> Readings:
    """Return the deduplicated readings of all shared household-days; none of those that lack a meter."""
    readings = deduplicate_stored_rows(store, load_shared_rows(store, parts, index))
    if not len(index.incomplete):
        return readings
    kept = np.flatnonzero(~_is_of_days(readings, index.incomplete))
    columns = {name: getattr(readings, name)[kept] for name in ("household", "time", "energy_wh")}
    return replace(readings, **columns)


def load_month_readings(store: Store, month: str, contents: Sequence[str], bucket: int | None = None) -> Readings:
    """Return the deduplicated readings of a month, sorted by household and time.

    For one month in memory as a whole; `iterate_month_readings` needs memory for one part only.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order; `rejected_file` of the result is an index of them.
        bucket: the household bucket; all buckets if None.

    Raises:
        FolderRemoved: a table of the store is missing or damaged.
        InputError: the system denies access, or the manifest of a file disappeared.
    """
    parts: list[Readings] = []
    for number in range(store.buckets) if bucket is None else [bucket]:
        month_parts = store.month_parts(month, contents, number)
        parts += iterate_parts(store, month_parts, numbered=True)
    return _join_sorted(parts)


def iterate_month_readings(
    store: Store, month: str, contents: Sequence[str], *, bucket: int = 0, days: Ints | None = None
) -> Iterator[Readings]:
    """Yield the deduplicated readings of a month and bucket part by part, first those of the shared household-days.

    Each household-day is in one of the results only, and household codes refer to the same ids in all of them. The
    numbers of rejected rows have no meaning here. A net export of a half-hour counts as 0.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order.
        bucket: the household bucket.
        days: days since 1970 that are read, ascending; parts without rows of these days are not opened. None: all.
    """
    parts: Sequence[PartMonth] = store.month_parts(month, contents, bucket) if days is None else ()
    if days is not None:
        groups = [group for group in stored_groups(store, month, contents, bucket) if group.overlaps(days)]
        distinct = {part for group in groups for part in group.parts}
        parts = sorted(distinct, key=lambda part: (part.file_index, part.number))
    return map(Readings.without_exports, iterate_parts(store, parts, days=days))


def iterate_parts(
    store: Store, parts: Sequence[PartMonth], *, days: Ints | None = None, numbered: bool = False
) -> Iterator[Readings]:
    """Yield the deduplicated readings of some parts of a month and bucket, as `iterate_month_readings`.

    They must be all parts with rows of the days. The numbers of rejected rows have a meaning with `numbered` only.
    """
    index = index_month(store, parts, days=days)
    yield shared_readings(store, parts, index)
    for part, keys in zip(parts, index.keys, strict=True):
        if days is not None and not len(keys):
            continue
        load = partial(load_part_rows, store, part, index, numbered=numbered)
        yield _part_readings(store, load, index, days)  # whose rows are freed before those of the next part are loaded


def _part_readings(store: Store, load: Callable[[], StoredRows], index: MonthIndex, days: Ints | None) -> Readings:
    rows = load()
    if days is not None:
        rows = _select_rows(rows, is_in_sorted(rows.time // SLOTS, days))
    if len(index.shared):
        rows = _select_rows(rows, ~_is_of_days(rows, index.shared))
    return deduplicate_stored_rows(store, rows)


def deduplicate_stored_rows(store: Store, rows: StoredRows) -> Readings:
    """Deduplicate rows under the store's rules: its layout's channels, and its order of files for corrections.

    `rows` must contain all rows of their household-days.
    """
    return deduplicate_rows(
        rows,
        complete_channels=store.layout.complete_channels(store.rules),
        later_wins=store.order.criterion is not None,
        units_per_wh=store.layout.units_per_wh,
    )


def _join_sorted(parts: Sequence[Readings]) -> Readings:
    ids_of_buckets = list({id(part.ids): part.ids for part in parts}.values())
    ids = ids_of_buckets[0] if len(ids_of_buckets) == 1 else tuple(sorted(itertools.chain(*ids_of_buckets)))
    time, energy, file, row, reason = (
        np.concatenate([_NONE, *(getattr(readings, name) for readings in parts)])
        for name in ("time", "energy_wh", "rejected_file", "rejected_row", "rejected_reason")
    )
    code_by_id = {name: code for code, name in enumerate(ids)}
    codes = {id(of_part): np.array([code_by_id[name] for name in of_part], np.int64) for of_part in ids_of_buckets}
    household = np.concatenate([_NONE, *(codes[id(readings.ids)][readings.household] for readings in parts)])
    key = (household << 32) | time
    if not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        household, time, energy = household[order], time[order], energy[order]
    order = np.lexsort((row, file))
    return Readings(ids, household, time, energy, file[order], row[order], reason[order])


def load_part_rows(store: Store, part: PartMonth, index: MonthIndex, *, numbered: bool = True) -> StoredRows:
    """Return the rows of one part in one month, in the order of the file; household codes are indices of `index.ids`.

    Row numbers count from the beginning of the file; without `numbered`, which is quicker, within the part.
    """
    layout, schema = store.layout, store.schema
    columns = None if numbered else [name for name in schema.names if name != "row"]
    table = load_part(store, part, columns)
    day = day_numbers(table)
    slot = _ints(table["slot"]) if layout.width == 1 else np.zeros(len(day), np.int64)
    channel = _ints(table["channel"]) if layout.channels > 1 else np.zeros(len(day), np.int64)
    names = ["energy_wh"] if layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    energy = np.stack([_ints(table[name]) for name in names], axis=1)
    row = _ints(table["row"]) + rows_before(store, part) if numbered else np.arange(len(day))
    file = np.full(len(day), part.file_index)
    label = _ints(table["label"]) if layout.has_labels else None
    if store.meters is not None:
        table, of_meter = store.meters.households(table)
        label = of_meter if label is None else join_labels(label, of_meter)
    household = household_codes(table, index.code_by_id)
    return StoredRows(index.ids, household, channel, day * SLOTS + slot, file, row, energy, label)


def _select_rows(rows: StoredRows, is_selected: Flags) -> StoredRows:
    return rows if is_selected.all() else rows.take(np.flatnonzero(is_selected))


def rows_before(store: Store, part: PartMonth) -> int:
    """Return the number of data rows of a part's file before the part.

    Raises:
        InputError: the file disappeared from the store in the meantime.
    """
    parts = store.stored_parts(part.content)
    if part.number >= len(parts):
        raise store_changed()
    return parts[part.number].rows_before


def load_part(store: Store, part: PartMonth, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the READINGS of a part in its month and bucket, or some of their columns; raises as `load_table`."""
    return load_table(store.folder / part.folder / part.name, store.schema, columns=columns, group=part.group)


def load_part_days(store: Store, part: PartMonth) -> pa.Table:
    """Return the PART_DAYS of a part in its month and bucket; raises as `load_table`."""
    path = store.folder / "part_days" / part.folder / part.name
    return load_table(path, table_schemas.PART_DAYS, group=part.group)


def load_table(
    path: Path, schema: pa.Schema, *, columns: Sequence[str] | None = None, group: str | None = None
) -> pa.Table:
    """Return a table of the store, or the one of this name in a file of row groups.

    Raises:
        FolderRemoved: it is missing or damaged; a damaged table is removed, so that it is computed again.
        InputError: the system denies access.
    """
    table = read_derived(path, partial(atomic_files.read_table, schema=schema, columns=columns, group=group))
    if table is None:
        path.unlink(missing_ok=True)
        problem = "is missing or damaged; run again to rebuild it"
        raise atomic_files.FolderRemoved(f"a confidential table {problem}", private=f"{path}: {problem}")
    return table


def household_ids(table: pa.Table) -> list[str]:
    """Return the names in the dictionaries of the households of a table, one for each chunk."""
    return [name for chunk in table["household_id"].chunks for name in chunk.dictionary.to_pylist()]


def household_codes(table: pa.Table, code_by_id: Mapping[str, int]) -> Ints:
    """Return the code of the household of each row; -1 for a household without a code."""
    codes = []
    for chunk in table["household_id"].chunks:
        of_names = np.array([code_by_id.get(name, -1) for name in chunk.dictionary.to_pylist()], np.int64)
        codes.append(of_names[chunk.indices.to_numpy()])
    return codes[0] if len(codes) == 1 else np.concatenate([_NONE, *codes])


def day_numbers(table: pa.Table) -> Ints:
    """Return the day of each row, in days since 1970."""
    return _ints(table["day"].cast(pa.int32()))


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers
