"""Pages: contrast and escaped texts."""

from __future__ import annotations

import re

import pytest

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
