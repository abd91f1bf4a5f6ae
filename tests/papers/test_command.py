"""The command: what it leaves, what it refuses, and that the page of the docs is what it writes."""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp_data.errors import RunFileError
from docs.papers.__main__ import PAPERS, main
from docs.papers.households import PaperReadings
from docs.papers.page import claims_table, page_of, picture, section, write_page
from docs.papers.references import cited
from docs.papers.results import Panel, Paper, PaperFigure, curve
from docs.papers.style import drawn
from docs.papers.writing import write

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once

DOCS = Path(__file__).parents[2] / "docs"
ASK_MORE = {
    "age-figure_6a", "age-figure_6b", "age-figure_7", "temporal-figure_6", "temporal-figure_7", "temporal-figure_9",
    "discounted-figure_1", "discounted-figure_2", "discounted-figure_3", "neighbourhood-histograms_1d",
    "neighbourhood-histograms_2d", "neighbourhood-sustained_release",
}  # fmt: skip
"""Figures of which a small run has other numbers, since it has fewer homes, days or tries."""


def test_the_command_leaves_tables_pictures_claims_and_a_page(small, tmp_path: Path, monkeypatch) -> None:
    paper = replace(small["neighbourhood"], figures=small["neighbourhood"].figures[:1])
    monkeypatch.setitem(PAPERS, "neighbourhood", lambda _: paper)
    assert main(["neighbourhood", "--small", "--out", str(tmp_path)]) == 0
    (figure,), folder = paper.figures, tmp_path / "neighbourhood"
    table = pq.read_table(folder / f"{figure.name}.parquet")
    description = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert (description["rests on"], description["erratum"]) == (figure.rests_on, cited(figure.erratum))
    lines = [line for panel in figure.panels for line in panel.curves]
    points = [(line.label, x, y) for line in lines for x, y in zip(line.x, line.y, strict=True)]
    assert list(zip(*(table[name].to_pylist() for name in ("curve", "x", "y")), strict=True)) == points
    shown = re.sub(r"\s+", " ", " ".join(re.findall(r">([^<>]+)<", (folder / f"{figure.name}.svg").read_text())))
    assert figure.rests_on.split(",")[0][:30] in shown
    assert (folder / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")
    claims = json.loads((folder / "claims.json").read_text())
    assert claims == pq.read_table(folder / "claims.parquet").to_pylist()
    assert [claim["found"] for claim in claims] == [claim.found for claim in paper.claims]
    page = write_page([paper], tmp_path / "docs", out=tmp_path).read_text()
    assert page == page_of([paper])
    assert figure.sentence in page
    assert (tmp_path / "docs" / "papers" / picture(paper, figure)).exists()
    assert (tmp_path / "docs" / "papers" / "claims.csv").read_text() == claims_table([paper])


def figure_with(x: list[float], y: list[float]) -> PaperFigure:
    # The second curve keeps the axes, whose ticks are marks as well, as they are.
    lines = (curve("a", x, y, kind="points"), curve("b", [0, 2], [0, 2]))
    return PaperFigure("one", "Figure 0", "T", "S", "nothing", (Panel("P", "x [-]", "y [-]", lines),))


def test_pictures_repeat_to_the_byte_and_show_finite_points_only() -> None:
    whole = drawn(figure_with([0, 1, 2], [0, 1, 2]))
    assert whole == drawn(figure_with([0, 1, 2], [0, 1, 2]))
    assert b"<dc:date>" not in whole["svg"]
    some = drawn(figure_with([0, 1, 2], [0, np.inf, np.nan]))["svg"]
    assert some.count(b"<use ") == whole["svg"].count(b"<use ") - 2


def test_axes_have_units_titles_findings_and_curves_more_than_a_colour(figures: dict[str, PaperFigure]) -> None:
    for name, figure in figures.items():
        assert len(figure.title.split()) >= 5, name
        assert figure.sentence.endswith("."), name
        for panel in figure.panels:
            assert all(re.search(r"\[[^\]]+\]", axis) for axis in (panel.x, panel.y)), (name, panel.title)
            marks = [(line.look, line.shade, line.kind) for line in panel.curves]
            assert len(marks) == len(set(marks)), (name, panel.title)


def test_the_page_of_the_docs_has_the_figures_and_claims_of_the_command(small: dict[str, Paper]) -> None:
    page = (DOCS / "papers.md").read_text()
    marked = re.compile(r"^(?:#+ |!\[.*\]\(|\| [^|]+\|[^|]+\|).*$", re.MULTILINE)

    def skeleton(text: str) -> list[str]:
        parts = [re.sub(r"!\[.*\]|^(\|[^|]+\|[^|]+\|).*", r"\1", line) for line in marked.findall(text)]
        return [re.sub(r"\d[\d.,]*|inf", "#", part) for part in parts]

    assert skeleton(page) == skeleton(page_of(list(small.values())))
    kept = [row[:3] for row in csv.reader((DOCS / "papers" / "claims.csv").read_text("utf-8").splitlines())]
    assert kept == [row[:3] for row in csv.reader(claims_table(list(small.values())).splitlines())]
    every = [(paper, figure) for paper in small.values() for figure in paper.figures]
    for paper, figure in every:
        if f"{paper.name}-{figure.name}" not in ASK_MORE:
            assert section(paper, figure) in page, f"run the command again: {paper.name} {figure.name}"
    pictures = list((DOCS / "papers").glob("*.svg"))
    assert {path.name for path in pictures} == {picture(paper, figure) for paper, figure in every}
    assert sum(path.stat().st_size for path in pictures) < 1_500_000


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["all", "--out", "OUT", "--ausgrid", "x.csv"], "x.csv"),
        (["all", "--out", "OUT", "--london", "empty.csv"], ""),
        (["all", "--out", "kept"], "kept"),
        (["all", "--out", "OUT", "--docs", "kept/below"], "kept/below"),
        (["neighbourhood", "--out", "OUT", "--docs", "."], "--docs"),
        (["all", "--small", "--out", "OUT", "--docs", "."], "--docs"),
        (["all", "--out", "no matplotlib"], "extra `papers`"),
        (["nothing"], "--help"),
        ([], "--help"),
        (["age", "--wrong"], "--help"),
    ],
)
def test_what_cannot_be_done_is_one_line_before_anything_is_computed(
    asked: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in PAPERS:
        monkeypatch.setitem(PAPERS, name, lambda _: pytest.fail("computed"))
    if "no matplotlib" in asked:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    texts = {"x.csv": "nothing,known\n1,2\n", "empty.csv": "", "kept": "kept", "papers.md": "the whole page"}
    for name, text in texts.items():
        Path(name).write_text(text)
    assert main(asked) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert message in error
    assert {name: Path(name).read_text() for name in texts} == texts


def test_what_the_system_refuses_while_writing_is_one_line(tmp_path: Path, small: dict[str, Paper]) -> None:
    (tmp_path / "neighbourhood").write_text("a file")
    with pytest.raises(RunFileError, match="cannot be written") as refused:
        write(small["neighbourhood"], tmp_path)
    assert str(tmp_path) in refused.value.private
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.long
def test_the_page_of_the_docs_is_what_the_command_writes_on_the_named_data(real_data: Path) -> None:
    data = PaperReadings(london=(str(real_data / "london" / "kaggle" / "*.csv"),))
    page, kept = (DOCS / "papers.md").read_text(), (DOCS / "papers" / "claims.csv").read_text("utf-8")
    pinned = f"matplotlib=={version('matplotlib')}\n" in (DOCS.parent / "constraints.txt").read_text()
    for make in PAPERS.values():
        paper = make(data)
        for figure in paper.figures:
            if figure.repeatable:
                assert section(paper, figure) in page, figure.name
                if pinned:  # another version may draw the same numbers otherwise
                    shown = (DOCS / "papers" / picture(paper, figure)).read_bytes()
                    assert drawn(figure)["svg"] == shown, figure.name
        for claim in paper.claims:
            if "run times" not in claim.rests_on:
                assert claim.found.replace('"', '""') in kept, claim
