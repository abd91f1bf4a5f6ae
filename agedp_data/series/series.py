"""[series.NAME]: the published statistics of daily totals, and of all others (`profile`, `coverage`) in one union.

A statistic is an exact vector of integers over the days of one group's households, its cells, and the sensitivity of
the vector of all groups, which is that of one group because a household is in one group.

Decisions:

* A cell of counts is named by its range of use, "0-2", or "Std 0-2" for a group.
* Cumulative counts are of the ranges from 0 on. The last one contains all households; it is known and not drawn.
* A distribution with one bin is refused: it would contain all households.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self, TypeGuard

import numpy as np
from pydantic import Discriminator, PlainValidator, ValidationError, model_validator

from agedp_data.errors import LedgerError
from agedp_data.parameters import (
    LATER,
    NUMBERS,
    PositiveKwh,
    ascending,
    exact_text,
    kwh,
    watt_hours,
    wrong,
)
from agedp_data.roster import ALL, GroupColumns
from agedp_data.series.coverage import Coverage
from agedp_data.series.histograms import cumulative, histogram
from agedp_data.series.periods import period_of
from agedp_data.series.profile import Profile
from agedp_data.series.sensitivity import Change, cumulative_sensitivity, histogram_sensitivity, sum_sensitivity
from agedp_data.series.series_terms import EnergySeries, OneCell, Wh

_AMOUNTS: Final = ("share", "clamp_kwh", "half_hour_clamp_kwh", "above_kwh", "missing_kwh", "bins_kwh")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def _bins(values: object) -> tuple[Decimal, ...]:
    edges = ascending(values, kwh)
    if len(edges) < 3 or edges[0] != 0:
        raise wrong("must begin with 0 and have three edges or more: one bin would contain all households")
    return edges


class Mean(OneCell, EnergySeries):
    """Mean of the households' days: one exact sum per group, to which noise is added.

    The published mean is the noisy sum, divided by the number of households on the roster, which is public.
    """

    statistic: Literal["mean"]
    every: Annotated[Literal["day", "week", "month", "year"], LATER] = "day"
    """Days of a row: each day, or the days of a calendar week from Monday, month or year together. A row of a period
    costs what one of its days has for this series, counts in every one of them, and has the noise of all of them.
    """

    @property
    def covers_periods(self) -> bool:
        """Return whether a row covers a week, month or year."""
        return self.every != "day"

    def covered_days(self, day: date) -> tuple[date, date]:
        """Return the first and last day of the period that contains a day; for daily means the day itself."""
        return period_of(day, self.every)

    @property
    def above_wh(self) -> int:
        """Return the energy above which a household's day counts, in whole watt-hours."""
        return 0

    @property
    def width_wh(self) -> int:
        """Return the most that a household's day counts, in whole watt-hours."""
        return self.clamp_wh - self.above_wh

    @property
    def quantity(self) -> tuple[int, int, int, int, str]:
        """Return what counts as a household's day; means of one quantity on one day rest on the same numbers."""
        return self.above_wh, self.clamp_wh, self.missing_wh, self.max_missing, self.values

    @property
    def counted_days(self) -> tuple[GroupColumns, tuple[int, int, int, int, str]]:
        """Return which groups and what of a household's day count; means of days and of months may have the same."""
        return self.by, self.quantity

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of the sum to a change of one household's day [Wh]: at most the width.

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        return sum_sensitivity(self.counted_change(change), clamp=self.width_wh)

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes [Wh]: the sum of a group is one cell."""
        del minutes
        return self.sensitivity(change)

    def exact(self, days_wh: Wh) -> tuple[int, ...]:
        """Return the exact vector of one group, to which noise is added: the sum of its counted days [Wh].

        Args:
            days_wh: counted energies of the group's households, shape (n,) [Wh], see `clamp_energy`.

        Raises:
            ChainError: an energy is outside the range of a counted day.
        """
        self.check_counted(days_wh, self.width_wh)
        return (int(days_wh.sum()),)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have this exact vector: a sum from 0 to all widths together."""
        return bool((exact >= 0).all() and (exact <= households * self.width_wh).all())


def is_daily_mean(series: object) -> TypeGuard[Mean]:
    """Return whether a series is a mean, or a layer of one, with a row for each day.

    >>> is_daily_mean(series_in({"statistic": "mean", "clamp_kwh": "50", "every": "month"}))
    False
    """
    return isinstance(series, Mean) and not series.covers_periods


class Layer(Mean):
    r"""Mean of the part of the households' days above one public clamp and up to the next: an upper layer.

    .. math:: y_j = \min(\max(x - U_{j-1}, 0), U_j - U_{j-1})

    A change of one household's day changes the sum by at most the width U_j - U_(j-1). Written by `series.layers`,
    never by users; layer 1 is a `Mean`.
    """

    above_kwh: Annotated[PositiveKwh, LATER]
    """Clamp of the layer below; the day counts as its energy above this, at most `clamp_kwh` less this."""

    @property
    def above_wh(self) -> int:
        """Return the clamp of the layer below, in whole watt-hours."""
        return watt_hours(self.above_kwh)

    def clamp_energy(self, energy_wh: Wh, usable: np.ndarray[Any, np.dtype[np.bool_]]) -> Wh:
        """Return the part of each day's energy in this layer [Wh], `missing_wh` for an unusable day; see `Series`."""
        return np.where(usable, np.clip(energy_wh - self.above_wh, 0, self.width_wh), self.missing_wh)

    @model_validator(mode="after")
    def _has_a_width(self) -> Self:
        if self.missing_wh > self.width_wh or self.width_wh <= 0:
            raise wrong("must exceed above_kwh, by missing_kwh or more", "clamp_kwh")
        return self


class Distribution(EnergySeries):
    """Counts of households by daily use: one cell per range, half-open; the clamp closes the last range.

    The cells of a histogram are the bins. The cells of cumulative counts are the ranges from 0 to each inner edge; the
    count of the last range is the number of households on the roster, which is public.
    """

    statistic: Literal["distribution"]
    form: Literal["histogram", "cumulative"] = "histogram"
    """Number of households in each bin, or below each edge."""
    bins_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_bins), NUMBERS]
    """Edges of the bins, from 0 to `clamp_kwh`; public."""

    @property
    def bins_wh(self) -> tuple[int, ...]:
        """Return the edges of the bins in whole watt-hours."""
        return tuple(watt_hours(edge) for edge in self.bins_kwh)

    @property
    def ranges_kwh(self) -> tuple[tuple[Decimal, Decimal], ...]:
        """Return the range of use of each cell of a group [kWh]."""
        if self.form == "cumulative":
            return tuple((self.bins_kwh[0], edge) for edge in self.bins_kwh[1:-1])
        return tuple(pairwise(self.bins_kwh))

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of all counts together to a change of one household's day [households].

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        if self.form == "cumulative":
            return cumulative_sensitivity(self.counted_change(change), edges=self.bins_wh)
        return histogram_sensitivity(self.counted_change(change), edges=self.bins_wh)

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes [households]: a household enters or leaves a count."""
        del change, minutes
        return 1

    def cells(self, group: str, *, slots: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the names of a group's cells: the ranges in kWh, such as "0-2", or "Std 0-2" if the series has groups.

        >>> terms = {"statistic": "distribution", "clamp_kwh": "9", "bins_kwh": ["0", "2", "9"], "by": "tariff"}
        >>> series_in(terms).cells("Std")
        ('Std 0-2', 'Std 2-9')
        """
        del slots
        of = "" if self.by is None else f"{group} "
        return tuple(f"{of}{name}" for name in _named(self.ranges_kwh))

    def holds(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a stored release are of this series: every range of each group, in order."""
        groups = dict.fromkeys(cell.rpartition(" ")[0] for cell in cells)
        return list(cells) == [cell for group in groups for cell in self.cells(group)]

    def group_of(self, cell: str) -> str:
        """Return the group of a cell, by its name; see `place`."""
        return self.place(cell)[0]

    def place(self, cell: str) -> tuple[str, Decimal, Decimal]:
        """Return the group and the range [kWh] of a cell, by its name.

        Raises:
            ValueError: the name is not a cell of this series.
        """
        group, separator, of = cell.rpartition(" ")
        ranges = _named(self.ranges_kwh)
        if of not in ranges or bool(separator) != (self.by is not None):
            raise ValueError("the cell is not a range of this series")
        return group if separator else ALL, *ranges[of]

    def exact(self, days_wh: Wh) -> tuple[int, ...]:
        """Return the exact vector of one group, to which noise is added: the number of households in each range.

        Args:
            days_wh: counted energies of the group's households, shape (n,) [Wh], see `clamp_energy`.

        Raises:
            ChainError: an energy is outside the range of a counted day.
        """
        self.check_counted(days_wh, self.clamp_wh)
        if self.form == "cumulative":
            return tuple(cumulative(days_wh, edges=self.bins_wh)[:-1].tolist())
        return tuple(histogram(days_wh, edges=self.bins_wh).tolist())

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have these exact counts.

        The counts of a histogram add up to the number of households; cumulative counts do not decrease and do not
        exceed it.
        """
        steps = np.diff(exact, prepend=0, append=households) if self.form == "cumulative" else exact
        return bool((steps >= 0).all() and steps.sum() == households)

    @model_validator(mode="after")
    def _end_at_the_clamp(self) -> Self:
        if self.bins_kwh[-1] != self.clamp_kwh:
            raise wrong(f"must end with clamp_kwh = {self.clamp_kwh:f}: every day lies in a bin", "bins_kwh")
        return self


@lru_cache(maxsize=64)
def _named(ranges: tuple[tuple[Decimal, Decimal], ...]) -> dict[str, tuple[Decimal, Decimal]]:
    """Return ranges of use by their names in cells."""
    return {f"{exact_text(low)}-{exact_text(high)}": (low, high) for low, high in ranges}


STATISTICS: Final = (Mean, Distribution, Profile, Coverage)
"""The classes of all statistics; the first two are of daily totals."""
AnySeries = Annotated[Mean | Distribution | Profile | Coverage, Discriminator("statistic")]
_KINDS: Final[Mapping[str, type[Mean | Distribution | Profile | Coverage]]] = {
    "mean": Mean,
    "distribution": Distribution,
    "profile": Profile,
    "coverage": Coverage,
}


def series_of(terms: Mapping[str, Any]) -> dict[str, AnySeries]:
    """Return the series of a contract by name; keys that this version does not know are ignored.

    Raises:
        LedgerError: a series differs in form from those that agedp writes.
    """
    try:
        return {name: series_in(table) for name, table in terms["series"].items()}
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError):
        raise LedgerError(
            "a contract in the ledger holds a series that this agedp does not know; update agedp"
        ) from None


def series_in(terms: Mapping[str, Any]) -> AnySeries:
    """Return one series from its table in a contract, where amounts are text.

    >>> series_in({"statistic": "mean", "clamp_kwh": "50", "share": "1"}).clamp_wh
    50000

    Raises:
        ValueError: the table is not a series.
    """
    kind = _KINDS.get(terms["statistic"], Mean)
    kind = Layer if terms.get("above_kwh", "0") != "0" and kind is Mean else kind
    fields = {key: value for key, value in terms.items() if key in kind.model_fields}
    return kind.model_validate({key: _amounts(value) if key in _AMOUNTS else value for key, value in fields.items()})


def _amounts(value: object) -> object:
    return tuple(map(_amount, value)) if isinstance(value, list) else _amount(value)


def _amount(value: object) -> object:
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
