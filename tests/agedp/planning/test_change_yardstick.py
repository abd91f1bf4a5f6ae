"""The change that planned noise is compared with: by hand, from the smallest group, assumed where it may be noise."""

from __future__ import annotations

import math

import pytest

from agedp.planning.row_noise import ChangeYardstick, change_yardstick
from agedp_data.smoothing.signal_estimate import SignalEstimate
from tests.agedp.released_rows import Row, alternating, noisy_rows, rows_of

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
