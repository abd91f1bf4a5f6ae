"""`values = "states"` from a run file to what recipients hold: figures, words, refusals, what stays in the house."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date, timedelta
from functools import partial

import numpy as np
import pytest

from agedp.pipeline import calibrate
from agedp.privacy_audit import audit
from agedp.stages.amend import amend, preview_amendment
from agedp_data import mechanisms
from agedp_data.audit.power import AuditDatasets
from agedp_data.errors import ContractChanged, LedgerError, RunFileError
from agedp_data.model import DIGEST_FILE, PUBLIC_FILE
from agedp_data.statement.facts import BEYOND_STATES, REPRESENTED
from tests.agedp import recounted

FIRST, DAYS, HOMES = date(2013, 1, 1), 20, ("A", "B", "C")
EDGES = {"half-hour": [100, 300, 800], "day": [12_000, 18_000, 24_000]}
MODEL = """[model]
source = "estimated"
assume = "markov"
file = "{file}"
period = [2013-01-01, 2013-01-20]
step = "{step}"
states = 4
edges = [{edges}]
chain = "{chain}"
memory = "{memory}"
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


def day(number):
    return FIRST + timedelta(days=number)


def lived_in(house, seed=4):
    """Homes whose half-hours are drawn anew, of days that are low or high; now and then nothing is read."""
    chance = np.random.default_rng(seed)
    found = {}
    for home in HOMES:
        for number in range(DAYS):
            high = chance.random() < 0.5
            for slot in range(48):
                if chance.random() < 0.99:
                    found[home, day(number), slot] = int(chance.choice([20, 150, 420 + 400 * high]))
    house.london(found)
    house.roster([(home, FIRST, None) for home in HOMES])
    return house


def write(house, values, *, step="half-hour", chain="homogeneous", memory="one", edges=None, file="model", **keys):
    cuts = ", ".join(str(edge / 1000) for edge in edges or EDGES[step])
    model = MODEL.format(file=file, step=step, edges=cuts, chain=chain, memory=memory)
    share = "share = 0.5\n" if "rest" in keys else ""
    rest = keys.pop("rest", "") + model
    house.write(FIRST, day(DAYS - 1), clamp=f'20\nvalues = "{values}"\n{share}', promise=AGED, rest=rest, **keys)
    return house


@pytest.fixture
def homes(house):
    return lived_in(house)


def made(house, *args, today=5, **keys):
    write(house, *args, **keys)
    calibrate(house.run_file)
    return house.run(today=day(today))  # a day is released when it is a day old


def by_hand(house, number, *, step, edges=None, lacking=2):
    of = recounted.readings(house.folder / "input")
    keys = {"edges": edges or EDGES[step], "step": step, "clamp": 20_000, "missing": 0, "lacking": lacking}
    return [recounted.day(of.get((home, day(number)), {}), **keys) for home in HOMES]


KINDS = {
    "half-hours": {},
    "cyclic": {"chain": "cyclic"},
    "days": {"step": "day"},
    "pairs of days": {"step": "day", "memory": "pair"},
    "days in regimes": {"step": "day", "memory": "trailing-mean"},
}


LONGER = ("pairs of days", "days in regimes")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] if kind in LONGER else []) for kind in KINDS]
)
def test_a_release_is_noise_on_what_a_plain_reader_counts(homes, monkeypatch, kind):
    drawn = []
    sound = mechanisms.discrete_laplace

    def watched(exact, *, sensitivity, loss):
        drawn.append((exact.tolist() if hasattr(exact, "tolist") else list(exact), sensitivity))
        return sound(exact, sensitivity=sensitivity, loss=loss)

    monkeypatch.setattr(mechanisms, "discrete_laplace", watched)
    work = made(homes, "states", rest=COUNTS, **KINDS[kind])
    assert len(work.released) == 2 * 4
    step = KINDS[kind].get("step", "half-hour")
    days = [by_hand(homes, number, step=step) for number in range(4)]
    sums = [([sum(one)], 20_000) for one in days]
    told = [(list(recounted.counts(one, [0, 10_000, 14_000, 20_000], "histogram")), 2) for one in days]
    assert [pair for pair in drawn if pair[1] != 2] == sums
    assert [pair for pair in drawn if pair[1] == 2] == told
    release = homes.release
    release.verify()
    [averages] = release.averages().values()
    for line, row in zip(averages.to_pylist(), [r for r in work.released if r.series == "daily_mean"], strict=True):
        assert line["noisy_sum_wh"] == row.values[0]


def test_recipients_are_told_what_is_counted_and_not_how_far_it_is_off(homes):
    made(homes, "states")
    claim, words = homes.release.statement, homes.files()["STATEMENT.md"].decode()
    assert BEYOND_STATES not in claim["warnings"]
    assert claim["warnings"].count(REPRESENTED) == 1
    assert "each half-hour counts as the representative value of its state, the middle of the range" in words
    assert "0, 0.1, 0.3, 0.8 kWh" in words
    assert "Their representative values are 0.05, 0.2, 0.55, 1.05 kWh" in words
    from pyarrow import parquet

    guarantee = json.loads(parquet.read_schema(homes.folder / "release/daily_averages.parquet").metadata[b"agedp"])
    assert guarantee["states_by_version"] == {
        "1": {"step": "half-hour", "edges_kwh": ["0.1", "0.3", "0.8"], "counts_as_kwh": ["0.05", "0.2", "0.55", "1.05"]}
    }


def test_readings_are_told_to_say_more_than_their_states(homes):
    made(homes, "readings")
    claim, words = homes.release.statement, homes.files()["STATEMENT.md"].decode()
    assert BEYOND_STATES in claim["warnings"]
    assert REPRESENTED not in claim["warnings"]
    assert "middle of the range" not in words
    assert "States instead of readings" not in (homes.folder / "confidential/report.html").read_text()


def test_the_house_is_told_how_far_states_are_from_readings(homes):
    made(homes, "states")
    page = (homes.folder / "confidential" / "report.html").read_text()
    of = recounted.readings(homes.folder / "input")
    read = [sum(min(20_000, sum(of[home, day(n)].values())) if len(of[home, day(n)]) > 45 else 0 for home in HOMES)
            for n in range(4)]  # fmt: skip
    off = [(sum(by_hand(homes, n, step="half-hour")) - wh) / 3000 for n, wh in enumerate(read)]
    [row] = re.findall(r">daily_mean, all</th>((?:<td>[^<]*</td>){7})</tr>", page)
    cells = [float(cell) for cell in re.findall(r"<td>([^<]*)</td>", row)]
    assert cells[0] == 4
    assert cells[1] == pytest.approx(sum(read) / 4 / 3000, rel=1e-2)
    assert cells[3:6] == pytest.approx([sum(off) / 4, min(off), max(off)], rel=1e-2)
    assert cells[6] == pytest.approx((sum(one**2 for one in off) / 4) ** 0.5, rel=1e-2)
    assert any(off)


def test_going_over_to_states_and_to_other_cuts_is_an_amendment_and_back_is_none(homes):
    made(homes, "readings", today=3)
    write(homes, "states")
    with pytest.raises(ContractChanged, match="values"):
        homes.run(today=day(4))
    [change] = preview_amendment(homes.session()).changes
    assert (change.key, change.old, change.new) == ("series.daily_mean.values", '"readings"', '"states"')
    amend(homes.context())
    homes.run(today=day(4))
    warnings = homes.release.statement["warnings"]
    assert {BEYOND_STATES, REPRESENTED} <= set(warnings)  # two days were of readings
    write(homes, "readings")
    with pytest.raises(LedgerError, match="values"):
        amend(homes.context())
    finer = [100, 200, 800]
    write(homes, "states", edges=finer, file="finer")
    calibrate(homes.run_file)
    with pytest.raises(ContractChanged, match="edges"):
        homes.run(today=day(5))
    amend(homes.context())
    work = homes.run(today=day(5))
    [last] = work.checked.sums.by_day.values()
    assert last.sum_wh["all"] == sum(by_hand(homes, 3, step="half-hour", edges=finer))
    assert last.sum_wh["all"] != sum(by_hand(homes, 3, step="half-hour"))
    homes.release.verify()
    with homes.ledger() as ledger:
        assert ledger.verify() == ()


def test_figures_of_states_of_other_cuts_are_told_to_rest_on_more_than_the_newest_model(homes):
    made(homes, "states", today=3)
    assert BEYOND_STATES not in homes.release.statement["warnings"]
    write(homes, "states", edges=[100, 200, 800], file="finer")
    calibrate(homes.run_file)
    amend(homes.context())
    homes.run(today=day(4))
    assert BEYOND_STATES in homes.release.statement["warnings"]


def fixed(drawn, exact, **_):
    """Return a fixed stream, whatever it is given."""
    return np.array([next(drawn) for _ in exact])


@pytest.mark.parametrize("step", ["half-hour", "day"])
def test_what_leaves_the_house_is_the_same_of_other_readings(houses, tmp_path, monkeypatch, step):
    stream = np.random.default_rng(3).integers(0, 10**6, 1000).tolist()
    found = []
    for seed in (1, 2):
        drawn = iter(stream)
        monkeypatch.setattr(mechanisms, "discrete_laplace", partial(fixed, drawn))
        (tmp_path / str(seed)).mkdir()
        house = lived_in(houses(tmp_path / str(seed)), seed)
        write(house, "states", step=step, rest=COUNTS)
        calibrate(house.run_file)
        if found:
            for name in (PUBLIC_FILE, DIGEST_FILE):
                shutil.copy(tmp_path / "1/model" / name, tmp_path / "2/model" / name)
        work = house.run(today=day(6))
        found.append(
            (
                house.files(),
                [row.hash for row in work.session.opened().rows],
                {k: s.exact for k, s in work.checked.sums.by_day.items()},
            )
        )
    (one, rows, inside), (other, more, others) = found
    assert (one, rows) == (other, more)
    assert inside != others


@pytest.mark.long
def test_a_series_of_states_passes_the_audit_of_the_real_path(homes):
    write(homes, "states")
    calibrate(homes.run_file)
    found = audit(homes.run_file, datasets=AuditDatasets(1000, 1))
    assert found.is_within_promise
    assert all(one.promised < one.detectable for one in found.measured)


NEIGHBOURS = (
    'notion = "neighbourhood"\ndelta_kwh = 2\nwindow_days = 7\nepsilon_per_window = 1\nspend = "offline"\n'
    "max_day_epsilon = 9\nepsilon_total = 99\n"
)
TOO_HIGH = "exceeds 50.4 kWh, the largest daily total of these states; lower it"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "edges = [0.1, 0.3, 0.8]",
            'edges = "quantile"',
            'values = "states": needs public edges; list them in [model]',
        ),
        ("clamp_kwh = 20", "clamp_kwh = 50.401", f"clamp_kwh = 50.401: {TOO_HIGH}"),
        (AGED, NEIGHBOURS, 'values = "states": do not go with notion = "neighbourhood"'),
    ],
)
def test_what_states_cannot_keep_is_refused_when_the_run_file_is_read(homes, old, new, said):
    write(homes, "states")
    text = homes.run_file.read_text()
    assert old in text
    homes.run_file.write_text(text.replace(old, new))
    with pytest.raises(RunFileError, match=re.escape(f"[series.daily_mean] {said}")):
        homes.context()


def test_a_declared_model_has_no_states_to_count(homes):
    write(homes, "states")
    head = homes.run_file.read_text().partition("[model]")[0]
    curve = '[model]\nsource = "declared"\nassume = "curve"\ncurve = "c.csv"\nbasis = "b"\n'
    homes.run_file.write_text(head.replace('"tight"', '"total_variation"') + curve)
    with pytest.raises(RunFileError, match=r'needs public edges; list them in a \[model\] with source = "estimated"'):
        homes.context()
