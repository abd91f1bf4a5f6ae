"""Figures and grants against closed forms, hand counts and brute force."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random

import numpy as np
import pytest

from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import ChainError, Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions import AgeDependent, Classical, WEvent
from agedp_data.notions.alternatives import Comparison
from agedp_data.notions.w_event import WindowLoss, fullest_window, largest_window

CAPS = {"max_day_epsilon": Decimal(2), "epsilon_total": "unlimited"}


@dataclass(frozen=True, slots=True)
class Line:
    day: str
    loss: int
    published_on: str = "2013-12-31"
    input_ended_at: str = "2013-01-01T00:00:00Z"
    series: str = "daily_mean"
    state: str = "released"
    population: str = "homes"
    contract: str = ""


def line(day: int, loss: float, *, age: int = 1, zone: str = "00:00:00") -> Line:
    """A day of 2013 (counted from 1), published so many days after it ended."""
    at = date(2012, 12, 31) + timedelta(days=day)
    ended = at + timedelta(days=1)
    return Line(at.isoformat(), floor_nano(loss), (ended + timedelta(days=age)).isoformat(), f"{ended}T{zone}Z")


def forgetting(curve: list[float], *, assume: str = "markov", steps: int = 48) -> LeakageBound:
    ages = np.arange(1, len(curve) + 1) * steps
    return LeakageBound(ages, np.array([1.0]), None, None, {"total_variation": np.array(curve)}, steps, assume)


def age_dependent(**keys) -> AgeDependent:
    given = {"age_days": 1, "method": "total_variation", "secret": "day", **CAPS, **keys}
    return AgeDependent(notion="age-dependent", **given)


def through(distance: float, loss: float) -> float:
    return math.log1p(distance * math.expm1(loss))


class TestClassical:
    def test_a_day_may_spend_its_amount_and_what_is_left_of_it(self):
        promise = Classical(notion="classical", epsilon_per_day=Decimal("0.1"), **CAPS)
        assert promise.loss([], "2013-01-01", None) == 100_000_000
        assert promise.loss([line(1, 0.04)], "2013-01-01", None) == floor_nano(0.1) - floor_nano(0.04)

    def test_figures_are_the_largest_day_and_the_sum(self):
        promise = Classical(notion="classical", epsilon_per_day=Decimal("0.5"), **CAPS)
        history = [line(1, 0.25), line(1, 0.125), line(2, 0.25), line(5, 0.5)]
        figures = [(figure.name, figure.value, figure.kind) for figure in promise.bounds(history, None, None)]
        assert figures == [
            ("day", NANO // 2, "assumption-free"),
            ("total", 9 * NANO // 8, "assumption-free"),
        ]

    def test_more_than_the_amount_of_a_day_is_refused_even_below_the_cap(self):
        promise = Classical(notion="classical", epsilon_per_day=Decimal("0.1"), **CAPS)
        with pytest.raises(Refused, match=r"0\.2, 0\.1 more than epsilon_per_day = 0\.1"):
            promise.admit([], line(1, Decimal("0.2")), None)


class TestWEvent:
    def test_windows_equal_a_brute_force_over_all_of_them(self):
        draw = Random(7)  # noqa: S311 - made-up rows
        for _ in range(200):
            losses = {line(d, 0).day: draw.randrange(100) for d in draw.sample(range(1, 30), 8)}
            days = draw.randrange(1, 9)
            named = [line(d, 0).day for d in range(-10, 45)]
            windows = [named[i : i + days] for i in range(len(named) - days + 1)]
            sums = {tuple(window): sum(losses.get(day, 0) for day in window) for window in windows}
            assert largest_window(losses, days=days) == max(sums.values())
            day = line(draw.randrange(1, 30), 0).day
            inside = max(total for window, total in sums.items() if day in window)
            assert fullest_window(losses, day, days=days) == inside

    def test_even_spends_a_window_th_and_remaining_half_of_what_is_left(self):
        even = WEvent(notion="w-event", window_days=3, epsilon_per_window=Decimal(1), spend="even", **CAPS)
        half = WEvent(notion="w-event", window_days=3, epsilon_per_window=Decimal(1), spend="remaining", **CAPS)
        assert even.loss([], "2013-01-05", None) == 333_333_333
        assert half.loss([], "2013-01-05", None) == 500_000_000
        assert half.loss([line(5, 0.5)], "2013-01-06", None) == 250_000_000
        assert half.loss([line(5, 0.5)], "2013-01-07", None) == 250_000_000
        assert half.loss([line(5, 0.5)], "2013-01-08", None) == 500_000_000

    def test_a_day_filled_in_later_is_held_to_the_windows_after_it_too(self):
        promise = WEvent(notion="w-event", window_days=3, epsilon_per_window=Decimal(1), spend="even", **CAPS)
        with pytest.raises(Refused, match=r"2013-01-04: a window of 3 days .* 0\.25 more than epsilon_per_window"):
            promise.admit([line(5, 0.5), line(6, 0.5)], line(4, 0.25), None)

    def test_another_window_is_reported_for_every_notion_but_not_twice(self):
        promise = WEvent(notion="w-event", window_days=7, epsilon_per_window=Decimal(1), spend="even", **CAPS)
        assert WEvent.comparison_accountants(Comparison(promise, window_days=7)) == ()
        assert WEvent.comparison_accountants(Comparison(promise, window_days=2)) == (WindowLoss(2),)
        figures = WindowLoss(2).bounds([line(1, 0.5), line(2, 0.25), line(3, 0.5)], None, None)
        assert [figure.value for figure in figures] == [750_000_000]


class TestAgeDependent:
    @pytest.mark.parametrize("distance", [0.05, 0.3, 0.6])
    @pytest.mark.parametrize("risk", [0.05, 0.4])
    def test_the_solved_loss_is_the_closed_form_of_a_periodic_schedule(self, distance, risk):
        # y = e^z* solves y = e^eps (1 - d + d y); the peak is ln(1 + d_A (y - 1)) ([A] eq. 30), A = 2 days.
        curve = [distance, distance**2]
        promise = age_dependent(risk=Decimal(str(risk)), age_days=2)
        solved = promise.loss([], "2013-01-01", forgetting(curve))
        y = 1 + math.expm1(risk) / distance**2
        expected = min(math.log(y / (1 - distance + distance * y)), 2.0)
        assert expected - 2e-8 < solved / NANO <= expected

    def test_a_household_that_never_forgets_gets_no_periodic_loss(self):
        assert age_dependent(risk=Decimal("0.5")).loss([], "2013-01-01", forgetting([1.0])) == 0

    def test_one_that_forgets_at_once_is_still_held_to_the_cap(self):
        assert age_dependent(risk=Decimal("0.5")).loss([], "2013-01-01", forgetting([0.0])) == 2 * NANO

    def test_the_stated_risk_is_the_largest_over_the_instants_asked_for(self):
        leakage_bound = forgetting([0.5, 0.25, 0.125, 0.0625])
        promise, history = age_dependent(risk=Decimal(2)), [line(1, 1.0), line(10, 0.25)]
        ever, now = (promise.bounds(history, leakage_bound, at)[-1] for at in (None, "2013-01-12"))
        assert 0 <= ever.value / NANO - through(0.5, 1.0) < 1e-8
        expected = through(0.5, 0.25 + through(0.0625, 1.0))
        assert 0 <= now.value / NANO - expected < 1e-8

    def test_between_publications_the_risk_at_the_instant_itself_counts(self):
        leakage_bound = forgetting([0.5, 0.25])
        figure = age_dependent(risk=Decimal(2)).bounds([line(1, 1.0)], leakage_bound, "2013-01-04")[-1]
        assert 0 <= figure.value / NANO - through(0.25, 1.0) < 1e-8

    def test_an_older_input_is_credited_whole_days_for_a_day_and_half_hours_for_a_half_hour(self):
        row = Line("2013-10-05", NANO, "2013-10-09", "2013-10-05T14:00:00Z")  # a Sydney day, 3 days and 10 hours old
        ages = np.array([3 * 48, 3 * 48 + 20, 5 * 48])
        model = LeakageBound(
            ages, np.array([1.0]), None, None, {"total_variation": np.array([0.5, 0.3, 0.1])}, 48, "markov"
        )
        for age_days, secret, distance in ((2, "day", 0.5), (2, "half-hour", 0.3), (5, "day", 0.1)):
            bound = age_dependent(risk=Decimal(2), age_days=age_days, secret=secret).bounds([row], model, None)[-1]
            assert 0 <= bound.value / NANO - through(distance, 1.0) < 1e-8

    def test_a_release_that_is_younger_than_promised_is_refused(self):
        promise = age_dependent(epsilon_per_day=Decimal("0.1"), age_days=3)
        promise.admit([], line(1, 0.05, age=3), None)
        with pytest.raises(Refused, match=r"2013-01-01: published on 2013-01-03 .* age_days = 3"):
            promise.admit([], line(1, 0.05, age=1), None)

    def test_a_risk_above_its_bound_is_refused_with_the_excess(self):
        promise = age_dependent(risk=Decimal("0.25"))
        with pytest.raises(Refused, match=r"2013-01-01: the risk .* more than risk = 0\.25"):
            promise.admit([], line(1, 0.75), forgetting([0.5]))

    def test_a_larger_loss_in_the_past_leaves_less_until_it_is_forgotten(self):
        leakage_bound = forgetting([0.5, 0.25, 0.125, 0.0625, 0.0])
        promise = age_dependent(risk=Decimal("0.5"))
        constant = promise.loss([], "2013-01-01", leakage_bound)
        after = [promise.loss([line(1, 2.0)], line(day, 0).day, leakage_bound) for day in range(2, 8)]
        # The risk leaves 0.83 to spend; of the 2.0 there is still 1.43, 0.95, then 0.59 on the following days.
        assert after[0] == after[1] == 0 < after[2] < constant
        assert after[-1] == constant

    def test_without_a_model_the_risk_is_said_to_be_unavailable_not_left_out(self):
        promise = age_dependent(epsilon_per_day=Decimal("0.1"))
        assert promise.loss([], "2013-01-01", None) == 100_000_000
        figure = promise.bounds([line(1, 0.1)], None, None)[-1]
        assert (figure.name, figure.value, figure.assumption) == ("risk", None, "there is no model")
        with pytest.raises(ChainError, match="needs a model"):
            age_dependent(risk=Decimal("0.1")).loss([], "2013-01-01", None)

    def test_the_tight_method_is_never_above_the_total_variation(self):
        grid = np.linspace(0.01, 3, 300)
        curve = np.array([0.5])
        tight = np.log1p(0.5 * np.expm1(grid)) * 0.9
        leakage_bound = LeakageBound(np.array([48]), grid, tight[None], None, {"total_variation": curve}, 48, "markov")
        bound = floor_nano(Decimal("0.3"))
        sharp, loose = (
            age_dependent(risk=Decimal("0.3"), method=method).loss([], "2013-01-01", leakage_bound)
            for method in ("tight", "total_variation")
        )
        assert sharp > loose > bound // 2

    def test_it_is_compared_where_another_notion_has_a_model(self):
        def names(promise, methods=("tight", "total_variation")):
            accountants = AgeDependent.comparison_accountants(Comparison(promise, methods=methods))
            return [bound.name for one in accountants for bound in one.bounds([line(1, 0.5)], forgetting([0.5]), None)]

        classical = Classical(notion="classical", epsilon_per_day=Decimal("0.1"), **CAPS)
        own = age_dependent(epsilon_per_day=Decimal("0.1"), method="tight")
        assert names(classical, ()) == []
        assert names(classical) == ["risk", "risk (total variation)"]
        assert names(own) == ["risk (total variation)"]
        # a method that this model has no bounds by is left out unless it is promised
        assert names(own, ("tight", "spectral")) == []
        assert [bound.name for bound in own.bounds([line(1, 0.5)], forgetting([0.5]), None)] == ["day", "total", "risk"]
