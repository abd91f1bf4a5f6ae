"""Parquet files that somebody else wrote -> tables, if they cannot be much larger in memory than their release on disk.

A file of 20 kB may contain 10^9 rows, and one text of its dictionary may stand in each of them. Its footer is looked at
before its rows.

Decisions:

* A table has at most as many rows as the ledger rows of its folder have bytes: each line of it follows from a value
  there, which has at least two. So no number of households, groups or years is a limit.
* Columns are numbers, dates and texts; the columns that a table has to have are compared later.
* A footer is believed about sizes. One that understates them is not met here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp_data.errors import InputError
from agedp_data.messages import escape_text

_MAX_FOOTER_BYTES: Final = 2**22
_MAX_ROW_BYTES: Final = 1000
_MAX_TEXT_BYTES: Final = 1000
_MAX_ANY_BYTES: Final = 2**22
"""Uncompressed size of a table of however few rows [bytes]."""
_SMALL_BYTES: Final = 2**26
"""Texts of this size in memory need no look at their lengths [bytes]."""
_ADVICE: Final = "ask for the release again"


def read_limited_schema(path: Path, name: str) -> pa.Schema:
    """Return the schema of a Parquet file; `name` names it in messages.

    Raises:
        InputError: its footer is too large.
        OSError, pa.ArrowException: it is missing or damaged.
    """
    _check_footer(path, name)
    return pq.read_schema(path)


def read_limited_table(path: Path, name: str, *, max_rows: int) -> pa.Table:
    """Return the table of a Parquet file.

    Args:
        path: of the file.
        name: names it in messages.
        max_rows: the largest number of rows.

    Raises:
        InputError: it has more rows, larger texts, or columns of another kind than a table of a release.
        OSError, pa.ArrowException: it is missing or damaged.
    """
    _check_footer(path, name)
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        if not all(_is_flat(field.type) for field in schema) or len(set(schema.names)) < len(schema):
            raise InputError(f"{escape_text(name)} has other columns than a published table; {_ADVICE}")
        rows, sizes = _declared_size(file.metadata)
        size = sum(sizes)
        if rows > max_rows or size > rows * _MAX_ROW_BYTES + _MAX_ANY_BYTES:
            raise InputError(
                f"{escape_text(name)} has {rows:,} rows of {size:,} bytes, more than the ledger rows beside it give; "
                f"{_ADVICE}"
            )
        texts = {field.name: sizes[number] for number, field in enumerate(schema) if _is_text(field.type)}
        if rows * sum(texts.values()) <= _SMALL_BYTES:
            return file.read()
    with pq.ParquetFile(path, read_dictionary=[*texts]) as file:  # each different text once
        table = file.read()
    if max((_longest_text(table[text]) for text in texts), default=0) > _MAX_TEXT_BYTES:
        raise InputError(f"{escape_text(name)} has a text of more than {_MAX_TEXT_BYTES:,} bytes; {_ADVICE}")
    return table.cast(schema)


def _check_footer(path: Path, name: str) -> None:
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - 8, 0))
        if int.from_bytes(stream.read(4), "little") > _MAX_FOOTER_BYTES:
            raise InputError(f"{escape_text(name)} is missing or damaged; {_ADVICE}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_flat(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or _is_text(kind))


def _declared_size(metadata: pq.FileMetaData) -> tuple[int, list[int]]:
    """Return the rows of a file, by the largest figure that its footer gives, and the uncompressed bytes by column."""
    values, sizes = [0] * metadata.num_columns, [0] * metadata.num_columns
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for number in range(metadata.num_columns):
            column = group.column(number)
            values[number] += column.num_values
            sizes[number] += column.total_uncompressed_size
    return max([metadata.num_rows, *values]), sizes


def _longest_text(column: pa.ChunkedArray) -> int:
    lengths = (pc.max(pc.binary_length(chunk.dictionary)).as_py() for chunk in column.chunks)
    return max((length or 0 for length in lengths), default=0)
