"""The audit passes the real path and exposes what is planted into it: noise, clamp, memory, composition."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from agedp import privacy_audit, statement_facts
from agedp.compute.engine_settings import ProgressReporter
from agedp.privacy_audit import AuditResult, MeasuredLoss
from agedp_data import mechanisms
from agedp_data.audit.power import AuditDatasets, AuditedRelease, choose_audit_datasets, undetectable_faults
from agedp_flows.text.audit_text import PromiseBroken, audit_json, audit_lines, require_no_violation

STREETS = AuditDatasets(1600, 1)
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {0}\nmax_day_epsilon = {0}\nepsilon_total = "unlimited"\n'
WINDOW = (
    'notion = "w-event"\nwindow_days = 2\nepsilon_per_window = 2\nspend = "even"\nmax_day_epsilon = 2\n'
    'epsilon_total = "unlimited"\n'
)
TWO = '[series.second]\nstatistic = "mean"\nclamp_kwh = 20\nshare = 0.5\n'


def written(house, loss) -> Path:
    house.roster([("A", date(2013, 1, 1), None)])
    return house.write(date(2013, 1, 1), date(2013, 1, 9), promise=CLASSICAL.format(loss))


@pytest.fixture(params=[pytest.param(0.07, marks=pytest.mark.long), 0.005])
def small(house, request):
    """Run files of the loss that a year of 25 in all permits a day, and of a very small one."""
    return written(house, request.param)


@pytest.fixture
def large(house):
    return written(house, 2)


def test_the_real_path_is_passed_and_the_bounds_are_near_what_is_promised(large):
    found = privacy_audit.audit(large, datasets=STREETS)
    one, series = found.measured
    assert (one.promised, series.promised) == (2.0, 4.0)
    # of 4000 such audits, simulated, the least prove 1.26 and 2.22: the bounds lie five deviations below the mean
    assert 1.0 < one.lower_bound <= 2.0 < one.detectable < 3
    assert 1.8 < series.lower_bound <= 4.0
    assert (found.faults, found.undetectable, found.is_within_promise) == ((), (), True)
    assert not list(large.parent.glob("confidential/*"))
    require_no_violation(found)


def test_two_series_that_share_a_window_are_passed(house, large):
    house.write(date(2013, 1, 1), date(2013, 1, 9), promise=WINDOW, rest=TWO)
    large.write_text(large.read_text().replace("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n"))
    found = privacy_audit.audit(large, datasets=AuditDatasets(800, 4))
    one, series = found.measured
    assert (one.promised, series.promised) == (0.5, 2.0)
    assert 0.18 < one.lower_bound <= 0.5  # 4000 simulated ones: 0.255 at least
    assert 0.25 < series.lower_bound <= 2
    assert found.is_within_promise


def halve_the_noise(monkeypatch):
    sound = mechanisms.discrete_laplace
    monkeypatch.setattr(
        mechanisms,
        "discrete_laplace",
        lambda exact, *, sensitivity, loss: sound(exact, sensitivity=sensitivity, loss=2 * loss),
    )


def skip_the_clamp(monkeypatch):
    sound, day, clamp = mechanisms.discrete_laplace, 48 * 50_000, 50_000

    def unclamped(exact, *, sensitivity, loss):
        return sound([value // clamp * day for value in exact], sensitivity=sensitivity, loss=loss)

    monkeypatch.setattr(mechanisms, "discrete_laplace", unclamped)


def forget_what_was_drawn(monkeypatch):
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


def forget_a_release(monkeypatch):
    figures = statement_facts.loss_bounds
    monkeypatch.setattr(statement_facts, "loss_bounds", lambda terms, rows: figures(terms, rows[:1]))


FAULTS = {
    halve_the_noise: "too many for the noise that their loss requires",
    skip_the_clamp: "too few: their noise or their sums differ from what is documented",
    forget_what_was_drawn: "a second run published different values of the same days",
    forget_a_release: "the statement reports a total of ",
}


def exposed(run_file, fault, datasets) -> AuditResult:
    result = privacy_audit.audit(run_file, datasets=datasets)
    assert result.faults
    assert all(FAULTS[fault] in one for one in result.faults)
    with pytest.raises(PromiseBroken, match="the promise is broken"):
        require_no_violation(result)
    return result


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_exposed_at_small_losses(small, monkeypatch, fault):
    fault(monkeypatch)
    exposed(small, fault, AuditDatasets(400, 16))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_exposed_and_measured_at_large_losses(large, monkeypatch, fault):
    fault(monkeypatch)
    measured = exposed(large, fault, STREETS).measured
    assert not measured[fault is forget_a_release].is_within_promise  # whose single release is sound


def test_a_sum_beyond_the_clamp_never_reaches_the_noise(large, monkeypatch):
    monkeypatch.setattr(np, "minimum", lambda found, _: found)
    with pytest.raises(RuntimeError, match="outside what its sensitivity protects; nothing was drawn"):
        privacy_audit.audit(large, datasets=STREETS)


def test_people_are_told_how_far_it_is(large):
    steps = []
    privacy_audit.audit(
        large, datasets=AuditDatasets(10, 1), progress=ProgressReporter(lambda *step: steps.append(step))
    )
    own = [step for step in steps if step[0] == "audit"]
    assert own == [("audit", done, 12) for done in range(1, 13)]  # two nights of six stages
    assert {step[0] for step in steps} > {"audit", "read"}


def charged(*days: float, beyond: int = 2_350_000, moved: int = 1) -> list[AuditedRelease]:
    """Releases of so many days: of a mean clamped at 50 kWh, or counts."""
    step, cells = (50_000, 1) if beyond else (1, 10)
    return [AuditedRelease(f"2013-01-0{i}", "m", day, moved, step, cells, beyond) for i, day in enumerate(days, 1)]


def test_what_small_losses_hide_is_named_and_larger_ones_hide_nothing():
    hidden = undetectable_faults(charged(0.00001), AuditDatasets(1600, 64), significance=1e-6)
    assert hidden == ("a skipped clamp",)
    assert undetectable_faults(charged(0.001), AuditDatasets(1600, 64), significance=1e-6) == ()
    assert undetectable_faults(charged(50.0, beyond=0, moved=2), AuditDatasets(1600, 1), significance=1e-6) == (
        "half the noise",
    )
    kept = AuditResult((MeasuredLoss("one release", 0.00001, 0.0, 0.01),), AuditDatasets(1600, 64), (), hidden)
    assert kept.is_within_promise
    assert audit_lines(kept)[-1].endswith("this large: a skipped clamp")
    assert audit_json(kept)["cannot_show"] == ["a skipped clamp"]


def test_streets_have_the_more_homes_the_less_each_may_lose():
    losses = (3.0, 1.0, 0.1, 0.000001)
    assert [choose_audit_datasets(charged(loss)).households_per_group for loss in losses] == [1, 2, 15, 64]


def test_without_a_number_the_losses_of_the_run_file_decide_in_which_streets(large, monkeypatch):
    asked = []
    monkeypatch.setattr(
        privacy_audit,
        "choose_audit_datasets",
        lambda releases: asked.append([each.epsilon for each in releases]) or AuditDatasets(30, 2),
    )
    assert privacy_audit.audit(large).datasets == AuditDatasets(30, 2)
    assert asked == [[2.0, 2.0]]
