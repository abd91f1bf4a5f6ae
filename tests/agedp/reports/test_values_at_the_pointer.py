"""Titles of marks and values to save are those of the Parquet files, read by pandas; pages stay small."""

from __future__ import annotations

import csv
import io
import re
from datetime import date, timedelta
from decimal import Decimal
from html import unescape
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from agedp.reports.html import Values, csv_text
from agedp.reports.series_charts import MOST_GROUPS, Lines, ShownSeries, series_parts
from agedp.reports.svg import MOST_IN_SERIES
from agedp_data.series.result_table import Chart
from tests.agedp.released_rows import FIRST
from tests.agedp.reports.test_report import build


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


def test_a_title_has_the_value_of_the_parquet_file(made, page):
    table = pd.read_parquet(made.folder / "release" / "daily_averages_by_tariff.parquet")
    of_group = table[table["group"] == "Std"]
    titles = titles_of(figures_of(page)["by_tariff, Std"])
    shown = dict(re.findall(r"(\S+)\nsingle days: (\S+) kWh per household", "\n".join(titles)))
    assert [*shown] == [str(day) for day in of_group["day"]]
    assert np.allclose([float(value) for value in shown.values()], of_group["mean_kwh"], rtol=6e-3, atol=6e-4)


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


def lines_of(days: int, groups: int) -> Lines:
    """Days of groups, the last one the largest, whose means change from day to day."""
    names = [f"group {i:03d}" for i in range(groups)]
    means = [9 + 0.1 * (day % 2) for day in range(days) for _ in names]
    columns = {
        "day": [FIRST + timedelta(days=day) for day in range(days) for _ in names],
        "group": names * days,
        "households": [100 + i for _ in range(days) for i in range(groups)],
        "mean_kwh": means,
        "low_kwh": [mean - 0.5 for mean in means],
        "high_kwh": [mean + 0.5 for mean in means],
    }
    return Lines(pa.table(columns), Chart("mean_kwh", ("low_kwh", "high_kwh"), title="Use"), "m.parquet")


def test_a_year_of_four_hundred_groups_is_a_bounded_page():
    html = "".join(series_parts(ShownSeries("m", "", lines_of(365, 400)), coverage=Decimal("0.95")))
    titles = titles_of(html)
    assert len(titles) <= MOST_IN_SERIES
    assert titles[0] == "2013-01-01 to 2013-01-02: 9 to 9.1 kWh per household, 2 values"
    assert len(html) < 2_000_000
    assert [*figures_of(html)] == [f"group {i:03d}" for i in range(380, 400)]  # those of most households
    assert f"{400 - MOST_GROUPS} smaller groups have no chart." in html
    assert html.count('<ul class="key">') == 1
    rows = re.findall(r'<tr><th scope="row"[^>]*>(.*?)</th><td>(\d+)</td><td>2013-12-31</td>', html)
    assert len(rows) == 400
    targets = set(re.findall(r'<figure class="chart" id="([^"]+)"', html))
    assert {link for name, _ in rows for link in re.findall(r'href="#([^"]+)"', name)} == targets


def test_months_are_steps_with_their_interval_before_the_days(made, page):
    months = pd.read_parquet(made.folder / "release" / "averages_by_month.parquet")
    months = months[months["series"] == "daily_mean"].set_index("first_day")
    titles = titles_of(figures_of(page)["Mean use per household and day: daily_mean"])
    shown = {}
    for text in titles:
        for day, numbers in re.findall(r"^(\S+)\n(?:.*\n)*month: (\S+ kWh per household \(\S+ to \S+)\)", text):
            shown[day] = [float(number) for number in re.findall(r"-?\d+\.?\d*", numbers)]
    assert len(shown) >= 30
    for day, numbers in shown.items():
        line = months.loc[date.fromisoformat(day).replace(day=1)]
        assert np.allclose(numbers, line[["mean_kwh", "low_kwh", "high_kwh"]].astype(float), rtol=6e-3, atol=6e-4)


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_label_that_is_a_formula_becomes_a_text_and_a_number_does_not(label):
    text = csv_text(Values(("group", "mean_kwh"), [(label, -1.5), ("north", -2)]))
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [[f"'{label}", "-1.5"], ["north", "-2"]]
