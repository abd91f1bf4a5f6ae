"""The tests' side of `server.py`: orders in, ends out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True)
class End:
    """How a run of the command ended; `passed` names the boundaries that it passed."""

    status: int
    out: str
    err: str
    passed: list[str]

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def line(self) -> str:
        """The one line on standard error; fails on a traceback or on several lines."""
        [line] = self.err.splitlines()
        assert line.startswith("agedp: "), self.err
        assert len(line) < 1000, line
        return line


class Runs:
    """A server of runs, started when it is first asked and ended by `close`."""

    def __init__(self, scratch: Path) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(_SERVER), str(scratch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def at_once(self, *orders: dict[str, Any]) -> list[End]:
        """Carry out orders at the same time."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(orders) + "\n")
        self._server.stdin.flush()
        return [End(**each) for each in json.loads(self._server.stdout.readline())]

    def one(self, order: dict[str, Any]) -> End:
        [end] = self.at_once(order)
        return end

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=30)
        if self._server.stdout is not None:
            self._server.stdout.close()
