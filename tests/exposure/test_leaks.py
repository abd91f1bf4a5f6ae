"""Ids, file names, readings, true sums and means are searched for in everything that leaves the house."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import struct
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from agedp.pipeline import sanitise
from agedp_data.errors import AgedpError
from agedp_flows.cli.app import main
from tests.exposure import marks
from tests.exposure.conftest import Ran
from tests.exposure.marks import Marks
from tests.exposure.worlds import MarkedWorld, Seen, make


def quiet(known: Marks, seen: Seen, *, terminal: bool = False) -> list[str]:
    """What is found in what a command wrote to standard output, logged, called its tasks and told its children."""
    said = [] if terminal else [seen.stdout]
    for kind in ("log", "key", "subprocess.Popen", "socket.bind"):
        said += seen.of(kind)
    inherited = json.dumps(dict(os.environ))
    return [each for text in said for each in known.found_in(text.replace(inherited, "").encode())]


def test_a_run_and_a_calibration_tell_machines_logs_tasks_and_children_none(ran: Ran) -> None:
    assert len(json.loads(ran.released.stdout)["released"]) == 3
    assert json.loads(ran.calibrated.stdout).keys() == {"model"}
    for seen in (ran.calibrated, ran.released):
        assert quiet(ran.marks, seen) == []
        assert seen.stderr == ""
        assert len(seen.of("key")) > 1
    assert len(ran.released.of("log")) > 20  # SQLAlchemy's at least: every statement with what was bound to it


def test_dask_keys_are_a_stage_and_a_running_number(ran: Ran) -> None:
    for key in ran.calibrated.of("key") + ran.released.of("key"):
        stage, _, number = key.rpartition("-")
        assert stage.isalpha(), key
        assert stage.islower(), key
        assert number.isdigit(), key


def test_release_folder_ledger_and_public_part_of_the_model_hold_none(ran: Ran) -> None:
    assert marks.of_folder(ran.marks, ran.world.release) == []
    assert marks.of_database(ran.marks, ran.world.ledger) == []  # every cell, page and journal
    assert ran.marks.found_in((ran.world.folder / "model" / "public.json").read_bytes()) == []


COMMANDS = (
    ("plan", "run.toml", "--json"),
    ("plan", "run.toml"),
    ("plan", "run.toml", "--frontier"),
    ("plan", "run.toml", "--frontier", "--json"),
    ("publish", "run.toml", "--json"),
    ("verify", "out/release", "--json"),
    ("verify", "out/release", "--ledger", "sqlite:///out/ledger.sqlite"),
    ("ledger", "show", "run.toml", "--json"),
    ("ledger", "verify", "run.toml", "--json"),
    ("ledger", "amend", "run.toml", "--json"),
    ("ledger", "export", "run.toml", "out/export.jsonl"),
    ("run", "run.toml"),
)


def test_the_other_commands_say_and_log_none(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(ran.world.folder)
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "dask", "distributed"):
        caplog.set_level(logging.DEBUG, name)
    for words in COMMANDS:
        caplog.clear()
        monkeypatch.setattr(sys, "argv", ["agedp", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        shown = capsys.readouterr()
        assert shown.out
        assert shown.err == ""
        assert ran.marks.found_in(shown.out.encode()) == [], words
        for record in caplog.records:
            assert ran.marks.found_in(f"{record.getMessage()} {record.args!r}".encode()) == [], words
    assert ran.marks.found_in((ran.world.folder / "out" / "export.jsonl").read_bytes()) == []
    (ran.world.folder / "out" / "export.jsonl").unlink()


def test_the_verdict_on_the_chain_names_nobody_and_its_report_stays_in_the_house(
    ran: Ran,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the operator's terminal shows of a calibration: counts of homes and medians, no home and no reading."""
    world = MarkedWorld(Path(shutil.copytree(ran.world.folder, tmp_path / "world")))
    world.edit('file = "model"', 'file = "model-b"')
    monkeypatch.chdir(world.folder)
    monkeypatch.setattr(sys, "argv", ["agedp", "calibrate", "run.toml"])
    caplog.set_level(logging.DEBUG)
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code or 0, shown.err) == (0, "")
    assert "Goodness of fit of the Markov model" in shown.out
    assert ran.marks.found_in(shown.out.encode()) == []
    assert [each for record in caplog.records for each in ran.marks.found_in(record.getMessage().encode())] == []
    inside = world.confidential / "forgetting"
    assert {re.sub(r"-[0-9a-f]{8}\.", ".", path.name) for path in inside.iterdir()} == {
        f"{name}.{kind}" for name in ("model", "model-b") for kind in ("html", "parquet")
    }
    assert "MARKhome" in " ".join(marks.of_folder(ran.marks, inside))  # so the search means something
    for page in inside.glob("*.html"):
        assert ran.marks.found_in(page.read_bytes()) == []
    assert not list(world.release.rglob("*forgetting*"))
    assert b"reject" not in (world.folder / "model-b" / "public.json").read_bytes()


def spoil_header(world: MarkedWorld) -> None:
    (world.folder / "incoming" / "MARKfile3.csv").write_text("LCLid,MARKcolumn\nMARKhome1,7.7391\n")


def spoil_bytes(world: MarkedWorld) -> None:
    (world.folder / "incoming" / "MARKfile3.csv").write_bytes(b"MARKhome1\x00\x01")


def spoil_encoding(world: MarkedWorld) -> None:
    (world.folder / "incoming" / "MARKfile3.csv").write_bytes("LCLid,MARK\nMARKhome1,7.7391\n".encode("utf-16"))


def spoil_archive(world: MarkedWorld) -> None:
    (world.folder / "incoming" / "MARKfile3.csv.gz").write_bytes(b"\x1f\x8bMARK")


def spoil_dates(world: MarkedWorld) -> None:
    text = "LCLid,tstp,energy(kWh/hh)\nMARKhome1,02/25/2013 00:30:00,7.7391\n"
    (world.folder / "incoming" / "MARKfile3.csv").write_text(text)


def spoil_roster(world: MarkedWorld) -> None:
    with (world.folder / "roster.csv").open("a") as stream:
        stream.write("MARKhome1,2013-02-01,\n")


def change_roster(world: MarkedWorld) -> None:
    lines = (world.folder / "roster.csv").read_text().splitlines()
    (world.folder / "roster.csv").write_text("\n".join(lines[:-1]) + "\n")


def strangers(world: MarkedWorld) -> None:
    text = (world.folder / "roster.csv").read_text()
    (world.folder / "roster.csv").write_text(text.replace("MARKhome", "MARKstranger"))


def another_promise(world: MarkedWorld) -> None:
    world.edit("epsilon_per_day = 0.5", "epsilon_per_day = 0.4")


FAILING: dict[str, tuple[Callable[[MarkedWorld], None], int]] = {
    "an unknown header": (spoil_header, 2),
    "a binary file": (spoil_bytes, 2),
    "UTF-16": (spoil_encoding, 2),
    "a broken archive": (spoil_archive, 2),
    "overlapping rows of the roster": (spoil_roster, 2),
    "a released day's roster changed": (change_roster, 3),
    "a roster of other homes": (strangers, 3),
    "another promise": (another_promise, 3),
}


OF_A_FILE = ("an unknown header", "a binary file", "UTF-16", "a broken archive")
"""What stops a run before its series begins; later such a file is set apart as a whole and the night goes on."""


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> MarkedWorld:
    return make(tmp_path_factory.mktemp("beginning") / "world")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> MarkedWorld:
    world = make(tmp_path_factory.mktemp("failing") / "world")
    sanitise(world.folder / "run.toml", as_of=date(2013, 2, 4))
    return world


@pytest.mark.parametrize("case", FAILING)
def test_what_a_failing_run_would_tell_others_holds_none(
    case: str, unreleased: MarkedWorld, released: MarkedWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public text of the error, as Prefect or a log would get it, and nothing that hangs on to it."""
    before = unreleased if case in OF_A_FILE else released
    world = MarkedWorld(Path(shutil.copytree(before.folder, tmp_path / "world")))
    known = Marks((b"7.7391", b"7739"), ())
    spoil, status = FAILING[case]
    spoil(world)
    monkeypatch.chdir(world.folder)
    with pytest.raises(AgedpError) as caught:
        sanitise("run.toml")
    error = caught.value
    assert error.exit_status == status
    for text in (str(error), repr(error), repr(error.args)):
        assert known.found_in(text.encode()) == [], text
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert getattr(error, "__notes__", []) == []


def test_a_file_or_date_that_cannot_be_read_later_stops_no_night_and_is_told_to_nobody(
    released: MarkedWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = MarkedWorld(Path(shutil.copytree(released.folder, tmp_path / "world")))
    for number, spoil in enumerate((spoil_header, spoil_bytes, spoil_encoding, spoil_archive, spoil_dates)):
        spoil(world)
        for path in (world.folder / "incoming").glob("MARKfile3.csv*"):
            path.rename(path.with_name(path.name.replace("3", f"1{number}")))
    monkeypatch.chdir(world.folder)
    monkeypatch.setattr(sys, "argv", ["agedp", "run", "run.toml", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    known = Marks((b"7.7391", b"7739"), ())
    assert known.found_in(capsys.readouterr().out.encode()) == []
    assert marks.of_folder(known, world.release) == []


@pytest.mark.parametrize(
    "place", ["begin", "read", "aggregate", "release", "publish", "artifact", "estimate", "announce"]
)
@pytest.mark.long
@pytest.mark.prefect
def test_a_bug_is_a_class_name_to_prefect_and_its_traceback_stays_in_the_house(place: str, tmp_path: Path) -> None:
    world = make(tmp_path / "world", estimated=place == "estimate")
    verb = "calibrate" if place == "estimate" else "run"
    seen = world.run(
        verb, "run.toml", "--flow", BUG=place, PREFECT_LOGGING_LEVEL="DEBUG", PREFECT_LOGGING_TO_API_ENABLED="true"
    )
    assert seen.status == 1
    assert "StageFailed" in seen.stderr
    assert "Error logging to API" not in seen.stderr  # every line was sent while the server was there
    assert "MARK" not in seen.stderr
    known = Marks((b"7.7391",), ())
    database = world.confidential / "prefect" / "prefect.db"
    assert marks.of_database(known, database) == []
    assert b"ValueError" in database.read_bytes()
    assert quiet(known, seen) == []
    if place != "begin":
        assert "MARKhome1" in (world.confidential / "traceback.txt").read_text()


@pytest.mark.long
@pytest.mark.prefect
@pytest.mark.parametrize("estimated", [False, True])
def test_prefect_is_told_none_though_it_logs_everything_to_its_database(estimated: bool, tmp_path: Path) -> None:
    world = make(tmp_path / "world", estimated=estimated, scheduler="processes")
    loud = {"PREFECT_LOGGING_LEVEL": "DEBUG", "PREFECT_LOGGING_TO_API_ENABLED": "true"}
    if estimated:
        assert world.run("calibrate", "run.toml", "--flow", **loud).status == 0
    runs = [world.run("run", "run.toml", "--flow", **loud)]
    known = world.marks
    another_promise(world)
    runs.append(world.run("run", "run.toml", "--flow", **loud))
    world.edit("epsilon_per_day = 0.4", "epsilon_per_day = 0.5")
    (world.folder / "incoming" / "MARKfile3.csv").symlink_to("nowhere.csv")
    runs.append(world.run("run", "run.toml", "--flow", **loud))
    assert [seen.status for seen in runs] == [0, 3, 2], runs[0].stderr
    assert [each for seen in runs for each in quiet(known, seen, terminal=True)] == []
    home = world.confidential / "prefect"
    assert marks.of_database(known, home / "prefect.db") == []
    assert marks.of_folder(known, home) == []
    assert marks.of_folder(known, world.release) == []


@pytest.mark.parametrize("name", ["release_flow", "calibrate_flow"])
def test_a_bug_before_the_first_stage_leaves_a_flow_as_its_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    from agedp_flows.stage_tasks import FlowObserver, StageFailed

    flow = import_module(f"agedp_flows.{name}")

    def boom(*_: object, **__: object) -> None:
        raise ValueError("MARKhome1 used 7.7391")

    monkeypatch.setattr(
        *((flow.RunContext, "load") if name == "release_flow" else (flow.stages, "begin_calibration")), boom
    )
    arguments = ("run.toml", None) if name == "release_flow" else ("run.toml",)
    with pytest.raises(StageFailed, match="ValueError in the run file") as caught:
        flow._begin(*arguments, FlowObserver())
    assert "MARK" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_handle_shows_its_label_and_refuses_to_be_pickled() -> None:
    import pickle

    import cloudpickle

    from agedp_flows.stage_tasks import RunHandle

    handle = RunHandle("sums of homes", {"MARKhome1": 7.7391})
    assert repr(handle) == "<sums of homes>"
    assert not hasattr(handle, "__dict__")
    for dump in (pickle.dumps, cloudpickle.dumps):
        with pytest.raises(TypeError, match="stays inside its process"):
            dump(handle)


def test_the_search_finds_what_it_looks_for(ran: Ran) -> None:
    """The same search over the confidential folder finds every kind of mark, so an empty answer means something."""
    inside = " ".join(marks.of_folder(ran.marks, ran.world.confidential))
    for expected in ("true_means.parquet: number", "MARKhome", "MARKfile"):
        assert expected in inside
    one = ran.marks.patterns[0]
    for planted in (b"xMARKy", b"is 7.7391 now", one, b'"sum":' + str(struct.unpack("<q", one)[0]).encode()):
        assert ran.marks.found_in(b"before" + planted + b" after") != []
    assert ran.marks.found_in(b"a7.7391 7.73910 17.7391") == []


def test_each_row_of_the_statement_names_the_days_of_the_published_envelope(ran: Ran) -> None:
    """The model of this world is estimated from 1 to 5 February; its envelope is published without noise."""
    claim = json.loads((ran.world.release / "statement.json").read_text())
    assert {figure["conditional_days"] for figure in claim["figures"]} == {"2013-02-01 to 2013-02-05"}
    words = (ran.world.release / "STATEMENT.md").read_text()
    rows = [line for line in words.splitlines() if line.startswith("| ") and " epsilon | scope" not in line]
    rows = [line for line in rows if not set(line) <= set("|- ")]
    assert len(rows) == len(claim["figures"])
    for row in rows:
        assert "except for the days 2013-02-01 to 2013-02-05, from which the published model was estimated" in row
        assert "| always |" not in row
