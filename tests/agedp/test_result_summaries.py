"""What results show of themselves, in a terminal and in a notebook: never a household, its edges or its counts."""

from __future__ import annotations

import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import agedp

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
