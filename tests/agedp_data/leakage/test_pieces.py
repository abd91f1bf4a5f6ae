"""Single pieces against the reference values, and the frontier against all points."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.leakage.pieces import fixed_point, frontier, frontier_of, gain, prefixes


@pytest.mark.parametrize(
    ("q", "d", "loss", "expected"),
    [
        (0.8, 0.2, 0.1, 0.248771835),
        (0.8, 0.2, 1.0, 1.980747371),
        (0.8, 0.0, 0.1, 0.6459066161),
        (0.8, 0.0, np.log(5 / 4), np.inf),
        (0.8, 0.0, 0.3, np.inf),
        (1.0, 0.0, 0.1, np.inf),
        (1.0, 0.2, 0.1, 0.4225546402),
    ],
)
def test_fixed_points_of_theorem_11_as_corrected(q, d, loss, expected):
    assert fixed_point(np.array([q]), np.array([d]), np.array(loss)) == pytest.approx(expected, rel=1e-9)


def test_a_piece_stands_still_at_its_fixed_point_however_small_d_is():
    for d in (1e-3, 1e-9, 1e-15):
        over, under, loss = np.array([0.6]), np.array([d]), np.array(0.4)
        limit = fixed_point(over, under, loss)
        assert loss + gain(over, under, limit) == pytest.approx(limit, rel=1e-12)


def test_no_piece_and_worthless_pieces_pass_nothing_on():
    none, loss = np.zeros(0), np.array([0.0, 2.0, np.inf])
    for over, under in ((none, none), (np.array([0.2]), np.array([0.3])), (np.zeros(1), np.zeros(1))):
        shape = (3, over.size)
        pieces = np.broadcast_to(over, shape), np.broadcast_to(under, shape)
        np.testing.assert_array_equal(gain(*pieces, loss), np.zeros(3))
        np.testing.assert_array_equal(fixed_point(*pieces, loss), loss)


@pytest.mark.parametrize("seed", range(5))
def test_the_frontier_keeps_every_maximum_with_few_points(seed):
    rng = np.random.default_rng(seed)
    over, under = rng.random((2, 5000)) ** 3
    if seed == 0:
        under[:5] = 0.0
    kept_over, kept_under = frontier(over, under)
    assert kept_over.size < 60
    for loss in (1e-6, 0.1, 1.0, 5.0, 30.0, np.inf):
        assert gain(kept_over, kept_under, np.array(loss)) == gain(over, under, np.array(loss))


def test_the_frontier_of_a_stack_is_that_of_all_its_prefixes():
    rows = np.random.default_rng(9).dirichlet(np.full(12, 0.5), size=(1200, 12))
    parts = [(over.ravel(), under.ravel()) for _, over, under in prefixes(rows)]
    assert len(parts) > 1
    at_once = frontier(*(np.concatenate(side) for side in zip(*parts, strict=True)))
    for found, expected in zip(frontier_of(rows), at_once, strict=True):
        np.testing.assert_array_equal(found, expected)
