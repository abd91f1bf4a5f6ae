"""Laws of temporal leakage that hold for every pair of matrices and every series of losses."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.accounting.temporal_leakage import (
    METHODS,
    allocate,
    backward,
    forward,
    pairwise,
    temporal,
    temporal_recursion,
    temporal_supremum,
    w_event,
    windows,
)
from agedp_data.errors import ChainError
from tests.agedp_data.accounting.temporal_oracles import algorithm_1, total_by_recursion

TINY = 1e-9
FEW = settings(max_examples=40, deadline=None)
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
def test_it_is_what_algorithm_1_builds_up(pair, losses):
    np.testing.assert_allclose(temporal(*pair, losses), total_by_recursion(*pair, losses), rtol=TINY, atol=TINY)


@FEW
@given(matrices(2), LOSSES)
def test_it_lies_between_a_release_s_own_loss_and_the_sum_of_all(pair, losses):
    found = temporal(*pair, losses)
    assert (found >= losses).all()
    assert (found <= losses.sum() * (1 + TINY) + TINY).all()
    assert (pairwise(*pair, losses) <= found + TINY).all()
    assert (pairwise(*pair, losses) >= losses).all()


@FEW
@given(matrices(2), LOSSES, st.integers(0, 7), st.floats(0, 5))
def test_more_loss_anywhere_is_more_everywhere_and_by_no_more_than_it(pair, losses, where, more):
    raised = losses.copy()
    raised[where % losses.size] += more
    low, high = temporal(*pair, losses), temporal(*pair, raised)
    assert (high >= low - TINY).all()
    assert (high <= low + more + TINY).all()


@FEW
@given(matrices(2), LOSSES)
def test_read_backwards_the_directions_change_places(pair, losses):
    np.testing.assert_array_equal(backward(pair[0], losses), forward(pair[0], losses[::-1])[::-1])
    np.testing.assert_allclose(
        temporal(*pair, losses), temporal(pair[1], pair[0], losses[::-1])[::-1], rtol=TINY, atol=TINY
    )


@FEW
@given(matrices(3), LOSSES)
def test_a_set_says_no_less_than_its_members_and_one_more_never_less(three, losses):
    one, other, ahead = three
    found = temporal((one, other), ahead, losses)
    assert (found >= temporal(one, ahead, losses) - TINY).all()
    assert (found >= temporal(other, ahead, losses) - TINY).all()
    np.testing.assert_allclose(temporal((one, one), ahead, losses), temporal(one, ahead, losses), rtol=1e-12)


@FEW
@given(matrices(2), LOSSES, st.floats(0, 3))
def test_a_further_release_never_lowers_a_figure(pair, losses, further):
    assert (temporal(*pair, np.append(losses, further))[:-1] >= temporal(*pair, losses) - TINY).all()


@FEW
@given(matrices(2), LOSSES)
def test_longer_windows_say_more_and_the_longest_the_sum(pair, losses):
    figures = [float(w_event(*pair, losses, length)) for length in range(1, losses.size + 1)]
    assert (np.diff(figures) >= -TINY * (1 + losses.sum())).all()
    np.testing.assert_allclose(figures[-1], losses.sum(), rtol=TINY, atol=TINY)
    leak = temporal_recursion(*pair).leakage_totals(losses)
    np.testing.assert_array_equal(windows(leak, losses, 1), leak.total)


@FEW
@given(matrices(1), st.floats(1e-6, 3))
def test_the_limit_is_a_fixed_point_that_the_recursion_never_passes(one, loss):
    top = float(temporal_supremum(one[0], None, loss))
    series = backward(one[0], np.full(60, loss))
    assert series.max() <= top * (1 + 1e-12)
    if top < 30:
        np.testing.assert_allclose(loss + algorithm_1(one[0], top), top, rtol=1e-7)


@settings(max_examples=12, deadline=None)
@given(matrices(2), st.floats(1e-3, 5), st.integers(1, 12))
def test_budgets_hold_and_the_best_is_the_best(pair, alpha, horizon):
    noise = {}
    for method in METHODS:
        try:
            losses = allocate(*pair, alpha=alpha, horizon=horizon, method=method)
        except ChainError:
            assert method in ("supremum", "exact")
            continue
        assert losses.min() > 0
        assert temporal(*pair, losses).max() <= alpha
        assert total_by_recursion(*pair, losses).max() <= alpha * (1 + TINY)
        noise[method] = (1 / losses).mean()
    assert noise["best"] <= min(noise.values()) * (1 + 1e-12)
