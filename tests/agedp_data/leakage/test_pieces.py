"""Single pieces against the reference values, hulls and the largest piece against all points."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.leakage.function import fixed_point, frontier, gain, largest_gain, leakage, prefixes

LOSSES = np.array([0.0, 1e-300, 1e-12, 1e-6, 0.1, 1.0, 5.0, 40.0, 699.0, 701.0, 800.0, 1e9, np.inf])


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


@pytest.mark.parametrize("zeros", [0, 5])
def test_the_frontier_keeps_every_maximum_with_few_points(zeros):
    over, under = np.random.default_rng(zeros).random((2, 5000)) ** 3
    under[:zeros] = 0.0
    hull_over, hull_under = frontier(over, under)
    assert hull_over.size < 60
    for loss in (1e-6, 0.1, 1.0, 5.0, 30.0, np.inf):
        assert gain(hull_over, hull_under, np.array(loss)) == gain(over, under, np.array(loss))


def stacks():
    rng = np.random.default_rng(21)
    near = np.eye(5) * (1 - 1e-9) + 2e-10
    weight = rng.gamma(0.3, size=(30, 7, 9)) * (rng.random((30, 7, 9)) > 0.6)
    weight[..., 0] += 1e-6
    return {
        "random": rng.dirichlet(np.full(6, 0.5), size=(40, 5)),
        "sparse": weight / weight.sum(axis=-1, keepdims=True),
        "near identity": np.stack([near / near.sum(axis=1, keepdims=True), np.eye(5)]),
        "one row": rng.dirichlet(np.ones(4), size=(3, 1)),
        "one column": np.ones((2, 3, 1)),
    }


@pytest.mark.parametrize("rows", stacks().values(), ids=stacks())
def test_the_largest_gain_is_that_of_all_prefixes_at_any_loss(rows):
    losses, expected = np.tile(LOSSES, (len(rows), 1)), np.zeros((len(rows), LOSSES.size))
    for part, over, under in prefixes(rows):
        expected[part] = np.maximum(expected[part], gain(over[:, None], under[:, None], losses[: len(over)]))
    largest = largest_gain(rows, losses)
    np.testing.assert_allclose(largest, expected, rtol=1e-11, atol=1e-300)
    assert (largest <= LOSSES).all()


def test_rows_that_hardly_differ_keep_their_digits():
    tilt = np.full((2, 4, 8), 0.125)
    tilt[:, 0, :2] += [1e-13, -1e-13]
    expected = np.log1p(1e-13 * np.expm1(1) / (1 + 0.125 * np.expm1(1)))
    assert largest_gain(tilt, np.ones((2, 1)))[1, 0] == pytest.approx(expected, rel=1e-2)


def test_more_pairs_than_a_block_holds_are_tried_to_the_last():
    # 300 rows of 40: some 90,000 pairs, of which a block holds 6,500; the one that wins at a large loss is not wide.
    rows = np.random.default_rng(2).dirichlet(np.full(40, 30.0), size=300)
    rows[123, 7] = 0.0
    rows[123] /= rows[123].sum()
    assert leakage(rows, np.inf) == np.inf
    expected = max(float(gain(over[0], under[0], np.array(9.0))) for _, over, under in prefixes(rows[None]))
    assert leakage(rows, 9.0) == pytest.approx(expected, rel=1e-12)
