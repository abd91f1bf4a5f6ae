from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest

from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.london import London
from agedp_data.datasets.synthetic import write_london, write_roster
from agedp_data.datasets.validation import ReadingRules, RejectionReason
from agedp_data.errors import RunFileError
from agedp_data.roster import read_roster

HEADERS = {
    "publisher": b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) \r\n",
    "older": b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped\r\n",
    "sample": b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped\r\n",
    "kaggle": b"LCLid,tstp,energy(kWh/hh)\n",
    "extract": b"LCLid,DateTime,KWH/hh (per half hour)\n",
}
FIRST = date(2012, 12, 1)


def rows_of(files):
    """Return id, stamp and energy texts with the csv module; the columns found by what they are called."""
    found = []
    for path in files:
        with path.open(newline="") as stream:
            lines = list(csv.reader(stream))
        at = [next(i for i, name in enumerate(lines[0]) if name.startswith(key)) for key in ("LCLid",)]
        at += [next(i for i, name in enumerate(lines[0]) if name in ("DateTime", "tstp"))]
        at += [next(i for i, name in enumerate(lines[0]) if "hh" in name)]
        found += [tuple(line[i] for i in at) for line in lines[1:]]
    return found


def naive(rows):
    """Return {(household, day): [Wh, readings]} and the rows set aside, row by row."""
    days, aside, seen = defaultdict(lambda: [0, 0]), Counter(), set()
    for household, text, energy in rows:
        day_first = re.match(r"\d\d/", text)
        stamp = datetime.strptime(text[:19], "%d/%m/%Y %H:%M:%S" if day_first else "%Y-%m-%d %H:%M:%S")
        if energy == "Null":
            aside["Null"] += 1
            assert stamp.minute % 30 != 0
        elif (household, stamp) in seen:
            aside["duplicate"] += 1
        else:
            seen.add((household, stamp))
            assert stamp.minute % 30 == stamp.second == 0
            total = days[household, (stamp - timedelta(minutes=30)).date()]
            total[0] += round(float(energy) * 1000)
            total[1] += 1
    return days, aside


@pytest.fixture(scope="module", params=HEADERS)
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, write_london(folder, households=7, first_day=FIRST, days=45, seed=5, header=request.param)


def test_every_file_begins_with_the_header_of_its_layout_and_keeps_its_line_ends(written):
    header, account = written
    for path in account.files:
        data = path.read_bytes()
        assert data.startswith(HEADERS[header])
        assert (data.count(b"\r\n") == data.count(b"\n")) == HEADERS[header].endswith(b"\r\n")
        assert b"\r" not in data or HEADERS[header].endswith(b"\r\n")
    assert account.files[-1].read_bytes().endswith(b"\n") == (header != "extract")


def test_a_plain_count_of_the_rows_agrees_with_the_accounting(written):
    header, account = written
    rows = rows_of(account.files)
    days, aside = naive(rows)
    assert len(rows) == account.rows_written == account.rows_kept + sum(account.rejected.values())
    assert account.rejected.get(RejectionReason.MISSING, 0) == aside["Null"] > 0
    assert account.rejected.get(RejectionReason.DUPLICATE, 0) == aside["duplicate"]
    assert (aside["duplicate"] == 0) == (header == "kaggle")
    assert account.rows_kept == sum(number for _, number in days.values()) == account.readings.sum()


def test_a_naive_sum_of_the_csv_is_the_truth(written):
    _, account = written
    days, _ = naive(rows_of(account.files))
    assert {key: energy for key, (energy, _) in days.items()} == account.truth()
    place = {household: i for i, household in enumerate(account.household_ids)}
    for (household, day), (_, number) in days.items():
        assert account.readings[place[household], (day - FIRST).days] == number


def test_the_reader_recognises_the_files_and_keeps_what_is_neither_null_nor_doubled(written):
    _, account = written
    kept = 0
    for path in account.files:
        data = path.read_bytes()
        found = London().recognise(data.decode().splitlines()[:20])
        parsed = parse_lines(data.split(b"\n", 1)[1], layout=London(), header=found, rules=ReadingRules())
        kept += int((parsed.records.reason == RejectionReason.KEPT).sum())
    assert kept == account.rows_kept + account.rejected.get(RejectionReason.DUPLICATE, 0)


def test_the_null_row_stands_on_the_known_day_beside_the_real_half_past_twelve(tmp_path):
    account = write_london(tmp_path, households=1, first_day=FIRST, days=31, seed=6)
    rows = rows_of(account.files)
    (at,) = [i for i, row in enumerate(rows) if row[2] == "Null"]
    assert re.fullmatch(r"2012-12-19 12:3[1-9]:\d\d\.0000000", rows[at][1])
    assert rows[at - 1][1] == "2012-12-19 12:30:00.0000000"
    assert rows[at + 1][1] == "2012-12-19 13:00:00.0000000"


def test_a_period_without_that_day_has_its_null_rows_in_the_middle(tmp_path):
    account = write_london(tmp_path, households=1, first_day=date(2013, 1, 1), days=9, seed=6)
    (null,) = [row for row in rows_of(account.files) if row[2] == "Null"]
    assert null[1].startswith("2013-01-05 12:3")


def test_duplicates_are_adjacent_equal_lines_at_midnight_31_days_apart(tmp_path):
    account = write_london(tmp_path, households=1, first_day=FIRST, days=80, seed=7, per_file=10**6)
    lines = account.files[0].read_bytes().split(b"\r\n")
    doubled = [line for line, after in pairwise(lines) if line == after]
    stamps = [datetime.fromisoformat(line.split(b",")[2].decode()[:19]) for line in doubled]
    assert [stamp.time().isoformat() for stamp in stamps] == ["00:00:00"] * 3
    assert [(b - a).days for a, b in pairwise(stamps)] == [31, 31]


def test_values_are_padded_short_and_here_and_there_noisy(tmp_path):
    account = write_london(tmp_path, households=20, first_day=FIRST, days=20, seed=8)
    texts = [row[2] for row in rows_of(account.files) if row[2] != "Null"]
    noisy = [text for text in texts if re.fullmatch(r" \d\.\d{6}[19] ", text)]
    plain = [text for text in texts if re.fullmatch(r" (0|[1-9]\d*)(\.\d{0,2}[1-9])? ", text)]
    assert 1 <= len(noisy) < len(texts) / 100
    assert len(noisy) + len(plain) == len(texts)
    assert all(abs(float(text) * 1000 - round(float(text) * 1000)) < 0.001 for text in texts)


def test_the_named_households_lack_a_day_stop_early_and_report_zeros(tmp_path):
    account = write_london(tmp_path, households=6, first_day=FIRST, days=30, seed=9)
    assert account.readings[1, 10] == 0
    assert account.readings[2].sum() <= 30 * 48 * 7 // 10
    assert (account.readings[2, 22:] == 0).all()
    zeros = [float(row[2]) == 0 for row in rows_of(account.files) if row[0] == "MAC900004" and row[2] != "Null"]
    assert sum(zeros) > len(zeros) / 2


def test_a_household_goes_on_in_the_next_numbered_file(tmp_path):
    account = write_london(tmp_path, households=4, first_day=FIRST, days=10, seed=10)
    assert [path.name for path in account.files] == ["LCL-June2015v2_0.csv", "LCL-June2015v2_1.csv"]
    last, first = (rows_of([path])[at][0] for path, at in zip(account.files, (-1, 0), strict=True))
    assert last == first
    assert account.cut == 1


def test_rows_are_sorted_by_tariff_household_and_time(tmp_path):
    account = write_london(tmp_path, households=10, first_day=FIRST, days=5, seed=11, per_file=700)
    keys = []
    for path in account.files:
        lines = path.read_text().splitlines()[1:]
        assert len(lines) <= 700
        keys += [(line.split(",")[1], line.split(",")[0], line.split(",")[2]) for line in lines]
    assert keys == sorted(keys)
    assert {key[0] for key in keys} == {"Std", "ToU"}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    made = [
        write_london(tmp_path / str(i), households=5, first_day=FIRST, days=6, seed=seed)
        for i, seed in enumerate((1, 1, 2))
    ]
    contents = [b"".join(path.read_bytes() for path in account.files) for account in made]
    assert contents[0] == contents[1] != contents[2]


def test_without_quirks_every_half_hour_is_there_once(tmp_path):
    account = write_london(tmp_path, households=5, first_day=FIRST, days=6, seed=1, quirks=False)
    assert account.rows_written == account.rows_kept == 5 * 6 * 48
    assert account.rejected == {}
    assert (account.readings == 48).all()


def test_households_of_a_second_batch_are_as_true_as_those_of_the_first(tmp_path):
    account = write_london(tmp_path, households=130, first_day=FIRST, days=2, seed=1)
    days, _ = naive(rows_of(account.files))
    assert {key: energy for key, (energy, _) in days.items()} == account.truth()
    assert ("MAC900130", FIRST) in days


def test_flaws_do_not_change_what_was_used(tmp_path):
    sound = write_london(tmp_path / "sound", households=3, first_day=FIRST, days=9, seed=1, quirks=False).truth()
    flawed = write_london(tmp_path / "flawed", households=3, first_day=FIRST, days=9, seed=1)
    whole = flawed.readings == 48
    assert all(
        sound[key] == wh for key, wh in flawed.truth().items() if whole[int(key[0][-1]) - 1, (key[1] - FIRST).days]
    )
    assert 0 < whole.sum() < whole.size


def test_readings_of_a_plain_chain_take_twelve_values_a_household(tmp_path):
    account = write_london(tmp_path, households=3, first_day=FIRST, days=30, seed=2, quirks=False, plain_chain=True)
    values = {household: set() for household in account.household_ids}
    for household, _, energy in rows_of(account.files):
        values[household].add(energy)
    assert all(len(found) <= 12 for found in values.values())
    assert max(len(found) for found in values.values()) > 6


def test_the_mean_of_300_homes_is_that_of_london(tmp_path):
    account = write_london(tmp_path, households=300, first_day=FIRST, days=28, seed=12, quirks=False)
    means = account.energy_wh.mean(axis=0) / 1000
    assert 8.5 < means.mean() < 12
    assert 0.3 < abs(means[1:] - means[:-1]).mean() < 1.5
    assert means.max() - means.min() > 1


@pytest.mark.parametrize("wrong", [{"header": "kagle"}, {"households": 0}, {"days": 0}, {"per_file": 0}])
def test_what_cannot_be_made_is_refused(tmp_path, wrong):
    with pytest.raises(RunFileError):
        write_london(tmp_path, **{"households": 1, "first_day": FIRST, "days": 1, "seed": 1, **wrong})
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there_are_never_replaced(tmp_path):
    there = tmp_path / "LCL-June2015v2_7.csv"
    there.write_text("kept")
    with pytest.raises(RunFileError, match="already holds") as caught:
        write_london(tmp_path, households=1, first_day=FIRST, days=1, seed=1)
    assert str(tmp_path) not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [there.name]


def test_a_roster_names_every_household_from_the_day_on_with_its_groups(tmp_path):
    path = tmp_path / "roster.csv"
    write_roster(path, household_ids=["MAC900001", "a,b"], first_day=FIRST, groups={"tariff": ["Std", "ToU"]})
    assert path.read_bytes() == b'household_id,from,to,tariff\nMAC900001,2012-12-01,,Std\n"a,b",2012-12-01,,ToU\n'
    roster = read_roster(path)
    assert roster.households(FIRST) == 2
    assert roster.ids == ("MAC900001", "a,b")
    assert roster.groups == {"tariff": ("Std", "ToU")}


def test_a_group_without_one_value_per_household_is_refused(tmp_path):
    with pytest.raises(RunFileError, match="'tariff' has 1 values for 2 households"):
        write_roster(tmp_path / "r.csv", household_ids=["a", "b"], first_day=FIRST, groups={"tariff": ["Std"]})
