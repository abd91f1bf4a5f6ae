"""Range counts by least squares, against numpy's solver, and their errors by formula and with OpenDP's noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.mechanisms import discrete_laplace, standard_deviation
from agedp_data.series.histograms import cumulative_counts, shifted_histograms
from docs.papers.neighbourhood.range_counts import range_variance, reconstruct

SPACES = [(1, 5), (2, 4), (2, 5), (3, 7), (4, 16), (5, 11), (8, 40), (6, 3)]
LENGTHS = range(1, 33)
CELLS, WIDTH = 48, 4
SPACE = {"width": WIDTH, "delta": 1, "low": 0, "high": CELLS}


def design(k, cells):
    """Which cells each bin of each row holds, from the edges of the rows."""
    rows = []
    for j in range(k):
        edges = [0, *(c for c in range(1, cells) if c % k == j), cells]
        rows.append([[float(a <= c < b) for c in range(cells)] for a, b in itertools.pairwise(edges)])
    return rows


def filled(measured, k, cells):
    """Measurements in the shape of `shifted_histograms`, what lies beyond a row's bins full of rubbish."""
    lengths, left = [len(row) for row in design(k, cells)], iter(measured)
    return np.array([[next(left) for _ in range(n)] + [1e9] * (max(lengths) - n) for n in lengths])


class TestLeastSquares:
    @pytest.mark.parametrize(("k", "cells"), SPACES)
    def test_it_is_the_solution_that_numpy_finds(self, k, cells):
        matrix = np.vstack([np.array(row) for row in design(k, cells)])
        rng = np.random.default_rng(k * cells)
        for _ in range(5):
            measured = rng.normal(size=len(matrix)) * 10
            found = reconstruct(filled(measured, k, cells), width=k, delta=1, low=0, high=cells)
            np.testing.assert_allclose(found, np.linalg.lstsq(matrix, measured)[0], atol=1e-9)

    @pytest.mark.parametrize(("k", "cells"), SPACES)
    def test_with_a_known_total_it_is_the_solution_under_that_equation(self, k, cells):
        matrix = np.vstack([np.array(row) for row in design(k, cells)])
        measured, total = np.random.default_rng(k + cells).normal(size=len(matrix)) * 10, 17.5
        ones = np.ones((1, cells))
        system = np.block([[matrix.T @ matrix, ones.T], [ones, np.zeros((1, 1))]])
        expected = np.linalg.solve(system, np.append(matrix.T @ measured, total))[:-1]
        found = reconstruct(filled(measured, k, cells), width=k, delta=1, low=0, high=cells, total=total)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert found.sum() == pytest.approx(total)

    @pytest.mark.parametrize(("k", "cells"), SPACES)
    @pytest.mark.parametrize("known", [False, True])
    def test_variances_are_those_of_the_solver(self, k, cells, known):
        matrix = np.vstack([np.array(row) for row in design(k, cells)])
        free = np.eye(cells)[:, :-1] - np.eye(cells)[:, [-1]] if known else np.eye(cells)
        solved = free @ np.linalg.pinv(matrix @ free)
        for start, stop in itertools.combinations(range(cells + 1), 2):
            expected = (solved[start:stop].sum(axis=0) ** 2).sum()
            found = range_variance(start, stop, width=k, delta=1, low=0, high=cells, known_total=known)
            assert found == pytest.approx(expected, abs=1e-9), (start, stop)

    def test_without_noise_every_count_comes_back(self):
        use = np.random.default_rng(2).integers(0, 48, 300)
        for width in (1, 4, 7, 48, 60):
            counts = shifted_histograms(use, width=width, delta=1, low=0, high=48)
            cells = reconstruct(counts, width=width, delta=1, low=0, high=48)
            np.testing.assert_allclose(np.cumsum(cells), cumulative_counts(use, delta=1, low=0, high=48), atol=1e-9)

    def test_a_stack_of_days_is_its_days_one_by_one(self):
        days = np.random.default_rng(3).normal(size=(2, 3, 4, 13))
        whole = reconstruct(days, **SPACE)
        assert whole.shape == (2, 3, 48)
        for day in itertools.product(range(2), range(3)):
            np.testing.assert_allclose(whole[day], reconstruct(days[day], **SPACE), atol=1e-12)

    @pytest.mark.parametrize(
        "ask",
        [
            lambda: reconstruct(np.zeros((4, 12)), **SPACE),
            lambda: reconstruct(np.full((4, 13), np.nan), **SPACE),
            lambda: range_variance(0, 49, known_total=False, **SPACE),
            lambda: range_variance(-1, 4, known_total=False, **SPACE),
            lambda: range_variance(3, 2, known_total=False, **SPACE),
            lambda: range_variance(0.5, 2, known_total=False, **SPACE),
        ],
    )
    def test_what_does_not_fit_the_grid_is_refused(self, ask):
        with pytest.raises(ChainError):
            ask()


class TestErrorsOfRanges:
    """Four statistics at the same loss for a move of delta: one histogram of cells, the same for arrivals only,
    shifted histograms of four cells a bin, and cumulative counts."""

    EPSILON = 0.5

    def one_bin(self, sensitivity):
        return standard_deviation(sensitivity / self.EPSILON) ** 2

    def errors(self, length):
        starts = np.arange(CELLS - length + 1)
        shifted = range_variance(starts, starts + length, known_total=False, **SPACE) * self.one_bin(2)
        ends = 2 - (starts == 0)
        return {
            "cells": np.full(starts.size, length * self.one_bin(2)),
            "arrivals": np.full(starts.size, length * self.one_bin(1)),
            "shifted": shifted,
            "cumulative": ends * self.one_bin(1),
        }

    def test_cumulative_counts_are_flat_and_below_both_histograms_for_every_length_above_two(self):
        for length in LENGTHS:
            errors = self.errors(length)
            assert (errors["cumulative"] <= 2 * self.one_bin(1)).all()
            assert (errors["cumulative"] < errors["cells"]).all()
            assert (errors["cumulative"] < errors["shifted"]).all()
            if length > 2:  # a histogram whose households may only come or go has half the noise: even at two cells
                assert (errors["cumulative"] < errors["arrivals"]).all()
        assert self.errors(2)["cumulative"].max() == self.errors(2)["arrivals"].max()

    def test_the_errors_that_opendp_leaves_are_those_of_the_formulas(self):
        draws = 2500
        use = np.random.default_rng(7).integers(0, 8 * CELLS, 400) // 8
        cumulative = cumulative_counts(use, delta=1, low=0, high=CELLS)
        shifted = shifted_histograms(use, **SPACE)
        fine = np.diff(cumulative, prepend=0)

        def noisy(counts, sensitivity):
            flat = np.broadcast_to(counts.ravel(), (draws, counts.size)).ravel()
            drawn = discrete_laplace(flat, sensitivity=sensitivity, loss=self.EPSILON)
            return drawn.reshape(draws, *counts.shape)

        found = {
            "cells": np.cumsum(noisy(fine, 2), axis=-1),
            "shifted": np.cumsum(reconstruct(noisy(shifted, 2), **SPACE), axis=-1),
            "cumulative": noisy(cumulative, 1),
        }
        measured = {name: [] for name in found}
        for name, sums in found.items():
            wrong = np.pad(sums - cumulative, [(0, 0), (1, 0)])
            for length in LENGTHS:
                error = (wrong[:, length:] - wrong[:, :-length]) ** 2
                expected = self.errors(length)[name].mean()
                measured[name].append(error.mean())
                # were all ranges of a length one and the same, .16 would be 5.6 standard deviations of 2500 draws;
                # a scale that is 10 % off is off by .19 or .21
                assert error.mean() == pytest.approx(expected, rel=0.16), (name, length)
        flat = np.array(measured["cumulative"])
        assert flat.max() / flat.min() < 1.1
        assert (flat[2:] < np.array(measured["cells"])[2:]).all()
        assert (flat[2:] < np.array(measured["shifted"])[2:]).all()
