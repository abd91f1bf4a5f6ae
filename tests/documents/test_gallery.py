"""The pictures of the gallery are those that its lines draw."""

from __future__ import annotations

import html
import re

import pytest

from tests.documents.gallery import GALLERY, drawn, shown

_TEXT = re.compile(r"<text[^>]*>([^<]+)</text>")


def words(drawing: str) -> set[str]:
    """Titles, labels and legend of a drawing; ticks move with the noise."""
    return {text for text in map(html.unescape, _TEXT.findall(drawing)) if re.search(r"[a-z]{3}", text)}


@pytest.mark.long
def test_the_pictures_are_those_of_the_script_and_shown_on_pages(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    alternatives = dict(shown())
    assert all(len(alt) > 40 for alt in alternatives.values())
    drawings = dict(drawn())
    assert {path.stem for path in GALLERY.glob("*.svg")} == drawings.keys() == alternatives.keys()
    for name, drawing in drawings.items():
        stored = (GALLERY / f"{name}.svg").read_text("utf-8")
        assert words(stored) == words(drawing), f"{name}: run `python -m tests.documents.gallery`"
        assert words(stored)
        assert len(stored) < 80_000
