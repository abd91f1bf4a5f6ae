"""SUMS are what plain dictionaries add up to, and one household moves them by at most the clamp."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from decimal import Decimal

import pytest

from agedp.local_files import atomic_files
from agedp.stage_values import DailySum
from agedp.stages.aggregate import aggregate, days_between
from agedp_data import table_schemas
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.series.series import Mean

FIRST = date(2012, 12, 28)


def mean(*, clamp_wh, missing_wh, max_missing):
    clamp, missing = Decimal(clamp_wh) / 1000, Decimal(missing_wh) / 1000
    return Mean(statistic="mean", clamp_kwh=clamp, missing_kwh=missing, max_missing=max_missing)


def sums_of(house, roster, days, series, dataset="london", store="store"):
    where, delivery = house.read(dataset, store=store)
    path = house.folder / store / "sums.parquet"
    of = series if isinstance(series, dict) else {"m": series}
    return aggregate(where, delivery, roster, days=days, series=of, path=path)


def brute(use, spans, day, one, *, expected=48):
    """(households, usable, clamped, sum) of a day, from {(home, day): (Wh, readings)}, household by household."""
    homes = usable = clamped = total = 0
    for home, first, last in spans:
        if first <= day and (last is None or day <= last):
            energy, readings = use.get((home, day), (0, 0))
            there = readings > 0 and expected - readings <= one.max_missing
            homes += 1
            usable += there
            clamped += there and energy > one.clamp_wh
            total += min(energy, one.clamp_wh) if there else one.missing_wh
    return homes, usable, clamped, total


def use_of(made):
    return {
        (home, day): (int(made.energy_wh[i, j]), int(made.readings[i, j]))
        for i, home in enumerate(made.household_ids)
        for j, day in enumerate(made.days())
    }


def comings_and_goings(homes, days, seed):
    chance = random.Random(seed)  # noqa: S311 - made-up rows
    spans = [("NOBODY", days[0], None)]
    for home in homes[:-2]:  # two households with readings are on no roster
        first, last = sorted(chance.choices(days, k=2))
        spans.append((home, first, chance.choice([last, None])))
        if spans[-1][2] is not None and chance.random() < 0.6:  # left and came back
            spans.append((home, last + timedelta(days=2), None))
    return spans


COUNTING = {
    "a": mean(clamp_wh=50_000, missing_wh=0, max_missing=2),
    "b": mean(clamp_wh=9_000, missing_wh=4_321, max_missing=0),
    "c": mean(clamp_wh=1, missing_wh=1, max_missing=45),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("dataset", ["london", "ausgrid"])
def test_sums_are_those_of_plain_dictionaries(house, dataset, seed):
    # Sydney's clock goes forward on 7 October 2012: a day of 46 half-hours; two months either way
    first, write = (FIRST, write_london) if dataset == "london" else (date(2012, 9, 29), write_ausgrid)
    made = write(house.folder / "input", households=12, first_day=first, days=11, seed=seed)
    spans = comings_and_goings(made.household_ids, made.days(), seed)
    found = sums_of(house, house.roster(spans), made.days(), COUNTING, dataset=dataset)
    rows = {
        (row["day"], row["series"]): row
        for row in atomic_files.read_table(house.folder / "store/sums.parquet", table_schemas.SUMS).to_pylist()
    }
    assert len(rows) == len(found) == 11 * len(COUNTING)
    for day in made.days():
        expected = 46 if (dataset, day) == ("ausgrid", date(2012, 10, 7)) else 48
        for name, one in COUNTING.items():
            homes, usable, clamped, total = brute(use_of(made), spans, day, one, expected=expected)
            assert found[day, name] == DailySum(
                one, {"all": (total,)}, {"all": homes}, {"all": usable}, {"all": clamped}
            )
            assert (rows[day, name]["usable"], rows[day, name]["clamped"]) == (usable, clamped)


@pytest.mark.parametrize(("missing", "counted"), [(0, True), (2, True), (3, False), (47, False)])
def test_a_day_may_lack_max_missing_readings_and_not_one_more(house, missing, counted):
    house.london({("A", FIRST, slot): 100 for slot in range(missing, 48)})
    one = mean(clamp_wh=50_000, missing_wh=7, max_missing=2)
    found = sums_of(house, house.roster([("A", FIRST, None)]), [FIRST], one)
    assert found[FIRST, "m"].sum_wh == {"all": 100 * (48 - missing) if counted else 7}


def test_a_day_without_any_reading_is_missing_whatever_max_missing_says(house):
    house.london({("A", FIRST + timedelta(days=1), slot): 100 for slot in range(3)})
    one = mean(clamp_wh=50_000, missing_wh=7, max_missing=45)
    found = sums_of(house, house.roster([("A", FIRST, None)]), days_between(FIRST, FIRST + timedelta(days=1)), one)
    assert [found[day, "m"].sum_wh for day, _ in found] == [{"all": 7}, {"all": 300}]


@pytest.mark.parametrize(("day", "empty", "counted"), [(6, 2, True), (6, 3, False), (7, 2, True), (7, 3, False)])
def test_the_spring_day_may_lack_as_many_of_its_46_readings(house, day, empty, counted):
    when, labels = date(2012, 10, day), ["12:00", "18:30", "0:00"][:empty]
    made = write_ausgrid(house.folder / "input", households=1, first_day=when, days=1, seed=1, quirks=False)
    with made.files[0].open(newline="") as stream:
        title, header, *lines = csv.reader(stream)
    kept = 0
    for line in lines:
        for label in labels:  # a half-hour without a cell in one category has no reading
            line[header.index(label)] = ""
    for line in lines:
        if line[3] in ("GC", "CL"):
            kept += sum(round(1000 * float(cell)) for cell in line[5:53] if cell)
    with made.files[0].open("w", newline="") as stream:
        csv.writer(stream).writerows([title, header, *lines])
    one = mean(clamp_wh=200_000, missing_wh=7, max_missing=2)
    found = sums_of(house, house.roster([("1", when, None)]), [when], one, dataset="ausgrid")
    assert int(made.readings[0, 0]) == (46 if day == 7 else 48)
    assert found[when, "m"].sum_wh == {"all": kept if counted else 7}


def day_rows(home, day, chance):
    """Rows of one household and day that may be anything: gaps, repeats, disagreements, words, absurd energies."""
    rows = []
    for slot in range(48):
        stamp = f"{day + timedelta(days=slot == 47)} {(slot + 1) % 48 // 2:02d}:{(slot + 1) % 2 * 30:02d}:00"
        cells = chance.choices([0, 0.1, 3, 49.9, 51, -1, "Null", "x", "nan"], k=chance.choice([0, 1, 1, 1, 2]))
        rows += [f"{home},{stamp},{cell}" for cell in cells]
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_one_households_day_moves_only_that_days_sum_and_by_at_most_the_clamp(house, seed):
    chance = random.Random(seed)  # noqa: S311 - made-up rows
    days = days_between(date(2013, 1, 30), date(2013, 2, 2))
    base = {(home, day, slot): chance.randrange(2000) for home in "ABC" for day in days for slot in range(48)}
    touched = chance.choice(days)
    others = {key: wh for key, wh in base.items() if (key[0], key[1]) != ("B", touched)}
    roster = house.roster([(home, days[0], None) for home in "ABC"])
    one = mean(clamp_wh=20_000, missing_wh=chance.choice([0, 9_000, 20_000]), max_missing=chance.choice([0, 2, 45]))
    house.london(base)
    before = sums_of(house, roster, days, one, store="before")
    house.london(others, extra=day_rows("B", touched, chance))
    after = sums_of(house, roster, days, one, store="after")
    for day in days:
        moved = abs(after[day, "m"].sum_wh["all"] - before[day, "m"].sum_wh["all"])
        assert moved <= (20_000 if day == touched else 0)
        assert after[day, "m"].households == before[day, "m"].households == {"all": 3}


def test_due_days_before_any_reading_are_sums_of_missing_days(house):
    house.london({("A", FIRST, 0): 100})
    roster = house.roster([("A", date(2012, 1, 1), None)])
    found = sums_of(
        house, roster, [date(2012, 5, 31), date(2012, 6, 1)], mean(clamp_wh=10, missing_wh=3, max_missing=2)
    )
    assert [one.sum_wh for one in found.values()] == [{"all": 3}, {"all": 3}]


def test_no_due_day_is_an_empty_table(house):
    house.london({("A", FIRST, 0): 100})
    assert sums_of(house, house.roster([("B", FIRST, None)]), [], COUNTING) == {}
