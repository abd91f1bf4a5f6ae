"""Chains from counts: transition matrices, stationary laws, reversal and powers, for stacks of households.

A state without visits has a row of NaN: there is no data for it. Everything below leaves such states out, and
with them the transitions into them, which lead nowhere that is known, as if the reading after them were
missing; what remains is scaled to one. A state from which only such states are reached is left out too.
Result rows of states that are left out are NaN, result columns 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, Mask, checked, checked_steps

Counts = NDArray[np.int64]


def count_transitions(states: ArrayLike, contiguous: ArrayLike, n_states: int, *, every: int = 1) -> Counts:
    """Return how often each state follows each, counted only between readings exactly one step apart.

    Shapes: (m,) int, (m-1,) bool -> (k, k); row: from, column: to. contiguous[i] says that i + 1 is one step
    after i; a missing state (negative) and a gap break the chain and are never bridged. Units: [transitions].

    Args:
        states: states 0..k-1 in order of time, negative if missing.
        contiguous: which readings are followed by the next one step later.
        n_states: number of states k.
        every: with 6, the transitions of the series read every sixth step only, begun anew after each gap.

    Raises:
        ChainError: lengths that do not fit, a state that is not below `n_states`, or `every` below 1.

    >>> count_transitions([0, 1, 1, -1, 0, 1], [True, True, True, True, False], 2).tolist()
    [[0, 1], [0, 1]]
    """
    state, follows = np.asarray(states, dtype=np.int64), np.asarray(contiguous, dtype=np.bool_)
    if state.ndim != 1 or follows.shape != (max(state.size - 1, 0),):
        raise ChainError(f"{state.size} readings have {max(state.size - 1, 0)} steps between them, got {follows.shape}")
    if (state >= n_states).any():
        raise ChainError(f"there are {n_states} states, got a higher one")
    if every < 1:
        raise ChainError(f"a series is read every step or less often, got every {every}")
    before, after = state[:-every], state[every:]
    used = (before >= 0) & (after >= 0) & (follows if every == 1 else _subsampled_links(follows, every))
    flat = np.bincount(before[used] * n_states + after[used], minlength=n_states**2)
    return flat.reshape(n_states, n_states).astype(np.int64)


def _subsampled_links(follows: Mask, every: int) -> Mask:
    """Return from which readings of a series read every so many steps the next one is reached without a gap."""
    index = np.arange(follows.size + 1)
    is_start = np.concatenate(([True], ~follows))
    position = index - np.maximum.accumulate(np.where(is_start, index, 0))
    return np.asarray((position[every:] >= every) & (position[every:] % every == 0))


def transition_matrix(counts: ArrayLike, *, smoothing: float) -> Floats:
    """Return P(x, y) = N(x, y) / N(x); NaN in the rows without visits.

    Shapes: (..., k, k) -> (..., k, k). Units: [-].

    Args:
        counts: transitions.
        smoothing: s >= 0 of [T] eq. 28, (P + s) / (1 + k s), applied to probabilities; 0 wherever a risk
            is computed, since smoothing lowers it (MATHS 2b).

    Raises:
        ChainError: counts that are no stack of square matrices or negative, or a negative smoothing.

    >>> transition_matrix([[3, 1], [0, 0]], smoothing=0).tolist()
    [[0.75, 0.25], [nan, nan]]
    """
    number: Floats = np.asarray(counts, dtype=np.float64)
    _check_square(number)
    n_states = number.shape[-1]
    if not (number >= 0).all() or not smoothing >= 0:
        raise ChainError("neither transition counts nor smoothing may be negative")
    visits = number.sum(axis=-1, keepdims=True)
    chain: Floats = np.full_like(number, np.nan)
    np.divide(number, visits, out=chain, where=visits > 0)
    return chain if smoothing == 0 else (chain + smoothing) / (1 + n_states * smoothing)


def recurrent_part(transition: ArrayLike) -> tuple[Floats, Mask]:
    """Return the chains on the states that have rows (zeros elsewhere), and which states these are.

    Shapes: (..., k, k) -> (..., k, k), (..., k). Raises ChainError if no state remains in a chain.
    """
    _check_square(np.asarray(transition))
    matrix, has_row = checked(transition)
    for _ in range(matrix.shape[-1]):  # each round but the last leaves at least one more state out
        matrix = matrix * has_row[..., None, :] * has_row[..., :, None]
        total = matrix.sum(axis=-1)
        if ((total > 0) == has_row).all():
            break
        has_row = total > 0
    if not has_row.any(axis=-1).all():
        raise ChainError("a chain has no state that it can be followed from; it bounds nothing")
    return matrix / np.where(has_row, total, 1.0)[..., None], has_row


def stationary(transition: ArrayLike) -> Floats:
    """Return the stationary law; 0 for transient states and for those without a row.

    Grassmann, Taksar and Heyman's elimination (Operations Research 1985): no subtraction, so every entry is
    accurate to rounding however nearly the chain falls apart. Shapes: (..., k, k) -> (..., k). Units: [-].

    Raises:
        ChainError: several recurrent classes (the law then depends on the start), or no state at all.

    >>> stationary([[0.9, 0.1], [0.3, 0.7]]).round(12).tolist()
    [0.75, 0.25]
    """
    matrix, has_row = recurrent_part(transition)
    member = _recurrent(matrix, has_row)
    # Members first: then each elimination but the first state's has somewhere to go.
    order = np.argsort(~member, axis=-1, kind="stable")
    flow = matrix * member[..., None, :] * member[..., :, None]
    flow = np.take_along_axis(np.take_along_axis(flow, order[..., None], axis=-2), order[..., None, :], axis=-1)
    sorted_distribution = _eliminate(flow)
    distribution = np.zeros_like(sorted_distribution)
    np.put_along_axis(distribution, order, sorted_distribution, axis=-1)
    return distribution


def _eliminate(flow: Floats) -> Floats:
    k = flow.shape[-1]
    for n in range(k - 1, 0, -1):
        outflow = flow[..., n, :n].sum(axis=-1)
        flow[..., :n, n] /= np.where(outflow > 0, outflow, 1.0)[..., None]
        flow[..., :n, :n] += flow[..., :n, n, None] * flow[..., n, None, :n]
    distribution = np.zeros(flow.shape[:-1])
    distribution[..., 0] = 1.0
    for n in range(1, k):
        distribution[..., n] = (distribution[..., :n] * flow[..., :n, n]).sum(axis=-1)
    scaled: Floats = distribution / distribution.sum(axis=-1, keepdims=True)
    return scaled


def _recurrent(matrix: Floats, has_row: Mask) -> Mask:
    """Return the members of the one recurrent class of each chain; ChainError if there are several."""
    reaches = (matrix > 0) | np.eye(matrix.shape[-1], dtype=np.bool_)
    for _ in range(max(1, matrix.shape[-1].bit_length())):
        reaches = reaches @ reaches
    reached_by = np.swapaxes(reaches, -1, -2)
    member: Mask = (~reaches | reached_by).all(axis=-1) & has_row
    both_recurrent = member[..., :, None] & member[..., None, :]
    if (both_recurrent & ~reaches).any():
        raise ChainError("a chain has several recurrent classes, so its long-run law is not determined")
    return member


def reverse(transition: ArrayLike) -> Floats:
    """Return the reversed chain pi(y) P(y, x) / pi(x); NaN rows for states that pi does not visit.

    Shapes: (..., k, k) -> (..., k, k). Units: [-]. References: [A] eq. 1.

    Raises:
        ChainError: as `stationary`.

    >>> reverse([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    distribution = stationary(transition)
    matrix, _ = recurrent_part(transition)
    flow = np.swapaxes(distribution[..., :, None] * matrix, -1, -2)
    total = flow.sum(axis=-1, keepdims=True)
    return np.where(distribution[..., None] > 0, flow / np.where(total > 0, total, 1.0), np.nan)


def power(transition: ArrayLike, steps: ArrayLike) -> Floats:
    """Return P^t by repeated squaring: NaN rows for states left out, t = 0 is the identity on the others.

    Shapes: (..., k, k), (...) int -> (..., k, k), leading axes broadcast. Units: [-]. Rows are scaled to one
    after each product, or rounding would grow in proportion to t.

    Raises:
        ChainError: steps that are no whole non-negative numbers, or as `recurrent_part`.

    >>> power([[0.9, 0.1], [0.1, 0.9]], [0, 1, 2])[:, 0, 1].round(12).tolist()
    [0.0, 0.1, 0.18]
    """
    matrix, has_row = recurrent_part(transition)
    step = checked_steps(steps)
    shape = np.broadcast_shapes(has_row.shape[:-1], step.shape)
    step_of_chain = np.broadcast_to(step, shape)
    result = np.empty((*shape, *matrix.shape[-2:]))
    absent = ~has_row[..., None]
    for t in np.unique(step).tolist():
        result_at_step = np.broadcast_to(np.where(absent, np.nan, _power(matrix, has_row, t)), result.shape)
        result[step_of_chain == t] = result_at_step[step_of_chain == t]
    return result


def ascending_powers(transition: ArrayLike, steps: ArrayLike) -> Iterator[tuple[int, Floats]]:
    """Yield (t, P^t) for each different step, ascending: each from the one before, by the power of the gap.

    480 half-hours in a row cost one product each. Shapes: (..., k, k), (T,) int -> (..., k, k) at a time; rows as
    in `power`.

    Raises:
        ChainError: as `power`.

    >>> [(t, kernel[0, 1].round(12).item()) for t, kernel in ascending_powers([[0.9, 0.1], [0.1, 0.9]], [2, 1, 2])]
    [(1, 0.1), (2, 0.18)]
    """
    matrix, has_row = recurrent_part(transition)
    absent = ~has_row[..., None]
    previous_step, gap, gap_power = 0, -1, matrix
    current = np.eye(matrix.shape[-1]) * has_row[..., None]
    for t in np.unique(checked_steps(steps)).tolist():
        if t - previous_step != gap:
            gap, gap_power = t - previous_step, _power(matrix, has_row, t - previous_step)
        current = gap_power if previous_step == 0 else _normalise_rows(current @ gap_power)
        previous_step = t
        yield t, np.where(absent, np.nan, current) if absent.any() else current


def _power(matrix: Floats, has_row: Mask, t: int) -> Floats:
    result = np.eye(matrix.shape[-1]) * has_row[..., None]
    square, remaining = matrix, t
    while remaining:
        if remaining & 1:
            result = _normalise_rows(result @ square)
        remaining >>= 1
        if remaining:
            square = _normalise_rows(square @ square)
    return result


def _normalise_rows(matrix: Floats) -> Floats:
    total = matrix.sum(axis=-1, keepdims=True)
    return matrix / np.where(total > 0, total, 1.0)


def _check_square(matrix: NDArray[np.generic]) -> None:
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ChainError(f"a chain is a square matrix or a stack of them, got shape {matrix.shape}")
