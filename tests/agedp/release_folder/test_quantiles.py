"""Daily quantiles of counts that were drawn nearly without noise: households are where the table says."""

from __future__ import annotations

import math

import numpy as np

from agedp_data.series.distribution import QUANTILES, SHARES
from agedp_data.series.series import series_in
from tests.agedp.release_folder.conftest import FIRST
from tests.agedp.release_folder.derived import derived_from, row_of, skipped
from tests.exact_sums import cells, vector

TERMS = {"statistic": "distribution", "clamp_kwh": "50", "share": "0.5"}
TERMS |= {"bins_kwh": ["0", "2", "5", "9", "14", "20", "50"]}
SERIES = {"uses": TERMS, "below": {**TERMS, "form": "cumulative", "by": "tariff"}}
USES = {"Std": np.linspace(100, 19_900, 199).astype(int), "ToU": np.linspace(0, 30_000, 61).astype(int)}
"""Households' use, Wh."""
USES_OF = {"uses": {"all": np.concatenate([*USES.values()])}, "below": USES}


def released(name):
    series, by_group = series_in(SERIES[name]), USES_OF[name]
    of_group = {group: (cells(series, group), vector(series, uses), uses.size) for group, uses in by_group.items()}
    names, values, sizes = (
        tuple(each for part in of_group.values() for each in (part[i] if i < 2 else [part[2]] * len(part[0])))
        for i in range(3)
    )
    return row_of(FIRST, name, cells=names, values=values, households=sizes, scale=0.01)


def test_the_household_of_each_share_is_in_its_range(statement, contract):
    rows = [released("uses"), released("below"), skipped(row_of("2013-01-02", "below"))]
    lines = derived_from(QUANTILES, statement, rows, [contract(**SERIES)])
    groups = [("below", "Std"), ("below", "ToU"), ("uses", "all")]
    assert [(line["series"], line["group"]) for line in lines[:: len(SHARES)]] == groups
    for line in lines:
        uses = np.sort(USES_OF[line["series"]][line["group"]]) / 1000
        use = uses[math.ceil(round(line["share"] * uses.size, 9)) - 1]
        assert line["low_kwh"] <= use <= line["high_kwh"]
        assert abs(line["value_kwh"] - use) < 0.2 * (line["high_kwh"] - line["low_kwh"]) or line["high_kwh"] == 50
        assert line["households"] == uses.size
        assert line["group_column"] == ("tariff" if line["series"] == "below" else "all")
        assert line["day"] == FIRST
