"""Daily quantiles on their whole way from released counts: households are where the table says, and it is verified."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from agedp.release_folder.result_tables import whole_table
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.series.distribution import QUANTILES, SHARES
from agedp_data.series.result_table import Noise
from agedp_data.series.series import series_in
from tests.agedp.release_folder.derived import COVERAGE, check_published, published_tables
from tests.exact_sums import cells, vector

FILE = "daily_quantiles.parquet"
EDGES = ["0", "2", "5", "9", "14", "20", "50"]
SERIES = {
    "uses": {"statistic": "distribution", "clamp_kwh": "50", "bins_kwh": EDGES, "share": "0.5"},
    "below": {
        "statistic": "distribution",
        "form": "cumulative",
        "clamp_kwh": "50",
        "bins_kwh": EDGES,
        "share": "0.5",
        "by": "tariff",
    },
}
USES = {"Std": np.linspace(100, 19_900, 199).astype(int), "ToU": np.linspace(0, 30_000, 61).astype(int)}
"""Households' use, Wh."""


@pytest.fixture(scope="module")
def inputs(published_twice):
    """Statement, rows and contracts of a histogram of all households and cumulative counts by tariff, without noise."""
    statement = published_twice.release.read_statement()
    terms = next(row for row in published_twice.release.ledger_rows().rows if isinstance(row, ContractRecord))
    contract = replace(terms, promise=json.dumps({**json.loads(terms.promise), "series": SERIES}), hash="contract")
    example = published_twice.rows()[0]
    rows = [
        released(example, "uses", {"all": np.concatenate(list(USES.values()))}),
        released(example, "below", USES),
        replace(
            released(example, "below", USES), day="2013-01-02", state="skipped", cells=(), values=(), households=()
        ),
    ]
    rows = [replace(row, seq=number) for number, row in enumerate(rows, 2)]
    return statement, rows, [contract]


def released(example, name, uses_by_group) -> ReleaseRecord:
    series = series_in(SERIES[name])
    names, values, households = [], [], []
    for group, uses in uses_by_group.items():
        names += cells(series, group)
        values += vector(series, uses)
        households += [uses.size] * len(cells(series, group))
    changed = {"cells": tuple(names), "values": tuple(values), "households": tuple(households)}
    return replace(example, series=name, scale=0.01, contract="contract", **changed)


@pytest.fixture
def tables(inputs):
    return published_tables(*inputs)


def test_the_household_of_each_share_is_in_its_range(tables):
    uses_of = {
        ("uses", "all"): np.sort(np.concatenate(list(USES.values()))),
        **{("below", key): USES[key] for key in USES},
    }
    lines = tables[FILE].to_pylist()
    assert [(line["series"], line["group"]) for line in lines[:: len(SHARES)]] == [
        ("below", "Std"),
        ("below", "ToU"),
        ("uses", "all"),
    ]
    for line in lines:
        uses = np.sort(uses_of[line["series"], line["group"]]) / 1000
        use = uses[int(np.ceil(round(line["share"] * uses.size, 9))) - 1]
        assert line["low_kwh"] <= use <= line["high_kwh"]
        assert abs(line["value_kwh"] - use) < 0.2 * (line["high_kwh"] - line["low_kwh"]) or line["high_kwh"] == 50
        assert line["households"] == uses.size
        assert line["group_column"] == ("tariff" if line["series"] == "below" else "all")
        assert line["day"] == date(2013, 1, 1)


def test_a_published_table_is_verified(inputs, tables):
    assert {*tables} == {"daily_distribution.parquet", "daily_distribution_below.parquet", FILE}
    check_published(tables, *inputs)
    table = tables[FILE]
    for column in ("value_kwh", "low_kwh", "share"):
        values = table[column].to_pylist()
        values[3] += 1e-6
        place = table.schema.get_field_index(column)
        changed = table.set_column(place, table.schema.field(place), pa.array(values))
        with pytest.raises(InputError, match=f"{FILE}: 2013-01-01, Std, column {column}"):
            check_published({**tables, FILE: changed}, *inputs)


def test_a_mean_has_no_quantiles(inputs):
    statement, _, (terms,) = inputs
    mean = {"daily_mean": {"statistic": "mean", "clamp_kwh": "50", "share": "1"}}
    contract = replace(terms, promise=json.dumps({**json.loads(terms.promise), "series": mean}))
    assert whole_table(QUANTILES, {}, [], [contract], Noise(COVERAGE)) is None
    assert FILE not in published_tables(statement, [], [contract])
