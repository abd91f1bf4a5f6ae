"""`agedp plan`, `run` and `serve`: show what is due, release it, or release it on a schedule."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agedp_data.errors import RunFileError
from agedp_flows.cli.options import NIGHTLY, AsOfOption, JsonOption, QuietOption, RunFileArgument, print_text
from agedp_flows.cli.run_results import ResultView, end_run

if TYPE_CHECKING:
    from agedp.compute.engine_settings import ProgressReporter
    from agedp.run_summary import RunSummary

app = typer.Typer()


@app.command(rich_help_panel=NIGHTLY)
def plan(
    run_file: RunFileArgument,
    as_of: AsOfOption = None,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="show the smallest risk for each error, over age, interval and epsilon")
    ] = False,
    notions: Annotated[
        bool, typer.Option("--notions", help="compare the notions at the run file's bound, by their noise")
    ] = False,
    risk: Annotated[
        str | None,
        typer.Option("--risk", metavar="EPSILON", help="compare the notions at another bound", show_default=False),
    ] = None,
    error_kwh: Annotated[
        str | None,
        typer.Option(
            "--error-kwh", metavar="KWH", help="compare the notions at a noise per household", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the due days, their noise and epsilon, and the contract as it will be registered. Draws no noise.

    Before the first release it also reads the input files, prints the findings of a first run (the preflight, for your
    terminal alone), and compares the noise of all notions at the same bound.

    Example: agedp plan london.toml --risk 0.5
    """
    from agedp.ledger_session import LedgerSession
    from agedp.run_context import RunContext
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.text.comparison_text import parse_target, promises_json, promises_lines
    from agedp_flows.text.frontier_text import frontier_json, frontier_lines
    from agedp_flows.text.plan_text import plan_json, plan_lines

    target = parse_target(risk, error_kwh)
    if frontier and (notions or target.is_requested):
        raise RunFileError("--frontier cannot be combined with --notions, --risk or --error-kwh; give one of them")
    with progress_bars(enabled=not as_json) as progress:
        session = LedgerSession.open(RunContext.load(run_file, as_of=as_of, progress=progress))
        if notions or target.is_requested:
            result = promises_json(session, target) if as_json else promises_lines(session, target)
        elif frontier:
            result = frontier_json(session) if as_json else frontier_lines(session)
        else:
            result = plan_json(session) if as_json else plan_lines(session)
    print_text(json.dumps(result, indent=1) if isinstance(result, dict) else "\n".join(result))


@app.command(rich_help_panel=NIGHTLY)
def run(
    run_file: RunFileArgument,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Release everything that is due.

    Without Prefect, one cron line is enough. It needs the full path of the command, because cron has its own PATH:
    30 6 * * * /srv/agedp/.venv/bin/agedp run --quiet /srv/agedp/london.toml

    Example: agedp run london.toml
    """
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.text.run_text import result_json, result_lines

    with progress_bars(enabled=not (as_json or quiet)) as progress:
        summary = (_run_flow if through_prefect else _run_stages)(run_file, as_of, progress)
    view = ResultView(as_json=as_json, quiet=quiet, warns=not (as_json or through_prefect))
    end_run(view, summary, lambda: (result_json(summary), result_lines(summary)))


def _run_stages(run_file: Path, as_of: date | None, progress: ProgressReporter) -> RunSummary:
    from agedp.pipeline import run_stages
    from agedp.run_context import RunContext

    return run_stages(RunContext.load(run_file, as_of=as_of, progress=progress))


def _run_flow(run_file: Path, as_of: date | None, progress: ProgressReporter) -> RunSummary:
    from agedp_flows.prefect_server import server_for_run_file

    with server_for_run_file(run_file):
        from agedp_flows.release_flow import run_release

        return run_release(str(run_file), as_of, progress)


@app.command(rich_help_panel=NIGHTLY)
def serve(
    run_files: Annotated[
        list[Path], typer.Argument(metavar="RUN.toml...", help="the run files", show_default=False, readable=False)
    ],
    quiet: QuietOption = False,
) -> None:
    """Run the Prefect flow of each run file on its cron line, in its zone, until stopped.

    With PREFECT_API_URL the flows run on that server; else agedp starts a server that ends with the command.

    Example: agedp serve london.toml ausgrid.toml
    """
    from agedp_flows.scheduled_runs import scheduled_runs, serving_lines
    from agedp_flows.serving import serve_runs

    runs = scheduled_runs(run_files)
    serve_runs(runs, ready=lambda server: None if quiet else print_text("\n".join(serving_lines(runs, server))))
