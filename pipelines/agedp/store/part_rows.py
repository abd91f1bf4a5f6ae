"""Parsed chunks of a part -> its kept rows as compact arrays, sixteen bytes each, or more with labels.

Example: rows of two chunks whose households are A, B and B, C have the codes 0, 1 and 1, 2 of the ids A, B, C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.layout import Layout, label_of
from agedp_data.datasets.validation import NO_READING, Ints, RejectionReason
from agedp_data.errors import InputError

_MAX_ROWS = 2**31 - 1
_NO_LABEL = label_of("")  # also that of a damaged line whose label cannot be read
MIN_RUN = 16
"""Rows in runs of this length on average are copied run by run."""
_MIN_VIEW = 4096
"""Rows in runs of this length on average are not copied."""
Int32s = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The kept rows (n) of a part in the order of the file, as compact arrays.

    Attributes:
        household: code of the household, shape (n,).
        time: day since 1970 x 48 + slot, shape (n,).
        channel: channel of the layout, shape (n,).
        energy_wh: energy, shape (n, readings per row) [parts of a Wh: `Layout.units_per_wh`].
        row: number of the row within the part, shape (n,).
        label: number of the meter within its household, shape (n,); None if the layout has no labels.
    """

    household: Int32s
    time: Int32s
    channel: np.ndarray[Any, np.dtype[np.uint8]]
    energy_wh: Int32s
    row: Int32s
    label: Ints | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """Return the arrays by name, without that of labels if there are none."""
        named = ((name, getattr(self, name)) for name in _COLUMNS)
        return {name: values for name, values in named if values is not None}

    @property
    def kept(self) -> int:
        """Return the number of rows with a reading."""
        return len(self.row) if self.label is None else int((self.energy_wh[:, 0] != NO_READING).sum())

    def select(self, indices: Ints | slice) -> ParsedRows:
        """Return the rows with these indices."""
        return ParsedRows(**{name: values[indices] for name, values in self.columns.items()})

    def without(self, indices: Ints) -> ParsedRows:
        """Return the other rows; `indices` ascend. If they are few, the runs between them are copied as a whole."""
        return join_parsed_rows(self.runs_between(indices, MIN_RUN))

    def runs_between(self, indices: Ints, min_run: int) -> list[ParsedRows]:
        """Return the rows between those with these indices as views; one copy if runs are shorter on average."""
        length = len(self.row)
        if len(indices) * min_run > length:
            return [self.select(np.delete(np.arange(length), indices))]
        starts, stops = np.append(0, indices + 1).tolist(), np.append(indices, length).tolist()
        runs = [self.select(slice(start, stop)) for start, stop in zip(starts, stops, strict=True) if stop > start]
        return runs or [self.select(slice(0, 0))]


_COLUMNS = tuple(column.name for column in fields(ParsedRows))


def join_parsed_rows(pieces: Sequence[ParsedRows]) -> ParsedRows:
    """Return the rows of pieces, at least one, one after the other; a single piece is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    columns = [rows.columns for rows in pieces]
    return ParsedRows(**{name: np.concatenate([of_piece[name] for of_piece in columns]) for name in columns[0]})


def collect_kept_rows(layout: Layout, chunks: Iterable[ParsedChunk]) -> tuple[list[str], ParsedRows]:
    """Return the household ids of chunks, and their kept rows.

    Raises:
        InputError: too many rows for 32-bit row numbers.
    """
    ids, pieces = collect_kept_pieces(chunks)
    none = np.zeros(0, np.int32)
    label = np.zeros(0, np.int64) if layout.has_labels else None
    empty = ParsedRows(none, none, np.zeros(0, np.uint8), np.zeros((0, layout.width), np.int32), none, label)
    return ids, join_parsed_rows(pieces or [empty])


def collect_kept_pieces(chunks: Iterable[ParsedChunk]) -> tuple[list[str], list[ParsedRows]]:
    """Return the household ids of chunks, and their kept rows in pieces: views of the columns of the chunks.

    Raises:
        InputError: too many rows for 32-bit row numbers.
    """
    ids: dict[str, int] = {}
    pieces: list[ParsedRows] = []
    rows = 0
    for chunk in chunks:
        pieces += _kept_pieces(chunk, ids, rows)
        rows += chunk.rows_read
        if rows > _MAX_ROWS:
            raise InputError("a chunk has more rows than can be numbered; split the file, or lower [engine] block_mib")
    return list(ids), pieces


def _kept_pieces(chunk: ParsedChunk, ids: dict[str, int], before: int) -> list[ParsedRows]:
    records, household = chunk.records, chunk.records.household
    codes = np.array([ids.setdefault(name, len(ids)) for name in records.ids], np.int32)
    if len(codes) and (codes != np.arange(len(codes))).any():
        household = codes[household]
    row = chunk.row + np.int32(before) if before else chunk.row
    rejected = np.flatnonzero(records.reason != int(RejectionReason.KEPT))
    rows = ParsedRows(household, records.time, records.channel, records.energy_wh, row, records.label)
    if records.label is not None and len(rejected):  # of a household's meters each is known on its days
        named = chunk.rejected_row[chunk.names_half_hour]
        named = named[records.label[named] != _NO_LABEL]
        energy_wh = records.energy_wh.copy()
        energy_wh[named] = NO_READING
        rows, rejected = replace(rows, energy_wh=energy_wh), np.setdiff1d(rejected, named, assume_unique=True)
    return rows.runs_between(rejected, _MIN_VIEW)
