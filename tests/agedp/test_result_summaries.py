"""What results show of themselves: never a household, its edges or its counts; plots show what their tables say."""

from __future__ import annotations

import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import agedp
from agedp_data.errors import RunFileError

mpl.use("agg")
IDS = ("PLANTED-73610", "PLANTED-90417", "PLANTED-55281")
LACKING = (11, 23, 37)
DAYS = 60
TITLE = "<script>alert(1)</script>"
PROMISE = agedp.Classical(epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=60, accept=["useless", "total"])
TERMS: dict[str, Any] = {"promise": PROMISE, "clamp_kwh": 30, "min_households": 3}
MODEL: dict[str, Any] = {"min_visits": 2, "confidence": "plug-in", "assume": "markov", "publish": "envelope"}


@pytest.fixture(scope="module")
def readings() -> pd.DataFrame:
    """Return 60 days of three homes; each lacks another number of half-hours, so its number of readings is its own."""
    draw, times = np.random.default_rng(3), pd.date_range("2026-01-05", periods=DAYS * 48, freq="30min", tz="UTC")
    frames = []
    for name, lacking in zip(IDS, LACKING, strict=True):
        energy = draw.integers(1000, 2000, len(times))
        frame = pd.DataFrame({"household_id": name, "interval_start": times, "energy_wh": energy})
        frames.append(frame.drop(index=range(48 * lacking, 49 * lacking)))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def results(readings, tmp_path_factory) -> dict[str, Any]:
    states = agedp.quantize(readings, states=4)
    chains = agedp.estimate(states)
    released = agedp.release(readings, **TERMS, title=TITLE)
    folder = released.save(tmp_path_factory.mktemp("saved") / "folder")
    return {
        "states": states,
        "states of days": agedp.quantize(readings, states=3, step="day", edges=[71_000, 73_000]),
        "chains": chains,
        "cyclic chains": agedp.estimate(states, chain="cyclic"),
        "model": agedp.calibrate(chains, ages_days=[1, 7], **MODEL),
        "plan": agedp.plan(readings, **TERMS),
        "release": released,
        "folder": folder,
        "smoothed": agedp.smooth(folder, region="none"),
    }


def texts_of(result: Any) -> dict[str, str]:
    return {"terminal": repr(result), "notebook": result._repr_html_()}


def secrets(results: dict[str, Any]) -> set[str]:
    """Return the ids, the edges as whole watt-hours and as digits, and the counts of each home."""
    edges = results["states"].edges.to_numpy().ravel()
    counts = results["chains"].counts.ravel().tolist() + results["chains"].readings.tolist()
    counts += [DAYS * 48 - lacking for lacking in LACKING]
    numbers = [*(f"{edge:.0f}" for edge in edges), *map(str, counts)]
    return {*IDS, *(number for number in numbers if len(number) > 2)}


def test_no_result_shows_a_household_its_edges_or_its_counts(results):
    planted = secrets(results)
    assert len(planted) > 40
    for name, result in results.items():
        for place, text in texts_of(result).items():
            words = text.replace(results["model"].id[:12], "")
            shown = set(re.findall(r"[\w-]+", words)) | set(re.findall(r"\d+", words))
            assert not planted & shown, (name, place)
            assert "PLANTED" not in text, (name, place)
            assert "\n" not in text, (name, place)


def test_the_search_finds_a_household_that_is_shown(results):
    """The table of a model's households has what no summary may have."""
    shown = results["model"].households.to_string()
    assert secrets(results) & set(re.findall(r"[\w-]+", shown)) >= set(IDS)


def test_what_is_confidential_says_so(results):
    for name, result in results.items():
        is_confidential = name.split()[0] in ("states", "chains", "cyclic", "model")
        assert ("confidential" in repr(result)) == is_confidential, name


def test_a_page_escapes_what_a_release_is_called(results):
    for name in ("release", "folder"):
        assert "&lt;script&gt;" in results[name]._repr_html_()
        assert "<script" not in results[name]._repr_html_()


mpl.use("agg")
ROSTER = pd.DataFrame({"household_id": list("abcdef"), "heating": ["gas", "oil"] * 3, "from": "2025-01-06", "to": None})
BY_HEATING = {
    "promise": agedp.Classical(
        epsilon_per_day=1, max_day_epsilon=1, epsilon_total=10, accept=["useless", "no-credit", "total"]
    ),
    "clamp_kwh": 40,
    "min_households": 2,
    "roster": ROSTER,
    "by": "heating",
}


@pytest.fixture(scope="module")
def two_days() -> pd.DataFrame:
    start = pd.date_range("2025-01-06", periods=2 * 48, freq="30min", tz="Europe/Berlin")
    frame = pd.MultiIndex.from_product([list("abcdef"), start], names=["household_id", "interval_start"]).to_frame()
    return frame.reset_index(drop=True).assign(energy_wh=200)


def test_means_have_a_line_for_each_group(two_days):
    released = agedp.release(two_days, **BY_HEATING)
    lines = {line.get_label(): line.get_ydata() for line in released.plot().lines}
    assert set(lines) == {"gas", "oil"}
    for group, rows in released.table.groupby("group"):
        np.testing.assert_array_equal(lines[group], rows["mean_kwh"])


def test_a_value_of_several_days_is_a_cross_over_its_days_and_interval():
    start = pd.date_range("2025-01-06", periods=3 * 7 * 48, freq="30min", tz="Europe/Berlin")
    frame = pd.MultiIndex.from_product([list("abcdef"), start], names=["household_id", "interval_start"]).to_frame()
    released = agedp.release(frame.reset_index(drop=True).assign(energy_wh=200), every="week", **BY_HEATING)
    table = released.table.reset_index()
    days, heights = {}, {}
    for container in released.plot().containers:
        across, upright = container.lines[2]
        days[container.get_label()] = [segment[:, 0] for segment in across.get_segments()]
        heights[container.get_label()] = [segment[:, 1] for segment in upright.get_segments()]
    for group, rows in table.groupby("group"):
        ends = rows[["first_day", "day"]].apply(mpl.dates.date2num).to_numpy()
        np.testing.assert_allclose(days[group], ends)
        np.testing.assert_allclose(heights[group], rows[["low_kwh", "high_kwh"]].to_numpy())


def test_a_mean_count_has_two_standard_deviations_of_its_noise(two_days):
    """Two days with noise of one standard deviation s: that of their mean is s / sqrt(2)."""
    released = agedp.release(two_days, statistic="distribution", bins_kwh=[0, 10, 40], **BY_HEATING)
    [sd] = released.table["noise_sd"].unique()
    for container in released.plot().containers:
        [upright] = container.lines[2]
        lengths = [np.ptp(segment[:, 1]) for segment in upright.get_segments()]
        np.testing.assert_allclose(lengths, 2 * 2 * sd / np.sqrt(2))


def test_a_plan_of_which_no_day_has_enough_households_is_refused(readings):
    """The readings are of three; a plan without rows did not say why."""
    for function in (agedp.plan, agedp.release):
        with pytest.raises(RunFileError, match=r"min_households = 4: no due day has 4 .*the largest group has 3\."):
            function(readings, **{**TERMS, "min_households": 4})
