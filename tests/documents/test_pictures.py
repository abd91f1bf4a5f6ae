"""The picture of a release is drawn by the commands of its page, and shows what they publish."""

from __future__ import annotations

import re

import pytest

from tests.documents.pages import ROOT, blocks
from tests.documents.pictures import COMMANDS, DRAWINGS, drawn

_TEXT = re.compile(r"<text[^>]*>([^<]+)</text>")


@pytest.mark.parametrize("page", DRAWINGS)
def test_the_picture_of_a_page_is_that_of_its_release(page, tmp_path, monkeypatch) -> None:
    text = (ROOT / page).read_text("utf-8")
    commands = next(block.text for block in blocks(text) if block.language == "sh").replace("'", "")
    assert all(f"agedp {command}\n" in commands for command in COMMANDS[page])
    name, _ = DRAWINGS[page]
    assert f"{name})" in text
    monkeypatch.chdir(tmp_path)
    stored = (ROOT / "docs" / name).read_text("utf-8")
    assert _TEXT.findall(stored) == _TEXT.findall(drawn(page)), "run `python -m tests.documents.pictures`"
    assert len(stored) < 50_000


def test_the_chances_of_the_first_picture_are_rounded_up() -> None:
    drawing = (ROOT / "docs" / "release.svg").read_text("utf-8")
    assert {"58 %", "89 %", "99 %"} <= set(_TEXT.findall(drawing))  # 1 / (1 + e^-epsilon) at 2/7, 2 and 4
