"""A model of a data frame is that of a run file over the same readings, and goes where a run file's goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import agedp
from agedp.setup.sample import sample
from agedp_data.errors import ChainError, InputError, RunFileError

MODEL = """
[model]
source = "estimated"
assume = "markov"
file = "model"
period = [{first}, {last}]
step = "{step}"
states = {states}
edges = {edges}
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2, 7]
publish = "envelope"
"""
RUN = """
version = 1
[input]
dataset = "london"
files = ["input/*.csv"]
[population]
name = "p"
roster = "roster.csv"
min_households = 1
[schedule]
mode = "archive"
first_day = {first}
last_day = {last}
[series.use]
statistic = "mean"
clamp_kwh = 40
[promise]
notion = "classical"
epsilon_per_day = 0.5
max_day_epsilon = 0.5
epsilon_total = 100
[output]
release = "out"
confidential = "confidential"
ledger = "sqlite:///ledger.sqlite"
"""
HOW: dict[str, Any] = {"min_visits": 1, "confidence": "plug-in", "chain": "homogeneous", "ages_days": [1, 2, 7]}
HOW |= {"assume": "markov", "publish": "envelope"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "london"
    sample("london", folder, households=8, days=30, seed=5)
    return folder


@pytest.fixture(scope="module")
def readings(folder) -> pd.DataFrame:
    return agedp.read(folder / "input" / "*.csv", dataset="london")


@pytest.mark.parametrize(
    ("step", "states", "edges"), [("half-hour", 6, "quantile"), ("day", 4, "equal-width"), ("day", 3, [6000, 12000])]
)
def test_a_model_is_the_same_from_states_and_from_a_run_file(folder, readings, tmp_path, step, states, edges):
    quantized = agedp.quantize(readings, states=states, edges=edges, step=step)
    found = agedp.calibrate(quantized, **HOW)
    first, last = found.settings["period"]
    written = edges if isinstance(edges, str) else [edge / 1000 for edge in edges]
    text = RUN.format(first=first, last=last) + MODEL.format(
        first=first, last=last, step=step, states=states, edges=f'"{written}"' if isinstance(written, str) else written
    )
    (tmp_path / "input").symlink_to(folder / "input")
    households = sorted(set(readings["household_id"]))
    (tmp_path / "roster.csv").write_text(
        "household_id,from,to\n" + "".join(f"{name},{first},\n" for name in households)
    )
    (tmp_path / "run.toml").write_text(text)
    expected = agedp.calibrate(tmp_path / "run.toml")
    assert found.id == expected.id
    pd.testing.assert_frame_equal(found.households, expected.households)
    saved = agedp.load_model(found.save(tmp_path / "saved"))
    assert saved.id == found.id
    with pytest.raises(RunFileError, match="a model is never replaced"):
        found.save(tmp_path / "saved")


def test_every_half_hour_has_a_state_and_what_has_none_is_counted():
    """100 half-hours of London local time: two days, and four half-hours of a third; another household has less."""
    times = pd.date_range("2026-01-05", periods=100, freq="30min", tz="UTC")
    energy = [100, 300] * 50
    table = pd.DataFrame({"household_id": "A", "interval_start": times, "energy_wh": energy})
    table = pd.concat([table, table[20:70].assign(household_id="B")])
    states = agedp.quantize(table, states=2, edges=[200])
    assert states.frame["household_id"].value_counts().to_dict() == {"A": 100, "B": 50}
    assert states.frame["state"].tolist() == [0, 1] * 75
    assert states.readings_without_state.to_dict() == {"A": 0, "B": 0}
    assert agedp.estimate(states).counts.sum(axis=(1, 2)).tolist() == [99, 49]
    days = agedp.quantize(table, states=2, edges=[10_000], step="day")
    assert days.frame["household_id"].tolist() == ["A", "A"]
    assert days.readings_without_state.to_dict() == {"A": 4, "B": 50}


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (
            lambda states, _: agedp.calibrate(states, min_visits=1),
            RunFileError,
            "confidence, chain, assume, publish decide",
        ),
        (
            lambda states, _: agedp.calibrate(agedp.estimate(states), **HOW | {"chain": "cyclic"}),
            RunFileError,
            'chain="cyclic": the chains are homogeneous',
        ),
        (lambda *_: agedp.calibrate("run.toml", min_visits=1), RunFileError, "a run file says all of this"),
        (lambda _, frame: agedp.quantize(frame, states=4, edges=[1, 2]), ChainError, "4 states have 3 inner edges"),
        (lambda states, _: agedp.estimate(states, chain="cyclic"), ChainError, "needs step"),
        (lambda states, _: agedp.estimate(states).total_variation(), InputError, "ages_days or age_steps"),
    ],
)
def test_what_is_missing_is_one_line(readings, ask, error, message):
    states = agedp.quantize(readings, states=3, step="day")
    with pytest.raises(error, match=message):
        ask(states, readings)


def test_a_release_under_a_model_states_its_bounds(readings):
    states = agedp.quantize(readings, states=3, step="day")
    model = agedp.calibrate(states, **HOW)
    promise = agedp.Temporal(
        alpha=1,
        horizon_days=40,
        budget="exact",
        max_day_epsilon=0.5,
        epsilon_total="unlimited",
        accept=["useless", "no-credit", "total"],
    )
    keys = {"clamp_kwh": 40, "min_households": 5, "accept_unverified_model": True}
    released = agedp.release(readings, promise=promise, model=model, **keys)
    leakage = released.bounds.set_index("name").loc["temporal leakage"]
    assert leakage["kind"] == "conditional"
    assert leakage["epsilon"] <= 1
    assert released.statement["model"]["source"] == "estimated"
    assert len(model.goodness_of_fit) == 3 * len(model.households)
