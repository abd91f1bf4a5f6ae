"""`agedp calibrate` asks whether the chain is true: made-up chains pass, habits and slow regimes are rejected."""

from __future__ import annotations

import json
import re
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp_data.datasets.synthetic.households import KERNELS
from agedp_flows.cli.app import main
from tests import minimal

FIRST, DAYS, HOMES = date(2013, 1, 1), 196, 16


def run_file(**model):
    """A run file whose model is to be estimated."""
    return minimal.run_file(
        input={"files": ["input.csv"]},
        promise={"epsilon_total": Decimal("2.5")},
        model={
            "source": "estimated", "assume": "markov", "file": "model-a",
            "period": [date(2013, 1, 1), date(2013, 7, 15)], "edges": "quantile", "min_visits": 20,
            "confidence": "plug-in", "ages_days": [1, 2, 7, 14], "publish": "envelope", **model,
        },
    )  # fmt: skip


def levels(rng):
    """States of half-hours (homes, days, 48): a chain that forgets within hours."""
    below = np.cumsum(KERNELS[1][:4, :4] / KERNELS[1][:4, :4].sum(axis=1, keepdims=True), axis=1)
    path = np.empty((DAYS * 48, HOMES), int)
    state = rng.integers(0, 4, HOMES)
    for i in range(len(path)):
        path[i] = state
        state = (rng.random(HOMES)[:, None] >= below[state][:, :3]).sum(axis=1)
    return path.T.reshape(HOMES, DAYS, 48)


def factor(kind, rng):
    """What a day of a home is multiplied by: nothing, more at weekends, or more in regimes of 30 to 60 days."""
    if kind == "chain":
        return np.ones((HOMES, DAYS))
    if kind == "weekly habit":
        weekend = (np.arange(DAYS) + FIRST.weekday()) % 7 >= 5
        return np.where(rng.random((HOMES, DAYS)) < 0.9, 1 + weekend, 2 - weekend)
    regime = np.empty((HOMES, DAYS))
    for row in regime:
        row[:] = np.concatenate([np.full(rng.integers(30, 61), 1 + i % 2) for i in range(8)])[:DAYS]
    return np.where(rng.random(regime.shape) < 0.9, regime, 3 - regime)


@lru_cache
def input_file(kind: str) -> str:
    rng = np.random.default_rng(len(kind))
    wh = np.rint((100 + 150 * levels(rng)) * factor(kind, rng)[..., None]).astype(int).reshape(HOMES, -1)
    start = datetime.combine(FIRST, time())
    stamps = [str(start + timedelta(minutes=30 * (i + 1))) for i in range(wh.shape[1])]
    lines = [
        f"SECRET{home:02d},{stamp},{energy / 1000}"
        for home, own in enumerate(wh.tolist())
        for stamp, energy in zip(stamps, own, strict=True)
    ]
    return "\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n"


def made(folder: Path, kind: str, *, step: str = "half-hour", states: int = 4, chain: str = "homogeneous") -> None:
    (folder / "input.csv").write_text(input_file(kind))
    roster = "".join(f"SECRET{home:02d},2013-01-01,\n" for home in range(HOMES))
    (folder / "roster.csv").write_text("household_id,from,to\n" + roster)
    (folder / "run.toml").write_text(run_file(step=step, states=states, chain=chain))


def calibrated(folder: Path, monkeypatch, capsys, *words: str) -> str:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["agedp", "calibrate", "run.toml", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code or 0, shown.err) == (0, "")
    return shown.out


def rejected(folder: Path, figure: str) -> tuple[int, int]:
    table = pq.read_table(folder / "confidential" / "forgetting" / "model-a.parquet").to_pylist()
    rows = [row for row in table if row["figure"] == figure]
    return len({row["household_id"] for row in rows if row["rejected"]}), len({row["household_id"] for row in rows})


@pytest.mark.parametrize("kind", ["chain", "weekly habit", "slow regime"])
def test_the_verdict_is_that_of_households_whose_memory_is_known(kind, tmp_path, monkeypatch, capsys):
    made(tmp_path, kind)
    said = calibrated(tmp_path, monkeypatch, capsys)
    found = {figure: rejected(tmp_path, figure) for figure in ("chain of day totals", "chain of half-hours")}
    for figure, (bad, checked) in found.items():
        assert checked == HOMES
        assert f"{figure}: {bad} of {HOMES} households have longer memory" in said
    if kind == "chain":
        # 5 % of 16 each, with a chance of a millionth.
        assert max(bad for bad, _ in found.values()) <= 7
        assert "Markov property not rejected, up to 14 days" in said
        assert "This is no proof" in said
    else:
        assert found["chain of day totals"][0] >= 0.9 * HOMES
        assert "Markov property rejected" in said
        assert "never let it justify a larger epsilon" in said
    assert "The epsilon of a day and the total over all days need no model." in said
    assert "SECRET" not in said
    assert "confidential/forgetting/model-a.html" in said


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("weekly habit", {"step": "day", "states": 3}),
        ("weekly habit", {"chain": "cyclic"}),
        ("chain", {"chain": "cyclic"}),
    ],
)
def test_a_model_of_days_and_a_cyclic_one_are_asked_as_well(kind, settings, tmp_path, monkeypatch, capsys):
    made(tmp_path, kind, **settings)
    said = calibrated(tmp_path, monkeypatch, capsys)
    assert ("Markov property rejected" in said) is (kind != "chain")
    assert ("chain of half-hours:" in said) is ("chain" in settings)


def test_machines_are_told_the_models_name_and_nothing_that_was_measured(tmp_path, monkeypatch, capsys):
    made(tmp_path, "weekly habit")
    said = calibrated(tmp_path, monkeypatch, capsys, "--json")
    assert re.fullmatch("[0-9a-f]{64}", json.loads(said).pop("model"))
    assert json.loads(said).keys() == {"model"}
    public = (tmp_path / "model-a" / "public.json").read_text()
    assert "reject" not in public
    assert "SECRET" not in public
    folder = tmp_path / "confidential" / "forgetting"
    assert {path.name for path in folder.iterdir()} == {"model-a.parquet", "model-a.html"}
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o600"}
    assert "SECRET" not in (folder / "model-a.html").read_text()
