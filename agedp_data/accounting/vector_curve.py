r"""Rényi curve of a vector whose cells each move by a bounded amount: what a profile loses about a span of days.

The idea: the pure loss of a vector is decided by the sum of the moves of its cells, however they are divided. At finite
orders many small moves lose much less than one large move. A half-hour moves by at most its clamp, so a household that
moves a profile by the whole sensitivity moves many cells.

Example: with clamps of 4 kWh for a half-hour and 50 kWh for the day, 25 cells move by 4 kWh. At epsilon 0.1 a day and
delta = 1e-6 a year comes to 1.81; a mean with the same epsilon, one cell that moves by its clamp, to 10.75.

[M] Mironov: Rényi Differential Privacy. CSF 2017. https://doi.org/10.1109/CSF.2017.11
"""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.renyi import Curve, compose, laplace_curve, multiply
from agedp_data.errors import ChainError


def vector_curve(sensitivity: int, *, largest_move: int, scale: float) -> Curve:
    r"""Return the Rényi curve of a vector with discrete Laplace noise, no cell of which moves by more than a bound.

    .. math:: R_a(d) \le k \, R_a(u) + R_a(r), \quad s = k u + r, \quad 0 \le r < u

    for all moves d with :math:`|d_i| \le u` and :math:`\sum_i |d_i| \le s`, where R_a(m) is the curve of one value that
    moves by m (`laplace_curve`).

    Proof. With q = e^(-1/b) and x = q^(2a - 1), the mean over all outcomes for one value that moves by m is

    .. math:: e^{(a-1) R_a(m)} = \frac{1-q}{1+q} \Bigl[ \Bigl(\frac{1}{1-q} + \frac{x}{1-x}\Bigr) q^{-(a-1) m}
       + \Bigl(\frac{1}{1-q} - \frac{1}{1-x}\Bigr) q^{a m} \Bigr]

    Both factors are at least 0, because x <= q for orders a >= 1. The logarithm of a sum of exponentials in m is
    convex, so R_a is convex in m, and R_a(0) = 0. The noise of the cells is independent: the curve of the vector is the
    sum of R_a(|d_i|). A sum of equal convex functions is largest where the moves are most unequal: u in k cells, r in
    another.

    Source: additivity of the Rényi divergence of independent cells ([M] Proposition 1); Karamata's inequality for
    convex functions.

    Args:
        sensitivity: L1 sensitivity s of the vector, integer >= 1 [unit of the values].
        largest_move: largest move u of one cell, integer >= 1 [unit of the values].
        scale: noise scale b of each cell, > 0 [unit of the values].

    Returns:
        Shape (64,), rounded up [1e-12 epsilon]; at most `laplace_curve(sensitivity, scale)`.

    Raises:
        ChainError: a move below 1; or as `laplace_curve`.

    References:
        [M] https://doi.org/10.1109/CSF.2017.11

    >>> whole, parts = laplace_curve(100, 1000.0), vector_curve(100, largest_move=4, scale=1000.0)
    >>> bool((parts <= whole).all()), round(float(whole[0] / parts[0]))  # 25 moves of a 25th
    (True, 24)
    """
    if largest_move < 1:
        raise ChainError(f"a cell moves by {largest_move}: must be at least 1")
    single = laplace_curve(sensitivity, scale)
    number, rest = divmod(sensitivity, largest_move)
    if number == 0 or (number, rest) == (1, 0):
        return single
    parts = multiply(laplace_curve(largest_move, scale), number)
    if rest:
        parts = compose(np.array([parts, laplace_curve(rest, scale)]))
    return np.minimum(parts, single)
