"""OpenDP against an exact sampler of our own: two ways to one law, and a third way to tell them apart."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from agedp_data import mechanisms
from tests.statistics.fit import CANNOT_FLAKE, p_value, same_law
from tests.statistics.sampler import bernoulli_exp, discrete_laplace

DRAWS = 5_000
SCALES = [Fraction(1), Fraction(7, 2), Fraction(40)]


def ours(scale: Fraction, count: int) -> np.ndarray:
    return np.array([discrete_laplace(scale) for _ in range(count)])


def opendps(scale: Fraction, count: int) -> np.ndarray:
    zeros = np.zeros(count, np.int64)
    return mechanisms.discrete_laplace(zeros, sensitivity=scale.numerator, loss=Fraction(scale.denominator))


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_our_coin_falls_with_probability_e_to_the_minus_gamma(gamma):
    count, p = 4000, math.exp(-gamma)
    falls = sum(bernoulli_exp(gamma) for _ in range(count))
    assert abs(falls - count * p) <= 7 * math.sqrt(count * p * (1 - p))


@pytest.mark.parametrize("scale", SCALES)
def test_our_sampler_follows_the_law(scale):
    assert p_value(ours(scale, DRAWS), float(scale), strips=2, reach=3) > CANNOT_FLAKE


@pytest.mark.parametrize("scale", SCALES)
def test_opendps_draws_and_ours_are_of_one_law(scale):
    assert same_law(opendps(scale, 10 * DRAWS), ours(scale, DRAWS)) > CANNOT_FLAKE


@pytest.mark.parametrize("wrong", [Fraction(4, 5), Fraction(5, 4)])
def test_samples_of_different_scales_are_told_apart(wrong):
    assert same_law(opendps(40 * wrong, 10 * DRAWS), ours(Fraction(40), DRAWS)) < CANNOT_FLAKE


@pytest.mark.long
@pytest.mark.parametrize("scale", [*SCALES, Fraction(1, 3), Fraction(100_001, 7)])
def test_a_long_sample_of_either_tells_a_tenth(scale):
    count = 150_000
    exact, theirs = ours(scale, count), opendps(scale, count)
    assert same_law(theirs, exact) > CANNOT_FLAKE
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        assert same_law(opendps(scale * factor, count), exact) < CANNOT_FLAKE
