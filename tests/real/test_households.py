"""The real London and Ausgrid rows through the stages, against computations that share no code."""

from __future__ import annotations

import csv
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from agedp.calibration.bound import bound
from agedp.calibration.estimate import estimate
from agedp.calibration.leakage_bounds import phase_count, subsampling_steps
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate, days_between
from agedp.stages.ingest import ingest, read_readings
from agedp.store.store import Store
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.series import Mean

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
    days = days_between(FIRST, LAST)
    sums = aggregate(*stored, days=days, series=series, path=tmp_path / "sums.parquet")
    values = np.stack(list(households.values()))
    total = np.minimum(np.where(values >= 0, values, 0).sum(axis=2), CLAMP_WH)
    usable = (values >= 0).sum(axis=2) >= 46
    expected = np.where(usable, total, 0).sum(axis=0)
    assert [sums[day, "mean"].sum_wh["all"] for day in days] == expected.tolist()
    assert {sums[day, "mean"].households["all"] for day in days} == {40}


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


def calibrated(stored, **keys):
    store, delivery, roster = stored
    given = {
        "source": "estimated", "assume": "markov", "period": (FIRST, LAST), "step": "half-hour", "states": 4,
        "edges": "quantile", "chain": "homogeneous", "min_visits": 1, "confidence": "plug-in", "publish": "envelope",
        "ages_days": (1, 2, 7), "file": str(store.folder.parent / keys.get("chain", "days")),
    }  # fmt: skip
    model = EstimatedModel(**given | keys)
    period = Period(store, delivery, roster, FIRST, LAST, step=model.step)
    edges = quantize(period, edges="quantile", n_states=4, engine=Engine())
    phases, subsampling = phase_count(model), subsampling_steps(model)
    counted = estimate(period, edges, n_states=4, engine=Engine(), n_phases=phases, subsampling=subsampling)
    return edges, counted, bound(counted, edges, roster, model)


def states_of(values, edges):
    return np.where(values >= 0, (values[:, None] >= edges).sum(axis=1), -1)


def pairs(state, first, lag, every):
    """Return how often each state follows each `lag` steps on, counted from `first` and then at `every` step."""
    earlier = np.arange(first, state.size - lag, every)
    known = (state[earlier] >= 0) & (state[earlier + lag] >= 0)
    table = np.zeros((4, 4), int)
    np.add.at(table, (state[earlier][known], state[earlier + lag][known]), 1)
    return table.tolist()


def test_a_chain_of_days_counts_daily_totals_and_mixes_as_measured(households, stored):
    edges, counted, made = calibrated(stored, step="day")
    for i, home in enumerate(stored[2].ids):
        table = households[home]
        usable = (table >= 0).sum(axis=1) >= 46
        state = states_of(np.where(usable, np.where(table >= 0, table, 0).sum(axis=1), -1), edges[i])
        assert counted.counts[i].tolist() == pairs(state, 0, 1, 1)
        assert counted.readings[i] == usable.sum()
    # MATHS 2b: daily totals, 4 quantile states, powers, medians at 1, 2 and 7 days
    median = np.median(made.curves["total_variation"], axis=0)
    assert median.tolist() == pytest.approx([0.621, 0.346, 0.018], abs=0.05)


def test_a_cyclic_chain_counts_by_half_hour_and_every_sixth_of_them(households, stored):
    keys = {"chain": "cyclic", "confidence": "sampling-bound", "level": Decimal("0.95")}
    edges, counted, made = calibrated(stored, **keys)
    for i, home in enumerate(stored[2].ids):
        state = states_of(households[home].ravel(), edges[i])
        assert counted.counts[i].tolist() == [pairs(state, phase, 1, 48) for phase in range(48)]
        assert counted.subsampled[6][i].tolist() == [pairs(state, 6 * phase, 6, 48) for phase in range(8)]
    assert (made.curves["total_variation"][:, 0] < 1).all()
    assert (made.curves["sampling_bound"] >= made.curves["total_variation"] - 1e-12).all()
