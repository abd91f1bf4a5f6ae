"""A risk that rests on an estimated model is accepted once, and the verdict on the model decides nothing public."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

import agedp
from agedp import privacy_audit
from agedp.calibration_pipeline import calibrate
from agedp.internal_records.bookkeeping import ModelVerdict, read_verdict, write_verdict
from agedp.plan_facts import read_plan
from agedp.stages.amend import amend, preview_amendment
from agedp_data.audit.lower_bounds import AuditDatasets
from agedp_data.config.model_section import accepted
from agedp_data.errors import ContractChanged, Refused, RunFileError
from agedp_flows.text.plan_text import plan_lines
from agedp_flows.text.run_text import result_lines, verdict_lines
from tests.agedp.conftest import CLASSICAL
from tests.model_tables import estimated_table

FIRST, DAYS = date(2013, 1, 1), 20
LAST = FIRST + timedelta(days=DAYS - 1)
TODAY = LAST + timedelta(days=3)
AGED = 'notion = "age-dependent"\nage_days = 1\nmethod = "total_variation"\nsecret = "day"\n'
CAPS = "max_day_epsilon = 2\nepsilon_total = 300\n"
RISK, DAY = f"{AGED}risk = 0.4\n{CAPS}", f"{AGED}epsilon_per_day = 0.4\n{CAPS}"
MODEL = estimated_table(FIRST, LAST)
ACCEPTED = estimated_table(FIRST, LAST, accepted=True)
ELSEWHERE = ModelVerdict("rejected", "It is of another model.")
MISSING = (
    "[model] accept_unverified_model is missing: risk = 0.4 rests on an estimated model, which one dataset can "
    "contradict but never verify. Write accept_unverified_model = true, or promise epsilon_per_day."
)


@pytest.fixture(scope="module")
def begun(houses, tmp_path_factory):
    """Return a house with a calibrated model, before anything is released."""
    house = houses(tmp_path_factory.mktemp("accepted"))
    high = np.random.default_rng(1).random((3, DAYS, 48)) < 0.5
    house.london(
        {
            (household, FIRST + timedelta(days=day), slot): 900 if high[number, day, slot] else 100
            for number, household in enumerate("ABC")
            for day in range(DAYS)
            for slot in range(48)
        }
    )
    house.roster([(household, FIRST, None) for household in "ABC"])
    house.write(LAST - timedelta(days=3), LAST, promise=RISK, rest=MODEL)
    calibrate(house.run_file)
    return house


@pytest.fixture
def homes(begun, houses, tmp_path):
    """Return a copy of that house, for one test."""
    import shutil

    shutil.copytree(begun.folder, tmp_path / "house")
    return houses(tmp_path / "house")


def write(house, promise=RISK, model=MODEL, last=LAST, **keys):
    house.write(LAST - timedelta(days=3), last, promise=promise, rest=model, **keys)


def verdict_file(house) -> Path:
    [path] = (house.folder / "confidential" / "forgetting").glob("*.json")
    return path


def test_a_new_risk_on_an_estimated_model_needs_acceptance(homes):
    before = {path: path.read_bytes() for path in homes.folder.rglob("*") if path.is_file()}
    with pytest.raises(RunFileError) as error:
        homes.run(today=TODAY)
    assert str(error.value) == f"run.toml: {MISSING}"
    assert before == {path: path.read_bytes() for path in homes.folder.rglob("*") if path.is_file()}
    assert plan_lines(homes.session(today=TODAY))[0] == f"Will be refused: run.toml: {MISSING}"
    assert read_plan(homes.session(today=TODAY)).facts["refused"] == f"run.toml: {MISSING}"
    write(homes, model=ACCEPTED)
    assert read_plan(homes.session(today=TODAY)).facts["refused"] == ""
    assert not any("accept_unverified_model" in line for line in plan_lines(homes.session(today=TODAY)))
    assert len(homes.run(today=TODAY).released) == 4


def test_the_refusal_is_the_same_whatever_the_verdict(homes):
    model = homes.context().model.id
    lines = set()
    for verdict in (*map(ModelVerdict, ("rejected", "cannot be judged", "not rejected"), "abc"), None):
        verdict_file(homes).unlink()
        write_verdict(homes.folder / "confidential", *((model, verdict) if verdict else ("f" * 64, ELSEWHERE)))
        with pytest.raises(RunFileError) as error:
            homes.run(today=TODAY)
        lines.add(str(error.value))
    assert lines == {f"run.toml: {MISSING}"}


@pytest.mark.parametrize(("promise", "model"), [(DAY, MODEL), (RISK, "curve")])
def test_nothing_else_needs_acceptance(homes, promise, model):
    (homes.folder / "curve.csv").write_text("age_days,total_variation\n1,0.3\n2,0.1\n")
    declared = '[model]\nsource = "declared"\nassume = "markov"\ncurve = "curve.csv"\nbasis = "made up"\n'
    write(homes, promise, declared if model == "curve" else model)
    assert len(homes.run(today=TODAY).released) == 4


def test_an_acceptance_without_use_is_refused(homes):
    write(homes, DAY, ACCEPTED)
    with pytest.raises(
        RunFileError, match=r"accept_unverified_model = true: is used only by a \[promise\] with risk or alpha"
    ):
        homes.context()
    write(homes, RISK, f"{MODEL}accept_unverified_model = false\n")
    with pytest.raises(RunFileError, match="accept_unverified_model = false: must be true, or absent"):
        homes.context()
    write(homes, RISK, '[model]\nsource = "declared"\naccept_unverified_model = true\n')
    with pytest.raises(RunFileError, match="accept_unverified_model"):
        homes.context()


def test_a_series_that_began_without_the_key_goes_on(homes):
    write(homes, model=ACCEPTED, last=LAST - timedelta(days=1))
    assert len(homes.run(today=TODAY).released) == 3
    contract = read_plan(homes.session(today=TODAY)).facts["contract"]
    assert "accept_unverified_model" not in contract["model"]
    write(homes, last=LAST - timedelta(days=1))  # as an earlier version wrote it
    assert read_plan(homes.session(today=TODAY)).facts["contract"] == contract
    assert homes.run(today=TODAY).released == ()
    write(homes)
    with pytest.raises(ContractChanged):
        homes.run(today=TODAY)
    amend(homes.context(today=TODAY))  # a later last day: the model is the one of the contract
    assert len(homes.run(today=TODAY).released) == 1


def test_an_amendment_to_another_estimated_model_needs_it(homes):
    write(homes, model=ACCEPTED)
    homes.run(today=TODAY)
    again = MODEL.replace('"model"', '"another"').replace("min_visits = 5", "min_visits = 6")
    write(homes, model=again)
    calibrate(homes.run_file)
    with pytest.raises(Refused, match=r"the contract cannot be amended so: .*accept_unverified_model is missing"):
        amend(homes.context(today=TODAY))
    write(homes, model=f"{again}accept_unverified_model = true\n")
    assert not preview_amendment(homes.session(today=TODAY)).refused
    amend(homes.context(today=TODAY))


def test_an_amendment_from_a_declared_model_needs_it(homes):
    (homes.folder / "curve.csv").write_text("age_days,total_variation\n1,0.3\n2,0.1\n")
    declared = '[model]\nsource = "declared"\nassume = "markov"\ncurve = "curve.csv"\nbasis = "made up"\n'
    write(homes, model=declared)
    homes.run(today=TODAY)
    write(homes)
    with pytest.raises(Refused, match="accept_unverified_model is missing"):
        amend(homes.context(today=TODAY))


def test_an_audit_of_a_running_series_needs_no_acceptance(homes):
    run = homes.context().run_file
    assert accepted(run.model).accept_unverified_model
    assert accepted(run.model).model_copy(update={"accept_unverified_model": None}) == run.model
    assert accepted(None) is None
    write(homes)
    small = AuditDatasets(2, 1, varying_groups=2, days=2, ledgers=1)
    assert privacy_audit.audit(homes.run_file, datasets=small).is_within_promise


def test_plan_and_run_repeat_the_verdict_on_the_terminal(homes):
    write(homes, model=ACCEPTED)
    session = homes.session(today=TODAY)
    [line] = verdict_lines(session.run)
    label = "Check of the estimated model (confidential)"
    assert line == f"{label}: cannot be judged. Too few readings at a lag of 7, 14, 28 days."
    write_verdict(homes.folder / "confidential", session.run.model.id, ModelVerdict("rejected", "It is\nSECRET."))
    assert verdict_lines(session.run) == [f"{label}: rejected. It is SECRET."]
    summary = homes.run(today=TODAY)
    assert verdict_lines(session.run)[0] in result_lines(summary)
    public = [read_plan(homes.session(today=TODAY)).facts, summary.facts, homes.release.statement]
    assert not any("SECRET" in str(facts) or "rejected" in str(facts) for facts in public)
    for path in [*(homes.folder / "release").iterdir(), homes.folder / "ledger.sqlite"]:
        assert b"SECRET" not in path.read_bytes()


def test_a_model_without_its_check_has_no_verdict(homes):
    write(homes, model=ACCEPTED)
    run = homes.session(today=TODAY).run
    missing = "none, because its check is not in the confidential folder."
    path = verdict_file(homes)
    assert path.stat().st_mode & 0o077 == 0
    for damaged in ("", "[]", "{", '{"model": 1}', path.read_text().replace(run.model.id, "0" * 64), "\udcff"):
        path.write_bytes(damaged.encode("utf-8", "surrogateescape"))
        assert verdict_lines(run)[0].endswith(missing)
    path.unlink()
    assert verdict_lines(run)[0].endswith(missing)
    assert read_verdict(homes.folder / "nowhere", run.model.id) is None
    write(homes, promise=CLASSICAL, model="")
    assert verdict_lines(homes.session(today=TODAY).run) == []


def test_a_table_in_memory_needs_it_too(begun):
    frame = agedp.read([begun.folder / "input" / "a.csv"], dataset="london")
    model = agedp.calibrate(
        agedp.quantize(frame, step="half-hour", states=2, edges=[500]), min_visits=5, confidence="plug-in",
        ages_days=[1, 2], chain="homogeneous", assume="markov", publish="envelope",
    )  # fmt: skip
    terms = {"age_days": 1, "method": "total_variation", "secret": "day", "max_day_epsilon": 2, "epsilon_total": 300}
    promise = agedp.AgeDependent(risk=0.4, accept=["useless", "total"], **terms)
    keys = {"promise": promise, "model": model, "clamp_kwh": 50, "min_households": 2}
    with pytest.raises(RunFileError, match=r"accept_unverified_model is missing: risk = 0\.4"):
        agedp.release(frame, **keys)
    assert len(agedp.release(frame, **keys, accept_unverified_model=True).table) == DAYS
