"""The columns of a table of readings, as far as the first lines of its files show them.

Keys that the first lines determine are decided; all others are proposals with reasons, or lists of candidates, until
the user decides. The evidence for each:

* The shape: a date with 24, 48, 96, ... columns of numbers is a row per day; a date with whole numbers that run from 0
  or 1 to that many has periods; a column for each household has names of one pattern, such as M001, and each time once.
* The household column is the privacy unit. It is decided if the header names a household, no second column can be it,
  and its values repeat with timestamps of their own. A record number or a tariff is refused by these conditions. A
  table without such a column is a household's if a line before the header names it, or if several files have the same
  times: then their names differ by it.
* A time format is decided if it is the only candidate of `time_formats`. Where day, month or year can be exchanged, all
  formats that fit the date are candidates, unless the days follow one another under one of them only.
* The unit is decided by the header ("kwh", "energy_wh", "power kW") or by the lines before it; the size of the values
  only gives a proposal. A header that names another unit, such as MWh or kVA, is refused.
* `stamp` is decided as "end" where a household's half-hours begin with 00:30 and end with 00:00. The reverse, 00:00 to
  23:30, is a proposal for "start": a calendar year that was cut out of end-stamped readings looks the same. It is
  decided if the column is a start by its name, or if a line before the header names that day as the first.
* `interval_minutes` is the most frequent difference of consecutive timestamps of a household.
* Timestamps with an offset, and seconds since 1970, are instants, which decides `zone = "UTC"`. Nothing shows whose
  midnight ends a day.
* A key is read off readings where the content of rows decides it: their energies, channels, or which times there are;
  not where the header, a line before it, or the form of every timestamp does.
* Several rows of a household at one time are channels or meters if another column tells them apart: whether they add up
  or one of them is chosen, is never decided here, nor what a negative energy means.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise, takewhile
from statistics import median
from typing import Any, Final
from zoneinfo import ZoneInfo

from agedp.setup import time_formats
from agedp.setup.run_file_draft import KeyLine
from agedp.setup.run_file_options import FLAGS, Key, quoted, toml_text, toml_value
from agedp.setup.time_formats import NumberMarks
from agedp_data.datasets.csv_lines import has_index
from agedp_data.datasets.layout import DECLARABLE, INTERVALS, common_interval
from agedp_data.datasets.table_text import MISSING_WORDS, NEARLY_ALL, TableText, are_mostly, known_cells, table_text
from agedp_data.datasets.timestamps import EPOCHS, ISO, REST, parser_format
from agedp_data.datasets.validation import ALL_COLUMNS, INTERVAL_MINUTES, NamedColumns
from agedp_data.errors import InputError
from agedp_data.messages import escape_text
from agedp_data.roster import columns_of

TABLE: Final = "input.columns"

_HOUSEHOLD = re.compile(
    r"house|home|dwelling|premise|meter|customer|client|site|mpan|mpxn|mprn|nmi|user|account|haushalt|z(ä|ae)hl(er|punkt)"
    r"|messlok|marktlok|foyer|compteur|hogar|contador|cups|identif|lclid|dataid"
    r"|(^|[ _])(id|prm|pdl|ean|pod|cpe)($|[ _-])",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"(^|[ _])[iI][dD]$|[a-z]I[dD]$|[A-Z]id$")
_TIME = re.compile(r"time|date|stamp|read_?at|start|end|from|until|horodat|heure|fecha|hora|datum|zeit", re.IGNORECASE)
_ENERGY = re.compile(
    r"k?wh|energy|[eé]nerg|consum|consom|verbrauch|usage|import|export|load|volum|valeur|valor|wert"
    r"|(^|[^a-z])use($|[^a-z])"
    r"|(?<![a-z])k?w(?![a-z])|power|puissance|potencia|leistung",
    re.IGNORECASE,
)
_START = re.compile(r"(?<![a-z])(start|begin|from|debut|début|ini[cz]io|desde|(von|van|da)(?![a-z]))", re.IGNORECASE)
_END = re.compile(
    r"(?<![a-z])(end|until|to|bis|fin|fim|fine|hasta|tot)(?![a-z])|(?<![a-z])(end_?(time|date)|endzeit)", re.IGNORECASE
)
_EXPORT = re.compile(r"export|inject|einspeis|generat|solar|^b\d$", re.IGNORECASE)
_QUALITY = re.compile(r"quali|status|state|flag|estim|valid|version|revis|actual|(é|e)tat|nature|estado", re.IGNORECASE)
_MONEY = re.compile(r"[$€£] ?-?[\d.,]+|-?[\d.,]+ ?[$€£]")
_CLOCK = re.compile(
    r"\d{1,2}(:\d\d){1,2}(\.0+)?( ?[AaPp]\.? ?[Mm]\.?)?(\s*([-–]|to|bis|a|à)\s*\d{1,2}:\d\d.*)?"
    r"|([01]\d|2[0-4])[0-5][05]"
)
_UNITS: Final = {"kwh": "kWh", "wh": "Wh", "kw": "kW", "w": "W"}
_NAMED_UNIT = re.compile(r"kwh|(?<![a-z])(wh|kw|w)(?![a-z])")
_STATED_UNIT = re.compile(r"(?:(?i:unit|uom|unité|unite|einheit|unidad)\W+)?(kWh|KWH|kwh|Wh|WH|kW|KW|W)")
_OTHER_UNIT = re.compile(r"[mgt]wh(?![a-z])|k(va|varh?)(?![a-z])|(?<![a-z])([mg]w|m?va|[kmg]?j)(?![a-z])")
"""Units other than those of [input.columns] unit, in a header of small letters."""
_PER_DAY: Final = {1440 // minutes: minutes for minutes in INTERVALS}
"""Minutes of an interval by their number in a day."""
_PER_LONG_DAY: Final = frozenset(1500 // minutes for minutes in INTERVALS)
_MAX_CHANNELS = 8
_COLUMNS_OF_ROWS, _COLUMNS_OF_A_ROW = 5, 10
"""Fewest columns of numbers that are households', by several rows, and by the one that a very wide table begins with;
fewer may be the phases or the appliances of one home.
"""
_SOME_NEGATIVE = 0.01
_OFFSET = re.compile(r":\d\d(\.\d+)?[+-]\d\d$")
_MIDNIGHT, _DAY = timedelta(), timedelta(days=1)
_SMALL_WH = 20.0
_SHOWN, _NAMED, _LINES_OF_HOUSEHOLD = 8, 12, 20
_READ_OFF: Final = "read off the first values"
_REPEATED = 4
"""With fewer timestamps for a value, the value may be the number of a record."""
_COLUMN_KEYS: Final = ("household", "time", "energy")


class UnreadableTable(InputError):
    """A long table of which no row can be read before a column or a form is named.

    `candidates` are the values that each key may have; private, as they quote the header.
    """

    def __init__(
        self, public: str, *, private: str | None = None, candidates: Mapping[Key, tuple[str, ...]] | None = None
    ) -> None:
        super().__init__(public, private=private)
        self.candidates = candidates or {}


@dataclass(frozen=True, slots=True)
class LongTable:
    """The columns of a table by its first rows: the lines of [input.columns], reasons, and undecided columns.

    `reasons` explain by key why a line is proposed or decided; `unreadable` are the keys without which no row can be
    read, each with its candidates. `interval_minutes` is the time between readings, None with too few rows.
    """

    lines: tuple[KeyLine, ...]
    reasons: Mapping[str, str]
    unreadable: Mapping[str, tuple[str, ...]]
    interval_minutes: int | None = None

    @property
    def understood(self) -> str:
        """Return what the first lines show, and why the rest is open: private, since reasons quote values."""
        shown = ", ".join(f"{line.key} = {line.toml}" for line in self.lines if line.decided)
        proposed = [line for line in self.lines if not line.decided]
        texts = [f"perhaps {line.key} = {line.toml} ({self.reasons[line.key]})" for line in proposed]
        if flags := " ".join(f"--read-off {line.key}" for line in proposed if line.read_off):
            texts.append(f"if you follow the readings in this, also give {flags}: the statement lists them")
        return "; ".join([f"The first lines show {shown}", *texts])

    def check_readable(self) -> None:
        """Refuse a table whose rows cannot be read yet, naming the options that are needed; candidates are private.

        Raises:
            UnreadableTable: there is a key without which no row can be read.
        """
        if not self.unreadable:
            return
        problem = "a long table whose first rows leave open how to read it. Give"
        flags = {FLAGS[TABLE, key]: [*map(quoted, names)] for key, names in self.unreadable.items()}
        shown = {flag: [*names[:_NAMED], *["..."][len(names) <= _NAMED :]] for flag, names in flags.items()}
        needed = "; ".join(f"{flag} ({' or '.join(names)})" for flag, names in shown.items())
        candidates = {(TABLE, key): names for key, names in self.unreadable.items()}
        raise UnreadableTable(f"{problem} {', '.join(flags)}", private=f"{problem} {needed}", candidates=candidates)


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """The other files of a delivery, by which a household that is a file is recognised.

    Attributes:
        names: the names of all files, without their folders.
        other_lines: the first lines of a few other files than the one that is looked at.
    """

    names: Sequence[str] = ()
    other_lines: Sequence[Sequence[str]] = ()

    @property
    def pattern(self) -> str:
        """Return what the names have in common, with a star where they differ and for days after it; "" for one file.

        >>> OtherFiles(["meter-12_2025-06-02.csv", "meter-17_2025-06-02.csv"]).pattern
        'meter-*_*.csv'
        """
        if len(set(self.names)) < 2:
            return ""
        before, after = _common_start(self.names), _common_start([name[::-1] for name in self.names])[::-1]
        before, after = re.sub(r"[0-9]+$", "", before), re.sub(r"^[0-9]+", "", after)
        after = re.sub(r"[0-9]{4}([-_]?[0-9]{2}){1,2}", "*", after)
        return f"{before}*{after}" if len(before) + len(after) < min(map(len, self.names)) else ""


def read_columns(
    lines: Sequence[str],
    options: Mapping[Key, str],
    *,
    complete: bool,
    encoding: str = "utf-8",
    others: OtherFiles | None = None,
) -> LongTable | None:
    """Return the columns of a table from the first lines of a file; None if no line has a row below it.

    `options` by table and key, as TOML, are decisions and are taken as they are. `complete` tells
    that the lines are all lines of the file, so that its last household ends with them.

    Raises:
        InputError: an option names a column that the header lacks; the readings are of an interval that no run file can
            declare; the header names a unit that cannot be read; the rows have no timestamps or no energies.
    """
    given = {key: toml_value(toml) for (table, key), toml in options.items() if table == TABLE}
    text = table_text(lines, separator=given.get("separator"), skip_lines=given.get("skip_lines"))
    if given.get("skip_lines", 0) >= len(lines) > 0:
        flag = f"{FLAGS[TABLE, 'skip_lines']} {given['skip_lines']}"
        raise InputError(f"{flag} skips all of the {len(lines)} lines among which the header is sought. Give fewer")
    if text is None:
        return None
    if text.has_open_end:
        raise InputError("each row ends with a separator that the header lacks; add one at the end of the header")
    if not (text.has_separator_line and text.skip_lines == 1):  # the line `sep=;` alone is skipped anyway
        given.setdefault("skip_lines", text.skip_lines)
    for key, value, default in (("separator", text.separator, ","), ("encoding", encoding, "utf-8")):
        if value != default:
            given.setdefault(key, value)
    if given.get("skip_lines") == 0:
        del given["skip_lines"]
    _check_columns(text.names, given)
    where = given.get("where", {}).items()
    wanted = [(text.names.index(name), columns_of(words)) for name, words in where if name in text.names]
    if rows := tuple(row for row in text.rows if all(row[i] in words for i, words in wanted)):
        text = replace(text, rows=rows)
    asked = frozenset(key for _, key in options)
    return _ColumnReader(text, given, asked, others or OtherFiles(), complete=complete).table()


def _check_columns(names: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuse options that name a column which the header does not have exactly once."""
    wrong = [(key, name) for key in _COLUMN_KEYS for name in _named(key, given) if names.count(name) != 1]
    if wrong:
        flags = ", ".join(f"{FLAGS[TABLE, key]} {escape_text(name) or quoted(name)}" for key, name in wrong)
        is_duplicate = any(name in names for _, name in wrong)
        problem = "the header has that column more than once" if is_duplicate else "not a column of the header"
        message = (
            f"{flags}: {problem}. Give {'each column a name of its own' if is_duplicate else 'one of its columns'}"
        )
        columns = ", ".join(quoted(escape_text(name, 40)) for name in dict.fromkeys(names))
        raise InputError(message, private=f"{message}: {columns}")


def _named(key: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that an option names; none for the name of a file or a line, and for all columns."""
    names = columns_of(given.get(key))
    is_elsewhere = key == "household" and any(name.startswith(("file:", "line:")) for name in names)
    return () if is_elsewhere else tuple(name for name in names if name != ALL_COLUMNS)


class _ColumnReader:
    """Determines the columns one by one; decided and proposed ones are in `_lines`, candidates in `_unreadable`.

    `_times` are the columns of the timestamp, `_energies` those of the energies; `_moment` has the texts of all time
    columns of a row, `_stamps` those to which the format applies: without the number of a period.
    """

    def __init__(
        self, text: TableText, given: Mapping[str, Any], asked: frozenset[str], others: OtherFiles, *, complete: bool
    ) -> None:
        self._text, self._given, self._asked, self._beside, self._complete = text, given, asked, others, complete
        self._cells = {name: [row[i] for row in text.rows] for i, name in enumerate(text.names)}
        self._lines: dict[str, KeyLine] = {}
        self._reasons: dict[str, str] = {}
        self._unreadable: dict[str, tuple[str, ...]] = {}
        self._dates = [name for name, cells in self._cells.items() if time_formats.candidate_dates(cells)]
        self._moments = [
            n for n, cells in self._cells.items() if n not in self._dates and time_formats.candidate_formats(cells)
        ]
        index = text.names[:1] if has_index(text.names) else ()
        self._others = [name for name in self._cells if name not in (*self._dates, *self._moments, *index)]
        self._numbers = [name for name in self._others if name and _is_numeric(self._cells[name])]
        self._times: tuple[str, ...] = ()
        self._energies: tuple[str, ...] = ()
        self._moment: list[str] = []
        self._stamps: list[str] = []
        self._minutes: int | None = None
        self._marks = NumberMarks()

    def table(self) -> LongTable:
        for key in ("separator", "encoding", "skip_lines"):
            if self._is_given(key) and key not in self._asked:
                self._reasons[key] = "as the first lines show"
        self._time()
        self._energy()
        self._household()
        self._number_marks()
        self._time_format()
        self._interval()
        self._detect_interval_label()
        self._zones()
        self._unit()
        self._channels()
        order = [field.name for field in fields(NamedColumns)]
        lines = sorted(self._lines.values(), key=lambda line: order.index(line.key))
        return LongTable(tuple(lines), self._reasons, self._unreadable, self._minutes)

    def _time(self) -> None:
        """Decide the columns of the timestamp: one, a date with a time of day or with a period, or that of a day."""
        if self._is_given("time"):
            self._times = columns_of(self._given["time"])
        elif self._moments:
            self._column("time", self._moments, _TIME)
            self._times = columns_of(self._value("time"))
        elif self._dates:
            self._time_of_dates()
        else:
            raise self._error("no column has dates and times of day", "time")
        if len(self._times) == 2 and not self._is_given("period_minutes"):
            period = _period(self._cells[self._times[1]])
            if period is not None and not _has_clock(self._cells[self._times[1]]):
                first, minutes = period
                self._decide("period_minutes", minutes, f"the numbers run from {first} on")
                if first != 1 and not self._is_given("first_period"):
                    self._decide("first_period", first, "the first of the numbers")
        columns = [self._cells[name] for name in self._times]
        self._moment = [" ".join(cells) for cells in zip(*columns, strict=True)]
        self._stamps = self._cells[self._times[0]] if "period_minutes" in self._lines else self._moment

    def _time_of_dates(self) -> None:
        """Decide the column beside a date, or none where a row is a day."""
        named = [name for name in self._dates if _START.search(name)] or self._dates
        date = named[0] if len(named) == 1 or len(self._dates) == 1 else ""
        clocks = [name for name in self._others if _has_clock(self._cells[name])]
        clocks = [name for name in clocks if _START.search(name)] or clocks
        periods = [n for n in self._others if n not in clocks and _period(self._cells[n])] if not clocks else []
        if not date:
            self._unreadable["time"] = tuple(self._dates)
        elif self._block() or not isinstance(self._given.get("energy", ""), str):
            self._decide("time", date, "the only date, of a row per day")
            self._times = (date,)
        elif len(clocks + periods) == 1:
            self._times = (date, (clocks + periods)[0])
            kind = "a time of day" if clocks else "the number of a period"
            self._decide("time", self._times, f"a date and {kind} in columns apart")
        elif clocks or periods:
            self._unreadable["time"] = tuple(f"{date} with {name}" for name in (*clocks, *periods))
        else:
            long_days = [len(run) for run in self._runs() if len(run) in _PER_LONG_DAY]
            if long_days:
                problem = f"a row of a day has {long_days[0]} columns of numbers, as many as a day of 25 hours has"
                raise InputError(f"{problem}; write a row for each interval, with its date and number")
            raise self._error("there are dates without a time of day", "time")

    def _block(self) -> tuple[str, ...]:
        """Return the columns of a row per day: neighbours with names of one pattern, or all, as many as intervals."""
        return next((run for run in self._runs() if len(run) in _PER_DAY), ())

    def _runs(self) -> Iterator[tuple[str, ...]]:
        """Yield the neighbouring columns of numbers: those with names of one pattern, then all."""
        patterns = {name: _pattern(name) if name in self._numbers else "" for name in self._cells}
        for kinds in (patterns, {name: pattern and "#" for name, pattern in patterns.items()}):
            yield from (tuple(names) for kind, names in groupby(kinds, kinds.__getitem__) if kind)

    def _energy(self) -> None:
        if self._is_given("energy"):
            value = self._given["energy"]
            self._energies = (value,)
            if isinstance(value, list):
                names = list(self._cells)
                self._energies = tuple(names[names.index(value[0]) : names.index(value[1]) + 1])
            elif value == ALL_COLUMNS:
                self._energies = tuple(self._numbers)
                self._given = {"household": ALL_COLUMNS, **self._given}
        elif len(self._times) == 1 and self._times[0] in self._dates and (block := self._block()):
            self._energies = block
            self._decide("energy", (block[0], block[-1]), f"{len(block)} columns of numbers, one for each interval")
        elif self._is_wide():
            self._energies = tuple(self._numbers)
            self._decide("energy", ALL_COLUMNS, "every column but the timestamp")
        else:
            numbers = [name for name in self._numbers if name not in self._times and not _names_household(name)]
            if not numbers:
                raise self._error("no column has numbers besides identifiers and timestamps", "energy")
            self._column("energy", numbers, _ENERGY)
            if "energy" in self._unreadable and len(set(self._moment)) == len(self._moment):
                self._unreadable["energy"] += (ALL_COLUMNS,)
            self._energies = columns_of(self._value("energy"))

    def _is_wide(self) -> bool:
        """Return whether each timestamp comes once, and nearly all columns beside it are numbers named alike."""
        if self._given.get("household") == ALL_COLUMNS:
            return True
        if "household" in self._given or len(set(self._moment)) < len(self._moment):
            return False
        patterns = Counter(map(_pattern, self._numbers))
        alike = patterns.most_common(1)[0][1] if patterns else 0
        texts = [name for name in self._others if name not in self._numbers and name not in self._times]
        fewest = _COLUMNS_OF_ROWS if len(self._moment) > 1 else _COLUMNS_OF_A_ROW
        is_measured = any(map(_ENERGY.search, self._numbers))
        return alike >= max(fewest, NEARLY_ALL * len(self._numbers)) and alike > len(texts) and not is_measured

    def _household(self) -> None:
        """Decide the household column by header and rows; every possible column is a candidate."""
        if self._is_given("household"):
            return
        if self._value("energy") == ALL_COLUMNS:
            self._decide("household", ALL_COLUMNS, "a column for each household: names of one pattern, each time once")
            texts = tuple(n for n in self._others if n and n not in self._numbers and n not in self._times)
            unused = tuple(name for name in (*self._dates, *self._moments) if name not in self._times)
            if (texts or unused) and not self._is_given("ignore"):
                self._decide("ignore", (*texts, *unused), "no numbers")
            return
        names = [name for name in self._others if name and name not in (*self._energies, *self._times)]
        likely = [name for name in names if _names_household(name)]
        names = [name for name in names if name not in likely and not _has_clock(self._cells[name])]
        possible = likely + [name for name in names if self._may_name_households(name)]
        if any(len(set(self._cells[name])) > 1 for name in likely):  # beside it, a text of all rows is no household
            words = [n for n in possible if n not in likely and not _is_numeric(self._cells[n])]
            possible = [name for name in possible if name not in words or len(set(self._cells[name])) > 1]
        if not possible and self._household_of_file():
            return
        stamps = self._moment or self._cells.get(next(iter(self._moments), ""), [])
        tags = [name for name in possible if len(likely) == 1 and self._tells_apart(name, likely[0], stamps)]
        if tags:  # of one home, at one time
            stamps = [" ".join(pair) for pair in zip(stamps, self._cells[tags[0]], strict=True)]
        surely = len(likely) == 1 and set(possible) == {*likely, *tags}
        if surely and _repeats(self._cells[likely[0]], stamps):
            self._decide("household", likely[0], "the only column of its kind; its values repeat at other timestamps")
        else:
            candidates = dict.fromkeys(possible or names or self._cells)  # first those of which each time comes once
            self._unreadable["household"] = tuple(
                sorted(candidates, key=lambda name: not _repeats(self._cells[name], stamps))
            )

    def _household_of_file(self) -> bool:
        """Decide a household that no column has: by a line before the header, or by the name of the file."""
        for i, line in enumerate(self._text.before[:_LINES_OF_HOUSEHOLD]):
            above = self._text.before[i - 1][0] if i and self._text.before[i - 1] else ""
            cell = line[0] if line else ""
            is_named = (_names_household(above) and not _names_household(cell)) or _names_household(cell.split(":")[0])
            others = [lines[i] for lines in self._beside.other_lines if i < len(lines)]
            if is_named and any(map(str.isdigit, cell)) and not any(other.startswith(cell) for other in others):
                self._decide("household", f"line:{i + 1}", "a line before the header names it, and no column does")
                return True
        pattern = self._beside.pattern
        first = [self._cells[name][0] for name in self._times]
        lines = (line for lines in self._beside.other_lines for line in lines)
        if pattern and first and any(all(cell in line for cell in first) for line in lines):
            self._decide("household", f"file:{pattern}", "no column names it, and several files have the same times")
            return True
        if pattern:
            self._unreadable["household"] = (f"file:{pattern}",)
        return bool(pattern)

    def _may_name_households(self, name: str) -> bool:
        """Return whether a column without such a header holds texts or whole numbers, as identifiers are."""
        cells = known_cells(self._cells[name])
        if not cells or (_ENERGY.search(name) and _is_numeric(cells)):
            return False
        if (len(set(cells)) == 1 and not any(map(str.isdigit, cells[0]))) or all(map(_MONEY.fullmatch, cells)):
            return False  # one word in all rows, or what was paid
        return not _is_numeric(cells) or all(cell.lstrip("+-").isdigit() for cell in cells)

    def _tells_apart(self, name: str, household: str, stamps: Sequence[str]) -> bool:
        """Return whether a column tells the rows of a household at one time apart: its channels or meters."""
        if not stamps or name == household or len(set(self._cells[name])) > _MAX_CHANNELS:
            return False
        rows = list(zip(self._cells.get(household, [""] * len(stamps)), stamps, strict=True))
        told = set(zip(rows, self._cells[name], strict=True))
        return len(rows) - len(set(rows)) > (1 - NEARLY_ALL) * len(rows) and len(told) >= NEARLY_ALL * len(rows)

    def _column(self, key: str, candidates: Sequence[str], likely: re.Pattern[str]) -> None:
        named = [name for name in candidates if likely.search(name)]
        columns = named if len(named) == 1 else candidates
        starts = [name for name in columns if _START.search(name)]
        if key == "time" and len(columns) == 2 and len(starts) == 1 and any(map(_END.search, columns)):
            columns = starts
        if len(columns) == 1:
            self._decide(key, columns[0], "the only column of its kind")
        else:
            self._unreadable[key] = tuple(candidates)

    def _number_marks(self) -> None:
        """Decide decimal mark and mark between thousands, unless a mark may be either; and words for no reading."""
        cells = [cell for name in self._energies for cell in self._cells.get(name, ())]
        found = time_formats.marks_of(cells)
        decimal = self._given.get("decimal", found.decimal)
        thousands = self._given.get("thousands", "" if found.thousands == decimal else found.thousands)
        if found.is_open and not {"decimal", "thousands"} & self._given.keys():
            for key in ("thousands", "decimal"):
                self._unreadable[key] = (found.decimal,)
        elif "thousands" in self._given and thousands == decimal:
            decimal = "," if thousands == "." else "."
        self._marks = NumberMarks(decimal, thousands)
        for key, mark, default in (("decimal", decimal, "."), ("thousands", thousands, "")):
            if not self._is_given(key) and mark != default and key not in self._unreadable:
                self._decide(key, mark, "as the numbers of the first rows show", read_off=True)
        words = tuple(sorted({cell for cell in cells if cell.lower() in MISSING_WORDS} - {"", "Null"}))
        if words and not self._is_given("missing"):
            self._decide("missing", ("Null", "", *words), "in place of numbers", read_off=True)

    def _time_format(self) -> None:
        if self._is_given("time_format") or "time" not in self._lines:
            return
        is_date = "period_minutes" in self._lines or (len(self._times) == 1 and self._times[0] in self._dates)
        formats = (time_formats.candidate_dates if is_date else time_formats.candidate_formats)(self._stamps)
        following = time_formats.consecutive_format(self._stamps, formats) if len(formats) > 1 else None
        if following:
            reason = "the only format by which the days follow one another"
            self._decide("time_format", following, reason, read_off=True)
        elif len(formats) == 1:
            example = escape_text(self._stamps[0], 40)
            self._decide("time_format", formats[0], f'reads the first timestamps, such as "{example}"')
        else:
            self._unreadable["time_format"] = formats or (ISO,)

    def _interval(self) -> None:
        """Find the minutes between readings, None with too few rows; refuse intervals that cannot be declared."""
        if "period_minutes" in self._lines:
            self._minutes = int(self._value("period_minutes"))
        elif self._is_by_day:
            self._minutes = _PER_DAY.get(len(self._energies))
        elif not self._unreadable.keys() & {"household", "time", "time_format"}:
            households = ([(stamp - datetime.min) // timedelta(minutes=1) for stamp in s] for s in self._households())
            self._minutes = common_interval(households, max_minutes=_DAY // timedelta(minutes=1))
        if self._minutes is not None and self._minutes not in INTERVALS:
            raise InputError(f"the readings are {self._minutes} minutes apart; deliver readings of {DECLARABLE}")

    @property
    def _is_by_day(self) -> bool:
        return isinstance(self._value("energy"), list)

    def _detect_interval_label(self) -> None:
        is_range = str(self._value("time_format")).endswith(REST) and time_formats.are_ranges(self._stamps)
        if is_range and self._given.get("stamp") == "end":
            raise InputError('the times are ranges, of which the first is read: give --stamp "start"')
        if self._is_given("stamp"):
            return
        if is_range:
            self._decide("stamp", "start", "the first of two times is read")
            return
        if self._is_by_day or "period_minutes" in self._lines:
            self._decide("stamp", "start", "not used: the order of the intervals counts from midnight")
            return
        interval = timedelta(minutes=self._minutes or INTERVAL_MINUTES)
        spans = [(_time_of_day(timestamps[0]), _time_of_day(timestamps[-1])) for timestamps in self._whole_households()]
        last_time = _DAY - interval
        is_end, is_start = (set(spans) == {shape} for shape in ((interval, _MIDNIGHT), (_MIDNIGHT, last_time)))
        name = self._times[-1] if self._times else ""
        shown_end = f"households begin with {_clock(interval)} and end with 00:00"
        if is_end and _START.search(name):
            self._propose("stamp", "start", f"the name of the column says so, but {shown_end}")
        elif is_end:
            self._decide("stamp", "end", shown_end, read_off=True)
        elif _START.search(name) or _END.search(name):
            self._decide("stamp", "start" if _START.search(name) else "end", "the name of the column says so")
        elif is_start and self._is_first_day_stated():
            reason = "the day that a line before the header names begins with 00:00"
            self._decide("stamp", "start", reason, read_off=True)
        elif is_start:
            shown_start = f"households begin with 00:00 and end with {_clock(last_time)}"
            self._propose("stamp", "start", f"{shown_start}, unless the days were cut out", read_off=True)
        elif spans or not (first_times := {_time_of_day(timestamps[0]) for timestamps in self._households()}):
            self._propose("stamp", "end", "the first rows do not show it")
        elif first_times == {interval}:
            self._propose("stamp", "end", f"households begin with {_clock(interval)}", read_off=True)
        else:
            side = "start" if first_times == {_MIDNIGHT} else "end"
            self._propose("stamp", side, "the first rows hardly show it", read_off=True)

    def _is_first_day_stated(self) -> bool:
        """Return whether a line before the header has the date of the first row."""
        days = {timestamps[0].date() for timestamps in self._whole_households()}
        cells = [cell for line in self._text.before for cell in line]
        formats = [(cell, pattern) for cell in cells for pattern in time_formats.candidate_dates([cell])]
        times = [time_formats.clock_time(cell, pattern) for cell, pattern in formats]
        return bool(days & {time.date() for time in times if time is not None})

    def _zones(self) -> None:
        time_format = str(self._value("time_format") or "")
        if not self._is_given("zone"):
            is_instant = time_format == ISO and time_formats.candidate_formats(self._stamps[:1] or [""]) == (ISO,)
            if "%z" in time_format or time_format in EPOCHS or (is_instant and _OFFSET.search(self._stamps[0])):
                self._decide("zone", "UTC", "the timestamps are instants, by their offset or as seconds since 1970")
            else:
                self._propose("zone", "UTC", "the timestamps have no offset; nothing shows their zone")
        if not self._is_given("day_zone"):
            self._propose("day_zone", "UTC", "nothing shows whose midnight ends a day")

    def _unit(self) -> None:
        if self._is_given("unit") or "energy" not in self._lines:
            return
        name = next(iter(self._energies), "").lower()
        cells = (cell for line in self._text.before for cell in line)
        stated = {_UNITS[unit[1].lower()] for unit in map(_STATED_UNIT.fullmatch, cells) if unit}
        named = [n for n in self._others if n not in self._numbers and set(map(str.lower, self._cells[n])) <= {*_UNITS}]
        in_rows = {_UNITS[cell.lower()] for n in named for cell in self._cells[n]}
        if len(in_rows) > 1:
            problem = "the rows have units of their own; convert them to one, or choose rows by --where"
            raise InputError(problem, private=f"{problem}: {', '.join(sorted(in_rows))}")
        if in_rows and not _NAMED_UNIT.search(name):
            self._decide("unit", in_rows.pop(), "a column of the rows names it")
        elif found := _NAMED_UNIT.search(name):
            self._decide("unit", _UNITS[found[0]], "the header names it")
        elif len(stated) == 1:
            self._decide("unit", next(iter(stated)), "a line before the header names it")
        else:
            if unread := _OTHER_UNIT.search(name):
                text = unread[0].upper().replace("WH", "Wh").replace("K", "k")
                advice = "Convert the column, or give --unit if the header is wrong"
                raise InputError(f"the header of the energy column names {text}; kWh, Wh, kW and W are read. {advice}")
            values = [abs(value) for value in self._values() if value]
            median_value = median(values) if values else 0.0
            is_power = re.search("power|puissance|potencia|leistung", name)
            unit = ("W" if is_power else "Wh") if median_value > _SMALL_WH else ("kW" if is_power else "kWh")
            reason = f"the median of the first values above 0 is {median_value:.3g}; the header names no unit"
            self._propose("unit", unit, reason, read_off=True)

    def _values(self) -> list[float]:
        cells = (cell for name in self._energies for cell in self._cells.get(name, ()))
        return [number for cell in cells if (number := time_formats.parse_number(cell, self._marks)) is not None]

    def _channels(self) -> None:
        """Propose how rows of one household at one time are read, and negative energies; neither is decided here."""
        values = self._values()
        some = sum(value < 0 for value in values) >= max(1, _SOME_NEGATIVE * len(values))
        if some and not self._is_given("negative"):
            rule = "net" if "net" in next(iter(self._energies), "").lower() else "zero"
            reason = "some of the first energies are negative"
            self._propose("negative", rule, reason, "zero | net | reject", read_off=True)
        if self._unreadable or {"add", "where"} & self._given.keys():
            return
        household = str(self._value("household"))
        used = (household, *self._times, *self._energies)
        tags = [n for n in self._others if n and n not in used and self._tells_apart(n, household, self._moment)]
        if tags:
            words = sorted(set(known_cells(self._cells[tags[0]])))
            imports = [word for word in words if not _EXPORT.search(word)]
            reason = f"several rows of a household at one time: {', '.join(escape_text(word, 20) for word in words)}"
            if _QUALITY.search(tags[0]):  # versions of one reading, which do not add up
                imports = [Counter(self._cells[tags[0]]).most_common(1)[0][0]]
            is_mixed = 0 < len(imports) < len(words)
            rows = zip(self._cells.get(household, self._moment), self._moment, self._cells[tags[0]], strict=True)
            read = [(home, moment) for home, moment, tag in rows if not is_mixed or tag in imports]
            if is_mixed:
                self._propose("where", {tags[0]: imports}, reason, "these rows are read", read_off=True)
            if len(set(read)) < NEARLY_ALL * len(read):
                self._propose("add", tags[0], reason, "added up; or choose some with where", read_off=True)

    def _whole_households(self) -> list[list[datetime]]:
        """Return the timestamps of households that begin and end within the first rows, in the order of the file."""
        households = list(self._households())
        household_cells = self._cells.get(str(self._value("household")), [])
        blocks = sum(earlier != later for earlier, later in pairwise(household_cells)) + 1
        by_household = blocks == max(1, len(set(household_cells)))
        if not by_household or "household" not in self._lines:
            return []
        return households if self._complete else households[:-1]

    def _households(self) -> Iterator[list[datetime]]:
        """Yield the timestamps of each household in the order of the file; of a file or a wide table all of them."""
        if not {"household", "time", "time_format"} <= set(self._lines):
            return
        time_format = parser_format(str(self._value("time_format")))
        cells = self._cells.get(str(self._value("household")), [""] * len(self._stamps))
        timestamps: dict[str, list[datetime]] = {}
        for household, stamp in zip(cells, self._stamps, strict=True):
            if (timestamp := time_formats.clock_time(stamp, time_format)) is not None:
                if time_format in EPOCHS and "day_zone" in self._given:
                    local = timestamp.replace(tzinfo=UTC).astimezone(ZoneInfo(self._given["day_zone"]))
                    timestamp = local.replace(tzinfo=None)
                timestamps.setdefault(household, []).append(timestamp)
        yield from timestamps.values()

    def _error(self, problem: str, key: str) -> InputError:
        """Return the error about a column that no first row shows; names and row are private: either may have ids."""
        names = ", ".join(quoted(escape_text(name, 30)) for name in list(self._cells)[:_SHOWN])
        row = ", ".join(quoted(escape_text(cell, 30)) for cell in self._text.rows[0][:_SHOWN])
        message = f"{problem}. Give {FLAGS[TABLE, key]}"
        shown = f"the columns of line {self._text.skip_lines + 1} are {names}; the first row has {row}"
        return InputError(message, private=f"{message}: {shown}")

    def _is_given(self, key: str) -> bool:
        if key in self._given:
            self._lines[key] = KeyLine(key, toml_text(self._given[key]))
            return True
        return False

    def _decide(self, key: str, value: object, reason: str, *, read_off: bool = False) -> None:
        self._propose(key, value, reason, read_off=read_off)
        self._lines[key] = replace(self._lines[key], decided=True)

    def _propose(self, key: str, value: object, reason: str, comment: str = "", *, read_off: bool = False) -> None:
        comment = comment or (_READ_OFF if read_off else "")
        self._lines[key] = KeyLine(key, toml_text(value), comment, decided=False, read_off=read_off)
        self._reasons[key] = reason

    def _value(self, key: str) -> Any:  # noqa: ANN401  (any value of a key)
        return toml_value(self._lines[key].toml) if key in self._lines else None


def _common_start(names: Sequence[str]) -> str:
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in alike)


def _pattern(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _has_clock(cells: Sequence[str]) -> bool:
    """Return whether a column has times of day, 0030 among them."""
    return are_mostly(cells, _CLOCK)


def _period(cells: Sequence[str]) -> tuple[int, int] | None:
    """Return the first number and the minutes of periods, if whole numbers run through a day from 0 or 1."""
    known = known_cells(cells)
    numbers = {int(cell) for cell in known if cell.isascii() and cell.isdigit()}
    if not numbers or min(numbers) > 1 or not all(map(str.isdigit, known)):
        return None
    first, count = min(numbers), max(numbers) - min(numbers) + 1
    found = (minutes for size, minutes in _PER_DAY.items() if size <= count <= size + size // 24)
    minutes = next(found, None)
    return (first, minutes) if minutes is not None and len(numbers) == count else None


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


def _is_numeric(cells: Sequence[str]) -> bool:
    """Return whether nearly all cells of a column are numbers, not counting missing ones."""
    return are_mostly(cells, time_formats.NUMBER)


def _clock(time: timedelta) -> str:
    return f"{time // timedelta(hours=1):02d}:{time // timedelta(minutes=1) % 60:02d}"


def _time_of_day(timestamp: datetime) -> timedelta:
    return timestamp - timestamp.replace(hour=0, minute=0, second=0, microsecond=0)
