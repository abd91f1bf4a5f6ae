"""Histograms of two dimensions: square ranges of points, by k x k shifted histograms of a grid.

A move shorter than delta in both directions crosses at most one line of each, so of the k x k histograms those that
have either line are changed, 2k - 1 of them, each in two bins: L1 sensitivity 2 (2k - 1). Least squares is the product
of that of one dimension, and so is its variance.
"""

from __future__ import annotations

import numpy as np

from agedp_data.series.sensitivity import bins_per_histogram, cell_count, shifted_histograms
from docs.papers.households import PaperHouseholds, PaperReadings
from docs.papers.neighbourhood.range_counts import range_variance, reconstruct
from docs.papers.results import Floats, Panel, PaperFigure, curve

DELTA, LOW, HIGH, EPSILON = 1, 0, 16, 1.0
CELLS = cell_count(delta=DELTA, low=LOW, high=HIGH)
SIDES = np.arange(1, CELLS)
_ROWS = (1, 2, 4, 8)
_ALL_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
_ERROR = "error of a count in a square [households]"


def sensitivity(rows: int) -> int:
    """Return how far all k x k histograms move, in L1, for a move shorter than delta in both directions.

    >>> sensitivity(1), sensitivity(4)
    (2, 14)
    """
    return 2 * (2 * rows - 1)


def deviation(rows: int) -> Floats:
    """Return the error of the count in a square by its side, averaged over where it lies: (cells - 1,)."""
    grid = {"width": rows * DELTA, "delta": DELTA, "low": LOW, "high": HIGH}
    deviations = []
    for side in SIDES.tolist():
        first = np.arange(CELLS - side + 1)
        deviations.append(float(range_variance(first, first + side, **grid, known_total=False).mean()) ** 2)
    return np.asarray(np.sqrt(2 * np.array(deviations)) * sensitivity(rows) / EPSILON)


def points(households: PaperHouseholds) -> Floats:
    """Return households' use before and from 3 p.m. of the day with the most readings [kWh], clamped to the grid."""
    is_complete = np.asarray((households.energy_wh >= 0).all(axis=2))
    day = int(is_complete.sum(axis=0).argmax())
    halves = households.energy_wh[is_complete[:, day], day].reshape(-1, 48)
    return np.minimum(np.stack([halves[:, :30].sum(axis=1), halves[:, 30:].sum(axis=1)], axis=1) / 1000, HIGH)


def two_dimensions(data: PaperReadings) -> PaperFigure:
    """Return errors against the side of a square, as derived and as simulated on households."""
    households = data.ausgrid_households
    positions, tries = points(households), 20 if data.small else 400
    lines = [
        curve("one histogram of cells" if rows == 1 else f"{rows} × {rows} shifted", SIDES, deviation(rows),
              "reference" if rows == 1 else "paper", shade=i)
        for i, rows in enumerate(_ROWS)
    ]  # fmt: skip
    at, simulated = simulate(positions, 4, tries)
    lines.append(curve(f"4 × 4, simulated {tries} times", at, simulated, "measured", kind="points"))
    deviations = np.array([deviation(rows) for rows in _ALL_ROWS])
    best = deviations.argmin(axis=0)
    lines.append(curve("best number of shifts", SIDES, deviations.min(axis=0)))
    side = 12
    return PaperFigure(
        "histograms_2d",
        "Experiment with points of two dimensions",
        "In the plane shifted histograms pay for large squares only",
        f"Counting households in a square of {side} cells a side (ε = {EPSILON:g}): standard deviation"
        f" {deviations[0][side - 1]:.1f} by one histogram of cells,"
        f" {deviations[3][side - 1]:.1f} by 4 × 4 shifted ones;"
        f" in one of 2 cells {deviations[0][1]:.1f} and {deviations[3][1]:.1f}."
        f" Shifts pay from a side of {int(SIDES[best > 0][0])} cells on.",
        f"{households.name}, one day, use before and from 3 p.m. (the simulated points); the curves follow from the"
        " method alone",
        (
            Panel(
                "By side of the square, δ = 1 kWh", "side of the square [cells of 1 kWh]", _ERROR, tuple(lines), log="y"
            ),
            Panel(
                "Best number of shifts",
                "side of the square [cells of 1 kWh]",
                "shifts each way, k [-]",
                (curve("", SIDES, np.array(_ALL_ROWS)[best], kind="steps"),),
                bottom=0,
            ),
        ),
        "the slides have a heading and no numbers, and k × k histograms are our construction. 'The sensitivity is still"
        " 2' stands on the slide about one dimension only. In the plane a move crosses a line each way and changes"
        " 2k - 1 of them ([neighbourhoods]).",
    )


def shifted(positions: Floats, rows: int) -> Floats:
    """Return all k x k histograms of points (n, 2): (k, bins, k, bins)."""
    grid = {"width": rows * DELTA, "delta": DELTA, "low": LOW, "high": HIGH}
    bins = int(bins_per_histogram(rows, CELLS).max())
    counts = np.zeros((rows, bins, rows, bins))
    for x, y in positions.tolist():
        x_histograms, y_histograms = shifted_histograms([x], **grid), shifted_histograms([y], **grid)
        counts += x_histograms[:, :, None, None] * y_histograms[None, None]
    return counts


def simulate(positions: Floats, rows: int, tries: int) -> tuple[Floats, Floats]:
    """Return sides, and the root mean square error of the counts in squares, over repeated noise draws."""
    grid = {"width": rows * DELTA, "delta": DELTA, "low": LOW, "high": HIGH}
    exact = shifted(positions, 1)[0, :, 0, :]
    rng = np.random.default_rng(12)
    true = shifted(positions, rows)
    noisy = true + rng.laplace(0, sensitivity(rows) / EPSILON, (tries, *true.shape))
    along = reconstruct(noisy, **grid)
    cells = reconstruct(np.moveaxis(along, -1, 1), **grid)
    sums = np.pad(cells - exact, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1).cumsum(axis=2)
    sides, errors = SIDES[::3], []
    for n in sides.tolist():
        wrong = sums[:, n:, n:] - sums[:, :-n, n:] - sums[:, n:, :-n] + sums[:, :-n, :-n]
        errors.append(float(np.sqrt((wrong**2).mean())))
    return np.asarray(sides, dtype=np.float64), np.array(errors)
