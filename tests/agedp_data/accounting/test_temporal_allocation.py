"""Budgets re-checked by a recursion of their own, beside Algorithms 7 and 8 solved independently."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from agedp_data.accounting.temporal_leakage import (
    METHODS,
    allocate,
    allocate_with,
    round_up_losses,
    temporal,
    temporal_recursion,
    temporal_supremum,
)
from agedp_data.errors import ChainError
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    by_recursion,
    dense,
    kernels_of_every_kind,
    total_by_recursion,
)

PLAIN = ("supremum", "exact", "even")
STAY = [[0.98, 0.02], [0.02, 0.98]]
UNIFORM = np.full((3, 3), 1 / 3)
DISJOINT = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.3, 0.4, 0.3]]
PAIRS = {
    "dense": (dense(3, 1), dense(3, 2)),
    "weak": (dense(4, 3, weight=5.0), dense(4, 4, weight=5.0)),
    "sticky": (STAY, STAY),
    "one way": (dense(3, 5), None),
    "a set": ((dense(3, 1), dense(3, 6)), dense(3, 2)),
    "drift": ([[0.8, 0.2], [0.0, 1.0]], [[0.8, 0.2], [0.0, 1.0]]),
}


def noise(losses):
    return float((1 / np.asarray(losses)).mean())


def largest(pair, losses):
    """The largest TPL by the oracle's recursion; the maximum over a set inside it."""

    def side(kernel, each):
        if kernel is None:
            return np.array(each)
        chains = kernel if isinstance(kernel, tuple) else (kernel,)
        return by_recursion(chains, each, leak=lambda some, a: max(algorithm_1(chain, a) for chain in some))

    behind, ahead = side(pair[0], losses), side(pair[1], losses[::-1])[::-1]
    return float((behind + ahead - losses).max())


def algorithm_8(kernel_b, kernel_f, alpha, horizon):
    """[T] equations 26 and 27 by bisection for alpha_B, with Algorithm 1 for L."""
    low, high = 0.0, alpha
    for _ in range(100):
        middle = (low + high) / 2
        excess = middle + algorithm_1(kernel_f, alpha - algorithm_1(kernel_b, middle)) - alpha
        low, high = (middle, high) if excess <= 0 else (low, middle)
    first, last = low, alpha - algorithm_1(kernel_b, low)
    return np.array([first, *[first - algorithm_1(kernel_b, first)] * (horizon - 2), last])


def two_states(stay):
    """L of two states that stay alike: ln((1 + stay (e^a - 1))/(1 + (1 - stay)(e^a - 1)))."""
    return lambda _, a: float(np.log1p(stay * np.expm1(a)) - np.log1p((1 - stay) * np.expm1(a)))


@cache
def algorithm_7(name, alpha):
    """The constant whose leakage after 20,000 releases is alpha, by bisection."""
    kernel_b, kernel_f = PAIRS[name]

    def grown(kernel, loss):
        x = loss
        for _ in range(20_000):
            x, before = loss + algorithm_1(kernel, x), x
            if x - before < 1e-13 or x > 2 * alpha:
                break
        return x

    low, high = 0.0, alpha
    for _ in range(45):
        middle = (low + high) / 2
        fits = grown(kernel_b, middle) + grown(kernel_f, middle) - middle <= alpha
        low, high = (middle, high) if fits else (low, middle)
    return low


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("alpha", "horizon"),
    [(0.1, 1), (1.0, 7), pytest.param(1.0, 2, marks=pytest.mark.long), pytest.param(3.0, 20, marks=pytest.mark.long)],
)
def test_every_budget_holds_by_a_recursion_of_its_own(name, method, alpha, horizon):
    pair = PAIRS[name]
    losses = allocate(*pair, alpha=alpha, horizon=horizon, method=method)
    assert losses.shape == (horizon,)
    assert losses.min() > 0
    assert temporal(*pair, losses).max() <= alpha
    assert largest(pair, losses) <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_all_but_the_even_split_and_the_endless_plan_use_alpha_up(name):
    for method in ("exact", "best"):
        losses = allocate(*PAIRS[name], alpha=1.0, horizon=9, method=method)
        assert largest(PAIRS[name], losses) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("name", ["dense", "weak", "sticky"])
@pytest.mark.parametrize("horizon", [pytest.param(3, marks=pytest.mark.long), 12])
def test_the_best_is_never_worse_than_algorithms_7_and_8_and_the_even_split(name, horizon):
    behind, ahead = PAIRS[name]
    rivals = {
        "7": np.full(horizon, algorithm_7(name, 1.0)),
        "8": algorithm_8(behind, ahead, 1.0, horizon),
        "even": np.full(horizon, 1.0 / horizon),
    }
    for losses in rivals.values():
        assert largest((behind, ahead), losses) <= 1 + 1e-9
    best = noise(allocate(behind, ahead, alpha=1.0, horizon=horizon, method="best"))
    assert best <= min(noise(losses) for losses in rivals.values()) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["dense", "weak", "sticky", "drift"])
def test_supremum_and_exact_are_algorithms_7_and_8(name):
    behind, ahead = PAIRS[name]
    losses = allocate(behind, ahead, alpha=1.0, horizon=6, method="exact")
    np.testing.assert_allclose(losses, algorithm_8(behind, ahead, 1.0, 6), rtol=1e-9)
    np.testing.assert_allclose(total_by_recursion(behind, ahead, losses), np.ones(6), rtol=1e-9)
    endless = allocate(behind, ahead, alpha=1.0, horizon=3, method="supremum")
    np.testing.assert_allclose(endless, losses[1], rtol=1e-9)


def test_the_constant_of_algorithm_7_found_by_long_series():
    for name in ("dense", "weak"):
        found = allocate(*PAIRS[name], alpha=1.0, horizon=1, method="supremum")
        assert found[0] == pytest.approx(algorithm_7(name, 1.0), rel=1e-9)


def test_the_endless_plan_holds_however_long_the_series_goes_on_and_uses_alpha_up():
    for name in ("dense", "sticky", "a set"):
        loss = allocate(*PAIRS[name], alpha=1.0, horizon=1, method="supremum")[0]
        for count in (1, 10, 400, 3000):
            assert temporal(*PAIRS[name], np.full(count, loss)).max() <= 1.0
        assert temporal(*PAIRS[name], np.full(3000, loss)).max() == pytest.approx(1.0, rel=1e-6)
        assert temporal_supremum(*PAIRS[name], loss) <= 1.0


@pytest.mark.parametrize(
    ("kernel", "alpha"),
    [
        ([[0.96, 0.04], [0.77, 0.23]], 2.33),
        ([[0.23, 0.77], [0.05, 0.95]], 3.44),
        ([[0.75, 0.25], [0.37, 0.63]], 1.88),
    ],
)
def test_the_endless_plan_holds_to_the_last_digit_where_rounding_carries_a_long_series_past_its_limit(kernel, alpha):
    loss = allocate(kernel, kernel, alpha=alpha, horizon=1, method="supremum")[0]
    assert temporal(kernel, kernel, np.full(600, loss)).max() <= alpha
    assert temporal(kernel, kernel, np.full(600, loss * (1 + 1e-13))).max() > alpha


def test_a_further_release_breaks_the_exact_plan_and_not_the_endless_one():
    pair = PAIRS["dense"]
    exact = allocate(*pair, alpha=1.0, horizon=8, method="exact")
    assert temporal(*pair, np.append(exact, exact[1])).max() > 1.05
    endless = allocate(*pair, alpha=1.0, horizon=8, method="supremum")
    assert temporal(*pair, np.append(endless, endless[0])).max() <= 1.0


@pytest.mark.parametrize("kernel", [np.eye(3), np.array(DISJOINT), np.roll(np.eye(3), 1, axis=0)])
def test_values_that_are_never_mistaken_for_each_other_leave_the_even_split_alone(kernel):
    for method in ("supremum", "exact"):
        with pytest.raises(ChainError, match='"even" or "best"'):
            allocate(kernel, kernel, alpha=1.0, horizon=5, method=method)
    for method in ("even", "best"):
        np.testing.assert_allclose(allocate(kernel, kernel, alpha=1.0, horizon=5, method=method), 0.2, rtol=1e-6)


def test_without_correlation_every_release_may_have_all_of_alpha():
    for pair in ((UNIFORM, UNIFORM), (None, None)):
        for method in ("supremum", "exact", "best"):
            np.testing.assert_array_equal(allocate(*pair, alpha=0.7, horizon=4, method=method), np.full(4, 0.7))
        np.testing.assert_allclose(allocate(*pair, alpha=0.7, horizon=4, method="even"), 0.7 / 4)


@pytest.mark.parametrize("kernel", [np.eye(2), dense(3, 1), UNIFORM])
def test_one_release_has_all_of_alpha_if_the_series_closes(kernel):
    for method in ("exact", "even", "best"):
        np.testing.assert_allclose(allocate(kernel, kernel, alpha=0.7, horizon=1, method=method), [0.7], rtol=1e-12)


def test_a_stack_of_households_gets_one_plan_that_fits_them_all():
    stack = np.stack([dense(3, seed, weight=0.5 + seed) for seed in range(5)])
    for method in METHODS:
        losses = allocate(stack, stack[::-1], alpha=1.0, horizon=6, method=method)
        assert temporal(stack, stack[::-1], losses).max() <= 1.0
        each = [allocate(b, f, alpha=1.0, horizon=6, method=method) for b, f in zip(stack, stack[::-1], strict=True)]
        if method == "supremum":
            np.testing.assert_allclose(losses, np.min(each, axis=0), rtol=1e-12)
        # No household alone could do with less noise than all of them together.
        assert noise(losses) >= max(noise(one) for one in each) * (1 - 1e-3)
        assert noise(losses) <= noise(np.min(each, axis=0)) * (1 + 1e-9)


def test_households_that_never_forget_are_found_among_many():
    stack = np.stack([dense(3, 1), np.eye(3)])
    with pytest.raises(ChainError, match="distinguishable at every age"):
        allocate(stack, stack, alpha=1.0, horizon=6, method="exact")
    np.testing.assert_allclose(allocate(stack, stack, alpha=1.0, horizon=6, method="best"), 1 / 6, rtol=1e-6)


@pytest.mark.parametrize(
    "alpha", [1e-6, pytest.param(1e-3, marks=pytest.mark.long), pytest.param(20.0, marks=pytest.mark.long), 50.0]
)
def test_targets_from_tiny_to_huge(alpha):
    for name in ("dense", "sticky"):
        for method in METHODS:
            losses = allocate(*PAIRS[name], alpha=alpha, horizon=20, method=method)
            assert losses.min() > 0
            assert 0.02 * alpha < temporal(*PAIRS[name], losses).max() <= alpha


@pytest.mark.parametrize(("stay", "horizon"), [(0.8, 5), (0.9, 8), (0.9, 20), (0.98, 12)])
def test_the_best_is_a_local_optimum_of_all_losses_together(stay, horizon):
    kernel = [[stay, 1 - stay], [1 - stay, stay]]

    def slack(logs):
        return 1 - total_by_recursion(kernel, kernel, np.exp(logs), leak=two_states(stay))

    best = allocate(kernel, kernel, alpha=1.0, horizon=horizon, method="best")
    found = minimize(
        lambda logs: np.exp(-logs).mean() / horizon,
        np.log(0.9 * best),
        jac=lambda logs: -np.exp(-logs) / horizon**2,
        constraints={"type": "ineq", "fun": slack},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    assert slack(found.x).min() > -1e-6
    assert noise(best) <= noise(np.exp(found.x)) * (1 + 2e-3)
    assert noise(best) < 0.99 * min(
        noise(allocate(kernel, kernel, alpha=1.0, horizon=horizon, method=m)) for m in PLAIN
    )


def test_the_solver_may_go_astray_and_the_plan_stays_as_it_was():
    # Losses simply add up, so every bound is the same one and the solver divides by nothing.
    nobody = np.array([[1.0, 0.0, 0.0], [1 / 3] * 3, [1 / 3] * 3])
    for alpha in (1e-6, 0.0078125, 1.0, 50.0):
        for pair in ((nobody, np.full((3, 3), 1 / 3)), (np.eye(2), np.eye(2)), (np.eye(2), None)):
            losses = allocate(*pair, alpha=alpha, horizon=6, method="best")
            assert temporal(*pair, losses).max() <= alpha
            assert noise(losses) <= 6 / alpha * (1 + 1e-12)


@pytest.mark.parametrize(("horizon", "stay"), [(60, 0.99), pytest.param(365, 0.999, marks=pytest.mark.long)])
def test_the_optimum_is_worth_having_for_a_series_that_is_short_beside_the_memory(horizon, stay):
    kernel = [[stay, 1 - stay], [1 - stay, stay]]
    found = {m: noise(allocate(kernel, kernel, alpha=1.0, horizon=horizon, method=m)) for m in METHODS}
    assert found["even"] == pytest.approx(horizon)
    assert found["best"] < 0.85 * min(found["supremum"], found["exact"], found["even"])


def test_recorded_losses_are_whole_and_hold_after_rounding_up():
    for name in ("dense", "sticky", "drift"):
        leak = temporal_recursion(*PAIRS[name])
        for method in METHODS:
            plan = allocate(*PAIRS[name], alpha=0.9, horizon=11, method=method)
            found = round_up_losses(leak, plan, alpha=0.9)
            whole = np.rint(found * 1e9)
            np.testing.assert_array_equal(whole / 1e9, found)
            assert (found <= plan).all()
            assert (plan - found <= 2.1e-9).all()
            assert np.ceil(total_by_recursion(*PAIRS[name], found) * 1e9 - 1e-6).max() <= 0.9e9


def test_recorded_endless_losses_hold_with_all_that_is_to_come():
    leak = temporal_recursion(STAY, STAY)
    loss = allocate(STAY, STAY, alpha=1.0, horizon=1, method="supremum")[0]
    found = round_up_losses(leak, [loss] * 5, alpha=1.0, endless=True)
    assert loss - 2.1e-9 < found[0] <= loss
    assert leak.leakage_totals(found, future_loss=float(found[0])).total.max() <= 1.0
    assert temporal(STAY, STAY, np.full(2000, found[0])).max() <= 1.0
    # An end raised above the others fits a series that closes only.
    ends = allocate(STAY, STAY, alpha=1.0, horizon=5, method="exact")
    round_up_losses(leak, ends, alpha=1.0)
    for plan in (ends, [2 * loss] * 5):
        with pytest.raises(ChainError, match="more than alpha"):
            round_up_losses(leak, plan, alpha=1.0, endless=True)


@pytest.mark.parametrize(
    "asked",
    [
        {"alpha": 0.0}, {"alpha": -1.0}, {"alpha": np.inf}, {"alpha": np.nan}, {"horizon": 0},
        {"method": "algorithm-8"},
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(asked):
    with pytest.raises(ChainError):
        allocate(STAY, STAY, **({"alpha": 1.0, "horizon": 5, "method": "even"} | asked))
    with pytest.raises(ChainError):
        allocate_with(temporal_recursion(STAY, STAY), **({"alpha": 1.0, "horizon": 5, "method": "best"} | asked))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
def test_random_budgets_hold_and_are_never_worse(seed):
    rng = np.random.default_rng(seed)
    n, horizon = int(rng.integers(2, 20)), int(rng.integers(2, 400 if seed % 5 == 0 else 30))
    alpha = float(10 ** rng.uniform(-3, 1))
    behind, ahead = kernels_of_every_kind(n, seed), kernels_of_every_kind(n, seed + 500)
    kind = list(behind)[seed % len(behind)]
    pair = behind[kind], ahead[kind]
    found = {}
    for method in METHODS:
        try:
            losses = allocate(*pair, alpha=alpha, horizon=horizon, method=method)
        except ChainError:
            assert kind in ("identity", "periodic", "zeros", "nearly identity")
            assert method in ("supremum", "exact")
            continue
        found[method] = noise(losses)
        assert largest(pair, losses) <= alpha * (1 + 1e-9)
    assert found["best"] <= min(found.values()) * (1 + 1e-12)
    eighth = algorithm_8(*pair, alpha, horizon)
    if horizon > 2 and (eighth > 0).all():
        assert largest(pair, eighth) <= alpha * (1 + 1e-6)
        assert found["best"] <= noise(eighth) * (1 + 1e-9)
