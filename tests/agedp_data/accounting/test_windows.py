"""Budgets of sustained release: every window kept in exact arithmetic, the offline plan against a general solver."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from agedp_data.accounting.delta_neighbourhood import window_budgets
from agedp_data.accounting.windows import METHODS, window_losses
from agedp_data.errors import ChainError

TIMES = (
    st.lists(st.integers(0, 40), min_size=1, max_size=25) | st.lists(st.floats(0, 4, width=16), min_size=1, max_size=25)
).map(sorted)
WINDOWS = st.integers(1, 15) | st.floats(0.01, 15) | st.just(0.1)


def exactly(number):
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def in_window(times, losses, start, window):
    """The exact sum of losses in [start, start + window)."""
    first, length = exactly(start), exactly(window)
    return sum(Fraction(float(r)) for t, r in zip(times, losses, strict=True) if first <= exactly(t) < first + length)


def matrix_of(times, window):
    """A row for the window that begins with each time."""
    return np.array([[float(start <= t < start + window) for t in times] for start in times])


@settings(max_examples=80)
@given(TIMES, WINDOWS, st.floats(1e-6, 100), st.sampled_from(METHODS), st.floats(0.001, 0.999999), st.floats(-16, 41))
def test_at_every_instant_the_window_spends_at_most_epsilon(times, window, epsilon, method, fraction, instant):
    keys = {"fraction": fraction} if method == "fraction" else {}
    losses = window_budgets(times, window=window, epsilon=epsilon, method=method, **keys)
    assert losses.shape == (len(times),)
    assert (losses >= 0).all()
    for start in (*times, instant):
        assert in_window(times, losses, start, window) <= Fraction(epsilon)


@settings(max_examples=40)
@given(TIMES, WINDOWS, st.data())
def test_online_budgets_do_not_depend_on_what_comes_later(times, window, data):
    known = data.draw(st.integers(1, len(times)))
    for keys in ({"method": "fraction", "fraction": 0.3}, {"method": "per-request", "requests": 25}):
        whole, part = (window_budgets(t, window=window, epsilon=2.0, **keys) for t in (times, times[:known]))
        assert whole[:known].tolist() == part.tolist()


def test_a_fraction_of_what_is_left_counted_by_hand():
    losses = window_budgets([0, 1, 6, 7, 8], window=7, epsilon=1, method="fraction", fraction=0.5)
    assert losses.tolist() == [0.5, 0.25, 0.125, 0.3125, 0.28125]  # 7: 1 and 6 are still within; 8: 6 and 7
    many = window_budgets(np.zeros(2000), window=1, epsilon=1.0, method="fraction", fraction=0.2)
    assert (many[:150] > 0).all()
    assert sum(Fraction(float(loss)) for loss in many) <= 1


def test_a_part_for_each_request_is_epsilon_over_the_most_that_a_window_has():
    assert window_budgets(range(30), window=7, epsilon=1, method="per-request") == pytest.approx(np.full(30, 1 / 7))
    for m in range(1, 50):
        part = window_budgets([0], window=1, epsilon=0.3, method="per-request", requests=m)[0]
        assert Fraction(part) * m <= Fraction(0.3) < Fraction(math.nextafter(part, 1)) * m


def test_a_week_of_days_is_any_seven_and_the_eighth_is_outside():
    assert window_losses(range(9), np.ones(9), window=7).tolist() == [1, 2, 3, 4, 5, 6, 7, 7, 7]
    # in binary .3 - 0 < .1 + .1 + .1
    assert window_losses([0.0, 0.1, 0.2, 0.3], np.ones(4), window=0.3).tolist() == [1, 2, 3, 3]


@settings(max_examples=60)
@given(TIMES, WINDOWS, st.data())
def test_losses_of_windows_are_the_exact_sums_rounded_up(times, window, data):
    losses = data.draw(st.lists(st.floats(0, 50), min_size=len(times), max_size=len(times)))
    for t, value in zip(times, window_losses(times, losses, window=window), strict=True):
        first = exactly(t) - exactly(window)
        exact = sum(
            Fraction(r) for s, r in zip(times, losses, strict=True) if first < exactly(s) and exactly(s) <= exactly(t)
        )
        assert Fraction(math.nextafter(value, -1)) < exact <= Fraction(float(value)) or exact == value == 0


RNG = np.random.default_rng(11)


@pytest.mark.parametrize(
    ("times", "window", "weights"),
    [
        (np.arange(12), 3, RNG.random(12) + 0.1),
        (np.sort(RNG.integers(0, 9, 11)), 4, RNG.random(11) + 0.1),
        *((np.sort(RNG.random(12) * 10), float(RNG.random() * 5), np.exp(RNG.normal(size=12))) for _ in range(3)),
    ],
)
def test_it_is_the_optimum_that_a_general_solver_finds(times, window, weights):
    matrix = matrix_of(times, window)
    solved = minimize(
        lambda r: (weights / r).sum(),
        np.full(times.size, 0.9 / matrix.sum(axis=1).max()),
        jac=lambda r: -weights / r**2,
        method="SLSQP",
        bounds=[(1e-4, None)] * times.size,
        constraints=LinearConstraint(matrix, -np.inf, 1.0),
        options={"ftol": 1e-15, "maxiter": 5000},
    )
    losses = window_budgets(times, window=window, epsilon=1.0, method="offline", weights=weights)
    assert (matrix @ losses).max() <= 1 + 1e-12
    assert (weights / losses).sum() == pytest.approx(solved.fun, rel=1e-6)
    np.testing.assert_allclose(losses, solved.x, rtol=2e-3)


@pytest.mark.parametrize(
    ("times", "window", "keys", "expected"),
    [
        (range(14), 2, {"epsilon": 0.7}, [0.35] * 14),  # sum of 1/r >= T^2/(windows epsilon) for disjoint ones
        (range(360), 30, {"epsilon": 0.7}, [0.7 / 30] * 360),
        # 2/a + (w - 1)/b with a + (w - 1) b = 1: a = sqrt(2) b
        (range(4), 3, {}, np.array([math.sqrt(2), 1, 1, math.sqrt(2)]) / (math.sqrt(2) + 2)),
        ([0, 1, 2], 9, {"epsilon": 6.0, "weights": [1, 4, 9]}, [1.0, 2.0, 3.0]),  # within one window: roots of weights
        ([0, 7, 14], 7, {"epsilon": 2.0}, [2.0] * 3),
        ([], 1, {}, []),
    ],
)
def test_offline_plans_have_their_closed_forms(times, window, keys, expected):
    losses = window_budgets(times, window=window, method="offline", **{"epsilon": 1.0, **keys})
    assert losses == pytest.approx(np.array(expected), rel=1e-5)


@settings(max_examples=25)
@given(TIMES, st.integers(1, 15), st.floats(0.01, 0.9))
def test_it_has_no_more_noise_than_either_online_rule(times, window, fraction):
    least = (1 / window_budgets(times, window=window, epsilon=1.0, method="offline")).sum()
    for keys in ({"method": "fraction", "fraction": fraction}, {"method": "per-request"}):
        with np.errstate(divide="ignore"):
            assert least <= (1 / window_budgets(times, window=window, epsilon=1.0, **keys)).sum() * (1 + 1e-8)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"method": "best"}, "known are offline, fraction, per-request"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"window": 0}, "window = 0"),
        ({"times": [2, 1]}, "does not decrease"),
        ({"method": "fraction", "fraction": 1}, "fraction = 1"),
        ({"method": "fraction", "weights": [1, 1]}, 'by method = "offline" only'),
        ({"method": "per-request", "requests": 1}, "has 2 requests and at most 1"),
        ({"weights": [1, 0]}, "weight above 0"),
        ({"weights": [1e-300, 1e300]}, "take nearer weights"),
    ],
)
def test_what_is_no_plan_is_refused(keys, message):
    with pytest.raises(ChainError, match=message):
        window_budgets(**{"times": [0, 1], "window": 7, "epsilon": 1.0, "method": "offline", **keys})
