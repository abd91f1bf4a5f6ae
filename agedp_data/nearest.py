"""The name that was probably meant where another one was written."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from agedp_data.shown import shown

_LONGEST_NAME = 64


def near_to(value: object, known: Sequence[str], *, likeness: float = 0.5) -> str:
    """Return the question whether the nearest of the known names was meant, "" if none is near."""
    written_small = {name.casefold(): name for name in known}
    near = get_close_matches(str(value)[:_LONGEST_NAME].casefold(), written_small, n=1, cutoff=likeness)
    return f"; did you mean '{written_small[near[0]]}'?" if near else ""


def near_file(path: Path) -> str:
    """Return the question whether a file or folder of a similar name beside a missing one was meant, "" if none is."""
    try:
        names = [each.name for each in path.parent.iterdir() if each.name != path.name]
    except (OSError, ValueError):
        return ""
    return shown(near_to(path.name, names, likeness=0.7))
