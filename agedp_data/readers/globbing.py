"""Globs, in which `**` stands for folders at any depth, links to folders included."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import escape, glob
from pathlib import Path

_ANY_DEPTH = re.compile(r"(?:^|(?<=/))\*\*(?:/|$)")


def globbed(pattern: str) -> Iterator[str]:
    """Yield what a glob names. Of the folders under `**` each is entered once: links may lead round in circles."""
    found = _ANY_DEPTH.search(pattern)
    if found is None:
        yield from glob(pattern)  # noqa: PTH207  (Path.glob takes no absolute one)
        return
    before, after = pattern[: found.start()], pattern[found.end() :] or "*"
    entered: set[tuple[int, int]] = set()
    for top in glob(before) if before else ["."]:  # noqa: PTH207
        for folder in _folders(top, entered):
            yield from globbed(f"{escape(folder.rstrip('/'))}/{after}")


def _folders(top: str, entered: set[tuple[int, int]]) -> Iterator[str]:
    for folder, below, _ in os.walk(top, onerror=_raised, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            below.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield folder


def _raised(error: OSError) -> None:
    raise error
