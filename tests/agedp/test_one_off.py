"""From files to a release in one call: what it makes, what a second call does, and what it refuses."""

from __future__ import annotations

import shutil
import stat
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from agedp.one_off import differing_arguments, release_files, write_files
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.stages.publish import open_release
from agedp_data.datasets.synthetic import write_london
from agedp_data.errors import AgedpError, ContractChanged, InputError, RunFileError
from agedp_data.ledger import Ledger

COMMON = {"clamp_kwh": "20", "min_households": "2", "max_day_epsilon": "1", "epsilon_total": "30"}
DISCOUNTED = {
    **COMMON, "notion": "discounted", "discount": "exponential", "rate": "0.9", "epsilon": "1",
    "schedule": "constant", "clock": "data-day", "mode": "rehearsal", "age_days": "1",
}  # fmt: skip
AGED = {**COMMON, "notion": "age-dependent", "age_days": "1", "epsilon_per_day": "0.5", "method": "total_variation"}
AGED |= {"secret": "day"}
MODEL = {
    "assume": "markov", "period": "all", "step": "half-hour", "states": "3", "edges": "quantile",
    "chain": "homogeneous", "min_visits": "1", "confidence": "plug-in", "model_ages": "1,2",
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files") / "in"
    write_london(folder, households=4, first_day=date(2013, 1, 1), days=6, seed=3)
    return [str(folder)]


@pytest.fixture(scope="module")
def released(files, tmp_path_factory):
    """A folder with a discounted release in `out` and all that belongs to it in `out-confidential`."""
    folder = tmp_path_factory.mktemp("released")
    release_files(files, out=folder / "out", options=toml_of(DISCOUNTED))
    return folder


def published(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(files, out, **options):
    with pytest.raises(RunFileError) as caught:
        release_files(files, out=out, options=toml_of(options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_call_releases_every_day_and_keeps_the_rest_private(released):
    release = open_release(released / "out")
    release.verify()
    assert release.statement["days"]["released"] == 6
    confidential = released / "out-confidential"
    assert stat.S_IMODE(confidential.stat().st_mode) == 0o700
    assert {path.name for path in confidential.iterdir()} == {
        "run.toml", "run.schema.json", "roster.csv", "arguments.json", "ledger.sqlite", "confidential",
    }  # fmt: skip
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in confidential.iterdir())
    assert sorted(path.name for path in released.iterdir()) == ["out", "out-confidential"]


def test_the_same_call_again_draws_nothing_again(released, files):
    before = published(released / "out")
    head = Ledger.open(f"sqlite:///{released}/out-confidential/ledger.sqlite").rows()
    again = release_files(files, out=released / "out", options=toml_of({**DISCOUNTED, "epsilon": "1.00"}))
    assert list(again.run.released) == []
    assert again.run.refusal is None
    assert published(released / "out") == before
    assert Ledger.open(f"sqlite:///{released}/out-confidential/ledger.sqlite").rows() == head


def test_other_arguments_are_refused_with_their_difference(released, files):
    before = published(released)
    options = {**DISCOUNTED, "rate": "0.8", "title": "t"}
    with pytest.raises(ContractChanged) as caught:
        release_files(files, out=released / "out", options=toml_of(options))
    assert "--rate was 0.9 and is 0.8; --title was not given and is t" in str(caught.value)
    assert "the losses of two releases of the same households add up, and no ledger counts them" in str(caught.value)
    assert published(released) == before


def test_what_a_killed_call_left_is_taken_up(released, files, tmp_path):
    shutil.copytree(released / "out-confidential", tmp_path / "out-confidential")
    for name in ("run.toml", "ledger.sqlite"):
        (tmp_path / "out-confidential" / name).unlink()
    shutil.rmtree(tmp_path / "out-confidential" / "confidential")
    release_files(files, out=tmp_path / "out", options=toml_of(DISCOUNTED))
    assert open_release(tmp_path / "out").statement["days"]["released"] == 6


def test_missing_options_are_named_all_at_once(files, tmp_path):
    line = refused(files, tmp_path / "out", notion="temporal", clamp_kwh="20", period="all", epsilon_total="5")
    named = line.partition("Also give ")[2].partition(". ")[0].split(", ")
    assert set(named) == {
        "--min-households", "--alpha", "--horizon-days", "--budget", "--max-day-epsilon", "--assume", "--step",
        "--edges", "--chain", "--min-visits", "--confidence", "--publish-envelope",
    }  # fmt: skip
    line = refused(files, tmp_path / "out")
    assert line.endswith("--min-households, --clamp-kwh, --max-day-epsilon, --epsilon-total")
    assert "--notion (each notion has options of its own)" in line
    assert list(tmp_path.iterdir()) == []


def test_an_estimated_model_is_published_only_if_acknowledged(files, tmp_path):
    line = refused(files, tmp_path / "out", **AGED, **MODEL)
    assert "Also give --publish-envelope. --publish-envelope acknowledges that" in line
    assert "published without noise" in line
    assert list(tmp_path.iterdir()) == []


def test_a_notion_with_a_model_is_calibrated_once(files, tmp_path):
    given = toml_of({**AGED, **MODEL, "publish_envelope": True})
    first = release_files(files, out=tmp_path / "out", options=given)
    assert first.calibration is not None
    assert first.calibration.model.id == first.run.session.model.id
    assert (tmp_path / "out-confidential" / "model" / "public.json").exists()
    again = release_files(files, out=tmp_path / "out", options=given)
    assert again.calibration is None
    assert list(again.run.released) == []


def test_two_equal_calls_at_once_calibrate_and_draw_once(files, tmp_path):
    given = toml_of({**AGED, **MODEL, "publish_envelope": True})
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(release_files, files, out=tmp_path / "out", options=given) for _ in range(2)]
    both = [call.result() for call in calls]
    assert sorted(call.calibration is None for call in both) == [False, True]
    assert both[0].run.session.model.id == both[1].run.session.model.id
    assert len(Ledger.open(f"sqlite:///{tmp_path}/out-confidential/ledger.sqlite").rows()) == 6


@pytest.mark.parametrize(
    ("out", "line"),
    [
        ("s3://me:key@bucket/rel", "Write a run file with `agedp init`, set [output] release to the URL"),
        ("/", "--out /: DIR-confidential needs the name of the folder"),
        ("..", "--out ..: DIR-confidential needs the name of the folder"),
    ],
)
def test_an_out_that_is_no_local_folder_is_refused(files, tmp_path, monkeypatch, out, line):
    monkeypatch.chdir(tmp_path)
    text = refused(files, out, **DISCOUNTED)
    assert line in text
    assert "key" not in text
    assert list(tmp_path.iterdir()) == []


def test_groups_need_a_roster_in_the_confidential_folder(files, tmp_path):
    line = refused(files, tmp_path / "out", **DISCOUNTED, by="tariff")
    assert line.endswith("Write out-confidential/roster.csv with this column first, or remove --by")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out-confidential").mkdir()
    rows = init(files, folder=tmp_path / "other").roster.read_text().splitlines()[2:]
    text = "\n".join(["household_id,from,to,tariff", *(f"{row},T" for row in rows)])
    (tmp_path / "out-confidential" / "roster.csv").write_text(text)
    release_files(files, out=tmp_path / "out", options=toml_of({**DISCOUNTED, "by": "tariff"}))
    assert set(open_release(tmp_path / "out").table()["group"]) == {"T"}


def test_a_run_file_of_somebody_else_is_left_alone(files, tmp_path):
    (tmp_path / "out-confidential").mkdir()
    (tmp_path / "out-confidential" / "run.toml").write_text("mine")
    line = refused(files, tmp_path / "out", **DISCOUNTED)
    assert "did not write" in line
    assert (tmp_path / "out-confidential" / "run.toml").read_text() == "mine"


def test_a_folder_of_other_files_and_a_file_are_refused_and_left_as_they_are(files, tmp_path):
    (tmp_path / "inp").mkdir()
    (tmp_path / "inp" / "b.csv").write_text("mine")
    with pytest.raises(RunFileError) as caught:
        release_files(files, out=tmp_path / "inp", options=toml_of(DISCOUNTED))
    assert str(caught.value).endswith("inp: holds files that are not of a release; name a new or empty folder")
    assert "holds files that are not of a release (b.csv); name" in caught.value.private
    assert refused(files, tmp_path / "inp" / "b.csv", **DISCOUNTED).endswith("b.csv: is a file; name a folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["inp", "b.csv"]


def test_until_a_day_is_released_other_options_start_anew(files, tmp_path):
    given = {**AGED, **MODEL, "publish_envelope": True}
    confidential = tmp_path / "out-confidential"
    (tmp_path / "out").mkdir()
    with pytest.raises(AgedpError):
        release_files(files, out=tmp_path / "out", options=toml_of({**given, "min_households": "50"}))
    assert (confidential / "run.toml").exists()
    model = (confidential / "model" / "public.json").stat().st_ino
    done = release_files(files, out=tmp_path / "out", options=toml_of({**given, "min_households": "2"}))
    assert done.calibration is None  # no option of the model changed
    assert (confidential / "model" / "public.json").stat().st_ino == model
    assert open_release(tmp_path / "out").statement["days"]["released"] == 6
    with pytest.raises(ContractChanged):
        release_files(files, out=tmp_path / "out", options=toml_of({**given, "min_households": "3"}))


def test_starting_anew_with_other_model_options_estimates_anew(files, tmp_path, monkeypatch):
    given = {**AGED, **MODEL, "publish_envelope": True}

    def fail(*_args, **_kwargs):
        raise InputError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("agedp.one_off.run_stages", fail)
        with pytest.raises(InputError):
            release_files(files, out=tmp_path / "out", options=toml_of(given))
    done = release_files(files, out=tmp_path / "out", options=toml_of({**given, "states": "4"}))
    assert done.calibration is not None
    assert done.run.session.model.id == done.calibration.model.id
    assert "states" in (tmp_path / "out-confidential" / "run.toml").read_text()


def test_files_may_be_named_in_another_way(released, files, tmp_path):
    shutil.copytree(released, tmp_path / "copy")
    out = tmp_path / "copy" / "out"
    run_file = tmp_path / "copy" / "out-confidential" / "run.toml"
    named = sorted(str(path) for path in Path(files[0]).iterdir())
    before = published(out)
    for patterns in (named, [f"{files[0]}/*.csv"]):
        write_files(run_file, patterns)
        assert tomllib.loads(run_file.read_text())["input"]["files"] == patterns
    assert differing_arguments(run_file.parent, named, toml_of(DISCOUNTED)) == ["FILES"]
    assert stat.S_IMODE(run_file.stat().st_mode) == 0o600
    assert published(out) == before
