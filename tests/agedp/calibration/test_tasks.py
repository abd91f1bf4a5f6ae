"""Every heavy step of a calibration is a task of the run's engine; what a Client counts is what is printed."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import agedp
from agedp.calibration_pipeline import calibrate
from agedp.compute import engine as engine_module
from agedp_data.datasets.synthetic import write_london

pytestmark = pytest.mark.xdist_group("cluster")

MODEL = """
[model]
source = "estimated"
assume = "markov"
file = "{file}"
period = [2013-01-01, 2013-02-09]
step = "half-hour"
states = 3
edges = "equal-width"
chain = "{chain}"
min_visits = 1
confidence = "{confidence}"
ages_days = [1, 2]
publish = "envelope"
"""
SAMPLING = "sampling-bound"
KEY = re.compile(r"agedp-[a-z]+(-[a-z]+)?-[0-9]+")  # a stage and a running number, for a scheduler never more


class CountedTasks(SchedulerPlugin):
    """Counts finished tasks by the names that a dashboard shows, and keeps all keys."""

    def __init__(self) -> None:
        self.finished: Counter[str] = Counter()
        self.keys: set[str] = set()

    def transition(self, key, start, finish, *args, **kwargs):
        self.keys.add(key)
        if (start, finish) == ("processing", "memory"):
            self.finished[re.sub(r"-\d+$", "", key)] += 1


@contextmanager
def counting_client():
    """A client of a scheduler with two workers in this process, and the tasks that it counts."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        counted = CountedTasks()
        cluster.scheduler.add_plugin(counted)
        yield client, counted.finished
        assert counted.keys
        assert [key for key in counted.keys if not KEY.fullmatch(key)] == []


@pytest.fixture(scope="module")
def world(houses, tmp_path_factory):
    """Seven households over January and the first days of February 2013, in one file."""
    house = houses(tmp_path_factory.mktemp("tasks"))
    london = write_london(house.folder / "input", households=7, first_day=date(2013, 1, 1), days=40, seed=3)
    house.roster([(household, london.first_day, None) for household in london.household_ids])
    return house


def calibrated(world, monkeypatch, *, name, scheduler, chain="homogeneous", confidence="plug-in"):
    """Return a calibration in blocks of three households, and the tables of its model's folder."""
    monkeypatch.setattr(engine_module, "BLOCK_HOUSEHOLDS", (3, 3))
    text = MODEL.format(file=name, chain=chain, confidence=confidence)
    text += "level = 0.9\n" if confidence == SAMPLING else ""
    run_file = world.write(date(2013, 1, 5), date(2013, 1, 9), rest=text)
    calibration = calibrate(run_file, scheduler=scheduler)
    folder = world.folder / name
    return calibration, [pq.read_table(path).to_pylist() for path in sorted(folder.glob("*.parquet"))]


@pytest.mark.parametrize(
    ("chain", "confidence", "stages"),
    [
        ("homogeneous", "plug-in", {"bounds": 3, "leakage": 2 * 3, "model-check": 2}),
        pytest.param("cyclic", "plug-in", {"bounds": 3, "leakage": 3, "model-check": 2}, marks=pytest.mark.long),
        pytest.param("homogeneous", SAMPLING, {"bounds": 3, "model-check": 2}, marks=pytest.mark.long),
        pytest.param("cyclic", SAMPLING, {"bounds": 3, "model-check": 2}, marks=pytest.mark.long),
    ],
)
def test_bounds_and_model_check_reach_a_client(world, monkeypatch, chain, confidence, stages):
    """Seven households are three blocks; the check has a task for their group and one for the sample of it."""
    how = {"chain": chain, "confidence": confidence}
    name = f"{chain}-{confidence}"
    expected, tables = calibrated(world, monkeypatch, name=f"{name}-here", scheduler="threads", **how)
    with counting_client() as (client, finished):
        result, found = calibrated(world, monkeypatch, name=f"{name}-there", scheduler=client, **how)
    assert result.model.text == expected.model.text
    assert repr(found) == repr(tables)  # NaN equals NaN
    assert {stage: finished[f"agedp-{stage}"] for stage in stages} == stages
    assert finished["agedp-edges"] == finished["agedp-counts"] == 2  # months
    counts = {stage: int(number) for number, stage in re.findall(r"(\d+) (agedp-[a-z-]+)", result.tasks)}
    assert counts == dict(finished)
    assert re.search(r"Scheduler: Dask cluster inproc://\S+, 2 workers with 2 threads\.$", result.tasks)
    assert expected.tasks.endswith("Scheduler: threads, 2 workers.")
    page = Path(result.memory.page).read_text(encoding="utf-8")
    assert result.tasks in page


def test_chains_are_measured_by_tasks(monkeypatch):
    monkeypatch.setattr(engine_module, "BLOCK_HOUSEHOLDS", (2, 2))
    times = pd.date_range("2026-01-05", periods=480, freq="30min", tz="UTC")
    energy = np.random.default_rng(2).integers(0, 900, (5, 480))
    energy[3].sort()  # one way through the states: a chain without a reversible fit
    names = np.repeat([f"H{i}" for i in range(5)], 480)
    table = pd.DataFrame({"household_id": names, "interval_start": [*times] * 5, "energy_wh": energy.ravel()})

    def chains_of(**scheduler):
        return agedp.estimate(agedp.quantize(table, states=3, **scheduler))

    def measures(chains):
        by_age = [chains.total_variation, chains.reversibilised_bound, chains.reversible_fit_bound]
        return [chains.spectral_gap(), *(measure(age_steps=[1, 4]) for measure in by_age)]

    expected = measures(chains_of())
    with counting_client() as (client, finished):
        chains = chains_of(scheduler=client)
        found = measures(chains)
    assert finished["agedp-bounds"] == 4 * 3
    for one, other, afterwards in zip(found, expected, measures(chains), strict=True):  # the client is closed by now
        assert one.equals(other)
        assert afterwards.equals(other)
    assert expected[3].isna().all(axis=1).tolist() == [False, False, False, True, False]
