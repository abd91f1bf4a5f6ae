"""Risk against error: against the paper's closed form and searches over fine grids; from public input alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pytest

from agedp.planning.frontier import compute_frontier
from agedp.planning.notion_comparison import DayToDayChange, day_to_day_change
from agedp_data.accounting.ageing import peak
from agedp_data.errors import RunFileError
from agedp_flows.text.plan_text import frontier_lines
from tests.command import CommandFolder

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
    return compute_frontier(session.run.run_file, session.model, session.forecast_view)


def frontier_of(house, *, method="total_variation", model=KERNEL, promise=AGED, days=100):
    house.roster([(f"home-{i}", FIRST, None) for i in range(HOMES)])
    (house.folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in CHAIN) + "\n")
    (house.folder / "curve.csv").write_text("age_days,total_variation\n1,.5\n3,.25\n10,.1\n")
    last = FIRST + timedelta(days=days - 1)
    house.write(FIRST, last, clamp=str(CLAMP_KWH), promise=promise.format(method=method), rest=model)
    return frontier_of_file(house)


def error(loss, total_days):
    """Noise of a mean of 500 homes, and 1 kWh a home for each day."""
    return math.sqrt(2 * (CLAMP_KWH / (loss * HOMES)) ** 2 + total_days)


def closed_form(loss, age, interval):
    """[A] eq. 30 with its clip: total variation alone, Delta(t) = .5^t for this chain."""
    apart = 0.5**interval * math.exp(loss)
    if apart >= 1:
        return math.inf
    return math.log1p(0.5**age * math.expm1(loss) / (1 - apart))


def test_the_least_risk_for_each_error_is_that_of_the_papers_formula_searched_exhaustively(house):
    found = frontier_of(house)
    assert (found.households, found.method, found.series) == (HOMES, "total_variation", "daily_mean")
    others = [one for one in found.choices if not (one.promised or one.cheapest)]
    assert len(others) >= 5
    for one in others:
        assert one.error_kwh == pytest.approx(error(one.loss, one.age_days + one.interval_days), rel=1e-6, abs=2e-9)
        assert one.loss <= CAP
        assert one.risk == pytest.approx(closed_form(one.loss, one.age_days, one.interval_days), rel=1e-6, abs=2e-9)
        best = min(
            (closed_form(loss, age, total - age), total)
            for total in range(1, 29)
            for age in range(total)
            for loss in np.geomspace(1e-3, CAP, 120)
            if error(loss, total) <= one.error_kwh * (1 + 1e-9)
        )
        assert one.risk <= best[0] * (1 + 1e-6) + 2e-9
    risks = [one.risk for one in others]
    assert risks == sorted(risks, reverse=True)


def test_the_cheapest_daily_schedule_at_the_promised_risk_is_marked_and_no_other_is_cheaper(house):
    found = frontier_of(house)
    [own] = [one for one in found.choices if one.promised]
    assert (own.age_days, own.interval_days, own.loss) == (4, 1, 1.0)
    assert own.risk == math.inf  # Delta(1) e > 1: by total variation alone there is no bound
    assert found.target == math.inf
    assert not any(one.cheapest for one in found.choices)
    tight = frontier_of(house, method="tight")
    [own] = [one for one in tight.choices if one.promised]
    [best] = [one for one in tight.choices if one.cheapest]
    truth = float(peak(CHAIN, own.loss, age=4, interval=1, method="tight"))
    assert truth <= own.risk <= truth * 1.1  # the envelope rounds up, between points of its grid too
    assert best.interval_days == 1
    assert best.risk <= own.risk * (1 + 1e-9)
    losses = np.geomspace(0.01, CAP, 200)
    feasible = [
        error(loss, age + 1)
        for age in range(28)
        for loss in losses[peak(CHAIN, losses, age=age, interval=1, method="tight") * 1.1 <= own.risk]
    ]
    assert best.error_kwh <= min(feasible)


def shown(session):
    return "\n".join(frontier_lines(session))


def test_a_risk_without_a_peak_says_what_ends_it_and_what_the_releases_add_up_to_by_then(house):
    [own] = [one for one in frontier_of(house).choices if one.promised]
    assert (own.risk, own.adds_up_to, own.ended_by) == (math.inf, 40.0, "epsilon_total")  # 40 of 100 days, 1 each
    text = shown(house.session())
    assert "inf" not in text
    assert "+40.0000" in text
    assert "until epsilon_total ends the series" in text
    [own] = [one for one in frontier_of(house, days=7).choices if one.promised]
    assert (own.adds_up_to, own.ended_by) == (7.0, "last_day")
    endless = AGED.replace("epsilon_total = 40", 'epsilon_total = "unlimited"')
    frontier_of(house, promise=endless)
    live = house.run_file.read_text().replace('mode = "archive"', 'mode = "live"')
    house.run_file.write_text("\n".join(line for line in live.splitlines() if not line.startswith("last_day")))
    [own] = [one for one in frontier_of_file(house).choices if one.promised]
    assert (own.adds_up_to, own.ended_by) == (None, "")
    assert "no bound" in shown(house.session())


def test_under_a_curve_the_periods_releases_add_up_but_for_what_the_oldest_has_lost(house):
    found = frontier_of(house, model=CURVE, days=5)
    [own] = [one for one in found.choices if one.promised]
    # Five releases of 1; the oldest is 4 + 4 = 8 days old: the curve's .25 at 3 days holds until 10.
    assert own.risk == pytest.approx(4 + math.log1p(0.25 * math.expm1(1)), rel=1e-6)
    many = frontier_of(house, model=CURVE, days=300)
    [own] = [one for one in many.choices if one.promised]
    # epsilon_total = 40 ends it after 40 of 300 days; the oldest is 43 days old, beyond 10 the curve stays .1.
    assert own.risk == pytest.approx(39 + math.log1p(0.1 * math.expm1(1)), rel=1e-6)
    assert own.days == 40


def test_a_risk_that_daily_releases_would_exceed_is_no_row_of_the_table(house):
    promised = AGED.replace("epsilon_per_day = 1", "risk = 0.5")
    found = frontier_of(house, model=CURVE, days=100, promise=promised)
    assert not [one for one in found.choices if one.promised]  # the first day's loss cannot be spent again


def test_a_method_that_the_model_does_not_have_is_refused_and_nothing_takes_its_place(house, monkeypatch):
    one_way = np.array([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]])
    monkeypatch.setattr("tests.agedp.planning.test_frontier.CHAIN", one_way)
    with pytest.raises(RunFileError, match=r"method = 'spectral': .* spectral bound needs .* reversible.* has .*tight"):
        frontier_of(house, method="spectral")


def test_a_promise_without_age_has_a_frontier_without_a_target(house):
    classical = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
    found = frontier_of(house, promise=classical)
    assert found.target is None
    assert found.choices
    assert not any(one.promised or one.cheapest for one in found.choices)
    assert {one.days for one in found.choices} == {None}


def test_without_a_model_or_without_homes_there_is_none(house):
    with pytest.raises(RunFileError, match=r"without a \[model\]"):
        frontier_of(house, model="", promise='notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\n'
                    'epsilon_total = "unlimited"\n')  # fmt: skip
    frontier_of(house)
    house.roster([("home-1", FIRST + timedelta(days=5), None)])
    with pytest.raises(RunFileError, match="the roster has no household"):
        frontier_of_file(house)


def test_the_command_shows_it_without_any_input_file(house):
    found, site = frontier_of(house, method="tight"), CommandFolder(house.folder)
    choices = site.load("plan", "run.toml", "--frontier")["choices"]
    assert [one["error_kwh"] for one in choices] == [one.error_kwh for one in found.choices]
    assert sum(one["cheapest"] for one in choices) == 1
    lines = site.succeed("plan", "run.toml", "--frontier").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 120
    assert any("=" in line for line in lines)
    assert not (house.folder / "release").exists()
    assert not (house.folder / "ledger.sqlite").exists()


@dataclass
class Row:
    day: str
    values: tuple[int, ...]
    households: tuple[int, ...] = (100,)
    scale: float = 1.0
    state: str = "released"
    cells: tuple[str, ...] = ("all",)


def test_the_change_from_day_to_day_is_the_published_series_less_its_noise():
    days = [str(FIRST + timedelta(days=i)) for i in range(60)]
    swing = [Row(day, (1_000_000 + 50_000 * (i % 2),)) for i, day in enumerate(days)]
    assert day_to_day_change(swing) == (pytest.approx(0.5, rel=1e-5), pytest.approx(0.0, abs=1e-9))
    # Noise of two days hides a change: 100 homes, a standard deviation of sqrt 2 x scale / 1e5 kWh each.
    noisy = [Row(day, row.values, scale=30_000.0) for day, row in zip(days, swing, strict=True)]
    assert day_to_day_change(noisy) == DayToDayChange(1.0)
    partly = [Row(day, row.values, scale=10_000.0) for day, row in zip(days, swing, strict=True)]
    assert day_to_day_change(partly).kwh == pytest.approx(math.sqrt(0.25 - 2 * 2 * 0.1**2), rel=1e-5)


def test_the_change_is_that_of_the_smallest_group_whose_noise_decides():
    days = [str(FIRST + timedelta(days=i)) for i in range(60)]
    groups = [
        Row(day, (1_000_000 + 90_000 * (i % 2), 300_000 + 20_000 * (i % 2)), (90, 10), cells=("low", "high"))
        for i, day in enumerate(days)
    ]
    assert day_to_day_change(groups).kwh == pytest.approx(2.0, rel=1e-5)  # 20 kWh in 10 homes, not 110 in 100


def test_an_estimate_within_two_errors_of_nothing_leaves_the_yardstick_and_the_error_is_that_of_many_series():
    source, days, sd = np.random.default_rng(3), [str(FIRST + timedelta(days=i)) for i in range(61)], 1.0
    for change, scale in ((0.3, sd), (3.0, sd)):
        found = []
        for _ in range(200):
            walk = np.cumsum(source.normal(0, change, 61)) + source.laplace(0, scale / math.sqrt(2), 61)
            rows = [
                Row(day, (round(1e5 * (50 + x)),), scale=1e5 * scale / math.sqrt(2))
                for day, x in zip(days, walk, strict=True)
            ]
            found.append(day_to_day_change(rows))
        measured = [one for one in found if one.is_estimated]
        if change < sd:
            assert len(measured) < 30  # the noise hides it in nearly all of them
        else:
            assert len(measured) > 195
            spread = np.std([one.kwh for one in measured])
            assert np.mean([one.error_kwh for one in measured]) == pytest.approx(spread, rel=0.25)


def test_a_short_or_broken_series_leaves_the_yardstick():
    days = [str(FIRST + timedelta(days=2 * i)) for i in range(60)]
    assert day_to_day_change([Row(day, (i * 1000,)) for i, day in enumerate(days)]) == DayToDayChange(1.0)
    assert day_to_day_change([Row(str(FIRST + timedelta(days=i)), (1000 * i,)) for i in range(20)]) == DayToDayChange(
        1.0
    )
    assert day_to_day_change([]) == DayToDayChange(1.0)
