"""`agedp serve`: run files on their cron lines, on one Prefect server that ends with the command."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from agedp.local_files import atomic_files
from agedp_data.errors import Busy
from agedp_flows.prefect_server import SERVED_BY, PrefectServer, running_server
from agedp_flows.scheduled_runs import ScheduledRun

_FOLDER = "prefect-served"
_HOLDER = "served_by"


def serve_runs(runs: Sequence[ScheduledRun], *, ready: Callable[[PrefectServer], None]) -> None:
    """Serve until a signal stops this process; call `ready` with the server once it answers.

    Raises:
        ServerError: the server does not answer, or does not start.
        Busy: another `agedp serve` runs a population of one of their confidential folders.
    """
    with ExitStack() as resources:
        for folder in {run.confidential.resolve() for run in runs}:
            resources.enter_context(_served_alone(folder))
        server = resources.enter_context(running_server(runs[0].confidential / _FOLDER, schedules=True))
        from agedp_flows.deployments import deployments_of, serve  # noqa: PLC0415  (Prefect reads its settings now)

        os.environ[SERVED_BY] = str(os.getpid())
        deployments = [deployment for run in runs for deployment in deployments_of(run)]
        serve(deployments, ready=lambda: ready(server))


def _served_alone(confidential: Path) -> ExitStack:
    """Return the lock of a confidential folder, which has a file that says how to end its holder."""
    folder, lock = atomic_files.make_private(confidential / _FOLDER), ExitStack()
    holder = folder / _HOLDER
    try:
        lock.enter_context(atomic_files.exclusive_lock(folder, max_wait_seconds=0))
    except Busy:
        who, remedy = (
            "another `agedp serve` runs populations of this confidential folder",
            "or serve all in one command",
        )
        ending = f" ({holder.read_text()})" if holder.exists() else ""
        raise Busy(f"{who}; end it, {remedy}", private=f"{folder}: {who}; end it{ending}, {remedy}") from None
    atomic_files.write(holder, f"`kill {os.getpid()}` on {socket.gethostname()}".encode())
    return lock
