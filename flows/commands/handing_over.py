"""`agedp publish`, `verify` and `audit`: the release folder again, and whether it is what it says."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from agedp_data.shown import shown
from flows.commands.options import (
    TO_HAND_OVER,
    FolderArgument,
    JsonOption,
    QuietOption,
    RunFileArgument,
    answer,
    day,
)

app = typer.Typer()


@app.command(rich_help_panel=TO_HAND_OVER)
def publish(
    run_file: RunFileArgument,
    as_of: Annotated[
        date | None,
        typer.Option("--as-of", metavar="DATE", parser=day, help="as the folder stood at the end of this day"),
    ] = None,
    statement: Annotated[
        int | None, typer.Option(metavar="SEQ", help="as this statement told of it; `ledger show` lists the numbers")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the release folder again, or as it stood at the end of a day; draws nothing and reads no reading.

    Example: agedp publish london.toml --as-of 2026-04-01
    """
    from flows.publishing import published

    machines, people = published(run_file, as_of, statement=statement)
    answer(machines, people, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=TO_HAND_OVER)
def verify(
    folder: FolderArgument,
    ledger: Annotated[str | None, typer.Option(metavar="URL", help="the ledger it was published from")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
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
    said = [f"{folder}: as it was published{', and the ledger says the same' if chained else ''}"]
    if beside := found.other_files():
        said.append(f"not of the release, and not checked: {', '.join(map(shown, beside))}")
    answer(
        {"verified": True, **chained, "not_of_the_release": list(beside)}, "\n".join(said), as_json=as_json, quiet=quiet
    )


@app.command(rich_help_panel=TO_HAND_OVER)
def audit(run_file: RunFileArgument, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Measure the loss of the real way from readings to Parquet, on made-up households with a run file's parameters.

    Example: agedp audit london.toml
    """
    from flows.auditing import audit_json, audit_lines, require_kept
    from flows.progress import bars
    from pipelines.audit import audit as measure

    with bars(wanted=not (as_json or quiet)) as told:
        found = measure(run_file, told=told)
    answer(audit_json(found), "\n".join(audit_lines(found)), as_json=as_json, quiet=quiet)
    require_kept(found)
