"""References that no reader can resolve: notes and issues that are in no repository, keys of papers without a paper.

`tests.command` looks for them in what every command of a test prints, `tests.agedp.reports.html` in every page,
`tests/golden` in every artefact, `tests/style/test_names.py` in stored pages, pictures and sources.
"""

from __future__ import annotations

import re

NOTES = re.compile(
    r"\b(?:MATHS|INVARIANTS|ECOSYSTEM)\b|\b(?:SPANS|HOUSE|DATASETS|WORDS|PEERS|STYLE)(?:\.md\b|,? (?:section )?[A-J]\b)"
    r"|\bissue #?\d+|\b[Ee]rratum [ATFD]\d"
)
"""Working notes, and numbers that they or an issue tracker have."""
KEY = re.compile(r"(?<!\w)\[([ATFDatfd])(?:\]|:|, (?=eq|sec|[TDCAF]))")
"""A paper by its letter, such as [A] or [A, eq. 55]; in small letters too, as in a text that was capitalised."""
WORKS = {
    "A": "Age-Dependent Differential Privacy",
    "T": "Quantifying Differential Privacy in Continuous Data Release",
    "F": "Temporally Discounted Differential Privacy",
    "D": "Differential Privacy with δ-Neighbourhood",
}
GLOSSARY = "glossary.md#papers"


def unresolved(text: str) -> list[str]:
    """Return the references of a text that it does not resolve itself, or by a link to the papers of the glossary."""
    keys = {match[0]: match[1].upper() for match in KEY.finditer(text)}
    lost = [shown for shown, key in keys.items() if GLOSSARY not in text and WORKS[key] not in text]
    return sorted({*NOTES.findall(text), *lost})
