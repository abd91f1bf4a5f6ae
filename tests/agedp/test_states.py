"""`values = "states"`: days of public representatives, the same for whoever counts them, from files to a release."""

from __future__ import annotations

import random
import re
import shutil
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest

from agedp.calibration_pipeline import calibrate
from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.amend import amend, preview_amendment
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import compute_state_days, state_days_path
from agedp.store.month_reader import stored_groups
from agedp.store.store import Store
from agedp_data import mechanisms
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import ContractChanged, LedgerError, RunFileError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.model import DIGEST_FILE, PUBLIC_FILE
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from agedp_data.statement.note_texts import FACTS
from tests.agedp import recounted
from tests.exact_sums import as_values, by_group, sum_wh

FIRST, HOMES = date(2013, 1, 29), "ABCDE"
EVERY = [FIRST + timedelta(days=i) for i in range(6)]
EDGES = {"half-hour": [1, 60, 300, 301, 700], "day": [2_000, 9_000, 9_001, 15_000]}
BINS = ("0", "6", "9", "11", "14")


def mean(**keys):
    return Mean(statistic="mean", values="states", clamp_kwh=14, **keys)


def counts(form, **keys):
    bins = [Decimal(edge) for edge in BINS]
    return Distribution(statistic="distribution", form=form, values="states", clamp_kwh=14, bins_kwh=bins, **keys)


SERIES = {
    "strict": mean(max_missing=0, missing_kwh=Decimal("3.333")),
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
    return house.roster([(home, FIRST, None) for home in (*HOMES, "NOBODY")])


def by_hand(house, name, day, step):
    one = SERIES[name]
    of = recounted.readings(house.folder / "input")
    keys = {"edges": EDGES[step], "step": step, "clamp": 14_000, "lacking": one.max_missing}
    missing = int(one.missing_kwh * 1000)
    days = [recounted.day(of.get((home, day), {}), missing=missing, **keys) for home in (*HOMES, "NOBODY")]
    if isinstance(one, Mean):
        return (sum(days),)
    return recounted.counts(days, [int(Decimal(edge) * 1000) for edge in BINS], one.form)


def summed(house, roster, step, *, engine=None, store="store"):
    of = Store(house.folder / store / "store", "london", ReadingRules())
    engine = engine or Engine()
    delivery = ingest(of, [str(house.folder / "input" / "*.csv")], engine=engine)
    states = RepresentativeValues(step, tuple(EDGES[step]))
    compute_state_days(of, delivery, EVERY, states, engine=engine)
    return aggregate(of, delivery, roster, days=EVERY, series=SERIES, states=states)


def values(sums):
    return {key: as_values(one) for key, one in sums.items()}


@pytest.mark.parametrize(("step", "seed"), [("half-hour", 1), ("half-hour", 2), ("day", 1), ("day", 2)])
def test_sums_and_counts_are_those_of_a_plain_reader_of_the_files(house, step, seed):
    engine = Engine("threads", 3, 5_000) if seed == 2 else None  # whatever the chunks
    found = summed(house, made_up(house, seed), step, engine=engine)
    assert {key: by_group(one)["all"] for key, one in found.items()} == {
        (day, name): by_hand(house, name, day, step) for day in EVERY for name in SERIES
    }
    assert len({by_group(one)["all"] for (_, name), one in found.items() if name == "lenient"}) > 1


MODEL = """[model]
source = "estimated"
assume = "markov"
file = "{file}"
period = [2013-01-29, 2013-02-07]
step = "{step}"
states = 4
edges = [{edges}]
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
"""
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.3\nmethod = "tight"\nsecret = "day"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
COUNTS = (
    '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 20\nbins_kwh = [0, 10, 14, 20]\nshare = 0.5\n'
    'values = "states"\n'
)
COARSE, FINE = "0.1, 0.3, 0.8", "0.1, 0.2, 0.8"


def day(number):
    return FIRST + timedelta(days=number)


def lived_in(house, seed=4):
    """Homes whose half-hours are drawn anew, of days that are low or high; now and then nothing is read."""
    chance = np.random.default_rng(seed)
    found = {}
    for home in "ABC":
        for number in range(10):
            high = chance.random() < 0.5
            for slot in range(48):
                if chance.random() < 0.99:
                    found[home, day(number), slot] = int(chance.choice([20, 150, 420 + 400 * high]))
    house.london(found)
    house.roster([(home, FIRST, None) for home in "ABC"])
    return house


def write(house, values, *, step="half-hour", edges=COARSE, file="model", rest=""):
    model = MODEL.format(file=file, step=step, edges=edges)
    clamp = f'20\nvalues = "{values}"\n' + ("share = 0.5\n" if rest else "")
    return house.write(FIRST, day(9), clamp=clamp, promise=AGED, rest=rest + model)


@pytest.fixture
def homes(house):
    return lived_in(house)


def counted_by_hand(house, number, edges):
    of = recounted.readings(house.folder / "input")
    cuts = [int(1000 * float(edge)) for edge in edges.split(", ")]
    keys = {"edges": cuts, "step": "half-hour", "clamp": 20_000, "missing": 0, "lacking": 2}
    return sum(recounted.day(of.get((home, day(number)), {}), **keys) for home in "ABC")


def test_states_and_other_cuts_come_by_amendment_not_back(homes):
    write(homes, "readings")
    calibrate(homes.run_file)
    homes.run(today=day(3))
    statement = homes.release.statement
    assert (FACTS.beyond_states in statement["warnings"], FACTS.represented in statement["warnings"]) == (True, False)
    write(homes, "states")
    with pytest.raises(ContractChanged, match="values"):
        homes.run(today=day(4))
    [change] = preview_amendment(homes.session()).changes
    assert (change.key, change.old, change.new) == ("series.daily_mean.values", '"readings"', '"states"')
    amend(homes.context())
    homes.run(today=day(4))
    assert {FACTS.beyond_states, FACTS.represented} <= set(
        homes.release.statement["warnings"]
    )  # two days were of readings
    write(homes, "readings")
    with pytest.raises(LedgerError, match="values"):
        amend(homes.context())
    write(homes, "states", edges=FINE, file="finer")
    calibrate(homes.run_file)
    with pytest.raises(ContractChanged, match="edges"):
        homes.run(today=day(5))
    amend(homes.context())
    [last] = homes.run(today=day(5)).checked.sums.by_day.values()
    assert sum_wh(last)["all"] == counted_by_hand(homes, 3, FINE) != counted_by_hand(homes, 3, COARSE)
    homes.release.verify()
    assert len(homes.rows()) == 4


@pytest.mark.parametrize("step", ["half-hour", pytest.param("day", marks=pytest.mark.long)])
def test_what_leaves_the_house_is_the_same_of_other_readings(houses, tmp_path, monkeypatch, step):
    stream = np.random.default_rng(3).integers(0, 10**6, 1000).tolist()
    public, inside = [], []
    for seed in (1, 2):
        drawn = iter(stream)
        monkeypatch.setattr(
            mechanisms, "discrete_laplace", lambda exact, drawn=drawn, **_: np.array([next(drawn) for _ in exact])
        )
        (tmp_path / str(seed)).mkdir()
        house = lived_in(houses(tmp_path / str(seed)), seed)
        write(house, "states", step=step, edges=COARSE if step == "half-hour" else "12, 18, 24", rest=COUNTS)
        calibrate(house.run_file)
        if public:
            for name in (PUBLIC_FILE, DIGEST_FILE):
                shutil.copy(tmp_path / "1/model" / name, tmp_path / "2/model" / name)
        work = house.run(today=day(6))
        public.append((house.files(), [row.hash for row in work.session.opened().history.rows]))
        inside.append({key: by_group(each) for key, each in work.checked.sums.by_day.items()})
    assert public[0] == public[1]
    assert inside[0] != inside[1]


NEIGHBOURS = (
    'notion = "neighbourhood"\ndelta_kwh = 2\nwindow_days = 7\nepsilon_per_window = 1\nspend = "offline"\n'
    "max_day_epsilon = 9\nepsilon_total = 99\n"
)
CURVE = '[model]\nsource = "declared"\nassume = "curve"\ncurve = "c.csv"\nbasis = "b"\n'


@pytest.mark.parametrize(
    ("edits", "model", "said"),
    [
        ([("edges = [0.1, 0.3, 0.8]", 'edges = "quantile"')], "", "needs public edges; list them in [model]"),
        (
            [('"tight"', '"total_variation"')],
            CURVE,
            'needs public edges; list them in a [model] with source = "estimated"',
        ),
        ([("clamp_kwh = 20", "clamp_kwh = 50.401")], "", "exceeds 50.4 kWh, the largest daily total of these states"),
        ([(AGED, NEIGHBOURS)], "", 'values = "states": do not go with notion = "neighbourhood"'),
    ],
)
def test_what_states_cannot_keep_is_refused_when_the_run_file_is_read(homes, edits, model, said):
    write(homes, "states")
    homes.edit(*edits)
    if model:
        homes.run_file.write_text(homes.run_file.read_text().partition("[model]")[0] + model)
    with pytest.raises(RunFileError, match=re.escape(said)):
        homes.context()


def test_other_cuts_are_another_table_and_the_same_are_counted_once(house, monkeypatch):
    roster = made_up(house)
    first = values(summed(house, roster, "half-hour"))
    store, delivery = house.read()
    cuts = [RepresentativeValues("half-hour", edges) for edges in ((1, 60), (1, 61), (1, 60, 300))]
    (group,) = stored_groups(store, "2013-01", delivery.contents)
    assert len({state_days_path(store, "2013-01", group, each) for each in cuts}) == 3
    with monkeypatch.context() as patch:
        patch.setattr(RepresentativeValues, "represent", None)
        assert values(summed(house, roster, "half-hour")) == first
    monkeypatch.setitem(EDGES, "half-hour", [100, 500])
    assert values(summed(house, roster, "half-hour")) != first
    with pytest.raises(ValueError, match="counts states"):
        aggregate(store, delivery, roster, days=EVERY, series=SERIES)
