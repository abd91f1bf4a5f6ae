"""Names and values of a run file inside a message: as the file writes them, and the nearest that is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path

from agedp_data.shown import shown

_LONGEST, _LONGEST_NAME = 80, 64


def short(name: str) -> str:
    """Return the name of a table or key, cut short if it is long."""
    return shown(name, _LONGEST_NAME)


def near_to(value: object, known: Sequence[str], *, likeness: float = 0.5) -> str:
    """Return the question whether the nearest of the known names was meant, "" if none is near."""
    written_small = {name.casefold(): name for name in known}
    near = get_close_matches(str(value)[:_LONGEST_NAME].casefold(), written_small, n=1, cutoff=likeness)
    return f"; did you mean '{written_small[near[0]]}'?" if near else ""


def near_file(path: Path) -> str:
    """Return the question whether a file or folder of a similar name beside a missing one was meant, "" if none is."""
    try:
        names = [each.name for each in path.parent.iterdir()]
    except (OSError, ValueError):
        return ""
    return shown(near_to(path.name, names, likeness=0.7))


def written(value: object) -> str:
    """Return a value as the run file writes it, cut short if it is long.

    >>> written(["a", 5, True])
    '["a", 5, true]'
    """
    return shown(_toml(value), _LONGEST)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, Decimal) and not value.is_finite():
        return "nan" if value.is_nan() else f"{value:f}".lower().replace("infinity", "inf")
    return value.isoformat() if isinstance(value, date) else str(value)
