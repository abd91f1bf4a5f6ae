"""The primitive against exhaustive subsets, linear programmes, closed forms, reference values and its laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.errors import ChainError
from agedp_data.leakage.function import KernelLeakage, leakage, leakage_from_total_variation, supremum
from tests.agedp_data.accounting.temporal_oracles import by_programme

EXAMPLE_4 = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
TRAP = [[0.12, 0.5, 0.38], [0.65, 0.35, 0.0], [0.3, 0.43, 0.27]]
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
    used, rest = (-np.expm1(-loss), np.exp(-loss))
    over, under = used * (sets @ kernel.T) + rest, used * (sets @ kernel.T) + rest
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.log(over[:, x]) - np.log(under[:, y]) for x, y in permutations(range(k), 2)]
    return np.nanmax(ratios)


def test_the_reference_example_comes_out():
    np.testing.assert_allclose(leakage(EXAMPLE_4, [0.1, 0.5, 1.0, 2.0, 5.0]), REFERENCE, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", [1e-6, 0.3, 2.0, 9.0, np.inf])
def test_it_is_the_maximum_over_all_subsets_of_columns(seed, loss):
    for kernel in random_kernels(5, 4, 6, seed):
        assert leakage(kernel, loss) == pytest.approx(by_subsets(kernel, loss), rel=1e-9, abs=1e-15)


def test_it_is_the_optimum_of_the_linear_programmes():
    for kernel in random_kernels(2, 4, 4, 11):
        for loss in (0.2, 4.0):
            assert leakage(kernel, loss) == pytest.approx(by_programme(kernel, loss), abs=1e-7)


def test_a_two_state_copy_has_its_closed_form_to_twelve_digits():
    loss = np.array([1e-12, 1e-6, 1e-3, 1.0, 30.0])
    expected = np.log1p((0.9 - 0.1) * np.expm1(loss) / (1 + 0.1 * np.expm1(loss)))
    np.testing.assert_allclose(leakage([[0.9, 0.1], [0.1, 0.9]], loss), expected, rtol=1e-12)


def test_disjoint_rows_let_everything_through_and_equal_rows_nothing():
    loss = np.array([0.0, 1e-9, 1.0, 800.0, np.inf])
    np.testing.assert_allclose(leakage(np.eye(3), loss), loss, rtol=1e-15)
    np.testing.assert_array_equal(leakage(np.full((3, 4), 0.25), loss), np.zeros(5))
    assert leakage([[0.3, 0.7], [np.nan, np.nan]], np.inf) == 0.0  # a single row has nothing to tell apart


def test_huge_losses_neither_overflow_nor_lose_digits():
    # The last column is .38 in one row and 0 in another: ln(.38 e^a + .62) = a + ln .38 for large a.
    huge = np.array([699.0, 701.0, 800.0, 1e6])
    np.testing.assert_allclose(leakage(TRAP, huge) - huge, np.log(0.38), rtol=1e-9)
    assert leakage(TRAP, np.inf) == np.inf
    assert leakage(EXAMPLE_4, 800.0) == pytest.approx(np.log(5), abs=1e-12)
    np.testing.assert_array_equal(supremum(EXAMPLE_4, [0.0, np.inf]), [0.0, np.inf])
    assert supremum(EXAMPLE_4, 900.0) == pytest.approx(900 + np.log(5), abs=1e-9)
    assert supremum(np.eye(2), 0.0) == 0.0


def test_rows_of_nan_and_their_columns_are_left_out():
    kernel, small = np.full((3, 3), np.nan), [[0.9, 0.1], [0.1, 0.9]]
    kernel[np.ix_([0, 2], [0, 2])] = small
    assert leakage(kernel, 1.0) == leakage(small, 1.0)
    kernel[:, 1] = [0.0, np.nan, 0.0]
    assert leakage(kernel, 1.0) == leakage(small, 1.0)


def test_stacks_broadcast_against_losses_from_either_side():
    kernels = random_kernels(6, 3, 4, 5).reshape(2, 3, 3, 4)
    loss = np.array([0.1, 1.0, 3.0, 10.0])[:, None, None]
    expected = [[[leakage(k, a) for k in row] for row in kernels] for a in loss.ravel()]
    np.testing.assert_array_equal(leakage(kernels, loss), expected)
    np.testing.assert_array_equal(leakage(kernels, [1.0, 2.0, 3.0])[1, 2], leakage(kernels[1, 2], 3.0))
    assert leakage(kernels[0], np.zeros((0, 3))).shape == (0, 3)


def test_stacks_and_kernels_larger_than_a_block_are_split():
    kernels = random_kernels(1500, 10, 10, 6)
    whole = leakage(kernels, 0.7)
    np.testing.assert_array_equal(whole[[0, 701, 1499]], [leakage(kernels[i], 0.7) for i in (0, 701, 1499)])
    big = random_kernels(1, 120, 120, 7)[0]
    pairs = max(leakage(big[[x, y]], 1.0) for x, y in permutations(range(20), 2))
    assert leakage(big[:20], 1.0) == pairs
    assert leakage(big, 1.0) >= pairs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda kernel=kernel: leakage(kernel, 1.0), None)
            for kernel in (
                [[0.5, 0.5], [0.6, 0.5]],
                [[1.1, -0.1], [0.5, 0.5]],
                [[np.nan, 1.0], [0.5, 0.5]],
                np.full((2, 2), np.nan),
                [[np.inf, 0.0], [0.5, 0.5]],
                [0.5, 0.5],
                np.zeros((2, 0)),
            )
        ),
        *((lambda loss=loss: leakage(EXAMPLE_4, loss), "at least 0") for loss in (-1e-9, np.nan, [1.0, -np.inf])),
        (lambda: leakage(np.stack([np.eye(2)] * 3), [1.0, 2.0]), "do not fit"),
        (lambda: KernelLeakage([EXAMPLE_4, EXAMPLE_4]), "one kernel at a time"),
        *((lambda d=d: leakage_from_total_variation(d, 1.0), "from 0 to 1") for d in (-1e-12, 1.0001, np.nan)),
    ],
)
def test_kernels_losses_and_distances_that_are_none_are_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("loss", [1e-3, 0.1, 0.7])
def test_the_supremum_is_the_limit_of_the_recursion(seed, loss):
    for kernel in random_kernels(4, 4, 4, seed, sparse=0.0):
        limit, function, x = float(supremum(kernel, loss)), KernelLeakage(kernel), 0.0
        for _ in range(5_000):
            x, before = loss + float(function(x)), x
            if x - before < 1e-14 or x > 40:
                break
        assert x <= limit + 1e-9
        if x < 40 and x - before < 1e-14:
            assert x == pytest.approx(limit, rel=1e-6)


def test_the_smoothed_identity_has_its_reference_supremum():
    kernel = (np.eye(50) + 0.05) / (1 + 50 * 0.05)
    np.testing.assert_allclose(supremum(kernel, [0.1, 1.0]), [0.1428444242, 1.9502132968], rtol=1e-9)


def test_theorem_1_has_its_thirty_digit_reference():
    assert leakage_from_total_variation(0.64, 0.5) == pytest.approx(0.347257871444442964225100056308, rel=1e-15)
    extremes = leakage_from_total_variation([0.0, 1.0, 0.5], [np.inf, 900.0, 0.0])
    np.testing.assert_array_equal(extremes, [0.0, 900.0, 0.0])
    assert leakage_from_total_variation(0.5, 900.0) == pytest.approx(900 + np.log(0.5))


LOSS = st.floats(0, 50)
FEW = settings(max_examples=40)


def kernels(rows, columns):
    weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    shape = st.tuples(rows, columns)
    return shape.flatmap(lambda size: arrays(np.float64, size, elements=weight)).map(_normalised)


def _normalised(weights):
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


KERNELS = kernels(st.integers(1, 5), st.integers(1, 6))
SQUARE = st.integers(2, 4).flatmap(lambda k: st.tuples(*[kernels(st.just(k), st.just(k))] * 2))


@FEW
@given(SQUARE, LOSS)
def test_two_kernels_in_a_row_let_through_no_more_than_one_after_the_other(pair, loss):
    first, second = pair
    assert leakage(first @ second, loss) <= leakage(first, leakage(second, loss)) + 1e-9
