"""The flows as deployments name them: `agedp_flows.deployment_entrypoint:release`, wherever agedp is installed.

A run of `agedp serve` ends with it, however that ends: committed days stay, and the next run goes on.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

from prefect.exceptions import FailedRun

from agedp_flows.audit_flow import audit
from agedp_flows.calibrate_flow import calibrate
from agedp_flows.prefect_server import SERVED_BY
from agedp_flows.release_flow import release
from agedp_flows.verify_flow import verify

__all__ = ["audit", "calibrate", "release", "verify"]

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
