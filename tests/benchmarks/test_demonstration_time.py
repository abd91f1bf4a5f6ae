"""The benchmark of `agedp demo` counts what the command and its children take, and no failed command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.demonstration import time_command

BUSY = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_processor_time_of_grandchildren_counts_and_sleep_does_not(tmp_path: Path) -> None:
    nested = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\ntime.sleep(0.5)"
    spent = time_command([sys.executable, "-c", nested], tmp_path)
    idle = time_command([sys.executable, "-c", "import time\ntime.sleep(0.5)"], tmp_path)
    assert spent.cpu_s >= 0.3
    assert spent.wall_s >= 0.8
    assert idle.wall_s >= 0.5 > idle.cpu_s


def test_a_command_that_fails_has_no_time(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        time_command([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)
