"""A bar per stage on the terminal, for people who wait: on standard error, and nothing if that is no terminal.

What is shown is a stage's name, how many of its pieces are done, and the address of a cluster's dashboard.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pipelines.blocks import SILENT, ProgressReporter

_WORDS = {
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
def bars(*, wanted: bool = True) -> Iterator[ProgressReporter]:
    """Yield whom the stages may tell how far they are; nobody unless it is `wanted` and there is a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield SILENT
        return
    columns = (TextColumn("{task.description:20s}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        yield _told(shown)


def _told(shown: Progress) -> ProgressReporter:
    tasks: dict[str, TaskID] = {}
    links: set[str] = set()

    def progress(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = shown.add_task(_WORDS.get(stage, stage))
        shown.update(tasks[stage], completed=done, total=total)

    def dashboard(link: str) -> None:
        if link not in links:
            links.add(link)
            shown.console.print(f"dashboard of the cluster: {link}", markup=False, highlight=False)

    return ProgressReporter(progress, dashboard)
