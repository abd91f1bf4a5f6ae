"""Titles of marks and values to save are those of the Parquet files, read by pandas; pages stay small."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from html import unescape
from itertools import pairwise
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from agedp.reports.html import MOST_ROWS, Values, csv_text, download_links
from agedp.reports.series_charts import MAX_CELLS, monthly_parts, series_parts
from agedp.reports.svg import MOST_IN_SERIES, Bars, Hover, Line, Points, chart, linear_axis
from tests.agedp.released_rows import FIRST, Row
from tests.agedp.reports.html import faults_of
from tests.agedp.reports.test_report import build

CLASSICAL = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.7\nepsilon_total = 30\n'


def titles_of(figure: str) -> list[str]:
    drawings = re.findall(r"<svg viewBox.*?</svg>", figure, re.DOTALL)
    parsed = [ElementTree.fromstring(drawing) for drawing in drawings]  # noqa: S314  (our own page)
    return [title.text or "" for drawing in parsed for title in drawing.iter("title")]


def figures_of(page: str) -> dict[str, str]:
    figures = re.findall(r"<figure.*?<figcaption>(.*?)</figcaption>(.*?)</figure>", page, re.DOTALL)
    return {unescape(title): body for title, body in figures}


def saved(page: str, name: str) -> pd.DataFrame:
    [address] = re.findall(rf'<a href="data:text/csv;charset=utf-8,([^"]*)" download="{name}.csv">', page)
    return pd.read_csv(io.StringIO(unquote(unescape(address))))


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    return build(houses(tmp_path_factory.mktemp("pointer")))


@pytest.fixture(scope="module")
def page(made):
    return (made.folder / "release" / "report.html").read_text()


@pytest.mark.parametrize(
    ("file", "group", "title"),
    [("daily_averages", "all", "daily_mean"), ("daily_averages_by_tariff", "Std", "by_tariff, Std")],
)
def test_a_title_has_the_value_of_the_parquet_file(made, page, file, group, title):
    table = pd.read_parquet(made.folder / "release" / f"{file}.parquet")
    of_group = table[table["group"] == group]
    titles = titles_of(figures_of(page)[f"Mean daily use per household: {title}"])
    assert len(titles) - len(of_group) == sum(title.endswith(": skipped days") for title in titles)
    titles = [title for title in titles if not title.endswith(": skipped days")]
    pattern = r"(\S+): (\S+) kWh per household \((\S+) to (\S+)\)"
    shown = [re.fullmatch(pattern, text).groups() for text in titles]
    assert [day for day, *_ in shown] == [str(day) for day in of_group["day"]]
    numbers = [[float(text.replace(",", "")) for text in numbers] for _, *numbers in shown]
    assert np.allclose(numbers, of_group[["mean_kwh", "low_kwh", "high_kwh"]], rtol=6e-3, atol=6e-4)


@pytest.mark.parametrize("name", ["daily_mean", "by_tariff"])
def test_values_to_save_are_those_of_the_parquet_file(made, page, name):
    file = "daily_averages" if name == "daily_mean" else "daily_averages_by_tariff"
    assert f'<a href="{file}.parquet" download>' in page
    table = pd.read_parquet(made.folder / "release" / f"{file}.parquet").sort_values(["group", "day"])
    values = saved(page, name).sort_values(["group", "day"])
    assert [*values["day"]] == [str(day) for day in table["day"]]
    assert [*values["group"]] == [*table["group"]]
    columns = ["mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh", "households"]
    assert np.abs(values[columns].to_numpy() - table[columns].to_numpy()).max() <= 0.5e-6 * (1 + 1e-6)


def test_every_link_is_within_the_page_or_the_folder(made, page):
    links = re.findall(r'<a href="([^"]*)"', page)
    files = {path.name for path in (made.folder / "release").iterdir()}
    assert links
    assert all(link.startswith(("data:text/csv", "#")) or link in files for link in links)


def test_the_command_that_converts_a_table_does_so(made, tmp_path):
    many = Values(("day",), [("x",)] * (MOST_ROWS + 1))
    html = unescape(download_links("daily_mean", many, "daily_averages.parquet"))
    assert "data:text/csv" not in html
    [command] = re.findall(r"<code>python -c \"(.*)\"</code>", html)
    content = (made.folder / "release" / "daily_averages.parquet").read_bytes()
    (tmp_path / "daily_averages.parquet").write_bytes(content)
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    table = pd.read_parquet(tmp_path / "daily_averages.parquet")
    assert np.array_equal(pd.read_csv(tmp_path / "daily_averages.csv")["mean_kwh"], table["mean_kwh"])


def test_a_bar_and_its_whisker_have_one_title():
    x, y, nan = linear_axis([0.0, 3.0]), linear_axis([0.0, 20.0]), float("nan")
    values, ends = [5.0, nan, 7.0], ([4.0, nan, 6.0], [6.0, nan, 9.0])
    layers = [Bars("b", [0.0, 1.0, 3.0], values), Points("p", [0.0, 1.0, 3.0], values, ends)]
    html = chart("t", "a", [*layers, Hover(lambda place: f"<{place:g}>", "kWh")], x=x, y=y)
    assert titles_of(html) == ["<0>: 5 kWh (4 to 6)", "<3>: 7 kWh (6 to 9)"]
    both = [Line("one, of two", [0.0, 1.0], [1.0, 2.0]), Line("two", [0.0, 1.0], [2.0, 2.0]), Hover(str, "")]
    assert titles_of(chart("t", "a", both, x=x, y=y)) == ["0.0\none: 1\ntwo: 2", "1.0\none: 2\ntwo: 2"]


def test_areas_lie_on_their_points_side_by_side():
    places = [0.0, 1.0, 2.0, 9.0, 10.0]
    html = chart("t", "a", [Line("n", places, places), Hover(str, "")], x=linear_axis([0, 10]), y=linear_axis([0, 10]))
    areas = [tuple(map(int, ends)) for ends in re.findall(r'd="M(\d+) 0h(\d+)v440h-\2z"><title>', html)]
    for (left, width), place in zip(areas, places, strict=True):
        assert left <= 200 * place <= left + width
    assert all(left + width <= after for (left, width), (after, _) in pairwise(areas))


def groups_of(days: int, groups: int) -> list[Row]:
    cells = tuple(f"group {i:03d}" for i in range(groups))
    households = tuple(100 + i for i in range(groups))
    scale = {"scale": 5_000.0, "cells": cells, "households": households, "contract": "c"}
    sums = [tuple((9_000 + i % 2) * n for n in households) for i in range(days)]
    rows = [Row(str(FIRST + timedelta(days=i)), sums[i], **scale) for i in range(days)]
    for row in rows:
        row.revision, row.loss = 0, 10**9
    return rows


def test_a_year_of_four_hundred_groups_is_a_bounded_page():
    parts = [*series_parts("m", groups_of(365, 400), coverage=Decimal("0.95"), label="", file="m.parquet")]
    html = "".join(parts)
    titles = titles_of(html)
    assert len(titles) <= MOST_IN_SERIES
    assert titles[0] == "2013-01-01 to 2013-01-04: 9 to 9 kWh per household, 4 values"
    assert len(html) < 2_000_000
    assert "4 days together" in html
    assert "360 more groups, of fewer households, are in the Parquet file only." in html
    shown = [*figures_of(html)]
    assert shown == sorted(shown)
    assert len(shown) == MAX_CELLS


def months_of(groups: dict[str, int], months: int) -> list[dict[str, object]]:
    firsts = [date(2012 + (5 + i) // 12, (5 + i) % 12 + 1, 1) for i in range(months)]
    return [
        {
            "first_day": first, "group": group, "household_days": households * 30, "days_released": 30 - i % 2,
            "days_in_period": 30, "is_complete": 1 - i % 2, "mean_kwh": 8 + i, "low_kwh": 7.5 + i, "high_kwh": 8.75 + i,
            "noise_sd_kwh": 0.25,
        }
        for i, first in enumerate(firsts) for group, households in groups.items()
    ]  # fmt: skip


def test_months_are_bars_with_their_interval():
    html = "".join(monthly_parts("m", months_of({"all": 5}, 14), coverage=Decimal("0.9"), file="x.parquet"))
    [figure] = figures_of(html).values()
    titles = titles_of(figure)
    assert titles[0] == "2012-06: 8 kWh per household and day (7.5 to 8.75)" or titles[0].startswith("2012-06\n")
    assert len(titles) == 14
    assert "20 to 21.5" not in titles[12]
    assert re.search(r"\(19\.5 to 20\.8\)", titles[12])
    [bars] = re.findall(r'<path class="bar s2" d="([^"]*)"', figure.partition('class="plot"')[2])
    assert bars.count("M") == 14
    assert len(saved(html, "m_by_month")) == 14


def test_groups_of_months_have_one_axis():
    groups = {f"g{i:02d}": 100 - i for i in range(43)}
    html = "".join(monthly_parts("m", months_of(groups, 2), coverage=Decimal("0.9")))
    assert [*figures_of(html)] == [f"Mean use per household and day, by month: g{i:02d}" for i in range(40)]
    assert "3 more groups" in html
    axes = re.findall(r'(?:<span class="y" [^>]*>[^<]*</span>\s*)+', html)
    assert len(set(axes)) == 1


def test_one_month_is_a_sentence():
    [text] = monthly_parts("m", months_of({"all": 5}, 1), coverage=Decimal("0.9"))
    assert "Mean use in 2012-06: 8 kWh per household and day, 7.5 to 8.75 with the noise (90 %)" in text
    assert [*monthly_parts("m", [], coverage=Decimal("0.9"))] == []


def test_equal_losses_of_all_days_are_a_sentence(houses, tmp_path):
    house = build(houses(tmp_path), promise=CLASSICAL, rest="", days=5)
    page = (house.folder / "release" / "report.html").read_text()
    assert faults_of(page) == []
    assert "Each of the 5 released days has a loss of epsilon 0.5; the promise permits 0.7 per day." in page
    assert "Loss of each day" not in figures_of(page)
    assert "Composed loss so far" in figures_of(page)


def test_one_day_has_a_table_and_no_chart_of_days(houses, tmp_path):
    house = build(houses(tmp_path), promise=CLASSICAL, rest="", days=1)
    page = (house.folder / "release" / "report.html").read_text()
    assert faults_of(page) == []
    assert not figures_of(page)
    assert "The released day has a loss of epsilon 0.5" in page


def test_names_of_any_characters_are_saved_unchanged():
    groups = ["a,b", 'c"d', "e\nf", "<g>&", "é/S1"]
    html = download_links("x", Values(("group",), [(group,) for group in groups]))
    [address] = re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)"', html)
    assert "<" not in address
    assert [row[0] for row in csv.reader(io.StringIO(unquote(unescape(address)), newline=""))][1:] == groups


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_label_that_is_a_formula_becomes_a_text_and_a_number_does_not(label):
    text = csv_text(Values(("group", "mean_kwh"), [(label, -1.5), ("north", -2)]))
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [[f"'{label}", "-1.5"], ["north", "-2"]]
