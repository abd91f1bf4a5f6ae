"""The check of a cyclic chain: would a household that IS this chain have been remembered over days as long as this one?

As `markov_check`, given the half-hour: for each half-hour of the day, how far what is seen whole days later lies apart
for its two halves (cut at the household's own median there), the largest over the day; against the same in series
drawn from the household's own cyclic chain with the same readings missing. The chain's own figure is the mean of those
drawn, so the noise of such a count is in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agedp_data.chains.cyclic import count_cyclic_transitions, merge_phases
from agedp_data.chains.direct import Ints, checked_lags, checked_states, rows_of
from agedp_data.chains.markov_check import Table, allowed_above, beyond, table_of
from agedp_data.chains.redrawn import Small, one_of, pairs_counted, random_numbers, smallest
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

_LEAST = 20
_SHIFTS = 8


def cyclic_goodness_of_fit(
    states: Ints,
    lags_days: Ints,
    rng: np.random.Generator,
    *,
    n_phases: int,
    min_visits: int,
    level: float = 0.95,
    replicates: int = 99,
) -> Table:
    """Return, for each household and lag, what the cyclic chain says and what is counted, and whether they disagree.

    Shapes: (h, days * n_phases) int, beginning with a day, (T,) int -> a record array (h, T) with the fields of
    `check_markov`; low and high are NaN. A row with fewer than 20 visits is left out. Units: [days].

    Args:
        states: one state per step, -1 if missing.
        lags_days: whole days.
        rng: the source of randomness.
        n_phases: steps of a day.
        min_visits: phases with a rarer state are merged with their neighbours (`cyclic.merged_phases`).
        level: share of households of this very chain that pass at all lags together.
        replicates: series drawn for each household.

    Raises:
        ChainError: states or lags that are none, no whole days, or too few replicates for the level.
    """
    n_states = int(np.max(states, initial=0)) + 1
    series, lags = checked_states(states, n_states), checked_lags(lags_days)
    if series.ndim != 2 or series.shape[1] % n_phases:
        raise ChainError(f"a cyclic chain is checked on whole days of {n_phases} steps, got shape {series.shape}")
    allowed = allowed_above(level, replicates)
    small = np.where(series >= 0, series, n_states).astype(smallest(n_states))
    drawn = _redrawn(small, n_states, n_phases, replicates, min_visits, rng)
    cut = _cuts(small, n_states, n_phases)
    own, alike = _halves(small, cut, n_states), _halves(drawn, cut[:, None], n_states)
    shifts = rng.integers(own.shape[-1] // 4, max(1, own.shape[-1] * 3 // 4 + 1), _SHIFTS)
    direct = np.stack([_apart(own, own, lag) for lag in lags.tolist()], axis=-1)
    like = np.stack([_apart(alike, alike, lag) for lag in lags.tolist()], axis=-1)
    floor = np.stack(
        [
            np.mean([_apart(own, np.roll(own, by, axis=-1), lag) for by in shifts.tolist()], axis=0)
            for lag in lags.tolist()
        ],
        axis=-1,
    )
    known = ~np.isnan(like)
    powers = np.where(known, like, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    powers = np.where(known.any(axis=1) & ~np.isnan(direct), powers, np.nan)
    nothing = np.full_like(direct, np.nan)
    found = {"powers": powers, "direct": direct, "low": nothing, "high": nothing, "floor": floor}
    return table_of(lags, found, beyond(direct, like, allowed) & ~np.isnan(powers), direct.shape)


def _redrawn(series: Small, k: int, phases: int, replicates: int, min_visits: int, rng: np.random.Generator) -> Small:
    """Return series drawn from the cyclic chains, missing where the households are: (h, m) -> (h, replicates, m).

    From a state that was never left at its phase the household's own states of the next phase go on.
    """
    size, length = series.shape
    found = [_followers(one, k, phases, min_visits) for one in series]
    rows, group = (np.stack([each[i] for each in found]) for i in range(2))  # (h, phases (k + 1), k), (h, phases)
    values = np.repeat(np.tile(np.arange(k), rows[..., 0].size), rows.ravel())
    number = rows.sum(axis=-1).ravel()
    start, each = number.cumsum() - number, rows.shape[1]
    lane = np.repeat(np.arange(size), replicates)
    paths = np.empty((length, lane.size), dtype=smallest(k))
    now = np.full(lane.size, k)
    for i in range(length):
        own = lane * each + phases * k + i % phases
        row = np.where(now < k, lane * each + group[lane, (i - 1) % phases] * k + now, own)
        row = np.where(number[row] > 0, row, own)
        now = np.where(number[row] > 0, one_of(values, start[row], number[row], random_numbers(rng, lane.size)), k)
        paths[i] = now
    drawn = np.ascontiguousarray(paths.T).reshape(size, replicates, length)
    drawn[np.broadcast_to((series >= k)[:, None], drawn.shape)] = k
    return drawn


def _followers(one: Small, k: int, phases: int, min_visits: int) -> tuple[Ints, Ints]:
    """Return how often each state follows, k rows for each group of phases, then one of each phase; and the groups."""
    state, phase = np.where(one < k, one.astype(np.int64), -1), np.arange(one.size) % phases
    counts = count_cyclic_transitions(state, phase, np.ones(max(one.size - 1, 0), dtype=np.bool_), k, n_phases=phases)
    group, _ = merge_phases(counts, min_visits=min_visits)
    pooled, visits = np.zeros_like(counts), np.zeros((phases, k), dtype=np.int64)
    np.add.at(pooled, group, counts)
    np.add.at(visits, (phase[state >= 0], state[state >= 0]), 1)
    return np.concatenate([pooled.reshape(-1, k), visits]), group


def _cuts(series: Small, k: int, phases: int) -> Ints:
    """Return for each phase the largest state of the lower half, by its own visits: (h, m) -> (h, phases)."""
    by_phase = series.reshape(len(series), -1, phases).astype(np.int64)
    ascending = np.sort(by_phase, axis=1)  # missing last
    known = (by_phase < k).sum(axis=1, keepdims=True)
    middle = np.take_along_axis(ascending, np.maximum(known - 1, 0) // 2, axis=1)[:, 0]
    top = np.take_along_axis(ascending, np.maximum(known - 1, 0), axis=1)[:, 0]
    return np.where(middle == top, top - 1, middle)


def _halves(series: Small, cut: Ints, k: int) -> Small:
    """Return the half of each state, 2 where missing: (..., m), (..., phases) -> (..., phases, days)."""
    by_phase = series.reshape(*series.shape[:-1], -1, cut.shape[-1])
    half = np.where(by_phase >= k, 2, by_phase > cut[..., None, :]).astype(np.uint8)
    return np.ascontiguousarray(half.swapaxes(-1, -2))


def _apart(now: NDArray[np.unsignedinteger[Any]], then: NDArray[np.unsignedinteger[Any]], lag: int) -> Floats:
    """Return the largest total variation over phases, NaN where no phase can be compared: (..., p, days) -> (...)."""
    counts = pairs_counted(now, then, lag, 2)
    rows = rows_of(counts)
    compared = (counts.sum(axis=-1) >= _LEAST).all(axis=-1)
    apart = np.where(compared, np.abs(rows[..., 0, 0] - rows[..., 1, 0]), -1.0).max(axis=-1)
    return np.where(apart >= 0, apart, np.nan)
