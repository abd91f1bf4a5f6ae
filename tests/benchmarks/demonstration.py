"""How long `agedp demo`, the recipe of `make run`, takes at full size.

    python -m tests.benchmarks.demonstration [--folder DIR]

Prints wall time and processor time in seconds, the Prefect server's included. The first set-up of `.venv` is not part
of it (`python -m tests.benchmarks --install`). Without --folder a new folder is used and deleted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.source_path import source_path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class CommandTime:
    """Wall time and processor time of a command and its ended children [s]."""

    wall_s: float
    cpu_s: float


def time_command(command: Sequence[str], folder: Path) -> CommandTime:
    """Return what a command takes in a folder.

    Raises:
        CalledProcessError: it fails.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    start, cpu = time.perf_counter(), _children_seconds()
    subprocess.run(command, cwd=folder, env={**env, "PYTHONPATH": source_path()}, stdout=subprocess.DEVNULL, check=True)
    return CommandTime(time.perf_counter() - start, _children_seconds() - cpu)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.demonstration", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--folder", type=Path, help="an existing folder to work in (default: a new one)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        spent = time_command([sys.executable, "-m", "agedp_flows", "demo", "out"], chosen.folder or Path(temporary))
    sys.stdout.write(f"agedp demo: {spent.wall_s:.0f} s, {spent.cpu_s:.0f} CPU s, {os.cpu_count()} cores\n")


if __name__ == "__main__":
    main()
