"""For people: three significant digits, no exponent, and a sentence in place of each chart that shows one value."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.reports.profile_charts import HeatMap, month_profile_parts, value_map
from agedp.reports.report_data import period_rows
from agedp.reports.series_charts import ShownPeriod, coverage_parts, monthly_parts, series_parts
from agedp.reports.svg import (
    Bars,
    Hover,
    Level,
    Line,
    Points,
    chart,
    format_number,
    format_percent,
    format_rounded_up,
    linear_axis,
)
from tests.agedp.released_rows import Row
from tests.agedp.reports.html import faults_of
from tests.agedp.reports.test_values_at_the_pointer import figures_of, titles_of

DRAWN = {"scale": 2_000.0, "cells": ("north", "south"), "households": (700, 1400)}
SHARE = Decimal("0.9")


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
    read = re.sub(r"<[^>]+>", " ", body.partition('id="statement"')[0])  # the statement has all digits
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
            [Line("l", PLACES, [0.5] * 3), Level("cap 1", 1)],
            "3 equal values, the first at 0, the last at 2. l: 0.5 kWh; cap 1.",
        ),
        ([Bars("b", PLACES, [4.0, NAN, 4.0])], "2 equal values, the first at 0, the last at 2. b: 4 kWh."),
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


def test_a_constant_map_is_a_sentence():
    def text(cell: int, first: int, last: int) -> str:
        return f"{cell} {first} {last}"

    shown = HeatMap([[2.0, NAN], [2.0, 2.0]], [], [], "kWh", text, 10, (2.0, 2.0))
    assert "t: 2 kWh in every cell." in value_map("t", "a", shown, height=9)
    assert "<svg" in value_map("t", "a", replace(shown, values=[[2.0, NAN], [2.0, 3.0]]), height=9)


def released(last_days: list[str], values: list[tuple[int, ...]]) -> list[Row]:
    rows = [Row(day, value, **DRAWN) for day, value in zip(last_days, values, strict=True)]
    for row in rows:
        row.revision = 0
    return rows


def test_weeks_that_were_released_as_such_are_bars():
    rows = released(["2013-02-10", "2013-02-17"], [(7_000_000, 7_000_000), (14_000_000, 7_000_000)])
    periods = period_rows(rows, every="week", coverage=SHARE)
    assert [(str(row["first_day"]), row["group"], row["mean_kwh"]) for row in periods] == [
        ("2013-02-04", "north", 10.0), ("2013-02-04", "south", 5.0),
        ("2013-02-11", "north", 20.0), ("2013-02-11", "south", 5.0),
    ]  # fmt: skip
    week = ShownPeriod("week", is_drawn=True)
    html = "".join(monthly_parts("weeks", periods, coverage=SHARE, label="weeks", period=week))
    [north] = figures_of(html).values()  # the mean of the south never changes
    assert titles_of(north)[1].startswith("2013-02-11 to 2013-02-17")
    assert "weeks, south. 2 equal values, the first at 2013-02-04 to 2013-02-10, the last at 2013-02-11" in html


def test_a_published_count_is_called_noisy_and_its_roster_may_change():
    rows = [
        Row(day, (97,), scale=2.0, households=(number,)) for day, number in (("2013-01-01", 90), ("2013-01-02", 100))
    ]
    for row in rows:
        row.revision = 0
    html = "".join(coverage_parts("usable", rows, coverage=SHARE))
    assert len(figures_of(html)) == 1  # 97 of 90 and of 100 are different shares
    assert "had a usable day" not in html


def test_numbers_of_groups_wait_behind_a_summary():
    rows = released([str(date(2013, 1, i)) for i in (1, 2)], [(7_000_000, 7_000_000), (14_000_000, 7_100_000)])
    for row in rows:
        row.loss = 1
    html = "".join(series_parts("m", rows, coverage=SHARE, label=""))
    closed = html[html.index("<details") : html.index("</details>")]
    assert closed.count("<table") == html.count("<table") == 2
    assert [*month_profile_parts("p", [], terms={}, coverage=SHARE)] == ["<p>p: no month is released yet.</p>\n"]


def test_each_scene_lists_its_sections(pages: dict[str, Path]) -> None:
    page = pages["aged"].read_text()
    listed = re.findall(r'<li><a href="#([\w-]+)">([^<]*)</a>', page)
    headings = re.findall(r'id="([\w-]+)"[^>]*>(?:<summary>)?<h[23]>([^<]*)</h', page)
    assert listed == headings
