"""What holds of every leakage function: of kernels in floats, of tables and pieces in whole billionths.

A new implementation is one more entry of FUNCTIONS. The truth is the function of the kernel, which test_function.py
compares with exhaustive search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.function import BatchedLeakage, KernelLeakage, leakage, supremum
from agedp_data.leakage.population_bound import leakage_bound

NANO = 10**9
CHAINS = {
    "slow": np.array([[0.9, 0.08, 0.02], [0.05, 0.9, 0.05], [0.02, 0.18, 0.8]]),
    "drift": np.array([[0.8, 0.2], [0.0, 1.0]]),
    "turning": np.eye(2)[::-1],
    "uniform": np.full((3, 3), 1 / 3),
    "dense": np.random.default_rng(3).dirichlet(np.full(5, 0.7), size=5),
}


@dataclass(frozen=True)
class Tried:
    """A leakage function in floats, and by how much it may exceed that of the kernel: a part, and billionths."""

    chain: np.ndarray
    leakage: Callable[[float], float]
    supremum: Callable[[float], float]
    part: float
    billionths: float = 4


def in_floats(chain, bound, part, method="tight"):
    keys = {"direction": "forward", "method": method}
    return Tried(chain, lambda a: float(bound(1, a, **keys)), lambda a: float(bound.supremum(1, a, **keys)), part)


def in_billionths(chain, bound, part):
    function = bound.exact_leakage(1, direction="forward")

    def limit(loss):
        whole = function.supremum(round(loss * NANO))
        return np.inf if whole is None else whole / NANO

    return Tried(chain, lambda loss: function(round(loss * NANO)) / NANO, limit, part)


def tries(name):
    chain = CHAINS[name]
    keys = {"reliable": [True], "forward": chain[None], "steps_per_day": 1}
    table, pieces = (leakage_bound(chain[None], [1], LOSS_GRID, pieces=pieces, **keys) for pieces in (False, True))
    distance = max(np.abs(x - y).sum() / 2 for x in chain for y in chain)
    curve = LeakageBound([1], LOSS_GRID, bounds={"total_variation": [distance]}, steps_per_day=1, assume="markov")
    yield "kernel", Tried(chain, lambda a: float(KernelLeakage(chain)(a)), lambda a: float(supremum(chain, a)), 0, 0)
    batched = BatchedLeakage(chain)
    yield "batched", Tried(chain, lambda a: float(batched(a)), lambda a: float(batched.supremum(a)), 0, 0)
    yield "table", in_floats(chain, table, 0.07)
    yield "table in billionths", in_billionths(chain, table, 0.07)
    yield "total variation", in_floats(chain, curve, 1e6, "total_variation")
    yield "pieces", in_floats(chain, pieces, 1e-9)
    yield "pieces in billionths", in_billionths(chain, pieces, 1e-9)


FUNCTIONS = {f"{function} of {chain}": tried for chain in CHAINS for function, tried in tries(chain)}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=20)
@given(loss=st.integers(0, 20 * NANO) | st.integers(0, 10_000), more=st.integers(0, 2 * NANO))
def test_it_is_never_below_the_kernel_nor_above_the_loss_and_rises_no_faster(name, loss, more):
    tried = FUNCTIONS[name]
    low, high = tried.leakage(loss / NANO), tried.leakage((loss + more) / NANO)
    exact = float(leakage(tried.chain, loss / NANO))
    assert exact - 1e-12 <= low <= loss / NANO + 1e-15
    assert low <= exact * (1 + tried.part) + tried.billionths / NANO + 1e-12 or loss < 1_000_000
    assert low - 1e-12 <= high <= low + (more + tried.billionths) / NANO + 1e-12


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_recursion_rises_to_the_supremum_and_never_passes_it(name):
    tried = FUNCTIONS[name]
    assert tried.leakage(0.0) == tried.supremum(0.0) == 0.0
    for loss in (1e-6, 0.1, 0.5, 3.0):
        limit, exact, composed = tried.supremum(loss), float(supremum(tried.chain, loss)), 0.0
        assert limit >= exact * (1 - 1e-9) - 1e-9
        for _ in range(150):
            composed = loss + tried.leakage(composed)
            assert composed <= limit * (1 + 1e-12)
        if np.isfinite(limit):
            assert loss + tried.leakage(limit) <= limit * (1 + 1e-9) + tried.billionths / NANO
            assert composed == pytest.approx(limit, rel=max(1e-3, min(tried.part, 0.2)), abs=1e-8)
