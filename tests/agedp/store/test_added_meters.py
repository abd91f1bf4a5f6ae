"""Meters and channels of a home are added up: exactly, rounded once, and only where each has its reading."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import read_daily_totals
from agedp.store.month_reader import load_month_readings
from agedp.store.store import Store
from agedp_data.datasets.deduplication import whole_watt_hours
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import NamedColumns, ReadingRules

FIRST = datetime(2013, 3, 3)


def columns_of(**keys) -> NamedColumns:
    written = {"household": "home", "time": "at", "time_format": "%Y-%m-%d %H:%M:%S", "stamp": "start", "zone": "UTC"}
    further = {"day_zone": "UTC", "energy": "use", "unit": "kWh", "missing": ("",), "add": "meter"}
    return NamedColumns.from_keys({**written, **further, **keys})


def read(folder, files, *, minutes=30, chunk_bytes=2**24, **keys):
    """Return what the store has of files of rows: half-hours and days by home, and the rejected rows by reason."""
    (folder / "in").mkdir()
    for number, rows in enumerate(files):
        lines = [",".join(map(str, row)) for row in rows]
        (folder / "in" / f"{number}.csv").write_text("\n".join(["home,meter,at,use", *lines]) + "\n")
    store = Store(folder / "store", "long", ReadingRules(columns=columns_of(**keys), interval_minutes=minutes))
    delivery = ingest(store, [str(folder / "in")], engine=Engine("synchronous", 1, chunk_bytes=chunk_bytes))
    half_hours, days = {}, {}
    for month in delivery.months:
        of = load_month_readings(store, month, delivery.contents)
        key = zip((of.ids[code] for code in of.household), of.time.tolist(), strict=True)
        half_hours |= dict(zip(key, of.energy_wh.tolist(), strict=True))
        for row in read_daily_totals(store, month, delivery.contents).to_pylist():
            days[row["household_id"], row["day"]] = row["energy_wh"], row["readings"]
    return half_hours, days, delivery.rejected


def time_of(at: datetime) -> int:
    return day_number(at.date()) * 48 + at.hour * 2 + at.minute // 30


def counted(files, *, minutes=30):
    """Return half-hours by hand: every meter of the home's day has each of its readings once, without contradiction."""
    values = defaultdict(set)
    for home, meter, at, use in (row for rows in files for row in rows):
        values[home, at, meter].add(Fraction(use))
    meters = defaultdict(set)
    for home, at, meter in values:
        meters[home, at.date()].add(meter)
    half_hours = {}
    for home, start in {(home, at - timedelta(minutes=at.minute % 30)) for home, at, _ in values}:
        starts = [start + timedelta(minutes=part) for part in range(0, 30, minutes)]
        readings = [values[home, at, meter] for at, meter in product(starts, meters[home, start.date()])]
        if all(len(reading) == 1 for reading in readings):
            half_hours[home, time_of(start)] = round(1000 * sum(map(min, readings)))  # half to even, of a fraction
    return half_hours


def days_of(half_hours):
    by_day = defaultdict(list)
    for (home, time), energy in half_hours.items():
        by_day[home, date(1970, 1, 1) + timedelta(days=time // 48)].append(energy)
    return {key: (max(sum(energies), 0), len(energies)) for key, energies in by_day.items()}


@st.composite
def files_of_meters(draw, minutes=30):
    """Return one to three files of a few homes, meters and half-hours, each row in any of them, possibly twice."""
    steps = 60 // minutes
    row = st.tuples(st.sampled_from("AB"), st.sampled_from(["E1", "E2", "B1"]), st.integers(0, 3 * steps))
    use = st.sampled_from(["0.0005", "0.001", "0.0015", "0.2", "0.2004", "1"])
    rows = draw(st.lists(st.tuples(row, use, st.integers(0, 2)), min_size=1, max_size=40))
    files = [[], [], []]
    for (home, meter, step), energy, number in rows:
        at = FIRST + timedelta(hours=23) + timedelta(minutes=minutes * step)  # across a midnight
        files[number].append((home, meter, at, energy))
    return [rows for rows in files if rows]


@pytest.mark.parametrize("minutes", [30, 15, 5])
def test_half_hours_are_the_sums_of_all_meters_of_the_day(tmp_path_factory, minutes):
    @settings(max_examples=8, deadline=None)
    @given(files_of_meters(minutes))
    def check(files):
        half_hours, days, _ = read(tmp_path_factory.mktemp("house"), files, minutes=minutes)
        assert half_hours == counted(files, minutes=minutes)
        assert {key: value for key, value in days.items() if value[1]} == days_of(half_hours)

    check()


def home(meters, days=2, *, use=lambda meter, step: "0.2", missing=()):
    """Return the rows of a home, meter by meter."""
    steps = [step for step in range(48 * days) if step not in missing]
    return [("A", meter, FIRST + timedelta(minutes=30 * step), use(meter, step)) for meter in meters for step in steps]


def test_powers_of_one_meter_are_rounded_once(tmp_path):
    """Half-hours of 1 and 3 W are 0.5 and 1.5 Wh: rounded to the even 0 and 2, sorted rows or not."""
    rows = home(["E1"], 1, use=lambda _, step: "13"[step % 2])
    for number, files in enumerate([[rows], [rows[::-1]]]):
        (folder := tmp_path / str(number)).mkdir()
        half_hours, days, _ = read(folder, files, unit="W", add="")
        assert [half_hours["A", time_of(FIRST) + step] for step in range(4)] == [0, 2, 0, 2]
        assert days["A", date(2013, 3, 3)] == (48, 48)


@given(st.lists(st.integers(-(2**40), 2**40)), st.sampled_from([1, 2, 7, 1200]))
def test_whole_watt_hours_are_rounded_half_to_even(energies, units_per_wh):
    whole = whole_watt_hours(np.array(energies, np.int64), units_per_wh).tolist()
    assert whole == [round(Fraction(energy, units_per_wh)) for energy in energies]
