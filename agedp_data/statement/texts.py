"""The sentences of a privacy statement: prose in `texts.toml`, by section and name.

>>> NOTES.own_days_too
'The model was estimated from days that are released here as well.'

The sections are of `note_texts`, `facts` and `markdown`, which has two. Names in braces are filled in there.
Prose is written, read and compared as prose, and the modules say when a sentence applies.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final


class Texts:
    """The texts of a section, each an attribute; or several under one name, in order or by a key."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._texts = texts

    def __getattr__(self, name: str) -> str:
        if name not in self._texts:
            raise AttributeError(f"there is no text {name!r}")
        text: str = self._texts[name]
        return text

    def several(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        return tuple(self._texts[name])

    def by_key(self, name: str) -> Mapping[str, str]:
        """Return the texts of a table by their keys."""
        texts: Mapping[str, str] = self._texts[name]
        return texts


def read_texts(file: Path) -> dict[str, Texts]:
    """Return the texts of a TOML file by section."""
    return {section: Texts(texts) for section, texts in tomllib.loads(file.read_text(encoding="utf-8")).items()}


_SECTIONS: Final = read_texts(Path(__file__).with_name("texts.toml"))
NOTES: Final = _SECTIONS["notes"]
FACTS: Final = _SECTIONS["facts"]
WORDS: Final = _SECTIONS["markdown"]
SENTENCES: Final = _SECTIONS["series"]
