"""A sampler keyed by series and day, and a journal of every draw.

The sampler needs to know for what it draws, which `noise.discrete_laplace` is not told; `Ledger.release` is, so its
`draw` is wrapped. Nothing else of what is tested is replaced.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from agedp_data import mechanisms
from agedp_data.ledger import Ledger

JOURNAL = "draws.txt"
_drawn_for: ContextVar[tuple[str, str]] = ContextVar("drawn_for")


def keyed_noise(series: str, day: str, cell: int, *, sensitivity: int) -> int:
    """Return whole noise of at most `sensitivity` either way that only series, day and cell decide."""
    digest = hashlib.sha256(f"{series} {day} {cell}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (2 * sensitivity + 1) - sensitivity


@contextmanager
def keyed_sampler(journal: Path) -> Iterator[None]:
    """Draw by key and write each draw into `journal`."""
    with (
        mock.patch.object(Ledger, "release", _releasing(Ledger.release, journal)),
        mock.patch.object(mechanisms, "discrete_laplace", _laplace),
    ):
        yield


def draws(journal: Path) -> Counter[tuple[str, str]]:
    """Return how often each (series, day) was drawn, by all processes."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return Counter((series, day) for series, day in (line.split(" ") for line in lines))


def _laplace(values: Any, *, sensitivity: int, loss: object) -> np.ndarray:
    series, day = _drawn_for.get()
    noises = [keyed_noise(series, day, cell, sensitivity=sensitivity) for cell in range(len(values))]
    return np.asarray(values, np.int64) + np.array(noises, np.int64)


def _releasing(release: Callable[..., Any], journal: Path) -> Callable[..., Any]:
    def wrapped(self: Ledger, population: str, series: str, day: object, *, draw: Any, admit: Any) -> Any:
        def noted(row: Any) -> Any:
            with journal.open("a") as stream:
                stream.write(f"{series} {day}\n")
            token = _drawn_for.set((series, str(day)))
            try:
                return draw(row)
            finally:
                _drawn_for.reset(token)

        return release(self, population, series, day, draw=noted, admit=admit)

    return wrapped
