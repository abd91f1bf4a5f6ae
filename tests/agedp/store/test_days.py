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
from agedp.store.month_reader import (
    daily_totals,
    distinct_keys,
    group_parts,
    household_day_key,
    split_household_day_key,
)
from agedp.store.store import PartMonth, Store
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.datasets.validation import ReadingRules

NOTHING = np.zeros(0, np.int64)


@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 200)), st.integers(0, 2**31), max_size=20))
def test_days_are_sums_and_counts_of_their_readings(found):
    keys = sorted(found)
    household, time = np.array(keys, np.int64).reshape(-1, 2).T
    energy = np.array([found[key] for key in keys], np.int64)
    of = Readings(("a", "b", "c"), household, time, energy, NOTHING, NOTHING, NOTHING)
    present = distinct_keys(household_day_key(household, time // 48))
    columns = (*split_household_day_key(present), *daily_totals(of, present))
    expected: dict[tuple[int, int], list[int]] = defaultdict(list)
    for who, when in keys:
        expected[who, when // 48].append(found[who, when])
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert rows == [(*key, sum(values), len(values)) for key, values in expected.items()]


@pytest.mark.parametrize("variant", ["publisher", "older", "sample", "kaggle", "extract", 2010, 2011, 2012])
def test_days_of_synthetic_files_are_those_of_their_account(tmp_path, variant):
    dataset, folder = "london" if isinstance(variant, str) else "ausgrid", tmp_path / "in"
    if dataset == "london":
        account = write_london(folder, households=4, first_day=date(2012, 12, 15), days=20, seed=3, header=variant)
    else:
        keys = {"first_day": date(variant, 9, 25), "year_layout": f"{variant}-{variant + 1}"}
        account = write_ausgrid(folder, households=6, days=15, seed=3, **keys)
    store = Store(tmp_path / "store", dataset, ReadingRules())
    delivery = ingest(store, [str(folder)], engine=Engine("synchronous", 1))
    energy, readings = {}, 0
    for month in delivery.months:
        for row in read_daily_totals(store, month, delivery.contents).to_pylist():
            assert row["day"].strftime("%Y-%m") == month
            energy[row["household_id"], row["day"]] = row["energy_wh"]
            readings += row["readings"]
    assert energy == account.truth()
    assert readings == account.readings.sum()
    assert (delivery.rows_read, delivery.rows_kept) == (account.rows_written, account.rows_kept)
    assert delivery.rejected == {reason.words: number for reason, number in account.rejected.items() if number}


def test_days_belong_to_the_parts_from_which_they_were_made(tmp_path):
    store = Store(tmp_path, "london", ReadingRules())

    def path(contents: list[str]) -> Path:
        parts = [PartMonth(i, content, 0, "month=2013-01", None) for i, content in enumerate(contents)]
        (group,) = group_parts(store, "2013-01", parts, dict.fromkeys(contents, ()))
        return daily_totals_path(store, "2013-01", group)

    paths = {path(contents) for contents in (["a"], ["b"], ["a", "b"], ["b", "a"])}
    assert len(paths) == 4
