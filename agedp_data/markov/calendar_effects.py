"""Calendar-conditional dependence: empirical kernels from the secret to the total of the day that was read.

An adversary knows the calendar, and a kernel pooled over it is not a bound. So the dependence is the maximum over the
half-hours of the day and over the calendar parts of both instants (weekday or weekend, and half of the year).

Decisions:

* Both sides are split at the household's own median within the part, so that rows have enough visits to be compared.
  Coarser states only lower the value: it is a lower indication of the dependence, never a bound.
* A row with fewer than 20 visits is left out. All values are indicative and confidential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import Ints, checked_lags, checked_states

Table = np.recarray[Any, Any]
Float32s = NDArray[np.float32]

_SHIFTS = 4
_ONE_THREAD_PRODUCT = 2**17  # multiplications of a matrix product; OpenBLAS starts threads from 2^18 on
_MIN_VISITS = 20
_INTERVAL_QUANTILES = np.array([0.025, 0.975])
_FIELDS = ("direct", "low", "high", "floor", "loss_left")


def median_halves(values: ArrayLike, label: ArrayLike) -> NDArray[np.int8]:
    """Whether each value is in the upper half of its household, slot and calendar part; -1 where missing.

    The upper half is above the lower median or, if no value is above it, equal to it.

    Source: elementary (lower sample median); the papers prescribe no states for a calendar part.

    Args:
        values: shape (h, days, slots), integers, negative where missing [any unit].
        label: calendar part of each day, shape (days,).

    Returns:
        Shape (h, days, slots) int8: 0, 1 or -1 [-].

    Raises:
        ChainError: shapes that do not fit.

    >>> median_halves([[[3], [5], [-1], [4]]], [0, 0, 0, 0])[0, :, 0].tolist()  # the lower median is 4
    [0, 1, -1, 0]
    """
    value, part = np.asarray(values), np.asarray(label)
    if value.ndim != 3 or part.shape != value.shape[1:2]:
        raise ChainError(f"values come by household, day and slot, with a label for each day, got {value.shape}")
    half = np.full(value.shape, -1, dtype=np.int8)
    for label_value in np.unique(part).tolist():
        label_values = value[:, part == label_value]
        ascending = np.sort(label_values, axis=1)  # missing first
        valid_count = (label_values >= 0).sum(axis=1, keepdims=True)
        median = np.take_along_axis(
            ascending, label_values.shape[1] - valid_count + np.maximum(valid_count - 1, 0) // 2 - (valid_count == 0), 1
        )
        maximum = ascending[:, -1:]
        half[:, part == label_value] = np.where(
            label_values < 0, -1, (label_values > median) | ((median == maximum) & (label_values == maximum))
        )
    return half


def calendar_dependence(
    secret: ArrayLike,
    read: ArrayLike,
    label: ArrayLike,
    lags: ArrayLike,
    rng: np.random.Generator,
    *,
    loss: float,
    resamples: int = 0,
) -> Table:
    r"""Dependence of the secret on a value read days earlier, given the calendar: maximum over slots and parts.

    .. math:: \max_{s, p, p'} \frac{1}{2} \sum_y |K_{s, p, p'}(0, y) - K_{s, p, p'}(1, y)|

    Source: empirical counterpart of [A] eq. 12, for what an adversary who knows the calendar learns from a daily total.

    Args:
        secret: halves (`median_halves`) of the protected values, shape (h, days, slots).
        read: halves of the totals that were read, by the same days, shape (h, days).
        label: calendar part of each day, shape (days,).
        lags: days from the value read to the secret, shape (T,) [days].
        rng: source of randomness for shifts and weeks.
        loss: privacy loss of a release about the day that it reads, >= 0 [epsilon].
        resamples: bootstrap samples of whole weeks for the interval, which is a nominal 95 % one.

    Returns:
        A record array (h, T): direct: largest total variation [-]; low, high: its interval, NaN without `resamples`;
        floor: null level, with the days read shifted against the secret's; loss_left: largest leakage L_K(loss) through
        these kernels [epsilon]. NaN where nothing can be compared.

    Raises:
        ChainError: shapes that do not fit, or states above 1.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> weekend = np.arange(140) % 7 >= 5
    >>> halves = weekend.astype(int)[None]
    >>> pooled = calendar_dependence(halves[..., None], halves, np.zeros(140), [7], np.random.default_rng(1), loss=1.0)
    >>> known = calendar_dependence(halves[..., None], halves, weekend, [7], np.random.default_rng(1), loss=1.0)
    >>> pooled.direct.item(), pooled.loss_left.item(), np.isnan(known.direct).item()
    (1.0, 1.0, True)
    """
    secret_states, read_states, part = checked_states(secret, 2), checked_states(read, 2), np.asarray(label)
    if (
        secret_states.ndim != 3
        or secret_states.shape[:2] != read_states.shape
        or part.shape != secret_states.shape[1:2]
    ):
        raise ChainError(
            "a secret by household, day and slot, and what was read by day, "
            f"got {secret_states.shape}, {read_states.shape}"
        )
    steps, release_loss = checked_lags(lags), float(checked_loss(loss))
    days = secret_states.shape[1]
    shifts = rng.integers(days // 4, max(1, days * 3 // 4 + 1), _SHIFTS)
    weeks = max(1, -(-days // 7))
    weights = rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=resamples)[:, np.arange(days) // 7]
    rows = _indicators(secret_states.swapaxes(1, 2))  # (h, slots, 2, days)
    columns = _indicators(read_states)  # (h, 2, days)
    table = np.full((len(secret_states), steps.size), np.nan, dtype=[(name, np.float64) for name in _FIELDS]).view(
        np.recarray
    )
    for i, lag in enumerate(steps[steps < days].tolist()):
        distances, remaining_loss = _max_dependence(
            rows, _shifted_and_resampled(columns, shifts, weights, lag), part, lag, loss=release_loss
        )
        table.direct[:, i], table.loss_left[:, i] = distances[:, 0], remaining_loss
        table.floor[:, i] = distances[:, 1 : 1 + _SHIFTS].mean(axis=1)
        if resamples:
            resampled = distances[:, 1 + _SHIFTS :]
            is_counted = ~np.isnan(resampled).all(axis=1) & ~np.isnan(distances[:, 0])
            if is_counted.any():
                quantile = np.nanquantile(resampled[is_counted], _INTERVAL_QUANTILES, axis=1)
                table.low[is_counted, i], table.high[is_counted, i] = np.clip(
                    2 * distances[is_counted, 0] - quantile[::-1], 0, 1
                )
    return table


def _indicators(states: Ints) -> Float32s:
    """Return an indicator of each of the two states: (..., days) -> (..., 2, days)."""
    return np.stack([states == 0, states == 1], axis=-2).astype(np.float32)


def _shifted_and_resampled(columns: Float32s, shifts: Ints, weights: Ints, lag: int) -> Float32s:
    """Return the read indicators by day of the secret: unchanged, shifted, weeks resampled: (h, v, 2, days - lag)."""
    length = columns.shape[-1] - lag
    unchanged = columns[:, None, :, :length]
    shifted = [np.roll(columns, shift, axis=-1)[:, None, :, :length] for shift in shifts.tolist()]
    resampled = unchanged * weights[:, None, lag:].astype(np.float32)
    return np.concatenate([unchanged, *shifted, resampled], axis=1)


def _max_dependence(
    rows: Float32s, columns: Float32s, label: NDArray[Any], lag: int, *, loss: float
) -> tuple[Floats, Floats]:
    """Return the largest total variation over slots and parts by variant (h, v), and the largest leakage (h,)."""
    households, slots, _, days = rows.shape
    variants = columns.shape[1]
    pairs = np.unique(np.stack([label[lag:], label[: days - lag]]), axis=1, return_inverse=True)[1].ravel()
    distance, remaining_loss = np.full((households, variants), -1.0), np.full(households, -1.0)
    for pair in range(int(pairs.max(initial=-1)) + 1):
        days_of_pair = np.flatnonzero(pairs == pair)
        secret_indicators = rows[..., days_of_pair + lag].reshape(households, slots * 2, -1)
        read_indicators = columns[..., days_of_pair].reshape(households, variants * 2, -1)
        counts = _pair_counts(secret_indicators, read_indicators).reshape(households, slots, 2, variants, 2)
        visits = counts.sum(axis=-1)
        is_compared = (visits >= _MIN_VISITS).all(axis=2)
        probability = counts[..., 1].astype(np.float64) / np.maximum(visits, 1)
        variation = np.abs(probability[:, :, 1] - probability[:, :, 0])
        distance = np.maximum(distance, np.where(is_compared, variation, -1.0).max(axis=1))
        pair_leakage = _two_state_leakage(probability[:, :, 1, 0], probability[:, :, 0, 0], loss)
        remaining_loss = np.maximum(remaining_loss, np.where(is_compared[:, :, 0], pair_leakage, -1.0).max(axis=1))
    return np.where(distance >= 0, distance, np.nan), np.where(remaining_loss >= 0, remaining_loss, np.nan)


def _pair_counts(secret: Float32s, read: Float32s) -> Float32s:
    """Return the products over days (h, a, b) of (h, a, days) and (h, b, days): whole numbers, so in any order.

    Each product is small enough that BLAS computes it in one thread: the tasks of the engine share the cores already,
    and waiting threads of BLAS would take several times as much of them.
    """
    width = max(1, _ONE_THREAD_PRODUCT // max(1, secret.shape[1] * secret.shape[2]))
    parts = [secret @ read[:, start : start + width].swapaxes(1, 2) for start in range(0, read.shape[1], width)]
    return np.concatenate(parts, axis=-1)


def _two_state_leakage(p: Floats, q: Floats, loss: float) -> Floats:
    """Return L_K(loss) of kernels with the rows (1 - p, p) and (1 - q, q): `leakage` for two columns."""
    with np.errstate(divide="ignore"):
        log_ratios = [
            np.logaddexp(np.log(x), np.log1p(-x) - loss) - np.logaddexp(np.log(y), np.log1p(-y) - loss)
            for x, y in ((p, q), (1 - p, 1 - q))
        ]
    return np.asarray(np.abs(log_ratios).max(axis=0))
