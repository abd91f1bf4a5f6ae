"""Lagged counts: pairs of states a number of steps apart, and the distance between rows, for many households."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_steps
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import ascending_powers, recurrent_part, transition_matrix

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
