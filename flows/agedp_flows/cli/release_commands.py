"""`agedp publish`, `verify` and `audit`: write a release folder again, verify it, measure the privacy loss."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from agedp_data.messages import escape_text
from agedp_flows.cli.options import (
    TO_HAND_OVER,
    FolderArgument,
    JsonOption,
    QuietOption,
    RunFileArgument,
    parse_day,
    print_answer,
)

app = typer.Typer()


@app.command(rich_help_panel=TO_HAND_OVER)
def publish(
    run_file: RunFileArgument,
    as_of: Annotated[
        date | None,
        typer.Option("--as-of", metavar="DATE", parser=parse_day, help="the folder as of the end of this day"),
    ] = None,
    statement: Annotated[
        int | None, typer.Option(metavar="SEQ", help="the folder as of this statement; `ledger show` lists the numbers")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the release folder again, as of now or of the end of a day; draws no noise and uses no readings.

    Example: agedp publish london.toml --as-of 2026-04-01
    """
    from agedp_flows.text.run_text import publish_folder

    facts, text = publish_folder(run_file, as_of, statement=statement)
    print_answer(facts, text, as_json=as_json, quiet=quiet)


@app.command(rich_help_panel=TO_HAND_OVER)
def verify(
    folder: FolderArgument,
    ledger: Annotated[str | None, typer.Option(metavar="URL", help="the ledger it was published from")] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a release folder: checksums, schema, arithmetic, and the hash chain if a ledger is given. For recipients.

    Example: agedp verify out/release
    """
    from agedp.release_folder.release_folder import open_release
    from agedp_flows.text.ledger_text import verify_folder_against

    release = open_release(folder)
    release.verify()
    chain_facts = {} if ledger is None else {"chain": True}
    if ledger is not None:
        verify_folder_against(release, ledger)
    lines = [f"{folder}: as it was published{', and it equals the ledger' if chain_facts else ''}"]
    if foreign_files := release.other_files():
        lines.append(f"not part of the release, and not checked: {', '.join(map(escape_text, foreign_files))}")
    print_answer(
        {"verified": True, **chain_facts, "not_of_the_release": list(foreign_files)},
        "\n".join(lines),
        as_json=as_json,
        quiet=quiet,
    )


@app.command(rich_help_panel=TO_HAND_OVER)
def audit(run_file: RunFileArgument, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Measure the privacy loss of the whole pipeline on synthetic households, with a run file's parameters.

    Example: agedp audit london.toml
    """
    from agedp.privacy_audit import audit as measure
    from agedp_flows.cli.terminal import progress_bars
    from agedp_flows.text.audit_text import audit_json, audit_lines, require_no_violation

    with progress_bars(enabled=not (as_json or quiet)) as progress:
        audit_result = measure(run_file, progress=progress)
    print_answer(audit_json(audit_result), "\n".join(audit_lines(audit_result)), as_json=as_json, quiet=quiet)
    require_no_violation(audit_result)
