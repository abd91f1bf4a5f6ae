"""The audit passes the real path and exposes what is planted into it: noise, clamp, memory, composition."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from agedp import privacy_audit, statement_facts
from agedp.privacy_audit import AuditResult, MeasuredLoss
from agedp_data import mechanisms
from agedp_data.audit.power import AuditDatasets, AuditedRelease, choose_audit_datasets, undetectable_faults
from agedp_flows.text.audit_text import PromiseBroken, audit_json, audit_lines, require_no_violation

STREETS = AuditDatasets(1600, 1)
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {0}\nmax_day_epsilon = {0}\nepsilon_total = "unlimited"\n'


def written(house, loss) -> Path:
    house.roster([("A", date(2013, 1, 1), None)])
    return house.write(date(2013, 1, 1), date(2013, 1, 9), promise=CLASSICAL.format(loss))


@pytest.fixture
def large(house):
    return written(house, 2)


def test_the_real_path_is_passed_with_bounds_near_the_promise(large):
    found = privacy_audit.audit(large, datasets=STREETS)
    one, series = found.measured
    assert (one.promised, series.promised) == (2.0, 4.0)
    # of 4000 such audits, simulated, the least prove 1.26 and 2.22: the bounds lie five deviations below the mean
    assert 1.0 < one.lower_bound <= 2.0 < one.detectable < 3
    assert 1.8 < series.lower_bound <= 4.0
    assert (found.faults, found.undetectable, found.is_within_promise) == ((), (), True)
    assert not list(large.parent.glob("confidential/*"))
    require_no_violation(found)


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


@pytest.mark.parametrize("loss", [0.005, pytest.param(0.07, marks=pytest.mark.long)])
def test_half_the_noise_is_exposed_at_small_losses(house, monkeypatch, loss):
    run_file = written(house, loss)
    halve_the_noise(monkeypatch)
    exposed(run_file, halve_the_noise, AuditDatasets(400, 16))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_exposed_and_measured_at_large_losses(large, monkeypatch, fault):
    fault(monkeypatch)
    measured = exposed(large, fault, STREETS).measured
    assert not measured[fault is forget_a_release].is_within_promise  # whose single release is sound


def test_a_sum_beyond_the_clamp_never_reaches_the_noise(large, monkeypatch):
    monkeypatch.setattr(np, "minimum", lambda found, _: found)
    with pytest.raises(RuntimeError, match="outside what its sensitivity protects; nothing was drawn"):
        privacy_audit.audit(large, datasets=AuditDatasets(10, 1))


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
