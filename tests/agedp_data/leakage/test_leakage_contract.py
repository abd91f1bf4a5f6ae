"""Every implementation of `LeakageFunction` keeps the laws of L: 0 <= L(a) <= a, non-decreasing, 1-Lipschitz."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.leakage.batched import BatchedLeakage
from agedp_data.leakage.exact import PiecewiseLeakage, TabulatedLeakage, to_integers
from agedp_data.leakage.function import KernelLeakage, leakage, supremum
from agedp_data.leakage.pieces import frontier_of

NANO = 10**9
GRID = np.round(np.geomspace(1e-3, 12.0, 60), 9)
LOSSES = np.unique(np.round(np.concatenate((np.geomspace(1e-4, 10.0, 90), GRID[::7])), 9))


def kernels():
    rng = np.random.default_rng(3)
    dense = [rng.dirichlet(np.full(k, 0.7), size=k) for k in (2, 3, 5)]
    return [np.array([[0.8, 0.2], [0.0, 1.0]]), np.eye(2), np.full((3, 3), 1 / 3), *dense]


def tabulated(kernel):
    return TabulatedLeakage(to_integers(GRID), to_integers(leakage(kernel, GRID)))


def in_nano(function):
    """A function of whole nano-epsilon as one of floats [epsilon]."""

    class InFloats:
        def __call__(self, loss):
            return function(round(float(loss) * NANO)) / NANO

        def supremum(self, loss):
            value = function.supremum(round(float(loss) * NANO))
            return np.inf if value is None else value / NANO

    return InFloats()


IMPLEMENTATIONS = {
    "KernelLeakage": (KernelLeakage, 0.0),
    "BatchedLeakage": (BatchedLeakage, 0.0),
    "TabulatedLeakage": (lambda kernel: in_nano(tabulated(kernel)), 1e-9),
    "PiecewiseLeakage": (lambda kernel: in_nano(PiecewiseLeakage.from_floats(*frontier_of(kernel[None]))), 1e-9),
}


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("number", range(6))
class TestEveryLeakageFunction:
    def test_its_values_are_bounds_that_keep_the_laws(self, name, number):
        make, rounding = IMPLEMENTATIONS[name]
        kernel = kernels()[number]
        function, exact = make(kernel), leakage(kernel, LOSSES)
        values = np.array([float(function(loss)) for loss in LOSSES])
        assert (values >= exact - 1e-12).all()
        assert (values <= LOSSES).all()
        assert (np.diff(values) >= -1e-12).all()
        assert (np.diff(values) <= np.diff(LOSSES) + rounding + 1e-12).all()
        if name != "TabulatedLeakage":
            np.testing.assert_allclose(values, exact, atol=2 * rounding + 1e-12)
        assert float(function(0.0)) == 0.0

    def test_its_supremum_is_a_fixed_point_above_every_finite_series(self, name, number):
        make, rounding = IMPLEMENTATIONS[name]
        kernel = kernels()[number]
        function = make(kernel)
        for loss in (0.01, 0.1, 0.5):
            limit, composed = float(function.supremum(loss)), 0.0
            assert limit >= float(supremum(kernel, loss)) - 1e-9
            for _ in range(300):
                composed = loss + float(function(composed))
                assert composed <= limit * (1 + 1e-12) + 1e-12
            if np.isfinite(limit) and name != "TabulatedLeakage":
                assert limit == pytest.approx(loss + float(function(limit)), abs=2 * rounding + 1e-9)
        assert float(function.supremum(0.0)) == 0.0
