"""The command: what it leaves, that a second run leaves the same, and that the page of the docs is what it writes."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp_data.errors import RunFileError
from docs.papers.__main__ import PAPERS, main
from docs.papers.households import PaperReadings
from docs.papers.page import page_of, picture, section, write_page
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


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.,]*|inf", "#", text)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("papers")
    assert main(["neighbourhood", "--small", "--out", str(out)]) == 0
    return out


def test_every_figure_has_a_table_two_pictures_and_its_origin_in_them(written: Path, small) -> None:
    folder = written / "neighbourhood"
    for figure in small["neighbourhood"].figures:
        table = pq.read_table(folder / f"{figure.name}.parquet")
        told = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        assert told["rests on"] == figure.rests_on
        assert told["erratum"] == figure.erratum
        points = [
            (line.label, x, y)
            for panel in figure.panels
            for line in panel.curves
            for x, y in zip(line.x, line.y, strict=True)
        ]
        assert list(zip(*(table[name].to_pylist() for name in ("curve", "x", "y")), strict=True)) == points
        svg = (folder / f"{figure.name}.svg").read_text()
        shown = re.sub(r"\s+", " ", " ".join(re.findall(r">([^<>]+)<", svg)))
        assert figure.rests_on.split(",")[0][:30] in shown
        assert (folder / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")


def test_claims_are_written_as_json_and_as_a_table(written: Path, small) -> None:
    claims = json.loads((written / "neighbourhood" / "claims.json").read_text())
    assert claims == pq.read_table(written / "neighbourhood" / "claims.parquet").to_pylist()
    assert [one["found"] for one in claims] == [one.found for one in small["neighbourhood"].claims]


def test_the_page_shows_every_figure_with_its_sentence_and_its_picture_is_there(written: Path, small) -> None:
    page = write_page([small["neighbourhood"]], written / "docs", out=written).read_text()
    assert page == page_of([small["neighbourhood"]])
    for figure in small["neighbourhood"].figures:
        assert figure.sentence in page
        assert (written / "docs" / "papers" / picture(small["neighbourhood"], figure)).exists()


def test_the_same_numbers_give_the_same_bytes() -> None:
    figure = PaperFigure(
        "one",
        "Figure 0",
        "A line rises",
        "It does.",
        "nothing",
        (Panel("P", "x [-]", "y [-]", (curve("a", [0, 1], [0, 1]),)),),
    )
    assert drawn(figure) == drawn(figure)
    assert b"<dc:date>" not in drawn(figure)["svg"]


def test_points_that_are_not_finite_are_in_the_table_and_not_drawn() -> None:
    some, all_there = (drawn(figure_with([0, 1, 2], y))["svg"] for y in ([0, np.inf, np.nan], [0, 1, 2]))
    assert some.count(b"<use ") == all_there.count(b"<use ") - 2


def figure_with(x: list[float], y: list[float]) -> PaperFigure:
    # The second curve keeps the axes, whose ticks are marks as well, as they are.
    lines = (curve("a", x, y, kind="points"), curve("b", [0, 2], [0, 2]))
    return PaperFigure("one", "Figure 0", "T", "S", "nothing", (Panel("P", "x [-]", "y [-]", lines),))


def test_axes_have_units_and_titles_findings(figures: dict[str, PaperFigure]) -> None:
    for name, figure in figures.items():
        assert len(figure.title.split()) >= 5, name
        assert figure.sentence.endswith("."), name
        for panel in figure.panels:
            assert re.search(r"\[[^\]]+\]", panel.x), (name, panel.title)
            assert re.search(r"\[[^\]]+\]", panel.y), (name, panel.title)


def test_curves_of_a_panel_differ_by_more_than_colour(figures: dict[str, PaperFigure]) -> None:
    for name, figure in figures.items():
        for panel in figure.panels:
            marks = [(line.look, line.shade, line.kind) for line in panel.curves]
            assert len(marks) == len(set(marks)), (name, panel.title)


def test_figures_on_published_parameters_are_on_the_page_of_the_docs_word_for_word(small: dict[str, Paper]) -> None:
    page = (DOCS / "papers.md").read_text()
    for paper in small.values():
        for figure in paper.figures:
            if f"{paper.name}-{figure.name}" not in ASK_MORE:
                assert section(paper, figure) in page, f"run the command again: {paper.name} {figure.name}"


def test_the_page_of_the_docs_has_the_figures_and_claims_of_the_command_and_no_others(small: dict[str, Paper]) -> None:
    page = (DOCS / "papers.md").read_text()
    here = page_of(list(small.values()))
    marked = re.compile(r"^(?:#+ |!\[.*\]\(|\| [^|]+\|[^|]+\|).*$", re.MULTILINE)

    def skeleton(text: str) -> list[str]:
        cut = [
            re.sub(r"^(###? [^:]+):.*|!\[.*\]|^(\|[^|]+\|[^|]+\|).*", r"\1\2", line) for line in marked.findall(text)
        ]
        return [without_numbers(line) for line in cut]

    assert skeleton(page) == skeleton(here)


def test_the_pictures_of_the_docs_are_those_of_the_page_and_small(small: dict[str, Paper]) -> None:
    expected = {picture(paper, figure) for paper in small.values() for figure in paper.figures}
    there = list((DOCS / "papers").glob("*.svg"))
    assert {path.name for path in there} == expected
    assert sum(path.stat().st_size for path in there) < 1_500_000


def test_a_file_that_is_none_is_one_line_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.csv").write_text("nothing,known\n1,2\n")
    assert main(["discounted", "--small", "--out", str(tmp_path), "--ausgrid", str(tmp_path / "x.csv")]) == 2
    error = capsys.readouterr().err
    assert "x.csv" in error
    assert error.count("\n") == 1


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.mark.parametrize("option", ["--out", "--docs"])
def test_a_folder_that_is_none_is_refused_in_one_line_before_anything_is_computed(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PAPERS, "age", lambda _: pytest.fail("computed"))
    (tmp_path / "file").write_text("kept")
    asked = ["all", "--out", str(tmp_path / "out")]
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/papers")):
        assert main([*asked, option, str(folder)]) == 2
        assert str(folder) in one_line(capsys)
    assert (tmp_path / "file").read_text() == "kept"


def test_what_the_system_refuses_while_writing_is_one_line(tmp_path: Path, small: dict[str, Paper]) -> None:
    (tmp_path / "neighbourhood").write_text("a file")
    with pytest.raises(RunFileError, match="cannot be written") as refused:
        write(small["neighbourhood"], tmp_path)
    assert str(tmp_path) in refused.value.private
    assert str(tmp_path) not in str(refused.value)
    with pytest.raises(RunFileError, match="cannot be written"):
        write_page([small["neighbourhood"]], tmp_path / "neighbourhood", out=tmp_path)


@pytest.mark.parametrize("asked", [["neighbourhood"], ["all", "--small"], ["neighbourhood", "--small"]])
def test_a_page_of_some_papers_or_of_a_small_run_is_not_written(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "papers.md").write_text("the whole page")
    assert main([*asked, "--out", str(tmp_path / "out"), "--docs", str(tmp_path)]) == 2
    assert "--docs" in one_line(capsys)
    assert (tmp_path / "papers.md").read_text() == "the whole page"


@pytest.mark.parametrize("text", ["", "LCLid,DateTime,KWH/hh (per half hour)\n"])
@pytest.mark.parametrize("dataset", ["london", "ausgrid"])
def test_a_file_without_a_reading_is_refused_before_anything_is_computed(
    text: str, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PAPERS, "age", lambda _: pytest.fail("computed"))
    (tmp_path / "x.csv").write_text(text)
    assert main(["all", "--out", str(tmp_path / "out"), f"--{dataset}", str(tmp_path / "x.csv")]) == 2
    one_line(capsys)


def test_without_matplotlib_it_says_so_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PAPERS, "age", lambda _: pytest.fail("computed"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["all", "--out", str(tmp_path)]) == 2
    assert "extra `papers`" in one_line(capsys)


@pytest.mark.parametrize("asked", [["nothing"], [], ["age", "--wrong"]])
def test_an_unknown_name_is_one_line(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked) == 2
    assert "--help" in one_line(capsys)


def test_ticks_of_an_axis_are_written_in_one_way() -> None:
    for low, whole in ((1e-6, True), (0.01, False)):
        lines = (curve("a", [low, 1e2], [1, 2]),)
        panel = Panel("P", "x [-]", "y [-]", lines, log="x")
        svg = drawn(PaperFigure("one", "Figure 0", "T", "S", "nothing", (panel,)))["svg"].decode()
        assert ("10⁻" in svg) == whole
        assert "e-0" not in svg


def test_whole_numbers_have_whole_ticks() -> None:
    lines = (curve("a", [0.03, 0.05], [1, 2]), curve("b", [0.03, 0.05], [np.nan, 3]))
    svg = drawn(PaperFigure("one", "F", "T", "S", "nothing", (Panel("P", "x [-]", "y [-]", lines),)))["svg"].decode()
    assert "1.5" not in re.findall(r">([^<>]+)<", svg)


@pytest.mark.long
def test_the_page_of_the_docs_is_what_the_command_writes_on_the_named_data(real_data: Path) -> None:
    data = PaperReadings(london=(str(real_data / "london" / "kaggle" / "*.csv"),))
    page = (DOCS / "papers.md").read_text()
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
                assert claim.found.replace("|", "\\|") in page, claim
