"""`agedp plan`, `run` and `serve`: what would be released, what is due, and when."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agedp_data.errors import AgedpError, PreflightFailed, Refused, RunFileError
from flows.commands.ending import ResultView, end_run
from flows.commands.options import NIGHTLY, AsOfOption, JsonOption, QuietOption, RunFileArgument, say

if TYPE_CHECKING:
    from pipelines.blocks import ProgressReporter
    from pipelines.work import Work

app = typer.Typer()


@app.command(rich_help_panel=NIGHTLY)
def plan(
    run_file: RunFileArgument,
    as_of: AsOfOption = None,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="risk against error over age, interval and loss instead")
    ] = False,
    notions: Annotated[
        bool, typer.Option("--notions", help="which promise keeps the run file's figure, and what each costs, instead")
    ] = False,
    risk: Annotated[
        str | None, typer.Option("--risk", metavar="EPSILON", help="the same for another figure", show_default=False)
    ] = None,
    error_kwh: Annotated[
        str | None,
        typer.Option("--error-kwh", metavar="KWH", help="the same for a noise, kWh a home", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what would be released: days, noise, loss, and the contract as it will be registered. Draws nothing.

    Before the first release it reads the input files as well and prints what a first run would find in them (the
    preflight, for your terminal alone), and which promise of every notion keeps the same figure, at what noise.

    Example: agedp plan london.toml --risk 0.5
    """
    from flows.frontier import frontier_json, frontier_lines
    from flows.offers_json import promises_json
    from flows.planning import plan_json, plan_lines
    from flows.progress import bars
    from flows.promising import promises_lines, target_of
    from pipelines.work import load_work

    target = target_of(risk, error_kwh)
    if frontier and (notions or target.asked):
        raise RunFileError("--frontier stands alone; it has a target of its own")
    with bars(wanted=not as_json) as progress:
        work = load_work(run_file, as_of=as_of, progress=progress)
        if notions or target.asked:
            found = promises_json(work, target) if as_json else promises_lines(work, target)
        elif frontier:
            found = frontier_json(work) if as_json else frontier_lines(work)
        else:
            found = plan_json(work) if as_json else plan_lines(work)
    say(json.dumps(found, indent=1) if isinstance(found, dict) else "\n".join(found))


@app.command(rich_help_panel=NIGHTLY)
def run(
    run_file: RunFileArgument,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Release everything that is due.

    Without Prefect, a line in cron is all it takes, with the place of the command, for cron has a path of its own:
    30 6 * * * /srv/agedp/.venv/bin/agedp run --quiet /srv/agedp/london.toml

    Example: agedp run london.toml
    """
    from flows.progress import bars
    from flows.words import result, result_lines

    with bars(wanted=not (as_json or quiet)) as told:
        work, error = (_run_flow if through_prefect else _run_stages)(run_file, as_of, told)
    show = ResultView(as_json=as_json, quiet=quiet, warns=not (as_json or through_prefect))
    end_run(show, work, error, lambda: (result(work), result_lines(work)))


def _run_stages(run_file: Path, as_of: date | None, told: ProgressReporter) -> tuple[Work, AgedpError | None]:
    from pipelines.sanitise import run_stages
    from pipelines.work import load_work

    work = load_work(run_file, as_of=as_of, progress=told)
    try:
        run_stages(lambda _, stage: stage(work))
    except (Refused, PreflightFailed) as error:
        return work, error
    return work, None


def _run_flow(run_file: Path, as_of: date | None, told: ProgressReporter) -> tuple[Work, AgedpError | None]:
    from flows.server import served_beside

    with served_beside(run_file):
        from flows.release_flow import run_release

        return run_release(str(run_file), as_of, told)


@app.command(rich_help_panel=NIGHTLY)
def serve(
    run_files: Annotated[
        list[Path], typer.Argument(metavar="RUN.toml...", help="the run files", show_default=False, readable=False)
    ],
    quiet: QuietOption = False,
) -> None:
    """Run the Prefect flow of each run file on its cron line, in its zone, until stopped.

    With PREFECT_API_URL it is served to that server; else a server of its own runs as long as it does.

    Example: agedp serve london.toml ausgrid.toml
    """
    from flows.serving import scheduled, serve_all, served_lines

    nights = scheduled(run_files)
    serve_all(nights, ready=lambda server: None if quiet else say("\n".join(served_lines(nights, server))))
