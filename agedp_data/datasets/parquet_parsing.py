"""From Parquet files and Arrow tables to records: the same layouts, rejection reasons and row numbers as for CSV.

A table has the columns of the dataset, by name and in any type that says the same: text, integers or dictionaries of
text for a household, timestamps or text for a time, numbers or text for an energy. Text is parsed as a cell of a CSV
file. A timestamp with a zone is an instant, one without is a wall-clock time; a null is an empty cell.

Folders that are named `column=value`, as Hive and Spark write them, add a column to the files in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import IO
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_number_cells, parse_timestamp_cells, quarter_times
from agedp_data.datasets.filesystem import NO_MEMORY, Chunk, InputFile, open_at
from agedp_data.datasets.layout import Columns, Header, Layout, QuarterTimes, fill_nulls, is_null, is_text, one_array
from agedp_data.datasets.timestamps import EPOCHS
from agedp_data.datasets.validation import Flags, Ints, ReadingRules
from agedp_data.errors import InputError

_DAMAGED = "is not Parquet, or is cut off or damaged; fetch it again"
_NO_TEXT = "(no text)"
_CSV_ROW_BYTES = 40
"""Bytes of a typical CSV row: a part of a Parquet file has as many rows as a part of a CSV file of the same setting."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_NS_RANGE = (-(2**63) // 1000, (2**63 - 1) // 1000)
FIRST_ROWS = 2001
"""Rows of a table that a look at its columns takes."""
_INDEX = "__index_level_"
_MINUTE_NS = 60 * 10**9
_DAY_FIRST_DATE = "%d/%m/%Y"


def partition_values(location: str) -> dict[str, str]:
    """Return the columns that the folders of a file add to it, by name.

    >>> partition_values("/srv/meters/year=2013/LCLid=MAC%2F1/part-0.parquet")
    {'year': '2013', 'LCLid': 'MAC/1'}
    """
    folders = [folder.partition("=") for folder in location.split("/")[:-1]]
    return {unquote(key): unquote(value) for key, mark, value in folders if key and mark}


@contextmanager
def open_parquet(source: InputFile, *, text_columns: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; `text_columns` are read as dictionaries.

    Raises:
        UnreadableFile: it is not a Parquet file, or damaged.
        InputError: it cannot be read.
    """
    try:
        with open_at(source.location) as stream:
            yield _parquet_file(stream, text_columns)
    except InputError:
        raise
    except MemoryError:  # before ArrowException, which Arrow's is as well
        raise source.error(NO_MEMORY) from None
    except (pa.ArrowException, EOFError, UnicodeDecodeError):  # an ArrowInvalid quotes values
        raise source.unreadable(_DAMAGED) from None
    except OSError as error:
        if error.errno is None:  # Arrow's word for a damaged page
            raise source.unreadable(_DAMAGED) from None
        raise source.error(f"cannot be read ({error.strerror or type(error).__name__})") from None


def _parquet_file(stream: IO[bytes], text_columns: Sequence[str]) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(stream, read_dictionary=list(text_columns), page_checksum_verification=True)
    except KeyError:  # a column of lists or structures has no dictionary
        return pq.ParquetFile(stream, page_checksum_verification=True)


def header_line(names: Sequence[str], separator: str = ",") -> str:
    """Return the header line of a CSV file with these columns.

    >>> header_line(["LCLid", "KWH/hh, half"])
    'LCLid,"KWH/hh, half"'
    """
    return separator.join(_csv_cell(name.encode("utf-8").decode("latin-1"), separator) for name in names)


def recognise_table(schema: pa.Schema, location: str, layout: Layout) -> tuple[Header | None, str]:
    """Return the header of a Parquet file, None if it is not the layout's, and its columns as a header line.

    A column that a folder adds may take the place of the layout's first column; others are ignored, as is an index.

    Raises:
        InputError: as `Layout.recognise`.
    """
    stored = [name for name in schema.names if not name.startswith(_INDEX)]
    added = [name for name in partition_values(location) if name not in stored]
    refusal = None
    for names in ([*stored, *added], stored, *([name, *stored] for name in added)):
        try:
            header = layout.recognise([*[""] * (layout.head_lines - 2), header_line(names, layout.separator)], location)
        except InputError as error:
            refusal = refusal or error
        else:
            if header is not None:
                roles = dict(zip(header.names, names, strict=True))
                household = roles.get("household") if header.readings_per_row == 1 else None
                has_floats = household in stored and is_float(schema.field(household).type)
                return replace(header, columns=tuple(names), separator=",", float_ids=has_floats), header_line(names)
    if refusal is not None:
        raise refusal
    return None, header_line([*stored, *added])


def is_float(kind: pa.DataType) -> bool:
    """Return whether the cells of a column are floating-point numbers.

    >>> is_float(pa.dictionary(pa.int32(), pa.float64())), is_float(pa.int64())
    (True, False)
    """
    return bool(pa.types.is_floating(kind.value_type if pa.types.is_dictionary(kind) else kind))


FLOAT_IDS = (
    "the household ids are floating-point numbers, and the text of such a number is another household than that of the "
    "same integer (1.2e+12 and 1200000000000)"
)
FLOAT_IDS_REMEDY = "cast the column to integers or to text where the table is written"


def read_tables(chunk: Chunk, header: Header, *, batch_rows: int) -> Iterator[pa.Table]:
    """Yield the parsed columns of rows [start, stop) of a Parquet file, named as in the header, in batches."""
    roles = {name: role for name, role in zip(header.columns, header.names, strict=True) if role in header.types}
    added = partition_values(chunk.source.location)
    text_columns = [name for name, role in roles.items() if pa.types.is_dictionary(header.types[role])]
    text_columns = [name for name in text_columns if name not in added]
    with open_parquet(chunk.source, text_columns=text_columns) as file:
        stored = [name for name in file.schema_arrow.names if name in roles]
        rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = np.cumsum([0, *rows])
        groups = [i for i in range(len(rows)) if ends[i] < (chunk.stop or 0) and ends[i + 1] > chunk.start]
        first_row = int(ends[groups[0]]) if groups else 0  # rows before these groups
        start, stop = chunk.start - first_row, (chunk.stop or 0) - first_row
        for batch in file.iter_batches(batch_rows, row_groups=groups, columns=stored, use_threads=False):
            wanted = batch.slice(max(start, 0), max(stop, 0) - max(start, 0))
            if not all(map(_is_whole, wanted.columns)):
                raise chunk.source.unreadable(_DAMAGED)
            if wanted.num_rows:
                table = pa.Table.from_batches([wanted])
                for name in roles.keys() - set(stored):
                    value = None if added[name] == _HIVE_NULL else added[name]
                    table = table.append_column(name, pa.array([value] * len(table), pa.string()))
                yield table.select(list(roles)).rename_columns(list(roles.values()))
            start, stop = start - len(batch), stop - len(batch)
            if stop <= 0:
                return


def _is_whole(column: pa.Array) -> bool:
    """Return whether every index of a dictionary lies in it; those of a damaged page without a checksum may not."""
    if not pa.types.is_dictionary(column.type) or column.null_count == len(column):
        return True
    bounds = pc.min_max(column.indices)
    return 0 <= int(bounds["min"].as_py()) <= int(bounds["max"].as_py()) < len(column.dictionary)


def split_rows(source: InputFile, header: Header, *, part_bytes: int) -> tuple[Chunk, ...]:
    """Split a Parquet file into chunks of rows; `part_bytes` are those of a CSV file with as many readings."""
    with open_parquet(source) as file:
        rows = int(file.metadata.num_rows)
    step = batch_rows(part_bytes, header)
    starts = range(0, rows, step)
    return tuple(Chunk(source, i, start, min(start + step, rows)) for i, start in enumerate(starts))


def batch_rows(chunk_bytes: int, header: Header) -> int:
    """Return the rows of a batch with as many readings as `chunk_bytes` of CSV."""
    return max(1, chunk_bytes // (_CSV_ROW_BYTES * header.readings_per_row))


def parse_table(table: pa.Table, *, layout: Layout, header: Header, rules: ReadingRules) -> ParsedChunk:
    """Parse the rows of a table; every row is kept or rejected with a reason.

    The result for one row does not depend on any other row.

    Args:
        table: the columns of `header.types`, named by their roles.
        layout: layout of the table.
        header: the header that the layout recognised.
        rules: settings of [input] that decide how a row is parsed.
    """
    # Arrow cannot select rows of views
    whole = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    fields = [field.with_type(whole.get(field.type, field.type)) for field in table.schema]
    table = table if fields == list(table.schema) else table.cast(pa.schema(fields))
    records = layout.records(columns_of_table(table, header), header, rules)
    return ParsedChunk.of(records, lambda rejected: _rejected_texts(table, rejected, header), records.names_half_hour)


def _rejected_texts(table: pa.Table, rejected: Ints, header: Header) -> Iterator[str]:
    """Return the rejected rows as lines; of a row with several readings what all share, the column, and the cell."""
    if header.readings_per_row == 1:
        return row_texts(table.take(pa.array(rejected)))
    row, column = np.divmod(rejected, header.readings_per_row)
    roles = header.energies
    names = [header.columns[header.names.index(role)] for role in roles]
    shared = table.select([role for role in table.column_names if role not in roles]).take(pa.array(row))
    cells = (_cell_text(table[roles[j]][i]) for i, j in zip(row.tolist(), column.tolist(), strict=True))
    rows = zip(row_texts(shared), (names[j] for j in column.tolist()), cells, strict=True)
    return (",".join((text, *map(_csv_cell, (name, cell))))[:LONGEST_LINE] for text, name, cell in rows)


def columns_of_table(table: pa.Table, header: Header) -> Columns:
    """Return the columns of a table with the types that the layout declares."""
    values: dict[str, pa.Array] = {}
    unreadable: dict[str, Flags] = {}
    times: dict[str, QuarterTimes] = {}
    if parts := header.time_parts:
        times["time"] = quarter_times(*_joined_timestamps([one_array(table[name]) for name in parts], header))
    for role, kind in header.types.items():
        if role in parts:
            continue
        column = one_array(table[role])
        if pa.types.is_timestamp(kind):
            times[role] = quarter_times(*_timestamps(column, header))
        elif pa.types.is_dictionary(kind):
            values[role] = _texts(column)
        else:
            values[role], unreadable[role] = _numbers(column, header)
    return Columns(table.num_rows, values, unreadable, times)


def _texts(column: pa.Array) -> pa.DictionaryArray:
    """Return cells as a dictionary of their bytes; dates are written day first."""
    if pa.types.is_dictionary(column.type):
        words = _plain_text(column.dictionary).cast(pa.binary())
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), words)
    return pc.dictionary_encode(_plain_text(column).cast(pa.binary()))


def _plain_text(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column
    try:
        is_temporal = pa.types.is_temporal(column.type)
        return pc.strftime(column, format=_DAY_FIRST_DATE) if is_temporal else column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a list is no text, nor a time of an unknown zone
        return pa.nulls(len(column), pa.string())


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _timestamps(column: pa.Array, header: Header) -> tuple[pa.Array, Flags, Flags]:
    """Return timestamps in nanoseconds since 1970, which cells are none, and which are instants."""
    column = _decoded(column)
    if is_text(column.type):
        values, is_bad, is_instant = parse_timestamp_cells(pc.fill_null(column.cast(pa.string()), ""), header)
        return values, is_bad, is_instant
    if (unit := EPOCHS.get("".join(header.time_formats))) and _is_number(column.type):
        # seconds or milliseconds since 1970
        numbers = fill_nulls(column.cast(pa.float64(), safe=False), np.nan)
        is_bad = ~((numbers > 0) & (numbers < 2**63 / unit))
        ns = (np.where(is_bad, 0, numbers) * 1000).round().astype(np.int64) * (unit // 1000)
        return pa.array(ns), is_bad, np.ones(len(ns), bool)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if not pa.types.is_timestamp(column.type):
        return pa.nulls(len(column), pa.int64()), np.ones(len(column), bool), np.zeros(len(column), bool)
    is_instant = np.full(len(column), column.type.tz is not None)
    try:
        ns = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    except pa.ArrowInvalid:  # a year outside 1677 to 2262
        us = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        in_range = pc.and_(pc.greater(us, _NS_RANGE[0]), pc.less(us, _NS_RANGE[1]))
        ns = pc.multiply(pc.if_else(in_range, us, None), 1000)
    return ns, is_null(ns), is_instant


def _joined_timestamps(columns: Sequence[pa.Array], header: Header) -> tuple[pa.Array, Flags, Flags]:
    """Return timestamps whose date and time of day are two columns: of texts, or of dates and times."""
    date, clock = (_decoded(column) for column in columns)
    if pa.types.is_time(clock.type) and (pa.types.is_date(date.type) or pa.types.is_timestamp(date.type)):
        ns, is_bad, is_instant = _timestamps(date, header)
        since_midnight = clock.cast(pa.time64("ns")).cast(pa.int64())
        return pc.add(ns, since_midnight), is_bad | is_null(since_midnight), is_instant
    texts = [pc.utf8_trim(pc.fill_null(_plain_text(column).cast(pa.string()), ""), " \t") for column in (date, clock)]
    return parse_timestamp_cells(pc.binary_join_element_wise(*texts, " "), header)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numbers(column: pa.Array, header: Header) -> tuple[pa.Array, Flags]:
    """Return numbers, null where a cell is empty, and which cells are no number."""
    column = _decoded(column)
    if is_text(column.type):
        return parse_number_cells(pc.fill_null(column.cast(pa.string()), ""), header)
    if _is_number(column.type):
        return column.cast(pa.float64(), safe=False), np.zeros(len(column), bool)
    return pa.nulls(len(column), pa.float64()), ~is_null(column)


def row_texts(table: pa.Table) -> Iterator[str]:
    """Yield the rows of a small table as lines of CSV, for quarantine files and messages."""
    for row in zip(*(_decoded(one_array(column)) for column in table.columns), strict=True):
        yield ",".join(_csv_cell(_cell_text(cell)) for cell in row)[:LONGEST_LINE]


def _cell_text(cell: pa.Scalar) -> str:
    """Return a cell as text; one that Python cannot represent, such as a year after 9999, as `_NO_TEXT`.

    A time of an unknown zone is shown in UTC: it is an instant, whatever its zone.

    >>> _cell_text(pa.scalar(0, pa.timestamp("us", "Foo/Bar")))
    '1970-01-01 00:00:00+00:00'
    """
    try:
        value = cell.as_buffer().to_pybytes() if cell.is_valid and is_text(cell.type) else cell.as_py()
    except (ArithmeticError, ValueError, LookupError, pa.ArrowException):
        has_zone = pa.types.is_timestamp(cell.type) and cell.type.tz not in (None, "UTC")
        return _cell_text(cell.cast(pa.timestamp(cell.type.unit, "UTC"))) if has_zone else _NO_TEXT
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _csv_cell(text: str, separator: str = ",") -> str:
    needs_quotes = any(mark in text for mark in (separator, '"', "\r", "\n"))
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def first_lines(source: InputFile) -> list[str]:
    """Return the header and the first rows of a Parquet file as lines of CSV, for a look at its columns.

    Raises:
        UnreadableFile: it is not a Parquet file, or damaged.
    """
    with open_parquet(source) as file:
        names = file.schema_arrow.names
        batch = next(file.iter_batches(FIRST_ROWS), None)
        first = file.schema_arrow.empty_table() if batch is None else pa.Table.from_batches([batch])
    added = {key: value for key, value in partition_values(source.location).items() if key not in names}
    names_end, row_end = ("".join(f",{_csv_cell(text)}" for text in texts) for texts in (added, added.values()))
    header, *rows = lines_of_rows(first)
    return [header + names_end, *(row + row_end for row in rows)]


def lines_of_rows(table: pa.Table) -> list[str]:
    """Return the header of a small table and its rows as lines of CSV, without an index."""
    names = [name for name in table.column_names if not name.startswith(_INDEX)]
    return [",".join(map(_csv_cell, names)), *row_texts(table.select(names))]


def lines_of_table(table: pa.Table, header: Header) -> list[str]:
    """Return the rows of a small table as lines of CSV with all columns of the header, those not parsed empty."""
    empty = pa.array([""] * len(table), pa.string())
    return list(row_texts(pa.table([table[n] if n in header.types else empty for n in header.names], header.names)))


def minutes_by_household(table: pa.Table, header: Header) -> list[Ints]:
    """Return the timestamps of each household of a small table, in minutes since 1970; none if rows are days."""
    if not header.has_timestamps:
        return []
    ns, is_bad, _ = _timestamps(one_array(table["time"]), header)
    codes = np.zeros(len(ns), np.int64)
    if "household" in header.types:
        codes = pc.fill_null(_texts(one_array(table["household"])).indices, -1).to_numpy()
    minutes = fill_nulls(ns, 0) // _MINUTE_NS
    return [minutes[~is_bad & (codes == code)] for code in np.unique(codes[codes >= 0])]
