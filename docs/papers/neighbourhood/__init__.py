"""delta-neighbourhood (slides of 2014): edit distances, histograms of one and two dimensions, sustained release."""

from __future__ import annotations

from docs.papers.households import PaperReadings
from docs.papers.neighbourhood.claims import claims
from docs.papers.neighbourhood.distances import edit_distances
from docs.papers.neighbourhood.histograms import one_dimension
from docs.papers.neighbourhood.planes import two_dimensions
from docs.papers.neighbourhood.sustained import sustained_release
from docs.papers.results import Paper


def paper(data: PaperReadings) -> Paper:
    """Return every figure and claim of the slides."""
    figures = [edit_distances(), one_dimension(data), two_dimensions(data), sustained_release(data)]
    return Paper("neighbourhood", "δ-neighbourhood", tuple(figures), claims(figures))
