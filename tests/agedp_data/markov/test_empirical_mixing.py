"""Direct kernels by hand, powers by hand, and the check on households whose memory is known."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.empirical_mixing import empirical_total_variation
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit
from agedp_data.markov.lagged_counts import lag_kernel
from agedp_data.markov.states import daily_totals, mask_incomplete_days, merge_rare

LAGS = [1, 2, 7, 14, 28]


def chains_of_days(chain, days, homes, rng):
    below, state = np.cumsum(chain, axis=1), rng.integers(0, len(chain), homes)
    path = np.empty((days, homes), int)
    for i in range(days):
        path[i] = state
        state = (rng.random(homes)[:, None] >= below[state]).sum(axis=1)
    return path.T


def regimes(days, homes, rng, *, keep=0.9, shortest=30, longest=180):
    """High or low for 30 to 180 days; each day shows it with probability .9."""
    found = np.empty((homes, days), int)
    for row in found:
        at, regime = -int(rng.integers(0, longest)), int(rng.integers(0, 2))
        while at < days:
            end = at + int(rng.integers(shortest, longest + 1))
            row[max(at, 0) : max(end, 0)] = regime
            at, regime = end, 1 - regime
    return np.where(rng.random(found.shape) < keep, found, 1 - found)


def weekly(days, homes, rng, *, keep=0.85):
    weekend = np.arange(days) % 7 >= 5
    return np.where(rng.random((homes, days)) < keep, weekend, ~weekend).astype(int)


def by_loop(secret, read, lag, n_secret, n_read, used=lambda now, then: True):
    counts = np.zeros((n_secret, n_read))
    for i in range(lag, len(secret)):
        if secret[i] >= 0 and read[i - lag] >= 0 and used(i, i - lag):
            counts[secret[i], read[i - lag]] += 1
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("lag", [0, 1, 5, 40, 60, 99])
def test_a_lag_kernel_is_that_of_a_plain_loop(lag):
    rng = np.random.default_rng(lag)
    secret, read = rng.integers(-1, 3, 60), rng.integers(-1, 5, 60)
    found = lag_kernel(secret, read, lag, n_secret=3, n_read=5)
    np.testing.assert_allclose(found, by_loop(secret, read, lag, 3, 5))
    many = lag_kernel(np.stack([secret, secret[::-1]]), np.stack([read, read]), lag, n_secret=3, n_read=5)
    np.testing.assert_array_equal(many[0], found)


def test_a_mark_chooses_the_instants_of_the_secret():
    rng = np.random.default_rng(1)
    secret, read, mark = rng.integers(0, 2, 80), rng.integers(0, 3, 80), rng.random(80) < 0.4
    found = lag_kernel(secret, read, 3, n_secret=2, n_read=3, part=mark)
    np.testing.assert_allclose(found, by_loop(secret, read, 3, 2, 3, used=lambda now, then: mark[now]))


def test_labels_give_a_kernel_for_each_pair_of_parts():
    rng = np.random.default_rng(2)
    secret, read = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    label = np.arange(90) % 3 - (np.arange(90) == 50) * 5  # one instant belongs to no part
    found = lag_kernel(secret, read, 4, n_secret=2, n_read=2, part=np.maximum(label, -1))
    pairs = sorted({(label[i], label[i - 4]) for i in range(4, 90) if min(label[i], label[i - 4]) >= 0})
    assert found.shape == (len(pairs), 2, 2)
    for kernel, (now, then) in zip(found, pairs, strict=True):
        expected = by_loop(secret, read, 4, 2, 2, used=lambda i, j, n=now, t=then: label[i] == n and label[j] == t)
        np.testing.assert_allclose(kernel, expected)


def test_powers_forget_what_is_kept_for_weeks():
    rng = np.random.default_rng(6)
    series = weekly(3640, 4, rng)
    powers = empirical_total_variation(series, [1, 7], n_states=2, by="powers")
    direct = empirical_total_variation(series, [1, 7], n_states=2, by="direct")
    np.testing.assert_allclose(direct[:, 0], powers[:, 0], atol=1e-12)
    assert (direct[:, 1] > 0.25).all()
    assert (powers[:, 1] < 0.01).all()


def test_a_chain_is_remembered_as_long_counted_as_by_its_powers():
    chain = np.array([[0.9, 0.1], [0.3, 0.7]])
    series = chains_of_days(chain, 200_000, 1, np.random.default_rng(7))[0]
    truth = 0.6 ** np.array([1, 2, 5])
    np.testing.assert_allclose(empirical_total_variation(series, [1, 2, 5], n_states=2, by="powers"), truth, atol=0.01)
    np.testing.assert_allclose(empirical_total_variation(series, [1, 2, 5], n_states=2, by="direct"), truth, atol=0.015)


def test_rows_without_visits_or_with_too_few_are_left_out():
    series = np.array([0, 0, 0, 1, 0, 0, 0, 0])
    assert empirical_total_variation(series, [1], n_states=3, by="direct")[0] == pytest.approx(1 - 5 / 6)
    assert empirical_total_variation(series, [1], n_states=3, by="direct", min_visits=2)[0] == 0
    nothing = np.full(8, -1)
    for by in ("direct", "powers"):
        assert np.isnan(empirical_total_variation(np.stack([series, nothing]), [1, 3], n_states=3, by=by)[1]).all()
    assert empirical_total_variation(np.zeros((2, 0), int), [1], n_states=2, by="direct").shape == (2, 1)
    assert np.isnan(empirical_total_variation([0, 1], [2], n_states=2, by="direct")[0])


@pytest.mark.parametrize(
    "chain",
    [
        np.array([[0.8, 0.2], [0.4, 0.6]]),
        np.array([[0.7, 0.2, 0.1, 0.0], [0.2, 0.6, 0.1, 0.1], [0.0, 0.2, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6]]),
    ],
)
def test_households_that_are_chains_pass_at_the_stated_rate(chain):
    rng = np.random.default_rng(11)
    series = chains_of_days(chain, 365, 300, rng)
    series[:, 100:120] = -1
    found = markov_goodness_of_fit(series, LAGS, rng, n_states=len(chain), level=0.9, replicates=39)
    rejected = found.rejected.any(axis=1).mean()
    # 10 % of 300 with four standard deviations; the estimated chain is a little more extreme than the true one.
    assert rejected <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 300)
    assert not found.rejected[:, 0].any()


@pytest.mark.parametrize("kind", [weekly, regimes])
def test_households_with_a_habit_or_a_slow_regime_are_rejected(kind):
    rng = np.random.default_rng(12)
    found = markov_goodness_of_fit(kind(364, 60, rng), LAGS, rng, n_states=2, replicates=39)
    assert found.rejected.any(axis=1).mean() > 0.9
    assert (found.direct[found.rejected] > found.powers[found.rejected]).all()


def test_the_table_has_a_row_for_each_household_and_lag():
    rng = np.random.default_rng(13)
    series = chains_of_days(np.full((3, 3), 1 / 3), 200, 6, rng).reshape(2, 3, 200)
    found = markov_goodness_of_fit(series, [1, 7], rng, n_states=3, replicates=19)
    assert found.shape == (2, 3, 2)
    assert found.dtype.names == ("lag", "powers", "direct", "low", "high", "floor", "rejected")
    np.testing.assert_array_equal(found.lag[1, 2], [1, 7])
    np.testing.assert_array_equal(found["direct"], empirical_total_variation(series, [1, 7], n_states=3, by="direct"))
    np.testing.assert_array_equal(found.powers, empirical_total_variation(series, [1, 7], n_states=3, by="powers"))
    assert (found.low <= found.high).all()
    # Nothing is remembered: what is counted is the floor.
    assert found.floor.mean() == pytest.approx(found.direct.mean(), abs=0.06)


def test_households_without_readings_are_neither_counted_nor_rejected():
    series = np.full((3, 100), -1)
    series[1, ::9] = 0  # never two in a row
    series[2] = 1
    found = markov_goodness_of_fit(series, [1, 9], np.random.default_rng(0), n_states=2, replicates=19)
    assert np.isnan(found.direct[0]).all()
    assert np.isnan(found.powers[1]).all()
    assert found.direct[1].tolist()[1] == 0
    np.testing.assert_array_equal(found.powers[2], [0, 0])
    assert not found.rejected.any()


def test_the_same_seed_gives_the_same_verdict():
    series = regimes(200, 3, np.random.default_rng(1))
    tables = [
        markov_goodness_of_fit(series, [1, 7], np.random.default_rng(5), n_states=2, replicates=19) for _ in range(2)
    ]
    for name in tables[0].dtype.names:
        np.testing.assert_array_equal(tables[0][name], tables[1][name])


def test_rare_states_go_to_the_nearest_frequent_one():
    series = np.repeat([0, 1, 2, 3, 4], [9, 2, 1, 2, 9])
    assert merge_rare(series, n_states=5, min_visits=5).tolist() == [0] * 12 + [4] * 11  # 2 is as near to 0 as to 4
    assert merge_rare([2, 2, -1, 0], n_states=3, min_visits=99).tolist() == [2, 2, -1, 2]
    assert merge_rare([[-1, -1]], n_states=3, min_visits=5).tolist() == [[-1, -1]]


def test_days_with_too_many_readings_missing_are_left_out():
    days = [[1, 2, 3], [-1, -1, 5], [-1, 4, 4]]
    assert mask_incomplete_days(np.ravel(days), slots=3, max_missing=1).tolist() == [1, 2, 3, -1, -1, -1, -1, 4, 4]
    assert daily_totals(np.ravel(days), slots=3, max_missing=1).tolist() == [6, -1, 8]


def test_the_floor_is_what_a_series_says_of_a_shifted_copy_not_of_itself():
    rng = np.random.default_rng(14)
    series = chains_of_days(np.array([[0.9, 0.1], [0.1, 0.9]]), 730, 40, rng)
    found = markov_goodness_of_fit(series, [1, 3], rng, n_states=2, replicates=19)
    np.testing.assert_allclose(np.median(found.direct, axis=0), [0.8, 0.8**3], atol=0.08)
    assert (np.median(found.floor, axis=0) < 0.2).all()
