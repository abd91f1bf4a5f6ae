"""A second reader of the input files, written from the description of the datasets alone: slow, exact, line by line.

It splits bytes at line feeds and one line into fields by hand, knows `Decimal`, and nothing of the project. `rows`
counts the lines behind the header, `kept` is what is left of them. `why_refused` is what gives the project the right
to refuse the whole file: nothing but the header line can.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal, DivisionByZero, InvalidOperation, localcontext
from functools import lru_cache

FOUR = ["lclid", "stdortou", "datetime", "kwh/hh (per half hour)"]
LONDON = [
    FOUR,
    [*FOUR, "acorn", "acorn_grouped"],
    ["lclid", "tstp", "energy(kwh/hh)"],
    ["lclid", "datetime", "kwh/hh (per half hour)"],
]
LABELS = [f"{m // 60 % 24}:{m % 60:02d}" for m in range(30, 24 * 60 + 1, 30)]
AUSGRID = ["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date", *LABELS]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
LONGEST = 65536
BOM = b"\xef\xbb\xbf"
_SPREADSHEET_TEXT = re.compile(rb'="[^"]*"')
"""Such as ="0123": how spreadsheets keep a number as text; the quotes are part of the text."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:(Z)|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(?: (\d{1,2}):(\d\d)(?::(\d\d))?)?", re.ASCII)
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})[ \t]+(\d{1,2}):(\d{1,2})", re.ASCII)
_AUSGRID_DAY = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
_AUSGRID_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_MIDNIGHT = re.compile(r"[ T]0?0:00(:00(\.0+)?)?(Z|\+00:?00)?\Z", re.ASCII)
_AUSGRID_NAMED = re.compile(r"(\d{1,2})-([A-Za-z]{3})-(\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
_LAST_DAY = (date(2199, 12, 31) - _EPOCH.date()).days

Key = tuple[str, int]
"""Household, and half-hours since 1970 at which the reading begins."""
Energy = tuple[int, bool]
"""Whole watt-hours, and whether the amount lies half-way between two of them."""
Row = tuple[tuple[object, ...], tuple[Energy, ...]]
"""What a kept row is about, and its readings; -1 where one is missing."""


@dataclass
class Read:
    """What a file says: `kept` in whole watt-hours, `ties` those that lie half-way between two of them."""

    rows: int = 0
    kept: dict[Key, int] = field(default_factory=dict)
    rows_kept: int = 0
    ties: set[Key] = field(default_factory=set)
    why_refused: str = ""


def lines_of(data: bytes) -> list[bytes]:
    """The physical lines, each without its end: LF, or CR and LF."""
    pieces = data.split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    return [piece[:-1] if piece.endswith(b"\r") else piece for piece in pieces]


def fields_of(line: bytes) -> list[bytes] | None:
    """The fields of one row; None for a line that is no text, or has a quote that does not enclose a whole field."""
    if not line or len(line) > LONGEST or any(byte == 127 or (byte < 32 and byte != 9) for byte in line):
        return None
    return _split(line, bare_quotes=False)


def _split(line: bytes, *, bare_quotes: bool) -> list[bytes] | None:
    fields, at = [], 0
    while True:
        if line[at : at + 1] == b'"':
            text, at = _quoted(line, at + 1)
            if text is None or line[at : at + 1] not in (b"", b","):
                return None
        else:
            end = line.find(b",", at)
            text, at = (line[at:], len(line)) if end < 0 else (line[at:end], end)
            if b'"' in text and not bare_quotes and not _SPREADSHEET_TEXT.fullmatch(text):
                return None
        fields.append(text)
        if at >= len(line):
            return fields
        at += 1


def _quoted(line: bytes, at: int) -> tuple[bytes | None, int]:
    """The text up to the closing quote and the place behind it; None if nothing closes it."""
    text = b""
    while True:
        end = line.find(b'"', at)
        if end < 0:
            return None, len(line)
        text += line[at:end]
        if line[end + 1 : end + 2] != b'"':
            return text, end + 1
        text, at = text + b'"', end + 2


def names_of(line: bytes) -> list[str] | None:
    """The names of a header line, without padding; in names a bare quote is an ordinary character."""
    found = None if b"\r" in line or not line else _split(line, bare_quotes=True)
    return None if found is None else [name.decode("latin-1").strip(" \t") for name in found]


def energy_wh(cell: str, unit: int = 1000, missing: tuple[str, ...] = ("", "Null")) -> Energy | None:
    """Whole watt-hours, and whether they lie half-way; None for what is no reading."""
    cell = cell.strip(" \t")
    if cell in missing or not _NUMBER.fullmatch(cell):
        return None
    with localcontext(Emax=10**17, Emin=-(10**17), prec=60, traps=[InvalidOperation, DivisionByZero]):
        wh = Decimal(cell) * unit
        if not wh >= 0 or wh > 50_001:
            return None
        whole = wh.to_integral_value(rounding="ROUND_HALF_EVEN")
        if whole > 50_000:
            return None
        return int(whole), abs(abs(wh - whole) - Decimal("0.5")) < Decimal("1e-6")


def household(cell: bytes) -> str | None:
    """The id, if it is UTF-8."""
    try:
        return cell.decode("utf-8").removeprefix("\ufeff").strip(" \t") or None
    except UnicodeDecodeError:
        return None


def _instant(
    year: str, month: str, day: str, hour: str | None, minute: str | None, second: str | None = "0"
) -> datetime | None:
    """The clock's time; a date alone begins its day, and 24:00 ends it."""
    hours, minutes, seconds = (int(part or 0) for part in (hour, minute, second))
    ends_day = hours == 24 and minutes == seconds == 0
    try:
        found = datetime(int(year), int(month), int(day), 0 if ends_day else hours, minutes, seconds)
    except ValueError:
        return None
    return found + timedelta(days=1) if ends_day else found


def iso(cell: str, *, offsets: bool) -> datetime | None:
    """What an ISO stamp says, in UTC if it names its offset."""
    match = _ISO.fullmatch(cell)
    if match is None or (not offsets and (match[8] or match[9])):
        return None
    stamp = _instant(*match.groups()[:6])  # type: ignore[arg-type]
    if stamp is None or not 1700 < stamp.year < 2250 or int(match[10] or 0) > 23 or int(match[11] or 0) > 59:
        return None
    offset = timedelta(hours=int(match[10] or 0), minutes=int(match[11] or 0))
    # What lies below the second is off the half-hour, whatever it is.
    stamp += timedelta(microseconds=1) if int(match[7] or 0) else timedelta()
    return stamp + offset if match[9] == "-" else stamp - offset


def day_first(cell: str) -> datetime | None:
    """What a stamp such as 31/01/2013 00:30:00 says; seconds or the time of day may be left out."""
    match = _SLASHED.fullmatch(cell)
    return _instant(match[3], match[2], match[1], match[4], match[5], match[6]) if match else None


def dotted(cell: str) -> datetime | None:
    """What a stamp such as 31.01.2013 00:30 says."""
    match = _DOTTED.fullmatch(cell)
    return _instant(match[3], match[2], match[1], match[4], match[5]) if match else None


def _began(stamp: datetime | None, *, end: bool) -> int | None:
    if stamp is None:
        return None
    since, rest = divmod(stamp - _EPOCH - (timedelta(minutes=30) if end else timedelta()), timedelta(minutes=30))
    return since if not rest and 0 <= since // 48 <= _LAST_DAY else None


@dataclass(frozen=True)
class Long:
    """A table with one row per half-hour: its columns and how they are written."""

    household: str
    time: str
    energy: str
    stamp: Callable[[str], datetime | None]
    unit: int
    missing: tuple[str, ...]
    end: bool


@lru_cache(maxsize=100_000)
def _long_row(line: bytes, width: int, at: tuple[int, int, int], shape: Long) -> Row | None:
    cells = fields_of(line)
    if cells is None or len(cells) != width:
        return None
    home = household(cells[at[0]])
    began = _began(shape.stamp(cells[at[1]].decode("latin-1").strip(" \t")), end=shape.end)
    energy = energy_wh(cells[at[2]].decode("latin-1"), shape.unit, shape.missing)
    return None if home is None or began is None or energy is None else ((home, began), (energy,))


def _settled(rows: int, found: Iterable[Row | None]) -> Read:
    """Equal rows count once, rows that disagree not at all."""
    said: dict[tuple[object, ...], list[tuple[Energy, ...]]] = defaultdict(list)
    for row in found:
        if row is not None:
            said[row[0]].append(row[1])
    read = Read(rows)
    for key, values in said.items():
        if all([wh for wh, _ in value] == [wh for wh, _ in values[0]] for value in values):
            read.kept[key] = values[0][0][0]  # type: ignore[index]
            read.rows_kept += 1
        if any(tie for value in values for _, tie in value):
            read.ties.add(key)  # type: ignore[arg-type]
    return read


def _long(lines: list[bytes], width: int, at: tuple[int, int, int], shape: Long) -> Read:
    return _settled(len(lines), (_long_row(line, width, at, shape) for line in lines))


_LONDON_SHAPE = Long("", "", "", lambda cell: iso(cell, offsets=True) or day_first(cell), 1000, ("", "Null"), end=True)


def london(data: bytes) -> Read:
    """Read a London file."""
    lines = lines_of(data.removeprefix(BOM))
    if not data.removeprefix(BOM).strip():
        return Read()
    names = [name.strip('"').lower() for name in names_of(lines[0]) or []]
    index = names[:1] == [""]  # that of a data frame
    if names[index:] not in LONDON or len(lines[0]) > LONGEST:
        return Read(why_refused="header")
    time = next(i for i, name in enumerate(names) if name in ("datetime", "tstp"))
    energy = next(i for i, name in enumerate(names) if name.startswith(("kwh/hh", "energy(kwh/hh)")))
    return _long(lines[1:], len(names), (int(index), time, energy), _LONDON_SHAPE)


def long(data: bytes, shape: Long) -> Read:
    """Read a table with one row per half-hour."""
    lines = lines_of(data.removeprefix(BOM))
    if not data.removeprefix(BOM).strip():
        return Read()
    names = [_name(cell) for cell in names_of(lines[0]) or []]
    wanted = [shape.household, shape.time, shape.energy]
    if [names.count(name) for name in wanted] != [1, 1, 1] or len(lines[0]) > LONGEST:
        return Read(why_refused="header")
    at = (names.index(wanted[0]), names.index(wanted[1]), names.index(wanted[2]))
    return _long(lines[1:], len(names), at, shape)


def _name(cell: str) -> str:
    """A column's name as the UTF-8 that its bytes are, if they are."""
    try:
        return cell.encode("latin-1").decode("utf-8").strip(" \t")
    except UnicodeDecodeError:
        return cell


def ausgrid(data: bytes) -> Read:
    """Read an Ausgrid file: one row per customer, category and day; GC + CL, or GC alone."""
    lines = lines_of(data.removeprefix(BOM))
    if not data.removeprefix(BOM).strip():
        return Read()
    heads = [names_of(line) or [] for line in lines[:2]]
    top = next((i for i, names in enumerate(heads) if _begins_as_ausgrid(names)), None)
    if top is None or not _is_ausgrid(heads[top]) or sum(map(len, lines[: top + 1])) > LONGEST:
        return Read(why_refused="header")
    rows = [_wide_row(line, len(heads[top])) for line in lines[top + 1 :]]
    return _add_up(len(rows), [row for row in rows if row is not None])


def _begins_as_ausgrid(names: list[str]) -> bool:
    return [name.strip('"') for name in names[: len(AUSGRID)]] == AUSGRID


def _is_ausgrid(names: list[str]) -> bool:
    rest = [name.strip('"') for name in names[len(AUSGRID) :]]
    while rest and not rest[-1]:
        rest.pop()
    return rest in ([], ["Row Quality"])


def ausgrid_day(cell: str) -> date | None:
    """A day such as 1/07/2011, 1-Jul-10 or 2011-07-01, with or without its midnight."""
    cell = _MIDNIGHT.sub("", cell)
    slashed, named, of_iso = (pattern.fullmatch(cell) for pattern in (_AUSGRID_DAY, _AUSGRID_NAMED, _AUSGRID_ISO))
    try:
        if of_iso:
            return date(int(of_iso[1]), int(of_iso[2]), int(of_iso[3]))
        if slashed:
            return date(int(slashed[3]), int(slashed[2]), int(slashed[1]))
        if named and named[2].lower() in MONTHS:
            year = int(named[3]) + (2000 if int(named[3]) < 69 else 1900)
            return date(year, MONTHS.index(named[2].lower()) + 1, int(named[1]))
    except ValueError:
        pass
    return None


def lacks_an_hour(day: date) -> bool:
    """Whether the Sydney clock goes forward: since 2008 on the first Sunday of October."""
    return day.year >= 2008 and day.month == 10 and day.day <= 7 and day.isoweekday() == 7


@lru_cache(maxsize=100_000)
def _wide_row(line: bytes, width: int) -> Row | None:
    cells = fields_of(line)
    if cells is None or len(cells) != width:
        return None
    home, category = household(cells[0]), cells[3].decode("latin-1").strip(" \t")
    day = ausgrid_day(cells[4].decode("latin-1").strip(" \t"))
    texts = [cell.decode("latin-1").strip(" \t") for cell in cells[5:53]]
    values = [(-1, False) if text in ("", "Null") else energy_wh(text) for text in texts]
    if home is None or day is None or category not in ("GC", "CL") or None in values:
        return None
    if not date(1970, 1, 1) <= day <= date(2199, 12, 31) or all(value == (-1, False) for value in values):
        return None
    if lacks_an_hour(day):
        values[4:6] = [(-1, False), (-1, False)]
    return (home, category, day), tuple(values)  # type: ignore[arg-type]


def _add_up(count: int, rows: list[Row]) -> Read:
    said: dict[tuple[object, ...], list[list[int]]] = defaultdict(list)
    ties: set[tuple[object, ...]] = set()
    for (home, category, day), values in rows:
        said[home, category, day].append([wh for wh, _ in values])
        ties |= {(home, day, slot) for slot, (_, tie) in enumerate(values) if tie}
    whole = {key: each[0] for key, each in said.items() if all(one == each[0] for one in each)}
    found = Read(count, rows_kept=len(whole))
    for (home, category, day), general in whole.items():
        if category != "GC":
            continue
        number = (day - date(1970, 1, 1)).days  # type: ignore[operator]
        load = whole.get((home, "CL", day), [0] * 48)
        for slot in range(48):
            if general[slot] >= 0 and load[slot] >= 0:
                found.kept[str(home), number * 48 + slot] = general[slot] + load[slot]
                if (home, day, slot) in ties:
                    found.ties.add((str(home), number * 48 + slot))
    return found


def households_of(lines: Iterable[bytes], place: int) -> set[str]:
    """Whom lines name."""
    named = set()
    for line in lines:
        cells = fields_of(line)
        if cells is not None and len(cells) > place and (home := household(cells[place])) is not None:
            named.add(home)
    return named
