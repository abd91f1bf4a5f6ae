"""READINGS -> DAYS: exact sums and counts, once per month and set of files."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import daily_totals_path, read_daily_totals
from agedp.store.month_reader import daily_totals, distinct_keys, household_day_key, split_household_day_key
from agedp.store.store import Store
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.synthetic import DeliveryAccount, write_ausgrid, write_london
from agedp_data.datasets.validation import ReadingRules

NOTHING = np.zeros(0, np.int64)


@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 200)), st.integers(0, 2**31), max_size=20))
def test_days_are_sums_and_counts_of_their_readings(found: dict[tuple[int, int], int]) -> None:
    keys = sorted(found)
    household, time = np.array(keys, np.int64).reshape(-1, 2).T
    energy = np.array([found[key] for key in keys], np.int64)
    of = Readings(("a", "b", "c"), household, time, energy, NOTHING, NOTHING, NOTHING)
    there = distinct_keys(household_day_key(household, time // 48))
    codes, days = split_household_day_key(there)
    rows = list(zip(codes.tolist(), days.tolist(), *(one.tolist() for one in daily_totals(of, there)), strict=True))
    expected: dict[tuple[int, int], list[int]] = defaultdict(list)
    for who, when in keys:
        expected[who, when // 48].append(found[who, when])
    assert rows == [(*key, sum(values), len(values)) for key, values in expected.items()]


@pytest.mark.parametrize("header", ["publisher", "older", "sample", "kaggle", "extract"])
def test_days_of_made_up_london_files_are_their_accounting_with_every_header(tmp_path: Path, header: str) -> None:
    truth = write_london(tmp_path / "in", households=5, first_day=date(2012, 12, 1), days=40, seed=3, header=header)
    check(tmp_path, "london", truth)


@pytest.mark.parametrize("year", [2010, 2011, 2012])
def test_days_of_made_up_ausgrid_files_are_their_accounting_in_every_year(tmp_path: Path, year: int) -> None:
    layout = f"{year}-{year + 1}"
    first = date(year, 9, 25)
    truth = write_ausgrid(tmp_path / "in", households=6, first_day=first, days=15, seed=3, year_layout=layout)
    check(tmp_path, "ausgrid", truth)


def check(folder: Path, dataset: str, truth: DeliveryAccount) -> None:
    store = Store(folder / "store", dataset, ReadingRules())
    delivery = ingest(store, [str(folder / "in")], engine=Engine("synchronous", 1))
    found = {}
    counts = {}
    for month in delivery.months:
        for row in read_daily_totals(store, month, delivery.contents).to_pylist():
            assert row["day"].strftime("%Y-%m") == month
            found[row["household_id"], row["day"]] = row["energy_wh"]
            counts[row["household_id"], row["day"]] = row["readings"]
    assert found == truth.truth()
    assert sum(counts.values()) == int(truth.readings.sum())
    assert (delivery.rows_read, delivery.rows_kept) == (truth.rows_written, truth.rows_kept)
    assert delivery.rejected == {reason.words: n for reason, n in truth.rejected.items() if n}


def test_days_belong_to_the_parts_that_they_were_settled_from(tmp_path: Path) -> None:
    store = Store(tmp_path, "london", ReadingRules())
    for content in ("a", "b"):
        store.month_folder("2013-01").mkdir(parents=True, exist_ok=True)
        (store.month_folder("2013-01") / f"{content}-0.parquet").write_bytes(b"")
    paths = {daily_totals_path(store, "2013-01", contents) for contents in (["a"], ["b"], ["a", "b"], ["b", "a"])}
    assert len(paths) == 4
    assert daily_totals_path(store, "2013-01", ["a", "absent"]) in paths
