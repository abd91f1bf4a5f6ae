"""The `agedp` command: its groups put together, and how it ends.

Whatever the user can mend is one line on standard error, and so is a path that the system does not take; a traceback
is a bug's. The commands are in `flows.commands`; what they import is imported when they run, so `agedp --help`
answers at once.
"""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from agedp_data.errors import AgedpError
from agedp_data.shown import escape_text
from flows import streams
from flows.commands import beginning, from_files, handing_over, ledger, nightly
from flows.commands.options import STATUSES, say

_UsageError: Any = typer.BadParameter.__bases__[0]  # click's, or typer's own copy of click's
_SECRET = re.compile(":/{1,2}[^/@]*@")  # user and password of an address, also one that was taken for a path
_STOPPED = 130  # as a shell has it for Ctrl-C

app = typer.Typer(
    help="Daily averages from half-hourly smart meters, published with privacy guarantees that take time into account.",
    epilog=STATUSES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for group in (from_files, beginning, nightly, handing_over, ledger):
    app.add_typer(group.app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"agedp {version('agedp')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take what stands before the name of a command."""


def main() -> None:
    """Run the command; one line for what the user can mend, a traceback for bugs only."""
    _without_core()
    with streams.arranged():
        _main()


def _main() -> None:
    try:
        status = typer.main.get_command(app).main(standalone_mode=False, prog_name="agedp")
        sys.stdout.flush()
    except AgedpError as error:
        typer.echo(_line(error.private), err=True)
        sys.exit(error.exit_status)
    except OSError as error:
        if error.filename is None:
            raise
        typer.echo(_line(f"{error.filename}: {error.strerror}"), err=True)
        sys.exit(AgedpError.exit_status)
    except _UsageError as error:
        if said := error.format_message():  # else its help was asked for and given
            typer.echo(_usage(said, error.ctx), err=True)
        sys.exit(AgedpError.exit_status)
    except (typer.Abort, KeyboardInterrupt):
        status = _STOPPED
    if status == _STOPPED:
        typer.echo("agedp: stopped; what was committed before stays, and the next run goes on from there", err=True)
    sys.exit(status or 0)


def _usage(said: str, context: Any) -> str:  # noqa: ANN401  (click's, whoever carries it)
    """Return one line about a wrong command line, with the command whose help helps."""
    where = "agedp" if context is None else context.command_path
    return f"{_line(said[:1].lower() + said[1:].rstrip('.'))} (see `{where} --help`)"


def _line(said: str) -> str:
    """Return a message as one line, whatever names and addresses it quotes; a password in one stays unsaid."""
    return "agedp: " + escape_text(_SECRET.sub(":...@", said))


def _without_core() -> None:
    """Let no crash write this process's memory, readings and all, to wherever the system puts such files."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    main()
