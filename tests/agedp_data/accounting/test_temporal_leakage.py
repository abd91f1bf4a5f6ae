"""Temporal leakage of series, windows, half-hours and chains of a higher order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.accounting.temporal_leakage import (
    allocate_with,
    backward,
    daily_leakage_with,
    daily_recursion,
    daily_release_leakage,
    forward,
    pairwise,
    round_up_losses,
    temporal,
    temporal_kernels,
    temporal_recursion,
    temporal_supremum,
    user_level,
    w_event,
    window,
    windows,
)
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import power, reverse
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    by_recursion,
    dense,
    enumerated,
    joint_of_days,
    kernels_of_every_kind,
    loss_about,
    mechanisms,
    recursion_by_leaps,
    reversed_chain,
    stationary,
    total_by_recursion,
)

# Temporal leakage against Algorithm 1 in extended precision, linear programmes, enumeration and reference values.

FIG_3 = [[0.8, 0.2], [0.0, 1.0]]
TRAP = [[0.12, 0.5, 0.38], [0.65, 0.35, 0.0], [0.3, 0.43, 0.27]]
BPL = [
    0.1, 0.1807840339, 0.2471477411, 0.3023648491, 0.3487675061, 0.388073776, 0.4215839752, 0.4503042547, 0.475027577,
    0.4963885968,
]  # fmt: skip
TPL = [0.4963885968, 0.5558116109, 0.5974519957, 0.6239488243, 0.6368412821]


def series(seed, count):
    return 10 ** np.random.default_rng(seed).uniform(-6, np.log10(50), size=count)


def test_figure_3_of_the_paper_has_its_reference_values():
    losses = [0.1] * 10
    np.testing.assert_allclose(backward(FIG_3, losses), BPL, atol=1e-10)
    np.testing.assert_allclose(forward(FIG_3, losses), BPL[::-1], atol=1e-10)
    np.testing.assert_allclose(temporal(FIG_3, FIG_3, losses), TPL + TPL[::-1], atol=1e-10)
    assert temporal_supremum(FIG_3, None, 0.1) == pytest.approx(0.6459066161, abs=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_random_pairs_of_matrices_leak_as_algorithm_1_says(seed):
    n, count = (2, 3, 7, 12, 20, 5, 4, 6)[seed], (10, 10, 10, 4, 3, 200, 10, 10)[seed]
    behind, ahead = kernels_of_every_kind(n, seed), kernels_of_every_kind(n, seed + 1000)
    kinds = list(behind)
    for i, kind in enumerate(kinds if count == 10 else kinds[seed % 3 : seed % 3 + 1]):
        other, losses = kinds[(i + seed) % len(kinds)], series(seed, count)
        expected = total_by_recursion(behind[kind], ahead[other], losses)
        total = temporal(behind[kind], ahead[other], losses)
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-9, err_msg=f"{kind} {other}")


@pytest.mark.parametrize("seed", range(4))
def test_no_mechanism_on_a_chain_leaks_more(seed):
    chain, losses = dense(3, seed, weight=0.3), [0.7, 0.4, 1.1]
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2], 1)
    behind, ahead = temporal_kernels(chain)
    truth, by_pairs = np.array(enumerated(joint, losses)), pairwise(behind, ahead, losses)
    assert (truth <= by_pairs + 1e-12).all()
    assert (by_pairs <= temporal(behind, ahead, losses) + 1e-12).all()
    first, second = enumerated(joint.sum(axis=2), losses[:2])
    np.testing.assert_allclose(second, backward(behind, losses[:2])[1], rtol=1e-12)
    np.testing.assert_allclose(first, forward(ahead, losses[:2])[0], rtol=1e-12)


def test_without_a_common_pair_the_sides_do_not_add_up():
    # Values 0 and 1 had different pasts, 2 and 3 will have different futures; halfway between them lie the others.
    half = [0.5, 0.5]
    behind, ahead = [[0.6, 0.4], [0.4, 0.6], half, half], [half, half, [0.6, 0.4], [0.4, 0.6]]
    growth = np.expm1(1.0)
    apart = np.log((1 + growth * 0.6) / (1 + growth * 0.4))
    assert temporal(behind, ahead, [1.0] * 3)[1] == pytest.approx(1 + 2 * apart)
    assert pairwise(behind, ahead, [1.0] * 3)[1] == pytest.approx(1 + apart)
    # The pair is ordered: rows are told apart by a rare value in one order and by a common one in the other.
    behind, ahead = [[0.9, 0.1], [1.0, 0.0]], [[1.0, 0.0], [0.9, 0.1]]
    growth = np.expm1(2.0)
    rare, common = np.log(1 + growth * 0.1), np.log((1 + growth) / (1 + growth * 0.9))
    assert temporal(behind, ahead, [2.0] * 3)[1] == pytest.approx(2 + 2 * rare)
    assert pairwise(behind, ahead, [2.0] * 3)[1] == pytest.approx(2 + rare + common)


def test_a_set_of_matrices_leaks_as_the_worst_order_in_which_they_may_take_turns():
    chains, losses = (dense(3, 1), dense(3, 2), np.array(TRAP)), [0.8, 0.5, 0.9, 0.7]
    worst = np.zeros(4)
    for turns in product(chains, repeat=3):
        course = [losses[0]]
        for kernel, e in zip(turns, losses[1:], strict=True):
            course.append(e + algorithm_1(kernel, course[-1]))
        worst = np.maximum(worst, course)
    np.testing.assert_allclose(backward(chains, losses), worst, rtol=1e-12)


def test_a_stack_of_households_leaks_as_each_of_them_does():
    stack = np.stack([dense(4, seed, weight=0.2 + 0.3 * seed) for seed in range(6)]).reshape(2, 3, 4, 4)
    losses = series(3, 5)
    total = temporal(stack, stack[::-1], losses)
    assert total.shape == (2, 3, 5)
    np.testing.assert_array_equal(total[1, 2], temporal(stack[1, 2], stack[0, 2], losses))
    own = temporal(stack, stack, np.broadcast_to(losses, (3, 5)) * np.array([[1], [2], [3]]))
    np.testing.assert_array_equal(own[1, 2], temporal(stack[1, 2], stack[1, 2], 3 * losses))
    mixed = backward((stack[0], dense(5, 9)), losses)  # matrices of a set may differ in size
    np.testing.assert_array_equal(mixed[1], backward((stack[0, 1], dense(5, 9)), losses))
    large = np.random.default_rng(5).dirichlet(np.full(12, 0.4), size=(1500, 12))
    whole = backward(large, [0.5] * 3)
    for i in (0, 662, 663, 1499):
        np.testing.assert_allclose(whole[i], by_recursion(large[i], [0.5] * 3), rtol=1e-12)


def test_unknown_infinite_and_no_losses():
    losses = [0.3, 0.8, 0.1]
    np.testing.assert_array_equal(temporal(None, None, losses), losses)
    np.testing.assert_array_equal(temporal(FIG_3, None, losses), backward(FIG_3, losses))
    np.testing.assert_array_equal(pairwise(None, FIG_3, losses), forward(FIG_3, losses))
    flip = [[0.9, 0.1], [0.1, 0.9]]
    np.testing.assert_allclose(temporal(flip, flip, [0.5, np.inf, 0.5]), [0.5 + np.log(9), np.inf, 0.5 + np.log(9)])
    assert temporal(np.stack([FIG_3] * 3), FIG_3, []).shape == (3, 0)
    np.testing.assert_array_equal(temporal(FIG_3, FIG_3, [0.7]), [0.7])
    np.testing.assert_array_equal(temporal(FIG_3, FIG_3, [0.0] * 4), np.zeros(4))


@pytest.mark.parametrize("kernel", [dense(3, 8), np.array(FIG_3), np.array([[0.3, 0.7], [0.9, 0.1]])])
@pytest.mark.parametrize("loss", [1e-6, 0.1])
def test_the_limit_is_what_long_series_build_up_to(kernel, loss):
    limit, long = temporal_supremum(kernel, kernel, loss), temporal(kernel, kernel, np.full(400, loss)).max()
    assert long <= limit * (1 + 1e-13)
    assert long == pytest.approx(limit, rel=1e-6)


def test_infinite_limits_are_found_on_either_side():
    assert temporal_supremum(np.eye(2), None, 1e-9) == np.inf
    assert temporal_supremum(None, TRAP, 1.0) == np.inf
    assert temporal_supremum([[0, 1], [1, 0]], None, 0.1) == np.inf
    assert temporal_supremum(FIG_3, FIG_3, np.log(5 / 4)) == np.inf
    assert np.isfinite(temporal_supremum(FIG_3, FIG_3, np.log(5 / 4) - 1e-6))
    np.testing.assert_array_equal(temporal_supremum(np.eye(2), np.eye(2), [0.0, 0.1]), [0.0, np.inf])


def test_releases_still_to_come_leak_as_a_very_long_series_does():
    recursion = temporal_recursion([[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]])
    open_ended = recursion.leakage_totals([0.3, 0.2], future_loss=0.1)
    long = recursion.leakage_totals([0.3, 0.2] + [0.1] * 300)
    np.testing.assert_allclose(open_ended.total, long.total[:2], rtol=1e-9)
    assert temporal_recursion(np.eye(2), None).leakage_totals([0.3], future_loss=0.1).total == 0.3


@pytest.mark.parametrize(
    "call",
    [
        *(lambda k=k: temporal(k, k, [0.1]) for k in ((), [[0.5, 0.6], [0.5, 0.5]])),
        *(lambda losses=losses: temporal(FIG_3, FIG_3, losses) for losses in ([-0.1], [np.nan], 0.1)),
        lambda: temporal(np.stack([FIG_3] * 3), None, np.full((2, 4), 0.1)),
        lambda: temporal((np.stack([FIG_3] * 3), np.stack([FIG_3] * 2)), None, [0.1]),
        lambda: temporal_kernels(None),
        lambda: pairwise(np.stack([FIG_3] * 2), None, [0.1]),
        lambda: pairwise(dense(2, 1), dense(3, 1), [0.1]),
        lambda: pairwise(FIG_3, FIG_3, [[0.1]]),
    ],
)
def test_what_is_no_kernel_and_no_series_is_refused(call):
    with pytest.raises(ChainError):
        call()


def matrices(count):
    weight = st.sampled_from([0.0, 0.0, 1e-9, 0.1, 0.5, 1.0, 1.0]) | st.floats(1e-6, 1.0)
    whole = arrays(np.float64, (4, 4), elements=weight).filter(lambda w: w.sum(axis=1).min() > 0)
    return st.tuples(*[whole.map(lambda w: w / w.sum(axis=1, keepdims=True))] * count)


LOSSES = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 50)), min_size=1, max_size=8).map(np.array)


@settings(max_examples=25)
@given(matrices(2), LOSSES, st.integers(0, 8), st.floats(0, 5))
def test_it_lies_between_a_loss_and_the_sum_and_rises_by_no_more_than_a_loss(pair, losses, where, more):
    total, by_pairs = temporal(*pair, losses), pairwise(*pair, losses)
    np.testing.assert_allclose(total, total_by_recursion(*pair, losses), rtol=1e-9, atol=1e-9)
    assert (losses <= by_pairs).all()
    assert (by_pairs <= total + 1e-9).all()
    assert (total <= losses.sum() * (1 + 1e-9) + 1e-9).all()
    raised = np.append(losses, 0.0)
    raised[where % raised.size] += more
    high, low = temporal(*pair, raised), temporal(*pair, np.append(losses, 0.0))
    assert (low - 1e-9 <= high).all()
    assert (high <= low + more + 1e-9).all()
    assert (total <= low[:-1] + 1e-9).all()


@settings(max_examples=25)
@given(matrices(1), st.floats(1e-6, 3))
def test_the_limit_is_a_fixed_point_that_the_recursion_never_passes(one, loss):
    top = float(temporal_supremum(one[0], None, loss))
    assert backward(one[0], np.full(60, loss)).max() <= top * (1 + 1e-12)
    if top < 30:
        np.testing.assert_allclose(loss + algorithm_1(one[0], top), top, rtol=1e-7)


# Losses about several releases in a row against the paper's three cases and enumeration.


def test_windows_have_the_paper_s_three_cases():
    behind, ahead, losses = dense(3, 1), dense(3, 2), np.array([0.3, 0.7, 0.2, 0.5, 0.4])
    bpl, fpl = by_recursion(behind, losses), by_recursion(ahead, losses[::-1])[::-1]
    for start in range(5):
        assert window(behind, ahead, losses, start, 1) == pytest.approx(bpl[start] + fpl[start] - losses[start])
    for start in range(4):
        assert window(behind, ahead, losses, start, 2) == pytest.approx(bpl[start] + fpl[start + 1])
    assert window(behind, ahead, losses, 1, 3) == pytest.approx(bpl[1] + losses[2] + fpl[3])
    assert window(behind, ahead, losses, 0, 5) == pytest.approx(losses.sum())
    assert user_level(losses) == pytest.approx(losses.sum())


@pytest.mark.parametrize("secret", [(0, 1), (0, 1, 2), (1, 2, 3)])
def test_a_mechanism_attains_the_bound_about_a_window_of_two_states(secret):
    chain, losses = dense(2, 9), [0.7, 0.4, 0.6, 0.5]
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2, 3], 1)
    truth = loss_about(joint, secret, [mechanisms(2, e) for e in losses])
    assert truth == pytest.approx(window(*temporal_kernels(chain), losses, secret[0], len(secret)), rel=1e-9)


def test_w_event_is_the_largest_window_and_user_level_the_longest():
    losses, stack = [0.3, 0.7, 0.2, 0.5], np.stack([FIG_3, np.eye(2)])
    for length in (1, 2, 3, 4):
        largest = max(window(FIG_3, FIG_3, losses, start, length) for start in range(5 - length))
        assert w_event(FIG_3, FIG_3, losses, length) == pytest.approx(largest)
    assert w_event(FIG_3, FIG_3, losses, 30) == pytest.approx(sum(losses))
    assert w_event(stack, stack, losses, 2).shape == (2,)
    assert window(stack, stack, losses, 0, 1) == pytest.approx(sum(losses))
    assert windows(temporal_recursion(stack, None).leakage_totals(losses), losses, 2).shape == (2, 3)


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (4, 1), (2, 3), (0, 0), (0, 5)])
def test_a_window_outside_the_series_is_refused(start, length):
    with pytest.raises(ChainError, match="window"):
        window(FIG_3, FIG_3, [0.1] * 4, start, length)


# Daily releases on a chain of half-hours against enumeration of whole paths and mechanisms, and against laws.

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


# Households that remember more than a day: chains of second order by enumeration.


def pair_chain(after):
    """The chain of pairs (yesterday, today) of a household with P(tomorrow | yesterday, today) = after (k, k, k)."""
    k = len(after)
    chain = np.zeros((k * k, k * k))
    for a, b, c in product(range(k), repeat=3):
        chain[a * k + b, b * k + c] = after[a, b, c]
    return chain


def second_order(seed):
    return np.random.default_rng(seed).dirichlet(np.full(2, 0.8), size=(2, 2))


def by_leaps(chain, losses, leaps):
    """The recursion of docs/mathematics.md with leaps, kernels by numpy's powers and leakage by Algorithm 1."""
    powers, course = [np.linalg.matrix_power(chain, j) for j in range(leaps + 1)], []
    for t in range(len(losses)):
        ways = (
            sum(losses[t - j + 1 : t + 1]) + algorithm_1(powers[j], course[t - j]) for j in range(1, min(leaps, t) + 1)
        )
        course.append(min([sum(losses[: t + 1]), *ways]))
    return np.array(course)


@pytest.mark.parametrize("leaps", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_no_mechanism_tells_more_about_a_state_of_two_days(seed, leaps):
    after, losses = second_order(seed), [0.6, 0.9, 0.4, 0.7, 0.5]
    law, joint = stationary(pair_chain(after)), np.zeros([2] * 5)
    for path in product(range(2), repeat=5):
        steps = zip(path, path[1:], path[2:], strict=False)
        joint[path] = law[path[0] * 2 + path[1]] * np.prod([after[step] for step in steps])
    outputs = [mechanisms(2, e) for e in losses]
    truth = np.array([loss_about(joint, (t - 1, t), outputs) for t in range(1, 5)])
    # The first state of the chain is that of days 0 and 1; what day 0 says is said about it in full.
    recursion = recursion_by_leaps(pair_chain(after), max_days=leaps)
    assert (truth <= recursion.leakage_totals(losses[1:]).total + losses[0] + 1e-12).all()
    assert (truth[1:] <= recursion.leakage_totals(losses).total[2:] + 1e-12).all()


@pytest.mark.parametrize("leaps", [1, 2, 4])
def test_it_is_the_least_over_the_leaps(leaps):
    losses = [0.3, 0.8, 0.1, 0.5, 0.4, 0.6]
    for chain in (pair_chain(second_order(4)), dense(3, 2)):
        totals = recursion_by_leaps(chain, max_days=leaps).leakage_totals(losses)
        np.testing.assert_allclose(totals.backward, by_leaps(reversed_chain(chain), losses, leaps), rtol=1e-9)
        np.testing.assert_allclose(totals.forward, by_leaps(chain, losses[::-1], leaps)[::-1], rtol=1e-9)
        np.testing.assert_allclose(totals.total, totals.backward + totals.forward - losses)


@pytest.mark.parametrize("leaps", [2, 3])
def test_the_limit_is_what_long_series_build_up_to_and_budgets_hold(leaps):
    chain = pair_chain(second_order(2))
    recursion = recursion_by_leaps(chain, max_days=leaps)
    long = recursion.leakage_totals(np.full(500, 0.05)).total.max()
    assert recursion.total_supremum(0.05) == pytest.approx(long, rel=1e-9)
    assert long <= recursion.total_supremum(0.05) * (1 + 1e-13)
    plan = allocate_with(recursion, alpha=1.0, horizon=8, method="best")
    for losses in (plan, round_up_losses(recursion, plan, alpha=1.0)):
        assert recursion.leakage_totals(losses).total.max() <= 1.0
        behind, ahead = (by_leaps(reversed_chain(chain), losses, leaps), by_leaps(chain, losses[::-1], leaps)[::-1])
        assert (behind + ahead - losses).max() <= 1 + 1e-9


@pytest.mark.parametrize(
    "call",
    [
        lambda: recursion_by_leaps(None, max_days=1),
        lambda: recursion_by_leaps(np.stack([np.eye(2)] * 2), max_days=2).leakage_totals(np.ones((3, 4))),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ChainError):
        call()
