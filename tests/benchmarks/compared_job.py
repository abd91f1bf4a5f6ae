"""One small measurement in a process of its own, with the packages of the commit that is compared.

    python -P compared_job.py JOB FOLDER

`compare` runs this file of its own commit for both sides; the packages come from PYTHONPATH. So only calls stand here
that every commit since 0.2 has: `agedp.pipeline.sanitise`, and `calibrate` and `tally` where they are found.
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


def sums(folder: Path) -> None:
    """Sums and counts of the file in one pass, nothing stored."""
    from agedp.compute.engine_settings import Engine

    edges = [30.0, 60.0, 100.0, 150.0, 200.0, 260.0, 350.0, 450.0, 600.0, 900.0, 1500.0]
    try:
        tally = import_module("tests.benchmarks.one_pass").tally
    except ModuleNotFoundError:
        tally = import_module("agedp.one_pass").tally
    tally([str(folder / "lcl.csv")], dataset="london", edges=edges, engine=Engine("threads", 2))


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
    try:
        module = import_module("agedp.calibration_pipeline")
    except ModuleNotFoundError:  # an earlier commit
        module = import_module("agedp.pipeline")
    module.calibrate(folder / "calibrate" / "run.toml")


def planted(_: Path) -> None:
    """A fixed amount of work that a file of the commit states: for the tests of `compare` itself."""
    text = b"x" * 4096
    for _number in range(1000 * int(Path("planted.txt").read_text())):
        hashlib.sha256(text).digest()


JOBS: dict[str, Callable[[Path], None]] = {
    "start": start,
    "sums and counts": sums,
    "run": run,
    "run again": again,
    "calibrate": calibrate,
    "planted": planted,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](Path(sys.argv[2]))
