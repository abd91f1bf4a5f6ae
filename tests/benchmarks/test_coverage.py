"""The coverage that the confidential page prints is what is measured: a small sample, or all of it with -m long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agedp.reports.model_check_report import COVERAGE, COVERED_DAYS
from tests.benchmarks.coverage import HEAD, LAGS, measure

POOLED, CALENDAR = COVERAGE.values()


@pytest.mark.parametrize(("homes", "within"), [(60, 0.2), pytest.param(400, 0.08, marks=pytest.mark.long)])
def test_the_printed_coverage_is_the_measured_one(homes: int, within: float) -> None:
    assert tuple(LAGS) == COVERED_DAYS
    found = [
        measure(days=365, homes=homes, sojourn=(30, 180), keep=keep, replicates=19, rng=np.random.default_rng(5))
        for keep in (0.8, 0.95)
    ]
    # Of two kinds of homes the worse is printed, so a sample of both lies about it from below.
    for printed, held in (
        (POOLED, np.min([one.pooled.held for one in found], axis=0)),
        (CALENDAR, np.min([one.calendar.held for one in found], axis=0)),
    ):
        np.testing.assert_allclose(held, printed, atol=within)
    # The check finds them at once: the state two days ago says more than the chain of yesterday's.
    assert min(one.rejected[1] for one in found) > 0.85


def test_the_page_begins_with_the_text_of_its_generator() -> None:
    page = (Path(__file__).parents[2] / "docs" / "goodness-of-fit.md").read_text("utf-8")
    text, _, table = page.partition("| days | sojourn |")
    assert text == HEAD.format(households=400) + "\n"
    assert table.count("\n") > 60


def test_a_very_long_series_shows_the_stated_truth() -> None:
    one = measure(days=40_000, homes=1, sojourn=(30, 180), keep=0.9, replicates=19, rng=np.random.default_rng(4))
    assert one.truth[0] == pytest.approx(0.64 * (1 - 2 / 105), abs=0.01)
    assert one.rejected.tolist() == [0, 1, 1, 1, 1]  # the count is near the truth, and the chain is only at lag 1
