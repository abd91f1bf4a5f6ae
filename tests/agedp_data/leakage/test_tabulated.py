"""An envelope in whole 1e-9 is the envelope: against its own call, and its suprema against iteration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import TabulatedLeakage
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import reverse

NANO = 10**9
CHAINS = np.random.default_rng(5).dirichlet(np.full(3, 0.6), size=(4, 3))
KNOWN = leakage_bound(
    reverse(CHAINS), [1, 4], LOSS_GRID, reliable=np.ones(4, bool), forward=CHAINS, steps_per_day=1
)  # fmt: skip
SIDES = st.tuples(st.sampled_from(["backward", "forward"]), st.sampled_from([1, 2, 4, 9]))


@given(side=SIDES, loss=st.integers(0, 70 * NANO) | st.integers(0, 10_000))
def test_what_is_left_is_what_the_envelope_says(side, loss):
    direction, age = side
    known = float(KNOWN(age, loss / NANO, direction=direction, method="tight"))
    found = KNOWN.exact_leakage(age, direction=direction)(loss)
    assert found <= loss
    # the envelope works in floats and may round up once more
    assert round(known * NANO) - 1 <= found <= round(known * NANO)


@given(side=SIDES, loss=st.integers(1, 3 * NANO))
def test_the_supremum_is_the_least_point_that_iteration_never_passes(side, loss):
    direction, age = side
    left = KNOWN.exact_leakage(age, direction=direction)
    supremum, known = left.supremum(loss), KNOWN.supremum(age, loss / NANO, direction=direction, method="tight")
    assert (supremum is None) == np.isinf(known)
    x = 0
    for _ in range(200):
        x = loss + left(x)
        assert supremum is None or x <= supremum
    if supremum is not None:
        assert supremum == pytest.approx(known * NANO, abs=2)
        assert loss + left(supremum - 1) > supremum - 1


def test_below_the_smallest_age_nothing_is_forgotten():
    known = LeakageBound([48], [1.0], [[0.5]], [[0.25]], assume="markov", steps_per_day=48)
    for age, left in ((47, 800_000_000), (48, 250_000_000)):
        assert known.exact_leakage(age, direction="forward")(800_000_000) == left
    assert known.exact_leakage(47, direction="backward").supremum(1) is None
    assert known.exact_leakage(47, direction="backward").supremum(0) == 0


def test_what_is_not_tabulated_has_no_whole_losses():
    with pytest.raises(ChainError, match="no forward bounds"):
        LeakageBound([48], [1.0], [[0.5]]).exact_leakage(48, direction="forward")


def test_infinity_on_the_grid_bounds_large_losses():
    left = TabulatedLeakage([100, "inf"], [40, 60])
    assert [left(loss) for loss in (100, 105, 10**15)] == [40, 45, 60]
    assert TabulatedLeakage([100, "inf"], [40, "inf"])(10**15) == 10**15 - 60
    assert TabulatedLeakage([100, "inf"], [100, "inf"]).supremum(1) is None
