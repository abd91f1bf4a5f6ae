"""Roster tables: Parquet columns `household_id`, `from`, `to` and group columns -> rows.

Columns are found by name, in any order. A household is a text or a whole number, a day a date or an ISO text; an empty
or missing `to` has not ended. Labels are texts, dictionaries of texts, or whole numbers; a missing label is empty. Rows
are numbered from 1. Errors name the column in public and the row in private: the row of a table is no line of a text
that its reader has in front of them.
"""

from __future__ import annotations

from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import InputError
from agedp_data.roster_csv import days_since_1970
from agedp_data.roster_rows import FIXED_COLUMNS, NO_LAST_DAY, ParsedRoster, check_header, roster_error
from agedp_data.text_columns import TextColumn

_BLANKS: Final = " \t"
_INDEX: Final = "__index_level_"
_FIRST_DAY, _LAST_DAY = day_number(date.min), day_number(date.max)
_MISSING, _WRONG = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).min) + 1


def parse_parquet(path: str, content: bytes) -> ParsedRoster:
    """Return the rows of a roster in a Parquet file.

    Raises:
        InputError: it is not Parquet, a column has another type, or a row cannot be parsed.
    """
    table = _read_table(path, content)
    names = [name for name in table.column_names if not name.startswith(_INDEX)]
    fixed = [name for name in FIXED_COLUMNS if name in names]
    check_header(path, fixed + [name.strip() for name in names if name not in fixed])
    texts = {name: _texts(path, name, table[name]) for name in names if name not in ("from", "to")}
    days = {name: _days(path, name, table[name]) for name in ("from", "to")}
    del table  # of a million households, so that its columns are not held twice
    is_row = _is_row(texts, days)
    _check_rows(path, texts["household_id"], days, is_row)
    if not is_row.all():
        texts = {name: column.filter(pa.array(is_row)) for name, column in texts.items()}
        days = {name: column[is_row] for name, column in days.items()}
    return ParsedRoster(
        TextColumn(texts["household_id"]),
        days["from"],
        np.where(days["to"] == _MISSING, NO_LAST_DAY, days["to"]),
        {name.strip(): TextColumn(column) for name, column in texts.items() if name != "household_id"},
        np.flatnonzero(is_row) + 1,
        "row",
    )


def _read_table(path: str, content: bytes) -> pa.Table:
    try:
        return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read(use_threads=False)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, ValueError):  # an ArrowInvalid quotes values
        raise roster_error(path, "is not Parquet, or is cut off or damaged; write it again") from None


def _texts(path: str, name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return a column of texts or whole numbers as texts without blanks around them; "" for a null."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if pa.types.is_null(kind) and name != "household_id":  # a column of labels without any label
        column, is_text = column.cast(pa.string()), True
    if not (is_text or pa.types.is_integer(kind)):
        raise roster_error(path, f"column {name} must be text or whole numbers")
    try:
        if pa.types.is_dictionary(column.type):
            encoded = column.unify_dictionaries().combine_chunks()
            joined = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        else:
            joined = _one_array(column.cast(pa.string()))
            joined = joined if name == "household_id" else joined.dictionary_encode()
        return _plain_texts(joined)
    except (pa.ArrowException, UnicodeDecodeError):
        raise roster_error(path, f"column {name} is not UTF-8 text") from None


def _plain_texts(array: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        array.validate(full=True)
        return pc.utf8_trim(array.fill_null(""), characters=_BLANKS)
    if array.null_count or array.dictionary.null_count:  # a null is the label ""
        return _plain_texts(array.cast(array.type.value_type).cast(pa.string())).dictionary_encode()
    labels = array.dictionary.cast(pa.string())
    labels.validate(full=True)
    return pa.DictionaryArray.from_arrays(array.indices, pc.utf8_trim(labels, characters=_BLANKS))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _days(path: str, name: str, column: pa.ChunkedArray) -> Ints:
    """Return the days of a column since 1970, `_MISSING` for none and `_WRONG` for what is no day."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _MISSING)
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        try:
            dates = column.cast(kind).cast(pa.date32())
            is_whole = pc.all(pc.equal(dates.cast(kind), column.cast(kind))).as_py() is not False
        except pa.ArrowException:
            is_whole = False
        if not is_whole:  # a time of day
            raise _day_error(path, name)
        numbers = _one_array(dates.cast(pa.int32()).cast(pa.int64()))
        days: Ints = numbers.fill_null(_MISSING).to_numpy(zero_copy_only=False)
        is_wrong = (days != _MISSING) & ((days < _FIRST_DAY) | (days > _LAST_DAY))
        return np.where(is_wrong, _WRONG, days) if is_wrong.any() else days
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise _day_error(path, name)
    texts = _texts(path, name, column)
    labels = np.array([_day_of(text) for text in texts.dictionary.to_pylist()] or [_MISSING], np.int64)
    numbers_of_rows: Ints = labels[texts.indices.to_numpy(zero_copy_only=False)]
    return numbers_of_rows


def _day_error(path: str, name: str) -> InputError:
    advice = "; write it as dates, without a time of day or a time zone"
    return roster_error(path, f"column {name} must contain dates or texts like 2013-01-31{advice}")


def _day_of(text: str) -> int:
    try:
        return days_since_1970(text) if text else _MISSING
    except ValueError:
        return _WRONG


def _is_row(texts: dict[str, pa.Array], days: dict[str, Ints]) -> Flags:
    """Return which rows have a value: a row without any is skipped, as an empty line is."""
    is_row: Flags = (days["from"] != _MISSING) | (days["to"] != _MISSING)
    for column in texts.values():
        is_row = is_row | ~_is_empty(column)
    return is_row


def _is_empty(column: pa.Array) -> Flags:
    is_encoded = pa.types.is_dictionary(column.type)
    lengths = pc.binary_length(column.dictionary if is_encoded else column)
    is_empty: Flags = pc.equal(lengths, 0).to_numpy(zero_copy_only=False).astype(bool)
    return is_empty[column.indices.to_numpy(zero_copy_only=False)] if is_encoded else is_empty


def _check_rows(path: str, households: pa.Array, days: dict[str, Ints], is_row: Flags) -> None:
    """Check the rows one by one.

    Raises:
        InputError: the first row with an error, and its first error.
    """
    first, last = days["from"], days["to"]
    problems: list[tuple[Flags, str, str]] = [
        (_is_empty(households), "household_id", "no household_id"),
        (first <= _WRONG, "from", "`from` must be a date like 2013-01-31"),
        (last == _WRONG, "to", "`to` must be a date like 2013-01-31"),
        ((last > _WRONG) & (last < first), "to", "`to` lies before `from`"),
    ]
    errors = [
        (int(rows[0]), column, text)
        for is_wrong, column, text in problems
        if len(rows := np.flatnonzero(is_wrong & is_row))
    ]
    if errors:
        row, column, text = min(errors, key=lambda error: error[0])
        raise roster_error(path, f"row {row + 1}: {text}", public=f"column {column}, in a row: {text}")
