"""Rows that parsing rejected -> the household-days that each cause touches. Confidential.

All rows are counted. What their texts show is read off the first `_MAX_TEXTS` of each table. A line without a
digit or of a single cell, a comment, and the header once more, as concatenated files have it, lack no reading: they
touch nothing.

Example: of the lines `M1;2024-01-08 12:00;1,234` and `M1;2024-01-08 12:30;987` the first is rejected where energies
have a decimal point: its number has a mark between thousands.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.preflight.touched_days import NO_DAY, RosterDays, Touched
from agedp.store.month_reader import household_day_key, load_table, split_household_day_key
from agedp.store.store import Store
from agedp_data import table_schemas
from agedp_data.datasets.csv_lines import split_fields
from agedp_data.datasets.intervals import DAY_MINUTES
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Ints, NamedColumns, RejectionReason
from agedp_data.messages import escape_text
from agedp_data.parameters import FindingName

NOT_REJECTED: Final = frozenset(
    {
        RejectionReason.CATEGORY.words,
        RejectionReason.MISSING.words,
        RejectionReason.DUPLICATE.words,
        RejectionReason.CONFLICT.words,  # counted as readings that a day loses
        RejectionReason.SUPERSEDED.words,
    }
)
_NAMES: Final[Mapping[RejectionReason, FindingName]] = {
    RejectionReason.DATE: "time",
    RejectionReason.TEXT: "text",
    RejectionReason.NEGATIVE: "negative",
    RejectionReason.ABOVE_BOUND: "bound",
    RejectionReason.OFF_GRID: "interval",
}
_SLOT_SHARE: Final = 0.9
_MAX_TEXTS: Final = 2000
_WORDS: Final = 2
_BATCH: Final = 2**18
_COLUMNS: Final = ["household_id", "day", "slot", "reason", "text"]
_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}([,.' \u00a0\u202f])\d{3}(\1\d{3})*([,.]\d+)?")
_THOUSANDS_AT_END: Final = re.compile(r",[+-]?\d{1,3}(,\d{3})+$")
_UNIT: Final = re.compile(r"[+-]?\d[\d.,]*[ \u00a0]*([^\d\s.,:/-]+)")
_DIVIDED: Final = re.compile(r"(^|,)[+-]?\d+,\d+(,|$)")
_MARK: Final = re.compile(r"[+-]?\d*([,.])\d+")
_DATED: Final = re.compile(r".*\d.*[^\d.,+-].*|\d{8,}")
OTHER_ORDER: Final = {"text a header amid the rows names the columns in another order than the first one": 1}
_MAY_LACK_READING: Final = ("FIELDS", "LINE", "HOUSEHOLD", "DATE")


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """What rejected rows are about.

    Attributes:
        touched: what they touch, by the name of a finding.
        without_reading: number of rows that lack no reading, by the words of their reason.
        headers: the cells of those that repeat the names of the columns.
        names: the columns that every row has, by which these were recognised.
    """

    touched: dict[FindingName, Touched]
    without_reading: Counter[str]
    headers: frozenset[tuple[str, ...]]
    names: Collection[str]

    def have_other_order(self, orders: Collection[Sequence[str]]) -> bool:
        """Return whether a header amid the rows has the names at other places than every known one.

        Of a row with several readings, the name of a column and its cell are the last cells.

        >>> rows = RejectedRows({}, Counter(), frozenset([("id", "kwh", "at")]), ["at", "kwh"])
        >>> [rows.have_other_order([order]) for order in (["x", "kwh", "at"], ["id", "at", "kwh"])]
        [False, True]
        """
        known = {tuple(name if name in self.names else "" for name in order) for order in orders}
        placed = {cells: tuple(cell if cell in self.names else "" for cell in cells) for cells in self.headers}
        return any(place not in known and cells[-1] not in cells[:-1] for cells, place in placed.items())


@dataclass(slots=True)
class _Rejected:
    """What rows of one cause name so far: keys of household-days, rows of households without a day, and what they show.

    `rows_by_day` are the numbers of rows of the keys, table by table.
    """

    rows: int = 0
    keys: list[Ints] = field(default_factory=list)
    rows_by_day: list[Ints] = field(default_factory=list)
    undated: Counter[int] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    slots: Ints = field(default_factory=lambda: np.zeros(SLOTS, np.int64))
    texts: Counter[tuple[FindingName, str]] = field(default_factory=Counter)


def quarantine_tables(store: Store, contents: Sequence[str], months: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rejected rows of these months, file by file; those of no half-hour have the name ""."""
    numbered = ((content, number) for content in contents for number in range(len(store.part_spans(content))))
    for (content, number), month in product(numbered, months):
        path = store.quarantine_folder(month) / f"{content}-{number}.parquet"
        if path.exists():
            yield load_table(path, table_schemas.PARSED_QUARANTINE, columns=_COLUMNS)


def count_rejected(
    tables: Iterable[pa.Table],
    roster: RosterDays,
    *,
    columns: NamedColumns | None = None,
    minutes: int = INTERVAL_MINUTES,
) -> RejectedRows:
    """Return what rejected rows touch, by the name of their finding.

    Args:
        tables: rejected rows: household_id, day, slot, reason, text.
        roster: the household-days that count.
        columns: those of the rows; None for a dataset with a fixed layout.
        minutes: interval of the readings.
    """
    of_line = DAY_MINUTES // minutes if columns is not None and columns.is_by_day else 1
    names, separator = ((), ",") if columns is None else (columns.row_names, columns.separator)
    causes: dict[FindingName, _Rejected] = {}
    without_reading: Counter[str] = Counter()
    headers: set[tuple[str, ...]] = set()
    for table in _joined(tables):
        rows = table.filter(pc.invert(pc.is_in(table["reason"], pa.array(sorted(NOT_REJECTED)))))
        for reason in RejectionReason:
            of_reason = rows.filter(pc.equal(rows["reason"], reason.words)) if len(rows) else rows
            if reason.name in _MAY_LACK_READING and len(of_reason):
                lacks, of_table = _without_reading(of_reason["text"], separator, names)
                without_reading[reason.words] += pc.sum(lacks).as_py()
                headers |= of_table
                of_reason = of_reason.filter(pc.invert(lacks))
            if len(of_reason):
                _add_rows(causes, reason, of_reason, roster, columns)
    if text := causes.pop("text", None):
        causes[_most_frequent(text.texts)[0]] = text
    touched = {
        name: _touched(name, cause, roster, SLOTS // slot_step(minutes), of_line) for name, cause in causes.items()
    }
    return RejectedRows(touched, +without_reading, frozenset(headers), names)


def _without_reading(
    texts: pa.ChunkedArray, separator: str, names: Collection[str]
) -> tuple[pa.ChunkedArray, set[tuple[str, ...]]]:
    """Return which lines have no digit or one cell, are a comment or a header, and the cells of the headers."""
    trimmed = pc.utf8_trim(pc.fill_null(texts, ""), f' \t"{separator}')
    lacks = pc.or_(
        pc.invert(pc.match_substring_regex(trimmed, r"\d.*[,;|\t]|[,;|\t].*\d")), pc.starts_with(trimmed, "#")
    )
    if not names:
        return lacks, set()
    is_header = functools.reduce(pc.and_, (pc.match_substring(trimmed, name.strip()) for name in names))
    lines = pc.unique(texts.filter(is_header)).to_pylist()
    cells = {line: tuple(_cells(line, separator)) for line in lines}
    headers = {line: found for line, found in cells.items() if {name.strip() for name in names} <= {*found}}
    return pc.or_(lacks, pc.is_in(texts, pa.array([*headers], pa.string()))), {*headers.values()}


def _joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables one after the other, joined to at least `_BATCH` rows: each looks up households of the roster."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += len(table)
        if rows >= _BATCH:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _add_rows(
    causes: dict[FindingName, _Rejected],
    reason: RejectionReason,
    rows: pa.Table,
    roster: RosterDays,
    columns: NamedColumns | None,
) -> None:
    household = roster.codes(rows["household_id"])
    day = pc.fill_null(rows["day"].cast(pa.int32()), NO_DAY).to_numpy().astype(np.int64)
    name = _NAMES.get(reason, "rejected")
    if reason == RejectionReason.DATE and (is_skipped := day != NO_DAY).any():
        _add_dated(causes.setdefault("clock", _Rejected()), household[is_skipped], day[is_skipped], roster)
        rows, household, day = rows.filter(pa.array(~is_skipped)), household[~is_skipped], day[~is_skipped]
    if not len(rows):
        return
    cause = causes.setdefault(name, _Rejected())
    has_day = day != NO_DAY
    _add_dated(cause, household[has_day], day[has_day], roster)
    undated = Counter(household[~has_day].tolist())
    unknown = undated.pop(-1, 0)
    cause.undated.update(undated)
    cause.rows += len(rows) - int(has_day.sum())
    if unknown:
        names = rows["household_id"].filter(pa.array(~has_day & (household < 0)))
        cause.others.update(name or "" for name in names.to_pylist() if roster.read_off or name is None)
    slots = rows["slot"].drop_null().to_numpy()
    cause.slots += np.bincount(slots, minlength=SLOTS)[:SLOTS]
    texts = rows["text"].slice(0, _MAX_TEXTS).to_pylist()
    separator = "," if columns is None else columns.separator
    ids = rows["household_id"].slice(0, _MAX_TEXTS).to_pylist()
    if name == "text":
        cause.texts.update(_cause_of_text(text, separator, id_) for text, id_ in zip(texts, ids, strict=True))
    elif name in ("time", "interval"):
        shown = (_time_of_text(text, separator, id_) for text, id_ in zip(texts, ids, strict=True))
        cause.texts.update((name, f'such as "{escape_text(time, 40)}"' if time else "") for time in shown)
    elif name == "rejected":
        is_divided = reason == RejectionReason.FIELDS and columns is not None and columns.decimal == separator
        cause.texts.update((name, _cause_of_fields(text) if is_divided else reason.words) for text in texts)
    else:
        cause.texts[name, ""] += len(texts)


def _add_dated(cause: _Rejected, household: Ints, day: Ints, roster: RosterDays) -> None:
    is_due = np.isin(day, roster.days)
    keys, numbers = np.unique(household_day_key(household, day)[is_due & (household >= 0)], return_counts=True)
    cause.rows += int(is_due.sum())
    cause.keys.append(keys)
    cause.rows_by_day.append(numbers)


def _cause_of_fields(line: str) -> str:
    """Return why a row whose decimal mark is its separator has another number of fields."""
    words = RejectionReason.FIELDS.words
    return f'{words}: a decimal "," without quotes divides a number' if _DIVIDED.search(line) else words


def _cause_of_text(line: str, separator: str, household: str | None) -> tuple[FindingName, str]:
    """Return the finding and the characters that a row with a text for a number shows, in any cell but the household's.

    >>> _cause_of_text("M1,2024-01-08 00:30,1 250", ",", "M1"), _cause_of_text("M1;08.01.2024;n/a;W", ";", "M1")
    (('thousands', ' '), ('text', '"n/a" or "W" for a number'))
    """
    if _THOUSANDS_AT_END.search(line):  # of a table with a column for each household: its cells are not quoted
        return "thousands", ","
    cells = _cells(line, separator)
    for cell in reversed(cells):
        if found := _THOUSANDS.fullmatch(cell):
            return "thousands", found[1]
        if found := _UNIT.fullmatch(cell):
            return "text", f'"{escape_text(found[1], 20)}" after the number'
        if (found := _MARK.fullmatch(cell)) and not _is_number(cell):
            return "text", f'the decimal mark "{found[1]}"'
    words = [cell for cell in cells if cell and cell != household and not _is_number(cell) and not cell[:1].isdigit()]
    shown = " or ".join(f'"{escape_text(word, 20)}"' for word in words[-_WORDS:])
    return "text", f"{shown} for a number" if words else ""


def _time_of_text(line: str, separator: str, household: str | None) -> str:
    """Return the cells of a row that look like a time, which are no number and not the household's.

    >>> _time_of_text("M1;27/10/2024;02:00A;0,5", ";", "M1"), _time_of_text("M1,2024-01-08 total,12.5", ",", "M1")
    ('27/10/2024 02:00A', '2024-01-08 total')
    """
    cells = _cells(line, separator)
    return " ".join([cell for cell in cells if cell != household and _DATED.fullmatch(cell)][:2])


def _cells(line: str, separator: str) -> list[str]:
    fields = split_fields(line, separator) or line.split(separator)
    fields = fields if len(fields) > 1 else split_fields(line)  # rows of several readings and of Parquet have commas
    return [cell.strip() for cell in fields]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _most_frequent(texts: Counter[tuple[FindingName, str]]) -> tuple[FindingName, str]:
    return min(texts, key=lambda text: (-texts[text], text))


def _touched(name: FindingName, cause: _Rejected, roster: RosterDays, readings: int, of_line: int) -> Touched:
    """Return what the rows of a cause touch; a time that the zone skips touches the household's later days too.

    `of_line` rows of a household are one day of it, if nobody can tell which.
    """
    dated = np.concatenate([np.zeros(0, np.int64), *cause.keys])
    keys, of_key = np.unique(dated, return_inverse=True)
    rows_by_day = np.bincount(of_key, np.concatenate([np.zeros(0), *cause.rows_by_day]), len(keys))
    details: dict[str, int] = {}
    household, day = split_household_day_key(keys)
    if name == "clock":
        household, first = np.unique(household, return_index=True)
        number = np.full(len(household), len(roster.days))
        keys = roster.days_of(household, number, since=day[first])
        details["skipped"] = cause.rows
    else:
        codes = np.array(sorted(cause.undated), np.int64)
        numbers = np.array([math.ceil(cause.undated[code] / of_line) for code in codes.tolist()], np.int64)
        keys = np.concatenate([keys, roster.days_of(codes, numbers)])
    if name == "interval":  # as many rows between the half-hours as a household has on them, or more
        is_finer = rows_by_day >= readings / 2
        if is_finer.any():
            minutes = round(24 * 60 / (readings + float(np.median(rows_by_day[is_finer]))))
            details[f"{minutes} minutes"] = len(np.unique(household[is_finer]))
    if cause.slots.sum() and cause.slots.max() >= _SLOT_SHARE * cause.slots.sum():
        details[f"slot {int(cause.slots.argmax())}"] = int(cause.slots.max())
    if (text := _most_frequent(cause.texts) if cause.texts else (name, ""))[1]:
        details[f"text {text[1]}"] = cause.texts[text]
    keys = roster.on_roster(*split_household_day_key(keys))
    others = (
        len(cause.others.keys() - {""}),
        sum(min(math.ceil(rows / of_line), len(roster.days)) for rows in cause.others.values()),
    )
    return roster.touched(keys, rows=cause.rows, others=others, details=details)
