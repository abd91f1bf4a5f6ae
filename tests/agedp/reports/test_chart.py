"""Charts draw every point and share where its value belongs; labels never overlap; texts are escaped."""

from __future__ import annotations

import math
import re
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.reports.svg import (
    Line,
    Marks,
    Scale,
    chart,
    date_axis,
    heat_map,
    linear_axis,
    logarithmic_axis,
    named_axis,
)

finite = st.floats(-1e6, 1e6, allow_nan=False)
few = settings(max_examples=30)
SHARES = [[0.9, 0.1, 0.0], [0.001, 0.5, 0.499], [0.0, 0.0, 1.0]]


def drawn(html: str, kind: str) -> list[list[tuple[float, float]]]:
    """Read the pen's way of each path of a class back, absolute, by a reader of its own."""
    found = []
    for shape in re.findall(rf'<path class="{kind}[^"]*" d="([^"]*)"', html.partition('class="plot"')[2]):
        way, x, y, command = [], 0.0, 0.0, ""
        tokens = re.findall(r"[MmLlHhVvZz]|-?\d+(?:\.\d+)?", shape)
        place = 0
        while place < len(tokens):
            if tokens[place].isalpha():
                command, place = tokens[place], place + 1
                if command in "Zz":
                    continue
            if command in "MLl":
                a, b = float(tokens[place]), float(tokens[place + 1])
                place += 2
                x, y = (x + a, y + b) if command == "l" else (a, b)
            elif command in "Hh":
                x, place = (x if command == "h" else 0.0) + float(tokens[place]), place + 1
            else:
                y, place = (y if command == "v" else 0.0) + float(tokens[place]), place + 1
            way.append((x, y))
        found.append(way)
    return found


def sheet(html: str) -> tuple[float, float]:
    box = re.search(r'viewBox="0 0 (\d+) (\d+)" preserve', html)
    assert box is not None
    return float(box[1]), float(box[2])


@few
@given(st.lists(finite, min_size=2, max_size=60))
def test_every_point_of_a_line_lies_where_its_value_belongs(values):
    x, y = linear_axis([0.0, len(values) - 1.0]), linear_axis(values)
    html = chart("t", "a", [Line("n", [float(i) for i in range(len(values))], values)], x=x, y=y)
    width, height = sheet(html)
    way = drawn(html, "line")[0]
    assert len(way) == len(values)
    for i, (across, down) in enumerate(way):
        assert abs(across / width - (i - x.low) / (x.high - x.low)) <= 0.51 / width
        assert abs((1 - down / height) - (values[i] - y.low) / (y.high - y.low)) <= 0.51 / height + 1e-9


def test_a_gap_breaks_line_and_band():
    nan = math.nan
    line = Line("n", [0.0, 1, 2, 3, 4], [1.0, 2, nan, 4, nan], band=([0.0, 1, nan, 3, nan], [2.0, 3, nan, 5, nan]))
    html = chart("t", "a", [line], x=linear_axis([0, 4]), y=linear_axis([0, 5]))
    path = re.findall(r'class="line s0" d="([^"]*)"', html)[1]  # after the legend's
    assert path.count("M") == 2
    assert len(drawn(html, "band")[0]) == 4
    assert [at[0] for at in drawn(html, "whisker")[0]] == [1500.0, 1500.0]
    assert {at for at, _ in drawn(html, "dot")[0]} == {0.0, 500.0, 1500.0}


@few
@given(st.lists(finite, min_size=1, max_size=30), st.booleans())
def test_a_linear_axis_contains_its_values_and_its_ticks_ascend(values, zero):
    scale = linear_axis(values, zero=zero)
    slack = 1e-9 * max(abs(scale.low), abs(scale.high))
    assert all(scale.low - slack <= value <= scale.high + slack for value in values)
    ticks = [value for value, _ in scale.ticks]
    assert 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))
    assert len({text for _, text in scale.ticks}) == len(ticks)
    assert not zero or scale.low <= 0 <= scale.high
    assert (ticks[0], ticks[-1]) == (pytest.approx(scale.low), pytest.approx(scale.high))


@few
@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=30))
def test_a_logarithmic_axis_goes_from_one_power_of_ten_to_another(values):
    scale = logarithmic_axis(values)
    assert scale.high >= max(values) * (1 - 1e-9)
    assert 1 <= round(math.log10(scale.high / scale.low)) <= 6
    assert scale.low <= min(values) * (1 + 1e-9) or scale.high / scale.low > 0.99e6
    assert 0 <= scale.position(min(values)) <= scale.position(max(values)) <= 1


@few
@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.integers(0, 12_000))
def test_an_axis_of_days_has_a_few_dates_and_the_first_has_its_year(first, length):
    scale = date_axis(first, first + timedelta(days=length))
    assert 1 <= len(scale.ticks) <= 6
    assert all(scale.low <= value <= scale.high for value, _ in scale.ticks)
    value, text = scale.ticks[0]
    assert str(date.fromordinal(int(value)).year) in text
    assert all(b - a >= 0.1 * length for (a, _), (b, _) in pairwise(scale.ticks))


def test_every_text_is_escaped():
    bad = "<script>\"&'"
    html = chart(
        bad, bad, [Line(bad, [0.0], [1.0], letter="<"), Marks(bad, [0.0])],
        x=named_axis({0.0: bad, 1.0: bad}), y=Scale(0, 1, ((0, bad),)), y_title=bad,
    )  # fmt: skip
    assert "<script" not in html + heat_map(bad, bad, SHARES, x_title=bad, y_title=bad)
    [label] = re.findall(r'role="img" aria-label="([^"]*)"', html)
    assert label.count("&lt;script&gt;") == 2
