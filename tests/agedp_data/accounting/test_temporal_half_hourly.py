"""Daily releases on a chain of half-hours against enumeration of whole paths and mechanisms, and against laws."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import (
    OneSidedRecursion,
    Recursion,
    allocate_with,
    backward,
    daily_leakage_with,
    daily_recursion,
    daily_release_leakage,
    round_up_losses,
    temporal,
    temporal_kernels,
    temporal_supremum,
    windows,
)
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.function import leakage
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
    """MATHS 4 spelt out, kernels by numpy's own powers and leakage by Algorithm 1."""
    behind, powered = reversed_chain(chain), np.linalg.matrix_power
    count = len(losses)
    c, bpl = [losses[0]], [losses[0]]
    for k in range(1, count):
        g = gaps[k - 1]
        bpl.append(losses[k] + algorithm_1(powered(behind, 1 + steps * (g - 1)), c[-1]))
        c.append(losses[k] + algorithm_1(powered(behind, steps * g), c[-1]))
    big, fpl = [losses[-1]], [losses[-1]]
    for k in reversed(range(count - 1)):
        g = gaps[k]
        fpl.insert(0, losses[k] + algorithm_1(powered(chain, 1 + steps * (g - 1)), big[0]))
        big.insert(0, losses[k] + algorithm_1(powered(chain, steps * g), big[0]))
    return np.array(bpl), np.array(fpl), np.array(bpl) + fpl - losses


@pytest.mark.parametrize("gaps", [[1, 1, 1], [1, 3, 2]])
@pytest.mark.parametrize("steps", [1, 2, 48])
def test_it_is_the_recursion_of_two_kernels(gaps, steps):
    losses = np.array([0.7, 0.2, 1.1, 0.4])
    for chain in (dense(4, 3), BANDED, STICKY):
        found = daily_release_leakage(chain, losses, gaps, steps_per_day=steps)
        for side, expected in zip(found, by_hand(chain, losses, gaps, steps), strict=True):
            np.testing.assert_allclose(side, expected, rtol=1e-9)


@pytest.mark.parametrize(("days", "steps"), [([0, 1, 2], 2), ([0, 1, 3], 2), ([0, 2, 3], 2), ([0, 1], 3), ([0, 2], 3)])
@pytest.mark.parametrize("seed", range(3))
def test_no_mechanism_that_reads_whole_days_tells_more_about_a_whole_day(days, steps, seed):
    chain = dense(2, seed, weight=0.4)
    losses = [0.9, 0.5, 0.7][: len(days)]
    truth = np.array(enumerated(joint_of_days(chain, stationary(chain), days, steps), losses))
    total = daily_release_leakage(chain, losses, np.diff(days), steps_per_day=steps)[2]
    assert (truth <= total + 1e-12).all()
    if len(days) == 2:
        np.testing.assert_allclose(total, truth, rtol=1e-12)


@pytest.mark.parametrize("days", [[0, 1, 2], [0, 1, 3]])
def test_a_sticky_household_leaks_all_that_is_said(days):
    losses = [0.9, 0.5, 0.7]
    truth = enumerated(joint_of_days(STICKY, stationary(STICKY), days, 2), losses)
    np.testing.assert_allclose(
        daily_release_leakage(STICKY, losses, np.diff(days), steps_per_day=2)[2], truth, rtol=1e-12
    )


def test_no_mechanism_tells_more_about_two_days_in_a_row():
    losses, chain = np.array([0.9, 0.5, 0.7]), dense(2, 5)
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2], 2)
    leak = daily_recursion(chain, steps_per_day=2).leakage_totals(losses)
    found = windows(leak, losses, 2)
    for start in (0, 1):
        truth = loss_about(joint, (start, start + 1), [mechanisms(4, e) for e in losses])
        assert truth <= found[start] + 1e-12


def test_the_recursion_over_single_half_hours_grows_without_end_where_days_do_not():
    # Two states that never follow the same one: every half-hour passes everything on.
    assert temporal_supremum(*temporal_kernels(BANDED), 0.1) == np.inf
    naive = backward(reverse(BANDED), np.full(50, 0.1))
    np.testing.assert_allclose(naive, 0.1 * np.arange(1, 51))
    # In a day nearly all is forgotten; the half-hour between two days passes on one release each way.
    assert daily_recursion(BANDED, steps_per_day=48).total_supremum(0.1) == pytest.approx(0.3, rel=1e-2)


def test_releases_some_steps_apart_pass_through_the_power_and_not_through_single_steps():
    losses = np.array([0.7, 0.9])
    chain = dense(4, 7)
    found = daily_release_leakage(chain, losses, [5], steps_per_day=1)[0][1]
    behind, once = reversed_chain(chain), 0.7
    for _ in range(5):
        once = algorithm_1(behind, once)
    assert found == pytest.approx(0.9 + algorithm_1(np.linalg.matrix_power(behind, 5), 0.7), rel=1e-9)
    assert found < 0.9 + once


def test_a_skipped_day_is_at_most_a_release_without_loss():
    for chain in (dense(3, 2), BANDED):
        skipped = daily_release_leakage(chain, [0.4, 0.6, 0.5], [2, 1], steps_per_day=2)
        silent = daily_release_leakage(chain, [0.4, 0.0, 0.6, 0.5], [1, 1, 1], steps_per_day=2)
        for one, other in zip(skipped, silent, strict=True):
            assert (one <= other[[0, 2, 3]] + 1e-12).all()


def test_the_forward_chain_looking_back_would_understate():
    # Rests, then runs up through the states and falls back: where it was is told by where it is.
    chain = np.array([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0, 0.5], [0.5, 0, 0, 0.5]])
    found = daily_release_leakage(chain, [1.0, 1.0], [1], steps_per_day=2)[0][1]
    assert found > 1 + leakage(chain, 1.0) + 0.1


@pytest.mark.parametrize("gap", [1, 2])
def test_the_limit_is_what_long_series_of_days_build_up_to(gap):
    for chain in (dense(3, 4), BANDED, STICKY):
        daily = daily_recursion(chain, steps_per_day=3, gap_days=gap)
        long = daily_release_leakage(chain, np.full(200, 0.3), np.full(199, gap), steps_per_day=3)[2].max()
        assert daily.total_supremum(0.3) == pytest.approx(long, rel=1e-9)
        assert long <= daily.total_supremum(0.3) * (1 + 1e-13)


def test_with_one_step_a_day_it_is_the_form_of_the_paper():
    chain, losses = dense(5, 1), [0.4, 0.9, 0.2]
    np.testing.assert_array_equal(
        daily_release_leakage(chain, losses, [1, 1], steps_per_day=1)[2], temporal(*temporal_kernels(chain), losses)
    )
    behind, ahead = power(reverse(chain), 2), power(chain, 2)
    np.testing.assert_allclose(
        daily_release_leakage(chain, losses, [2, 2], steps_per_day=1)[2], temporal(behind, ahead, losses)
    )


def test_households_and_sets_of_chains():
    stack = np.stack([dense(4, 1), BANDED])
    losses = [0.4, 0.9, 0.2]
    found = daily_release_leakage(stack, losses, [1, 2], steps_per_day=2)
    assert found[0].shape == (2, 3)
    for i, chain in enumerate(stack):
        for side, own in zip(found, daily_release_leakage(chain, losses, [1, 2], steps_per_day=2), strict=True):
            np.testing.assert_array_equal(side[i], own)
    worst = daily_release_leakage(tuple(stack), losses, [1, 2], steps_per_day=2)
    assert all((side >= each.max(axis=0) - 1e-15).all() for side, each in zip(worst, found, strict=True))


def envelope_of(chains):
    """The envelope of daily releases: one step and one and two days."""
    behind, ahead = reverse(chains), power(chains, 1)
    return leakage_bound(
        behind, [1, 3, 4, 6], LOSS_GRID, reliable=np.ones(len(chains), bool), forward=ahead, steps_per_day=3
    )


class Passing:
    """How a model's envelope passes a loss over a gap: what a promise made of its public part uses."""

    def __init__(self, model: LeakageBound, gap: int, direction: str):
        self.model, self.gap, self.direction = model, gap, direction

    def __call__(self, loss):
        return self.model(self.gap, loss, direction=self.direction, method="tight")

    def supremum(self, loss):
        return np.asarray(self.model.supremum(self.gap, float(loss), direction=self.direction, method="tight"))


def test_an_envelope_may_take_the_place_of_the_kernels_and_never_says_less():
    chains = np.stack([dense(3, seed) for seed in range(5)])
    model = envelope_of(chains)
    losses, gaps = [0.4, 0.9, 0.2, 0.3], [1, 2, 1]
    found = daily_leakage_with(
        lambda gap, loss: model(gap, loss, direction="backward", method="tight"),
        lambda gap, loss: model(gap, loss, direction="forward", method="tight"),
        losses,
        gaps,
        steps_per_day=3,
    )
    truth = daily_release_leakage(chains, losses, gaps, steps_per_day=3)[2].max(axis=0)
    assert (found.total >= truth).all()
    np.testing.assert_allclose(found.total, truth, rtol=0.25)


@pytest.mark.parametrize("method", ["supremum", "exact", "even", "best"])
def test_budgets_made_of_an_envelope_hold_for_every_household(method):
    chains = np.stack([dense(3, seed) for seed in range(5)])
    model = envelope_of(chains)
    sides = ("backward", "forward")
    step, day = ({side: Passing(model, gap, side) for side in sides} for gap in (3, 1))
    daily = Recursion(*(OneSidedRecursion(lambda _, at=step[s]: at, lambda _, at=day[s]: at) for s in sides))
    losses = allocate_with(daily, alpha=1.5, horizon=12, method=method)
    granted = round_up_losses(daily, losses, alpha=1.5)
    for plan in (losses, granted):
        assert daily_release_leakage(chains, plan, np.ones(11, int), steps_per_day=3)[2].max() <= 1.5
    np.testing.assert_array_equal(granted * 1e9, np.rint(granted * 1e9))


@pytest.mark.parametrize(
    ("gaps", "steps"), [([0, 1], 2), ([1], 2), ([1, 1, 1], 2), ([1.5, 1], 2), ([1, 1], 0), ([[1, 1]], 2)]
)
def test_gaps_that_are_none_are_refused(gaps, steps):
    with pytest.raises(ChainError):
        daily_release_leakage(STICKY, [0.1, 0.2, 0.3], gaps, steps_per_day=steps)
    with pytest.raises(ChainError):
        daily_recursion(STICKY, steps_per_day=2, gap_days=0)
