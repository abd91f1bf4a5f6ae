"""Synthetic files of every layout against a plain reading of their CSV, and the defects that their publishers' have."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta

import pytest

from agedp_data.datasets.synthetic import write_ausgrid, write_london, write_roster
from agedp_data.datasets.validation import RejectionReason
from agedp_data.errors import RunFileError
from agedp_data.roster import read_roster

FIRST = date(2012, 12, 1)
LONDON = {
    "publisher": b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) \r\n",
    "older": b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped\r\n",
    "sample": b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped\r\n",
    "kaggle": b"LCLid,tstp,energy(kWh/hh)\n",
    "extract": b"LCLid,DateTime,KWH/hh (per half hour)\n",
}
AUSGRID = {  # the year's format of dates, its first of October, the Sunday on which the clock goes forward
    "2010-2011": ("%d-%b-%y", "1-Oct-10", date(2010, 10, 3)),
    "2011-2012": ("%d/%m/%Y", "1/10/2011", date(2011, 10, 2)),
    "2012-2013": ("%d/%m/%Y", "1/10/2012", date(2012, 10, 7)),
}
WRITERS = {"london": write_london, "ausgrid": write_ausgrid}


def written(dataset, folder, **keys):
    """Write one household and one day, unless told otherwise."""
    return WRITERS[dataset](folder, **{"households": 1, "first_day": FIRST, "days": 1, "seed": 1, **keys})


def london_rows(files):
    """Return id, timestamp and energy as texts; the columns are found by their names."""
    found = []
    for path in files:
        with path.open(newline="") as stream:
            names, *lines = csv.reader(stream)
        time = next(i for i, name in enumerate(names) if name in ("DateTime", "tstp"))
        energy = next(i for i, name in enumerate(names) if "hh" in name)
        found += [(line[0], line[time], line[energy]) for line in lines]
    return found


def ausgrid_rows(account):
    with account.files[0].open(newline="") as stream:
        return list(csv.reader(stream))[2:]


def count_london(account):
    """Return {(household, day): (Wh, readings)} and the rejected rows by reason, row by row."""
    days, rejected, seen = defaultdict(lambda: (0, 0)), Counter(), set()
    for household, text, energy in london_rows(account.files):
        day_first = re.match(r"\d\d/", text)
        at = datetime.strptime(text[:19], "%d/%m/%Y %H:%M:%S" if day_first else "%Y-%m-%d %H:%M:%S")
        if energy == "Null":
            rejected[RejectionReason.MISSING] += 1
        elif (household, at) in seen:
            rejected[RejectionReason.DUPLICATE] += 1
        else:
            seen.add((household, at))
            wh, number = days[household, (at - timedelta(minutes=30)).date()]
            days[household, (at - timedelta(minutes=30)).date()] = wh + round(float(energy) * 1000), number + 1
            assert at.minute % 30 == at.second == 0
    return days, rejected


def count_ausgrid(account, year):
    """GC plus CL where there is GC; generation is rejected by its category."""
    pattern, _, spring = AUSGRID[year]
    sums, rejected = {"GC": {}, "CL": {}}, Counter()
    for row in ausgrid_rows(account):
        key = row[0], datetime.strptime(row[4], pattern).date()
        if row[3] == "GG":
            rejected[RejectionReason.CATEGORY] += 1
        else:
            sums[row[3]][key] = sum(round(float(cell) * 1000) for cell in row[5:53])
    days = {key: (wh + sums["CL"].get(key, 0), 46 if key[1] == spring else 48) for key, wh in sums["GC"].items()}
    return days, rejected


def check_account(account, days, rejected):
    """Compare the writer's account with a plain reading of what it wrote."""
    assert {key: wh for key, (wh, _) in days.items()} == account.truth()
    places = {household: i for i, household in enumerate(account.household_ids)}
    for (household, day), (_, number) in days.items():
        assert account.readings[places[household], (day - account.days()[0]).days] == number
    assert sum(number for _, number in days.values()) == account.readings.sum()
    assert rejected == {reason: number for reason, number in account.rejected.items() if number}
    assert account.rows_written == account.rows_kept + sum(account.rejected.values())


@pytest.mark.parametrize("header", LONDON)
def test_london_files_are_as_their_account_says(header, tmp_path):
    account = written("london", tmp_path, households=5, days=40, seed=5, header=header)
    days, rejected = count_london(account)
    check_account(account, days, rejected)
    assert len(london_rows(account.files)) == account.rows_written
    assert (rejected[RejectionReason.DUPLICATE] == 0) == (header == "kaggle")
    assert rejected[RejectionReason.MISSING] > 0
    for path in account.files:
        data = path.read_bytes()
        assert data.startswith(LONDON[header])
        ends = data.count(b"\n") if LONDON[header].endswith(b"\r\n") else 0
        assert data.count(b"\r\n") == data.count(b"\r") == ends
    assert data.endswith(b"\n") == (header != "extract")


@pytest.mark.parametrize("year", AUSGRID)
def test_ausgrid_files_are_as_their_account_says(year, tmp_path):
    pattern, october, spring = AUSGRID[year]
    first = date(spring.year, 9, 20)
    account = written("ausgrid", tmp_path, households=14, first_day=first, days=40, year_layout=year)
    check_account(account, *count_ausgrid(account, year))
    title, header = account.files[0].read_bytes().split(b"\r\n")[:2]
    assert title.startswith(b'"' + year.encode() + b" Solar home electricity data")
    assert title.endswith(b'"' + b"," * 53)
    names = header.decode().split(",")
    assert names[:5] == ["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date"]
    assert (names[5:7], names[51:53]) == (["0:30", "1:00"], ["23:30", "0:00"])
    assert names[53:] == ([] if year == "2010-2011" else ["Row Quality"])
    rows = ausgrid_rows(account)
    assert len(rows) == account.rows_written
    dates = [datetime.strptime(row[4], pattern).date() for row in rows]
    keys = [(int(row[0]), day, row[3]) for row, day in zip(rows, dates, strict=True)]
    assert keys == sorted(keys)
    assert october in {row[4] for row in rows}
    marks = Counter(row[53] for row in rows if len(row) > 53)
    assert account.notes["row_quality_na"] == marks["NA"]
    assert set(marks) == (set() if year == "2010-2011" else {"", "NA"})
    absent = {cell for row, day in zip(rows, dates, strict=True) if day == spring for cell in row[9:11]}
    assert absent == {"0"}  # the hour that the spring day does not have
    days = account.days()
    assert not any(customer == 2 and day == days[14] for customer, day, _ in keys)
    assert (1, days[1], "CL") in keys
    assert (1, days[1], "GC") not in keys
    assert max(day for customer, day, category in keys if (customer, category) == (6, "CL")) == days[19]
    assert max(day for customer, day, category in keys if (customer, category) == (6, "GC")) == days[39]


@pytest.mark.parametrize(
    ("dataset", "wrong"),
    [
        *(("london", wrong) for wrong in ({"header": "kagle"}, {"households": 0}, {"days": 0}, {"per_file": 0})),
        *(("ausgrid", wrong) for wrong in ({"year_layout": "2013-2014"}, {"households": 0}, {"days": 0})),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_no_file(dataset, wrong, tmp_path):
    with pytest.raises(RunFileError):
        written(dataset, tmp_path, **wrong)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_never_replaced(tmp_path):
    (tmp_path / "LCL-June2015v2_7.csv").write_text("kept")
    with pytest.raises(RunFileError, match="already holds") as caught:
        written("london", tmp_path)
    assert str(tmp_path) not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["LCL-June2015v2_7.csv"]


def test_a_roster_names_every_household_with_its_groups(tmp_path):
    path = tmp_path / "roster.csv"
    write_roster(path, household_ids=["MAC900001", "a,b"], first_day=FIRST, groups={"tariff": ["Std", "ToU"]})
    assert path.read_bytes() == b'household_id,from,to,tariff\nMAC900001,2012-12-01,,Std\n"a,b",2012-12-01,,ToU\n'
    assert read_roster(path).rows.groups == {"tariff": ("Std", "ToU")}
    with pytest.raises(RunFileError, match="'tariff' has 1 values for 2 households"):
        write_roster(tmp_path / "r.csv", household_ids=["a", "b"], first_day=FIRST, groups={"tariff": ["Std"]})
