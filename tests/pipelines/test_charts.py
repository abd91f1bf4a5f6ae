"""Charts and the confidential page: texts for every figure, nothing from the network, values where they belong."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from pipelines.charts import Axis, Line, document, line_chart, table
from pipelines.forgetting import Remembered
from pipelines.forgetting_page import COVERAGE, page
from pipelines.memory import DAY_TOLD, DAY_TOTALS, HALF_HOUR_TOLD, HALF_HOURS, VALUES

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta"}


def chart(*lines: Line, x: tuple[float, ...] = (0.0, 1.0, 2.0), top: float = 1.0) -> ET.Element:
    axis = Axis(x, {each: f"{each:g} d" for each in x}, "days apart")
    text = line_chart("A & B", "falls <fast>", lines, x=axis, y_title="share", y_top=top)
    return ET.fromstring(text)  # noqa: S314  (our own text)


def points(shape: ET.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", shape.get("d", ""))]


def lines_of(svg: ET.Element) -> list[ET.Element]:
    return [each for each in svg.iter() if each.get("class") == "line" and "h30" not in each.get("d", "")]


def test_a_line_goes_through_its_values_and_ends_where_one_is_missing():
    svg = chart(Line("a", [0.0, 0.5, 1.0]), Line("b", [1.0, math.nan, 0.25]))
    whole, first, last = lines_of(svg)
    (x0, y0), (x1, y1), (x2, y2) = points(whole)
    assert (x1 - x0, y0 - y1) == pytest.approx((x2 - x1, y1 - y2))
    assert y0 - y2 == pytest.approx(190)
    assert (points(first), points(last)) == ([(x0, y2)], [(x2, pytest.approx(y0 - 190 / 4, abs=0.06))])
    ticks = [each.text for each in svg.iter("text") if each.get("text-anchor") == "end"]
    assert ticks[:5] == ["0", "0.25", "0.5", "0.75", "1"]


def test_what_lies_above_the_top_is_drawn_at_it_and_a_band_closes():
    svg = chart(Line("a", [5.0, 0.5, 0.5], ([0.2, 0.2, math.nan], [0.4, 9.0, math.nan])))
    assert min(y for _, y in points(lines_of(svg)[0])) == pytest.approx(30 + 18)
    [band] = [each for each in svg.iter() if each.get("class") == "band"]
    assert len(points(band)) == 4
    assert band.get("d", "").endswith("Z")


def test_lines_differ_by_dash_and_marker_not_by_colour_alone():
    svg = chart(*(Line(name, [0.1, 0.2, 0.3]) for name in "abcd"))
    drawn = lines_of(svg)
    assert len({each.get("stroke-dasharray") for each in drawn}) == 4
    shapes = {each[0].tag + each[0].get("d", "")[-9:] for each in svg.iter("g")}
    assert len(shapes) == 4


def test_a_chart_says_what_it_shows_to_who_cannot_see_it_and_escapes_it():
    svg = chart(Line("<x>", [0.0, 0.0, 0.0]))
    title, about = svg.find("title"), svg.find("desc")
    assert title is not None
    assert about is not None
    assert (title.text, about.text) == ("A & B", "falls <fast>")
    assert svg.get("aria-labelledby", "").split() == [title.get("id"), about.get("id")]
    assert svg.get("role") == "img"
    single = chart(Line("one", [0.5]), x=(3.0,))  # nothing to divide by
    assert len(points(lines_of(single)[0])) == 1


def test_a_table_has_headers_for_rows_and_columns_and_a_dash_for_nothing():
    found = ET.fromstring(table("a < b", ["1 d", "2 d"], [("x & y", [0.1234, math.nan])], digits=2))  # noqa: S314
    assert [each.text for each in found.iter("th") if each.get("scope") == "col"] == ["1 d", "2 d"]
    assert [each.text for each in found.iter("th") if each.get("scope") == "row"] == ["x & y"]
    assert [each.text for each in found.iter("td")] == [None, "0.12", "–"]


class Checked(HTMLParser):
    """Every tag closed in order, and what a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.fetched += [f"{name}={given[name]}" for name in ("src", "href", "srcset", "data") if name in given]
        self.ids += [str(given["id"])] if "id" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag, attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def remembered(**changes: np.ndarray) -> Remembered:
    rng = np.random.default_rng(1)
    figures = {
        name: {value: rng.random((30, 3)) for value in VALUES}
        for name in (DAY_TOTALS, HALF_HOURS, DAY_TOLD, HALF_HOUR_TOLD)
    }
    for values in figures.values():
        values["rejected"] = np.zeros((30, 3)) + changes.get("rejected", 0)
    return Remembered((1, 7, 28), 0.5, figures, Path("x.html"))


def test_the_page_asks_the_network_for_nothing_and_every_figure_has_its_numbers():
    text = page(remembered())
    checked = Checked()
    checked.feed(text)
    assert checked.open == []
    assert checked.fetched == []
    assert len(set(checked.ids)) == len(checked.ids) == 8
    for asking in ("http:", "https:", "url(", "@import", "<script", "<link", "<img"):
        assert asking not in text
    assert "default-src 'none'" in text
    assert text.count("<svg") == text.count("<desc") == 4
    assert text.count("<table") == 5
    assert "Confidential" in text.split("<svg")[0]


def test_the_page_says_the_medians_and_the_verdict():
    found = remembered()
    text = page(found)
    for name in (DAY_TOTALS, HALF_HOURS):
        for value in found.median(name, "powers"):
            assert f"<td>{value:.3f}</td>" in text
    assert "0 of 30 households checked" in text
    assert "do not contradict it, up to 28 days" in text
    assert "Is the chain true? No" in page(remembered(rejected=np.ones(())))
    assert page(found) == text


def test_a_document_is_of_the_phone_and_of_print():
    text = document("t", ["<p>x</p>"])
    assert "width=device-width" in text
    assert "@media print" in text
    assert len(COVERAGE["days apart"]) == 5
