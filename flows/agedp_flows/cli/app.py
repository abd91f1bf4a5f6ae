"""The `agedp` command: its groups of commands, errors and exit status.

An error that the user can correct, such as a path that cannot be opened, is one line on standard error; only a bug
prints a traceback. The commands are in `agedp_flows.cli`. They import their modules when they run, so that
`agedp --help` answers at once.
"""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from agedp_data.errors import AgedpError
from agedp_data.messages import escape_text
from agedp_flows.cli import ledger_commands, run_commands, setup_commands
from agedp_flows.cli import options as options_module
from agedp_flows.cli.options import STATUSES, print_text

_UsageError: Any = typer.BadParameter.__bases__[0]  # click's, or typer's own copy of click's
_SECRET = re.compile(":/{1,2}[^/@]*@")  # user and password of an address, also of one that was parsed as a path
_STOPPED_STATUS = 130  # as a shell has it for Ctrl-C
_STOPPED = "agedp: stopped; what was released before stays released, and the same command continues from there"

app = typer.Typer(
    help="Daily averages from half-hourly smart meters, published with privacy guarantees that take time into account.",
    epilog=STATUSES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for group in (setup_commands, run_commands, ledger_commands):
    app.add_typer(group.app)


def _version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        print_text(f"agedp {version('agedp')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001  (its callback uses it)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Accept the options before the name of a command, and prepare the process for it."""
    from agedp.compute.engine_settings import reuse_freed_memory

    reuse_freed_memory()


def main() -> None:
    """Run the command; print one line for an error that the user can correct, a traceback for bugs only."""
    _disable_core_dumps()
    with options_module.guarded_streams():
        _main()


def _main() -> None:
    try:
        status = typer.main.get_command(app).main(standalone_mode=False, prog_name="agedp")
        sys.stdout.flush()
    except AgedpError as error:
        options_module.print_error(_error_line(error.private))
        sys.exit(error.exit_status)
    except OSError as error:
        if error.filename is None:
            raise
        options_module.print_error(_error_line(f"{error.filename}: {error.strerror}"))
        sys.exit(AgedpError.exit_status)
    except MemoryError:
        from agedp.compute.engine_settings import NO_MEMORY

        options_module.print_error(_error_line(NO_MEMORY))
        sys.exit(AgedpError.exit_status)
    except _UsageError as error:
        if message := error.format_message():  # else the help was requested and printed
            path = "agedp" if error.ctx is None else error.ctx.command_path
            line = _error_line(message[:1].lower() + message[1:].rstrip("."))
            options_module.print_error(f"{line} (see `{path} --help`)")
        sys.exit(AgedpError.exit_status)
    except (typer.Abort, KeyboardInterrupt):
        status = _STOPPED_STATUS
    if status == _STOPPED_STATUS:
        options_module.print_error(_STOPPED, is_warning=True)
    sys.exit(status or 0)


def _error_line(message: str) -> str:
    """Return a message as one line; the password of an address is replaced."""
    return "agedp: " + escape_text(_SECRET.sub(":...@", message))


def _disable_core_dumps() -> None:
    """Disable core dumps, which would contain readings."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    main()
