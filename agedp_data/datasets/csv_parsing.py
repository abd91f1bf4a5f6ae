"""From the lines of one chunk to records: `pyarrow.csv` with declared types, never inferred.

A chunk whose cells all have their declared type is parsed once. Otherwise only the other cells are parsed one by one
with the same converter, so whether a cell is accepted does not depend on the rest of the chunk. Timestamps that are not
ISO are always parsed one by one (`timestamps`). Rejected rows are returned as text for the quarantine files.

Lines that are broken (`csv_lines`) or have another number of fields are repaired first, so that Arrow reads one row per
line. The repaired line has the household and the time of the original, whatever its energy contains: the half-hours
that the rows of a household name depend on no energy, and a roster is read off them (`store.named_days`). Of a table
with a column per meter it has the other meters' cells as well; every other repaired line is rejected.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import lru_cache
from typing import Any, Final, Protocol, Self, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from agedp_data.datasets import csv_lines, validation
from agedp_data.datasets import layout as layouts
from agedp_data.datasets.layout import Columns, Header, Layout, QuarterTimes, Records
from agedp_data.datasets.timestamps import EPOCHS, ISO, LOCAL_ISO, SHORTEST_ISO, day_number, parse_timestamp
from agedp_data.datasets.validation import Bytes, Flags, Int32s, Ints, ReadingRules, RejectionReason

# --------------------------------------------------------------------------------------------------
# ISO timestamps of one width as whole columns: eight characters of all rows are one array of 64-bit words.
#
# Files contain millions of timestamps such as `2013-01-31 00:30:00.0000000`, all of one width. Their digits are
# checked and combined by arithmetic on words instead of parsing one cell after the other. A cell is parsed here only
# if it has exactly this form, an existing minute of the years 1970 to 2199 and no seconds; all other cells are left to
# `csv_parsing`, so the result of a cell is the same whichever of the two parses it.
#
# The words of `2013-01-31 00:30` are `2013-01-` and `31 00:30`: the month, parsed once for each run of equal months,
# and the minute within it.
# --------------------------------------------------------------------------------------------------

_Words = np.ndarray[Any, np.dtype[np.uint64]]

_WORD: Final = 8
_ZERO_SECONDS: Final = b":00.000000000"
_WIDTHS: Final = (SHORTEST_ISO, SHORTEST_ISO + 3, *range(SHORTEST_ISO + 5, SHORTEST_ISO + len(_ZERO_SECONDS) + 1))
_MINUTES_OF_DAY, _QUARTERS_OF_DAY, _QUARTER_MINUTES = 1440, 96, 15
_MAX_MONTHS_PER_ROW: Final = 1 / 16
_MONTH = re.compile(rb"(\d{4})-(\d\d)-")


def _word(characters: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(characters, "little"))


_TOP_BITS = _word(b"\x80" * _WORD)
_ABOVE_NINE = _word(bytes([0x76, 0x76, 0x7F, 0x76, 0x76, 0x7F, 0x76, 0x76]))  # added to a digit above 9: the top bit
_TENS_AND_ONES = np.uint64(10 * 256 + 1)
_DAY_HOUR_MINUTE = _word(b"\xff\x00\x00\xff\x00\x00\xff\x00")
_TOO_LATE = _word(bytes([0x80 - 32, 0, 0, 0x80 - 24, 0, 0, 0x80 - 60, 0]))
_MINUTE_OF_MONTH = np.uint64(_MINUTES_OF_DAY << 48 | 60 << 24 | 1)  # a product's top 16 bits are their sum


def parse_iso_cells(cells: pa.Array) -> tuple[Int32s, Bytes, Flags] | None:
    """Return quarters of an hour since 1970, the minutes past them, and which cells are not parsed here.

    None if the cells have different widths, none of an ISO timestamp, or many changes of the month. The first two
    results of a cell that is not parsed have no meaning.

    >>> cells = pa.array(["2013-01-31 00:30:00", "2013-01-31 00:31:00", "2013-01-31 00:31:07"])
    >>> [values.tolist() for values in parse_iso_cells(cells)]
    [[1510658, 1510658, 1510658], [0, 1, 1], [False, False, True]]

    Args:
        cells: texts or bytes without nulls, shape (n,), at least one.
    """
    width = _common_width(cells)
    if width not in _WIDTHS:
        return None
    months = _load_words(cells, width, 0)
    starts = np.append(0, np.flatnonzero(months[1:] != months[:-1]) + 1)
    if len(starts) > max(1.0, len(cells) * _MAX_MONTHS_PER_ROW):
        return None
    minute, is_other = _minutes_of_month(cells, width)
    if width > SHORTEST_ISO:
        is_other |= _have_seconds(cells, width)
    first_quarter, minutes = np.array([_month_of_word(int(word)) for word in months[starts]], np.int32).T
    lengths = np.diff(starts, append=len(cells))
    latest, earliest = (reduction.reduceat(minute, starts) for reduction in (np.maximum, np.minimum))
    if ((latest >= minutes) | (earliest < _MINUTES_OF_DAY)).any():  # day 0 or 31 February
        is_other |= (minute >= np.repeat(minutes, lengths)) | (minute < _MINUTES_OF_DAY)
    quarter = minute // np.int32(_QUARTER_MINUTES)
    past: Bytes = (minute - quarter * np.int32(_QUARTER_MINUTES)).astype(np.uint8)
    quarter += np.repeat(first_quarter, lengths)
    return quarter, past, is_other


def _common_width(cells: pa.Array) -> int:
    """Return the bytes of each cell if all have as many, else 0."""
    offsets = np.frombuffer(cells.buffers()[1], np.int32)[cells.offset : cells.offset + len(cells) + 1]
    widths = offsets[1:] - offsets[:-1]
    return int(widths[0]) if widths.min() == widths.max() else 0


def run_starts(cells: pa.Array) -> Ints | None:
    """Return where a cell differs from the one before, from 0 on; None if the cells have different widths, or none.

    >>> run_starts(pa.array(["A1", "A1", "B1", "A1"])).tolist()
    [0, 2, 3]

    Args:
        cells: texts or bytes without nulls, shape (n,).
    """
    width = _common_width(cells) if len(cells) else 0
    if not width:
        return None
    _, offsets, characters = cells.buffers()
    first = int(np.frombuffer(offsets, np.int32)[cells.offset])
    column = np.frombuffer(characters, np.uint8)[first : first + width * len(cells)]
    changed = np.flatnonzero(column[width:] != column[:-width]) // width + 1
    is_first = np.ones(len(changed), bool)
    is_first[1:] = changed[1:] != changed[:-1]
    return np.append(0, changed[is_first])


def _load_words(cells: pa.Array, width: int, position: int) -> _Words:
    """Return eight characters of each cell, from `position` on, as words whose lowest byte is the first character."""
    _, offsets, characters = cells.buffers()
    first = int(np.frombuffer(offsets, np.int32)[cells.offset])
    return np.ascontiguousarray(np.ndarray(len(cells), "<u8", characters, first + position, (width,)))


def _minutes_of_month(cells: pa.Array, width: int) -> tuple[Int32s, Flags]:
    """Return the minutes from the beginning of the month's day 0 of `31 00:30`, and which cells have another form.

    Digits that are subtracted from their characters have no top bit, also after the addition of 0x76; separators that
    are subtracted are 0. A product with 2561 adds ten times the first of two digits to the second.
    """
    words = _load_words(cells, width, _WORD)
    separator = words[:1].tobytes()[2:3]
    digits = words ^ _word(b"00" + (separator if separator in b" T" else b" ") + b"00:00")
    parts = ((digits * _TENS_AND_ONES) >> np.uint64(8)) & _DAY_HOUR_MINUTE
    flaws = (digits | (digits + _ABOVE_NINE) | (parts + _TOO_LATE)) & _TOP_BITS
    minute = ((parts * _MINUTE_OF_MONTH) >> np.uint64(48)).astype(np.int32)
    return minute, flaws != 0


def _have_seconds(cells: pa.Array, width: int) -> Flags:
    """Return which cells do not end with zero seconds, shape (n,)."""
    ending = _ZERO_SECONDS[: width - SHORTEST_ISO]
    last = ending[-_WORD:].rjust(_WORD, b"\0")  # of a shorter ending only its own bytes are compared
    mask = _word(bytes(0xFF * (byte > 0) for byte in last))
    differences = (_load_words(cells, width, width - _WORD) & mask) ^ _word(last)
    if len(ending) > _WORD:
        differences |= _load_words(cells, width, SHORTEST_ISO) ^ _word(ending[:_WORD])
    have_seconds: Flags = differences != 0
    return have_seconds


@lru_cache(maxsize=4096)
def _month_of_word(word: int) -> tuple[int, int]:
    """Return the first quarter of day 0 of the month `2013-01-`, and the minutes to its end; 0 minutes for no month."""
    match = _MONTH.fullmatch(word.to_bytes(_WORD, "little"))
    year, month = (int(digits) for digits in match.groups()) if match else (0, 0)
    if not (validation.FIRST_DAY.year <= year <= validation.LAST_DAY.year and 1 <= month <= 12):
        return 0, 0
    days = calendar.monthrange(year, month)[1]
    return (day_number(date(year, month, 1)) - 1) * _QUARTERS_OF_DAY, (days + 1) * _MINUTES_OF_DAY


def quarters_of_ns(ns: Ints) -> tuple[Int32s, Bytes]:
    """Return quarters of an hour since 1970 of nanoseconds, and the minutes past them; 255 if it is not on a minute.

    >>> [values.tolist() for values in quarters_of_ns(np.array([-1, 0, 960_000_000_000]))]
    [[-1, 0, 1], [255, 0, 1]]
    """
    minute = ns // _MINUTE_NS
    quarter = minute // _QUARTER_MINUTES
    past = np.where(minute * _MINUTE_NS == ns, minute - quarter * _QUARTER_MINUTES, layouts.BETWEEN_MINUTES)
    return quarter.astype(np.int32), past.astype(np.uint8)


_MINUTE_NS: Final = 60 * 10**9


# --------------------------------------------------------------------------------------------------
# Lines -> columns -> records.
# --------------------------------------------------------------------------------------------------

_KEPT = int(RejectionReason.KEPT)  # numpy compares bytes with a member of an enumeration as 64-bit integers
_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan(\([0-9a-z_]*\))?)", re.IGNORECASE)
_TEXT_TYPES = {pa.timestamp("ns"): pa.string(), pa.dictionary(pa.int32(), pa.binary()): pa.binary()}
_FIRST_CELLS, _MIN_RUN = 512, 8
_MAX_OTHER_CELLS = 0.1
_NO_TIME_NS = 1800 * 10**9  # within the first half-hour of 1970, whether an interval ends or begins there
_MAX_EPOCH_DIGITS = 13
_NO_ENERGY = "-1"  # a number, so that the column is parsed at once, and never kept
_CLOCK, _INSTANT = pa.timestamp("ns"), pa.timestamp("ns", "UTC")


HalfHours = Callable[[Ints], Flags]
"""Which of some records name a household and a half-hour."""


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """One parsed chunk: the records (n) of its rows, and the rejected rows (a).

    `row` (n) and `rejected_row` (a) are row numbers within the chunk, from 0. A rejected row has a record as well, with
    its reason. Rows of another category are not in `rejected_row`, so no quarantine file has them. `names_half_hour`
    (a) tells which rejected rows have a readable household and time (`Records.names_half_hour`).
    """

    rows_read: int
    records: Records
    row: Int32s
    rejected_row: Ints
    rejected_reason: Bytes
    rejected_text: tuple[str, ...]
    names_half_hour: Flags

    @classmethod
    def of(cls, records: Records, rejected_texts: Callable[[Ints], Iterable[str]], names_half_hour: HalfHours) -> Self:
        """Return the chunk of the records of its rows; `rejected_texts` and `names_half_hour` take rejected ones."""
        reason = records.reason
        rejected = np.flatnonzero((reason != _KEPT) & (reason != int(RejectionReason.CATEGORY)))
        texts = tuple(rejected_texts(rejected)) if len(rejected) else ()
        row = np.arange(len(reason), dtype=np.int32)
        return cls(len(reason), records, row, rejected, reason[rejected], texts, names_half_hour(rejected))


@runtime_checkable
class BlockLayout(Layout, Protocol):
    """A layout whose lines belong to the block before them, so that it parses the batches of a file one by one."""

    def parse_batches(self, batches: Iterable[bytes], rules: ReadingRules) -> Iterator[ParsedChunk]:
        """Yield the parsed batches of whole lines of a file, from its first row or from the beginning of a block on."""


def parse_lines(data: bytes, *, layout: Layout, header: Header, rules: ReadingRules) -> ParsedChunk:
    """Parse a chunk of whole lines; every line is one row, kept or rejected with a reason.

    The result for one line does not depend on any other line, and the result for a cell of a wide table on no other
    household's cell, as long as the line has as many cells as the header.

    Args:
        data: bytes of whole lines, without the header.
        layout: layout of the file.
        header: the header that the layout recognised.
        rules: settings of [input] that decide how a row is parsed.
    """
    columns, reason_by_line = _parse_rows(data, header)
    records = layout.records(columns, header, rules)
    names_half_hour = records.names_half_hour
    if reason_by_line:
        width, reason = header.readings_per_row, records.reason.copy()
        lines = np.array(list(reason_by_line))
        reason[(lines[:, None] * width + np.arange(width)).ravel()] = np.repeat(list(reason_by_line.values()), width)
        records = replace(records, reason=reason)
    return ParsedChunk.of(records, lambda rejected: _rejected_texts(data, rejected, header), names_half_hour)


def _rejected_texts(data: bytes, rejected: Ints, header: Header) -> tuple[str, ...]:
    """Return the lines of rejected rows; of a row with several readings what all share, the column, and the cell."""
    width = header.readings_per_row
    if width == 1:
        return csv_lines.line_texts(data, rejected)
    lines, number = np.unique(rejected // width, return_inverse=True)
    cells = [
        csv_lines.split_fields(text, header.separator) or csv_lines.raw_cells_from_end(text, header.separator)
        for text in csv_lines.line_texts(data, lines)
    ]
    positions = [header.names.index(name) for name in header.energies]
    shared = [i for i, name in enumerate(header.names) if name in header.types and i not in positions]
    texts = []
    for line, position in zip(number.tolist(), (rejected % width).tolist(), strict=True):
        fields, column = cells[line], positions[position]
        is_whole = len(fields) == len(header.names)
        words = [*(fields[i] for i in shared), header.columns[column], fields[column]] if is_whole else []
        texts.append(",".join(words))
    return tuple(texts)


def _parse_rows(data: bytes, header: Header) -> tuple[Columns, dict[int, RejectionReason]]:
    """Return the columns of all lines, and the reason of each line that is rejected as a whole by its number."""
    number = csv_lines.count_sound_lines(data, header.separator)
    if number is not None and csv_lines.is_utf8(data):  # else Arrow cannot skip rows with a wrong number of fields
        columns = parse_columns(data, header)
        if columns.rows == number:
            return columns, {}
    ends = csv_lines.line_ends(data)
    is_broken = csv_lines.broken_lines(data, ends, header.separator)
    # lines with an unclosed quote are dropped first: the quote would hide commas of later lines
    sound = csv_lines.drop_lines(data, ends, is_broken)
    is_bad = is_broken.copy()
    counts = csv_lines.field_counts(sound, csv_lines.line_ends(sound), header.separator)
    is_bad[~is_broken] = counts != len(header.names)
    reason_by_line: dict[int, RejectionReason] = {}
    pieces, start = [], 0
    for line in np.flatnonzero(is_bad).tolist():
        first, end = int(ends[line - 1]) + 1 if line else 0, int(ends[line])
        text = data[first:end].decode("latin-1").removesuffix("\r")
        repaired = _with_shared_cells(text, header) if is_broken[line] else None
        if repaired is None:
            reason_by_line[line] = RejectionReason.LINE if is_broken[line] else RejectionReason.FIELDS
            repaired = _without_energies(text, header)
        pieces += [data[start:first], repaired.encode("latin-1") + b"\n"]
        start = end + 1
    return parse_columns(b"".join([*pieces, data[start:]]), header), reason_by_line


def _with_shared_cells(line: str, header: Header) -> str | None:
    """Return a broken line of a wide table, its damaged energies replaced by a text that is no number.

    None if nobody can tell which cell belongs to whom. A quote that should enclose the separators of a cell may be the
    damaged one: those of a text in an ignored column, or of a number whose decimal mark is the separator.
    """
    if not header.is_shared or len(line) > csv_lines.LONGEST_LINE:
        return None
    cells = csv_lines.raw_cells_from_end(line, header.separator)
    if len(cells) != len(header.names):
        return None
    no_number = "?" * (1 + max(map(len, header.null_values), default=0))
    for i in (i for i, cell in enumerate(cells) if not csv_lines.is_sound_cell(cell)):
        may_enclose = '"' in cells[i] and header.separator in (header.decimal, header.thousands)
        if header.names[i] not in header.energies or may_enclose:
            return None
        cells[i] = no_number
    return header.separator.join(cells)


def _without_energies(line: str, header: Header) -> str:
    """Return a bad line with the cells that name a household and a time, as far as they can be read, and no energy.

    Cells before the first energy are counted from the beginning of the line, those after the last one from its end. A
    time between energies is looked for in both. A line with too few cells is read if household and time stand on the
    same side of the energies: a household that is not there must not be replaced by a number.
    """
    names, separator = header.names, header.separator
    is_cut = len(line) > csv_lines.LONGEST_LINE
    from_start = csv_lines.raw_cells(line[: csv_lines.LONGEST_LINE], separator)[: -1 if is_cut else None]
    from_end = [] if is_cut else csv_lines.raw_cells_from_end(line, separator)
    energies = [names.index(name) for name in header.energies]
    cells = [_NO_ENERGY if i in energies else "" for i in range(len(names))]
    sides = {i < energies[0] for i, name in enumerate(names) if name in header.types and i not in energies}
    if len(sides) > 1 and len(from_start) < len(names):
        return separator.join(cells)
    for i in (i for i, name in enumerate(names) if name in header.types and i not in energies):
        candidates = from_start[i : i + 1] if i < energies[-1] else []
        if i > energies[0] and len(from_end) >= len(names) - i:
            candidates = [*candidates, from_end[i - len(names)]]
        sound = [cell for cell in candidates if csv_lines.is_sound_cell(cell)]
        if len(sound) > 1 and names[i] == "time":
            sound = [cell for cell in sound if _is_time(cell, header)]
        cells[i] = sound[0] if sound else ""
    return separator.join(cells)


def _is_time(cell: str, header: Header) -> bool:
    texts = csv_lines.split_fields(cell, header.separator)
    return bool(texts) and parse_timestamp(texts[0].strip(" \t").encode("latin-1"), header.time_formats) is not None


def parse_columns(data: bytes, header: Header) -> Columns:
    """Return the columns of the rows with the right number of fields."""
    types = {name: _TEXT_TYPES.get(kind, kind) for name, kind in header.types.items()}
    try:
        table = _read_csv(data, header, types)
    except pa.ArrowInvalid:  # a cell is not a number
        types = {name: kind if kind == pa.binary() else pa.string() for name, kind in types.items()}
        table = _read_csv(data, header, types)
    values: dict[str, pa.Array] = {}
    unreadable: dict[str, Flags] = {}
    times: dict[str, QuarterTimes] = {}
    if parts := header.time_parts:
        texts = [pc.utf8_trim(layouts.one_array(table[name]), " \t") for name in parts]
        times["time"] = _parse_times(pc.binary_join_element_wise(*texts, " "), header)
    for name, kind in header.types.items():
        if name in parts:
            continue
        column = layouts.one_array(table[name])
        if pa.types.is_timestamp(kind):
            times[name] = _parse_times(column, header)
        elif pa.types.is_dictionary(kind):
            values[name] = _dictionary_of_runs(column)
        elif column.type != kind:
            values[name], unreadable[name] = parse_number_cells(column, header)
        else:
            values[name] = column
    return Columns(table.num_rows, values, unreadable, times)


def _read_csv(data: bytes, header: Header, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the columns of the rows with the right number of fields."""
    if not data[:64].strip(b"\r\n") and not data.strip(b"\r\n"):  # stripping the full chunk would copy it
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    if data.startswith(_BOM):
        data = b"\n" + data  # an empty line: no row may look like a byte order mark
    names, quote, nulls = list(header.names), '"' if b'"' in data else False, list(header.null_values)
    return csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 2, encoding="utf8"),
        csv.ParseOptions(delimiter=header.separator, invalid_row_handler=lambda _: "skip", quote_char=quote),
        csv.ConvertOptions(check_utf8=False, column_types=dict(types), include_columns=list(types), null_values=nulls,
                           strings_can_be_null=False, decimal_point=header.decimal),
    )  # fmt: skip


def _dictionary_of_runs(cells: pa.BinaryArray) -> pa.DictionaryArray:
    """Return cells as a dictionary; those of files sorted by household are compared with the one before only."""
    starts = run_starts(cells)
    if starts is not None and len(starts) * _MIN_RUN <= len(cells):
        of_runs = cells.take(layouts.arrow_numbers(starts)).dictionary_encode()
        lengths = np.diff(starts, append=len(cells))
    else:
        first = cells.slice(0, _FIRST_CELLS)
        if len(pc.run_end_encode(first).values) * _MIN_RUN > len(first):
            return cells.dictionary_encode()
        runs = pc.run_end_encode(cells)
        of_runs, lengths = runs.values.dictionary_encode(), np.diff(layouts.fill_nulls(runs.run_ends, 0), prepend=0)
    indices = np.repeat(layouts.fill_nulls(of_runs.indices, 0), lengths)
    return pa.DictionaryArray.from_arrays(layouts.arrow_numbers(indices), of_runs.dictionary, safe=False)


def _parse_times(cells: pa.StringArray, header: Header) -> QuarterTimes:
    """Return the timestamps of a column; cells that are not ISO of one width are parsed one by one."""
    is_local = any(time_format in (LOCAL_ISO, ISO) for time_format in header.time_formats)
    parsed = parse_iso_cells(cells) if is_local and len(cells) else None
    if parsed is None or np.count_nonzero(parsed[2]) > _MAX_OTHER_CELLS * len(cells):
        return quarter_times(*parse_timestamp_cells(cells, header))
    quarter, past, is_other = parsed
    times = QuarterTimes(quarter, past, np.zeros(len(cells), bool), np.zeros(len(cells), bool))
    if is_other.any():
        others = cells.take(layouts.arrow_numbers(np.flatnonzero(is_other)))
        of_others = quarter_times(*parse_timestamp_cells(others, header))
        for field in fields(times):
            getattr(times, field.name)[is_other] = getattr(of_others, field.name)
    return times


def quarter_times(ns: pa.Array, is_bad: Flags, is_instant: Flags) -> QuarterTimes:
    """Return timestamps in nanoseconds since 1970, null if they are none, as quarters of an hour."""
    quarter, past = quarters_of_ns(layouts.fill_nulls(ns.cast(pa.int64()), _NO_TIME_NS))
    return QuarterTimes(quarter, past, is_bad | layouts.is_null(ns), is_instant)


def parse_timestamp_cells(cells: pa.StringArray, header: Header) -> tuple[pa.Array, Flags, Flags]:
    """Return timestamps in nanoseconds since 1970, which cells are none, and which timestamps have a UTC offset."""
    all_false = np.zeros(len(cells), bool)
    if len(cells) and pc.min(pc.binary_length(cells)).as_py() >= SHORTEST_ISO:  # Arrow takes a date for its midnight
        for time_format, kind in ((LOCAL_ISO, _CLOCK), (ISO, _CLOCK), (ISO, _INSTANT)):
            if time_format in header.time_formats and (kind == _CLOCK or _have_minutes(cells)):
                with suppress(pa.ArrowInvalid):
                    return cells.cast(kind).cast(pa.int64()), all_false, all_false if kind == _CLOCK else ~all_false
    if (unit := EPOCHS.get("".join(header.time_formats))) and (numbers := _whole_numbers(cells)) is not None:
        return pc.multiply(numbers, unit), all_false, ~all_false
    distinct, codes = _distinct_cells(cells)
    timestamps = [parse_timestamp(cell, header.time_formats) for cell in distinct]
    values = pa.array([None if timestamp is None else timestamp.ns for timestamp in timestamps], pa.int64())
    is_bad = np.array([timestamp is None for timestamp in timestamps], bool)
    is_instant = np.array([timestamp is not None and timestamp.is_instant for timestamp in timestamps], bool)
    return values.take(codes), is_bad[codes], is_instant[codes]


def _whole_numbers(cells: pa.StringArray) -> pa.Array | None:
    """Return cells of up to 13 digits each as numbers above 0; None if one is another text."""
    is_plain = pc.all(pc.match_substring_regex(cells, "^[0-9]{0,13}[1-9][0-9]{0,13}$")).as_py()
    if not is_plain or pc.max(pc.binary_length(cells)).as_py() > _MAX_EPOCH_DIGITS:
        return None
    return cells.cast(pa.int64())


def _have_minutes(cells: pa.StringArray) -> bool:
    """Return whether every timestamp has minutes; before an offset Arrow accepts hours without minutes."""
    return bool(pc.all(pc.equal(pc.binary_slice(cells.cast(pa.binary()), 13, 14), b":")).as_py())


def parse_number_cells(cells: pa.StringArray, header: Header) -> tuple[pa.Array, Flags]:
    """Return the numbers of a column and which cells are none, by Arrow's rules for a column of numbers."""
    distinct, codes = _distinct_cells(cells)
    nulls = {text.encode() for text in header.null_values}
    marks = header.decimal.encode(), header.thousands.encode()
    numbers = [None if cell in nulls else _parse_number(cell, *marks) for cell in distinct]
    is_bad = np.array([n is None and cell not in nulls for n, cell in zip(numbers, distinct, strict=True)], bool)
    return pa.array(numbers, pa.float64()).take(codes), is_bad[codes]


def _parse_number(cell: bytes, decimal: bytes, thousands: bytes = b"") -> float | None:
    if thousands and thousands in cell:
        mark, point = re.escape(thousands), re.escape(decimal)
        is_grouped = re.fullmatch(rb"[+-]?\d{1,3}(?:%b\d{3})+(?:%b\d*)?" % (mark, point), cell)
        cell = cell.replace(thousands, b"") if is_grouped else b"?"
    if decimal != b".":
        cell = b"?" if b"." in cell else cell.replace(decimal, b".")
    return float(cell.partition(b"(")[0]) if _NUMBER.fullmatch(cell) else None


def _distinct_cells(cells: pa.StringArray) -> tuple[list[bytes], Ints]:
    """Return the distinct cells without padding, and the index of each row's cell in them."""
    encoded = pc.dictionary_encode(cells.cast(pa.binary()))
    return [cell.strip(b" \t") for cell in encoded.dictionary.to_pylist()], encoded.indices.to_numpy()
