"""From the lines of one chunk to records: `pyarrow.csv` with declared types, never inferred.

Broken lines are taken out first (`lines`), so that Arrow sees one row in each line. A chunk whose cells all have
their declared type is parsed once. Where one has not, only the odd cells are tried one by one with the same
converter, so what is accepted does not depend on what else is in the chunk. Stamps that are not ISO are always read
that way (`stamps`). Rejected rows come back as text for the quarantine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from agedp_data.readers.layout import Columns, Flags, Header, Ints, Layout, ReadingRules, Records, RejectionReason
from agedp_data.readers.lines import (
    broken_lines,
    count_sound_lines,
    field_counts,
    line_ends,
    texts_of_lines,
    without_lines,
)
from agedp_data.readers.stamps import ISO, LOCAL_ISO, SHORTEST_ISO, parse_stamp

_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan(\([0-9a-z_]*\))?)", re.IGNORECASE)
_CLOCK, _INSTANT = pa.timestamp("ns"), pa.timestamp("ns", "UTC")


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """What one chunk says: its records, the row number of each within the chunk, and the rows that were rejected."""

    rows_read: int
    records: Records
    row: Ints
    aside_row: Ints
    aside_reason: Ints
    aside_text: tuple[str, ...]


def parse(data: bytes, *, layout: Layout, header: Header, rules: ReadingRules) -> ParsedChunk:
    """Parse a chunk of whole lines; every line is a row."""
    columns, lost = _rows(data, header)
    records = layout.records(columns, header, rules)
    rows_read = columns.rows + len(lost)
    row = np.arange(rows_read)
    reasons = records.reason
    if len(lost):
        row = np.delete(row, list(lost))
        reasons = np.zeros(rows_read, np.int64)
        reasons[row], reasons[list(lost)] = records.reason, list(lost.values())
    rejected = np.flatnonzero(reasons)
    rejected = rejected[reasons[rejected] != RejectionReason.CATEGORY]
    texts = texts_of_lines(data, line_ends(data), rejected) if len(rejected) else ()
    return ParsedChunk(rows_read, records, row, rejected, reasons[rejected], texts)


def _rows(data: bytes, header: Header) -> tuple[Columns, dict[int, RejectionReason]]:
    """Return the columns of all rows that have them, and the reason of each other row by its number."""
    number = count_sound_lines(data)
    if number is not None and _is_utf8(data):  # else Arrow cannot hand over rows with a wrong number of fields
        columns, uneven = _columns(data, header)
        if columns.rows + len(uneven) == number:
            return columns, dict.fromkeys(uneven, RejectionReason.FIELDS)
    ends = line_ends(data)
    is_broken = broken_lines(data, ends)
    # a quote that never closes is in a line that is taken out first: it would hide commas of later lines
    sound = without_lines(data, ends, is_broken)
    sound_ends = line_ends(sound)
    is_uneven = field_counts(sound, sound_ends) != len(header.names)
    columns, _ = _columns(without_lines(sound, sound_ends, is_uneven), header)
    lost = dict.fromkeys(np.flatnonzero(is_broken).tolist(), RejectionReason.LINE)
    return columns, lost | dict.fromkeys(np.flatnonzero(~is_broken)[is_uneven].tolist(), RejectionReason.FIELDS)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _columns(data: bytes, header: Header) -> tuple[Columns, list[int]]:
    types = {name: pa.string() if pa.types.is_timestamp(kind) else kind for name, kind in header.types.items()}
    try:
        table, uneven = _read(data, header, types)
    except pa.ArrowInvalid:  # a cell that is no number
        types = {name: kind if pa.types.is_dictionary(kind) else pa.string() for name, kind in types.items()}
        table, uneven = _read(data, header, types)
    values: dict[str, pa.Array] = {}
    unreadable: dict[str, Flags] = {}
    instants: dict[str, Flags] = {}
    for name, kind in header.types.items():
        values[name] = column = _whole(table[name])
        if pa.types.is_timestamp(kind):
            values[name], unreadable[name], instants[name] = _stamps(column, header)
        elif column.type != kind:
            values[name], unreadable[name] = _numbers(column, header)
    return Columns(table.num_rows, values, unreadable, instants), uneven


def _read(data: bytes, header: Header, types: Mapping[str, pa.DataType]) -> tuple[pa.Table, list[int]]:
    """Return the columns of the rows with the right number of fields, and the numbers of the others."""
    uneven: list[int] = []

    def skip(row: Any) -> str:  # noqa: ANN401  (Arrow is untyped)
        uneven.append(int(row.number) - 1)
        return "skip"

    if not data[:64].strip(b"\r\n") and not data.strip(b"\r\n"):  # stripping copies what it does not shorten
        return pa.table({name: pa.array([], kind) for name, kind in types.items()}), []
    if data.startswith(_BOM):
        data = b"\n" + data  # an empty line: no row may look like a byte order mark
    table = csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(
            column_names=list(header.names), use_threads=False, block_size=len(data) + 2, encoding="utf8"
        ),
        parse_options=csv.ParseOptions(invalid_row_handler=skip, quote_char='"' if b'"' in data else False),
        convert_options=csv.ConvertOptions(
            check_utf8=False,
            column_types=dict(types),
            include_columns=list(types),
            null_values=list(header.null_values),
            strings_can_be_null=False,
        ),
    )
    return table, uneven


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:  # almost always: nothing is copied
        return column.chunk(0)
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined


def _stamps(cells: pa.StringArray, header: Header) -> tuple[pa.Array, Flags, Flags]:
    """Return stamps as nanoseconds since 1970, which cells are none, and which stamps name their offset."""
    none = np.zeros(len(cells), bool)
    if len(cells) and pc.min(pc.binary_length(cells)).as_py() >= SHORTEST_ISO:  # Arrow takes a date for its midnight
        for time_format, kind in ((LOCAL_ISO, _CLOCK), (ISO, _CLOCK), (ISO, _INSTANT)):
            if time_format in header.time_formats and (kind == _CLOCK or _say_the_minute(cells)):
                with suppress(pa.ArrowInvalid):
                    return cells.cast(kind).cast(pa.int64()), none, none if kind == _CLOCK else ~none
    distinct, codes = _distinct(cells)
    stamps = [parse_stamp(cell, header.time_formats) for cell in distinct]
    values = pa.array([None if stamp is None else stamp.ns for stamp in stamps], pa.int64())
    is_bad = np.array([stamp is None for stamp in stamps], bool)
    is_instant = np.array([stamp is not None and stamp.is_instant for stamp in stamps], bool)
    return values.take(codes), is_bad[codes], is_instant[codes]


def _say_the_minute(cells: pa.StringArray) -> bool:
    """Return whether a colon follows the hour of every stamp: before an offset Arrow takes an hour alone."""
    return bool(pc.all(pc.equal(pc.binary_slice(cells.cast(pa.binary()), 13, 14), b":")).as_py())


def _numbers(cells: pa.StringArray, header: Header) -> tuple[pa.Array, Flags]:
    """Return the numbers of a column and which cells are none, as Arrow does where all of them are numbers."""
    distinct, codes = _distinct(cells)
    nulls = {text.encode() for text in header.null_values}
    numbers = [None if cell in nulls else _number(cell) for cell in distinct]
    is_bad = np.array([n is None and cell not in nulls for n, cell in zip(numbers, distinct, strict=True)], bool)
    return pa.array(numbers, pa.float64()).take(codes), is_bad[codes]


def _number(cell: bytes) -> float | None:
    return float(cell.partition(b"(")[0]) if _NUMBER.fullmatch(cell) else None


def _distinct(cells: pa.StringArray) -> tuple[list[bytes], Ints]:
    """Return the distinct cells without padding, and the place of each row's cell among them."""
    encoded = pc.dictionary_encode(cells.cast(pa.binary()))
    return [cell.strip(b" \t") for cell in encoded.dictionary.to_pylist()], encoded.indices.to_numpy()
