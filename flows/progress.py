"""Progress bars, one per stage, on standard error if that is a terminal.

A bar shows the stage's name and how many of its tasks are done; the address of a cluster's dashboard is printed once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pipelines.blocks import SILENT, ProgressReporter

_STAGE_LABELS = {
    "hash": "naming files",
    "open": "opening files",
    "read": "reading",
    "days": "summing days",
    "states": "counting states",
    "edges": "quantizing",
    "counts": "counting transitions",
    "memory": "holding the period",
    "forgetting": "measuring forgetting",
    "audit": "auditing",
}


@contextmanager
def progress_bars(*, enabled: bool = True) -> Iterator[ProgressReporter]:
    """Yield a progress callback for the stages; a silent one unless `enabled` and standard error is a terminal."""
    if not (enabled and sys.stderr.isatty()):
        yield SILENT
        return
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

    return ProgressReporter(progress, dashboard)
