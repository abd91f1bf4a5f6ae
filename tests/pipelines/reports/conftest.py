"""Release and confidential reports of a few scenes, and a browser to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.conftest import House
from tests.pipelines.reports.browser import CHROMIUM, Browser, browser
from tests.pipelines.reports.test_report import build

WEEK = (
    'notion = "w-event"\nwindow_days = 7\nepsilon_per_window = 3.5\nspend = "remaining"\nmax_day_epsilon = 2\n'
    'epsilon_total = "unlimited"\n'
)


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By name: aged, with two series, groups, a hole and a model; one day; the confidential one of the first."""
    aged = build(House(tmp_path_factory.mktemp("aged")))
    one_day = build(House(tmp_path_factory.mktemp("day")), promise=WEEK, rest="", days=1, title="One day")
    return {
        "aged": aged.folder / "release" / "report.html",
        "one day": one_day.folder / "release" / "report.html",
        "confidential": aged.folder / "confidential" / "report.html",
    }


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium to look at pages with (Debian package chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
