"""`values = "states"`: days of public representatives, the same for whoever counts them, however they are counted."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import compute_state_days, state_days_path
from agedp.store.store import Store
from agedp_data.datasets.synthetic import write_ausgrid
from agedp_data.datasets.validation import ReadingRules
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.series import Distribution, Mean
from tests.agedp import recounted
from tests.benchmarks import one_pass as tallying
from tests.benchmarks.one_pass import tally

FIRST, DAYS, HOMES = date(2013, 1, 29), 6, "ABCDE"
EVERY = [FIRST + timedelta(days=i) for i in range(DAYS)]
EDGES = {"half-hour": [1, 60, 300, 301, 700], "day": [2_000, 9_000, 9_001, 15_000]}
CLAMP, MISSING = 14_000, 3_333
BINS = ("0", "6", "9", "11", "14")


def mean(**keys):
    return Mean(statistic="mean", values="states", clamp_kwh=Decimal(CLAMP) / 1000, **keys)


def counts(form, **keys):
    bins = [Decimal(edge) for edge in BINS]
    return Distribution(statistic="distribution", form=form, values="states", clamp_kwh=14, bins_kwh=bins, **keys)


SERIES = {
    "strict": mean(max_missing=0, missing_kwh=Decimal(MISSING) / 1000),
    "lenient": mean(max_missing=45),
    "histogram": counts("histogram"),
    "cumulative": counts("cumulative", missing_kwh=7),
}


def made_up(house, seed=1):
    """Readings at, below and above every cut, days that lack some, and a delivery that repeats and contradicts."""
    chance = random.Random(seed)  # noqa: S311
    at = sorted({0, 2_000, *(edge + i for edge in EDGES["half-hour"] for i in (-1, 0, 1))})
    rows = {}
    for home in HOMES:
        for day in EVERY:
            gaps = chance.choice([0, 0, 1, 2, 3, 20, 47, 48])
            for slot in sorted(chance.sample(range(48), 48 - gaps)):
                rows[home, day, slot] = chance.choice(at)
    house.london(rows)
    again = {key: wh + (chance.random() < 0.1) for key, wh in rows.items() if chance.random() < 0.2}
    house.london(again, name="b.csv")
    house.roster([(home, FIRST, None) for home in (*HOMES, "NOBODY")])
    return house.roster([(home, FIRST, None) for home in (*HOMES, "NOBODY")])


def expected(house, name, day, step):
    one = SERIES[name]
    of = recounted.readings(house.folder / "input")
    keys = {"edges": EDGES[step], "step": step, "clamp": CLAMP, "lacking": one.max_missing}
    days = [
        recounted.day(of.get((home, day), {}), missing=int(one.missing_kwh * 1000), **keys)
        for home in (*HOMES, "NOBODY")
    ]
    if isinstance(one, Mean):
        return (sum(days),)
    return recounted.counts(days, [int(Decimal(edge) * 1000) for edge in BINS], one.form)


def summed(house, roster, step, *, engine=None, store="store"):
    of = Store(house.folder / store / "store", "london", ReadingRules())
    engine = engine or Engine()
    delivery = ingest(of, [str(house.folder / "input" / "*.csv")], engine=engine)
    states = RepresentativeValues(step, tuple(EDGES[step]))
    compute_state_days(of, delivery, EVERY, states, engine=engine)
    path = house.folder / store / "sums.parquet"
    return aggregate(of, delivery, roster, days=EVERY, series=SERIES, path=path, states=states)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("step", ["half-hour", "day"])
def test_sums_and_counts_are_those_of_a_plain_reader_of_the_files(house, step, seed):
    roster = made_up(house, seed)
    found = summed(house, roster, step)
    assert {key: one.exact["all"] for key, one in found.items()} == {
        (day, name): expected(house, name, day, step) for day in EVERY for name in SERIES
    }
    assert len({one.exact["all"] for (_, name), one in found.items() if name == "lenient"}) > 1


@pytest.mark.long
def test_other_processes_count_the_same(house):
    roster = made_up(house)
    elsewhere = summed(house, roster, "half-hour", engine=Engine("processes", 2), store="elsewhere")
    assert elsewhere == summed(house, roster, "half-hour")


@pytest.mark.parametrize("step", ["half-hour", "day"])
def test_any_blocks_workers_files_and_order_of_rows_count_the_same(house, step):
    roster = made_up(house)
    once = summed(house, roster, step)
    for i, engine in enumerate([Engine("threads", 3, 5_000), Engine("synchronous", 1, 2**13)]):
        assert summed(house, roster, step, engine=engine, store=f"store{i}") == once
    lines = [line for path in (house.folder / "input").iterdir() for line in path.read_text().splitlines()[1:]]
    random.Random(5).shuffle(lines)  # noqa: S311
    for i in range(3):
        text = "\n".join(["LCLid,tstp,energy(kWh/hh)", *lines[i::3]]) + "\n"
        (house.folder / "input" / f"{'abc'[i]}.csv").write_text(text)
    assert summed(house, roster, step, store="shuffled") == once


def test_both_roads_of_a_tally_count_days_as_a_plain_reader_does(house, monkeypatch):
    made_up(house)
    (house.folder / "input" / "b.csv").unlink()
    keys = {"dataset": "london", "edges": EDGES["half-hour"], "engine": Engine("threads", 2, 2_000)}
    of = recounted.readings(house.folder / "input")
    wanted = {key: sum(recounted.middle(EDGES["half-hour"], wh) for wh in slots.values()) for key, slots in of.items()}
    for closed in ("_tally_by_store", "_tally_files"):
        with monkeypatch.context() as patch:
            patch.setattr(tallying, closed, contested)
            found = tally([str(house.folder / "input")], values="states", **keys)
        days = [date(1970, 1, 1) + timedelta(days=int(day)) for day in found.day]
        assert dict(zip(((found.ids[i], day) for i, day in zip(found.household, days, strict=True)),
                        found.energy_wh.tolist(), strict=True)) == wanted  # fmt: skip
        read_as_they_are = tally([str(house.folder / "input")], **keys)
        assert np.array_equal(found.counts, read_as_they_are.counts)
        assert not np.array_equal(found.energy_wh, read_as_they_are.energy_wh)


def contested(*_):
    raise tallying._ConflictingParts


def test_other_cuts_are_another_table_and_the_same_are_counted_once(house, monkeypatch):
    roster = made_up(house)
    first = summed(house, roster, "half-hour")
    store, delivery = house.read()
    paths = {
        state_days_path(store, "2013-01", delivery.contents, RepresentativeValues("half-hour", edges))
        for edges in ((1, 60), (1, 61), (1, 60, 300))
    }
    assert len(paths) == 3
    assert all(path.parent == store.folder / "days" / "month=2013-01" for path in paths)
    with monkeypatch.context() as patch:
        patch.setattr(RepresentativeValues, "represent", None)
        assert summed(house, roster, "half-hour") == first
    monkeypatch.setitem(EDGES, "half-hour", [100, 500])
    assert summed(house, roster, "half-hour") != first


def test_a_series_that_counts_states_is_not_summed_without_them(house):
    roster = made_up(house)
    store, delivery = house.read()
    with pytest.raises(ValueError, match="counts states"):
        aggregate(store, delivery, roster, days=EVERY, series=SERIES, path=house.folder / "store" / "s.parquet")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("step", ["half-hour", "day"])
def test_one_households_day_moves_only_that_days_figures_and_by_no_more_than_the_sensitivity(house, step, seed):
    roster = made_up(house, seed)
    before = summed(house, roster, step, store="before")
    chance = random.Random(seed)  # noqa: S311
    touched = chance.choice(EVERY)
    kept = recounted.readings(house.folder / "input")
    slots = chance.sample(range(48), chance.choice([0, 1, 46, 48]))
    kept["B", touched] = {slot: chance.choice([0, 1, 59, 60, 49_999]) for slot in slots}
    (house.folder / "input" / "b.csv").unlink()
    house.london({(home, day, slot): wh for (home, day), of in kept.items() for slot, wh in of.items()})
    after = summed(house, roster, step, store="after")
    for (day, name), one in after.items():
        moved = sum(abs(np.subtract(one.exact["all"], before[day, name].exact["all"])))
        assert moved <= (SERIES[name].sensitivity("replacement") if day == touched else 0)


@pytest.mark.parametrize("day", [date(2012, 10, 6), date(2012, 10, 7), date(2013, 4, 7)])
def test_days_on_which_sydneys_clock_changes_count_the_half_hours_that_their_columns_hold(house, day):
    made = write_ausgrid(house.folder / "input", households=4, first_day=day, days=1, seed=2, quirks=False)
    states = RepresentativeValues("half-hour", (10, 100, 400, 900))
    store, delivery = house.read("ausgrid")
    roster = house.roster([(home, day, None) for home in made.household_ids])
    one = Mean(statistic="mean", values="states", clamp_kwh=40)
    sums = aggregate(
        store, delivery, roster, days=[day], series={"m": one}, path=house.folder / "store/s.parquet", states=states
    )
    total = 0
    for path in made.files:
        use = {}
        for line in path.read_text().splitlines()[2:]:
            home, _, _, category, _, *cells = line.split(",")
            if category in ("GC", "CL"):
                for slot, cell in enumerate(cells[:48]):
                    if cell and not (day == date(2012, 10, 7) and slot in (4, 5)):  # there was no half past two
                        use[home, slot] = use.get((home, slot), 0) + int(Decimal(cell) * 1000)
        for home in made.household_ids:
            own = [wh for (name, _), wh in use.items() if name == home]
            total += min(40_000, sum(recounted.middle([10, 100, 400, 900], wh) for wh in own))
    assert sums[day, "m"].sum_wh == {"all": total}
