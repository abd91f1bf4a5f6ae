"""A daily distribution on its whole way: counted exactly, drawn once, published, verified, recovered."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.ledger_transfer import recover
from agedp.stages.amend import amend
from agedp_data.errors import ContractChanged, LedgerError
from agedp_data.ledger import Ledger
from tests.agedp.reports.html import faults_of
from tests.books import forget

FIRST, DAYS = date(2013, 1, 1), 4
TODAY = date(2013, 6, 1)
HOMES = {"A": "Std", "B": "Std", "C": "Std", "D": "two words", "E": "two words", "F": "few"}
GROUPS = {"Std": "ABC", "two words": "DE"}  # the group of one household is too small
BINS = "[0, 2.5, 5, 10, 40]"
EDGES = (0, 2500, 5000, 10_000, 40_000)
HISTOGRAM = f'[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nbins_kwh = {BINS}\nmissing_kwh = 3\n'
CUMULATIVE = (
    '[series.below]\nstatistic = "distribution"\nform = "cumulative"\nclamp_kwh = 40\n'
    f'bins_kwh = {BINS}\nby = "tariff"\n'
)
BOTH = HISTOGRAM + "share = 0.3\n" + CUMULATIVE + "share = 0.2\n"


def day(number):
    return FIRST + timedelta(days=number)


def energy(home, number):
    """Wh of a home's day; 48 readings, E has none on the third day and B, at the clamp and beyond, one less."""
    return {"A": 1200, "B": 48_000, "C": 2496, "D": 4992, "E": 9600, "F": 0}[home] + 48 * number


def write(house, *, rest, mean=True, **keys):
    house.write(FIRST, day(DAYS - 1), rest=rest, **keys)
    alone = 'statistic = "mean"\nclamp_kwh = 50\n'
    house.edit((alone, f"{alone}share = 0.5\n") if mean else (f"[series.daily_mean]\n{alone}", ""))


def build(house):
    house.london(
        {
            (home, day(i), slot): energy(home, i) // 48
            for home in HOMES
            for i in range(DAYS)
            for slot in range(48)
            if (home, i) != ("E", 2)
        }
    )
    rows = [f"{home},{FIRST},,{tariff}" for home, tariff in HOMES.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    return house


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    house = build(houses(tmp_path_factory.mktemp("kept")))
    write(house, rest=BOTH)
    house.run(today=TODAY)
    return house


@pytest.fixture
def made(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house"))


def true_counts(number, homes, *, missing):
    """How many homes lie in each bin, counted one by one."""
    uses = [missing if (home, number) == ("E", 2) else min(energy(home, number), 40_000) for home in homes]
    inside = Counter(next(i for i, high in enumerate(EDGES[1:]) if wh < high or high == EDGES[-1]) for wh in uses)
    return [inside[i] for i in range(len(EDGES) - 1)]


def test_true_counts_are_those_of_homes_counted_one_by_one(kept):
    records = {(line["series"], line["day"], line["cell"]): line for line in kept.records("true_counts")}
    expected = {}
    for i in range(DAYS):
        for name, count in zip(("0-2.5", "2.5-5", "5-10", "10-40"), true_counts(i, HOMES, missing=3000), strict=True):
            expected["counts", day(i), name] = count
        for group, homes in GROUPS.items():
            below = np.cumsum(true_counts(i, homes, missing=0)).tolist()
            for name, count in zip(("0-2.5", "0-5", "0-10"), below, strict=False):
                expected["below", day(i), f"{group} {name}"] = count
    assert {key: line["true_households"] for key, line in records.items()} == expected


def test_one_release_has_one_sensitivity_and_the_share_of_the_day(kept):
    for series, sensitivity, share in (("counts", 2, Fraction(3, 10)), ("below", 3, Fraction(1, 5))):
        rows = kept.rows(series)
        assert len(rows) == DAYS
        for row in rows:
            assert row.sensitivity == sensitivity
            assert row.loss == math.ceil(Fraction(sensitivity) / Fraction(row.scale) * 10**9) == share * 5 * 10**8
    assert kept.rows("below")[0].households == (3, 3, 3, 2, 2, 2)


def test_the_table_of_counts_has_the_published_form(kept):
    table = pq.ParquetFile(kept.folder / "release" / "daily_distribution.parquet").read()
    assert " ".join(f"{field.name}:{field.type}" for field in table.schema) == (
        "day:date32[day] group:string revision:int32 bin_low_kwh:double bin_high_kwh:double households_noisy:int64 "
        "noise_sd:double published_on:date32[day] epsilon:double version:int32"
    )
    row = kept.rows("counts")[0]
    q = math.exp(-1 / row.scale)
    lines = table.to_pylist()[:4]
    for low, high, value, line in zip((0, 2.5, 5, 10), (2.5, 5, 10, 40), row.values, lines, strict=True):
        assert (line["day"], line["group"], line["bin_low_kwh"], line["bin_high_kwh"]) == (FIRST, "all", low, high)
        assert (line["households_noisy"], line["epsilon"], line["version"]) == (value, 0.15, 1)
        assert line["noise_sd"] == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-12)
    assert kept.release.table("daily_distribution_below")["bin_high_kwh"].tolist()[:6] == [2.5, 5, 10, 2.5, 5, 10]


def test_counts_alone_are_published_and_what_is_lost_is_made_again(house):
    build(house)
    write(house, rest=HISTOGRAM, mean=False)
    house.run(today=TODAY)
    release, before, rows = house.release, house.files(), house.rows()
    release.verify()
    assert "daily_averages.parquet" not in before
    assert len(release.table("daily_distribution")) == DAYS * 4
    assert "daily counts by range of use (histogram): 0, " in before["STATEMENT.md"].decode()
    assert faults_of(before["report.html"].decode()) == []
    assert house.run(today=TODAY).checked.sums.by_day == {}  # every true count is recorded: nothing is summed anew
    forget(house.folder / "confidential", "true_counts")
    (release.path / "daily_distribution.parquet").unlink()
    (release.path / "SHA256SUMS").write_text("")
    assert {of for of, _ in house.run(today=TODAY).checked.sums.by_day} == {day(i) for i in range(DAYS)}
    assert len(house.records("true_counts")) == DAYS * 4
    assert (house.files(), house.rows()) == (before, rows)


def test_bins_change_by_amendment_from_the_next_day_on(house):
    build(house)
    write(house, rest=BOTH)
    house.run(today=day(3))
    write(house, rest=BOTH.replace(BINS, "[0, 8, 40]", 1).replace(BINS, "[0, 1, 2, 3, 4, 40]"))
    with pytest.raises(ContractChanged, match="bins_kwh"):
        house.run(today=TODAY)
    amend(house.context())
    house.run(today=TODAY)
    release = house.release
    release.verify()
    counts = release.table("daily_distribution")
    assert counts.groupby("version")["bin_high_kwh"].unique().map(list).to_dict() == {1: [2.5, 5, 10, 40], 2: [8, 40]}
    assert {row.sensitivity for row in house.rows("below")} == {3, 4}
    cells = [
        line["cell"] for line in house.records("true_counts") if (line["series"], line["day"]) == ("counts", day(3))
    ]
    assert cells == ["0-8", "8-40"]
    assert house.run(today=TODAY).checked.sums.by_day == {}
    recover(release.path, f"sqlite:///{house.folder / 'again.sqlite'}", at=TODAY)
    with Ledger.open(f"sqlite:///{house.folder / 'again.sqlite'}") as again, house.ledger() as ledger:
        assert [row.values for row in again.rows()] == [row.values for row in ledger.rows()]
        assert again.verify() == ()


def test_rows_of_other_cells_never_reach_the_ledger(made):
    row = made.rows("counts")[-1]
    plain = replace(row, day="2013-01-06", seq=0, at="", hash="", values=(), input_ended_at="2013-01-07T00:00:00Z")
    with made.ledger() as ledger:
        for cells in (("0-2.5", "2.5-5", "5-10", "10-41"), row.cells[::-1], row.cells[:-1], ("x", *row.cells[1:])):
            wrong = replace(plain, cells=cells, households=row.households[: len(cells)])
            with pytest.raises(LedgerError, match="not those of its contract's bins"):
                ledger.release("homes", "counts", wrong.day, admit=lambda _, row=wrong: row, draw=lambda _: [1] * 4)
