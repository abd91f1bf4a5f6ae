"""`agedp calibrate` tests the Markov property: made-up chains pass, habits and slow regimes are rejected."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from agedp_data.datasets.synthetic.households import KERNELS
from tests import minimal
from tests.command import CommandFolder

FIRST, DAYS, HOMES = date(2013, 1, 1), 140, 10


def levels(rng):
    """States of half-hours (homes, days, 48): a chain that mixes within hours."""
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
        high = np.tile((np.arange(DAYS) + FIRST.weekday()) % 7 >= 5, (HOMES, 1))
    else:
        spans = rng.integers(30, 61, (HOMES, 6))
        high = np.array([np.repeat(np.arange(6) % 2, row)[:DAYS] for row in spans], bool)
    return np.where((rng.random(high.shape) < 0.9) == high, 2, 1)


def write(folder: Path, kind: str, **model: object) -> None:
    rng = np.random.default_rng(len(kind))
    wh = np.rint((100 + 150 * levels(rng)) * factor(kind, rng)[..., None]).astype(int).reshape(HOMES, -1)
    start = datetime.combine(FIRST, time())
    stamps = [str(start + timedelta(minutes=30 * (i + 1))) for i in range(wh.shape[1])]
    lines = [
        f"SECRET{home:02d},{stamp},{energy / 1000}"
        for home, row in enumerate(wh.tolist())
        for stamp, energy in zip(stamps, row, strict=True)
    ]
    (folder / "input.csv").write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n")
    roster = "".join(f"SECRET{home:02d},2013-01-01,\n" for home in range(HOMES))
    (folder / "roster.csv").write_text("household_id,from,to\n" + roster)
    estimated = {
        "source": "estimated", "assume": "markov", "file": "model-a", "edges": "quantile", "min_visits": 20,
        "period": [FIRST, FIRST + timedelta(days=DAYS - 1)], "confidence": "plug-in", "ages_days": [1, 2, 7, 14],
        "publish": "envelope", "step": "half-hour", "states": 4, "chain": "homogeneous",
    }  # fmt: skip
    promise = {"epsilon_total": Decimal("2.5")}
    text = minimal.run_file(input={"files": ["input.csv"]}, promise=promise, model={**estimated, **model})
    (folder / "run.toml").write_text(text)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("chain", {}),
        ("weekly habit", {"step": "day", "states": 3}),
        ("slow regime", {"chain": "cyclic"}),
        pytest.param("chain", {"chain": "cyclic"}, marks=pytest.mark.long),
        pytest.param("weekly habit", {}, marks=pytest.mark.long),
    ],
)
def test_the_verdict_is_that_of_households_whose_memory_is_known(tmp_path, kind, model):
    write(tmp_path, kind, **model)
    shown = CommandFolder(tmp_path).succeed("calibrate", "run.toml")
    rows = pq.read_table(tmp_path / "confidential" / "forgetting" / "model-a.parquet").to_pylist()
    rejected = {
        figure: len({row["household_id"] for row in rows if row["figure"] == figure and row["rejected"]})
        for figure in ("chain of day totals", *(("chain of half-hours",) if "step" not in model else ()))
    }
    for figure, count in rejected.items():
        assert f"{figure}: {count} of {HOMES} households have longer memory" in shown
    assert ("chain of half-hours:" in shown) == ("step" not in model)
    if kind == "chain":
        # 5 % of 10 each: 6 or more have a chance of three in a million
        assert max(rejected.values()) <= 5
        assert "Markov property not rejected, up to 14 days" in shown
        assert "This is no proof" in shown
    elif (kind, model) == ("weekly habit", {}):
        # 140 days in quarters: a habit of two levels shows in most households only. Six of ten are what the verdict
        # needs: more than twice the 5 % of chance, at a significance of 0.001. The half-hours show it in nearly all.
        assert rejected["chain of day totals"] >= binom.isf(1e-3, HOMES, 0.1) + 1 == 6
        assert rejected["chain of half-hours"] >= 0.9 * HOMES
        assert "Markov property rejected" in shown
    else:
        assert rejected["chain of day totals"] >= 0.9 * HOMES
        assert "Markov property rejected" in shown
        assert "never let it justify a larger epsilon" in shown
    assert "The epsilon of a day and the total over all days need no model." in shown
    assert "SECRET" not in shown
