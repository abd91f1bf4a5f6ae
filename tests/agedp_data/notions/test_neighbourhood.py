"""The notion neighbourhood against closed forms, and brute force over windows and edges."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from pydantic import ValidationError

from agedp_data.epsilon import NANO
from agedp_data.errors import Refused
from agedp_data.notions import Neighbourhood
from agedp_data.notions.neighbourhood import BoundedChangeLoss
from agedp_data.notions.publication import Publication
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from tests.laws.promises import Line

FIRST = date(2013, 1, 1)
BINS = tuple(map(Decimal, (0, 5, 10, 11, 12, 40)))
COUNTS = {"statistic": "distribution", "share": Decimal("0.3"), "clamp_kwh": Decimal(40), "bins_kwh": BINS}


def mean(clamp=50, **keys):
    return Mean(statistic="mean", clamp_kwh=Decimal(clamp), **keys)


def day(number):
    return str(FIRST + timedelta(days=number))


def line(number, loss, series="mean", **keys):
    return Line(day(number), loss, "2013-12-31", series, **keys)


def promised(*, spend="fraction", window=7, epsilon="0.7", delta="2", cap="1000", **keys):
    if spend == "fraction":
        keys = {"fraction": Decimal("0.2"), **keys}
    return Neighbourhood(
        notion="neighbourhood", delta_kwh=Decimal(delta), window_days=window, epsilon_per_window=Decimal(epsilon),
        spend=spend, max_day_epsilon=Decimal(cap), epsilon_total="unlimited", **keys,
    )  # fmt: skip


def over(promise, days=None, **series):
    last = None if days is None else FIRST + timedelta(days=days - 1)
    return promise.for_publication(Publication(series or {"mean": mean()}, {}, FIRST, last))


def released(promise, days):
    rows = []
    for number in days:
        row = line(number, promise.loss(rows, day(number), None))
        promise.admit(rows, row, None)
        rows.append(row)
    return rows


def fullest(spent, window):
    """The largest sum over any window, each tried: {day number: amount}."""
    starts = range(min(spent) - window, max(spent) + 1)
    return max(sum(spent.get(start + i, 0) for i in range(window)) for start in starts)


def test_a_fraction_of_what_is_left_never_fills_a_window():
    rows, expected = released(over(promised()), range(40)), []
    for row in rows:
        expected.append(0.2 * (0.7 - sum(expected[-6:])))
        assert row.loss / 25 == pytest.approx(expected[-1] * NANO, abs=5)  # clamp 50 kWh, delta 2 kWh
        assert row.loss % 25 == 0
    assert fullest({i: row.loss for i, row in enumerate(rows)}, 7) < 25 * 700_000_000


def test_per_request_spends_an_equal_part_and_fills_each_window():
    promise = over(promised(spend="per-request"))
    rows = released(promise, range(8))
    assert {row.loss for row in rows} == {25 * 100_000_000}
    with pytest.raises(Refused, match=r"0\.000000001 more than epsilon_per_window = 0\.7"):
        promise.admit(rows[:6], line(6, 25 * 100_000_000 + 1), None)


def test_offline_is_the_plan_with_the_least_noise():
    promise = over(promised(spend="offline", window=2, epsilon="1"), days=3)
    plan = [2 - math.sqrt(2), math.sqrt(2) - 1, 2 - math.sqrt(2)]
    assert [row.loss / 25 / NANO for row in released(promise, range(3))] == pytest.approx(plan, abs=1e-8)
    # what is left where days near have spent, and its least beyond the end
    assert promise.loss([line(1, 25 * 700_000_000)], day(0), None) == 25 * 300_000_000
    assert promise.loss([], day(2), None) == pytest.approx(25 * plan[0] * NANO, rel=1e-7)
    assert promise.loss([], "9999-12-31", None) == pytest.approx(25 * plan[1] * NANO, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spend", ["fraction", "per-request", "offline"])
def test_windows_hold_at_every_instant_for_days_in_any_order(spend, seed):
    chance = Random(seed)  # noqa: S311 - made-up days
    window = chance.randint(1, 9)
    promise = over(promised(spend=spend, window=window), days=30)
    rows, spent = [], {}
    for number in chance.sample(range(30), 18):
        row = line(number, int(promise.loss(rows, day(number), None) * chance.choice([1, 1, 0.5])))
        promise.admit(rows, row, None)
        rows.append(row)
        spent[number] = Fraction(row.loss, 25)
        assert fullest(spent, window) <= 700_000_000
    with pytest.raises(Refused, match=f"changes of 2 kWh in a window of {window} days"):
        promise.admit(rows, line(chance.choice(sorted(spent)), 25 * 700_000_001), None)


def test_the_cap_binds_the_loss_of_any_change_and_small_ones_cost_less():
    promise = over(promised(spend="per-request", cap="0.5"))
    rows = released(promise, range(9))
    assert {bound.name: bound.value for bound in promise.bounds(rows, None, None)} == {
        "day": 500_000_000,
        "total": 9 * 500_000_000,
        "change of 2 kWh": 20_000_000,
        "change of 2 kWh, window of 7 days": 140_000_000,
    }
    for part in (
        "max_day_epsilon = 0.5 is the binding limit",
        "epsilon 0.1 per day for changes of 2 kWh would be epsilon 2.5",
        "epsilon 0.02 for small changes instead",
    ):
        assert part in promise.remark
    assert over(promised(spend="per-request", cap="2.5")).remark == ""


@pytest.mark.parametrize(("form", "times"), [("histogram", 1), ("cumulative", 2)])
def test_series_share_the_loss_about_small_changes_each_by_its_ratio(form, times):
    # four inner edges, three of which lie at most 2 kWh apart, two of them less than 2
    series = {"mean": mean(share=Decimal("0.7")), "counts": Distribution(form=form, **COUNTS)}
    promise = over(promised(spend="per-request", window=1, epsilon="0.1"), **series)
    whole = promise.loss([], day(0), None)
    assert whole == int(100_000_000 * (Fraction(7, 10) * 25 + Fraction(3, 10) * times))
    shares = {name: promise.part_of_day(name, Fraction(share)) for name, share in (("mean", "0.7"), ("counts", "0.3"))}
    assert sum(shares.values()) == 1
    rows = [line(0, int(part * whole), name) for name, part in shares.items()]
    assert [row.loss for row in rows] == [25 * 70_000_000, times * 30_000_000]
    promise.admit([rows[0]], rows[1], None)
    bounds = {bound.name: bound.value for bound in promise.bounds(rows, None, None)}
    assert (bounds["change of 2 kWh"], bounds["day"]) == (100_000_000, sum(row.loss for row in rows))


def test_a_row_counts_by_the_terms_under_which_it_was_charged():
    account = BoundedChangeLoss(Decimal(2), Publication({"mean": mean()}, {"old": {"mean": mean(20)}}))
    for row, loss in (
        (line(0, 10_000, contract="old"), 1000),
        (line(1, 10_000), 400),
        (line(2, 10_000, "unknown"), 10_000),
        (line(3, 10_000, contract="unknown"), 10_000),  # not by the clamp of another
    ):
        assert account.bounds([row], None, None)[0].value == loss


def test_the_limit_of_a_day_holds_after_an_amendment_that_raises_the_clamp():
    promise = promised(spend="per-request", window=1)
    before, rows = over(promise, mean=mean(20)), released(over(promise), [0])
    bounds = {bound.name: bound.value for bound in before.bounds(rows, None, None)}
    assert 25 * 700_000_000 == bounds["day"] <= before.limits["day"]


@pytest.mark.parametrize(
    ("size", "part"), [("0.001", "0.00002"), ("1", "0.02"), ("2", "0.04"), ("50", "1"), ("99", "1")]
)
def test_a_change_of_x_costs_x_over_the_clamp_of_what_any_change_costs(size, part):
    account = BoundedChangeLoss(Decimal(size), Publication({"mean": mean()}))
    [bound] = account.bounds([line(0, 500_000_000), line(1, 7)], None, None)
    assert bound.value == 500_000_000 * Fraction(part)
    assert (bound.name, bound.kind) == (f"change of {size} kWh", "assumption-free")


@pytest.mark.parametrize("size", ["1", "2", "6", "40"])
def test_a_change_of_x_costs_counts_by_the_edges_that_it_may_cross(size):
    starts = [Decimal(i) / 2 - 1 for i in range(99)]
    crossed = max(sum(low < edge <= low + Decimal(size) for edge in BINS[1:-1]) for low in starts)
    account = BoundedChangeLoss(Decimal(size), Publication({"c": Distribution(form="cumulative", **COUNTS)}))
    assert account.bounds([line(0, 4000, "c")], None, None)[0].value == 1000 * crossed


def test_alternatives_are_the_mean_scale_in_clamps_its_own_first():
    noise = over(promised(spend="per-request")).alternatives(365)
    assert list(noise) == ["per-request", "fraction (0.2)", "offline"]
    assert noise["per-request"] == pytest.approx(1 / (25 * 0.1))
    assert noise["offline"] <= noise["per-request"] < noise["fraction (0.2)"]


@pytest.mark.parametrize(
    "keys",
    [
        {"spend": "fraction", "fraction": None},
        {"spend": "per-request", "fraction": Decimal("0.2")},
        {"spend": "per-request", "epsilon": "0.000000006"},
        {"spend": "fraction", "epsilon": "0.000000004"},
        {"spend": "fraction", "fraction": Decimal(1)},
        {"delta": "0"},
    ],
)
def test_parameters_under_which_nothing_would_be_released_are_refused(keys):
    with pytest.raises(ValidationError):
        promised(**keys)
