"""The audit passes the real path and exposes what is planted into it: noise, sums, memory, composition."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from agedp import pipeline, privacy_audit, statement_facts
from agedp.stages import release
from agedp.store.bucketed_roster import DayBlock
from agedp_data import mechanisms
from agedp_data.audit.lower_bounds import AuditDatasets
from agedp_data.errors import Refused
from agedp_data.series import profile
from agedp_data.series.coverage import Coverage
from agedp_data.series.mean import Mean
from agedp_data.series.profile import Profile
from agedp_flows.text.audit_text import PromiseBroken, audit_json, audit_lines, require_no_violation

CLASSICAL = 'notion = "classical"\nepsilon_per_day = {0}\nmax_day_epsilon = {0}\nepsilon_total = "unlimited"\n'
ONE_LEDGER = AuditDatasets(20, 1, varying_groups=200, days=2, ledgers=1)
TWO_WORLDS = AuditDatasets(120, 1, varying_groups=2, days=2, ledgers=1)
TWO_LEDGERS = AuditDatasets(20, 1, varying_groups=40, days=2, ledgers=2)
MANY_DRAWS = AuditDatasets(20, 1, varying_groups=2600, days=4, ledgers=1)
SMALL = AuditDatasets(2, 1, varying_groups=2, days=2, ledgers=1)
LONG = pytest.mark.long


def written(house, loss, **keys) -> Path:
    house.roster([("A", date(2013, 1, 1), None)])
    return house.write(date(2013, 1, 1), date(2013, 1, 9), promise=CLASSICAL.format(loss), **keys)


@pytest.fixture
def measured_alone(monkeypatch):
    """Without the comparison of two worlds, which has tests of its own."""
    monkeypatch.setattr(privacy_audit, "_decided_by_readings", lambda *_: ())


@pytest.fixture
def large(house):
    return written(house, 2)


def test_the_real_path_is_passed_with_bounds_near_the_promise(large, measured_alone):
    found = privacy_audit.audit(large, datasets=AuditDatasets(1600, 1, varying_groups=100, days=3, ledgers=1))
    one, two_days, three_days = found.measured
    assert (one.promised, two_days.promised, three_days.promised) == (2.0, 4.0, 6.0)
    # of 4000 such audits, simulated, the least prove 1.26 and 2.22: the bounds lie five deviations below the mean
    assert 1.0 < one.lower_bound <= 2.0 < one.detectable < 3
    assert 1.8 < two_days.lower_bound <= 4.0
    assert three_days.lower_bound <= 6.0
    assert (found.faults, found.is_within_promise) == ((), True)
    assert found.undetectable == ("the same noise for a day in every ledger",)  # one ledger shows none of it
    assert not list(large.parent.glob("confidential/*"))
    require_no_violation(found)
    shown = audit_json(found)
    assert shown["noise"] == {"tests": found.tests, "draws": 5_100, "days": 3, "ledgers": 1, "false_alarm": "0.00001"}
    assert f"noise: {found.tests} tests of 5,100 draws, 3 days in each of 1 fresh ledger (" in "\n".join(
        audit_lines(found)
    )


def planted(monkeypatch, change) -> None:
    """Change the draw: `change` takes the sound mechanism, the values, the sensitivity and the loss."""
    sound = mechanisms.discrete_laplace
    monkeypatch.setattr(
        mechanisms,
        "discrete_laplace",
        lambda exact, *, sensitivity, loss: change(sound, np.asarray(exact), sensitivity, loss),
    )


def less_noise(factor, sound, exact, sensitivity, loss):
    return sound(exact, sensitivity=sensitivity, loss=loss / factor)


def noise_of(generator, exact, sensitivity, loss):
    return exact + np.rint(generator.laplace(0, sensitivity / float(loss), len(exact))).astype(int)


def same_every_day(sound, exact, sensitivity, loss):
    return noise_of(np.random.default_rng(1), exact, sensitivity, loss)


def seeded_by_the_day(monkeypatch):
    draws = iter([1, 2, 1, 2])  # two days in each of two ledgers
    planted(monkeypatch, lambda _, *of: noise_of(np.random.default_rng(next(draws)), *of))


def same_in_every_group(sound, exact, sensitivity, loss):
    return exact + (sound(exact[:1], sensitivity=sensitivity, loss=loss) - exact[:1])


def unclamped_after_the_record(sound, exact, sensitivity, loss):
    return sound(exact + exact // 50_000 * 2_000_000, sensitivity=sensitivity, loss=loss)


def doubled_readings(monkeypatch):
    monkeypatch.setattr(DayBlock, "energy_of", lambda self, series: 2 * self.energy_wh)


def unclamped_readings(monkeypatch):
    monkeypatch.setattr(Mean, "clamp_energy", lambda self, energy: energy)
    monkeypatch.setattr(Mean, "check_counted", lambda *_: None)


def forgets_what_was_drawn(monkeypatch):
    begin, folders = privacy_audit.RunContext, set()

    def forgetful(fitted, *rest):
        place = Path(fitted.output.release).parent
        if place in folders:
            for name in ("release", "confidential"):
                shutil.rmtree(place / name)
            (place / "ledger.sqlite").unlink()
        folders.add(place)
        return begin(fitted, *rest)

    monkeypatch.setattr(privacy_audit, "RunContext", forgetful)


def forgets_a_release(monkeypatch):
    figures = statement_facts.loss_bounds
    monkeypatch.setattr(statement_facts, "loss_bounds", lambda terms, rows: figures(terms, rows[:1]))


def in_the_draw(change, *fixed):
    return lambda monkeypatch: planted(monkeypatch, partial(change, *fixed))


TWICE = ("noise was added to differ from those of the synthetic", "too large|shifted as by (a|the readings of a) house")
FAULTS = {
    "half the noise": (in_the_draw(less_noise, 0.5), ONE_LEDGER, ["smaller than its recorded scale"]),
    "10 % less": (in_the_draw(less_noise, 0.9), MANY_DRAWS, ["smaller than its recorded scale"]),
    "every day": (in_the_draw(same_every_day), ONE_LEDGER, ["a day depends on that of the day before"]),
    "by the day": (seeded_by_the_day, TWO_LEDGERS, ["depends on that of the same day in another ledger"]),
    "every group": (in_the_draw(same_in_every_group), ONE_LEDGER, ["a group depends on that of another group"]),
    "counted twice": (doubled_readings, ONE_LEDGER, TWICE),
    "clamp": (unclamped_readings, ONE_LEDGER, ["the pipeline stopped before a draw: a sum is outside what its sens"]),
    "late clamp": (in_the_draw(unclamped_after_the_record), TWO_WORLDS, ["too large|shifted as by a skipped clamp"]),
    "memory": (forgets_what_was_drawn, SMALL, ["a second run published different values of the same days"]),
    "statement": (forgets_a_release, SMALL, ["the statement reports a total of "]),
}
"""By what is planted: how, the size of the audit, and what it says.

Of each size, a fault of the noise is missed with a probability below 1e-6 (`fault_powers`).
"""


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_exposed(large, monkeypatch, fault):
    plant, datasets, texts = FAULTS[fault]
    plant(monkeypatch)
    result = privacy_audit.audit(large, datasets=datasets)
    assert all(any(re.search(text, line) for line in result.faults) for text in texts)
    assert not result.is_within_promise
    assert audit_lines(result)[-1].startswith(("fault: ", "not ruled out"))
    with pytest.raises(PromiseBroken, match="the promise is broken"):
        require_no_violation(result)


def usable(sums, day):
    """Return the confidential number of households with a usable day."""
    return sum(number for (of, _), total in sums.by_day.items() if of == day for number in total.usable.tolist())


def on_each_day(change):
    """Plant into the release of each day: `change` takes the due day, and how many households have readings of it."""

    def plant(monkeypatch):
        sound = pipeline.release_days

        def release_days(session, due_days, sums):
            due = tuple(change(due_day, usable(sums, due_day.day)) for due_day in due_days.due)
            return sound(session, replace(due_days, due=due), sums)

        monkeypatch.setattr(pipeline, "release_days", release_days)

    return plant


def refused_if_few(due_day, number):
    if number < 6:
        raise Refused("too few households have readings")
    return due_day


def skipped_if_few(due_day, number):
    return replace(due_day, skipped=number < 6)


def later_if_few(due_day, number):
    return replace(due_day, publish_on=due_day.publish_on + timedelta(days=int(number < 6)))


def in_the_row(change):
    """Plant into the stored row of each day: `change` takes the planned row and the confidential sum of the day."""

    def plant(monkeypatch):
        sound, plan = release._release_days, release._plan_transaction

        def release_the_days(ledger, terms, due, sums, *rest):
            def planned(*of):
                rows = plan(*of).items()
                totals = {f"{day}": int(total.exact.sum()) for (day, _), total in sums.items()}
                return {key: replace(row, row=change(row.row, totals[key[0]])) for key, row in rows}

            monkeypatch.setattr(release, "_plan_transaction", planned)
            return sound(ledger, terms, due, sums, *rest)

        monkeypatch.setattr(release, "_release_days", release_the_days)

    return plant


def charged_by_the_sum(row, total):
    return replace(row, loss=row.loss + total % 2)


def scaled_by_the_sum(row, total):
    return replace(row, scale=row.scale * (1 + total / 1e9))


DECIDED = {
    "refusal": (on_each_day(refused_if_few), r"a refusal \(night 1: .*too few households have readings"),
    "skipped": (on_each_day(skipped_if_few), r"a released or skipped day \(2013-01-0\d daily_mean: .*skipped"),
    "date": (on_each_day(later_if_few), r"a date \(2013-01-0\d daily_mean: 2013-"),
    "loss": (in_the_row(charged_by_the_sum), r"a recorded loss \(2013-01-0\d daily_mean: 200000000[01] / "),
    "scale": (in_the_row(scaled_by_the_sum), r"a noise scale \(2013-01-0\d daily_mean: 25"),
}
"""By what the readings of a planted fault decide: how, and what the audit says."""


@pytest.mark.parametrize(
    "decided",
    [("refusal",), ("skipped", "loss"), *(pytest.param((one,), marks=LONG) for one in DECIDED)],
    ids=" ".join,
)
def test_what_readings_decide_is_exposed(large, monkeypatch, decided):
    for one in decided:
        DECIDED[one][0](monkeypatch)
    result = privacy_audit.audit(large, datasets=SMALL)
    for one in decided:
        assert [line for line in result.faults if re.match(f"the readings decide {DECIDED[one][1]}", line)], (
            result.faults
        )
    with pytest.raises(PromiseBroken, match="the promise is broken: the readings decide"):
        require_no_violation(result)


COUNTS = """[series.counts]
statistic = "distribution"
form = "cumulative"
share = 0.5
clamp_kwh = 50
bins_kwh = [0, 10, 20, 23.5, 50]
missing_kwh = 12
max_missing = 0
"""


def test_two_series_are_audited_over_the_only_day_that_is_permitted(house, measured_alone):
    run_file = written(house, 2, rest=COUNTS)
    house.edit(('"mean"', '"mean"\nshare = 0.5'), ('"unlimited"', "2"))
    found = privacy_audit.audit(run_file, datasets=TWO_LEDGERS)
    assert found.faults == ()
    assert [(loss.scope, loss.promised) for loss in found.measured] == [
        ("one release", 1.0),
        ("all releases of 1 day", 2.0),
    ]
    assert found.draws == 60 * 2 * (1 + 3)
    assert "the same noise on every day" in found.undetectable
    assert "the same noise in every group" not in found.undetectable


PROFILE = """[series.daily_mean]
statistic = "profile"
clamp_kwh = 50
half_hour_clamp_kwh = 4
missing_kwh = 10
"""
COVERAGE = """[series.daily_mean]
statistic = "coverage"
max_missing = 3
"""
MEAN = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
FEW = AuditDatasets(60, 1, varying_groups=20, days=2, ledgers=2)


def doubled_profiles(monkeypatch):
    sound = DayBlock.energy_of
    monkeypatch.setattr(DayBlock, "energy_of", lambda of, series: sound(of, series) * np.where(of.energy_wh < 0, 1, 2))


def unclamped_profiles(monkeypatch):
    monkeypatch.setattr(profile, "reduced_profile", lambda wh, **_: np.maximum(wh, 0))


def one_clamp(monkeypatch):
    monkeypatch.setattr(Profile, "sensitivity", lambda self, change: self.clamp_wh)


def counted_as_usable(monkeypatch):
    monkeypatch.setattr(Coverage, "missing", lambda self, slots, *, minutes: np.ones(1, np.int64))


UNSCALED = "recorded noise scale is too small for the recorded loss"
FAULTS_BY_STATISTIC = [
    pytest.param(PROFILE, one_clamp, UNSCALED, id="profile, one clamp"),
    pytest.param(
        PROFILE, in_the_draw(less_noise, 0.5), "smaller than its recorded scale", id="profile, half the noise"
    ),
    pytest.param(
        PROFILE, in_the_draw(same_every_day), "depends on that of the day before", id="profile, day", marks=LONG
    ),
    pytest.param(PROFILE, doubled_profiles, "noise was added to differ from", id="profile, counted twice", marks=LONG),
    pytest.param(PROFILE, unclamped_profiles, "a sum is outside", id="profile, clamp", marks=LONG),
    pytest.param(PROFILE, forgets_what_was_drawn, "published different values", id="profile, memory", marks=LONG),
    pytest.param(COVERAGE, counted_as_usable, "noise was added to differ from", id="coverage, all usable"),
    pytest.param(COVERAGE, in_the_draw(less_noise, 0.5), "smaller than its recorded", id="coverage, half", marks=LONG),
    pytest.param(COVERAGE, in_the_draw(same_every_day), "that of the day before", id="coverage, day", marks=LONG),
    pytest.param(COVERAGE, forgets_what_was_drawn, "published different values", id="coverage, memory", marks=LONG),
]


@pytest.mark.parametrize(("series", "plant", "text"), FAULTS_BY_STATISTIC)
def test_faults_of_profiles_and_coverage_are_exposed(large, house, monkeypatch, series, plant, text):
    house.edit((MEAN, series))
    plant(monkeypatch)
    result = privacy_audit.audit(large, datasets=FEW)
    assert any(re.search(text, line) for line in result.faults), result.faults
    assert not result.is_within_promise
