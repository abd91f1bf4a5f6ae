"""Bars around calls: shown on a terminal and in a notebook, and nowhere else."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

import agedp
from agedp.compute import progress_bars as module
from agedp.compute.engine_settings import SHOWN_PROGRESS
from agedp.setup.sample import sample


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("bars")
    sample("london", folder, households=4, days=6, seed=2)
    return str(folder / "input" / "*.csv")


def with_console(monkeypatch: pytest.MonkeyPatch, **options: Any) -> io.StringIO:
    written, new_bars = io.StringIO(), module.new_bars

    def bars() -> Progress:
        made = new_bars()
        made.live.console = Console(file=written, width=100, **options)
        return made

    monkeypatch.setattr(module, "new_bars", bars)
    return written


def run(files: str) -> None:
    with agedp.progress_bars():
        agedp.quantize(agedp.read(files))
    assert SHOWN_PROGRESS.get() is None


def test_a_terminal_shows_a_bar_for_each_stage_to_its_end(monkeypatch, files):
    written = with_console(monkeypatch, force_terminal=True)
    run(files)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue()).splitlines()
    for stage in ("reading", "quantizing"):
        done = [line for line in last if line.strip().startswith(stage)][-1]
        number, total = re.findall(r"(\d+)/(\d+)", done)[0]
        assert number == total != "0"


def test_a_pipe_gets_no_bars(monkeypatch, files):
    written = with_console(monkeypatch, force_terminal=False)
    run(files)
    assert written.getvalue() == ""
