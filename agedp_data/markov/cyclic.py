"""Cyclic chains: one kernel per half-hour of the day, because household load is not stationary over the day.

Example: at night nothing changes (P = I), by day everything does (P uniform). One homogenised kernel gives a loss of
.62 where the truth is 1 (erratum of [A] eq. 12); the cyclic chain gives 1.

Decisions:

* Phase p is the half-hour of a state; counts[p] are transitions from phase p to phase p + 1. The kernel between two
  instants is the product of the one-step kernels between them; a bound is the maximum over the phase.
* Phases in which a state has too few visits are merged with their neighbours, never smoothed.
* A state without a row at its phase is left out there, and what leads only to it, as in `recurrent_part`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats, Mask, checked_kernel, checked_steps
from agedp_data.errors import ChainError
from agedp_data.markov import memory_check
from agedp_data.markov.confidence import propagate_radii, weissman_radii
from agedp_data.markov.transitions import Ints, checked_lags, checked_states, normalise_rows, transition_matrix


def count_cyclic_transitions(
    states: ArrayLike, phases: ArrayLike, contiguous: ArrayLike, n_states: int, *, n_phases: int = 48
) -> Ints:
    r"""Count how often each state follows each other state, by the phase of the earlier one.

    As `count_transitions`; a step that does not lead to the next phase (a clock change) is a gap.

    .. math:: N_p(x, y) = \#\{i : \phi_i = p,\ x_i = x,\ x_{i+1} = y\}

    Source: counts of the maximum-likelihood estimate of transition probabilities that depend on time (Anderson and
    Goodman), here on the time of day.

    Args:
        states: shape (m,) int, negative if missing.
        phases: shape (m,) int, 0..n_phases - 1.
        contiguous: shape (m-1,) bool; whether reading i + 1 is one step after reading i.
        n_states: number of states k.
        n_phases: phases p of a day.

    Returns:
        Shape (p, k, k) int64, row: from, column: to [transitions].

    Raises:
        ChainError: lengths that do not fit, or a state or phase out of range.

    References:
        Anderson, Goodman: Statistical Inference about Markov Chains. Ann. Math. Statist. 28(1), 1957.
        https://doi.org/10.1214/aoms/1177707039

    >>> count_cyclic_transitions([0, 1, 1, 0], [0, 1, 0, 1], [True, True, True], 2, n_phases=2).tolist()
    [[[0, 1], [1, 0]], [[0, 0], [0, 1]]]
    """
    state, phase, follows = (np.asarray(array) for array in (states, phases, contiguous))
    state, phase, follows = state.astype(np.int64), phase.astype(np.int64), follows.astype(np.bool_)
    if state.ndim != 1 or phase.shape != state.shape or follows.shape != (max(state.size - 1, 0),):
        raise ChainError("a series has a state and a phase for each instant, and a step between each two")
    if (state >= n_states).any() or (phase < 0).any() or (phase >= n_phases).any():
        raise ChainError(f"there are {n_states} states and {n_phases} phases, got a higher one")
    before, after = state[:-1], state[1:]
    is_counted = follows & (before >= 0) & (after >= 0) & (phase[1:] == (phase[:-1] + 1) % n_phases)
    cell = (phase[:-1][is_counted] * n_states + before[is_counted]) * n_states + after[is_counted]
    return np.bincount(cell, minlength=n_phases * n_states**2).reshape(n_phases, n_states, n_states).astype(np.int64)


def merge_phases(counts: ArrayLike, *, min_visits: int) -> tuple[Ints, bool]:
    """Merge phases whose states have too few visits, and return whether every state then has enough of them.

    The group with the rarest state is merged with the neighbour on the clock whose own rarest state is rarer, until all
    groups have `min_visits` transitions into and out of each of their states, or one group remains: a time-homogeneous
    chain. A single state all day counts as too few: the mixing of another state is unknown.

    Source: a rule of this package; [A] has no chain that depends on the time of day (docs/papers.md).

    Args:
        counts: transitions by phase, shape (p, k, k) [transitions].
        min_visits: required transitions into and out of each state [transitions].

    Returns:
        The group of each phase, shape (p,) int; whether every state has enough visits.

    Raises:
        ChainError: counts of another shape, or negative.

    >>> by_phase = [[[9, 9], [9, 9]], [[1, 1], [1, 1]], [[9, 9], [9, 9]], [[8, 8], [8, 8]]]
    >>> merge_phases(by_phase, min_visits=10)
    (array([0, 1, 1, 2]), True)
    """
    number = np.asarray(counts, dtype=np.int64)
    if number.ndim != 3 or number.shape[1] != number.shape[2] or not number.shape[0] or (number < 0).any():
        raise ChainError(f"a cyclic chain has a square table of counts for each phase, got shape {number.shape}")
    # Groups in the order of the clock, each with its first phase; the last is followed by the first.
    tables, starts = list(number), list(range(len(number)))
    rarest = [_rarest(table) for table in tables]
    while len(tables) > 1 and min(rarest) < min_visits:
        worst = int(np.argmin(rarest))
        after, before = (worst + 1) % len(tables), worst - 1
        first = worst if rarest[after] <= rarest[before] else before % len(tables)
        second = (first + 1) % len(tables)
        tables[first] = tables[first] + tables[second]
        rarest[first] = _rarest(tables[first])
        del tables[second], starts[second], rarest[second]
    group = np.searchsorted(starts, np.arange(len(number)), side="right") - 1
    has_states = (number.sum(axis=(0, 1)) + number.sum(axis=(0, 2)) > 0).sum() > 1
    return group % len(starts), bool(min(rarest) >= min_visits and has_states)


def cyclic_kernels(counts: ArrayLike, groups: ArrayLike, *, direction: str) -> Floats:
    r"""One-step kernels by the phase of their ROW: to the state before ("backward") or after ("forward").

    .. math:: \hat P_p(x, y) = \frac{N_{p-1}(y, x)}{\sum_z N_{p-1}(z, x)}, \qquad
        P_p(x, y) = \frac{N_p(x, y)}{\sum_z N_p(x, z)}

    Source: [A] eq. 1 for a cyclic chain, estimated from the reversed counts.

    Args:
        counts: transitions by phase, shape (..., p, k, k) [transitions].
        groups: group of each phase (`merge_phases`), shape (..., p) int.
        direction: "backward" or "forward".

    Returns:
        Shape (..., p, k, k), rows sum to 1; NaN for states that are left out [-].

    Raises:
        ChainError: an unknown direction, or a household without any state that can be followed for ever.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> counts = [[[3, 1], [0, 4]], [[2, 2], [2, 2]]]
    >>> cyclic_kernels(counts, [0, 1], direction="forward")[0].tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    >>> cyclic_kernels(counts, [0, 1], direction="backward")[1].tolist()  # columns (3, 0) and (1, 4) of phase 0
    [[1.0, 0.0], [0.2, 0.8]]
    """
    number = pool_counts(counts, groups)
    if direction == "backward":
        # Entering phase p is leaving phase p - 1.
        number = np.roll(np.swapaxes(number, -1, -2), 1, axis=-3)
    elif direction != "forward":
        raise ChainError(f'a direction is "backward" or "forward", got "{direction}"')
    return _recurrent_kernels(transition_matrix(number, smoothing=0), direction)


def pool_counts(counts: ArrayLike, groups: ArrayLike) -> Floats:
    r"""Counts of all phases of its group, for each phase.

    .. math:: N'_p(x, y) = \sum_{r :\, g_r = g_p} N_r(x, y)

    Source: elementary (sum of the counts of the phases that share a kernel).

    Args:
        counts: transitions by phase, shape (..., p, k, k) [transitions].
        groups: group of each phase, shape (..., p) int.

    Returns:
        Shape (..., p, k, k) [transitions].

    >>> pool_counts([[[1]], [[2]], [[4]]], [0, 0, 1]).ravel().tolist()
    [3.0, 3.0, 4.0]
    """
    number, group = np.asarray(counts, dtype=np.float64), np.asarray(groups)
    in_group = np.where(group[..., :, None] == group[..., None, :], 1.0, 0.0)
    return np.asarray((in_group @ number.reshape(*number.shape[:-2], -1)).reshape(number.shape))


def _rarest(table: Ints) -> int:
    """Return the visits of the rarest state seen, the smaller of in and out; 0 without any transition."""
    into, out = table.sum(axis=0), table.sum(axis=1)
    seen = (into > 0) | (out > 0)
    return int(np.minimum(into, out)[seen].min(initial=np.iinfo(np.int64).max)) if seen.any() else 0


def _recurrent_kernels(kernels: Floats, direction: str) -> Floats:
    """Return kernels whose rows lead only to states with rows, scaled to sum 1."""
    phase_step = 1 if direction == "backward" else -1
    has_row: Mask = np.asarray(~np.isnan(kernels).all(axis=-1))
    matrix = np.nan_to_num(kernels)
    while True:
        target_has_row = np.roll(has_row, phase_step, axis=-2)[..., None, :]
        total = (matrix * target_has_row).sum(axis=-1)
        remains = has_row & (total > 0)
        if (remains == has_row).all():
            break
        has_row = remains
    if not has_row.any(axis=-1).all():
        raise ChainError("a cyclic chain has a phase with no state that it can be followed from; it bounds nothing")
    scaled = matrix * target_has_row / np.where(total > 0, total, 1.0)[..., None]
    result = np.where(has_row[..., None], scaled, np.nan)
    checked_kernel(result.reshape(-1, *result.shape[-2:]))
    return result


# --------------------------------------------------------------------------------------------------
# Inference for cyclic chains: goodness of fit, and the sampling bound of Delta(t) of an estimated chain.
#
# Goodness of fit: does a household have longer memory over days than its cyclic chain explains? As
# `markov_goodness_of_fit`, conditional on the half-hour of the day: for each half-hour, the total variation between
# the states whole days earlier for its two halves (split at the household's own median there), maximum over the day.
# It is compared with the same in series simulated from the household's own cyclic chain with the same readings
# missing. The chain's prediction is the mean over the simulated series, so the sampling error of such counts is in
# both.
#
# Sampling bound: upper confidence bound of Delta(t) of chains that are themselves estimates. The recursion is that of
# `propagate_radii` with one row per phase. Two things differ:
#
# * The phases that share a kernel were chosen by looking at the counts, so radii hold for every group of adjacent
#   phases that could have been chosen, p (p - 1) + 1 of them.
# * U_t is computed over two days only; larger ages follow from U_t <= U_a U_(t-a), which is all that the recursion
#   yields once the sampling errors are included.
#
# Decisions:
#
# * A household with a state that has no row at a phase to which its kernels lead (a neighbour that shares the kernel
#   had visits, this phase never) keeps the bound at 1: its mixing there is unknown.
# --------------------------------------------------------------------------------------------------

_MIN_VISITS = 20
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
) -> memory_check.Table:
    r"""Goodness-of-fit test of a cyclic chain against lagged counts, for each household and lag in whole days.

    Only memory LONGER than the chain's counts against it. A row with fewer than 20 visits is left out.

    .. math:: T = \max_t \frac{\hat\Delta(t) - \bar\Delta(t)}{s_t}

    with mean and standard deviation over the household and its replicates.

    Source: parametric bootstrap test, Davison and Hinkley section 4.2.

    Args:
        states: one state per step, shape (h, days * n_phases) int, beginning with a day, -1 if missing.
        lags_days: shape (T,) [days].
        rng: source of randomness.
        n_phases: steps of a day.
        min_visits: phases with a rarer state are merged with their neighbours (`merge_phases`).
        level: share of cyclic chains that pass at all lags together.
        replicates: simulated series per household.

    Returns:
        A record array (h, T) with the fields of `markov_goodness_of_fit`; lag in days; low and high are NaN.

    Raises:
        ChainError: states or lags of a wrong kind, no whole days, or too few replicates for the level.

    References:
        Davison, Hinkley: Bootstrap Methods and their Application, 1997. https://doi.org/10.1017/CBO9780511802843

    >>> weekend = (np.arange(364) % 7 >= 5).astype(int)[None]  # one reading a day: repeats itself every 7 days
    >>> table = cyclic_goodness_of_fit(weekend, np.array([7]), np.random.default_rng(1), n_phases=1, min_visits=1)
    >>> table.direct.tolist(), table.rejected.tolist()
    ([[1.0]], [[True]])
    """
    n_states = int(np.max(states, initial=0)) + 1
    series, lags = checked_states(states, n_states), checked_lags(lags_days)
    if series.ndim != 2 or series.shape[1] % n_phases:
        raise ChainError(f"a cyclic chain is checked on whole days of {n_phases} steps, got shape {series.shape}")
    exceedances = memory_check.max_exceedances(level, replicates)
    small_states = np.where(series >= 0, series, n_states).astype(memory_check.smallest_state_type(n_states))
    replicate_series = _simulate_cyclic(small_states, n_states, n_phases, replicates, min_visits, rng)
    median_states = _median_states(small_states, n_states, n_phases)
    halves = _split_at_median(small_states, median_states, n_states)
    replicate_halves = _split_at_median(replicate_series, median_states[:, None], n_states)
    shifts = rng.integers(halves.shape[-1] // 4, max(1, halves.shape[-1] * 3 // 4 + 1), _SHIFTS)
    shifted = [np.roll(halves, shift, axis=-1) for shift in shifts.tolist()]
    direct, replicate_distances = (_variations(part, part, lags) for part in (halves, replicate_halves))
    floors = [np.mean([_max_variation(halves, copy, lag) for copy in shifted], axis=0) for lag in lags.tolist()]
    is_counted = ~np.isnan(replicate_distances)
    powers = np.where(is_counted, replicate_distances, 0.0).sum(axis=1) / np.maximum(is_counted.sum(axis=1), 1)
    powers = np.where(is_counted.any(axis=1) & ~np.isnan(direct), powers, np.nan)
    missing = np.full_like(direct, np.nan)
    floor = np.stack(floors, axis=-1)
    measures = {"powers": powers, "direct": direct, "low": missing, "high": missing, "floor": floor}
    rejected = memory_check.exceeds_replicates(direct, replicate_distances, exceedances) & ~np.isnan(powers)
    return memory_check.goodness_of_fit_table(lags, measures, rejected, direct.shape)


def _variations(later: memory_check.SmallInts, earlier: memory_check.SmallInts, lags: Ints) -> Floats:
    """Return `_max_variation` at each lag: (..., p, days) -> (..., T)."""
    return np.stack([_max_variation(later, earlier, lag) for lag in lags.tolist()], axis=-1)


def _simulate_cyclic(
    series: memory_check.SmallInts, k: int, phases: int, replicates: int, min_visits: int, rng: np.random.Generator
) -> memory_check.SmallInts:
    """Return series simulated from the cyclic chains, missing where the household is: (h, m) -> (h, replicates, m).

    From a state that was never left at its phase, the household's own states of the next phase continue the series.
    """
    size, length = series.shape
    counted = [_successor_counts(household_states, k, phases, min_visits) for household_states in series]
    table, groups = map(np.stack, zip(*counted, strict=True))  # (h, phases (k + 1), k), (h, phases)
    values = np.repeat(np.tile(np.arange(k), table[..., 0].size), table.ravel())
    row_size = table.sum(axis=-1).ravel()
    start, rows_per_household = row_size.cumsum() - row_size, table.shape[1]
    household = np.repeat(np.arange(size), replicates)  # of each path
    paths = np.empty((length, household.size), dtype=memory_check.smallest_state_type(k))
    current, first_row = np.full(household.size, k), household * rows_per_household
    for step in range(length):
        phase_row = first_row + phases * k + step % phases
        state_row = first_row + groups[household, (step - 1) % phases] * k + current
        row = np.where(current < k, state_row, phase_row)
        row = np.where(row_size[row] > 0, row, phase_row)
        picked = memory_check.pick_uniformly(
            values, start[row], row_size[row], memory_check.random_uint32(rng, household.size)
        )
        current = paths[step] = np.where(row_size[row] > 0, picked, k)
    simulated = np.ascontiguousarray(paths.T).reshape(size, replicates, length)
    simulated[np.broadcast_to((series >= k)[:, None], simulated.shape)] = k
    return simulated


def _successor_counts(
    household_states: memory_check.SmallInts, k: int, phases: int, min_visits: int
) -> tuple[Ints, Ints]:
    """Return successor counts, k rows per group of phases, then the visits of each phase; and the group of each."""
    state = np.where(household_states < k, household_states.astype(np.int64), -1)
    phase, follows = np.arange(state.size) % phases, np.ones(max(state.size - 1, 0), dtype=np.bool_)
    counts = count_cyclic_transitions(state, phase, follows, k, n_phases=phases)
    group, _ = merge_phases(counts, min_visits=min_visits)
    pooled, visits = np.zeros_like(counts), np.zeros((phases, k), dtype=np.int64)
    np.add.at(pooled, group, counts)
    np.add.at(visits, (phase[state >= 0], state[state >= 0]), 1)
    return np.concatenate([pooled.reshape(-1, k), visits]), group


def _median_states(series: memory_check.SmallInts, k: int, phases: int) -> Ints:
    """Return for each phase the largest state of the lower half of its visits: (h, m) -> (h, phases)."""
    by_phase = series.reshape(len(series), -1, phases).astype(np.int64)
    ascending = np.sort(by_phase, axis=1)  # missing last
    valid_count = (by_phase < k).sum(axis=1, keepdims=True)
    middle = np.take_along_axis(ascending, np.maximum(valid_count - 1, 0) // 2, axis=1)[:, 0]
    top = np.take_along_axis(ascending, np.maximum(valid_count - 1, 0), axis=1)[:, 0]
    return np.where(middle == top, top - 1, middle)


def _split_at_median(series: memory_check.SmallInts, cut: Ints, k: int) -> memory_check.SmallInts:
    """Return the half of each state, 2 where missing: (..., m), (..., phases) -> (..., phases, days)."""
    by_phase = series.reshape(*series.shape[:-1], -1, cut.shape[-1])
    half = np.where(by_phase >= k, 2, by_phase > cut[..., None, :]).astype(np.uint8)
    return np.ascontiguousarray(half.swapaxes(-1, -2))


def _max_variation(later: memory_check.SmallInts, earlier: memory_check.SmallInts, lag: int) -> Floats:
    """Return the largest total variation over phases, NaN where no phase can be compared: (..., p, days) -> (...)."""
    counts = memory_check.count_state_pairs(later, earlier, lag, 2)
    rows = normalise_rows(counts)
    is_compared = (counts.sum(axis=-1) >= _MIN_VISITS).all(axis=-1)
    distance = np.where(is_compared, np.abs(rows[..., 0, 0] - rows[..., 1, 0]), -1.0).max(axis=-1)
    return np.where(distance >= 0, distance, np.nan)


_DAYS = 2
_HOUSEHOLDS_PER_BATCH = 16


def cyclic_sampling_bound(
    counts: Mapping[int, ArrayLike],
    groups: Mapping[int, ArrayLike],
    steps: ArrayLike,
    *,
    level: float,
    households: int,
) -> Floats:
    r"""Upper confidence bound U_t of Delta(t), maximum over phases, of the true chains, for all households at once.

    Of several lags each gives a bound and the smallest is taken; the level is divided among them. A lag of L steps has
    p / L phases, which begin at multiples of L: any t steps contain (t + 1) // L - 1 of its steps.

    .. math:: U_t = \max_p U_{p, t}, \qquad e_x = \sqrt{(2 / N_x) \ln((2^k - 2)\, n k (p (p - 1) + 1) N / \beta)}

    with U_(p, t) as in `propagate_radii` and the other symbols as in `sampling_bound`.

    Source: Weissman radii, propagated; not in the papers, whose chains are treated as known.

    Args:
        counts: by lag L (1 for all readings), transitions by the phase that they leave of the series subsampled every L
            steps, shape (h, p / L, k, k) [transitions].
        groups: by lag, group of each phase (`merge_phases`), shape (h, p / L) int.
        steps: ages, shape (T,), integers >= 0 [steps].
        level: confidence, for example 0.95, in (0, 1).
        households: number n of households for which the bound holds at once.

    Returns:
        Shape (h, T), between 0 and 1 [-].

    Raises:
        ChainError: a level outside (0, 1), fewer than one household or lag, or shapes that do not fit.

    References:
        Weissman, Ordentlich, Seroussi, Verdu, Weinberger: Inequalities for the L1 Deviation of the Empirical
        Distribution. HP Labs HPL-2003-97, 2003. https://www.hpl.hp.com/techreports/2003/HPL-2003-97R1.pdf

    >>> tables = {1: np.full((1, 2, 2, 2), 5000)}  # independent readings: Delta is 0, known up to a radius of .0401
    >>> cyclic_sampling_bound(tables, {1: [[0, 0]]}, [1], level=0.95, households=1).round(4).tolist()
    [[0.0401]]
    """
    if not 0 < level < 1 or households < 1:
        raise ChainError(f"a sampling bound needs a level between 0 and 1 and a household, got {level}, {households}")
    ages = checked_steps(steps)
    if ages.ndim != 1:
        raise ChainError(f"steps are a list of whole numbers, got shape {ages.shape}")
    if not counts or min(counts) < 1 or set(counts) != set(groups):
        raise ChainError("transitions are counted at one or more lags of at least 1 step, each with its groups")
    failure_probability, bounds = (1 - level) / len(counts) / households, []
    for lag, table in counts.items():
        # whole steps of the lag that so many single steps contain, wherever they begin
        contained = ages if lag == 1 else np.maximum((ages + 1) // lag - 1, 0)
        bounds.append(_bound(np.asarray(table), np.asarray(groups[lag]), contained, failure_probability))
    return np.asarray(np.min(np.stack(bounds), axis=0))


def _bound(counts: Ints, groups: Ints, ages: Ints, failure_probability: float) -> Floats:
    if counts.ndim != 4 or counts.shape[2] != counts.shape[3] or groups.shape != counts.shape[:2]:
        raise ChainError("a cyclic chain has a square table of counts and a group for each phase")
    h, p = groups.shape
    result = np.ones((h, ages.size))
    horizon = min(int(ages.max(initial=0)), _DAYS * p)
    for start in range(0, h, _HOUSEHOLDS_PER_BATCH):
        households = slice(start, start + _HOUSEHOLDS_PER_BATCH)
        usable, kernels, radius = _reversed_rows(counts[households], groups[households], failure_probability)
        if usable.size:
            direct_bound = propagate_radii(kernels, radius, horizon)
            result[start + usable] = _extend_by_products(direct_bound, int(ages.max(initial=0)))[:, ages]
    return result


def _reversed_rows(counts: Ints, groups: Ints, failure_probability: float) -> tuple[Ints, Floats, Floats]:
    """Return the households that have all rows to which their kernels lead, these kernels (rows), and their radii."""
    p, k = counts.shape[1], counts.shape[-1]
    number = pool_counts(counts, groups)
    left_visits, entered = number.sum(axis=-1), np.roll(number.sum(axis=-2), 1, axis=1)
    has_states = (counts.sum(axis=(1, 2)) + counts.sum(axis=(1, 3)) > 0).sum(axis=-1) > 1
    usable = np.flatnonzero(((left_visits == 0) | (entered > 0)).all(axis=(1, 2)) & has_states)
    flow = np.roll(np.swapaxes(number[usable], -1, -2), 1, axis=1)
    visits = entered[usable]
    kernels = flow / np.where(visits > 0, visits, 1.0)[..., None]
    union_size = k * (p * (p - 1) + 1) * counts[usable].sum(axis=(1, 2, 3))[:, None, None]
    return usable, kernels, weissman_radii(visits, union_size, failure_probability)


def _extend_by_products(direct_bound: Floats, last: int) -> Floats:
    """Return U_0 to U_last from U_0 to U_horizon: the smallest products."""
    horizon = direct_bound.shape[1] - 1
    bound = np.concatenate((direct_bound, np.ones((len(direct_bound), max(last - horizon, 0)))), axis=1)
    for t in range(horizon + 1, last + 1):
        products = bound[:, 1 : horizon + 1] * bound[:, t - 1 : t - horizon - 1 : -1]
        bound[:, t] = np.minimum(bound[:, t - 1], products.min(axis=1))
    return bound
