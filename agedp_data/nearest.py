"""The name that was probably meant where another one was written.

A proposal is made only if it is a likely slip of the pen and confusing the two is harmless. Two kinds are never
proposed: the opposite ("end" for "begin", "max_missing" for "min_missing") and another magnitude ("Wh" for "MWh",
"age_days" for "age_hours").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from agedp_data.shown import escape_text

_LONGEST_NAME = 64

_OPPOSITES: Final = (
    ("start begin first from before", "end finish last to after"),
    ("early earlier earliest", "late later latest"),
    ("min minimum least low lower lowest", "max maximum most high upper highest"),
    ("lower", "raise"),
    (
        "yes true on with all allow include present known public",
        "no false off without none refuse exclude absent private",
    ),
    ("input", "output"),
    ("past backward left row", "future forward right column"),
)
_UNITS: Final = frozenset(
    word
    for kind in (
        "w kw mw gw wh kwh mwh gwh twh j kj mj gj v kv a ma",
        "half quarter second minute hour hourly day daily week weekly month monthly year yearly per",
        "bytes kib mib gib",
    )
    for word in kind.split()
)
_NEGATIONS: Final = ("in", "un", "non", "not", "anti", "dis", "de")
_WORDS: Final = re.compile(r"[^\W_]+")


def suggest_name(value: object, known: Sequence[str], *, likeness: float = 0.5) -> str:
    """Return the question whether the nearest of the known names was meant, "" if none is near.

    `likeness` is the least share of letters that agree, 0 to 1; one letter of three or more may be wrong whatever it
    says, and never more than a third of them.

    >>> suggest_name("clasical", ["classical", "w-event"])
    "; did you mean 'classical'?"
    >>> suggest_name("begin", ["end", "start"]), suggest_name("MWh", ["kWh", "Wh"])
    ('', '')
    """
    written = str(value)[:_LONGEST_NAME]
    near = [
        (_edit_distance(written.casefold(), name.casefold()), name)
        for name in known
        if not is_confusable(written, name)
    ]
    likely = [(edits, name) for edits, name in near if edits <= _max_edits(max(len(written), len(name)), likeness)]
    return f"; did you mean '{min(likely, key=lambda one: one[0])[1]}'?" if likely else ""


def _max_edits(length: int, likeness: float) -> int:
    """Return how many letters of a name may be wrong: one of three in any case, else up to a third."""
    return max(int(length >= 3), int((1 - max(likeness, 2 / 3)) * length + 1e-9))


def is_confusable(written: str, name: str) -> bool:
    """Return whether a name differs from what was written by an opposite or by a unit.

    >>> is_confusable("clamp_wh", "clamp_kwh"), is_confusable("clamp_kwhs", "clamp_kwh")
    (True, False)
    """
    one, other = (_words(each) for each in (written, name))
    lost, new = [word for word in one if word not in other], [word for word in other if word not in one]
    if any(word in _UNITS for word in lost):
        return True
    if len(one) == len(other) == 1 and other[0] in _UNITS and one != other:
        return True
    if any(_are_opposites(word, another) for word in lost for another in new):
        return True
    both = (written.casefold(), name.casefold())
    return _is_negation(*both) or _is_negation(*reversed(both))


def _words(name: str) -> list[str]:
    """Return the words of a name, units in the singular."""
    words = _WORDS.findall(name.casefold())
    return [word.removesuffix("s") if word.removesuffix("s") in _UNITS else word for word in words]


def _are_opposites(one: str, other: str) -> bool:
    sides = [tuple(side.split() for side in pair) for pair in _OPPOSITES]
    return any((one in a and other in b) or (one in b and other in a) for a, b in sides)


def _is_negation(one: str, other: str) -> bool:
    return any(one in (f"{prefix}{other}", f"{prefix}-{other}", f"{prefix}_{other}") for prefix in _NEGATIONS)


def _edit_distance(one: str, other: str) -> int:
    """Return how many letters are wrong, missing, too many or exchanged with their neighbour (Damerau)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i] + [0] * len(other)
        for j, another in enumerate(other, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != another))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == another:
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def suggest_file(path: Path) -> str:
    """Return the question whether a file or folder of a similar name beside a missing one was meant, "" if none is."""
    try:
        names = [each.name for each in path.parent.iterdir() if each.name != path.name]
    except (OSError, ValueError):
        return ""
    near = get_close_matches(path.name, names, n=1, cutoff=0.7)  # of files only the beginning may be alike
    return escape_text(f"; did you mean '{near[0]}'?") if near else ""
