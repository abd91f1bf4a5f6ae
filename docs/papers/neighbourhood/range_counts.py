r"""Range counts from noisy shifted histograms by least squares, and their variance ([D], "Proposed method").

The idea: let P_c be the number of households below line c of the delta-grid, P_0 = 0. A bin of histogram j measures the
difference of two lines of the class c = j mod k. Each histogram is a chain of measurements from line 0 to line N, and
the k chains share only their ends. Least squares then has a closed form. The total T is the mean of the rows' sums
weighted by 1/L_j, L_j bins each (or known from the roster). Within a row, P after s bins is

.. math:: \hat P = \sum_{b \le s} h_{j,b} + (\hat T - \sum_b h_{j,b}) \, s / L_j.

The estimate of P is the voltage in a network of unit resistors, the variance of a range the resistance between its
ends.

Example: the exact histograms [3, 0] (edges 0, 4, 8) and [1, 2, 0] (edges 0, 2, 6, 8) give the cells 1, 2, 0, 0.

Cumulative counts need no reconstruction: a range is the difference of two, with an error independent of its length.

[D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Number
from agedp_data.errors import ChainError
from agedp_data.series.sensitivity import bins_per_histogram, cell_count, leading_cells, shifted_histogram_count


def reconstruct(
    histograms: ArrayLike, *, width: Number, delta: Number, low: Number, high: Number, total: float | None = None
) -> Floats:
    r"""Return the least-squares count of each cell of the delta-grid; sums of cells are range counts.

    .. math:: \hat P_c = \sum_{b \le s} h_{j,b} + (\hat T - \sum_b h_{j,b}) \frac{s}{L_j}, \quad
       \hat T = \frac{\sum_j L_j^{-1} \sum_b h_{j,b}}{\sum_j L_j^{-1}}

    Source: least squares for [D] "Proposed method"; consistency in the sense of [H]. Unbiased, linear, and of least
    variance if all bins have equal noise. Estimates may be negative. Bins that a row does not need are ignored.

    Args:
        histograms: noisy `shifted_histograms`, shape (..., k, bins), finite [households].
        width: width of a bin, a multiple of `delta` [any unit].
        delta: step of the grid, > 0 [unit of `width`].
        low: lower end of the range [unit of `width`].
        high: upper end of the range, > `low` [unit of `width`].
        total: number of households if known; None: estimated as well [households].

    Returns:
        Counts, shape (..., cells) [households].

    Raises:
        ChainError: an array that does not fit the grid, or numbers that are not finite.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
        [H] Hay, Rastogi, Miklau, Suciu: Boosting the Accuracy of Differentially Private Histograms Through Consistency.
        PVLDB 3, 2010. https://doi.org/10.14778/1920841.1920970

    >>> reconstruct([[3, 0, 0], [1, 2, 0]], width=4, delta=2, low=0, high=8).round(9).tolist()  # without noise
    [1.0, 2.0, 0.0, 0.0]
    """
    histogram_total, cell_total = shifted_histogram_count(width, delta), cell_count(delta=delta, low=low, high=high)
    lengths = bins_per_histogram(histogram_total, cell_total)
    noisy = np.asarray(histograms, dtype=np.float64)
    if noisy.shape[-2:] != (histogram_total, lengths.max()):
        raise ChainError(
            f"{histogram_total} histograms of {lengths.max()} bins fit this grid, not an array of {noisy.shape[-2:]}"
        )
    if not np.isfinite(noisy).all():
        raise ChainError("counts are finite numbers")
    sums = np.cumsum(noisy, axis=-1)
    row_sums = sums[..., np.arange(histogram_total), lengths - 1]
    weights = 1 / lengths
    total_estimate = (
        (row_sums * weights).sum(axis=-1) / weights.sum() if total is None else np.full(noisy.shape[:-2], float(total))
    )
    row_of_line, bins_before = _inner_lines(np.arange(1, cell_total), histogram_total)
    fraction = bins_before / lengths[row_of_line]
    correction = (total_estimate[..., None] - row_sums[..., row_of_line]) * fraction
    inner = sums[..., row_of_line, bins_before - 1] + correction
    return np.diff(np.concatenate([inner, total_estimate[..., None]], axis=-1), axis=-1, prepend=0.0)


def range_variance(
    starts: ArrayLike, stops: ArrayLike, *, width: Number, delta: Number, low: Number, high: Number, known_total: bool
) -> Floats:
    r"""Return the variance of the reconstructed count of cells start, ..., stop - 1, in units of the variance of a bin.

    .. math:: \frac{d (L - d)}{L} \text{ (both lines in one row)}, \quad
       \frac{s (L - s)}{L} + \frac{s' (L' - s')}{L'} \text{ (two rows)}, \quad
       + \frac{(s/L - s'/L')^2}{\sum_j 1/L_j} \text{ if the total is not known}

    with s, s' the bins before the two lines, L, L' the bins of their rows, d = s' - s. Source: resistance of the
    network in the module's head. For comparison: cumulative counts have 2 (1 from line 0 and up to a known total), one
    histogram of cells has stop - start.

    Args:
        starts: first cells, shape (...), integers >= 0 [cells].
        stops: last cells + 1, shape (...), integers >= `starts` [cells].
        width: width of a bin, a multiple of `delta` [any unit].
        delta: step of the grid, > 0 [unit of `width`].
        low: lower end of the range [unit of `width`].
        high: upper end of the range, > `low` [unit of `width`].
        known_total: whether `reconstruct` was given the total.

    Returns:
        Shape (...) [variance of a bin].

    Raises:
        ChainError: a start or stop outside 0, ..., cells, or a start above its stop.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> float(range_variance(0, 1, width=4, delta=2, low=0, high=8, known_total=True))  # 1 (3 - 1)/3, of three bins
    0.6666666666666666
    """
    histogram_total, cell_total = shifted_histogram_count(width, delta), cell_count(delta=delta, low=low, high=high)
    lengths = bins_per_histogram(histogram_total, cell_total)
    first, last = np.broadcast_arrays(np.asarray(starts), np.asarray(stops))
    if first.dtype.kind not in "iu" or last.dtype.kind not in "iu" or ((first < 0) | (last > cell_total)).any():
        raise ChainError(f"a range of cells begins and ends at whole numbers from 0 to {cell_total}")
    if (first > last).any():
        raise ChainError("a range of cells ends where it begins, or later")
    row, before = _any_lines(first, histogram_total, cell_total, lengths)
    stop_row, stop_before = _any_lines(last, histogram_total, cell_total, lengths)
    length, stop_length = lengths[row], lengths[stop_row]
    bins_between = stop_before - before
    same_row = bins_between * (length - bins_between) / length
    different_rows = before * (length - before) / length + stop_before * (stop_length - stop_before) / stop_length
    variance = np.where(row == stop_row, same_row, different_rows)
    if known_total:
        return np.asarray(variance, dtype=np.float64)
    return np.asarray(variance + (stop_before / stop_length - before / length) ** 2 / (1 / lengths).sum())


def _inner_lines(lines: NDArray[np.int64], histogram_total: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row that has an edge at each inner line, and the number of its bins before the line."""
    row = lines % histogram_total
    return row, (lines + leading_cells(row, histogram_total)) // histogram_total


def _any_lines(
    lines: NDArray[np.int64], histogram_total: int, cell_total: int, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and bins before for any line; the last line ends every row, of which the first is taken."""
    row, bins_before = _inner_lines(lines, histogram_total)
    at_end = lines == cell_total
    return np.where(at_end, 0, row), np.where(at_end, lengths[0], bins_before)
