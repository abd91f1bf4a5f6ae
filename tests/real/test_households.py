"""The real London and Ausgrid rows through the stages, against computations that share no code."""

from __future__ import annotations

import csv
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest, read_readings
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.markov.mixing import reversible_fit_bound
from agedp_data.roster import read_roster
from agedp_data.series.mean import Mean
from agedp_data.series.series_terms import days_of

FIRST, LAST = date(2013, 1, 1), date(2013, 12, 31)
CLAMP_WH = 20_000


@pytest.fixture(scope="module")
def stored(kaggle, roster_text, tmp_path_factory):
    """The store of the 40 files, their delivery and a roster of all of 2013."""
    folder = tmp_path_factory.mktemp("households")
    (folder / "roster.csv").write_text(roster_text)
    store = Store(folder / "store", "london", ReadingRules())
    delivery = ingest(store, [str(kaggle / "*.csv")], engine=Engine("threads", 2, 2**18))
    return store, delivery, read_roster(folder / "roster.csv")


def test_365_daily_sums_equal_a_direct_computation(households, stored, tmp_path):
    series = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(CLAMP_WH) / 1000)}
    days = days_of(FIRST, LAST)
    sums = aggregate(*stored, days=days, series=series)
    values = np.stack(list(households.values()))
    total = np.minimum(np.where(values >= 0, values, 0).sum(axis=2), CLAMP_WH)
    usable = (values >= 0).sum(axis=2) >= 46
    expected = np.where(usable, total, 0).sum(axis=0)
    assert [int(sums[day, "mean"].exact.sum()) for day in days] == expected.tolist()
    assert {int(sums[day, "mean"].households.sum()) for day in days} == {40}


def test_the_publishers_layout_is_accounted_to_the_row(real_data, tmp_path):
    store = Store(tmp_path / "store", "london", ReadingRules())
    delivery = ingest(store, [str(real_data / "london" / "datastore" / "*.csv")], engine=Engine())
    assert (delivery.rows_read, delivery.rows_kept) == (24_158, 24_140)
    assert delivery.rejected == {"exact duplicate": 17, "no reading (Null or empty)": 1}


def test_nine_ausgrid_rows_are_accounted_to_the_row(real_data, tmp_path):
    path = real_data / "ausgrid" / "ausgrid-2012-2013-9rows.csv"
    store = Store(tmp_path / "store", "ausgrid", ReadingRules())
    delivery = ingest(store, [str(path)], engine=Engine(chunk_bytes=1000))
    with path.open(newline="") as stream:
        generation = sum(row[3] == "GG" for row in list(csv.reader(stream))[2:])
    assert (delivery.rows_read, delivery.rows_kept) == (9, 9 - generation)
    assert delivery.rejected == {"consumption category not asked for": generation}


def test_a_real_ausgrid_year_equals_a_plain_reading(real_data):
    path = real_data / "ausgrid" / "ausgrid-2011-2012-customer12.csv"
    frame = read_readings([path], dataset="ausgrid")
    expected: dict[date, int] = {}
    with path.open(newline="") as stream:
        for row in list(csv.reader(stream))[2:]:
            if row[3] in ("GC", "CL"):
                day = date(*(int(part) for part in reversed(row[4].split("/"))))
                expected[day] = expected.get(day, 0) + sum(int(Decimal(cell) * 1000) for cell in row[5:53])
    sums, counts = frame.groupby("day")["energy_wh"].sum(), frame.groupby("day")["energy_wh"].count()
    assert {day.date(): int(total) for day, total in sums.items()} == expected
    spring = pd.Timestamp(2011, 10, 2)
    assert set(frame[frame.day == spring].slot) == set(range(48)) - {4, 5}
    assert set(counts.drop(spring)) == {48}


def test_a_chain_of_days_counts_daily_totals(households, stored):
    store, delivery, roster = stored
    period = Period(store, delivery, roster.rows, FIRST, LAST, step="day")
    edges = quantize(period, edges="quantile", n_states=4, engine=Engine())
    counted = estimate(period, edges, n_states=4, engine=Engine())
    for i, household in enumerate(roster.rows.ids):
        values = households[household]
        usable = (values >= 0).sum(axis=1) >= 46
        total = np.where(values >= 0, values, 0).sum(axis=1)
        state = np.where(usable, (total[:, None] >= edges[i]).sum(axis=1), -1)
        pairs = usable[:-1] & usable[1:]
        table = np.zeros((4, 4), int)
        np.add.at(table, (state[:-1][pairs], state[1:][pairs]), 1)
        assert counted.counts[i].tolist() == table.tolist()
        assert counted.readings[i] == usable.sum()


@pytest.mark.parametrize(("edges", "steps"), [("equal-width", 53), ([1000 * i / 12 for i in range(1, 12)], 36)])
def test_eq_55_of_reversible_fits_falls_below_one(stored, edges, steps):
    """At 26.5 h with states up to each household's own maximum, at the paper's 18 h with states up to 1 kWh."""
    store, delivery, roster = stored
    period = Period(store, delivery, roster.rows, FIRST, LAST)
    table = quantize(period, edges=edges, n_states=12, engine=Engine())
    counts = estimate(period, table, n_states=12, engine=Engine()).counts
    largest = reversible_fit_bound(counts, np.arange(1, 61)).max(axis=0)
    assert int(np.argmax(largest < 1)) + 1 == steps
