"""Pictures, figures and notebooks of the pages are those that the code gives."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path

import pytest

from docs.papers.span.spans import MILLIONTH, day_loss
from tests.documents.gallery import GALLERY, drawn, shown
from tests.documents.notebook import NOTEBOOKS, executed
from tests.documents.pages import ROOT, blocks
from tests.documents.pictures import COMMANDS, DRAWINGS
from tests.documents.pictures import drawn as drawn_picture

# The pictures of the gallery are those that its lines draw.

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


# The picture of a release is drawn by the commands of its page, and shows what they publish.


@pytest.mark.parametrize("page", DRAWINGS)
def test_the_picture_of_a_page_is_that_of_its_release(page, tmp_path, monkeypatch) -> None:
    text = (ROOT / page).read_text("utf-8")
    commands = next(block.text for block in blocks(text) if block.language == "sh").replace("'", "")
    assert all(f"agedp {command}\n" in commands for command in COMMANDS[page])
    name, _ = DRAWINGS[page]
    assert f"{name})" in text
    monkeypatch.chdir(tmp_path)
    stored = (ROOT / "docs" / name).read_text("utf-8")
    assert _TEXT.findall(stored) == _TEXT.findall(drawn_picture(page)), "run `python -m tests.documents.pictures`"
    assert len(stored) < 50_000


def test_the_chances_of_the_first_picture_are_rounded_up() -> None:
    drawing = (ROOT / "docs" / "release.svg").read_text("utf-8")
    assert {"58 %", "89 %", "99 %"} <= set(_TEXT.findall(drawing))  # 1 / (1 + e^-epsilon) at 2/7, 2 and 4


# Figures that pages state by hand follow from a closed form.

CHOOSE = (ROOT / "docs" / "choose.md").read_text("utf-8")
CLAMP_KWH = 50
DAY_EPSILON = {
    "epsilon 1 per day": 1.0,
    "epsilon 0.1 per day": 0.1,
    "(10, 1e-6) per year": day_loss(365, 10, MILLIONTH),
    "epsilon 10 per year": 10 / 365,
}


@pytest.mark.parametrize("promise", DAY_EPSILON)
def test_errors_of_a_promise_follow_the_rule_above_them(promise):
    [row] = re.findall(rf"^\| {re.escape(promise)} \| (.*) \|$", CHOOSE, re.MULTILINE)
    total, *errors, households = [float(cell.removesuffix(" kWh").replace(",", "")) for cell in row.split(" | ")]
    one = CLAMP_KWH * math.log(20) / DAY_EPSILON[promise]
    assert total == pytest.approx(365 * DAY_EPSILON[promise], rel=2e-3)
    assert errors == pytest.approx([one / number for number in (100, 1000, 5000)], rel=5e-3)
    assert one / 0.5 <= households <= 1.1 * one / 0.5


def test_the_chances_of_the_officers_page_are_rounded_up():
    drawing = (ROOT / "docs" / "epsilon.svg").read_text("utf-8")
    shown = re.findall(r">epsilon ([\d.]+)</text>.*?>([\d.]+) %</text>", drawing)
    assert len(shown) == 5
    for epsilon, chance in shown:
        largest = 100 / (1 + math.exp(-float(epsilon)))
        assert largest <= float(chance) < largest + 1


# The notebooks run from an empty folder to their ends, and their stored outputs are those of this version.

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
