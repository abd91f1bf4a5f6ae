"""The pictures of the gallery are those that the lines of the page draw."""

from __future__ import annotations

import html
import re

from tests.documents.gallery import drawn, pictures
from tests.documents.pages import ROOT

_TEXT = re.compile(r"<text[^>]*>([^<]+)</text>")


def words(drawing: str) -> set[str]:
    """Titles, labels and legend of a drawing; ticks move with the noise."""
    return {text for text in map(html.unescape, _TEXT.findall(drawing)) if re.search(r"[a-z]{3}", text)}


def test_the_pictures_are_drawn_by_the_page(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed = dict(pictures())
    assert {f"gallery/{path.name}" for path in (ROOT / "docs" / "gallery").iterdir()} == set(listed)
    assert all(len(alt) > 40 for alt in listed.values())
    for path, drawing in zip(listed, drawn(), strict=True):
        stored = (ROOT / "docs" / path).read_text("utf-8")
        assert words(stored) == words(drawing), f"{path}: run `python -m tests.documents.gallery`"
        assert words(stored)
        assert len(stored) < 50_000
