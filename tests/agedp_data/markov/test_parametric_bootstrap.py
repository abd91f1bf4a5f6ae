"""Series drawn anew: they follow the household's own chain, and pairs are counted as a plain loop counts them."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.lagged_counts import count_lagged_pairs
from agedp_data.markov.parametric_bootstrap import count_state_pairs, simulate_replicates, smallest_state_type


@pytest.mark.parametrize(("k", "lag"), [(2, 0), (3, 1), (12, 5), (300, 2), (3, 60), (3, 90)])
def test_pairs_are_those_of_the_slow_count(k, lag):
    series = np.random.default_rng(k).integers(-1, k, (5, 60))
    small = np.where(series >= 0, series, k).astype(smallest_state_type(k))
    np.testing.assert_array_equal(
        count_state_pairs(small, small, lag, k), count_lagged_pairs(series, series, lag, n_secret=k, n_read=k)
    )


def test_what_is_drawn_follows_the_estimated_chain_and_misses_what_is_missing():
    rng = np.random.default_rng(2)
    series = np.repeat(rng.integers(0, 3, (2, 400)), 3, axis=1)
    series[1] = np.where(rng.random(1200) < 0.3, 0, series[1])
    series[:, 50:70] = -1
    drawn = simulate_replicates(series, 3, 400, rng)
    assert drawn.shape == (2, 400, 1200)
    assert (drawn[:, :, 50:70] == 3).all()
    assert (drawn[:, :, :50] < 3).all()
    for one, like in zip(series, drawn, strict=True):
        now, then = one[1:], one[:-1]
        kept = (now >= 0) & (then >= 0)
        own = np.array([[((then == x) & (now == y) & kept).sum() for y in range(3)] for x in range(3)])
        expected = own / own.sum(axis=1, keepdims=True)
        counts = count_state_pairs(like, like, 1, 3).sum(axis=0).T
        visits = counts.sum(axis=1, keepdims=True)
        # Each cell within five standard deviations of the household's own share.
        assert (np.abs(counts / visits - expected) < 5 * np.sqrt(0.25 / visits)).all()


def test_a_state_that_is_never_left_is_not_drawn_and_a_household_without_a_chain_is_missing():
    series = np.array([[0, 1, 0, 0, 1, 0, 0, 2], [-1, 0, -1, 1, -1, 0, -1, 1]])
    drawn = simulate_replicates(series, 3, 50, np.random.default_rng(0))
    assert set(np.unique(drawn[0])) == {0, 1}
    assert (drawn[1] == 3).all()
