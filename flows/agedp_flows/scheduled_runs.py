"""`agedp serve`: run files on their cron lines, each a Prefect deployment named after its population.

Only one run of a population is active at a time: a run that is due during another run is cancelled, because the next
run releases everything due by then. The ledger permits one writer in any case; the cancellation only saves waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agedp.ledger_session import LedgerSession
from agedp.run_context import RunContext, load_run_file
from agedp.stages.plan import forecast_run
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.schedule import Live
from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text
from agedp_data.model import PUBLIC_FILE
from agedp_flows.prefect_server import PrefectServer


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
    confidential, is_calibrated = Path(run.output.confidential), isinstance(run.model, EstimatedModel)
    # without its model a run file cannot be forecast; the flow `agedp-calibrate` runs before its first release
    if not isinstance(run.model, EstimatedModel) or (Path(run.model.file) / PUBLIC_FILE).exists():
        forecast_run(LedgerSession.open(RunContext.load(run_file)))
    return ScheduledRun(
        run_file.absolute(), run.population.name, schedule.cron, schedule.zone, confidential, is_calibrated
    )


def serving_lines(runs: Sequence[ScheduledRun], server: PrefectServer) -> list[str]:
    """Return the scheduled runs and the address of Prefect's user interface as lines for the terminal."""
    lines = []
    for run in runs:
        lines.append(f"{run.population}: {escape_text(str(run.run_file))} at {run.cron} ({run.zone})")
        if run.is_calibrated:
            lines.append(f"agedp-calibrate/{run.population}: run it once, before the first release")
    pages = f"Prefect's pages: {server.pages}"
    return [*lines, pages + (f", password in {escape_text(str(server.password_file))}" if server.password_file else "")]
