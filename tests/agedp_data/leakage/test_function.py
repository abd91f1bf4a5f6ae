"""The primitive against exhaustive subsets, linear programmes, closed forms and the reference values."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

from agedp_data.errors import ChainError
from agedp_data.leakage.function import KernelLeakage, leakage, leakage_from_total_variation, supremum

EXAMPLE_4 = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
TRAP = [[0.12, 0.5, 0.38], [0.65, 0.35, 0.0], [0.3, 0.43, 0.27]]
LOSSES = [0.1, 0.5, 1.0, 2.0, 5.0]
REFERENCE = [0.05021976398, 0.2523992317, 0.4943335145, 0.9397521224, 1.557279325]


def random_kernels(count, k, n, seed, *, sparse=0.3):
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.5, size=(count, k, n)) * (rng.random((count, k, n)) > sparse)
    weights[..., 0] += 1e-3
    return weights / weights.sum(axis=-1, keepdims=True)


def by_subsets(kernel, loss):
    """The definition: all ordered pairs of rows, all 2^n sets of columns."""
    k, n = kernel.shape
    sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    best = 0.0
    for x, y in permutations(range(k), 2):
        over, under = sets @ kernel[x], sets @ kernel[y]
        if np.isinf(loss):
            with np.errstate(divide="ignore", invalid="ignore"):
                best = max(best, np.nanmax(np.log(over) - np.log(under)))
        else:
            best = max(best, np.log1p(np.expm1(loss) * over).max(initial=0, where=under == 0))
            best = max(best, (np.log1p(np.expm1(loss) * over) - np.log1p(np.expm1(loss) * under)).max())
    return best


def by_linear_programme(kernel, loss):
    """max q.x / d.x for 1 <= x <= e^a up to scale: Charnes and Cooper, d.y = 1, m <= y <= e^a m."""
    k, n = kernel.shape
    best = 1.0
    for x, y in permutations(range(k), 2):
        bounds = np.vstack(
            (
                np.hstack((-np.eye(n), np.ones((n, 1)))),
                np.hstack((np.eye(n), -np.exp(loss) * np.ones((n, 1)))),
            )
        )
        found = linprog(
            np.append(-kernel[x], 0.0),
            A_ub=bounds,
            b_ub=np.zeros(2 * n),
            A_eq=np.append(kernel[y], 0.0)[None],
            b_eq=[1.0],
            method="highs",
        )
        best = max(best, -found.fun)
    return np.log(best)


def test_the_reference_example_comes_out():
    np.testing.assert_allclose(leakage(EXAMPLE_4, LOSSES), REFERENCE, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", [1e-6, 0.3, 2.0, 9.0, np.inf])
def test_it_is_the_maximum_over_all_subsets_of_columns(seed, loss):
    for kernel in random_kernels(5, 4, 6, seed):
        assert leakage(kernel, loss) == pytest.approx(by_subsets(kernel, loss), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("loss", [0.2, 1.0, 4.0])
def test_it_is_the_optimum_of_the_linear_programmes(loss):
    for kernel in random_kernels(2, 3, 5, 11):
        assert leakage(kernel, loss) == pytest.approx(by_linear_programme(kernel, loss), abs=1e-7)


def test_a_two_state_copy_has_its_closed_form_to_twelve_digits():
    loss = np.array([1e-12, 1e-6, 1e-3, 1.0, 30.0])
    expected = np.log1p((0.9 - 0.1) * np.expm1(loss) / (1 + 0.1 * np.expm1(loss)))
    np.testing.assert_allclose(leakage([[0.9, 0.1], [0.1, 0.9]], loss), expected, rtol=1e-12)


def test_disjoint_rows_let_everything_through_and_equal_rows_nothing():
    loss = np.array([0.0, 1e-9, 1.0, 800.0, np.inf])
    np.testing.assert_allclose(leakage(np.eye(3), loss), loss, rtol=1e-15)
    np.testing.assert_array_equal(leakage(np.full((3, 4), 0.25), loss), np.zeros(5))


def test_huge_losses_neither_overflow_nor_lose_digits():
    # The last column is .38 in one row and 0 in another: ln(.38 e^a + .62) = a + ln .38 for large a.
    huge = np.array([699.0, 701.0, 800.0, 1e6])
    np.testing.assert_allclose(leakage(TRAP, huge) - huge, np.log(0.38), rtol=1e-9)
    assert leakage(TRAP, np.inf) == np.inf
    assert leakage(EXAMPLE_4, 800.0) == pytest.approx(np.log(5), abs=1e-12)


def test_kernels_need_not_be_square():
    wide = np.array([[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25]])
    # At infinity the best set is {0}: .5/.25; backwards {3} has probability 0 on one side.
    assert leakage(wide, np.inf) == np.inf
    assert leakage(wide[:, :2] * [[4 / 3, 4 / 3], [2, 2]], np.inf) == pytest.approx(np.log((1 / 2) / (1 / 3)))


def test_rows_of_nan_and_their_columns_are_left_out():
    kernel = np.full((3, 3), np.nan)
    kernel[np.ix_([0, 2], [0, 2])] = [[0.9, 0.1], [0.1, 0.9]]
    assert leakage(kernel, 1.0) == leakage([[0.9, 0.1], [0.1, 0.9]], 1.0)
    kernel[:, 1] = [0.0, np.nan, 0.0]
    assert leakage(kernel, 1.0) == leakage([[0.9, 0.1], [0.1, 0.9]], 1.0)


def test_a_single_row_has_nothing_to_tell_apart():
    assert leakage([[0.3, 0.7]], 5.0) == 0.0
    assert leakage([[0.3, 0.7], [np.nan, np.nan]], np.inf) == 0.0


def test_stacks_broadcast_against_losses_from_either_side():
    kernels = random_kernels(6, 3, 4, 5).reshape(2, 3, 3, 4)
    loss = np.array([0.1, 1.0, 3.0, 10.0])[:, None, None]
    expected = [[[leakage(k, a) for k in row] for row in kernels] for a in loss.ravel()]
    np.testing.assert_array_equal(leakage(kernels, loss), expected)
    np.testing.assert_array_equal(leakage(kernels, [1.0, 2.0, 3.0])[1, 2], leakage(kernels[1, 2], 3.0))
    assert leakage(kernels[0], np.zeros((0, 3))).shape == (0, 3)


def test_a_stack_larger_than_one_block_gives_the_same_as_its_parts():
    kernels = random_kernels(1500, 10, 10, 6)
    whole = leakage(kernels, 0.7)
    np.testing.assert_array_equal(whole[[0, 701, 1499]], [leakage(kernels[i], 0.7) for i in (0, 701, 1499)])


def test_one_kernel_larger_than_a_block_is_split_by_rows():
    big = random_kernels(1, 120, 120, 7)[0]
    pair = max(leakage(big[[x, y]], 1.0) for x, y in permutations(range(20), 2))
    assert leakage(big[:20], 1.0) == pair
    assert leakage(big, 1.0) >= pair


@pytest.mark.parametrize(
    "kernel",
    [
        [[0.5, 0.5], [0.6, 0.5]],
        [[1.1, -0.1], [0.5, 0.5]],
        [[np.nan, 1.0], [0.5, 0.5]],
        [[np.nan, np.nan], [np.nan, np.nan]],
        [[np.inf, 0.0], [0.5, 0.5]],
        [0.5, 0.5],
        np.zeros((2, 0)),
    ],
)
def test_a_kernel_that_is_none_is_refused(kernel):
    with pytest.raises(ChainError):
        leakage(kernel, 1.0)


@pytest.mark.parametrize("loss", [-1e-9, np.nan, [1.0, -np.inf]])
def test_a_negative_or_missing_loss_is_refused(loss):
    with pytest.raises(ChainError, match="at least 0"):
        leakage(EXAMPLE_4, loss)


def test_losses_that_do_not_fit_the_stack_are_refused():
    with pytest.raises(ChainError, match="do not fit"):
        leakage(np.stack([np.eye(2)] * 3), [1.0, 2.0])


@pytest.mark.parametrize("seed", range(6))
def test_the_precomputed_function_is_the_direct_one_at_any_loss(seed):
    loss = np.concatenate((np.geomspace(1e-9, 60, 300), [0.0, 800.0, np.inf]))
    for kernel in random_kernels(4, 6, 8, seed, sparse=0.1 * seed):
        function = KernelLeakage(kernel)
        near = function.breakpoints[np.isfinite(function.breakpoints)]
        for losses in (loss, near, near * (1 + 1e-12)):
            np.testing.assert_allclose(function(losses), leakage(kernel, losses), rtol=1e-12, atol=1e-16)


def test_breakpoints_are_where_two_pieces_agree():
    function = KernelLeakage(EXAMPLE_4)
    assert function.breakpoints.size == function.over.size - 1 > 0
    assert (np.diff(function.breakpoints) > 0).all()
    growth = np.expm1(function.breakpoints)
    pieces = np.log1p(np.outer(growth, function.over)) - np.log1p(np.outer(growth, function.under))
    index = np.arange(growth.size)
    np.testing.assert_allclose(pieces[index, index], pieces[index, index + 1], rtol=1e-12)


def test_the_function_of_a_stack_is_refused():
    with pytest.raises(ChainError, match="one kernel at a time"):
        KernelLeakage([EXAMPLE_4, EXAMPLE_4])


def test_freezing_the_first_pair_would_miss_an_infinite_supremum():
    assert supremum(TRAP, 1.0) == np.inf
    x = 0.0
    for _ in range(200):
        x = 1.0 + float(leakage(TRAP, x))
    assert x == pytest.approx(10.4408519, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", [1e-3, 0.1, 0.7])
def test_the_supremum_is_the_limit_of_the_recursion(seed, loss):
    for kernel in random_kernels(4, 4, 4, seed, sparse=0.0):
        limit = float(supremum(kernel, loss))
        function, x = KernelLeakage(kernel), 0.0
        for _ in range(100_000):
            x, before = loss + float(function(x)), x
            if x - before < 1e-14 or x > 40:
                break
        assert x <= limit + 1e-9
        if x < 40 and x - before < 1e-14:
            assert x == pytest.approx(limit, rel=1e-6)


def test_the_smoothed_identity_has_its_reference_supremum():
    kernel = (np.eye(50) + 0.05) / (1 + 50 * 0.05)
    np.testing.assert_allclose(supremum(kernel, [0.1, 1.0]), [0.1428444242, 1.9502132968], rtol=1e-9)


def test_suprema_of_extreme_losses_do_not_overflow():
    np.testing.assert_array_equal(supremum(EXAMPLE_4, [0.0, np.inf]), [0.0, np.inf])
    assert supremum(EXAMPLE_4, 900.0) == pytest.approx(900 + np.log(5), abs=1e-9)
    assert supremum(np.eye(2), 0.0) == 0.0


def test_theorem_1_has_its_thirty_digit_reference():
    assert leakage_from_total_variation(0.64, 0.5) == pytest.approx(0.347257871444442964225100056308, rel=1e-15)
    np.testing.assert_array_equal(
        leakage_from_total_variation([0.0, 1.0, 0.5], [np.inf, 900.0, 0.0]), [0.0, 900.0, 0.0]
    )
    assert leakage_from_total_variation(0.5, 900.0) == pytest.approx(900 + np.log(0.5))


@pytest.mark.parametrize("distance", [-1e-12, 1.0001, np.nan])
def test_a_distance_outside_zero_to_one_is_refused(distance):
    with pytest.raises(ChainError, match="from 0 to 1"):
        leakage_from_total_variation(distance, 1.0)
