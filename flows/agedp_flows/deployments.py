"""Scheduled runs as Prefect deployments, and Prefect's loop that runs them. Import it after the server has started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import TerminationSignal
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule

from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.run_context import RunContext, load_run_file
from agedp.stages.plan import forecast_run
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.schedule import Live
from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text
from agedp_data.model import PUBLIC_FILE
from agedp_flows.calibrate_flow import calibrate
from agedp_flows.prefect_server import SERVED_BY, PrefectServer, running_server
from agedp_flows.release_flow import release

# --------------------------------------------------------------------------------------------------
# `agedp serve`: run files on their cron lines, each a Prefect deployment named after its population.
#
# Only one run of a population is active at a time: a run that is due during another run is cancelled, because the next
# run releases everything due by then. The ledger permits one writer in any case; the cancellation only saves waiting.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """A run file and its cron line; the population is the name of its deployment."""

    run_file: Path
    population: str
    cron: str
    zone: str
    confidential: Path
    is_calibrated: bool = False


def scheduled_runs(run_files: Sequence[Path]) -> tuple[ScheduledRun, ...]:
    """Return the scheduled run of each run file, after checking all of them as `agedp plan` does.

    Raises:
        RunFileError: a run file is not live or has no cron line, or two have the same population.
        AgedpError: as `agedp plan`.
    """
    runs = tuple(_scheduled_run(run_file) for run_file in run_files)
    for population, count in Counter(run.population for run in runs).items():
        if count > 1:
            raise RunFileError(f"population {population!r} has more than one of these run files; serve one of them")
    return runs


def _scheduled_run(run_file: Path) -> ScheduledRun:
    run = load_run_file(run_file)
    schedule, name = run.schedule, run.name
    if not isinstance(schedule, Live):
        raise RunFileError(
            f'{name}: [schedule] mode = "{schedule.mode}": only mode = "live" has a schedule; `agedp run` runs it now'
        )
    if schedule.cron is None or schedule.zone is None:
        raise RunFileError(f'{name}: [schedule] cron is missing; `agedp serve` needs one, such as cron = "30 6 * * *"')
    if not _awaits_calibration(run):
        forecast_run(LedgerSession.open(RunContext.load(run_file)))
    confidential, is_calibrated = Path(run.output.confidential), isinstance(run.model, EstimatedModel)
    return ScheduledRun(
        run_file.absolute(), run.population.name, schedule.cron, schedule.zone, confidential, is_calibrated
    )


def _awaits_calibration(run: RunFile) -> bool:
    """Return whether the flow `agedp-calibrate` has to run before the first release."""
    return isinstance(run.model, EstimatedModel) and not (Path(run.model.file) / PUBLIC_FILE).exists()


def serving_lines(runs: Sequence[ScheduledRun], server: PrefectServer) -> list[str]:
    """Return the scheduled runs and the address of Prefect's user interface as lines for the terminal."""
    lines = [line for run in runs for line in _lines(run)]
    pages = f"Prefect's pages: {server.pages}"
    return [*lines, pages + (f", password in {escape_text(str(server.password_file))}" if server.password_file else "")]


def _lines(run: ScheduledRun) -> list[str]:
    release = f"{run.population}: {escape_text(str(run.run_file))} at {run.cron} ({run.zone})"
    by_hand = f"agedp-calibrate/{run.population}: run it once, before the first release"
    return [release, by_hand] if run.is_calibrated else [release]


# --------------------------------------------------------------------------------------------------
# Scheduled runs as Prefect deployments, and Prefect's loop that runs them. Import it after the server has started.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# `agedp serve`: run files on their cron lines, on one Prefect server that ends with the command.
# --------------------------------------------------------------------------------------------------


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
        os.environ[SERVED_BY] = str(os.getpid())
        deployments = [deployment for run in runs for deployment in deployments_of(run)]
        serve(deployments, ready=lambda: ready(server))
