"""`agedp ledger ...`, `agedp key` and `agedp template`: the ledger, the key of its folders, and texts made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from agedp_data import clock
from agedp_flows.cli import options
from agedp_flows.text.screen import after_transfer, command_step

app = options.CommandGroup()
ledger = options.CommandGroup(
    help="The ledger: registered promise, releases, losses and statements.", epilog=options.STATUSES
)
app.add_typer(ledger, name="ledger", rich_help_panel=options.TO_HAND_OVER, no_args_is_help=True)


key = options.CommandGroup(help="The key that signs release folders ([output] sign).", epilog=options.STATUSES)
app.add_typer(key, name="key", rich_help_panel=options.TO_HAND_OVER, no_args_is_help=True)


@key.command()
def create(
    run_file: options.RunFileArgument = options.RUN_FILE,
    replace: Annotated[
        bool, typer.Option("--replace", help="make another key, which the present one signs unless it is lost")
    ] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Write a key into the confidential folder and print its fingerprint, which recipients need by another way.

    Release folders are signed with it once the run file says [output] sign = true. Keep a copy of the key where you
    keep copies of the ledger.

    Example: agedp key create london.toml
    """
    from agedp.internal_records.signing_keys import create_key
    from agedp.ledger_session import LedgerSession
    from agedp.run_context import RunContext

    session = LedgerSession.open(RunContext.load(run_file))
    newest = "" if session.ledger is None else session.ledger.newest_date(session.run.population)
    at = max(clock.today().isoformat(), newest)
    made = create_key(session.run.paths.folder, session.ledger, at=at, replaces=replace)
    lines = [f"key {made.fingerprint}: its fingerprint. Tell it to recipients by another way than the release folder."]
    if not session.run.run_file.output.sign:
        lines.append("Write sign = true into [output]; a running series needs `agedp ledger amend` too.")
    options.print_answer({"fingerprint": made.fingerprint}, lines, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=options.TO_HAND_OVER)
def template(
    name: Annotated[Literal["erase", "impact-assessment"], typer.Argument(help="which one", show_default=False)],
    run_file: options.RunFileArgument = options.RUN_FILE,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write it into a new file, which you alone can read")
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Fill in a template: the erasure of a household, or an impact assessment (Article 35 GDPR).

    Places, retention, released days, bounds, model, accounts, key and witness are those of run file, ledger and
    statement; each **...** is for you. The text names paths: it is confidential. --json has the number of blanks alone.

    Example: agedp template erase london.toml --out erase.md
    """
    from agedp.ledger_session import LedgerSession
    from agedp.run_context import RunContext
    from agedp.setup.filled_templates import fill_template

    session = LedgerSession.open(RunContext.load(run_file))
    filled = fill_template(name, session)
    lines = [filled.text]
    if out is not None:
        filled.write(out, session.run.release_folder)
        lines = [f"{out}: {filled.blanks} blanks are marked ... for you. The file names paths: it is confidential."]
    if out is None and not (as_json or quiet):
        options.print_text(filled.text)
    else:
        options.print_answer({"template": name, "blanks": filled.blanks}, lines, as_json=as_json, quiet=quiet)


@ledger.command()
def show(
    address: options.LedgerArgument = str(options.RUN_FILE),
    only_statements: Annotated[
        bool, typer.Option("--statements", help="only the statements, not the releases")
    ] = False,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Print the releases of the run file's population, or of a ledger given by its URL, then their statements.

    Draws of calibrations come first, if there are any. --verbose shows every digit of epsilon and hash.

    With --json the output is the releases or, with --statements, the statements.

    Example: agedp ledger show london.toml
    """
    from agedp_flows.text import ledger_text

    if as_json:
        rows = ledger_text.statement_rows_json if only_statements else ledger_text.release_rows_json
        options.print_text(json.dumps(rows(address), indent=1))
        return
    lines: list[str] = []
    if not only_statements:
        lines += ledger_text.draw_lines(address, verbose=verbose)
        lines += [*ledger_text.release_lines(ledger_text.release_rows_json(address), verbose=verbose), ""]
    lines += ledger_text.statement_lines(ledger_text.statement_rows_json(address), verbose=verbose)
    options.print_lines(lines)


@ledger.command()
def verify(
    address: options.LedgerArgument = str(options.RUN_FILE),
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Recompute every row and hash of the ledger.

    Example: agedp ledger verify london.toml
    """
    from agedp_flows.text.ledger_text import verify_ledger

    facts, text = verify_ledger(address)
    options.print_answer(facts, [text], as_json=as_json, quiet=quiet)


@ledger.command()
def amend(
    run_file: options.RunFileArgument = options.RUN_FILE,
    yes: Annotated[bool, typer.Option("--yes", help="record the change without asking")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Show how a run file changes the contract and every bound, and record the change; with --json only if --yes.

    Example: agedp ledger amend london.toml
    """
    from agedp.ledger_session import LedgerSession
    from agedp.run_context import RunContext
    from agedp.stages.amend import check_amendment_allowed, preview_amendment, record_amendment
    from agedp_flows.text.plan_text import amendment_lines

    session = LedgerSession.open_existing(RunContext.load(run_file))
    amendment = preview_amendment(session)
    check_amendment_allowed(amendment)
    if not as_json:
        options.print_lines(amendment_lines(amendment))
    is_accepted = bool(amendment.changes) and (yes or (not as_json and _confirm("record this in the ledger?")))
    if is_accepted:
        record_amendment(session, amendment)
    if as_json:
        options.print_text(json.dumps(amendment.facts | {"recorded": is_accepted}, indent=1))
    elif amendment.changes:
        options.print_text("recorded" if is_accepted else "not recorded; nothing has changed")


def _confirm(question: str) -> bool:
    """Ask the user; without an answer, as in cron, return False."""
    try:
        return typer.confirm(question)
    except typer.Abort:
        options.print_text()
        return False


@ledger.command()
def export(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="the run file", readable=False)],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="where to write the rows")],
    close: Annotated[bool, typer.Option("--close", help="close this ledger: the imported one continues it")] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Write every row of the ledger to a file, one JSON object a line.

    Example: agedp ledger export london.toml ledger.jsonl --close
    """
    from agedp_flows.text.ledger_text import export_rows

    facts, text = export_rows(run_file, file, close=close)
    move = command_step("its new place", "ledger", "import", file, "--to", "sqlite:///new/ledger.sqlite")
    options.print_answer(facts, [text, move] if close else [text], as_json=as_json, quiet=quiet)


@ledger.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="output of `agedp ledger export`", readable=False)],
    to: options.ToOption,
    lost: Annotated[
        bool,
        typer.Option(
            "--lost", help="the exported ledger was not closed and no longer exists; the new ledger records this"
        ),
    ] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Fill an empty new ledger from an exported file; every hash is recomputed.

    Example: agedp ledger import ledger.jsonl --to sqlite:///new/ledger.sqlite
    """
    from agedp.ledger_transfer import import_ledger

    rows = import_ledger(file, to, lost_at=clock.today() if lost else None)
    text = f"{rows:,} rows, every hash is correct"
    options.print_answer({"rows": rows}, [text, *after_transfer(to)], as_json=as_json, quiet=quiet)


@ledger.command()
def recover(
    folder: options.FolderArgument,
    to: options.ToOption,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Restore a lost ledger from a release folder into an empty new one, with a recovery record.

    Example: agedp ledger recover out/release --to sqlite:///out/ledger.sqlite
    """
    from agedp.ledger_transfer import recover as restore

    rows = restore(folder, to, at=clock.today())
    text = f"{rows} releases restored after a recovery record; never use the lost ledger again if it is found"
    options.print_answer({"releases": rows}, [text, *after_transfer(to)], as_json=as_json, quiet=quiet)


@ledger.command()
def households(
    run_file: options.RunFileArgument = options.RUN_FILE,
    rebuild: Annotated[bool, typer.Option("--rebuild", hidden=True)] = False,
) -> None:
    """Show the losses about one household over all populations that share one with this one, for the terminal only.

    Confidential: which populations share households is published nowhere, so there is no --json.

    Example: agedp ledger households london.toml
    """
    from agedp_flows.text.run_text import check_on_terminal, household_lines

    check_on_terminal()
    if rebuild:
        from agedp_data.config.withdrawn import REBUILD
        from agedp_data.errors import RunFileError

        raise RunFileError(REBUILD)
    options.print_lines(household_lines(run_file))


@ledger.command()
def upgrade(
    address: options.LedgerArgument = str(options.RUN_FILE),
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Record in the ledger that new rows may have the newest form; existing rows are not changed.

    A running series needs no upgrade: its next publication records it. Upgrade when every machine that uses the ledger
    has the newer agedp: older versions refuse the ledger from then on.

    Example: agedp ledger upgrade london.toml
    """
    from agedp_flows.text.ledger_text import upgrade_ledger

    facts, text = upgrade_ledger(address)
    options.print_answer(facts, [text], as_json=as_json, quiet=quiet)
