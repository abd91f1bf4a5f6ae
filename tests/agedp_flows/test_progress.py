"""Bars on a terminal, for people: stage names and numbers, never a household or a file."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agedp_flows.worlds import DECLARED, World, make

COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make(tmp_path / "world", seed=1, mode="archive", model=DECLARED, method="total_variation")
    made.edit(("epsilon_total = 2.5", "epsilon_total = 3"))
    return made


def at_a_terminal(world: World, *words: str, terminal: bool = True) -> tuple[str, str, int]:
    """Run the command; return what the terminal on its standard error showed, its standard output and exit status."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "agedp_flows.cli.app", *words],
        stdout=subprocess.PIPE,
        stderr=theirs if terminal else subprocess.PIPE,
        cwd=world.folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    shown = b""
    try:
        while terminal and (read := os.read(ours, 65536)):
            shown += read
    except OSError:  # what Linux answers when the other end is closed
        pass
    out, err = child.communicate(timeout=120)
    os.close(ours)
    return COLOURS.sub("", (shown + (err or b"")).decode()), out.decode(), child.returncode


def test_a_run_shows_a_bar_per_stage_and_no_name_of_a_household_or_file(world: World) -> None:
    shown, out, status = at_a_terminal(world, "run", "run.toml")
    assert (status, "released now" in out) == (0, True)
    stages = [words for words in ("hashing files", "opening files", "reading", "summing days") if words in shown]
    assert len(stages) == 4
    done = re.findall(r"reading .*?(\d+)/(\d+)", shown)[-1]
    assert done[0] == done[1] != "0"
    names = [path.name for path in (world.folder / "incoming").iterdir()]
    assert names
    homes = (world.folder / "roster.csv").read_text().split("\n")[1].split(",")[0]
    assert not [name for name in (*names, homes) if name in shown]


def test_nothing_is_shown_for_programs_or_without_a_terminal(world: World) -> None:
    for words, terminal, prints in ((["--json"], True, True), (["--quiet"], True, False), ([], False, True)):
        shown, out, status = at_a_terminal(world, "run", "run.toml", *words, terminal=terminal)
        assert (shown, status, bool(out)) == ("", 0, prints), words


@pytest.mark.prefect
def test_a_flow_on_a_cluster_of_its_own_shows_its_bars_and_sums_the_same(world: World) -> None:
    import pyarrow.parquet as pq

    run_file, sums = world.folder / "run.toml", world.folder / "out/confidential/sums.parquet"
    assert at_a_terminal(world, "run", "run.toml", "--quiet")[2] == 0
    expected = pq.read_table(sums)
    run_file.write_text(run_file.read_text().replace("out/", "again/") + '\n[engine]\nscheduler = "local-cluster"\n')
    shown, _, status = at_a_terminal(world, "run", "run.toml", "--flow")
    assert status == 0, shown
    assert "reading" in shown
    assert pq.read_table(world.folder / "again/confidential/sums.parquet").equals(expected)
    assert not list(world.folder.rglob("dask-*"))


def test_a_dashboard_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from rich.console import Console
    from rich.progress import Progress

    from agedp_flows.cli import terminal as progress

    text = io.StringIO()
    with Progress(console=Console(file=text, width=100)) as shown:
        told = progress._reporter(shown)
        assert told.dashboard is not None
        for _ in range(3):
            told.dashboard("http://127.0.0.1:8787/status")
    assert text.getvalue().count("dashboard of the cluster: http://127.0.0.1:8787/status") == 1
