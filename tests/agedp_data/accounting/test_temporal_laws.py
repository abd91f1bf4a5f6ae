"""Laws of temporal leakage that hold for every pair of matrices and every series of losses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.accounting.temporal_leakage import (
    backward,
    pairwise,
    temporal,
    temporal_supremum,
)
from tests.agedp_data.accounting.temporal_oracles import algorithm_1, total_by_recursion

TINY = 1e-9
FEW = settings(max_examples=25, deadline=None)
LOSSES = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 50)), min_size=1, max_size=8).map(np.array)


def _normalised(weights):
    weights = np.where(weights.sum(axis=-1, keepdims=True) > 0, weights, 1.0)
    return weights / weights.sum(axis=-1, keepdims=True)


def matrices(count):
    weight = st.sampled_from([0.0, 0.0, 1e-9, 0.1, 0.5, 1.0, 1.0]) | st.floats(1e-6, 1.0)
    size = st.integers(2, 5)
    return size.flatmap(lambda k: st.tuples(*[arrays(np.float64, (k, k), elements=weight).map(_normalised)] * count))


@FEW
@given(matrices(2), LOSSES)
def test_it_is_what_algorithm_1_builds_up_between_a_loss_and_the_sum_of_all(pair, losses):
    total = temporal(*pair, losses)
    np.testing.assert_allclose(total, total_by_recursion(*pair, losses), rtol=TINY, atol=TINY)
    assert (total >= losses).all()
    assert (total <= losses.sum() * (1 + TINY) + TINY).all()
    assert (pairwise(*pair, losses) <= total + TINY).all()
    assert (pairwise(*pair, losses) >= losses).all()


@FEW
@given(matrices(2), LOSSES, st.integers(0, 8), st.floats(0, 5))
def test_more_loss_or_a_further_release_is_more_everywhere_and_by_no_more_than_it(pair, losses, where, more):
    raised = np.append(losses, 0.0)
    low = temporal(*pair, raised)
    raised[where % raised.size] += more
    high = temporal(*pair, raised)
    assert (high >= low - TINY).all()
    assert (high <= low + more + TINY).all()
    assert (low[:-1] >= temporal(*pair, losses) - TINY).all()


@FEW
@given(matrices(1), st.floats(1e-6, 3))
def test_the_limit_is_a_fixed_point_that_the_recursion_never_passes(one, loss):
    top = float(temporal_supremum(one[0], None, loss))
    assert backward(one[0], np.full(60, loss)).max() <= top * (1 + 1e-12)
    if top < 30:
        np.testing.assert_allclose(loss + algorithm_1(one[0], top), top, rtol=1e-7)
