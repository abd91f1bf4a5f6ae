"""What 0.3 withdrew: a new use is refused in one line that names 0.2, and what 0.2 began goes on."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from agedp.calibration_pipeline import calibrate
from agedp.ledger_session import LedgerSession
from agedp.release_verification import open_release
from agedp.setup import run_file_options
from agedp.stages.amend import preview_amendment
from agedp.stages.plan import find_due_days
from agedp_data.errors import RunFileError
from agedp_data.ledger import Ledger
from tests.agedp.conftest import House
from tests.command import agedp
from tests.compatibility.fixtures import WITNESS_FILE, WITNESS_ROW, RunningPopulation, standing_clock, unpack

MEMORY = r'\[model\] memory = "pair" is withdrawn, 0\.2 had it; remove the key, or use step'
QUANTILES = r"\[model\] quantiles is withdrawn, 0\.2 had it; remove the key"
ROW = r"\[output\] witness in a PostgreSQL table is withdrawn, 0\.2 had it; use a file on another disk, or s3://"
BEGUN = {"temporal-memory": MEMORY, "age-dependent-private": QUANTILES, "witness-row": ROW}


OPTIONS = """
    absent-days accept-unverified-model age-days alpha assume basis bins-kwh budget by categories chain clamp-kwh
    clock confidence contact corrections coverage curve dataset day-zone decimal delta delta-kwh discount edges
    energy-column epsilon epsilon-per-day epsilon-per-window epsilon-total every failure-probability family
    file-order first-day form fraction give-up-days half-hour-clamp-kwh horizon-days household-column
    household-register ignore-columns interval-minutes kernel last-day layout level licence max-day-epsilon
    max-half-hour-kwh max-missing max-rejected-share method min-households min-visits missing
    missing-controlled-load missing-kwh mode model-ages noise-interval notion period population preflight
    publish-envelope rate rehearsal-on repeated risk schedule secret selection-epsilon separator share
    shared-households skip-days source spend stamp states statistic step time-column time-format title unit values
    wait-for window-days witness zone
"""
"""The options of 0.2 for keys of a run file, but for --memory."""
MODELS = ("temporal-memory", "age-dependent-private")
"""The row of a witness goes on in `test_fixtures`, on a server."""


@pytest.fixture
def population(name: str, tmp_path: Path) -> RunningPopulation:
    """A population that 0.2 began."""
    return unpack(f"0.2/{name}", tmp_path / "population")


@pytest.mark.parametrize("name", MODELS)
def test_a_population_that_0_2_began_with_it_goes_on(population):
    with Ledger.open(population.ledger) as ledger:
        models, draws = ledger.models(), ledger.calibration_draws(population.population)
    before, night = population.rows(), population.following[0]
    assert population.ending(now=night) == ""
    after = population.rows()
    assert after[: len(before)] == before
    assert len(after) > len(before)
    open_release(population.release).verify()
    with Ledger.open(population.ledger) as ledger:
        assert (ledger.models(), ledger.calibration_draws(population.population)) == (models, draws)
        assert ledger.verify() == ()


@pytest.mark.parametrize("name", BEGUN)
def test_a_new_population_with_it_is_refused_in_one_line(population, name):
    if (population.folder / WITNESS_FILE).exists():
        population.edit(WITNESS_FILE, WITNESS_ROW)
    for folder in ("out", "shared"):
        shutil.rmtree(population.folder / folder, ignore_errors=True)
    run = population.begin(now=population.following[0])
    with pytest.raises(RunFileError, match=f"^run.toml: {BEGUN[name]}") as error:
        find_due_days(LedgerSession.open(run))
    assert "\n" not in str(error.value)
    assert not list((population.folder / "out").rglob("*.sqlite"))


@pytest.mark.parametrize("name", MODELS)
def test_a_new_model_with_it_is_refused_even_for_a_population_that_has_one(population, name):
    shutil.rmtree(population.folder / "model")
    with standing_clock(population.last_night), pytest.raises(RunFileError, match=f"^run.toml: {BEGUN[name]}"):
        calibrate(population.run_file)


def test_a_running_population_cannot_take_up_a_witness_in_a_table(tmp_path):
    house = House(tmp_path)
    house.fill([date(2013, 1, 1)])
    house.write(date(2013, 1, 1), date(2013, 1, 6))
    house.run(today=date(2013, 1, 3))
    house.edit(("[population]", f'witness = "{WITNESS_ROW}"\n[population]'))
    with pytest.raises(RunFileError, match=ROW):
        preview_amendment(LedgerSession.open_existing(house.context(today=date(2013, 1, 3))))


def test_the_frontier_is_refused_before_a_file_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = agedp("plan", "nowhere.toml", "--frontier")
    assert (status, out) == (2, "")
    assert err.startswith("agedp: agedp plan --frontier is withdrawn, 0.2 had it; use `agedp compare`")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["init", "sanitise"])
def test_the_option_of_the_memory_is_refused_with_its_substitute(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (("--memory", "pair"), ("--memory=pair",)):
        assert agedp(command, "nowhere.csv", *words) == (
            2,
            "",
            f"agedp: agedp {command} --memory is withdrawn, 0.2 had it; leave it out, or use --step half-hour with "
            "--chain cyclic\n",
        )


def test_every_other_option_of_0_2_is_one_still():
    options = {option.flag for option in (*run_file_options.OPTIONS, *run_file_options.notion_options())}
    assert {f"--{name}" for name in OPTIONS.split()} <= options
