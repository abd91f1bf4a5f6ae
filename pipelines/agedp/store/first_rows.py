"""The first rows of a file or a table, checked before a series begins: dates, and the interval between readings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from agedp.store.store import Store
from agedp_data.datasets import file_listing, parquet_parsing
from agedp_data.datasets.chunking import Chunk
from agedp_data.datasets.csv_lines import raw_cells
from agedp_data.datasets.csv_parsing import BlockLayout, parse_lines
from agedp_data.datasets.file_listing import InputFile
from agedp_data.datasets.filesystem import format_location
from agedp_data.datasets.intervals import DAY_MINUTES, common_interval, interval_of_rows, interval_remedy
from agedp_data.datasets.layout import Header, Layout, Records
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Bytes, Flags, ReadingRules, RejectionReason
from agedp_data.errors import InputError, PreflightFailed

_NO_ROW = (RejectionReason.FIELDS, RejectionReason.HOUSEHOLD, RejectionReason.LINE)
_FIRST_ROWS, _OFF_GRID_SHARE, _MIN_OFF_GRID_ROWS = 1000, 0.1, 8


def check_first_rows(source: InputFile, data_start: int, header: Header, store: Store) -> None:
    """Check the first rows of a file.

    Raises:
        PreflightFailed: they have no valid date, or mostly an interval other than declared.
    """
    first_rows = _first_table_rows if file_listing.is_parquet(source.location) else _first_lines
    error = _first_rows_error(store, header, *first_rows(source, data_start, header, store))
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


def check_first_table_rows(table: pa.Table, header: Header, store: Store) -> None:
    """Check the first rows of a table in memory as those of a file.

    Raises:
        PreflightFailed: they have no valid date, or mostly an interval other than declared.
    """
    error = _first_rows_error(store, header, *_rows_of_table(table.slice(0, _FIRST_ROWS), header, store))
    if error is not None:
        raise PreflightFailed(private=f"readings: {error.private}")


def _first_rows_error(
    store: Store, header: Header, reason: Bytes, is_off_grid: Flags, lines: Sequence[str], minutes: int | None
) -> InputError | None:
    """Return the error about first rows without a valid date, or mostly with an interval other than declared."""
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
    declared = store.layout.interval_minutes
    if minutes is not None and minutes != declared:
        problem = f"readings are {minutes} minutes apart, not {declared}"
        return InputError(f"{problem}; {interval_remedy(minutes, is_long=store.rules.columns is not None)}")
    off_grid = int(is_off_grid[:_FIRST_ROWS].sum())
    if off_grid > max(_MIN_OFF_GRID_ROWS, _OFF_GRID_SHARE * min(len(reason), _FIRST_ROWS)):
        problem = f"more than a tenth of the first rows lie between the {declared}-minute marks"
        hour = ", or day_zone, in which an hour must begin with a full hour" if declared > INTERVAL_MINUTES else ""
        return InputError(f"{problem}; correct the timestamps, or [input] interval_minutes{hour}")
    return None


def _first_lines(
    source: InputFile, data_start: int, header: Header, store: Store
) -> tuple[Bytes, Flags, list[str], int | None]:
    """Return the reasons of the first rows, which are off the grid, their lines, and the minutes between readings.

    The minutes are None if the rows do not show them.
    """
    head = file_listing.read_head(source)[data_start:]
    rows = head[: head.rfind(b"\n") + 1] if len(head) + data_start == file_listing.HEAD_BYTES else head
    lines = [line.decode("latin-1").removesuffix("\r") for line in rows.split(b"\n")]
    if isinstance(store.layout, BlockLayout):
        reason = np.concatenate([chunk.records.reason for chunk in store.layout.parse_batches([rows], store.rules)])
        return reason, np.zeros(len(reason), bool), lines, None
    records = parse_lines(rows, layout=store.layout, header=header, rules=store.rules).records
    minutes = interval_of_rows(lines, header) or _minutes_of_days(records, header)
    return records.reason, records.is_off_grid(), lines, minutes


def _first_table_rows(
    source: InputFile, data_start: int, header: Header, store: Store
) -> tuple[Bytes, Flags, list[str], int | None]:
    """Return what `_first_lines` returns, of a Parquet file."""
    first_rows = Chunk(source, 0, data_start, _FIRST_ROWS)
    table = next(parquet_parsing.read_tables(first_rows, header, batch_rows=_FIRST_ROWS), None)
    if table is None:
        return np.zeros(0, np.uint8), np.zeros(0, bool), [], None
    return _rows_of_table(table, header, store)


def _rows_of_table(table: pa.Table, header: Header, store: Store) -> tuple[Bytes, Flags, list[str], int | None]:
    parsed = parquet_parsing.parse_table(table, layout=store.layout, header=header, rules=store.rules)
    records = parsed.records
    minutes = common_interval(times.tolist() for times in parquet_parsing.minutes_by_household(table, header))
    minutes = minutes or _minutes_of_days(records, header)
    return records.reason, records.is_off_grid(), parquet_parsing.lines_of_table(table, header), minutes


def _minutes_of_days(records: Records, header: Header) -> int | None:
    """Return the minutes of a day if all rows have the same time of day on several days, as dates alone have."""
    time = records.time[records.names_half_hour(np.arange(len(records.time)))]
    if not header.has_timestamps:
        return None
    days, slots = np.unique(time // SLOTS), np.unique(time % SLOTS)
    is_daily = len(slots) == 1 and len(days) > 1 and len(time) >= _MIN_OFF_GRID_ROWS
    return DAY_MINUTES if is_daily else None
