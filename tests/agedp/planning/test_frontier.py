"""Risk against error: the paper's closed form and searches over fine grids; from public input alone."""

from __future__ import annotations

import math
from datetime import date, timedelta
from functools import partial

import numpy as np
import pytest

from agedp.ledger_session import comparison_view
from agedp_data.accounting.ageing import peak
from docs.papers.age.frontier import compute_frontier, frontier

FIRST = date(2013, 1, 1)
CHAIN = np.array([[0.8, 0.2], [0.3, 0.7]])
HOMES, CLAMP_KWH, CAP = 500, 20, 1.5
AGED = """notion = "age-dependent"
age_days = 4
epsilon_per_day = 1
method = "{method}"
secret = "day"
max_day_epsilon = 1.5
epsilon_total = 40
"""
KERNEL = '[model]\nsource = "declared"\nkernel = "kernel.csv"\nstep = "day"\nbasis = "made up"\nassume = "markov"\n'
CURVE = '[model]\nsource = "declared"\ncurve = "curve.csv"\nbasis = "made up"\nassume = "curve"\n'


def frontier_of_file(house):
    session = house.session()
    return compute_frontier(session.run.run_file, session.model, comparison_view(session))


def frontier_of(house, *, method="total_variation", model=KERNEL, promise=AGED, days=100, chain=CHAIN):
    house.roster([(f"home-{i}", FIRST, None) for i in range(HOMES)])
    (house.folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in chain) + "\n")
    (house.folder / "curve.csv").write_text("age_days,total_variation\n1,.5\n3,.25\n10,.1\n")
    last = FIRST + timedelta(days=days - 1)
    house.write(FIRST, last, clamp=str(CLAMP_KWH), promise=promise.format(method=method), rest=model)
    return frontier_of_file(house)


def promised(found):
    [own] = [choice for choice in found.choices if choice.promised]
    return own


def error(loss, total_days):
    """Return the noise of a mean of 500 households, and 1 kWh per household for each day."""
    return math.sqrt(2 * (CLAMP_KWH / (loss * HOMES)) ** 2 + total_days)


def closed_form(loss, age, interval):
    """Return [A] eq. 30 with its clip: by total variation alone, Delta(t) = .5^t for this chain."""
    contraction = 0.5**interval * math.exp(loss)
    return math.inf if contraction >= 1 else math.log1p(0.5**age * math.expm1(loss) / (1 - contraction))


def test_the_least_risk_for_each_error_is_the_papers(house):
    found = frontier_of(house)
    assert (found.households, found.method, found.series) == (HOMES, "total_variation", "daily_mean")
    own = promised(found)
    assert (own.age_days, own.interval_days, own.loss) == (4, 1, 1.0)
    assert own.risk == found.target == math.inf  # Delta(1) e > 1: by total variation alone there is no bound
    assert (own.adds_up_to, own.ended_by) == (40.0, "epsilon_total")  # 40 of 100 days, 1 each
    assert not any(choice.cheapest for choice in found.choices)
    others = [choice for choice in found.choices if not choice.promised]
    assert len(others) >= 5
    grid = [
        (closed_form(loss, age, total - age), error(loss, total))
        for total in range(1, 29)
        for age in range(total)
        for loss in np.geomspace(1e-3, CAP, 120)
    ]
    for one in others:
        assert one.error_kwh == pytest.approx(error(one.loss, one.age_days + one.interval_days), rel=1e-6, abs=2e-9)
        assert one.loss <= CAP
        assert one.risk == pytest.approx(closed_form(one.loss, one.age_days, one.interval_days), rel=1e-6, abs=2e-9)
        best = min(risk for risk, of_grid in grid if of_grid <= one.error_kwh * (1 + 1e-9))
        assert one.risk <= best * (1 + 1e-6) + 2e-9
    risks = [one.risk for one in others]
    assert risks == sorted(risks, reverse=True)


def test_no_daily_schedule_is_cheaper_than_the_marked(house):
    found = frontier_of(house, method="tight")
    own = promised(found)
    [best] = [choice for choice in found.choices if choice.cheapest]
    exact = float(peak(CHAIN, own.loss, age=4, interval=1, method="tight"))
    assert exact <= own.risk <= exact * 1.1  # the leakage bound is rounded up, between points of its grid too
    assert best.interval_days == 1
    assert best.risk <= own.risk * (1 + 1e-9)
    losses = np.geomspace(0.01, CAP, 100)
    feasible = [
        error(loss, age + 1)
        for age in range(28)
        for loss in losses[peak(CHAIN, losses, age=age, interval=1, method="tight") * 1.1 <= own.risk]
    ]
    assert best.error_kwh <= min(feasible)


def test_under_a_curve_releases_add_up_but_for_the_oldest(house):
    own = promised(frontier_of(house, model=CURVE, days=5))
    # Five releases of 1; the oldest is 4 + 4 = 8 days old: the curve's .25 at 3 days holds until 10.
    assert own.risk == pytest.approx(4 + math.log1p(0.25 * math.expm1(1)), rel=1e-6)
    own = promised(frontier_of(house, model=CURVE, days=300))
    # epsilon_total = 40 ends it after 40 of 300 days; the oldest is 43 days old, beyond 10 the curve stays .1.
    assert own.risk == pytest.approx(39 + math.log1p(0.1 * math.expm1(1)), rel=1e-6)
    assert own.days == 40
    by_risk = frontier_of(house, model=CURVE, promise=AGED.replace("epsilon_per_day = 1", "risk = 0.5"))
    assert not any(choice.promised for choice in by_risk.choices)  # the first day's loss cannot be spent again


def test_the_frontier_falls_as_more_error_is_allowed():
    risk = partial(peak, np.array([[0.9, 0.1], [0.1, 0.9]]), method="tight")

    def penalty(total, loss):
        return 0.02 / loss**2 + 0.1 * (1 - 0.8**total)

    plans = frontier(risk, penalty, max_penalties=[0.001, 0.05, 0.08, 0.2], horizon=5, max_loss=1e6)
    assert plans[0] is None
    risks = [plan.risk for plan in plans[1:]]
    assert risks == sorted(risks, reverse=True)
    assert frontier(risk, penalty, max_penalties=[0.09], horizon=1, max_loss=0.1) == [None]
