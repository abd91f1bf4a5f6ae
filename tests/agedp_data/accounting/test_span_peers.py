"""The (epsilon, delta) figures of spans against a peer, decimals of fifty digits, enumeration and simulation."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest

from agedp_data.accounting.renyi import (
    ORDERS,
    PICO,
    approximate_delta,
    approximate_epsilon,
    compose,
    counts_curve,
    laplace_curve,
    multiply,
    pure_curve,
    tight_epsilon,
)
from agedp_data.epsilon import NANO
from agedp_data.errors import ChainError

DELTAS = {"1e-3": 1.16, "1e-6": 1.09, "1e-9": 1.09}
"""Delta, and what the curve's figure may be of the peer's: the conversion costs most at a large delta."""
PEER = {
    (1, 2.0, 20): (7.936529, 9.986797, 9.999987),
    (1, 10.0, 365): (7.101593, 10.313865, 12.675133),
    (1, 50.0, 365): (0.979944, 1.673724, 2.169796),
    (2, 20.0, 365): (6.997520, 10.175334, 12.501671),
    (3, 7.0, 30): (8.232023, 11.118854, 12.711240),
    (3, 7.0, 365): (52.039212, 64.285458, 73.250234),
    (30, 100.0, 90): (11.182147, 15.401710, 18.357324),
    (60, 2000.0, 3650): (6.636713, 9.720426, 12.006476),
    (50_000, 5e5, 365): (6.963681, 10.126617, 12.447391),
    (50_000, 5e5, 1825): (21.048731, 28.076507, 33.307269),
    (50_000, 1e5, 60): (16.172153, 21.304588, 24.708552),
    (50_000, 1e5, 365): (64.505230, 78.409205, 88.584240),
    (50_000, 2.5e6, 365): (0.976880, 1.667389, 2.161575),
    (30_000, 3e4, 40): (28.640526, 34.925444, 38.342064),
}
"""(sensitivity, scale, days): epsilon at `DELTAS` by dp_accounting 0.6.0, which is no dependency; rounded up by it.

from_discrete_laplace_mechanism(1 / scale, sensitivity, value_discretization_interval=h).self_compose(days)
.get_epsilon_for_delta(delta) of dp_accounting.pld.privacy_loss_distribution, h = max(2e-6, min(1e-5, s/b/2000)).
"""
PEER_GRID = 2e-3
"""Relative distance by which the peer's grid raises its figures at most."""


@pytest.mark.parametrize(("sensitivity", "scale", "days"), PEER)
def test_the_curve_is_a_bound_close_to_the_peer(sensitivity: int, scale: float, days: int) -> None:
    pure = days * sensitivity / scale
    curve = multiply(laplace_curve(sensitivity, scale), days)
    for (delta, most), peer in zip(DELTAS.items(), PEER[sensitivity, scale, days], strict=True):
        figure = approximate_epsilon(curve, Decimal(delta), pure=round(pure * NANO)) / NANO
        assert peer * (1 - PEER_GRID) <= figure <= min(pure + 1e-8, most * peer)


def test_the_distribution_of_losses_is_that_of_the_peer() -> None:
    assert tight_epsilon([(3, 7.0, 30)], 1e-6) == pytest.approx(PEER[3, 7.0, 30][1], rel=PEER_GRID)


def decimal_curve(sensitivity: int, scale: float) -> list[Decimal]:
    """Return the smaller of Rényi and pure loss of each order in decimals [epsilon]."""
    width, orders = Decimal(scale), [Decimal(order) for order in ORDERS.tolist()]
    loss, q = sensitivity / width, (-1 / width).exp()
    curve = []
    for a in orders:
        x, end = ((1 - 2 * a) / width).exp(), ((1 - 2 * a) * loss).exp()
        mean = (1 + end + (1 - q) * (x - end) / (1 - x)) / (1 + q)
        curve.append(min(loss, loss + mean.ln() / (a - 1)))
    return curve


def test_every_order_is_rounded_up_and_hardly_more() -> None:
    rng = np.random.default_rng(4)
    random = zip(np.exp(rng.uniform(0, np.log(5e4), 8)), np.exp(rng.uniform(np.log(0.3), np.log(1e7), 8)), strict=True)
    corners = [*product((1, 30, 50_000), (0.3, 49.9, 1e7)), (50_000, 61.7), (45_001, 50.1), (999, 2.0)]
    with localcontext(prec=50):
        for sensitivity, scale in [*corners, *((int(s), float(b)) for s, b in random)]:
            exact, curve = decimal_curve(sensitivity, scale), laplace_curve(sensitivity, scale).tolist()
            excess = [rounded - value * PICO for rounded, value in zip(curve, exact, strict=True)]
            assert min(excess) >= 0
            if sensitivity / scale <= 1000:  # beyond it the pure loss counts
                assert max(excess) <= 3 + PICO * Decimal("1e-13") * exact[-1]


@pytest.mark.parametrize("delta", ["0.3", "1e-6", "1e-15", "1e-300"])
def test_conversion_rounds_up_to_the_nano_at_any_delta(delta: str) -> None:
    orders = [Decimal(order) for order in ORDERS.tolist()]
    with localcontext(prec=50):
        chance = Decimal(delta).ln()
        for curve in (365 * laplace_curve(50_000, 5e5), laplace_curve(1, 40.0), 3650 * laplace_curve(3, 4.0)):
            exact = min(
                Decimal(int(loss)) / PICO + (1 - 1 / a).ln() - (chance + a.ln()) / (a - 1)
                for loss, a in zip(curve, orders, strict=True)
            )
            excess = approximate_epsilon(curve, Decimal(delta), pure=10**20) - max(Decimal(0), exact) * NANO
            assert 0 <= excess <= 1 + exact / 10**4


def exact_delta(rows: list[tuple[tuple[int, ...], float]], epsilon: float, reach: int) -> float:
    """Return delta by looking at every result whose noise is within `reach`; all others count in full.

    Each row is the moves of its cells, and the scale of the noise of each.
    """
    near, far = np.ones(1), np.ones(1)
    for moves, scale in rows:
        q = np.exp(-1 / scale)
        for move in moves:
            law = (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1 + move))
            near = np.multiply.outer(near, law[move:]).ravel()
            far = np.multiply.outer(far, law[: len(law) - move]).ravel()
    return float(np.clip(near - np.exp(epsilon) * far, 0, None).sum() + 1 - near.sum())


ROWS: dict[str, tuple[list[tuple[tuple[int, ...], float]], int]] = {
    "three days": ([((2,), 1.5), ((1,), 2.0), ((3,), 2.5)], 50),
    "a mean and a histogram": ([((3,), 3.0), ((1, 1), 2.0)], 60),
    "groups that share the move": ([((1, 2), 2.0), ((3,), 3.0)], 60),
    "one count": ([((1,), 0.5)] * 3, 14),
}


@pytest.mark.parametrize("case", ROWS)
def test_enumeration_of_all_results_never_exceeds_delta(case: str) -> None:
    rows, reach = ROWS[case]
    curves = [counts_curve(2, scale) if moves == (1, 1) else laplace_curve(sum(moves), scale) for moves, scale in rows]
    pure = sum(sum(moves) / scale for moves, scale in rows)
    for epsilon in np.linspace(0.05, 0.95, 7) * pure:
        assert exact_delta(rows, float(epsilon), reach) <= approximate_delta(compose(np.array(curves)), float(epsilon))


def test_simulated_years_lose_what_both_figures_say() -> None:
    """Integers move by 7 under noise of scale 70 on each of 365 days: likelihood ratios of 4,000 drawn years."""
    moved, scale, days, years = 7, 70.0, 365, 4_000
    rng, p = np.random.default_rng(3), -np.expm1(-1 / scale)
    losses = np.zeros(years)
    for _ in range(days):
        noise = rng.geometric(p, years) - rng.geometric(p, years)
        losses += (np.abs(noise + moved) - np.abs(noise)) / scale
    curve = multiply(laplace_curve(moved, scale), days)
    for epsilon in (1.0, 3.43, 5.0):
        excess = np.clip(-np.expm1(epsilon - losses), 0, None)
        delta, error = excess.mean(), excess.std() / years**0.5
        assert delta - 4 * error <= approximate_delta(curve, epsilon)
        if epsilon == 3.43:
            low, high = (tight_epsilon([(moved, scale, days)], delta + side * error) for side in (4, -4))
            assert low - 1e-3 <= epsilon <= high + 1e-3


def test_extreme_curves_and_deltas_stay_bounds() -> None:
    certain = laplace_curve(1, 1e-6)
    assert approximate_delta(certain, 0) == 1
    assert pure_curve(1e300)[0] >= 10**311
    assert counts_curve([], []).dtype == np.int64
    nothing = compose(np.zeros((0, len(ORDERS)), np.int64))
    assert approximate_epsilon(nothing, Decimal("1e-15"), pure=0) == 0
    for delta in (float("nan"), -1e-9, 1):
        with pytest.raises(ChainError, match="a probability"):
            approximate_epsilon(nothing, delta, pure=0)
