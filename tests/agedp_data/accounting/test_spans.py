"""Losses of spans at a delta: Renyi curves, distributions of losses, vectors, aged spans, and a peer."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from agedp_data.accounting.ageing import aged_epsilon
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
    tight_epsilon,
    vector_curve,
)
from agedp_data.epsilon import NANO
from agedp_data.errors import ChainError
from agedp_data.markov.mixing import total_variation
from agedp_data.markov.transitions import power, reverse

# Rényi accounting against enumeration, the binomial of randomised response, and reference values.

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


# The (epsilon, delta) figures of spans against a peer, decimals of fifty digits, enumeration and simulation.

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


# The Rényi curve of a vector of bounded moves, against the probabilities of all outcomes for all small vectors.

OUTCOMES = np.arange(-1_500, 1_501)
CHOSEN = [0, 20, 40, 55]
"""Orders up to 450: beyond, probabilities to the power of the order are no floats."""


@cache
def by_outcomes(move: int, scale: float) -> np.ndarray:
    """Rényi losses of one value that moves, from the probability of each outcome, at the chosen orders."""
    q = np.exp(-1 / scale)
    log_zero = np.log((1 - q) / (1 + q)) - np.abs(OUTCOMES) / scale
    log_moved = np.log((1 - q) / (1 + q)) - np.abs(OUTCOMES - move) / scale
    losses = []
    for order in ORDERS[CHOSEN]:
        exponent = order * log_moved + (1 - order) * log_zero
        largest = exponent.max()
        losses.append((largest + np.log(np.exp(exponent - largest).sum())) / (order - 1))
    return np.array(losses)


@pytest.mark.parametrize("scale", [0.7, 4.0, 23.0])
def test_no_vector_of_bounded_moves_has_a_larger_curve(scale):
    moves = [move for move in itertools.product(range(6), repeat=4) if sum(move) > 0]
    losses = {move: sum(by_outcomes(each, scale) for each in move) for move in moves}
    for largest, sensitivity in itertools.product(range(1, 6), range(1, 11)):
        permitted = [move for move in moves if max(move) <= largest and sum(move) <= sensitivity]
        if sensitivity > 4 * largest:  # four cells cannot move so much
            continue
        worst = np.max([losses[move] for move in permitted], axis=0)
        curve = vector_curve(sensitivity, largest_move=largest, scale=scale)[CHOSEN] / PICO
        assert (curve >= worst * (1 - 1e-9)).all()
        np.testing.assert_allclose(curve, worst, rtol=1e-8, atol=1e-11)  # and one of them attains it


def test_one_large_move_is_the_worst_and_many_small_ones_cost_little():
    whole = laplace_curve(100_000, 1e6)
    assert (vector_curve(100_000, largest_move=100_000, scale=1e6) == whole).all()
    assert (vector_curve(100_000, largest_move=10**9, scale=1e6) == whole).all()
    years = [
        approximate_epsilon(
            multiply(vector_curve(100_000, largest_move=move, scale=1e6), 365), 1e-6, pure=36_500_000_000
        )
        for move in (2_000, 4_000, 50_000, 100_000)
    ]
    assert years == sorted(years)
    assert 5 * years[1] < years[3]


@given(st.integers(1, 10**5), st.integers(1, 10**5), st.floats(0.1, 1e6))
def test_a_vector_loses_at_most_what_one_value_loses(sensitivity, largest, scale):
    curve = vector_curve(sensitivity, largest_move=largest, scale=scale)
    assert (curve <= laplace_curve(sensitivity, scale)).all()
    assert (curve >= laplace_curve(min(largest, sensitivity), scale)).all()


def test_a_cell_moves_by_at_least_one():
    with pytest.raises(ChainError, match="a cell moves by 0: must be at least 1"):
        vector_curve(5, largest_move=0, scale=1.0)


# The privacy-loss distribution against reference values and the binomial of randomised response.


@pytest.mark.parametrize(
    ("loss", "days", "exact"), [(0.0988, 365, 9.982), (0.1, 365, 10.125), (0.5, 60, 21.305), (0.02, 365, 1.666)]
)
def test_reference_values_are_met_from_above(loss: float, days: int, exact: float) -> None:
    figure = tight_epsilon([(50_000, 50_000 / loss, days)], 1e-6)
    assert exact - 5e-4 <= figure <= exact * 1.002


def test_randomised_response_is_a_binomial() -> None:
    days, loss = 365, 0.1
    figure = tight_epsilon([(1, 1 / loss, days)], 1e-6)
    truths = np.arange(days + 1)
    law = binom.pmf(truths, days, np.exp(loss) / (1 + np.exp(loss)))
    delta = np.clip(-np.expm1(figure - (2 * truths - days) * loss), 0, None) @ law
    assert 0.9e-6 <= delta <= 1e-6


def test_kinds_of_releases_add_and_the_pure_sum_is_never_exceeded() -> None:
    half = [(50_000, 5e5, 180), (50_000, 5e5, 185)]
    assert tight_epsilon(half, 1e-6) == pytest.approx(tight_epsilon([(50_000, 5e5, 365)], 1e-6), abs=1e-3)
    assert tight_epsilon([(50_000, 350_000.0, 7)], 1e-6) <= 1.0
    assert tight_epsilon([], 1e-6) == 0


# The aged profile of a span against the enumeration of all days and results of a small chain.

MIXES = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]])
SPAN_DELTAS = [Decimal(0), Decimal("1e-6"), Decimal("0.001"), Decimal("0.02"), Decimal("0.2")]


def results(daily: Floats, to_present: Floats, answers: list[Floats]) -> Floats:
    """Law of all results given each present state; row x of an answer is its law on a day in state x.

    `daily` leads from a day to the one before it, `to_present` from the present to the newest day.
    """
    given_day = answers[0]
    for answer in answers[1:]:
        earlier = daily @ given_day.reshape(len(daily), -1)
        given_day = (answer[:, :, None] * earlier[:, None, :]).reshape(len(daily), -1)
    return to_present @ given_day


def hockey_stick(laws: Floats, epsilon: float) -> float:
    """Largest delta of any two present states at an epsilon."""
    return max(np.clip(p - np.exp(epsilon) * q, 0, None).sum() for p, q in permutations(laws, 2))


def rounded_laplace(scale: float, reach: int = 9) -> Floats:
    """Discrete Laplace noise on the state 0, 1 or 2; what lies beyond the reach becomes one result on each side."""
    q = np.exp(-1 / scale)
    k = np.arange(-80, 83)
    law = (1 - q) / (1 + q) * q ** np.abs(k - np.arange(3)[:, None])
    cell = np.clip(k, -reach, reach + 2) + reach
    return np.array([np.bincount(cell, row) for row in law])


@pytest.mark.parametrize("age", [1, 2, 5])
@pytest.mark.parametrize("scales", [(2.0,), (3.0, 1.5), (4.0, 4.0, 2.5)])
def test_no_two_present_states_differ_by_more_than_the_profile(age: int, scales: tuple[float, ...]) -> None:
    backward = reverse(MIXES)
    laws = results(backward, power(backward, age), [rounded_laplace(scale) for scale in scales])
    np.testing.assert_allclose(laws.sum(axis=1), 1)
    curve, pure = compose(laplace_curve([2] * len(scales), scales)), sum(round(2 / b * NANO) + 1 for b in scales)
    distance = float(total_variation(MIXES, [age])[0])
    figures = [aged_epsilon(curve, distance, delta, pure=pure) for delta in SPAN_DELTAS]
    assert figures == sorted(figures, reverse=True)
    assert figures[-1] < figures[0] < pure
    for delta, figure in zip(SPAN_DELTAS, figures, strict=True):
        assert hockey_stick(laws, figure / NANO) <= float(delta) + 1e-12


STAYS = np.eye(2)
TRUTH = np.array([[np.e, 1.0], [1.0, np.e]]) / (1 + np.e)
"""Randomised response with epsilon 1."""


@pytest.mark.parametrize("days", [1, 3])
def test_a_household_that_keeps_its_habit_attains_the_profile(days: int) -> None:
    # an absorbing habit: with it now, it began after the newest day with probability 1 - .7^age
    age, pure = 2, days * NANO
    keeps = np.array([[1.0, 0.0], [0.3, 0.7]])
    curve = days * pure_curve(1.0)
    laws = results(STAYS, np.linalg.matrix_power(keeps, age), [TRUTH] * days)
    figure = aged_epsilon(curve, 0.7**age, 0, pure=pure)
    assert hockey_stick(laws, figure / NANO) == 0
    assert hockey_stick(laws, figure / NANO - 1e-6) > 0
    for delta in (0.01, 0.1):  # the theorem is an equality here: what remains is the conversion of the curve
        unaged = aged_epsilon(curve, 1.0, delta / 0.7**age, pure=pure) / NANO
        aged = aged_epsilon(curve, 0.7**age, delta, pure=pure) / NANO
        exact = hockey_stick(results(STAYS, STAYS, [TRUTH] * days), unaged)
        assert hockey_stick(laws, aged) == pytest.approx(0.7**age * exact, abs=1e-8)
    wrong = {
        "age off by one": aged_epsilon(curve, 0.7 ** (age + 1), 0, pure=pure),
        "distance times epsilon": int(0.7**age * pure),
        "newest day only": aged_epsilon(curve, 0.7**age, 0, pure=NANO) if days > 1 else 0,
    }
    for fault, claim in wrong.items():
        assert hockey_stick(laws, claim / NANO) > 1e-3, fault


def test_the_distance_ages_delta_as_well() -> None:
    year, pure = 365 * laplace_curve(50_000, 500_000.0), 36_500_000_000
    half = [aged_epsilon(year, 0.5, delta, pure=pure) for delta in (Decimal("1e-6"), Decimal("5e-7"))]
    both = aged_epsilon(year, 1.0, Decimal("1e-6"), pure=pure) / NANO
    epsilon_only = np.log1p(0.5 * np.expm1(both))  # has only half of the delta
    assert half[0] / NANO < epsilon_only - 0.1
    assert half[1] / NANO == pytest.approx(epsilon_only, abs=2e-9)


def test_ends_of_the_profile_and_wrong_arguments() -> None:
    curve = pure_curve(0.5)
    assert aged_epsilon(curve, 0.0, 0, pure=NANO // 2) == 0
    assert aged_epsilon(curve, 1e-7, Decimal("1e-6"), pure=NANO // 2) == 0
    assert aged_epsilon(curve, 1.0, 0, pure=NANO // 2) == NANO // 2
    for distance, delta in ((1.1, 0), (-0.1, 0), (0.5, 1), (0.5, -1e-9), (np.nan, 0)):
        with pytest.raises(ChainError):
            aged_epsilon(curve, distance, delta, pure=NANO // 2)
