"""The `agedp` command in this process: its exit status, and the one line it says when it refuses."""

from __future__ import annotations

import io
import sys

import pytest

from agedp_flows.cli.app import main


def agedp(monkeypatch: pytest.MonkeyPatch, *words: str, answer: str = "") -> int:
    """Run the command with `answer` typed in and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["agedp", *words])
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str, status: int) -> str:
    """Run the command, require one line and this status, and return the line."""
    capsys.readouterr()
    assert agedp(monkeypatch, *words) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert len(lines) == 1, shown.err
    assert lines[0].startswith("agedp: ")
    return lines[0]
