"""Bars for the stages of a command or of calls, by rich: on a terminal on standard error, in a notebook below the cell.

    with agedp.progress_bars():
        readings = agedp.read("incoming/*.csv")

Like Dask's `ProgressBar` they are asked for around calls, so that no function has a parameter for them. A notebook
shows rich's own page of the bars, which needs no widgets and stays in the notebook as it was last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from agedp.compute.engine_settings import SHOWN_PROGRESS, Progress

if TYPE_CHECKING:
    from rich import progress

_LABELS: Final = {
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
_SECONDS: Final = 0.1
"""Least time between two pages of a notebook."""


def new_bars() -> progress.Progress:
    """Return bars without a stage, which show nothing yet."""
    from rich.console import Console  # noqa: PLC0415  (only where bars are shown)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:20s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def stage_callback(bars: progress.Progress, shown: Callable[[], object] = lambda: None) -> Progress:
    """Return a callback for the progress of stages, with a bar for each; it calls `shown` after a change."""
    tasks: dict[str, progress.TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(_LABELS.get(stage, stage))
        bars.update(tasks[stage], completed=done, total=total)
        shown()

    return show


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show a bar for each stage of the calls in a `with` block: reading, quantizing, counting, bounding, smoothing.

    Use it around calls that take longer than a second. Bars have public names and numbers of tasks, never a household.
    Without a terminal or a notebook nothing is shown.

    >>> with progress_bars():
    ...     model = "agedp.calibrate(...)"
    """
    bars = new_bars()
    if bars.console.is_jupyter:
        with _in_notebook(bars) as show:
            yield from _shown(show)
    elif bars.console.is_terminal and not bars.console.is_dumb_terminal:
        with bars:
            yield from _shown(stage_callback(bars))
    else:
        yield


def _shown(show: Progress) -> Iterator[None]:
    token = SHOWN_PROGRESS.set(show)
    try:
        yield
    finally:
        SHOWN_PROGRESS.reset(token)


@contextmanager
def _in_notebook(bars: progress.Progress) -> Iterator[Progress]:
    page, last = import_module("IPython.display").display(bars, display_id=True), 0.0

    def refresh() -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS:
            last = time.monotonic()
            page.update(bars)

    try:
        yield stage_callback(bars, refresh)
    finally:
        page.update(bars)
