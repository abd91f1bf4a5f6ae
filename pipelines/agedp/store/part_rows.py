"""Parsed chunks of a part -> its kept rows as compact arrays, sixteen bytes each.

Example: rows of two chunks whose households are A, B and B, C have the codes 0, 1 and 1, 2 of the ids A, B, C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.validation import Ints, RejectionReason
from agedp_data.errors import InputError

_MAX_ROWS = 2**31 - 1
MIN_RUN = 16
"""Rows in runs of this length on average are copied run by run."""
Int32s = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The kept rows (n) of a part in the order of the file, as compact arrays.

    Attributes:
        household: code of the household, shape (n,).
        time: day since 1970 x 48 + slot, shape (n,).
        channel: channel of the layout, shape (n,).
        energy_wh: energy, shape (n, readings per row) [Wh].
        row: number of the row within the part, shape (n,).
    """

    household: Int32s
    time: Int32s
    channel: np.ndarray[Any, np.dtype[np.uint8]]
    energy_wh: Int32s
    row: Int32s

    def select(self, indices: Ints | slice) -> ParsedRows:
        """Return the rows with these indices."""
        return ParsedRows(*(getattr(self, column.name)[indices] for column in fields(self)))

    def join(self, runs: list[slice]) -> ParsedRows:
        """Return runs of rows one after the other."""
        return ParsedRows(*(_select(getattr(self, column.name), runs) for column in fields(self)))

    def without(self, indices: Ints) -> ParsedRows:
        """Return the other rows; `indices` ascend. If they are few, the runs between them are copied as a whole."""
        kept = _runs_between(indices, len(self.row))
        return self.join(kept) if isinstance(kept, list) else self.select(kept)


def collect_kept_rows(layout: Layout, chunks: Iterable[ParsedChunk]) -> tuple[list[str], ParsedRows]:
    """Return the household ids of chunks, and their kept rows.

    Raises:
        InputError: too many rows for 32-bit row numbers.
    """
    ids: dict[str, int] = {}
    kept_chunks: list[ParsedRows] = []
    rows = 0
    for chunk in chunks:
        kept_chunks.append(_kept_rows(chunk, ids, rows))
        rows += chunk.rows_read
        if rows > _MAX_ROWS:
            raise InputError("a chunk has more rows than can be numbered; split the file, or lower [engine] block_mib")
    return list(ids), _join_parsed(kept_chunks, layout)


def _kept_rows(chunk: ParsedChunk, ids: dict[str, int], before: int) -> ParsedRows:
    records = chunk.records
    kept = _runs_between(np.flatnonzero(records.reason != int(RejectionReason.KEPT)), len(records.reason))
    codes = np.array([ids.setdefault(name, len(ids)) for name in records.ids], np.int32)
    columns = (records.household, records.time, records.channel, records.energy_wh, chunk.row)
    household, time, channel, energy_wh, row = (_select(column, kept) for column in columns)
    if len(codes) and (codes != np.arange(len(codes))).any():
        household = codes[household]
    return ParsedRows(household, time, channel, energy_wh, row + np.int32(before) if before else row)


def _runs_between(indices: Ints, length: int) -> list[slice] | Ints:
    """Return all other indices below `length`: the runs between `indices`, unless these are many."""
    if len(indices) * MIN_RUN > length:
        return np.delete(np.arange(length), indices)
    starts, stops = np.append(0, indices + 1).tolist(), np.append(indices, length).tolist()
    return [slice(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _select(column: np.ndarray[Any, Any], rows: list[slice] | Ints) -> np.ndarray[Any, Any]:
    if isinstance(rows, list):
        return column[rows[0]] if len(rows) == 1 else np.concatenate([column[part] for part in rows])
    return column[rows]


def _join_parsed(chunks: Sequence[ParsedRows], layout: Layout) -> ParsedRows:
    if len(chunks) == 1:
        return chunks[0]
    household, time, row = (
        np.concatenate([np.zeros(0, np.int32), *(getattr(rows, name) for rows in chunks)])
        for name in ("household", "time", "row")
    )
    channel = np.concatenate([np.zeros(0, np.uint8), *(rows.channel for rows in chunks)])
    energy = np.concatenate([np.zeros((0, layout.width), np.int32), *(rows.energy_wh for rows in chunks)])
    return ParsedRows(household, time, channel, energy, row)
