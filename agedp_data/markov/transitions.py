"""Transition matrices from counts: stationary distribution, reversed chain and powers, for stacks of households.

Example: the counts [[3, 1], [1, 3]] give P = [[.75, .25], [.25, .75]], with stationary distribution (.5, .5).

Decisions:

* A state without visits has a row of NaN, because there are no data for it. Every function leaves such states out,
  and the transitions into them too, as if the next reading were missing. The remaining row is scaled to sum 1.
* A state that leads only to states without rows is left out as well.
* In results, rows of states that are left out are NaN and their columns are 0.
* No smoothing wherever a risk is computed: it moves the rows together and lowers the risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Mask, checked_kernel, checked_steps
from agedp_data.errors import ChainError

Counts = NDArray[np.int64]


def count_transitions(states: ArrayLike, contiguous: ArrayLike, n_states: int, *, every: int = 1) -> Counts:
    r"""Count how often each state follows each other state, between readings exactly one step apart.

    The first step of every estimate. A missing state and a gap interrupt the sequence; they are never bridged.

    .. math:: N(x, y) = \#\{i : x_i = x,\ x_{i+1} = y,\ i \text{ and } i+1 \text{ one step apart}\}

    Source: counts of the maximum-likelihood estimate, of which [T] section 3 learns its matrices.

    Args:
        states: states 0..k-1 in order of time, shape (m,), negative if missing.
        contiguous: shape (m-1,), bool; contiguous[i] says that reading i + 1 is one step after reading i.
        n_states: number of states k.
        every: with 6, the transitions of the subsampled series (every sixth step), which starts anew after each gap
            [steps].

    Returns:
        Shape (k, k) int64, row: from, column: to [transitions].

    Raises:
        ChainError: lengths that do not fit, a state that is not below `n_states`, or `every` below 1.

    References:
        Anderson, Goodman: Statistical Inference about Markov Chains. Ann. Math. Statist. 28(1), 1957.
        https://doi.org/10.1214/aoms/1177707039

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
    """Return at which readings of the subsampled series the next one is reached without a gap."""
    index = np.arange(follows.size + 1)
    is_start = np.concatenate(([True], ~follows))
    position = index - np.maximum.accumulate(np.where(is_start, index, 0))
    return np.asarray((position[every:] >= every) & (position[every:] % every == 0))


def transition_matrix(counts: ArrayLike, *, smoothing: float) -> Floats:
    r"""Maximum-likelihood transition matrix of counts.

    .. math:: P(x, y) = \frac{N(x, y)}{\sum_z N(x, z)}, \qquad P_s(x, y) = \frac{P(x, y) + s}{1 + k s}

    Source: [T] eq. 28 for the smoothed form. It is for the paper's experiment only: under smoothing the total variation
    shrinks by (1 + k s)^-t, so no risk may be computed from it.

    Args:
        counts: transitions, shape (..., k, k), >= 0 [transitions].
        smoothing: s >= 0, applied to probabilities [-]; 0 wherever a risk is computed.

    Returns:
        Shape (..., k, k), rows sum to 1 [-]; NaN in rows without visits.

    Raises:
        ChainError: counts that are not a stack of square matrices or are negative, or a negative smoothing.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

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
    r"""Chains restricted to the states that can be followed for ever, and which states these are.

    Use it before powers or eigenvalues: a row of NaN would spread. States without a row, and states that lead only
    to such states, are removed; the other rows are scaled to sum 1.

    .. math:: P'(x, y) = \frac{P(x, y)}{\sum_{z \in R} P(x, z)}, \qquad x, y \in R

    Source: elementary; the largest set R of states that has a row and a successor in R for each of its states.

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].

    Returns:
        The matrices with zeros at the states left out, shape (..., k, k) [-]; which states remain, shape (..., k) bool.

    Raises:
        ChainError: a matrix that is not a kernel, or no state remains in a chain.

    >>> matrix, has_row = recurrent_part([[0.5, 0.25, 0.25], [0.25, 0.75, 0.0], [np.nan, np.nan, np.nan]])
    >>> matrix[0].round(6).tolist(), has_row.tolist()  # row 0 without the column of state 2: (.5, .25) / .75
    ([0.666667, 0.333333, 0.0], [True, True, False])
    """
    _check_square(np.asarray(transition))
    matrix, has_row = checked_kernel(transition)
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
    r"""Stationary distribution; 0 for transient states and for states without a row.

    .. math:: \pi P = \pi, \qquad \sum_x \pi(x) = 1

    Source: [A] section III-A. Elimination of Grassmann, Taksar and Heyman: without subtraction, so every entry is
    accurate to rounding even if the chain nearly falls apart into several classes.

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].

    Returns:
        Shape (..., k), sums to 1 [-].

    Raises:
        ChainError: several recurrent classes (the distribution then depends on the first state), or no state at all.

    References:
        Grassmann, Taksar, Heyman: Regenerative Analysis and Steady State Distributions for Markov Chains. Operations
        Research 33(5), 1985. https://doi.org/10.1287/opre.33.5.1107

    >>> stationary([[0.9, 0.1], [0.3, 0.7]]).round(12).tolist()  # .75 * .1 = .25 * .3
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
    """Return the stationary distributions of irreducible chains by state reduction, last state first."""
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
        raise ChainError("a chain has several recurrent classes, so its stationary distribution is not unique")
    return member


def reverse(transition: ArrayLike) -> Floats:
    r"""Transition matrix of the reversed chain; NaN rows for states that the stationary distribution does not visit.

    Ageing and backward leakage use the reversed chain: it leads from the present state back to the reading.

    .. math:: \hat P(x, y) = \frac{\pi(y) P(y, x)}{\pi(x)}

    Source: [A] eq. 1. Erratum: the forward kernel in its place understates the risk of non-reversible chains.

    Args:
        transition: forward transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].

    Returns:
        Shape (..., k, k), rows sum to 1 or are NaN [-].

    Raises:
        ChainError: several recurrent classes, or no state at all.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> reverse([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    distribution = stationary(transition)
    matrix, _ = recurrent_part(transition)
    flow = np.swapaxes(distribution[..., :, None] * matrix, -1, -2)
    total = flow.sum(axis=-1, keepdims=True)
    return np.where(distribution[..., None] > 0, flow / np.where(total > 0, total, 1.0), np.nan)


def power(transition: ArrayLike, steps: ArrayLike) -> Floats:
    r"""Matrix powers P^t by repeated squaring: the kernel over t steps.

    For many ascending ages of the same chain `ascending_powers` is faster. Rows are scaled to sum 1 after each product:
    rounding would otherwise grow in proportion to t.

    .. math:: P^t(x, y) = \Pr(X_{i+t} = y \mid X_i = x)

    Source: Chapman-Kolmogorov, as in [A] eq. 12. Erratum: powers assume a time-homogeneous first-order chain.

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].
        steps: t >= 0, shape (...), integers [steps]; leading axes broadcast with those of `transition`.

    Returns:
        Shape (..., k, k) [-]; t = 0 is the identity; NaN rows for states left out.

    Raises:
        ChainError: steps that are not integers >= 0, or no state that can be followed.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> power([[0.9, 0.1], [0.1, 0.9]], [0, 1, 2])[:, 0, 1].round(12).tolist()  # .18 = .9 * .1 + .1 * .9
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
    r"""Yield (t, P^t) for each distinct step, ascending; each power from the previous one.

    Use it for curves over age: 480 successive half-hours cost one product each.

    .. math:: P^t = P^s P^{t-s}, \qquad s < t

    Source: Chapman-Kolmogorov, as in [A] eq. 12. Erratum: powers assume a time-homogeneous first-order chain.

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), integers >= 0, in any order, with or without repetitions [steps].

    Yields:
        t [steps] and the kernels over t steps, shape (..., k, k) [-]; the identity at t = 0; NaN rows for
        states left out.

    Raises:
        ChainError: steps that are not integers >= 0, or no state that can be followed.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

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


# --------------------------------------------------------------------------------------------------
# Lagged counts: pairs of states a number of steps apart, and the distance between rows, for many households.
# --------------------------------------------------------------------------------------------------

Ints = NDArray[np.int64]

_CELLS_PER_BATCH = 2**18


def count_lagged_pairs(
    secret: ArrayLike,
    read: ArrayLike,
    lag: int,
    *,
    n_secret: int,
    n_read: int,
    part: ArrayLike | None = None,
) -> Ints:
    r"""Count the pairs (secret now, value read `lag` steps earlier) from which `lag_kernel` is estimated.

    .. math:: N(x, y) = \#\{i : s_i = x,\ r_{i - lag} = y\}

    Source: counts of the empirical counterpart of the t-step reversed kernel in [A] eq. 12.

    Args:
        secret: protected states, shape (..., m) int, -1 if missing.
        read: states that a mechanism read, shape (..., m) int, -1 if missing.
        lag: steps between the two instants, >= 0 [steps].
        n_secret: number of protected states.
        n_read: number of read states.
        part: as in `lag_kernel`: None, a bool mask (m,) or labels (m,).

    Returns:
        Shape (..., n_secret, n_read) int64 [pairs]; with labels (..., label pairs, n_secret, n_read).

    Raises:
        ChainError: shapes that do not fit, states out of range, or a lag that is not an integer >= 0.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> count_lagged_pairs([0, 1, 1], [0, 1, 1], 1, n_secret=2, n_read=2).tolist()  # (1 after 0), (1 after 1)
    [[0, 0], [1, 1]]
    """
    secret_states, read_states = checked_states(secret, n_secret), checked_states(read, n_read)
    step = int(checked_steps(lag, quantity="a lag"))
    if secret_states.shape != read_states.shape:
        raise ChainError(
            f"the secret and what was read must be of the same instants, got {secret_states.shape}, {read_states.shape}"
        )
    length = secret_states.shape[-1]
    pairs, groups = _label_pairs(part, step, length)
    households = math.prod(secret_states.shape[:-1])
    flat_secret, flat_read = (
        secret_states.reshape(households, length)[:, step:],
        read_states.reshape(households, length)[:, : max(length - step, 0)],
    )
    size = groups * n_secret * n_read
    counts = np.empty((len(flat_secret), size), dtype=np.int64)
    batch_size = max(1, _CELLS_PER_BATCH // max(1, length, size))  # what stays in a processor's cache
    for start in range(0, len(flat_secret), batch_size):
        x, y = flat_secret[start : start + batch_size], flat_read[start : start + batch_size]
        cell = x * n_read + y
        used = (x >= 0) & (y >= 0)
        if part is not None:
            cell += pairs * (n_secret * n_read)
            used &= pairs >= 0
        cell += (np.arange(len(x)) * size)[:, None]
        cells = cell.ravel() if used.all() else cell[used]
        counts[start : start + batch_size] = np.bincount(cells, minlength=len(x) * size).reshape(-1, size)
    labelled = part is not None and np.asarray(part).dtype != np.bool_
    return counts.reshape((*secret_states.shape[:-1], *((groups,) if labelled else ()), n_secret, n_read))


def predicted_total_variation(counts: ArrayLike, steps: Ints) -> Floats:
    r"""Largest total variation between rows of matrix powers of a chain, from its one-step counts.

    The prediction of the fitted chain, against which the lagged counts are compared. Counts of households whose chain
    has no recurrent part give NaN.

    .. math:: \max_{x, x'} \frac{1}{2} \sum_y |P^t(x, y) - P^t(x', y)|

    Source: [A] eq. 12 with powers of the maximum-likelihood kernel. Erratum: powers assume a time-homogeneous
    first-order chain.

    Raises:
        ChainError: counts that are not square or are negative, or steps that are not integers >= 0.

    Args:
        counts: one-step transitions, shape (..., k, k) [transitions].
        steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and 1 or NaN [-].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> predicted_total_variation([[9, 1], [1, 9]], np.array([1, 2])).round(12).tolist()
    [0.8, 0.64]
    """
    number = np.asarray(counts)
    k = number.shape[-1]
    chains = transition_matrix(number, smoothing=0).reshape(-1, k, k)
    result = np.full((len(chains), steps.size), np.nan)
    # where every state has a row there is nothing to look for
    usable = np.flatnonzero([not np.isnan(chain).any() or has_recurrent_part(chain) for chain in chains])
    if usable.size:
        for step, kernel in ascending_powers(chains[usable], steps):
            result[np.ix_(usable, steps == step)] = max_row_distance(np.nan_to_num(kernel))[:, None]
    return result.reshape((*number.shape[:-2], steps.size))


def max_row_distance(counts: ArrayLike) -> Floats:
    r"""Largest total variation between two rows of a table of counts, each row scaled to sum 1.

    .. math:: \max_{x, x'} \frac{1}{2} \sum_y \left| \frac{N(x, y)}{N(x)} - \frac{N(x', y)}{N(x')} \right|

    Source: [A] Definition 6 (eq. 11), maximum over pairs of rows as in eq. 12.

    Args:
        counts: shape (..., k, n), >= 0 [pairs]; rows without counts are left out.

    Returns:
        Shape (...), between 0 and 1 [-]; 0 with one row, NaN without any.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> max_row_distance([[3, 1], [1, 3], [0, 0]]).item()  # rows (3/4, 1/4) and (1/4, 3/4)
    0.5
    """
    rows = normalise_rows(counts)
    flat = rows.reshape(-1, *rows.shape[-2:])
    has_row = ~np.isnan(flat[..., 0])
    flat = np.nan_to_num(flat)
    result = np.zeros(len(flat))
    for x in range(1, flat.shape[1]):
        distance = np.abs(flat[:, x, None, :] - flat[:, :x]).sum(axis=-1) / 2
        is_comparable = has_row[:, x, None] & has_row[:, :x]
        result = np.maximum(result, np.where(is_comparable, distance, 0.0).max(axis=-1))
    shaped: Floats = np.where(has_row.any(axis=-1), result, np.nan).reshape(rows.shape[:-2])
    return shaped


def checked_states(states: ArrayLike, n_states: int) -> Ints:
    """States as integers of shape (..., m).

    Source: [A] section III-A: a finite state space; here 0, ..., n_states - 1, and -1 where missing.

    Args:
        states: one state per step, -1 if missing.
        n_states: number of states.

    Returns:
        Shape (..., m) int64.

    Raises:
        ChainError: a state that is not an integer or not below `n_states`.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> checked_states([0, 1, -1], 2).tolist()
    [0, 1, -1]
    """
    series = np.asarray(states)
    if series.ndim < 1 or (series.size and series.dtype.kind not in "iu"):
        raise ChainError("states are whole numbers, one per step, -1 where missing")
    if series.size and int(series.max()) >= n_states:
        raise ChainError(f"there are {n_states} states, got a higher one")
    return series.astype(np.int64, copy=False)


def checked_lags(lags: ArrayLike) -> Ints:
    """Lags as a list of steps.

    Source: [A] section III-A counts time in integer steps.

    Args:
        lags: shape (T,), integers >= 0 [steps].

    Returns:
        Shape (T,) int64 [steps].

    Raises:
        ChainError: lags that are not a list of integers >= 0.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> checked_lags([0, 48]).tolist()
    [0, 48]
    """
    steps = checked_steps(lags, quantity="lags")
    if steps.ndim != 1:
        raise ChainError(f"lags are a list of steps, got shape {steps.shape}")
    return steps


def _label_pairs(part: ArrayLike | None, lag: int, length: int) -> tuple[Ints, int]:
    """Return the index of the label pair of each pair of instants (length - lag,), -1 for none, and their number."""
    pairs = max(length - lag, 0)
    if part is None:
        return np.zeros(pairs, dtype=np.int64), 1
    label = np.asarray(part)
    if label.shape != (length,) or label.dtype.kind not in "biu":
        raise ChainError(f"a part is a mark or a label for each of the {length} instants, got shape {label.shape}")
    if label.dtype == np.bool_:
        return np.where(label[lag:], 0, -1), 1
    later, earlier = label[lag:].astype(np.int64), label[:pairs].astype(np.int64)
    is_labelled = (later >= 0) & (earlier >= 0)
    label_pairs, index = np.unique(np.stack((later, earlier))[:, is_labelled], axis=1, return_inverse=True)
    result = np.full(pairs, -1, dtype=np.int64)
    result[is_labelled] = index.ravel()
    return result, label_pairs.shape[1]


def normalise_rows(counts: ArrayLike) -> Floats:
    r"""Rows of counts scaled to sum 1; NaN in rows without counts.

    .. math:: P(x, y) = \frac{N(x, y)}{\sum_z N(x, z)}

    Source: maximum-likelihood estimate of transition probabilities (Anderson and Goodman).

    Args:
        counts: shape (..., k, n), >= 0 [pairs].

    Returns:
        Shape (..., k, n) [-].

    References:
        Anderson, Goodman: Statistical Inference about Markov Chains. Ann. Math. Statist. 28(1), 1957.
        https://doi.org/10.1214/aoms/1177707039

    >>> normalise_rows([[3, 1], [0, 0]]).tolist()
    [[0.75, 0.25], [nan, nan]]
    """
    number = np.asarray(counts, dtype=np.float64)
    total = number.sum(axis=-1, keepdims=True)
    return np.where(total > 0, number / np.where(total > 0, total, 1.0), np.nan)


def has_recurrent_part(chain: Floats) -> bool:
    """Return whether a chain (k, k) has a state that can be followed for ever (`recurrent_part`).

    Source: elementary, as `recurrent_part`.

    Args:
        chain: transition matrix, shape (k, k), rows sum to 1 or are NaN [-].

    Returns:
        False if every path leads to a state without a row.

    >>> nan = float("nan")  # state 1 has no row; from state 0 it is either the only successor or not
    >>> [has_recurrent_part(np.array([row, [nan, nan]])) for row in ([0.0, 1.0], [0.5, 0.5])]
    [False, True]
    """
    try:
        recurrent_part(chain)
    except ChainError:
        return False
    return True


def lag_kernel(
    secret: ArrayLike,
    read: ArrayLike,
    lag: int,
    *,
    n_secret: int,
    n_read: int,
    part: ArrayLike | None = None,
) -> Floats:
    r"""Empirical kernel at a lag: distribution of the reading `lag` steps earlier, given the secret now.

    Pass it to `leakage` for the loss of a release about the secret, without the Markov assumption.

    .. math:: K(x, y) = \frac{\#\{i : s_i = x,\ r_{i - \ell} = y\}}{\#\{i : s_i = x,\ r_{i - \ell}\ \text{present}\}}

    Source: empirical counterpart of the t-step reversed kernel in [A] eq. 12.

    Args:
        secret: what is protected, by instant, for example the state of the half-hour, shape (..., m) int; -1 is
            missing.
        read: what a mechanism read, by the same instants, for example the total of the day, shape (..., m) int; -1
            is missing.
        lag: steps from the reading to the secret, >= 0 [steps].
        n_secret: number of secrets 0, 1, ...
        n_read: number of values read.
        part: (m,) bool, the instants of the secret that count; or (m,) labels 0, 1, ... (-1: none) of instants, for one
            kernel per pair of labels (now, earlier) that occurs, in ascending order.

    Returns:
        Shape (..., n_secret, n_read), rows sum to 1 [-], NaN for a secret that was never counted; with labels
        (..., label pairs, n_secret, n_read).

    Raises:
        ChainError: lengths that do not fit, values out of range, or a lag that is not an integer >= 0.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> lag_kernel([0, 1, 0, 1, -1, 1], [0, 1, 1, 1, 0, 1], 1, n_secret=2, n_read=2).tolist()
    [[0.0, 1.0], [0.6666666666666666, 0.3333333333333333]]
    """
    return normalise_rows(count_lagged_pairs(secret, read, lag, n_secret=n_secret, n_read=n_read, part=part))


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
        [A] eq. 12 with products in place of powers (docs/papers.md). https://doi.org/10.1109/TIT.2023.3340147

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
