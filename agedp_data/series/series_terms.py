"""Keys and rules of a table [series.NAME] that all statistics share, and what counts as a household's day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from agedp_data.errors import ChainError
from agedp_data.parameters import Kwh, PositiveKwh, Section, exact, share, text, watt_hours, wrong
from agedp_data.roster import ALL, FIXED_COLUMNS, GroupColumns, columns_of
from agedp_data.series.sensitivity import Change, Move

Wh = np.ndarray[Any, np.dtype[np.int64]]

# The day on which the clock goes forward has 46 half-hours; a day without any reading is always missing.
Missing = Annotated[int, Field(ge=0, le=45)]


MOST_LEVELS: Final = 6
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


class Series(Section):
    """Keys and rules that all statistics share."""

    statistic: str
    """Published statistic of a day."""
    share: DayShare | None = None
    """Share of each day's epsilon (under "neighbourhood": of its epsilon for small changes). Required with several
    series; the shares add up to 1. With a list of clamps, or of columns in `by`: a list, one share for each.
    """
    by: Annotated[str | tuple[str, ...], PlainValidator(_group_columns), _COLUMNS] | None = None
    """Group column of the roster; the series then has one value per group and day. A list of 2 to 6 columns, the
    finest first, such as ["feeder", "substation", "area"], is a hierarchy: each column is a level, a series with a
    share of its own, and groups are named by their path, "north/S1/F12".
    """
    max_missing: Missing = 2
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
    def counts_states(self) -> bool:
        """Return whether the series counts the states of readings in place of the readings."""
        return False

    @property
    def covers_periods(self) -> bool:
        """Return whether a row of the series covers a period of several days."""
        return False

    def covered_days(self, day: date) -> tuple[date, date]:
        """Return the first and last day that the row named by a day covers: for most series the day itself."""
        return day, day

    def row_sensitivity(self, day: date) -> int:
        """Return the L1 sensitivity of the row named by a day to any change of all days of a household in it."""
        first, last = self.covered_days(day)
        return ((last - first).days + 1) * self.sensitivity("replacement")

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of one covered day to a change of a household's day."""
        raise NotImplementedError

    def group_of(self, cell: str) -> str:
        """Return the group of a cell, by its name; where a group has one cell, it has the group's name.

        Raises:
            ValueError: the name is not a cell of this series.
        """
        return cell

    def by_group(self, cells: Sequence[str], households: Sequence[int]) -> dict[str, int]:
        """Return the number of households of a release by group; all cells of a group have the same number.

        Args:
            cells: names of the release's cells.
            households: number of households of the group of each cell, in the same order.

        Raises:
            ValueError: a name is not a cell of this series.
        """
        return {self.group_of(cell): number for cell, number in zip(cells, households, strict=True)}

    @model_validator(mode="after")
    def _by_a_group_column(self) -> Self:
        check_group_columns(self.by)
        return self


class OneCell:
    """Cells of a series whose groups have one value a row each; to be inherited beside `Series`."""

    def cells(self, group: str, *, slots: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the cells of a group: one, which has the group's name, whatever the half-hours of the day."""
        del slots
        return (group,)

    def holds(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a stored release can be of this series: always, because any group is one cell."""
        del cells
        return True


class EnergySeries(Series):
    """Keys and rules of statistics of use; the exact vector of a release is computed from the counted days.

    A household's day counts as its energy, at most `clamp_kwh`; a missing household-day counts as `missing_kwh`.
    """

    clamp_kwh: PositiveKwh
    """Upper bound on a household's daily total; a larger total counts as this. Public, never derived from the data.
    Only with statistic = "mean" and every = "day", a list of 2 to 4 ascending bounds cuts the day into layers, each a
    series with a share of its own.
    """
    missing_kwh: Kwh = exact(0)
    """Value of a missing household-day."""
    values: Literal["readings", "states"] = "readings"
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

    def clamp_energy(self, energy_wh: Wh, usable: np.ndarray[Any, np.dtype[np.bool_]]) -> Wh:
        """Return the energies of one day as they count in a release.

        Args:
            energy_wh: energy of each household-day, shape (n,) [Wh].
            usable: which household-days have enough readings, shape (n,).

        Returns:
            Energies, shape (n,) [Wh]: from 0 to `clamp_wh`, and `missing_wh` for an unusable day.
        """
        return np.where(usable, np.clip(energy_wh, 0, self.clamp_wh), self.missing_wh)

    def check_counted(self, days_wh: Wh, most_wh: int) -> None:
        """Check that counted days are within 0 and the most that a day counts; the sensitivity holds for no others.

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
