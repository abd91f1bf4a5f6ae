"""What the advisor says, by closed forms and by drawing; which promises a span and an epsilon stand for."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agedp.budget import ReleaseTerms
from agedp.planning.advisor import PROTECTED, Asked, _Adviser, advise, periods_under, promise_of, row_for
from agedp.planning.first_release_verdict import judge_first_release
from agedp_data import mechanisms, yardstick
from agedp_data.config.loading import parse
from agedp_data.errors import RunFileError
from agedp_data.model import read_model
from agedp_data.notions.w_event import rows_of_a_window
from agedp_data.roster import RosterCounts
from agedp_data.series.series_terms import period_of
from tests.minimal import run_file

FIRST, TODAY = date(2013, 1, 1), date(2014, 2, 1)
LIVE = {"input": {"corrections": "set-aside"}, "promise": {"age_days": 1}}


def given(*, homes=40, days=365, **tables):
    """Return the terms of a run file and a roster with so many homes."""
    last = None if days is None else FIRST + timedelta(days=days - 1)
    schedule = {"last_day": last, "mode": "live" if days is None else "archive"}
    tables = {**(LIVE if days is None else {}), **tables}
    run = parse(run_file(schedule=schedule, **tables), base=Path("/srv"), name="run.toml")
    everyone = np.zeros(homes, int), np.full(homes, 10**6)
    return ReleaseTerms(run), RosterCounts.of_rows(*everyone, {})


@pytest.mark.parametrize(("every", "row_days"), [("week", 7), ("month", 30), ("year", 365)])
def test_a_window_touches_no_more_rows_than_were_counted(every, row_days):
    """All windows of fourteen years, among them 1900, which is no leap year, by the calendar itself."""
    days = [date(1896, 1, 1) + timedelta(number) for number in range(14 * 366)]
    firsts = [period_of(day, every)[0] for day in days]
    numbers = np.cumsum([0, *(before != after for before, after in pairwise(firsts))])
    for window in [*range(1, 70), 90, 91, 92, 180, 336, 337, 365, 366, 367, 368, 730, 731, 732, 1096, 1097]:
        touched = int((numbers[window - 1 :] - numbers[: len(numbers) - window + 1]).max()) + 1
        assert rows_of_a_window(row_days, window) == touched


@pytest.mark.parametrize("days", [3, 7, 300])
def test_all_days_have_no_more_together_than_is_asked_for(days):
    run = given(days=days)[0].run
    keys = promise_of(run, "all", Decimal(1))
    assert 1 - Decimal("0.001") < days * keys["epsilon_per_day"] <= keys["epsilon_total"] == 1


@pytest.mark.parametrize(
    ("protected", "every", "loss_of_a_row"),
    [
        ("day", "day", 2), ("week", "day", 2 / 7), ("week", "week", 1), ("month", "day", 2 / 31),
        ("month", "month", 2 / 3), ("year", "month", 2 / 13), ("year", "year", 1), ("all", "month", 2 / 24),
        ("all", "day", 2 / 730),
    ],
)  # fmt: skip
def test_a_span_and_an_epsilon_stand_for_a_promise(protected, every, loss_of_a_row):
    """Of two years: a window of 31 days touches three months, one of 366 days thirteen."""
    terms, roster = given(days=730)
    row = row_for(terms, roster, TODAY, Asked(protected, Decimal(2), every=every))
    assert row.verdict.losses.day / 1e9 == pytest.approx(loss_of_a_row, rel=1e-5)
    promise = row.run.promise
    assert promise.total_cap == (2 * 10**9 if protected == "all" else None)
    assert promise.notion == ("classical" if protected in ("day", "all") else "w-event")
    assert row.verdict.limited is None or row.verdict.limited[0] <= 2 * 10**9


def test_a_proposed_clamp_hides_no_noise_behind_what_it_cuts():
    """With epsilon 0.1 a week a clamp of 10 kWh had the least error, of which a third was what it cuts."""
    hopeless = row_for(*given(), TODAY, Asked("week", Decimal("0.1")))
    assert yardstick.cut_by(float(hopeless.clamps_kwh[-1])).energy <= 0.1
    assert "useless" in [cause.word for cause in hopeless.verdict.causes]
    roster = RosterCounts(np.array([0]), np.array([10**6]), np.array([40]), {"tariff": ["Std"]})
    two = given(**{"series.daily_mean": {"share": Decimal("0.5")}, "series.groups": {
        "statistic": "mean", "clamp_kwh": 50, "by": "tariff", "share": Decimal("0.5")}})[0]  # fmt: skip
    of_two = row_for(two, roster, TODAY, Asked("all", Decimal(7), every="year"))
    assert yardstick.cut_by(float(of_two.clamps_kwh[-1])).energy <= 0.1  # a second mean has the same clamp


def test_no_refusal_advises_days_that_come_to_more_than_20_in_a_year():
    advice = advise(*given(homes=15), TODAY)
    days = [row for row in advice.rows if row.protected == "day"]
    assert [row.verdict.losses.year for row in days] == [5 * 365 * 10**9]
    text = advice.best(len(advice.rows))
    assert "--protect day " not in text
    assert all(row.options in text for row in advice.rows if row.protected != "day")


def test_a_promise_that_cannot_be_is_refused_with_what_to_do():
    archive, live = given()[0].run, given(days=None)[0].run
    for run, protected, delta, message in (
        (archive, "year", None, "all 365 days lie within one window of 366 days; protect all"),
        (archive, "day", Decimal("1e-6"), "protect week, month, year or all with it"),
        (live, "all", None, "protect all needs an archive with a whole day"),
        (archive, "today", None, r"protect today needs a \[model\]"),
    ):
        with pytest.raises(RunFileError, match=message):
            promise_of(run, protected, Decimal(1), delta=delta)


def test_each_choice_of_clamps_is_weighed_by_the_errors_that_its_run_file_has():
    adviser = _Adviser(*given(homes=500), TODAY)
    plan = adviser.planned("day", "day", Decimal(1), None)
    designs = [*plan.designs(Decimal(2))]
    assert {len(design.clamps) for design in designs} > {1}
    for design in designs:
        errors = adviser.row(plan, Decimal(2), design.clamps).verdict.errors
        assert [error.half_width for error in design.errors] == pytest.approx(
            [of.half_width for of in errors], rel=1e-6
        )


def test_rows_of_advice_hold_what_they_say_and_none_is_beaten():
    for homes, days in ((40, 365), (40, 400), (5000, 365), (400, 90), (40, None)):
        advice = advise(*given(homes=homes, days=days), TODAY)
        assert (advice.households, advice.days) == (homes, days)
        assert advice.rows
        for row in advice.rows:
            assert row.error is not None
            assert row.error.grade
            assert not row.verdict.causes
            assert row.error.ratio + row.error.cut_kwh / row.error.mean <= 0.25
            assert row.every in periods_under(row.protected)
            assert row.protected in PROTECTED
            assert row.run.promise.model_dump(exclude_none=True)["notion"] in ("classical", "w-event")
        measures = [
            (row.error.days, row.error.grade != "fit", row.verdict.losses.day, row.verdict.losses.year)
            for row in advice.rows
        ]
        for measured in measures:  # a row that is worse in all of these would be no advice
            assert not any(all(x < y for x, y in zip(other, measured, strict=True)) for other in measures)


CAPS = {"max_day_epsilon": 1, "epsilon_total": "unlimited", "epsilon_per_day": None}
CHAIN = {"model": {"source": "declared", "kernel": "kernel.csv", "basis": "made up", "assume": "markov"}}
DISCOUNT = {
    "notion": "discounted",
    "discount": "exponential",
    "rate": Decimal("0.9"),
    "epsilon": 1,
    "clock": "data-day",
}
PROMISES = {
    "classical": ({"epsilon_per_day": 1}, {}),
    "w-event": ({"notion": "w-event", "window_days": 7, "epsilon_per_window": 5, "spend": "even"}, {}),
    "age-dependent": ({"notion": "age-dependent", "method": "tight", "secret": "day", "risk": 1, "age_days": 1}, CHAIN),
    "temporal": ({"notion": "temporal", "alpha": 1}, CHAIN),
    "discounted": (DISCOUNT, {}),
    "neighbourhood": (
        {"notion": "neighbourhood", "delta_kwh": 4, "window_days": 7, "epsilon_per_window": 1, "spend": "per-request"},
        {},
    ),
}  # fmt: skip
ENDLESS = {"temporal": {"horizon_days": "unlimited", "budget": "supremum"}, "discounted": {"schedule": "constant"}}
OF_A_MONTH = {
    "temporal": {"horizon_days": 30, "budget": "best"},
    "discounted": {"schedule": "optimal", "horizon_days": 30},
}
KERNEL = np.array([[0.9, 0.1], [0.1, 0.9]])


@lru_cache
def noise_of(losses: tuple[int, ...], draws: int) -> np.ndarray:
    """Return draws of the noise of the sums of consecutive days, shape (draws, days) [kWh], of a clamp of 40 kWh."""
    noise = np.zeros((draws, len(losses)))
    for loss in {*losses}:
        days = [day for day, of_day in enumerate(losses) if of_day == loss]
        zeros = np.zeros(draws * len(days), int)
        drawn = mechanisms.discrete_laplace(zeros, sensitivity=40_000, loss=Decimal(loss) / 10**9)
        noise[:, days] = drawn.reshape(draws, len(days)) / 1000
    return noise


def test_the_advice_judges_an_endless_series_as_the_release_does():
    terms, roster = given(days=None, promise={"age_days": 1, "epsilon_per_day": Decimal("0.5")}, input=LIVE["input"])
    adviser, verdict = advise(terms, roster, TODAY).given.verdict, judge_first_release(terms, roster, TODAY)
    assert (adviser.text, adviser.losses.days) == (verdict.text, 3652)  # ten years


@pytest.mark.parametrize("homes", [40, 5000])
@pytest.mark.parametrize("mode", ["archive", "nightly"])
@pytest.mark.parametrize("notion", PROMISES)
def test_the_errors_are_those_of_the_mechanism(notion, mode, homes, tmp_path):
    """6,000 draws of a month: the 90 % quantile of the noise of a span is the half-width, within 5 %."""
    keys, tables = PROMISES[notion]
    promise = {**CAPS, **keys, **(OF_A_MONTH if mode == "archive" else ENDLESS).get(notion, {})}
    series = {"series.daily_mean": {"clamp_kwh": 40}}
    live = {"promise": {"age_days": 1} | promise, "input": LIVE["input"]} if mode == "nightly" else {"promise": promise}
    terms, roster = given(homes=homes, days=30 if mode == "archive" else None, **live, **tables, **series)
    if tables:
        np.savetxt(tmp_path / "kernel.csv", KERNEL, delimiter=",")
        model = terms.run.model.model_copy(update={"kernel": str(tmp_path / "kernel.csv")})
        run = terms.run.model_copy(update={"model": model})
        terms = ReleaseTerms(run, read_model(run).leakage_bound)
    verdict = judge_first_release(terms, roster, TODAY)
    errors = {error.span: error for error in replace(verdict.noises[0], smoothed_days=None).errors()}
    days = [(FIRST + timedelta(number)).isoformat() for number in range(30)]
    losses = terms.notion.planned_series(days, terms.leakage_bound)
    assert max(losses) == verdict.losses.day
    noise = noise_of(tuple(losses), 6000)
    for span, count in (("day", 1), ("week", 7), ("month", 30)):
        means = noise[:, : 30 // count * count].reshape(-1, count).mean(axis=1) / homes
        assert errors[span].half_width == pytest.approx(np.quantile(np.abs(means), 0.9), rel=0.05), span
