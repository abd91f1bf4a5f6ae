"""Release and confidential reports of a few scenes, and a browser to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

import pytest

from agedp.smoothed_estimates.smoothed_release import smooth
from agedp_data.errors import Refused
from tests.agedp.conftest import CLASSICAL, House
from tests.agedp.reports.browser import CHROMIUM, Browser, browser
from tests.agedp.reports.test_report import build

WEEK = (
    'notion = "w-event"\nwindow_days = 7\nepsilon_per_window = 3.5\nspend = "remaining"\nmax_day_epsilon = 2\n'
    'epsilon_total = "unlimited"\n'
)
COUNTS = (
    '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nby = "area"\nbins_kwh = ['
    + ", ".join(str(i * 4 / 10) if i % 5 else str(i * 2 // 5) for i in range(101))
    + "]\n"
)


def build_counts(house: House) -> House:
    """Counts of a hundred ranges in eight groups, rehearsed until the promise is used up."""
    days = [date(2013, 1, 29) + timedelta(days=i) for i in range(4)]
    house.fill(days, households="ABCDEFGHIJKLMNOP", wh=150)
    rows = [f"{home},{days[0]},,area {i // 2}" for i, home in enumerate("ABCDEFGHIJKLMNOP")]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,area", *rows]) + "\n")
    promise = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 1.5\n'
    house.write(days[0], days[-1], mode="rehearsal", promise=promise, rest=COUNTS)
    house.edit(('[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n', ""))
    with suppress(Refused):
        house.run()
    return house


EVERY = """[series.use]
statistic = "mean"
clamp_kwh = [20, 75]
share = [0.2, 0.1]
[series.areas]
statistic = "mean"
clamp_kwh = 40
share = [0.1, 0.1]
by = ["area", "region"]
[series.half_hours]
statistic = "profile"
clamp_kwh = 40
half_hour_clamp_kwh = 3
share = 0.2
[series.counts]
statistic = "distribution"
clamp_kwh = 40
bins_kwh = [0, 4, 8, 12, 16, 20, 30, 40]
share = 0.1
by = "area"
[series.usable]
statistic = "coverage"
share = 0.1
[series.weekly]
statistic = "mean"
clamp_kwh = 40
every = "week"
share = 0.05
[series.months]
statistic = "profile"
clamp_kwh = 40
half_hour_clamp_kwh = 3
every = "weekday-month"
share = 0.05
"""


def build_every(house: House) -> House:
    """Every statistic, rehearsed on two hundred synthetic households."""
    first = date(2012, 1, 1)
    rows = [f"H{i:03d},{first},,area {i % 4 + 1},{'north' if i % 2 else 'south'}" for i in range(200)]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,area,region", *rows]) + "\n")
    house.write(first, first + timedelta(days=69), mode="rehearsal", promise=f"{CLASSICAL}age_days = 1\n")
    house.edit(('"readings"\n', '"synthetic"\n'), ('[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n', EVERY))
    house.run()
    return house


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By name: aged (two series, groups, a hole, a model), its confidential one and its estimates; one day; counts."""
    aged = build(House(tmp_path_factory.mktemp("aged")))
    estimates = smooth(aged.folder / "release", region="none").save(aged.folder / "estimates")
    one_day = build(House(tmp_path_factory.mktemp("day")), promise=WEEK, rest="", days=1, title="One day")
    every = build_every(House(tmp_path_factory.mktemp("every")))
    return {
        "every": every.folder / "release" / "report.html",
        "aged": aged.folder / "release" / "report.html",
        "counts": build_counts(House(tmp_path_factory.mktemp("counts"))).folder / "release" / "report.html",
        "smoothed": estimates / "smoothed.html",
        "one day": one_day.folder / "release" / "report.html",
        "confidential": aged.folder / "confidential" / "report.html",
    }


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium to look at pages with (Debian package chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
