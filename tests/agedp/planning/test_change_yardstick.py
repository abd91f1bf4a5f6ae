"""The change that planned noise is compared with: by hand, from the smallest group, assumed where it may be noise."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from agedp.ledger_session import comparison_view
from agedp.planning.notion_comparison import ComparisonTarget, compare_promises
from agedp.planning.row_noise import ChangeYardstick, change_yardstick
from agedp_data.smoothing.signal_estimate import SignalEstimate
from agedp_flows.text.comparison_text import comparison_lines
from agedp_flows.text.template_lines import render_lines
from tests.agedp.released_rows import FIRST, Row, alternating, noisy_rows, rows_of

SWING = [1_000_000 + 50_000 * (i % 2) for i in range(60)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (rows_of(SWING), 0.5),
        # 100 households, a standard deviation of sqrt 2 x scale / 1e5 kWh each: noise of two days hides a change
        (rows_of(SWING, scale=10_000.0), math.sqrt(0.25 - 2 * 2 * 0.1**2)),
        # 20 kWh in 10 households, not 110 in 100: the smallest group decides
        ([Row(row.day, (9 * row.values[0], 300_000 + 20_000 * (i % 2)), households=(90, 10), cells=("low", "high"))
          for i, row in enumerate(rows_of(SWING))], 2.0),
        ([*rows_of(SWING), *rows_of([0, 10**9] * 30, series="night")], 0.5),
    ],
)  # fmt: skip
def test_the_change_is_without_the_noise(rows, expected):
    change = change_yardstick(rows, "daily_mean")
    assert change.is_estimated
    assert change.kwh == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rows", [[], rows_of(SWING, every=2), rows_of(SWING[:7]), rows_of(SWING, state="skipped")])
def test_without_enough_days_the_change_is_assumed(rows):
    assert change_yardstick(rows, "daily_mean") == ChangeYardstick(1.0)


def test_a_change_that_may_be_noise_is_assumed_but_not_above_it():
    wide = change_yardstick(noisy_rows(alternating(60, 0.1), 3.0, 1), "daily_mean")
    assert (wide.kwh, wide.is_estimated) == (1.0, False)
    narrow = change_yardstick(noisy_rows([10.0] * 400, 0.1, 2), "daily_mean")
    assert not narrow.is_estimated
    assert narrow.kwh == narrow.estimate.change + 2 * narrow.estimate.standard_error < 0.2


@pytest.mark.parametrize(
    ("noise", "estimated", "assumed"),
    [
        (0.4, "visible", "visible"),
        (0.6, "uncertain", "visible"),
        (0.95, "hidden", "visible"),
        (1.1, "hidden", "hidden"),
    ],
)
def test_noise_within_two_standard_errors_is_uncertain(noise, estimated, assumed):
    estimate = SignalEstimate(1, 60, 1.0, 0.3, 0.7, 0.1)
    assert ChangeYardstick(0.7, estimate).verdict(noise) == estimated
    assert ChangeYardstick().verdict(noise) == assumed


@pytest.mark.parametrize(
    ("change", "text", "values"),
    [
        (ChangeYardstick(), "1 kWh per household, assumed until the published series can show it", (1.0, None)),
        (
            ChangeYardstick(0.7, SignalEstimate(1, 1364, 1.0, 0.3, 0.7, 0.12345)),
            "0.7 ± 0.123 kWh (± standard error, from 1,364 pairs), estimated from the published series",
            (0.7, 0.12345),
        ),
        (
            ChangeYardstick(1.0, SignalEstimate(1, 30, 1.0, 2.5, 0.2, 0.6)),
            "1 kWh per household, assumed: the published series shows 0.2 ± 0.6 kWh (± standard error, from 30 pairs), "
            "which may be noise alone",
            (1.0, None),
        ),
    ],
)
def test_the_source_of_the_change_is_shown(change, text, values):
    assert render_lines("change", change=change) == [text]
    found = change.facts
    assert (found["change_kwh"], found["change_error_kwh"]) == values
    assert found["change_from"] == ("yardstick" if values[1] is None else "published series")


@pytest.mark.parametrize(
    ("change_kwh", "error_kwh", "mark", "usable", "text"),
    [
        (4.0, 0.1, " ", True, "!  Unusable: "),
        (1.2, 0.5, "?", None, "?  Not certain: the noise lies within two standard errors of the estimated day-to-day"),
        (
            0.7,
            0.1,
            "!",
            False,
            "!  Unusable: the noise exceeds the day-to-day change, so single days cannot be told apart.",
        ),
    ],
)
def test_a_plan_marks_noise_that_the_estimate_leaves_open(house, change_kwh, error_kwh, mark, usable, text):
    house.roster([(f"home-{i}", FIRST, None) for i in range(100)])
    house.write(FIRST, FIRST + timedelta(days=9))  # noise of 50 kWh / (0.5 x 100 homes) x sqrt 2 = 1.414 kWh
    session = house.session()
    found = compare_promises(session.terms(), comparison_view(session), ComparisonTarget())
    change = ChangeYardstick(change_kwh, SignalEstimate(1, 60, 2.0, 1.0, change_kwh, error_kwh))
    comparison = replace(found, change=change)
    lines = comparison_lines(comparison)
    cells = ["1.41", f"{1.41421 / change_kwh:.3g}", *mark.split()]
    assert sum(" ".join(cells) in " ".join(line.split()) for line in lines) == 1
    assert sum(line.startswith(text) for line in lines) == 1  # other notions have more noise
    entries = comparison.facts["offers"]
    assert {
        entry["usable"] for entry in entries if entry.get("noise_sd_kwh", 0) == pytest.approx(1.41421, rel=1e-4)
    } == {usable}
