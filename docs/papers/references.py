"""References of claims and errata to pages: a name in brackets, which a page links and a picture writes out."""

from __future__ import annotations

import re
from typing import Final

PAGES: Final = {
    "leakage": "mathematics.md#leakage-of-a-kernel",
    "chains": "chains.md#bound",
    "goodness of fit": "chains.md#goodness-of-fit",
    "ageing": "mathematics.md#ageing",
    "temporal leakage": "mathematics.md#temporal-leakage",
    "discounting": "mathematics.md#discounting",
    "neighbourhoods": "mathematics.md#neighbourhoods",
    "sensitivity": "mathematics.md#sensitivities",
    "errata": "papers.md",
}
"""Page of each name that claims and errata have in brackets."""
_NAMED: Final = re.compile(rf"\[({'|'.join(PAGES)})\]")


def linked(text: str) -> str:
    """Return a text for a page of docs/, in which names in brackets are links.

    >>> linked("[errata], reference value")
    '[errata](papers.md), reference value'
    """
    return _NAMED.sub(lambda name: f"[{name[1]}]({PAGES[name[1]]})", text)


def cited(text: str) -> str:
    """Return a text for a picture or a table, in which names in brackets are files of the repository.

    >>> cited("drawn repaired ([errata])")
    'drawn repaired (docs/papers.md)'
    """
    return _NAMED.sub(lambda name: f"docs/{PAGES[name[1]]}", text)
