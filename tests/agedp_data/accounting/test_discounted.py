"""Discounted losses, schedules and constants, against exact fractions, sums term by term, a solver and the paper."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize, nnls

from agedp_data.accounting.discount_optimiser import least_noise
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


def exact_weights(discount, count):
    """The weights as fractions of the floats that define them."""
    if isinstance(discount, Exponential):
        return [Fraction(discount.alpha) ** j for j in range(count)]
    if isinstance(discount, Hyperbolic):
        return [1 / (1 + Fraction(discount.beta) * j) for j in range(count)]
    return [Fraction(float(weight)) for weight in discount.weights(count)]


def exact_sums(losses, discount):
    """The discounted sum at every t, term by term."""
    weights, spent = exact_weights(discount, len(losses)), [Fraction(float(loss)) for loss in losses]
    return [sum(weights[t - k] * spent[k] for k in range(t + 1)) for t in range(len(spent))]


def make(discount, method, **keys):
    return schedule(discount, **{"epsilon": 1, "horizon": 3, "method": method, **keys})


@settings(max_examples=50)
@given(
    st.lists(st.floats(0, 50) | st.floats(0, 1e-9), min_size=1, max_size=12),
    st.builds(Exponential, st.floats(0.01, 1)) | st.builds(Hyperbolic, st.floats(0, 50)),
)
@example([5e-324, 0.0], Exponential(0.5))
def test_it_is_the_sum_term_by_term_and_never_below_it(losses, discount):
    for value, exact in zip(discounted_loss(losses, discount), exact_sums(losses, discount), strict=True):
        assert exact <= Fraction(float(value))
        assert float(value) <= float(exact) * (1 + 1e-12) + 2e-300


def test_a_stack_is_its_rows_and_nothing_comes_to_nothing():
    losses = np.random.default_rng(4).random((2, 3, 700))
    for discount in (Exponential(0.9), Hyperbolic(1)):
        row = discounted_loss(losses[1, 2], discount)
        assert np.allclose(discounted_loss(losses, discount)[1, 2], row, rtol=1e-12, atol=0)
    assert discounted_loss([], Hyperbolic(1)).shape == (0,)
    assert discounted_loss(np.zeros(1000), Hyperbolic(1)).tolist() == [0] * 1000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda r=r: discounted_loss(r, Exponential(0.5)), None) for r in ([-1.0], [math.nan], [math.inf], 1.0)),
        *((lambda alpha=alpha: Exponential(alpha), None) for alpha in (0, 1.1, math.nan)),
        *((lambda beta=beta: Hyperbolic(beta), None) for beta in (-1, math.inf)),
        *((lambda bad=bad: Weights(bad), None) for bad in ([], [0, 0], [1, 2], [1, -1], [[1]])),
        (lambda: Weights([1, 0.5]).weights(3), "one for each release"),
        *((lambda bad=bad: Weights(bad), "number") for bad in (["a"], [[1], [1, 2]], [1, 1j])),
        *((lambda call=call: call("x"), "number") for call in (Hyperbolic, Exponential, certified_constant)),
        *((lambda beta=beta: certified_constant(beta), "positive, finite") for beta in (0, -1, math.inf, math.nan)),
        (lambda: paper_constant(1e300), "already at the first release"),
        (lambda: paper_constant(1e-300), r"at about release 2\.27672e\+300"),
        *((lambda d=d: make(d, "renewal"), r"a\(0\) > a\(1\)") for d in (Exponential(1), Weights([1] * 3))),
        *((lambda m=m: infinite_horizon_schedule(Hyperbolic(1), epsilon=1, releases=3, method=m), "name a horizon")
          for m in ("constant", "optimal")),
        (lambda: make(Exponential(0.5), "best"), "known are"),
        (lambda: make(Exponential(0.5), "corollary-16"), "hyperbolic"),
        *((lambda e=e: make(Exponential(0.5), "renewal", epsilon=e), message)
          for e, message in ((0, "positive"), (math.nan, "positive"), ("much", "number"), (1e-300, "too small"))),
        *((lambda t=t: make(Exponential(0.5), "renewal", horizon=t), message)
          for t, message in ((0, "at least one"), (3.5, r"horizon = 3\.5: a whole number"), (None, "whole number"))),
        (lambda: make(Weights([1.0] + [0.5] * 4999), "renewal", horizon=5000), "too small"),
    ],
)  # fmt: skip
def test_what_is_no_series_discount_or_schedule_is_refused(call, message):
    with pytest.raises(ChainError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("beta", "printed"), [(0.01, 12.860), (0.1, 3.8916), (1, 1.2744)])
def test_the_certified_constants_are_those_of_the_reference(beta, printed):
    assert certified_constant(beta) == pytest.approx(printed, abs=10 ** -(4 if beta > 0.01 else 3) / 2)


@pytest.mark.parametrize("beta", [1 + math.sqrt(2), 3.66, 1e6])
def test_from_one_plus_the_root_of_two_on_the_constant_is_one(beta):
    assert certified_constant(beta) == 1.0


@pytest.mark.parametrize("beta", [2.4, 1.0, 0.05])
def test_the_constant_is_the_largest_of_all_sums_taken_term_by_term(beta):
    k = np.arange(1, 6 * max(30, round(3 / beta)))
    sums = [math.fsum(1 / ((1 + beta * (t - k[:t])) * np.sqrt(k[:t]))) for t in k]
    assert max(sums) <= certified_constant(beta) <= max(sums) * (1 + 1e-11)


def test_below_a_ten_thousandth_it_is_the_sum_at_the_worst_release():
    beta = 9.9e-5
    sums = []
    for t in np.linspace(2.2, 2.35, 31) / beta:  # docs/papers.md: at about release 2.28/beta
        k = np.arange(1.0, round(t) + 1)
        sums.append(float((1 / ((1 + beta * (round(t) - k)) * np.sqrt(k))).sum()))
    assert max(sums) * (1 - 1e-12) <= certified_constant(beta) <= max(sums) * (1 + 1e-6)
    assert certified_constant(1e-4 * (1 - 1e-12)) == pytest.approx(certified_constant(1e-4), rel=1e-9)
    # the integral alone, 2 asinh(sqrt(y))/sqrt(beta (1 + y)), is largest at x tanh(x) = 1
    x = math.asinh(math.sqrt(2.27671753122807))
    assert certified_constant(1e-300) == pytest.approx(2 * x / math.cosh(x) / math.sqrt(1e-300), rel=1e-11)


def test_where_corollary_16_is_wrong_its_constant_breaks_the_promise_and_is_refused():
    # docs/papers.md: below S(1) = 1 for every beta above 3.653847577...; for tiny beta at about release 2.28/beta
    def paper(beta):
        angles = math.atanh(1 / math.sqrt(3)) + math.atanh(math.sqrt(beta / (1 + beta)))
        return 2 * angles / math.sqrt(beta * (beta + 1))

    k = np.arange(1.0, round(2.2767 / 1e-5) + 1)
    assert discounted_loss([1 / paper(3.66)], Hyperbolic(3.66))[0] > 1
    assert discounted_loss(1 / (paper(1e-5) * np.sqrt(k)), Hyperbolic(1e-5))[-1] > 1.0005
    with pytest.raises(ChainError, match=r"beta = 3\.66.*0\.99\d+ is too small.*use certified_constant\(3\.66\) = 1$"):
        paper_constant(3.66)
    with pytest.raises(ChainError, match=r"too small, .* 1\.0006\d* epsilon, at about release 227672; use certified"):
        paper_constant(1e-5)
    for fine in (1.2204e-5, 0.1, 3.6538475767):
        assert paper_constant(fine) == pytest.approx(paper(fine), rel=1e-12)
    for wrong in (3.6538475769, 1.2202e-5):
        with pytest.raises(ChainError, match="too small"):
            make(Hyperbolic(wrong), "corollary-16")
        assert make(Hyperbolic(wrong), "paper").size == 3


# reference value: T = 365, epsilon = 1, mean of 1/r; the paper's column is that of its own constant
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
def test_mean_noise_over_a_year_is_that_of_the_reference(discount, paper, renewal, optimal):
    def mean(method):
        return float((1 / make(discount, method, horizon=365)).mean())

    assert mean("corollary-16" if isinstance(discount, Hyperbolic) else "paper") == pytest.approx(paper, rel=4e-3)
    assert mean("renewal") == pytest.approx(renewal, rel=3e-3)
    assert mean("optimal") == pytest.approx(optimal, rel=2e-3)
    assert mean("optimal") <= mean("renewal") < mean("paper")


@settings(max_examples=40)
@given(
    st.builds(Exponential, st.floats(0.05, 0.999)) | st.builds(Hyperbolic, st.floats(1e-3, 30)),
    st.floats(1e-6, 100),
    st.integers(1, 20),
)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_schedule_keeps_its_bound_in_exact_arithmetic(method, discount, epsilon, count):
    if method == "corollary-16":
        discount = Hyperbolic(0.1 * epsilon % 3.6 + 1e-3)
    losses = make(discount, method, epsilon=epsilon, horizon=count)
    assert (losses > 0).all()
    assert max(exact_sums(losses, discount)) <= Fraction(epsilon)
    assert losses == pytest.approx(epsilon * make(discount, method, horizon=count), rel=1e-12)
    if method == "renewal":  # each release spends what those before it have left
        spent, weights = [], exact_weights(discount, count)
        for t in range(count):
            spent.append(Fraction(epsilon) - sum(weights[t - k] * spent[k] for k in range(t)))
        assert losses == pytest.approx([float(each) for each in spent], rel=1e-9)


def test_long_renewal_continues_the_short_one_and_meets_every_bound_with_equality():
    short, long = (make(Hyperbolic(0.5), "renewal", epsilon=2, horizon=n) for n in (4096, 9_000))
    assert long[:4096] == pytest.approx(short, rel=1e-11)
    assert discounted_loss(long, Hyperbolic(0.5)) == pytest.approx(np.full(9_000, 2.0), abs=1e-9)


def test_closed_forms_counted_by_hand():
    assert make(Exponential(0.9), "classical", epsilon=2, horizon=4) == pytest.approx([0.5] * 4)
    assert make(Exponential(0.5), "constant", epsilon=7) == pytest.approx([4.0] * 3)
    assert make(Exponential(0.9), "paper", epsilon=2, horizon=2) == pytest.approx([0.2] * 2)
    assert make(Hyperbolic(3), "paper", horizon=4)[3] == pytest.approx(0.5)
    assert make(Weights([2, 1]), "constant", epsilon=3, horizon=2) == pytest.approx([1.0] * 2)
    classical = infinite_horizon_schedule(Hyperbolic(1), epsilon=1, releases=2, method="classical")
    assert classical[1] == pytest.approx(1.5 / math.pi**2)
    endless = infinite_horizon_schedule(Exponential(0.75), epsilon=1, releases=2, method="constant")
    assert endless == pytest.approx([0.25] * 2)


@pytest.mark.parametrize(
    "discount",
    [Exponential(0.3), Exponential(0.9), Exponential(0.99), Exponential(1), Hyperbolic(0), Hyperbolic(0.05),
     Hyperbolic(5), Weights([1] * 4 + [0] * 8), Weights([3, 2, 2, 2, 1, 1, 0.9, 0.5, 0.1, 0, 0, 0]),
     Weights([1] + [0.5] * 11), Weights(np.linspace(1, 0, 12)), Weights([1] * 3 + [0.5] * 4 + [0.01] * 5)],
    ids=repr,
)  # fmt: skip
def test_the_optimum_is_the_one_that_a_general_solver_finds(discount):
    count = 12
    weights = [float(weight) for weight in exact_weights(discount, count)]
    matrix = np.array([[weights[t - k] if k <= t else 0.0 for k in range(count)] for t in range(count)])
    solved = minimize(
        lambda r: (1 / r).sum(),
        np.full(count, 0.9 / sum(weights)),
        jac=lambda r: -1 / r**2,
        method="SLSQP",
        bounds=[(1e-4, None)] * count,
        constraints=LinearConstraint(matrix, -np.inf, 1.0),
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    losses = make(discount, "optimal", horizon=count)
    assert (1 / losses).sum() == pytest.approx(solved.fun, rel=1e-6)
    assert (matrix @ losses).max() <= 1 + 1e-12


def window(count, width):
    return np.where(np.arange(count) < width, 1.0, 0.0)


def stairs(count, *, seed, steps=4):
    made = np.random.default_rng(seed)
    levels, ends = np.sort(made.random(steps + 1))[::-1], np.sort(made.integers(1, count, size=steps))
    return levels[np.searchsorted(ends, np.arange(count), side="right")]


def kinds(count):
    ages = np.arange(count)
    return {
        "sorted uniform": np.sort(np.random.default_rng(1).random(count))[::-1],
        "window of a third": window(count, count // 3 + 1),
        "fast, then level": np.concatenate([np.ones(5), np.full(20, 0.5), np.full(count - 25, 0.01)]),
        "uneven stairs": stairs(count, seed=2),
        "stairs, then nothing": np.pad(stairs(count // 3 + 2, seed=7), (0, count))[:count],
        "stairs on a curve": stairs(count, seed=8) + 0.3 / (1 + ages / 50),
    }


@pytest.mark.parametrize("name", kinds(100))
def test_a_bound_from_the_dual_proves_it(name):
    # for any multipliers l >= 0 and any schedule sum(1/r) >= 2 sum(sqrt(A' l)) - sum(l), since 1/r + p r >= 2 sqrt(p);
    # l of sums at their bound, nearest to the slopes
    weights = kinds(300)[name]
    losses, gap = least_noise(weights)
    matrix = np.array([[weights[t - k] if k <= t else 0.0 for k in range(300)] for t in range(300)])
    reaching = matrix[matrix @ losses > 1 - 1e-7].T
    multipliers, _ = nnls(losses[:, None] ** 1.5 * reaching, losses**-0.5)
    lower = np.sqrt(reaching @ multipliers).sum() ** 2 / multipliers.sum()
    assert (1 / losses).sum() <= lower * (1 + 1e-6)
    assert gap <= 1e-6
    assert (losses > 0).all()
    planned = schedule(Weights(weights), epsilon=1, horizon=300, method="optimal")
    assert discounted_loss(planned, Weights(weights)).max() <= 1


def test_renewal_keeps_its_digits_far_out():
    # a(j) = .005 from j = 1 on: each loss is .995 of the one before it
    losses = schedule(Weights([1.0] + [0.005] * 8999), epsilon=1, horizon=9000, method="renewal")
    assert losses == pytest.approx(0.995 ** np.arange(9000.0), rel=1e-9)
    losses = schedule(Weights([1.0, 0.99] + [0.0] * 5998), epsilon=1, horizon=6000, method="renewal")
    expected = [1.0, 0.01]
    while len(expected) < 6000:
        expected.append(0.01 * expected[-1] + 0.99 * expected[-2])
    assert losses == pytest.approx(np.array(expected), rel=1e-9)


@pytest.mark.parametrize(
    ("losses", "discount"),
    [
        (np.r_[1.0, np.full(4999, 1e-9)], Weights(np.exp(-np.arange(5000.0) / 200))),
        (np.r_[np.full(2500, 1e-9), np.full(2500, 5.0)], Hyperbolic(1)),
        (np.full(5000, 2e-4), Hyperbolic(1e-5)),
        (np.full(5000, 0.1), Exponential(0.999)),
    ],
)
def test_long_sums_are_never_below_the_truth_and_right_to_a_billionth(losses, discount):
    sums, weights = discounted_loss(losses, discount), discount.weights(5000)
    for t in (0, 1, 255, 256, 2499, 2500, 4999):
        exact = math.fsum(weights[: t + 1][::-1] * losses[: t + 1])
        assert exact <= sums[t] <= exact * (1 + 1e-9)
