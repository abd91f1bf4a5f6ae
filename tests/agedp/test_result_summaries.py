"""What results show of themselves, in a terminal and in a notebook: never a household, its edges or its counts."""

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


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("states", {"households": "3", "days": "2026-01-05 to 2026-03-05", "states": "4", "edges": "quantile"}),
        ("states of days", {"states": "3", "step": "day", "edges": "given"}),
        ("chains", {"chain": "homogeneous", "transitions": "confidential"}),
        ("cyclic chains", {"chain": "cyclic"}),
        ("model", {"min_visits": "2", "chain": "homogeneous", "figures_of_households": "confidential"}),
        ("plan", {"notion": "classical", "rows": "60", "households": "3", "epsilon": "0.5", "noise_sd_kwh": "28.3"}),
        ("release", {"notion": "classical", "released_days": "60", "population": "households"}),
        ("smoothed", {"region": "none", "weather": "not used", "days": "2026-01-05 to 2026-03-05"}),
    ],
)
def test_counts_and_public_facts_are_shown(results, name, facts):
    """sqrt(2) x 30 kWh / (3 x 0.5) is 28.3."""
    result = results[name]
    for key, value in facts.items():
        assert f"{key}={value}" in repr(result)
        assert f"<tr><th>{key.replace('_', ' ')}</th><td>{value}</td></tr>" in result._repr_html_()
    assert repr(result).startswith(f"{type(result).__name__}(")


def test_what_is_confidential_says_so(results):
    for name, result in results.items():
        is_confidential = name.split()[0] in ("states", "chains", "cyclic", "model")
        assert ("confidential" in repr(result)) == is_confidential, name


def test_a_page_escapes_what_a_release_is_called(results):
    for name in ("release", "folder"):
        assert "&lt;script&gt;" in results[name]._repr_html_()
        assert "<script" not in results[name]._repr_html_()


def test_a_folder_that_cannot_be_read_is_shown_as_such(tmp_path):
    assert "statement.json" in repr(agedp.ReleaseFolder(tmp_path))


def test_a_page_has_no_colour_of_its_own(results):
    for result in results.values():
        assert "style" not in result._repr_html_()
        assert "color" not in result._repr_html_()


@pytest.mark.parametrize(
    "name", ["states", "states of days", "chains", "model", "plan", "release", "folder", "smoothed"]
)
def test_a_plot_of_a_result_has_labelled_axes_and_says_what_is_confidential(results, name):
    axes = results[name].plot()
    assert isinstance(axes, mpl.axes.Axes)
    assert axes.get_ylabel()
    is_confidential = name.split()[0] in ("states", "chains", "model")
    assert axes.get_title().startswith("confidential") == is_confidential
    mpl.pyplot.close(axes.figure)


def test_the_share_of_readings_in_states_adds_up_at_every_half_hour(results):
    image = results["states"].plot().images[0].get_array()
    assert image.shape == (4, 48)
    np.testing.assert_allclose(image.sum(axis=0), 1)
    of_days = results["states of days"].plot().images[0].get_array()
    frame = results["states of days"].frame
    mondays = frame[frame["interval_start"].dt.day_of_week == 0]["state"].value_counts(normalize=True)
    assert of_days[:, 0].tolist() == pytest.approx([mondays.get(state, 0) for state in range(3)])
    mpl.pyplot.close("all")


def test_a_plan_of_which_no_day_has_enough_households_is_refused(readings):
    """The readings are of three; a plan without rows did not say why."""
    for function in (agedp.plan, agedp.release):
        with pytest.raises(RunFileError, match=r"min_households = 4: no due day has 4 .*the largest group has 3\."):
            function(readings, **{**TERMS, "min_households": 4})
