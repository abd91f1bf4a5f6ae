"""Bounds and budgets against closed forms, hand counts and brute force."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import ChainError, Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions import AgeDependent, Classical, WEvent
from agedp_data.notions.publication import Comparison, largest_window
from agedp_data.notions.w_event import WindowLoss
from tests.laws.promises import Line

CAPS = {"max_day_epsilon": Decimal(2), "epsilon_total": "unlimited"}


def line(day: int, loss: float = 0, *, age: int = 1) -> Line:
    """A day of 2013 (counted from 1), published so many days after it ended."""
    at = date(2012, 12, 31) + timedelta(days=day)
    return Line(at.isoformat(), floor_nano(loss), (at + timedelta(days=1 + age)).isoformat())


def curve_bound(curve: list[float], *, ages: list[int] | None = None) -> LeakageBound:
    ages = np.arange(1, len(curve) + 1) * 48 if ages is None else np.array(ages)
    return LeakageBound(ages, np.array([1.0]), None, None, {"total_variation": np.array(curve)}, 48, "markov")


def classical(epsilon: str) -> Classical:
    return Classical(notion="classical", epsilon_per_day=Decimal(epsilon), **CAPS)


def w_event(days: int, spend: str = "even") -> WEvent:
    return WEvent(notion="w-event", window_days=days, epsilon_per_window=Decimal(1), spend=spend, **CAPS)


def age_dependent(**keys) -> AgeDependent:
    given = {"age_days": 1, "method": "total_variation", "secret": "day", **CAPS, **keys}
    return AgeDependent(notion="age-dependent", **given)


def through(distance: float, loss: float) -> float:
    return math.log1p(distance * math.expm1(loss))


def test_classical_spends_its_epsilon_each_day_and_no_more():
    promise = classical("0.1")
    assert promise.loss([], "2013-01-01", None) == 100_000_000
    assert promise.loss([line(1, 0.04)], "2013-01-01", None) == 60_000_000
    with pytest.raises(Refused, match=r"0\.2, 0\.1 more than epsilon_per_day = 0\.1"):
        promise.admit([], line(1, Decimal("0.2")), None)
    history = [line(1, 0.25), line(1, 0.125), line(2, 0.25), line(5, 0.5)]
    bounds = [(bound.name, bound.value, bound.kind) for bound in promise.bounds(history, None, None)]
    assert bounds == [("day", NANO // 2, "assumption-free"), ("total", 9 * NANO // 8, "assumption-free")]


def test_windows_equal_a_brute_force_over_all_of_them():
    draw = Random(7)  # noqa: S311 - made-up rows
    named = [line(number).day for number in range(-10, 45)]
    for _ in range(100):
        losses = {line(number).day: draw.randrange(100) for number in draw.sample(range(1, 30), 8)}
        days = draw.randrange(1, 9)
        windows = [named[i : i + days] for i in range(len(named) - days + 1)]
        sums = {tuple(window): sum(losses.get(day, 0) for day in window) for window in windows}
        assert largest_window(losses, days=days) == max(sums.values())
        day = line(draw.randrange(1, 30)).day
        assert largest_window(losses, days=days, around=(day, day)) == max(
            total for window, total in sums.items() if day in window
        )


def test_even_spends_a_window_th_and_remaining_half_of_what_is_left():
    half = w_event(3, "remaining")
    assert w_event(3).loss([], "2013-01-05", None) == 333_333_333
    for day, budget in ((5, 500_000_000), (6, 250_000_000), (7, 250_000_000), (8, 500_000_000)):
        assert half.loss([line(5, 0.5)] * (day > 5), line(day).day, None) == budget
    with pytest.raises(Refused, match=r"2013-01-04: a window of 3 days .* 0\.25 more than epsilon_per_window"):
        w_event(3).admit([line(5, 0.5), line(6, 0.5)], line(4, 0.25), None)  # windows after it count too


@pytest.mark.parametrize("distance", [0.05, 0.3, 0.6])
@pytest.mark.parametrize("risk", [0.05, 0.4])
def test_the_solved_loss_is_the_closed_form_of_a_periodic_schedule(distance, risk):
    # y = e^z* solves y = e^eps (1 - d + d y); the peak is ln(1 + d_A (y - 1)) ([A] eq. 30), A = 2 days.
    promise = age_dependent(risk=Decimal(str(risk)), age_days=2)
    solved = promise.loss([], "2013-01-01", curve_bound([distance, distance**2]))
    y = 1 + math.expm1(risk) / distance**2
    expected = min(math.log(y / (1 - distance + distance * y)), 2.0)
    assert expected - 2e-8 < solved / NANO <= expected


def test_without_mixing_there_is_no_loss_and_at_once_the_cap():
    assert age_dependent(risk=Decimal("0.5")).loss([], "2013-01-01", curve_bound([1.0])) == 0
    assert age_dependent(risk=Decimal("0.5")).loss([], "2013-01-01", curve_bound([0.0])) == 2 * NANO


def test_the_stated_risk_is_the_largest_over_the_instants_asked_for():
    bound, promise = curve_bound([0.5, 0.25, 0.125, 0.0625]), age_dependent(risk=Decimal(2))
    for history, at, expected in (
        ([line(1, 1.0), line(10, 0.25)], None, through(0.5, 1.0)),
        ([line(1, 1.0), line(10, 0.25)], "2013-01-12", through(0.5, 0.25 + through(0.0625, 1.0))),
        ([line(1, 1.0)], "2013-01-04", through(0.25, 1.0)),  # between publications
    ):
        risk = promise.bounds(history, bound, at)[-1]
        assert 0 <= risk.value / NANO - expected < 1e-8


def test_an_older_input_is_credited_whole_days_or_half_hours():
    # a Sydney day, 3 days and 10 hours old
    row = SimpleNamespace(day="2013-10-05", loss=NANO, published_on="2013-10-09", input_ended_at="2013-10-05T14:00:00Z",
                          series="mean", state="released", population="homes", contract="")  # fmt: skip
    bound = curve_bound([0.5, 0.3, 0.1], ages=[3 * 48, 3 * 48 + 20, 5 * 48])
    for age_days, secret, distance in ((2, "day", 0.5), (2, "half-hour", 0.3), (5, "day", 0.1)):
        risk = age_dependent(risk=Decimal(2), age_days=age_days, secret=secret).bounds([row], bound, None)[-1]
        assert 0 <= risk.value / NANO - through(distance, 1.0) < 1e-8


def test_a_release_too_young_or_with_too_large_a_risk_is_refused():
    promise = age_dependent(epsilon_per_day=Decimal("0.1"), age_days=3)
    promise.admit([], line(1, 0.05, age=3), None)
    with pytest.raises(Refused, match=r"2013-01-01: published on 2013-01-03 .* age_days = 3"):
        promise.admit([], line(1, 0.05, age=1), None)
    with pytest.raises(Refused, match=r"2013-01-01: the risk .* more than risk = 0\.25"):
        age_dependent(risk=Decimal("0.25")).admit([], line(1, 0.75), curve_bound([0.5]))


def test_a_larger_loss_in_the_past_leaves_less_until_it_is_mixed_away():
    bound, promise = curve_bound([0.5, 0.25, 0.125, 0.0625, 0.0]), age_dependent(risk=Decimal("0.5"))
    constant = promise.loss([], "2013-01-01", bound)
    after = [promise.loss([line(1, 2.0)], line(day).day, bound) for day in range(2, 8)]
    # The risk leaves 0.83 to spend; of the 2.0 there is still 1.43, 0.95, then 0.59 on the following days.
    assert after[0] == after[1] == 0 < after[2] < constant == after[-1]


def test_without_a_model_the_risk_is_unavailable_not_left_out():
    promise = age_dependent(epsilon_per_day=Decimal("0.1"))
    assert promise.loss([], "2013-01-01", None) == 100_000_000
    risk = promise.bounds([line(1, 0.1)], None, None)[-1]
    assert (risk.name, risk.value, risk.assumption) == ("risk", None, "there is no model")
    with pytest.raises(ChainError, match="needs a model"):
        age_dependent(risk=Decimal("0.1")).loss([], "2013-01-01", None)


def test_a_tight_bound_permits_more_than_the_total_variation():
    grid = np.linspace(0.01, 3, 300)
    tight, curve = np.log1p(0.5 * np.expm1(grid)) * 0.9, {"total_variation": np.array([0.5])}
    bound = LeakageBound(np.array([48]), grid, tight[None], None, curve, 48, "markov")
    sharp, loose = (
        age_dependent(risk=Decimal("0.3"), method=method).loss([], "2013-01-01", bound)
        for method in ("tight", "total_variation")
    )
    assert sharp > loose > 150_000_000


def test_other_windows_and_methods_are_compared_but_not_the_promised_one():
    assert WEvent.comparison_accountants(Comparison(w_event(7), window_days=7)) == ()
    assert WEvent.comparison_accountants(Comparison(w_event(7), window_days=2)) == (WindowLoss(2),)
    [bound] = WindowLoss(2).bounds([line(1, 0.5), line(2, 0.25), line(3, 0.5)], None, None)
    assert bound.value == 750_000_000

    def names(promise, *methods):
        accountants = AgeDependent.comparison_accountants(Comparison(promise, methods=methods))
        return [bound.name for one in accountants for bound in one.bounds([line(1, 0.5)], curve_bound([0.5]), None)]

    own = age_dependent(epsilon_per_day=Decimal("0.1"), method="tight")
    assert names(classical("0.1")) == names(own, "tight", "spectral") == []  # a method that the model lacks is left out
    assert names(classical("0.1"), "tight", "total_variation") == ["risk", "risk (total variation)"]
    assert names(own, "tight", "total_variation") == ["risk (total variation)"]


def text(day: int) -> str:
    return (date(2013, 1, 1) + timedelta(days=day)).isoformat()


CURVE = 0.8 ** np.arange(1.0, 41)


def risk(rows, model, *, at=None, age_days=1):
    """Return the risk of the current day, as the statement reports it."""
    return age_dependent(epsilon_per_day=Decimal(1), age_days=age_days).bounds(rows, model, at)[-1]


def mixed(days: int, loss: float) -> float:
    return through(CURVE[days - 1], loss) if days else loss


def written_out(losses: dict[int, float], age: int, assume: str) -> float:
    """The composed loss through every gap, or the best of leaving one release to age alone."""
    days = sorted(losses)
    if assume == "markov":
        composed = losses[days[0]]
        for before, day in pairwise(days):
            composed = losses[day] + mixed(day - before, composed)
        return mixed(age, composed)
    total = sum(losses.values())
    return min(total - losses[day] + mixed(age + days[-1] - day, losses[day]) for day in days)


@pytest.mark.parametrize("assume", ["markov", "curve"])
@settings(max_examples=40, deadline=None)
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
    """A model in floats that mixes almost nothing."""

    steps_per_day, assume, share, methods = 48, "markov", "", ("total_variation",)

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> float:
        return loss * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [10**6, 10**18])
def test_enormous_losses_are_added_to_the_last_unit(epsilon):
    """Beyond 2^53 units floats skip whole numbers; a sum of 50 losses, each odd, is exact all the same."""
    loss = epsilon * NANO + 1
    assert risk([Line(text(day), loss, text(day + 2)) for day in range(50)], Nearly()).value == 50 * loss
