"""Range counts from noisy shifted histograms by least squares, and how large their error is ([D], MATHS 6).

Let P_c be the number of households below line c of the delta-grid, P_0 = 0. A bin of row j measures the difference
of two lines of the class c = j mod k, so each row is a chain of measurements from line 0 to line N, and the k chains
share nothing but their ends. Least squares has a closed form: the total T is the mean of the rows' sums weighted by
1/L_j, L_j bins each (or known from the roster), and within a row P after s bins is the sum of these s plus
(T - the row's sum) s/L_j. (The estimate of P is the voltage in a network of unit resistors, and the variance of a range
the resistance between its ends.) Cumulative counts need none of this: a range is the difference of two of them, with an
error that does not depend on its length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.counts import cell_count, lead, row_lengths, rows_of
from agedp_data.privacy.exact import Number
from agedp_data.privacy.kernel import Floats


def reconstruct(
    histograms: ArrayLike, *, width: Number, delta: Number, low: Number, high: Number, total: float | None = None
) -> Floats:
    """Return the least-squares number of households in each cell of the delta-grid; sums of cells are range counts.

    The estimate is unbiased and linear, and of those the one of least variance if all bins have equal noise. It may be
    negative. Bins that a row does not need are left out.

    Shapes: (..., k, bins) -> (..., cells). Units: [households] -> [households].

    Args:
        histograms: as `counts.shifted_histograms` has them, with noise.
        width: of the bins.
        delta: of the grid.
        low: lower end of the range.
        high: upper end of the range.
        total: the number of households if it is known; None: it is estimated as well.

    Raises:
        ChainError: an array that does not fit the grid, or numbers that are not finite.

    >>> reconstruct([[3, 0, 0], [1, 2, 0]], width=4, delta=2, low=0, high=8).round(9).tolist()  # without noise
    [1.0, 2.0, 0.0, 0.0]
    """
    rows, cells = rows_of(width, delta), cell_count(delta=delta, low=low, high=high)
    lengths = row_lengths(rows, cells)
    noisy = np.asarray(histograms, dtype=np.float64)
    if noisy.shape[-2:] != (rows, lengths.max()):
        raise ChainError(f"{rows} histograms of {lengths.max()} bins fit this grid, not an array of {noisy.shape[-2:]}")
    if not np.isfinite(noisy).all():
        raise ChainError("counts are finite numbers")
    sums = np.cumsum(noisy, axis=-1)
    of_row = sums[..., np.arange(rows), lengths - 1]
    weights = 1 / lengths
    known = (
        (of_row * weights).sum(axis=-1) / weights.sum() if total is None else np.full(noisy.shape[:-2], float(total))
    )
    row, before = _places(np.arange(1, cells), rows)
    share = before / lengths[row]
    inner = sums[..., row, before - 1] + (known[..., None] - of_row[..., row]) * share
    return np.diff(np.concatenate([inner, known[..., None]], axis=-1), axis=-1, prepend=0.0)


def range_variance(
    starts: ArrayLike, stops: ArrayLike, *, width: Number, delta: Number, low: Number, high: Number, known_total: bool
) -> Floats:
    """Return the variance of the reconstructed count of cells start, ..., stop - 1, for a noise variance of 1 a bin.

    With s of L bins before a line: d (L - d)/L for two lines of one row d bins apart, else the sum of s (L - s)/L over
    both; and if the total is not known, (s/L - s'/L')^2/(sum of 1/L_j) more. For comparison, cumulative counts have 2,
    or 1 from line 0 and up to a known total, one histogram of cells has stop - start.
    Shapes: (...), (...) -> (...). Units: [cells] -> [variance of a bin].

    Raises:
        ChainError: a start or stop outside 0, ..., cells.

    >>> float(range_variance(0, 1, width=4, delta=2, low=0, high=8, known_total=True))  # the first of three bins in row
    0.6666666666666666
    """
    rows, cells = rows_of(width, delta), cell_count(delta=delta, low=low, high=high)
    lengths = row_lengths(rows, cells)
    first, last = np.broadcast_arrays(np.asarray(starts), np.asarray(stops))
    if first.dtype.kind not in "iu" or last.dtype.kind not in "iu" or ((first < 0) | (last > cells)).any():
        raise ChainError(f"a range of cells begins and ends at whole numbers from 0 to {cells}")
    if (first > last).any():
        raise ChainError("a range of cells ends where it begins, or later")
    (row, before), (other, beyond) = (_line(line, rows, cells, lengths) for line in (first, last))
    apart = beyond - before
    joined = apart * (lengths[row] - apart) / lengths[row]
    single = before * (lengths[row] - before) / lengths[row] + beyond * (lengths[other] - beyond) / lengths[other]
    fixed = np.where(row == other, joined, single)
    if known_total:
        return np.asarray(fixed, dtype=np.float64)
    return np.asarray(fixed + (beyond / lengths[other] - before / lengths[row]) ** 2 / (1 / lengths).sum())


def _places(lines: NDArray[np.int64], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row that has an edge at each inner line, and how many of its bins lie before it."""
    row = lines % rows
    return row, (lines + lead(row, rows)) // rows


def _line(
    lines: NDArray[np.int64], rows: int, cells: int, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and bins before of any line; the last one ends every row, of which the first stands for it."""
    row, before = _places(lines, rows)
    at_end = lines == cells
    return np.where(at_end, 0, row), np.where(at_end, lengths[0], before)
