"""The table of measured forgetting on the 40 real London homes of 2013 (MATHS 2b), medians over households.

Conventions: days with more than four missing readings left out; each household's own states; half-hourly states with
fewer than 200 visits merged into the nearest frequent one; a home without readings for a figure is left out of it.
"""

from __future__ import annotations

import csv
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest

from agedp.pipeline import calibrate
from agedp_data.markov.empirical_mixing import empirical_total_variation
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit
from agedp_data.markov.states import (
    daily_totals,
    edges_equal_width,
    edges_quantile,
    mask_incomplete_days,
    merge_rare,
    states,
)
from tests import minimal

BEGIN = datetime(2013, 1, 1)
WITHIN = 0.05


@pytest.fixture(scope="module")
def readings(real_data: Path) -> np.ndarray:
    """Watt-hours (40, 17520) by half-hour of 2013, -1 where missing; the stamp is the END of the half-hour."""
    found = []
    for path in sorted((real_data / "london" / "kaggle").glob("*.csv")):
        home = np.full(365 * 48, -1)
        with path.open(newline="") as stream:
            for _, stamp, kwh in list(csv.reader(stream))[1:]:
                slot = round((datetime.fromisoformat(stamp) - BEGIN).total_seconds()) // 1800 - 1
                if 0 <= slot < home.size and kwh.strip().replace(".", "").isdigit():
                    home[slot] = round(float(kwh) * 1000)
        found.append(home)
    return np.array(found)


def own_states(values: np.ndarray, n_states: int, *, equal_width: bool = False) -> np.ndarray:
    rows = []
    for home in values:
        seen = home[home >= 0]
        edges = (
            edges_equal_width(seen.max(), n_states)
            if equal_width
            else edges_quantile(*np.unique(seen, return_counts=True), n_states)
        )
        rows.append(states(home, edges))
    return np.array(rows)


@pytest.mark.parametrize(
    ("equal_width", "powers", "direct"),
    [
        (False, [0.459, 0.063, 0.003, 0, 0, 0, 0], [0.646, 0.342, 0.323, 0.313, 0.702, 0.660, 0.614]),
        (True, [0.271, 0.014, 0, 0, 0, 0, 0], [0.463, 0.157, 0.150, 0.130, 0.498, 0.451, 0.458]),
    ],
)
def test_half_hours_are_forgotten_as_the_table_says(readings, equal_width, powers, direct):
    kept = mask_incomplete_days(readings, slots=48, max_missing=4)
    series = merge_rare(own_states(kept, 12, equal_width=equal_width), n_states=12, min_visits=200)
    lags = [4, 12, 24, 36, 48, 96, 336]
    for by, expected in (("powers", powers), ("direct", direct)):
        found = np.nanmedian(empirical_total_variation(series, lags, n_states=12, by=by), axis=0)
        np.testing.assert_allclose(found, expected, atol=WITHIN)


def test_days_are_forgotten_as_the_table_says(readings):
    totals = daily_totals(readings, slots=48, max_missing=4)
    series = own_states(totals, 4)
    powers = np.nanmedian(empirical_total_variation(series, [1, 2, 7], n_states=4, by="powers"), axis=0)
    direct = np.nanmedian(empirical_total_variation(series, [1, 2, 7, 14, 28, 60], n_states=4, by="direct"), axis=0)
    np.testing.assert_allclose(powers, [0.621, 0.346, 0.018], atol=WITHIN)
    np.testing.assert_allclose(direct, [0.621, 0.565, 0.547, 0.530, 0.486, 0.230], atol=WITHIN)
    check = markov_goodness_of_fit(series, [1, 2, 7, 14, 28, 60], np.random.default_rng(0), n_states=4, replicates=39)
    assert check.rejected.any(axis=1).mean() > 0.7  # nine homes of ten are no such chain


@pytest.mark.long
def test_a_calibration_finds_the_tables_days_and_rejects_the_chains(real_data, tmp_path, monkeypatch):
    """The same through the whole way: files, store, days that lack at most two readings, the table that it leaves."""
    files = sorted((real_data / "london" / "kaggle").glob("*.csv"))
    homes = sorted({next(csv.reader([path.read_text().splitlines()[1]]))[0] for path in files})
    roster = "".join(f"{home},2012-01-01,\n" for home in homes)
    (tmp_path / "roster.csv").write_text(f"household_id,from,to\n{roster}")
    (tmp_path / "run.toml").write_text(run_file(str(real_data / "london" / "kaggle" / "*.csv")))
    monkeypatch.chdir(tmp_path)
    memory = calibrate(tmp_path / "run.toml").memory
    assert memory is not None
    days, half_hours = memory.checks.values()
    assert (days.checked, half_hours.checked) == (40, 40)
    assert days.contradicted
    assert half_hours.contradicted
    powers, direct = (memory.median("chain of day totals", value) for value in ("powers", "direct"))
    np.testing.assert_allclose(powers[[0, 1, 2]], [0.621, 0.346, 0.018], atol=WITHIN)
    np.testing.assert_allclose(direct, [0.621, 0.565, 0.547, 0.530, 0.486, 0.230], atol=WITHIN)
    # MATHS 2b: half-hours at 24 h, 48 h and 7 days, counted directly.
    np.testing.assert_allclose(memory.median("chain of half-hours", "direct")[:3], [0.702, 0.660, 0.614], atol=WITHIN)


def run_file(files: str) -> str:
    """A run file whose model is to be estimated from a year."""
    year = [date(2013, 1, 1), date(2013, 12, 31)]
    return minimal.run_file(
        input={"files": [files]},
        model={
            "source": "estimated", "assume": "markov", "file": "model", "period": year, "step": "half-hour",
            "edges": "quantile", "chain": "homogeneous", "min_visits": 200, "confidence": "plug-in",
            "ages_days": [1, 2, 7, 14, 28, 60], "publish": "envelope",
        },
    )  # fmt: skip
