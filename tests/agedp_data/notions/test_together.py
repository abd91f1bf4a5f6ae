"""The risk of several releases against the recursion written out, in any order; long series and large losses."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.epsilon import NANO
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.notions import AgeDependent
from agedp_data.notions.notion import ReleaseHistory, day_losses
from tests.laws.promises import Line

FIRST = date(2013, 1, 1)
CURVE = 0.8 ** np.arange(1.0, 41)


def text(day: int) -> str:
    return (FIRST + timedelta(days=day)).isoformat()


def risk(rows, model, *, at=None, age_days=1, method="total_variation"):
    """Return the risk of the current day, as the statement reports it."""
    caps = {"max_day_epsilon": Decimal(2), "epsilon_total": "unlimited"}
    keys = {"epsilon_per_day": Decimal(1), "age_days": age_days, "method": method, "secret": "day", **caps}
    return AgeDependent(notion="age-dependent", **keys).bounds(rows, model, at)[-1]


def through(days: int, loss: float) -> float:
    return math.log1p(CURVE[days - 1] * math.expm1(loss)) if days else loss


def written_out(losses: dict[int, float], age: int, assume: str) -> float:
    """MATHS 3 and 2b: the composed loss through every gap, or the best of leaving one release to age alone."""
    days = sorted(losses)
    if assume == "markov":
        composed = losses[days[0]]
        for before, day in pairwise(days):
            composed = losses[day] + through(day - before, composed)
        return through(age, composed)
    total = sum(losses.values())
    return min(total - losses[day] + through(age + days[-1] - day, losses[day]) for day in days)


@pytest.mark.parametrize("assume", ["markov", "curve"])
@settings(max_examples=60, deadline=None)
@given(
    releases=st.lists(st.tuples(st.integers(0, 9), st.integers(1, NANO)), min_size=1, max_size=12),
    age=st.integers(1, 3),
)
def test_days_in_any_order_compose_by_the_time_of_their_input(assume, releases, age):
    model = LeakageBound(np.arange(1, 41) * 48, [1.0], None, None, {"total_variation": CURVE}, 48, assume)
    losses: dict[int, int] = {}
    for day, loss in releases:
        losses[day] = losses.get(day, 0) + loss
    on = text(max(losses) + 1 + age)
    bound = risk([Line(text(day), loss, on) for day, loss in releases], model, at=on, age_days=age)
    exact = written_out({day: loss / NANO for day, loss in losses.items()}, age, assume)
    assert -1e-9 < bound.value / NANO - exact < 1e-7
    assert bound.kind == "conditional"


class Nearly:
    """A model in floats that forgets almost nothing; it counts how often it is evaluated."""

    steps_per_day, assume, methods = 48, "markov", ("total_variation",)

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> float:
        self.calls += 1
        return loss * (1 - 1e-12)


def test_10_000_publications_evaluate_the_model_once_a_day_and_once_a_date():
    model = Nearly()
    bound = risk([Line(text(day), NANO, text(day + 2)) for day in range(10_000)], model)
    assert 0 < model.calls <= 20_000
    assert bound.value <= 10_000 * NANO


@pytest.mark.parametrize("epsilon", [10**6, 10**9, 10**18])
def test_enormous_losses_are_added_to_the_last_unit(epsilon):
    """Beyond 2^53 units floats skip whole numbers; a sum of 50 losses, each odd, is exact all the same."""
    loss = epsilon * NANO + 1
    bound = risk([Line(text(day), loss, text(day + 2)) for day in range(50)], Nearly())
    assert Fraction(bound.value) == 50 * Fraction(loss)


def test_an_earlier_curve_is_read_by_its_total_variation_under_a_tight_promise():
    curve = LeakageBound(np.array([48]), LOSS_GRID, None, None, {"total_variation": np.array([0.5])}, 48, "curve")
    bound = risk([Line("2013-01-01", NANO, "2013-01-03")], curve, method="tight")
    assert 0 <= bound.value / NANO - math.log1p(0.5 * math.expm1(1)) < 1e-8
    assert "total_variation" in bound.assumption


def test_the_losses_of_days_are_those_of_the_history_in_hand_whatever_came_before():
    cached = ReleaseHistory()
    a, b, c = (Line(text(day), loss, text(9)) for day, loss in ((0, 1), (1, 2), (0, 4)))
    skipped = Line(text(2), 8, text(9), state="skipped")
    for history in ([a], [a, b], [a, b, c], (a, b, c, skipped), [a, b], [b, a], [], [c, c], [replace(a, loss=9), b]):
        losses = cached.of(history)
        assert losses == day_losses(history)
        losses["2013-01-01"] = -1  # the caller may change the result
