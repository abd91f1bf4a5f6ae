"""`agedp serve`: run files on their cron lines, on one Prefect server that ends with the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from agedp.local_files import atomic_files
from agedp_flows.prefect_server import SERVED_BY, PrefectServer, running_server
from agedp_flows.scheduled_runs import ScheduledRun


def serve_runs(runs: Sequence[ScheduledRun], *, ready: Callable[[PrefectServer], None]) -> None:
    """Serve until a signal stops this process; call `ready` with the server once it answers.

    Raises:
        ServerError: the server does not answer, or does not start.
        Busy: another `agedp serve` has its server in the same confidential folder.
    """
    server_folder = runs[0].confidential / "prefect-served"
    with (
        atomic_files.exclusive_lock(atomic_files.make_private(server_folder), max_wait_seconds=0),
        running_server(server_folder, schedules=True) as server,
    ):
        from agedp_flows.deployments import deployments_of, serve  # noqa: PLC0415  (Prefect reads its settings now)

        os.environ[SERVED_BY] = str(os.getpid())
        deployments = [deployment for run in runs for deployment in deployments_of(run)]
        serve(deployments, ready=lambda: ready(server))
