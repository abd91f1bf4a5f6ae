"""Local optimum of the mean noise scale under a bound on the total leakage.

The bound is not convex, so a minimum is local. Start from the best known plan and keep the better of both. A plan is
described by the logarithms of its losses at knots: close together at both ends, with doubling distances, linear between
them, because optimal plans fall from both ends towards a plateau. A year of releases has thirty knots.
"""

from __future__ import annotations

import numpy as np

from agedp_data.accounting.temporal_recursion import Recursion
from agedp_data.arrays import Floats

_STEP = 1e-6  # of the finite differences, in logarithms
_ITERATIONS = 60


def local_optimum(recursion: Recursion[Floats], start: Floats, alpha: float) -> Floats:
    r"""Plan of smaller mean noise scale near `start` whose leakage is within alpha, up to the solver's tolerance.

    Use it to improve a feasible plan, then check its leakage again (`allocate`).

    .. math:: \min \frac1T \sum_t \frac{1}{\varepsilon_t} \quad \text{s.t.} \quad TPL_t \le \alpha \text{ for all } t

    Source: this project; [T] section 5 gives feasible plans only (`allocate`). Sequential quadratic programming with
    one constraint per release; all finite differences are one call of the recursion.

    Args:
        recursion: leakage of a series of losses, for all households.
        start: feasible plan, shape (T,), > 0 [epsilon].
        alpha: bound on the total leakage, > 0 [epsilon].

    Returns:
        Shape (T,) [epsilon].

    References:
        Kraft: A Software Package for Sequential Quadratic Programming. DFVLR-FB 88-28, 1988; as implemented in SciPy,
        https://doi.org/10.1038/s41592-019-0686-2
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.accounting.temporal_allocation import temporal_recursion
    >>> copy = temporal_recursion(np.eye(2), None)  # TPL_2 = e_1 + e_2
    >>> local_optimum(copy, np.array([0.25, 0.75]), 1.0).round(3).tolist()
    [0.5, 0.5]
    """
    from scipy.optimize import NonlinearConstraint, minimize  # noqa: PLC0415  (slow to import)

    weights = interpolation(start.size)
    knots = weights.argmax(axis=0)
    noise_of_start = float((1 / start).mean())
    # No loss of a better plan lies outside, wherever the solver looks (it may look far away, or nowhere: NaN).
    log_smallest, log_alpha = -np.log(start.size * noise_of_start), np.log(alpha)

    def plans(points: Floats) -> Floats:
        clipped = np.clip(np.nan_to_num(points, nan=log_alpha), log_smallest, log_alpha)
        return np.asarray(np.exp(clipped @ weights.T))

    def leakage(points: Floats) -> Floats:
        losses = plans(points)
        # Axes for the households between those of the points and the releases.
        households = (1,) * np.ndim(recursion.total_supremum(0.0))
        total = recursion.leakage_totals(losses.reshape(*losses.shape[:-1], *households, losses.shape[-1])).total
        return np.asarray(total.max(axis=tuple(range(losses.ndim - 1, total.ndim - 1)))) / alpha

    def slopes(point: Floats) -> Floats:
        leakages = leakage(np.vstack((point, point + _STEP * np.eye(point.size))))
        return np.asarray((leakages[1:] - leakages[0]).T / _STEP)

    def noise(point: Floats) -> float:
        return float((1 / plans(point)).mean()) / noise_of_start

    def gradient(point: Floats) -> Floats:
        return np.asarray(-(1 / plans(point)) @ weights / (start.size * noise_of_start))

    optimum = minimize(
        noise,
        np.log(start)[knots],
        jac=gradient,
        constraints=NonlinearConstraint(leakage, -np.inf, 1.0, jac=slopes),
        method="SLSQP",
        options={"maxiter": _ITERATIONS, "ftol": 1e-7},
    )
    return plans(np.asarray(optimum.x, dtype=np.float64))


def interpolation(count: int) -> Floats:
    r"""Weight of each knot in each loss of a plan.

    Use it to describe a long plan by few numbers: plan = exp(weights @ knot values).

    .. math:: \ln \varepsilon_t = \sum_i w_{ti} y_i, \qquad \sum_i w_{ti} = 1

    Source: piecewise linear interpolation in the logarithm; this project.

    Args:
        count: T, number of losses.

    Returns:
        Shape (T, knots) [-].

    References:
        numpy.interp, https://doi.org/10.1038/s41586-020-2649-2

    >>> interpolation(8).argmax(axis=0).tolist(), interpolation(400).shape
    ([0, 1, 2, 3, 4, 5, 6, 7], (400, 30))
    """
    offsets = [0, 1, 2, 3, 4, 6, 8]
    while offsets[-1] < count / 2:
        offsets.append(offsets[-1] + offsets[-3])
    first_half = [offset for offset in offsets if offset < count / 2]
    knots = np.unique([*first_half, *(count - 1 - offset for offset in first_half)])
    weights = [np.interp(np.arange(count), knots, unit) for unit in np.eye(knots.size)]
    return np.stack(weights, axis=-1)
