"""The two datasets of the demonstration: sizes, periods and households, drawn from one seed.

The days that the model is estimated from lie before the days that are released. Ausgrid's lie between two clock
changes, so that every day has 48 half-hours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from agedp.demo.walks import WALKS, demonstration_chains
from agedp_data.datasets.synthetic import DeliveryAccount, write_ausgrid, write_london
from agedp_data.datasets.synthetic.households import STATES, Households
from agedp_data.datasets.validation import Ints

_SLOTS = 48


@dataclass(frozen=True, slots=True)
class Size:
    """How much is drawn: households of each dataset, days before the released ones, released days, seed.

    `min_visits` is that of the run files: few days need a smaller one.
    """

    households: int = 480
    calibration_days: int = 112
    released_days: int = 56
    seed: int = 7
    min_visits: int = 30


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset: its writer, first day, public clamp [kWh], and the steps between levels that households have [Wh].

    Steps are even, so that the energies (an odd number of half steps) are whole watt-hours and nothing is rounded.
    """

    name: str
    title: str
    write: Callable[..., DeliveryAccount]
    first_day: date
    clamp_kwh: int
    steps_wh: tuple[int, ...]

    @property
    def largest_day_kwh(self) -> float:
        """Return what a household uses that spends a day in its highest state [kWh]; below the clamp."""
        return _SLOTS * (STATES - 0.5) * max(self.steps_wh) / 1000


DATASETS = (
    Dataset("london", "London", write_london, date(2012, 10, 1), 18, tuple(range(22, 33, 2))),
    Dataset("ausgrid", "Ausgrid", write_ausgrid, date(2012, 10, 8), 29, tuple(range(36, 53, 2))),
)


@dataclass(frozen=True, slots=True)
class DateRange:
    """First and last day, both included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class DemonstrationDataset:
    """One dataset at one size.

    Attributes:
        dataset: the publisher's format.
        seed: seed of the draw.
        calibration: days from which the model is estimated.
        released: days that are released.
        profiles: the chain and the mean energy of each household.
        step_wh: step between levels of each household, shape (n,) [Wh].
        min_visits: key `min_visits` of the model.
    """

    dataset: Dataset
    seed: int
    calibration: DateRange
    released: DateRange
    profiles: Households
    step_wh: Ints
    min_visits: int

    @property
    def households(self) -> int:
        """Return the number of households."""
        return len(self.step_wh)


def draw_dataset(dataset: Dataset, size: Size) -> DemonstrationDataset:
    """Return the households and periods of a dataset: the kinds of chain in turn, the steps at random.

    The same size gives the same households: the seed follows from the size and the dataset.
    """
    count, seed = size.households, size.seed + DATASETS.index(dataset)
    steps = np.random.default_rng(seed).choice(dataset.steps_wh, count).astype(np.int64)
    mean_kwh = steps * STATES / 2 * _SLOTS / 1000
    first = dataset.first_day
    released = first + timedelta(days=size.calibration_days)
    last = released + timedelta(days=size.released_days - 1)
    profiles = Households(np.arange(count) % len(WALKS), mean_kwh, demonstration_chains())
    return DemonstrationDataset(
        dataset,
        seed,
        DateRange(first, released - timedelta(days=1)),
        DateRange(released, last),
        profiles,
        steps,
        size.min_visits,
    )
