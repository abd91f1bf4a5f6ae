"""Age-dependent DP (IEEE TIT 2024): motivating example, Figures 2 to 8, Algorithms 1 and 2."""

from __future__ import annotations

from docs.papers.age.autoregressive import figure_8
from docs.papers.age.claims import claims
from docs.papers.age.failure import figure_5
from docs.papers.age.households import figure_7
from docs.papers.age.planning import figure_6a, figure_6b
from docs.papers.age.two_state import figure_2, figure_3, figure_4, motivating
from docs.papers.households import PaperReadings
from docs.papers.results import Paper


def paper(data: PaperReadings) -> Paper:
    """Return every figure and claim of the paper."""
    figures = [motivating(), figure_2(), figure_3(), figure_4(), figure_5(), figure_6a(data), figure_6b(data)]
    figures += [figure_7(data), figure_8()]
    return Paper("age", "Age-dependent differential privacy", tuple(figures), claims(figures))
