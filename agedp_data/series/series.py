"""[series.NAME]: the published statistics. One table per statistic; every bound in it is public.

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
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, PlainValidator, ValidationError, model_validator

from agedp_data.errors import LedgerError
from agedp_data.parameters import (
    LATER,
    NUMBERS,
    Kwh,
    PositiveKwh,
    Section,
    Share,
    Text,
    ascending,
    exact,
    exact_text,
    kwh,
    watt_hours,
    wrong,
)
from agedp_data.roster import ALL
from agedp_data.series.histograms import cumulative, histogram
from agedp_data.series.sensitivity import Change, Move, cumulative_sensitivity, histogram_sensitivity, sum_sensitivity

_AMOUNTS: Final = ("share", "clamp_kwh", "above_kwh", "missing_kwh", "bins_kwh")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
Wh = np.ndarray[Any, np.dtype[np.int64]]

# The day on which the clock goes forward has 46 half-hours; a day without any reading is always missing.
Missing = Annotated[int, Field(ge=0, le=45)]


def check_group_column(name: str | None) -> None:
    """Check that a group column is not one that every roster has.

    Raises:
        PydanticCustomError: it is.
    """
    if name in ("household_id", "from", "to"):
        raise wrong("must be a group column of the roster, such as tariff", "by")


def _bins(values: object) -> tuple[Decimal, ...]:
    edges = ascending(values, kwh)
    if len(edges) < 3 or edges[0] != 0:
        raise wrong("must begin with 0 and have three edges or more: one bin would contain all households")
    return edges


class Series(Section):
    """Keys and rules that all statistics share; the exact vector of a release is computed from the counted days.

    A household's day counts as its energy, at most `clamp_kwh`; a missing household-day counts as `missing_kwh`.
    """

    statistic: str
    """Published statistic of a day."""
    share: Share | None = None
    """Share of each day's epsilon (under "neighbourhood": of its epsilon for small changes). Required with several
    series; the shares add up to 1. With a list of clamps: a list, one share per layer.
    """
    clamp_kwh: PositiveKwh
    """Upper bound on a household's daily total; a larger total counts as this. Public, never derived from the data. A
    mean may have a list of 2 to 4 ascending bounds: the day is cut into layers, each a series with a share of its own.
    """
    by: Text | None = None
    """Group column of the roster; the series then has one value per group and day."""
    max_missing: Missing = 2
    """A household-day that lacks more readings than this counts as missing: of half-hours, or of hours where [input]
    interval_minutes = 60.
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

    def counted_change(self, change: Change) -> Change:
        """Return the change that a series sees when the use of a household changes.

        A series of readings sees the same change. A series of states sees a replacement: half-hours with nearly the
        same sum may lie in any states.
        """
        return "replacement" if self.values == "states" and isinstance(change, Move) else change

    def clamp_energy(self, energy_wh: Wh, usable: np.ndarray[Any, np.dtype[np.bool_]]) -> Wh:
        """Return the energies of one day as they count in a release.

        Args:
            energy_wh: energy of each household-day, shape (n,) [Wh].
            usable: which household-days have enough readings, shape (n,).

        Returns:
            Energies, shape (n,) [Wh]: at most `clamp_wh`, and `missing_wh` for an unusable day.
        """
        return np.where(usable, np.minimum(energy_wh, self.clamp_wh), self.missing_wh)

    @model_validator(mode="after")
    def _within_the_bound(self) -> Self:
        if self.missing_kwh > self.clamp_kwh:
            raise wrong("must not exceed clamp_kwh", "missing_kwh")
        check_group_column(self.by)
        return self


class Mean(Series):
    """Mean of the households' days: one exact sum per group, to which noise is added.

    The published mean is the noisy sum, divided by the number of households on the roster, which is public.
    """

    statistic: Literal["mean"]
    moves_counts: ClassVar[bool] = False

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

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of the sum to a change of one household's day [Wh]: at most the width.

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        return sum_sensitivity(self.counted_change(change), clamp=self.width_wh)

    def cells(self, group: str) -> tuple[str, ...]:
        """Return the cells of a group: one, which has the group's name."""
        return (group,)

    def holds(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a stored release can be of this series: always, because any group is one cell."""
        del cells
        return True

    def by_group(self, cells: Sequence[str], households: Sequence[int]) -> dict[str, int]:
        """Return the number of households of a release by group.

        Args:
            cells: names of the release's cells.
            households: number of households of each cell, in the same order.
        """
        return dict(zip(cells, households, strict=True))

    def exact(self, days_wh: Wh) -> tuple[int, ...]:
        """Return the exact vector of one group, to which noise is added: the sum of its counted days [Wh].

        Args:
            days_wh: counted energies of the group's households, shape (n,) [Wh], see `clamp_energy`.
        """
        return (int(days_wh.sum()),)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have this exact vector: a sum from 0 to all widths together."""
        return bool((exact >= 0).all() and (exact <= households * self.width_wh).all())


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


class Distribution(Series):
    """Counts of households by daily use: one cell per range, half-open; the clamp closes the last range.

    The cells of a histogram are the bins. The cells of cumulative counts are the ranges from 0 to each inner edge; the
    count of the last range is the number of households on the roster, which is public.
    """

    statistic: Literal["distribution"]
    moves_counts: ClassVar[bool] = True
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

    def cells(self, group: str) -> tuple[str, ...]:
        """Return the names of a group's cells: the ranges in kWh, such as "0-2", or "Std 0-2" if the series has groups.

        >>> terms = {"statistic": "distribution", "clamp_kwh": "9", "bins_kwh": ["0", "2", "9"], "by": "tariff"}
        >>> series_in(terms).cells("Std")
        ('Std 0-2', 'Std 2-9')
        """
        of = "" if self.by is None else f"{group} "
        return tuple(f"{of}{name}" for name in _named(self.ranges_kwh))

    def holds(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a stored release are of this series: every range of each group, in order."""
        groups = dict.fromkeys(cell.rpartition(" ")[0] for cell in cells)
        return list(cells) == [cell for group in groups for cell in self.cells(group)]

    def by_group(self, cells: Sequence[str], households: Sequence[int]) -> dict[str, int]:
        """Return the number of households of a release by group; all cells of a group have the same number.

        Args:
            cells: names of the release's cells.
            households: number of households of the group of each cell, in the same order.

        Raises:
            ValueError: a name is not a cell of this series.
        """
        return {self.place(cell)[0]: number for cell, number in zip(cells, households, strict=True)}

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
        """
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


AnySeries = Annotated[Mean | Distribution, Discriminator("statistic")]


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
    kind: type[Mean] | type[Distribution] = Distribution if terms["statistic"] == "distribution" else Mean
    kind = Layer if "above_kwh" in terms and kind is Mean else kind
    fields = {key: value for key, value in terms.items() if key in kind.model_fields}
    return kind.model_validate({key: _amounts(value) if key in _AMOUNTS else value for key, value in fields.items()})


def _amounts(value: object) -> object:
    return tuple(map(_amount, value)) if isinstance(value, list) else _amount(value)


def _amount(value: object) -> object:
    return Decimal(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
