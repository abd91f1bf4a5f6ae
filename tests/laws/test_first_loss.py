"""A first loss of a day between released days: it never lowers what the exact L says, and may lower what a table says.

Days 0, 1, 2, 4, 5 with a loss of 0.001 each, and day 3 with none or with 1e-9, under a household that forgets as
0.2^days. The table has the losses 0.001, 0.0857, ...; for c between them it says L_2(c) = L_2(0.001) + c - 0.001, which
may be more than L_1(L_1(c)) = L_1(0.001).
"""

from __future__ import annotations

from math import expm1, log1p

import pytest

from agedp_data.accounting.temporal_recursion import TemporalLosses
from agedp_data.epsilon import NANO
from tests.laws.promises import exact_bound, leakage_bound

FORGETS = 0.2
WITHOUT = dict.fromkeys((0, 1, 2, 4, 5), 1_000_000)
WITH = {**WITHOUT, 3: 1}


def leakage(days: int, loss: float) -> float:
    return log1p(FORGETS**days * expm1(loss))


def about(day: int, losses: dict[int, float]) -> float:
    """Leakage of the earlier releases about the first half-hour of a day, which is a whole number of days later."""
    composed, last = 0.0, min(losses)
    for earlier in sorted(each for each in losses if each < day):
        composed, last = losses[earlier] + leakage(earlier - last, composed), earlier
    return leakage(day - last - 1, composed) if composed else 0.0


def largest(losses: dict[int, int]) -> float:
    """MATHS 4 in closed form: 0.2^g 0.2^h = 0.2^(g + h), so that no step over several releases is smaller [nano]."""
    ahead = {day: loss / NANO for day, loss in losses.items()}
    back = {-day: loss for day, loss in ahead.items()}
    return NANO * max(ahead.get(day, 0.0) + about(day, ahead) + about(-day, back) for day in range(6))


@pytest.mark.parametrize("losses", [WITHOUT, WITH], ids=["without", "with"])
def test_the_exact_bound_is_the_closed_form_and_no_table_is_below(losses):
    exact = TemporalLosses(exact_bound("markov", FORGETS)).largest(losses)
    assert largest(losses) <= exact <= largest(losses) + 3  # roundings fade by 0.2 a step
    assert exact <= TemporalLosses(leakage_bound("markov", FORGETS)).largest(losses)


def test_a_first_loss_lowers_no_exact_bound():
    bound = TemporalLosses(exact_bound("markov", FORGETS))
    assert bound.largest(WITHOUT) <= bound.largest(WITH)


def test_a_first_loss_may_lower_the_bound_of_a_table():
    bound = TemporalLosses(leakage_bound("markov", FORGETS))
    # about day 1: 0.001 of its own, 0.001 of day 0, and the days ahead through L_2(c) or L_1(1e-9 + L_1(c))
    assert (bound.largest(WITHOUT), bound.largest(WITH)) == (3_240_101, 3_200_081)


@pytest.mark.parametrize("day", WITH)
def test_a_larger_loss_of_a_released_day_lowers_no_bound_of_a_table(day):
    bound = TemporalLosses(leakage_bound("markov", FORGETS))
    for more in (1, 1000, 500_000, 200_000_000):
        assert bound.largest(WITH) <= bound.largest({**WITH, day: WITH[day] + more})
