"""The `agedp` command. Heavy imports happen inside the commands: `agedp --help` answers at once.

Exit status: 0 done or nothing due, 1 bug, 2 input or run file, 3 refused (ledger, contract, promise).
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agedp_data.errors import AgedpError, RunFileError

if TYPE_CHECKING:
    from pipelines.blocks import Told
    from pipelines.work import Work

app = typer.Typer(
    help="Daily averages from half-hourly smart meters, published with privacy guarantees that take time into account.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ledger_app = typer.Typer(help="The promise itself: what was drawn, charged and claimed.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

RunFileArgument = Annotated[
    Path, typer.Argument(metavar="RUN.toml", help="the run file", show_default=False, readable=False)
]
LedgerArgument = Annotated[
    str, typer.Argument(metavar="RUN.toml|URL", help="the run file, or the ledger's address", show_default=False)
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="no progress bars")]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object, for machines")]
AsOfOption = Annotated[
    datetime | None,
    typer.Option("--as-of", formats=["%Y-%m-%d"], help="date: of a rehearsal, or of a folder that stood"),
]
ToOption = Annotated[str, typer.Option("--to", metavar="URL", help="the new ledger, empty", show_default=False)]


def main() -> None:
    """Run the command; one line for what the user can mend, a traceback for bugs only."""
    _without_core()
    try:
        app()
    except AgedpError as error:
        typer.echo(f"agedp: {error.private}", err=True)
        sys.exit(error.exit_status)


def _without_core() -> None:
    """Let no crash write this process's memory, readings and all, to wherever the system puts such files."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _say(text: str = "") -> None:
    """Print a result; if nobody can take it, say so: what was done before stays done."""
    try:
        typer.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python would try once more at its end
        raise AgedpError(f"standard output cannot be written ({error.strerror}); what was done stays done") from None


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
    _say(f"{made.run_file}: read it, decide what it asks, then `agedp plan {made.run_file}`")
    _say(f"{made.roster}: {made.households:,} households, read off the files; correct it from your records")


@app.command()
def calibrate(run_file: RunFileArgument, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Estimate the model of a run file from its readings, once.

    Example: agedp calibrate london.toml
    """
    from flows.calibration import calibration_lines
    from flows.progress import bars
    from pipelines.calibrate import calibrate as make

    with bars(wanted=not (as_json or quiet)) as told:
        found = make(run_file, told=told)
    _say(json.dumps({"model": found.model.id}) if as_json else "\n".join(calibration_lines(found)))


@app.command()
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

    Before the first release it says as well which promise of every notion keeps the same figure, at what noise.

    Example: agedp plan london.toml --risk 0.5
    """
    from flows.planning import frontier_json, frontier_lines, plan_json, plan_lines
    from flows.promising import promises_json, promises_lines, target_of
    from pipelines.work import begin

    target = target_of(risk, error_kwh)
    work = begin(run_file, as_of=_date(as_of))
    if frontier and (notions or target.asked):
        raise RunFileError("--frontier stands alone; it has a target of its own")
    if notions or target.asked:
        found = promises_json(work, target) if as_json else promises_lines(work, target)
    elif frontier:
        found = frontier_json(work) if as_json else frontier_lines(work)
    else:
        found = plan_json(work) if as_json else plan_lines(work)
    _say(json.dumps(found, indent=1) if isinstance(found, dict) else "\n".join(found))


@app.command()
def audit(run_file: RunFileArgument, as_json: JsonOption = False) -> None:
    """Measure the loss of the real way from readings to Parquet, on made-up households with a run file's parameters.

    Example: agedp audit london.toml
    """
    from flows.auditing import audit_json, audit_lines, require_kept
    from pipelines.audit import audit as measure

    found = measure(run_file)
    _say(json.dumps(audit_json(found)) if as_json else "\n".join(audit_lines(found)))
    require_kept(found)


@app.command()
def run(
    run_file: RunFileArgument,
    through_prefect: Annotated[bool, typer.Option("--flow", help="run the Prefect flow")] = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Release everything that is due.

    Example: agedp run london.toml
    """
    from flows.progress import bars
    from flows.words import result, result_lines

    with bars(wanted=not (as_json or quiet)) as told:
        work = (_run_flow if through_prefect else _run_stages)(run_file, _date(as_of), told)
    _say(json.dumps(result(work)) if as_json else "\n".join(result_lines(work)))


def _run_stages(run_file: Path, as_of: date | None, told: Told) -> Work:
    from pipelines.sanitise import run_stages
    from pipelines.work import begin

    work = begin(run_file, as_of=as_of, told=told)
    run_stages(lambda _, stage: stage(work))
    return work


def _run_flow(run_file: Path, as_of: date | None, told: Told) -> Work:
    from flows.server import served
    from pipelines.work import checked

    home = Path(checked(run_file).output.confidential) / "prefect"
    with served(home):
        from flows.flow import run_flow

        return run_flow(str(run_file), as_of, told)


@app.command()
def publish(
    run_file: RunFileArgument,
    as_of: AsOfOption = None,
    statement: Annotated[
        int | None, typer.Option(metavar="SEQ", help="as this statement told of it; `ledger show` lists the numbers")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the release folder again, or as it stood at the end of a day; draws nothing and reads no reading.

    Example: agedp publish london.toml --as-of 2026-04-01
    """
    from flows.publishing import published

    _say(published(run_file, _date(as_of), statement=statement, as_json=as_json))


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="the release folder", show_default=False, readable=False)],
    ledger: Annotated[str | None, typer.Option(metavar="URL", help="the ledger it was published from")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a release folder: sums, schema, arithmetic, and the chain if a ledger is given. For recipients.

    Example: agedp verify out/release
    """
    from flows.ledgers import verified_against
    from pipelines.handover.received import open_release

    found = open_release(folder)
    found.verify()
    chained = {} if ledger is None else {"chain": True}
    if ledger is not None:
        verified_against(found, ledger)
    said = f"{folder}: as it was published{', and the ledger says the same' if chained else ''}"
    _say(json.dumps({"verified": True, **chained}) if as_json else said)


@ledger_app.command("show")
def ledger_show(
    place: LedgerArgument,
    only_statements: Annotated[
        bool, typer.Option("--statements", help="only what was claimed, not what was drawn")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what was released to the run file's population, or all of a ledger by its URL, then what was claimed of it.

    With --json it is the releases or, with --statements, the statements.

    Example: agedp ledger show london.toml
    """
    from flows.ledgers import show_lines, shown, statement_lines, statements

    if as_json:
        _say(json.dumps(statements(place) if only_statements else shown(place), indent=1))
        return
    drawn = [] if only_statements else [*show_lines(shown(place)), ""]
    _say("\n".join([*drawn, *statement_lines(statements(place))]))


@ledger_app.command("verify")
def ledger_verify(place: LedgerArgument, as_json: JsonOption = False) -> None:
    """Recompute every row and hash of the ledger.

    Example: agedp ledger verify london.toml
    """
    from flows.ledgers import verified

    _say(verified(place, as_json=as_json))


@ledger_app.command("amend")
def ledger_amend(
    run_file: RunFileArgument,
    yes: Annotated[bool, typer.Option("--yes", help="record it without asking")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a run file changes in the contract and in every figure, and record it; with --json only if --yes.

    Example: agedp ledger amend london.toml
    """
    from flows.amending import amendment_json, amendment_lines
    from pipelines.amend import foresee_amendment, record, require_allowed
    from pipelines.work import begin

    work = begin(run_file)
    found = foresee_amendment(work)
    require_allowed(found)
    if not as_json:
        _say("\n".join(amendment_lines(found)))
    wanted = bool(found.changes) and (yes or (not as_json and _confirmed("record this in the ledger?")))
    if wanted:
        record(work, found)
    if as_json:
        _say(json.dumps(amendment_json(found, recorded=wanted), indent=1))
    elif found.changes:
        _say("recorded" if wanted else "not recorded; nothing has changed")


def _confirmed(question: str) -> bool:
    """Ask; nobody there to answer is a no, not a bug."""
    try:
        return typer.confirm(question)
    except typer.Abort:
        _say()
        return False


@ledger_app.command("export")
def ledger_export(
    run_file: RunFileArgument,
    file: Annotated[Path, typer.Argument(help="where to write the rows", show_default=False)],
    close: Annotated[bool, typer.Option("--close", help="end this ledger: it goes on where the file goes")] = False,
) -> None:
    """Write every row of the ledger to a file, one JSON object a line.

    Example: agedp ledger export london.toml ledger.jsonl --close
    """
    from flows.ledgers import exported

    _say(exported(run_file, file, close=close))


@ledger_app.command("import")
def ledger_import(
    file: Annotated[Path, typer.Argument(help="what `agedp ledger export` wrote", show_default=False, readable=False)],
    to: ToOption,
    lost: Annotated[
        bool, typer.Option("--lost", help="the exported ledger was not closed and no longer exists; this is noted")
    ] = False,
) -> None:
    """Fill an empty new ledger from an exported file; every hash is recomputed.

    Example: agedp ledger import ledger.jsonl --to sqlite:///new/ledger.sqlite
    """
    from agedp_data import clock
    from pipelines.handover.ledger_moves import import_ledger

    rows = import_ledger(file, to, lost_at=clock.today() if lost else None)
    _say(f"{rows} rows, every hash as it was written; name this ledger in [output] ledger")


@ledger_app.command("recover")
def ledger_recover(
    folder: Annotated[Path, typer.Argument(help="the release folder", show_default=False, readable=False)], to: ToOption
) -> None:
    """Restore a lost ledger from a release folder into an empty new one, and mark the seam.

    Example: agedp ledger recover out/release --to sqlite:///out/ledger.sqlite
    """
    from agedp_data import clock
    from pipelines.handover.ledger_moves import recover

    rows = recover(folder, to, at=clock.today())
    _say(f"{rows} releases restored behind a seam; never use the lost ledger again should it turn up")


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

    _say(make(dataset, folder, households=households, days=days, seed=seed))


def _date(moment: datetime | None) -> date | None:
    return moment.date() if moment else None


if __name__ == "__main__":
    main()
