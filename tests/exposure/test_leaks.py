"""Ids, file names, readings, true sums and means are searched for in everything that becomes public."""

from __future__ import annotations

import inspect
import json
import logging
import struct
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from prefect.states import Completed

from agedp.pipeline import sanitise
from agedp_data.errors import AgedpError
from agedp_flows import release_flow
from agedp_flows.stage_tasks import FlowObserver, StageFailed, StageTasks, State
from tests.exposure.marks import READINGS
from tests.exposure.worlds import LOUD, MarkedWorld, Ran, make


def test_a_run_and_a_calibration_print_and_log_nothing_confidential(ran: Ran) -> None:
    assert len(json.loads(ran.released.stdout)["released"]) == 3
    assert json.loads(ran.calibrated.stdout).keys() == {"model"}
    for seen in (ran.calibrated, ran.released):
        assert ran.marks.found_in(seen.public()) == []
    assert len(ran.released.of("log")) > 20  # SQLAlchemy's at least: every statement with what was bound to it


def test_release_folder_ledger_and_public_part_of_the_model_contain_none(ran: Ran) -> None:
    assert ran.marks.in_folder(ran.world.release) == []
    assert ran.marks.in_database(ran.world.ledger) == []  # every cell, page and journal
    public = (ran.world.folder / "model" / "public.json").read_bytes()
    assert (ran.marks.found_in(public), b"reject" in public) == ([], False)
    [report] = (ran.world.confidential / "forgetting").glob("*.html")  # for an operator's eyes, and yet of no household
    assert ran.marks.found_in(report.read_bytes()) == []
    assert not list(ran.world.release.rglob("*forgetting*"))


def test_the_search_finds_what_it_looks_for(ran: Ran) -> None:
    """The same search over the confidential folder finds every kind of mark, so an empty answer means something."""
    inside = " ".join(ran.marks.in_folder(ran.world.confidential))
    for expected in ("sums.parquet: number", "MARKhome", "MARKfile"):
        assert expected in inside
    true_sum = ran.marks.patterns[0]
    text = b'"sum":' + str(struct.unpack("<q", true_sum)[0]).encode()
    for planted in (b"xMARKy", b"is 7.7391 now", true_sum, text):
        assert ran.marks.found_in(b"before" + planted + b" after") != []
    assert ran.marks.found_in(b"a7.7391 7.73910 17.7391") == []


def test_the_other_commands_print_and_log_none(ran: Ran, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "dask", "distributed"):
        caplog.set_level(logging.DEBUG, name)
    for words in (
        "plan run.toml --json",
        "plan run.toml",
        "status run.toml --json",
        "status run.toml",
        "publish run.toml --json",
        "verify out/release --json",
        "verify out/release --ledger sqlite:///out/ledger.sqlite",
        "ledger show run.toml --json",
        "ledger verify run.toml --json",
        "ledger amend run.toml --json",
        "ledger export run.toml out/export.jsonl",
        "run run.toml",
    ):
        caplog.clear()
        status, out, err = ran.world.agedp(*words.split())
        assert (status, err, bool(out)) == (0, "", True), words
        logged = "\n".join(f"{record.getMessage()} {record.args!r}" for record in caplog.records)
        assert ran.marks.found_in(f"{out}\n{logged}") == [], words
    assert ran.marks.found_in((ran.world.folder / "out" / "export.jsonl").read_bytes()) == []
    (ran.world.folder / "out" / "export.jsonl").unlink()


def spoil(name: str, content: bytes) -> Callable[[MarkedWorld], object]:
    return lambda world: (world.folder / "incoming" / name).write_bytes(content)


def change_roster(old: str, new: str) -> Callable[[MarkedWorld], object]:
    return lambda world: world.edit((old, new), name="roster.csv")


OF_A_FILE = {
    "an unknown header": spoil("MARKfile3.csv", b"LCLid,MARKcolumn\nMARKhome1,7.7391\n"),
    "a binary file": spoil("MARKfile4.csv", b"MARKhome1\x00\x01"),
    "UTF-16": spoil("MARKfile5.csv", "LCLid,MARK\nMARKhome1,7.7391\n".encode("utf-16")),
    "a broken archive": spoil("MARKfile6.csv.gz", b"\x1f\x8bMARK"),
}
"""What stops a run before its series begins; later such a file is set apart as a whole and the night goes on."""
OTHERS = {
    "overlapping rows of the roster": (change_roster("MARKhome2,2013-02-01,\n", "MARKhome1,2013-02-01,\n"), 2),
    "a released day's roster changed": (change_roster("MARKhome6,2013-02-01,\n", ""), 3),
    "a roster of other homes": (change_roster("MARKhome", "MARKstranger"), 3),
    "another promise": (lambda world: world.edit(("epsilon_per_day = 0.5", "epsilon_per_day = 0.4")), 3),
}
FAILING = {name: (damage, 2) for name, damage in OF_A_FILE.items()} | OTHERS


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> MarkedWorld:
    return make(tmp_path_factory.mktemp("beginning") / "world")


@pytest.fixture(scope="module")
def released(unreleased: MarkedWorld, tmp_path_factory: pytest.TempPathFactory) -> MarkedWorld:
    world = unreleased.copy(tmp_path_factory.mktemp("failing") / "world")
    sanitise(world.folder / "run.toml", as_of=date(2013, 2, 4))
    return world


@pytest.mark.parametrize("case", FAILING)
def test_the_public_text_of_a_failing_run_contains_none(
    case: str, unreleased: MarkedWorld, released: MarkedWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error as Prefect or a log would get it, and nothing that hangs on to it."""
    world = (unreleased if case in OF_A_FILE else released).copy(tmp_path / "world")
    damage, status = FAILING[case]
    damage(world)
    monkeypatch.chdir(world.folder)
    with pytest.raises(AgedpError) as caught:
        sanitise("run.toml")
    error = caught.value
    assert error.exit_status == status
    for text in (str(error), repr(error), repr(error.args)):
        assert READINGS.found_in(text) == [], text
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert getattr(error, "__notes__", []) == []


def test_a_file_or_date_that_cannot_be_read_later_stops_no_night_and_is_not_public(
    released: MarkedWorld, tmp_path: Path
) -> None:
    world = released.copy(tmp_path / "world")
    dates = b"LCLid,tstp,energy(kWh/hh)\nMARKhome1,02/25/2013 00:30:00,7.7391\n"
    for damage in (*OF_A_FILE.values(), spoil("MARKfile7.csv", dates)):
        damage(world)
    assert READINGS.found_in(world.succeed("run", "run.toml", "--json")) == []
    assert READINGS.in_folder(world.release) == []


@pytest.mark.parametrize("place", ["begin", "read", "release", "artifact", "estimate"])
@pytest.mark.long
@pytest.mark.prefect
def test_a_bug_is_a_class_name_to_prefect_and_its_traceback_stays_confidential(place: str, tmp_path: Path) -> None:
    world = make(tmp_path / "world", estimated=place == "estimate")
    seen = world.run("calibrate" if place == "estimate" else "run", "run.toml", "--flow", BUG=place, **LOUD)
    assert (seen.status, "StageFailed" in seen.stderr, "MARK" in seen.stderr) == (1, True, False)
    assert "Error logging to API" not in seen.stderr  # every line was sent while the server was there
    database = world.confidential / "prefect" / "prefect.db"
    assert READINGS.in_database(database) == []
    assert b"ValueError" in database.read_bytes()
    assert READINGS.found_in(seen.public()) == []
    if place != "begin":
        assert "MARKhome1" in (world.confidential / "traceback.txt").read_text()


def test_a_bug_before_the_first_stage_leaves_a_flow_as_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise ValueError("MARKhome1 used 7.7391")

    monkeypatch.setattr(release_flow.RunContext, "load", bug)
    with pytest.raises(StageFailed, match="ValueError in the run file") as caught:
        release_flow._begin("run.toml", None, FlowObserver())
    assert "MARK" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_a_task_takes_and_returns_nothing() -> None:
    """What Prefect sees of a stage with a confidential result: a function without parameters, and its result."""
    seen: list[tuple[object, ...]] = []

    class Watched(StageTasks):
        def task(self, name: str, function: Callable[[], State]) -> Any:
            task = super().task(name, function)

            def call(**options: object) -> State:
                seen.append((task.name, [*inspect.signature(task.fn).parameters], options, task.fn()))
                return Completed()

            return call

    readings = {"MARKhome1": 7.7391}
    assert Watched(FlowObserver())("ingest", dict, readings) == readings
    assert seen == [("ingest", [], {"wait_for": [], "return_state": True}, None)]
