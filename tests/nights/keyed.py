"""A sampler keyed by series and day, a journal of every draw, and places at which a run is killed.

The sampler needs to know for what it draws, which `noise.discrete_laplace` is not told; `Ledger.release` is, so its
`draw` is wrapped. Nothing else of what is tested is replaced.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any
from unittest import mock

import numpy as np

from agedp.local_files import atomic_files
from agedp_data import mechanisms
from agedp_data.ledger import Ledger

JOURNAL = "draws.txt"
_drawn_for: ContextVar[tuple[str, str]] = ContextVar("drawn_for")

PLACES: dict[str, Callable[[Path], bool]] = {
    "parts": lambda path: path.parent.name.startswith("month=") and path.parent.parent.name == "store",
    "manifest": lambda path: path.parent.name == "files",
    "days": lambda path: path.parent.parent.name == "days",
    "sums": lambda path: path.name == "sums.parquet",
    "rosters": lambda path: path.name == "released_rosters.parquet",
    "averages": lambda path: path.name == "daily_averages.parquet",
    "statement": lambda path: path.name == "statement.json",
    "checksums": lambda path: path.name == "SHA256SUMS",
    "means": lambda path: path.name == "true_means.parquet",
}
"""Files in the middle of whose writing a run can be killed; beside them "draw", "commit" and "record"."""
POINTS = ("draw", "commit", "record", *PLACES)


def keyed_noise(series: str, day: str, cell: int, *, sensitivity: int) -> int:
    """Return whole noise of at most `sensitivity` either way that only series, day and cell decide."""
    digest = hashlib.sha256(f"{series} {day} {cell}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (2 * sensitivity + 1) - sensitivity


@contextmanager
def keyed_sampler(journal: Path, *, kill_at: str = "") -> Iterator[None]:
    """Draw by key and note each draw in `journal`, and kill this very process at `kill_at` (one of POINTS)."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Ledger, "release", _releasing(Ledger.release, journal, kill_at)))
        stack.enter_context(mock.patch.object(mechanisms, "discrete_laplace", _laplace))
        if kill_at == "record":
            stack.enter_context(mock.patch.object(Ledger, "record", _followed_by_death(Ledger.record)))
        if kill_at in PLACES:
            dying = _dying_writer(atomic_files.write_with, PLACES[kill_at])
            stack.enter_context(mock.patch.object(atomic_files, "write_with", dying))
        yield


def draws(journal: Path) -> Counter[tuple[str, str]]:
    """Return how often each (series, day) was drawn, by all processes."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return Counter((series, day) for series, day in (line.split(" ") for line in lines))


def last_draw(journal: Path) -> tuple[str, str]:
    series, day = journal.read_text().splitlines()[-1].split(" ")
    return series, day


def _laplace(values: Any, *, sensitivity: int, loss: object) -> np.ndarray:
    series, day = _drawn_for.get()
    noises = [keyed_noise(series, day, cell, sensitivity=sensitivity) for cell in range(len(values))]
    return np.asarray(values, np.int64) + np.array(noises, np.int64)


def _releasing(release: Callable[..., Any], journal: Path, kill_at: str) -> Callable[..., Any]:
    def wrapped(self: Ledger, population: str, series: str, day: object, *, draw: Any, admit: Any) -> Any:
        drawn = []

        def noted(row: Any) -> Any:
            with journal.open("a") as stream:
                stream.write(f"{series} {day}\n")
            if kill_at == "draw":
                _die()
            drawn.append(day)
            token = _drawn_for.set((series, str(day)))
            try:
                return draw(row)
            finally:
                _drawn_for.reset(token)

        row = release(self, population, series, day, draw=noted, admit=admit)
        if drawn and kill_at == "commit":
            _die()
        return row

    return wrapped


def _followed_by_death(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **options: Any) -> None:
        call(*args, **options)
        _die()

    return wrapped


def _dying_writer(write_with: Callable[..., None], here: Callable[[Path], bool]) -> Callable[..., None]:
    def wrapped(path: Path, fill: Callable[[IO[bytes]], object], **options: Any) -> None:
        def half(stream: IO[bytes]) -> None:
            fill(stream)
            _die()

        write_with(path, half if here(path) else fill, **options)

    return wrapped


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
