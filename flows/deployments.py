"""Nights as Prefect deployments, and Prefect's own loop that runs them. Imported once Prefect's server is there."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import TerminationSignal
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule

from agedp_data.errors import RunFileError
from agedp_data.shown import escape_text
from flows.calibrate_flow import calibrate
from flows.release_flow import release
from flows.serving import ScheduledRun

FLOW_FILE = Path(__file__).resolve().with_name("deployed.py")


class _ScheduleRunner(Runner):
    """Prefect's loop; told to end by whatever signal, it ends as it does for Ctrl-C, its runs with it."""

    cut: Callable[[], object] | None = None

    def end(self) -> None:
        """Cut the loop, once: the loop itself and the handler that Prefect sets hear of one and the same signal."""
        cut, self.cut = self.cut, None
        if cut is not None:
            cut()

    def handle_sigterm(self, *_: Any, **__: Any) -> None:  # noqa: ANN401  (Prefect's signature)
        """End: Prefect's own way leaves a coroutine behind that nobody awaits."""
        self.end()


def deployments_of(night: ScheduledRun) -> list[RunnerDeployment]:
    """Return the deployments of a run file: its release on the cron line, and its calibration, run by hand.

    Both are named after the population and run once at a time. Only a run file with an estimated model has the second.

    Raises:
        RunFileError: a cron line that no date fits.
    """
    try:
        schedule = Cron(night.cron, timezone=night.zone)
    except ValueError:
        raise RunFileError(
            f"{escape_text(night.run_file.name)}: [schedule] cron = {night.cron!r}: "
            "no date fits it, or Prefect reads it not"
        ) from None
    nightly = _deployment(release, night, schedule)
    return [nightly, _deployment(calibrate, night, None)] if night.is_calibrated else [nightly]


def _deployment(flow: Flow[Any, Any], night: ScheduledRun, schedule: Schedule | None) -> RunnerDeployment:
    made = RunnerDeployment.from_flow(
        flow,
        name=night.population,
        schedule=schedule,
        parameters={"run_file": str(night.run_file)},
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        tags=["agedp"],
    )
    made.entrypoint = f"{FLOW_FILE}:{flow.fn.__name__}"
    return made


def serve(deployments: Sequence[RunnerDeployment], *, ready: Callable[[], None]) -> None:
    """Run the deployments as they fall due until this process is told to stop; their schedules then pause."""
    runner = _ScheduleRunner(pause_on_shutdown=True)

    async def running() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        runner.cut = lambda: loop.call_soon_threadsafe(task.cancel) if task else None
        for told in (signal.SIGTERM, signal.SIGHUP):  # Prefect hears the first only once it has started
            loop.add_signal_handler(told, runner.end)
        for each in deployments:
            await runner.aadd_deployment(each)
        ready()
        await runner.start()

    with suppress(KeyboardInterrupt, TerminationSignal, asyncio.CancelledError):
        asyncio.run(running())
