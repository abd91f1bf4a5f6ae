"""The verdict on a first release, by closed forms and hand counts; what it refuses, and what accepts it."""

from __future__ import annotations

import json
import math
import re
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from agedp.budget import ReleaseTerms
from agedp.plan_facts import read_plan
from agedp.planning.first_release_verdict import judge_first_release
from agedp.stages.amend import amend
from agedp_data.config import contract_part
from agedp_data.config.loading import parse
from agedp_data.errors import LedgerError, Refused, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions.publication import Event
from agedp_data.roster import RosterCounts
from agedp_data.statement.span_errors import SeriesNoise
from agedp_flows.text.plan_text import plan_lines
from tests.agedp.conftest import CLASSICAL
from tests.command import agedp
from tests.laws.promises import Line
from tests.minimal import run_file

FIRST = date(2013, 1, 1)
CAPS = {"epsilon_per_day": None, "max_day_epsilon": 2, "epsilon_total": "unlimited"}
MODEL = {"source": "declared", "basis": "made up", "assume": "markov", "kernel": "kernel.csv"}
W_EVENT = {"notion": "w-event", "window_days": 7, "epsilon_per_window": 7, "spend": "even", **CAPS}
AGED = {"notion": "age-dependent", "age_days": 1, "method": "total_variation", "secret": "day", **CAPS}
TEMPORAL = {"notion": "temporal", "alpha": 1, "horizon_days": 10, "budget": "even", **CAPS}
DISCOUNTED = {
    "notion": "discounted", "discount": "exponential", "rate": Decimal("0.99"), "epsilon": 1, "schedule": "constant",
    "clock": "data-day", **CAPS,
}  # fmt: skip
NEIGHBOURS = {
    "notion": "neighbourhood", "delta_kwh": 50, "window_days": 7, "epsilon_per_window": 7, "spend": "per-request",
    **CAPS,
}  # fmt: skip


def forgetting(distance: float, days: int = 1) -> LeakageBound:
    """A model of days of which each passes on this total variation at every age."""
    ages = np.arange(1, days + 1) * 48
    return LeakageBound(ages, np.array([1.0]), None, None, {"total_variation": np.full(days, distance)}, 48, "markov")


def daily(passed: float) -> LeakageBound:
    """A model of days, either way: 1 if all of a loss is passed on from day to day, 0 if nothing is."""
    table = [[passed, np.inf if passed else 0.0]]
    return LeakageBound([1], [1.0, np.inf], table, table, assume="markov", steps_per_day=1)


def judged(promise, model=None, *, days=10, homes=40, roster=None, today=None, **tables):
    """Return the verdict on a run file for so many homes and days, an archive if nothing else is given."""
    last = FIRST + timedelta(days=days - 1)
    schedule = {"last_day": last, **tables.pop("schedule", {})}
    needed = {"model": MODEL} if model is not None else {}
    run = parse(run_file(promise=promise, schedule=schedule, **needed, **tables), base=Path("/srv"), name="run.toml")
    sizes = homes if isinstance(homes, dict) else {"all": homes}
    period = [np.full(len(sizes), day) for day in (0, 10**6)]
    roster = roster or RosterCounts(*period, np.array([*sizes.values()]), {"tariff": [*sizes]})
    return judge_first_release(ReleaseTerms(run, model), roster, today or last + timedelta(days=2))


def words(verdict) -> list[str]:
    return [cause.word for cause in verdict.causes]


def test_classical_is_never_judged_for_credit():
    verdict = judged({"epsilon_per_day": Decimal("0.5")}, days=1)
    assert (verdict.credit, words(verdict)) == (None, ["useless"])  # ln(10) 50/(0.5 x 40) = 5.76 kWh
    assert verdict.lines[0] == (
        "Verdict before the first release: of no use; 90 % interval of daily_mean ±5.76 kWh (53 %) for a day, by the "
        "11 kWh of the yardstick (40 households of the Low Carbon London trial, 2013); one day of one household 50 to "
        "63 % (epsilon 0.5)."
    )


@pytest.mark.parametrize("days", [364, 365, 366, 800])
def test_a_year_has_no_more_than_365_days(days):
    losses = judged({"epsilon_per_day": Decimal("0.01"), "epsilon_total": "unlimited"}, days=days).losses
    assert (losses.year, losses.whole) == (min(days, 365) * 10**7, days * 10**7)


@pytest.mark.parametrize(("days", "spans"), [(365, ["month", "year"]), (334, ["month"])])
def test_twelve_months_are_a_year(days, spans):
    """Of a Laplace law 90 % lie within ln(10) scales, of the mean of twelve nearly within 1.645 sqrt(2/12)."""
    verdict = judged(
        {"epsilon_per_day": 2, "max_day_epsilon": 2}, days=days, **{"series.daily_mean": {"every": "month"}}
    )
    month, *longer, _whole = verdict.errors
    assert [error.span for error in (month, *longer)] == spans
    assert month.half_width == pytest.approx(LN_10 * 50 / 2 / 40, rel=0.1)  # a month of 28 to 31 days has the clamp's
    assert [year.half_width / month.half_width for year in longer] == [pytest.approx(0.2917, rel=0.03)] * len(longer)


@pytest.mark.parametrize(("days", "ratio"), [(7, 1), (8, 7 / 8), (70, 1 / 10)])
def test_a_window_credits_the_days_outside_of_it(days, ratio):
    verdict = judged(W_EVENT, days=days)
    credit = verdict.credit
    assert (credit.bound, credit.total) == (7 * 10**9, days * 10**9)
    assert credit.bound / credit.total == pytest.approx(ratio)
    assert ("no-credit" in words(verdict)) == (ratio >= 0.95)


def test_an_endless_series_is_judged_over_ten_years():
    schedule = {"mode": "live", "last_day": None}
    live = {"input": {"corrections": "set-aside"}, "schedule": schedule}
    verdict = judged(W_EVENT | {"age_days": 1, "window_days": 366, "epsilon_per_window": 366}, **live)
    assert (verdict.credit.bound, verdict.credit.total) == (366 * 10**9, 3652 * 10**9)
    assert [error.span for error in verdict.errors] == ["day", "week", "month", "year"]
    capped = judged(W_EVENT | {"age_days": 1, "epsilon_total": 7}, **live)  # it ends after one window
    assert (capped.credit.bound, capped.credit.total, words(capped)) == (7 * 10**9, 7 * 10**9, ["no-credit"])


@pytest.mark.parametrize(("days", "refused"), [(11, True), (12, False)])
def test_a_discount_close_to_one_credits_nothing(days, refused):
    """A constant loss e has e (1 - a^n)/(1 - a) = 1; for a = 0.99 that is 0.9515 of n e for 11 days, 0.9468 for 12."""
    verdict = judged(DISCOUNTED | {"horizon_days": days}, days=days)
    part = (1 - 0.99**days) / (0.01 * days)
    assert verdict.credit.bound / verdict.credit.total == pytest.approx(part, rel=1e-6)
    assert ("no-credit" in words(verdict)) == refused


def test_a_change_of_the_whole_clamp_is_credited_the_days_outside_of_the_window():
    assert "no-credit" in words(judged(NEIGHBOURS, days=7))
    assert "no-credit" not in words(judged(NEIGHBOURS, days=8))
    tenth = judged(NEIGHBOURS | {"delta_kwh": 5, "epsilon_per_window": Decimal("0.7"), "max_day_epsilon": 1}, days=7)
    assert tenth.credit.bound / tenth.credit.total == pytest.approx(0.1)


def test_a_chain_that_never_changes_credits_nothing_and_one_without_memory_all_other_days():
    even = judged(TEMPORAL, daily(1), days=10)
    assert (even.credit.bound, even.credit.total, "no-credit" in words(even)) == (10**9, 10**9, True)
    best = judged(TEMPORAL | {"budget": "best"}, daily(0), days=10)
    assert (best.credit.bound, best.credit.total, words(best)) == (10**9, 10 * 10**9, [])


def test_a_slow_chain_credits_an_archive_nothing():
    """A day passes on ln(1 + D (e^z - 1)) of a loss z; of 365 days with 0.5 each, 182.37 of 182.5 are left."""
    distance, loss = 0.99964, 0.0
    for _ in range(365):
        loss = 0.5 + math.log1p(distance * math.expm1(loss))
    present = math.log1p(distance * math.expm1(loss))
    verdict = judged(AGED | {"epsilon_per_day": Decimal("0.5")}, forgetting(distance), days=365)
    assert verdict.credit.bound / 1e9 == pytest.approx(present, abs=1e-5)
    assert verdict.refusal() == (
        "[promise] notion = \"age-dependent\": its bound credits nothing: the bound 'risk' is epsilon 182.37, 0.999 of "
        "the 182.5 that the losses of 365 days add up to (limit 0.95). Take a model that mixes faster, or notion = "
        '"classical", which promises the sum by itself. To release it knowingly, write accept = ["no-credit"] '
        "(command line: --accept no-credit). Nothing was drawn"
    )
    quick = judged(AGED | {"epsilon_per_day": Decimal("0.5")}, forgetting(0.5), days=365)
    peak = math.exp(0.5) / 2 / (1 - math.exp(0.5) / 2)  # of y = e^z: y = e^0.5 (1 + y)/2
    assert (words(quick), quick.credit.bound / 1e9) == ([], pytest.approx(math.log(peak) - 0.5, abs=1e-6))
    solved = judged(AGED | {"risk": Decimal("0.4")}, forgetting(0.5), days=365)
    assert (words(solved), solved.credit.is_limit, solved.credit.bound) == ([], True, 4 * 10**8)


def test_a_bound_at_a_delta_is_compared_with_the_pure_sum():
    """60 days within (3, 0.0001) have pure losses above 3/0.95, so that a window of them all credits something."""
    keys = {"window_days": 60, "epsilon_per_window": 3, "delta": "0.0001", "max_day_epsilon": Decimal("0.1")}
    verdict = judged(W_EVENT | keys, days=60)
    assert verdict.credit.name == "window of 60 days (delta 1e-4)"
    assert ("no-credit" in words(verdict), verdict.credit.bound) == (False, 3 * 10**9)


def test_rows_of_weeks_count_once_in_a_window():
    weekly = {"series.daily_mean": {"every": "week"}, "schedule": {"first_day": date(2013, 1, 7)}}
    for days, expected in ((13, ["no-credit"]), (27, [])):  # one week, and three
        verdict = judged(W_EVENT, days=days, **weekly)
        assert [word for word in words(verdict) if word != "useless"] == expected
        assert verdict.credit.total == 10**9 * (days // 7)
        assert next(error.span for error in verdict.errors) == "week"


@pytest.mark.parametrize(("draw", "weeks"), [(0, 4), (400_000_000, 3), (1_100_000_000, 1)])
def test_rows_of_weeks_end_where_the_draws_and_they_have_spent_the_total(draw, weeks):
    promise = {"epsilon_per_day": Decimal("0.5"), "epsilon_total": 2}
    first, last = date(2013, 1, 7), date(2013, 3, 3)
    tables = {"series.daily_mean": {"every": "week"}, "schedule": {"first_day": first, "last_day": last}}
    run = parse(run_file(promise=promise, **tables), base=Path("/srv"), name="run.toml")
    run = run.charging([Event("2012-01-01", "2012-12-31", draw)] if draw else [])
    roster = RosterCounts(np.array([0]), np.array([10**6]), np.array([40]), {})
    verdict = judge_first_release(ReleaseTerms(run), roster, date(2013, 3, 9))
    assert (verdict.losses.whole, verdict.losses.days) == (weeks * 5 * 10**8, weeks * 7)


LN_10 = math.log(10)
"""Of Laplace noise of scale b, 90 % lie within b ln 10."""


@pytest.mark.parametrize(
    ("series", "moved", "mean"),
    [
        ({}, 50, 11.012),  # a household moves a mean by its clamp; the yardstick's day has 11.012 kWh
        ({"statistic": "distribution", "bins_kwh": [0, 10, 50]}, 2, 1 / 2),  # two counts by one each, of two bins
        ({"statistic": "coverage", "clamp_kwh": None}, 1, 1),
        ({"statistic": "profile", "half_hour_clamp_kwh": 4}, 2 * 50, 0.2295),  # and half-hours by both days
    ],
)
def test_an_interval_is_judged_by_the_yardsticks_mean(series, moved, mean):
    for homes, epsilon in ((2, 1), (40, 1), (4000, 1), (4000, 20)):
        promise = {"epsilon_per_day": epsilon, "max_day_epsilon": epsilon, "epsilon_total": "unlimited"}
        verdict = judged(promise, homes=homes, days=1, **{"series.daily_mean": series})
        [error] = [error for error in verdict.errors if error.span == "day"]
        assert error.ratio == pytest.approx(LN_10 * moved / (epsilon * homes) / mean, rel=0.02)
        assert error.grade == ("fit" if error.ratio <= 0.1 else "rough" if error.ratio <= 0.25 else "")
        assert words(verdict) == ([] if error.grade else ["useless"])


@pytest.mark.parametrize("homes", [(40, 20), (20, 40)])
def test_the_days_with_the_fewest_households_are_judged(homes):
    period = [np.array([0, 15_711]), np.array([15_710, 10**6])]  # the second from 6 January 2013 on
    promise = {"epsilon_per_day": 1, "max_day_epsilon": 1, "epsilon_total": "unlimited"}
    verdict = judged(promise, roster=RosterCounts(*period, np.array(homes), {}))
    [error] = [error for error in verdict.errors if error.span == "day"]
    assert error.half_width == pytest.approx(LN_10 * 50 / 20, rel=1e-3)


def test_smoothing_is_no_help_where_there_is_next_to_no_noise():
    """Of noise with the scale b 90 % lie within b ln 10, of a normal law with its deviation within b sqrt(2) 1.645."""
    [error] = SeriesNoise("use", (0.001,), {"day": 1}, 1, 11.0, "kWh", smoothed_days=365).all_errors()
    assert (error.half_width, error.is_smoothed) == (pytest.approx(LN_10 / 1000, rel=1e-3), False)


def test_an_error_of_no_use_in_any_span_is_refused():
    verdict = judged({"epsilon_per_day": Decimal("0.5")}, homes=2, days=1)
    assert verdict.refusal("Of use is nothing. ") == (
        '[promise] notion = "classical": no span is of use: the 90 % interval of daily_mean is ±116 kWh (1100 %) for '
        "a day at best; 25 % of the 11 kWh of the yardstick (40 households of the Low Carbon London trial, 2013) is "
        "rough, 10 % fit. An epsilon, or a number of households, 41.8 times as large makes it rough. Of use is "
        'nothing. To release it knowingly, write accept = ["useless"] (command line: --accept useless). '
        "Nothing was drawn"
    )
    several = {
        "series.daily_mean": {"share": Decimal("0.1")},
        "series.usable": {"statistic": "coverage", "share": Decimal("0.9")},
    }
    promise = {"epsilon_per_day": Decimal("2"), "max_day_epsilon": 2, "epsilon_total": "unlimited"}
    fit = judged(promise, homes=10, days=1, **several)
    assert {error.series: bool(error.grade) for error in fit.errors} == {"daily_mean": False, "usable": True}
    assert words(fit) == []


def test_of_groups_the_smallest_is_named_and_the_largest_decides():
    """A day has ln(10) 50/(1 n) kWh: 2.88 of 40 homes (26 %), 0.23 of 500 (2.1 %), 1.92 of 60 (17 %)."""
    promise = {"epsilon_per_day": Decimal(1), "max_day_epsilon": 1, "epsilon_total": "unlimited"}
    by = {"series.daily_mean": {"by": "tariff"}}
    both, rough, neither = (
        judged(promise, homes={"Std": small, "ToU": large}, days=1, **by)
        for small, large in ((40, 500), (60, 500), (6, 8))
    )
    assert both.purpose == "of no use in the smallest group, fit for days in the largest"
    assert "90 % interval of daily_mean ±2.88 kWh (27 %) for a day" in both.text
    assert (rough.purpose, words(both), words(rough)) == ("rough for days", [], [])
    assert (neither.purpose, words(neither)) == ("of no use", ["useless"])
    assert "daily_mean is ±14.4 kWh" in neither.refusal()  # of the largest, which 25 % needs least for


def test_too_few_households_are_refused_before_anything_is_read(house):
    house.fill([FIRST])
    house.write(FIRST, FIRST, promise=CLASSICAL, least=7)
    (house.folder / "input").rename(house.folder / "elsewhere")
    text = "[population] min_households = 7: no due day has 7 households on the roster; the largest group has 3. "
    with pytest.raises(RunFileError, match=re.escape(text)):
        house.run(today=FIRST + timedelta(days=3))
    assert text in read_plan(house.session(today=FIRST + timedelta(days=3))).facts["refused"]


@pytest.mark.parametrize(
    ("keys", "days", "refused"),
    [
        ({"epsilon_total": Decimal("182.5")}, 365, True),
        ({"epsilon_total": Decimal("182.5")}, 40, False),  # 20 is not more than 20
        ({"epsilon_total": Decimal("182.5")}, 41, True),
        ({"epsilon_total": "unlimited"}, 365, False),  # says so in writing
        ({"epsilon_total": Decimal("182.5"), "delta": "0.000001"}, 365, False),
        ({"epsilon_total": Decimal("182.5"), "accept": ["total"]}, 365, False),
    ],
)
def test_a_total_above_20_needs_its_acceptance(keys, days, refused):
    verdict = judged({"epsilon_per_day": Decimal("0.5"), **keys}, days=days)
    assert ("total" in [cause.word for cause in verdict.refused]) == refused
    if refused:
        assert f"epsilon {days / 2:g} about all {days} days of one household is more than 20" in verdict.refusal()


def test_a_total_is_that_of_all_years():
    promise = {"epsilon_per_day": Decimal("0.05"), "epsilon_total": Decimal(50)}
    assert "epsilon 36.5 about all 730 days of one household is more than 20" in judged(promise, days=730).refusal()


def test_a_promise_over_windows_is_judged_by_its_window():
    for epsilon, expected in ((20, []), (21, ["total"])):
        keys = {"epsilon_per_window": epsilon, "max_day_epsilon": 5, "epsilon_total": 3000}
        assert words(judged(W_EVENT | keys, days=365)) == expected


def test_months_under_an_even_window_are_refused_with_the_rule_for_rows():
    """A month has 1/31 of the window with "even", 1/3 with "per-row": such a window touches at most three months."""
    of_months = {"series.daily_mean": {"every": "month"}, "schedule": {"first_day": date(2013, 1, 1)}}
    keys = {**W_EVENT, "window_days": 31, "epsilon_per_window": 5, "max_day_epsilon": 5, "epsilon_total": 20}
    even, per_row = (judged({**keys, "spend": rule}, days=365, **of_months) for rule in ("even", "per-row"))
    assert 'Before that take spend = "per-row"' in even.refusal()
    assert not words(per_row)
    assert even.errors[0].half_width / per_row.errors[0].half_width == pytest.approx(31 / 3, rel=1e-6)


def test_the_layers_of_a_mean_are_judged_by_their_sum():
    """Scales of 20/0.77 and 55/0.23 over epsilon and households; their sum is not Laplace."""
    layers = {"clamp_kwh": [20, 75], "share": [Decimal("0.77"), Decimal("0.23")]}
    verdict = judged({"epsilon_per_day": Decimal("0.5")}, days=40, **{"series.daily_mean": layers})
    by_span = {error.span: error for error in verdict.errors}
    scales = np.array([20 / 0.77, 55 / 0.23]) / (0.5 * 40)
    rng = np.random.default_rng(7)
    drawn = np.abs(rng.laplace(0, scales, (400_000, 2)).sum(axis=1))
    assert {error.series for error in verdict.errors} == {"daily_mean"}
    assert by_span["day"].half_width == pytest.approx(np.quantile(drawn, 0.9), rel=0.01)
    assert by_span["month"].half_width == pytest.approx(1.645 * math.sqrt(2 / 30) * np.hypot(*scales), rel=0.02)


def test_each_word_accepts_its_own_cause_only():
    both = {**W_EVENT, "window_days": 1, "epsilon_per_window": Decimal("0.5")}
    assert words(judged(both, homes=2, days=1)) == ["no-credit", "useless"]
    for accept, left in (
        (["useless"], ["no-credit"]), (["no-credit"], ["useless"]), (["total"], ["no-credit", "useless"]),
        (["useless", "no-credit"], []),
    ):  # fmt: skip
        verdict = judged({**both, "accept": accept}, homes=2, days=1)
        assert [cause.word for cause in verdict.refused] == left
        assert verdict.facts["causes"] == ["no-credit", "useless"]
        assert verdict.facts["refused"] == left
        accepted = [f'Accepted in writing by "{word}"' for word in words(verdict) if word not in left]
        assert [line.partition(":")[0] for line in verdict.lines[1 : len(accepted) + 1]] == accepted
        json.dumps(verdict.facts)


def test_the_key_is_no_part_of_a_contract():
    base, name = Path("/srv"), "run.toml"
    plain = parse(run_file(), base=base, name=name)
    accepting = parse(run_file(promise={"accept": ["useless", "total"]}), base=base, name=name)
    assert accepting.promise.accept == ("useless", "total")
    assert contract_part(plain, model=None) == contract_part(accepting, model=None)
    assert plain.accepting(["total", "useless", "total"]).promise.accept == ("total", "useless")
    with pytest.raises(RunFileError, match=r'accept = \["totl"\]: .*did you mean \'total\'\?'):
        plain.accepting(["totl"])


def useless(house, **keys):
    """Write two households and one day, of which nothing can be seen at this epsilon."""
    house.fill([FIRST], households="AB", wh=keys.pop("wh", 200))
    house.write(FIRST, FIRST, **keys)
    house.edit(('accept = ["useless", "no-credit", "total"]\n', ""))
    return house


def test_a_first_run_is_refused_before_anything_is_read(houses, tmp_path):
    texts = set()
    for name, wh in (("one", 200), ("another", 900)):
        (tmp_path / name).mkdir()
        house = useless(houses(tmp_path / name), wh=wh)
        with pytest.raises(Refused) as error:
            house.run()
        texts.add(str(error.value))
        assert error.value.exit_status == 3
        assert error.value.private == str(error.value)
        assert not (house.folder / "ledger.sqlite").exists()
        assert not (house.folder / "release").exists()
        assert not list((house.folder / "confidential").rglob("*.parquet"))
    [text] = texts
    assert text.startswith('run.toml: [promise] notion = "classical": no span is of use: the 90 % interval of ')
    assert text == read_plan(house.session()).facts["refused"]
    assert plan_lines(house.session())[0] == f"Will be refused: {text}"
    assert read_plan(house.session()).facts["verdict"]["refused"] == ["useless"]


def test_a_first_run_that_failed_before_its_draw_is_judged_again(house, monkeypatch):
    """Its contract is registered; without a verdict the next run published what is of no use."""

    def fail(*_):
        raise LedgerError("the accounts cannot be written")

    useless(house)
    text = house.run_file.read_text()
    house.run_file.write_text(text.replace("[promise]\n", '[promise]\naccept = ["useless"]\n'))
    with monkeypatch.context() as patch:
        patch.setattr("agedp.stages.release._release_days", fail)
        with pytest.raises(LedgerError):
            house.run()
    assert house.session().history.contracts
    house.run_file.write_text(text)
    with pytest.raises(Refused, match="no span is of use"):
        house.run()
    assert not house.session().history.rows


def test_fewer_households_than_ten_are_said_and_not_refused():
    """Ten contributors to a cell: the threshold of the Office for National Statistics."""
    for fewest, is_said in ((1, True), (9, True), (10, False), (30, False)):
        verdict = judged({"epsilon_per_day": Decimal("0.5")}, homes=40, population={"min_households": fewest})
        assert (f"[population] min_households = {fewest} is below 10" in verdict.lines[-1]) == is_said
        assert not verdict.refused


def test_a_running_series_is_not_judged_nor_one_that_is_added(house):
    useless(house).edit(('notion = "classical"', 'accept = ["useless"]\nnotion = "classical"'))
    house.write(FIRST, FIRST + timedelta(days=1))
    house.fill([FIRST + timedelta(days=i) for i in range(2)], households="AB")
    assert len(house.run(today=FIRST + timedelta(days=1)).released) == 1
    house.edit(('accept = ["useless", "no-credit", "total"]\n', ""))
    session = house.session(today=FIRST + timedelta(days=2))
    assert "verdict" not in read_plan(session).facts
    house.edit(("clamp_kwh = 50", 'clamp_kwh = 50\nshare = 0.5\n[series.counts]\nstatistic = "coverage"\nshare = 0.5'))
    amend(house.context(today=FIRST + timedelta(days=2)))
    assert len(house.run(today=FIRST + timedelta(days=2)).released) == 2


def test_the_command_shows_the_verdict_before_the_draw_and_refuses(house):
    useless(house)
    for words_given in (["--quiet"], ["--json"]):
        ended = agedp("run", house.run_file, *words_given)
        assert (ended.status, ended.out) == (3, "")
        assert ended.err.startswith('agedp: run.toml: [promise] notion = "classical": no span is of use: the 90 % ')
        assert len(ended.err.splitlines()) == 1
    misspelt = agedp("run", house.run_file, "--accept", "usles")
    assert (misspelt.status, "did you mean 'useless'?" in misspelt.err) == (2, True)
    accepted = agedp("run", house.run_file, "--quiet", "--accept", "total", "--accept", "useless")
    assert (accepted.status, accepted.out) == (0, "")
    first, second, third = accepted.err.splitlines()
    assert first.startswith("agedp: Verdict before the first release: of no use; 90 % interval of daily_mean ±116 kWh")
    assert second.startswith('agedp: Accepted in writing by "useless": no span is of use: ')
    assert third.startswith("agedp: [population] min_households = 2 is below 10")
    again = agedp("run", house.run_file, "--quiet")
    assert (again.status, again.err) == (0, "")


@pytest.mark.parametrize("of", ["synthetic", "readings"])
def test_a_rehearsal_shows_the_verdict_and_is_not_refused(house, of):
    useless(house, mode="rehearsal", promise=f"age_days = 1\n{CLASSICAL}")
    house.edit(('rehearsal_on = "readings"', f'rehearsal_on = "{of}"'))
    ended = agedp("run", house.run_file, "--quiet", "--as-of", f"{FIRST + timedelta(days=3)}")
    assert (ended.status, ended.out) == (0, "")
    assert 'A rehearsal passes, a release will be refused unless "useless" is accepted: no span' in ended.err
    assert read_plan(house.session()).facts["refused"] == ""


@pytest.mark.parametrize(
    ("promise", "model"),
    [
        ({"epsilon_per_day": Decimal("0.1"), "max_day_epsilon": Decimal("0.1"), "epsilon_total": 1, "delta": "0.1"}, 0),
        (W_EVENT | {"window_days": 5, "epsilon_per_window": 2, "delta": "0.001"}, 0),
        (TEMPORAL | {"horizon_days": 5, "delta": "0.001"}, 1),
        (TEMPORAL | {"horizon_days": 5, "delta": "0.001", "budget": "best"}, 0),
        (TEMPORAL | {"alpha": 2, "horizon_days": "unlimited", "budget": "best", "epsilon_total": 3, "delta": "0.01",
                     "max_day_epsilon": Decimal("0.2")}, 1),
    ],
)  # fmt: skip
def test_a_planned_series_at_a_delta_is_what_day_after_day_grants(promise, model):
    chain, days = daily(model), [(FIRST + timedelta(days=number)).isoformat() for number in range(30)]
    text = run_file(promise=promise, schedule={"last_day": FIRST + timedelta(days=29)}, model=MODEL)
    notion, history = parse(text, base=Path("/srv"), name="run.toml").notion, []
    for day in days:
        loss = notion.loss(history, day, chain, day)
        if loss == 0:
            break
        history.append(Line(day, loss, day, series=""))
    assert notion.planned_series(days, chain) == [row.loss for row in history]


def test_days_of_one_publication_date_are_not_discounted():
    verdict = judged(DISCOUNTED | {"schedule": "renewal", "clock": "publication-day"})
    assert (verdict.credit.bound, verdict.credit.total, verdict.credit.number) == (10**9, 10**9, 1)
    assert "no-credit" in words(verdict)
