"""Range counts by least squares, against numpy's solver, and their errors by formula."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from agedp_data.series.sensitivity import cumulative_counts, shifted_histograms
from docs.papers.neighbourhood.range_counts import range_variance, reconstruct

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
