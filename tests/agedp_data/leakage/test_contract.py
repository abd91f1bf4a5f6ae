"""What holds of every leakage function: of a kernel in floats, of a table and of pieces in whole billionths.

A new implementation is one more entry of FUNCTIONS. The truth is the function of the kernel, which test_function.py
compares with exhaustive search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.function import KernelLeakage, leakage, supremum
from agedp_data.leakage.population_bound import leakage_bound

NANO = 10**9
CHAIN = np.array([[0.9, 0.08, 0.02], [0.05, 0.9, 0.05], [0.02, 0.18, 0.8]])
KEYS = {"reliable": [True], "forward": CHAIN[None], "steps_per_day": 1}
TABLE = leakage_bound(CHAIN[None], [1, 4], LOSS_GRID, **KEYS)
PIECES = leakage_bound(CHAIN[None], [1, 4], LOSS_GRID, pieces=True, **KEYS)

DISTANCE = max(np.abs(x - y).sum() / 2 for x in CHAIN for y in CHAIN)
CURVE = LeakageBound([1], LOSS_GRID, bounds={"total_variation": [DISTANCE]}, steps_per_day=1, assume="markov")


@dataclass(frozen=True)
class Tried:
    """A leakage function in floats, and by how much it may exceed that of the kernel: a part, and billionths."""

    leakage: Callable[[float], float]
    supremum: Callable[[float], float]
    part: float
    billionths: float


def in_floats(bound, part, method="tight"):
    keys = {"direction": "forward", "method": method}
    return Tried(lambda a: float(bound(1, a, **keys)), lambda a: float(bound.supremum(1, a, **keys)), part, 4)


def in_billionths(bound, part):
    function = bound.exact_leakage(1, direction="forward")

    def limit(loss):
        whole = function.supremum(round(loss * NANO))
        return np.inf if whole is None else whole / NANO

    return Tried(lambda loss: function(round(loss * NANO)) / NANO, limit, part, 4)


KERNEL = KernelLeakage(CHAIN)
FUNCTIONS = {
    "kernel": Tried(lambda loss: float(KERNEL(loss)), lambda loss: float(supremum(CHAIN, loss)), 1e-12, 0),
    "table": in_floats(TABLE, 0.07),
    "table in billionths": in_billionths(TABLE, 0.07),
    "total variation": in_floats(CURVE, np.inf, "total_variation"),
    "pieces": in_floats(PIECES, 1e-9),
    "pieces in billionths": in_billionths(PIECES, 1e-9),
}
LOSSES = st.integers(0, 20 * NANO) | st.integers(0, 10_000)


@pytest.fixture(params=FUNCTIONS)
def tried(request):
    return FUNCTIONS[request.param]


@pytest.mark.parametrize("name", FUNCTIONS)
@given(loss=LOSSES, more=st.integers(0, 2 * NANO))
def test_it_is_never_below_the_kernel_nor_above_the_loss_and_rises_no_faster(name, loss, more):
    tried = FUNCTIONS[name]
    low, high = tried.leakage(loss / NANO), tried.leakage((loss + more) / NANO)
    exact = float(leakage(CHAIN, loss / NANO))
    assert exact - 1e-12 <= low <= loss / NANO + 1e-15
    assert low <= min(exact * (1 + tried.part) + tried.billionths / NANO, loss / NANO) + 1e-12 or loss < 1_000_000
    assert low - 1e-12 <= high <= low + (more + tried.billionths) / NANO + 1e-12


def test_without_a_loss_nothing_leaks(tried):
    assert tried.leakage(0.0) == tried.supremum(0.0) == 0.0


@pytest.mark.parametrize("loss", [1e-6, 0.001, 0.1, 0.2, 0.5, 1.0, 3.0])
def test_the_recursion_rises_to_the_supremum_and_never_passes_it(tried, loss):
    limit, exact, composed = tried.supremum(loss), float(supremum(CHAIN, loss)), 0.0
    for _ in range(400):
        composed = loss + tried.leakage(composed)
        assert composed <= limit * (1 + 1e-12)
    assert limit >= exact * (1 - 1e-9) - 1e-9
    if np.isfinite(limit):
        assert loss + tried.leakage(limit) <= limit * (1 + 1e-9) + tried.billionths / NANO
        assert composed == pytest.approx(limit, rel=max(1e-3, min(tried.part, 0.2)), abs=1e-8)


def test_an_infinite_supremum_is_found(tried):
    growing = np.isinf([float(supremum(CHAIN, loss)) for loss in (0.1, 4.0)])
    assert [np.isinf(tried.supremum(loss)) for loss in (0.1, 4.0)] >= growing.tolist()
