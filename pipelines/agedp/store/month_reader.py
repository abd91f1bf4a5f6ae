"""The readings of a month from its parts; household-days with rows in several parts are deduplicated together.

A household-day with rows in one part only has the readings of that part. A household-day with rows in several parts is
shared (a file split within a day, a delivery repeated or corrected): only rows of shared household-days are read again
and deduplicated together. The result equals the deduplication of all rows of the month at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileKind, read_content
from agedp.store.household_day_keys import household_day_key, is_first_of_key, is_in_sorted
from agedp.store.store import PartMonth, Store
from agedp_data import table_schemas
from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows, join_rows
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import InputError

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MonthIndex:
    """The household-days of a month by part, from which shared household-days are found without reading any reading.

    Attributes:
        ids: the household ids of the month, sorted; a household's code is its index here.
        code_by_id: the inverse of `ids`.
        tables: the PART_DAYS of each part.
        keys: the `household_day_key` of each row of these tables.
        shared: sorted keys of the household-days with rows in more than one part.
    """

    ids: tuple[str, ...]
    code_by_id: Mapping[str, int]
    tables: tuple[pa.Table, ...]
    keys: tuple[Ints, ...]
    shared: Ints


def index_month(store: Store, month: str, parts: Sequence[PartMonth]) -> MonthIndex:
    """Return the PART_DAYS of the parts of a month, and the household-days with rows in more than one part.

    Raises:
        FolderRemoved: a table is missing or damaged.
    """
    loaded = tuple(load_table(store.part_days_folder(month) / part.name, table_schemas.PART_DAYS) for part in parts)
    ids = tuple(sorted({name for table in loaded for name in _household_ids(table)}))
    code_by_id = {name: i for i, name in enumerate(ids)}
    keys = tuple(household_day_key(_codes(table, code_by_id), _days(table)) for table in loaded)
    all_keys = np.sort(np.concatenate([_NONE, *keys]), kind="stable")
    repeated = all_keys[~is_first_of_key(all_keys)]
    return MonthIndex(ids, code_by_id, loaded, keys, repeated[is_first_of_key(repeated)])


def load_shared_rows(store: Store, month: str, month_parts: Sequence[PartMonth], index: MonthIndex) -> StoredRows:
    """Return the rows of all shared household-days, which must be deduplicated together.

    Only the affected parts are read. `file` of a row is the index of its file in the order of all files.
    """
    affected = [
        part for part, key in zip(month_parts, index.keys, strict=True) if is_in_sorted(key, index.shared).any()
    ]
    part_rows = []
    for part in affected:
        rows = load_part_rows(store, month, part, index)
        part_rows.append(
            _select_rows(rows, is_in_sorted(household_day_key(rows.household, rows.time // SLOTS), index.shared))
        )
    return join_rows(index.ids, part_rows, width=store.layout.width)


def load_month_readings(store: Store, month: str, contents: Sequence[str]) -> Readings:
    """Return the deduplicated readings of a month, sorted by household and time.

    For one month in memory as a whole; `iterate_month_readings` needs memory for one part only.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order; `rejected_file` of the result is an index of them.

    Raises:
        FolderRemoved: a table of the store is missing or damaged.
        InputError: the system denies access, or the manifest of a file disappeared.
    """
    parts = list(_deduplicated(store, month, contents, numbered=True))
    return _join_sorted(parts[0].ids, parts)


def iterate_month_readings(store: Store, month: str, contents: Sequence[str]) -> Iterator[Readings]:
    """Yield the deduplicated readings of a month part by part, first those of the shared household-days.

    Each household-day is in one of the results only, and household codes refer to the same ids in all of them. The
    numbers of rejected rows have no meaning here.
    """
    return _deduplicated(store, month, contents, numbered=False)


def _deduplicated(store: Store, month: str, contents: Sequence[str], *, numbered: bool) -> Iterator[Readings]:
    parts = store.month_parts(month, contents)
    index = index_month(store, month, parts)
    yield deduplicate_stored_rows(store, load_shared_rows(store, month, parts, index))
    for part in parts:
        rows = load_part_rows(store, month, part, index, numbered)
        if len(index.shared):
            rows = _select_rows(
                rows, ~is_in_sorted(household_day_key(rows.household, rows.time // SLOTS), index.shared)
            )
        yield deduplicate_stored_rows(store, rows)


def deduplicate_stored_rows(store: Store, rows: StoredRows) -> Readings:
    """Deduplicate rows under the store's rules: its layout's channels, and its order of files for corrections.

    `rows` must contain all rows of their household-days.
    """
    return deduplicate_rows(
        rows,
        complete_channels=store.layout.complete_channels(store.rules),
        later_wins=store.order.criterion is not None,
    )


def _join_sorted(ids: tuple[str, ...], parts: Sequence[Readings]) -> Readings:
    household, time, energy, file, row, reason = (
        np.concatenate([_NONE, *(getattr(readings, name) for readings in parts)])
        for name in ("household", "time", "energy_wh", "rejected_file", "rejected_row", "rejected_reason")
    )
    key = (household << 32) | time
    if not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        household, time, energy = household[order], time[order], energy[order]
    order = np.lexsort((row, file))
    return Readings(ids, household, time, energy, file[order], row[order], reason[order])


def load_part_rows(store: Store, month: str, part: PartMonth, index: MonthIndex, numbered: bool = True) -> StoredRows:
    """Return the rows of one part in one month, in the order of the file; household codes are indices of `index.ids`.

    Row numbers count from the beginning of the file; without `numbered`, which is quicker, within the part.
    """
    layout = store.layout
    schema = store.schema
    columns = None if numbered else [name for name in schema.names if name != "row"]
    table = load_table(store.month_folder(month) / part.name, schema, columns=columns)
    day = _days(table)
    slot = _ints(table["slot"]) if layout.width == 1 else np.zeros(len(day), np.int64)
    channel = _ints(table["channel"]) if layout.channels > 1 else np.zeros(len(day), np.int64)
    names = ["energy_wh"] if layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    energy = np.stack([_ints(table[name]) for name in names], axis=1)
    row = np.arange(len(day))
    if numbered:
        manifest = store.manifest(part.content)
        if manifest is None:
            raise InputError("the confidential store changed while it was read; run again")
        row = _ints(table["row"]) + manifest.first_row(part.number)
    file = np.full(len(day), part.file_index)
    return StoredRows(index.ids, _codes(table, index.code_by_id), channel, day * SLOTS + slot, file, row, energy)


def _select_rows(rows: StoredRows, is_selected: Flags) -> StoredRows:
    return rows if is_selected.all() else rows.take(np.flatnonzero(is_selected))


def load_table(path: Path, schema: pa.Schema, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table of the store.

    Raises:
        FolderRemoved: it is missing or damaged; a damaged table is removed, so that it is computed again.
        InputError: the system denies access.
    """

    def parse(table_path: Path) -> pa.Table:
        return atomic_files.read_table(table_path, schema, columns=columns)

    table = read_content(path, parse, FileKind.DERIVED, advice="").value
    if table is None:
        path.unlink(missing_ok=True)
        problem = "is missing or damaged; run again to rebuild it"
        raise atomic_files.FolderRemoved(f"a confidential table {problem}", private=f"{path}: {problem}")
    return table


def _household_ids(table: pa.Table) -> list[str]:
    return [name for chunk in table["household_id"].chunks for name in chunk.dictionary.to_pylist()]


def _codes(table: pa.Table, code_by_id: Mapping[str, int]) -> Ints:
    codes = [
        np.array([code_by_id[name] for name in chunk.dictionary.to_pylist()], np.int64)[chunk.indices.to_numpy()]
        for chunk in table["household_id"].chunks
    ]
    return codes[0] if len(codes) == 1 else np.concatenate([_NONE, *codes])


def _days(table: pa.Table) -> Ints:
    return _ints(table["day"].cast(pa.int32()))


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers
