"""A local optimum of the mean noise scale under a bound of the total leakage (MATHS 4, budgets (iv)).

The bound is not convex, so a minimum is local; whoever calls starts from the best plan known and keeps the better.
A plan is described by the logarithms of its losses at knots, close together at both ends and twice as far apart with
each further one, linear between them: optimal plans fall off from both ends towards a plateau. That is thirty numbers
for a year of releases.
"""

from __future__ import annotations

import numpy as np

from agedp_data.privacy.kernel import Floats
from agedp_data.privacy.recursion import BudgetRecursion

_STEP = 1e-6  # of the finite differences, in logarithms
_ITERATIONS = 60


def improved(course: BudgetRecursion, start: Floats, alpha: float) -> Floats:
    """Return a plan of smaller mean noise scale near `start`, its leakage within alpha but for the solver's tolerance.

    Sequential quadratic programming with one bound for each release; all differences are one call of the course.
    Shapes: (T,) -> (T,). Units: [-].
    """
    from scipy.optimize import NonlinearConstraint, minimize  # noqa: PLC0415  (as in `temporal_budgets`)

    weights = interpolation(start.size)
    knots = weights.argmax(axis=0)
    noise_of_start = float((1 / start).mean())
    # No loss of a better plan lies outside, wherever the solver looks (it may look far away, or nowhere: NaN).
    least, most = -np.log(start.size * noise_of_start), np.log(alpha)

    def plans(points: Floats) -> Floats:
        inside = np.clip(np.nan_to_num(points, nan=most), least, most)
        return np.asarray(np.exp(inside @ weights.T))

    def leakage(points: Floats) -> Floats:
        losses = plans(points)
        # Axes for the households between those of the points and the releases.
        households = (1,) * np.ndim(course.limit(0.0))
        total = course.leak(losses.reshape(*losses.shape[:-1], *households, losses.shape[-1])).total
        return np.asarray(total.max(axis=tuple(range(losses.ndim - 1, total.ndim - 1)))) / alpha

    def slopes(point: Floats) -> Floats:
        near = leakage(np.vstack((point, point + _STEP * np.eye(point.size))))
        return np.asarray((near[1:] - near[0]).T / _STEP)

    def noise(point: Floats) -> float:
        return float((1 / plans(point)).mean()) / noise_of_start

    def gradient(point: Floats) -> Floats:
        return np.asarray(-(1 / plans(point)) @ weights / (start.size * noise_of_start))

    found = minimize(
        noise,
        np.log(start)[knots],
        jac=gradient,
        constraints=NonlinearConstraint(leakage, -np.inf, 1.0, jac=slopes),
        method="SLSQP",
        options={"maxiter": _ITERATIONS, "ftol": 1e-7},
    )
    return plans(np.asarray(found.x, dtype=np.float64))


def interpolation(count: int) -> Floats:
    """Return the weight of each knot in each of so many losses: (T, knots).

    >>> interpolation(8).argmax(axis=0).tolist(), interpolation(400).shape
    ([0, 1, 2, 3, 4, 5, 6, 7], (400, 30))
    """
    near = [0, 1, 2, 3, 4, 6, 8]
    while near[-1] < count / 2:
        near.append(near[-1] + near[-3])
    ends = [place for place in near if place < count / 2]
    knots = np.unique([*ends, *(count - 1 - place for place in ends)])
    weights = [np.interp(np.arange(count), knots, unit) for unit in np.eye(knots.size)]
    return np.stack(weights, axis=-1)
