"""The noise follows its law, a scale wrong by a tenth is rejected, and its low bits say nothing.

Every statistical threshold is a probability of 1e-9 for a correct sampler; the same test with a wrong sampler
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

DRAWS = 60_000


def drawn(scale_as, count=DRAWS, value=0):
    sensitivity, loss = scale_as
    return mechanisms.discrete_laplace(np.full(count, value, dtype=np.int64), sensitivity=sensitivity, loss=loss)


def rescaled(scale_factor, sensitivity, loss):
    """The same request with the scale multiplied by an exact fraction."""
    return sensitivity, Fraction(loss) / Fraction(scale_factor)


@pytest.mark.parametrize("request_", [(1, 1), (3, Fraction(1, 2)), (10_000, Decimal("0.1"))])
def test_the_noise_follows_the_discrete_laplace_law(request_):
    scale = float(Fraction(request_[0]) / Fraction(request_[1]))
    assert p_value(drawn(request_), scale) > CANNOT_FLAKE


@pytest.mark.parametrize("request_", [(1, 1), (3, Fraction(1, 2)), (10_000, Decimal("0.1"))])
@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_a_scale_wrong_by_a_tenth_is_rejected(request_, factor):
    scale = float(Fraction(request_[0]) / Fraction(request_[1]))
    assert p_value(drawn(rescaled(factor, *request_)), scale) < CANNOT_FLAKE


def test_the_mean_is_the_true_value_and_the_spread_the_stated_one():
    request_, true = (10_000, Decimal("0.1")), 123_456_789
    draws = drawn(request_, value=true).astype(float) - true
    sd = mechanisms.standard_deviation(1e5)
    sigmas = 7  # beyond 1e-9 for a normal law, with room for the skewness of a sample variance
    assert abs(draws.mean()) < sigmas * sd / math.sqrt(DRAWS)
    assert abs(draws.var() / sd**2 - 1) < sigmas * math.sqrt(5 / DRAWS)  # kurtosis 6


def test_the_cells_of_one_release_are_independent():
    def dependence(pairs):
        table = np.histogram2d(pairs[:, 0], pairs[:, 1], bins=[[-1e9, -1, 0, 1, 2, 1e9]] * 2)[0]
        return stats.chi2_contingency(table).pvalue

    pairs = drawn((2, 1), 2 * DRAWS).reshape(DRAWS, 2)
    assert dependence(pairs) > CANNOT_FLAKE
    shared = pairs.copy()
    shared[: DRAWS // 10, 1] = shared[: DRAWS // 10, 0]
    assert dependence(shared) < CANNOT_FLAKE


def test_the_low_bits_of_a_mean_do_not_give_away_the_sum():
    homes = 7

    def mean_kwh(true):
        vector = np.full(DRAWS, true * 1000 * homes, dtype=np.int64)
        return mechanisms.discrete_laplace(vector, sensitivity=1000 * homes, loss=1) / 1000 / homes

    assert low_bits_give_away(mean_kwh) > CANNOT_FLAKE


def test_the_low_bits_of_numpys_laplace_give_away_the_value():
    generator = np.random.default_rng(1)
    assert low_bits_give_away(lambda true: true + generator.laplace(0, 1, DRAWS)) < CANNOT_FLAKE


def test_equal_figures_are_equally_likely_to_the_last_bit_whatever_the_sum():
    """The set of possible figures is the same for every true sum, so no figure can exclude one."""
    homes = 7
    for true in (0, 1, 6999, 7001):
        vector = np.full(2000, true, dtype=np.int64)
        sums = mechanisms.discrete_laplace(vector, sensitivity=5, loss=1)
        assert set((sums / 1000 / homes).tolist()) <= {k / 1000 / homes for k in range(true - 999, true + 999)}


losses = st.one_of(
    st.integers(1, 100),
    st.floats(1e-6, 100),
    st.fractions(Fraction(1, 10**9), 100),
    st.decimals(Decimal("1e-9"), 100, places=9),
)


def privacy_map(scale, sensitivity):
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return Fraction(dp.m.make_laplace(*space, scale=scale).map(sensitivity))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 10**6), losses)
def test_the_scale_is_the_smallest_whose_privacy_map_does_not_exceed_the_loss(sensitivity, loss):
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=loss)
    assert privacy_map(scale, sensitivity) <= Fraction(loss)
    assert privacy_map(math.nextafter(scale, 0), sensitivity) > Fraction(loss)


@settings(max_examples=300, deadline=None)
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


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.5, 40.0])
def test_spread_and_intervals_are_those_of_the_law_summed_term_by_term(scale):
    reach = 4000
    masses, k = law(scale, -reach, reach), np.arange(-reach, reach + 1)
    assert math.isclose(mechanisms.standard_deviation(scale), math.sqrt((masses * k**2).sum()), rel_tol=1e-9)
    inside = np.array([masses[reach - w : reach + w + 1].sum() for w in range(600)])
    for coverage in (0.01, 0.5, 0.9, 0.95, 0.999):
        assert mechanisms.interval(scale, coverage) == int(np.argmax(inside >= coverage))


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 1e6, 1e12])
def test_spread_and_intervals_stay_true_at_extreme_scales(scale):
    # sinh form of the variance, 1/(2 sinh^2(1/(2 scale))): another way to the same number
    x = 1 / (2 * scale)
    assert math.isclose(mechanisms.standard_deviation(scale), 1 / (math.sqrt(2) * math.sinh(x)), rel_tol=1e-12)
    width = mechanisms.interval(scale, 0.95)
    if scale < 1:
        assert width == 0  # P(0) = tanh(1/(2 scale)) > .95
    else:  # the continuous law: half-width scale ln 20, within one unit
        assert abs(width - Fraction(scale) * Fraction(math.log(20))) < 1 + scale * 1e-15


def test_wider_coverage_never_narrows_an_interval():
    widths = [mechanisms.interval(7.0, Fraction(n, 1000)) for n in range(1, 1000)]
    assert widths == sorted(widths)


@pytest.mark.parametrize(
    "loss",
    [0, -1, 0.0, math.nan, math.inf, -math.inf, 5e-324, 1e-300, Decimal("NaN"), Decimal(0), Decimal("inf")],
)
def test_a_loss_that_is_no_positive_number_or_needs_endless_noise_is_refused(loss):
    with pytest.raises(ChainError):
        mechanisms.discrete_laplace([1], sensitivity=1, loss=loss)


@pytest.mark.parametrize("sensitivity", [0, -1, 2**63])
def test_a_sensitivity_that_cannot_be_is_refused(sensitivity):
    with pytest.raises(ChainError, match="sensitivity"):
        mechanisms.laplace_scale(sensitivity=sensitivity, loss=1)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_cannot_be_is_refused(scale):
    for ask in (
        lambda: mechanisms.recorded_loss(sensitivity=1, scale=scale),
        lambda: mechanisms.standard_deviation(scale),
        lambda: mechanisms.interval(scale, 0.5),
    ):
        with pytest.raises(ChainError, match="noise scale"):
            ask()


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 1.5, math.nan])
def test_a_coverage_outside_nought_and_one_is_refused(coverage):
    with pytest.raises(ChainError):
        mechanisms.interval(1.0, coverage)


def test_noise_that_could_run_into_the_ends_of_64_bits_is_refused():
    with pytest.raises(ChainError, match=r"2\^55"):
        mechanisms.discrete_laplace([0], sensitivity=2**60, loss=Decimal("0.001"))
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


def test_the_result_is_a_vector_of_int64_of_the_same_length():
    for size in (0, 1, 5):
        result = mechanisms.discrete_laplace(np.zeros(size, dtype=np.int32), sensitivity=1, loss=1)
        assert (result.dtype, result.shape) == (np.dtype(np.int64), (size,))
