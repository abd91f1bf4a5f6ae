"""One contender in a process of its own: wall and CPU time, peak memory of the process tree, or why it failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.source_path import source_path

_EVERY_S = 0.05
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one contender took at one size; `failed` says why, if it did.

    `work_s` and `cpu_s` leave out start-up (Python and imports), which is `start_s`. `peak_mb` is the largest sum over
    the process tree of the proportional set size, sampled every 50 ms, or of the root's own high-water mark if that is
    larger.
    """

    contender: str
    rows: int
    start_s: float = 0.0
    work_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    found: dict[str, Any] = field(default_factory=dict)
    failed: str = ""

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self), sort_keys=True)


def measure(
    contender: str, path: Path, *, rows: int, minutes: float = 60, module: str = "tests.benchmarks.contenders"
) -> Measured:
    """Run a contender of a module on a path and return what it took."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", module, contender, str(path)],
            stdout=out,
            stderr=err,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": source_path(), "POLARS_MAX_THREADS": "2"},
            start_new_session=True,
        )
        peak = _Peak(process.pid)
        too_long = threading.Timer(60 * minutes, os.killpg, [process.pid, signal.SIGKILL])
        too_long.start()
        peak.start()
        _, status, used = os.wait4(process.pid, 0)
        too_long.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        peak.stop()
        out.seek(0)
        err.seek(0)
        printed, said = out.read().decode(), err.read().decode(errors="replace")
    if process.returncode != 0:
        return Measured(contender, rows, failed=_why(process.returncode, said, minutes))
    told = json.loads(printed.splitlines()[-1])
    cpu_s = used.ru_utime + used.ru_stime - told.pop("start_cpu_s")
    return Measured(contender, rows, cpu_s=cpu_s, peak_mb=max(peak.most / 1e6, told.pop("own_mb")), **told)


def _why(status: int, said: str, minutes: float) -> str:
    if status == -signal.SIGKILL:
        return f"killed: out of memory, or longer than {minutes:g} minutes"
    last = [line for line in said.splitlines() if line.strip()][-1:] or [""]
    return f"exit status {status}: {last[0][:200]}"


class _Peak(threading.Thread):
    """Watches the memory of a process and of all that it starts."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._pid = pid
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(_EVERY_S):
            with suppress(psutil.Error):
                root = psutil.Process(self._pid)
                tree = (root, *root.children(recursive=True))
                self.most = max(self.most, sum(int(process.memory_full_info().pss) for process in tree))

    def stop(self) -> None:
        self._done.set()
        self.join()


def settled(seconds: float = 0.5) -> None:
    """Let the disk finish what the contender before wrote."""
    os.sync()
    time.sleep(seconds)
