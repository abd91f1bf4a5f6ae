"""Lagged kernels, empirical mixing and calendar effects: against plain loops, and where the memory is known."""

from __future__ import annotations

from statistics import median_low

import numpy as np
import pytest

from agedp_data.leakage.function import leakage
from agedp_data.markov.calendar_effects import calendar_dependence, median_halves
from agedp_data.markov.empirical_mixing import empirical_total_variation
from agedp_data.markov.lagged_counts import count_lagged_pairs, lag_kernel
from agedp_data.markov.parametric_bootstrap import count_state_pairs, smallest_state_type


def by_loop(secret, read, lag, n_secret, n_read, used=lambda now, then: True):
    counts = np.zeros((n_secret, n_read))
    for i in range(lag, len(secret)):
        if secret[i] >= 0 and read[i - lag] >= 0 and used(i, i - lag):
            counts[secret[i], read[i - lag]] += 1
    return counts


def shares(counts):
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("lag", [0, 1, 5, 40, 60, 99])
def test_a_lag_kernel_is_that_of_a_plain_loop(lag):
    rng = np.random.default_rng(lag)
    secret, read, mark = rng.integers(-1, 3, 60), rng.integers(-1, 5, 60), rng.random(60) < 0.4
    kernel = lag_kernel(secret, read, lag, n_secret=3, n_read=5)
    np.testing.assert_allclose(kernel, shares(by_loop(secret, read, lag, 3, 5)))
    many = lag_kernel(np.stack([secret, secret[::-1]]), np.stack([read, read]), lag, n_secret=3, n_read=5)
    np.testing.assert_array_equal(many[0], kernel)
    marked = lag_kernel(secret, read, lag, n_secret=3, n_read=5, part=mark)  # a mark chooses the instants of the secret
    np.testing.assert_allclose(marked, shares(by_loop(secret, read, lag, 3, 5, used=lambda now, then: mark[now])))


@pytest.mark.parametrize(("k", "lag"), [(2, 0), (3, 1), (300, 2), (3, 60), (3, 90)])
def test_pairs_of_small_states_are_those_of_the_slow_count(k, lag):
    series = np.random.default_rng(k).integers(-1, k, (5, 60))
    small = np.where(series >= 0, series, k).astype(smallest_state_type(k))
    expected = [by_loop(row, row, lag, k, k) for row in series]
    np.testing.assert_array_equal(count_lagged_pairs(series, series, lag, n_secret=k, n_read=k), expected)
    np.testing.assert_array_equal(count_state_pairs(small, small, lag, k), expected)


def test_rows_without_visits_or_with_too_few_are_left_out():
    series = np.array([0, 0, 0, 1, 0, 0, 0, 0])
    assert empirical_total_variation(series, [1], n_states=3, by="direct")[0] == pytest.approx(1 - 5 / 6)
    assert empirical_total_variation(series, [1], n_states=3, by="direct", min_visits=2)[0] == 0
    nothing = np.full(8, -1)
    for by in ("direct", "powers"):
        assert np.isnan(empirical_total_variation(np.stack([series, nothing]), [1, 3], n_states=3, by=by)[1]).all()
    assert empirical_total_variation(np.zeros((2, 0), int), [1], n_states=2, by="direct").shape == (2, 1)
    assert np.isnan(empirical_total_variation([0, 1], [2], n_states=2, by="direct")[0])


LOSS = 0.7
LABEL = (np.arange(200) % 7 >= 5).astype(int) + 2 * (np.arange(200) >= 110)


def test_halves_are_cut_at_the_households_own_lower_median_in_each_slot_and_part():
    values = np.random.default_rng(1).integers(-1, 6, (3, 200, 2))
    values[0, :, 1] = 4  # the same all the time: nothing lies above its median
    halves = median_halves(values, LABEL)
    for (household, day, slot), value in np.ndenumerate(values):
        own = [v for v, label in zip(values[household, :, slot], LABEL, strict=True) if label == LABEL[day] and v >= 0]
        above = value > median_low(own) or (value == median_low(own) == max(own))
        assert halves[household, day, slot] == (-1 if value < 0 else above)


def plainly(secret, read, label, lag):
    """Largest total variation and loss over parts and slots, row by row."""
    tables = [
        by_loop(row, read, lag, 2, 2, used=lambda i, j, p=part: (label[i], label[j]) == p)
        for part in {(label[i], label[i - lag]) for i in range(lag, len(label))}
        for row in secret.T
    ]
    kernels = [shares(table) for table in tables if table.sum(axis=1).min() >= 20]
    if not kernels:
        return np.nan, np.nan
    return max(abs(k[0, 0] - k[1, 0]) for k in kernels), max(float(leakage(k, LOSS)) for k in kernels)


def test_calendar_dependence_is_that_of_plain_loops_and_of_the_primitive():
    rng, lags = np.random.default_rng(2), [1, 2, 7, 30, 250]
    secret, read = rng.integers(-1, 2, (4, 200, 3)), rng.integers(-1, 2, (4, 200))
    secret[3] = -1
    found = calendar_dependence(secret, read, LABEL, lags, rng, loss=LOSS, resamples=20)
    for household in range(4):
        for i, lag in enumerate(lags):
            expected = plainly(secret[household], read[household], LABEL.tolist(), lag)
            np.testing.assert_allclose((found.direct[household, i], found.loss_left[household, i]), expected, rtol=1e-9)
    assert (found.low <= found.high)[~np.isnan(found.low)].all()


def test_pooled_over_parts_nothing_is_seen_of_what_each_part_tells():
    # docs/goodness-of-fit.md: on one part of the days the total is copied, on the other flipped: pooled 0, truth 1.
    part = np.arange(400) // 2 % 2
    states = np.repeat(np.random.default_rng(5).integers(0, 2, 200), 2)
    states[1::2] ^= part[1::2]
    label = np.where(np.arange(400) % 2, 1 + part, 0)
    apart, pooled = (
        calendar_dependence(states[None, :, None], states[None], each, [1], np.random.default_rng(1), loss=1.0)
        for each in (label, np.zeros(400, int))
    )
    assert apart.direct.item() == 1.0
    assert apart.loss_left.item() == pytest.approx(1.0)
    assert pooled.direct.item() < 0.3


def test_labels_give_a_kernel_for_each_pair_of_parts():
    rng = np.random.default_rng(2)
    secret, read = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    label = np.arange(90) % 3 - (np.arange(90) == 50) * 5  # one instant belongs to no part
    kernels = lag_kernel(secret, read, 4, n_secret=2, n_read=2, part=np.maximum(label, -1))
    pairs = sorted({(label[i], label[i - 4]) for i in range(4, 90) if min(label[i], label[i - 4]) >= 0})
    for kernel, pair in zip(kernels, pairs, strict=True):
        expected = by_loop(secret, read, 4, 2, 2, used=lambda i, j, pair=pair: (label[i], label[j]) == pair)
        np.testing.assert_allclose(kernel, shares(expected))
