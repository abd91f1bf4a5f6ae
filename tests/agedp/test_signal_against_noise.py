"""Signal against noise of released rows: by hand and simulated; one sentence, the same figures wherever they appear."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from agedp.planning.row_noise import ChangeYardstick, change_yardstick
from agedp.signal_against_noise import (
    SeriesSignal,
    SpanSignal,
    rows_of_means,
    signal_text,
    signals_by_group,
    smallest_group_signal,
)
from agedp_data.ledger import ContractRecord, canonical
from agedp_data.smoothing.signal_estimate import SignalEstimate
from tests.agedp.released_rows import Row, alternating, noisy_rows, rows_of


def span(days, noise, change=None, error=0.0, pairs=12):
    estimate = None if change is None else SignalEstimate(days, pairs, 0.0, noise, change, error)
    return SpanSignal(days, pairs, noise, estimate)


@pytest.mark.parametrize(
    ("spans", "text"),
    [
        (
            [span(1, 2.5, 0.7, 0.3, 364), span(7, 0.945, 0.6, 0.2), span(28, 0.4724, 1.3, 0.1)],
            "noise 2.5 kWh per household; day-to-day change 0.7 ± 0.3 kWh (± standard error, from 364 pairs). "
            "Usable: months. Not certain: weeks. Too noisy: single days.",
        ),
        (
            [span(1, 0.1, 0.7, 0.01), span(7, 0.04, 0.5, 0.01), span(28, 0.02)],
            "noise 0.1 kWh per household; day-to-day change 0.7 ± 0.01 kWh (± standard error, from 12 pairs). "
            "Usable: single days.",
        ),
        (
            [span(1, 2.5, 0.1, 0.1), span(7, 0.945, 0.1, 0.1), span(28, 0.472, 0.1, 0.1), span(365, 0.131, 1, 0.1, 1)],
            "noise 2.5 kWh per household; day-to-day change 0.1 ± 0.1 kWh (± standard error, from 12 pairs). "
            "Usable: years. Too noisy: single days, weeks and months.",
        ),
        (
            [span(1, 0.5, 0.7, 0.3, 19), span(7, 0.189, pairs=1), span(28, 0.0945, pairs=0)],
            "noise 0.5 kWh per household; day-to-day change 0.7 ± 0.3 kWh (± standard error, from 19 pairs). "
            "Not certain: single days. Not yet judged: weeks and months (noise 0.189 and 0.0945 kWh).",
        ),
        (
            [span(1, 2.5, 0.0, 2.79, 13), span(7, 0.945, pairs=1)],
            "noise 2.5 kWh per household; day-to-day change below 5.6 kWh (not measurable, from 13 pairs). "
            "Not certain: single days. Not yet judged: weeks (noise 0.945 kWh).",
        ),
        (
            [span(1, 1.2345, pairs=6), span(7, 0.467, pairs=0), span(28, 0.233, pairs=0)],
            "noise 1.23 kWh per household. Not enough days to estimate the true change (6 of 7 pairs of neighbouring "
            "days). Not yet judged: single days, weeks and months (noise 1.23, 0.467 and 0.233 kWh).",
        ),
    ],
)
def test_the_sentence_names_the_spans_that_are_usable(spans, text):
    signal = SeriesSignal("daily_mean", "all", 60, tuple(spans))
    assert signal_text(signal) == f"daily_mean: {text}"
    of_group = replace(signal, series="use/1", group="north", groups=2, households=1200)
    assert signal_text(of_group) == f"use, layer 1, group north (1,200 households): {text}"


@pytest.mark.parametrize("sd_kwh", [0.2, 0.7, 2.5])
def test_released_rows_give_the_true_change_within_two_errors(sd_kwh):
    held = 0
    for seed in range(100):
        [signal] = signals_by_group(noisy_rows(alternating(120, 0.7), sd_kwh, seed), "daily_mean")
        assert signal.daily.noise_kwh == pytest.approx(sd_kwh, rel=1e-3)
        assert [(part.days, part.pairs) for part in signal.spans] == [(1, 119), (7, 16), (28, 3)]
        held += abs(signal.daily.estimate.change - 0.7) <= 2 * signal.daily.estimate.standard_error
    assert held >= 93


def test_skips_other_clamps_and_missing_groups_leave_gaps():
    rows = rows_of([1_000_000 + 70_000 * (i % 2) for i in range(60)])
    skipped = [
        replace(row, state="skipped", values=(), cells=(), households=()) if i == 30 else row
        for i, row in enumerate(rows)
    ]
    assert smallest_group_signal(skipped, "daily_mean").daily.pairs == 57
    higher = [replace(row, sensitivity=50_000, values=(row.values[0] + 900_000,)) for row in rows[40:]]
    spans = smallest_group_signal([*rows[:40], *higher], "daily_mean").spans
    assert (spans[0].pairs, spans[0].estimate.change) == (58, pytest.approx(0.7, rel=1e-4))
    assert spans[1].pairs == 4 + 1  # five whole weeks before, two after
    grown = [Row(row.day, (0, *row.values), households=(50, 100), cells=("new", "all")) for row in rows[50:]]
    pairs = {signal.group: signal.daily.pairs for signal in signals_by_group([*rows[:50], *grown], "daily_mean")}
    assert pairs == {"all": 59, "new": 9}


def test_a_series_that_was_a_distribution_before_speaks_of_its_means_alone():
    counts = [replace(row, contract="old") for row in rows_of([5] * 30, sensitivity=2)]
    means = [replace(row, contract="new") for row in rows_of([10**6 + 70_000 * (i % 2) for i in range(60)])[30:]]
    series = {"old": {"statistic": "distribution", "clamp_kwh": "9", "bins_kwh": ["0", "2", "9"]},
              "new": {"statistic": "mean", "clamp_kwh": "9"}}  # fmt: skip
    contracts = [
        ContractRecord("homes", canonical({"series": {"daily_mean": of}}), hash=hash) for hash, of in series.items()
    ]
    rows = rows_of_means([*counts, *means], contracts)
    assert rows == means
    assert rows_of_means(counts, contracts) == []


def test_layer_one_continues_a_mean_and_upper_layers_have_no_sentence():
    rows = rows_of([1_000_000 + 70_000 * (i % 2) for i in range(60)])
    layers = [replace(row, series="daily_mean/1") for row in rows[30:]]
    layers += [replace(row, series="daily_mean/2", values=(5 * row.values[0],)) for row in rows[30:]]
    [signal] = signals_by_group([*rows[:30], *layers], "daily_mean")
    assert (signal.daily.pairs, signal.daily.estimate.change) == (59, pytest.approx(0.7, rel=1e-4))
    assert signal_text(signal).startswith("daily_mean, layer 1: noise ")
    assert signals_by_group(layers[-30:], "daily_mean") == ()
    assert signals_by_group([*rows[:30], *layers], "daily_mean/2") == (signal,)


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


def test_the_largest_groups_have_the_signals_of_all():
    households = (5, 70, 20, 70)
    rows = [
        replace(row, cells=tuple("abcd"), values=tuple(i % 5 * 10_000 * n for n in households), households=households)
        for i, row in enumerate(rows_of([0] * 40))
    ]
    every = signals_by_group(rows, "daily_mean")
    assert [signal.group for signal in every] == ["b", "d", "c", "a"]
    assert signals_by_group(rows, "daily_mean", most=1) == (every[0], every[3])
    assert (smallest_group_signal(rows, "daily_mean"),) == signals_by_group(rows, "daily_mean", most=0) == every[3:]


def test_after_an_amendment_the_change_is_compared_with_the_noise_of_the_newest_day():
    """The estimate knows the noise of each day; what days show now, that of the years before does not say."""
    before, after = noisy_rows(alternating(360, 0.7), 0.2, 1), noisy_rows(alternating(400, 0.7), 2.0, 2)[360:]
    daily = smallest_group_signal([*before, *after], "daily_mean").daily
    assert daily.estimate.noise == pytest.approx(math.sqrt(0.9 * 0.2**2 + 0.1 * 2**2), rel=0.01)
    assert daily.estimate.verdict(daily.estimate.noise) == "visible"
    assert (daily.noise_kwh, daily.verdict) == (pytest.approx(2, rel=1e-3), "hidden")
    grown = [replace(row, households=(100 * (1 + i % 2),)) for i, row in enumerate(rows_of([0] * 60, scale=50_000.0))]
    weeks = smallest_group_signal(grown, "daily_mean").spans[1]
    assert weeks.noise_kwh == pytest.approx(math.sqrt(2) * 0.25 / math.sqrt(7), rel=1e-3)
