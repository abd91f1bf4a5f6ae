"""[population] meters: readings count for the household of their meter on their day, and meters of one add up."""

from __future__ import annotations

import tomllib
from datetime import date, datetime, time, timedelta

import pytest

from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.store.store import record_buckets
from agedp_data.errors import InputError, Refused, RunFileError
from agedp_data.meters import read_meters
from tests.agedp.conftest import CLASSICAL

FIRST = date(2013, 3, 30)
DAYS = [FIRST + timedelta(days=i) for i in range(4)]
KWH = {"M1": "0.01", "M2": "0.02", "M3": "0.04", "M4": "0.08", "M9": "0.16"}
METERS = {"M1": "A", "M2": "A", "M3": "B", "M4": "C"}
COLUMNS = """[input.columns]
household = "meter"
time = "at"
stamp = "start"
zone = "UTC"
day_zone = "UTC"
energy = "use"
unit = "kWh"
"""


def deliver(house, name, days, meters=tuple(KWH)):
    (house.folder / "input").mkdir(exist_ok=True)
    starts = [datetime.combine(day, time()) + slot * timedelta(minutes=30) for day in days for slot in range(48)]
    lines = [f"{meter},{at},{KWH[meter]}" for meter in meters for at in starts]
    (house.folder / "input" / name).write_text("\n".join(["meter,at,use", *lines]) + "\n")


def write_meters(house, *lines):
    (house.folder / "meters.csv").write_text("\n".join(["meter,household,from,to", *lines]) + "\n")


def prepare(house, *, mode="archive"):
    house.roster([(name, FIRST, None) for name in "ABC"])
    write_meters(house, *(f"{meter},{household},{FIRST}," for meter, household in METERS.items()))
    promise = CLASSICAL + ("age_days = 1\n" if mode == "live" else "")
    house.write(FIRST, DAYS[-1], mode=mode, dataset="long", promise=promise, rest=COLUMNS)
    house.edit(('roster = "roster.csv"\n', 'roster = "roster.csv"\nmeters = "meters.csv"\n'))


def means(house) -> list[float]:
    """Return the true means of the days in order, kWh in a half-hour of all three households together."""
    rows = sorted(house.records("true_means"), key=lambda row: row["day"])
    return [round(row["true_mean_kwh"] * 3 / 48, 6) for row in rows]


def test_the_meters_of_a_household_add_up_and_one_of_nobody_does_not_count(house):
    prepare(house)
    deliver(house, "a.csv", DAYS)
    house.run()
    assert means(house) == [0.15] * 4


def test_a_meter_counts_for_its_household_of_the_day(house):
    """M4 leaves C on the second day, which then has no meter, and M9 belongs to it on the last day only."""
    prepare(house)
    fixed = [f"{meter},{METERS[meter]},{FIRST}," for meter in ("M1", "M2", "M3")]
    write_meters(house, *fixed, f"M4,C,{FIRST},{DAYS[0]}", f"M4,A,{DAYS[1]},{DAYS[1]}", f"M9,C,{DAYS[3]},")
    deliver(house, "a.csv", DAYS)
    house.run()
    assert means(house) == [0.15, 0.15, 0.07, 0.23]


def test_a_half_hour_that_lacks_a_meter_of_the_day_is_missing(house):
    """M2 lacks most of the first day: A has no usable day, and counts as 0."""
    prepare(house)
    deliver(house, "a.csv", DAYS, ["M1", "M3", "M4"])
    deliver(house, "b.csv", DAYS[1:], ["M2"])
    (house.folder / "input" / "c.csv").write_text(f"meter,at,use\nM2,{FIRST} 12:00:00,0.02\nM2,{FIRST} 12:30:00,0.02\n")
    house.run()
    assert means(house) == [0.12, 0.15, 0.15, 0.15]


def test_channels_of_several_meters_add_up(house):
    """Meter 1 has channels 1 and 2, and so has meter 2, whose names are the channels' names."""
    prepare(house)
    write_meters(house, f"1,A,{FIRST},", f"2,A,{FIRST},")
    house.edit(('unit = "kWh"', 'unit = "kWh"\nadd = "channel"'))
    starts = [datetime.combine(FIRST, time()) + step * timedelta(minutes=30) for step in range(4 * 48)]
    kwh = {("1", "1"): 0.01, ("1", "2"): 0.02, ("2", "1"): 0.04, ("2", "2"): 0.08}
    lines = [f"{meter},{channel},{at},{use}" for (meter, channel), use in kwh.items() for at in starts]
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text("\n".join(["meter,channel,at,use", *lines]) + "\n")
    house.run()
    assert means(house) == [0.15] * 4


def test_a_store_that_is_divided_by_the_ids_of_files_is_refused(house):
    prepare(house)
    deliver(house, "a.csv", DAYS)
    folder = house.folder / "confidential" / "store"
    folder.mkdir(parents=True)
    record_buckets(folder, 2)
    with pytest.raises(RunFileError, match=r"\[population\] meters: the store is divided by the ids of the files"):
        house.run()


def test_nights_follow_the_meters_without_reading_a_file_again_and_refuse_a_change_of_a_released_day(house):
    prepare(house, mode="live")
    deliver(house, "1.csv", DAYS)
    house.run(today=DAYS[2])
    lines = [f"{meter},{household},{FIRST}," for meter, household in METERS.items()]
    write_meters(house, *lines, f"M9,B,{DAYS[2]},")
    parts = (house.folder / "confidential" / "store").glob("month=*/*.parquet")
    parsed = {path: path.stat().st_mtime_ns for path in parts}
    assert parsed
    house.run(today=DAYS[3])
    house.run(today=DAYS[3] + timedelta(days=1))
    assert means(house) == [0.15, 0.15, 0.31]
    assert all(path.stat().st_mtime_ns == at for path, at in parsed.items())
    write_meters(house, *lines, f"M9,B,{DAYS[1]},")
    with pytest.raises(Refused, match=f"or these have other meters, on {DAYS[1]}"):
        house.run(today=DAYS[3] + timedelta(days=2))


def first_roster(house) -> list[str]:
    return (house.folder / "roster.csv").read_text().splitlines()[2:]


def test_a_first_roster_has_the_households_of_the_meters(house, monkeypatch):
    """M4 belongs to C on two days, M2 has an unreadable energy on the last, and M9 belongs to nobody."""
    deliver(house, "a.csv", DAYS, ["M1", "M3", "M4", "M9"])
    deliver(house, "b.csv", DAYS[:3], ["M2"])
    with (house.folder / "input" / "b.csv").open("a") as file:
        file.writelines(f"M2,{datetime.combine(DAYS[3], time(hour))},?\n" for hour in range(24))
    file_of_meters = house.folder / "input" / "meters.csv"
    fixed = [f"M1,A,{DAYS[1]},", f"M2,A,{FIRST},", f"M3,B,{FIRST},", f"M4,C,{FIRST},{DAYS[1]}"]
    file_of_meters.write_text("\n".join(["meter,household,from,to", *fixed]) + "\n")
    monkeypatch.chdir(file_of_meters.parent)
    given = toml_of({"meters": "meters.csv", "stamp": "start", "zone": "UTC", "day_zone": "UTC", "unit": "kWh"})
    initial = init([str(house.folder / "input")], folder=house.folder, options=given)
    assert (initial.households, initial.facts.first, initial.facts.last) == (3, FIRST, DAYS[3])
    assert first_roster(house) == [f"A,{FIRST},{DAYS[3]}", f"B,{FIRST},{DAYS[3]}", f"C,{FIRST},{DAYS[1]}"]
    run_file = tomllib.loads((house.folder / "run.toml").read_text())
    assert run_file["population"]["meters"] == str(file_of_meters)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["M1,A,2013-01-01"], "line 2: 3 fields where the header has 4"),
        (["M1,,2013-01-01,"], "line 2: no meter, or no household"),
        (["", "M1,A,2013-13-01,"], "line 3: `from` and `to` must be dates"),
        (["M1,A,2013-01-02,2013-01-01"], "line 2: `to` lies before `from`"),
        (["M1,A,2013-01-02,", "M2,A,2013-01-01,", "M1,B,2013-01-01,2013-01-02"], "lines 4 and 2 name one meter twice"),
        ([], "has no meters"),
    ],
)
def test_a_file_of_meters_that_cannot_be_is_refused_by_its_line(tmp_path, lines, problem):
    (tmp_path / "meters.csv").write_text("\n".join(["meter,household,from,to", *lines]) + "\n")
    with pytest.raises(InputError, match=rf"^\[population\] meters: {problem}") as error:
        read_meters(str(tmp_path / "meters.csv"))
    assert "meters.csv" not in str(error.value)
    assert "meters.csv" in error.value.private
