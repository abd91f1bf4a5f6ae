"""Which chain gets no credit, what a leakage bound must not understate, and what of a model is public."""

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
from agedp.calibration.leakage_bounds import check_counts_fit
from agedp.calibration_pipeline import calibrate
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import ChainError, RunFileError
from agedp_data.roster import RosterRows

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
    return RosterRows(tuple(f"SECRET{i}" for i in range(count)), np.arange(count), days[0], days[1], {})


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
def test_a_household_without_a_reliable_chain_ends_all_credit(tmp_path, name):
    found = made(tmp_path, STICKY, FORGOTTEN[name], STICKY)
    assert (found.households, found.unmixed, found.without_readings) == (3, 1, int(name == "no readings"))
    for loss in (0.01, 0.5, 3.0, np.inf):
        assert found.model.leakage_bound(48 * 400, loss, direction="backward", method="tight") == loss
    assert found.curves["total_variation"][1].tolist() == [1, 1, 1]
    assert (found.curves["total_variation"][[0, 2]] < 1).all()
    table = pq.read_table(tmp_path / "model" / "households.parquet").to_pylist()
    assert [row["forgets"] for row in table] == [True, False, True]


def test_households_of_the_roster_count_without_readings_too(tmp_path):
    nothing = FORGOTTEN["no readings"]
    before = roster(2, date(2011, 1, 1), date(2012, 12, 31))
    assert made(tmp_path / "a", STICKY, nothing).households == 2
    assert made(tmp_path / "b", STICKY, nothing, who=before).households == 1
    with pytest.raises(ChainError, match="a model needs some"):
        made(tmp_path / "c", nothing, nothing, who=before)


def random_counts():
    chance = np.random.default_rng(5)
    return chance.integers(1, 40, size=(6, 3, 3)) + np.eye(3, dtype=np.int64) * chance.integers(500, 9000, (6, 1, 1))


SYMMETRIC = [np.array([[900 * i, 10, 5], [10, 800, 7], [5, 7, 700]]) for i in (1, 2, 3)]
STEPS = (48, 96, 336)


@pytest.mark.parametrize(
    ("name", "counts"),
    [("total_variation", random_counts()), ("reversibilised", random_counts()), ("spectral", SYMMETRIC)],
)
def test_the_largest_curve_of_households_is_the_public_bound(tmp_path, name, counts):
    result = made(tmp_path, *counts)
    public = result.model.leakage_bound
    largest = result.curves[name].max(axis=0)
    bound_of_all = public.bounds[name][[list(public.ages).index(step) for step in STEPS]]
    assert (bound_of_all >= largest).all()
    np.testing.assert_allclose(bound_of_all, largest, rtol=0, atol=2.1e-9)  # rounded up to whole 1e-9
    # by brute force: the rows of the reversed counts, multiplied
    for own, curve in zip(counts, result.curves["total_variation"], strict=True):
        backward = own.T / own.T.sum(axis=1, keepdims=True)
        for step, value in zip(STEPS, curve, strict=True):
            kernel = np.linalg.matrix_power(backward, step)
            apart = np.abs(kernel[:, None] - kernel[None]).sum(axis=-1).max() / 2
            assert value == pytest.approx(apart, abs=1e-12)


def test_a_model_is_never_estimated_anew_in_place(tmp_path):
    made(tmp_path, STICKY)
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(RunFileError, match="never estimated anew") as caught:
        made(tmp_path, STICKY, STICKY)
    assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caught.value.private
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}


def test_the_public_part_holds_settings_and_envelope_alone(tmp_path):
    found = made(tmp_path, STICKY, FORGOTTEN["two readings"])
    text = (tmp_path / "model" / "public.json").read_text()
    assert text == found.model.text
    assert set(json.loads(text)) == {
        "source", "assume", "period", "step", "states", "edges", "chain", "memory", "min_visits", "confidence",
        "ages_days", "envelope",
    }  # fmt: skip
    assert set(json.loads(text)["envelope"]) == {
        "ages", "losses", "backward", "forward", "bounds", "distances", "steps_per_day", "assume",
    }  # fmt: skip
    assert "SECRET" not in text
    # one odd household decides: how many others there are, and what they do, does not show
    assert made(tmp_path / "more", *[STICKY] * 4, FORGOTTEN["two halves"]).model.id == found.model.id
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o700


def test_more_states_than_memory_holds_are_refused(tmp_path, monkeypatch):
    """6,000 households: 48 tables of 100 x 100 counts of 4 bytes, twice."""
    of_machine = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**21}
    monkeypatch.setattr("agedp.calibration.leakage_bounds.os.sysconf", of_machine.get)
    many = model(tmp_path).model_copy(update={"chain": "cyclic", "states": 100})
    with pytest.raises(RunFileError, match=r"states = 100: .* takes 21\.5 GiB .* has 8\.0 GiB") as caught:
        check_counts_fit(many, 6000)
    fewer = re.search(r"Take about (\d+) states", str(caught.value))[1]
    check_counts_fit(many.model_copy(update={"states": int(fewer)}), 6000)


def test_without_an_estimated_model_nothing_is_calibrated(house):
    house.roster([("A", FIRST, None)])
    with pytest.raises(RunFileError, match='source = "estimated"'):
        calibrate(house.write(FIRST, LAST))
