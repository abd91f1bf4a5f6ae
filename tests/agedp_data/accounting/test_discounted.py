"""Discounted losses, schedules and constants, against exact fractions, sums term by term, a solver and the paper."""

from __future__ import annotations

import itertools
import math
import re
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from agedp_data.accounting.discount_schedules import (
    METHODS,
    Exponential,
    Hyperbolic,
    Weights,
    certified_constant,
    discounted_loss,
    infinite_horizon_schedule,
    paper_constant,
    schedule,
)
from agedp_data.errors import ChainError

DISCOUNTS = [Exponential(0.5), Exponential(0.99), Hyperbolic(0.1), Hyperbolic(1), Hyperbolic(3), Hyperbolic(20)]


def exact_weights(discount, count):
    """The weights as fractions of the floats that define them."""
    if isinstance(discount, Exponential):
        return [Fraction(discount.alpha) ** j for j in range(count)]
    if isinstance(discount, Hyperbolic):
        return [1 / (1 + Fraction(discount.beta) * j) for j in range(count)]
    return [Fraction(float(weight)) for weight in discount.weights(count)]


def exact_sums(losses, discount):
    """The discounted sum at every t, term by term."""
    weights = exact_weights(discount, len(losses))
    spent = [Fraction(float(loss)) for loss in losses]
    return [sum(weights[t - k] * spent[k] for k in range(t + 1)) for t in range(len(spent))]


def available(discount, method):
    if method == "corollary-16":
        return isinstance(discount, Hyperbolic) and 1e-4 < discount.beta < 3.65
    return method != "paper" or isinstance(discount, Exponential | Hyperbolic)


class TestDiscountedLoss:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.floats(0, 50) | st.floats(0, 1e-9), min_size=1, max_size=12),
        st.builds(Exponential, st.floats(0.01, 1)) | st.builds(Hyperbolic, st.floats(0, 50)),
    )
    @example([5e-324, 0.0], Exponential(0.5))
    def test_it_is_the_sum_term_by_term_and_never_below_it(self, losses, discount):
        for found, exact in zip(discounted_loss(losses, discount), exact_sums(losses, discount), strict=True):
            assert Fraction(float(found)) >= exact
            assert float(found) <= float(exact) * (1 + 1e-12) + 2e-300

    @pytest.mark.parametrize("discount", [Exponential(0.999), Hyperbolic(0.01), Hyperbolic(2)])
    def test_a_long_series_is_never_below_the_truth_and_within_a_billionth(self, discount):
        losses = np.random.default_rng(3).exponential(0.1, 3000)
        found = discounted_loss(losses, discount)
        weights = [float(weight) for weight in discount.weights(3000)]
        for t in (0, 1, 255, 256, 1999, 2999):
            exact = math.fsum(weights[t - k] * losses[k] for k in range(t + 1))
            assert exact <= found[t] <= exact + 1e-9

    def test_a_stack_is_its_rows_one_by_one(self):
        losses = np.random.default_rng(4).random((2, 3, 700))
        for discount in (Exponential(0.9), Hyperbolic(1)):
            rows = discounted_loss(losses, discount)
            for place in itertools.product(range(2), range(3)):
                assert np.allclose(rows[place], discounted_loss(losses[place], discount), rtol=1e-12, atol=0)

    def test_seven_days_at_once_after_a_gap_come_to_1_18_by_the_day_of_publication(self):
        # .1 a day at alpha = .9 for ever comes to 1; after a week's silence seven times .1 are published at once
        known = discounted_loss([0.1] * 500, Exponential(0.9))[-1] * 0.9**7 + 7 * 0.1
        assert known == pytest.approx(1.178, abs=5e-4)

    @pytest.mark.parametrize("bad", [[-1.0], [math.nan], [math.inf], 1.0])
    def test_what_is_no_series_of_losses_is_refused(self, bad):
        with pytest.raises(ChainError):
            discounted_loss(bad, Exponential(0.5))

    def test_nothing_comes_to_nothing(self):
        assert discounted_loss([], Hyperbolic(1)).shape == (0,)
        assert discounted_loss(np.zeros(1000), Hyperbolic(1)).tolist() == [0] * 1000


class TestDiscounts:
    @pytest.mark.parametrize("make", [lambda: Exponential(0), lambda: Exponential(1.1), lambda: Exponential(math.nan),
                                      lambda: Hyperbolic(-1), lambda: Hyperbolic(math.inf), lambda: Weights([]),
                                      lambda: Weights([0, 0]), lambda: Weights([1, 2]), lambda: Weights([1, -1]),
                                      lambda: Weights([[1]]), lambda: Weights([1, 0.5]).weights(3)])  # fmt: skip
    def test_what_does_not_discount_is_refused(self, make):
        with pytest.raises(ChainError):
            make()

    @pytest.mark.parametrize("make", [lambda: Weights(["a"]), lambda: Weights([[1], [1, 2]]), lambda: Weights([1, 1j]),
                                      lambda: Hyperbolic("x"), lambda: Exponential(None),
                                      lambda: certified_constant("a"), lambda: paper_constant(None)])  # fmt: skip
    def test_what_is_no_number_is_refused_in_one_line(self, make):
        with pytest.raises(ChainError, match="number") as refused:
            make()
        assert "\n" not in str(refused.value)

    def test_a_coefficient_near_the_end_of_floats_discounts_all_but_the_newest(self):
        assert Hyperbolic(1e308).weights(4).tolist() == [1, 1e-308, 5e-309, 1e-308 / 3]
        assert schedule(Hyperbolic(1e308), epsilon=1, horizon=4, method="optimal") == pytest.approx([1.0] * 4)


class TestConstants:
    # S(t) in 30 digits at the t where it is largest; the list of t around it tried one by one
    @pytest.mark.parametrize(("beta", "printed"), [(0.01, 12.860), (0.1, 3.8916), (1, 1.2744)])
    def test_the_certified_constants_are_those_of_the_reference(self, beta, printed):
        assert certified_constant(beta) == pytest.approx(printed, abs=10 ** -(4 if beta > 0.01 else 3) / 2)

    @pytest.mark.parametrize("beta", [1 + math.sqrt(2), 2.5, 3, 3.66, 50, 1e6])
    def test_from_one_plus_the_root_of_two_on_the_constant_is_one(self, beta):
        assert certified_constant(beta) == 1.0

    @pytest.mark.parametrize("beta", [2.4, 1.0, 0.3, 0.05, 0.003])
    def test_the_constant_is_the_largest_of_all_sums_taken_term_by_term(self, beta):
        k = np.arange(1, 6 * max(30, round(3 / beta)))
        sums = [math.fsum(1 / ((1 + beta * (t - k[:t])) * np.sqrt(k[:t]))) for t in k]
        assert max(sums) <= certified_constant(beta) <= max(sums) * (1 + 1e-11)

    @pytest.mark.parametrize(
        "beta", [9.9e-5, *(pytest.param(beta, marks=pytest.mark.long) for beta in (1.2203e-5, 1e-6))]
    )
    def test_below_a_ten_thousandth_it_is_the_sum_at_the_worst_release(self, beta):
        def sum_at(t):
            k = np.arange(1.0, t + 1)
            return float((1 / ((1 + beta * (t - k)) * np.sqrt(k))).sum())

        low, high = round(1 / beta), round(4 / beta)
        while high - low > 1e-3 / beta:  # near its maximum the sum changes by a part of (t beta)^2
            left, right = low + (high - low) // 3, high - (high - low) // 3
            low, high = (left, high) if sum_at(left) < sum_at(right) else (low, right)
        largest = sum_at((low + high) // 2)
        assert largest * (1 - 1e-12) <= certified_constant(beta) <= largest * (1 + 1e-6)
        assert certified_constant(beta) <= max(largest, sum_at(low), sum_at(high)) * (1 + 1e-8)

    def test_the_two_ways_to_it_meet(self):
        assert certified_constant(1e-4 * (1 - 1e-12)) == pytest.approx(certified_constant(1e-4), rel=1e-9)

    @pytest.mark.parametrize("beta", [1e-300, 5e-324])
    def test_for_the_tiniest_coefficients_only_the_root_of_beta_counts(self, beta):
        # the largest value of 2 asinh(sqrt(y))/sqrt(beta (1 + y)), the integral alone, is at x tanh(x) = 1
        x = math.asinh(math.sqrt(2.27671753122807))
        assert certified_constant(beta) == pytest.approx(2 * x / math.cosh(x) / math.sqrt(beta), rel=1e-11)

    def test_far_outside_its_range_corollary_16_is_refused_as_well(self):
        for beta, says in ((1e300, "already at the first release"), (1e-300, r"at about release 2\.27672e\+300")):
            with pytest.raises(ChainError, match=says):
                paper_constant(beta)

    @pytest.mark.parametrize("beta", [3.653847577, 3.65384758, 3.6539, 1.22031e-5])
    def test_however_near_its_constant_is_to_what_is_needed_the_refusal_tells_them_apart(self, beta):
        numbers = r"constant (\S+) is too small, the discounted sum comes to (\S+) epsilon.*\((\S+)\) = (\S+)$"
        with pytest.raises(ChainError) as refused:
            paper_constant(beta)
        given, sums, asked, needed = map(float, re.search(numbers, str(refused.value)).groups())
        assert asked == beta
        assert given < needed
        assert sums > 1

    @pytest.mark.parametrize("beta", [0, -1, math.inf, math.nan])
    def test_without_discounting_there_is_no_constant(self, beta):
        with pytest.raises(ChainError, match="positive, finite"):
            certified_constant(beta)

    def test_where_corollary_16_is_wrong_its_constant_breaks_the_promise_and_is_refused(self):
        # MATHS 9: below S(1) = 1 for every beta above 3.653847577...; for tiny beta at about release 2.28/beta
        def paper(beta):
            return (
                2
                * (math.atanh(1 / math.sqrt(3)) + math.atanh(math.sqrt(beta / (1 + beta))))
                / math.sqrt(beta * (beta + 1))
            )

        k = np.arange(1.0, round(2.2767 / 1e-5) + 1)
        assert discounted_loss([1 / paper(3.66)], Hyperbolic(3.66))[0] > 1
        assert discounted_loss(1 / (paper(1e-5) * np.sqrt(k)), Hyperbolic(1e-5))[-1] > 1.0005
        with pytest.raises(ChainError, match=r"beta = 3\.66.*0\.99\d+ is too small.*already at the first release; use "
                                             r"certified_constant\(3\.66\) = 1$"):  # fmt: skip
            paper_constant(3.66)
        with pytest.raises(
            ChainError, match=r"too small, .* 1\.0006\d* epsilon, at about release 227672; use certified"
        ):
            paper_constant(1e-5)
        for fine in (1.2204e-5, 0.1, 3.653847):
            assert paper_constant(fine) == pytest.approx(paper(fine), rel=1e-12)
        for wrong in (3.6538476, 1.2202e-5):
            with pytest.raises(ChainError, match="too small"):
                schedule(Hyperbolic(wrong), epsilon=1, horizon=3, method="corollary-16")
            assert schedule(Hyperbolic(wrong), epsilon=1, horizon=3, method="paper").size == 3


class TestSchedules:
    # MATHS 10: T = 365, epsilon = 1, mean of 1/r; the paper's column is that of its own constant
    @pytest.mark.parametrize(
        ("discount", "paper", "renewal", "optimal"),
        [
            (Hyperbolic(0.1), 74.6, 34.2, 32.9),
            (Hyperbolic(1), 27.8, 5.86, 5.84),
            (Hyperbolic(3), 14.6, 2.76, 2.76),
            (Exponential(0.9), 10, 9.98, 9.90),
            (Exponential(0.99), 100, 99.7, 89.5),
            (Exponential(0.999), 1000, 997, 305),
        ],
    )
    def test_mean_noise_over_a_year_is_that_of_the_reference(self, discount, paper, renewal, optimal):
        def mean(method):
            return float((1 / schedule(discount, epsilon=1, horizon=365, method=method)).mean())

        assert mean("corollary-16" if isinstance(discount, Hyperbolic) else "paper") == pytest.approx(paper, rel=4e-3)
        assert mean("renewal") == pytest.approx(renewal, rel=3e-3)
        assert mean("optimal") == pytest.approx(optimal, rel=2e-3)
        assert mean("optimal") <= mean("renewal") < mean("paper")

    @settings(max_examples=50, deadline=None)
    @given(
        st.builds(Exponential, st.floats(0.05, 0.999)) | st.builds(Hyperbolic, st.floats(1e-3, 30)),
        st.floats(1e-6, 100),
        st.integers(1, 25),
        st.sampled_from(sorted(METHODS)),
    )
    def test_every_schedule_keeps_its_bound_at_every_release_in_exact_arithmetic(
        self, discount, epsilon, count, method
    ):
        if available(discount, method):
            losses = schedule(discount, epsilon=epsilon, horizon=count, method=method)
            assert (losses > 0).all()
            assert max(exact_sums(losses, discount)) <= Fraction(epsilon)

    @pytest.mark.parametrize("method", ["renewal", "optimal", "constant"])
    @pytest.mark.parametrize("discount", [Exponential(0.97), Hyperbolic(0.01), Hyperbolic(7)], ids=repr)
    def test_a_longer_one_does_not_exceed_its_bound_by_a_single_rounding(self, discount, method):
        losses, weights = schedule(discount, epsilon=1, horizon=3000, method=method), discount.weights(3000)
        for t in [*range(0, 3000, 7), 2999]:  # exact sums of products that are good to 1.1e-16 each
            assert math.fsum(weights[: t + 1][::-1] * losses[: t + 1]) <= 1

    # a sum of many nearly equal terms rounds otherwise once the terms are scaled
    @pytest.mark.parametrize(
        ("discount", "method"),
        [(Exponential(0.99999), "constant"), (Exponential(0.99999), "renewal"), (Exponential(0.999999), "constant")],
    )
    def test_discounted_loss_itself_finds_a_hundred_thousand_releases_kept(self, discount, method):
        losses = schedule(discount, epsilon=0.7, horizon=100_000, method=method)
        largest = discounted_loss(losses, discount).max()
        assert 0.7 * (1 - 1e-9) <= largest <= 0.7

    @settings(max_examples=40, deadline=None)
    @given(
        st.builds(Exponential, st.floats(0.05, 0.99)) | st.builds(Hyperbolic, st.floats(0.01, 30)), st.floats(0.01, 10)
    )
    def test_renewal_is_what_the_releases_before_have_left(self, discount, epsilon):
        weights, left = exact_weights(discount, 12), []
        for t in range(12):
            left.append(Fraction(epsilon) - sum(weights[t - k] * left[k] for k in range(t)))
        found = schedule(discount, epsilon=epsilon, horizon=12, method="renewal")
        assert found == pytest.approx([float(each) for each in left], rel=1e-9)

    def test_long_renewal_continues_the_short_one_and_meets_every_bound_with_equality(self):
        short, long = (schedule(Hyperbolic(0.5), epsilon=2, horizon=n, method="renewal") for n in (4096, 20_000))
        assert long[:4096] == pytest.approx(short, rel=1e-11)
        assert discounted_loss(long, Hyperbolic(0.5)) == pytest.approx(np.full(20_000, 2.0), abs=1e-9)

    @pytest.mark.parametrize("discount", [Exponential(1), Hyperbolic(0), Weights([1, 1, 1, 0])])
    def test_renewal_is_refused_where_the_second_release_would_get_nothing(self, discount):
        with pytest.raises(ChainError, match=r"a\(0\) > a\(1\)"):
            schedule(discount, epsilon=1, horizon=4, method="renewal")

    def test_closed_forms_counted_by_hand(self):
        assert schedule(Exponential(0.9), epsilon=2, horizon=4, method="classical") == pytest.approx([0.5] * 4)
        assert schedule(Exponential(0.5), epsilon=7, horizon=3, method="constant") == pytest.approx([4.0] * 3)
        assert schedule(Exponential(0.9), epsilon=2, horizon=2, method="paper") == pytest.approx([0.2] * 2)
        assert schedule(Hyperbolic(3), epsilon=1, horizon=4, method="paper")[3] == pytest.approx(0.5)
        assert schedule(Weights([2, 1]), epsilon=3, horizon=2, method="constant") == pytest.approx([1.0] * 2)
        assert infinite_horizon_schedule(Hyperbolic(1), epsilon=1, releases=2, method="classical")[1] == pytest.approx(
            1.5 / math.pi**2
        )
        assert infinite_horizon_schedule(Exponential(0.75), epsilon=1, releases=2, method="constant") == pytest.approx(
            [0.25] * 2
        )

    @pytest.mark.parametrize(
        "discount",
        [Exponential(0.3), Exponential(0.9), Exponential(0.99), Exponential(1), Hyperbolic(0), Hyperbolic(0.05),
         Hyperbolic(1), Hyperbolic(5), Weights([1] * 4 + [0] * 8), Weights([3, 2, 2, 2, 1, 1, 0.9, 0.5, 0.1, 0, 0, 0]),
         Weights([1] + [0.5] * 11)],
        ids=repr,
    )  # fmt: skip
    def test_the_optimum_is_the_one_that_a_general_solver_finds(self, discount):
        count = 12
        weights = [float(weight) for weight in exact_weights(discount, count)]
        matrix = np.array([[weights[t - k] if k <= t else 0.0 for k in range(count)] for t in range(count)])
        start = np.full(count, 0.9 / sum(weights))
        solved = minimize(
            lambda r: (1 / r).sum(),
            start,
            jac=lambda r: -1 / r**2,
            method="SLSQP",
            bounds=[(1e-4, None)] * count,
            constraints=LinearConstraint(matrix, -np.inf, 1.0),
            options={"ftol": 1e-14, "maxiter": 2000},
        )
        found = schedule(discount, epsilon=1, horizon=count, method="optimal")
        assert (1 / found).sum() == pytest.approx(solved.fun, rel=1e-6)
        assert (matrix @ found).max() <= 1 + 1e-12

    @pytest.mark.parametrize("method", sorted(METHODS))
    def test_a_larger_epsilon_only_scales(self, method):
        one, three = (schedule(Hyperbolic(0.4), epsilon=each, horizon=30, method=method) for each in (1, 3))
        assert three == pytest.approx(3 * one, rel=1e-12)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"method": "best"}, "known are"),
            ({"epsilon": 0}, "positive"),
            ({"epsilon": math.nan}, "positive"),
            ({"epsilon": "much"}, "number"),
            ({"horizon": 0}, "at least one"),
            ({"horizon": 3.5}, r"horizon = 3\.5: a whole number"),
            ({"horizon": None}, "whole number"),
            ({"epsilon": 5e-324}, "too small or too large"),
            ({"epsilon": 1e-300}, "too small or too large"),
            ({"method": "corollary-16"}, "hyperbolic"),
        ],
    )
    def test_what_is_no_schedule_is_refused(self, keys, message):
        with pytest.raises(ChainError, match=message):
            schedule(Exponential(0.5), **{"epsilon": 1, "horizon": 3, "method": "renewal", **keys})

    @pytest.mark.parametrize("method", ["constant", "optimal"])
    def test_without_an_end_some_schedules_do_not_exist(self, method):
        with pytest.raises(ChainError, match="name a horizon"):
            infinite_horizon_schedule(Hyperbolic(1), epsilon=1, releases=3, method=method)


def _long(discounts, count):
    for discount, method in itertools.product(discounts, sorted(METHODS)):
        if available(discount, method):
            begun = time.process_time()
            losses = schedule(discount, epsilon=1, horizon=count, method=method)
            seconds = time.process_time() - begun
            sums = discounted_loss(losses, discount)
            assert (losses > 0).all(), (discount, method)
            # the sums here are upper bounds that were scaled to 1: what they exceed it by is their own rounding
            assert sums.max() <= 1 + 1e-9, (discount, method)
            yield discount, method, seconds, float((1 / losses).mean())


def test_schedules_of_twenty_thousand_releases_keep_their_bound_at_every_one():
    assert len(list(_long([Exponential(0.99), Hyperbolic(1)], 20_000))) == 11


@pytest.mark.long
def test_schedules_of_a_hundred_thousand_releases_keep_their_bound_at_every_one():
    many = [*DISCOUNTS, Exponential(0.9999), Hyperbolic(1e-5), Hyperbolic(1e-3)]
    for discount, method, seconds, mean in _long(many, 100_000):
        print(f"{discount!r:28} {method:13} {seconds:6.2f} s, mean noise {mean:.6g}")
