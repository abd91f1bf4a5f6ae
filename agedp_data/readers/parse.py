"""From the bytes of one block to records: `pyarrow.csv` with declared types, never inferred.

A block whose cells all have their declared type is parsed once. Where one has not, the block is parsed again
as text and only the odd cells are tried one by one with the same converter, so what is accepted does not
depend on what else stands in the block. Stamps that are not ISO are always read that way (`stamps`). Rows with a
wrong number of fields, and rows set aside, come back as text for the quarantine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from agedp_data.errors import InputError
from agedp_data.readers.layout import Columns, Flags, Header, Ints, Layout, Reason, Records, Rules
from agedp_data.readers.stamps import ISO, SHORTEST_ISO, instant_ns, refuse_other_formats

_LF = ord("\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one block says: its records, the row number of each within the block, and the rows set aside."""

    rows_read: int
    records: Records
    row: Ints
    aside_row: Ints
    aside_reason: Ints
    aside_text: tuple[str, ...]


def parse(data: bytes, *, layout: Layout, header: Header, rules: Rules) -> Parsed:
    """Parse a block of whole rows.

    Raises:
        InputError: dates of two formats in one file, or a block that is no text.
    """
    broken: list[tuple[int, str]] = []
    columns = _columns(data, header, broken) if _is_utf8(data) else _latin_columns(data, header, broken)
    records = layout.records(columns, header, rules)
    broken_rows = np.array([number for number, _ in broken], np.int64)
    rows_read = columns.rows + len(broken)
    row = np.arange(rows_read)
    if broken:
        row = np.delete(row, broken_rows)
    odd = np.flatnonzero(records.reason)
    odd = odd[records.reason[odd] != Reason.CATEGORY]
    texts = dict(broken) | _texts(data, row[odd], rows_read)
    reasons = dict.fromkeys(broken_rows.tolist(), int(Reason.FIELDS))
    reasons |= dict(zip(row[odd].tolist(), records.reason[odd].tolist(), strict=True))
    aside = sorted(reasons)
    return Parsed(
        rows_read,
        records,
        row,
        np.array(aside, np.int64),
        np.array([reasons[i] for i in aside], np.int64),
        tuple(texts[i] for i in aside),
    )


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _latin_columns(data: bytes, header: Header, broken: list[tuple[int, str]]) -> Columns:
    """Return the columns of bytes that are not UTF-8: parsed as Latin-1, the texts' own bytes put back.

    Arrow hands a row with a wrong number of fields over as text, and fails where it is none.
    """
    columns = _columns(data.decode("latin-1").encode(), header, broken)
    broken[:] = [(number, text.encode("latin-1").decode("utf-8", "replace")) for number, text in broken]
    values = {name: _own_bytes(v) if pa.types.is_dictionary(v.type) else v for name, v in columns.values.items()}
    return Columns(columns.rows, values, columns.unreadable)


def _own_bytes(column: pa.DictionaryArray) -> pa.DictionaryArray:
    texts = [None if raw is None else raw.decode().encode("latin-1") for raw in column.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(column.indices, pa.array(texts, pa.binary()))


def _columns(data: bytes, header: Header, broken: list[tuple[int, str]]) -> Columns:
    try:
        if header.time_format == ISO or not any(map(pa.types.is_timestamp, header.types.values())):
            table = _read(data, header, {name: _as_read(kind) for name, kind in header.types.items()}, broken)
            columns = {name: _typed(_whole(table[name]), kind) for name, kind in header.types.items()}
            return Columns(table.num_rows, columns, {})
    except pa.ArrowInvalid:
        broken.clear()
    text = {name: kind if pa.types.is_dictionary(kind) else pa.binary() for name, kind in header.types.items()}
    try:
        table = _read(data, header, text, broken)
    except pa.ArrowException:
        raise InputError("cannot be read as CSV text") from None
    values: dict[str, pa.Array] = {}
    unreadable: dict[str, Flags] = {}
    for name, kind in header.types.items():
        column = _whole(table[name])
        if pa.types.is_dictionary(kind):
            values[name] = column
        else:
            values[name], unreadable[name] = _convert(column, kind, header)
    return Columns(table.num_rows, values, unreadable)


def _as_read(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return ISO stamps, read as text, as instants: Arrow would take a date alone for its midnight.

    Raises:
        ArrowInvalid: a stamp that does not say the minute, or is none.
    """
    if not pa.types.is_timestamp(kind):
        return column
    if len(column) and pc.min(pc.binary_length(column)).as_py() < SHORTEST_ISO:
        raise pa.ArrowInvalid("a stamp without a time of day")
    return column.cast(kind)


def _read(data: bytes, header: Header, types: Mapping[str, pa.DataType], broken: list[tuple[int, str]]) -> pa.Table:
    def keep(row: Any) -> str:  # noqa: ANN401  (Arrow is untyped)
        broken.append((int(row.number) - 1, row.text))
        return "skip"

    if not (data[:64].strip(b"\r\n") or data.strip(b"\r\n")):  # stripping copies what it does not shorten
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    if data.startswith(_BOM):
        data = b"\n" + data  # an empty line: no row may look like a byte order mark
    return csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(
            column_names=list(header.names), use_threads=False, block_size=len(data) + 2, encoding="utf8"
        ),
        parse_options=csv.ParseOptions(invalid_row_handler=keep, newlines_in_values=True),
        convert_options=_convert_options(header, types),
    )


def _convert_options(header: Header, types: Mapping[str, pa.DataType]) -> csv.ConvertOptions:
    return csv.ConvertOptions(
        check_utf8=False,
        column_types=dict(types),
        include_columns=list(types),
        null_values=list(header.null_values),
        strings_can_be_null=False,
        timestamp_parsers=[csv.ISO8601],
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined


def _convert(cells: pa.BinaryArray, kind: pa.DataType, header: Header) -> tuple[pa.Array, Flags]:
    """Convert a text column cell by distinct cell; return the values and which cells were unreadable."""
    encoded = pc.dictionary_encode(cells)
    distinct: list[bytes] = [cell.strip(b" \t") for cell in encoded.dictionary.to_pylist()]
    nulls = {text.encode() for text in header.null_values}
    tried = [i for i, cell in enumerate(distinct) if cell not in nulls]
    readable: dict[int, Any] = {}
    if pa.types.is_timestamp(kind) and header.time_format != ISO:
        readable = {i: ns for i in tried if (ns := instant_ns(distinct[i], header.time_format)) is not None}
    elif pa.types.is_timestamp(kind):
        _try(distinct, [i for i in tried if len(distinct[i]) >= SHORTEST_ISO], kind, header, readable)
    else:
        _try(distinct, tried, kind, header, readable)
    bad = [i for i in tried if i not in readable]
    if pa.types.is_timestamp(kind):
        refuse_other_formats([distinct[i] for i in bad], header.time_format)
    plain = pa.int64() if pa.types.is_timestamp(kind) else kind
    values = pa.array([readable.get(i) for i in range(len(distinct))], plain)
    codes = encoded.indices
    is_bad = np.zeros(len(distinct) + 1, bool)
    is_bad[bad] = True
    return values.cast(kind).take(codes), is_bad[codes.to_numpy(zero_copy_only=False)]


def _try(
    cells: Sequence[bytes], which: Sequence[int], kind: pa.DataType, header: Header, readable: dict[int, Any]
) -> None:
    """Enter the value of every readable cell; halve where one of them is not."""
    if not which:
        return
    # an empty cell would be an empty line, which is no row
    sound = [i for i in which if cells[i] and not re.search(rb'[\r\n",]', cells[i])]
    one = Header(header.variant, 0, ("cell",), {"cell": kind}, header.time_format, header.null_values)
    try:
        table = _read(b"\n".join(cells[i] for i in sound) + b"\n", one, one.types, []) if sound else None
    except pa.ArrowInvalid:
        if len(sound) > 1:
            half = len(sound) // 2
            _try(cells, sound[:half], kind, header, readable)
            _try(cells, sound[half:], kind, header, readable)
        return
    if table is not None and table.num_rows == len(sound):
        column = _whole(table["cell"])
        plain = column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column
        readable.update(zip(sound, plain.to_pylist(), strict=True))


def _texts(data: bytes, rows: Ints, rows_read: int) -> dict[int, str]:
    """Return the raw text of some rows; where quotes hold line ends, rows are told apart by quote parity."""
    if len(rows) == 0:
        return {}
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
    plain = data.endswith(b"\n") and b'"' not in data and len(ends) == rows_read
    if plain and ends[0] > 1 and (ends[1:] - ends[:-1]).min(initial=3) > len(b"\r\n"):  # none is blank: all are rows
        starts = np.where(rows > 0, ends[rows - 1] + 1, 0)
        cuts = zip(rows.tolist(), starts.tolist(), ends[rows].tolist(), strict=True)
        return {i: data[start:end].rstrip(b"\r").decode("utf-8", "replace") for i, start, end in cuts}
    lines = [line for line in data.splitlines() if line]
    if len(lines) != rows_read:
        lines = [line for line in _quoted_lines(data) if line]
    known = len(lines) == rows_read
    return {int(i): lines[i].decode("utf-8", "replace") if known else "" for i in rows}


def _quoted_lines(data: bytes) -> list[bytes]:
    lines: list[bytes] = []
    pieces: list[bytes] = []
    quotes = 0
    for line in data.splitlines(keepends=True):
        pieces.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            lines.append(b"".join(pieces).rstrip(b"\r\n"))
            pieces.clear()
    return [*lines, b"".join(pieces)] if pieces else lines
