"""Total leakage pair by pair: between the truth and the sum of both directions' own maxima."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import pairwise, temporal, temporal_kernels
from agedp_data.errors import ChainError
from tests.agedp_data.accounting.temporal_oracles import dense, enumerated, joint_of_days, stationary

FIG_3 = [[0.8, 0.2], [0.0, 1.0]]


@pytest.mark.parametrize("seed", range(6))
def test_pair_by_pair_lies_between_the_truth_and_the_sum_of_maxima(seed):
    chain = dense(3, seed + 50, weight=0.3)
    losses = [0.9, 0.6, 1.3]
    behind, ahead = temporal_kernels(chain)
    truth = np.array(enumerated(joint_of_days(chain, stationary(chain), [0, 1, 2], 1), losses))
    found, whole = pairwise(behind, ahead, losses), temporal(behind, ahead, losses)
    assert (truth <= found + 1e-12).all()
    assert (found <= whole + 1e-12).all()


def test_without_a_common_pair_the_sides_do_not_add_up():
    # Values 0 and 1 had different pasts, 2 and 3 will have different futures; halfway between them lie the others.
    half = [0.5, 0.5]
    behind, ahead = [[0.6, 0.4], [0.4, 0.6], half, half], [half, half, [0.6, 0.4], [0.4, 0.6]]
    growth = np.expm1(1.0)
    apart = np.log((1 + growth * 0.6) / (1 + growth * 0.4))
    assert temporal(behind, ahead, [1.0] * 3)[1] == pytest.approx(1 + 2 * apart)
    # One way from 0 to 1, or half of it in the past and the other half in the future from 0 to 2.
    assert pairwise(behind, ahead, [1.0] * 3)[1] == pytest.approx(1 + apart)


def test_the_pair_is_an_ordered_one():
    # Rows 0 and 1 are told apart by a rare value in one order and by a common one in the other.
    behind, ahead = [[0.9, 0.1], [1.0, 0.0]], [[1.0, 0.0], [0.9, 0.1]]
    growth = np.expm1(2.0)
    rare, common = np.log(1 + growth * 0.1), np.log((1 + growth) / (1 + growth * 0.9))
    assert rare > 2 * common
    assert temporal(behind, ahead, [2.0] * 3)[1] == pytest.approx(2 + 2 * rare)
    assert pairwise(behind, ahead, [2.0] * 3)[1] == pytest.approx(2 + rare + common)


@pytest.mark.parametrize(
    ("behind", "ahead", "losses"),
    [(np.stack([FIG_3] * 2), None, [0.1]), (dense(2, 1), dense(3, 1), [0.1]), (FIG_3, FIG_3, [[0.1]])],
)
def test_pairs_are_those_of_one_household_with_one_set_of_values(behind, ahead, losses):
    with pytest.raises(ChainError):
        pairwise(behind, ahead, losses)


def test_a_value_that_one_direction_has_no_row_for_is_in_no_pair():
    # The first value is left for good: forward it differs from all others, backward nothing is known of it.
    chain = np.array([[0.05, 0.95, 0.0], [0.0, 0.9, 0.1], [0.0, 0.3, 0.7]])
    behind, ahead = temporal_kernels(chain)
    assert np.isnan(behind[0][0]).all()
    losses = [0.5, 0.7, 0.4]
    small = chain[1:, 1:]
    found = pairwise(behind, ahead, losses)
    assert found[1] < temporal(behind, ahead, losses)[1] - 0.01
    assert found[1] == pytest.approx(pairwise(small, small, losses)[1], rel=1e-12)
    assert found[2] == pytest.approx(temporal(small, small, losses)[2], rel=1e-12)
