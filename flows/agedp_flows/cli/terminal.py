"""The three standard streams of the command, which always exist, the lines on them, and its progress bars.

A bar, one per stage, shows the stage's name and how many of its tasks are done. Bars are on standard error if that is a
terminal that understands control codes; the address of a cluster's dashboard is printed once.

Decisions:

* If a result cannot be written to standard output, the command ends with an error on standard error.
* Output on standard error that cannot be written, such as a progress bar on a closed terminal, is dropped.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

import typer

from agedp.compute.engine_settings import ProgressReporter
from agedp_data.errors import AgedpError
from agedp_flows.text.screen import StyledLine, has_colours, has_controls, screen_width, shown

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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
    """A stream that raises AgedpError, once, if bytes cannot be written."""

    _is_reported = False

    def _handle_failed_write(self, length: int, error: OSError) -> int:
        if self._is_reported:  # Python retries to flush its buffer at exit
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
    kind = {1: _ReportingWriter, 2: _DroppingWriter}.get(_descriptor(stream))
    if kind is None:
        return stream
    raw = kind(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=kind is _DroppingWriter
    )


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except OSError:
        return -1


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output, on a terminal broken at words and coloured."""
    width, coloured = screen_width(), has_colours(sys.stdout)
    for line in lines:
        typer.echo(shown(line, width=width, coloured=coloured))


def print_error(line: str, *, is_warning: bool = False) -> None:
    """Print an error or a warning on standard error: one line, coloured on a terminal."""
    styled = StyledLine(line, "warning" if is_warning else "error")
    typer.echo(shown(styled, width=None, coloured=has_colours(sys.stderr)), err=True)


_STAGE_LABELS = {
    "hash": "hashing files",
    "open": "opening files",
    "read": "reading",
    "days": "summing days",
    "roster": "reading the roster",
    "states": "counting states",
    "edges": "quantizing",
    "counts": "counting transitions",
    "bounds": "bounding",
    "leakage": "leakage bound",
    "period": "loading the period",
    "model-check": "goodness of fit",
    "audit": "auditing",
    "smooth": "smoothing",
}


@contextmanager
def progress_bars(*, enabled: bool = True) -> Iterator[ProgressReporter]:
    """Yield callbacks for the stages; unless `enabled` and on a terminal, that of the verdict alone."""
    if not (enabled and has_controls(sys.stderr)):
        yield ProgressReporter(notice=_print_notice)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:20s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as display:
        yield _reporter(display)


def _reporter(display: Progress) -> ProgressReporter:
    tasks: dict[str, TaskID] = {}
    shown_links: set[str] = set()

    def progress(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = display.add_task(_STAGE_LABELS.get(stage, stage))
        display.update(tasks[stage], completed=done, total=total)

    def dashboard(link: str) -> None:
        if link not in shown_links:
            shown_links.add(link)
            display.console.print(f"dashboard of the cluster: {link}", markup=False, highlight=False)

    return ProgressReporter(progress, dashboard, _print_notice)


def _print_notice(line: str) -> None:
    print_error(f"agedp: {line}", is_warning=True)
