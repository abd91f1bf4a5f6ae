"""The notion neighbourhood against closed forms, brute force over windows, and the library's budgets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.optimize import minimize

from agedp_data.accounting.windows import window_budgets
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused
from agedp_data.notions import Neighbourhood
from agedp_data.notions.bounded_change import BoundedChangeLoss
from agedp_data.notions.publication import Publication
from agedp_data.series.series import Distribution, Mean

FIRST = date(2013, 1, 1)

MEAN = Mean(statistic="mean", clamp_kwh=Decimal(50))
BINS = tuple(map(Decimal, (0, 5, 10, 11, 12, 40)))


@dataclass(frozen=True)
class Line:
    day: str
    loss: int
    series: str = "mean"
    contract: str = ""
    state: str = "released"
    population: str = "homes"
    published_on: str = "2013-12-31"
    input_ended_at: str = "2013-01-02T00:00:00Z"


def day(number):
    return str(FIRST + timedelta(days=number))


def promised(*, spend="fraction", window=7, epsilon="0.7", delta="2", cap="1000", total="unlimited", **keys):
    if spend == "fraction":
        keys = {"fraction": Decimal("0.2"), **keys}
    total = total if total == "unlimited" else Decimal(total)
    return Neighbourhood(
        notion="neighbourhood",
        delta_kwh=Decimal(delta),
        window_days=window,
        epsilon_per_window=Decimal(epsilon),
        spend=spend,
        max_day_epsilon=Decimal(cap),
        epsilon_total=total,
        **keys,
    )


def over(promise, days=None, **series):
    last = None if days is None else FIRST + timedelta(days=days - 1)
    return promise.for_publication(Publication(series or {"mean": MEAN}, {}, FIRST, last))


def lived(promise, days, series="mean"):
    rows = []
    for number in days:
        row = Line(day(number), promise.loss(rows, day(number), None), series)
        promise.admit(rows, row, None)
        rows.append(row)
    return rows


def small(row, times=25):
    return Fraction(row.loss, times)


def fullest(spent, window):
    """The largest sum over any window, each tried: {day number: amount}."""
    return max(
        sum(spent.get(start + i, 0) for i in range(window)) for start in range(min(spent) - window, max(spent) + 1)
    )


def test_the_first_day_spends_its_part_of_the_window_and_clamp_over_delta_times_that_is_recorded():
    [row] = lived(over(promised()), [0])
    assert row.loss == 25 * 140_000_000  # .2 x .7, clamp 50 kWh, delta 2 kWh
    [row] = lived(over(promised(spend="per-request", window=3, epsilon="1")), [0])
    assert row.loss == 25 * 333_333_333


def test_a_fraction_of_what_is_left_is_the_librarys_budget_and_never_fills_a_window():
    rows = lived(over(promised()), range(60))
    budgets = window_budgets(np.arange(60), window=7, epsilon=0.7, method="fraction", fraction=0.2)
    for row, budget in zip(rows, budgets, strict=True):
        assert small(row) == pytest.approx(budget * NANO, abs=5)
        assert row.loss % 25 == 0
    assert fullest({i: small(row) for i, row in enumerate(rows)}, 7) < 700_000_000


def test_per_request_spends_a_window_days_th_each_day_and_fills_each_window():
    rows = lived(over(promised(spend="per-request")), range(8))
    assert {row.loss for row in rows} == {25 * 100_000_000}
    assert fullest({i: small(row) for i, row in enumerate(rows)}, 7) == 700_000_000


@pytest.mark.parametrize(("days", "window"), [(3, 2), (7, 3), (10, 4), (5, 9)])
def test_offline_is_within_a_millionth_of_a_solver_that_knows_nothing_of_it(days, window):
    rows = lived(over(promised(spend="offline", window=window, epsilon="1"), days=days), range(days))
    found = np.array([float(small(row)) for row in rows]) / NANO
    windows = [slice(i, i + window) for i in range(max(1, days - window + 1))]
    solved = minimize(
        lambda r: (1 / r).sum(),
        np.full(days, 0.5 / window),
        jac=lambda r: -1 / r**2,
        bounds=[(1e-3, 1)] * days,
        constraints=[{"type": "ineq", "fun": lambda r, each=each: 1 - r[each].sum()} for each in windows],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert solved.success
    assert (1 / found).sum() == pytest.approx(solved.fun, rel=1e-6)
    assert max(found[each].sum() for each in windows) <= 1
    if (days, window) == (3, 2):
        assert found == pytest.approx([2 - math.sqrt(2), math.sqrt(2) - 1, 2 - math.sqrt(2)], abs=1e-8)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spend", ["fraction", "per-request", "offline"])
def test_windows_hold_at_every_instant_for_days_in_any_order_and_parts_of_what_is_granted(spend, seed):
    chance = Random(seed)  # noqa: S311 - made-up days
    window = chance.randint(1, 9)
    promise = over(promised(spend=spend, window=window, epsilon="0.7"), days=30)
    rows, spent = [], {}
    for number in chance.sample(range(30), 18):
        grant = promise.loss(rows, day(number), None)
        loss = int(grant * chance.choice([1, 1, 0.5]))
        row = Line(day(number), loss)
        promise.admit(rows, row, None)
        rows.append(row)
        spent[number] = small(row)
        assert fullest(spent, window) <= 700_000_000
    beyond = Line(day(chance.choice(sorted(spent))), 25 * 700_000_001)
    with pytest.raises(Refused, match=f"changes of 2 kWh in a window of {window} days"):
        promise.admit(rows, beyond, None)


def test_one_nano_more_than_the_window_is_refused():
    promise = over(promised(spend="per-request"))
    rows = lived(promise, range(6))
    promise.admit(rows, Line(day(6), 25 * 100_000_000), None)
    with pytest.raises(Refused, match=r"0\.000000001 more than epsilon_per_window = 0\.7"):
        promise.admit(rows, Line(day(6), 25 * 100_000_000 + 1), None)


def test_the_cap_binds_the_loss_of_any_change_and_small_ones_cost_less():
    promise = over(promised(spend="per-request", cap="0.5"))
    assert promise.loss([], day(0), None) == 500_000_000
    rows = lived(promise, range(9))
    figures = {figure.name: figure.value for figure in promise.bounds(rows, None, None)}
    assert figures == {
        "day": 500_000_000,
        "total": 9 * 500_000_000,
        "change of 2 kWh": 20_000_000,
        "change of 2 kWh, window of 7 days": 140_000_000,
    }
    assert "max_day_epsilon = 0.5 is the binding limit" in promise.remark
    assert "epsilon 0.1 per day for changes of 2 kWh would be epsilon 2.5" in promise.remark
    assert "epsilon 0.02 for small changes instead" in promise.remark
    assert over(promised(spend="per-request", cap="2.5")).remark == ""


def test_the_total_ends_the_series_on_the_loss_of_any_change():
    promise = over(promised(spend="per-request", total="6"))
    rows = lived(promise, range(2))
    assert promise.loss(rows, day(2), None) == 0  # 2 x 2.5 of 6 are spent


COUNTS = {
    "histogram": Distribution(statistic="distribution", share=Decimal("0.3"), clamp_kwh=Decimal(40), bins_kwh=BINS),
    "cumulative": Distribution(
        statistic="distribution", form="cumulative", share=Decimal("0.3"), clamp_kwh=Decimal(40), bins_kwh=BINS
    ),
}


@pytest.mark.parametrize(("form", "times"), [("histogram", 1), ("cumulative", 2)])
def test_series_share_what_is_granted_about_small_changes_and_each_has_its_own_ratio(form, times):
    # four inner edges, three of which lie at most 2 kWh apart, two of them less than 2
    promise = over(
        promised(spend="per-request", window=1, epsilon="0.1"),
        mean=MEAN.model_copy(update={"share": Decimal("0.7")}),
        counts=COUNTS[form],
    )
    whole = promise.loss([], day(0), None)
    assert whole == int(100_000_000 * (Fraction(7, 10) * 25 + Fraction(3, 10) * times))
    shares = {name: promise.part_of_day(name, Fraction(share)) for name, share in (("mean", "0.7"), ("counts", "0.3"))}
    assert sum(shares.values()) == 1
    rows = [Line(day(0), int(part * whole), name) for name, part in shares.items()]
    assert [row.loss for row in rows] == [25 * 70_000_000, times * 30_000_000]
    promise.admit([rows[0]], rows[1], None)
    figures = {figure.name: figure.value for figure in promise.bounds(rows, None, None)}
    assert figures["change of 2 kWh"] == 100_000_000
    assert figures["day"] == sum(row.loss for row in rows)


def test_a_row_counts_by_the_terms_under_which_it_was_charged():
    earlier = {"old": {"mean": Mean(statistic="mean", clamp_kwh=Decimal(20))}}
    promise = promised().for_publication(Publication({"mean": MEAN}, earlier))
    rows = [
        Line(day(0), 10_000, contract="old"),
        Line(day(1), 10_000),
        Line(day(2), 10_000, series="unknown"),
        Line(day(3), 10_000, contract="unknown"),  # not by the clamp of another
    ]
    figures = [BoundedChangeLoss(Decimal(2), promise._publication).bounds([row], None, None)[0].value for row in rows]
    assert figures == [1000, 400, 10_000, 10_000]


def test_the_limit_of_a_day_holds_after_an_amendment_that_raises_the_clamp():
    promise = promised(spend="per-request", window=1)
    before = promise.for_publication(Publication({"mean": MEAN.model_copy(update={"clamp_kwh": Decimal(20)})}))
    rows = lived(promise.for_publication(Publication({"mean": MEAN})), [0])
    said = {figure.name: figure.value for figure in before.bounds(rows, None, None)}
    assert said["day"] == 25 * 700_000_000
    assert said["day"] <= before.limits["day"]


@pytest.mark.parametrize(
    ("size", "part"), [("0.001", "0.00002"), ("1", "0.02"), ("2", "0.04"), ("50", "1"), ("99", "1")]
)
def test_a_change_of_x_costs_x_over_the_clamp_of_what_any_change_costs(size, part):
    account = BoundedChangeLoss(Decimal(size), Publication({"mean": MEAN}))
    [figure] = account.bounds([Line(day(0), 500_000_000), Line(day(1), 7)], None, None)
    assert figure.value == 500_000_000 * Fraction(part)
    assert (figure.name, figure.kind) == (f"change of {size} kWh", "assumption-free")


@pytest.mark.parametrize("size", ["1", "2", "6", "40"])
def test_a_change_of_x_costs_counts_by_the_edges_that_it_may_cross(size):
    series = COUNTS["cumulative"]
    crossed = max(
        sum(low < edge <= low + Decimal(size) for edge in BINS[1:-1]) for low in (Decimal(i) / 2 - 1 for i in range(99))
    )
    [figure] = BoundedChangeLoss(Decimal(size), Publication({"c": series})).bounds(
        [Line(day(0), 4000, "c")], None, None
    )
    assert figure.value == 1000 * crossed


def test_a_plan_of_all_days_gives_what_is_left_where_days_near_have_spent_and_its_least_beyond_the_end():
    promise = over(promised(spend="offline", window=2, epsilon="1"), days=3)
    plan = [2 - math.sqrt(2), math.sqrt(2) - 1]
    rows = [Line(day(1), 25 * 700_000_000)]
    assert promise.loss(rows, day(0), None) == 25 * 300_000_000
    assert promise.loss([], day(2), None) == pytest.approx(25 * plan[0] * NANO, rel=1e-7)
    assert promise.loss([], "9999-12-31", None) == pytest.approx(25 * plan[1] * NANO, rel=1e-7)


def test_alternatives_are_the_mean_scale_in_clamps_its_own_first():
    found = over(promised(spend="per-request")).alternatives(365)
    assert list(found) == ["per-request", "fraction (0.2)", "offline"]
    assert found["per-request"] == pytest.approx(1 / (25 * 0.1))
    assert found["offline"] <= found["per-request"] < found["fraction (0.2)"]


def test_what_is_missing_is_said_to_be_no_small_change():
    said = promised().opening
    assert "at most 2 kWh" in said
    assert "A day that goes missing" in said
    assert "no small change" in said


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
def test_parameters_under_which_nothing_would_ever_be_released_are_refused(keys):
    with pytest.raises(ValidationError):
        promised(**keys)
