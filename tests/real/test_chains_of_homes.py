"""Chains of days and of the clock of the 40 real London homes, against counts made straight from the files."""

from __future__ import annotations

import csv
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from agedp.calibration.bound import bound
from agedp.calibration.estimate import estimate
from agedp.calibration.leakage_bounds import phase_count, subsampling_steps
from agedp.calibration.quantize import Period, quantize
from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import read_roster

FIRST, LAST = date(2013, 1, 1), date(2013, 12, 31)
ENGINE = Engine()


@pytest.fixture(scope="module")
def homes(real_data: Path) -> dict[str, np.ndarray]:
    """Watt-hours by household: (days, 48), -1 where missing; a stamp is the END of its half-hour."""
    found: dict[str, np.ndarray] = {}
    for path in sorted((real_data / "london" / "kaggle").glob("*.csv")):
        with path.open(newline="") as stream:
            for household, stamp, kwh in list(csv.reader(stream))[1:]:
                begun = datetime.fromisoformat(stamp) - timedelta(minutes=30)
                table = found.setdefault(household, np.full((365, 48), -1))
                if FIRST <= begun.date() <= LAST:
                    slot = begun.hour * 2 + begun.minute // 30
                    table[(begun.date() - FIRST).days, slot] = round(float(kwh) * 1000)
    return found


@pytest.fixture(scope="module")
def stored(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Delivery, Path]:
    folder = tmp_path_factory.mktemp("homes")
    store = Store(folder / "store", "london", ReadingRules())
    return store, ingest(store, [str(real_data / "london" / "kaggle" / "*.csv")], engine=ENGINE), folder


def calibrated(homes: dict[str, np.ndarray], stored: tuple[Store, Delivery, Path], **keys: object):
    store, delivery, folder = stored
    roster_file = folder / "roster.csv"
    roster_file.write_text("household_id,from,to\n" + "".join(f"{home},2013-01-01,\n" for home in homes))
    roster = read_roster(roster_file)
    given = {
        "source": "estimated", "assume": "markov", "period": (FIRST, LAST), "step": "half-hour", "states": 4,
        "edges": "quantile", "chain": "homogeneous", "min_visits": 1, "confidence": "plug-in", "publish": "envelope",
        "ages_days": (1, 2, 7), "file": str(folder / "-".join(map(str, keys.values()))),
    }  # fmt: skip
    model = EstimatedModel(**given | keys)
    period = Period(store, delivery, roster, FIRST, LAST, step=model.step)
    edges = quantize(period, edges="quantile", n_states=4, engine=ENGINE)
    counted = estimate(
        period, edges, n_states=4, engine=ENGINE, n_phases=phase_count(model), subsampling=subsampling_steps(model)
    )
    return roster, edges, counted, bound(counted, edges, roster, model)


def states_of(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.where(values >= 0, (values[:, None] >= edges).sum(axis=1), -1)


def pairs(state: np.ndarray, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
    known = (state[earlier] >= 0) & (state[later] >= 0)
    table = np.zeros((4, 4), int)
    np.add.at(table, (state[earlier][known], state[later][known]), 1)
    return table


def test_a_chain_of_days_counts_their_totals_and_forgets_as_the_mathematics_says(homes, stored) -> None:
    roster, edges, counted, made = calibrated(homes, stored, step="day")
    for i, home in enumerate(roster.ids):
        table = homes[home]
        usable = (table >= 0).sum(axis=1) >= 46
        total = np.where(usable, np.where(table >= 0, table, 0).sum(axis=1), -1)
        state = states_of(total, edges[i])
        at = np.arange(364)
        assert counted.counts[i].tolist() == pairs(state, at, at + 1).tolist()
        assert counted.readings[i] == usable.sum()
    # MATHS 2b: daily totals, 4 quantile states, powers, medians at 1, 2 and 7 days
    median = np.median(made.curves["total_variation"], axis=0)
    assert median.tolist() == pytest.approx([0.621, 0.346, 0.018], abs=0.05)


def test_a_clock_counts_by_half_hour_and_every_sixth_of_them(homes, stored) -> None:
    keys = {"chain": "cyclic", "confidence": "sampling-bound", "level": Decimal("0.95")}
    roster, edges, counted, made = calibrated(homes, stored, **keys)
    for i, home in enumerate(roster.ids):
        state = states_of(homes[home].ravel(), edges[i])
        for phase in range(48):
            at = np.arange(phase, state.size - 1, 48)
            assert counted.counts[i, phase].tolist() == pairs(state, at, at + 1).tolist()
        for phase in range(8):
            at = np.arange(6 * phase, state.size - 6, 48)
            assert counted.subsampled[6][i, phase].tolist() == pairs(state, at, at + 6).tolist()
    assert (made.curves["total_variation"][:, 0] < 1).all()
    assert (made.curves["sampling_bound"] >= made.curves["total_variation"] - 1e-12).all()
