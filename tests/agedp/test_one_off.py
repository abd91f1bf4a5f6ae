"""From files to a release in one call: what it makes, what a second call does, and what it refuses."""

from __future__ import annotations

import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from agedp.one_off import release_files
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.stages.publish import open_release
from agedp_data.config import load
from agedp_data.datasets.synthetic import write_london
from agedp_data.errors import AgedpError, ContractChanged, RunFileError
from agedp_data.ledger import Ledger

ACCEPT = ["useless", "no-credit", "total"]
COMMON = {"clamp_kwh": "20", "min_households": "2", "max_day_epsilon": "1", "epsilon_total": "30", "accept": ACCEPT}
DISCOUNTED = {
    **COMMON, "notion": "discounted", "discount": "exponential", "rate": "0.9", "epsilon": "1",
    "schedule": "constant", "clock": "data-day", "mode": "rehearsal", "rehearsal_on": "readings",
    "age_days": "1",
}  # fmt: skip
UNACKNOWLEDGED = {
    **COMMON, "notion": "age-dependent", "age_days": "1", "epsilon_per_day": "0.5", "method": "total_variation",
    "secret": "day", "assume": "markov", "period": "all", "step": "half-hour", "states": "3", "edges": "quantile",
    "chain": "homogeneous", "min_visits": "1", "confidence": "plug-in", "model_ages": "1,2",
}  # fmt: skip
MODEL = {**UNACKNOWLEDGED, "publish_envelope": True}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files") / "in"
    write_london(folder, households=4, first_day=date(2013, 1, 1), days=5, seed=3)
    return [str(folder)]


@pytest.fixture(scope="module")
def released(files, tmp_path_factory):
    """A folder with a discounted release in `out` and all that belongs to it in `out-confidential`."""
    folder = tmp_path_factory.mktemp("released")
    release(files, folder / "out", DISCOUNTED)
    return folder


def release(files, out, options):
    return release_files(files, out=out, options=toml_of(options))


def published(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(files, out, **options):
    with pytest.raises(RunFileError) as caught:
        release(files, out, options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_call_releases_every_day_and_keeps_the_rest_private(released):
    folder = open_release(released / "out")
    folder.verify()
    assert folder.statement["days"]["released"] == 5
    confidential = released / "out-confidential"
    assert stat.S_IMODE(confidential.stat().st_mode) == 0o700
    assert {path.name for path in confidential.iterdir()} == {
        "run.toml", "run.schema.json", "roster.csv", "arguments.json", "ledger.sqlite", "confidential",
    }  # fmt: skip
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in confidential.iterdir())
    assert sorted(path.name for path in released.iterdir()) == ["out", "out-confidential"]


def test_the_same_call_draws_nothing_and_another_is_refused(released, files):
    before = published(released / "out")
    rows = Ledger.open(f"sqlite:///{released}/out-confidential/ledger.sqlite").rows()
    again = release(files, released / "out", {**DISCOUNTED, "epsilon": "1.00"})
    assert (list(again.run.released), again.run.refusal) == ([], None)
    with pytest.raises(ContractChanged) as caught:
        release(files, released / "out", {**DISCOUNTED, "rate": "0.8", "title": "t"})
    assert "--rate was 0.9 and is 0.8; --title was not given and is t" in str(caught.value)
    assert "the losses of two releases of the same households add up" in str(caught.value)
    assert published(released / "out") == before
    assert Ledger.open(f"sqlite:///{released}/out-confidential/ledger.sqlite").rows() == rows


def test_a_page_can_be_added_to_what_is_released(released, files, tmp_path):
    for name in ("out", "out-confidential"):
        shutil.copytree(released / name, tmp_path / name)
    run_file = tmp_path / "out-confidential" / "run.toml"
    run_file.write_text(run_file.read_text().replace(str(released), str(tmp_path)))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.parquet")}
    for explore in (True, False, True):
        pages = {"explore": "true"} if explore else {}
        assert not release(files, tmp_path / "out", DISCOUNTED | pages).run.released
        assert (tmp_path / "out" / "explore.html").exists() == explore
        open_release(tmp_path / "out").verify()
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.parquet")} == before
    with pytest.raises(ContractChanged, match=r"--rate was 0\.9 and is 0\.8\. Give"):
        release(files, tmp_path / "out", {**DISCOUNTED, "explore": "true", "deployment": "true", "rate": "0.8"})


def test_missing_options_are_named_all_at_once(files, tmp_path):
    line = refused(files, tmp_path / "out", notion="temporal", clamp_kwh="20", period="all", epsilon_total="5")
    named = line.partition("Also give ")[2].partition(". ")[0].split(", ")
    assert set(named) == {
        "--min-households", "--alpha", "--horizon-days", "--budget", "--max-day-epsilon", "--assume", "--step",
        "--edges", "--chain", "--min-visits", "--confidence", "--publish-envelope", "--accept-unverified-model",
    }  # fmt: skip
    line = refused(files, tmp_path / "out")
    assert line.endswith("Also give --protect (day, week, month, year, all or today) or --notion, and --epsilon")
    line = refused(files, tmp_path / "out", **UNACKNOWLEDGED)
    assert "Also give --publish-envelope. --publish-envelope acknowledges that" in line
    assert "published without noise" in line
    line = refused(files, tmp_path / "out", **{key: DISCOUNTED[key] for key in DISCOUNTED if key != "rehearsal_on"})
    assert line.endswith("Also give --rehearsal-on")
    assert list(tmp_path.iterdir()) == []


CLASSICAL = {**COMMON, "notion": "classical", "epsilon_per_day": "1"}


@pytest.fixture(scope="module")
def three_weeks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weeks") / "in"
    write_london(folder, households=2, first_day=date(2013, 1, 1), days=20, seed=3)  # a Tuesday to a Sunday
    return [str(folder)]


def test_rows_of_weeks_and_skipped_days_are_of_the_days_of_the_files(three_weeks, tmp_path):
    weeks = release(three_weeks, tmp_path / "out", {**CLASSICAL, "every": "week", "skip_days": "2013-01-09"})
    found = [(row.day, row.state) for row in weeks.run.released]
    assert found == [("2013-01-13", "skipped"), ("2013-01-20", "released")]  # a week lacks no day, or is skipped
    live = {**CLASSICAL, "mode": "live", "first_day": "2030-01-01", "age_days": "1", "corrections": "later-file"}
    written = init(three_weeks, folder=tmp_path, options=toml_of({**live, "skip_days": "2030-01-03"}))
    assert load(written.run_file).schedule.skip_days == (date(2030, 1, 3),)


def test_two_equal_calls_at_once_calibrate_and_draw_once(files, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(release, files, tmp_path / "out", MODEL) for _ in range(2)]
    both = [call.result() for call in calls]
    assert sorted(call.calibration is None for call in both) == [False, True]
    [made] = [call.calibration.model.id for call in both if call.calibration]
    assert {call.run.session.model.id for call in both} == {made}
    assert len(Ledger.open(f"sqlite:///{tmp_path}/out-confidential/ledger.sqlite").rows()) == 5


@pytest.mark.parametrize(
    ("out", "line"),
    [
        ("s3://me:key@bucket/rel", "Write a run file with `agedp init`, set [output] release to the URL"),
        ("..", "--out ..: DIR-confidential needs the name of the folder"),
        ("inp", "inp: holds files that are not of a release; name a new or empty folder"),
        ("inp/b.csv", "b.csv: is a file; name a folder"),
        ("own", "did not write"),
    ],
)
def test_an_out_that_is_no_folder_for_a_release_is_refused(files, tmp_path, monkeypatch, out, line):
    for path in (tmp_path / "inp" / "b.csv", tmp_path / "own-confidential" / "run.toml"):
        path.parent.mkdir()
        path.write_text("mine")
    before = published(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = refused(files, out, **DISCOUNTED)
    assert line in text
    assert "key" not in text
    assert published(tmp_path) == before


def test_until_a_day_is_released_other_options_start_anew(files, tmp_path):
    confidential = tmp_path / "out-confidential"
    with pytest.raises(AgedpError):
        release(files, tmp_path / "out", {**MODEL, "min_households": "50"})
    assert (confidential / "run.toml").exists()
    model = (confidential / "model" / "public.json").stat().st_ino
    with pytest.raises(AgedpError):
        release(files, tmp_path / "out", {**MODEL, "min_households": "51"})
    assert (confidential / "model" / "public.json").stat().st_ino == model  # no option of the model changed
    content = (confidential / "model" / "public.json").read_bytes()
    write_london(tmp_path / "others", households=6, first_day=date(2013, 1, 1), days=5, seed=4)
    with pytest.raises(AgedpError):
        release([str(tmp_path / "others")], tmp_path / "out", {**MODEL, "min_households": "51"})
    assert (confidential / "model" / "public.json").read_bytes() != content  # it was of other readings
    done = release(files, tmp_path / "out", {**MODEL, "states": "4"})
    assert done.calibration is not None
    assert done.run.session.model.id == done.calibration.model.id
    assert open_release(tmp_path / "out").statement["days"]["released"] == 5
    with pytest.raises(ContractChanged):
        release(files, tmp_path / "out", {**MODEL, "states": "4", "min_households": "3"})


CLASSICAL = {
    **COMMON,
    "notion": "classical",
    "epsilon_per_day": "0.5",
    "mode": "archive",
    "accept": "useless,no-credit",
}


@pytest.mark.parametrize("calls", [2, pytest.param(7, marks=pytest.mark.long)])
def test_calls_over_the_same_households_count_each_other(calls, tmp_path, monkeypatch):
    """Each has a folder of its own; the accounts are in the folder of the user's data."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    write_london(tmp_path / "in", households=40, first_day=date(2013, 1, 1), days=4, seed=3)
    for number in range(1, calls + 1):
        result = release([str(tmp_path / "in")], tmp_path / f"out{number}", CLASSICAL)
        account = open_release(tmp_path / f"out{number}").statement["household_account"]
        days = len(result.run.drawn)
        assert (account["day"], account["total"]) == (f"{number / 2:g}", f"{number * days / 2:g}")
    assert (tmp_path / "data" / "agedp" / "household_register.sqlite").exists()


def test_what_a_killed_call_left_is_taken_up(released, files, tmp_path):
    shutil.copytree(released / "out-confidential", tmp_path / "out-confidential")
    for name in ("run.toml", "ledger.sqlite"):
        (tmp_path / "out-confidential" / name).unlink()
    shutil.rmtree(tmp_path / "out-confidential" / "confidential")
    release(files, tmp_path / "out", DISCOUNTED)
    assert open_release(tmp_path / "out").statement["days"]["released"] == 5
