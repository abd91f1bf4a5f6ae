"""The aged profile of a span against the enumeration of all days and results of a small chain."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations

import numpy as np
import pytest

from agedp_data.accounting.ageing import aged_epsilon
from agedp_data.accounting.renyi import compose, laplace_curve, pure_curve
from agedp_data.epsilon import NANO
from agedp_data.errors import ChainError
from agedp_data.markov.mixing import total_variation
from agedp_data.markov.transitions import power, reverse

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
MIXES = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]])
DELTAS = [Decimal(0), Decimal("1e-6"), Decimal("0.001"), Decimal("0.02"), Decimal("0.2")]


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
    figures = [aged_epsilon(curve, distance, delta, pure=pure) for delta in DELTAS]
    assert figures == sorted(figures, reverse=True)
    assert figures[-1] < figures[0] < pure
    for delta, figure in zip(DELTAS, figures, strict=True):
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
