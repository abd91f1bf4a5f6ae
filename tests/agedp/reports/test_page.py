"""Pages can be read by everybody: contrast, structure, and every word of the statement."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agedp.reports.html import STYLE, document, fact_list, markdown_to_html, paragraph, section, table, text_table

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


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark", "print"])
def test_text_has_a_contrast_of_4_5_and_lines_and_letters_too(theme):
    assert contrast("#000", "#fff") == pytest.approx(21)
    for ink in ("ink", "soft", "s0", "s1", "s2", "s3", "s4", "s5"):
        assert contrast(theme[ink], theme["paper"]) >= 4.5, ink
    for ink in ("ink", "soft"):
        assert contrast(theme[ink], theme["tint"]) >= 4.5, ink


def test_there_are_three_themes_and_print_is_light():
    assert len(THEMES) == 3
    assert THEMES[2] == THEMES[0] != THEMES[1]


def test_every_text_of_a_page_is_escaped():
    bad = '<img src=x onerror="y">&'
    parts = [paragraph(bad, "soft"), fact_list([(bad, bad, bad)]), table(bad, (bad, bad), [(bad, bad)])]
    html = document(
        bad, [section(bad, *parts, text_table(bad, (bad, bad), [("x", "y")]), markdown_to_html(bad, below=2))]
    )
    assert "<img" not in html
    assert 'onerror="' not in html


plain_text = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30)


@example([("", "|")])
@given(st.lists(st.tuples(st.sampled_from(["## ", "* ", "", "| "]), plain_text), max_size=12))
def test_every_word_of_a_markdown_text_is_on_the_page(lines):
    text = "\n".join(start + said + (" | x |" if start == "| " else "") for start, said in lines)
    html = unescape(re.sub(r"<[^>]+>", " ", markdown_to_html(text, below=2)))
    for start, said in lines:
        for word in re.findall(r"[^\W_]+", said):
            assert word in html, (start, said)


def test_a_table_keeps_all_its_cells_and_names_each_by_its_column():
    html = markdown_to_html("| a | b |\n|---|---|\n| 1 | **2** |\n| 3 |\n", below=2)
    assert '<th scope="col">a</th><th scope="col">b</th>' in html
    assert '<td data-of="b" class="brief"><strong>2</strong></td>' in html
    assert html.count("<td data-of") == 2
