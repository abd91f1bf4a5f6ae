"""One small measurement in a process of its own, with the packages of the commit that is compared.

    python -P compared_job.py JOB FOLDER

`compare` runs this file of its own commit for both sides; the packages come from PYTHONPATH. So only calls stand here
that every commit since 0.2 has.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def start(_: Path) -> None:
    """Start-up of a run: the interpreter and all that a run imports."""
    import_module("agedp.pipeline")


def run(folder: Path) -> None:
    """A run from nothing: parse, store, sum, release, publish."""
    shutil.rmtree(folder / "run" / "out", ignore_errors=True)
    import_module("agedp.pipeline").sanitise(folder / "run" / "run.toml")


def again(folder: Path) -> None:
    """The same run once more, with nothing due."""
    import_module("agedp.pipeline").sanitise(folder / "run" / "run.toml")


def calibrate(folder: Path) -> None:
    """A calibration from nothing."""
    shutil.rmtree(folder / "calibrate" / "out", ignore_errors=True)
    import_module("agedp.calibration_pipeline").calibrate(folder / "calibrate" / "run.toml")


def planted(_: Path) -> None:
    """A fixed amount of work that a file of the commit states: for the tests of `compare` itself."""
    text = b"x" * 4096
    for _number in range(1000 * int(Path("planted.txt").read_text())):
        hashlib.sha256(text).digest()


JOBS: dict[str, Callable[[Path], None]] = {
    "start": start,
    "run": run,
    "run again": again,
    "calibrate": calibrate,
    "planted": planted,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](Path(sys.argv[2]))
