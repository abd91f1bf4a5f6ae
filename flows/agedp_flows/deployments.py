"""Scheduled runs as Prefect deployments, and Prefect's loop that runs them. Import it after the server has started."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import TerminationSignal
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule

from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text
from agedp_flows.calibrate_flow import calibrate
from agedp_flows.release_flow import release
from agedp_flows.scheduled_runs import ScheduledRun

ENTRYPOINT_MODULE = "agedp_flows.deployment_entrypoint"


class _ScheduleRunner(Runner):
    """Prefect's loop; any signal to end stops it and its runs as Ctrl-C does."""

    cancel: Callable[[], object] | None = None

    def end(self) -> None:
        """Cancel the loop, once: our handler and the one that Prefect sets both receive the same signal."""
        cancel, self.cancel = self.cancel, None
        if cancel is not None:
            cancel()

    def handle_sigterm(self, *_: Any, **__: Any) -> None:  # noqa: ANN401  (Prefect's signature)
        """Stop the loop; Prefect's own handler would leave a coroutine that is never awaited."""
        self.end()


def deployments_of(run: ScheduledRun) -> list[RunnerDeployment]:
    """Return the deployments of a run file: its release on the cron line, and its calibration, run by hand.

    Both are named after the population and run once at a time. Only a run file with an estimated model has the second.

    Raises:
        RunFileError: no date matches the cron line.
    """
    try:
        schedule = Cron(run.cron, timezone=run.zone)
    except ValueError:
        raise RunFileError(
            f"{escape_text(run.run_file.name)}: [schedule] cron = {run.cron!r}: no date matches it, "
            "or Prefect cannot parse it"
        ) from None
    release_deployment = _deployment(release, run, schedule)
    return [release_deployment, _deployment(calibrate, run, None)] if run.is_calibrated else [release_deployment]


def _deployment(flow: Flow[Any, Any], run: ScheduledRun, schedule: Schedule | None) -> RunnerDeployment:
    deployment = RunnerDeployment.from_flow(
        flow,
        name=run.population,
        schedule=schedule,
        parameters={"run_file": str(run.run_file)},
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        tags=["agedp"],
    )
    deployment.entrypoint = f"{ENTRYPOINT_MODULE}:{flow.fn.__name__}"
    return deployment


def serve(deployments: Sequence[RunnerDeployment], *, ready: Callable[[], None]) -> None:
    """Run the deployments on their schedules until a signal stops this process; their schedules then pause."""
    runner = _ScheduleRunner(pause_on_shutdown=True)

    async def run_until_stopped() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        runner.cancel = lambda: loop.call_soon_threadsafe(task.cancel) if task else None
        for signal_number in (signal.SIGTERM, signal.SIGHUP):  # Prefect handles SIGTERM only after it has started
            loop.add_signal_handler(signal_number, runner.end)
        for deployment in deployments:
            await runner.aadd_deployment(deployment)
        ready()
        await runner.start()

    with suppress(KeyboardInterrupt, TerminationSignal, asyncio.CancelledError):
        asyncio.run(run_until_stopped())
