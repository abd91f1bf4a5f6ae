"""Globs, in which `**` matches folders at any depth, including links to folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import escape, glob
from pathlib import Path

_ANY_DEPTH = re.compile(r"(?:^|(?<=/))\*\*(?:/|$)")


def expand_glob(pattern: str) -> Iterator[str]:
    """Yield the paths that a glob matches. Each folder under `**` is entered once: links may be circular."""
    match = _ANY_DEPTH.search(pattern)
    if match is None:
        yield from glob(pattern)  # noqa: PTH207  (Path.glob accepts no absolute pattern)
        return
    before, after = pattern[: match.start()], pattern[match.end() :] or "*"
    entered: set[tuple[int, int]] = set()
    for top in glob(before) if before else ["."]:  # noqa: PTH207
        for folder in _folders(top, entered):
            yield from expand_glob(f"{escape(folder.rstrip('/'))}/{after}")


def _folders(top: str, entered: set[tuple[int, int]]) -> Iterator[str]:
    for folder, subfolders, _ in os.walk(top, onerror=_raise_error, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            subfolders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield folder


def _raise_error(error: OSError) -> None:
    raise error
