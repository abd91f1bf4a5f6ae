"""The columns of a long table, one row per household and half-hour, as far as the first rows show them.

What the first rows show beyond doubt is decided; everything else is a proposal with its reason, or a list of
candidates, and waits for a decision. Decisions about what counts as evidence:

* A time format is decided if it is the only one of a closed list that reads every first timestamp. Where day and month
  can be exchanged, both are candidates.
* The unit is decided by the header ("kwh", "energy_wh"); the size of the figures only makes a proposal.
* `stamp` is decided as "end" where a household begins with 00:30 and ends with 00:00. The reverse, 00:00 to 23:30, is
  a proposal for "start": a calendar year that was cut out of end-stamped readings looks the same.
* Timestamps with an offset are instants, which decides `zone = "UTC"`. Nothing shows whose midnight ends a day.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

from agedp_data.errors import InputError
from agedp_data.readers.layout import column_names
from agedp_data.readers.stamps import ISO, USUAL, fits, parser_format
from agedp_data.shown import shown
from pipelines.run_file_draft import Line
from pipelines.run_file_options import Key, quoted

TABLE: Final = "input.columns"
FORMATS: Final = (
    *USUAL,
    *(f"{day}{time}" for day in ("%d/%m/%y ", "%m/%d/%y ", "%m-%d-%Y ") for time in ("%H:%M:%S", "%H:%M")),
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
)
"""Time formats that are recognised: ISO, day first and month first."""

_HOUSEHOLD = re.compile(
    r"house|meter|customer|client|site|mpan|nmi|user|account|(^|[^a-z])id([^a-z]|$)|id$", re.IGNORECASE
)
_TIME = re.compile(r"time|date|stamp|read_?at|start|end|from|until", re.IGNORECASE)
_ENERGY = re.compile(r"k?wh|energy|consum|usage|import|load", re.IGNORECASE)
_MISSING = ("", "null", "na", "n/a", "nan", "none", "-", "missing")
_ROWS = 2000
_HALF_HOUR = 30
_MIDNIGHT, _HALF_PAST = timedelta(), timedelta(minutes=30)
_LAST = timedelta(hours=23, minutes=30)
_SMALL_WH = 20.0
_SAMPLED = 8
_NEARLY_ALL = 0.95


@dataclass(frozen=True, slots=True)
class LongTable:
    """What the first rows of a long table show: the lines of [input.columns], reasons, and what cannot be read.

    `reasons` say by key why a line is proposed or decided; `unreadable` are the keys without which no row can be read,
    each with its candidates.
    """

    lines: tuple[Line, ...]
    reasons: Mapping[str, str]
    unreadable: Mapping[str, tuple[str, ...]]


def read_columns(lines: Sequence[str], given: Mapping[Key, str], *, whole: bool) -> LongTable | None:
    """Return what the first lines of a file show of a long table; None if they show none.

    `given` are the options, by table and key, as TOML; they are decisions and are taken as they are. `whole` tells that
    the lines are the whole file, so that its last household ends there.

    Raises:
        InputError: the readings are not half-hourly.
    """
    names = column_names(lines[0]) if lines else []
    rows = list(_rows(lines[1:], len(names)))[:_ROWS]
    if len(names) < 3 or not rows:
        return None
    cells = {name: [row[i].strip() for row in rows] for i, name in enumerate(names)}
    own = {key: json.loads(toml) for (table, key), toml in given.items() if table == TABLE and toml.startswith('"')}
    return _Reading(cells, own, whole=whole and len(rows) < _ROWS).table()


def _rows(lines: Sequence[str], fields: int) -> Iterator[list[str]]:
    for line in lines:
        row = next(csv.reader([line]), [])
        if len(row) == fields:
            yield row


class _Reading:
    """Reads the first rows, column by column; what is decided is in `_lines`, candidates in `_unreadable`."""

    def __init__(self, cells: Mapping[str, list[str]], own: Mapping[str, str], *, whole: bool) -> None:
        self._cells, self._own, self._whole = cells, own, whole
        self._lines: dict[str, Line] = {}
        self._reasons: dict[str, str] = {}
        self._unreadable: dict[str, tuple[str, ...]] = {}

    def table(self) -> LongTable | None:
        times = [name for name in self._cells if _formats(self._cells[name])]
        energies = [name for name in self._cells if name not in times and _is_energy(self._cells[name])]
        others = [name for name in self._cells if name not in (*times, *energies)]
        ids = [name for name in self._cells if name not in times and _HOUSEHOLD.search(name)]
        energies = [name for name in energies if name not in ids]
        if not (times or "time" in self._own) or not (energies or "energy" in self._own):
            return None
        self._column("household", ids or others, _HOUSEHOLD)
        self._column("time", times, _TIME)
        self._time_format()
        self._stamp()
        self._zones()
        self._column("energy", energies, _ENERGY)
        self._unit()
        if not self._unreadable:
            self._require_half_hours()
        return LongTable(tuple(self._lines.values()), self._reasons, self._unreadable)

    def _column(self, key: str, candidates: list[str], likely: re.Pattern[str]) -> None:
        if self._is_given(key):
            return
        named = [name for name in candidates if likely.search(name)]
        found = named if len(named) == 1 else candidates
        if len(found) == 1:
            self._decide(key, found[0], "the only column of its kind")
        else:
            self._unreadable[key] = tuple(candidates or self._cells)

    def _time_format(self) -> None:
        if self._is_given("time_format") or "time" not in self._lines:
            return
        stamps = self._cells.get(self._name("time"), [])
        found = _formats(stamps)
        if len(found) == 1:
            self._decide("time_format", found[0], f'reads every first timestamp, such as "{shown(stamps[0], 40)}"')
        else:
            self._unreadable["time_format"] = found or (ISO,)

    def _stamp(self) -> None:
        if self._is_given("stamp"):
            return
        spans = [(_of_day(stamps[0]), _of_day(stamps[-1])) for stamps in self._whole_households()]
        if spans and all(span == (_HALF_PAST, _MIDNIGHT) for span in spans):
            self._decide("stamp", "end", "households begin with 00:30 and end with 00:00")
        elif spans and all(span == (_MIDNIGHT, _LAST) for span in spans):
            self._propose(
                "stamp", "start", "households begin with 00:00 and end with 23:30, unless the days were cut out"
            )
        elif spans or not (first := {_of_day(stamps[0]) for stamps in self._households()}):
            self._propose("stamp", "end", "the first rows do not show it")
        elif first == {_HALF_PAST}:
            self._propose("stamp", "end", "households begin with 00:30")
        else:
            self._propose("stamp", "start" if first == {_MIDNIGHT} else "end", "the first rows hardly show it")

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
        if "kwh" in name or re.search(r"(?<![kmg])wh", name):
            self._decide("unit", "kWh" if "kwh" in name else "Wh", "the header names it")
            return
        figures = [abs(figure) for cell in self._cells[self._name("energy")] if (figure := _number(cell))]
        size = median(figures) if figures else 0.0
        unit = "Wh" if size > _SMALL_WH else "kWh"
        self._propose("unit", unit, f"the median of the first figures above 0 is {size:.3g}; the header names no unit")

    def _require_half_hours(self) -> None:
        gaps = Counter(
            (later - earlier) // timedelta(minutes=1)
            for stamps in self._households()
            for earlier, later in pairwise(sorted(set(stamps)))
        )
        if not gaps:
            return
        minutes, times = gaps.most_common(1)[0]
        if minutes != _HALF_HOUR and times * 2 > sum(gaps.values()):
            raise InputError(
                f"the readings are {minutes} minutes apart; half-hourly tables (30 minutes) are read. Give a "
                "half-hourly table"
            )

    def _whole_households(self) -> list[list[datetime]]:
        """Return the timestamps of households that begin and end within the first rows, in the order of the file."""
        households = list(self._households())
        seen = self._cells.get(self._name("household"), []) if "household" in self._lines else []
        blocks = sum(earlier != later for earlier, later in pairwise(seen)) + 1
        by_household = blocks == len(set(seen))
        if not by_household:
            return []
        return households if self._whole else households[:-1]

    def _households(self) -> Iterator[list[datetime]]:
        """Yield the timestamps of each household in the order of the file."""
        if not {"household", "time", "time_format"} <= set(self._lines):
            return
        time_format = parser_format(self._name("time_format"))
        found: dict[str, list[datetime]] = {}
        for household, cell in zip(
            self._cells.get(self._name("household"), ()), self._cells.get(self._name("time"), ()), strict=False
        ):
            stamp = _clock_time(cell, time_format)
            if stamp is not None:
                found.setdefault(household, []).append(stamp)
        yield from found.values()

    def _is_given(self, key: str) -> bool:
        if key in self._own:
            self._lines[key] = Line(key, quoted(self._own[key]))
            return True
        return False

    def _decide(self, key: str, value: str, reason: str) -> None:
        self._lines[key], self._reasons[key] = Line(key, quoted(value)), reason

    def _propose(self, key: str, value: str, reason: str) -> None:
        self._lines[key], self._reasons[key] = Line(key, quoted(value), decided=False), reason

    def _toml(self, key: str) -> str:
        return self._lines[key].toml if key in self._lines else ""

    def _name(self, key: str) -> str:
        return self._toml(key)[1:-1].replace('\\"', '"')


def _formats(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the time formats that read most cells, nearly all of them; one for those that are parsed alike.

    A broken timestamp among thousands does no harm, but one 13/01 among them tells day from month.
    """
    distinct = sorted({cell for cell in cells if cell.lower() not in _MISSING})
    some = distinct[:: max(1, len(distinct) // _SAMPLED)]
    likely = {parser_format(pattern): pattern for pattern in reversed(FORMATS)}
    likely = {kind: pattern for kind, pattern in likely.items() if any(fits(cell, kind) for cell in some)}
    read = {pattern: sum(fits(cell, kind) for cell in distinct) for kind, pattern in likely.items()}
    most = max(read.values(), default=0)
    if most < _NEARLY_ALL * len(distinct) or most == 0:
        return ()
    return tuple(pattern for pattern in FORMATS if read.get(pattern) == most)


def _is_energy(cells: Sequence[str]) -> bool:
    """Tell whether nearly all cells of a column are numbers, missing ones aside."""
    there = [cell for cell in cells if cell.lower() not in _MISSING]
    return bool(there) and sum(map(_is_number, there)) >= _NEARLY_ALL * len(there)


def _is_number(cell: str) -> bool:
    return _number(cell) is not None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _clock_time(cell: str, time_format: str) -> datetime | None:
    """Return what the clock of a timestamp shows, whatever its offset."""
    if time_format == ISO:
        try:
            return datetime.fromisoformat(re.sub(r"\.\d+$", "", cell))
        except ValueError:
            return None
    try:
        return datetime.strptime(cell, time_format).replace(tzinfo=None)
    except ValueError:
        return None


def _of_day(stamp: datetime) -> timedelta:
    return stamp - stamp.replace(hour=0, minute=0, second=0, microsecond=0)
