"""Spans, range counts and errors: by other accountants, a solver and the law of the noise."""

from __future__ import annotations

import itertools
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from agedp_data.series.sensitivity import cumulative_counts, shifted_histograms
from docs.papers.accuracy import measure
from docs.papers.accuracy.chart import chart
from docs.papers.accuracy.page import accuracy_section, expected_95, read_measured
from docs.papers.neighbourhood.range_counts import range_variance, reconstruct
from docs.papers.span import choice_table, levels, page, section
from docs.papers.span.spans import MILLIONTH, day_loss, exact_gaussian_noise, gaussian_noise

# The tables about spans: what the code gives, with values that other methods give.

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


# Range counts by least squares, against numpy's solver, and their errors by formula.

SPACES = [(1, 5), (2, 4), (2, 5), (4, 16), (5, 11), (6, 3)]
SPACE = {"width": 4, "delta": 1, "low": 0, "high": 48}


def design(k, cells):
    """Which cells each bin of each row holds, from the edges of the rows."""
    rows = []
    for j in range(k):
        edges = [0, *(c for c in range(1, cells) if c % k == j), cells]
        rows.append([[float(a <= c < b) for c in range(cells)] for a, b in itertools.pairwise(edges)])
    return rows


def filled(measured, k, cells):
    """Measurements in the shape of `shifted_histograms`, what lies beyond a row's bins full of rubbish."""
    lengths, values = [len(row) for row in design(k, cells)], iter(measured)
    return np.array([[next(values) for _ in range(n)] + [1e9] * (max(lengths) - n) for n in lengths])


@pytest.mark.parametrize(("k", "cells"), SPACES)
def test_it_is_the_least_squares_solution_with_and_without_a_known_total(k, cells):
    matrix, keys = np.vstack([np.array(row) for row in design(k, cells)]), {"width": k, "delta": 1, "low": 0}
    measured, total = np.random.default_rng(k + cells).normal(size=len(matrix)) * 10, 17.5
    free = reconstruct(filled(measured, k, cells), high=cells, **keys)
    np.testing.assert_allclose(free, np.linalg.lstsq(matrix, measured)[0], atol=1e-9)
    ones = np.ones((1, cells))
    system = np.block([[matrix.T @ matrix, ones.T], [ones, np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(matrix.T @ measured, total))[:-1]
    known = reconstruct(filled(measured, k, cells), high=cells, total=total, **keys)
    np.testing.assert_allclose(known, expected, atol=1e-9)


@pytest.mark.parametrize(("k", "cells"), SPACES)
@pytest.mark.parametrize("known", [False, True])
def test_variances_are_those_of_the_solver(k, cells, known):
    matrix = np.vstack([np.array(row) for row in design(k, cells)])
    free = np.eye(cells)[:, :-1] - np.eye(cells)[:, [-1]] if known else np.eye(cells)
    solved = free @ np.linalg.pinv(matrix @ free)
    for start, stop in itertools.combinations(range(cells + 1), 2):
        expected = (solved[start:stop].sum(axis=0) ** 2).sum()
        variance = range_variance(start, stop, width=k, delta=1, low=0, high=cells, known_total=known)
        assert variance == pytest.approx(expected, abs=1e-9), (start, stop)


@pytest.mark.parametrize("width", [1, 4, 7, 60])
def test_without_noise_every_count_comes_back(width):
    use, keys = np.random.default_rng(2).integers(0, 48, 300), {"delta": 1, "low": 0, "high": 48}
    cells = reconstruct(shifted_histograms(use, width=width, **keys), width=width, **keys)
    np.testing.assert_allclose(np.cumsum(cells), cumulative_counts(use, **keys), atol=1e-9)


def test_cumulative_counts_are_flat_and_below_both_histograms_for_every_length_above_two():
    # Laplace variances 2 s^2 for sensitivity s at loss 1: cells 2, shifted 2, arrivals 1, and one or two counts of 1.
    for length in range(1, 33):
        starts = np.arange(49 - length)
        shifted = range_variance(starts, starts + length, known_total=False, **SPACE) * 2 * 2**2
        cumulative = (2 - (starts == 0)) * 2.0
        assert (cumulative < shifted).all()
        assert (cumulative < length * 2 * 2**2).all()
        assert (cumulative < length * 2 * 1**2).all() or length <= 2


# The section on accuracy: its stored figures, its chart, and the law of the noise that they follow.

FIGURES = read_measured()


def test_the_section_and_the_chart_are_those_of_the_stored_figures() -> None:
    assert accuracy_section() in (DOCS / "papers.md").read_text("utf-8"), "run `python -m docs.papers all --docs docs`"
    drawing = (DOCS / "accuracy.svg").read_text("utf-8")
    for text in ("raw, by the sum of the days", "smoothed, by the span accountant", "households", "kWh per household"):
        assert text in drawing
        assert text in chart(FIGURES)
    assert len(drawing) < 40_000


def test_losses_of_a_day_are_those_of_each_promise() -> None:
    aged = math.log(1 + (math.exp(0.1) - 1) / 0.1)  # one release alone; a release every day permits less
    losses = {promise["key"]: promise["epsilon"] for promise in FIGURES["promises"]}
    assert (losses["day-1"], losses["day-0.1"]) == (1.0, 0.1)
    assert losses["year"] == pytest.approx(10 / 365, abs=1e-9)
    assert losses["year-delta"] == pytest.approx(day_loss(365, 10, MILLIONTH), rel=1e-3)
    assert 0.1 < losses["age"] < aged
    named = {promise.key: promise for promise in measure.promises()}
    assert named.keys() == losses.keys()
    assert float(measure.day_loss(named["year-delta"])) == losses["year-delta"]


def test_measured_errors_follow_the_law_of_the_noise() -> None:
    noise = np.random.default_rng(1).laplace(scale=50 / (0.1 * 1000), size=200_000)
    assert measure.expected_error(0.1, 1000) == pytest.approx(noise.std(), rel=0.02)
    assert expected_95(0.1, 1000, 50) == pytest.approx(np.quantile(np.abs(noise), 0.95), rel=0.02)
    for promise in FIGURES["promises"]:
        expected = [math.sqrt(2) * 50 / (promise["epsilon"] * number) for number in FIGURES["households"]]
        assert np.allclose(promise["raw"], expected, rtol=0.08)  # four standard errors of 3,650 draws
        assert not np.allclose(promise["raw"], 1.1 * np.array(expected), rtol=0.08)
        assert all(smoothed <= raw * 1.02 for smoothed, raw in zip(promise["smoothed"], promise["raw"], strict=True))
