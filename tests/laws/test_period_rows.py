"""Rows that cover weeks, months and years: figures and budgets against all days and windows, looked at one by one."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agedp.budget import SAME_DAYS, DayBudget, EffectivePromise
from agedp_data import mechanisms
from agedp_data.accounting.renyi import approximate_epsilon, compose, laplace_curve
from agedp_data.epsilon import NANO
from agedp_data.notions import AnyPromise
from agedp_data.notions.notion import name_at_delta
from agedp_data.notions.publication import Publication
from agedp_data.series.series import series_in
from tests.laws.promises import Line

FIRST = date(2013, 1, 28)  # a Monday
DELTA = Decimal("0.001")
DAYS = [FIRST + timedelta(days=i) for i in range(48)]  # February is whole, and seven weeks less a day
SHARES = {"daily": "0.5", "week": "0.2", "month": "0.3"}
CLAMP_WH = 10_000
CAPS = {"max_day_epsilon": "1", "epsilon_total": "unlimited"}
PROMISES = {
    "classical": {"notion": "classical", "epsilon_per_day": Decimal("0.5")},
    "even": {"notion": "w-event", "window_days": 7, "epsilon_per_window": Decimal(1), "spend": "even"},
    "long": {"notion": "w-event", "window_days": 40, "epsilon_per_window": Decimal(1), "spend": "even"},
    "short": {"notion": "w-event", "window_days": 1, "epsilon_per_window": Decimal(1), "spend": "even"},
    "remaining": {"notion": "w-event", "window_days": 7, "epsilon_per_window": Decimal(1), "spend": "remaining"},
    "delta": {
        "notion": "w-event", "window_days": 30, "epsilon_per_window": Decimal(1), "spend": "even", "delta": DELTA,
    },
}  # fmt: skip


def covered(name, day):
    """The days of a row by the calendar, counted without the code under test."""
    if name == "week":
        return [day - timedelta(days=i) for i in range(day.weekday() + 1)] if day.weekday() == 6 else []
    if name == "month":
        return (
            [day.replace(day=i) for i in range(1, day.day + 1)] if day.day == monthrange(day.year, day.month)[1] else []
        )
    return [day]


def promised(terms, shares=SHARES, **keys):
    caps = {key: value if value == "unlimited" else Decimal(value) for key, value in (CAPS | keys).items()}
    promise = TypeAdapter(AnyPromise).validate_python({**caps, **terms})
    series = {
        name: series_in(
            {"statistic": "mean", "clamp_kwh": "10", "share": share} | ({} if name == "daily" else {"every": name})
        )
        for name, share in shares.items()
    }
    return promise.for_publication(Publication(series, {"c": series}, FIRST, DAYS[-1]))


def row_with(name, day, loss):
    sensitivity = CLAMP_WH * len(covered(name, day))
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(loss, NANO))
    recorded = mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)
    return replace(LINE, series=name, day=day.isoformat(), loss=recorded, sensitivity=sensitivity, scale=scale)


def lived(promise, order=DAYS, skipped=()):
    """All rows in the order of their days, each with the budget that the promise gives it."""
    effective, history = EffectivePromise(promise, (None,)), []
    series = promise._publication.series
    for day in order:
        for name in series:
            days = covered(name, day)
            if not days or days[0] < FIRST or (day, name) in skipped:
                continue
            budget = effective.series_budget(history, day, day.isoformat(), name=name, series=series[name])
            budget = effective.largest_admitted(history, budget, partial(row_with, name, day))
            if budget.loss:
                row = row_with(name, day, budget.loss)
                effective.admit(history, row)
                history.append(row)
            elif not budget.skipped:
                return history
    return history


def spans(history, width):
    """The rows that touch each window, every day of every row looked at."""
    rows = [(row, covered(row.series, date.fromisoformat(row.day))) for row in history]
    for i in range(-width, len(DAYS) + 1):
        window = {FIRST + timedelta(days=i + j) for j in range(width)}
        yield [row for row, days in rows if window.intersection(days)]


def largest(history, width):
    return max((sum(row.loss for row in touching) for touching in spans(history, width)), default=0)


def curve(rows):
    return compose(np.array([laplace_curve(row.sensitivity, row.scale) for row in rows]))


LINE = Line("", 0, "2013-06-01", contract="c", mechanism="discrete-laplace")


@pytest.mark.parametrize("terms", PROMISES.values(), ids=PROMISES)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_no_day_and_no_window_exceeds_its_bound_in_any_order(terms, data):
    order = data.draw(st.just(DAYS) | st.permutations(DAYS))
    parts = data.draw(st.sampled_from([("0.5", "0.2", "0.3"), ("0.1", "0.1", "0.8"), ("0.05", "0.9", "0.05")]))
    promise = promised(terms, dict(zip(SHARES, parts, strict=True)))
    history = lived(promise, order)
    assert largest(history, 1) <= promise.limits["day"]
    assert any(row.series == "week" for row in history)
    if terms["notion"] == "w-event":
        width = terms["window_days"]
        if promise.delta is None:
            assert largest(history, width) <= NANO
        else:
            curves = [(curve(rows), sum(row.loss for row in rows)) for rows in spans(history, width) if rows]
            assert max(approximate_epsilon(of, DELTA, pure=pure) for of, pure in curves) <= NANO


@pytest.mark.parametrize("terms", PROMISES.values(), ids=PROMISES)
def test_figures_are_those_of_all_days_and_windows(terms):
    promise = promised(terms)
    history = lived(promise)
    figures = {bound.name: bound.value for bound in promise.bounds(history, None, None)}
    assert figures["day"] == largest(history, 1)
    assert figures["total"] == sum(row.loss for row in history)
    if terms["notion"] == "w-event":
        width = terms["window_days"]
        assert figures[f"window of {width} days"] == largest(history, width)
        if promise.delta is not None:
            curves = [(curve(rows), sum(row.loss for row in rows)) for rows in spans(history, width) if rows]
            expected = max(approximate_epsilon(of, DELTA, pure=pure) for of, pure in curves)
            assert figures[name_at_delta(f"window of {width} days", DELTA)] == expected


@pytest.mark.parametrize("name", ["classical", "even", "short", "delta"])
def test_days_leave_each_period_the_share_that_is_its_own(name):
    history = lived(promised(PROMISES[name]))
    months = [row for row in history if row.series == "month"]
    weeks = [row.day for row in history if row.series == "week"]
    assert [row.day for row in months] == ["2013-02-28"]
    assert weeks == [f"{day}" for day in DAYS if day.weekday() == 6]
    assert {row.day for row in history if row.series == "daily"} == {f"{day}" for day in DAYS}
    daily = {row.loss for row in history if row.series == "daily"}
    assert max(daily) - min(daily) <= 2
    assert months[0].loss == pytest.approx(max(daily) * 0.3 / 0.5, rel=1e-6)


@pytest.mark.parametrize("total", ["1.5", "2.34"])
def test_a_total_is_kept_with_the_rows_of_periods_in_it(total):
    promise = promised(PROMISES["classical"], epsilon_total=total)
    history = lived(promise)
    assert sum(row.loss for row in history) <= float(total) * NANO
    # the whole day fits before it is begun: what is left is less than a day and its periods
    assert sum(row.loss for row in history) > (float(total) - 1) * NANO


def test_a_total_at_delta_is_kept_with_the_curves_of_periods():
    promise = promised({"notion": "classical", "epsilon_per_day": Decimal("0.1"), "delta": DELTA}, epsilon_total="1.2")
    history = lived(promise)
    pure = sum(row.loss for row in history)
    assert approximate_epsilon(curve(history), DELTA, pure=pure) <= 1.2 * NANO
    assert promise.total(history) == approximate_epsilon(curve(history), DELTA, pure=pure)


def test_a_row_that_counted_on_its_last_day_alone_would_be_noticed(monkeypatch):
    """The planted fault: a bound that forgets the other days of a row is exceeded by what is found one by one."""
    monkeypatch.setattr(Publication, "covered_days", lambda self, row: (row.day, row.day))
    history = lived(promised(PROMISES["even"], {"daily": "0.1", "week": "0.2", "month": "0.7"}))
    figures = {bound.name: bound.value for bound in promised(PROMISES["even"]).bounds(history, None, None)}
    assert figures["window of 7 days"] != largest(history, 7)
    assert figures["day"] != largest(history, 1)


def test_a_day_without_budget_beside_its_month_is_skipped_for_that_reason():
    history = [row_with("month", date(2013, 2, 28), NANO // 2)]
    effective = EffectivePromise(promised(PROMISES["classical"]), (None,))
    budget = effective.largest_admitted(history, DayBudget(NANO // 4), partial(row_with, "daily", date(2013, 2, 5)))
    assert budget == DayBudget(0, SAME_DAYS)
