"""Rounding up to whole 1e-9 against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.leakage.exact import from_integers, round_down_nano, round_up_nano, round_up_with_slack, to_integers

AMOUNT = st.floats(0, 1e5)


@given(AMOUNT)
def test_it_is_the_next_whole_and_never_below(amount):
    up, down = float(round_up_nano(amount)), float(round_down_nano(amount))
    assert down <= amount <= up
    assert up - down <= 1.01e-9 + 1e-11
    assert Fraction(up) - Fraction(amount) < Fraction(1, 10**9) + Fraction(1, 10**11)


@given(st.integers(0, 10**14))
def test_whole_numbers_stay_and_return(number):
    value = number / 10**9
    assert float(round_up_nano(value)) == float(round_down_nano(value)) == value
    assert to_integers([value]) == [number]
    assert from_integers([number])[0] == value


def test_infinity_is_a_word():
    assert to_integers([np.inf, 0.5]) == ["inf", 500_000_000]
    assert from_integers(["inf", 1]).tolist() == [np.inf, 1e-9]


def test_a_computed_figure_gets_its_slack_unless_it_is_nothing():
    assert round_up_with_slack([0.0, 1e-15, 0.25, np.inf]).tolist() == [0.0, 1e-9, 0.250000001, np.inf]
