"""Lagged kernels against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.memory_check import count_state_pairs, smallest_state_type
from agedp_data.markov.transitions import count_lagged_pairs, lag_kernel


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


def test_labels_give_a_kernel_for_each_pair_of_parts():
    rng = np.random.default_rng(2)
    secret, read = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    label = np.arange(90) % 3 - (np.arange(90) == 50) * 5  # one instant belongs to no part
    kernels = lag_kernel(secret, read, 4, n_secret=2, n_read=2, part=np.maximum(label, -1))
    pairs = sorted({(label[i], label[i - 4]) for i in range(4, 90) if min(label[i], label[i - 4]) >= 0})
    for kernel, pair in zip(kernels, pairs, strict=True):
        expected = by_loop(secret, read, 4, 2, 2, used=lambda i, j, pair=pair: (label[i], label[j]) == pair)
        np.testing.assert_allclose(kernel, shares(expected))
