"""READINGS of a month -> DAYS: the daily totals of each household, and the rows that deduplication rejects.

    <confidential>/store/days/month=2013-03/<hash of the parts>.parquet           DAYS, with the number of readings
    <confidential>/store/days/month=2013-03/<hash of the parts>.aside.parquet     rows rejected by deduplication

A missing half-hour counts as 0. A repeated half-hour counts once, as the sum of both passes.

Decisions:

* A group of parts (`month_reader`) is deduplicated once; a new clamp, group or roster uses the same DAYS.
* The stored tables number files among those with a part in the group: their numbers among all files change with every
  delivery.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.stage_values import Delivery
from agedp.store import month_reader
from agedp.store.bucketed_roster import DayBlock, Energies
from agedp.store.month_reader import DayGroup, household_day_key, index_month, stored_groups
from agedp.store.store import Manifest, PartMonth, Store, part_spans, sum_counts
from agedp_data import table_schemas
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import SLOTS, Flags, Ints, RejectionReason
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import RosterRows

RejectedRows = tuple[Ints, Ints, Ints]
"""Rows rejected by deduplication: file (index in the order of the files), data row of the file, reason."""


def daily_totals_path(store: Store, month: str, group: DayGroup, bucket: int = 0) -> Path:
    """Return the path of the DAYS of a group of parts in a month and bucket."""
    return store.days_folder(month, bucket) / f"{group.name}.parquet"


def deduplicate_month(store: Store, month: str, contents: Sequence[str], bucket: int = 0) -> RejectedRows:
    """Deduplicate a month and bucket as far as it is not stored yet, and return the rejected rows.

    Returns:
        The rows that deduplication rejected, sorted by file and row; files by their index in `contents`.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    groups = stored_groups(store, month, contents, bucket)
    return _join_rejected([deduplicate_group(store, month, group, bucket) for group in groups])


def deduplicate_group(store: Store, month: str, group: DayGroup, bucket: int = 0) -> RejectedRows:
    """Deduplicate a group of parts unless it is stored already, and return the rejected rows as `deduplicate_month`.

    Writes DAYS and the rejected rows beside it, the rejected rows first: a group counts as stored once both tables are
    complete.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    path = daily_totals_path(store, month, group, bucket)
    rejected_path = path.with_suffix(".aside.parquet")
    if atomic_files.count_rows(path) is not None and atomic_files.count_rows(rejected_path) is not None:
        with suppress(atomic_files.FolderRemoved):
            table = month_reader.load_table(rejected_path, table_schemas.SETTLED)
            file, row, reason = (table[name].to_numpy().astype(np.int64) for name in ("file", "row", "reason"))
            return _file_indices(group)[file], row, reason
    days, (file, row, reason) = _deduplicated(store, group)
    atomic_files.make_private(path.parent)
    rejected = table_schemas.table_from_columns(
        table_schemas.SETTLED, file=np.searchsorted(_file_indices(group), file), row=row, reason=reason
    )
    atomic_files.write_table(rejected_path, rejected, sync=False)
    atomic_files.write_table(path, days, sync=False)
    return file, row, reason


def _file_indices(group: DayGroup) -> Ints:
    return np.array(sorted({part.file_index for part in group.parts}), np.int64)


def _deduplicated(store: Store, group: DayGroup) -> tuple[pa.Table, RejectedRows]:
    """Return the DAYS of a group of parts and the rejected rows, by file and row."""
    index = index_month(store, group.parts, days=group.days)
    shared = month_reader.shared_readings(store, group.parts, index)
    shared_keys = month_reader.distinct_keys(household_day_key(shared.household, shared.time // SLOTS))
    energy, readings = month_reader.daily_totals(shared, shared_keys)
    key = [shared_keys]
    values = [(energy, readings)]
    rejected = [(shared.rejected_file, shared.rejected_row, shared.rejected_reason)]
    for part, table, keys in zip(group.parts, index.tables, index.keys, strict=True):
        final = ~month_reader.is_in_sorted(keys, index.shared)
        read = table["readings"].to_numpy().astype(np.int64)
        with_reading = final & (read > 0)
        key.append(keys[with_reading])
        values.append((table["energy_wh"].to_numpy()[with_reading], read[with_reading]))
        rejected.append(_rejected_of_part(store, part, table, final))
    energy, readings = (np.concatenate([part_values[i] for part_values in values]) for i in range(2))
    days = household_days_table(table_schemas.DAYS, index.ids, np.concatenate(key), energy_wh=energy, readings=readings)
    return days, _join_rejected(rejected)


def _rejected_of_part(store: Store, part: PartMonth, table: pa.Table, final: Flags) -> RejectedRows:
    """Return the rejected rows of one part, of the household-days without rows in any further part."""
    rows, reasons = (table[name].combine_chunks() for name in ("aside_row", "aside_reason"))
    is_final = np.repeat(final, np.diff(rows.offsets.to_numpy()))
    row, reason = (lists.flatten().to_numpy().astype(np.int64)[is_final] for lists in (rows, reasons))
    first = month_reader.rows_before(store, part) if len(row) else 0
    return np.full(len(row), part.file_index), row + first, reason


def _join_rejected(rejected: Sequence[RejectedRows]) -> RejectedRows:
    none = np.zeros(0, np.int64)
    file, row, reason = (np.concatenate([none, *(part_rows[i] for part_rows in rejected)]) for i in range(3))
    order = np.lexsort((row, file))
    return file[order], row[order], reason[order]


def read_daily_totals(
    store: Store, month: str, contents: Sequence[str], bucket: int = 0, *, days: Ints | None = None
) -> pa.Table:
    """Return the DAYS of a deduplicated month and bucket; a damaged table is computed again.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order.
        bucket: the household bucket.
        days: days since 1970 that must be in the result; groups without any of them are not read. None: all.

    Returns:
        The household-days, group by group, each by household and day.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    groups = [group for group in stored_groups(store, month, contents, bucket) if group.overlaps(days)]
    paths = [daily_totals_path(store, month, group, bucket) for group in groups]
    steps = [partial(deduplicate_group, store, month, group, bucket) for group in groups]
    return _read_or_compute(table_schemas.DAYS, paths, steps)


def _read_or_compute(schema: pa.Schema, paths: Sequence[Path], steps: Sequence[Callable[[], object]]) -> pa.Table:
    """Return tables of the store as one; each that is missing or damaged is computed by its step."""
    tables = []
    for path, compute in zip(paths, steps, strict=True):
        try:
            table = month_reader.load_table(path, schema)
        except atomic_files.FolderRemoved:
            compute()
            table = month_reader.load_table(path, schema)
        tables.append(table)
    return pa.concat_tables([schema.empty_table(), *tables]) if len(tables) != 1 else tables[0]


def household_days_table(schema: pa.Schema, ids: Sequence[str], key: Ints, **columns: Ints) -> pa.Table:
    """Return a table with a row per household-day, in the order of the keys."""
    order = np.argsort(key, kind="stable")
    household, day = month_reader.split_household_day_key(key[order])
    names = pa.DictionaryArray.from_arrays(pa.array(household.astype(np.int32)), pa.array(ids, pa.string()))
    ordered = {name: column[order] for name, column in columns.items()}
    return table_schemas.table_from_columns(schema, household_id=names, day=day, **ordered)


def days_with_readings(store: Store, delivery: Delivery) -> tuple[date, date]:
    """Return the first and last day on which any household has a reading."""
    tables = (
        read_daily_totals(store, month, delivery.contents, bucket)
        for month, bucket in product(delivery.months, range(store.buckets))
    )
    days = pa.chunked_array(
        [table.filter(pc.greater(table["readings"], 0))["day"].combine_chunks() for table in tables]
    )
    ends = pc.min_max(days).as_py()
    return ends["min"], ends["max"]


# --------------------------------------------------------------------------------------------------
# READINGS of a month + states -> STATE_DAYS: daily totals in which every half-hour counts as the value of its state.
#
#     <confidential>/store/days/month=2013-03/<hash of parts and states>.parquet    STATE_DAYS
#
# A missing half-hour counts as 0, as in DAYS. A repeated half-hour counts once, as the state of the sum of both
# passes.
#
# They are computed only if a series counts states of half-hours, and only for the days that it needs, one group of
# parts at a time (`month_reader`). Their name is a hash of parts and states: different state edges give a different
# table.
# --------------------------------------------------------------------------------------------------


def state_days_path(store: Store, month: str, group: DayGroup, states: RepresentativeValues, bucket: int = 0) -> Path:
    """Return the path of the STATE_DAYS of a group of parts in a month and bucket for these states."""
    return store.days_folder(month, bucket) / f"{group.key(states.to_json())}.parquet"


def compute_state_days(
    store: Store, delivery: Delivery, days: Iterable[date], states: RepresentativeValues | None, *, engine: Engine
) -> None:
    """Compute the STATE_DAYS of these days in parallel, if a series counts states of half-hours.

    Call it before `read_state_days`, which would compute missing tables one after the other. States of days need no
    table: they follow from DAYS.
    """
    if states is not None and states.step == "half-hour":
        numbers = np.array(sorted({day_number(day) for day in days}), np.int64)
        months = sorted({f"{day:%Y-%m}" for day in days} & set(delivery.months))
        function = partial(_write_month, store=store, contents=delivery.contents, states=states, days=numbers)
        map_items("states", list(product(months, range(store.buckets))), function=function, engine=engine)


def _write_month(
    month_bucket: tuple[str, int], *, store: Store, contents: Sequence[str], states: RepresentativeValues, days: Ints
) -> None:
    month, bucket = month_bucket
    for group in stored_groups(store, month, contents, bucket):
        if group.overlaps(days):
            write_state_days(store, month, group, states, bucket)


def write_state_days(store: Store, month: str, group: DayGroup, states: RepresentativeValues, bucket: int = 0) -> None:
    """Compute the STATE_DAYS of a group of parts unless they are stored already.

    Tasks for different groups write different files and need no lock.
    """
    path = state_days_path(store, month, group, states, bucket)
    if atomic_files.count_rows(path) is None:
        atomic_files.make_private(path.parent)
        atomic_files.write_table(path, _state_days_table(store, group, states), sync=False)


def read_state_days(
    store: Store,
    month: str,
    contents: Sequence[str],
    states: RepresentativeValues,
    *,
    bucket: int = 0,
    days: Ints | None = None,
) -> pa.Table:
    """Return the STATE_DAYS of a month and bucket; they are computed if they are missing or damaged.

    `days` as in `read_daily_totals`.

    Raises:
        FolderRemoved: a part of the store is damaged as well, so that its file must be parsed again.
    """
    groups = [group for group in stored_groups(store, month, contents, bucket) if group.overlaps(days)]
    paths = [state_days_path(store, month, group, states, bucket) for group in groups]
    steps = [partial(write_state_days, store, month, group, states, bucket) for group in groups]
    return _read_or_compute(table_schemas.STATE_DAYS, paths, steps)


def _state_days_table(store: Store, group: DayGroup, states: RepresentativeValues) -> pa.Table:
    ids: tuple[str, ...] = ()
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    # each household-day is in one part only
    for part in month_reader.iterate_parts(store, group.parts, days=group.days):
        ids = part.ids
        part_keys = month_reader.distinct_keys(household_day_key(part.household, part.time // SLOTS))
        represented = states.represent(part.without_exports().energy_wh)
        counted, _ = month_reader.daily_totals(replace(part, energy_wh=represented), part_keys)
        keys.append(part_keys)
        values.append(counted)
    return household_days_table(table_schemas.STATE_DAYS, ids, np.concatenate(keys), counted_wh=np.concatenate(values))


# --------------------------------------------------------------------------------------------------
# DAYS and STATE_DAYS of a month + roster -> the daily totals of the roster's households as dense arrays.
# --------------------------------------------------------------------------------------------------

_BLOCK: Final = 2**13
"""Household-days that are counted at once: with ten cells a megabyte, which stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class MonthMatrix(Energies):
    """The daily totals of a roster's households in one month, as dense arrays of shape (households of the roster, 31).

    Energies are 0 without a reading.
    """

    def blocks(self, days: Sequence[date]) -> Iterator[DayBlock]:
        """Yield the household-days with readings of these days; household codes are rows of the matrix."""
        columns = np.array([day.day - 1 for day in days])
        at_once = max(1, _BLOCK // max(1, len(self.readings)))
        for low in range(0, len(days), at_once):
            day, household = np.nonzero(self.readings.T[columns[low : low + at_once]])
            for start in range(0, len(household), _BLOCK):
                of, index = household[start : start + _BLOCK], low + day[start : start + _BLOCK]
                at = of, columns[index]
                states_wh = None if self.states_wh is None else self.states_wh[at][:, None]
                yield DayBlock(self.energy_wh[at][:, None], states_wh, self.readings[at], of, index)


def load_month_matrix(
    store: Store,
    delivery: Delivery,
    roster: RosterRows,
    month: str,
    *,
    bucket: int = 0,
    states: RepresentativeValues | None = None,
    days: Collection[date] | None = None,
) -> MonthMatrix:
    """Return the daily totals of the roster's households in a month and bucket, by readings and, if given, by states.

    Args:
        store: the confidential store.
        delivery: the ingested files.
        roster: the households of the bucket.
        month: the month, as in its folder; a month without data gives zeros.
        bucket: the household bucket.
        states: states of half-hours or of days, for a series that counts them.
        days: the days that are needed; others may be 0. None: all.

    Returns:
        Rows follow `roster.ids`; households that are not on the roster are left out.
    """
    energy = np.zeros((len(roster.ids), 31), np.int64, order="F")  # a night needs the memory of its days only
    readings, counted = np.zeros_like(energy), None if states is None else np.zeros_like(energy)
    if month not in delivery.months:
        return MonthMatrix(energy, counted, readings)
    numbers = None if days is None else np.array(sorted({day_number(day) for day in days}), np.int64)
    table = read_daily_totals(store, month, delivery.contents, bucket, days=numbers)
    code, day, on_roster = _household_days_on_roster(table, roster, month)
    energy[code, day] = table["energy_wh"].to_numpy()[on_roster]
    readings[code, day] = table["readings"].to_numpy()[on_roster]
    if states is not None and states.step == "day":
        counted = np.where(readings > 0, states.represent(energy), 0)
    elif states is not None and counted is not None:
        table = read_state_days(store, month, delivery.contents, states, bucket=bucket, days=numbers)
        code, day, on_roster = _household_days_on_roster(table, roster, month)
        counted[code, day] = table["counted_wh"].to_numpy()[on_roster]
    return MonthMatrix(energy, counted, readings)


def _household_days_on_roster(table: pa.Table, roster: RosterRows, month: str) -> tuple[Ints, Ints, Flags]:
    """Return household code and day of month of the rows on the roster, and which rows these are."""
    code = month_reader.household_codes(table, {household: code for code, household in enumerate(roster.ids)})
    on_roster = code >= 0
    first = day_number(date.fromisoformat(f"{month}-01"))
    return code[on_roster], month_reader.day_numbers(table)[on_roster] - first, on_roster


# --------------------------------------------------------------------------------------------------
# Months of all files -> deduplicated groups of parts, and the numbers of rejected rows; done once for each group.
#
#   deduplicated    by month: by bucket and group, the rejected rows by file and reason; a table of the book
#
# Groups in the record are not opened: a month in which nothing changed costs the reading of its row. A damaged or
# missing row is written again from the stored tables, and missing tables are computed when they are read.
#
# Only numbers reach the client: tasks write DAYS and the rejected rows.
# --------------------------------------------------------------------------------------------------

RejectedCounts = tuple[tuple[str, str, int], ...]
"""Numbers of rows that deduplication rejected: content id of the file, reason, rows."""
QUARANTINE_FILE: Final = "quarantine_settled.parquet"
_SOURCE: Final = b"agedp.groups"


@dataclass(frozen=True, slots=True)
class MonthGroup:
    """A group of parts in a month and bucket: the unit of deduplication."""

    month: str
    bucket: int
    group: DayGroup


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """The groups of all months, in order, with the numbers of rejected rows of each."""

    groups: tuple[tuple[MonthGroup, RejectedCounts], ...]

    @property
    def rejected(self) -> dict[str, dict[str, int]]:
        """Return the number of rejected rows by file, as its content id, and reason."""
        by_file: dict[str, list[dict[str, int]]] = {}
        for content, reason, rows in (count for _, counts in self.groups for count in counts):
            by_file.setdefault(content, []).append({reason: rows})
        return {content: sum_counts(counts) for content, counts in by_file.items()}


def deduplicate_months(
    store: Store, manifests: Mapping[str, Manifest], months: Sequence[str], *, engine: Engine
) -> Deduplicated:
    """Deduplicate months as far as the record does not contain their groups.

    Args:
        store: the confidential store.
        manifests: the manifests of all files that count, in order.
        months: the months, ascending.
        engine: how groups are deduplicated.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    recorded = {month: _parse_record(row) for month, row in store.books.rows("deduplicated").items()}
    recorded |= {month: {} for month in months if month not in recorded}
    groups = _month_groups(store, manifests, months)
    fresh = [item for item in groups if item.group.name not in recorded[item.month].get(item.bucket, {})]
    function = partial(_deduplicate, store=store, contents=tuple(manifests))
    for item, counts in zip(fresh, map_items("days", fresh, function=function, engine=engine), strict=True):
        recorded[item.month].setdefault(item.bucket, {})[item.group.name] = counts
    if fresh:
        months_of = {
            month: [item for item in groups if item.month == month] for month in {item.month for item in fresh}
        }
        rows = {month: _format_record(recorded[month], of_month) for month, of_month in months_of.items()}
        store.books.put_derived("deduplicated", rows)
    return Deduplicated(tuple((item, recorded[item.month][item.bucket][item.group.name]) for item in groups))


def _month_groups(store: Store, manifests: Mapping[str, Manifest], months: Sequence[str]) -> list[MonthGroup]:
    spans = {content: part_spans(manifest) for content, manifest in manifests.items()}
    contents_by_month: dict[str, list[tuple[int, str]]] = {month: [] for month in months}
    for i, (content, manifest) in enumerate(manifests.items()):
        for month in manifest.months & contents_by_month.keys():
            contents_by_month[month].append((i, content))
    groups = []
    for (month, contents), bucket in product(contents_by_month.items(), range(store.buckets)):
        parts = month_reader.planned_parts(manifests, contents, month, bucket)
        groups += [MonthGroup(month, bucket, group) for group in month_reader.group_parts(store, month, parts, spans)]
    return groups


def _deduplicate(item: MonthGroup, *, store: Store, contents: Sequence[str]) -> RejectedCounts:
    """Deduplicate a group; the unit of work, whose result has only numbers."""
    file, _, reason = deduplicate_group(store, item.month, item.group, item.bucket)
    pairs, numbers = np.unique(np.stack([file, reason]), axis=1, return_counts=True)
    return tuple(
        (contents[index], RejectionReason(code).words, number)
        for (index, code), number in zip(pairs.T.tolist(), numbers.tolist(), strict=True)
    )


_Record = dict[int, dict[str, RejectedCounts]]


def _parse_record(row: bytes) -> _Record:
    return {
        int(bucket): {
            name: tuple((content, reason, rows) for content, reason, rows in of) for name, of in groups.items()
        }
        for bucket, groups in json.loads(row).items()
    }


def _format_record(record: _Record, groups: Iterable[MonthGroup]) -> bytes:
    """Return the record of a month, without groups that do not count any more."""
    buckets: dict[str, dict[str, RejectedCounts]] = {}
    for item in groups:
        buckets.setdefault(str(item.bucket), {})[item.group.name] = record[item.bucket][item.group.name]
    return json.dumps(buckets).encode()


def write_quarantine_of_months(store: Store, deduplicated: Deduplicated, contents: Sequence[str]) -> None:
    """Write the rows that deduplication rejected into one file, group by group, unless it has them already.

    Args:
        store: the confidential store.
        deduplicated: the groups of all months.
        contents: the content ids of all files, in order.
    """
    items = [item for item, counts in deduplicated.groups if counts]
    source = json.dumps([(item.month, item.bucket, item.group.name) for item in items]).encode()
    metadata, path = {_SOURCE: hashlib.sha256(source).hexdigest().encode()}, store.folder.parent / QUARANTINE_FILE
    if atomic_files.read_metadata(path).get(_SOURCE) != metadata[_SOURCE]:
        schema = table_schemas.QUARANTINE.with_metadata(metadata)
        atomic_files.write_tables(path, schema, _quarantine_tables(store, items, contents))


def words_of(reasons: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the words of numbers of reasons; the table is made when it is used: `pa.array` imports pandas."""
    return pa.array([reason.words for reason in RejectionReason], pa.string()).take(reasons)


def _quarantine_tables(store: Store, items: Iterable[MonthGroup], contents: Sequence[str]) -> Iterator[pa.Table]:
    names = pa.array(contents, pa.string())
    for item in items:
        file, row, reason = deduplicate_group(store, item.month, item.group, item.bucket)
        yield table_schemas.table_from_columns(
            table_schemas.QUARANTINE,
            content=names.take(pa.array(file)),
            row=row,
            reason=words_of(pa.array(reason)),
            text=pa.repeat("", len(row)),
        )
