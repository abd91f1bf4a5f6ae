"""Daily releases on a chain of half-hours against enumeration of whole paths and mechanisms, and against laws."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import (
    daily_leakage_with,
    daily_recursion,
    daily_release_leakage,
    temporal,
    temporal_kernels,
    windows,
)
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import power, reverse
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    dense,
    enumerated,
    joint_of_days,
    loss_about,
    mechanisms,
    reversed_chain,
    stationary,
)

STICKY = np.array([[0.8, 0.2], [0.3, 0.7]])
BANDED = np.array([[0.6, 0.4, 0, 0], [0.3, 0.4, 0.3, 0], [0, 0.3, 0.4, 0.3], [0, 0, 0.4, 0.6]])


def by_hand(chain, losses, gaps, steps):
    """docs/mathematics.md spelt out for the backward side, kernels by numpy's own powers and leakage by Algorithm 1."""
    c, bpl = losses[0], [losses[0]]
    for loss, gap in zip(losses[1:], gaps, strict=True):
        bpl.append(loss + algorithm_1(np.linalg.matrix_power(chain, 1 + steps * (gap - 1)), c))
        c = loss + algorithm_1(np.linalg.matrix_power(chain, steps * gap), c)
    return np.array(bpl)


@pytest.mark.parametrize("gaps", [[1, 1, 1], [1, 3, 2]])
@pytest.mark.parametrize("steps", [1, 2, 48])
def test_it_is_the_recursion_of_two_kernels(gaps, steps):
    losses = np.array([0.7, 0.2, 1.1, 0.4])
    for chain in (dense(4, 3), BANDED, STICKY):
        behind, ahead, total = daily_release_leakage(chain, losses, gaps, steps_per_day=steps)
        np.testing.assert_allclose(behind, by_hand(reversed_chain(chain), losses, gaps, steps), rtol=1e-9)
        np.testing.assert_allclose(ahead, by_hand(chain, losses[::-1], gaps[::-1], steps)[::-1], rtol=1e-9)
        np.testing.assert_allclose(total, behind + ahead - losses)


@pytest.mark.parametrize(("days", "steps"), [([0, 1, 3], 2), ([0, 2, 3], 2), ([0, 2], 3)])
@pytest.mark.parametrize("chain", [dense(2, 0, weight=0.4), dense(2, 1, weight=0.4), STICKY])
def test_no_mechanism_that_reads_whole_days_tells_more_about_a_whole_day(days, steps, chain):
    losses = [0.9, 0.5, 0.7][: len(days)]
    truth = np.array(enumerated(joint_of_days(chain, stationary(chain), days, steps), losses))
    total = daily_release_leakage(chain, losses, np.diff(days), steps_per_day=steps)[2]
    assert (truth <= total + 1e-12).all()
    if len(days) == 2 or chain is STICKY:
        np.testing.assert_allclose(total, truth, rtol=1e-12)


def test_no_mechanism_tells_more_about_two_days_in_a_row():
    losses, chain = np.array([0.9, 0.5, 0.7]), dense(2, 5)
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2], 2)
    bounds = windows(daily_recursion(chain, steps_per_day=2).leakage_totals(losses), losses, 2)
    for start in (0, 1):
        truth = loss_about(joint, (start, start + 1), [mechanisms(4, e) for e in losses])
        assert truth <= bounds[start] + 1e-12


def test_with_one_step_a_day_it_is_the_form_of_the_paper():
    chain, losses = dense(5, 1), [0.4, 0.9, 0.2]
    for gap, kernels in ((1, temporal_kernels(chain)), (2, (power(reverse(chain), 2), power(chain, 2)))):
        total = daily_release_leakage(chain, losses, [gap, gap], steps_per_day=1)[2]
        np.testing.assert_allclose(total, temporal(*kernels, losses), rtol=1e-12)


CHAINS = np.stack([dense(3, seed) for seed in range(5)])
MODEL = leakage_bound(
    reverse(CHAINS), [1, 3, 4, 6], LOSS_GRID, reliable=np.ones(5, bool), forward=CHAINS, steps_per_day=3
)


def test_a_leakage_bound_may_take_the_place_of_the_kernels_and_is_never_below():
    losses, gaps = [0.4, 0.9, 0.2, 0.3], [1, 2, 1]
    keys = [{"direction": direction, "method": "tight"} for direction in ("backward", "forward")]
    sides = (lambda gap, loss, side=side: MODEL(gap, loss, **side) for side in keys)
    total = daily_leakage_with(*sides, losses, gaps, steps_per_day=3).total
    truth = daily_release_leakage(CHAINS, losses, gaps, steps_per_day=3)[2].max(axis=0)
    assert (total >= truth).all()
    np.testing.assert_allclose(total, truth, rtol=0.25)


@pytest.mark.parametrize(
    ("gaps", "steps"), [([0, 1], 2), ([1], 2), ([1, 1, 1], 2), ([1.5, 1], 2), ([1, 1], 0), ([[1, 1]], 2)]
)
def test_gaps_that_are_none_are_refused(gaps, steps):
    with pytest.raises(ChainError):
        daily_release_leakage(STICKY, [0.1, 0.2, 0.3], gaps, steps_per_day=steps)
    with pytest.raises(ChainError):
        daily_recursion(STICKY, steps_per_day=2, gap_days=0)
