"""The noise follows its law, a scale wrong by a tenth is rejected, and its low bits say nothing.

Every statistical threshold is a probability of 1e-9 for a correct sampler; the same test with a wrong law
stands beside it and fails, with room to spare.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agedp_data import mechanisms
from agedp_data.epsilon import ceil_nano
from agedp_data.errors import ChainError, InputError
from tests.statistics.fit import CANNOT_FLAKE, law, low_bits_give_away, p_value

DRAWS = 40_000


@pytest.mark.parametrize(("sensitivity", "loss"), [(1, 1), (3, Fraction(1, 2)), (10_000, Decimal("0.1"))])
def test_the_noise_follows_the_law_and_a_scale_wrong_by_a_tenth_is_rejected(sensitivity, loss):
    true, scale = 123_456_789, float(Fraction(sensitivity) / Fraction(loss))
    vector = np.full(DRAWS, true, dtype=np.int64)
    noise = mechanisms.discrete_laplace(vector, sensitivity=sensitivity, loss=loss) - true
    assert p_value(noise, scale) > CANNOT_FLAKE
    for factor in (0.9, 1.1):
        assert p_value(noise, scale * factor) < CANNOT_FLAKE
    sd, sigmas = mechanisms.standard_deviation(scale), 7  # beyond 1e-9 for a normal law, with room for skewness
    assert abs(noise.mean()) < sigmas * sd / math.sqrt(DRAWS)
    assert abs(noise.var() / sd**2 - 1) < sigmas * math.sqrt(5 / DRAWS)  # kurtosis 6


def test_the_cells_of_one_release_are_independent():
    def dependence(pairs):
        table = np.histogram2d(pairs[:, 0], pairs[:, 1], bins=[[-1e9, -1, 0, 1, 2, 1e9]] * 2)[0]
        return stats.chi2_contingency(table).pvalue

    pairs = mechanisms.discrete_laplace(np.zeros(DRAWS, np.int64), sensitivity=2, loss=1).reshape(-1, 2)
    assert dependence(pairs) > CANNOT_FLAKE
    shared = pairs.copy()
    shared[: DRAWS // 10, 1] = shared[: DRAWS // 10, 0]
    assert dependence(shared) < CANNOT_FLAKE


def test_the_low_bits_of_a_mean_do_not_give_away_the_sum_as_numpys_laplace_does():
    def mean_kwh(true):
        vector = np.full(DRAWS, true * 7000, dtype=np.int64)
        return mechanisms.discrete_laplace(vector, sensitivity=7000, loss=1) / 1000 / 7

    assert low_bits_give_away(mean_kwh) > CANNOT_FLAKE
    generator = np.random.default_rng(1)
    assert low_bits_give_away(lambda true: true + generator.laplace(0, 1, DRAWS)) < CANNOT_FLAKE


losses = st.one_of(
    st.integers(1, 100),
    st.floats(1e-6, 100),
    st.fractions(Fraction(1, 10**9), 100),
    st.decimals(Decimal("1e-9"), 100, places=9),
)


def privacy_map(scale, sensitivity):
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return Fraction(dp.m.make_laplace(*space, scale=scale).map(sensitivity))


@settings(max_examples=120)
@given(st.integers(1, 10**6), losses)
def test_the_scale_is_the_smallest_whose_privacy_map_does_not_exceed_the_loss(sensitivity, loss):
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=loss)
    assert privacy_map(scale, sensitivity) <= Fraction(loss)
    assert privacy_map(math.nextafter(scale, 0), sensitivity) > Fraction(loss)


@settings(max_examples=120)
@given(st.integers(1, 10**6), st.integers(1, 10**11))
def test_a_granted_loss_is_never_exceeded_by_the_recorded_one(sensitivity, granted):
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(granted, 10**9))
    spent = mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)
    assert spent == ceil_nano(Fraction(sensitivity) / Fraction(scale))
    assert 0 <= granted - spent <= max(1, granted // 10**14)


def test_a_privacy_map_above_the_loss_draws_nothing(monkeypatch):
    monkeypatch.setattr(mechanisms, "laplace_scale", lambda **_: 0.999)
    with pytest.raises(ChainError, match="privacy map exceeds the loss 1"):
        mechanisms.discrete_laplace([5], sensitivity=1, loss=1)


@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_spread_and_intervals_are_those_of_the_law_summed_term_by_term(scale):
    masses, k = law(scale, -4000, 4000), np.arange(-4000, 4001)
    assert math.isclose(mechanisms.standard_deviation(scale), math.sqrt((masses * k**2).sum()), rel_tol=1e-9)
    inside = np.array([masses[4000 - w : 4001 + w].sum() for w in range(600)])
    for coverage in (0.01, 0.5, 0.9, 0.95, 0.999):
        assert mechanisms.interval(scale, coverage) == int(np.argmax(inside >= coverage))


@pytest.mark.parametrize("scale", [1e-3, 1e6, 1e12])
def test_spread_and_intervals_stay_true_at_extreme_scales(scale):
    # sinh form of the variance, 1/(2 sinh^2(1/(2 scale))): another way to the same number
    x = 1 / (2 * scale)
    assert math.isclose(mechanisms.standard_deviation(scale), 1 / (math.sqrt(2) * math.sinh(x)), rel_tol=1e-12)
    width = mechanisms.interval(scale, 0.95)
    if scale < 1:
        assert width == 0  # P(0) = tanh(1/(2 scale)) > .95
    else:  # the continuous law: half-width scale ln 20, within one unit
        assert abs(width - Fraction(scale) * Fraction(math.log(20))) < 1 + scale * 1e-15


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda loss=loss: mechanisms.discrete_laplace([1], sensitivity=1, loss=loss), None)
            for loss in (0, -1, math.nan, math.inf, 5e-324, 1e-300, Decimal("NaN"), Decimal(0), Decimal("inf"))
        ),
        *((lambda s=s: mechanisms.laplace_scale(sensitivity=s, loss=1), "sensitivity") for s in (0, -1, 2**63)),
        *(
            (lambda call=call, scale=scale: call(scale), "noise scale")
            for scale in (0.0, -1.0, math.nan, math.inf)
            for call in (
                lambda scale: mechanisms.recorded_loss(sensitivity=1, scale=scale),
                mechanisms.standard_deviation,
                lambda scale: mechanisms.interval(scale, 0.5),
            )
        ),
        *((lambda c=c: mechanisms.interval(1.0, c), None) for c in (0, 1, -0.5, 1.5, math.nan)),
        (lambda: mechanisms.discrete_laplace([0], sensitivity=2**60, loss=Decimal("0.001")), r"2\^55"),
    ],
)
def test_losses_sensitivities_and_scales_that_cannot_be_are_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()


def test_noise_that_could_run_into_the_ends_of_64_bits_is_refused_without_the_value():
    for value in (2**62 + 1, -(2**62) - 1):
        with pytest.raises(InputError) as caught:
            mechanisms.discrete_laplace([value], sensitivity=1, loss=1)
        assert str(value) not in str(caught.value)  # a reading is never quoted
    widest = mechanisms.discrete_laplace([2**62, -(2**62)], sensitivity=2**54, loss=1)
    assert np.abs(widest).max() < 2**63 - 1


@pytest.mark.parametrize("values", [[1.5], [[1, 2]], 3, np.array([2**63], dtype=np.uint64), ["1"], [True]])
def test_only_vectors_of_whole_numbers_get_noise(values):
    with pytest.raises(TypeError, match="vector of int64"):
        mechanisms.discrete_laplace(values, sensitivity=1, loss=1)
    for size in (0, 5):
        result = mechanisms.discrete_laplace(np.zeros(size, dtype=np.int32), sensitivity=1, loss=1)
        assert (result.dtype, result.shape) == (np.dtype(np.int64), (size,))


def test_a_selection_follows_the_exponential_law_and_no_other():
    scores, loss, draws = np.array([0, -1, -3]), Fraction(3, 2), 2500
    observed = np.bincount(
        [mechanisms.exponential_mechanism(scores, loss=loss) for _ in range(draws)], minlength=len(scores)
    )

    def fits(weights):
        return stats.chisquare(observed, weights / weights.sum() * draws).pvalue

    assert fits(np.exp(float(loss) / 2 * scores)) > CANNOT_FLAKE
    for wrong in (float(loss), float(loss) / 2 * 1.4):  # without the factor 2, or two fifths too much
        assert fits(np.exp(wrong * scores)) < CANNOT_FLAKE


@pytest.mark.parametrize("loss", [Fraction(1, 10**9), Decimal("0.1"), Fraction(1, 3), 1, Decimal("7.3"), 10**5])
def test_the_map_of_a_selection_stays_within_its_loss_and_close_to_it(loss, monkeypatch):
    made = []
    make_noisy_max = dp.m.make_noisy_max
    monkeypatch.setattr(
        dp.m, "make_noisy_max", lambda *space, scale: made.append(scale) or make_noisy_max(*space, scale=scale)
    )
    assert mechanisms.exponential_mechanism([5], loss=loss) == 0
    exact = Fraction(2) / Fraction(loss)
    assert exact <= Fraction(made[-1]) <= exact * (1 + Fraction(1, 10**12))  # the scale 2 / loss, never below


@pytest.mark.parametrize("scores", [[], [0.5], [[1]], [2**60]])
def test_only_integer_scores_are_selected_among(scores):
    with pytest.raises(TypeError, match="integer scores"):
        mechanisms.exponential_mechanism(scores, loss=1)
