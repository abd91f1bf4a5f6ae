from __future__ import annotations

import csv
from collections import Counter
from datetime import date, datetime

import numpy as np
import pytest

from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.synthetic import write_ausgrid
from agedp_data.datasets.validation import ReadingRules, RejectionReason
from agedp_data.errors import RunFileError

FORMATS = {"2010-2011": "%d-%b-%y", "2011-2012": "%d/%m/%Y", "2012-2013": "%d/%m/%Y"}
SPRING, AUTUMN = date(2012, 10, 7), date(2013, 4, 7)


def lines_of(account, title=True):
    with account.files[0].open(newline="") as stream:
        lines = list(csv.reader(stream))
    return lines[1:] if title else lines


def naive(account, layout, spring):
    """Return {(customer, day): Wh}: GC plus CL where there is GC; and how many readings."""
    general, load = {}, {}
    for row in lines_of(account)[1:]:
        key = (row[0], datetime.strptime(row[4], FORMATS[layout]).date())
        if row[3] != "GG":
            {"GC": general, "CL": load}[row[3]][key] = sum(round(float(cell) * 1000) for cell in row[5:53])
    energy = {key: wh + load.get(key, 0) for key, wh in general.items()}
    return energy, sum(46 if day == spring else 48 for _, day in general)


@pytest.fixture(scope="module", params=[("2010-2011", date(2010, 9, 20), date(2010, 10, 3)),
                                        ("2011-2012", date(2011, 9, 20), date(2011, 10, 2)),
                                        ("2012-2013", date(2012, 9, 20), SPRING)])  # fmt: skip
def written(request, tmp_path_factory):
    layout, first, spring = request.param
    folder = tmp_path_factory.mktemp(layout)
    account = write_ausgrid(folder, households=14, first_day=first, days=40, seed=1, year_layout=layout)
    return layout, spring, account


def test_title_and_header_are_the_publishers(written):
    layout, _, account = written
    title, header = account.files[0].read_bytes().split(b"\r\n")[:2]
    assert title.startswith(b'"' + layout.encode() + b" Solar home electricity data")
    assert b'""data/README.md"""' in title
    assert title.endswith(b'"' + b"," * 53)
    names = header.decode().split(",")
    assert names[:7] == ["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date", "0:30", "1:00"]
    assert names[51:53] == ["23:30", "0:00"]
    assert names[53:] == ([] if layout == "2010-2011" else ["Row Quality"])
    data = account.files[0].read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") == account.rows_written + 2


def test_every_row_has_as_many_cells_as_the_header(written):
    layout, _, account = written
    assert {len(row) for row in lines_of(account)} == {53 if layout == "2010-2011" else 54}


def test_dates_are_day_first_and_unpadded(written):
    layout, _, account = written
    texts = {row[4] for row in lines_of(account)[1:]}
    assert {"2010-2011": "1-Oct-10", "2011-2012": "1/10/2011", "2012-2013": "1/10/2012"}[layout] in texts


def test_a_plain_count_of_the_rows_agrees_with_the_accounting(written):
    _, _, account = written
    categories = Counter(row[3] for row in lines_of(account)[1:])
    assert sum(categories.values()) == account.rows_written
    assert account.rejected == {RejectionReason.CATEGORY: categories["GG"]}
    assert account.rows_kept == categories["GC"] + categories["CL"]


def test_a_naive_sum_of_the_csv_is_the_truth(written):
    layout, spring, account = written
    energy, readings = naive(account, layout, spring)
    assert energy == account.truth()
    assert readings == account.readings.sum()


def test_the_hour_that_the_spring_day_does_not_have_is_zero_in_every_row(written):
    layout, spring, account = written
    on_day = [row for row in lines_of(account)[1:] if datetime.strptime(row[4], FORMATS[layout]).date() == spring]
    assert len(on_day) > 14
    assert {cell for row in on_day for cell in row[9:11]} == {"0"}
    assert any(float(row[8]) > 0 for row in on_day)


def test_row_quality_is_blank_or_na_and_counted(written):
    layout, _, account = written
    marks = Counter(row[53] for row in lines_of(account)[1:] if len(row) > 53)
    assert account.notes["row_quality_na"] == marks["NA"]
    assert (marks["NA"] > 0) == (layout != "2010-2011")
    assert set(marks) <= {"", "NA"}


def test_the_reader_recognises_the_file_and_keeps_what_the_accounting_says(written):
    _, _, account = written
    data = account.files[0].read_bytes()
    found = Ausgrid().recognise(data.decode().splitlines()[:5])
    parsed = parse_lines(data.split(b"\n", 2)[2], layout=Ausgrid(), header=found, rules=ReadingRules())
    assert (parsed.records.reason == RejectionReason.KEPT).sum() == account.rows_kept
    assert parsed.rows_read == account.rows_written


def test_the_repeated_autumn_hour_holds_about_twice_as_much(tmp_path):
    account = write_ausgrid(tmp_path, households=300, first_day=date(2013, 4, 6), days=3, seed=2, quirks=False)
    night = {day: np.zeros(48) for day in ("6/04/2013", "7/04/2013", "8/04/2013")}
    for row in lines_of(account)[1:]:
        if row[3] == "GC":
            night[row[4]] += np.array([float(cell) for cell in row[5:53]])
    usual = (night["6/04/2013"] + night["8/04/2013"]) / 2
    ratio = night["7/04/2013"] / usual
    assert 1.7 < ratio[4:6].mean() / ratio[[2, 3, 6, 7]].mean() < 2.3
    assert (account.readings == 48).all()


def test_customers_lack_days_loads_stop_and_a_day_has_only_controlled_load(written):
    layout, _, account = written
    rows = [(row[0], row[3], datetime.strptime(row[4], FORMATS[layout]).date()) for row in lines_of(account)[1:]]
    days = account.days()
    assert not any(row[0] == "2" and row[2] == days[14] for row in rows)
    assert ("1", "CL", days[1]) in rows
    assert ("1", "GC", days[1]) not in rows
    assert ("1", days[1]) not in account.truth()
    assert max(row[2] for row in rows if row[:2] == ("6", "CL")) == days[19]
    assert max(row[2] for row in rows if row[:2] == ("6", "GC")) == days[39]


def test_rows_are_sorted_by_customer_day_and_category(written):
    layout, _, account = written
    keys = [(int(row[0]), datetime.strptime(row[4], FORMATS[layout]), row[3]) for row in lines_of(account)[1:]]
    assert keys == sorted(keys)


def test_of_300_customers_about_46_percent_have_controlled_load_and_the_mean_is_ausgrids(tmp_path):
    account = write_ausgrid(tmp_path, households=300, first_day=date(2012, 7, 1), days=14, seed=3)
    loads = {row[0] for row in lines_of(account)[1:] if row[3] == "CL"}
    assert 0.44 < len(loads) / 300 < 0.48
    means = account.energy_wh.sum(axis=0) / (account.readings > 0).sum(axis=0) / 1000
    assert 14 < means.mean() < 22
    assert 0.3 < abs(means[1:] - means[:-1]).mean() < 2.5


def test_the_title_can_be_left_out_and_the_same_seed_gives_the_same_bytes(tmp_path):
    made = [
        write_ausgrid(tmp_path / str(i), households=3, first_day=AUTUMN, days=3, seed=4, title=i < 2) for i in range(3)
    ]
    contents = [account.files[0].read_bytes() for account in made]
    assert contents[0] == contents[1]
    assert contents[0].split(b"\r\n", 1)[1] == contents[2]
    assert contents[2].startswith(b"Customer,")


@pytest.mark.parametrize("wrong", [{"year_layout": "2013-2014"}, {"households": 0}, {"days": 0}])
def test_what_cannot_be_made_is_refused(tmp_path, wrong):
    with pytest.raises(RunFileError):
        write_ausgrid(tmp_path, **{"households": 1, "first_day": SPRING, "days": 1, "seed": 1, **wrong})
