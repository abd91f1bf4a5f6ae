"""Non-interference: what leaves the house is a function of run file, model's public part, roster counts and ledger."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.flows.worlds import DECLARED, ESTIMATED, World, make


def two_worlds(tmp_path: Path, *, mode: str, model: str, method: str) -> tuple[World, World]:
    one, other = (make(tmp_path / str(seed), seed=seed, mode=mode, model=model, method=method) for seed in (1, 2))
    if model == ESTIMATED:
        assert one.run("calibrate", "run.toml").returncode == 0
        assert other.run("calibrate", "run.toml").returncode == 0
        shutil.copy(one.folder / "model" / "public.json", other.folder / "model" / "public.json")
    return one, other


@pytest.mark.parametrize("mode", ["archive", "rehearsal"])
@pytest.mark.parametrize(("model", "method"), [(DECLARED, "total_variation"), (ESTIMATED, "tight")])
def test_two_worlds_publish_the_same_bytes(tmp_path: Path, mode: str, model: str, method: str) -> None:
    one, other = two_worlds(tmp_path, mode=mode, model=model, method=method)
    runs = [world.run("run", "run.toml", "--json") for world in (one, other)]
    # the total allows five of six days: the sixth is refused, in both worlds alike
    assert [run.returncode for run in runs] == [3, 3], runs[0].stderr
    assert (runs[0].stdout, runs[0].stderr) == (runs[1].stdout, runs[1].stderr)
    assert one.published() == other.published()
    plans = [world.run("plan", "run.toml", "--json") for world in (one, other)]
    assert plans[0].stdout == plans[1].stdout
    tables = [world.run("plan", "run.toml", "--notions", "--json") for world in (one, other)]
    assert tables[0].returncode == 0, tables[0].stderr
    assert tables[0].stdout == tables[1].stdout


def test_the_worlds_do_differ_inside(tmp_path: Path) -> None:
    one, other = two_worlds(tmp_path, mode="archive", model=DECLARED, method="total_variation")
    for world in (one, other):
        world.run("run", "run.toml")
    inside = [(world.folder / "out" / "confidential" / "sums.parquet").read_bytes() for world in (one, other)]
    assert inside[0] != inside[1]


@pytest.mark.prefect
def test_prefect_is_told_the_same_of_both_worlds_and_nothing_confidential(tmp_path: Path) -> None:
    worlds = two_worlds(tmp_path, mode="rehearsal", model=DECLARED, method="total_variation")
    told = []
    for world in worlds:
        run = world.run("run", "run.toml", "--flow", "--as-of", "2013-02-06")
        assert run.returncode == 0, run.stderr
        database = world.folder / "out" / "confidential" / "prefect" / "prefect.db"
        told.append(_told(database))
        raw = b"".join(path.read_bytes() for path in database.parent.rglob("*") if path.is_file())
        for canary in (b"CANARY", b"house-a"):
            assert canary not in raw
    assert worlds[0].published() == worlds[1].published()
    assert told[0] == told[1]
    # and of a run that is refused: the total ends before the period does
    runs = [world.run("run", "run.toml", "--flow") for world in worlds]
    assert [run.returncode for run in runs] == [3, 3], runs[0].stderr
    told = [_told(world.folder / "out" / "confidential" / "prefect" / "prefect.db") for world in worlds]
    assert told[0] == told[1]
    assert worlds[0].published() == worlds[1].published()


@pytest.mark.prefect
def test_an_error_crosses_into_prefect_without_the_name_of_a_file(tmp_path: Path) -> None:
    world, _ = two_worlds(tmp_path, mode="archive", model=DECLARED, method="total_variation")
    (world.folder / "incoming" / "CANARY-flat-7.csv").write_bytes(b"LCLid,secret\n")
    run = world.run("run", "run.toml", "--flow")
    assert run.returncode == 2
    assert "CANARY-flat-7.csv" in run.stderr  # the terminal may say it
    assert not (world.folder / "out" / "release").exists()
    database = world.folder / "out" / "confidential" / "prefect"
    for path in database.rglob("*"):
        assert not path.is_file() or b"CANARY" not in path.read_bytes()


def _told(database: Path) -> dict[str, list[tuple[object, ...]]]:
    queries = {
        "flow": "select name, parameters, state_name, state_type from flow_run",
        "task": "select name, state_name, state_type, task_inputs from task_run order by name",
        "flow states": "select type, name, message, data from flow_run_state order by name, message",
        "task states": "select type, name, message, data from task_run_state order by name, message",
        "log": "select name, level, message from log order by message",
        "artifact": "select key, type, data, description from artifact order by key",
    }
    world = str(database.parents[3])  # the run file's own folder is in the link to the report
    with sqlite3.connect(database) as connection:
        found = {name: connection.execute(query).fetchall() for name, query in queries.items()}
    return {name: [tuple(str(cell).replace(world, "") for cell in row) for row in rows] for name, rows in found.items()}
