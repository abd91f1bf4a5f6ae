"""Months of synthetic households for a rehearsal: half-hours that follow from the month and the household's number.

The households are those of `households.SAMPLE_CHAINS`, 10 kWh a day on average. Household 7 has the same readings of
January 2013 in every rehearsal: nothing but constants of this package enters.

Decisions:

* Every month is drawn by itself, each chain from its stationary distribution, so that a night computes one month and
  not the series so far. Size and kind of a household are the same in all months.
* Households are drawn in whole batches, and only the days up to the last one needed: the readings of household 7 do
  not depend on how many households there are, nor on how many days of the month.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

import numpy as np

from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.synthetic.households import (
    BATCH,
    day_factors,
    draw_energies,
    draw_gaps,
    draw_households,
    random_generator,
)
from agedp_data.datasets.validation import SLOTS, Flags, Ints

_MEAN_KWH: Final = 10.0
_HOUSEHOLDS_SEED: Final = 1
_COLDEST: Final = (1, 20)
"""Month and day."""


def draw_month(
    first: date, *, days: int, households: int, layout: Layout, max_half_hour_wh: int
) -> Iterator[tuple[slice, Ints, Flags]]:
    """Yield the readings of synthetic households in one month, batch by batch.

    Readings follow the rules of a layout: half-hours that a day does not have, when the clock goes forward, and
    readings above the bound are missing; an hourly layout has the sums of two half-hours.

    Args:
        first: first day of the month.
        days: number of days, from the first on.
        households: number n of households.
        layout: the layout of the files that the households stand for.
        max_half_hour_wh: a reading above this, per half-hour, is missing [Wh].

    Returns:
        The numbers of a batch's households (b), their energies [Wh], 0 for a missing reading, and which readings are
        present; both have shape (b, days, readings of a day).
    """
    month, length = 12 * first.year + first.month, monthrange(first.year, first.month)[1]
    profiles = draw_households(-(-households // BATCH) * BATCH, mean_kwh=_MEAN_KWH, seed=_HOUSEHOLDS_SEED)
    factors = day_factors(first, length, seed=month, coldest=date(first.year, *_COLDEST))
    slots, factors = [*range(SLOTS)] * days, np.repeat(factors, SLOTS)
    step, exists = slot_step(layout.interval_minutes), _existing_slots(first, days, layout)
    for indices, half_hours in draw_energies(profiles, slots=slots, factors=factors[: days * SLOTS], seed=month):
        generator = random_generator(month, "defects", indices.start // BATCH)
        gaps = draw_gaps(BATCH, length * SLOTS, generator=generator)[:, : days * SLOTS]
        present = ~gaps.reshape(BATCH, days, SLOTS)[..., ::step] & exists[:, ::step]
        energy = half_hours.reshape(BATCH, days, SLOTS // step, step).sum(axis=-1)
        present &= energy <= max_half_hour_wh * step
        number = min(BATCH, households - indices.start)
        yield slice(indices.start, indices.start + number), np.where(present, energy, 0)[:number], present[:number]


def _existing_slots(first: date, days: int, layout: Layout) -> Flags:
    """Return which half-hours the days have, shape (days, 48)."""
    exists = np.ones((days, SLOTS), bool)
    for i in range(days):
        exists[i, list(layout.absent_slots(first + timedelta(days=i)))] = False
    return exists
