"""One contender in a process of its own: wall and CPU time, peak memory of the process tree, or why it failed.

A contender keeps its compiled modules, as the command does where it is installed: PYTHONDONTWRITEBYTECODE is unset for
it. Else each start would compile Python's source anew, which costs more than a night with nothing due.
"""

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

MEMORY_GB = 12.0
_EVERY_S = 0.05
ROOT = Path(__file__).parents[1]
"""The checkout; its packages are those that are measured."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one contender took at one size; `failed` says why, if it did.

    `work_s` and `cpu_s` leave out start-up (Python and imports), which is `start_s` and `start_cpu_s`. `peak_mb` is the
    largest sum over the process tree of the proportional set size, sampled every 50 ms, or of the root's own high-water
    mark if that is larger; `start_mb` what the process held before its work began. `others` is the share of the
    processors that other programs used meanwhile. `size` is the nominal number of rows, by which contenders are
    compared, 0 for nights; `commit` and `day` say what was measured, and when.
    """

    contender: str
    rows: int
    start_s: float = 0.0
    work_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    found: dict[str, Any] = field(default_factory=dict)
    failed: str = ""
    start_cpu_s: float = 0.0
    others: float = 0.0
    start_mb: float = 0.0
    size: int = 0
    commit: str = ""
    day: str = ""

    @property
    def wall(self) -> float:
        """Return the wall time, start-up included."""
        return self.start_s + self.work_s

    @property
    def cpu(self) -> float:
        """Return the CPU time, start-up included."""
        return self.start_cpu_s + self.cpu_s

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self), sort_keys=True)


def measure(
    contender: str,
    path: Path,
    *,
    rows: int,
    minutes: float = 60,
    module: str = "benchmarks.contenders",
    words: tuple[str, ...] | None = None,
    memory_gb: float = MEMORY_GB,
    packages: Path = ROOT,
) -> Measured:
    """Run a contender of a module on a path and return what it took; `words` replace its name on the command line.

    The contender is that of this checkout, agedp that of the checkout `packages`.
    """
    path_of_modules = f"{source_path(packages)}{os.pathsep}{ROOT}"
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        busy, begun = _busy_s(), time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", module, *(words or (contender,)), str(path)],
            stdout=out,
            stderr=err,
            cwd=ROOT,
            env=environment(POLARS_MAX_THREADS="2", PYTHONPATH=path_of_modules, PYTHONSAFEPATH="1"),
            start_new_session=True,
        )
        watch = _Watch(process.pid, memory_gb * 1e9, minutes * 60)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watch.stop()
        took, busy = time.perf_counter() - begun, _busy_s() - busy
        out.seek(0)
        err.seek(0)
        printed, messages = out.read().decode(), err.read().decode(errors="replace")
    others = max(0.0, busy - used.ru_utime - used.ru_stime) / (took * (os.cpu_count() or 1))
    if process.returncode != 0:
        failed = watch.stopped or _reason(process.returncode, messages)
        return Measured(contender, rows, work_s=took, peak_mb=watch.most / 1e6, failed=failed, others=others)
    own = json.loads(printed.splitlines()[-1])
    total_cpu_s = used.ru_utime + used.ru_stime
    return Measured(
        contender,
        rows,
        start_s=max(own["begun"] - begun, 0.0),
        work_s=own["work_s"],
        cpu_s=total_cpu_s - own["start_cpu_s"],
        peak_mb=max(watch.most / 1e6, own["own_mb"]),
        found=own["found"],
        start_cpu_s=own["start_cpu_s"],
        others=others,
        start_mb=own.get("start_mb", 0.0),
    )


def source_path(root: Path = ROOT) -> str:
    """Return the PYTHONPATH of a checkout."""
    return os.pathsep.join(str(root / folder) for folder in ("", "pipelines", "flows"))


def environment(**further: str) -> dict[str, str]:
    """Return the environment of a measured process: its modules are those of this checkout, and compiled once."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPATH": source_path(), **further}


def _reason(status: int, messages: str) -> str:
    if status == -signal.SIGKILL:
        return "killed: out of memory"
    last = [line for line in messages.splitlines() if line.strip()][-1:] or [""]
    return f"exit status {status}: {last[0][:200]}"


def _busy_s() -> float:
    """Return how long all processors together were not idle, whoever used them."""
    times = psutil.cpu_times()
    return float(sum(times[:3]) + sum(times[5:8]))


class _Watch(threading.Thread):
    """Watches the memory of a process and of all that it starts, and ends them beyond a bound or after a time."""

    def __init__(self, pid: int, bound: float, seconds: float) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.stopped = ""
        self._pid = pid
        self._bound = bound
        self._seconds = seconds
        self._ended = threading.Event()

    def run(self) -> None:
        begun = time.monotonic()
        while not self._ended.wait(_EVERY_S):
            with suppress(psutil.Error):
                root = psutil.Process(self._pid)
                tree = (root, *root.children(recursive=True))
                self.most = max(self.most, sum(int(process.memory_full_info().pss) for process in tree))
            if self.most > self._bound:
                self._stop_all(f"stopped at {self._bound / 1e9:g} GB of memory")
            elif time.monotonic() - begun > self._seconds:
                self._stop_all(f"stopped: longer than {self._seconds / 60:g} minutes")

    def _stop_all(self, reason: str) -> None:
        self.stopped = self.stopped or reason
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def settled(seconds: float = 0.5) -> None:
    """Let the disk finish what the contender before wrote."""
    os.sync()
    time.sleep(seconds)
