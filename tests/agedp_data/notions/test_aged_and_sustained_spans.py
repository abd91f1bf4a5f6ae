"""Spans that are aged under a chain, and spans of bounded changes, against closed forms and all pairs of uses."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from agedp_data.accounting.renyi import PICO, approximate_epsilon, compose, counts_curve, laplace_curve, pure_curve
from agedp_data.epsilon import NANO
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions import AgeDependent, Neighbourhood
from agedp_data.notions.age_dependent import AgedSpanLoss
from agedp_data.notions.neighbourhood import SustainedChangeLoss
from agedp_data.notions.publication import Comparison, Event, Publication
from agedp_data.notions.spans import SpanCurves
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from agedp_data.series.sensitivity import Move
from tests.exact_sums import vector
from tests.laws.promises import Line

FIRST = date(2013, 1, 1)
MEAN = Mean(statistic="mean", clamp_kwh=Decimal(50))
BINS = tuple(map(Decimal, (0, 5, 10, 11, 12, 40)))
MILLIONTH, BILLIONTH = DELTAS = (Decimal("1e-6"), Decimal("1e-9"))
CAPS = {"max_day_epsilon": Decimal(2), "epsilon_total": "unlimited"}
MIXING = [0.96**days for days in range(1, 41)]


def row(day: str, series: str, published_on: str, loss: int, *, sensitivity: int, scale: float) -> Line:
    return Line(day, loss, published_on, series, sensitivity=sensitivity, scale=scale, mechanism="discrete-laplace")


def year(age: int, days: range = range(365)) -> list[Line]:
    """A year of releases with epsilon 0.1, each published so many days after its day."""
    ends = [FIRST + timedelta(days=number) for number in days]
    return [
        row(str(day), "mean", str(day + timedelta(days=1 + age)), NANO // 10, sensitivity=50_000, scale=500_000.0)
        for day in ends
    ]


def model(distances: list[float], assume: str = "markov") -> LeakageBound:
    ages = np.arange(1, len(distances) + 1) * 48
    return LeakageBound(ages, np.array([1.0]), bounds={"total_variation": distances}, assume=assume, distances="exact")


def aged(publication: Publication, age: int = 30, **keys: object) -> AgedSpanLoss:
    keys = {"epsilon_per_day": Decimal("0.1"), "method": "total_variation", "secret": "day", **CAPS, **keys}
    promise = AgeDependent(notion="age-dependent", age_days=age, **keys)
    comparison = Comparison(promise, methods=("tight", "total_variation"), publication=publication)
    *_, accountant = AgeDependent.comparison_accountants(comparison)
    assert accountant.risk.method == "tight"  # the sharpest risk is the one to compare with
    return accountant


def at_distance(curve: np.ndarray, distance: float, delta: Fraction, pure: float) -> float:
    """The aged profile as in docs/notions.md: eps' = ln(1 + Delta (e^eps - 1)) at delta / Delta."""
    unaged = approximate_epsilon(curve, delta / Fraction(distance), pure=round(pure * NANO)) / NANO
    return float(np.log1p(distance * np.expm1(unaged)))


def test_a_year_is_aged_by_its_newest_day_where_that_says_more() -> None:
    publication, curve = Publication({"mean": MEAN}), laplace_curve(50_000, 500_000.0)
    accountant = aged(publication, delta=Decimal("1e-7"))
    assert accountant.deltas == (MILLIONTH, Decimal("1e-7"), BILLIONTH)
    bounds = accountant.bounds(year(30), model(MIXING), None)
    assert [bound.name for bound in bounds] == [f"risk of all days (delta {text})" for text in ("1e-6", "1e-7", "1e-9")]
    for bound in bounds:
        expected = at_distance(365 * curve, 0.96**30, Fraction(bound.delta), 36.5)
        assert bound.value / NANO == pytest.approx(expected, abs=3e-9)
        assert (bound.kind, bound.odds) == ("conditional", False)
        assert "is an independent Markov chain that mixes" in bound.assumption
        assert "the newest of whose days is at least 30 days old; every set of results" in bound.about
    # the last 65 days came younger: the larger of both publications' risks; from a later day on they are older
    rows, accountant = [*year(30, range(300)), *year(5, range(300, 365))], aged(publication, age=5)
    [bound, *_] = accountant.bounds(rows, model(MIXING), None)
    young = at_distance(365 * curve, 0.96**5, Fraction(MILLIONTH), 36.5)
    assert bound.value / NANO == pytest.approx(young, abs=3e-9)
    [bound, *_] = accountant.bounds(rows, model(MIXING), "2014-01-31")
    assert bound.value / NANO == pytest.approx(at_distance(365 * curve, 0.96**30, Fraction(MILLIONTH), 36.5), abs=3e-9)


def test_a_draw_of_a_calibration_is_not_aged() -> None:
    draw = Event("2012-01-01", "2012-12-31", NANO // 2)
    accountant = aged(Publication({"mean": MEAN}, charges=(draw,)))
    [bound, _] = accountant.bounds(year(30), model(MIXING), None)
    part = Fraction(MILLIONTH) * Fraction(float(np.exp(-0.5)))
    expected = 0.5 + at_distance(365 * laplace_curve(50_000, 500_000.0), 0.96**30, part, 36.5)
    assert bound.value / NANO == pytest.approx(expected, abs=3e-9)


@pytest.mark.parametrize(
    ("distances", "assume", "age"),
    [
        ([0.5] * 40, "markov", 30),  # the risk of pure losses is smaller
        ([1.0] * 40, "markov", 30),  # nothing ages
        (MIXING, "curve", 30),  # no chain
        ([1e-8] * 40, "markov", 30),  # the risk is smaller than delta
    ],
)
def test_no_aged_span_is_stated_that_says_nothing(distances: list[float], assume: str, age: int) -> None:
    assert aged(Publication({"mean": MEAN}), age).bounds(year(age), model(distances, assume), None) == []
    assert aged(Publication({"mean": MEAN}), age).bounds(year(age), None, None) == []


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("size_kwh", [1, 2, 6, 50])
def test_no_change_of_this_size_has_a_larger_curve_than_the_row(form: str, size_kwh: int) -> None:
    series = Distribution(statistic="distribution", form=form, clamp_kwh=Decimal(40), bins_kwh=BINS)
    counted = row(str(FIRST), "counts", "2013-02-01", 0, sensitivity=series.sensitivity("replacement"), scale=7.0)
    moved = SpanCurves(Publication({"counts": series}), change=Move(1000 * size_kwh)).of_row(counted)
    uses = np.arange(0, 40_001, 500)
    counts = np.array([vector(series, use) for use in uses])
    changes = [
        np.abs(counts[i] - counts[j]).astype(int)
        for i in range(len(uses))
        for j in range(i)
        if uses[i] - uses[j] <= 1000 * size_kwh
    ]
    assert max(change.max() for change in changes) == 1
    most = max(int(change.sum()) for change in changes)
    assert (moved.curve == counts_curve(most, 7.0)).all()
    assert moved.pure == pytest.approx(most / 7 * NANO, abs=1)


def test_a_change_of_every_day_sums_the_curves_of_its_size() -> None:
    counts = Distribution(
        statistic="distribution", form="cumulative", share=Decimal("0.5"), clamp_kwh=Decimal(40), bins_kwh=BINS
    )
    publication = Publication({"mean": MEAN, "counts": counts})
    rows = year(1)
    rows += [row(each.day, "counts", each.published_on, NANO // 5, sensitivity=4, scale=20.0) for each in rows]
    promise = Neighbourhood(
        notion="neighbourhood", delta_kwh=Decimal(2), window_days=7, epsilon_per_window=Decimal(1), spend="per-request",
        **CAPS,
    )  # fmt: skip
    accountant, *_ = Neighbourhood.comparison_accountants(Comparison(promise, publication=publication))
    assert accountant == SustainedChangeLoss(Decimal(2), publication, DELTAS)
    bounds = accountant.bounds(rows, None, None)
    assert [bound.name for bound in bounds] == [
        f"change of 2 kWh on every day (delta {text})" for text in ("1e-6", "1e-9")
    ]
    # 2 kWh cross two of the edges 10, 11, 12 at most; a mean moves by 2,000 Wh
    curve = 365 * compose(np.array([laplace_curve(2000, 500_000.0), counts_curve(2, 20.0)]))
    pure = 365 * (NANO // 250 + NANO // 10)
    assert [bound.value for bound in bounds] == [approximate_epsilon(curve, delta, pure=pure) for delta in DELTAS]
    assert bounds[0].value < SpanCurves(publication).total(rows).epsilon(MILLIONTH) < pure
    # an unknown series and a draw count in full
    stranger = row(str(FIRST), "unknown", "2013-02-01", NANO // 10, sensitivity=50_000, scale=500_000.0)
    draw = Event("2012-01-01", "2012-12-31", NANO)
    full = SpanCurves(Publication({"mean": MEAN}, charges=(draw,)), change=Move(2000)).total([stranger])
    assert (full.curve == laplace_curve(50_000, 500_000.0) + pure_curve(1)).all()
    assert full.pure == NANO + NANO // 10
    assert accountant.bounds(rows[:7], None, None) == []
    assert full.curve.max() < 2 * PICO
