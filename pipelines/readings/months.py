"""What a month says: its parts together, household-days that several parts speak of settled together.

A household-day of which one part alone has rows says what that part says. Only the others are contested (a file cut
within a day, a delivery repeated or corrected): their rows, and no more, are read again and settled together. What
comes out is the same as settling all rows of the month at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.errors import InputError
from agedp_data.readers.layout import SLOTS, Flags, Ints
from agedp_data.readers.settle import Readings, StoredRows, joined, settle
from pipelines import folders
from pipelines.internal_files import FileKind, read_content
from pipelines.readings.household_days import among, firsts, packed
from pipelines.readings.store import PartMonth, Store

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MonthIndex:
    """Month tables of the parts' own days, by part: sorted ids and their places, keys; what is contested."""

    ids: tuple[str, ...]
    place: Mapping[str, int]
    tables: tuple[pa.Table, ...]
    keys: tuple[Ints, ...]
    contested: Ints


def alone(store: Store, month: str, pieces: Sequence[PartMonth]) -> MonthIndex:
    """Return what the parts of a month say alone, and which household-days more than one of them speaks of."""
    loaded = tuple(load(store.part_days(month) / piece.name, tables.PART_DAYS) for piece in pieces)
    ids = tuple(sorted({name for table in loaded for name in _names(table)}))
    place = {name: i for i, name in enumerate(ids)}
    keys = tuple(packed(_codes(table, place), _days(table)) for table in loaded)
    every = np.sort(np.concatenate([_NONE, *keys]), kind="stable")
    repeated = every[~firsts(every)]
    return MonthIndex(ids, place, loaded, keys, repeated[firsts(repeated)])


def contested_rows(store: Store, month: str, pieces: Sequence[PartMonth], found: MonthIndex) -> StoredRows:
    """Return the rows of all contested household-days; `file` is the place of the file among all."""
    concerned = [piece for piece, key in zip(pieces, found.keys, strict=True) if among(key, found.contested).any()]
    parts = []
    for piece in concerned:
        rows = rows_of(store, month, piece, found)
        parts.append(_only(rows, among(packed(rows.household, rows.time // SLOTS), found.contested)))
    return joined(found.ids, parts, width=store.layout.width)


def month_readings(store: Store, month: str, contents: Sequence[str]) -> Readings:
    """Return what a month says, from the parts of these files in their order; `aside_file` counts in `contents`."""
    settled = list(_settled(store, month, contents, numbered=True))
    return _in_order(settled[0].ids, settled)


def month_in_pieces(store: Store, month: str, contents: Sequence[str]) -> Iterator[Readings]:
    """Yield what a month says one part at a time, all under the same ids; each reading once, nothing set aside told."""
    return _settled(store, month, contents, numbered=False)


def _settled(store: Store, month: str, contents: Sequence[str], *, numbered: bool) -> Iterator[Readings]:
    pieces = store.pieces(month, contents)
    found = alone(store, month, pieces)
    yield settle_rows(store, contested_rows(store, month, pieces, found))
    for piece in pieces:
        rows = rows_of(store, month, piece, found, numbered)
        if len(found.contested):
            rows = _only(rows, ~among(packed(rows.household, rows.time // SLOTS), found.contested))
        yield settle_rows(store, rows)


def settle_rows(store: Store, rows: StoredRows) -> Readings:
    """Settle rows under the store's rules."""
    return settle(rows, complete=store.layout.complete(store.rules), later_wins=store.order.by is not None)


def _in_order(ids: tuple[str, ...], settled: Sequence[Readings]) -> Readings:
    household, time, energy, file, row, reason = (
        np.concatenate([_NONE, *(getattr(one, name) for one in settled)])
        for name in ("household", "time", "energy_wh", "aside_file", "aside_row", "aside_reason")
    )
    key = (household << 32) | time
    if not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        household, time, energy = household[order], time[order], energy[order]
    order = np.lexsort((row, file))
    return Readings(ids, household, time, energy, file[order], row[order], reason[order])


def rows_of(store: Store, month: str, piece: PartMonth, found: MonthIndex, numbered: bool = True) -> StoredRows:
    """Return the rows of one part in one month, in the order of the file; household codes are places in `found.ids`.

    They are numbered from the beginning of the file, or (not `numbered`, which is quicker) by their order alone.
    """
    layout = store.layout
    schema = store.schema
    columns = None if numbered else [name for name in schema.names if name != "row"]
    table = load(store.month(month) / piece.name, schema, columns=columns)
    day = _days(table)
    slot = _ints(table["slot"]) if layout.width == 1 else np.zeros(len(day), np.int64)
    channel = _ints(table["channel"]) if layout.channels > 1 else np.zeros(len(day), np.int64)
    names = ["energy_wh"] if layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    energy = np.stack([_ints(table[name]) for name in names], axis=1)
    row = np.arange(len(day))
    if numbered:
        manifest = store.manifest(piece.content)
        if manifest is None:
            raise InputError("the confidential store changed while it was read; run again")
        row = _ints(table["row"]) + manifest.first_row(piece.number)
    file = np.full(len(day), piece.place)
    return StoredRows(found.ids, _codes(table, found.place), channel, day * SLOTS + slot, file, row, energy)


def _only(rows: StoredRows, which: Flags) -> StoredRows:
    return rows if which.all() else rows.taken(np.flatnonzero(which))


def load(path: Path, schema: pa.Schema, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table of the store.

    Raises:
        Removed: it is missing or damaged; a damaged one is removed, so that it is missed and made anew.
        InputError: the system does not let it be read.
    """

    def parse(of: Path) -> pa.Table:
        return folders.read_table(of, schema, columns=columns)

    table = read_content(path, parse, FileKind.DERIVED, advice="").value
    if table is None:
        path.unlink(missing_ok=True)
        what = "is missing or damaged; run again to make it anew"
        raise folders.FolderRemoved(f"a confidential table {what}", private=f"{path}: {what}")
    return table


def _names(table: pa.Table) -> list[str]:
    return [name for chunk in table["household_id"].chunks for name in chunk.dictionary.to_pylist()]


def _codes(table: pa.Table, place: Mapping[str, int]) -> Ints:
    codes = [
        np.array([place[name] for name in chunk.dictionary.to_pylist()], np.int64)[chunk.indices.to_numpy()]
        for chunk in table["household_id"].chunks
    ]
    return codes[0] if len(codes) == 1 else np.concatenate([_NONE, *codes])


def _days(table: pa.Table) -> Ints:
    return _ints(table["day"].cast(pa.int32()))


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers
