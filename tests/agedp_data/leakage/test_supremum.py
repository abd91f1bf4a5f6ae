"""The largest piece at one loss: against every prefix, exhaustive programmes of another solver, and extreme numbers."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.leakage.dinkelbach import largest_gain
from agedp_data.leakage.function import leakage
from agedp_data.leakage.pieces import gain, prefixes

LOSSES = np.array([0.0, 1e-300, 1e-12, 1e-6, 0.1, 1.0, 5.0, 40.0, 699.0, 701.0, 800.0, 1e9, np.inf])


def stacks():
    rng = np.random.default_rng(21)
    near = np.eye(5) * (1 - 1e-9) + 2e-10
    yield "random", rng.dirichlet(np.full(6, 0.5), size=(40, 5))
    yield "sparse", sparse(rng)
    yield "near identity", np.stack([near / near.sum(axis=1, keepdims=True), np.eye(5)])
    flat = np.full((4, 8), 0.125)
    tilt = flat.copy()
    tilt[0, 0] += 1e-13
    tilt[0, 1] -= 1e-13
    yield "near uniform", np.stack([flat, tilt])
    yield "one row", rng.dirichlet(np.ones(4), size=(3, 1))
    yield "one column", np.ones((2, 3, 1))


def sparse(rng):
    weight = rng.gamma(0.3, size=(30, 7, 9)) * (rng.random((30, 7, 9)) > 0.6)
    weight[..., 0] += 1e-6
    return weight / weight.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(("name", "rows"), list(stacks()), ids=lambda value: value if isinstance(value, str) else "")
def test_it_is_the_largest_of_all_prefixes_at_any_loss(name, rows):
    expected = np.zeros((len(rows), LOSSES.size))
    for part, over, under in prefixes(rows):
        expected[part] = np.maximum(
            expected[part], gain(over[:, None], under[:, None], np.tile(LOSSES, (len(over), 1)))
        )
    found = largest_gain(rows, np.tile(LOSSES, (len(rows), 1)))
    if name == "near uniform":  # sums of a prefix lose the digits that sums of differences keep
        np.testing.assert_allclose(found, expected, atol=1e-15 * np.exp(1))
        assert found[1, 5] == pytest.approx(np.log1p(1e-13 * np.expm1(1) / (1 + 0.125 * np.expm1(1))), rel=1e-2)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)
    assert (found <= LOSSES).all()


def test_more_pairs_than_a_block_holds_are_tried_to_the_last():
    # 300 rows of 40: some 90,000 pairs, of which a block holds 6,500; the one that wins at a large loss is not wide.
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.full(40, 30.0), size=300)
    rows[123, 7] = 0.0
    rows[123] /= rows[123].sum()
    assert leakage(rows, np.inf) == np.inf
    expected = max(float(gain(over[0], under[0], np.array(9.0))) for _, over, under in prefixes(rows[None]))
    assert leakage(rows, 9.0) == pytest.approx(expected, rel=1e-12)


def test_each_kernel_has_its_own_loss():
    rows = np.random.default_rng(5).dirichlet(np.ones(4), size=(50, 4))
    loss = np.random.default_rng(6).choice(LOSSES, 50)
    together = leakage(rows, loss)
    np.testing.assert_array_equal(together, [leakage(kernel, a) for kernel, a in zip(rows, loss, strict=True)])
