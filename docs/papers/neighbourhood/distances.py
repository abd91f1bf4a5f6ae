"""Edit distances: how many steps a change is under the standard and the delta-neighbourhood, and what it costs."""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.delta_neighbourhood import distance, loss_of_change, moves, standard_distance
from docs.papers.results import PUBLISHED, Panel, PaperFigure, curve

DELTA = 5
CLAMP_KWH, PROTECTED_KWH, EPSILON = 50.0, 2.0, 0.1
TABLE = (([0, 0, 0, 0], [0, 0, 1, 1]), ([0, 0, 0, 0], [0, 0, 0, 9]))
"""The pairs of datasets of the slides' table."""


def rows() -> list[tuple[int, int, int]]:
    """Return the slides' table: steps under replacement, and under delta = 5 on whole numbers and on the line."""
    return [
        (
            standard_distance(first, second, neighbours="bounded"),
            distance(first, second, delta=DELTA),
            distance(np.array(first, float), np.array(second, float), delta=DELTA),
        )
        for first, second in TABLE
    ]


def edit_distances() -> PaperFigure:
    """Return the steps of one change by its size, and the bound on it at the same noise."""
    integer_sizes, size = np.arange(21), np.linspace(0, 20, 201)
    change = np.linspace(0, CLAMP_KWH, 201)
    exact = [float(loss_of_change(x, epsilon=EPSILON, delta=PROTECTED_KWH, full=CLAMP_KWH)) for x in change.tolist()]
    full = float(loss_of_change(CLAMP_KWH, epsilon=EPSILON, delta=PROTECTED_KWH, full=CLAMP_KWH))
    table = rows()
    return PaperFigure(
        "edit_distances",
        "Table and Scenario 3",
        "Small changes are protected well, larger ones in proportion",
        f"From {{0,0,0,0}} to {{0,0,1,1}}: {table[0][0]} steps by replacement, {table[0][1]} by moves shorter than 5;"
        f" to {{0,0,0,9}}: {table[1][0]}, and {table[1][1]} on whole numbers or {table[1][2]} on the line. The noise"
        f" that gives a change of 2 kWh a loss of {EPSILON:g} gives one of 4 kWh {2 * EPSILON:g} and a whole day of 50"
        f" kWh {full:g}.",
        PUBLISHED,
        (
            Panel(
                "Steps of one change, δ = 5",
                "size of the change [-]",
                "edit distance [steps]",
                (
                    curve("standard: one replacement", size, np.ones(size.size), "reference"),
                    curve("δ, printed: 2δ takes 2", [DELTA, 9, 2 * DELTA], [1, 2, 2], "paper", kind="points"),
                    curve("δ, on the line", size, moves(size, delta=DELTA), kind="steps"),
                    curve("δ, whole numbers", integer_sizes, moves(integer_sizes, delta=DELTA), shade=1, kind="points"),
                ),
                bottom=0,
            ),
            Panel(
                "Bounds at the same noise, δ = 2 kWh",
                "change of a household's day [kWh]",
                "loss [-]",
                (
                    curve("standard: any change", change, np.full(change.size, full), "reference"),
                    curve("δ, steps times ε", change, EPSILON * moves(change, delta=PROTECTED_KWH), "paper"),
                    curve("δ, exact (Laplace, a mean)", change, exact),
                ),
                bottom=0,
            ),
        ),
        "with moves strictly shorter than δ a change of 2δ takes three steps, one of δ two, and on whole numbers one"
        " of 9 three at δ = 5; 'bounded' and 'unbounded' are swapped in the slides ([errata]).",
    )
