"""Discounted differential privacy (ICCPS 2020): Figures 1, 2 and 3, Corollaries 8, 12 and 16."""

from __future__ import annotations

from docs.papers.discounted.claims import claims
from docs.papers.discounted.constants import corollary_16
from docs.papers.discounted.reports import figure_1, figure_2, figure_3
from docs.papers.households import PaperReadings
from docs.papers.results import Paper


def paper(data: PaperReadings) -> Paper:
    """Return every figure and claim of the paper."""
    figures = [figure_1(data), figure_2(data), figure_3(data), corollary_16()]
    return Paper("discounted", "Temporally discounted differential privacy", tuple(figures), claims(figures))
