"""Daily sums are what plain dictionaries add up to, and one household moves them by at most the clamp."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest

from agedp.local_files import atomic_files
from agedp.stages.aggregate import aggregate, write_sums
from agedp_data import table_schemas
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.series.mean import Mean
from agedp_data.series.series_terms import Cell

FIRST = date(2012, 12, 28)


def mean(*, clamp_wh=50_000, missing_wh=7, max_missing=2):
    clamp, missing = Decimal(clamp_wh) / 1000, Decimal(missing_wh) / 1000
    return Mean(statistic="mean", clamp_kwh=clamp, missing_kwh=missing, max_missing=max_missing)


def sums_of(house, spans, days, series, dataset="london", store="store"):
    where, delivery = house.read(dataset, store=store)
    of = series if isinstance(series, dict) else {"m": series}
    return aggregate(where, delivery, house.roster(spans), days=days, series=of)


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
    "a": mean(missing_wh=0),
    "b": mean(clamp_wh=9_000, missing_wh=4_321, max_missing=0),
    "c": mean(clamp_wh=1, missing_wh=1, max_missing=45),
}


@pytest.mark.parametrize(("dataset", "seed"), [("london", 1), ("london", 2), ("ausgrid", 1)])
def test_sums_are_those_of_plain_dictionaries(house, dataset, seed):
    # Sydney's clock goes forward on 7 October 2012: a day of 46 half-hours; two months either way
    first, write = (FIRST, write_london) if dataset == "london" else (date(2012, 9, 29), write_ausgrid)
    made = write(house.folder / "input", households=12, first_day=first, days=11, seed=seed)
    use = {
        (home, day): (int(made.energy_wh[i, j]), int(made.readings[i, j]))
        for i, home in enumerate(made.household_ids)
        for j, day in enumerate(made.days())
    }
    spans = comings_and_goings(made.household_ids, made.days(), seed)
    found = sums_of(house, spans, made.days(), COUNTING, dataset=dataset)
    write_sums(house.folder / "sums.parquet", found)
    table = atomic_files.read_table(house.folder / "sums.parquet", table_schemas.SUMS).to_pylist()
    rows = {(row["day"], row["series"]): (row["usable"], row["clamped"]) for row in table}
    assert len(rows) == len(found) == 11 * len(COUNTING)
    for (day, name), result in found.items():
        expected = 46 if (dataset, day) == ("ausgrid", date(2012, 10, 7)) else 48
        one = COUNTING[name]
        homes, usable, clamped, total = brute(use, spans, day, one, expected=expected)
        assert (result.series, result.parts, result.exact.tolist()) == (one, (Cell("all"),), [[total]])
        assert result.counts.tolist() == [[homes, usable, clamped, 0, 0]]
        assert rows[day, name] == (usable, clamped)
