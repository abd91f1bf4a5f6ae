"""The notebook runs from an empty folder to its end, and its stored outputs are those of this version."""

from __future__ import annotations

import json
import re

from agedp_data.markov.mixing import MIXING_NAMES
from tests.documents.notebook import NOTEBOOK, executed

_NUMBER = re.compile(r"-?[0-9][0-9.,]*")


def without_numbers(outputs: list[dict]) -> list[str]:
    """Return the texts of outputs without their numbers: noise is drawn anew."""
    texts = ["".join(each.get("text", [])) + "".join(each.get("data", {}).get("text/plain", [])) for each in outputs]
    return [" ".join(_NUMBER.sub("#", text).split()) for text in texts]


def test_the_notebook_runs_and_its_stored_outputs_are_of_this_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    stored = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    for kept, found in zip(stored, executed(cells), strict=True):
        assert without_numbers(kept) == without_numbers(found)
    text = NOTEBOOK.read_text("utf-8")
    assert text.count('"text/html"') >= 5
    assert text.count('"image/svg+xml"') == 4
    assert "/tmp" not in text  # noqa: S108
    assert " at 0x" not in text
    assert len(text) < 300_000
    for name in ("total_variation", "spectral", "reversibilised"):
        assert f">{MIXING_NAMES[name]}</text>" in text
