"""All four papers on a few synthetic households, computed once for all tests."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="figures need agedp[papers]")

from docs.papers.__main__ import PAPERS
from docs.papers.households import PaperReadings
from docs.papers.results import Paper, PaperClaim, PaperFigure


@pytest.fixture(scope="session")
def small() -> dict[str, Paper]:
    data = PaperReadings(small=True)
    return {name: make(data) for name, make in PAPERS.items()}


@pytest.fixture(scope="session")
def figures(small: dict[str, Paper]) -> dict[str, PaperFigure]:
    """Every figure by paper and name."""
    return {f"{paper.name}-{figure.name}": figure for paper in small.values() for figure in paper.figures}


@pytest.fixture(scope="session")
def claims(small: dict[str, Paper]) -> list[PaperClaim]:
    return [claim for paper in small.values() for claim in paper.claims]
