"""READINGS of the model's period -> EDGES: at most 12 states per household.

Two passes over the months, merged by addition: exact whatever the blocks and the order. `quantile` and
`equal-width` edges are each household's own and confidential; a list of edges is public and the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import numpy as np

from agedp_data.chains.states import edges_equal_width, edges_quantile
from agedp_data.readers.layout import SLOTS, Ints
from agedp_data.roster import Roster
from pipelines.blocks import Engine, map_each
from pipelines.months import month_readings
from pipelines.read import Delivery
from pipelines.store import Store, months_between

Floats = np.ndarray[Any, np.dtype[np.float64]]
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class MonthReadings:
    """Readings of roster households in a period (m), sorted by household and time; household codes are the roster's."""

    household: Ints
    time: Ints
    energy_wh: Ints


@dataclass(frozen=True, slots=True)
class Period:
    """Which readings a model is estimated from."""

    store: Store
    delivery: Delivery
    roster: Roster
    first: date
    last: date

    @property
    def months(self) -> tuple[str, ...]:
        """Return the months of the period that have readings."""
        return tuple(month for month in months_between(self.first, self.last) if month in self.delivery.months)

    def readings(self, month: str) -> MonthReadings:
        """Return the period's readings of one month."""
        found = month_readings(self.store, month, self.delivery.contents)
        position = {household: code for code, household in enumerate(self.roster.ids)}
        codes = np.array([position.get(household, -1) for household in found.ids] or [-1], np.int64)
        household = codes[found.household]
        low, high = (self.first - _EPOCH).days * SLOTS, ((self.last - _EPOCH).days + 1) * SLOTS
        inside = (household >= 0) & (found.time >= low) & (found.time < high)
        return MonthReadings(household[inside], found.time[inside], found.energy_wh[inside])


def quantize(period: Period, *, edges: str | Sequence[float], n_states: int, engine: Engine) -> Floats:
    """Return EDGES: (households of the roster, n_states - 1) inner cut points in Wh; NaN rows have no reading."""
    if not isinstance(edges, str):
        return np.tile(np.asarray(edges, np.float64), (len(period.roster.ids), 1))
    found = map_each("edges", period.months, each=partial(_histogram, period=period), engine=engine)
    household, value, count = _merge(found)
    table = np.full((len(period.roster.ids), n_states - 1), np.nan)
    for code in np.unique(household):
        own = slice(*np.searchsorted(household, [code, code + 1]))
        if edges == "quantile":
            table[code] = edges_quantile(value[own], count[own], n_states)
        else:
            table[code] = edges_equal_width(float(value[own].max()), n_states)
    return table


def _histogram(month: str, *, period: Period) -> tuple[Ints, Ints, Ints]:
    found = period.readings(month)
    return _counted(found.household, found.energy_wh, np.ones(len(found.household), np.int64))


def _merge(found: Sequence[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    empty = np.zeros(0, np.int64)
    household, value, count = (np.concatenate([empty, *(part[i] for part in found)]) for i in range(3))
    return _counted(household, value, count)


def _counted(household: Ints, value: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """Return distinct (household, value) pairs, sorted, with their counts added up."""
    order = np.lexsort((value, household))
    household, value, count = household[order], value[order], count[order]
    first = np.ones(len(household), bool)
    first[1:] = (household[1:] != household[:-1]) | (value[1:] != value[:-1])
    starts = np.flatnonzero(first)
    return household[starts], value[starts], np.add.reduceat(count, starts) if len(starts) else count
