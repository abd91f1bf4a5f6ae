"""Maps and mean profiles show each half-hour of the published table, counted by pandas; the colours are ordered."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from agedp.release_folder.result_tables import released_table
from agedp.reports import profile_charts
from agedp.reports.profile_charts import (
    COLOURS,
    MOST_GROUPS,
    group_profile,
    mean_profile,
    noise_scale,
    profile_parts,
    step_of,
)
from agedp.reports.series_charts import coverage_parts
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.ledger import ReleaseRecord
from agedp_data.mechanisms import interval, standard_deviation
from agedp_data.series.profile import PROFILES, Profile, day_slots
from agedp_data.series.result_table import ContractTerms, Noise
from tests import exact_sums
from tests.agedp.released_rows import Row
from tests.agedp.reports.test_page import luminance
from tests.agedp.reports.test_values_at_the_pointer import figures_of, saved, titles_of

FORWARD, BACK = date(2012, 10, 7), date(2013, 4, 7)
"""Sydney's clock goes forward and back; both are Sundays."""
SHARE = Decimal("0.9")
TERMS = {"statistic": "profile", "clamp_kwh": Decimal(50), "half_hour_clamp_kwh": Decimal(4)}


def rows_of(first: date, days: int, groups: tuple[str, ...] = (), *, gap: int = -1) -> list[ReleaseRecord]:
    random = np.random.default_rng(5)
    profile = Profile.model_validate(TERMS | ({"by": "area"} if groups else {}))
    rows = []
    for i in range(days):
        day = first + timedelta(days=i)
        slots = [*day_slots(Ausgrid(), day)]
        cells = tuple(text for group in groups or ("all",) for text in exact_sums.cells(profile, group, slots=slots))
        values = tuple(random.integers(5_000, 60_000, len(cells)).tolist())
        households = tuple(100 + 10 * (j // len(slots)) for j in range(len(cells)))
        terms = ("discrete-laplace", 500_000_000, "2013-05-01T00:00:00Z", "2013-05-02", "hash", "")
        if i != gap:
            row = ReleaseRecord("homes", "p", str(day), 0, "released", cells, values, households, 10_000, 2e4, *terms)
            rows.append(replace(row, scale=2e4 + 100 * i))
    return rows


def table_of(rows: list[ReleaseRecord], *, by: str | None = None):
    profile = Profile.model_validate(TERMS | ({"by": by} if by else {}))
    return released_table(PROFILES, rows, {"hash": ContractTerms({"p": profile}, Ausgrid(), 1)}, Noise(SHARE))


def parts_of(table, **keys) -> str:
    return "".join(profile_parts("half_hours", table, coverage=SHARE, **keys))


def test_a_mean_profile_is_that_of_pandas():
    table = table_of(rows_of(FORWARD - timedelta(days=9), 20))
    frame = table.to_pandas()
    frame["is_weekend"] = pd.to_datetime(frame["day"]).dt.day_of_week >= 5
    html = parts_of(table)
    values = saved(html, "half_hours_weekday_weekend").set_index(["days_of", "start"])
    for is_weekend, kind in ((False, "weekdays"), (True, "weekend days")):
        chosen = frame[frame["is_weekend"] == is_weekend]
        for start, cell in chosen.groupby("start_minute"):
            expected = cell["noisy_sum_wh"].sum() / cell["households"].sum() / 1000
            line = values.loc[kind, f"{start // 60:02d}:{start % 60:02d}"]
            assert line["mean_kwh"] == pytest.approx(expected, abs=6e-7)
            sd = math.sqrt((cell["noise_sd_kwh"] ** 2).sum()) / len(cell)
            half_width = (line["high_kwh"] - line["low_kwh"]) / 2
            assert 1.5 * sd < half_width < 1.7 * sd  # 1.645 for a normal law, less tails for few days
    [title] = [text for text in titles_of(html) if text.startswith("18:30\n")]
    weekday = values.loc["weekdays", "18:30"]["mean_kwh"]
    assert float(re.search(r"weekdays: (\S+) kWh", title)[1]) == pytest.approx(weekday, rel=6e-3)


def test_the_scale_of_the_noise_follows_from_its_deviation():
    scales = np.array([0.4, 3.0, 96_000.0, 1e9])
    found = noise_scale(np.array([standard_deviation(scale) for scale in scales]))
    assert (found >= scales).all()
    assert found == pytest.approx(scales, rel=2e-9)


def test_the_interval_of_one_day_is_the_published_one():
    table = table_of(rows_of(date(2013, 1, 2), 1))
    profile = group_profile(table, "all")
    mean = mean_profile(profile, np.array([True]), coverage=SHARE)
    frame = table.to_pandas()
    assert mean.mean == tuple(frame["mean_kwh"])
    assert np.abs(np.array(mean.low) - frame["low_kwh"]).max() <= 1.5e-5  # a watt-hour of 100 households
    assert mean.sd == pytest.approx(tuple(frame["noise_sd_kwh"]))


def cells_of(figure: str) -> dict[tuple[int, int], int]:
    """Read the colour of each drawn cell (half-hour, day) back."""
    found = {}
    for colour, path in re.findall(r'<path style="stroke:(#\w+)" d="([^"]*)"', figure):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)", path):
            for column in range(int(x) // 2, (int(x) + int(width)) // 2):
                assert found.setdefault((int(y) // 2, column), COLOURS.index(colour)) == COLOURS.index(colour)
    return found


def test_each_half_hour_is_a_cell_and_a_missing_one_is_empty():
    first = FORWARD - timedelta(days=3)
    table = table_of(rows_of(first, 8, gap=5))
    [figure] = [body for title, body in figures_of(parts_of(table)).items() if title.startswith("Use by day")]
    frame = table.to_pandas()
    limits = np.sort(frame["mean_kwh"])[[len(frame) // 100, -1 - len(frame) // 100]]
    expected = {
        (line.start_minute // 30, (line.day - first).days): step_of(line.mean_kwh, tuple(limits))
        for line in frame.itertuples()
    }
    assert cells_of(figure) == expected
    assert {(slot, 3) for slot in (4, 5)}.isdisjoint(expected)  # two o'clock does not exist
    assert not any(column == 5 for _, column in expected)
    titles = titles_of(figure)
    assert len(titles) == len(frame)
    for line in frame.sample(20, random_state=1).itertuples():
        clock = f"{line.start_minute // 60:02d}:{line.start_minute % 60:02d}"
        [title] = [title for title in titles if title.startswith(f"{line.day} {clock}:")]
        numbers = re.fullmatch(r"\S+ \S+ (\S+) kWh per household \((\S+) to (\S+)\)", title).groups()
        assert [*map(float, numbers)] == pytest.approx([line.mean_kwh, line.low_kwh, line.high_kwh], rel=6e-3, abs=6e-4)


def test_a_repeated_half_hour_is_not_in_the_means():
    table = table_of(rows_of(BACK - timedelta(days=7), 8))  # two Sundays
    html = parts_of(table)
    frame = table.to_pandas()
    [title] = [text for text in titles_of(html) if text.startswith(f"{BACK} 02:00:")]
    assert " kWh per household in 60 minutes (" in title
    before = frame[(frame["start_minute"] == 120) & (frame["day"].map(lambda day: day.weekday() >= 5))]
    usual = before[before["minutes"] == 30]
    values = saved(html, "half_hours_weekday_weekend").set_index(["days_of", "start"])
    expected = usual["noisy_sum_wh"].sum() / usual["households"].sum() / 1000
    assert len(usual) == len(before) - 1
    assert values.loc["weekend days", "02:00"]["mean_kwh"] == pytest.approx(expected, abs=6e-7)


def test_groups_are_in_the_order_of_their_names():
    groups = tuple(f"north/S{i}" for i in range(MOST_GROUPS + 2))
    html = parts_of(table_of(rows_of(date(2013, 1, 1), 3, groups), by="area"), file="daily_profile.parquet")
    titles = [title for title in figures_of(html) if title.startswith("Mean profile")]
    assert [title.rpartition(" ")[2] for title in titles] == [f"north/S{i}" for i in range(2, 8)]  # of most households
    assert "2 more groups, of fewer households, are in daily_profile.parquet only." in html
    assert html.count("0 more groups") == 0


@pytest.mark.parametrize("number", [MOST_GROUPS, MOST_GROUPS + 1])
def test_a_group_that_ended_before_the_shown_days_is_not_shown(number, monkeypatch):
    monkeypatch.setattr(profile_charts, "MOST_CELLS", 3 * 48 * MOST_GROUPS)  # three days
    groups, first = tuple(f"g{i}" for i in range(number)), date(2013, 1, 1)
    rows = rows_of(first, 4, groups) + rows_of(first + timedelta(days=4), 3, groups[:-1])  # the last one is the largest
    html = parts_of(table_of(rows, by="area"))
    figures = figures_of(html)
    for subject in ("Mean profile", "Use by day"):
        assert [of.rpartition(" ")[2] for of in figures if of.startswith(subject)] == [*groups[:-1]]
    assert "Earlier days than 2013-01-05 are in the Parquet file only." in html
    assert "more groups" not in html


def test_a_year_of_groups_is_small_and_repeatable():
    groups = tuple(f"g{i}" for i in range(3))
    table = table_of(rows_of(date(2012, 7, 1), 365, groups), by="area")
    html = parts_of(table)
    assert html == parts_of(table)
    assert len(html) < 900_000
    assert "Earlier days than" in html
    assert "days together" in html


def test_colours_ascend_in_lightness_in_equal_steps():
    lightness = [116 * luminance(colour) ** (1 / 3) - 16 for colour in COLOURS]  # CIE L*, of Y above 0.009
    steps = np.diff(lightness)
    assert (steps > 0).all()
    assert steps.max() < 3 * np.median(steps)
    matplotlib = pytest.importorskip("matplotlib")
    expected = [matplotlib.colors.to_hex(matplotlib.colormaps["cividis"](i / 15)) for i in range(16)]
    assert [*COLOURS] == expected


def counts_of(values: list[int], households: int = 100) -> list[Row]:
    rows = [
        Row(str(date(2013, 1, 1) + timedelta(days=i)), (value,), scale=2.0, households=(households,))
        for i, value in enumerate(values)
    ]
    for row in rows:
        row.revision = 0
    return rows


def test_a_coverage_series_is_a_line_with_its_interval():
    html = "".join(coverage_parts("usable", counts_of([97, 99, 101]), coverage=SHARE, file="x.parquet"))
    width = interval(2.0, SHARE)
    days = [f"2013-01-0{i + 1}" for i in range(3)]
    expected = [
        f"{day}: {n} % of the households ({n - width} to {n + width})"  # of 100 households
        for day, n in zip(days, (97, 99, 101), strict=True)
    ]
    assert titles_of(html) == expected
    table = saved(html, "usable")
    assert [*table["usable_noisy"]] == [97, 99, 101]
    assert [*table["coverage"]] == [0.97, 0.99, 1.01]


def test_a_constant_coverage_is_a_sentence():
    html = "".join(coverage_parts("usable", counts_of([97, 97]), coverage=SHARE))
    assert not figures_of(html)
    assert "usable day, noise included, is 97 on each of the 2 released days; 100 households were on the roster" in html
