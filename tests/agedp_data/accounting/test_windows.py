"""Budgets of sustained release: every window kept in exact arithmetic, the offline plan against a general solver."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize, nnls

from agedp_data.accounting.delta_neighbourhood import window_budgets
from agedp_data.accounting.windows import METHODS, window_losses
from agedp_data.errors import ChainError

EPSILONS = st.floats(1e-6, 100)
TIMES = (
    st.lists(st.integers(0, 40), min_size=1, max_size=25)
    | st.lists(st.floats(0, 40, allow_nan=False), min_size=1, max_size=25)
    | st.lists(st.floats(0, 4, width=16), min_size=1, max_size=25)
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


def noise(losses, weights=1.0):
    return float(np.sum(weights / np.asarray(losses)))


class TestEveryWindow:
    @settings(max_examples=150, deadline=None)
    @given(TIMES, WINDOWS, EPSILONS, st.sampled_from(METHODS), st.floats(0.001, 0.999999), st.floats(-16, 41))
    def test_at_every_instant_the_window_spends_at_most_epsilon(
        self, times, window, epsilon, method, fraction, instant
    ):
        keys = {"fraction": fraction} if method == "fraction" else {}
        losses = window_budgets(times, window=window, epsilon=epsilon, method=method, **keys)
        assert losses.shape == (len(times),)
        assert (losses >= 0).all()
        for start in (*times, instant):
            assert in_window(times, losses, start, window) <= Fraction(epsilon)

    @settings(max_examples=100, deadline=None)
    @given(TIMES, WINDOWS, st.data())
    def test_online_budgets_do_not_depend_on_what_comes_later(self, times, window, data):
        known = data.draw(st.integers(1, len(times)))
        for keys in ({"method": "fraction", "fraction": 0.3}, {"method": "per-request", "requests": 25}):
            whole, part = (window_budgets(t, window=window, epsilon=2.0, **keys) for t in (times, times[:known]))
            assert whole[:known].tolist() == part.tolist()

    def test_a_fraction_of_what_is_left_counted_by_hand(self):
        found = window_budgets([0, 1, 6, 7, 8], window=7, epsilon=1, method="fraction", fraction=0.5)
        # 7: 1 and 6 are still within; 8: 6 and 7
        assert found.tolist() == [0.5, 0.25, 0.125, 0.3125, 0.28125]

    def test_a_request_that_finds_little_still_gets_something_and_many_never_more_than_epsilon(self):
        losses = window_budgets(np.zeros(2000), window=1, epsilon=1.0, method="fraction", fraction=0.2)
        assert (losses[:150] > 0).all()
        assert sum(Fraction(float(loss)) for loss in losses) <= 1

    def test_a_part_for_each_request_is_epsilon_over_the_most_that_a_window_has(self):
        assert window_budgets(range(30), window=7, epsilon=1, method="per-request") == pytest.approx(np.full(30, 1 / 7))
        assert window_budgets([0, 5], window=7, epsilon=1, method="per-request", requests=7)[0] == pytest.approx(1 / 7)
        for m in range(1, 50):
            part = window_budgets([0], window=1, epsilon=0.3, method="per-request", requests=m)[0]
            assert Fraction(part) * m <= Fraction(0.3) < Fraction(math.nextafter(part, 1)) * m

    def test_a_week_of_days_is_any_seven_and_the_eighth_is_outside(self):
        assert window_losses(range(9), np.ones(9), window=7).tolist() == [1, 2, 3, 4, 5, 6, 7, 7, 7]

    @settings(max_examples=100, deadline=None)
    @given(TIMES, WINDOWS, st.data())
    def test_losses_of_windows_are_the_exact_sums_rounded_up(self, times, window, data):
        losses = data.draw(st.lists(st.floats(0, 50), min_size=len(times), max_size=len(times)))
        found, length = window_losses(times, losses, window=window), exactly(window)
        for t, value in zip(times, found, strict=True):
            exact = sum(
                Fraction(r)
                for s, r in zip(times, losses, strict=True)
                if exactly(t) - length < exactly(s) <= exactly(t)
            )
            assert Fraction(math.nextafter(value, -1)) < exact <= Fraction(float(value)) or exact == value == 0

    def test_a_window_of_three_tenths_does_not_hold_four_tenths_apart(self):
        # in binary .3 - 0 < .1 + .1 + .1
        assert window_losses([0.0, 0.1, 0.2, 0.3], np.ones(4), window=0.3).tolist() == [1, 2, 3, 3]


def cases():
    rng = np.random.default_rng(11)
    yield np.arange(10), 7, None
    yield np.arange(12), 3, rng.random(12) + 0.1
    yield np.sort(rng.integers(0, 9, 11)), 4, rng.random(11) + 0.1
    for _ in range(6):
        yield np.sort(rng.random(12) * 10), float(rng.random() * 5), np.exp(rng.normal(size=12))


class TestOffline:
    @pytest.mark.parametrize(("times", "window", "weights"), list(cases()))
    def test_it_is_the_optimum_that_a_general_solver_finds(self, times, window, weights):
        w = np.ones(times.size) if weights is None else weights
        matrix = matrix_of(times, window)
        start = np.full(times.size, 0.9 / matrix.sum(axis=1).max())
        solved = minimize(
            lambda r: (w / r).sum(),
            start,
            jac=lambda r: -w / r**2,
            method="SLSQP",
            bounds=[(1e-4, None)] * times.size,
            constraints=LinearConstraint(matrix, -np.inf, 1.0),
            options={"ftol": 1e-15, "maxiter": 5000},
        )
        found = window_budgets(times, window=window, epsilon=1.0, method="offline", weights=weights)
        assert (matrix @ found).max() <= 1 + 1e-12
        assert noise(found, w) == pytest.approx(solved.fun, rel=1e-6)
        np.testing.assert_allclose(found, solved.x, rtol=2e-3)

    @pytest.mark.parametrize(("count", "window", "daily"), [(200, 7, True), (150, 30, True), (200, 1.0, False)])
    def test_of_longer_series_multipliers_prove_that_nothing_is_better_by_a_millionth(self, count, window, daily):
        # For any lambda >= 0 no feasible r has less than (sum of sqrt(w (A' lambda)))^2 / (sum of lambda).
        rng = np.random.default_rng(count)
        times = np.arange(count) if daily else np.sort(rng.random(count) * 20)
        weights = np.ones(count) if daily else np.exp(rng.normal(size=count))
        found = window_budgets(times, window=window, epsilon=1.0, method="offline", weights=weights)
        matrix = matrix_of(times, window)
        tight = matrix[(matrix @ found) > 1 - 1e-6]
        target = weights / found**2
        multipliers, _ = nnls((tight / target).T, np.ones(count))
        bound = np.sqrt(weights * np.maximum(tight.T @ multipliers, 0)).sum() ** 2 / multipliers.sum()
        assert bound <= noise(found, weights) * (1 + 1e-9)
        assert noise(found, weights) <= bound * (1 + 1e-6)

    @pytest.mark.parametrize(("window", "windows"), [(1, 5), (2, 7), (7, 52), (30, 12)])
    def test_whole_windows_of_days_are_spent_evenly(self, window, windows):
        # Disjoint windows alone give sum of 1/r >= T^2/(windows epsilon), which the constant reaches.
        found = window_budgets(range(window * windows), window=window, epsilon=0.7, method="offline")
        assert found == pytest.approx(np.full(window * windows, 0.7 / window), rel=1e-5)

    @pytest.mark.parametrize("days", [2, 3, 8, 31])
    def test_one_day_more_than_a_window_spends_a_root_of_two_more_on_both_ends(self, days):
        # 2/a + (w - 1)/b with a + (w - 1) b = 1: a = sqrt(2) b
        found = window_budgets(range(days), window=days - 1, epsilon=1.0, method="offline")
        b = 1 / (math.sqrt(2) + days - 2)
        assert found[[0, -1]] == pytest.approx([math.sqrt(2) * b] * 2, rel=1e-6)
        assert found[1:-1] == pytest.approx(np.full(days - 2, b), rel=1e-6)

    def test_within_one_window_losses_are_as_the_roots_of_the_weights(self):
        found = window_budgets([0, 1, 2], window=9, epsilon=6.0, method="offline", weights=[1, 4, 9])
        assert found == pytest.approx([1.0, 2.0, 3.0], rel=1e-6)

    def test_checkpoints_further_apart_than_a_window_have_epsilon_each(self):
        assert window_budgets([0, 7, 14], window=7, epsilon=2.0, method="offline") == pytest.approx([2.0] * 3)

    @settings(max_examples=60, deadline=None)
    @given(TIMES, st.integers(1, 15), st.floats(0.01, 0.9))
    def test_it_has_no_more_noise_than_either_online_rule(self, times, window, fraction):
        least = noise(window_budgets(times, window=window, epsilon=1.0, method="offline"))
        fractions = window_budgets(times, window=window, epsilon=1.0, method="fraction", fraction=fraction)
        even = window_budgets(times, window=window, epsilon=1.0, method="per-request")
        with np.errstate(divide="ignore"):
            assert least <= min(noise(fractions), noise(even)) * (1 + 1e-8)

    @settings(max_examples=40, deadline=None)
    @given(TIMES, st.integers(1, 15), st.floats(1e-3, 1e3), st.floats(1e-6, 1e6))
    def test_epsilon_only_scales_and_the_unit_of_weights_does_not_matter(self, times, window, epsilon, unit):
        one = window_budgets(times, window=window, epsilon=1.0, method="offline")
        other = window_budgets(
            times, window=window, epsilon=epsilon, method="offline", weights=np.full(len(times), unit)
        )
        assert other == pytest.approx(epsilon * one, rel=1e-9)

    def test_weights_a_billion_apart_are_planned(self):
        rng = np.random.default_rng(4)
        times, weights = np.sort(rng.random(40) * 10), 10 ** rng.uniform(-4.5, 4.5, 40)
        found = window_budgets(times, window=1.0, epsilon=1.0, method="offline", weights=weights)
        assert (matrix_of(times, 1.0) @ found).max() <= 1
        assert noise(found, weights) < noise(window_budgets(times, window=1.0, epsilon=1.0, method="offline"), weights)

    @pytest.mark.parametrize("method", METHODS)
    def test_no_rounding_exceeds_epsilon_by_the_last_bit(self, method):
        rng = np.random.default_rng(8)
        for epsilon in rng.random(60):
            keys = {"offline": {"weights": rng.random(9) + 0.01}, "fraction": {"fraction": 1 - 2**-53}}.get(method, {})
            losses = window_budgets(range(9), window=4, epsilon=epsilon, method=method, **keys)
            assert max(in_window(range(9), losses, start, 4) for start in range(9)) <= Fraction(epsilon)

    def test_nothing_to_plan_is_nothing(self):
        for method in METHODS:
            assert window_budgets([], window=1, epsilon=1.0, method=method).shape == (0,)

    @pytest.mark.long
    def test_twenty_thousand_checkpoints_are_planned_in_seconds(self):
        rng = np.random.default_rng(6)
        for times, window in ((np.arange(3650), 365), (np.sort(rng.random(20_000) * 1000), 1)):
            begun = time.process_time()
            losses = window_budgets(times, window=window, epsilon=1.0, method="offline")
            print(f"{times.size} checkpoints: {time.process_time() - begun:.2f} s, noise {noise(losses):.6g}")
            assert window_losses(times, losses, window=window).max() <= 1


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"method": "best"}, "known are offline, fraction, per-request"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"window": 0}, "window = 0"),
        ({"window": -1}, "window = -1"),
        ({"window": math.nan}, "finite"),
        ({"times": [2, 1]}, "does not decrease"),
        ({"times": [[1, 2]]}, "a list"),
        ({"times": [0, math.inf]}, "finite"),
        ({"method": "fraction", "fraction": 1}, "fraction = 1"),
        ({"method": "fraction", "fraction": 0}, "fraction = 0"),
        ({"method": "fraction", "weights": [1, 1]}, 'by method = "offline" only'),
        ({"method": "per-request", "requests": 1}, "has 2 requests and at most 1"),
        ({"method": "per-request", "requests": 0}, "requests = 0"),
        ({"weights": [1, 0]}, "weight above 0"),
        ({"weights": [1]}, "weight above 0"),
        ({"weights": [1, math.nan]}, "weight above 0"),
        ({"weights": [1e-300, 1e300]}, "take nearer weights"),
    ],
)
def test_what_is_no_plan_is_refused(keys, message):
    with pytest.raises(ChainError, match=message):
        window_budgets(**{"times": [0, 1], "window": 7, "epsilon": 1.0, "method": "offline", **keys})


def test_losses_that_do_not_fit_their_times_are_refused():
    for losses in ([1.0], [1.0, -1.0], [1.0, math.inf]):
        with pytest.raises(ChainError):
            window_losses([0, 1], losses, window=1)
