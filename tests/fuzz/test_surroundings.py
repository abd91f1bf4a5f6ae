"""Whatever surrounds a command, closed streams, a full disk, an odd environment or Ctrl-C, no traceback is seen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import beside_verdict
from tests.source_path import source_path

COMMANDS = {
    "help of one": ("run", "--help"), "version": ("--version",), "unknown": ("rnu",),
    "init": ("init", "input", "--in", "own"), "plan": ("plan", "run.toml"), "run": ("run", "run.toml"),
    "publish": ("publish", "run.toml"), "verify": ("verify", "release", "--ledger", "sqlite:///ledger.sqlite"),
    "ledger show": ("ledger", "show", "run.toml"),
    "ledger export": ("ledger", "export", "run.toml", "new.jsonl"),
    "ledger recover": ("ledger", "recover", "release", "--to", "sqlite:///again.sqlite"),
}  # fmt: skip
SURROUNDINGS: list[tuple[str, dict[str, str | None]]] = [
    *((streams, {}) for streams in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full", "| true")),
    ("", {"HOME": None}), ("", {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/x"}), ("", {"TZ": "Nowhere/Land"}),
    ("", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ("", {"LC_ALL": "xx_XX.ISO-8859-9", "PYTHONIOENCODING": "ascii"}), ("", {"COLUMNS": "1", "LINES": "1"}),
    ("", {"COLUMNS": "-3", "LINES": "x"}), ("", {"TERM": "nothing", "FORCE_COLOR": "1"}),
    ("", {"TMPDIR": "/nowhere"}), ("", {"PREFECT_API_URL": "nonsense"}),
]  # fmt: skip


def check(words: tuple[str, ...], folder: Path, streams: str, given: dict[str, str | None]) -> None:
    """Run the command in a process of its own, a shell arranging its streams, and require that it ends well."""
    script = f'"$@" {streams}; exit ${{PIPESTATUS[0]}}'
    # by `env`, so that the shell itself says nothing about an odd environment
    removed = [f"--unset={name}" for name, value in given.items() if value is None]
    added = [f"{name}={value}" for name, value in given.items() if value is not None]
    command = ["env", *removed, *added, sys.executable, "-u", "-m", "agedp_flows", *words]
    done = subprocess.run(
        ["bash", "-c", script, "", *command], cwd=folder, env={**os.environ, "PYTHONPATH": source_path()},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip
    lost = "No space left on device" if streams == ">/dev/full" and words != ("rnu",) else ""
    lines = beside_verdict(done.stderr)
    if lost:
        assert lines == f"agedp: standard output cannot be written ({lost}); completed work is kept\n"
    if streams == "| true" and words != ("rnu",):  # as with `| head`: its reader has read enough
        assert lines == ""
    assert lines == "" or (lines.startswith("agedp: ") and lines.count("\n") == 1), done.stderr
    assert done.returncode == (2 if lost or words == ("rnu",) else 0), (words, done.stderr)


@pytest.mark.parametrize(
    ("name", "streams", "given"),
    [
        ("help of one", ">/dev/full", {}),
        ("plan", "| true", {}),
        ("run", "2>&-", {}),
        (
            "help of one",
            "",
            {"COLUMNS": "1", "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        ),
        *(pytest.param(name, *each, marks=pytest.mark.long) for each in SURROUNDINGS for name in COMMANDS),
    ],
)
def test_in_odd_surroundings_a_command_does_what_it_does(name, streams, given, lived, tmp_path):
    check(COMMANDS[name], shutil.copytree(lived, tmp_path / "house"), streams, given)


STARTED = """
import os, sys
import agedp_flows.__main__

class Begun:
    def find_spec(self, name, *more):
        if name == "agedp_flows.cli.app":
            os.write(1, b"begun\\n")

sys.meta_path.insert(0, Begun())
agedp_flows.__main__.main()
"""
"""Tells when the command begins its imports: what Python itself does before is not the command's."""


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("run", 0.3), *(pytest.param(name, i / 10, marks=pytest.mark.long) for name in COMMANDS for i in range(0, 40, 2))],
)
def test_told_to_stop_a_command_says_so_in_one_line(name, seconds, lived, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, *COMMANDS[name]],
        cwd=shutil.copytree(lived, tmp_path / "house"), env={**os.environ, "PYTHONPATH": source_path()},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as run:  # fmt: skip
        assert run.stdout.readline() == b"begun\n"
        time.sleep(seconds)
        os.killpg(run.pid, signal.SIGINT)
        errors = run.communicate(timeout=300)[1].decode()
    if run.returncode == 130:
        assert errors.startswith("agedp: stopped")
        assert errors.count("\n") == 1
    elif name != "unknown":  # it had said everything before
        assert (run.returncode, errors) in ((0, ""), (-signal.SIGINT, ""))
