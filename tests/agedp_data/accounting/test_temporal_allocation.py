"""Budgets re-checked by a recursion of their own, beside Algorithms 7 and 8 solved independently."""

from __future__ import annotations

import os
import subprocess
import sys

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
from tests.agedp_data.accounting.temporal_oracles import algorithm_1, by_recursion, dense, total_by_recursion

STAY = [[0.98, 0.02], [0.02, 0.98]]
DISJOINT = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.3, 0.4, 0.3]])
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


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("method", METHODS)
def test_every_budget_holds_by_a_recursion_of_its_own(name, method):
    pair = PAIRS[name]
    for alpha, horizon in ((0.1, 1), (1.0, 7)):
        losses = allocate(*pair, alpha=alpha, horizon=horizon, method=method)
        assert losses.shape == (horizon,)
        assert losses.min() > 0
        assert temporal(*pair, losses).max() <= alpha
        assert largest(pair, losses) <= alpha * (1 + 1e-9)
        if method in ("exact", "best"):
            assert largest(pair, losses) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("name", ["dense", "weak", "sticky"])
def test_the_best_is_never_worse_than_algorithms_7_and_8_and_the_even_split(name):
    eighth = algorithm_8(*PAIRS[name], 1.0, 12)
    rivals = (np.full(12, eighth[1]), eighth, np.full(12, 1 / 12))  # Algorithm 7 is the middle of Algorithm 8
    for losses in rivals:
        assert largest(PAIRS[name], losses) <= 1 + 1e-9
    best = noise(allocate(*PAIRS[name], alpha=1.0, horizon=12, method="best"))
    assert best <= min(map(noise, rivals)) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["dense", "weak", "sticky", "drift"])
def test_supremum_and_exact_are_algorithms_7_and_8(name):
    losses = allocate(*PAIRS[name], alpha=1.0, horizon=6, method="exact")
    np.testing.assert_allclose(losses, algorithm_8(*PAIRS[name], 1.0, 6), rtol=1e-9)
    np.testing.assert_allclose(total_by_recursion(*PAIRS[name], losses), np.ones(6), rtol=1e-9)
    endless = allocate(*PAIRS[name], alpha=1.0, horizon=3, method="supremum")
    np.testing.assert_allclose(endless, losses[1], rtol=1e-9)


def test_the_endless_plan_holds_however_long_the_series_and_uses_alpha_up():
    for name in ("dense", "a set"):
        loss = allocate(*PAIRS[name], alpha=1.0, horizon=1, method="supremum")[0]
        leakages = [temporal(*PAIRS[name], np.full(count, loss)).max() for count in (1, 10, 600)]
        assert max(leakages) <= 1.0
        assert leakages[-1] == pytest.approx(1.0, rel=1e-6)
        assert temporal_supremum(*PAIRS[name], loss) <= 1.0


@pytest.mark.parametrize(
    "kernel", [np.eye(3), DISJOINT, np.roll(np.eye(3), 1, axis=0), np.stack([dense(3, 1), np.eye(3)])]
)
def test_values_that_are_never_confused_leave_the_even_split_alone(kernel):
    for method in ("supremum", "exact"):
        with pytest.raises(ChainError, match=r'distinguishable at every age.*"even" or "best"'):
            allocate(kernel, kernel, alpha=1.0, horizon=5, method=method)
    for method in ("even", "best"):
        np.testing.assert_allclose(allocate(kernel, kernel, alpha=1.0, horizon=5, method=method), 0.2, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_stack_of_households_gets_one_plan_that_fits_them_all(method):
    stack = np.stack([dense(3, seed, weight=0.5 + seed) for seed in range(3)])
    losses = allocate(stack, stack[::-1], alpha=1.0, horizon=6, method=method)
    assert temporal(stack, stack[::-1], losses).max() <= 1.0
    each = [allocate(b, f, alpha=1.0, horizon=6, method=method) for b, f in zip(stack, stack[::-1], strict=True)]
    if method == "supremum":
        np.testing.assert_allclose(losses, np.min(each, axis=0), rtol=1e-12)
    # No household alone could do with less noise than all of them together.
    assert max(map(noise, each)) * (1 - 1e-3) <= noise(losses) <= noise(np.min(each, axis=0)) * (1 + 1e-9)


@pytest.mark.parametrize(("stay", "horizon"), [(0.8, 5), (0.9, 8), (0.98, 12)])
def test_the_best_is_a_local_optimum_of_all_losses_together(stay, horizon):
    kernel = [[stay, 1 - stay], [1 - stay, stay]]

    def two_states(_, a):
        return float(np.log1p(stay * np.expm1(a)) - np.log1p((1 - stay) * np.expm1(a)))

    def slack(logs):
        return 1 - total_by_recursion(kernel, kernel, np.exp(logs), leak=two_states)

    plans = {m: allocate(kernel, kernel, alpha=1.0, horizon=horizon, method=m) for m in METHODS}
    solved = minimize(
        lambda logs: np.exp(-logs).mean() / horizon,
        np.log(0.9 * plans["best"]),
        jac=lambda logs: -np.exp(-logs) / horizon**2,
        constraints={"type": "ineq", "fun": slack},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    assert slack(solved.x).min() > -1e-6
    assert noise(plans["best"]) <= noise(np.exp(solved.x)) * (1 + 2e-3)
    assert noise(plans["best"]) < 0.99 * min(noise(plans[m]) for m in ("supremum", "exact", "even"))


@pytest.mark.parametrize("name", ["dense", "sticky", "drift"])
@pytest.mark.parametrize("method", METHODS)
def test_recorded_losses_are_whole_and_hold_after_rounding_up(name, method):
    plan = allocate(*PAIRS[name], alpha=0.9, horizon=11, method=method)
    rounded = round_up_losses(temporal_recursion(*PAIRS[name]), plan, alpha=0.9)
    np.testing.assert_array_equal(np.rint(rounded * 1e9) / 1e9, rounded)
    assert (rounded <= plan).all()
    assert (plan - rounded <= 2.1e-9).all()
    assert np.ceil(total_by_recursion(*PAIRS[name], rounded) * 1e9 - 1e-6).max() <= 0.9e9


def test_recorded_endless_losses_hold_with_all_that_is_to_come():
    leak = temporal_recursion(STAY, STAY)
    loss = allocate(STAY, STAY, alpha=1.0, horizon=1, method="supremum")[0]
    rounded = round_up_losses(leak, [loss] * 5, alpha=1.0, endless=True)
    assert loss - 2.1e-9 < rounded[0] <= loss
    assert leak.leakage_totals(rounded, future_loss=float(rounded[0])).total.max() <= 1.0
    # An end raised above the others fits a series that closes only.
    ends = allocate(STAY, STAY, alpha=1.0, horizon=5, method="exact")
    for plan in (ends, [2 * loss] * 5):
        with pytest.raises(ChainError, match="more than alpha"):
            round_up_losses(leak, plan, alpha=1.0, endless=True)


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0.0}, {"alpha": np.inf}, {"alpha": np.nan}, {"horizon": 0}, {"method": "algorithm-8"}]
)
def test_what_cannot_be_planned_is_refused(wrong):
    keys = {"alpha": 1.0, "horizon": 5, "method": "even"} | wrong
    with pytest.raises(ChainError):
        allocate(STAY, STAY, **keys)
    with pytest.raises(ChainError):
        allocate_with(temporal_recursion(STAY, STAY), **keys)


_PLANS = """
from agedp_data.accounting.temporal_allocation import temporal_allocation
from agedp_data.leakage.population_bound import leakage_bound
for stay in (0.6, 0.9):
    chain = [[[stay, 1 - stay], [1 - stay, stay]]]
    bound = leakage_bound(chain, [1], [0.1], reliable=[True], forward=chain, steps_per_day=1)
    for horizon, alpha in ((5, 10**9), (20, 3 * 10**8), (60, 10**9)):
        print(temporal_allocation(bound, alpha, horizon, "best", 10**10))
"""


def test_the_best_plan_is_the_same_on_every_processor_and_number_of_threads():
    # What the search finds differs in its last digits between kernels of linear algebra and their threads.
    settings = ({"OPENBLAS_NUM_THREADS": "1"}, {"OPENBLAS_NUM_THREADS": "2"},
                {"NPY_DISABLE_CPU_FEATURES": "X86_V4", "OPENBLAS_CORETYPE": "Nehalem"})  # fmt: skip
    running = [
        subprocess.Popen([sys.executable, "-c", _PLANS], env={**os.environ, **each}, stdout=subprocess.PIPE, text=True)
        for each in settings
    ]
    plans = [process.communicate(timeout=300)[0] for process in running]
    assert plans[0].count("(") == 6
    assert plans[0] == plans[1] == plans[2]
