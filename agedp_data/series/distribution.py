"""[series.NAME] with statistic = "distribution": how many households used how much on a day.

Decisions:

* A cell of counts is named by its range of use, "0-2", or "Std 0-2" for a group.
* Cumulative counts are of the ranges from 0 on. The last one contains all households; it is known and not drawn.
* A distribution with one bin is refused: it would contain all households.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import PlainValidator, model_validator

from agedp_data.amendment_rules import EITHER
from agedp_data.parameters import (
    NUMBERS,
    ascending,
    exact_text,
    kwh,
    watt_hours,
    wrong,
)
from agedp_data.series.distribution_tables import DISTRIBUTIONS, QUANTILES
from agedp_data.series.sensitivity import Change, cumulative_sensitivity, histogram_sensitivity
from agedp_data.series.series_terms import Counted, EnergySeries, HouseholdDays, Place, Wh


def _bins(values: object) -> tuple[Decimal, ...]:
    edges = ascending(values, kwh)
    if len(edges) < 3 or edges[0] != 0:
        raise wrong("must begin with 0 and have three edges or more: one bin would contain all households")
    return edges


class Distribution(EnergySeries):
    """Counts of households by daily use: one cell per range, half-open; the clamp closes the last range.

    The cells of a histogram are the bins. The cells of cumulative counts are the ranges from 0 to each inner edge; the
    count of the last range is the number of households on the roster, which is public.
    """

    KIND = "distribution"
    PLURAL = "counts by range of use"
    TABLES = (DISTRIBUTIONS,)
    DERIVED = (QUANTILES,)
    true_values = "counts"
    stated = ""
    cell_words = ("bins", "form or bins")

    statistic: Literal["distribution"]
    form: Literal["histogram", "cumulative"] = "histogram"
    """Number of households in each bin, or below each edge."""
    bins_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_bins), NUMBERS, EITHER]
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

    @property
    def names(self) -> Mapping[str, Place]:
        """Return the ranges of use of a group [kWh] by their names, such as "0-2".

        >>> from agedp_data.series.series_terms import Cell
        >>> terms = {"statistic": "distribution", "clamp_kwh": "9", "bins_kwh": ["0", "2", "9"], "by": "tariff"}
        >>> (series := series_in(terms)).write_cells(series.cells([Cell("Std")]))
        ('Std 0-2', 'Std 2-9')
        """
        return _named(self.ranges_kwh)

    def counted(self, days: HouseholdDays) -> Counted:
        """Return in which ranges each day lies: 1 or 0 for each [households].

        Raises:
            ChainError: an energy is outside the range of a counted day.
        """
        days_wh, clamped = self.clamped_days(days, self.clamp_wh)
        number = np.searchsorted(self.bins_wh[1:-1], days_wh, side="right")
        ranges = np.arange(len(self.ranges_kwh))
        is_in = number <= ranges if self.form == "cumulative" else number == ranges
        return Counted(is_in.astype(np.int64), clamped)

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
