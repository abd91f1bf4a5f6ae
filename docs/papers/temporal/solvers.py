"""What Figure 6 compares: [T] Algorithm 1 as printed but for overflow, and linear programmes by HiGHS."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from docs.papers.results import Floats


def algorithm_1(kernel: Floats, loss: float) -> float:
    """Return L(loss) by [T] Algorithm 1: for each row all others at once, columns dropped until none is too small.

    Numerator and denominator scaled by e^-loss, so that e^loss does not overflow (docs/papers.md).
    """
    scale, best = np.exp(-loss), 1.0
    for row in kernel:
        inside = row > kernel
        while True:
            over = (row * inside).sum(axis=1) * (1 - scale) + scale
            under = (kernel * inside).sum(axis=1) * (1 - scale) + scale
            drop = inside & (row * under[:, None] < kernel * over[:, None])
            if not drop.any():
                break
            inside &= ~drop
        best = max(best, float((over / under).max()))
    return float(np.log(best))


def programme(q: Floats, d: Floats, loss: float) -> float:
    """Return L(loss) of one ordered pair of rows by HiGHS.

    ln of max q.x/d.x over 1 <= x_j <= e^loss, made linear by Charnes and Cooper: d.y = 1, m <= y_j <= e^loss m.
    """
    n = q.size
    box = np.block([[-np.eye(n), np.ones((n, 1))], [np.eye(n), -np.exp(loss) * np.ones((n, 1))]])
    solution = linprog(
        np.append(-q, 0.0), A_ub=box, b_ub=np.zeros(2 * n), A_eq=np.append(d, 0.0)[None], b_eq=[1.0], method="highs"
    )
    return float(np.log(-float(solution.fun or np.nan)))
