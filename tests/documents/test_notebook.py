"""The notebook runs from an empty folder to its end, and what it shows is what it says when it is run."""

from __future__ import annotations

import json
import re

from tests.documents.notebook import NOTEBOOK, executed

_NUMBER = re.compile(r"-?[0-9][0-9.,]*")


def shown(outputs: list[dict]) -> list[str]:
    """What outputs are, numbers aside: noise is drawn anew."""
    texts = ["".join(each.get("text", [])) + "".join(each.get("data", {}).get("text/plain", [])) for each in outputs]
    return [" ".join(_NUMBER.sub("#", text).split()) for text in texts]


def test_the_notebook_runs_and_its_stored_outputs_are_not_those_of_another_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    stored = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    for kept, found in zip(stored, executed(cells), strict=True):
        assert shown(kept) == shown(found)


def test_the_notebook_shows_tables_and_a_picture_and_no_place_of_a_machine():
    text = NOTEBOOK.read_text("utf-8")
    assert text.count('"text/html"') >= 5
    assert text.count('"image/svg+xml"') == 1
    assert "/tmp" not in text  # noqa: S108
    assert " at 0x" not in text
