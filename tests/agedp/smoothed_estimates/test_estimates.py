"""Estimates of published rows: what enters them, what never revises them, and that groups add up."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from agedp.smoothed_estimates.smoothed_table import (
    published_means,
    quantity_figures,
)
from tests.agedp.smoothed_estimates.conftest import FIRST, contract, row, table

USE = {"clamp_kwh": "50"}
TARIFFS = {"clamp_kwh": "50", "by": "tariff"}


def live(rows, contracts):
    """The live estimates by series, group and day."""
    return {
        (line["series"], line["group"], line["day"]): [line[f"live_{name}"] for name in ("kwh", "low_kwh", "high_kwh")]
        for line in table(rows, contracts)
    }


def test_the_noise_of_a_figure_is_that_of_its_row():
    rows = [row(2, 0, cells={"all": (-7_000, 4)}, scale=3000.0)]
    [figures] = quantity_figures(
        published_means(rows, [contract(1, use=USE)]), {(0, 50_000, 0, 2, "readings"): FIRST}
    ).values()
    q = math.exp(-1 / 3000)
    cell = figures.cells[None, "all"]
    assert cell.observed[0] == pytest.approx(-7 / 4, rel=1e-12)
    assert cell.noise_variance[0] == pytest.approx(2 * q / (1 - q) ** 2 / 4000**2, rel=1e-12)


def test_a_published_value_without_noise_is_its_estimate():
    rows = [row(2 + i, i, cells={"all": (18_000 + 500 * i, 2)}, scale=1e-3) for i in range(9)]
    for i, line in enumerate(table(rows, [contract(1, use=USE)])):
        assert line["estimate_kwh"] == pytest.approx(9 + i / 4, abs=2e-5)
        assert line["live_kwh"] == pytest.approx(9 + i / 4, abs=2e-5)
        assert line["high_kwh"] - line["low_kwh"] < 1e-4


def noisy_rows(days, *, order=None, groups=True):
    """Rows of a total and of tariffs, in this order of days; each day has its own values wherever it is."""
    rows, seq = [], 2
    for day in order or range(days):
        draws = np.random.default_rng(day).laplace(scale=2000, size=3)
        total, std, tou = (np.array([38_000, 30_000, 8_000]) + draws).astype(int).tolist()
        rows.append(row(seq, day, cells={"all": (total, 4)}, scale=2000.0))
        if groups:
            cells = {"Std": (std, 3), "ToU": (tou, 1)}
            rows.append(row(seq + 1, day, series="tariffs", cells=cells, scale=2000.0))
        seq += 2
    return rows


CONTRACT = contract(1, use=USE, tariffs=TARIFFS)


def test_groups_add_up_to_the_total_on_every_day():
    rows = [line for line in noisy_rows(40) if line.day != str(FIRST + timedelta(days=11))]
    rows += [row(200, 11, state="skipped"), row(201, 11, state="skipped", series="tariffs")]
    lines = {(line["day"], line["group"]): line for line in table(rows, [CONTRACT])}
    days = sorted({day for day, _ in lines})
    assert len(days) == 40
    for day in days:
        total, std, tou = (lines[day, group] for group in ("all", "Std", "ToU"))
        assert (total["published_kwh"] is None) == (day == FIRST + timedelta(days=11))
        for name in ("estimate_kwh", "live_kwh"):
            assert 4 * total[name] == pytest.approx(3 * std[name] + tou[name], abs=1e-5)
        assert total["based_on"] == std["based_on"] == "use, tariffs"


def test_a_day_with_a_series_to_come_has_no_live_estimate_yet():
    rows = noisy_rows(5)[:-1]
    last = FIRST + timedelta(days=4)
    lines = [line for line in table(rows, [CONTRACT]) if line["day"] == last]
    assert [(line["group"], line["live_kwh"]) for line in lines if line["published_kwh"] is not None] == [("all", None)]
    assert live(noisy_rows(5), [CONTRACT])["use", "all", last][0] is not None


def test_a_changed_clamp_begins_anew_and_a_changed_share_does_not():
    contracts = [contract(1, use=USE), contract(9, use={**USE, "share": "0.5"}), contract(17, use={"clamp_kwh": "30"})]
    rows = [row(2 + i, i, of=1) for i in range(6)] + [row(10 + i, 6 + i, of=9) for i in range(5)]
    both = table(rows, contracts[:2])
    joined = table([row(2 + i, i, of=1) for i in range(11)], contracts[:1])
    names = ("estimate_kwh", "low_kwh", "live_kwh")
    assert [[line[name] for name in names] for line in both] == [[line[name] for name in names] for line in joined]
    assert [line["version"] for line in both] == [1] * 6 + [2] * 5
    clamped = [row(18 + i, 11 + i, of=17, cells={"all": (16_000, 2)}, scale=1e-3) for i in range(4)]
    after = table([*rows, *clamped], contracts)
    assert [line["estimate_kwh"] for line in after[:11]] == [line["estimate_kwh"] for line in both]
    assert [round(line["estimate_kwh"], 3) for line in after[11:]] == [8.0] * 4
    assert [line["version"] for line in after[11:]] == [3] * 4


def test_layers_are_added_and_their_noise_with_them():
    low = {"clamp_kwh": "20"}
    layers = {"use/1": low, "use/2": {"clamp_kwh": "50", "above_kwh": "20"}}
    rows = []
    for i in range(6):
        rows += [row(2 + 2 * i, i, series="use/1"), row(3 + 2 * i, i, series="use/2", cells={"all": (2_000, 2)})]
    lines = table(rows, [contract(1, **layers)])
    q = math.exp(-1 / 1000)
    for line in lines:
        assert (line["series"], line["layers"], line["published_kwh"]) == ("use", 2, 11.0)
        assert line["noise_sd_kwh"] == pytest.approx(math.sqrt(2 * 2 * q / (1 - q) ** 2) / 2000, rel=1e-12)
        assert line["based_on"] == "use/1, use/2"
    lower = table([line for line in rows if line.series == "use/1"], [contract(1, **{"use/1": low})])
    upper = [sum_of["estimate_kwh"] - line["estimate_kwh"] for sum_of, line in zip(lines, lower, strict=True)]
    assert all(0.2 < value < 2.5 for value in upper)


GROUPS = {"Std": (30_000, 3), "ToU": (8_000, 1)}


def test_a_withheld_group_has_an_estimate_and_no_households():
    rows = [row(2, 0, cells={"all": (38_000, 4)}), row(3, 0, series="tariffs", cells=GROUPS)]
    rows += [row(4, 1, cells={"all": (38_000, 4)}), row(5, 1, series="tariffs", cells={"Std": (30_000, 3)})]
    rows += [row(6, 2, cells={"all": (38_000, 4)}), row(7, 2, series="tariffs", cells=GROUPS)]
    lines = {(line["day"], line["group"]): line for line in table(rows, [CONTRACT])}
    withheld = lines[FIRST + timedelta(days=1), "ToU"]
    assert (withheld["households"], withheld["published_kwh"], withheld["noise_sd_kwh"]) == (None, None, None)
    assert 5 < withheld["estimate_kwh"] < 12
    total = lines[FIRST + timedelta(days=1), "all"]  # the other group alone says nothing of it
    assert total["estimate_kwh"] == pytest.approx(9.5, abs=0.05)


def test_groups_make_up_the_total_after_one_of_them_is_withdrawn():
    """Without noise each figure is its own estimate, however far it lies from those with the third group."""
    figures = [{"Std": 9, "ToU": 7, "Old": 8}] * 4 + [{"Std": 19, "ToU": 23}, {"Std": 21, "ToU": 16}]
    rows = [
        row(2 + i, i, series="tariffs", cells={group: (kwh * 2000, 2) for group, kwh in of_day.items()}, scale=1e-3)
        for i, of_day in enumerate(figures)
    ]
    for line in table(rows, [contract(1, tariffs=TARIFFS)]):
        expected = figures[(line["day"] - FIRST).days].get(line["group"])
        assert expected is not None
        assert (line["estimate_kwh"], line["live_kwh"]) == pytest.approx((expected, expected), abs=1e-4)


def test_groups_of_two_columns_lead_to_one_total():
    three = contract(1, use=USE, tariffs=TARIFFS, regions={"clamp_kwh": "50", "by": "region"})
    rows = []
    for i, line in enumerate(noisy_rows(30)):
        rows.append(replace(line, seq=2 * i + 2))
        if line.series == "tariffs":
            values = (line.values[0] // 2 + 900, line.values[1] + line.values[0] // 2 + 400)
            rows.append(
                replace(line, seq=2 * i + 3, series="regions", cells=("N", "S"), values=values, households=(2, 2))
            )
    lines = {(line["day"], line["series"], line["group"]): line for line in table(rows, [three])}
    for day in {day for day, _, _ in lines}:
        for name in ("estimate_kwh", "live_kwh"):
            total = 4 * lines[day, "use", "all"][name]
            tariffs = 3 * lines[day, "tariffs", "Std"][name] + lines[day, "tariffs", "ToU"][name]
            regions = 2 * sum(lines[day, "regions", group][name] for group in "NS")
            assert (tariffs, regions) == pytest.approx((total, total), abs=1e-5)
