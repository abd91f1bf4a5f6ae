"""The tables about spans: what the code gives, with values that other methods give."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from docs.papers.span import choice_table, levels, page, section
from docs.papers.span.spans import MILLIONTH, exact_gaussian_noise, gaussian_noise

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tables_of_the_pages_are_what_the_code_gives() -> None:
    notions = (DOCS / "notions.md").read_text("utf-8")
    assert notions == page(notions), "run `python -m docs.papers.span` and commit"
    assert choice_table() in (DOCS / "choose.md").read_text("utf-8")
    # reference values: a year of 0.1, any mechanism, its histograms, the privacy-loss distribution
    for value in ("10.75", "10.31", "7.36", "10.13", "81.66", "22.98"):
        assert value in section()
    assert "0.0939" in choice_table()
    with pytest.raises(LookupError, match="no generated part"):
        page("# A page")


def test_gaussian_noise_is_that_of_other_accountants() -> None:
    # dp_accounting and OpenDP, 5,000 households, clamp 30: zero-concentrated .0272 and .519, exact .0253 and .484
    assert gaussian_noise(1, 1.0, MILLIONTH) == pytest.approx(0.0272, abs=5e-5)
    assert gaussian_noise(365, 1.0, MILLIONTH) == pytest.approx(0.519, abs=5e-4)
    assert exact_gaussian_noise(1, 1.0, MILLIONTH) == pytest.approx(0.0253, abs=5e-5)
    assert exact_gaussian_noise(365, 1.0, MILLIONTH) == pytest.approx(0.484, abs=5e-4)


def largest_change(strategy: np.ndarray) -> float:
    """Largest Euclidean norm of the answers to a change of each day by at most 1."""
    return max(float(np.linalg.norm(strategy @ signs)) for signs in product((-1.0, 1.0), repeat=strategy.shape[1]))


def block_sums(days: int, block: int) -> np.ndarray:
    return np.kron(np.eye(days // block), np.ones(block))


def test_no_strategy_is_better_on_blocks_than_independent_days() -> None:
    days, random = 8, np.random.default_rng(0)
    strategies = [random.normal(size=(10, days)) for _ in range(20)]
    strategies += [
        np.tril(np.ones((days, days))),
        np.vstack([block_sums(days, m) * random.random() for m in (1, 2, 8)]),
    ]
    for strategy in [np.eye(days), *strategies]:
        inverse = np.linalg.pinv(strategy.T @ strategy) * largest_change(strategy) ** 2
        for block in (1, 2, 4, 8):
            mean = block_sums(days, block) / block
            variance = np.trace(mean @ inverse @ mean.T) / len(mean)
            least = days / block  # T U^2 / (2 rho m), with U^2 = 2 rho
            assert variance >= least * (1 - 1e-9)
            if strategy.shape == (days, days) and (strategy == np.eye(days)).all():
                assert variance == pytest.approx(least)


def test_a_total_beside_groups_is_least_squares() -> None:
    for groups, share in ((4, 0.2), (33, 0.05)):
        information = (1 - share) * np.eye(groups) + share * np.ones((groups, groups))
        inverse = np.linalg.inv(information)
        expected = (inverse[0, 0] ** 0.5, inverse.sum() ** 0.5)
        assert levels.total_beside_groups(groups, share) == pytest.approx(expected)
