"""The columns of a long table, one row per household and interval, as far as the first rows show them.

Keys that the first rows determine are decided; all others are proposals with reasons, or lists of candidates, until the
user decides. The evidence for each:

* The household column is the privacy unit. It is decided if the header names a household, no second column can be it,
  and its values repeat with timestamps of their own. A record number or a tariff is refused by these conditions.
* A time format is decided if it is the only candidate of `time_formats`. Where day, month or year can be exchanged, all
  formats that fit the date are candidates.
* The unit is decided by the header ("kwh", "energy_wh"); the size of the values only gives a proposal. A header that
  names another unit, such as MWh or kW, is refused.
* `stamp` is decided as "end" where a household's half-hours begin with 00:30 and end with 00:00. The reverse, 00:00 to
  23:30, is a proposal for "start": a calendar year that was cut out of end-stamped readings looks the same.
* `interval_minutes` is the most frequent difference of consecutive timestamps of a household.
* Timestamps with an offset are instants, which decides `zone = "UTC"`. Nothing shows whose midnight ends a day.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

from agedp.setup.run_file_options import FLAGS, Key, quoted
from agedp.setup.run_file_proposals import KeyLine
from agedp.setup.time_formats import MISSING, NEARLY_ALL, candidate_formats, clock_time
from agedp_data.datasets.csv_lines import column_names, split_fields
from agedp_data.datasets.intervals import DECLARABLE, INTERVALS, common_interval
from agedp_data.datasets.timestamps import ISO, parser_format
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.errors import InputError
from agedp_data.messages import escape_text

TABLE: Final = "input.columns"

_HOUSEHOLD = re.compile(
    r"house|home|dwelling|premise|meter|customer|client|site|mpan|nmi|user|account|(^|[ _])id$", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"(^|[ _])id$", re.IGNORECASE)
_TIME = re.compile(r"time|date|stamp|read_?at|start|end|from|until", re.IGNORECASE)
_ENERGY = re.compile(r"k?wh|energy|consum|usage|import|export|load|(^|[^a-z])use($|[^a-z])", re.IGNORECASE)
_OTHER_UNIT = re.compile(r"[mgt]wh(?![a-z])|k(w|va|varh?)(?![a-z])|(?<![a-z])([mg]?w|m?va|[kmg]?j)(?![a-z])")
"""Units other than kWh and Wh in a header of small letters."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_MARKS = {"separator": ",", "decimal": "."}
"""Keys of [input.columns] about the text of a file, with their defaults."""
SEPARATORS = (",", ";", "\t", "|")
_ROWS = 2000
_MIDNIGHT, _DAY = timedelta(), timedelta(days=1)
_SMALL_WH = 20.0
_REPEATED = 4
"""With fewer timestamps for a value, the value may be the number of a record."""


@dataclass(frozen=True, slots=True)
class LongTable:
    """The columns of a long table by its first rows: the lines of [input.columns], reasons, and undecided columns.

    `reasons` explain by key why a line is proposed or decided; `unreadable` are the keys without which no row can be
    read, each with its candidates. `interval_minutes` is the time between readings, None with too few rows.
    """

    lines: tuple[KeyLine, ...]
    reasons: Mapping[str, str]
    unreadable: Mapping[str, tuple[str, ...]]
    interval_minutes: int | None = None


def read_columns(lines: Sequence[str], options: Mapping[Key, str], *, complete: bool) -> LongTable | None:
    """Return the columns of a long table from the first lines of a file; None if the file is not a long table.

    `options` by table and key, as TOML, are decisions and are taken as they are. `complete` tells
    that the lines are all lines of the file, so that its last household ends with them.

    Raises:
        InputError: an option names a column that the header lacks; the readings are of an interval that no run file can
            declare; the header names a unit that cannot be read.
    """
    given = {key: json.loads(toml) for (table, key), toml in options.items() if table == TABLE and toml.startswith('"')}
    separator = given.get("separator") or _separator(lines[0] if lines else "")
    names = column_names(lines[0], separator) if lines else []
    rows = list(_rows(lines[1:], len(names), separator))[:_ROWS]
    if len(names) < 3 or not rows:
        return None
    decimal = given.get("decimal") or _decimal_mark(rows, separator)
    cells = {name: [_with_point(row[i].strip(), decimal) for row in rows] for i, name in enumerate(names)}
    given |= {key: mark for key, mark in (("separator", separator), ("decimal", decimal)) if mark != _MARKS[key]}
    _check_columns(names, given)
    return _ColumnReader(cells, given, complete=complete and len(rows) < _ROWS).table()


def _check_columns(names: Sequence[str], columns: Mapping[str, str]) -> None:
    """Refuse options that name a column which the header does not have exactly once."""
    wrong_keys = [key for key in ("household", "time", "energy") if key in columns and names.count(columns[key]) != 1]
    if wrong_keys:
        flags = ", ".join(f"{FLAGS[TABLE, key]} {escape_text(columns[key])}" for key in wrong_keys)
        is_duplicate = any(columns[key] in names for key in wrong_keys)
        problem = "the header has that column more than once" if is_duplicate else "not a column of the header"
        message = f"{flags}: {problem}. Give one of its columns"
        raise InputError(message, private=f"{message}: {', '.join(quoted(escape_text(name, 40)) for name in names)}")


def _separator(header: str) -> str:
    """Return the separator that divides a header into the most columns."""
    return max(SEPARATORS, key=lambda separator: len(column_names(header, separator)))


def _decimal_mark(rows: Sequence[Sequence[str]], separator: str) -> str:
    """Return a comma if numbers are written with one, as in 0,25; such files have another separator."""
    cells = (cell.strip() for row in rows[:100] for cell in row)
    has_comma = separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return "," if has_comma else "."


def _with_point(cell: str, decimal: str) -> str:
    return cell.replace(",", ".") if decimal == "," and _DECIMAL_COMMA.fullmatch(cell) else cell


def _rows(lines: Sequence[str], fields: int, separator: str) -> Iterator[list[str]]:
    for line in lines:
        row = split_fields(line, separator)
        if len(row) == fields:
            yield row


class _ColumnReader:
    """Determines the columns one by one; decided and proposed ones are in `_lines`, candidates in `_unreadable`."""

    def __init__(self, cells: Mapping[str, list[str]], options: Mapping[str, str], *, complete: bool) -> None:
        self._cells, self._options, self._complete = cells, options, complete
        self._lines: dict[str, KeyLine] = {}
        self._reasons: dict[str, str] = {}
        self._unreadable: dict[str, tuple[str, ...]] = {}

    def table(self) -> LongTable | None:
        for key in _MARKS:
            if self._is_given(key):
                self._reasons[key] = "as the header and the first rows show"
        times = [name for name in self._cells if candidate_formats(self._cells[name])]
        values = [name for name in self._cells if name not in times]
        energies = [name for name in values if _is_energy(self._cells[name]) and not _names_household(name)]
        if not (times or "time" in self._options) or not (energies or "energy" in self._options):
            return None
        self._column("energy", energies, _ENERGY)
        self._column("time", times, _TIME)
        self._household(values, times)
        self._time_format()
        interval = None if self._unreadable else self._interval()
        self._detect_interval_label(timedelta(minutes=interval or INTERVAL_MINUTES))
        self._zones()
        self._unit()
        return LongTable(tuple(self._lines.values()), self._reasons, self._unreadable, interval)

    def _household(self, names: Sequence[str], times: Sequence[str]) -> None:
        """Decide the household column by header and rows; every possible column is a candidate."""
        if self._is_given("household"):
            return
        names = [name for name in names if name != self._name("energy")]
        likely = [name for name in names if _names_household(name)]
        possible = likely + [name for name in names if name not in likely and self._may_name_households(name)]
        time = self._name("time") or next(iter(times), "")
        if len(possible) == 1 == len(likely) and _repeats(self._cells[likely[0]], self._cells.get(time, [])):
            self._decide("household", likely[0], "the only column of its kind; its values repeat at other timestamps")
        else:
            self._unreadable["household"] = tuple(possible or names or self._cells)

    def _may_name_households(self, name: str) -> bool:
        """Return whether a column without such a header holds texts or whole numbers, as identifiers are."""
        cells = [cell for cell in self._cells[name] if cell.lower() not in MISSING]
        if not cells or (_ENERGY.search(name) and _is_energy(cells)):
            return False
        return not _is_energy(cells) or all(cell.lstrip("+-").isdigit() for cell in cells)

    def _column(self, key: str, candidates: list[str], likely: re.Pattern[str]) -> None:
        if self._is_given(key):
            return
        named = [name for name in candidates if likely.search(name)]
        columns = named if len(named) == 1 else candidates
        if len(columns) == 1:
            self._decide(key, columns[0], "the only column of its kind")
        else:
            self._unreadable[key] = tuple(candidates or self._cells)

    def _time_format(self) -> None:
        if self._is_given("time_format") or "time" not in self._lines:
            return
        timestamps = self._cells.get(self._name("time"), [])
        formats = candidate_formats(timestamps)
        if len(formats) == 1:
            self._decide(
                "time_format", formats[0], f'reads the first timestamps, such as "{escape_text(timestamps[0], 40)}"'
            )
        else:
            self._unreadable["time_format"] = formats or (ISO,)

    def _detect_interval_label(self, interval: timedelta) -> None:
        if self._is_given("stamp"):
            return
        spans = [(_time_of_day(timestamps[0]), _time_of_day(timestamps[-1])) for timestamps in self._whole_households()]
        last_time = _DAY - interval
        if spans and all(span == (interval, _MIDNIGHT) for span in spans):
            self._decide("stamp", "end", f"households begin with {_clock(interval)} and end with 00:00")
        elif spans and all(span == (_MIDNIGHT, last_time) for span in spans):
            shown_end = f"households begin with 00:00 and end with {_clock(last_time)}"
            self._propose("stamp", "start", f"{shown_end}, unless the days were cut out")
        elif spans or not (first_times := {_time_of_day(timestamps[0]) for timestamps in self._households()}):
            self._propose("stamp", "end", "the first rows do not show it")
        elif first_times == {interval}:
            self._propose("stamp", "end", f"households begin with {_clock(interval)}")
        else:
            self._propose("stamp", "start" if first_times == {_MIDNIGHT} else "end", "the first rows hardly show it")

    def _zones(self) -> None:
        offsets = "%z" in self._toml("time_format")
        if not self._is_given("zone"):
            if offsets:
                self._decide("zone", "UTC", "the timestamps have an offset")
            else:
                self._propose("zone", "UTC", "the timestamps have no offset; nothing shows their zone")
        if not self._is_given("day_zone"):
            self._propose("day_zone", "UTC", "nothing shows whose midnight ends a day")

    def _unit(self) -> None:
        if self._is_given("unit") or "energy" not in self._lines:
            return
        name = self._name("energy").lower()
        if "kwh" in name or re.search(r"(?<![kmgt])wh(?![a-z])", name):
            self._decide("unit", "kWh" if "kwh" in name else "Wh", "the header names it")
            return
        _check_energy_unit(name)
        values = [abs(value) for cell in self._cells[self._name("energy")] if (value := _number(cell))]
        median_value = median(values) if values else 0.0
        unit = "Wh" if median_value > _SMALL_WH else "kWh"
        self._propose(
            "unit", unit, f"the median of the first values above 0 is {median_value:.3g}; the header names no unit"
        )

    def _interval(self) -> int | None:
        """Return the minutes between readings, None with too few rows; refuse intervals that cannot be declared."""
        minutes = common_interval(
            (
                [(timestamp - datetime.min) // timedelta(minutes=1) for timestamp in timestamps]
                for timestamps in self._households()
            ),
            max_minutes=_DAY // timedelta(minutes=1),
        )
        if minutes is not None and minutes not in INTERVALS:
            raise InputError(f"the readings are {minutes} minutes apart; deliver readings of {DECLARABLE}")
        return minutes

    def _whole_households(self) -> list[list[datetime]]:
        """Return the timestamps of households that begin and end within the first rows, in the order of the file."""
        households = list(self._households())
        household_cells = self._cells.get(self._name("household"), []) if "household" in self._lines else []
        blocks = sum(earlier != later for earlier, later in pairwise(household_cells)) + 1
        by_household = blocks == len(set(household_cells))
        if not by_household:
            return []
        return households if self._complete else households[:-1]

    def _households(self) -> Iterator[list[datetime]]:
        """Yield the timestamps of each household in the order of the file."""
        if not {"household", "time", "time_format"} <= set(self._lines):
            return
        time_format = parser_format(self._name("time_format"))
        timestamps: dict[str, list[datetime]] = {}
        for household, cell in zip(
            self._cells.get(self._name("household"), ()), self._cells.get(self._name("time"), ()), strict=False
        ):
            timestamp = clock_time(cell, time_format)
            if timestamp is not None:
                timestamps.setdefault(household, []).append(timestamp)
        yield from timestamps.values()

    def _is_given(self, key: str) -> bool:
        if key in self._options:
            self._lines[key] = KeyLine(key, quoted(self._options[key]))
            return True
        return False

    def _decide(self, key: str, value: str, reason: str) -> None:
        self._lines[key], self._reasons[key] = KeyLine(key, quoted(value)), reason

    def _propose(self, key: str, value: str, reason: str) -> None:
        self._lines[key], self._reasons[key] = KeyLine(key, quoted(value), decided=False), reason

    def _toml(self, key: str) -> str:
        return self._lines[key].toml if key in self._lines else ""

    def _name(self, key: str) -> str:
        toml = self._toml(key)
        return str(json.loads(toml)) if toml else ""  # `quoted` writes what TOML and JSON read alike


def _names_household(name: str) -> bool:
    """Return whether a header names a household, rather than a measured quantity such as `meter_kwh`."""
    return bool(_IDENTIFIER.search(name) or (_HOUSEHOLD.search(name) and not _ENERGY.search(name)))


def _repeats(cells: Sequence[str], timestamps: Sequence[str]) -> bool:
    """Return whether values repeat as those of households do.

    Nearly all rows have a value with several timestamps, nearly no timestamp comes twice for a value (a tariff), and of
    several values some share a timestamp (those of a number of the day do not).
    """
    pairs = Counter(zip(cells, timestamps, strict=False))
    count_by_value = Counter(value for value, _ in pairs)
    repeated = sum(count for (value, _), count in pairs.items() if count_by_value[value] >= _REPEATED)
    shared = len(count_by_value) == 1 or len({timestamp for _, timestamp in pairs}) < len(pairs)
    return shared and repeated >= NEARLY_ALL * len(cells) and len(pairs) >= NEARLY_ALL * len(cells)


def _check_energy_unit(name: str) -> None:
    """Refuse a column whose header names a unit that is neither kWh nor Wh."""
    unit = _OTHER_UNIT.search(name)
    if unit:
        text = unit[0].upper().replace("WH", "Wh").replace("K", "k")
        raise InputError(
            f"the header of the energy column names {text}; energy in kWh or Wh is read. Convert the column, or give "
            "--unit if the header is wrong"
        )


def _is_energy(cells: Sequence[str]) -> bool:
    """Return whether nearly all cells of a column are numbers, not counting missing ones."""
    values = [cell for cell in cells if cell.lower() not in MISSING]
    return bool(values) and sum(_number(value) is not None for value in values) >= NEARLY_ALL * len(values)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _clock(time: timedelta) -> str:
    return f"{time // timedelta(hours=1):02d}:{time // timedelta(minutes=1) % 60:02d}"


def _time_of_day(timestamp: datetime) -> timedelta:
    return timestamp - timestamp.replace(hour=0, minute=0, second=0, microsecond=0)
