"""Hidden regimes: brute force over all paths, closed forms, parameters recovered, and a likelihood that never falls."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.markov.memory_check import (
    HiddenRegimes,
    _reestimated,
    daily_residuals,
    fit_hidden_regimes,
    predicted_pairs,
    signed_memory,
)

LASTING = HiddenRegimes(
    np.array([0.6, 0.4]),
    np.array([[0.9, 0.1], [0.3, 0.7]]),
    np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.1, 0.3, 0.5]]),
    np.array(0.0),
)


def paths(series, model):
    """Yield every path of hidden regimes with its joint probability with the series."""
    k = len(model.initial)
    for path in product(range(k), repeat=len(series)):
        weight = model.initial[path[0]]
        for before, after in pairwise(path):
            weight *= model.transition[before, after]
        for regime, symbol in zip(path, series, strict=True):
            weight *= 1.0 if symbol < 0 else model.emission[regime, symbol]
        yield path, weight


def log_likelihood(series, model):
    """ln P of the symbols of one household, by the forward recursion of Rabiner's eqs. 19-21."""
    ahead, total = np.asarray(model.initial), 0.0
    for symbol in series:
        joint = ahead * (model.emission[:, symbol] if symbol >= 0 else 1.0)
        total += np.log(joint.sum())
        ahead = joint / joint.sum() @ model.transition
    return total


@pytest.mark.parametrize("series", [(0, 3, 2, 1, 0, 2), (1, -1, -1, 3, 2, 0), (2, 0), (-1, -1, 1)])
def test_the_likelihood_is_the_sum_over_all_hidden_paths(series):
    fit = fit_hidden_regimes(series, n_symbols=4, n_regimes=2)
    expected = sum(weight for _, weight in paths(series, fit))
    assert np.exp(fit.log_likelihood) == pytest.approx(expected, rel=1e-12)
    assert np.exp(log_likelihood(series, fit)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("series", [(0, 3, 2, 1, 0, 2), (1, -1, 0, 3, 2, 0)])
def test_a_reestimate_is_the_mean_over_all_hidden_paths(series):
    """Equations 40 of Rabiner by brute force: expected counts of steps and of symbols."""
    steps, shown, first = np.zeros((2, 2)), np.zeros((2, 4)), np.zeros(2)
    for path, weight in paths(series, LASTING):
        first[path[0]] += weight
        for pair in pairwise(path):
            steps[pair] += weight
        for regime, symbol in zip(path, series, strict=True):
            if symbol >= 0:
                shown[regime, symbol] += weight
    initial, transition, emission = _reestimated(
        np.array(series)[:, None],
        LASTING.initial[:, None],
        LASTING.transition[..., None],
        LASTING.emission.T[..., None],
    )
    assert initial[:, 0] == pytest.approx(first / first.sum(), rel=1e-12)
    assert transition[..., 0] == pytest.approx(steps / steps.sum(axis=1, keepdims=True), rel=1e-12)
    of_regime = emission[..., 0].T
    assert of_regime == pytest.approx(shown / shown.sum(axis=1, keepdims=True), rel=1e-12)


def test_the_joint_law_of_a_known_model_has_its_closed_form():
    """Two regimes: the powers of the kernel are pi + 0.6^lag (1 - pi); the stationary law is (3/4, 1/4)."""
    for lag, pairs in zip((1, 2, 9), predicted_pairs(LASTING, (1, 2, 9)), strict=True):
        law, memory = np.array([0.75, 0.25]), 0.6**lag
        power = (1 - memory) * np.tile(law, (2, 1)) + memory * np.eye(2)
        expected = sum(
            law[i] * power[i, j] * np.outer(LASTING.emission[j], LASTING.emission[i]) for i in (0, 1) for j in (0, 1)
        )
        np.testing.assert_allclose(pairs, expected, atol=1e-8)


def test_a_household_does_not_depend_on_its_batch():
    symbols = np.random.default_rng(1).integers(-1, 4, (5, 60))
    together, alone = (fit_hidden_regimes(each, n_symbols=4) for each in (symbols.reshape(5, 1, 60), symbols[3]))
    np.testing.assert_allclose(together.transition[3, 0], alone.transition, rtol=1e-9, atol=1e-15)


def test_signed_memory_is_counted_by_hand():
    table = [[1, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2, 1], [0, 0, 6, 4]]
    assert float(signed_memory(table)) == pytest.approx(13 / 20 - 14 / 20)
    assert np.isnan(signed_memory(table, min_pairs=21))
    assert np.isnan(signed_memory([[0, 0], [3, 1]]))
    with pytest.raises(ChainError, match="even number"):
        signed_memory(np.ones((3, 3)))
    with pytest.raises(ChainError, match="needs a regime"):
        fit_hidden_regimes([0, 1], n_symbols=2, iterations=0)


def test_season_scale_and_weekdays_leave_no_residual():
    rng = np.random.default_rng(2)
    season, weekday = 1 + rng.random(140), np.arange(140) % 7
    sizes = rng.uniform(1000, 5000, 7)
    total = np.rint(sizes[:, None] * season).astype(int)
    residual = daily_residuals(total, weekday)
    assert np.abs(residual).max() < 2e-3
    habit = np.where(weekday == 2, 900, 0)
    with_habit = np.vstack([total, np.rint(3000 * season) + habit])
    own = daily_residuals(with_habit, weekday)[-1]
    assert np.abs([own[weekday == day].mean() for day in range(7)]).max() < 1e-12
    with_habit[0, 5:9], with_habit[1] = -1, 0
    again = daily_residuals(with_habit, weekday)
    assert np.isnan(again[0, 5:9]).all()
    assert np.isnan(again[1]).all()
    assert not np.isnan(again[2:]).any()
