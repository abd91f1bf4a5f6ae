"""The `agedp` command. Heavy imports happen inside the commands: `agedp --help` answers at once.

Exit status: 0 done or nothing due, 1 bug, 2 input or run file, 3 refused (ledger, contract, promise).
"""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agedp_data.errors import AgedpError

if TYPE_CHECKING:
    from pipelines.work import Work

app = typer.Typer(
    help="Daily averages from half-hourly smart meters, published with privacy guarantees that take time into account.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ledger_app = typer.Typer(help="The promise itself: what was drawn, charged and claimed.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

RunFileArgument = Annotated[Path, typer.Argument(metavar="RUN.toml", help="the run file", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object, for machines")]
AsOfOption = Annotated[
    datetime | None, typer.Option("--as-of", formats=["%Y-%m-%d"], help="simulated date of a rehearsal")
]


def main() -> None:
    """Run the command; one line for what the user can mend, a traceback for bugs only."""
    try:
        app()
    except AgedpError as error:
        typer.echo(f"agedp: {error.private}", err=True)
        sys.exit(error.exit_status)


@app.command()
def init(
    files: Annotated[list[str], typer.Argument(help="input files, folders or globs", show_default=False)],
    folder: Annotated[Path, typer.Option("--in", help="where to write run.toml and roster.csv")] = Path(),
) -> None:
    """Write a commented run file and a first roster, read off the files.

    Example: agedp init 'incoming/*.csv'
    """
    from pipelines.init import init as make

    made = make(files, folder=folder)
    typer.echo(f"{made.run_file}: read it, decide what it asks, then `agedp plan {made.run_file}`")
    typer.echo(f"{made.roster}: {made.households:,} households, read off the files; correct it from your records")


@app.command()
def calibrate(run_file: RunFileArgument, as_json: JsonOption = False) -> None:
    """Estimate the model of a run file from its readings, once.

    Example: agedp calibrate london.toml
    """
    from flows.calibration import calibration_lines
    from pipelines.calibrate import calibrate as make

    found = make(run_file)
    typer.echo(json.dumps({"model": found.model.id}) if as_json else "\n".join(calibration_lines(found)))


@app.command()
def plan(run_file: RunFileArgument, as_of: AsOfOption = None, as_json: JsonOption = False) -> None:
    """Print what would be released: days, noise, loss, and the contract as it will be registered. Draws nothing.

    Example: agedp plan london.toml
    """
    from flows.planning import plan_json, plan_lines
    from pipelines.work import begin

    work = begin(run_file, as_of=_date(as_of))
    typer.echo(json.dumps(plan_json(work), indent=1) if as_json else "\n".join(plan_lines(work)))


@app.command()
def run(
    run_file: RunFileArgument,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Release everything that is due.

    Example: agedp run london.toml
    """
    from flows.words import result, result_lines

    work = _run_flow(run_file, _date(as_of)) if through_prefect else _run_stages(run_file, _date(as_of))
    typer.echo(json.dumps(result(work)) if as_json else "\n".join(result_lines(work)))


def _run_stages(run_file: Path, as_of: date | None) -> Work:
    from pipelines.sanitise import run_stages
    from pipelines.work import begin

    work = begin(run_file, as_of=as_of)
    run_stages(lambda _, stage: stage(work))
    return work


def _run_flow(run_file: Path, as_of: date | None) -> Work:
    from flows.server import served
    from pipelines.work import begin

    home = Path(begin(run_file, as_of=as_of).run.output.confidential) / "prefect"
    with served(home):
        from flows.flow import run_flow

        return run_flow(str(run_file), as_of)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="the release folder", show_default=False)], as_json: JsonOption = False
) -> None:
    """Check a release folder: sums, schema, arithmetic. For recipients.

    Example: agedp verify out/release
    """
    from pipelines.publish import open_release

    open_release(folder).verify()
    typer.echo(json.dumps({"verified": True}) if as_json else f"{folder}: as it was published")


@ledger_app.command("show")
def ledger_show(
    run_file: RunFileArgument,
    as_json: JsonOption = False,
) -> None:
    """Print what was released to the run file's population.

    Example: agedp ledger show london.toml
    """
    from flows.ledgers import show_lines, shown

    rows = shown(run_file)
    typer.echo(json.dumps(rows, indent=1) if as_json else "\n".join(show_lines(rows)))


@ledger_app.command("verify")
def ledger_verify(run_file: RunFileArgument, as_json: JsonOption = False) -> None:
    """Recompute every row and hash of the ledger.

    Example: agedp ledger verify london.toml
    """
    from flows.ledgers import verified

    typer.echo(verified(run_file, as_json=as_json))


@app.command()
def sample(
    dataset: Annotated[str, typer.Argument(help="london or ausgrid", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="where to write", show_default=False)],
    households: Annotated[int, typer.Option(min=2, help="number of made-up homes")] = 300,
    days: Annotated[int, typer.Option(min=2, help="number of days")] = 60,
    seed: Annotated[int, typer.Option(help="same seed, same homes")] = 1,
) -> None:
    """Write made-up homes in the publisher's exact format, a roster and a rehearsal's run file.

    Example: agedp sample london out/london
    """
    from pipelines.sample import sample as make

    typer.echo(make(dataset, folder, households=households, days=days, seed=seed))


def _date(moment: datetime | None) -> date | None:
    return moment.date() if moment else None


if __name__ == "__main__":
    main()
