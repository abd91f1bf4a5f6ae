"""Temporal leakage against Algorithm 1 in extended precision, linear programmes, enumeration and reference values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

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
from agedp_data.leakage.batched import BatchedLeakage
from tests.agedp_data.accounting.temporal_oracles import (
    algorithm_1,
    by_programme,
    by_recursion,
    dense,
    enumerated,
    joint_of_days,
    kernels_of_every_kind,
    reversed_chain,
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
SIZES = [2, 3, 7, 12, 50]


def series(seed, count):
    return 10 ** np.random.default_rng(seed).uniform(-6, np.log10(50), size=count)


def test_figure_3_of_the_paper_has_its_reference_values():
    losses = [0.1] * 10
    np.testing.assert_allclose(backward(FIG_3, losses), BPL, atol=1e-10)
    np.testing.assert_allclose(forward(FIG_3, losses), BPL[::-1], atol=1e-10)
    np.testing.assert_allclose(temporal(FIG_3, FIG_3, losses), TPL + TPL[::-1], atol=1e-10)
    assert temporal_supremum(FIG_3, None, 0.1) == pytest.approx(0.6459066161, abs=1e-10)


@pytest.mark.parametrize("n", SIZES)
def test_every_kind_of_kernel_leaks_as_algorithm_1_says(n):
    behind, ahead = kernels_of_every_kind(n, n), kernels_of_every_kind(n, n + 100)
    losses = series(n, 10 if n < 50 else 4)
    for kind, kernel in behind.items():
        found = temporal(kernel, ahead[kind], losses)
        np.testing.assert_allclose(
            found, total_by_recursion(kernel, ahead[kind], losses), rtol=1e-9, atol=1e-9, err_msg=kind
        )


@pytest.mark.parametrize("loss", [1e-6, 0.01, 50.0])
def test_four_hundred_releases_leak_as_algorithm_1_says(loss):
    losses = np.full(400, loss)
    for kernel in (dense(6, 5), FIG_3, TRAP, np.eye(3)):
        np.testing.assert_allclose(backward(kernel, losses), by_recursion(kernel, losses), rtol=1e-9, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_random_pairs_of_matrices_leak_as_algorithm_1_says(seed):
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(2, 51)), int(rng.integers(1, 401) if seed % 4 == 0 else rng.integers(1, 40))
    behind, ahead = kernels_of_every_kind(n, seed), kernels_of_every_kind(n, seed + 1000)
    kinds = list(behind)
    kind, other = kinds[seed % len(kinds)], kinds[int(rng.integers(len(kinds)))]
    losses = series(seed, count)
    expected = total_by_recursion(behind[kind], ahead[other], losses)
    np.testing.assert_allclose(temporal(behind[kind], ahead[other], losses), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [2, 4, 6])
def test_the_recursion_over_linear_programmes_is_the_same(n):
    behind, ahead = dense(n, 31), dense(n, 32, weight=2.0)
    losses = [0.3, 1e-3, 0.9, 0.2]
    expected = total_by_recursion(behind, ahead, losses, leak=by_programme)
    np.testing.assert_allclose(temporal(behind, ahead, losses), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_mechanism_on_a_chain_leaks_more_and_its_first_two_releases_leak_as_much(seed):
    chain = dense(3, seed)
    losses = [0.7, 0.4, 1.1]
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2], 1)
    behind, ahead = temporal_kernels(chain)
    truth = np.array(enumerated(joint, losses))
    assert (truth <= temporal(behind, ahead, losses) + 1e-12).all()
    pair = enumerated(joint.sum(axis=2), losses[:2])
    np.testing.assert_allclose(pair[1], backward(behind, losses[:2])[1], rtol=1e-12)
    np.testing.assert_allclose(pair[0], forward(ahead, losses[:2])[0], rtol=1e-12)


def test_two_sticky_states_leak_all_that_is_said():
    # The pair that is told apart is the same at every step, so both bounds are attained.
    chain = [[0.9, 0.1], [0.3, 0.7]]
    losses = [0.5, 0.2, 0.4, 0.3]
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2, 3], 1)
    np.testing.assert_allclose(temporal(*temporal_kernels(chain), losses), enumerated(joint, losses), rtol=1e-12)
    np.testing.assert_allclose(pairwise(*temporal_kernels(chain), losses), enumerated(joint, losses), rtol=1e-12)


def test_a_set_of_matrices_leaks_as_the_worst_order_in_which_they_may_take_turns():
    chains = dense(3, 1), dense(3, 2), np.array(TRAP)
    losses = [0.8, 0.5, 0.9, 0.7]
    worst = np.zeros(4)
    for turns in product(chains, repeat=3):
        found = [losses[0]]
        for kernel, e in zip(turns, losses[1:], strict=True):
            found.append(e + algorithm_1(kernel, found[-1]))
        worst = np.maximum(worst, found)
    np.testing.assert_allclose(backward(chains, losses), worst, rtol=1e-12)


def test_the_maximum_outside_the_recursion_would_understate_a_set():
    one = np.array([[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.1, 0.0, 0.9]])
    other = np.array([[0.0, 1.0, 0.0], [0.3, 0.7, 0.0], [2 / 11, 6 / 11, 3 / 11]])
    outside = max(by_recursion(chain, [1.0] * 5)[-1] for chain in (one, other))
    inside = backward((one, other), [1.0] * 5)[-1]
    assert outside == pytest.approx(2.68857, abs=1e-5)
    assert inside == pytest.approx(2.91197, abs=1e-5)


def test_matrices_of_a_set_may_differ_in_size_and_stack_with_households():
    stack = np.stack([dense(3, seed) for seed in range(4)])
    found = backward((stack, dense(5, 9)), [0.5, 0.5, 0.5])
    assert found.shape == (4, 3)
    for household, row in zip(stack, found, strict=True):
        np.testing.assert_array_equal(row, backward((household, dense(5, 9)), [0.5, 0.5, 0.5]))


def test_a_stack_of_households_leaks_as_each_of_them_does():
    stack = np.stack([dense(4, seed, weight=0.2 + 0.3 * seed) for seed in range(6)]).reshape(2, 3, 4, 4)
    losses = series(3, 5)
    found = temporal(stack, stack[::-1], losses)
    assert found.shape == (2, 3, 5)
    each = [
        [temporal(b, f, losses) for b, f in zip(*rows, strict=True)] for rows in zip(stack, stack[::-1], strict=True)
    ]
    np.testing.assert_array_equal(found, each)
    own = temporal(stack, stack, np.broadcast_to(losses, (3, 5)) * np.array([[1], [2], [3]]))
    np.testing.assert_array_equal(own[1, 2], temporal(stack[1, 2], stack[1, 2], 3 * losses))


def test_a_stack_larger_than_one_block_leaks_as_its_parts_do():
    stack = np.random.default_rng(5).dirichlet(np.full(12, 0.4), size=(1500, 12))
    found = backward(stack, [0.5] * 3)
    for i in (0, 662, 663, 1499):
        np.testing.assert_allclose(found[i], by_recursion(stack[i], [0.5] * 3), rtol=1e-12)


def test_one_kernel_larger_than_a_block_is_whole():
    kernel = dense(110, 3)
    assert BatchedLeakage(kernel)(0.7) == pytest.approx(algorithm_1(kernel, 0.7), rel=1e-12)


def test_households_are_not_compared_with_each_other():
    # Two households that never forget, one state each way: what one leaks does not depend on the other.
    calm = np.full((2, 2), 0.5)
    np.testing.assert_array_equal(backward([np.eye(2), calm], [0.5, 0.5]), [[0.5, 1.0], [0.5, 0.5]])


def test_states_without_a_row_are_left_out_in_both_directions():
    chain = np.full((3, 3), np.nan)
    chain[np.ix_([0, 2], [0, 2])] = [[0.9, 0.1], [0.3, 0.7]]
    small = [[0.9, 0.1], [0.3, 0.7]]
    losses = [0.3, 0.8, 0.1]
    for figure in (temporal, pairwise):
        np.testing.assert_allclose(
            figure(*temporal_kernels(chain), losses), figure(*temporal_kernels(small), losses), rtol=1e-12
        )


def test_an_unknown_correlation_adds_nothing():
    losses = [0.3, 0.8, 0.1]
    np.testing.assert_array_equal(temporal(None, None, losses), losses)
    np.testing.assert_array_equal(temporal(FIG_3, None, losses), backward(FIG_3, losses))
    np.testing.assert_array_equal(pairwise(None, FIG_3, losses), forward(FIG_3, losses))


def test_an_infinite_loss_is_infinite_where_it_is_and_passes_on_what_any_mechanism_could():
    chain = [[0.9, 0.1], [0.1, 0.9]]
    found = temporal(chain, chain, [0.5, np.inf, 0.5])
    assert found[1] == np.inf
    np.testing.assert_allclose(found[[0, 2]], 0.5 + np.log(9), rtol=1e-12)


def test_no_release_and_one_release_and_releases_without_loss():
    assert temporal(FIG_3, FIG_3, []).shape == (0,)
    assert temporal(np.stack([FIG_3] * 3), FIG_3, []).shape == (3, 0)
    np.testing.assert_array_equal(temporal(FIG_3, FIG_3, [0.7]), [0.7])
    np.testing.assert_array_equal(temporal(FIG_3, FIG_3, [0.0] * 4), np.zeros(4))


@pytest.mark.parametrize("kernel", [dense(3, 8), np.array(FIG_3), np.array([[0.3, 0.7], [0.9, 0.1]])])
@pytest.mark.parametrize("loss", [1e-6, 0.1, 0.5])
def test_the_limit_is_what_long_series_build_up_to(kernel, loss):
    leak = temporal_recursion(kernel, None)
    x = 0.0
    for _ in range(200_000):
        x, before = float(loss + leak.backward.step_at(1)(np.asarray(x))), x
        if x - before < 1e-15 or x > 60:
            break
    found = float(temporal_supremum(kernel, None, loss))
    assert x == pytest.approx(found, rel=1e-6) if x < 60 else found == np.inf
    # With both sides: what the middle of a long series comes to.
    long = temporal(kernel, kernel, np.full(400, loss)).max()
    assert long <= temporal_supremum(kernel, kernel, loss) * (1 + 1e-13)


def test_infinite_limits_are_found_on_either_side():
    assert temporal_supremum(np.eye(2), None, 1e-9) == np.inf
    assert temporal_supremum(None, TRAP, 1.0) == np.inf
    assert temporal_supremum([[0, 1], [1, 0]], None, 0.1) == np.inf
    assert temporal_supremum(FIG_3, FIG_3, np.log(5 / 4)) == np.inf
    assert np.isfinite(temporal_supremum(FIG_3, FIG_3, np.log(5 / 4) - 1e-6))
    np.testing.assert_array_equal(temporal_supremum(np.eye(2), np.eye(2), [0.0, 0.1]), [0.0, np.inf])


def test_releases_still_to_come_leak_as_a_very_long_series_does():
    chain = [[0.9, 0.1], [0.2, 0.8]]
    open_ended = temporal_recursion(chain, chain).leakage_totals([0.3, 0.2], future_loss=0.1)
    long = temporal_recursion(chain, chain).leakage_totals([0.3, 0.2] + [0.1] * 500)
    np.testing.assert_allclose(open_ended.total, long.total[:2], rtol=1e-9)
    assert temporal_recursion(np.eye(2), None).leakage_totals([0.3], future_loss=0.1).total == 0.3


@pytest.mark.parametrize(
    ("kernel", "losses"),
    [
        ((), [0.1]),
        ([[0.5, 0.6], [0.5, 0.5]], [0.1]),
        (FIG_3, [-0.1]),
        (FIG_3, [np.nan]),
        (FIG_3, 0.1),
        (np.stack([FIG_3] * 3), np.full((2, 4), 0.1)),
        ((np.stack([FIG_3] * 3), np.stack([FIG_3] * 2)), [0.1]),
    ],
)
def test_what_is_no_kernel_and_no_series_is_refused(kernel, losses):
    with pytest.raises(ChainError):
        temporal(kernel, kernel, losses)


def test_the_backward_kernel_is_the_bayes_reverse_of_the_forward_one():
    chain = dense(5, 12)
    (behind,), (ahead,) = temporal_kernels(chain)
    np.testing.assert_allclose(behind, reversed_chain(chain), rtol=1e-9)
    np.testing.assert_array_equal(ahead, chain)
    with pytest.raises(ChainError, match="chain is needed"):
        temporal_kernels(None)
