"""Pages for people: contrast, escaped texts, three significant digits, a sentence in place of a chart of one value."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.reports.html import (
    PageSection,
    closed,
    paragraph,
    part,
    render_page,
    side_by_side,
    table,
    text_table,
)
from agedp.reports.svg import (
    Hover,
    Line,
    Points,
    chart,
    format_number,
    format_percent,
    format_rounded_up,
    linear_axis,
)
from tests.agedp.reports.html import faults_of, prose
from tests.agedp.reports.test_values_at_the_pointer import figures_of, titles_of

STYLE = render_page("page.html", title="A page")
THEMES = [dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})", block)) for block in re.findall(r":root\{([^}]*)\}", STYLE)]


def luminance(colour: str) -> float:
    """Relative luminance of a colour, WCAG 2.2."""
    digits = "".join(2 * each for each in colour[1:]) if len(colour) == 4 else colour[1:]
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_has_a_contrast_of_4_5_in_every_theme():
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert len(THEMES) == 3
    assert THEMES[2] == THEMES[0] != THEMES[1]  # light, dark, print
    for theme in THEMES:
        for ink in ("ink", "soft", "s0", "s1", "s2", "s3", "s4", "s5"):
            assert contrast(theme[ink], theme["paper"]) >= 4.5, ink
        for ink in ("ink", "soft", "s0"):  # key facts, and the links of the contents
            assert contrast(theme[ink], theme["tint"]) >= 4.5, ink


def test_every_text_of_a_page_is_escaped():
    bad = '<img src=x onerror="y">&'
    links, label = part("links", [(bad, bad)]), part("lettered", bad, bad)
    numbers = table(bad, (bad, bad), [(bad, bad)])
    texts = text_table(bad, (bad, bad, bad), [(label, part("with_bar", bad, 1, bad), links)])
    figure = part("figure", bad, bad, 1, (1, 1), "", [(bad, bad, bad)], [(bad, 0, "", bad)], [(0, bad, bad)], bad)
    facts = part("fact_list", [(bad, bad, bad)])
    parts = side_by_side([numbers, texts, figure, paragraph(bad, bad), closed(bad, [bad]), bad])
    sections = [PageSection(bad, bad, [bad], [PageSection(bad, bad)] * 2)] * 2
    html = "".join([render_page("page.html", title=bad, sections=sections), facts, parts])
    assert html.count("&lt;img") == 65
    assert "<img" not in html
    assert 'onerror="' not in html


@settings(max_examples=200)
@given(st.floats(1e-6, 1e12), st.sampled_from([1, -1]))
def test_a_number_has_three_significant_digits(size, sign):
    text = format_number(sign * size).replace(",", "")
    assert len(text.lstrip("-").replace(".", "").strip("0")) <= 3
    assert float(text) == pytest.approx(sign * size, rel=5.001e-3)


@settings(max_examples=200)
@given(st.floats(1e-3, 1e12))
def test_a_loss_has_three_digits_and_is_never_below_the_bound(loss):
    text = format_rounded_up(loss).replace(",", "")
    assert len(text.replace(".", "").strip("0")) <= 3
    assert loss * (1 - 1e-11) <= float(text) <= loss * 1.01


@given(st.floats(allow_nan=False))
def test_no_number_has_an_exponent(value):
    texts = [format_number(value), format_rounded_up(abs(value)), format_percent(value)]
    texts += [text for _, text in linear_axis([value]).ticks] if abs(value) < 1e300 else []
    assert not any(re.search(r"\de", text) for text in texts)


@pytest.mark.parametrize("name", ["aged", "counts", "one day", "confidential", "smoothed"])
def test_no_page_has_an_exponent_or_more_digits_than_three(pages: dict[str, Path], name: str) -> None:
    text = pages[name].read_text()
    assert faults_of(text) == []
    body = re.sub(r"<(style|code).*?</\1>|<footer.*?</footer>|href=\"[^\"]*\"| d=\"[^\"]*\"", "", text, flags=re.DOTALL)
    read = re.sub(r"<[^>]+>", " ", body)
    assert not re.search(r"\d[eE][-+]?\d", read)
    decimals = re.findall(r"(?<![\d.,-])\d*\.\d+(?![\d.])", read)
    assert [number for number in decimals if len(number.replace(".", "").lstrip("0")) > 3] == []


def test_no_chart_of_a_page_shows_one_value(pages: dict[str, Path]) -> None:
    for name, path in pages.items():
        for title, figure in figures_of(path.read_text()).items():
            values = {text.partition("\n")[2] or text.partition(": ")[2] for text in titles_of(figure)}
            assert len(values) > 1, (name, title)


X, Y = linear_axis([0.0, 9.0]), linear_axis([0.0, 9.0])
PLACES, NAN = [0.0, 1.0, 2.0], math.nan


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        (
            [Line("l", PLACES, [0.5] * 3)],
            "3 equal values, the first at 0, the last at 2. l: 0.5 kWh.",
        ),
        ([Line("b", PLACES, [4.0, NAN, 4.0])], "2 equal values, the first at 0, the last at 2. b: 4 kWh."),
        ([Points("p", [3.0], [4.0], ([3.0], [5.0]))], "3. p: 4 kWh (3 to 5)."),
        ([Line("l", PLACES, [NAN] * 3)], "t: no value."),
    ],
)  # fmt: skip
def test_a_constant_or_empty_chart_is_a_sentence(layers, sentence):
    html = chart("t", "a", [*layers, Hover(lambda place: f"{place:g}", "kWh")], x=X, y=Y)
    assert "<svg" not in html
    assert sentence in html
    moved = [replace(layers[0], x=[*layers[0].x, 8.0], values=[*layers[0].values, 5.0])]
    moved = [replace(moved[0], whiskers=([3.0, 3.0], [5.0, 5.0]))] if isinstance(layers[0], Points) else moved
    is_line = all(map(math.isnan, layers[0].values))
    assert ("<svg" in chart("t", "a", [*moved, Hover(str, "kWh")], x=X, y=Y)) != is_line


SCENES = ["aged", "counts", "one day", "every"]


@pytest.mark.parametrize("name", SCENES)
def test_the_public_report_is_short_and_repeats_no_clause(pages: dict[str, Path], name: str) -> None:
    words = prose(pages[name].read_text())
    assert 100 < len(words) <= 1500
    counts = Counter(tuple(words[i : i + 8]) for i in range(len(words) - 7))
    assert [" ".join(eight) for eight, number in counts.items() if number > 2] == []
