"""Histograms of one dimension: error of a range count by its length, of k shifted ones and of cumulative counts.

Noise for a move shorter than delta: Laplace of scale 2/eps on every bin of all k histograms, 1/eps on cumulative
counts. Under the standard neighbourhood a replacement moves all of them, and shifted histograms gain nothing.
"""

from __future__ import annotations

import numpy as np

from agedp_data.series.sensitivity import (
    Change,
    Move,
    bins_per_histogram,
    cell_count,
    cumulative_counts,
    cumulative_sensitivity,
    delta_grid,
    shifted_histograms,
    shifted_sensitivity,
)
from docs.papers.households import PaperReadings
from docs.papers.neighbourhood.range_counts import range_variance, reconstruct
from docs.papers.results import Floats, Panel, PaperFigure, curve

DELTA, LOW, HIGH, EPSILON = 2, 0, 50, 1.0
CELLS = cell_count(delta=DELTA, low=LOW, high=HIGH)
LENGTHS = np.arange(1, CELLS)
_REPLACED: Change = "replacement"
_ROWS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
_ERROR = "error of a range count [households]"


def deviation(rows: int, change: Change) -> Floats:
    """Return the error of a range count by its length, averaged over where it lies, for `rows` shifted histograms.

    sqrt(mean variance 2 (s/eps)^2), s the L1 sensitivity of all of them to the change. Shapes: -> (cells - 1,).
    """
    grid = {"width": rows * DELTA, "delta": DELTA, "low": LOW, "high": HIGH}
    scale = shifted_sensitivity(change, **grid) / EPSILON
    deviations = []
    for length in LENGTHS.tolist():
        first = np.arange(CELLS - length + 1)
        deviations.append(float(range_variance(first, first + length, **grid, known_total=False).mean()))
    return np.asarray(np.sqrt(2 * np.array(deviations)) * scale)


def cumulative(change: Change) -> Floats:
    """Return the same for cumulative counts: two of them, and one at the lower end, where the count is 0.

    The number of households is estimated here as in `deviation`: unlike conditions would compare nothing.
    """
    edges = delta_grid(delta=DELTA, low=LOW, high=HIGH)
    scale = cumulative_sensitivity(change, edges=[float(edge) for edge in edges]) / EPSILON
    inner = [np.arange(CELLS - n + 1) for n in LENGTHS.tolist()]
    noisy = [((first > 0) + 1.0).mean() for first in inner]
    return np.asarray(np.sqrt(2 * np.array(noisy)) * scale)


def one_dimension(data: PaperReadings) -> PaperFigure:
    """Return errors against range length, derived and simulated on households, and against the number of shifts."""
    households = data.ausgrid_households
    daily = households.daily_wh
    day = int((daily >= 0).sum(axis=0).argmax())
    use = daily[daily[:, day] >= 0, day] / 1000
    move, replaced = Move(DELTA), _REPLACED
    tries = 40 if data.small else 1500
    lines = [curve("one histogram, either notion", LENGTHS, deviation(1, move), "reference")]
    lines += [
        curve("4 shifted, standard notion", LENGTHS, deviation(4, replaced), "reference", shade=1),
        curve("4 shifted, δ-neighbourhood", LENGTHS, deviation(4, move), "paper"),
        curve("cumulative, δ-neighbourhood", LENGTHS, cumulative(move)),
        curve("cumulative, standard notion", LENGTHS, cumulative(replaced), "reference", shade=2),
    ]
    at, simulated = simulate(use, 4, tries)
    lines.append(curve(f"4 shifted, simulated {tries} times", at, simulated, "measured", kind="points"))
    by_rows = np.array([deviation(rows, move) for rows in _ROWS])
    picked = (2, 8, 16)
    shown = [
        curve(f"range of {n * DELTA} kWh", _ROWS, by_rows[:, n - 1], "paper", shade=i) for i, n in enumerate(picked)
    ]
    shown += [
        curve(f"cumulative, {n * DELTA} kWh", _ROWS, [float(cumulative(move)[n - 1])] * len(_ROWS), shade=i)
        for i, n in enumerate(picked)
    ]
    wide = 16
    return PaperFigure(
        "histograms_1d",
        "Proposed method, one dimension",
        "Shifted histograms help long ranges, and cumulative counts help all of them",
        f"Counting households in a range of {wide * DELTA} kWh (ε = {EPSILON:g}, moves shorter than {DELTA} kWh, the"
        f" number of households estimated as well): standard"
        f" deviation {deviation(1, move)[wide - 1]:.2f} by one histogram of cells, {deviation(4, move)[wide - 1]:.2f}"
        f" by four shifted ones, {cumulative(move)[wide - 1]:.2f} by cumulative counts. If a whole day may be replaced"
        f" the shifted ones have {deviation(4, replaced)[wide - 1]:.2f}.",
        f"{households.name}, one day (the simulated points); the curves follow from the method alone",
        (
            Panel(f"By length, δ = {DELTA} kWh", "length of the range [cells of 2 kWh]", _ERROR, tuple(lines), log="y"),
            Panel("By number of shifted histograms", "shifted histograms k = w/δ [-]", _ERROR, tuple(shown), bottom=0),
        ),
        "the sensitivity of all shifted histograms is 2 for moves of up to δ only; an arrival moves k of them, a"
        " replacement 2k ([neighbourhoods], [errata]).",
    )  # fmt: skip


def simulate(use: Floats, rows: int, tries: int) -> tuple[Floats, Floats]:
    """Return lengths, and the root mean square error of reconstructed range counts, over repeated noise draws."""
    grid = {"width": rows * DELTA, "delta": DELTA, "low": LOW, "high": HIGH}
    true = shifted_histograms(use, **grid)
    scale = shifted_sensitivity(Move(DELTA), **grid) / EPSILON
    rng = np.random.default_rng(11)
    noisy = true + rng.laplace(0, scale, (tries, *true.shape))
    for row, length in enumerate(bins_per_histogram(rows, CELLS).tolist()):
        noisy[:, row, length:] = 0
    cumulative_estimates = np.cumsum(np.pad(reconstruct(noisy, **grid), ((0, 0), (1, 0))), axis=1)
    exact = np.concatenate(([0], cumulative_counts(use, delta=DELTA, low=LOW, high=HIGH)))
    wrong = cumulative_estimates - exact
    lengths = LENGTHS[::4]
    errors = [float(np.sqrt(((wrong[:, n:] - wrong[:, : CELLS + 1 - n]) ** 2).mean())) for n in lengths.tolist()]
    return np.asarray(lengths, dtype=np.float64), np.array(errors)
