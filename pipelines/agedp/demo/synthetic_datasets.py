r"""The two datasets of the demonstration: sizes, periods and households, drawn from one seed.

The days that the model is estimated from lie before the days that are released. Ausgrid's lie between two clock
changes, so that every day has 48 half-hours.

Households are reflecting random walks on twelve levels: reversible chains whose powers have a closed form. In each
half-hour a household's use moves by one level with probability `by_one` to either side, by two levels with probability
`by_two` to either side, and stays otherwise; the walk is reflected at both ends. The transition matrix is symmetric, so
the chain is reversible and its stationary distribution is uniform. Its eigenvectors are the cosines of the discrete
cosine transform (type II), with theta_j = pi j / 12:

.. math:: \lambda_j = 1 - 2 a (1 - \cos\theta_j) - 2 b (1 - \cos 2\theta_j), \quad
    P^t(x, y) = \frac{1}{12} + \frac{1}{6} \sum_{j=1}^{11} \lambda_j^t
    \cos(\theta_j (x + \tfrac12)) \cos(\theta_j (y + \tfrac12))

Decisions. Moves by two levels keep estimated chains from being reversible by accident: counts of a walk that moves by
one level only are (up to one) symmetric for every draw. The three walks mix at different speeds; all states are
visited equally often, so that a few months of readings count every transition reliably.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from agedp_data.datasets.synthetic import DeliveryAccount, write_ausgrid, write_london
from agedp_data.datasets.synthetic.households import STATES, Floats, HouseholdChains, Households
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

    Steps are even, so that the energies (an odd number of half steps) are whole watt-hours and nothing is rounded. The
    largest possible day is below the clamp.
    """

    name: str
    title: str
    write: Callable[..., DeliveryAccount]
    first_day: date
    clamp_kwh: int
    steps_wh: tuple[int, ...]


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
    periods = DateRange(first, released - timedelta(days=1)), DateRange(released, last)
    return DemonstrationDataset(dataset, seed, *periods, profiles, steps, size.min_visits)


@dataclass(frozen=True, slots=True)
class Walk:
    """A kind of chain: a random walk on twelve levels.

    Attributes:
        name: the name of the kind.
        by_one: probability per half-hour of a move by one level, to either side [-].
        by_two: probability per half-hour of a move by two levels, to either side [-].
    """

    name: str
    by_one: float
    by_two: float


WALKS = (Walk("slow", 0.17, 0.06), Walk("medium", 0.22, 0.08), Walk("fast", 0.25, 0.12))
"""The kinds of chain that synthetic households follow, the slowest first."""


def walk_matrix(walk: Walk) -> Floats:
    """Return the transition matrix (12, 12) [-] of a walk, reflected half a level beyond both ends.

    >>> walk_matrix(Walk("", 0.25, 0.0))[0, :3].tolist()
    [0.75, 0.25, 0.0]
    """
    probability = {0: 1 - 2 * walk.by_one - 2 * walk.by_two, 1: walk.by_one, 2: walk.by_two}
    level = np.arange(STATES)
    start, end = level[:, None], level[None, :]
    images = (end - start, -1 - end - start, 2 * STATES - 1 - end - start)
    matrix = np.zeros((STATES, STATES))
    for moved in images:
        for distance, share in probability.items():
            matrix += share * (np.abs(moved) == distance)
    return matrix


def walk_eigenvalues(walk: Walk) -> Floats:
    """Return the eigenvalues (12,) [-] in closed form: of the constant, then of each cosine.

    >>> walk_eigenvalues(Walk("", 0.25, 0.0))[[0, 6]].round(12).tolist()
    [1.0, 0.5]
    """
    angle = np.pi * np.arange(STATES) / STATES
    values: Floats = 1 - 2 * walk.by_one * (1 - np.cos(angle)) - 2 * walk.by_two * (1 - np.cos(2 * angle))
    return values


def relative_energies() -> Ints:
    """Return the energy of each state as a multiple of half a step: 1, 3, ..., 23.

    Equal steps, the lowest half a step above 0: so `equal-width` edges of a household that was seen in its highest
    state have each state's energy between them (edge i lies at i x 23/24 steps).
    """
    return 2 * np.arange(STATES) + 1


def demonstration_chains() -> HouseholdChains:
    """Return the walks as chains of synthetic households, with energies relative to the household's mean [-]."""
    kernels = np.stack([walk_matrix(walk) for walk in WALKS])
    uniform = np.full((len(WALKS), STATES), 1 / STATES)
    return HouseholdChains(kernels, uniform, np.tile(relative_energies() / STATES, (len(WALKS), 1)))
