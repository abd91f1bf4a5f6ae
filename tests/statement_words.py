"""STATEMENT.md as its readers count it: the words of its first page, and what it says again."""

from __future__ import annotations

import re
from collections import Counter

FIRST_PAGE = 900
"""Words of the page before the annex, outside tables."""
_SEQUENCE, _TWICE = 8, 2
_WORD = re.compile(r"[^\W_](?:[\w.'’/:-]*\w)?")
_CODE = re.compile(r"`[0-9a-f]{64}`")


def faults(text: str) -> list[str]:
    """Return too many words of the first page, and sequences of 8 words that stand there more than twice.

    Rows of tables, whose scopes are the same, are no text; nor are the keys of the contract.
    """
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    page = _words(lines[: lines.index("# Annex")])
    found = [f"{len(page)} words before the annex"] if len(page) > FIRST_PAGE else []
    words = _words(lines)
    sequences = Counter(zip(*(words[i:] for i in range(_SEQUENCE)), strict=False))
    return found + [" ".join(of) for of, number in sequences.items() if number > _TWICE]


def _words(lines: list[str]) -> list[str]:
    return _WORD.findall(_CODE.sub("", "\n".join(lines).lower()))
