"""A heat map draws every share in its cell, darker for more, and says in words what it shows."""

from __future__ import annotations

import re

from agedp.reports.svg import heat_map

SHARES = [[0.9, 0.1, 0.0], [0.001, 0.5, 0.499], [0.0, 0.0, 1.0]]


def cells(html: str) -> dict[tuple[int, int], float]:
    """Read row and column of every cell back, with its opacity."""
    drawn = {}
    for opacity, path in re.findall(r'fill-opacity:([\d.]+)" d="([^"]*)"', html):
        for column, row in re.findall(r"M(\d+) (\d+)h20v20h-20z", path):
            drawn[int(row) // 20, int(column) // 20] = float(opacity)
    return drawn


def test_every_share_above_zero_is_drawn_in_its_cell() -> None:
    drawn = cells(heat_map("t", "words for it", SHARES, x_title="to", y_title="from"))
    assert set(drawn) == {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2)}
    for (row, column), opacity in drawn.items():
        assert abs(opacity - SHARES[row][column]) <= 0.05
    assert drawn[1, 0] > 0


def test_rows_and_columns_are_numbered_and_texts_escaped() -> None:
    html = heat_map("a < b", 'so "it" is', SHARES, x_title="to", y_title="from")
    assert re.findall(r'class="y"[^>]*top:([\d.]+)%">(\d)<', html) == [("16.7", "1"), ("50", "2"), ("83.3", "3")]
    assert re.findall(r'class="x"[^>]*left:([\d.]+)%">(\d)<', html) == [("16.7", "1"), ("50", "2"), ("83.3", "3")]
    assert "a &lt; b" in html
    assert 'aria-label="a &lt; b. so &#34;it&#34; is"' in html
