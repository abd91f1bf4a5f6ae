"""Non-interference: what leaves the house is a function of run file, model's public part, roster counts and ledger."""

from __future__ import annotations

import re
import shutil
import sqlite3
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from agedp_data.model import DIGEST_FILE, PUBLIC_FILE
from tests.agedp_flows.worlds import DECLARED, ESTIMATED, World, make, temporal_world
from tests.exposure.pairs import with_fixed_noise


def _share_public_part(one: World, other: World) -> None:
    for name in (PUBLIC_FILE, DIGEST_FILE):
        shutil.copy(one.folder / "model" / name, other.folder / "model" / name)


@pytest.mark.parametrize("notion", ["age-dependent", "temporal"])
def test_two_worlds_publish_the_same_bytes(tmp_path: Path, notion: str) -> None:
    """Under an estimated model, or under a kernel with a budget; what else a pair may be is in tests/exposure."""
    if notion == "temporal":
        one, other = (temporal_world(tmp_path / str(i), seed=i, budget="best") for i in (1, 2))
    else:
        one, other = (make(tmp_path / str(i), seed=i, mode="archive", model=ESTIMATED, method="tight") for i in (1, 2))
        for world in (one, other):
            assert told(world, "calibrate", "run.toml")[0] == 0
        _share_public_part(one, other)
    for words in (("plan", "run.toml", "--notions", "--json"), ("run", "run.toml", "--json")):
        ended = [told(world, *words) for world in (one, other)]
        assert ended[0] == ended[1]
        # the total of epsilon_per_day allows five of six days: the sixth is refused, in both worlds alike
        assert ended[0][0] == (3 if (words[0], notion) == ("run", "age-dependent") else 0), ended
    assert one.published() == other.published()
    inside = [(world.folder / "out" / "confidential" / "sums.parquet").read_bytes() for world in (one, other)]
    assert inside[0] != inside[1]  # so the comparison means something


def told(world: World, *words: str) -> tuple[int, str, str]:
    return with_fixed_noise(world.folder, *words, now=datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))


@pytest.mark.prefect
def test_prefect_stores_the_same_of_both_worlds(tmp_path: Path) -> None:
    """Calibration, release and refusal: equal but for the public part of the model, and nothing confidential."""
    worlds = [make(tmp_path / str(i), seed=i, mode="rehearsal", model=ESTIMATED, method="tight") for i in (1, 2)]
    for world in worlds:
        run = world.run("calibrate", "run.toml", "--flow", **LOUD)
        assert run.returncode == 0, run.stderr
    stored = [_stored(world, without_model=True) for world in worlds]
    assert stored[0] == stored[1]
    assert _upstream(stored[0]) == {
        "load": set(), "quantize": {"load"}, "estimate": {"load", "quantize"},
        "bound": {"load", "quantize", "estimate"},
    }  # fmt: skip
    assert any("3 states per household" in str(line) for line in stored[0]["log"])
    _share_public_part(worlds[0], worlds[1])
    for world in worlds:
        shutil.rmtree(world.folder / "out" / "confidential" / "prefect")
        run = world.run("run", "run.toml", "--flow", "--as-of", "2013-02-06", **LOUD)
        assert run.returncode == 0, run.stderr
    stored = [_stored(world) for world in worlds]
    assert stored[0] == stored[1]
    assert _upstream(stored[0]) == {
        "plan": set(), "ingest": {"plan"}, "aggregate": {"plan", "ingest"},
        "release": {"plan", "aggregate"}, "publish": {"release"}, "report": {"aggregate", "publish"},
    }  # fmt: skip
    assert any("days released, 0 skipped. Epsilon per day: at most 0.5." in str(line) for line in stored[0]["log"])
    assert {event[0] for event in stored[0]["event"]} == {
        "agedp.release.published", "prefect.asset.materialization.succeeded",
    }  # fmt: skip
    assert worlds[0].published() == worlds[1].published()
    # and of a run that is refused: the total ends before the period does
    runs = [world.run("run", "run.toml", "--flow", **LOUD) for world in worlds]
    assert [run.returncode for run in runs] == [3, 3], runs[0].stderr
    assert _stored(worlds[0]) == _stored(worlds[1])
    assert worlds[0].published() == worlds[1].published()


@pytest.mark.prefect
def test_an_error_crosses_into_prefect_without_the_name_of_a_file(tmp_path: Path) -> None:
    world = make(tmp_path / "world", seed=1, mode="archive", model=DECLARED, method="total_variation")
    (world.folder / "incoming" / "CANARY-flat-7.csv").write_bytes(b"LCLid,secret\n")
    run = world.run("run", "run.toml", "--flow")
    assert run.returncode == 2
    assert "CANARY-flat-7.csv" in run.stderr  # the terminal may say it
    assert not (world.folder / "out" / "release").exists()
    database = world.folder / "out" / "confidential" / "prefect"
    for path in database.rglob("*"):
        assert not path.is_file() or b"CANARY" not in path.read_bytes()


LOUD = {"PREFECT_LOGGING_LEVEL": "DEBUG", "PREFECT_LOGGING_TO_API_ENABLED": "true"}
_QUERIES = {
    "flow": "select name, parameters, state_name, state_type from flow_run",
    "task": "select name, state_name, state_type, task_inputs, id from task_run order by name",
    "flow states": "select type, name, message, data from flow_run_state order by name, message",
    "task states": "select type, name, message, data from task_run_state order by name, message",
    "log": "select name, level, message from log where level >= 20 order by message",
    "artifact": "select key, type, data, description from artifact order by key",
    "event": "select event, resource, payload from events where event like 'agedp%' or event like 'prefect.asset%'",
}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _stored(world: World, *, without_model: bool = False) -> dict[str, list[tuple[str, ...]]]:
    """What Prefect stores but for its own ids and the world's own folder; nothing confidential is in its files."""
    home = world.folder / "out" / "confidential" / "prefect"
    raw = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert [mark for mark in (b"CANARY", b"house-a") if mark in raw] == []
    with sqlite3.connect(home / "prefect.db") as connection:
        rows = {name: connection.execute(query).fetchall() for name, query in _QUERIES.items()}
    model = sha256((world.folder / "model" / "public.json").read_bytes()).hexdigest()[:16]
    hidden = [str(world.folder), *([model] if without_model else [])]
    names = {str(row[-1]): str(row[0]) for row in rows["task"]}
    rows["task"] = [(*row[:3], _ID.sub(lambda found: names.get(found[0], "<id>"), row[3])) for row in rows["task"]]
    kept = {name: [tuple(_masked(str(cell), hidden) for cell in row) for row in table] for name, table in rows.items()}
    if without_model:
        kept["artifact"] = [(key, kind, description) for key, kind, _, description in kept["artifact"]]
    return kept


def _upstream(stored: dict[str, list[tuple[str, ...]]]) -> dict[str, set[str]]:
    """Return for every task the tasks it waits for, as Prefect draws the arrows."""
    names = {task[0] for task in stored["task"]}
    return {task[0]: {name for name in names if f'"id": "{name}"' in task[3]} for task in stored["task"]}


def _masked(text: str, hidden: list[str]) -> str:
    for each in hidden:
        text = text.replace(each, "")
    return _ID.sub("<id>", text)
