"""The first rows of a file or a table, checked before a series begins: dates, and the interval between readings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.store.store import Store
from agedp_data.datasets import file_listing, parquet_parsing
from agedp_data.datasets.chunking import Chunk
from agedp_data.datasets.csv_lines import first_cells, raw_cells, split_fields
from agedp_data.datasets.csv_parsing import BlockLayout, parse_lines
from agedp_data.datasets.file_listing import InputFile
from agedp_data.datasets.filesystem import format_location
from agedp_data.datasets.intervals import (
    DAY_MINUTES,
    common_interval,
    have_early_midnights,
    interval_remedy,
    times_of_rows,
)
from agedp_data.datasets.layout import Header, Layout, Records
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Bytes, Flags, ReadingRules, RejectionReason
from agedp_data.errors import InputError, PreflightFailed
from agedp_data.messages import escape_text

_NO_ROW = (RejectionReason.FIELDS, RejectionReason.HOUSEHOLD, RejectionReason.LINE)
_SHORTENED = re.compile(r"\d(\.\d+)?E\+\d+")  # a spreadsheet; programs write 1.2e+12
_SUFFIX: Final = 4
_SHOWN_TEXTS: Final = 5
_FIRST_ROWS, _OFF_GRID_SHARE, _MIN_OFF_GRID_ROWS = 1000, 0.1, 8


@dataclass(frozen=True, slots=True)
class _Rows:
    """The first rows of a file or a table.

    Attributes:
        reason: why each record is rejected, if it is.
        is_off_grid: which records lie between the marks of the interval.
        lines: the texts of the rows.
        times: the timestamps of each household, in minutes and in the order of the rows.
        minutes: the minutes between readings; None if the rows do not show them.
    """

    reason: Bytes
    is_off_grid: Flags
    lines: Sequence[str]
    times: Sequence[Sequence[int]] = ()
    minutes: int | None = None


def check_first_rows(source: InputFile, data_start: int, header: Header, store: Store) -> None:
    """Check the first rows of a file.

    Raises:
        PreflightFailed: they have no valid date, or mostly an interval other than declared.
    """
    first_rows = _first_table_rows if file_listing.is_parquet(source.location) else _first_lines
    error = _first_rows_error(store, header, first_rows(source, data_start, header, store))
    if error is not None:
        raise PreflightFailed(private=f"{format_location(source.location)}: {error.private}")


def first_records(source: InputFile, data_start: int, header: Header, layout: Layout, rules: ReadingRules) -> Records:
    """Return the records of the first rows of a file, as a run reads them."""
    if file_listing.is_parquet(source.location):
        first_rows = Chunk(source, 0, data_start, _FIRST_ROWS)
        table = next(parquet_parsing.read_tables(first_rows, header, batch_rows=_FIRST_ROWS))
        return parquet_parsing.parse_table(table, layout=layout, header=header, rules=rules).records
    head = file_listing.read_head(source)[data_start:]
    rows = head[: head.rfind(b"\n") + 1] or head
    return parse_lines(rows, layout=layout, header=header, rules=rules).records


def texts_of_file(source: InputFile, data_start: int, header: Header, store: Store) -> str:
    """Return the texts that the first rows have where `where` or the suffixes ask for others; confidential."""
    first_rows = _first_table_rows if file_listing.is_parquet(source.location) else _first_lines
    return _unasked_texts(first_rows(source, data_start, header, store).lines, header, store)


def texts_of_table(table: pa.Table, header: Header, store: Store) -> str:
    """Return the texts that the first rows of a table have where `where` asks for others; confidential."""
    lines = parquet_parsing.lines_of_table(table.slice(0, _FIRST_ROWS), header)
    return _unasked_texts(lines, header, store)


def _unasked_texts(lines: Sequence[str], header: Header, store: Store) -> str:
    """Return that no row has a text that is asked for, and up to five that its column has; "" of other datasets.

    Of NEM12 these are the suffixes of the channels, in the 200 records.
    """
    key = "[input.columns] where" if store.rules.columns else "[input] suffixes"
    if store.rules.columns is None:
        if not isinstance(store.layout, BlockLayout):
            return ""
        blocks = [cells for cells in map(split_fields, lines) if cells[:1] == ["200"] and len(cells) > _SUFFIX]
        found = {"suffix": [cells[_SUFFIX] for cells in blocks]}
    else:
        fields, separator = len(header.names), header.separator
        found = {
            f"column {name}": list(first_cells(lines, header.columns.index(name), fields=fields, separator=separator))
            for name, _ in store.rules.columns.where
        }
    texts = {place: ", ".join(list(dict.fromkeys(cells))[:_SHOWN_TEXTS]) for place, cells in found.items()}
    shown = [f"{place} has {escape_text(of_place, 200)}" for place, of_place in texts.items()]
    return f"no row has the text that {key} asks for; in the first rows {', '.join(shown)}"


def check_first_table_rows(table: pa.Table, header: Header, store: Store) -> None:
    """Check the first rows of a table in memory as those of a file.

    Raises:
        PreflightFailed: they have no valid date, or mostly an interval other than declared.
    """
    error = _first_rows_error(store, header, _rows_of_table(table.slice(0, _FIRST_ROWS), header, store))
    if error is not None:
        raise PreflightFailed(private=f"readings: {error.private}")


def _first_rows_error(store: Store, header: Header, rows: _Rows) -> InputError | None:
    """Return the error about first rows without a valid date, or mostly with an interval other than declared."""
    reason, lines = rows.reason, rows.lines
    is_undated, is_no_row = reason == RejectionReason.DATE, np.isin(reason, _NO_ROW)
    needs_date = bool(is_undated.any()) or (isinstance(store.layout, BlockLayout) and len(reason) > 0)
    if needs_date and (is_undated | is_no_row).all():
        return store.layout.date_format_error(lines, header)
    if len(reason) and (reason == RejectionReason.FIELDS).all():
        problem = f"no first row has {len(header.names)} cells, as the header has"
        cells = raw_cells(lines[0], header.separator)
        if len(cells) == len(header.names) + 1 and not cells[-1]:
            return InputError(f"{problem}: each ends with a separator; add one at the end of the header")
        return InputError(f"{problem}, but {len(cells)}; is a text with a separator in it, or a comma, without quotes?")
    declared, minutes = store.layout.interval_minutes, rows.minutes
    if minutes is not None and minutes != declared:
        problem = f"readings are {minutes} minutes apart, not {declared}"
        return InputError(f"{problem}; {interval_remedy(minutes, is_long=store.rules.columns is not None)}")
    cause = _odd_form(rows, header, declared)
    return None if cause is None else InputError(cause)


def _odd_form(rows: _Rows, header: Header, interval_minutes: int) -> str | None:
    """Return what is wrong with the midnights, the household ids or the interval of rows that can be read."""
    if have_early_midnights(rows.times, interval_minutes):
        problem = "00:00 follows the last reading of its own date, as if it ended that day"
        return f"{problem}; write 24:00 or the next date, or sort the rows by time"
    if _are_shortened(rows.lines, header):
        problem = "the household ids are shortened numbers such as 1.23E+12, which several households may share"
        return f"{problem}; write them in full, as text"
    off_grid = int(rows.is_off_grid[:_FIRST_ROWS].sum())
    if off_grid > max(_MIN_OFF_GRID_ROWS, _OFF_GRID_SHARE * min(len(rows.reason), _FIRST_ROWS)):
        problem = f"more than a tenth of the first rows lie between the {interval_minutes}-minute marks"
        is_hours = interval_minutes > INTERVAL_MINUTES
        hour = ", or day_zone, in which an hour must begin with a full hour" if is_hours else ""
        return f"{problem}; correct the timestamps, or [input] interval_minutes{hour}"
    return None


def _first_lines(source: InputFile, data_start: int, header: Header, store: Store) -> _Rows:
    head = file_listing.read_head(source)[data_start:]
    rows = head[: head.rfind(b"\n") + 1] if len(head) + data_start == file_listing.HEAD_BYTES else head
    lines = [line.decode("latin-1").removesuffix("\r") for line in rows.split(b"\n")]
    if isinstance(store.layout, BlockLayout):
        reason = np.concatenate([chunk.records.reason for chunk in store.layout.parse_batches([rows], store.rules)])
        return _Rows(reason, np.zeros(len(reason), bool), lines)
    records = parse_lines(rows, layout=store.layout, header=header, rules=store.rules).records
    return _rows(records, header, lines, times_of_rows(lines, header))


def _first_table_rows(source: InputFile, data_start: int, header: Header, store: Store) -> _Rows:
    first_rows = Chunk(source, 0, data_start, _FIRST_ROWS)
    table = next(parquet_parsing.read_tables(first_rows, header, batch_rows=_FIRST_ROWS), None)
    if table is None:
        return _Rows(np.zeros(0, np.uint8), np.zeros(0, bool), [])
    return _rows_of_table(table, header, store)


def _rows_of_table(table: pa.Table, header: Header, store: Store) -> _Rows:
    records = parquet_parsing.parse_table(table, layout=store.layout, header=header, rules=store.rules).records
    times = [minutes.tolist() for minutes in parquet_parsing.minutes_by_household(table, header)]
    return _rows(records, header, parquet_parsing.lines_of_table(table, header), times)


def _rows(records: Records, header: Header, lines: Sequence[str], times: Sequence[Sequence[int]]) -> _Rows:
    minutes = common_interval(times) or _minutes_of_days(records, header)
    return _Rows(records.reason, records.is_off_grid(), lines, times, minutes)


def _are_shortened(lines: Sequence[str], header: Header) -> bool:
    """Return whether household ids are numbers with an exponent, as spreadsheets shorten long ones."""
    if "household" not in header.names:
        return False
    position = header.names.index("household")
    cells = [*first_cells(lines, position, fields=len(header.names), separator=header.separator)]
    return bool(cells) and all(map(_SHORTENED.fullmatch, cells))


def _minutes_of_days(records: Records, header: Header) -> int | None:
    """Return the minutes of a day if all rows have the same time of day on several days, as dates alone have."""
    time = records.time[records.names_half_hour(np.arange(len(records.time)))]
    if not header.has_timestamps:
        return None
    days, slots = np.unique(time // SLOTS), np.unique(time % SLOTS)
    is_daily = len(slots) == 1 and len(days) > 1 and len(time) >= _MIN_OFF_GRID_ROWS
    return DAY_MINUTES if is_daily else None
