"""Synthetic households: half-hourly use drawn from KNOWN 12-state Markov chains.

    energy = size_h x shape(slot) x factor(day) x levels[kind, state],      state ~ kernels[kind]

The chains are a value (`HouseholdChains`): `SAMPLE_CHAINS` unless the caller passes different ones. The state is the
household's activity and its only memory. Size, time of day and the factor of the day (weather, season, weekend: the
same for all households) hide the chain as in real data. A plain chain omits shape and factor: then the readings
themselves follow the kernel.

numpy's generators are good enough here, and only here: synthetic data are not a release. The random streams are
numbered, so that the energies of a seed do not depend on the defects that are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from agedp_data.datasets.validation import SLOTS, Flags, Ints

Floats = np.ndarray[Any, np.dtype[np.float64]]

STATES = 12
BATCH = 128
MAX_WH = 8_000
STEADY, BUSY, RESTLESS, MOSTLY_ZERO = range(4)
_SHARES = (0.4, 0.3, 0.27, 0.03)
_STREAMS = {"factor": 0, "households": 1, "states": 2, "defects": 3, "controlled load": 4, "generation": 5}


def random_generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """Return the random generator of one purpose and batch.

    The generators of one seed are independent, so a batch does not depend on the batches before it.

    Args:
        seed: seed of the delivery.
        purpose: "factor", "households", "states", "defects", "controlled load" or "generation".
        number: number of the batch.
    """
    return np.random.default_rng([seed, _STREAMS[purpose], number])


def kernel(*, reach: float, lean: float, stay: float) -> Floats:
    """Return a (12, 12) row-stochastic matrix [-]: stay, or move about `reach` states, rather down than up.

    P = stay I + (1 - stay) M, M(x, y) proportional to exp(-|x - y| / reach - lean y).

    >>> kernel(reach=1.0, lean=0.0, stay=1.0)[3, 3]
    np.float64(1.0)
    """
    state = np.arange(STATES)
    move = np.exp(-np.abs(state[:, None] - state) / reach - lean * state)
    matrix: Floats = stay * np.eye(STATES) + (1 - stay) * move / move.sum(axis=1, keepdims=True)
    return matrix


def stationary(matrix: Floats) -> Floats:
    """Return the (12,) stationary distribution pi with pi P = pi [-]."""
    system = np.vstack([matrix.T - np.eye(len(matrix)), np.ones(len(matrix))])
    target = np.append(np.zeros(len(matrix)), 1.0)
    distribution: Floats = np.linalg.lstsq(system, target, rcond=None)[0]
    return distribution


KERNELS = np.stack(
    [
        kernel(reach=1.5, lean=0.25, stay=0.6),
        kernel(reach=3.0, lean=0.10, stay=0.3),
        kernel(reach=6.0, lean=0.20, stay=0.1),
        kernel(reach=1.0, lean=1.00, stay=0.9),
    ]
)
"""The chains (4, 12, 12) [-]: steady, busy, restless, mostly zero; every entry is positive."""

STATIONARY = np.stack([stationary(matrix) for matrix in KERNELS])
"""The stationary distribution of each chain (4, 12) [-]; a household starts in it."""


def _relative_levels() -> Floats:
    """Return (4, 12) energies relative to the household's mean [-]; the stationary mean of each row is 1."""
    rising = 0.3 + 0.25 * np.arange(STATES) ** 1.4
    levels = np.tile(rising, (len(KERNELS), 1))
    levels[MOSTLY_ZERO, 0] = 0.0
    relative: Floats = levels / (levels * STATIONARY).sum(axis=1, keepdims=True)
    return relative


LEVELS = _relative_levels()


@dataclass(frozen=True, slots=True, eq=False)
class HouseholdChains:
    """The kinds (c) of 12-state chains of households.

    `kernels` (c, 12, 12) are row-stochastic [-]; `stationary` (c, 12) are their stationary distributions [-], in which
    a household starts; `levels` (c, 12) are the energies of the states relative to the household's mean [-].
    """

    kernels: Floats
    stationary: Floats
    levels: Floats


SAMPLE_CHAINS = HouseholdChains(KERNELS, STATIONARY, LEVELS)
"""The chains of `agedp sample`, of the audit and of the tests."""


@dataclass(frozen=True, slots=True, eq=False)
class Households:
    """Households (n): the kind (index of the kernel), the mean of a day [kWh], and the chains."""

    kind: Ints
    mean_kwh: Floats
    chains: HouseholdChains = SAMPLE_CHAINS


def draw_households(households: int, *, mean_kwh: float, seed: int) -> Households:
    """Return households of different sizes around a mean daily use.

    About 3 % of them, and always the fourth, are mostly zero.

    Args:
        households: number n of households.
        mean_kwh: mean daily use per household [kWh].
        seed: the same seed gives the same households.
    """
    generator = random_generator(seed, "households")
    draws = generator.random((households, 2))
    kind = np.searchsorted(np.cumsum(_SHARES), draws[:, 0]).clip(max=MOSTLY_ZERO)
    kind[3:4] = MOSTLY_ZERO
    # bounded below: no household is so small that two of its levels round to the same watt-hour
    size = np.where(draws[:, 1] < 0.3, 0.35 + 1.5 * draws[:, 1], 0.8 + (draws[:, 1] - 0.3) * 1.2)
    return Households(kind.astype(np.int64), mean_kwh * size * np.where(kind == MOSTLY_ZERO, 0.25, 1.0) / 1.005)


def draw_states(
    kind: Ints, *, steps: int, generator: np.random.Generator, chains: HouseholdChains = SAMPLE_CHAINS
) -> Ints:
    """Return states of households: the first from the stationary distribution, each later one from a row of P.

    Args:
        kind: index of each household's chain, shape (n,).
        steps: number of half-hours.
        generator: source of the draws.
        chains: the chains that `kind` refers to.

    Returns:
        States, shape (n, steps), 0 to 11.
    """
    later, first = np.cumsum(chains.kernels, axis=2)[kind], np.cumsum(chains.stationary, axis=1)[kind]
    households = np.arange(len(kind))
    states = np.empty((steps, len(kind)), np.int64)
    edge = first
    for step in range(steps):
        # a cumulative sum that ends just below 1 must not lead to a thirteenth state
        states[step] = (generator.random(len(kind))[:, None] >= edge[:, :-1]).sum(axis=1)
        edge = later[households, states[step]]
    return states.T


def day_factors(first_day: date, days: int, *, seed: int, coldest: date) -> Floats:
    """Return (days,) factors around 1 that all households share [-].

    Season (8 %, highest on the day of the year of `coldest`), weekend (8 %), and weather as two AR(1) series
    of 5 % each, one that decays within days and one that varies over weeks.
    """
    generator = random_generator(seed, "factor")
    dates = [first_day + timedelta(days=i) for i in range(days)]
    since = np.array([(day - coldest).days for day in dates])
    weekend = np.array([day.weekday() >= 5 for day in dates])
    weather = np.zeros(days)
    for memory in (0.5, 0.95):
        level = generator.standard_normal()
        for i, shock in enumerate(generator.standard_normal(days)):
            level = memory * level + np.sqrt(1 - memory**2) * shock
            weather[i] += 0.05 * level
    factors: Floats = 1 + 0.08 * np.cos(2 * np.pi * since / 365.25) + 0.08 * (weekend - 2 / 7) + weather
    return factors


def day_shape() -> Floats:
    """Return (48,) shares of the day around 1 [-]: base load at night, small morning, high evening peak."""
    hour = (np.arange(SLOTS) + 0.5) / 2
    bumps = 0.5 * np.exp(-(((hour - 7.5) / 1.6) ** 2)) + 1.2 * np.exp(-(((hour - 18.8) / 2.6) ** 2))
    shape = 0.55 + 0.35 * (hour > 7) * (hour < 23) + bumps
    shares: Floats = shape / shape.mean()
    return shares


def draw_energies(
    profiles: Households, *, slots: Sequence[int], factors: Floats | None, seed: int
) -> Iterator[tuple[slice, Ints]]:
    """Yield, per batch of households, their indices and (batch, steps) whole watt-hours.

    `slots` (steps) is the half-hour of the day of each step, `factors` (steps) the shared factor. Without `factors`
    the chain is plain: neither shape nor factor.
    """
    scale = np.ones(len(slots)) if factors is None else factors * day_shape()[np.asarray(slots)]
    for number, start in enumerate(range(0, len(profiles.kind), BATCH)):
        indices = slice(start, min(start + BATCH, len(profiles.kind)))
        kind = profiles.kind[indices]
        generator = random_generator(seed, "states", number)
        states = draw_states(kind, steps=len(slots), generator=generator, chains=profiles.chains)
        mean_wh = profiles.mean_kwh[indices, None] * 1000 / SLOTS
        use = np.rint(mean_wh * profiles.chains.levels[kind[:, None], states] * scale)
        yield indices, use.clip(max=MAX_WH).astype(np.int64)


def draw_gaps(households: int, steps: int, *, generator: np.random.Generator) -> Flags:
    """Return missing readings: about two gaps per household-year, each up to two days long.

    Returns:
        Flags, shape (n, steps), True for a missing reading.
    """
    missing = np.zeros((households, steps), bool)
    for household in range(households):
        for _ in range(generator.poisson(2.1 * steps / (365 * SLOTS))):
            start, length = generator.integers(steps), min(int(generator.pareto(0.8)) + 1, 2 * SLOTS)
            missing[household, start : start + length] = True
    return missing
