"""The flows as deployments name them: by the path of this file, in whatever environment agedp is installed.

Prefect runs a file from the working directory, which it puts first on Python's path: a user's own folder `flows`
there would be taken for ours. The folder that this file is installed in goes before it, and what was imported is
looked at. A run of `agedp serve` ends with it, however that ends: what was committed stays, and the next run goes on.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))

import flows  # noqa: E402

if Path(flows.__file__ or "").resolve().parent != _HERE:
    raise ImportError(
        "agedp: another package named 'flows' was imported first; start Prefect from another folder, or install agedp "
        "in an environment of its own"
    )

from prefect.exceptions import FailedRun  # noqa: E402

from flows.audit_flow import audit  # noqa: E402
from flows.calibrate_flow import calibrate  # noqa: E402
from flows.release_flow import release  # noqa: E402
from flows.server import SERVED_BY  # noqa: E402
from flows.verify_flow import verify  # noqa: E402

sanitise_flow = release  # as deployments made by 0.1 name it

__all__ = ["audit", "calibrate", "release", "sanitise_flow", "verify"]

_LOOKS_EVERY_SECONDS, _GRACE_SECONDS = 0.5, 10.0


def _no_failed_run(record: logging.LogRecord) -> bool:
    """Drop the traceback by which Prefect repeats that a run failed: it was told why, in one line, just before."""
    return not (record.exc_info and isinstance(record.exc_info[1], FailedRun))


def _end_with(parent: int) -> None:
    """End this process when its parent has; first so that Prefect may hear of it, then in any case."""
    while os.getppid() == parent:
        time.sleep(_LOOKS_EVERY_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


logging.getLogger("prefect.flow_runs").addFilter(_no_failed_run)

if (_parent := os.environ.get(SERVED_BY, "")) == str(os.getppid()):
    threading.Thread(target=_end_with, args=(int(_parent),), daemon=True).start()
