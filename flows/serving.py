"""`agedp serve`: run files on their cron lines, each a Prefect deployment named after its population.

Only one run of a population goes on at a time: one that is due while another runs is cancelled, for the next one
releases whatever is due by then. The ledger would see to it in any case; Prefect only saves the waiting.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agedp_data.config import RunFile
from agedp_data.config.model import EstimatedModel
from agedp_data.config.schedule import Live
from agedp_data.errors import RunFileError
from agedp_data.model import PUBLIC
from agedp_data.shown import shown
from flows.server import SERVED_BY, PrefectServer, served
from pipelines import folders, locks
from pipelines.sanitise import forecast_run
from pipelines.work import load_run_file, load_work


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """A run file and when it is run; the population names it to Prefect."""

    run_file: Path
    population: str
    cron: str
    zone: str
    confidential: Path
    is_calibrated: bool = False


def scheduled(run_files: Sequence[Path]) -> tuple[ScheduledRun, ...]:
    """Return when each run file is run, all of them looked at as `agedp plan` does.

    Raises:
        RunFileError: a run file that is not live or has no cron line, or two of the same population.
        AgedpError: whatever `agedp plan` would refuse.
    """
    nights = tuple(_nightly(run_file) for run_file in run_files)
    for population, times in Counter(night.population for night in nights).items():
        if times > 1:
            raise RunFileError(f"population {population!r} has several of these run files; serve one of them")
    return nights


def _nightly(run_file: Path) -> ScheduledRun:
    run = load_run_file(run_file)
    schedule, name = run.schedule, run.name
    if not isinstance(schedule, Live):
        raise RunFileError(
            f'{name}: [schedule] mode = "{schedule.mode}": only "live" has nights to wait for; `agedp run` runs it now'
        )
    if schedule.cron is None or schedule.zone is None:
        raise RunFileError(f'{name}: [schedule] cron is missing; `agedp serve` needs one, such as cron = "30 6 * * *"')
    if not _awaits_calibration(run):
        forecast_run(load_work(run_file))
    where, estimated = Path(run.output.confidential), isinstance(run.model, EstimatedModel)
    return ScheduledRun(run_file.absolute(), run.population.name, schedule.cron, schedule.zone, where, estimated)


def _awaits_calibration(run: RunFile) -> bool:
    """Tell whether the flow `agedp-calibrate` has to run before the first release."""
    return isinstance(run.model, EstimatedModel) and not (Path(run.model.file) / PUBLIC).exists()


def serve_all(nights: Sequence[ScheduledRun], *, ready: Callable[[PrefectServer], None]) -> None:
    """Serve until this process is told to stop; `ready` is told of the server once it answers.

    Raises:
        ServerError: no server.
        Busy: another `agedp serve` has its server in the same confidential folder.
    """
    home = nights[0].confidential / "prefect-served"
    with locks.alone(folders.make_private(home), patience_seconds=0), served(home, schedules=True) as server:
        from flows.deployments import deployments_of, serve  # noqa: PLC0415  (Prefect reads its settings now)

        os.environ[SERVED_BY] = str(os.getpid())
        deployments = [deployment for night in nights for deployment in deployments_of(night)]
        serve(deployments, ready=lambda: ready(server))


def served_lines(nights: Sequence[ScheduledRun], server: PrefectServer) -> list[str]:
    """Return what is served, and where Prefect's pages are, for people."""
    lines = [line for night in nights for line in _lines(night)]
    pages = f"Prefect's pages: {server.pages}"
    return [*lines, pages + (f", password in {shown(str(server.password_file))}" if server.password_file else "")]


def _lines(night: ScheduledRun) -> list[str]:
    release = f"{night.population}: {shown(str(night.run_file))} at {night.cron} ({night.zone})"
    by_hand = f"agedp-calibrate/{night.population}: run it once, before the first release"
    return [release, by_hand] if night.is_calibrated else [release]
