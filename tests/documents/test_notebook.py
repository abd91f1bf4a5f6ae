"""The notebooks run from an empty folder to their ends, and their stored outputs are those of this version."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.documents.notebook import NOTEBOOKS, executed

_NUMBER = re.compile(r"-?[0-9][0-9.,]*")
_TABLES_AND_PLOTS = {"notebook": (10, 4), "notebook-sanitise": (6, 0)}


def without_numbers(outputs: list[dict]) -> list[str]:
    """Return the texts of outputs without their numbers: noise is drawn anew."""
    texts = ["".join(each.get("text", [])) + "".join(each.get("data", {}).get("text/plain", [])) for each in outputs]
    return [" ".join(_NUMBER.sub("#", text).split()) for text in texts]


def test_every_notebook_is_known():
    assert {path.stem for path in NOTEBOOKS} == set(_TABLES_AND_PLOTS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_stored_outputs_are_of_this_version(path: Path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text("utf-8")
    cells = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for cell, found in zip(code, executed(cells), strict=True):
        assert without_numbers(cell["outputs"]) == without_numbers(found)
        assert len(cell["source"]) <= 20
    tables, plots = _TABLES_AND_PLOTS[path.stem]
    assert text.count('"text/html"') >= tables
    assert text.count('"image/svg+xml"') == plots
    assert "/tmp" not in text  # noqa: S108
    assert " at 0x" not in text
    assert len(text) < 300_000
