"""Consistent averages on their whole way: a total and two group columns, published, described, verified."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from agedp_data.ledger import ContractRecord
from agedp_data.series.mean import CONSISTENT
from tests.agedp.release_folder.derived import derived_from

FIRST, LAST = date(2013, 1, 1), date(2013, 1, 3)
ALONE = 'statistic = "mean"\nclamp_kwh = 50\n'
FIRST_SERIES = f"[series.daily_mean]\n{ALONE}"
GROUPS = "".join(f'[series.{column}]\n{ALONE}by = "{column}"\nshare = 0.3\n' for column in ("tariff", "region"))
OF_ITS_OWN = '[series.low]\nstatistic = "mean"\nclamp_kwh = 9\nshare = 0.2\n'
SERIES = {"daily_mean": "", "tariff": "_tariff", "region": "_region"}
HOMES = {"A": ("Std", "N"), "B": ("Std", "N"), "C": ("Std", "S"), "D": ("ToU", "S"), "E": ("ToU", "S")}


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """Five households; on the third day one of them is alone in a tariff of its own, which is too small."""
    house = houses(tmp_path_factory.mktemp("kept"))
    days = [FIRST + timedelta(days=i) for i in range(3)]
    house.london({(home, day, slot): 200 + slot for home in HOMES for day in days for slot in range(48)})
    rows = [f"{home},{FIRST},,{tariff},{region}" for home, (tariff, region) in HOMES.items() if home != "C"]
    rows += [f"C,{FIRST},{days[1]},Std,S", f"C,{LAST},,few,S"]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff,region", *rows]) + "\n")
    house.write(FIRST, LAST, rest=GROUPS + OF_ITS_OWN)
    house.edit((FIRST_SERIES, f"{FIRST_SERIES}share = 0.2\n"))
    house.run(today=date(2026, 1, 1))
    house.release.verify()
    return house


def released_sums(release, name, day):
    """The raw sums and noise of a series on a day, kWh of all households."""
    raw = release.table(name)
    raw = raw[raw["day"].dt.date == day].set_index("group")
    return raw["noisy_sum_wh"] / 1000, raw["noise_sd_kwh"] * raw["households"]


@pytest.mark.parametrize("number", range(3))
def test_groups_add_up_to_the_precision_weighted_total(kept, number):
    day = FIRST + timedelta(days=number)
    raw = {series: released_sums(kept.release, f"daily_averages{end}", day) for series, end in SERIES.items()}
    joined = [series for series in SERIES if series != "tariff" or day != LAST]
    sums = [raw[series][0].sum() for series in joined]
    variances = [(raw[series][1] ** 2).sum() for series in joined]
    total, variance = np.average(sums, weights=1 / np.array(variances)), 1 / sum(1 / v for v in variances)
    table = kept.release.consistent_averages()
    table = table[table["day"].dt.date == day].set_index(["series", "group"])
    for series, part_sum, part_variance in zip(joined, sums, variances, strict=True):
        values, deviations = raw[series]
        for group, value in values.items():
            row, weight = table.loc[(series, group)], deviations[group] ** 2 / part_variance
            kwh = value + weight * (total - part_sum)
            sd = np.sqrt(deviations[group] ** 2 * (1 - weight) + weight**2 * variance)
            assert row["mean_kwh"] * row["households"] == pytest.approx(kwh, rel=1e-9)
            assert row["noise_sd_kwh"] * row["households"] == pytest.approx(sd, rel=1e-9)
            assert (row["group_column"], row["method"]) == (
                "all" if series == "daily_mean" else series,
                "least squares",
            )
            assert set(row["based_on"].split(", ")) == set(joined)
    if day == LAST:
        rest = table.loc["tariff"]
        assert set(rest["method"]) == {"released value: the released groups leave out households"}
        assert (rest["mean_kwh"] * rest["households"]).tolist() == pytest.approx(raw["tariff"][0].tolist())
    assert set(table.index.get_level_values("series")) == set(SERIES)


@pytest.mark.parametrize(
    ("changed", "methods"),
    [
        ({"state": "skipped", "cells": (), "values": (), "households": ()}, {"no total": 4}),
        ({"published_on": "2026-01-02"}, {"no total": 4, "no groups": 1}),
        ({"day": "2013-01-09"}, {}),  # still to be released: the day has no rows yet
    ],
)
def test_groups_without_their_total_keep_their_values(kept, changed, methods):
    day = str(FIRST)
    rows = [row for row in kept.rows() if row.day == day]
    rows = [replace(row, **changed) if row.series == "daily_mean" else row for row in rows]
    contracts = [row for row in kept.release.ledger_rows().rows if isinstance(row, ContractRecord)]
    table = derived_from(CONSISTENT, kept.release.read_statement(), rows, contracts)
    reasons = [row["method"].removeprefix("released value: ").split() for row in table if str(row["day"]) == day]
    assert Counter(" ".join(words[:2]) for words in reasons) == methods
    released = {(row.series, cell): value for row in rows for cell, value in zip(row.cells, row.values, strict=True)}
    for row in table:
        assert row["mean_kwh"] * row["households"] * 1000 == pytest.approx(released[row["series"], row["group"]])
        assert row["based_on"] == row["series"]
