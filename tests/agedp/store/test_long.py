"""dataset = "long" through the stages: the same households in the publisher's form and in a table of one's own."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest, read_readings
from agedp.store.store import Store
from agedp_data.datasets.synthetic import write_london, write_roster
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.series import Mean

KEYS = {
    "household": "meter_id", "time": "read_at", "stamp": "end", "zone": "UTC", "day_zone": "UTC", "energy": "use",
    "unit": "kWh",
}  # fmt: skip
TABLE = "[input.columns]\n" + "".join(f'{key} = "{value}"\n' for key, value in KEYS.items())
COLUMNS = NamedColumns.from_keys({**KEYS, "time_format": "%Y-%m-%d %H:%M:%S", "missing": ["Null", ""]})
FIRST = date(2013, 2, 27)
CLAMP_WH = 50_000
HEADER = ("read_at", "use", "meter_id")


def make_inputs(folder: Path, *, households: int, days: int, by_time: bool, **keys: int):
    """Write the publisher's form with its flaws, the same rows as `long` (by time into one file), and the roster."""
    account = write_london(folder / "london", households=households, first_day=FIRST, days=days, seed=11, **keys)
    write_roster(folder / "roster.csv", household_ids=account.household_ids, first_day=FIRST)
    (folder / "long").mkdir()
    files = {}
    for path in account.files:
        with path.open(newline="") as stream:
            files[path.name] = [(at, use, home) for home, _, at, use in list(csv.reader(stream))[1:]]
    if by_time:
        files = {"night.csv": sorted(row for rows in files.values() for row in rows)}
    for name, rows in files.items():
        with (folder / "long" / name).open("w", newline="") as stream:
            csv.writer(stream).writerows([HEADER, *rows])
    return account


def whole_days(account) -> list[int]:
    """Return the sum of each day, clamped, over the households that lack at most two readings of it."""
    clamped = np.where(account.readings >= 46, np.minimum(account.energy_wh, CLAMP_WH), 0)
    return clamped.sum(axis=0).tolist()


def staged(folder: Path, dataset: str, rules: ReadingRules, *, days: int, engine: Engine) -> dict:
    """Return what the stages make of a folder of files: counts of rows, sums of days, and transitions."""
    store = Store(folder / f"of-{dataset}" / "store", dataset, rules)
    delivery = ingest(store, [str(folder / dataset)], engine=engine)
    roster = read_roster(folder / "roster.csv")
    every = [FIRST + timedelta(days=i) for i in range(days)]
    series = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(CLAMP_WH) / 1000)}
    sums = aggregate(store, delivery, roster, days=every, series=series, path=store.folder.parent / "s.parquet")
    period = Period(store, delivery, roster, every[0], every[-1])
    found = estimate(period, quantize(period, edges="quantile", n_states=12, engine=engine), n_states=12, engine=engine)
    rows = delivery.rejected, delivery.rows_read, delivery.rows_kept
    return {"rows": rows, "sums": sums, "counts": found.counts.tolist(), "gaps": found.gaps.tolist()}


@pytest.mark.parametrize(
    ("households", "days", "by_time", "engine"),
    [
        (12, 6, False, Engine()),
        (100, 3, True, Engine(chunk_bytes=2**20)),
        pytest.param(12, 6, False, Engine("processes", 2, 100_000), marks=pytest.mark.long),
        pytest.param(5566, 4, True, Engine(chunk_bytes=2**20), marks=pytest.mark.long),
    ],
)
def test_a_long_table_says_what_the_publishers_form_says(tmp_path, households, days, by_time, engine):
    account = make_inputs(tmp_path, households=households, days=days, by_time=by_time, per_file=1000 * households)
    publisher = staged(tmp_path, "london", ReadingRules(), days=days, engine=engine)
    long = staged(tmp_path, "long", ReadingRules(columns=COLUMNS), days=days, engine=engine)
    assert publisher == long
    assert long["rows"][1:] == (account.rows_written, account.rows_kept)
    assert [each.sum_wh["all"] for each in long["sums"].values()] == whole_days(account)
    transitions = np.sum(long["counts"])  # every reading but a household's first follows one
    assert transitions == account.rows_kept - households - np.sum(long["gaps"])
    assert transitions > 0.9 * households * (days * 48 - 1)
    if households == 12:
        frames = [
            read_readings(tmp_path / name, dataset=name, columns=keys)
            for name, keys in (("london", None), ("long", KEYS))
        ]
        assert frames[0].equals(frames[1])
        assert len(frames[0]) == account.rows_kept


@pytest.mark.parametrize(
    ("zone", "end"), [("UTC", "2013-07-04T00:00:00Z"), ("Australia/Sydney", "2013-07-03T14:00:00Z")]
)
def test_the_day_of_a_zone_is_due_when_its_midnight_has_passed(house, zone, end):
    day = date(2013, 7, 3)
    (house.folder / "input").mkdir()
    rows = "2013-07-03 02:00:00,1,A\n2013-07-03 02:00:00,1,B\n"
    (house.folder / "input" / "a.csv").write_text("read_at,use,meter_id\n" + rows)
    house.roster([("A", day, None), ("B", day, None)])
    house.write(day, day, dataset="long", rest=TABLE.replace('day_zone = "UTC"', f'day_zone = "{zone}"'))
    assert house.run().released[0].input_ended_at == end


def test_another_description_of_the_columns_never_meets_old_parts(tmp_path):
    others = [("stamp", "start"), ("zone", "GMT"), ("day_zone", "Europe/London"), ("unit", "Wh"), ("missing", ("x",))]
    columns = [COLUMNS, *(replace(COLUMNS, **{key: value}) for key, value in others)]
    stores = [Store(tmp_path, "long", ReadingRules(columns=each)) for each in columns]
    assert len({store.content_id("0" * 64) for store in stores}) == len(stores)
