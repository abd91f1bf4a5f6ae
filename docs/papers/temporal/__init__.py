"""Temporal privacy leakage (IEEE TKDE 2018): Figures 3 to 9, Algorithms 1 to 8."""

from __future__ import annotations

from docs.papers.households import PaperReadings
from docs.papers.results import Paper
from docs.papers.temporal.budgets import figure_8, figure_9
from docs.papers.temporal.claims import claims
from docs.papers.temporal.courses import figure_3, figure_4, figure_5
from docs.papers.temporal.run_times import figure_6
from docs.papers.temporal.smoothing import figure_7


def paper(data: PaperReadings) -> Paper:
    """Return every figure and claim of the paper."""
    figures = [figure_3(), figure_4(), figure_5(), figure_6(data), figure_7(data), figure_8(), figure_9(data)]
    return Paper("temporal", "Temporal privacy leakage", tuple(figures), claims(figures))
