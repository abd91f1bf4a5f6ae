"""Arguments and options that several commands share, and how a command prints its answer or ends a run.

Every command has `--json`. Every command that does or checks something, rather than showing it, has `--quiet`: it then
prints warnings and errors only, and sets the exit status.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

from agedp_data.errors import PreflightFailed
from agedp_data.messages import escape_text
from agedp_flows.cli.terminal import print_error, print_lines

if TYPE_CHECKING:
    from agedp.pipeline import RunSummary


TO_BEGIN, NIGHTLY, TO_HAND_OVER = "To begin", "Every day", "To hand over, check and repair"
"""Headings in the list of commands."""

STATUSES = (
    "Exit status: 0 done, or nothing was due; 1 a bug, with a traceback to report; 2 input, run file or command line; "
    "3 refused by ledger, contract or promise, and nothing was drawn beyond them."
)


class OnceCommand(TyperCommand):
    """A command that refuses an option with a value given twice, of which only the last would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  (typer does not export its type)
        """Parse the arguments, unless an option with one value is repeated."""
        _, _, parameters = self.make_parser(ctx).parse_args(args=list(args))
        for name, times in Counter(parameter.name for parameter in parameters if _has_one_value(parameter)).items():
            if times > 1:
                flag = next(parameter.opts[0] for parameter in parameters if parameter.name == name)
                ctx.fail(f"{flag} is given {times} times; give it once, the values of a list with commas between them")
        return super().parse_args(ctx, args)


def _has_one_value(parameter: Any) -> bool:  # noqa: ANN401  (a parameter of click, whichever copy)
    return parameter.param_type_name == "option" and not (parameter.is_flag or parameter.multiple)


class CommandGroup(typer.Typer):
    """A group whose commands are `OnceCommand`s."""

    def command(
        self,
        name: str | None = None,
        *,
        cls: type[TyperCommand] | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Return a decorator that adds a command."""
        return super().command(name, cls=cls or OnceCommand, **settings)


def parse_day(text: str) -> date:
    """Return the date in an argument of the command line."""
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
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="print warnings and errors only, no bars and no results: for cron")
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="print details too: every bound, assumption and comparison")
]
AsOfOption = Annotated[
    date | None,
    typer.Option("--as-of", metavar="DATE", parser=parse_day, help="in a rehearsal: the simulated date of the run"),
]
ToOption = Annotated[str, typer.Option("--to", metavar="URL", help="the new ledger, empty", show_default=False)]


def split_words(values: list[str] | None) -> list[str]:
    """Return the words of a repeated option, of which each value may be a list with commas."""
    return [word.strip() for value in values or () for word in value.split(",")]


def print_text(text: str = "") -> None:
    """Print a text unchanged, such as JSON."""
    typer.echo(text)


def print_answer(facts: dict[str, Any], lines: Iterable[str], *, as_json: bool, quiet: bool = False) -> None:
    """Print a result: `facts` as one JSON object, or `lines`; with `quiet` nothing."""
    if as_json:
        print_text(json.dumps(facts))
    elif not quiet:
        print_lines(lines)


def end_run(
    summary: RunSummary,
    result: Callable[[], Iterable[str]],
    *,
    as_json: bool,
    quiet: bool,
    warns: bool,
) -> None:
    """Print the result of a run if it released something, then warnings and alerts, then raise its error.

    `result` returns the lines to print, or the JSON; with `quiet` it is not called, because it reads released values.
    A report that failed after publication is a warning, because the release was published.

    Raises:
        Refused: the promise does not permit a day; what was released before it stays released and is printed.
        PreflightFailed: the input files make a first release senseless.
    """
    from agedp.preflight.alerts import format_alerts
    from agedp.stages.report import format_report_warnings

    error, checked = summary.refusal, summary.checked
    if error is None or summary.released:
        if as_json:
            print_text("\n".join(result()))
        elif not quiet:
            print_lines(result())
    elif isinstance(error, PreflightFailed) and not (as_json or quiet):
        from agedp_flows.text.run_text import preflight_lines

        print_lines(preflight_lines(checked))
    unseen = checked.findings if quiet and checked is not None and checked.sums.is_first else ()
    findings = [f"warning: {finding.name}: {finding.text}" for finding in unseen if finding.verdict == "warning"]
    warnings = [*findings, *format_alerts(summary.alerts)] if warns else []
    for line in (*format_report_warnings(summary.notices, summary.failures), *warnings):
        print_error(f"agedp: {escape_text(line, 1000)}", is_warning=True)
    summary.check_not_refused()
