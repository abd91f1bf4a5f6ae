"""Rows that parsing rejected -> the household-days that each cause touches. Confidential.

All rows are counted. What their texts show is read off the first `_MAX_TEXTS` of each table. A line without a
digit or of a single cell, a comment, and the header once more, as concatenated files have it, lack no reading: they
touch nothing.

Example: of the lines `M1;2024-01-08 12:00;1,234` and `M1;2024-01-08 12:30;987` the first is rejected where energies
have a decimal point: its number has a mark between thousands.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, product
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.stage_values import Delivery
from agedp.store import month_reader
from agedp.store.file_identity import read_header
from agedp.store.month_reader import distinct_keys, household_day_key, is_first_of_key, split_household_day_key
from agedp.store.store import PartMonth, Store
from agedp_data import table_schemas
from agedp_data.datasets import filesystem
from agedp_data.datasets.csv_lines import split_fields
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.filesystem import InputFile
from agedp_data.datasets.layout import DAY_MINUTES, PASSES, Header, Layout, one_array, slot_step
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.table_text import is_number
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import INTERVAL_MINUTES, MISSING, SLOTS, Flags, Ints, NamedColumns, RejectionReason
from agedp_data.errors import InputError
from agedp_data.messages import escape_text
from agedp_data.parameters import FindingName
from agedp_data.roster import ALL, GroupColumns, RosterRows, as_strings, columns_text, number_groups

# --------------------------------------------------------------------------------------------------
# Roster + due days -> the household-days that a finding touches, by group. Confidential.
#
# Example: 20 households on the roster on 4 due days are 80 household-days; readings of one household that are rejected
# on two of the days touch 2 of them, 2.5 %.
#
# Decisions:
#
# * A rejected row with a household, but without a day, touches one household-day: any one of the household's.
# * Households that are not on the roster are ignored, as their readings are. Of a roster that was read off the files
#   they are those whose times cannot be read: they count like rows without a household, beside the roster.
# --------------------------------------------------------------------------------------------------

NO_DAY = -1


@dataclass(frozen=True, slots=True)
class Touched:
    """What a finding touches; numbers of distinct households add up.

    Attributes:
        households: number of households.
        days: number of household-days by group, "all" for all.
        rows: number of rows; 0 if the finding is not about single rows.
        details: what the rows show, with numbers.
        is_sampled: whether the numbers are those of a sample, in proportion.
    """

    households: int = 0
    days: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    details: Mapping[str, int] = field(default_factory=dict)
    is_sampled: bool = False

    def __add__(self, further: Touched) -> Touched:
        """Return what both touch, which have no household in common."""
        days, details = Counter(self.days) + Counter(further.days), Counter(self.details) + Counter(further.details)
        is_sampled = self.is_sampled or further.is_sampled
        return Touched(self.households + further.households, days, self.rows + further.rows, details, is_sampled)

    def __or__(self, further: Touched) -> Touched:
        """Return what both touch, if their households are the same ones: the larger numbers."""
        households, days = max(self.households, further.households), Counter(self.days) | Counter(further.days)
        return replace(self + further, households=households, days=days)


class RosterDays:
    """The household-days of a roster, or of a bucket of it, on the due days."""

    def __init__(
        self, roster: RosterRows, days: Sequence[int], by: Iterable[GroupColumns] = (), *, read_off: bool = False
    ) -> None:
        """Number the rows of the roster; `days` are the due days since 1970, `by` the groups that are published.

        `read_off` tells whether the roster is as it was read off the files.
        """
        self.days = np.array(sorted(days), np.int64)
        self.read_off = read_off
        self._names = as_strings(roster.ids)
        self.every = np.arange(len(self._names))
        order = np.lexsort((roster.first, roster.household))
        self._household, self._first, self._last = (
            values[order].astype(np.int64) for values in (roster.household, roster.first, roster.last)
        )
        self._begin = np.searchsorted(self.days, self._first)
        self._number = np.maximum(np.searchsorted(self.days, self._last, "right") - self._begin, 0)
        self._groups = [(columns_text(columns), *number_groups(roster.groups, columns)) for columns in by if columns]
        self._groups = [(name, labels, numbers[order]) for name, labels, numbers in self._groups]
        self.households = len(np.unique(self._household[self._number > 0]))
        self.totals = self._by_group(np.arange(len(order)), self._number)

    def codes(self, names: pa.Array | pa.ChunkedArray) -> Ints:
        """Return the number of each household on the roster, -1 for all others."""
        found = pc.fill_null(pc.index_in(names, value_set=self._names), -1)
        codes: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes

    def on_roster(self, household: Ints, day: Ints) -> Ints:
        """Return the distinct keys of the household-days that are on the roster and due."""
        is_due = (household >= 0) & np.isin(day, self.days)
        key = distinct_keys(household_day_key(household[is_due], day[is_due]))
        row = self._rows(key)
        return key[row >= 0]

    def days_of(self, household: Ints, number: Ints, *, since: Ints | None = None) -> Ints:
        """Return keys of that many due days of each household, at most all of them, the first ones."""
        keys = [np.zeros(0, np.int64)]
        for i, (code, most) in enumerate(zip(household.tolist(), number.tolist(), strict=True)):
            rows = slice(*np.searchsorted(self._household, [code, code + 1]).tolist())
            spans = zip(self._begin[rows].tolist(), self._number[rows].tolist(), strict=True)
            days = np.concatenate([keys[0], *(self.days[begin : begin + length] for begin, length in spans)])
            days = days if since is None else days[days >= since[i]]
            keys.append(household_day_key(np.full(len(days), code), days)[:most])
        return np.concatenate(keys)

    def touched(
        self, keys: Ints, *, rows: int = 0, others: tuple[int, int] = (0, 0), details: Mapping[str, int] | None = None
    ) -> Touched:
        """Return what household-days on the roster are; `others` are households and household-days beside it."""
        keys = distinct_keys(keys)
        days = self._by_group(self._rows(keys), np.ones(len(keys), np.int64))
        days[ALL] = min(days[ALL] + others[1], max(self.totals[ALL], days[ALL]))
        return Touched(len(np.unique(split_household_day_key(keys)[0])) + others[0], days, rows, details or {})

    def _rows(self, key: Ints) -> Ints:
        household, day = split_household_day_key(key)
        row = np.searchsorted(household_day_key(self._household, self._first), key, side="right") - 1
        is_member = (row >= 0) & (self._household[row] == household) & (self._last[row] >= day)
        return np.where(is_member, row, -1)

    def _by_group(self, row: Ints, number: Ints) -> dict[str, int]:
        days = {ALL: int(number.sum())}
        for name, labels, of_row in self._groups:
            counts = np.bincount(of_row[row], number, len(labels)).astype(int)
            days |= {f"{name} {label}": count for label, count in zip(labels, counts.tolist(), strict=True) if count}
        return days


_NOT_LACKING: Final = ("CATEGORY", "MISSING", "DUPLICATE", "CONFLICT", "SUPERSEDED")
NOT_REJECTED: Final = frozenset(RejectionReason[name].words for name in _NOT_LACKING)
"""Rows that lack no reading; those of conflicts are counted as readings that a day loses."""
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
_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}([,.' \u00a0\u202f\u2019])\d{3}(\1\d{3})*([,.]\d+)?")
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
    numbered = ((content, number) for content in contents for number in range(len(store.stored_parts(content))))
    for (content, number), month in product(numbered, months):
        path = store.quarantine_folder(month) / f"{content}-{number}.parquet"
        if path.exists():
            yield month_reader.load_table(path, table_schemas.PARSED_QUARANTINE, columns=_COLUMNS)


def count_rejected(
    tables: Iterable[pa.Table],
    roster: RosterDays,
    *,
    columns: NamedColumns | None = None,
    minutes: int = INTERVAL_MINUTES,
    orders: Callable[[], Collection[Sequence[str]]] = tuple,
) -> RejectedRows:
    """Return what rejected rows touch, by the name of their finding.

    Args:
        tables: rejected rows: household_id, day, slot, reason, text.
        roster: the household-days that count.
        columns: those of the rows; None for a dataset with a fixed layout.
        minutes: interval of the readings.
        orders: returns the names of the columns of the files, in the order of each; called if a text is no number.
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
                places = _energy_places(columns, orders) if reason == RejectionReason.TEXT else {}
                _add_rows(causes, reason, of_reason, roster, columns, places)
    if text := causes.pop("text", None):
        causes[_most_frequent(text.texts)[0]] = text
    readings = SLOTS // slot_step(minutes)
    touched = {name: _touched(name, cause, roster, readings, of_line) for name, cause in causes.items()}
    return RejectedRows(touched, +without_reading, frozenset(headers), names)


def _without_reading(
    texts: pa.ChunkedArray, separator: str, names: Collection[str]
) -> tuple[pa.ChunkedArray, set[tuple[str, ...]]]:
    """Return which lines have no digit or one cell, are a comment or a header, and the cells of the headers."""
    trimmed = pc.utf8_trim(pc.fill_null(texts, ""), f' \t"{separator}')
    has_cells = pc.match_substring_regex(trimmed, r"\d.*[,;|\t]|[,;|\t].*\d")
    lacks = pc.or_(pc.invert(has_cells), pc.starts_with(trimmed, "#"))
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
    places: Mapping[int, int],
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
        cause.texts.update(_cause_of_text(text, separator, id_, places) for text, id_ in zip(texts, ids, strict=True))
    elif name in ("time", "interval"):
        shown = (_time_of_text(text, separator, id_) for text, id_ in zip(texts, ids, strict=True))
        cause.texts.update((name, f'such as "{escape_text(time, 40)}"' if time else "") for time in shown)
    elif name == "rejected":
        is_divided = reason == RejectionReason.FIELDS and columns is not None and columns.decimal == separator
        divided = f'{reason.words}: a decimal "," without quotes divides a number'
        are_divided = (is_divided and _DIVIDED.search(text) for text in texts)
        cause.texts.update((name, divided if of_text else reason.words) for of_text in are_divided)
    else:
        cause.texts[name, ""] += len(texts)


def _add_dated(cause: _Rejected, household: Ints, day: Ints, roster: RosterDays) -> None:
    is_due = np.isin(day, roster.days)
    keys, numbers = np.unique(household_day_key(household, day)[is_due & (household >= 0)], return_counts=True)
    cause.rows += int(is_due.sum())
    cause.keys.append(keys)
    cause.rows_by_day.append(numbers)


def _energy_places(columns: NamedColumns | None, orders: Callable[[], Collection[Sequence[str]]]) -> dict[int, int]:
    """Return the place of the energy in a line, by its number of cells, where every file agrees."""
    if columns is None or not isinstance(columns.energy, str):
        return {}
    found: dict[int, set[int]] = {}
    for order in orders():
        if columns.energy in order:
            found.setdefault(len(order), set()).add([*order].index(columns.energy))
    return {length: places.pop() for length, places in found.items() if len(places) == 1}


def _cause_of_text(
    line: str, separator: str, household: str | None, places: Mapping[int, int]
) -> tuple[FindingName, str]:
    """Return the finding and the characters that a row with a text for a number shows.

    They are those of the cell of the energy, if its place is known, or of any cell but the household's.

    >>> _cause_of_text("M1,2024-01-08 00:30,1 250", ",", "M1", {})
    ('thousands', ' ')
    >>> [_cause_of_text("M1;08.01.2024;n/a;W", ";", "M1", places) for places in ({}, {4: 2})]
    [('text', '"n/a" or "W" for a number'), ('text', '"n/a" for a number')]
    """
    cells = _cells(line, separator)
    if len(cells) in places:
        cells = [cells[places[len(cells)]]]
        if not cells[0]:
            return "text", "an empty cell for a number"
    elif _THOUSANDS_AT_END.search(line):  # of a table with a column for each household: its cells are not quoted
        return "thousands", ","
    for cell in reversed(cells):
        if found := _THOUSANDS.fullmatch(cell):
            return "thousands", json.dumps(found[1])[1:-1]
        if found := _UNIT.fullmatch(cell):
            return "text", f'"{escape_text(found[1], 20)}" after the number'
        if (found := _MARK.fullmatch(cell)) and not is_number(cell):
            return "text", f'the decimal mark "{found[1]}"'
    words = [cell for cell in cells if cell and cell != household and not is_number(cell) and not cell[:1].isdigit()]
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
            minutes = round(DAY_MINUTES / (readings + float(np.median(rows_by_day[is_finer]))))
            details[f"{minutes} minutes"] = len(np.unique(household[is_finer]))
    if cause.slots.sum() and cause.slots.max() >= _SLOT_SHARE * cause.slots.sum():
        details[f"slot {int(cause.slots.argmax())}"] = int(cause.slots.max())
    if (text := _most_frequent(cause.texts) if cause.texts else (name, ""))[1]:
        details[f"text {text[1]}"] = cause.texts[text]
    keys = roster.on_roster(*split_household_day_key(keys))
    other_days = sum(min(math.ceil(rows / of_line), len(roster.days)) for rows in cause.others.values())
    others = len(cause.others.keys() - {""}), other_days
    return roster.touched(keys, rows=cause.rows, others=others, details=details)


# --------------------------------------------------------------------------------------------------
# First rows of files -> whether the form of their numbers is ambiguous. Confidential.
#
# Example: 987 and 1.234 in one column are 1,234 and 987 watt-hours with a point between thousands, or 1.234 and 987
# with three decimals. Decimals are written with one, two or three digits, as 0.5, or all with three, as 987.000: a
# column with whole numbers below 1,000 and numbers with exactly three digits after a mark, none below one, has
# thousands.
# --------------------------------------------------------------------------------------------------

_MAX_FILES: Final = 20
_MIN_CELLS: Final = 3


def are_ambiguous(cells: Iterable[str], decimal: str) -> bool:
    """Return whether numbers may have a mark between thousands where `decimal` is declared.

    >>> are_ambiguous(["987", "1.234", "12", "2.345", "310", "1.001"], "."), are_ambiguous(["987", "1.234", "0.5"], ".")
    (True, False)
    """
    whole = thousands = 0
    for cell in cells:
        before, mark, after = cell.strip().lstrip("+-").partition(decimal)
        if not before.isdigit() or (mark and not after.isdigit()):
            continue  # no number
        if len(before) > 3 or (mark and (len(after) != 3 or before.startswith("0"))):
            return False
        thousands += bool(mark)
        whole += not mark and int(before) > 0
    return min(whole, thousands) >= _MIN_CELLS


def has_ambiguous_numbers(store: Store, patterns: Sequence[str]) -> bool:
    """Return whether the energies in the first rows of the files have an ambiguous form, of twenty files at most."""
    columns = store.rules.columns
    if columns is None or columns.thousands:
        return False
    cells = []
    for source, header, start in _sampled_files(store, patterns):
        with suppress(InputError):
            lines = filesystem.read_head(source)[start:].decode("latin-1").splitlines()[:-1]
            positions = [header.names.index(name) for name in header.energies]
            rows = (split_fields(line, header.separator) for line in lines)
            cells.append([row[i] for row in rows if len(row) == len(header.names) for i in positions])
    return are_ambiguous(chain.from_iterable(cells), columns.decimal)


def column_orders(store: Store, patterns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the columns of the files, in the order of each, of twenty files at most."""
    return tuple(header.columns for _, header, _ in _sampled_files(store, patterns))


def _sampled_files(store: Store, patterns: Sequence[str]) -> Iterator[tuple[InputFile, Header, int]]:
    """Yield CSV files with their header and the position of their rows, without those that cannot be read now."""
    listed = filesystem.list_input_files(patterns, required=False).sources
    texts = [source for source in listed if not filesystem.is_parquet(source.location)]
    for text in texts[:: -(-len(texts) // _MAX_FILES) or 1]:
        source = replace(text, encoding=store.layout.encoding)
        with suppress(InputError):  # a file that is refused, or that a run beside this one removed
            header, start = read_header(source, store.layout)
            if header is not None:
                yield source, header, start


# --------------------------------------------------------------------------------------------------
# Samples of READINGS: those that rise as a register does, half-hours that nobody has, and marks. Confidential.
#
# A sample has the first parts, in the order of the files, of the first and the middle month.
# --------------------------------------------------------------------------------------------------

_SAMPLE_ROWS = 200_000
_MIN_ROWS, _MIN_RISES = 96, 8
_MIN_RISE_SHARE = 0.01
MAX_FALL_SHARE: Final = 0.05
"""A register falls in at most so many steps as a part of those in which it rises."""
_CLOCK_PARTS = 3
_MIN_HOUSEHOLDS, _ZERO_SHARE, _MAX_BESIDE = 5, 0.95, 0.5
_MIN_VALUES, _MIN_MARKS, _MARKED_HOUSEHOLDS = 20, 8, 3

Sample = tuple[Sequence[str], Ints, Ints, Ints]
"""Households; code among them, minutes since 1970, energy of the rows of one part, in the order of both.

A household of several meters is there once for each.
"""


def filter_days(table: pa.Table, day_filter: pa.Array | None) -> pa.Table:
    """Return the rows of these days; of all days if `day_filter` is None."""
    return table if day_filter is None else table.filter(pc.is_in(table["day"], value_set=day_filter))


def read_samples(
    store: Store, delivery: Delivery, months: Sequence[str], day_filter: pa.Array | None
) -> Iterator[Sample]:
    """Yield rows of the first and the middle month, part by part, about `_SAMPLE_ROWS` rows each."""
    for month in _sampled_months(months):
        rows = 0
        for buckets in _parts_of_buckets(store, month, delivery.contents):
            table = filter_days(_load_sample(store, buckets), day_filter)
            rows += table.num_rows
            yield _sort_sample(table, store)
            if rows >= _SAMPLE_ROWS:
                break


def _sampled_months(months: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*months[:1], *months[len(months) // 2 :][:1]]))


def _parts_of_buckets(store: Store, month: str, contents: Sequence[str]) -> list[list[PartMonth]]:
    """Return the parts with rows of a month, in the order of the files, each by its buckets."""
    parts = [part for bucket in range(store.buckets) for part in store.month_parts(month, contents, bucket)]
    by_number: dict[tuple[int, int], list[PartMonth]] = {}
    for part in parts:
        by_number.setdefault((part.file_index, part.number), []).append(part)
    return [by_number[number] for number in sorted(by_number)]


def _load_sample(store: Store, buckets: Sequence[PartMonth]) -> pa.Table:
    """Return the rows of a part in a month, of all buckets."""
    of_row = ["slot", "energy_wh"] if store.layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    further = {"channel": store.layout.channels > 1, "label": store.layout.has_labels}
    names = ["household_id", "day", *of_row, *(name for name, is_stored in further.items() if is_stored)]
    return pa.concat_tables([month_reader.load_part(store, part, names) for part in buckets])


def _sort_sample(table: pa.Table, store: Store) -> Sample:
    """Return the readings of a part by household and time; if a row is a day, by household, channel and time."""
    column = one_array(table["household_id"])
    # by id: the order of a dictionary depends on the household buckets
    names = sorted(column.dictionary.to_pylist())
    code = {name: i for i, name in enumerate(names)}
    household = np.array([code[name] for name in column.dictionary.to_pylist()], np.int64)[column.indices.to_numpy()]
    if store.layout.has_labels:  # each meter of a household by itself
        labels, label_code = np.unique(table["label"].to_numpy(), return_inverse=True)
        names = [name for name in names for _ in range(len(labels))]
        household = household * len(labels) + label_code
    minute = table["day"].cast(pa.int32()).to_numpy().astype(np.int64) * DAY_MINUTES
    layout = store.layout
    channel = table["channel"].to_numpy().astype(np.int64) if layout.channels > 1 else np.zeros(len(minute), np.int64)
    if layout.width == 1:
        minute += table["slot"].to_numpy().astype(np.int64) * INTERVAL_MINUTES
        minute += channel // PASSES * min(layout.interval_minutes, INTERVAL_MINUTES)
        energy = table["energy_wh"].to_numpy().astype(np.int64)
    else:
        names = [name for name in names for _ in range(layout.channels)]
        household = np.repeat(household * layout.channels + channel, SLOTS)
        minute = (minute[:, None] + np.arange(SLOTS) * INTERVAL_MINUTES).ravel()
        energy = np.stack([table[f"energy_wh_{slot}"].to_numpy() for slot in range(SLOTS)], axis=1).ravel()
        is_present = energy != MISSING
        household, minute, energy = household[is_present], minute[is_present], energy[is_present].astype(np.int64)
    order = np.lexsort((minute, household))
    return names, household[order], minute[order], energy[order]


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What samples show.

    Attributes:
        rising: households whose readings rise like those of a register.
        households: number of households with enough rows to tell.
        zero_slots: slots that are 0 in most households on most days, and those beside them are not.
        marked: share of the household-days with a reading that seems to be a mark for a missing one, since several
            households share it; that of one may be a heater with a thermostat.
    """

    rising: frozenset[str]
    households: int
    zero_slots: tuple[int, ...]
    marked: float


def examine_samples(samples: Iterable[Sample]) -> SampleFacts:
    """Return what samples show, which are looked at one by one."""
    rising: set[str] = set()
    sampled: set[str] = set()
    zeros, counts, days = np.zeros(SLOTS, np.int64), np.zeros(SLOTS, np.int64), 0
    marks: dict[int, set[str]] = {}
    marked: Counter[int] = Counter()
    for names, household, minute, energy in samples:
        codes, flags = rising_households(household, minute, energy)
        sampled |= {names[code] for code in codes.tolist()}
        rising |= {names[code] for code in codes[flags].tolist()}
        slot, day = minute % DAY_MINUTES // INTERVAL_MINUTES, household_day_key(household, minute // DAY_MINUTES)
        counts += np.bincount(slot, minlength=SLOTS)
        zeros += np.bincount(slot[energy == 0], minlength=SLOTS)
        if (is_mark := are_marks(energy)).any():
            marked[value := int(energy[is_mark][0])] += len(np.unique(day[is_mark]))
            marks.setdefault(value, set()).update(names[code] for code in np.unique(household[is_mark]).tolist())
        days += len(distinct_keys(day))
    slots = lone_zeros(zeros, counts) if len(sampled) >= _MIN_HOUSEHOLDS else ()
    shared = sum(number for value, number in marked.items() if len(marks[value]) >= _MARKED_HOUSEHOLDS)
    return SampleFacts(frozenset(rising), len(sampled), slots, shared / max(days, 1))


def lone_zeros(zeros: Ints, counts: Ints) -> tuple[int, ...]:
    """Return the slots of which nearly all readings are 0, where at most half of those beside them are.

    >>> zeros = np.array([1, 10, 1, *[9] * 45])
    >>> lone_zeros(zeros, np.full(48, 10)), lone_zeros(np.full(48, 10), np.full(48, 10))
    ((1,), ())
    """
    used = np.flatnonzero(counts)
    share = zeros[used] / counts[used]
    beside = np.maximum(np.roll(share, 1), np.roll(share, -1))
    return tuple(used[(share >= _ZERO_SHARE) & (beside <= _MAX_BESIDE)].tolist())


def are_marks(energy: Ints) -> Flags:
    """Return which readings equal the largest, if it is frequent and more than twice the next one of many.

    >>> energy = np.array([*range(1, 101), *[9999] * 8])
    >>> int(are_marks(energy).sum()), int(are_marks(energy[:-1]).sum())
    (8, 0)
    """
    largest = int(energy.max()) if len(energy) else 0
    flags: Flags = energy == largest
    others = energy[~flags]
    if not len(others) or flags.sum() < _MIN_MARKS or largest <= 2 * int(others.max()):
        return np.zeros(len(energy), bool)
    return flags & (len(np.unique(others)) >= _MIN_VALUES)


def rising_households(household: Ints, minute: Ints, energy: Ints) -> tuple[Ints, Flags]:
    """Return households, and whose readings rise within each day and almost never fall, like those of a register.

    Energy use rises and falls. Readings that rise in more than 1 % of the steps and 8 times or more, and fall in at
    most 5 % as many, are those of a register, cumulative over all time or over the day. Households with fewer than 96
    readings are left out. The readings are sorted by household and time.
    """
    starts = np.flatnonzero(is_first_of_key(household))
    if not len(starts):
        return household, np.zeros(0, bool)
    day, is_same_day = minute // DAY_MINUTES, np.zeros(len(household), bool)
    is_same_day[1:] = (household[1:] == household[:-1]) & (day[1:] == day[:-1])
    step = np.diff(energy, prepend=0)
    flags_of_steps = (step > 0) & is_same_day, (step < 0) & is_same_day, is_same_day
    rises, falls, steps = (np.add.reduceat(flags, starts, dtype=np.int64) for flags in flags_of_steps)
    has_enough_rows = np.diff(starts, append=len(household)) >= _MIN_ROWS
    flags: Flags = (rises > _MIN_RISE_SHARE * steps) & (rises >= _MIN_RISES) & (falls <= MAX_FALL_SHARE * rises)
    return household[starts][has_enough_rows], flags[has_enough_rows]


def find_absent_slots(store: Store, delivery: Delivery, months: Sequence[str]) -> tuple[int, ...]:
    """Return the slots that most households lack on most days: of the first bucket in the first and middle month.

    Days with a clock change and household-days without half of the readings do not count.

    Raises:
        FolderRemoved: a part of the store is damaged.
    """
    step, number = slot_step(store.layout.interval_minutes), 0
    counts = np.zeros(SLOTS, np.int64)
    for month in _sampled_months(months):
        readings = month_reader.load_month_readings(store, month, delivery.contents, 0)
        number += count_by_slot(readings, counts, store.layout)
    return slots_of_few(counts, number, step)


def slots_of_few(counts: Ints, number: int, step: int) -> tuple[int, ...]:
    """Return the slots, every `step`-th of a day, that at most half of a number of household-days have.

    >>> slots_of_few(np.array([9, 5, *[9] * 46]), 10, 1), slots_of_few(np.zeros(48, np.int64), 0, 1)
    ((1,), ())
    """
    return tuple(slot for slot in range(0, SLOTS, step) if number and 2 * counts[slot] <= number)


def count_by_slot(readings: Readings, counts: Ints, layout: Layout) -> int:
    """Add the readings by slot to `counts`, and return the number of household-days; see `find_absent_slots`."""
    day = readings.time // SLOTS
    days = np.unique(day)
    changes = [number for number in days.tolist() if layout.absent_slots(date_of_day(number))]
    keys = household_day_key(readings.household, day)
    keys, index, numbers = np.unique(keys, return_inverse=True, return_counts=True)
    counted = 2 * numbers >= SLOTS // slot_step(layout.interval_minutes)
    counted &= ~np.isin(split_household_day_key(keys)[1], changes)
    counts += np.bincount((readings.time % SLOTS)[counted[index]], minlength=SLOTS)
    return int(counted.sum())


def repeats_no_half_hour(store: Store, delivery: Delivery, day: date) -> int:
    """Return the number of households with one row each in the half-hours of a day that the clock shows twice.

    Of the first parts with rows of the month; 0 if a household has two rows in one of these half-hours.
    """
    rows = _row_numbers(store, delivery, day, layout_slots(store.layout, day))
    return 0 if any(number > 1 for number in rows.values()) else len({household for household, *_ in rows})


def repeats_before_skip(store: Store, delivery: Delivery, day: date) -> int:
    """Return the number of households with two rows in the interval before a skipped hour, and not in the one before.

    A clock that skips no more than an interval does not show these rows to be of another zone. Of the first parts with
    rows of the month; 0 if they are not most households.
    """
    slot = before_skip(store.layout, day)
    if slot is None:
        return 0
    before = slot - slot_step(store.layout.interval_minutes)
    rows = _row_numbers(store, delivery, day, [slot] if before < 0 else [before, slot])
    doubled: dict[bool, set[object]] = {True: set(), False: set()}
    for (household, of_slot, *_), number in rows.items():
        if number > 1:
            doubled[of_slot == slot].add(household)
    number = len(doubled[True] - doubled[False])
    return number if 2 * number > len({household for household, *_ in rows}) else 0


def _row_numbers(store: Store, delivery: Delivery, day: date, slots: Sequence[int]) -> dict[tuple[object, ...], int]:
    """Return the number of rows in some slots of a day by household, slot, label and part of the slot.

    Of the first parts with rows of the month, each by itself; none of a layout whose rows are days.
    """
    month = f"{day:%Y-%m}"
    numbers: dict[tuple[object, ...], int] = {}
    if not slots or store.layout.width > 1 or month not in delivery.months:
        return numbers
    for number, buckets in enumerate(_parts_of_buckets(store, month, delivery.contents)[:_CLOCK_PARTS]):
        table = filter_days(_load_sample(store, buckets), pa.array([day], pa.date32()))
        table = table.filter(pc.is_in(table["slot"], value_set=pa.array(slots, pa.uint8())))
        names = ["household_id", "slot", "part", *(["label"] if store.layout.has_labels else [])]
        parts = table["channel"].to_numpy() // PASSES if store.layout.channels > 1 else np.zeros(len(table), np.uint8)
        grouped = table.append_column("part", pa.array(parts)).group_by(names)
        counted = grouped.aggregate([([], "count_all")])
        keys = zip(*(counted[name].to_pylist() for name in names), strict=True)
        numbers |= {(*key, number): rows for key, rows in zip(keys, counted["count_all"].to_pylist(), strict=True)}
    return numbers


def before_skip(layout: Layout, day: date) -> int | None:
    """Return the slot of `Long.slot_before_skip`, None of any other layout."""
    return layout.slot_before_skip(day) if isinstance(layout, Long) else None


def layout_slots(layout: Layout, day: date) -> list[int]:
    """Return the slots of a day that the clock shows twice, with two rows for each."""
    has_one_row = getattr(getattr(layout, "columns", None), "repeated", "sum") == "sum"
    return [] if has_one_row else [*layout.repeated_slots(day)]
