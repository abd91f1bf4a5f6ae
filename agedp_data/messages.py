"""Texts inside a message: names and values of a run file, suggestions for a misspelt name, and foreign text.

* Names and values are written in the syntax of the run file.
* A misspelt name is answered with the nearest known name. Example: "clasical" gives "did you mean 'classical'?".
* Foreign text, such as a file name, becomes one printable line.

Decisions:

* A suggestion is made only for a likely misspelling, and only where confusing the two names is harmless. Two kinds are
  never suggested: the opposite ("end" for "begin", "max_missing" for "min_missing") and another magnitude ("Wh" for
  "MWh", "age_days" for "age_hours").
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from agedp_data.errors import AgedpError


def escape_text(text: str, longest: int | None = None) -> str:
    r"""Return a text with unprintable characters escaped, truncated if long; use it on foreign text in messages.

    Args:
        text: text from a file, a name or a service.
        longest: largest number of characters before escaping; None: no limit.

    >>> escape_text("two\nlines"), escape_text("a" * 9, longest=5)
    ('two\\nlines', 'aa...')
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 3] + "..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


_DECEIVING: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, characters that change the direction of writing, and halves of surrogate pairs."""


def escape_controls(text: str, *, has_lines: bool = False) -> str:
    r"""Return a text whose control and direction characters are escaped; every page and the terminal use it.

    A label of a roster or of a stranger's folder may contain them: they move a cursor, colour a terminal, or show the
    letters after them backwards. Unlike by `escape_text`, spaces of other widths stay.

    Args:
        text: a line, or a page.
        has_lines: whether line feeds separate lines of a page, and so stay.

    >>> print(escape_controls("north\u202etes\x1b[2J"))
    north\u202etes\x1b[2J
    """

    def escaped(match: re.Match[str]) -> str:
        char = match[0]
        return char if has_lines and char == "\n" else char.encode("unicode_escape").decode()

    return _DECEIVING.sub(escaped, text)


def sentence_start(text: str) -> str:
    """Return a text with a capital first letter; the others stay, unlike `str.capitalize`.

    >>> sentence_start("change of 2 kWh")
    'Change of 2 kWh'
    """
    return text[:1].upper() + text[1:]


_MAX_VALUE_LENGTH, _MAX_NAME_LENGTH = 80, 64


def short_name(name: str) -> str:
    """Return the name of a table or key for a message: printable, at most 64 characters before escaping.

    >>> len(short_name("k" * 100))
    64
    """
    return escape_text(name, _MAX_NAME_LENGTH)


def format_value(value: object) -> str:
    """Return a value in the syntax of a run file, shortened to 80 characters.

    >>> format_value(["a", 5, True])
    '["a", 5, true]'
    >>> format_value(Decimal("1E-9"))
    '0.000000001'
    """
    return escape_text(_format_toml(value), _MAX_VALUE_LENGTH)


def _format_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_format_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, Decimal):
        return "nan" if value.is_nan() else _format_decimal(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _format_decimal(value: Decimal) -> str:
    """Return a number without an exponent, unless it would have more than 80 digits."""
    if value.is_finite() and abs(value.adjusted()) > _MAX_VALUE_LENGTH:
        return str(value)
    return f"{value:f}".lower().replace("infinity", "inf")


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


def suggest_name(value: object, names: Sequence[str], *, likeness: float = 0.5) -> str:
    """Return the question whether the nearest known name was meant, "" if none is near; append it to an error message.

    Args:
        value: name as the user wrote it.
        names: known names.
        likeness: smallest part of the letters that must agree, 0 to 1. One letter of three or more may always be wrong,
            and never more than a third of them.

    >>> suggest_name("clasical", ["classical", "w-event"])
    "; did you mean 'classical'?"
    >>> suggest_name("begin", ["end", "start"]), suggest_name("MWh", ["kWh", "Wh"])
    ('', '')
    """
    value_text, wrong_share = str(value)[:_MAX_NAME_LENGTH], 1 - max(likeness, 2 / 3)
    plausible = []
    for name in (name for name in names if not is_confusable(value_text, name)):
        edits, length = _edit_distance(value_text.casefold(), name.casefold()), max(len(value_text), len(name))
        if edits <= max(int(length >= 3), int(wrong_share * length + 1e-9)):
            plausible.append((edits, name))
    return f"; did you mean '{min(plausible, key=lambda candidate: candidate[0])[1]}'?" if plausible else ""


def is_confusable(value: str, name: str) -> bool:
    """Return whether a name differs from a written one by an opposite or by a unit; such a name is never suggested.

    >>> is_confusable("clamp_wh", "clamp_kwh"), is_confusable("clamp_kwhs", "clamp_kwh")
    (True, False)
    """
    value_words, name_words = (_words(text) for text in (value, name))
    missing_words = [word for word in value_words if word not in name_words]
    extra_words = [word for word in name_words if word not in value_words]
    if any(word in _UNITS for word in missing_words):
        return True
    if len(value_words) == len(name_words) == 1 and name_words[0] in _UNITS and value_words != name_words:
        return True
    if any(_are_opposites(word, extra) for word in missing_words for extra in extra_words):
        return True
    folded = (value.casefold(), name.casefold())
    return _is_negation(*folded) or _is_negation(*reversed(folded))


def _words(name: str) -> list[str]:
    """Return the words of a name, units in the singular."""
    words = _WORDS.findall(name.casefold())
    return [word.removesuffix("s") if word.removesuffix("s") in _UNITS else word for word in words]


def _are_opposites(first: str, second: str) -> bool:
    sides = [tuple(side.split() for side in pair) for pair in _OPPOSITES]
    return any((first in a and second in b) or (first in b and second in a) for a, b in sides)


def _is_negation(first: str, second: str) -> bool:
    return any(first in (f"{prefix}{second}", f"{prefix}-{second}", f"{prefix}_{second}") for prefix in _NEGATIONS)


def _edit_distance(first: str, second: str) -> int:
    """Return the number of letters that are wrong, missing, superfluous or swapped with a neighbour (Damerau 1964)."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, two_before, row = row, before, [i] + [0] * len(second)
        for j, second_letter in enumerate(second, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != second_letter))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == second_letter:
                row[j] = min(row[j], two_before[j - 2] + 1)
    return row[-1]


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_text(1, "day"), count_text(1200, "day")
    ('1 day', '1,200 days')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def percent_text(part: float) -> str:
    """Return a part of 1 as a percentage with two digits.

    >>> percent_text(0.0976), percent_text(10)
    ('9.8 %', '1000 %')
    """
    return f"{Decimal(f'{100 * part:.2g}'):f} %"


def check_one_of(name: str, value: object, known: Collection[str], error: type[AgedpError]) -> None:
    """Refuse a word that is none of the known ones, in the syntax of a run file or, of an `--option`, of a command.

    Raises:
        AgedpError: of the given class.

    >>> check_one_of("step", "hour", ["half-hour", "day"], AgedpError)
    Traceback (most recent call last):
    agedp_data.errors.AgedpError: step = "hour": must be one of "half-hour", "day"
    """
    if value not in known:
        sign, text = (" ", str) if name.startswith("--") else (" = ", format_value)
        raise error(f"{name}{sign}{text(value)}: must be one of {', '.join(map(text, known))}")


def suggest_file(path: Path) -> str:
    """Return the question whether a file of a similar name in the same folder was meant, "" if none is similar.

    Use it where a file does not exist, in the private text of an error: file names are not public.
    """
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.name != path.name]
    except (OSError, ValueError):
        return ""
    matches = get_close_matches(path.name, names, n=1, cutoff=0.7)  # of files only the beginning may be alike
    return escape_text(f"; did you mean '{matches[0]}'?") if matches else ""
