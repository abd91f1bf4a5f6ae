"""What commands have in common: arguments and options under one name each, and how an answer is given.

Every command takes `--json`, and every command that does or checks something, rather than showing it, `--quiet`:
then neither bars nor words, only the error if there is one, and the exit status.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

TO_BEGIN, NIGHTLY, TO_HAND_OVER = "To begin", "Every night", "To hand over, check and mend"
"""Headings in the list of commands."""

STATUSES = (
    "Exit status: 0 done, or nothing was due; 1 a bug, with a traceback to report; 2 input, run file or command line; "
    "3 refused by ledger, contract or promise, nothing was drawn beyond them."
)


def day(text: str) -> date:
    """Return a date that was written on the command line."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a date such as 2013-01-31") from None


RunFileArgument = Annotated[
    Path, typer.Argument(metavar="RUN.toml", help="the run file", show_default=False, readable=False)
]
LedgerArgument = Annotated[
    str, typer.Argument(metavar="RUN.toml|URL", help="the run file, or the ledger's address", show_default=False)
]
FolderArgument = Annotated[
    str, typer.Argument(metavar="FOLDER", help="the release folder", show_default=False, readable=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object, for machines")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="no bars and no words, errors only: for cron")]
AsOfOption = Annotated[
    date | None,
    typer.Option("--as-of", metavar="DATE", parser=day, help="in a rehearsal: the simulated date to go up to"),
]
ToOption = Annotated[str, typer.Option("--to", metavar="URL", help="the new ledger, empty", show_default=False)]


def say(text: str = "") -> None:
    """Print a result."""
    typer.echo(text)


def answer(machines: dict[str, Any], people: str, *, as_json: bool, quiet: bool = False) -> None:
    """Give a result: to machines as one JSON object, to people in words, unless they want to hear of errors only."""
    if as_json:
        say(json.dumps(machines))
    elif not quiet:
        say(people)
