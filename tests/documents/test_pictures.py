"""The picture of a release is drawn by the commands of the README, and shows what they publish."""

from __future__ import annotations

import re

from tests.documents.pages import ROOT, blocks
from tests.documents.pictures import RELEASE, SAMPLE, SANITISE, drawn

_TEXT = re.compile(r"<text[^>]*>([^<]+)</text>")


def test_the_picture_of_a_release_is_that_of_the_readme(tmp_path, monkeypatch) -> None:
    commands = next(block.text for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.language == "sh")
    assert f"agedp {SAMPLE}\n" in commands
    assert f"agedp {SANITISE}\n" in commands.replace("'", "")
    monkeypatch.chdir(tmp_path)
    stored, text = RELEASE.read_text("utf-8"), drawn()
    assert _TEXT.findall(stored) == _TEXT.findall(text), "run `python -m tests.documents.pictures`"
    assert {"58 %", "89 %", "99 %"} <= set(_TEXT.findall(stored))  # 1 / (1 + e^-epsilon) at 2/7, 2 and 4, rounded up
    assert len(stored) < 50_000
