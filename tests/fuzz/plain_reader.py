"""A second reader of the input files, written from the description of the datasets alone: slow, exact, row by row.

It knows `csv` and `Decimal` and nothing of the project. `rows` counts what the file holds, `kept` what is left of
it, and `why_refused` is what gives the project the right to refuse the whole file.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal, DivisionByZero, InvalidOperation, localcontext

csv.field_size_limit(2**31 - 1)

FOUR = ["lclid", "stdortou", "datetime", "kwh/hh (per half hour)"]
LONDON = [
    FOUR,
    [*FOUR, "acorn", "acorn_grouped"],
    ["lclid", "tstp", "energy(kwh/hh)"],
    ["lclid", "datetime", "kwh/hh (per half hour)"],
]
LABELS = [f"{m // 60 % 24}:{m % 60:02d}" for m in range(30, 24 * 60 + 1, 30)]
AUSGRID = ["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date", *LABELS]
ABSENT = {date(2010, 10, 3), date(2011, 10, 2), date(2012, 10, 7)}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
BOM = b"\xef\xbb\xbf"
_EPOCH = datetime(1970, 1, 1)

Key = tuple[str, int]
"""Household, and half-hours since 1970 at which the reading begins."""


@dataclass
class Read:
    """What a file says: `kept` in whole watt-hours, `ties` those that lie half-way between two of them."""

    rows: int = 0
    kept: dict[Key, int] = field(default_factory=dict)
    rows_kept: int = 0
    ties: set[Key] = field(default_factory=set)
    why_refused: str = ""


def energy_wh(cell: str, unit: int = 1000, missing: tuple[str, ...] = ("", "Null")) -> tuple[int, bool] | None:
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


def text_of(data: bytes) -> str:
    """Byte for byte: a column that is not used may be in any encoding."""
    return data.removeprefix(BOM).decode("latin-1")


def household(cell: str) -> str | None:
    """The id, if it is UTF-8."""
    try:
        return cell.encode("latin-1").decode("utf-8").removeprefix("\ufeff").strip(" \t") or None
    except UnicodeDecodeError:
        return None


def _name(cell: str) -> str | None:
    """A column's name, if it is UTF-8; only the file's own byte order mark is none of it."""
    try:
        return cell.encode("latin-1").decode("utf-8").strip(" \t")
    except UnicodeDecodeError:
        return None


def table(data: bytes) -> list[list[str]]:
    """The rows of a CSV text, blank lines left out."""
    return [row for row in csv.reader(io.StringIO(text_of(data), newline="")) if row]


def is_hidden_by_a_huge_line(data: bytes) -> bool:
    """Whether the first 64 KiB, from which formats are told, end before the second row does."""
    return len(data) > 2**16 and len([line for line in data[: 2**16].splitlines()[:-1] if line]) < 3


def sampled(data: bytes) -> str:
    """Why a file is refused before its rows are looked at."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    return "binary" if b"\x00" in data[: 2**16] else ""  # further on a row is judged by its cells


def settled(found: Read, rows: Iterator[tuple[tuple[object, ...], int, bool]]) -> dict[tuple[object, ...], int]:
    """Equal rows count once, rows that disagree not at all."""
    said: dict[tuple[object, ...], list[tuple[int, bool]]] = defaultdict(list)
    for key, wh, tie in rows:
        said[key].append((wh, tie))
    kept = {}
    for key, values in said.items():
        if len({wh for wh, _ in values}) == 1:
            kept[key] = values[0][0]
            found.rows_kept += 1
    found.ties |= {key for key, values in said.items() if any(tie for _, tie in values)}  # type: ignore[misc]
    return kept


def _iso(cell: str) -> datetime | None:
    match = _ISO.fullmatch(cell)
    return _instant(*match.groups()) if match else None


def _instant(*parts: str | None) -> datetime | None:
    numbers = [int(part or 0) for part in parts[:6]]
    # What lies below the second is off the half-hour, whatever it is.
    fraction = 1 if (parts[6] if len(parts) > 6 else None) and int(parts[6] or 0) else 0
    try:
        return datetime(*numbers, fraction)
    except ValueError:
        return None


def _day_first(cell: str) -> datetime | None:
    match = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d\d):(\d\d)", cell, re.ASCII)
    return _instant(*(match[i] for i in (3, 2, 1, 4, 5, 6))) if match else None


def _strptime(pattern: str) -> Callable[[str], datetime | None]:
    def read(cell: str) -> datetime | None:
        try:
            return datetime.strptime(cell, pattern)
        except ValueError:
            return None

    return read


def _began(stamp: datetime | None, *, end: bool) -> int | None:
    if stamp is None:
        return None
    since, rest = divmod(stamp - _EPOCH - (timedelta(minutes=30) if end else timedelta()), timedelta(minutes=30))
    return since if not rest and 0 <= since // 48 <= (date(2199, 12, 31) - _EPOCH.date()).days else None


@dataclass(frozen=True)
class Long:
    """A long table: its three columns and how they are written."""

    household: str
    time: str
    energy: str
    pattern: str
    unit: int
    missing: tuple[str, ...]
    end: bool


_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}).*", re.S | re.A)


def _is_iso_date(cell: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?", cell, re.S | re.A))


def _slashed(cell: str) -> str:
    """Whether a date with slashes has its "day" or its "month" first (as far as one can tell), or is none."""
    match = _SLASHED.fullmatch(cell)
    first, second = (int(match[1]), int(match[2])) if match else (0, 0)
    if 1 <= first <= 31 and 1 <= second <= 12:
        return "day"
    return "month" if 1 <= first <= 12 and 1 <= second <= 31 else ""


def london(data: bytes) -> Read:
    """Read a London file."""
    rows = table(data)
    first = [name.strip().strip('"').lower() for name in rows[0]] if rows else []
    blank = bool(rows) and not data.removeprefix(BOM).splitlines()[0]
    if sampled(data) or (rows and first not in LONDON) or blank:
        return Read(why_refused=sampled(data) or "header")
    time = next((i for i, name in enumerate(first) if name in ("datetime", "tstp")), 0)
    stamps = [row[time].strip() for row in rows[1:] if len(row) == len(first)]
    orders = {_slashed(stamp) for stamp in stamps} - {""}
    found = _long(rows, (0, time, first.index(energy_name(first)) if rows else 0), _iso, 1000, ("", "Null"), end=True)
    if orders:
        found = _long(rows, (0, time, first.index(energy_name(first))), _day_first, 1000, ("", "Null"), end=True)
        if orders != {"day"} or any(_is_iso_date(stamp) for stamp in stamps):
            found.why_refused = "two date formats"
    return found


def energy_name(names: list[str]) -> str:
    """The column of the readings."""
    return next(name for name in names if name.startswith(("kwh/hh", "energy(kwh/hh)")))


def long(data: bytes, shape: Long) -> Read:
    """Read a long table."""
    rows = table(data)
    names = [_name(cell) for cell in rows[0]] if rows else []
    wanted = [shape.household, shape.time, shape.energy]
    if sampled(data) or (rows and [names.count(name) for name in wanted] != [1, 1, 1]):
        return Read(why_refused=sampled(data) or "header")
    if not rows:
        return Read()
    at = [names.index(name) for name in wanted]
    read = _strptime(shape.pattern)
    found = _long(rows, (at[0], at[1], at[2]), read, shape.unit, shape.missing, end=shape.end)
    stamps = [row[at[1]].strip() for row in rows[1:] if len(row) == len(names)]
    if any(stamps) and not any(read(stamp) for stamp in stamps[:50]):
        found.why_refused = "no stamp fits"
    if any(_is_iso_date(stamp) or _slashed(stamp) for stamp in stamps):
        found.why_refused = "two date formats"
    return found


def _long(
    rows: list[list[str]],
    at: tuple[int, int, int],
    stamp: Callable[[str], datetime | None],
    unit: int,
    missing: tuple[str, ...],
    *,
    end: bool,
) -> Read:
    found = Read(rows=max(0, len(rows) - 1))

    def sound() -> Iterator[tuple[Key, int, bool]]:
        for row in rows[1:]:
            if len(row) != len(rows[0]):
                continue
            home = household(row[at[0]])
            began = _began(stamp(row[at[1]].strip(" \t")), end=end)
            energy = energy_wh(row[at[2]], unit, missing)
            if home is not None and began is not None and energy is not None:
                yield (home, began), *energy

    found.kept = settled(found, sound())  # type: ignore[arg-type, assignment]
    return found


def ausgrid(data: bytes) -> Read:
    """Read an Ausgrid file: one row per customer, category and day; GC + CL, or GC alone."""
    if sampled(data):
        return Read(why_refused=sampled(data))
    heads = [line.decode("latin-1") for line in data.removeprefix(BOM).splitlines(keepends=True)[:2]]
    top = next((i for i, line in enumerate(heads) if _is_ausgrid(next(csv.reader([line])))), None)
    if top is None:
        return Read(why_refused="header") if table(data) else Read()
    width = len(next(csv.reader([heads[top]])))
    rows = table(b"".join(data.removeprefix(BOM).splitlines(keepends=True)[top + 1 :]))
    found = Read(rows=len(rows))
    dates = {cell for row in rows if len(row) == width for cell in [row[4].strip()]}
    slashed = any(_strptime("%d/%m/%Y")(cell) for cell in dates)
    named = any(_strptime("%d-%b-%y")(cell) for cell in dates)
    foreign = any(_strptime(p)(cell) for p in ("%m/%d/%Y", "%Y-%m-%d") for cell in dates if not _slash(cell))
    if (slashed and named) or foreign:
        found.why_refused = "two date formats"
    day_of = _strptime("%d/%m/%Y" if slashed else "%d-%b-%y")

    def sound() -> Iterator[tuple[tuple[object, ...], int, bool]]:
        for row in rows:
            day = (
                day_of(row[4].strip())
                if len(row) == width and re.fullmatch(r"[\w/-]{6,11}", row[4].strip(), re.A)
                else None
            )
            home = household(row[0])
            cells = [cell.strip(" \t") for cell in row[5:53]]
            values = [(-1, False) if cell in ("", "Null") else energy_wh(cell) for cell in cells]
            if day is None or home is None or row[3].strip() not in ("GC", "CL") or None in values:
                continue
            if not date(1970, 1, 1) <= day.date() <= date(2199, 12, 31) or all(v == (-1, False) for v in values):
                continue
            yield (home, row[3].strip(), day.date()), values, False  # type: ignore[misc]

    _add_up(found, list(sound()))
    return found


def _slash(cell: str) -> bool:
    return _strptime("%d/%m/%Y")(cell) is not None


def _is_ausgrid(row: list[str]) -> bool:
    names = [name.strip().strip('"') for name in row]
    while names and not names[-1]:
        names.pop()
    return names in (AUSGRID, [*AUSGRID, "Row Quality"])


def _add_up(found: Read, rows: list[tuple[tuple[object, ...], list[tuple[int, bool]], bool]]) -> None:
    said: dict[tuple[object, ...], list[list[int]]] = defaultdict(list)
    ties: set[tuple[object, ...]] = set()
    for key, values, _ in rows:
        energies = [wh for wh, _ in values]
        if key[2] in ABSENT:
            energies[4:6] = [-1, -1]
        said[key].append(energies)
        ties |= {(key[0], key[2], slot) for slot, (_, tie) in enumerate(values) if tie}
    whole = {key: each[0] for key, each in said.items() if all(one == each[0] for one in each)}
    found.rows_kept = len(whole)
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
