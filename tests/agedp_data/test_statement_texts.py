"""The sentences of a statement: every name that a module uses has a text, and every text is used."""

from __future__ import annotations

import re
import tomllib
from itertools import chain

import pytest

from agedp_data.statement.note_texts import NOTES
from tests.source_path import ROOT

FOLDER = ROOT / "agedp_data/statement"
USED = re.compile(r'\b(NOTES|FACTS|WORDS)\.(?:(?:several|by_key)\(["\'](\w+)["\']\)|([a-z]\w*))')
SECTIONS = {"NOTES": "notes", "FACTS": "facts", "WORDS": "markdown"}


def test_the_texts_of_a_statement_are_those_that_it_uses() -> None:
    texts = tomllib.loads((FOLDER / "texts.toml").read_text(encoding="utf-8"))
    sources = chain(FOLDER.glob("*.py"), (ROOT / "pipelines/agedp").rglob("*.py"))
    matches = (match for source in sources for match in USED.finditer(source.read_text(encoding="utf-8")))
    used = {(SECTIONS[of], listed or name) for of, listed, name in (match.groups() for match in matches)}
    assert used == {(section, name) for section, of in texts.items() for name in of}


def test_a_text_that_is_none_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no text 'unknown'"):
        _ = NOTES.unknown
