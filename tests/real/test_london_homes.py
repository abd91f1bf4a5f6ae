"""The 40 real London homes of 2013 and the publisher's own layout, against computations that share no code."""

from __future__ import annotations

import csv
from collections import defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from agedp.compute.engine_settings import Engine
from agedp.setup.init_run_file import init
from agedp.stages.aggregate import aggregate, days_between
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.series import Mean

FIRST, LAST = date(2013, 1, 1), date(2013, 12, 31)
CLAMP_WH = 50_000


def plain_readings(folder: Path) -> dict[tuple[str, date], dict[datetime, int]]:
    """Return watt-hours by household and day, read line by line; the stamp is the END of the half-hour."""
    found: dict[tuple[str, date], dict[datetime, int]] = defaultdict(dict)
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as stream:
            rows = csv.reader(stream)
            next(rows)
            for household, stamp, kwh in rows:
                end = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S")
                wh = int((Decimal(kwh.strip()) * 1000).to_integral_value())
                found[household, (end - timedelta(minutes=30)).date()][end] = wh
    return found


@pytest.mark.parametrize(("block_bytes", "scheduler"), [(2**24, "threads"), (2**16, "threads"), (10**6, "processes")])
def test_365_daily_sums_equal_a_direct_computation_to_the_watt_hour(
    real_data: Path, tmp_path: Path, block_bytes: int, scheduler: str
) -> None:
    folder = real_data / "london" / "kaggle"
    init([str(folder / "*.csv")], folder=tmp_path)
    roster = read_roster(tmp_path / "roster.csv")
    store = Store(tmp_path / "store", "london", ReadingRules())
    engine = Engine(scheduler, 2, block_bytes)
    delivery = ingest(store, [str(folder / "*.csv")], engine=engine)
    days = days_between(FIRST, LAST)
    series = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(CLAMP_WH) / 1000)}
    sums = aggregate(store, delivery, roster, days=days, series=series, path=tmp_path / "sums.parquet")

    readings = plain_readings(folder)
    spans: dict[str, list[date]] = defaultdict(list)
    for (household, day), of_day in readings.items():
        if len(of_day) >= 46:  # what `agedp init` takes for a household's days
            spans[household].append(day)
    for day in days:
        members = [one for one, seen in spans.items() if min(seen) <= day <= max(seen)]
        total = 0
        for one in members:
            of_day = readings.get((one, day), {})
            if len(of_day) >= 46:
                total += min(sum(of_day.values()), CLAMP_WH)
        assert sums[day, "mean"].sum_wh == {"all": total}, day
        assert sums[day, "mean"].households == {"all": len(members)}, day
    assert len(sums) == 365


def test_the_publishers_layout_is_accounted_to_the_row(real_data: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store", "london", ReadingRules())
    delivery = ingest(store, [str(real_data / "london" / "datastore" / "*.csv")], engine=Engine())
    assert (delivery.rows_read, delivery.rows_kept) == (24_158, 24_140)
    assert delivery.rejected == {"exact duplicate": 17, "no reading (Null or empty)": 1}
