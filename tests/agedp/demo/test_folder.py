"""The folder of a demonstration: states of the draw, rejected rows, and no file of the user replaced."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.demo.demo_folder import (
    DATASETS,
    DEMONSTRATED_NOTIONS,
    Size,
    check_folder,
    draw_dataset,
    locked_folder,
    write_dataset,
)
from agedp.setup.sample import sample
from agedp.stages.ingest import read_readings
from agedp_data.config import load
from agedp_data.datasets.synthetic.households import draw_states, random_generator
from agedp_data.datasets.timestamps import ZoneDays
from agedp_data.errors import Busy, InputError
from agedp_data.markov.states import states
from agedp_flows.demonstration import run_demonstration
from tests.agedp.demo.conftest import SIZE

NAMES = [dataset.name for dataset in DATASETS]
SMALL = Size(households=3, calibration_days=2, released_days=2, seed=1)


@pytest.mark.parametrize("dataset", DATASETS, ids=NAMES)
def test_quantized_states_are_the_drawn_states_of_every_household(demonstration, dataset):
    place = demonstration.folder / dataset.name
    draw = draw_dataset(dataset, SIZE)
    days = SIZE.calibration_days + SIZE.released_days
    generator = random_generator(draw.seed, "states", 0)
    drawn = draw_states(draw.profiles.kind, steps=48 * days, generator=generator, chains=draw.profiles.chains)
    edges = pq.read_table(place / "model" / "edges.parquet").to_pandas().set_index("household_id")
    frame = read_readings([str(place / "input" / "*.csv")], dataset=dataset.name)
    order = [each["household_id"] for each in json.loads((place / "chains.json").read_text())["households"]]
    for number, household in enumerate(order):
        rows = frame[frame["household_id"] == household]
        first = np.datetime64(draw.calibration.first)
        step = (rows["day"].to_numpy().astype("datetime64[D]") - first).astype(int) * 48 + rows["slot"].to_numpy()
        quantized = states(rows["energy_wh"].to_numpy(), edges.loc[household].to_numpy())
        assert len(rows) > 0.8 * drawn.shape[1]
        assert np.array_equal(quantized, drawn[number, step])
        assert drawn[number].max() == 11
    table = pq.read_table(place / "model" / "households.parquet").to_pandas()
    assert (table["states_visited"] == 12).all()
    assert table["rarest_state_visits"].min() > SIZE.min_visits
    assert table["forgets"].all()


@pytest.mark.parametrize("dataset", DATASETS, ids=NAMES)
def test_periods_are_disjoint_and_no_day_exceeds_the_clamp(demonstration, dataset):
    draw = draw_dataset(dataset, Size())
    assert draw.calibration.last < draw.released.first
    assert 48 * 11.5 * draw.step_wh.max() / 1000 <= dataset.clamp_kwh
    if dataset.name == "ausgrid":
        sydney = ZoneDays("Australia/Sydney")
        days = np.arange(np.datetime64(draw.calibration.first), np.datetime64(draw.released.last) + 1).tolist()
        assert not any(sydney.absent_slots(day) or sydney.repeated_slots(day) for day in days)
    runs = [load(demonstration.folder / dataset.name / f"{notion}.toml") for notion in DEMONSTRATED_NOTIONS]
    assert [run.promise.notion for run in runs] == list(DEMONSTRATED_NOTIONS)
    assert {(run.schedule.mode, run.model.file) for run in runs} == {("rehearsal", runs[0].model.file)}
    assert len({run.output.ledger for run in runs}) == len({run.output.release for run in runs}) == 3
    assert all(run.model.period[1] < run.schedule.first_day for run in runs)


def test_rows_are_kept_or_rejected_by_reason(demonstration):
    london, ausgrid = (mixing.rows for mixing in demonstration.mixings)
    for rows in (london, ausgrid):
        assert rows.rows_read == rows.rows_kept + sum(rows.rows_rejected.values())
    # one Null row per household, unless it has a gap there; duplicates at the ends of days 8 and 39
    assert london.rows_rejected["no reading (Null or empty)"] == SIZE.households
    assert 0 < london.rows_rejected["exact duplicate"] <= 2 * SIZE.households
    # a row of solar generation for every row of consumption, and for the one day that lacks its consumption
    assert ausgrid.rows_rejected == {"consumption category not asked for": ausgrid.rows_kept + 1}


def test_an_interrupted_demonstration_continues(tmp_path):
    (tmp_path / "papers").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".london.making" / "input").mkdir(parents=True)
    (tmp_path / ".london.making" / "input" / "half.csv").write_text("half")
    with locked_folder(tmp_path, SMALL):
        assert all(write_dataset(tmp_path, dataset, SMALL) for dataset in DATASETS)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert {path.name for path in tmp_path.iterdir()} == {"london", "ausgrid", "papers", "notes.txt"}
    check_folder(tmp_path, SMALL)
    assert not any(write_dataset(tmp_path, dataset, SMALL) for dataset in DATASETS)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert not (tmp_path / "london" / "input" / "half.csv").exists()
    with pytest.raises(InputError, match="not from this demonstration"):
        check_folder(tmp_path, Size(households=4, calibration_days=2, released_days=2, seed=1))
    for text in ("{", "[]", '{"households": 7}'):
        (tmp_path / "london" / "chains.json").write_text(text)
        with pytest.raises(InputError, match="not from this demonstration"):
            check_folder(tmp_path, SMALL)


def make_sample(place):
    sample("london", place, households=3, days=2, seed=1)


def make_page(place):
    place.write_text("<title>another page</title>")


def make_folder(place):
    place.mkdir()
    (place / "flow.py").write_text("mine")


@pytest.mark.parametrize(("name", "make"), [
    ("london", make_sample), ("ausgrid", make_folder), ("index.html", make_page), ("index.html", make_folder),
    ("prefect", make_folder), ("prefect", make_page),
])  # fmt: skip
def test_a_file_of_the_user_is_not_replaced(tmp_path, name, make):
    make(tmp_path / name)
    with pytest.raises(InputError) as refused, locked_folder(tmp_path, SMALL):
        pass
    line = f"{tmp_path / name}: is not from this demonstration. Move it, or name another folder (make run OUT=DIR)."
    assert str(refused.value) == line


def test_a_second_demonstration_in_a_folder_is_refused(tmp_path):
    with locked_folder(tmp_path, SMALL):
        with pytest.raises(Busy, match=r"^another demonstration works in this folder\. .*\.$") as refused:
            next(run_demonstration(tmp_path, SMALL))
        assert refused.value.private == f"{tmp_path}: {refused.value}"
        with locked_folder(tmp_path / "another", SMALL):
            pass
    with locked_folder(tmp_path, SMALL):
        pass


# input files and roster, whose bytes no version changed; the run file has comments
SAMPLES = {
    "london": "c6aab7bfe5d49dbb9adf512258dc413a8e0b7b241ec79c1ca5faca99961b98b7",
    "ausgrid": "78a0b96cec4e359a061ced65025e46de86fd911abbf17a75477cfc9c3233fb74",
}


@pytest.mark.parametrize("dataset", NAMES)
def test_agedp_sample_writes_the_same_bytes_as_before(tmp_path, dataset):
    sample(dataset, tmp_path / "s", households=6, days=4, seed=3)
    digest = hashlib.sha256()
    for path in sorted(path for path in (tmp_path / "s").rglob("*") if path.is_file() and path.suffix != ".toml"):
        digest.update(path.read_bytes())
    assert digest.hexdigest() == SAMPLES[dataset]
