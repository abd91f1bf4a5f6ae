"""Arguments and options that several commands share, and how a command prints its answer, its progress, and its end.

Every command has `--json`. Every command that does or checks something, rather than showing it, has `--quiet`: it then
prints warnings and errors only, and sets the exit status. A bar, one per stage, shows the stage's name and how many of
its tasks are done, on standard error if that is a terminal that understands control codes; the address of a cluster's
dashboard is printed once.

Decisions:

* The three standard streams always exist while a command runs (`guarded_streams`).
* If a result cannot be written to standard output, the command ends with an error on standard error. A reader that
  closed the pipe, as `head` does, has what it wants: the command ends as it would have, without a word.
* Output on standard error that cannot be written, such as a progress bar on a closed terminal, is dropped.
"""

from __future__ import annotations

import io
import json
import os
import select
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

from agedp_data.errors import AgedpError, PreflightFailed
from agedp_data.messages import count_text, escape_text
from agedp_flows.text.screen import StyledLine, has_colours, has_controls, is_terminal, screen_width, shown

if TYPE_CHECKING:
    from rich.progress import Progress

    from agedp.compute.engine_settings import ProgressReporter
    from agedp.pipeline import RunSummary


_NAMES = ("stdin", "stdout", "stderr")


class _DroppingWriter(io.FileIO):
    """A stream that drops bytes which cannot be written."""

    def write(self, data: object, /) -> int:
        """Write some bytes; wait if the stream is non-blocking and full."""
        try:
            while (written_bytes := super().write(data)) is None:  # type: ignore[arg-type]
                select.select((), (self,), ())
            return written_bytes
        except OSError as error:
            return self._handle_failed_write(memoryview(data).nbytes, error)  # type: ignore[arg-type]

    def _handle_failed_write(self, length: int, error: OSError) -> int:  # noqa: ARG002  (the subclass reports it)
        return length


class _ReportingWriter(_DroppingWriter):
    """A stream that raises AgedpError, once, if bytes cannot be written; those for a closed pipe are dropped."""

    _is_reported = False

    def _handle_failed_write(self, length: int, error: OSError) -> int:
        if self._is_reported or isinstance(error, BrokenPipeError):  # Python retries to flush its buffer at exit
            return length
        self._is_reported = True
        raise AgedpError(f"standard output cannot be written ({error.strerror}); completed work is kept")


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Replace the three standard streams within the context; streams that are not files stay unchanged."""
    original_streams = {name: getattr(sys, name) for name in _NAMES}
    for descriptor, name in enumerate(_NAMES):
        setattr(sys, name, _open(descriptor) if original_streams[name] is None else _guarded(original_streams[name]))
    try:
        yield
    finally:
        with suppress(AgedpError):  # each write was flushed at once
            sys.stdout.flush()
        for name, stream in original_streams.items():
            setattr(sys, name, stream)


def _open(descriptor: int) -> TextIO:
    """Open /dev/null for a closed stream; else the next opened file would get its descriptor."""
    null_descriptor = os.open(os.devnull, os.O_RDWR)
    if null_descriptor != descriptor:
        os.dup2(null_descriptor, descriptor)
        os.close(null_descriptor)
    return os.fdopen(descriptor, "r" if descriptor == 0 else "w", encoding="utf-8", closefd=False)


def _guarded(stream: TextIO) -> TextIO:
    try:
        descriptor = stream.fileno()
    except OSError:
        return stream
    kind = {1: _ReportingWriter, 2: _DroppingWriter}.get(descriptor)
    if kind is None:
        return stream
    raw = io.BufferedWriter(kind(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=kind is _DroppingWriter)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output, on a terminal broken at words and coloured."""
    width, coloured = screen_width(), has_colours(sys.stdout)
    for line in lines:
        typer.echo(shown(line, width=width, coloured=coloured))


def print_error(line: str, *, is_warning: bool = False) -> None:
    """Print an error or a warning on standard error: one line, coloured on a terminal."""
    styled = StyledLine(line, "warning" if is_warning else "error")
    typer.echo(shown(styled, width=None, coloured=has_colours(sys.stderr)), err=True)


Verdicts = Literal["all", "concern", "none"]


@contextmanager
def progress_bars(*, enabled: bool = True, verdict: Verdicts = "all") -> Iterator[ProgressReporter]:
    """Yield callbacks for the stages; unless `enabled` and on a terminal, that of the verdict alone.

    `verdict` tells whether a verdict on a first release is printed: always, only with a cause for concern, or not.
    """
    from agedp.compute.engine_settings import ProgressReporter

    notice = {"all": _print_notice, "concern": _print_concern, "none": None}[verdict]
    if not (enabled and has_controls(sys.stderr)):
        yield ProgressReporter(notice=notice)
        return
    from agedp.compute.progress_bars import new_bars, stage_callback

    with new_bars() as bars:
        yield ProgressReporter(stage_callback(bars), _dashboard_printer(bars), notice)


def _dashboard_printer(bars: Progress) -> Callable[[str], None]:
    """Return a function that prints the address of a dashboard above the bars, once."""
    shown_links: set[str] = set()

    def dashboard(link: str) -> None:
        if link not in shown_links:
            shown_links.add(link)
            bars.console.print(f"dashboard of the cluster: {link}", markup=False, highlight=False)

    return dashboard


def _print_notice(lines: Iterable[str]) -> None:
    for line in lines:
        print_error(f"agedp: {line}", is_warning=True)


def _print_concern(lines: Sequence[str]) -> None:
    if len(lines) > 1:  # the verdict, and what it accepts or would refuse
        _print_notice(lines)


def can_ask(*, yes: bool, as_json: bool, quiet: bool) -> bool:
    """Return whether a command may ask: a person is at the terminal, and no option of a script is given."""
    return not (yes or as_json or quiet) and is_terminal(sys.stdin) and is_terminal(sys.stderr)


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
        parameters: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        given = [of for of in parameters if of.param_type_name == "option" and not (of.is_flag or of.multiple)]
        for flag, times in Counter(parameter.opts[0] for parameter in given).items():
            if times > 1:
                ctx.fail(f"{flag} is given {times} times; give it once, the values of a list with commas between them")
        return super().parse_args(ctx, args)


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


RUN_FILE = Path("run.toml")
"""The run file of a command without one: that of the current folder, as `agedp init` names it."""
RunFileArgument = Annotated[
    Path, typer.Argument(metavar="RUN.toml", help="the run file; run.toml without one", readable=False)
]
LedgerArgument = Annotated[
    str, typer.Argument(metavar="RUN.toml|URL", help="the run file, or the ledger's address; run.toml without one")
]
FolderArgument = Annotated[str, typer.Argument(metavar="FOLDER", help="the release folder", readable=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object, for machines")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="print warnings and errors only, no bars and no results: for cron")
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="print details too: every bound, assumption and comparison")
]
YesOption = Annotated[bool, typer.Option("--yes", help="ask nothing on a terminal, as without one: for scripts")]
AsOfOption = Annotated[
    date | None,
    typer.Option("--as-of", metavar="DATE", parser=parse_day, help="in a rehearsal: the simulated date of the run"),
]
ToOption = Annotated[str, typer.Option("--to", metavar="URL", help="the new ledger, empty")]


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
    summary: RunSummary, result: Callable[[], Iterable[str]], *, as_json: bool, quiet: bool, warns: bool
) -> None:
    """Print the result of a run if it released something, then warnings and alerts, then raise its error.

    `result` returns the lines to print, or the JSON; with `quiet` it is not called, because it reads released values.
    A report that failed after publication is a warning, because the release was published.

    Raises:
        Refused: the promise does not permit a day; what was released before it stays released and is printed.
        PreflightFailed: the input files make a first release senseless.
    """
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
    warnings = findings if warns else []
    if warns and summary.alerts:
        from agedp_flows.text.run_text import alert_lines

        warnings = [*findings, *alert_lines(summary.alerts)]
    stored = {row.day for row in summary.released} if quiet else set()
    skipped = [of.day for of in summary.due_days.due if f"{of.day}" in stored and not (of.skipped or of.is_drawn)]
    if warns and skipped:
        why = "its delivery never came, or too few households are on the roster"
        warnings = [*warnings, f"warning: {count_text(len(skipped), 'day')} skipped, first {skipped[0]}: {why}"]
    for line in (*format_report_warnings(summary.notices, summary.failures), *warnings):
        print_error(f"agedp: {escape_text(line, 1000)}", is_warning=True)
    summary.check_not_refused()
