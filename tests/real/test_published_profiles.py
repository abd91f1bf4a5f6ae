"""Profile, coverage and mean of 40 real households, published by a run: exact to the watt-hour, noise by its law."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from scipy.stats import kstest, laplace

from agedp.pipeline import run_stages
from agedp.run_context import RunContext
from agedp_data import mechanisms
from tests.minimal import run_file

FIRST, DAYS, SHARE = date(2013, 1, 1), 90, {"daily_mean": 0.5, "shape": 0.3, "usable": 0.2}
HALF_HOUR_WH, DAY_WH, EPSILON = 1_500, 12_000, 0.5
SENSITIVITY = {"daily_mean": DAY_WH, "shape": 2 * DAY_WH, "usable": 1}


@pytest.fixture(scope="module")
def published(kaggle, roster_text, tmp_path_factory):
    """The drawn values and the exact vectors of a run, by series: shape (days, cells)."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "roster.csv").write_text(roster_text)
    energy = {"clamp_kwh": DAY_WH // 1000}
    tables = {
        "series.daily_mean": energy | {"statistic": "mean"},
        "series.shape": energy | {"clamp_kwh": 12, "statistic": "profile", "half_hour_clamp_kwh": 1.5},
        "series.usable": {"clamp_kwh": None, "statistic": "coverage"},
    }
    text = run_file(
        input={"files": [str(kaggle / "*.csv")]},
        schedule={"first_day": FIRST, "last_day": FIRST + timedelta(days=DAYS - 1)},
        **{name: keys | {"share": SHARE[name.partition(".")[2]]} for name, keys in tables.items()},
    )
    (folder / "run.toml").write_text(text)
    drawn, sound = [], mechanisms.discrete_laplace

    def recorded(exact, *, sensitivity, loss):
        values = sound(exact, sensitivity=sensitivity, loss=loss)
        drawn.append((np.asarray(exact), np.asarray(values), sensitivity))
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", recorded)
        summary = run_stages(RunContext.load(folder / "run.toml"))
    summary.check_not_refused()
    by_series = {}
    for name, sensitivity in SENSITIVITY.items():
        of = [(exact, values) for exact, values, of in drawn if of == sensitivity]
        by_series[name] = tuple(np.stack(part) for part in zip(*of, strict=True))
    return by_series


def test_exact_vectors_are_those_counted_line_by_line(published, households):
    readings = np.stack(list(households.values()))[:, :DAYS]
    usable = (readings >= 0).sum(axis=2) >= 46
    present = np.where(readings >= 0, readings, 0)
    clipped = np.minimum(present, HALF_HOUR_WH)
    total = clipped.sum(axis=2, keepdims=True)
    shape = np.where(total > DAY_WH, clipped * DAY_WH // np.maximum(total, 1), clipped) * usable[..., None]
    days = np.minimum(present.sum(axis=2), DAY_WH) * usable
    assert published["daily_mean"][0].tolist() == days.sum(axis=0)[:, None].tolist()
    assert published["shape"][0].tolist() == shape.sum(axis=0).tolist()
    assert published["usable"][0].tolist() == usable.sum(axis=0)[:, None].tolist()


@pytest.mark.parametrize("name", SENSITIVITY)
def test_noise_follows_its_law_and_no_smaller_one(published, name):
    exact, values = published[name]
    noise, scale = (values - exact).ravel(), SENSITIVITY[name] / (EPSILON * SHARE[name])
    assert noise.size == DAYS * (48 if name == "shape" else 1)
    # a whole number is spread over its unit, so that the law of the discrete noise is nearly continuous
    spread = noise + np.random.default_rng(1).uniform(-0.5, 0.5, noise.size)
    assert kstest(spread, laplace(scale=scale).cdf).pvalue > 1e-6
    # the mean size of n draws has the deviation scale / sqrt(n): five of them are 7.6 % of 4,320 draws
    assert abs(np.abs(noise).mean() / scale - 1) < 5 / np.sqrt(noise.size)
