"""The confidential page on the chain: a verdict in words, numbers for every figure, nothing from the network."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from agedp.calibration.household_memory import (
    DAY_GIVEN_CALENDAR,
    DAY_TOTALS,
    HALF_HOUR_GIVEN_CALENDAR,
    HALF_HOURS,
    VALUES,
)
from agedp.calibration.model_check import MemoryCurves
from agedp.reports.model_check_report import COVERAGE, COVERED_DAYS, _maximum_from_age, memory_report_page

VOID = {"meta", "link"}


class Checked(HTMLParser):
    """Every tag closed in order, and what a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.fetched += [f"{name}={given[name]}" for name in ("src", "href", "srcset", "data") if name in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag, attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def remembered(**changes: np.ndarray) -> MemoryCurves:
    rng = np.random.default_rng(1)
    figures = {
        name: {value: rng.random((30, 3)) for value in VALUES}
        for name in (DAY_TOTALS, HALF_HOURS, DAY_GIVEN_CALENDAR, HALF_HOUR_GIVEN_CALENDAR)
    }
    for values in figures.values():
        values["rejected"] = np.zeros((30, 3)) + changes.get("rejected", 0)
    return MemoryCurves((1, 7, 28), 0.5, figures, Path("x.html"))


def test_the_page_asks_the_network_for_nothing_and_every_figure_has_its_numbers():
    text = memory_report_page(remembered())
    checked = Checked()
    checked.feed(text)
    assert checked.open == []
    assert checked.fetched == ["href=data:,"]  # no icon is asked for
    for asking in ("http:", "https:", "url(", "@import", "<script", "<img"):
        assert asking not in text
    assert "default-src 'none'" in text
    assert text.count('role="img"') == text.count("<figcaption>") == 4
    assert text.count('aria-label="Aged loss') == 2
    assert text.count("<table") == 5
    assert "Confidential" in text.split("<svg")[0]


def test_the_page_says_the_medians_and_the_verdict():
    found = remembered()
    text = memory_report_page(found)
    for name in (DAY_TOTALS, HALF_HOURS):
        for value in found.median(name, "powers"):
            assert f"<td>{value:.3f}</td>" in text
    assert "0 of 30 households have longer memory" in text
    assert "Markov property not rejected, up to 28 days" in text
    assert "Markov property rejected" in memory_report_page(remembered(rejected=np.ones(())))
    assert memory_report_page(found) == text


def test_the_loss_left_later_is_never_below_that_of_a_later_age():
    left = np.array([0.2, np.nan, 0.3, 0.1, np.nan])
    np.testing.assert_array_equal(_maximum_from_age(left), [0.3, 0.3, 0.3, 0.1, np.nan])


def test_the_coverage_of_the_intervals_is_printed_beside_them():
    text = memory_report_page(remembered())
    for shares in COVERAGE.values():
        assert len(shares) == len(COVERED_DAYS)
        assert "".join(f"<td>{share:.2f}</td>" for share in shares) in text
