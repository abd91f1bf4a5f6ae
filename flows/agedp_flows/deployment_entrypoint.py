"""The flows as deployments name them: by the path of this file in the installed package.

Prefect runs a file from the working directory, which it puts first on Python's path: a user's folder `flows` there
would be imported in place of ours. The folder in which this file is installed is therefore put before it, and the
imported package is checked. A run started by `agedp serve` ends with its parent process: what was committed is stored,
and the next run continues.
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

import agedp_flows  # noqa: E402

if Path(agedp_flows.__file__ or "").resolve().parent != _HERE:
    raise ImportError(
        "agedp: another package named 'flows' was imported first; start Prefect from another folder, or install agedp "
        "in an environment of its own"
    )

from prefect.exceptions import FailedRun  # noqa: E402

from agedp_flows.audit_flow import audit  # noqa: E402
from agedp_flows.calibrate_flow import calibrate  # noqa: E402
from agedp_flows.prefect_server import SERVED_BY  # noqa: E402
from agedp_flows.release_flow import release  # noqa: E402
from agedp_flows.verify_flow import verify  # noqa: E402

sanitise_flow = release  # as deployments made by 0.1 name it

__all__ = ["audit", "calibrate", "release", "sanitise_flow", "verify"]

_POLL_SECONDS, _GRACE_SECONDS = 0.5, 10.0


def _is_not_failed_run(record: logging.LogRecord) -> bool:
    """Drop the traceback by which Prefect repeats that a run failed; the line before it states the reason."""
    return not (record.exc_info and isinstance(record.exc_info[1], FailedRun))


def _end_with_parent(parent: int) -> None:
    """End this process after its parent: by SIGTERM, so that Prefect can record it, then by SIGKILL."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


logging.getLogger("prefect.flow_runs").addFilter(_is_not_failed_run)

if (_parent := os.environ.get(SERVED_BY, "")) == str(os.getppid()):
    threading.Thread(target=_end_with_parent, args=(int(_parent),), daemon=True).start()
