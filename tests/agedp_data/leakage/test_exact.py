"""Rounding and L in whole 1e-9, against exact fractions and all sets of columns in decimals of fifty digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import (
    NANO,
    PROBABILITY_UNIT,
    PiecewiseLeakage,
    TabulatedLeakage,
    from_integers,
    round_down_nano,
    round_up_nano,
    round_up_with_slack,
    to_integers,
)
from agedp_data.leakage.function import frontier_of
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import reverse


@given(st.floats(0, 1e5), st.integers(0, 10**14))
def test_rounding_is_to_the_next_whole_and_whole_numbers_stay(amount, number):
    up, down = float(round_up_nano(amount)), float(round_down_nano(amount))
    assert down <= amount <= up
    assert up - down <= 1.01e-9 + 1e-11
    assert Fraction(up) - Fraction(amount) < Fraction(1, 10**9) + Fraction(1, 10**11)
    value = number / 10**9
    assert float(round_up_nano(value)) == float(round_down_nano(value)) == value
    assert to_integers([value]) == [number]
    assert from_integers([number])[0] == value


def test_infinity_is_a_word_and_a_computed_bound_gets_its_slack():
    assert to_integers([np.inf, 0.5]) == ["inf", 500_000_000]
    assert from_integers(["inf", 1]).tolist() == [np.inf, 1e-9]
    large = 2.0**33 + 2.0**-19  # beyond this the next float is further than 1e-9
    assert to_integers([large])[0] >= Fraction(large) * NANO
    assert round_up_with_slack([0.0, 1e-15, 0.25, np.inf]).tolist() == [0.0, 1e-9, 0.250000001, np.inf]


CHAINS = np.random.default_rng(5).dirichlet(np.full(3, 0.6), size=(4, 3))
KNOWN = leakage_bound(
    reverse(CHAINS), [1, 4], LOSS_GRID, reliable=np.ones(4, bool), forward=CHAINS, steps_per_day=1
)  # fmt: skip


@given(
    st.tuples(st.sampled_from([1, 2, 9]), st.sampled_from(["backward", "forward"])),
    st.integers(0, 70 * NANO) | st.integers(0, 10_000),
)
def test_a_table_in_whole_numbers_is_the_bound_in_floats(side, loss):
    age, direction = side
    function, keys = KNOWN.exact_leakage(age, direction=direction), {"direction": direction, "method": "tight"}
    known = round(float(KNOWN(age, loss / NANO, **keys)) * NANO)
    assert known - 1 <= function(loss) <= min(known, loss)  # floats may round up once more
    limit, expected = function.supremum(loss), KNOWN.supremum(age, loss / NANO, **keys)
    assert (limit is None) == np.isinf(expected)
    if limit:
        assert limit <= expected * NANO + 2
        assert limit == pytest.approx(expected * NANO, rel=1e-6, abs=1000)
        assert loss + function(limit) <= limit
        assert loss + function(limit - 1) > limit - 1


def test_a_table_in_whole_numbers_by_hand():
    known = LeakageBound([48], [1.0], [[0.5]], [[0.25]], assume="markov", steps_per_day=48)
    for age, expected in ((47, 800_000_000), (48, 250_000_000)):  # below the smallest age nothing is forgotten
        assert known.exact_leakage(age, direction="forward")(800_000_000) == expected
    assert known.exact_leakage(47, direction="backward").supremum(1) is None
    with pytest.raises(ChainError, match="no forward bounds"):
        LeakageBound([48], [1.0], [[0.5]]).exact_leakage(48, direction="forward")
    assert [TabulatedLeakage([100, "inf"], [40, 60])(loss) for loss in (100, 105, 10**15)] == [40, 45, 60]
    assert TabulatedLeakage([100, "inf"], [40, "inf"])(10**15) == 10**15 - 60
    assert TabulatedLeakage([100, "inf"], [100, "inf"]).supremum(1) is None


def random_kernels(number):
    rng = np.random.default_rng(3)
    for i in range(number):
        states = int(rng.integers(2, 6))
        rows = rng.dirichlet(np.full(states, (0.2, 1.0, 5.0)[i % 3]), states)
        rows = np.where(rng.random(rows.shape) < 0.2, 0.0, rows) + np.eye(states) * 0.01
        yield rows / rows.sum(axis=1, keepdims=True)


def in_fifty_digits(kernel, loss):
    """The maximum over all pairs of rows and all sets of columns [nano-epsilon]."""
    with localcontext(prec=50):
        more = (Decimal(loss) / NANO).exp() - 1
        rows = [[Decimal(float(each)) for each in row] for row in kernel]
        sets = [s for size in range(1, len(rows)) for s in combinations(range(len(rows)), size)]
        ratios = (
            ((1 + more * sum(q[j] for j in s)) / (1 + more * sum(d[j] for j in s))).ln()
            for q, d in permutations(rows, 2)
            for s in sets
        )
        return float(max(ratios) * NANO)


def test_pieces_are_the_largest_over_all_sets_of_columns_and_at_most_two_billionths_above():
    for kernel in random_kernels(6):
        function = PiecewiseLeakage.from_floats(*frontier_of(kernel[None]))
        for loss in [1, 1000, 10**6, 10**8, NANO, 5 * NANO, 17 * NANO, 50 * NANO]:
            exact = in_fifty_digits(kernel, loss)
            # rows of floats add up to one up to 1e-16 only, which e^a makes more of where a set has nearly nothing else
            assert exact * (1 - 1e-9) <= function(loss) <= min(exact * (1 + 1e-9) + 1.01, loss)


@pytest.mark.parametrize(("over", "under"), [([1], []), ([1], [2]), ([PROBABILITY_UNIT + 1], [0]), ([1], [-1])])
def test_sums_that_are_none_of_probabilities_are_refused(over, under):
    with pytest.raises(ChainError, match="pieces are pairs of sums"):
        PiecewiseLeakage(over, under)
