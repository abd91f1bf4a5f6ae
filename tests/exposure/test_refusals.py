"""Non-interference of refused first releases: whatever the cause, equal public text, `--json`, logs and Prefect."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agedp.pipeline import sanitise
from agedp_data.errors import REFUSED_INPUT, PreflightFailed
from tests.agedp.preflight.test_findings import HOMES, REFUSED, Line, kwh, sound, text, write
from tests.agedp_flows import flow_scripts
from tests.agedp_flows.serving import environment
from tests.agedp_flows.test_non_interference import stored
from tests.exposure.pairs import with_fixed_noise
from tests.exposure.worlds import LOUD

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
RUN = """
version = 1
[input]
dataset = "long"
files = ["meters.csv"]
accept = ["negative"]
[input.columns]
household = "meter"
time = "at"
time_format = "%Y-%m-%d %H:%M"
stamp = "start"
zone = "UTC"
day_zone = "UTC"
energy = "use"
unit = "kWh"
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
[population]
name = "homes"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "archive"
first_day = 2024-01-08
last_day = 2024-01-11
[series.daily_mean]
statistic = "mean"
clamp_kwh = 50
[promise]
notion = "classical"
epsilon_per_day = 9
max_day_epsilon = 9
epsilon_total = "unlimited"
accept = ["useless", "total", "no-credit"]
"""
CAUSES: dict[str, tuple[Line, str]] = {
    "channels": (REFUSED["two channels"][0], "channels: 10 of 20 households"),
    "share of rows": (text(lambda wh: kwh(-wh if wh < 600 else wh)), "max_rejected_share = 0.2 is exceeded"),
    "roster": (lambda *of: [f"X{line}" for line in sound(*of)], "are roster and files of the same population?"),
    "hours": (lambda *of: sound(*of) if of[1].minute == 0 else [], "readings are 60 minutes apart"),
    "no row": (lambda *of: [], "the files contain no row of data"),
    "a unit": (REFUSED["a unit after the number"][0], '"kWh" after the number'),
    "another year": (lambda home, at, wh: sound(home, at.replace(year=2023), wh), "the files hold no reading of a due"),
    "usable days": (lambda *of: sound(*of) if of[1].hour == 7 else [], "household of the roster has a usable day"),
    "absent day": (lambda *of: sound(*of) if of[1].day != 9 else [], "skip_days"),
    "dates": (lambda home, at, wh: [f"M{home:02},{at:%d.%m.%Y %H:%M},1"], "time_format"),
    "cells": (lambda *of: [f"{line}," for line in sound(*of)], "each ends with a separator"),
}
"""Lines of the twenty households, and what the terminal says of them; the first five go through Prefect as well."""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a folder for each cause; run file, roster and the name of the file are the same."""
    folder = tmp_path_factory.mktemp("refused")
    for name, (line, _) in CAUSES.items():
        (folder / name).mkdir()
        write(folder / name, line)
        (folder / name / "run.toml").write_text(RUN)
        rows = [f"M{home:02},2024-01-08," for home in range(HOMES)]
        (folder / name / "roster.csv").write_text("\n".join(["household_id,from,to", *rows, ""]))
    return {name: folder / name for name in CAUSES}


def test_a_plain_run_prints_and_logs_the_same_of_every_cause(
    worlds: dict[str, Path], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = {}
    for name, folder in worlds.items():
        caplog.clear()
        ended = [with_fixed_noise(folder, verb, "run.toml", "--json", now=NOW) for verb in ("plan", "run")]
        assert [(end.status, CAUSES[name][1] in end.err) for end in ended] == [(0, False), (2, True)], ended
        record = json.loads((folder / "out/confidential/preflight.json").read_text())
        assert any(CAUSES[name][1] in f"{each['check']}: {each['result']}" for each in record["findings"]), record
        monkeypatch.chdir(folder)
        with pytest.raises(PreflightFailed) as caught:
            sanitise("run.toml")
        assert str(caught.value) == REFUSED_INPUT
        seen[name] = [end.out for end in ended], caplog.text.replace(str(folder), "")
    assert {name: value == seen["channels"] for name, value in seen.items()} == dict.fromkeys(CAUSES, True)


@pytest.mark.prefect
@pytest.mark.long
def test_prefect_stores_the_same_of_every_cause(worlds: dict[str, Path], tmp_path: Path) -> None:
    """The fixed sentence, and the states and number of the tasks: first rows end the task that everything else ends."""
    names = list(CAUSES)[:5]
    folders = [str(worlds[name]) for name in names]
    command = [sys.executable, flow_scripts.__file__, "refusals", *folders]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(**LOUD), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, (status, out, err) in zip(names, json.loads(done.stdout.splitlines()[-1]), strict=True):
        assert (name, status, out, CAUSES[name][1] in err) == (name, 2, "", True), err
    with sqlite3.connect(tmp_path / "server" / "prefect.db") as connection:
        runs = [run for (run,) in connection.execute("select id from flow_run order by start_time")]
        found = [stored(connection, run, folders) for run in runs]
    connection.close()
    assert REFUSED_INPUT in str(found[0]["flow states"])
    assert [task[:3] for task in found[0]["task"]] == [
        ["aggregate", "Failed", "FAILED"], ["ingest", "Completed", "COMPLETED"], ["plan", "Completed", "COMPLETED"],
    ]  # fmt: skip
    for name, world in zip(names, found, strict=True):
        assert world == found[0], name
