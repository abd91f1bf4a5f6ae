"""Keys and rules of a table [series.NAME] that all statistics share, and what counts as a household's day."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import groupby
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from agedp_data.amendment_rules import COARSER, EITHER, SHARE
from agedp_data.datasets.validation import INTERVAL_MINUTES, Flags
from agedp_data.errors import ChainError
from agedp_data.parameters import Kwh, PositiveKwh, Section, exact, share, text, watt_hours, wrong
from agedp_data.roster import ALL, FIXED_COLUMNS, GroupColumns, columns_of
from agedp_data.series.result_table import DerivedTable, ResultTable
from agedp_data.series.sensitivity import Change, Move

# --------------------------------------------------------------------------------------------------
# Periods of the calendar that a row may cover instead of a day: a week from Monday, a month, or a year.
#
# A row of a period names its last day; the first one follows from the calendar, so that it need not be stored. Periods
# are whole: a week, month or year that begins before the first day of the schedule, or ends after its last one, is
# never published.
#
# Example: the month of 2012-02-29 begins on 2012-02-01 and has 29 days.
# --------------------------------------------------------------------------------------------------

Every = Literal["day", "week", "month", "year", "weekday-month"]


@lru_cache(maxsize=2**12)
def period_of(day: date, every: Every) -> tuple[date, date]:
    """Return the first and last day of the calendar period that contains a day.

    Source: Gregorian calendar; weeks begin on Monday (ISO 8601).

    Args:
        day: the day.
        every: "day", "week", "month" or "year"; "weekday-month" is a month, whose kinds of day are kept apart.

    >>> first, last = period_of(date(2012, 2, 10), "month")
    >>> f"{first} to {last}"
    '2012-02-01 to 2012-02-29'
    """
    match every:
        case "week":
            monday = day - timedelta(days=day.weekday())
            return monday, monday + timedelta(days=6)
        case "month" | "weekday-month":
            return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])
        case "year":
            return day.replace(month=1, day=1), day.replace(month=12, day=31)
        case _:
            return day, day


def days_of(first: date, last: date) -> tuple[date, ...]:
    """Return the days from the first to the last, both included.

    Source: calendar arithmetic.

    Args:
        first: the first day.
        last: the last day.

    >>> [f"{day}" for day in days_of(date(2012, 2, 28), date(2012, 3, 1))]
    ['2012-02-28', '2012-02-29', '2012-03-01']
    """
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))


# --------------------------------------------------------------------------------------------------
# Weekdays and weekends, by which profiles of a month are averaged.
#
# Weekdays are Monday to Friday by the calendar, weekends Saturday and Sunday. Public holidays are not treated
# specially: calendars of holidays differ by region, and change.
#
# Example: 2013-01-01, a Tuesday and a holiday, is a weekday.
# --------------------------------------------------------------------------------------------------

DayKind = Literal["weekday", "weekend"]
Kind = DayKind | Literal[""]
"""The kind of a day; "" where days are not told apart."""
DAY_KINDS: Final[tuple[DayKind, ...]] = ("weekday", "weekend")
_SATURDAY: Final = 5


def day_kind(day: date) -> DayKind:
    """Return whether a day is a weekday or of a weekend.

    Source: Gregorian calendar.

    Args:
        day: the day.

    >>> day_kind(date(2013, 1, 4)), day_kind(date(2013, 1, 5))
    ('weekday', 'weekend')
    """
    return "weekend" if day.weekday() >= _SATURDAY else "weekday"


# --------------------------------------------------------------------------------------------------
# What all statistics share.
# --------------------------------------------------------------------------------------------------

Wh = np.ndarray[Any, np.dtype[np.int64]]
Place = int | tuple[Decimal, Decimal] | None


class Cell(NamedTuple):
    """What one value of a row is about; without a place it is a *part* of the row, all cells of a group and kind.

    `group` is "all" without group columns, `kind` that of the day ("weekday", "weekend"; "" where days are not told
    apart), and `place` tells the cells of a part apart: a half-hour (slot 0 to 47), a range of use [kWh], or nothing.
    """

    group: str = ALL
    kind: Kind = ""
    place: Place = None


class HouseholdDays(NamedTuple):
    """Usable household-days (n): their energies [Wh], and how long a reading is [minutes]; confidential.

    Energies are daily totals, shape (n, 1). For a statistic that `reads_half_hours` they have shape (n, 48), and -1 is
    a half-hour without a reading.
    """

    energy_wh: Wh
    minutes: int = INTERVAL_MINUTES


class Counted(NamedTuple):
    """What household-days add to the cells of their part, shape (n, places), and which are clamped, shape (n,)."""

    values: Wh
    clamped: Flags


# The day on which the clock goes forward has 46 half-hours; a day without any reading is always missing.
Missing = Annotated[int, Field(ge=0, le=45)]


MOST_LEVELS: Final = 6
SEPARATOR: Final = "/"
"""Between the name of a table and the number of a layer, or the column of a level."""
_LEVEL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_group_columns(by: GroupColumns) -> None:
    """Check that group columns are not those that every roster has, and that several can be levels of a hierarchy.

    The column of a level is in the name of its series, "use/feeder", where a number is that of a layer.

    Raises:
        PydanticCustomError: they are, or a level is named twice, by a number or by other characters.
    """
    columns = columns_of(by)
    if set(columns) & set(FIXED_COLUMNS):
        raise wrong("must be a group column of the roster, such as tariff", "by")
    if len(columns) < 2:
        return
    if len(columns) > MOST_LEVELS or len(set(columns)) < len(columns):
        raise wrong(f"must be one column, or a list of 2 to {MOST_LEVELS} different columns, the finest first", "by")
    for column in columns:
        if not _LEVEL.fullmatch(column) or column.isdecimal():
            raise wrong(f"a level must be named by letters, digits, _ and -, not by digits alone: {column!r}", "by")


def _group_columns(value: object) -> str | tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return text(value)
    if not 2 <= len(value) <= MOST_LEVELS:
        example = '["feeder", "substation", "area"]'
        raise wrong(f"must be one column, or a list of 2 to {MOST_LEVELS}, the finest first, such as {example}")
    return tuple(map(text, value))


_COLUMNS: Final = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 2}]}
)
DayShare = Annotated[
    Decimal,
    PlainValidator(share),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "array", "items": {"type": "number"}}]}
    ),
]
"""A share of each day's epsilon; in a table with layers or levels, a list of them."""


def mean_name(series: str) -> str:
    """Return the name of the mean that a series is, or is a layer of: layers share it, levels do not.

    >>> mean_name("daily_mean/2"), mean_name("daily_mean"), mean_name("daily_mean/feeder")
    ('daily_mean', 'daily_mean', 'daily_mean/feeder')
    """
    return series.partition(SEPARATOR)[0] if layer_number(series) else series


def layer_number(series: str) -> int:
    """Return which layer of its mean a series is, from 1; 0 for a series that is no layer.

    >>> layer_number("daily_mean/2"), layer_number("daily_mean")
    (2, 0)
    """
    number = series.partition(SEPARATOR)[2]
    return int(number) if number.isdecimal() else 0


def layers_of(series: str, names: Iterable[str]) -> list[str]:
    """Return the layers of the mean that a series is a layer of, or the series alone.

    >>> layers_of("use/1", ["use/1", "use/2", "night"]), layers_of("night", ["use/1", "use/2", "night"])
    (['use/1', 'use/2'], ['night'])
    """
    return [name for name in names if mean_name(name) == mean_name(series)]


class Series(Section):
    """Keys and rules that all statistics share, and what they have by default: a count of households, one cell a group.

    A statistic defines `statistic`, `counted` and `sensitivity`. It has several cells by `names`, with `cell_words`.
    """

    unit: ClassVar[Literal["kWh", "households"]] = "households"
    """Of published values: energy, divided by the households or household-days of its part, or a number of them."""
    reads_half_hours: ClassVar[bool] = False
    """Whether the half-hours of a day count, in place of its total."""
    true_values: ClassVar[Literal["means", "counts", ""]] = ""
    """Confidential table of true values, if any. Of others the rows of coverage show that a day is recorded."""
    cell_words: ClassVar[tuple[str, str]] = ("", "")
    """Of several named cells in a part: what they are, and the keys that a contract needs for them."""
    counted_share: ClassVar[str] = "counted share"
    """Of a number of households: what it is of all of them."""
    stated: ClassVar[str] = (
        "the households that are counted, of those with enough readings. Noise is added to each count; counts are "
        "whole numbers that may be negative."
    )
    """Sentences of STATEMENT.md on what is counted and how noise is added, for every series of the statistic."""
    stated_of_periods: ClassVar[str] = ""
    """The same of rows that cover a week, month or year, beyond what holds for all such rows."""

    def __init_subclass__(cls) -> None:
        """Refuse a statistic whose cells have names and no words: contracts and messages would not know them."""
        super().__init_subclass__()
        if not (cls.has_one_cell() or all(cls.cell_words)):
            raise TypeError(
                f"{cls.__name__}: a statistic with `names` needs `cell_words`: what its cells are, and the keys that a "
                'contract needs for them, such as ("bins", "form or bins")'
            )

    @classmethod
    def has_one_cell(cls) -> bool:
        """Return whether a part has one cell, by the name of the group: no place is named."""
        return cls.names is Series.names

    @classmethod
    def has_one_mean(cls) -> bool:
        """Return whether a row has one mean of the households for each group [kWh]."""
        return cls.unit == "kWh" and cls.has_one_cell()

    KIND: ClassVar[str]
    """`statistic` of the run file."""
    PLURAL: ClassVar[str]
    """What its values are called in the description of a release."""
    CONTENT: ClassVar[str]
    """What a release contains of it, after "daily", in its first sentence."""
    TITLE: ClassVar[str] = ""
    """The same in the title of a release, if it differs."""
    TABLES: ClassVar[tuple[ResultTable, ...]]
    """Of its released rows: of single days, and of longer periods if it has rows of these."""
    DERIVED: ClassVar[tuple[DerivedTable, ...]] = ()
    """Tables that follow from its daily rows."""

    statistic: str
    """Published statistic of a day."""
    share: Annotated[DayShare | None, SHARE] = None
    """Share of each day's epsilon (under "neighbourhood": for small changes). Required with several series; the shares
    add up to 1. A list, one for each, with a list of clamps or of columns in `by`.
    """
    by: Annotated[Annotated[str | tuple[str, ...], PlainValidator(_group_columns), _COLUMNS] | None, EITHER] = None
    """Group column of the roster: one value per group and day. A list of 2 to 6 columns, the finest first, such as
    ["feeder", "substation", "area"], is a hierarchy: each is a level, a series with a share of its own; groups have the
    names of their paths, "north/S1/F12".
    """
    max_missing: Annotated[Missing, EITHER] = 2
    """A household-day that lacks more readings than this counts as missing: of half-hours, or of hours where [input]
    interval_minutes = 60.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the group columns, the finest first; none for a series of all households."""
        return columns_of(self.by)

    @property
    def level(self) -> str:
        """Return the column that divides the groups, the finest one, or "all" for a series of all households."""
        return self.columns[0] if self.columns else ALL

    @property
    def table(self) -> ResultTable:
        """Return the table of its rows."""
        return self.TABLES[-1 if self.covers_periods else 0]

    @property
    def derived(self) -> tuple[DerivedTable, ...]:
        """Return the tables that follow from its rows: those of single days add up."""
        return () if self.covers_periods else self.DERIVED

    @property
    def counts_states(self) -> bool:
        """Return whether the series counts the states of readings in place of the readings."""
        return False

    @property
    def compares_states(self) -> bool:
        """Return whether daily totals by readings and by states are both added up, so that their difference shows."""
        return self.counts_states and not self.reads_half_hours

    @property
    def period(self) -> Every:
        """Return what a row covers: a day, or a week, month or year of the calendar."""
        return "day"

    @property
    def covers_periods(self) -> bool:
        """Return whether a row of the series covers a period of several days."""
        return self.period != "day"

    @property
    def method(self) -> str:
        """Return what STATEMENT.md says of how a row was computed; {reading} is a half-hour or an hour."""
        return f"{self.stated} {self.stated_of_periods}".strip() if self.covers_periods else self.stated

    def covered_days(self, day: date) -> tuple[date, date]:
        """Return the first and last day that the row named by a day covers: the day itself, or the period with it."""
        return period_of(day, self.period)

    def row_sensitivity(self, day: date) -> int:
        """Return the L1 sensitivity of the row named by a day to any change of all days of a household in it."""
        first, last = self.covered_days(day)
        return ((last - first).days + 1) * self.sensitivity("replacement")

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of one covered day to a change of a household's day."""
        raise NotImplementedError

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes by a change of a household's day [Wh, or households].

        Args:
            change: change of one household's day.
            minutes: length of a reading's interval.
        """
        return min(self.most(minutes), self.sensitivity(change))

    def most(self, minutes: int) -> int:
        """Return the most that a household's day adds to one cell [Wh, or households]."""
        del minutes
        return 1

    @property
    def rule(self) -> tuple[object, ...]:
        """Return what a household's day counts; series of one rule count the same, in other groups or periods."""
        others = ("by", "share", "every")
        return type(self), *(getattr(self, key) for key in type(self).model_fields if key not in others)

    def counted(self, days: HouseholdDays) -> Counted:
        """Return what usable household-days count. Their sum, and `missing` of all others, is the exact vector.

        Raises:
            ChainError: a day counts outside the range that the sensitivity is of.
        """
        raise NotImplementedError

    def missing(self, slots: Sequence[int], *, minutes: int) -> Wh:
        """Return what a household-day without enough readings adds to each place of its part; public."""
        del minutes
        return np.zeros(len(self.places(slots)), np.int64)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of household-days can have this exact vector of a part.

        The bound is not taken from the sensitivity: a wrong one would be drawn with.
        """
        return bool((exact >= 0).all() and (exact <= households * self.most(INTERVAL_MINUTES)).all())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of day that a row keeps apart."""
        return ("",)

    def kind_of(self, day: date) -> Kind:
        """Return the kind of a day."""
        del day
        return ""

    def weight(self, kind: Kind) -> int:
        """Return how often a day of a kind counts in a row."""
        del kind
        return 1

    @property
    def names(self) -> Mapping[str, Place]:
        """Return the places that a part can have cells for, by their names in the ledger."""
        return {"": None}

    def places(self, slots: Sequence[int] = ()) -> tuple[Place, ...]:
        """Return the places of a row's parts, in order; `slots` are the half-hours of its days."""
        del slots
        return tuple(self.names.values())

    def cells(self, parts: Iterable[Cell], *, slots: Sequence[int] = ()) -> tuple[Cell, ...]:
        """Return the cells of parts, in order; `slots` are the half-hours of the row's days."""
        places = self.places(slots)
        return tuple(Cell(part.group, part.kind, place) for part in parts for place in places)

    def write_cells(self, cells: Iterable[Cell]) -> tuple[str, ...]:
        """Return cells as the ledger has them: group, kind and place, such as "Std weekend 18:30".

        Of a series without group columns kind and place alone, if it has places.
        """
        if self.has_one_cell():
            return tuple(cell.group for cell in cells)
        words = {of: text for text, of in _words(self.kinds, tuple(self.names.items())).items()}
        if self.by is None:
            return tuple(words[cell.kind, cell.place] for cell in cells)
        return tuple(f"{cell.group} {words[cell.kind, cell.place]}" for cell in cells)

    def write_part(self, part: Cell) -> str:
        """Return a part as confidential tables have it: its group, and the kind of day after or in place of it."""
        if not part.kind:
            return part.group
        return part.kind if self.by is None else f"{part.group} {part.kind}"

    def read_cells(self, texts: Sequence[str]) -> tuple[Cell, ...]:
        """Return the cells of a row of the ledger.

        Raises:
            ValueError: a text is no cell of this series.
        """
        return _read_cells(self, tuple(texts))

    def by_part(self, texts: Sequence[str], households: Sequence[int]) -> dict[Cell, int]:
        """Return the number of households, or household-days, of each part of a row: all its cells have the same.

        Args:
            texts: the cells of the row.
            households: number of households of each cell, in the same order.

        Raises:
            ValueError: a text is no cell of this series.
        """
        return {part: households[i] for part, i in _last_of_parts(self, tuple(texts)).items()}

    def by_group(self, texts: Sequence[str], households: Sequence[int]) -> dict[str, int]:
        """Return the number of households, or household-days, of each group of a row; see `by_part`."""
        totals: dict[str, int] = {}
        for part, number in self.by_part(texts, households).items():
            totals[part.group] = totals.get(part.group, 0) + number
        return totals

    def holds(self, texts: Sequence[str]) -> bool:
        """Return whether the cells of a stored row can be of this series: the same places, in order, of each part once.

        A part of one cell is any group.
        """
        if self.has_one_cell():
            return True
        try:
            cells = self.read_cells(texts)
        except ValueError:
            return False
        runs = [(part, [cell.place for cell in run]) for part, run in groupby(cells, key=lambda cell: cell[:2])]
        present = {cell.place for cell in cells}
        expected = [place for place in self.names.values() if place in present or not self.reads_half_hours]
        return len({part for part, _ in runs}) == len(runs) and all(places == expected for _, places in runs)

    @model_validator(mode="after")
    def _by_a_group_column(self) -> Self:
        check_group_columns(self.by)
        return self


@lru_cache(maxsize=64)
def _words(kinds: tuple[Kind, ...], names: tuple[tuple[str, Place], ...]) -> dict[str, tuple[Kind, Place]]:
    """Return the kind and place of the cells of a group by their words."""
    return {" ".join(filter(None, [kind, name])): (kind, place) for kind in kinds for name, place in names}


@lru_cache(maxsize=8)  # rows repeat their cells, up to 19,200 of a profile
def _read_cells(series: Series, texts: tuple[str, ...]) -> tuple[Cell, ...]:
    if series.has_one_cell():
        return tuple(map(Cell, texts))
    words = _words(series.kinds, tuple(series.names.items()))
    spaces = next(iter(words)).count(" ") + 1
    try:
        if series.by is None:
            return tuple(Cell(ALL, *words[text]) for text in texts)
        parted = (text.rsplit(" ", spaces) for text in texts)
        return tuple(Cell(group, *words[" ".join(of)]) for group, *of in parted)
    except KeyError:
        raise ValueError(f"the cell is not one of the {series.cell_words[0]} of this series") from None


@lru_cache(maxsize=8)
def _last_of_parts(series: Series, texts: tuple[str, ...]) -> dict[Cell, int]:
    """Return the place in a row of the last cell of each part."""
    return {Cell(cell.group, cell.kind): i for i, cell in enumerate(_read_cells(series, texts))}


class EnergySeries(Series):
    """Keys and rules of statistics of use; the exact vector of a release is computed from the counted days.

    A household's day counts as its energy, at most `clamp_kwh`; a missing household-day counts as `missing_kwh`.
    """

    clamp_kwh: Annotated[PositiveKwh, EITHER]
    """Upper bound on a household's daily total; a larger total counts as this. Public, never derived from the data. For
    daily means, a list of 2 to 4 ascending bounds cuts the day into layers, each a series with a share of its own.
    """
    missing_kwh: Annotated[Kwh, EITHER] = exact(0)
    """Value of a missing household-day."""
    values: Annotated[Literal["readings", "states"], COARSER] = "readings"
    """Readings as they are, or the representative values of their states under public `[model]` edges."""

    @property
    def clamp_wh(self) -> int:
        """Return the public upper bound on a household's day, in whole watt-hours."""
        return watt_hours(self.clamp_kwh)

    @property
    def missing_wh(self) -> int:
        """Return the energy of a missing household-day, in whole watt-hours."""
        return watt_hours(self.missing_kwh)

    @property
    def counts_states(self) -> bool:
        """Return whether the series counts the states of readings in place of the readings."""
        return self.values == "states"

    def counted_change(self, change: Change) -> Change:
        """Return the change that a series sees when the use of a household changes.

        A series of readings sees the same change. A series of states sees a replacement: half-hours with nearly the
        same sum may lie in any states.
        """
        return "replacement" if self.counts_states and isinstance(change, Move) else change

    def clamp_energy(self, energy_wh: Wh) -> Wh:
        """Return energies of usable days as they count in a release, from 0 to `clamp_wh`, of any shape [Wh]."""
        return np.asarray(np.clip(energy_wh, 0, self.clamp_wh))

    def clamped_days(self, days: HouseholdDays, most_wh: int) -> Counted:
        """Return the daily totals as they count, checked to be within 0 and the most that a day counts.

        Raises:
            ChainError: they are not; the sensitivity holds for no others.
        """
        days_wh = self.clamp_energy(days.energy_wh)
        self.check_counted(days_wh, most_wh)
        return Counted(days_wh, days.energy_wh[:, 0] > self.clamp_wh)

    def missing(self, slots: Sequence[int], *, minutes: int) -> Wh:
        """Return what a household-day without enough readings adds: a day of `missing_wh`; public."""
        del slots
        day: Wh = np.array([[self.missing_wh]])
        return self.counted(HouseholdDays(day, minutes)).values.reshape(-1)

    def check_counted(self, days_wh: Wh, most_wh: int) -> None:
        """Check that counted days are within 0 and the most that a day counts.

        Raises:
            ChainError: they are not.
        """
        if days_wh.size and (days_wh.min() < 0 or days_wh.max() > most_wh):
            raise ChainError("a household's day counts outside its range: nothing is added up")

    @model_validator(mode="after")
    def _within_the_bound(self) -> Self:
        if self.missing_kwh > self.clamp_kwh:
            raise wrong("must not exceed clamp_kwh", "missing_kwh")
        return self
