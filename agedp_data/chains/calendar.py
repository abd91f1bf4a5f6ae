"""Direct kernels from what is protected to the day's total that was read, given the calendar that everybody knows.

The largest over the half-hours of the day and over PARTS of the calendar at both instants (weekday or weekend, and
which half of the year): pooled over what an adversary knows a kernel bounds nothing (MATHS 2b). Both sides are cut in
two at the household's own median within the part, so that rows have visits enough to be compared; coarser states only
lower the figure, so it is a lower indication of what the totals tell, never a bound. A row with fewer than
20 visits is left out. All of it is indicative and confidential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.direct import Ints, checked_lags, checked_states
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss

Table = np.recarray[Any, Any]
Single = NDArray[np.float32]

_SHIFTS = 4
_LEAST = 20
_ENDS = np.array([0.025, 0.975])
_FIELDS = ("direct", "low", "high", "floor", "loss_left")


def own_halves(values: ArrayLike, label: ArrayLike) -> NDArray[np.int8]:
    """Return whether each value is in the upper half of those of its household, slot and part; -1 where missing.

    Above the lower median, or, if nothing lies above it, at it. Shapes: (h, days, slots) whole numbers, negative where
    missing, (days,) -> (h, days, slots). Units: any -> [-].

    >>> own_halves([[[3], [5], [-1], [4]]], [0, 0, 0, 0])[0, :, 0].tolist()
    [0, 1, -1, 0]
    """
    value, part = np.asarray(values), np.asarray(label)
    if value.ndim != 3 or part.shape != value.shape[1:2]:
        raise ChainError(f"values come by household, day and slot, with a label for each day, got {value.shape}")
    half = np.full(value.shape, -1, dtype=np.int8)
    for one in np.unique(part).tolist():
        own = value[:, part == one]
        ascending = np.sort(own, axis=1)  # missing first
        known = (own >= 0).sum(axis=1, keepdims=True)
        middle = np.take_along_axis(ascending, own.shape[1] - known + np.maximum(known - 1, 0) // 2 - (known == 0), 1)
        top = ascending[:, -1:]
        half[:, part == one] = np.where(own < 0, -1, (own > middle) | ((middle == top) & (own == top)))
    return half


def given_calendar(
    secret: ArrayLike,
    read: ArrayLike,
    label: ArrayLike,
    lags: ArrayLike,
    rng: np.random.Generator,
    *,
    loss: float,
    resamples: int = 0,
) -> Table:
    """Return how far apart what was read lies for two values of the secret, the largest over slots and parts.

    Shapes: (h, days, slots), (h, days), (days,), (T,) -> a record array (h, T) with the fields direct, the largest
    total variation; low, high: interval of it by a bootstrap over whole weeks, NaN without `resamples`; floor: what is
    found if the days read are shifted against the secret's by a good part of the series; loss_left: the largest loss
    that is left of `loss` through these kernels, L_K(loss). NaN where nothing can be compared. Units: [days] -> [-].

    Args:
        secret: halves (`own_halves`) of what is protected.
        read: halves of the totals that were read, by the same days.
        label: the part of the calendar of each day.
        lags: how many days earlier it was read.
        rng: the source of randomness for shifts and weeks.
        loss: what a release may lose about the day that it reads.
        resamples: of whole weeks, for the interval, which is a nominal 95 % one.

    Raises:
        ChainError: shapes that do not fit, or states above 1.
    """
    now, then, part = checked_states(secret, 2), checked_states(read, 2), np.asarray(label)
    if now.ndim != 3 or now.shape[:2] != then.shape or part.shape != now.shape[1:2]:
        raise ChainError(
            f"a secret by household, day and slot, and what was read by day, got {now.shape}, {then.shape}"
        )
    steps, a = checked_lags(lags), float(checked_loss(loss))
    days = now.shape[1]
    shifts = rng.integers(days // 4, max(1, days * 3 // 4 + 1), _SHIFTS)
    weeks = max(1, -(-days // 7))
    weights = rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=resamples)[:, np.arange(days) // 7]
    rows = _marks(now.swapaxes(1, 2))  # (h, slots, 2, days)
    columns = _marks(then)  # (h, 2, days)
    table = np.full((len(now), steps.size), np.nan, dtype=[(name, np.float64) for name in _FIELDS]).view(np.recarray)
    for i, lag in enumerate(steps[steps < days].tolist()):
        found, left = _largest(rows, _variants(columns, shifts, weights, lag), part, lag, loss=a)
        table.direct[:, i], table.loss_left[:, i] = found[:, 0], left
        table.floor[:, i] = found[:, 1 : 1 + _SHIFTS].mean(axis=1)
        if resamples:
            again = found[:, 1 + _SHIFTS :]
            known = ~np.isnan(again).all(axis=1) & ~np.isnan(found[:, 0])
            if known.any():
                quantile = np.nanquantile(again[known], _ENDS, axis=1)
                table.low[known, i], table.high[known, i] = np.clip(2 * found[known, 0] - quantile[::-1], 0, 1)
    return table


def _marks(states: Ints) -> Single:
    """Return one mark for each of the two states: (..., days) -> (..., 2, days)."""
    return np.stack([states == 0, states == 1], axis=-2).astype(np.float32)


def _variants(columns: Single, shifts: Ints, weights: Ints, lag: int) -> Single:
    """Return what was read by the day of the secret, as it is, shifted, and with weeks drawn: (h, v, 2, days - lag)."""
    length = columns.shape[-1] - lag
    plain = columns[:, None, :, :length]
    moved = [np.roll(columns, shift, axis=-1)[:, None, :, :length] for shift in shifts.tolist()]
    drawn = plain * weights[:, None, lag:].astype(np.float32)
    return np.concatenate([plain, *moved, drawn], axis=1)


def _largest(rows: Single, columns: Single, label: NDArray[Any], lag: int, *, loss: float) -> tuple[Floats, Floats]:
    """Return the largest total variation over slots and parts by variant (h, v), and the loss left (h,)."""
    homes, slots, _, days = rows.shape
    variants = columns.shape[1]
    pairs = np.unique(np.stack([label[lag:], label[: days - lag]]), axis=1, return_inverse=True)[1].ravel()
    found, left = np.full((homes, variants), -1.0), np.full(homes, -1.0)
    for pair in range(int(pairs.max(initial=-1)) + 1):
        at = np.flatnonzero(pairs == pair)
        now = rows[..., at + lag].reshape(homes, slots * 2, -1)
        counts = now @ columns[..., at].reshape(homes, variants * 2, -1).swapaxes(1, 2)
        counts = counts.reshape(homes, slots, 2, variants, 2)
        visits = counts.sum(axis=-1)
        compared = (visits >= _LEAST).all(axis=2)
        share = counts[..., 1].astype(np.float64) / np.maximum(visits, 1)
        apart = np.abs(share[:, :, 1] - share[:, :, 0])
        found = np.maximum(found, np.where(compared, apart, -1.0).max(axis=1))
        through = _through(share[:, :, 1, 0], share[:, :, 0, 0], loss)
        left = np.maximum(left, np.where(compared[:, :, 0], through, -1.0).max(axis=1))
    return np.where(found >= 0, found, np.nan), np.where(left >= 0, left, np.nan)


def _through(p: Floats, q: Floats, loss: float) -> Floats:
    """Return L_K(loss) of kernels with the rows (1 - p, p) and (1 - q, q): `privacy.leakage` for two columns."""
    with np.errstate(divide="ignore"):
        either = [
            np.logaddexp(np.log(x), np.log1p(-x) - loss) - np.logaddexp(np.log(y), np.log1p(-y) - loss)
            for x, y in ((p, q), (1 - p, 1 - q))
        ]
    return np.asarray(np.abs(either).max(axis=0))
