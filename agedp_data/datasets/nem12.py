"""NEM12, the interval meter data of the Australian market: blocks of days, each of one channel of one meter point.

A file consists of records, one a line, of which the first cell is the number (AEMO, Meter Data File Format
Specification NEM12 & NEM13):

* 100 begins a file, 900 ends its data. Files that customers fetch from a distributor often lack both.
* 200 begins a block: meter point (NMI, here the household), configuration, register, suffix, data stream, serial
  number of the meter, unit, minutes of an interval, next read.
* 300 is a day: date, one value for each interval from midnight on, quality, reason, and when it was updated.
* 400 gives intervals of the day before it another quality; 500 and 600 are about the reading of the meter.

Decisions:

* Days are of Eastern Standard Time (UTC+10) without summer time, the market's time: each has 48 half-hours.
* The channels of a household are added up, told apart by suffix and meter (`Records.label`). By default these are all
  that begin with E, energy taken from the grid: general consumption and controlled loads. B is energy that the
  household feeds in; K and Q are reactive and no energy. What is not asked for is counted and names nobody.
* A row is a half-hour of a day. Shorter intervals are added up to half-hours in parts of a watt-hour. A half-hour of
  which a part is missing or rejected is rejected with the reason of that part.
* Quality N is a missing reading, of a day or of the intervals of a 400 record. All other qualities are kept.
* A line belongs to one household, so a bad line or cell of a day rejects its own half-hours only. A line of which
  nobody can tell the record may be a damaged 200 record: days after it belong to nobody until the next 200 record. So
  do those after a 200 record that is not valid, or that is part of a longer line because a line end is lost. A damaged
  400 record rejects its day: any interval may be missing.
* A line is one row if it is rejected and no day. Sound records without readings are no rows, and are noted: a file
  that is cut off has fewer 900 records than 100 records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from agedp_data.datasets import csv_lines, validation
from agedp_data.datasets.layout import Columns, Header, PublishedLayout, Records, fill_nulls, is_null, label_of
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import MISSING, SLOTS, Bytes, Flags, Int32s, Ints, ReadingRules, RejectionReason
from agedp_data.errors import InputError
from agedp_data.parameters import ListOf, Section, wrong

if TYPE_CHECKING:
    from agedp_data.datasets.csv_parsing import ParsedChunk

_DAY_MINUTES: Final = 1440
_UNITS_PER_WH: Final = 1000
"""Parts of a watt-hour: a kWh with six decimals has no rest."""
_WH: Final = {"WH": 1.0, "KWH": 1000.0, "MWH": 1_000_000.0}
_NO_ENERGY: Final = frozenset(
    f"{prefix}{unit}" for prefix in ("", "K", "M") for unit in ("VARH", "VAR", "VAH", "VA", "W", "V", "A")
) | {"PF"}
"""Other units of the market: channels of which nobody asks for the energy."""
_INTERVALS: Final = (5, 15, 30)
_BLOCK_START: Final = b"\n200,"
_DAY_START: Final = b"\n300,"
_DAY, _BLOCK, _EVENT = (int.from_bytes(number, "little") for number in (b"300", b"200", b"400"))
_ENDS = [int.from_bytes(number, "little") for number in (b"100", b"900")]
_OTHERS = [int.from_bytes(number, "little") for number in (b"500", b"600")]
_BLOCK_FIELDS: Final = 9
_LOST_BLOCK = re.compile(rb"200,[^,\n]*,[^,\n]*,[^,\n]*,[A-Za-z][0-9A-Za-z],")
_EVENT_FIELDS: Final = 4
_AFTER_VALUES: Final = 5
"""Cells after the values of a day: quality, reason, its description, and two times."""
_DATE_FIELDS: Final = 2
_PADDING: Final = 16
"""Bytes after the last line, so that the first cells of a short one can be looked at."""
_FEW_DIGITS = re.compile(rb"[ \t]*\d{1,3}[ \t]*")
_QUALITY = re.compile(rb",[ \t]*[AEFNSV]\d{0,2}[ \t]*(?:,|\Z)", re.IGNORECASE)
_MAX_HELD_BYTES: Final = 4 * csv_lines.LONGEST_LINE
_NOTE: Final = "records without readings (200, 400, 500, 600)"
_NOTE_OF_ENDS: Final = dict(
    zip(_ENDS, ("records that begin a file (100)", "records that end a file (900)"), strict=True)
)
_TEXTS = [f"{slot // 2:02}:{slot % 2 * 30:02}" for slot in range(SLOTS)]

_SUFFIX = re.compile("[A-Z][0-9A-Z]")
Suffix = Annotated[str, Field(pattern=r"^[A-Z]([0-9A-Z]|\*)$")]


class Nem12Keys(Section):
    """The keys of [input] for NEM12: a household's use is the sum of its channels with these `suffixes`."""

    suffixes: ListOf[Suffix] = ("E*",)
    """Suffixes of the channels that are added up, such as "E1", or "E*" for all that begin with E: energy taken from
    the grid. "B*" is energy fed in, alone.
    """

    @model_validator(mode="after")
    def _suffixes_add_up(self) -> Nem12Keys:
        if len(set(self.suffixes)) < len(self.suffixes):
            raise wrong("names a suffix twice", "suffixes")
        if len({suffix[0] for suffix in self.suffixes}) > 1:
            raise wrong('adds energies of different kinds; write suffixes of one letter, such as "E*"', "suffixes")
        return self


@dataclass(frozen=True, slots=True)
class _Block:
    """A valid 200 record: household, suffix, label of its channel, Wh of its unit (0: no energy), minutes."""

    household: str
    suffix: str
    label: int
    unit_wh: float
    minutes: int

    def is_asked_for(self, keys: Nem12Keys) -> bool:
        """Return whether the run file asks for this channel."""
        return self.unit_wh > 0 and any(
            self.suffix.startswith(suffix[0]) and suffix[1] in ("*", self.suffix[1:]) for suffix in keys.suffixes
        )


class Nem12(PublishedLayout):
    """The layout of NEM12: 300 records of a block are days of one channel.

    >>> Nem12().recognise(["100,NEM12,200405011135,MDA1,Ret1"]).lines, Nem12().day_end(date(2024, 1, 8)).isoformat()
    (1, '2024-01-08T14:00:00+00:00')
    """

    name = "nem12"
    day_zone = "Etc/GMT-10"  # the sign of POSIX: UTC+10
    head_lines = 10
    units_per_wh = _UNITS_PER_WH
    has_labels = True
    keys = Nem12Keys

    def recognise(self, lines: Sequence[str], location: str = "") -> Header | None:  # noqa: ARG002
        """Return the header: the 100 record, or none before the first 200 record.

        Raises:
            InputError: accumulated readings (NEM13).
        """
        first = [name.strip('"').upper() for name in csv_lines.column_names(lines[0])[:2]] if lines else []
        if first == ["100", "NEM13"]:
            raise InputError("is NEM13: readings of registers; half-hours need NEM12")
        has_first = first == ["100", "NEM12"]
        if not has_first and not any(_parse_block(line.encode("latin-1")) for line in lines):
            return None
        return Header("NEM12", int(has_first), (), {}, block_start=_BLOCK_START)

    def date_format_error(self, rows: Sequence[str], header: Header) -> InputError:  # noqa: ARG002
        """Return the error about a file whose first days have no date, or belong to nobody."""
        problem = "no day of the first rows (300, 20130131, ...) has a date and a valid 200 record before it"
        return InputError(f"{problem}: with a meter point, kWh, Wh or MWh, and 5, 15 or 30 minutes")

    def known_headers(self) -> tuple[str, ...]:
        """Return the known first line."""
        return ("100,NEM12,<time>,<from>,<to>",)

    def records(self, columns: Columns, header: Header, rules: ReadingRules) -> Records:  # noqa: ARG002
        """Raise InputError: NEM12 is no table with columns."""
        raise InputError("NEM12 is text of records, not a table with columns; deliver the file as it was fetched")

    def parse_batches(self, batches: Iterable[bytes], rules: ReadingRules) -> Iterator[ParsedChunk]:
        """Yield the parsed batches of lines of a file, from its beginning or from a 200 record on.

        The last day of a batch waits for the next one, which may continue with its 400 records.
        """
        block, held = None, b""
        for batch in batches:
            data = held + (_unquoted(batch) if b'"' in batch else batch)
            last = max(data.rfind(_BLOCK_START), data.rfind(_DAY_START)) + 1
            waits = last > 0 or data.startswith((_BLOCK_START[1:], _DAY_START[1:]))
            held = data[last:] if waits and len(data) - last < _MAX_HELD_BYTES else b""
            chunk, block = _parse(data[: len(data) - len(held)], block, rules)
            yield chunk
        if held:
            yield _parse(held, block, rules)[0]


@lru_cache(maxsize=4096)
def _parse_block(line: bytes) -> _Block | None:
    """Return a 200 record, None if it is not valid."""
    try:
        cells = [cell.strip(" \t") for cell in csv_lines.split_fields(line.decode("utf-8"))]
    except UnicodeDecodeError:
        return None
    if len(cells) < _BLOCK_FIELDS or cells[0] != "200":
        return None
    household, suffix, serial, unit, minutes = cells[1], cells[4].upper(), cells[6], cells[7].upper(), cells[8]
    is_energy = unit in _WH and minutes in map(str, _INTERVALS)
    if not household or not _SUFFIX.fullmatch(suffix) or not (is_energy or unit in _NO_ENERGY):
        return None
    label = label_of(f"{suffix} {serial}")
    return _Block(
        household, suffix, label, _WH.get(unit, 0.0), int(minutes) if is_energy else validation.INTERVAL_MINUTES
    )


@lru_cache(maxsize=4096)
def _day_of(digits: int) -> int:
    """Return the day of a date as yyyymmdd, `MISSING` if there is none.

    >>> _day_of(19700102), _day_of(20230229)
    (1, -1)
    """
    try:
        day = date(digits // 10_000, digits // 100 % 100, digits % 100)
    except ValueError:
        return MISSING
    return day_number(day) if validation.FIRST_DAY <= day <= validation.LAST_DAY else MISSING


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines (n) of a batch: where they begin and end, the number of their record (0: none), cells, and flaws."""

    data: bytes
    characters: Bytes
    start: Ints
    stop: Ints
    record: Ints
    fields: Ints
    is_broken: Flags
    is_cut: Flags
    commas: Ints
    first_comma: Ints

    @classmethod
    def of(cls, data: bytes) -> _Lines:
        """Return the lines of whole lines of bytes."""
        ends = csv_lines.line_ends(data)
        array = np.frombuffer(data + bytes(_PADDING), np.uint8)
        start = np.append(np.zeros(min(len(ends), 1), np.int64), ends[:-1] + 1)
        stop = ends - ((array[np.maximum(ends - 1, 0)] == ord("\r")) & (ends > start)) if len(ends) else ends
        record = sum(array[start + i].astype(np.int64) << 8 * i for i in range(3)) if len(ends) else start
        is_whole = (stop == start + 3) | ((array[start + 3] == ord(",")) & (stop > start + 3))
        commas = np.flatnonzero(array == ord(","))
        first_comma = np.searchsorted(commas, start)
        fields = 1 + np.diff(first_comma, append=len(commas))
        is_cut = stop - start > csv_lines.LONGEST_LINE  # the rest of it may not have been read
        fields[is_cut] = 0
        is_broken = start == stop
        if csv_lines.count_sound_lines(data) != len(ends):
            is_broken = csv_lines.broken_lines(data, ends)
            is_broken[np.searchsorted(ends, np.flatnonzero(array == ord('"')))] = True
        return cls(
            data, array, start, stop, np.where(is_whole, record, 0), fields, is_broken, is_cut, commas, first_comma
        )

    def text(self, line: int) -> bytes:
        """Return a line without its end."""
        return self.data[self.start[line] : self.stop[line]]

    def first_bytes(self, position: int, number: int) -> Bytes:
        """Return bytes of each line from a position on, shape (n, number); beyond a short line they mean nothing."""
        found: Bytes = self.characters[(self.start + position)[:, None] + np.arange(number)]
        return found

    def comma(self, lines: Ints, number: Ints) -> Ints:
        """Return the position of a comma of lines by its number from 0, the end of a line that has fewer."""
        index = np.minimum(self.first_comma[lines] + number, len(self.commas) - 1)
        has_comma = number < self.fields[lines] - 1
        return np.where(has_comma, self.commas[index], self.stop[lines]) if len(self.commas) else self.stop[lines]


def _unquoted(data: bytes) -> bytes:
    """Return lines without the quotes around their cells; lines whose quotes enclose no whole cells stay as they are.

    >>> _unquoted(b'"300","20240108","1,5"')
    b'300,20240108,1 5'
    """
    lines = data.split(b"\n")
    for i, line in enumerate(lines):
        if b'"' in line:
            end = b"\r" if line.endswith(b"\r") else b""
            cells = csv_lines.split_fields(line.removesuffix(b"\r").decode("latin-1"))
            text = ",".join(re.sub('[",]', " ", cell.strip(" \t")) for cell in cells)
            lines[i] = text.encode("latin-1") + end if cells else line
    return b"\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Days:
    """The days (d) of a batch: lines, indices of their blocks, dates, numbers of values, reasons against all of a day.

    `is_null` (d, 48) tells which half-hours have quality N.
    """

    line: Ints
    block: Ints
    day: Ints
    values: Ints
    reason: Bytes
    is_null: Flags


def _parse(data: bytes, block: _Block | None, rules: ReadingRules) -> tuple[ParsedChunk, _Block | None]:
    """Return the rows of lines without quotes, and the block that continues after them.

    Args:
        data: bytes of whole lines.
        block: the block of days before the first 200 record; None if they belong to nobody.
        rules: settings of [input] that decide how a row is parsed.
    """
    lines = _Lines.of(data)
    keys = rules.layout_keys if isinstance(rules.layout_keys, Nem12Keys) else Nem12Keys()
    digits = _date_digits(lines)
    # a day without a date and with few cells may be a damaged 200 record
    is_day = (lines.record == _DAY) & ((digits >= 0) | (lines.fields >= SLOTS + _DATE_FIELDS))
    is_event = lines.record == _EVENT
    is_empty = lines.start == lines.stop
    begins = ~(is_day | is_event | is_empty | np.isin(lines.record, _OTHERS))
    # so may a line that has swallowed one, because the line end between them is lost, or that was cut off
    lost = np.array([found.start() for found in _LOST_BLOCK.finditer(data)], np.int64)
    line_of_lost = np.searchsorted(lines.start, lost, side="right") - 1
    has_lost = np.zeros(len(begins), bool)
    has_lost[line_of_lost[lines.start[line_of_lost] < lost]] = True
    has_lost |= lines.is_cut
    begins |= has_lost
    blocks = [block]
    for line in np.flatnonzero(begins).tolist():
        is_block = lines.record[line] == _BLOCK and not (lines.is_broken[line] or has_lost[line])
        blocks.append(_parse_block(lines.text(line)) if is_block else None)
    block_of_line = np.cumsum(begins)
    is_bad = lines.is_broken | has_lost | ~(is_day | is_event | np.isin(lines.record, [*_ENDS, *_OTHERS]))
    is_bad[begins] &= np.array([found is None for found in blocks[1:]], bool)
    days = _days(lines, np.flatnonzero(is_day), block_of_line, blocks, keys, digits)
    for event in np.flatnonzero(is_event).tolist():
        is_bad[event] |= not _apply_event(lines, event, days, int(block_of_line[event] - has_lost[event]))
    rejected_lines = np.flatnonzero(is_bad & ~is_day)
    records, offset = _records(lines, days, blocks, rejected_lines, rules)
    sound = lines.record[~is_bad & ~is_day].tolist()
    records = replace(records, notes=Counter(_NOTE_OF_ENDS.get(record, _NOTE) for record in sound))
    return _chunk(lines, days, blocks, rejected_lines, records, offset), blocks[-1]


def _date_digits(lines: _Lines) -> Ints:
    """Return the number that the second cell of each line is if it has eight digits, else `MISSING`."""
    digits = lines.first_bytes(4, 8).astype(np.int64) - ord("0")
    is_date = ((digits >= 0) & (digits <= 9)).all(axis=1) & (lines.stop - lines.start >= 4 + 8)
    is_date &= (lines.stop - lines.start == 4 + 8) | (lines.first_bytes(12, 1)[:, 0] == ord(","))
    return np.where(is_date, digits @ 10 ** np.arange(7, -1, -1), MISSING)


def _days(
    lines: _Lines, line: Ints, block_of_line: Ints, blocks: Sequence[_Block | None], keys: Nem12Keys, digits: Ints
) -> _Days:
    """Return the days of a batch, with the reasons against all of a day."""
    block = block_of_line[line]
    of_blocks = np.array([_DAY_MINUTES // found.minutes if found else 0 for found in blocks])
    values, fields = of_blocks[block], lines.fields[line]
    is_none = np.array([found is None for found in blocks])[block]
    is_asked = np.array([found is not None and found.is_asked_for(keys) for found in blocks])[block]
    distinct, code = np.unique(digits[line], return_inverse=True)
    day = np.array([_day_of(int(number)) for number in distinct] or [MISSING], np.int64)[code]
    last = lines.comma(line, values + 1)
    quality = np.where(fields > values + _DATE_FIELDS, lines.characters[last + 1], np.uint8(0))
    is_number = np.isin(quality, list(b"+-.0123456789"))  # more values than the block has intervals
    after = lines.comma(line, values + 1 + _AFTER_VALUES)
    are_commas = lines.stop[line] - after == np.maximum(fields - (values + _DATE_FIELDS + _AFTER_VALUES), 0)
    wrong_fields = (fields < values + _DATE_FIELDS) | is_number | ~are_commas
    reason = validation.first_reason(FIELDS=wrong_fields & ~is_none, HOUSEHOLD=is_none, DATE=day == MISSING)
    reason[lines.is_broken[line]] = RejectionReason.LINE
    reason[~is_asked & ~is_none] = RejectionReason.CATEGORY  # it names nobody, whatever else it lacks
    is_null = np.zeros((len(line), SLOTS), bool)
    is_null[np.isin(quality, list(b"Nn"))] = True
    return _Days(line, block, day, values, reason, is_null)


def _apply_event(lines: _Lines, event: int, days: _Days, block: int) -> bool:
    """Mark the half-hours to which a 400 record gives quality N; return whether it is sound and follows its day.

    A damaged one rejects its day.
    """
    day = int(np.searchsorted(days.line, event)) - 1
    if day < 0 or days.block[day] != block:
        return False
    cells = lines.text(event).split(b",")
    numbers = (cell if _FEW_DIGITS.fullmatch(cell) else MISSING for cell in (*cells[1:3], b"", b"")[:2])
    first, last = map(int, numbers)
    values = int(days.values[day])
    is_sound = not lines.is_broken[event] and len(cells) >= _EVENT_FIELDS and 1 <= first <= last
    if days.reason[day] == RejectionReason.HOUSEHOLD or (is_sound and last <= values):
        if is_sound and values and cells[3].strip().upper().startswith(b"N"):
            parts = values // SLOTS
            days.is_null[day, (first - 1) // parts : -(-last // parts)] = True
        return True
    if days.reason[day] == RejectionReason.KEPT:
        days.reason[day] = RejectionReason.FIELDS
    return False


def _records(
    lines: _Lines, days: _Days, blocks: Sequence[_Block | None], rejected_lines: Ints, rules: ReadingRules
) -> tuple[Records, Ints]:
    """Return the half-hours of days and the rejected lines as records, in the order of the lines.

    Returns:
        The records, and the number of the first record of each line, shape (lines,).
    """
    energy = np.full((len(days.line), SLOTS), MISSING, np.int32)
    reason = np.repeat(days.reason[:, None], SLOTS, axis=1)
    is_read = days.reason == RejectionReason.KEPT
    reason[is_read[:, None] & days.is_null] = RejectionReason.MISSING
    units = np.array([found.unit_wh if found else 0.0 for found in blocks])[days.block]
    for values, unit_wh in sorted(set(zip(days.values[is_read].tolist(), units[is_read].tolist(), strict=True))):
        alike = np.flatnonzero(is_read & (days.values == values) & (units == unit_wh))
        energy[alike], of_cells = _energies(lines, days.line[alike], values, unit_wh, rules)
        days.reason[alike[of_cells[:, 0] == RejectionReason.FIELDS]] = RejectionReason.FIELDS
        reason[alike] = np.where(days.is_null[alike], np.uint8(RejectionReason.MISSING), of_cells)
    energy[reason > RejectionReason.KEPT] = MISSING
    asked = set(days.block[days.reason != RejectionReason.CATEGORY].tolist())
    ids = tuple(sorted({blocks[i].household for i in asked if blocks[i]}))
    code_by_id = {name: i for i, name in enumerate(ids)}
    codes = np.array([code_by_id.get(found.household, -1) if found else -1 for found in blocks], np.int32)
    labels = np.array([found.label if found else 0 for found in blocks], np.int64)
    rows = np.zeros(len(lines.start), np.int64)
    rows[days.line], rows[rejected_lines] = SLOTS, 1
    offset = np.cumsum(rows) - rows
    is_broken = lines.is_broken[rejected_lines]
    of_lines = np.where(is_broken, np.uint8(RejectionReason.LINE), np.uint8(RejectionReason.FIELDS))
    first = np.maximum(days.day, 0).astype(np.int32) * np.int32(SLOTS)

    def in_order(of_days: Any, of_lines: Any) -> Any:  # noqa: ANN401  (arrays of any type)
        if not len(rejected_lines):
            return of_days.ravel()
        values = np.empty(of_days.size + len(rejected_lines), of_days.dtype)
        values[(offset[days.line][:, None] + np.arange(SLOTS)).ravel()] = of_days.ravel()
        values[offset[rejected_lines]] = of_lines
        return values

    household, label = (np.repeat(of_block[days.block], SLOTS) for of_block in (codes, labels))
    channel, time = np.zeros(int(rows.sum()), np.uint8), in_order(first[:, None] + np.arange(SLOTS, dtype=np.int32), 0)
    energies, reasons = in_order(energy, MISSING).reshape(-1, 1), in_order(reason, of_lines)
    label = in_order(label, 0)
    return Records(ids, in_order(household, -1), channel, time, energies, reasons, {}, label=label), offset


def _energies(lines: _Lines, chosen: Ints, values: int, unit_wh: float, rules: ReadingRules) -> tuple[Int32s, Bytes]:
    """Return the energies of half-hours in parts of a Wh and the reasons against them, both (days, 48).

    Args:
        lines: the lines of the batch.
        chosen: lines of days with as many values, shape (d,).
        values: number of values of a day.
        unit_wh: watt-hours of their unit.
        rules: settings of [input] that decide how a row is parsed.
    """
    from agedp_data.datasets.csv_parsing import parse_columns  # noqa: PLC0415  (the list of datasets needs no parser)

    ends = lines.comma(chosen, np.full(len(chosen), values + 1))
    starts = lines.start[chosen] + len("300,20130131,")
    data = b"\n".join([lines.data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
    names = tuple(f"energy_{i}" for i in range(values))
    columns = parse_columns(data + b"\n", Header("", 0, names, dict.fromkeys(names, pa.float64())))
    amount, reason = np.empty((values, len(chosen))), np.zeros((values, len(chosen)), np.uint8)
    for i, name in enumerate(names):
        cell = columns.values[name]
        amount[i] = fill_nulls(cell, 0.0)
        if cell.null_count:
            reason[i, is_null(cell)] = RejectionReason.MISSING
            reason[i, columns.unreadable_cells(name)] = RejectionReason.TEXT
    of_interval = replace(rules, interval_minutes=_DAY_MINUTES // values)
    energy, of_energy = validation.round_to_wh(amount.ravel(), of_interval, unit_wh=unit_wh, units_per_wh=_UNITS_PER_WH)
    if of_energy.any():
        reason = np.where(reason > 0, reason, of_energy.reshape(reason.shape))
    for i in np.flatnonzero((reason == RejectionReason.TEXT).any(axis=0)).tolist():
        if _QUALITY.search(lines.data, starts[i] - 1, ends[i]):  # fewer values than the block has intervals
            reason[:, i] = RejectionReason.FIELDS
    parts = (SLOTS, values // SLOTS, len(chosen))
    total = energy.reshape(parts).sum(axis=1, dtype=np.int32)
    if not reason.any():
        return total.T, np.zeros(total.T.shape, np.uint8)
    first = np.where(reason > 0, reason, np.uint8(255)).reshape(parts).min(axis=1)  # of parts the first in precedence
    return total.T, np.where(first < 255, first, 0).astype(np.uint8).T


def _chunk(
    lines: _Lines, days: _Days, blocks: Sequence[_Block | None], rejected_lines: Ints, records: Records, offset: Ints
) -> ParsedChunk:
    """Return the records with the rejected rows, their texts, and which of these name a household and a half-hour."""
    from agedp_data.datasets.csv_parsing import ParsedChunk  # noqa: PLC0415

    is_asked = records.reason != int(RejectionReason.CATEGORY)
    rejected = np.flatnonzero((records.reason != int(RejectionReason.KEPT)) & is_asked)
    row = np.arange(len(records.reason), dtype=np.int32)
    holders = np.sort(np.concatenate([days.line, rejected_lines]))  # lines with rows
    line = holders[np.searchsorted(offset[holders], rejected, side="right") - 1] if len(holders) else rejected
    day = np.searchsorted(days.line, line)
    day_of_line = np.where(np.isin(line, days.line), day, MISSING)
    is_named = (day_of_line >= 0) & (records.household[rejected] >= 0)
    if len(days.day):
        is_named &= days.day[np.maximum(day_of_line, 0)] >= 0
    texts = _texts(lines, days, blocks, line.tolist(), (rejected - offset[line]).tolist(), day_of_line.tolist())
    return ParsedChunk(len(row), records, row, rejected, records.reason[rejected], tuple(texts), is_named)


def _texts(
    lines: _Lines, days: _Days, blocks: Sequence[_Block | None], line: list[int], slot: list[int], day: list[int]
) -> Iterator[str]:
    """Yield the texts of rejected rows: of half-hours their cells, of lines the line, once."""
    before, cells, shared = -1, [""], ""
    for number, of_day, at in zip(line, day, slot, strict=True):
        is_whole = of_day < 0 or days.reason[of_day] != RejectionReason.KEPT
        if is_whole:
            yield lines.text(number)[: csv_lines.LONGEST_LINE].decode("utf-8", "replace") if at == 0 else ""
            continue
        if number != before:
            before, cells = number, lines.text(number).decode("utf-8", "replace").split(",")
            block = blocks[days.block[of_day]]
            shared = f"{block.household},{block.suffix},{cells[1]}" if block else ""
        parts = days.values[of_day] // SLOTS
        yield ",".join([shared, _TEXTS[at], *cells[2 + at * parts : 2 + (at + 1) * parts]])
