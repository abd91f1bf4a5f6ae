"""Figures 8 and 9: losses that keep a bound of the leakage, and what they cost in noise."""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.temporal_leakage import allocate, temporal
from agedp_data.errors import ChainError
from docs.papers.households import PaperReadings
from docs.papers.results import PUBLISHED, Curve, Floats, Look, Panel, PaperFigure, curve
from docs.papers.temporal.smoothing import smoothed

BEHIND, AHEAD = ((0.8, 0.2), (0.2, 0.8)), ((0.8, 0.2), (0.1, 0.9))
METHODS: tuple[tuple[str, str, Look, int], ...] = (
    ("supremum", "Algorithm 7", "paper", 0),
    ("exact", "Algorithm 8", "paper", 1),
    ("even", "α/T", "reference", 0),
    ("best", "best", "ours", 0),
)
_RELEASES = 30
STATES = 50
_STAY = ((0.98, 0.02), (0.02, 0.98))


def figure_8() -> PaperFigure:
    """Return the losses of 30 releases under leakage of at most 1, and the leakage they come to."""
    at = np.arange(1, _RELEASES + 1)
    plans = {method: allocate(BEHIND, AHEAD, alpha=1.0, horizon=_RELEASES, method=method) for method, *_ in METHODS}
    losses = [curve(name, at, plans[method], look, shade=shade) for method, name, look, shade in METHODS]
    leaks = [
        curve(name, at, temporal(BEHIND, AHEAD, plans[method]), look, shade=shade)
        for method, name, look, shade in METHODS
    ]
    cost = {method: float((1 / plan).mean()) for method, plan in plans.items()}
    description = (
        f"Mean noise scale of {_RELEASES} releases: {cost['supremum']:.2f} by Algorithm 7, {cost['exact']:.2f} by"
        f" Algorithm 8, {cost['even']:.2f} by even shares, {cost['best']:.2f} for the best plan found; none leaks more"
        " than 1"
    )
    return PaperFigure(
        "figure_8",
        "Figure 8, Algorithms 7 and 8",
        "Algorithm 8 uses up what Algorithm 7 leaves at both ends of the series",
        f"{description}.",
        PUBLISHED,
        (
            Panel("Loss of each release", "release [-]", "loss ε [-]", tuple(losses), bottom=0),
            Panel("Leakage of all releases", "release [-]", "TPL, leakage [-]", tuple(leaks), levels=((1.0, "α = 1"),),
                  bottom=0),
        ),
        "the matrix for looking back is not the Bayes reverse of the one for looking ahead, and the middle of"
        " Algorithm 8 is constant on [2, T - 1], not [2, T] ([errata]).",
        parts={"plans": description},
    )  # fmt: skip


def figure_9(data: PaperReadings) -> PaperFigure:
    """Return the noise that a leakage of at most 2 asks for, by the length of the series and by the correlation."""
    states = 10 if data.small else STATES
    horizons = (2, 5) if data.small else (2, 3, 5, 8, 12, 20, 35, 60, 100)
    strengths = (0.01, 1.0) if data.small else (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    strong = smoothed(0.001, states)
    by_length = {method: [noise(strong, 2.0, count, method) for count in horizons] for method, *_ in METHODS}
    by_strength = {method: [noise(smoothed(s, states), 2.0, 10, method) for s in strengths] for method, *_ in METHODS}
    sticky = {method: noise(np.array(_STAY), 1.0, 10, method) for method, *_ in METHODS}
    description = (
        f"two sticky states (stay .98, T = 10, α = 1): {sticky['exact']:.1f} by Algorithm 8, {sticky['even']:.1f} by"
        f" even shares, {sticky['best']:.1f} at best"
    )
    return PaperFigure(
        "figure_9",
        "Figure 9",
        "Short series gain from knowing their end, and strong correlation makes even shares the better plan",
        f"Under strong correlation (s = .001) {horizons[1]} releases need a mean noise scale of"
        f" {by_length['supremum'][1]:.2f} by Algorithm 7, {by_length['exact'][1]:.2f} by Algorithm 8,"
        f" {by_length['even'][1]:.2f} by even shares and {by_length['best'][1]:.2f} at best. T{description[1:]}.",
        f"the paper's s, T and α; n = {states} and the sticky states are ours, for it prints none; no data",
        (
            Panel("(a) By length, s = .001, α = 2", "number of releases T [-]", "mean noise scale, 1/ε [-]",
                  _lines(horizons, by_length), log="xy"),
            Panel("(b) By correlation, T = 10, α = 2", "smoothing s: stronger correlation to the left [-]",
                  "mean noise scale, 1/ε [-]", _lines(strengths, by_strength),
                  levels=((0.5, "no correlation, 1/α"),), levels_named="left", log="xy"),
        ),
        "under strong correlation Algorithm 8, for which the paper claims no optimum, loses to even shares ([errata]).",
        parts={"sticky": description},
    )  # fmt: skip


def noise(kernel: Floats, alpha: float, horizon: int, method: str) -> float:
    """Return the mean noise scale, mean of 1/eps, of a plan; infinite where the method has none."""
    try:
        return float((1 / allocate(kernel, kernel, alpha=alpha, horizon=horizon, method=method)).mean())
    except ChainError:
        return float("inf")


def _lines(places: tuple[float, ...], results: dict[str, list[float]]) -> tuple[Curve, ...]:
    return tuple(curve(name, places, results[method], look, shade=shade) for method, name, look, shade in METHODS)
