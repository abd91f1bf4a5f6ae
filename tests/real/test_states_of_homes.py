"""The 40 real London homes of 2013 by the states of their half-hours, against a line-by-line reader of the files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate, days_between
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import compute_state_days
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import read_roster
from agedp_data.series.series import Mean
from tests.agedp import recounted
from tests.real.test_london_homes import FIRST, LAST, plain_readings

EDGES = [1, 50, 100, 200, 400, 800, 1500]


@pytest.mark.long
def test_365_sums_by_states_equal_a_direct_count_to_the_watt_hour(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "london" / "kaggle"
    told = plain_readings(folder)
    homes = sorted({home for home, _ in told})
    lines = ["household_id,from,to", *(f"{home},{FIRST},{LAST}" for home in homes)]
    (tmp_path / "roster.csv").write_text("\n".join(lines) + "\n")
    store, engine, days = Store(tmp_path / "store", "london", ReadingRules()), Engine(), days_between(FIRST, LAST)
    states = RepresentativeValues("half-hour", tuple(EDGES))
    delivery = ingest(store, [str(folder / "*.csv")], engine=engine)
    compute_state_days(store, delivery, days, states, engine=engine)
    series = {"m": Mean(statistic="mean", values="states", clamp_kwh=50)}
    roster = read_roster(tmp_path / "roster.csv")
    sums = aggregate(store, delivery, roster, days=days, series=series, path=tmp_path / "s.parquet", states=states)
    assert len(sums) == (LAST - FIRST + timedelta(days=1)).days
    for (day, _), one in sums.items():
        keys = {"edges": EDGES, "step": "half-hour", "clamp": 50_000, "missing": 0, "lacking": 2}
        wanted = sum(recounted.day(dict(enumerate(told.get((home, day), {}).values())), **keys) for home in homes)
        assert one.sum_wh["all"] == wanted
