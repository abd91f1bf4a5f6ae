"""The page of spans: what the code gives, with values that other methods give."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from docs.papers.span import choice_table, levels, page
from docs.papers.span.spans import MILLIONTH, exact_gaussian_noise, gaussian_noise

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_and_the_table_of_the_question_are_what_the_code_gives() -> None:
    written = page()
    assert (DOCS / "spans.md").read_text("utf-8") == written, "run `python -m docs.papers.span` and commit"
    assert choice_table() in (DOCS / "choose.md").read_text("utf-8")
    assert choice_table() in written
    # reference values: a year of 0.1, any mechanism, its histograms, the privacy-loss distribution
    for value in ("10.75", "10.31", "7.36", "10.13", "81.66", "22.98", "0.0939"):
        assert value in written


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


def test_the_noise_of_levels_is_that_of_least_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "DAYS", 8)
    monkeypatch.setattr(levels, "BLOCKS", (1, 2, 8))
    shares = {1: 0.5, 2: 0.3, 8: 0.2}
    # noise of level m: variance T m / w, with 2 rho = U^2 = 1
    information = sum(
        share / (8 * block) * block_sums(8, block).T @ block_sums(8, block) for block, share in shares.items()
    )
    for block in (1, 2, 8):
        mean = block_sums(8, block) / block
        variance = np.trace(mean @ np.linalg.inv(information) @ mean.T) / len(mean)
        assert levels.noise(shares, block) == pytest.approx((variance / 8) ** 0.5)


def test_a_total_beside_groups_is_least_squares() -> None:
    for groups, share in ((4, 0.2), (33, 0.05)):
        information = (1 - share) * np.eye(groups) + share * np.ones((groups, groups))
        inverse = np.linalg.inv(information)
        expected = (inverse[0, 0] ** 0.5, inverse.sum() ** 0.5)
        assert levels.total_beside_groups(groups, share) == pytest.approx(expected)
