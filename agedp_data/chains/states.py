"""Readings to states: cut points per household, and which side of a cut a reading falls on.

A household has k states and k - 1 inner cut points. State i holds the readings from cut i - 1 (included) up
to cut i (excluded): a reading that equals a cut belongs to the state above it. Cuts may coincide; the states
between them are never visited, which is how a household with few different readings is told apart from one
with many.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError

MISSING = -1


def edges_equal_width(maximum: float, n_states: int) -> NDArray[np.float64]:
    """Return the cuts of n equal intervals of [0, maximum]; what lies above the maximum is in the last state.

    Shapes: () -> (n_states - 1,). Units: those of `maximum` [Wh].

    Raises:
        ChainError: a maximum that is negative or not finite, or fewer than one state.

    >>> edges_equal_width(1200, 4).tolist()
    [300.0, 600.0, 900.0]
    """
    if not 0 <= maximum < np.inf:
        raise ChainError("the largest reading must be a number that is at least 0")
    return np.arange(1, _checked_count(n_states)) * float(maximum) / n_states


def edges_quantile(values: ArrayLike, counts: ArrayLike, n_states: int) -> NDArray[np.int64]:
    """Return cuts that spread the readings evenly over the states, as far as their values allow.

    Cut i is the smallest value below which there is a share of at least i/n of the readings, so that a value
    that more than one cut falls into ends a state of its own; the first of these cuts moves to the value
    itself, so that nothing smaller shares its state. Every value with a share of 2/n or more thus has its own
    state.

    Shapes: (v,), (v,) -> (n_states - 1,). Units: [Wh], [readings] -> [Wh].

    Args:
        values: the different readings, ascending and not negative.
        counts: how often each occurs.
        n_states: how many states.

    Raises:
        ChainError: no reading, values that do not ascend, negative values or counts, or fewer than one state.

    >>> edges_quantile([0, 10, 20, 30, 40], [60, 10, 10, 10, 10], 5).tolist()  # 0 is 60 %: alone in its state
    [10, 10, 10, 30]
    """
    value, count = np.asarray(values, dtype=np.int64), np.asarray(counts, dtype=np.int64)
    if value.ndim != 1 or value.shape != count.shape:
        raise ChainError("a histogram is one row of values and one of counts, equally long")
    if (np.diff(value) <= 0).any() or (value < 0).any() or (count < 0).any():
        raise ChainError("the values of a histogram must ascend, and neither values nor counts be negative")
    value, count = value[count > 0], count[count > 0]
    if not value.size:
        raise ChainError("a household without any reading has no quantiles")
    below = np.concatenate(([0], count.cumsum()))[: value.size]
    # Whole numbers: i/n of the readings lie below, without rounding.
    cut = np.searchsorted(below * n_states, np.arange(1, _checked_count(n_states)) * int(count.sum()))
    ends_own_state = (cut[1:] == cut[:-1]) & (np.concatenate(([-1], cut[:-2])) != cut[1:]) & (cut[1:] > 1)
    cut[:-1] -= ends_own_state
    return value[np.minimum(cut, value.size - 1)]


def states(values: ArrayLike, edges: ArrayLike) -> NDArray[np.int64]:
    """Return the state of each reading, -1 for a missing one (negative or NaN).

    Shapes: (...), (n_states - 1,) -> (...). Units: those of the edges -> [-].

    >>> states([0, 299, 300, 5000, -1], [300, 600]).tolist()
    [0, 0, 1, 2, -1]
    """
    value = np.asarray(values)
    state = np.searchsorted(np.asarray(edges), value, side="right").astype(np.int64)
    return np.where(value >= 0, state, MISSING)


def merge_rare(states: ArrayLike, *, n_states: int, min_visits: int) -> NDArray[np.int64]:
    """Return states with those visited less than `min_visits` times merged into the nearest frequent one.

    Of two at the same distance into the lower; without any frequent state into the most visited one. For exploratory
    figures: where a figure is promised a rare state counts as never forgotten instead (MATHS 2b). Shapes: (..., m)
    int -> (..., m); -1 (missing) stays.

    >>> merge_rare([0, 0, 1, 2, 3, 3, -1], n_states=4, min_visits=2).tolist()
    [0, 0, 0, 3, 3, 3, -1]
    """
    series = np.asarray(states, dtype=np.int64)
    flat = series.reshape(-1, series.shape[-1])
    merged = np.empty_like(flat)
    state = np.arange(_checked_count(n_states))
    for row, household_states in enumerate(flat):
        visits = np.bincount(household_states[household_states >= 0], minlength=n_states)
        frequent = np.flatnonzero(visits >= min(min_visits, visits.max()))
        nearest = frequent[np.abs(frequent - state[:, None]).argmin(axis=1)]
        merged[row] = np.where(household_states >= 0, nearest[household_states], MISSING)
    return merged.reshape(series.shape)


def mask_incomplete_days(readings: ArrayLike, *, slots: int, max_missing: int) -> NDArray[np.int64]:
    """Return readings with every day left out (-1) that lacks more than `max_missing` of its slots.

    Shapes: (..., days * slots) int, beginning with a day -> the same. Units: [Wh]; negative is missing.

    Raises:
        ChainError: readings that are no whole number of days.

    >>> mask_incomplete_days([1, 2, -1, -1, 3, -1], slots=2, max_missing=1).tolist()
    [1, 2, -1, -1, 3, -1]
    """
    by_day = _by_day(readings, slots)
    is_complete = (by_day < 0).sum(axis=-1, keepdims=True) <= max_missing
    return np.where(is_complete & (by_day >= 0), by_day, MISSING).reshape(np.shape(readings))


def daily_totals(readings: ArrayLike, *, slots: int, max_missing: int) -> NDArray[np.int64]:
    """Return each day's total, -1 for a day that lacks more than `max_missing` of its slots.

    Shapes: (..., days * slots) int -> (..., days). Units: [Wh]. Errors: as `mask_incomplete_days`.

    >>> daily_totals([1, 2, -1, -1, 3, -1], slots=2, max_missing=1).tolist()
    [3, -1, 3]
    """
    by_day = _by_day(readings, slots)
    is_complete = (by_day < 0).sum(axis=-1) <= max_missing
    return np.where(is_complete, np.where(by_day >= 0, by_day, 0).sum(axis=-1), MISSING)


def _by_day(readings: ArrayLike, slots: int) -> NDArray[np.int64]:
    series = np.asarray(readings, dtype=np.int64)
    if slots < 1 or series.ndim < 1 or series.shape[-1] % slots:
        raise ChainError(f"readings of whole days have a multiple of {slots} slots, got shape {series.shape}")
    return series.reshape(*series.shape[:-1], series.shape[-1] // slots, slots)


def _checked_count(n_states: int) -> int:
    if n_states < 1:
        raise ChainError(f"a chain has at least one state, asked for {n_states}")
    return n_states
