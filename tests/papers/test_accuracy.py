"""The section on accuracy: its stored figures, its chart, and the law of the noise that they follow."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from docs.papers.accuracy import measure
from docs.papers.accuracy.chart import chart
from docs.papers.accuracy.page import accuracy_section, expected_95, read_measured
from docs.papers.span.spans import MILLIONTH, day_loss

DOCS = Path(__file__).parents[2] / "docs"
FIGURES = read_measured()


def test_the_section_and_the_chart_are_those_of_the_stored_figures() -> None:
    assert accuracy_section() in (DOCS / "papers.md").read_text("utf-8"), "run `python -m docs.papers all --docs docs`"
    drawing = (DOCS / "accuracy.svg").read_text("utf-8")
    for text in ("raw, by the sum of the days", "smoothed, by the span accountant", "households", "kWh per household"):
        assert text in drawing
        assert text in chart(FIGURES)
    assert len(drawing) < 40_000


def test_losses_of_a_day_are_those_of_each_promise() -> None:
    aged = math.log(1 + (math.exp(0.1) - 1) / 0.1)  # one release alone; a release every day permits less
    losses = {promise["key"]: promise["epsilon"] for promise in FIGURES["promises"]}
    assert (losses["day-1"], losses["day-0.1"]) == (1.0, 0.1)
    assert losses["year"] == pytest.approx(10 / 365, abs=1e-9)
    assert losses["year-delta"] == pytest.approx(day_loss(365, 10, MILLIONTH), rel=1e-3)
    assert 0.1 < losses["age"] < aged
    named = {promise.key: promise for promise in measure.promises()}
    assert named.keys() == losses.keys()
    assert float(measure.day_loss(named["year-delta"])) == losses["year-delta"]


def test_measured_errors_follow_the_law_of_the_noise() -> None:
    noise = np.random.default_rng(1).laplace(scale=50 / (0.1 * 1000), size=200_000)
    assert measure.expected_error(0.1, 1000) == pytest.approx(noise.std(), rel=0.02)
    assert expected_95(0.1, 1000, 50) == pytest.approx(np.quantile(np.abs(noise), 0.95), rel=0.02)
    for promise in FIGURES["promises"]:
        expected = [math.sqrt(2) * 50 / (promise["epsilon"] * number) for number in FIGURES["households"]]
        assert np.allclose(promise["raw"], expected, rtol=0.08)  # four standard errors of 3,650 draws
        assert not np.allclose(promise["raw"], 1.1 * np.array(expected), rtol=0.08)
        assert all(smoothed <= raw * 1.02 for smoothed, raw in zip(promise["smoothed"], promise["raw"], strict=True))
