"""Names and files that somebody else wrote, checked before a path is made of a name or a file is opened.

Recipients run `agedp verify` and `agedp smooth` on folders of strangers, and a run reads the listing of a bucket to
which others may write. Example: an object `daily_averages_use/../../x` would be written outside of the local copy.

Decisions:

* A name is a plain relative path or refused. It is never repaired: two readers would repair it differently.
* The path of a folder may be a link. Nothing below it may, so that no file of the reader enters a verification.
* Kind and size are looked at before a file is opened: reading a pipe or a device need not end.
* A text that is parsed as a whole has at most 4 MiB, a row of a ledger at most 16 MiB. Files of rows and of tables may
  have 8 GiB: they are read line by line, or after their size in memory is known.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp_data.errors import InputError
from agedp_data.messages import escape_text

MAX_FILE_BYTES: Final = 2**33
MAX_TEXT_BYTES: Final = 2**22
MAX_LINE_BYTES: Final = 2**24
"""The record of a recovered ledger has a hash for each row of the lost one: 80,000 rows have 5 MB."""
_MAX_NAME_BYTES, _MAX_SEGMENT_BYTES = 1000, 200
"""A temporary file beside it has a longer name, and file systems permit 255 bytes."""
_MAX_DEPTH: Final = 64
MAX_VALUES: Final = 400_000
"""Values of a JSON text; the row of a day with 400 groups of 48 half-hours has 40,000."""
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_ADVICE: Final = "ask for the release again"


def is_plain_path(name: str) -> bool:
    r"""Return whether a name is a relative path that leads to a place below its folder on every system.

    >>> is_plain_path("daily_averages_use/published_month=2026-11/daily_averages_use.parquet")
    True
    >>> [name for name in ("../x", "a/../x", "/x", "a//x", "a/", ".", "", "C:x", "a\\x", "a\0") if is_plain_path(name)]
    []
    """
    segments = name.split("/")
    return (
        name.isprintable()  # before it is encoded: half a character cannot be
        and len(name.encode()) <= _MAX_NAME_BYTES
        and not any(character in name for character in "\\:")
        and all(segment.strip(". ") and len(segment.encode()) <= _MAX_SEGMENT_BYTES for segment in segments)
    )


def plain_path(name: str, source: str) -> str:
    """Return a name that was read in `source`, such as SHA256SUMS, if it is a plain relative path.

    Raises:
        InputError: it is not.

    >>> plain_path("../x", "SHA256SUMS")
    Traceback (most recent call last):
        ...
    agedp_data.errors.InputError: SHA256SUMS: '../x' is no plain path below its folder; do not use it
    """
    if not is_plain_path(name):
        raise InputError(f"{source}: '{_shown(name)}' is no plain path below its folder; do not use it")
    return name


def regular_file(folder: Path, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> Path:
    """Return the path of a file below a folder, if it is a regular file of limited size that no link leads to.

    Args:
        folder: may be a link itself.
        name: relative path of the file.
        max_bytes: largest size.

    Raises:
        InputError: the name is no plain path, the file is a link, a folder, a pipe or a device, or it is larger.
        OSError: the file does not exist, or its folder denies access.
    """
    path = folder
    for segment in plain_path(name, "release folder").split("/"):
        path /= segment
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            link = path.relative_to(folder).as_posix()
            raise InputError(f"{_shown(link)} is a link, not a file; replace it by the file, or {_ADVICE}")
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
        raise InputError(f"{_shown(name)} is {kind}, not a file; {_ADVICE}")
    if status.st_size > max_bytes:
        raise InputError(
            f"{_shown(name)} has {status.st_size:,} bytes, more than the {max_bytes:,} of such a file; {_ADVICE}"
        )
    return path


def _shown(name: str) -> str:
    return escape_text(name, 200)


def read_small_file(folder: Path, name: str) -> bytes:
    """Return the content of a file below a folder that is parsed as a whole, of at most 4 MiB.

    Raises:
        InputError, OSError: as `regular_file`.
    """
    return regular_file(folder, name, max_bytes=MAX_TEXT_BYTES).read_bytes()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of an ASCII file with their ends, one in memory at a time.

    Raises:
        ValueError: a line is longer than 16 MiB, or not ASCII.
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"a line has more than {MAX_LINE_BYTES:,} bytes")
            yield line.decode("ascii")


def parse_json(text: str | bytes, *, max_values: int = MAX_VALUES) -> Any:  # noqa: ANN401  (any JSON value)
    """Return the value of a JSON text that somebody else wrote.

    Raises:
        ValueError: no JSON in UTF-8; nested more than 64 deep, about more than `max_values` values, a key twice in one
            object, or a number that is not finite.

    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    ValueError: a key is there twice
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    if text.count(",") > max_values:
        raise ValueError("it has too many values")
    check_nesting(text)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)
    except ValueError as error:
        if "set_int_max_str_digits" in str(error):
            raise ValueError("a number has too many digits") from None
        raise


def check_nesting(text: str) -> None:
    """Check that a JSON text is not nested more than 64 deep: parsers of JSON, and readers of its value, are recursive.

    Raises:
        ValueError: it is.
    """
    if text.count("[") + text.count("{") <= _MAX_DEPTH:
        return
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", _JSON_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


# --------------------------------------------------------------------------------------------------
# Parquet files that somebody else wrote -> tables, if they cannot be much larger in memory than their release on disk.
#
# A file of 20 kB may contain 10^9 rows, and one text of its dictionary may stand in each of them. Its footer is looked
# at before its rows.
#
# Decisions:
#
# * A table has at most as many rows as the ledger rows of its folder have bytes: each line of it follows from a value
#   there, which has at least two. So no number of households, groups or years is a limit.
# * Columns are numbers, dates and texts; the columns that a table has to have are compared later.
# * A footer is believed about sizes. One that understates them is not met here.
# --------------------------------------------------------------------------------------------------

_MAX_FOOTER_BYTES: Final = 2**22
_MAX_ROW_BYTES: Final = 1000
_MAX_TEXT_BYTES: Final = 1000
_MAX_ANY_BYTES: Final = 2**22
"""Uncompressed size of a table of however few rows [bytes]."""
_SMALL_BYTES: Final = 2**26
"""Texts of this size in memory need no look at their lengths [bytes]."""


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
        is_flat = all(pa.types.is_primitive(field.type) or _is_text(field.type) for field in schema)
        if not is_flat or len(set(schema.names)) < len(schema):
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
    columns = [chunk.dictionary for text in texts for chunk in table[text].chunks]
    longest = (pc.max(pc.binary_length(column)).as_py() or 0 for column in columns)
    if max(longest, default=0) > _MAX_TEXT_BYTES:
        raise InputError(f"{escape_text(name)} has a text of more than {_MAX_TEXT_BYTES:,} bytes; {_ADVICE}")
    return table.cast(schema)


def _check_footer(path: Path, name: str) -> None:
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - 8, 0))
        if int.from_bytes(stream.read(4), "little") > _MAX_FOOTER_BYTES:
            raise InputError(f"{escape_text(name)} is missing or damaged; {_ADVICE}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _declared_size(metadata: pq.FileMetaData) -> tuple[int, list[int]]:
    """Return the rows of a file, by the largest figure that its footer gives, and the uncompressed bytes by column."""
    values, sizes = [0] * metadata.num_columns, [0] * metadata.num_columns
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for number in range(metadata.num_columns):
            column = group.column(number)
            values[number] += column.num_values
            sizes[number] += column.total_uncompressed_size
    return max([metadata.num_rows, *values]), sizes
