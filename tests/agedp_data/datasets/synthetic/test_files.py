"""Synthetic files of every layout against a plain reading of their CSV, and the defects that their publishers' have."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.synthetic import write_ausgrid, write_london, write_roster
from agedp_data.datasets.validation import ReadingRules, RejectionReason
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


@dataclass
class Written:
    """Files of a layout, what the writer says of them, and what a plain reading finds."""

    dataset: str
    layout: str
    account: object

    def rows(self):
        """Return the rows behind the headers, with the csv module."""
        found = []
        for path in self.account.files:
            with path.open(newline="") as stream:
                found += list(csv.reader(stream))[1 if self.dataset == "london" else 2 :]
        return found

    def day_of(self, row):
        return datetime.strptime(row[4], AUSGRID[self.layout][0]).date()


def london_rows(files):
    """Return id, timestamp and energy as texts; the columns are found by their names."""
    found = []
    for path in files:
        with path.open(newline="") as stream:
            lines = list(csv.reader(stream))
        names = lines[0]
        time = next(i for i, name in enumerate(names) if name in ("DateTime", "tstp"))
        energy = next(i for i, name in enumerate(names) if "hh" in name)
        found += [(line[0], line[time], line[energy]) for line in lines[1:]]
    return found


def read_london(written):
    """Return {(household, day): (Wh, readings)} and the rejected rows by reason, row by row."""
    days, rejected, seen = defaultdict(lambda: (0, 0)), Counter(), set()
    for household, text, energy in london_rows(written.account.files):
        day_first = re.match(r"\d\d/", text)
        at = datetime.strptime(text[:19], "%d/%m/%Y %H:%M:%S" if day_first else "%Y-%m-%d %H:%M:%S")
        if energy == "Null":
            rejected[RejectionReason.MISSING] += 1
            assert at.minute % 30 != 0
        elif (household, at) in seen:
            rejected[RejectionReason.DUPLICATE] += 1
        else:
            seen.add((household, at))
            assert at.minute % 30 == at.second == 0
            key = household, (at - timedelta(minutes=30)).date()
            days[key] = (days[key][0] + round(float(energy) * 1000), days[key][1] + 1)
    return dict(days), rejected


def read_ausgrid(written):
    """GC plus CL where there is GC; generation is rejected by its category."""
    general, load, rejected = {}, {}, Counter()
    for row in written.rows():
        key = row[0], written.day_of(row)
        if row[3] == "GG":
            rejected[RejectionReason.CATEGORY] += 1
        else:
            {"GC": general, "CL": load}[row[3]][key] = sum(round(float(cell) * 1000) for cell in row[5:53])
    spring = AUSGRID[written.layout][2]
    days = {key: (wh + load.get(key, 0), 46 if key[1] == spring else 48) for key, wh in general.items()}
    return days, rejected


PLAINLY = {"london": read_london, "ausgrid": read_ausgrid}


@pytest.fixture(scope="module", params=[*LONDON, *AUSGRID])
def written(request, tmp_path_factory):
    folder, layout = tmp_path_factory.mktemp(request.param), request.param
    if layout in LONDON:
        return Written(
            "london", layout, write_london(folder, households=7, first_day=FIRST, days=45, seed=5, header=layout)
        )
    first = date(AUSGRID[layout][2].year, 9, 20)
    account = write_ausgrid(folder, households=14, first_day=first, days=40, seed=1, year_layout=layout)
    return Written("ausgrid", layout, account)


def test_a_plain_reading_has_the_rows_and_energies_of_the_account(written):
    account = written.account
    days, rejected = PLAINLY[written.dataset](written)
    assert {key: wh for key, (wh, _) in days.items()} == account.truth()
    assert sum(number for _, number in days.values()) == account.readings.sum()
    assert rejected == {reason: number for reason, number in account.rejected.items() if number}
    assert len(written.rows()) == account.rows_written == account.rows_kept + sum(account.rejected.values())
    if written.dataset == "london":
        place = {household: i for i, household in enumerate(account.household_ids)}
        for (household, day), (_, number) in days.items():
            assert account.readings[place[household], (day - FIRST).days] == number
        assert (rejected[RejectionReason.DUPLICATE] == 0) == (written.layout == "kaggle")
        assert rejected[RejectionReason.MISSING] > 0


def test_the_layout_recognises_the_files_and_keeps_the_rows_of_the_account(written):
    layout, kept, rows = LAYOUTS[written.dataset], 0, 0
    for path in written.account.files:
        data = path.read_bytes()
        header = layout.recognise(data.decode().splitlines()[:20])
        parsed = parse_lines(data.split(b"\n", header.lines)[-1], layout=layout, header=header, rules=ReadingRules())
        kept, rows = kept + (parsed.records.reason == RejectionReason.KEPT).sum(), rows + parsed.rows_read
    assert kept == written.account.rows_kept + written.account.rejected.get(RejectionReason.DUPLICATE, 0)
    assert rows == written.account.rows_written


def test_headers_titles_and_line_ends_are_the_publishers(written):
    for path in written.account.files:
        data = path.read_bytes()
        if written.dataset == "london":
            header = LONDON[written.layout]
            assert data.startswith(header)
            assert data.count(b"\r\n") == data.count(b"\r") == (data.count(b"\n") if header.endswith(b"\r\n") else 0)
            continue
        title, header = data.split(b"\r\n")[:2]
        assert title.startswith(b'"' + written.layout.encode() + b" Solar home electricity data")
        assert b'""data/README.md"""' in title
        assert title.endswith(b'"' + b"," * 53)
        names = header.decode().split(",")
        assert names[:5] == ["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date"]
        assert (names[5:7], names[51:53]) == (["0:30", "1:00"], ["23:30", "0:00"])
        assert names[53:] == ([] if written.layout == "2010-2011" else ["Row Quality"])
        assert data.count(b"\r\n") == data.count(b"\n") == written.account.rows_written + 2
    if written.dataset == "london":
        assert data.endswith(b"\n") == (written.layout != "extract")


def small(dataset, folder, **keys):
    """Write one household and one day, unless told otherwise."""
    write = {"london": write_london, "ausgrid": write_ausgrid}[dataset]
    return write(folder, **{"households": 1, "first_day": FIRST, "days": 1, "seed": 1, **keys})


@pytest.mark.parametrize("dataset", ["london", "ausgrid"])
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(dataset, tmp_path):
    made = [small(dataset, tmp_path / str(i), households=5, days=6, seed=seed) for i, seed in enumerate((1, 1, 2))]
    contents = [b"".join(path.read_bytes() for path in account.files) for account in made]
    assert contents[0] == contents[1] != contents[2]


@pytest.mark.parametrize(
    ("dataset", "wrong"),
    [
        *(("london", wrong) for wrong in ({"header": "kagle"}, {"households": 0}, {"days": 0}, {"per_file": 0})),
        *(("ausgrid", wrong) for wrong in ({"year_layout": "2013-2014"}, {"households": 0}, {"days": 0})),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_no_file(dataset, wrong, tmp_path):
    with pytest.raises(RunFileError):
        small(dataset, tmp_path, **wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("dataset", "days", "low", "high", "most"), [("london", 28, 8.5, 12, 1.5), ("ausgrid", 14, 14, 22, 2.5)]
)
def test_the_mean_of_300_households_is_the_publishers(dataset, days, low, high, most, tmp_path):
    account = small(dataset, tmp_path, households=300, days=days, seed=12, quirks=dataset != "london")
    means = account.energy_wh.sum(axis=0) / (account.readings > 0).sum(axis=0) / 1000
    assert low < means.mean() < high
    assert 0.3 < abs(means[1:] - means[:-1]).mean() < most
    if dataset == "london":
        assert means.max() - means.min() > 1
    else:
        loads = {row[0] for row in Written("ausgrid", "2012-2013", account).rows() if row[3] == "CL"}
        assert 0.44 < len(loads) / 300 < 0.48  # with controlled load


class TestLondon:
    def test_the_null_row_follows_the_reading_of_the_known_day_or_of_the_middle(self, tmp_path):
        rows = london_rows(small("london", tmp_path / "known", days=31, seed=6).files)
        (at,) = [i for i, row in enumerate(rows) if row[2] == "Null"]
        assert re.fullmatch(r"2012-12-19 12:3[1-9]:\d\d\.0000000", rows[at][1])
        assert rows[at - 1][1] == "2012-12-19 12:30:00.0000000"
        assert rows[at + 1][1] == "2012-12-19 13:00:00.0000000"
        rows = london_rows(small("london", tmp_path / "other", first_day=date(2013, 1, 1), days=9, seed=6).files)
        (null,) = [row for row in rows if row[2] == "Null"]
        assert null[1].startswith("2013-01-05 12:3")

    def test_duplicates_are_adjacent_equal_lines_at_midnight_31_days_apart(self, tmp_path):
        account = small("london", tmp_path, days=80, seed=7, per_file=10**6)
        lines = account.files[0].read_bytes().split(b"\r\n")
        doubled = [line for line, after in pairwise(lines) if line == after]
        at = [datetime.fromisoformat(line.split(b",")[2].decode()[:19]) for line in doubled]
        assert [instant.time().isoformat() for instant in at] == ["00:00:00"] * 3
        assert [(b - a).days for a, b in pairwise(at)] == [31, 31]

    def test_values_are_padded_short_and_now_and_then_noisy(self, tmp_path):
        account = small("london", tmp_path, households=20, days=20, seed=8)
        texts = [row[2] for row in london_rows(account.files) if row[2] != "Null"]
        noisy = [text for text in texts if re.fullmatch(r" \d\.\d{6}[19] ", text)]
        plain = [text for text in texts if re.fullmatch(r" (0|[1-9]\d*)(\.\d{0,2}[1-9])? ", text)]
        assert 1 <= len(noisy) < len(texts) / 100
        assert len(noisy) + len(plain) == len(texts)
        assert all(abs(float(text) * 1000 - round(float(text) * 1000)) < 0.001 for text in texts)

    def test_the_named_households_lack_a_day_stop_early_and_report_zeros(self, tmp_path):
        account = small("london", tmp_path, households=6, days=30, seed=9)
        assert account.readings[1, 10] == 0
        assert account.readings[2].sum() <= 30 * 48 * 7 // 10
        assert (account.readings[2, 22:] == 0).all()
        rows = london_rows(account.files)
        zeros = [float(row[2]) == 0 for row in rows if row[0] == "MAC900004" and row[2] != "Null"]
        assert sum(zeros) > len(zeros) / 2

    def test_numbered_files_are_sorted_and_share_a_household(self, tmp_path):
        account = small("london", tmp_path / "two", households=4, days=10, seed=10)
        assert [path.name for path in account.files] == ["LCL-June2015v2_0.csv", "LCL-June2015v2_1.csv"]
        last, first = (london_rows([path])[at][0] for path, at in zip(account.files, (-1, 0), strict=True))
        assert last == first
        assert account.cut == 1
        keys = []
        for path in small("london", tmp_path / "many", households=10, days=5, seed=11, per_file=700).files:
            lines = path.read_text().splitlines()[1:]
            assert len(lines) <= 700
            keys += [(line.split(",")[1], line.split(",")[0], line.split(",")[2]) for line in lines]
        assert keys == sorted(keys)
        assert {key[0] for key in keys} == {"Std", "ToU"}

    def test_without_quirks_every_half_hour_is_there_once(self, tmp_path):
        account = small("london", tmp_path, households=5, days=6, quirks=False)
        assert account.rows_written == account.rows_kept == 5 * 6 * 48
        assert account.rejected == {}
        assert (account.readings == 48).all()

    def test_households_of_a_second_batch_are_as_true_as_those_of_the_first(self, tmp_path):
        account = small("london", tmp_path, households=130, days=2)
        days, _ = read_london(Written("london", "publisher", account))
        assert {key: wh for key, (wh, _) in days.items()} == account.truth()
        assert ("MAC900130", FIRST) in days

    def test_defects_do_not_change_what_was_used(self, tmp_path):
        sound = small("london", tmp_path / "sound", households=3, days=9, quirks=False).truth()
        flawed = small("london", tmp_path / "flawed", households=3, days=9)
        whole = flawed.readings == 48
        for (household, day), wh in flawed.truth().items():
            if whole[int(household[-1]) - 1, (day - FIRST).days]:
                assert sound[household, day] == wh
        assert 0 < whole.sum() < whole.size

    def test_readings_of_a_plain_chain_take_twelve_values_a_household(self, tmp_path):
        account = small("london", tmp_path, households=3, days=30, seed=2, quirks=False, plain_chain=True)
        values = defaultdict(set)
        for household, _, energy in london_rows(account.files):
            values[household].add(energy)
        assert 6 < max(map(len, values.values())) <= 12

    def test_an_existing_file_is_never_replaced(self, tmp_path):
        existing = tmp_path / "LCL-June2015v2_7.csv"
        existing.write_text("kept")
        with pytest.raises(RunFileError, match="already holds") as caught:
            small("london", tmp_path)
        assert str(tmp_path) not in str(caught.value)
        assert [path.name for path in tmp_path.iterdir()] == [existing.name]


@pytest.mark.parametrize("written", AUSGRID, indirect=True)
class TestAusgrid:
    def test_dates_are_day_first_and_unpadded_and_rows_sorted(self, written):
        rows = written.rows()
        assert AUSGRID[written.layout][1] in {row[4] for row in rows}
        keys = [(int(row[0]), written.day_of(row), row[3]) for row in rows]
        assert keys == sorted(keys)
        assert {len(row) for row in rows} == {53 if written.layout == "2010-2011" else 54}

    def test_the_hour_that_the_spring_day_does_not_have_is_zero_in_every_row(self, written):
        on_day = [row for row in written.rows() if written.day_of(row) == AUSGRID[written.layout][2]]
        assert len(on_day) > 14
        assert {cell for row in on_day for cell in row[9:11]} == {"0"}
        assert any(float(row[8]) > 0 for row in on_day)

    def test_row_quality_is_blank_or_na_and_counted(self, written):
        marks = Counter(row[53] for row in written.rows() if len(row) > 53)
        assert written.account.notes["row_quality_na"] == marks["NA"]
        assert (marks["NA"] > 0) == (written.layout != "2010-2011")
        assert set(marks) <= {"", "NA"}

    def test_customers_lack_days_loads_stop_and_a_day_has_only_controlled_load(self, written):
        rows, days = {(row[0], row[3], written.day_of(row)) for row in written.rows()}, written.account.days()
        assert not any(row[0] == "2" and row[2] == days[14] for row in rows)
        assert ("1", "CL", days[1]) in rows
        assert ("1", "GC", days[1]) not in rows
        assert ("1", days[1]) not in written.account.truth()
        assert max(row[2] for row in rows if row[:2] == ("6", "CL")) == days[19]
        assert max(row[2] for row in rows if row[:2] == ("6", "GC")) == days[39]


def test_the_repeated_autumn_hour_holds_about_twice_as_much(tmp_path):
    account = small("ausgrid", tmp_path, households=300, first_day=date(2013, 4, 6), days=3, seed=2, quirks=False)
    energy = {day: np.zeros(48) for day in ("6/04/2013", "7/04/2013", "8/04/2013")}
    for row in Written("ausgrid", "2012-2013", account).rows():
        if row[3] == "GC":
            energy[row[4]] += np.array([float(cell) for cell in row[5:53]])
    ratio = energy["7/04/2013"] / (energy["6/04/2013"] + energy["8/04/2013"]) * 2
    assert 1.7 < ratio[4:6].mean() / ratio[[2, 3, 6, 7]].mean() < 2.3
    assert (account.readings == 48).all()


def test_the_title_can_be_left_out(tmp_path):
    keys = {"households": 3, "first_day": date(2013, 4, 7), "days": 3, "seed": 4}
    with_title, without = (small("ausgrid", tmp_path / str(title), title=title, **keys) for title in (True, False))
    assert with_title.files[0].read_bytes().split(b"\r\n", 1)[1] == without.files[0].read_bytes()
    assert without.files[0].read_bytes().startswith(b"Customer,")


def test_a_roster_names_every_household_from_the_day_on_with_its_groups(tmp_path):
    path = tmp_path / "roster.csv"
    write_roster(path, household_ids=["MAC900001", "a,b"], first_day=FIRST, groups={"tariff": ["Std", "ToU"]})
    assert path.read_bytes() == b'household_id,from,to,tariff\nMAC900001,2012-12-01,,Std\n"a,b",2012-12-01,,ToU\n'
    roster = read_roster(path)
    assert (roster.households(FIRST), roster.ids, roster.groups) == (
        2,
        ("MAC900001", "a,b"),
        {"tariff": ("Std", "ToU")},
    )
    with pytest.raises(RunFileError, match="'tariff' has 1 values for 2 households"):
        write_roster(tmp_path / "r.csv", household_ids=["a", "b"], first_day=FIRST, groups={"tariff": ["Std"]})
