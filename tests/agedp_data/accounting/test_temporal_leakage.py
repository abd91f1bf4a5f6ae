"""Temporal leakage against Algorithm 1 in extended precision, linear programmes, enumeration and reference values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.accounting.temporal_leakage import (
    backward,
    forward,
    pairwise,
    temporal,
    temporal_kernels,
    temporal_recursion,
    temporal_supremum,
)
from agedp_data.errors import ChainError
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    by_recursion,
    dense,
    enumerated,
    joint_of_days,
    kernels_of_every_kind,
    stationary,
    total_by_recursion,
)

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
