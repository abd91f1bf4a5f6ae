"""Laws that hold for every kernel and every loss."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.leakage.function import leakage, leakage_from_total_variation, supremum

TINY = 1e-12
LOSS = st.floats(0, 50)


def kernels(rows, columns):
    weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    shape = st.tuples(rows, columns)
    return shape.flatmap(lambda size: arrays(np.float64, size, elements=weight)).map(_normalised)


def _normalised(weights):
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


KERNELS = kernels(st.integers(1, 5), st.integers(1, 6))
SQUARE = st.integers(2, 4).flatmap(lambda k: st.tuples(*[kernels(st.just(k), st.just(k))] * 2))
FEW = settings(max_examples=60, deadline=None)


@FEW
@given(KERNELS, LOSS)
def test_nothing_is_gained_and_nothing_negative(kernel, loss):
    assert 0 <= leakage(kernel, loss) <= loss


@FEW
@given(KERNELS, LOSS, st.floats(0, 5))
def test_it_rises_with_the_loss_and_never_faster_than_it(kernel, loss, more):
    low, high = leakage(kernel, [loss, loss + more])
    assert low - TINY <= high <= low + more + TINY


@FEW
@given(SQUARE, LOSS)
def test_two_kernels_in_a_row_let_through_no_more_than_one_after_the_other(pair, loss):
    first, second = pair
    assert leakage(first @ second, loss) <= leakage(first, leakage(second, loss)) + 1e-9


@FEW
@given(KERNELS, LOSS, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_does_not_matter(kernel, loss, random):
    rows, columns = list(range(kernel.shape[0])), list(range(kernel.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    np.testing.assert_allclose(leakage(kernel[rows][:, columns], loss), leakage(kernel, loss), atol=1e-9)


@FEW
@given(KERNELS, LOSS)
def test_a_coarser_row_set_tells_less(kernel, loss):
    assert leakage(kernel[:-1] if len(kernel) > 1 else kernel, loss) <= leakage(kernel, loss) + TINY


@FEW
@given(KERNELS, LOSS)
def test_total_variation_alone_bounds_it(kernel, loss):
    distance = max(np.abs(x - y).sum() / 2 for x in kernel for y in kernel)
    assert leakage(kernel, loss) <= leakage_from_total_variation(min(distance, 1.0), loss) + 1e-9


@FEW
@given(KERNELS, st.floats(1e-3, 5))
def test_the_supremum_is_a_fixed_point_of_the_recursion(kernel, loss):
    limit = supremum(kernel, loss)
    assert limit >= loss
    if limit < 30:
        np.testing.assert_allclose(loss + leakage(kernel, limit), limit, atol=1e-7)
