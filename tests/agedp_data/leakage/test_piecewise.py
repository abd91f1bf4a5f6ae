"""L by its pieces in whole 1e-9, against all sets of columns of a kernel in decimals of fifty digits."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from itertools import combinations, permutations

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.leakage import exact as hull
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import NANO, PROBABILITY_UNIT, PiecewiseLeakage
from agedp_data.leakage.function import supremum
from agedp_data.leakage.pieces import frontier_of
from agedp_data.leakage.population_bound import leakage_bound

LOSSES = [1, 1000, 10**6, 10**8, 3 * 10**8, NANO, 5 * NANO, 17 * NANO, 50 * NANO]


def kernels(number):
    chance = np.random.default_rng(3)
    for i in range(number):
        states = int(chance.integers(2, 7))
        rows = chance.dirichlet(np.full(states, (0.2, 1.0, 5.0)[i % 3]), states)
        yield np.where(chance.random(rows.shape) < 0.2, 0.0, rows) + np.eye(states) * 0.01


def in_fifty_digits(kernel, loss):
    """The maximum over all pairs of rows and all sets of columns."""
    with localcontext(prec=50):
        more = (Decimal(loss) / NANO).exp() - 1
        rows = [[Decimal(float(each)) for each in row] for row in kernel]
        sets = [s for size in range(1, len(rows)) for s in combinations(range(len(rows)), size)]
        return max(
            ((1 + more * sum(q[j] for j in s)) / (1 + more * sum(d[j] for j in s))).ln()
            for q, d in permutations(rows, 2)
            for s in sets
        )


def normed(kernel):
    return kernel / kernel.sum(axis=1, keepdims=True)


def test_it_is_the_largest_over_all_sets_of_columns_and_at_most_two_billionths_above_it():
    for kernel in map(normed, kernels(6)):
        left = PiecewiseLeakage.from_floats(*frontier_of(kernel[None]))
        for loss in LOSSES:
            exact = in_fifty_digits(kernel, loss) * NANO
            # rows of floats add up to one up to 1e-16 only, which e^a makes more of where a set has nearly nothing else
            assert float(exact) * (1 - 1e-9) <= left(loss) <= min(float(exact) * (1 + 1e-9) + 1.01, loss)


def test_what_lies_next_to_a_whole_billionth_is_computed_in_decimals_and_comes_out_alike(monkeypatch):
    left = PiecewiseLeakage(
        [9 * PROBABILITY_UNIT // 10, 99 * PROBABILITY_UNIT // 100], [PROBABILITY_UNIT // 10, PROBABILITY_UNIT // 5]
    )
    losses = np.random.default_rng(1).integers(1, 60 * NANO, 500).tolist()
    quick = [left(loss) for loss in losses]
    monkeypatch.setattr(hull, "_FLOAT_ERROR", 1.0)  # always
    assert [left(loss) for loss in losses] == quick


def test_its_supremum_is_a_loss_that_the_recursion_never_passes_and_hardly_above_the_limit():
    for kernel in map(normed, kernels(30)):
        left = PiecewiseLeakage.from_floats(*frontier_of(kernel[None]))
        for loss in (10**6, 10**8, NANO, 3 * NANO):
            limit, found = float(supremum(kernel, loss / NANO)), left.supremum(loss)
            if found is None:
                assert limit > 500
                continue
            assert loss + left(found) <= found
            # each use rounds up by one at most, and the guard against floats is far less
            assert limit * NANO - 1 <= found <= float(supremum(kernel, (loss + 3) / NANO)) * NANO + 1
            said = 0
            for _ in range(200):
                said = loss + left(said)
            assert said <= found


@pytest.mark.parametrize(("over", "under"), [([1], []), ([1], [2]), ([PROBABILITY_UNIT + 1], [0]), ([1], [-1])])
def test_sums_that_are_none_of_probabilities_are_refused(over, under):
    with pytest.raises(ChainError, match="pieces are pairs of sums"):
        PiecewiseLeakage(over, under)


class TestOfAnEnvelope:
    CHAIN = np.array([[0.97, 0.02, 0.01], [0.02, 0.96, 0.02], [0.005, 0.025, 0.97]])

    def made(self, **more):
        return leakage_bound(
            self.CHAIN[None], [1, 7], LOSS_GRID, reliable=[True], forward=self.CHAIN[None], steps_per_day=1, **more
        )

    def test_it_is_kept_beside_the_grid_and_read_again(self):
        sharp = self.made(pieces=True)
        again = LeakageBound.from_json(json.loads(json.dumps(sharp.to_json())))
        assert again == sharp
        assert again != self.made()
        assert {k: v for k, v in sharp.to_json().items() if k != "hulls"} == self.made().to_json()

    def test_what_it_says_lies_between_the_kernel_and_the_grid(self):
        grid, sharp = self.made(), self.made(pieces=True)
        power = np.linalg.matrix_power(self.CHAIN, 7)
        losses = np.random.default_rng(2).uniform(0, 20, 200)
        for loss in losses:
            exact = float(in_fifty_digits(power, round(loss * NANO)))
            found = [float(one(9, loss, direction="backward", method="tight")) for one in (sharp, grid)]
            assert exact - 1e-9 <= found[0] <= exact + 3e-9
            assert found[0] <= found[1]
        limits = [one.supremum(1, 0.3, direction="forward", method="tight") for one in (sharp, grid)]
        assert limits[0] == pytest.approx(float(supremum(self.CHAIN, 0.3)), rel=1e-6)
        assert limits[0] < limits[1]
        assert 0.3 + float(sharp(1, limits[0], direction="forward", method="tight")) <= limits[0]

    def test_pieces_of_other_ages_or_of_a_direction_without_a_table_are_refused(self):
        text = self.made(pieces=True).to_json()
        text["hulls"]["backward"].pop()
        with pytest.raises(ChainError, match="pieces of L for all ages"):
            LeakageBound.from_json(text)
        text = self.made(pieces=True).to_json()
        del text["forward"]
        with pytest.raises(ChainError, match="pieces of L for all ages"):
            LeakageBound.from_json(text)
