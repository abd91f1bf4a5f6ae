"""bound: who is held never to forget, what an envelope must not understate, and what leaves the house."""

from __future__ import annotations

import json
import re
import stat
from datetime import date

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.calibration.bound import bound
from agedp.calibration.estimate import Transitions
from agedp.calibration.leakage_bounds import mixing_households
from agedp.pipeline import calibrate
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import ChainError, RunFileError
from agedp_data.leakage.function import leakage
from agedp_data.markov.transitions import power, transition_matrix
from agedp_data.roster import Roster

FIRST, LAST = date(2013, 1, 1), date(2013, 12, 31)
EPOCH = date(1970, 1, 1)
STICKY = [[9000, 5, 0], [3, 8000, 6], [2, 1, 9000]]  # one long walk, forgotten over days; not reversible


def model(folder, *, min_visits=2, ages=(1, 2, 7)):
    return EstimatedModel(
        source="estimated", assume="markov", file=str(folder / "model"), period=(FIRST, LAST), step="half-hour",
        states=3, edges="quantile", chain="homogeneous", min_visits=min_visits, confidence="plug-in",
        ages_days=ages, publish="envelope",
    )  # fmt: skip


def roster(count, first=FIRST, last=LAST):
    days = [np.full(count, (day - EPOCH).days) for day in (first, last)]
    return Roster(tuple(f"SECRET{i}" for i in range(count)), np.arange(count), days[0], days[1], {})


def made(folder, *counts, min_visits=2, ages=(1, 2, 7), who=None):
    stack = np.array(counts, np.int64)
    found = Transitions(stack, stack.sum(axis=(1, 2)) + 1, np.zeros(len(stack), np.int64))
    found.readings[stack.sum(axis=(1, 2)) == 0] = 0
    edges = np.tile([100.0, 200.0], (len(stack), 1))
    return bound(found, edges, who or roster(len(stack)), model(folder, min_visits=min_visits, ages=ages))


FORGOTTEN = {
    "no readings": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    "two readings": [[0, 1, 0], [0, 0, 0], [0, 0, 0]],
    "two equal readings": [[1, 0, 0], [0, 0, 0], [0, 0, 0]],
    "one state, such as all zeros": [[0, 0, 0], [0, 0, 0], [0, 0, 17_000]],
    "a state seen once": [[500, 1, 0], [1, 0, 0], [0, 0, 0]],
    "a state only left": [[500, 9, 0], [9, 500, 0], [9, 9, 0]],
    "a state only entered": [[500, 9, 9], [9, 500, 9], [0, 0, 0]],
    "two halves": [[500, 9, 0], [9, 500, 0], [0, 0, 500]],
    "one way": [[500, 2, 0], [0, 500, 0], [0, 0, 0]],
}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_household_without_a_reliable_chain_is_counted_and_ends_all_credit(tmp_path, name):
    found = made(tmp_path, STICKY, FORGOTTEN[name], STICKY)
    assert (found.households, found.unmixed, found.without_readings) == (3, 1, int(name == "no readings"))
    for loss in (0.01, 0.5, 3.0, np.inf):
        assert found.model.leakage_bound(48 * 400, loss, direction="backward", method="tight") == loss
    assert found.curves["total_variation"][1].tolist() == [1, 1, 1]
    assert (found.curves["total_variation"][[0, 2]] < 1).all()
    table = pq.read_table(tmp_path / "model" / "households.parquet").to_pylist()
    assert [row["forgets"] for row in table] == [True, False, True]


def test_min_visits_counts_the_rarer_side_of_each_state():
    counts = np.array([[[500, 9, 0], [9, 500, 7], [0, 7, 0]]])
    assert [mixing_households(counts, min_visits=least).tolist() for least in (7, 8)] == [[True], [False]]


def test_households_of_the_roster_count_though_they_have_no_reading_and_others_do_not(tmp_path):
    nothing = FORGOTTEN["no readings"]
    before = roster(2, date(2011, 1, 1), date(2012, 12, 31))
    assert made(tmp_path / "a", STICKY, nothing).households == 2
    assert made(tmp_path / "b", STICKY, nothing, who=before).households == 1
    with pytest.raises(ChainError, match="a model needs some"):
        made(tmp_path / "c", nothing, nothing, who=before)


@pytest.mark.parametrize("seed", range(4))
def test_the_envelope_is_never_below_the_exact_loss_through_any_reversed_chain(tmp_path, seed):
    chance = np.random.default_rng(seed)
    counts = chance.integers(1, 40, size=(5, 3, 3)) + np.eye(3, dtype=np.int64) * chance.integers(
        500, 20_000, (5, 1, 1)
    )
    found = made(tmp_path, *counts)
    assert found.unmixed == 0
    reversed_chains = transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)
    credited = False
    for age in (3, 48, 71, 96, 200, 48 * 7, 5000):
        for loss in (*chance.uniform(0, 5, 6), 1e-7, 30.5, 70.0, np.inf):
            exact = float(leakage(power(reversed_chains, age), loss).max())
            claimed = float(found.model.leakage_bound(age, loss, direction="backward", method="tight"))
            assert claimed >= exact
            assert claimed <= loss
            credited |= claimed < 0.9 * loss
    assert credited


def test_the_largest_curve_of_households_is_the_public_bound(tmp_path):
    chance = np.random.default_rng(5)
    counts = chance.integers(1, 40, size=(6, 3, 3)) + np.eye(3, dtype=np.int64) * chance.integers(500, 9000, (6, 1, 1))
    result = made(tmp_path, *counts)
    steps, public = [48, 96, 336], result.model.leakage_bound
    rows = [list(public.ages).index(step) for step in steps]
    for name in ("total_variation", "reversibilised"):
        largest = result.curves[name].max(axis=0)
        bound_of_all = public.bounds[name][rows]
        assert (bound_of_all >= largest).all()
        np.testing.assert_allclose(bound_of_all, largest, rtol=0, atol=2.1e-9)  # rounded up to whole 1e-9
    # by brute force: the rows of the reversed counts, multiplied
    for own, curve in zip(counts, result.curves["total_variation"], strict=True):
        backward = own.T / own.T.sum(axis=1, keepdims=True)
        for step, value in zip(steps, curve, strict=True):
            kernel = np.linalg.matrix_power(backward, step)
            apart = np.abs(kernel[:, None] - kernel[None]).sum(axis=-1).max() / 2
            assert value == pytest.approx(apart, abs=1e-12)


def test_the_spectral_bound_of_households_is_the_public_one(tmp_path):
    symmetric = [np.array([[900 * i, 10, 5], [10, 800, 7], [5, 7, 700]]) for i in (1, 2, 3)]
    result = made(tmp_path, *symmetric)
    public = result.model.leakage_bound
    rows = [list(public.ages).index(step) for step in (48, 96, 336)]
    np.testing.assert_allclose(
        public.bounds["spectral"][rows], result.curves["spectral"].max(axis=0), rtol=0, atol=2.1e-9
    )


def test_a_model_is_never_estimated_anew_in_place(tmp_path):
    made(tmp_path, STICKY)
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(RunFileError, match="never estimated anew") as caught:
        made(tmp_path, STICKY, STICKY)
    assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caught.value.private
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}


def test_the_public_part_holds_settings_and_envelope_and_nothing_of_the_households(tmp_path):
    found = made(tmp_path, STICKY, FORGOTTEN["two readings"])
    text = (tmp_path / "model" / "public.json").read_text()
    assert text == found.model.text
    assert set(json.loads(text)) == {
        "source", "assume", "period", "step", "states", "edges", "chain", "memory", "min_visits", "confidence",
        "ages_days", "envelope",
    }  # fmt: skip
    assert set(json.loads(text)["envelope"]) == {
        "ages", "losses", "backward", "forward", "bounds", "steps_per_day", "assume",
    }  # fmt: skip
    assert "SECRET" not in text
    # one odd household decides: how many others there are, and what they do, does not show
    assert made(tmp_path / "more", *[STICKY] * 4, FORGOTTEN["two halves"]).model.id == found.model.id
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o700


def test_counts_and_edges_stay_beside_it_by_household(tmp_path):
    made(tmp_path, STICKY, FORGOTTEN["two halves"])
    [first, _] = pq.read_table(tmp_path / "model" / "transitions.parquet").to_pylist()
    assert [[first[f"from_{i}_to_{j}"] for j in range(3)] for i in range(3)] == STICKY
    assert pq.read_table(tmp_path / "model" / "edges.parquet").to_pylist()[1] == {
        "household_id": "SECRET1", "edge_1_wh": 100.0, "edge_2_wh": 200.0,
    }  # fmt: skip


MODEL = """[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2013-01-01, 2013-01-02]
step = "half-hour"
states = 3
edges = [1.999, 2.007]
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2]
publish = "envelope"
"""


def test_calibrate_takes_public_edges_as_whole_watt_hours(house):
    days = (date(2013, 1, 1), date(2013, 1, 2))
    cycle = [1998, 1999, 2006, 2007]
    house.london({("A", day, slot): cycle[slot % 4] for day in days for slot in range(48)})
    house.roster([("A", days[0], None)])
    calibrate(house.write(*days, rest=MODEL))
    [row] = pq.read_table(house.folder / "model" / "transitions.parquet").to_pylist()
    # 1998 | 1999 2006 | 2007, 96 readings: 24 of each step of the cycle, 23 of the last one back to the first
    assert {name: n for name, n in row.items() if name != "household_id" and n} == {
        "from_0_to_1": 24, "from_1_to_1": 24, "from_1_to_2": 24, "from_2_to_0": 23,
    }  # fmt: skip


def test_calibrate_without_an_estimated_model_is_refused(house):
    house.roster([("A", FIRST, None)])
    with pytest.raises(RunFileError, match='source = "estimated"'):
        calibrate(house.write(FIRST, LAST))


def test_a_model_that_is_there_is_told_before_anything_is_read(house, monkeypatch):
    house.roster([("A", FIRST, None)])
    (house.folder / "model").mkdir()
    (house.folder / "model" / "public.json").write_text("{}")
    monkeypatch.setattr("agedp.pipeline.ingest", lambda *_, **__: pytest.fail("readings were read"))
    with pytest.raises(RunFileError, match="a model exists already and is never estimated anew; name another file"):
        calibrate(house.write(FIRST, LAST, rest=MODEL))


@pytest.mark.parametrize(
    ("chain", "states", "gib"),
    # 6,000 homes: 48 tables of 100 x 100 counts of 4 bytes, twice; one of 500 x 500, four times 8 bytes
    [("cyclic", 100, "21.5"), ("homogeneous", 500, "44.7")],
)
def test_more_states_than_memory_holds_are_refused_before_anything_is_read(house, monkeypatch, chain, states, gib):
    house.roster([(f"home {i}", FIRST, None) for i in range(6000)])
    monkeypatch.setattr("agedp.pipeline.ingest", lambda *_, **__: pytest.fail("readings were read"))
    monkeypatch.setattr("agedp.calibration.leakage_bounds._memory", lambda: 8 * 2**30)
    asked = re.sub("states = .*", f"states = {states}", re.sub("edges = .*", 'edges = "quantile"', MODEL))
    asked = re.sub("chain = .*", f'chain = "{chain}"', asked)
    with pytest.raises(RunFileError, match=rf"states = {states}: .* takes {gib} GiB .* has 8\.0 GiB") as caught:
        calibrate(house.write(FIRST, LAST, rest=asked))
    fewer = re.search(r"Take about (\d+) states", str(caught.value))[1]
    calibrated = re.sub("states = .*", f"states = {fewer}", asked)
    with pytest.raises(pytest.fail.Exception, match="readings were read"):
        calibrate(house.write(FIRST, LAST, rest=calibrated))
