"""Non-interference: what Prefect stores is a function of run file, model's public part, roster counts and ledger.

What a plain run publishes and prints: `tests/exposure/test_pairs.py`; first releases that are refused:
`tests/exposure/test_refusals.py`.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agedp_flows import flow_scripts
from tests.agedp_flows.serving import environment
from tests.agedp_flows.worlds import ESTIMATED, make

LOUD = {"PREFECT_LOGGING_LEVEL": "DEBUG", "PREFECT_LOGGING_TO_API_ENABLED": "true"}
OF_A_RUN = {
    "flow": "select name, parameters, state_name, state_type from flow_run where id = ?",
    "task": "select name, state_name, state_type, task_inputs, id from task_run where flow_run_id = ? order by name",
    "flow states": "select type, name, message, data from flow_run_state where flow_run_id = ? order by name, message",
    "task states": "select s.type, s.name, s.message, s.data from task_run_state s join task_run t on s.task_run_id = "
    "t.id where t.flow_run_id = ? order by t.name, s.name, s.message",
    "log": "select name, level, message from log where flow_run_id = ? order by message",
    "artifact": "select key, type, description, data from artifact where flow_run_id = ? order by key",
}
EVENTS = (
    "select event, resource, payload from events where event like 'agedp%' or event like 'prefect.asset%' "
    "order by occurred"
)
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=-)[0-9a-f]{3}(?=')")
UPSTREAM = {
    "load": set(), "quantize": {"load"}, "estimate": {"quantize"}, "bound": {"estimate"},
}, {
    "plan": set(), "ingest": {"plan"}, "aggregate": {"ingest"}, "release": {"aggregate"}, "publish": {"release"},
    "report": {"publish"},
}  # fmt: skip


@pytest.mark.prefect
def test_prefect_stores_the_same_of_both_worlds(tmp_path: Path) -> None:
    """Of a calibration, equal but for the model; of a release whose last day is refused; and nothing confidential."""
    worlds = [
        make(tmp_path / str(i), seed=i, mode="rehearsal", model=ESTIMATED, method="tight", total="2.5") for i in (1, 2)
    ]
    command = [sys.executable, flow_scripts.__file__, "pair", *(str(world.folder) for world in worlds)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(**LOUD), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert [status for status, _, _ in said["ended"]] == [0, 0, 3, 3], done.stderr
    raw = b"".join(path.read_bytes() for path in (tmp_path / "server").rglob("*") if path.is_file())
    assert [mark for mark in (b"CANARY", b"house-a") if mark in raw] == []
    with sqlite3.connect(tmp_path / "server" / "prefect.db") as connection:
        runs = [run for (run,) in connection.execute("select id from flow_run order by start_time")]
        hidden = [*(str(world.folder) for world in worlds), *(digest[:16] for digest in said["digests"])]
        calibrated, released = ([stored(connection, run, hidden) for run in part] for part in (runs[:2], runs[2:]))
        events = connection.execute(EVENTS).fetchall()
    connection.close()
    for pair, expected in zip((calibrated, released), UPSTREAM, strict=True):
        assert upstream(pair[0]) == expected
        if expected is UPSTREAM[0]:  # the table of the model's bounds is its public part
            assert [row.pop() for world in pair for row in world["artifact"]]
        assert pair[0] == pair[1]
    assert any("3 states per household" in str(line) for line in calibrated[0]["log"])
    assert any("5 days released, 0 skipped. Epsilon per day: at most 0.5." in str(row) for row in released[0]["log"])
    half = len(events) // 2
    assert masked(events[:half], hidden) == masked(events[half:], hidden)
    assert {event for event, _, _ in events} == {"agedp.release.published", "prefect.asset.materialization.succeeded"}
    assert worlds[0].published() == worlds[1].published()
    sums = [(world.folder / "out" / "confidential" / "sums.parquet").read_bytes() for world in worlds]
    assert sums[0] != sums[1]  # so the comparison means something


def stored(connection: sqlite3.Connection, run: str, hidden: list[str]) -> dict[str, list[list[str]]]:
    """Return what Prefect stores of a run, but for its own ids and the worlds' folders and models."""
    rows = {name: connection.execute(query, (run,)).fetchall() for name, query in OF_A_RUN.items()}
    names = {str(row[-1]): str(row[0]) for row in rows["task"]}
    rows["task"] = [(*row[:3], ID.sub(lambda match: names.get(match[0], "<id>"), row[3])) for row in rows["task"]]
    return {name: masked(table, hidden) for name, table in rows.items()}


def masked(rows: list[tuple[object, ...]], hidden: list[str]) -> list[list[str]]:
    pattern = re.compile("|".join([*map(re.escape, hidden), ID.pattern]))
    return [[pattern.sub("", str(cell)) for cell in row] for row in rows]


def upstream(run: dict[str, list[list[str]]]) -> dict[str, set[str]]:
    """Return for every task the tasks that it waits for, as Prefect draws the arrows."""
    names = {task[0] for task in run["task"]}
    return {task[0]: {name for name in names if f'"id": "{name}"' in task[3]} for task in run["task"]}
