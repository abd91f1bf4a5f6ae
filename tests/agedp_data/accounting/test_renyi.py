"""Rényi accounting against enumeration, the binomial of randomised response, and reference values."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from agedp_data.accounting.renyi import (
    ORDERS,
    PICO,
    approximate_delta,
    approximate_epsilon,
    compose,
    counts_curve,
    laplace_curve,
    largest_equal_loss,
    multiply,
    pure_curve,
)
from agedp_data.epsilon import NANO

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def summed_curve(sensitivity: int, scale: float) -> Floats:
    """Return the Rényi curve by summing over all outcomes, those beyond 60 scales in closed form."""
    q = np.exp(np.longdouble(-1) / np.longdouble(scale))
    k = np.arange(1, sensitivity)
    losses = np.concatenate([[sensitivity], sensitivity - 2 * k, [-sensitivity]]) / np.longdouble(scale)
    weights = np.concatenate([[1 / (1 + q)], (1 - q) / (1 + q) * q**k, [q**sensitivity / (1 + q)]])
    excess = weights @ np.expm1(losses[:, None] * (ORDERS - 1))
    return np.asarray(np.log1p(excess) / (ORDERS - 1), np.float64)


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 30, 60])
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.0, 100.0, 300.0])
def test_the_closed_form_is_the_sum_over_outcomes(sensitivity: int, scale: float) -> None:
    if sensitivity / scale > 5:
        return  # the sum overflows
    summed, curve = summed_curve(sensitivity, scale), laplace_curve(sensitivity, scale) / PICO
    assert (curve >= np.minimum(summed, sensitivity / scale) - 1e-15).all()
    assert (curve <= summed * (1 + 1e-12) + 3e-12).all()


def test_the_continuous_formula_is_no_bound() -> None:
    loss, orders = 3 / 7, ORDERS
    gain = np.log(orders / (2 * orders - 1)) + (orders - 1) * loss
    rest = np.log((orders - 1) / (2 * orders - 1)) - orders * loss
    continuous = np.logaddexp(gain, rest) / (orders - 1)
    curve = laplace_curve(3, 7.0) / PICO
    assert (curve > continuous).all()
    assert (1 - continuous / curve).max() == pytest.approx(0.014, abs=0.002)


@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=4).filter(any),
    st.floats(0.5, 50.0),
)
def test_no_division_over_cells_exceeds_the_curve(moves: list[int], scale: float) -> None:
    parts = compose(np.array([laplace_curve(move, scale) for move in moves if move]))
    assert (parts <= laplace_curve(sum(moves), scale) + len(moves) + 40).all()


def test_the_moments_of_a_row_are_those_of_two_points() -> None:
    """E[W^s] with W = u or v, of which superadditivity in s follows (docs/mathematics.md)."""
    for sensitivity, scale in ((1, 0.7), (3, 7.0), (30, 100.0)):
        q, orders = np.exp(-1 / scale), ORDERS[ORDERS < 60]
        x = q ** (2 * orders - 1)
        weight_u, weight_v = (1 - q * x) / ((1 + q) * (1 - x)), (q - x) / ((1 + q) * (1 - x))
        assert (weight_v >= 0).all()
        np.testing.assert_allclose(weight_u + weight_v, 1)
        moment = weight_u * np.exp((orders - 1) * sensitivity / scale) + weight_v * np.exp(
            -orders * sensitivity / scale
        )
        expected = summed_curve(sensitivity, scale)[: len(orders)]
        np.testing.assert_allclose(np.log(moment) / (orders - 1), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("loss", "days", "expected"), [(0.1, 365, 10.748), (0.5, 60, 22.195), (0.5, 365, 81.660), (0.02, 365, 1.789)]
)
def test_reference_values_of_a_span(loss: float, days: int, expected: float) -> None:
    curve = multiply(laplace_curve(50_000, 50_000 / loss), days)
    epsilon = approximate_epsilon(curve, Decimal("1e-6"), pure=round(loss * days * NANO)) / NANO
    assert epsilon == pytest.approx(expected, abs=6e-4)


def randomised_response_delta(loss: float, days: int, epsilon: float) -> float:
    """Return the exact delta of equal randomised responses, a sum over binomials ([KOV])."""
    truths = np.arange(days + 1)
    p = np.exp(loss) / (1 + np.exp(loss))
    excess = -np.expm1(epsilon - (2 * truths - days) * loss)
    return float(np.clip(excess, 0, None) @ binom.pmf(truths, days, p))


@pytest.mark.parametrize(("loss", "days", "exact"), [(0.1, 365, 10.314), (0.5, 60, 22.982)])
def test_an_unknown_mechanism_is_randomised_response(loss: float, days: int, exact: float) -> None:
    assert randomised_response_delta(loss, days, exact) == pytest.approx(1e-6, rel=0.01)
    curve = multiply(pure_curve(loss), days)
    epsilon = approximate_epsilon(curve, Decimal("1e-6"), pure=round(loss * days * NANO)) / NANO
    assert exact <= epsilon <= 1.09 * exact


def test_a_year_of_histograms_counts_two_cells() -> None:
    epsilon = approximate_epsilon(multiply(counts_curve(2, 20.0), 365), Decimal("1e-6"), pure=36_500_000_000) / NANO
    assert epsilon == pytest.approx(7.36, abs=0.005)


def test_the_loss_of_a_single_release_is_exact() -> None:
    loss, epsilon = 1.0, 0.4
    assert approximate_delta(laplace_curve(50_000, 50_000.0), epsilon) >= -np.expm1((epsilon - loss) / 2)
    assert approximate_epsilon(laplace_curve(50_000, 50_000.0), Decimal("1e-6"), pure=NANO) == NANO


def test_a_week_is_the_sum_of_its_pure_losses() -> None:
    week = multiply(laplace_curve(50_000, 350_000.0), 7)
    assert approximate_epsilon(week, Decimal("1e-6"), pure=NANO) == NANO
    assert approximate_epsilon(week, Decimal("1e-3"), pure=NANO) < NANO


@given(st.lists(st.tuples(st.integers(1, 100_000), st.floats(0.01, 3.0)), min_size=1, max_size=12), st.randoms())
def test_a_span_is_free_of_order_and_grows_with_every_row(rows: list[tuple[int, float]], random: object) -> None:
    sensitivities, losses = np.array(rows).T
    curves = laplace_curve(sensitivities, sensitivities / losses)
    shuffled = curves[np.random.default_rng(0).permutation(len(rows))]
    assert (compose(curves) == compose(shuffled)).all()
    pure = round(losses.sum() * NANO) + len(rows)
    epsilons = [
        approximate_epsilon(compose(curves[:end]), Decimal("1e-6"), pure=pure) for end in range(1, len(rows) + 1)
    ]
    assert sorted(epsilons) == epsilons
    assert epsilons[-1] <= pure


def test_the_largest_equal_loss_of_a_year_fits_and_one_more_does_not() -> None:
    def curve(loss: int) -> np.ndarray:
        return laplace_curve(50_000, 50_000 * NANO / loss)

    loss = largest_equal_loss(curve, 365, epsilon=10 * NANO, delta=Decimal("1e-6"), cap=NANO)
    assert loss / NANO == pytest.approx(0.0939, abs=1e-5)
    for equal, fits in ((loss, True), (loss + 1, False)):
        epsilon = approximate_epsilon(multiply(curve(equal), 365), Decimal("1e-6"), pure=365 * equal)
        assert (epsilon <= 10 * NANO) == fits


def test_losses_beyond_floats_count_in_full() -> None:
    curve = laplace_curve([1, 2**62], [1e-6, 1e40])
    assert int(curve[0, 0]) >= 10**18
    assert int(curve[1, -1]) >= 0
    assert int(multiply(curve[0], 10**6)[0]) >= 10**24
    assert (compose(np.array([curve[0]] * 20)) >= 20 * 10**18).all()
