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

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Mask, checked_kernel, checked_steps
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import transition_matrix

Ints = NDArray[np.int64]


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

    Source: a rule of this package; [A] has no chain that depends on the time of day (docs/errata.md).

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


def ascending_products(kernels: ArrayLike, steps: ArrayLike, *, direction: str) -> Iterator[tuple[int, Floats]]:
    r"""Yield (t, the kernels over t steps from every phase) for each distinct step, ascending.

    .. math:: \hat P_{p, t} = K_p K_{p-1} \cdots K_{p-t+1} \text{ (backward)}, \qquad
        P_{p, t} = K_p K_{p+1} \cdots K_{p+t-1} \text{ (forward)}

    Source: Chapman-Kolmogorov for a chain that is not time-homogeneous.

    Args:
        kernels: one-step kernels by phase, shape (..., p, k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), integers >= 0 [steps].
        direction: "backward" or "forward".

    Yields:
        t [steps] and the kernels over t steps, shape (..., p, k, k), by the phase p of their rows [-]; t = 0 is
        the identity; NaN rows for states left out.

    Raises:
        ChainError: steps that are not integers >= 0.

    References:
        [A] eq. 12 with products in place of powers (docs/errata.md). https://doi.org/10.1109/TIT.2023.3340147

    >>> swap, stay = [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    >>> [kernel[0].tolist() for _, kernel in ascending_products([swap, stay], [2, 4], direction="backward")]
    [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    """
    phase_step = 1 if direction == "backward" else -1
    absent: Mask = np.asarray(np.isnan(np.asarray(kernels, dtype=np.float64)).all(axis=-1, keepdims=True))
    one_step = np.where(absent, 0.0, np.nan_to_num(np.asarray(kernels, dtype=np.float64)))
    previous_step, gap, gap_kernels = 0, -1, one_step
    current = np.eye(one_step.shape[-1]) * ~absent
    for t in np.unique(checked_steps(steps)).tolist():
        if t - previous_step != gap:
            gap, gap_kernels = t - previous_step, _kernels_over(one_step, t - previous_step, phase_step, absent)
        current = gap_kernels if previous_step == 0 else _product(current, gap_kernels, previous_step, phase_step)
        previous_step = t
        yield t, np.where(absent, np.nan, current)


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


def _product(first: Floats, second: Floats, steps: int, phase_step: int) -> Floats:
    """Return the kernels of `first`, over this many steps, followed by those of `second` from the phase it leads to."""
    product = first @ np.roll(second, phase_step * steps, axis=-3)
    total = product.sum(axis=-1, keepdims=True)
    return np.asarray(product / np.where(total > 0, total, 1.0))


def _kernels_over(one_step: Floats, steps: int, phase_step: int, absent: Mask) -> Floats:
    """Return the kernels over this many steps from every phase, by doubling."""
    result, covered = np.eye(one_step.shape[-1]) * ~absent, 0
    doubled, length, remaining = one_step, 1, steps
    while remaining:
        if remaining & 1:
            result, covered = _product(result, doubled, covered, phase_step), covered + length
        remaining >>= 1
        if remaining:
            doubled, length = _product(doubled, doubled, length, phase_step), 2 * length
    return result
