r"""Reversible fit: the chain in detailed balance under which the counted transitions are most likely.

Example: the counts [[0, 3, 1], [1, 0, 3], [3, 1, 0]] go round the states. Their reversible fit moves to either other
state with probability 1/2.

[A] eq. 55 bounds Delta(t) of reversible chains only, and counted chains never are exactly. The fit is the nearest chain
to which it applies.

Decisions:

* The usual iteration X = S / (N(x)/w(x) + N(y)/w(y)) takes hundreds of rounds. Its fixed point minimises a convex
  function of log w, so Newton's method takes about six, with steps short enough to descend always (Bach 2010).
* A household stops when its own step is small, so its fit does not depend on the others in its stack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.mixing import spectral_bound
from agedp_data.markov.transitions import stationary, transition_matrix

_SMALL_STEP = 1e-8  # the error after a Newton step is about its square
_MAX_ITERATIONS = 100


def reversible_transition_matrix(counts: ArrayLike) -> Floats:
    r"""Maximum-likelihood transition matrix under detailed balance.

    Use it where a bound needs a reversible chain. Two states are always in balance, so their fit is N(x, y) / N(x).

    .. math:: P(x, y) = \frac{X(x, y)}{w(x)}, \qquad X(x, y) = \frac{N(x, y) + N(y, x)}{N(x) / w(x) + N(y) / w(y)},
        \qquad w(x) = \sum_y X(x, y), \quad N(x) = \sum_y N(x, y)

    Source: maximises the likelihood of the counts under pi(x) P(x, y) = pi(y) P(y, x); X is symmetric, so P is in
    detailed balance with pi in proportion to w.

    Args:
        counts: transitions, shape (..., k, k), row: from, column: to, >= 0 [transitions].

    Returns:
        Shape (..., k, k), rows sum to 1 [-]; NaN in rows without visits.

    Raises:
        ChainError: counts of a wrong kind, or visited states that do not all lead to each other.

    References:
        Trendelkamp-Schroer, Wu, Paul, Noe: Estimation and uncertainty of reversible Markov models. J. Chem. Phys. 143,
        174101, 2015. https://doi.org/10.1063/1.4934536
        Bach: Self-concordant analysis for logistic regression. Electron. J. Statist. 4, 2010.
        https://doi.org/10.1214/09-EJS521

    >>> reversible_transition_matrix([[0, 3, 1], [1, 0, 3], [3, 1, 0]]).round(12).tolist()  # S = 4 off the diagonal
    [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    """
    plain = transition_matrix(counts, smoothing=0)
    number: Floats = np.asarray(counts, dtype=np.float64)
    left, entered = number.sum(axis=-1), number.sum(axis=-2)
    if not ((stationary(plain) > 0) == (left + entered > 0)).all():
        raise ChainError("counts whose visited states do not all lead to each other have no reversible fit")
    k = number.shape[-1]
    symmetric = (number + np.swapaxes(number, -1, -2)).reshape(-1, k, k)
    ratio = np.exp(_log_ratios(symmetric, left.reshape(-1, k)))  # N(x) / w(x)
    flow = symmetric / (ratio[:, :, None] + ratio[:, None, :])
    total = flow.sum(axis=-1, keepdims=True)
    fit = np.divide(flow, total, out=np.full_like(flow, np.nan), where=total > 0)
    return np.asarray(fit.reshape(number.shape))


def reversible_fit_bound(counts: ArrayLike, steps: ArrayLike) -> Floats:
    r"""Bound of [A] eq. 55 for the reversible fit of counts: indicative, since the counted chain is another one.

    Use it to compare a household with the paper's bound; Delta(t) of the counted chain itself may exceed it, so it
    never sets a budget.

    .. math:: \min\Bigl(1, \max_x \sqrt{\frac{1 - \pi(x)}{\pi(x)}}\ \lambda_*^t\Bigr)

    with pi and lambda_* of `reversible_transition_matrix`.

    Source: [A] eq. 55, `spectral_bound`.

    Args:
        counts: transitions, shape (..., k, k), row: from, column: to, >= 0 [transitions].
        steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and 1 [-].

    Raises:
        ChainError: as `reversible_transition_matrix`, or steps that are not integers >= 0.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> reversible_fit_bound([[0, 3, 1], [1, 0, 3], [3, 1, 0]], [2]).round(6).tolist()  # sqrt(2) / 4
    [0.353553]
    """
    return spectral_bound(reversible_transition_matrix(counts), steps)


def _log_ratios(symmetric: Floats, left: Floats) -> Floats:
    """Return log N(x)/w(x), shape (h, k): the minimum of a convex function, by Newton's method from w = N."""
    ratio = np.zeros_like(left)
    active, unvisited = np.arange(len(left)), left == 0
    diagonal = np.arange(left.shape[1])
    for _ in range(_MAX_ITERATIONS):
        both, own = symmetric[active], ratio[active]
        share = 1 / (1 + np.exp(own[:, None, :] - own[:, :, None]))  # of x in the flow between x and y
        gradient = (both * share).sum(axis=-1) - left[active]
        weight = both * share * np.swapaxes(share, -1, -2)
        weight[:, diagonal, diagonal] = 0.0
        hessian = -weight
        hessian[:, diagonal, diagonal] = weight.sum(axis=-1) + unvisited[active]
        visited = (~unvisited[active]).astype(np.float64)
        # The function does not change if all ratios are multiplied: this direction is held.
        scale = weight.sum(axis=(-1, -2))[:, None, None] + 1.0
        hessian += scale * visited[:, :, None] * visited[:, None, :]
        step = np.linalg.solve(hessian, -gradient[..., None])[..., 0]
        spread = step.max(axis=-1, initial=0.0) - step.min(axis=-1, initial=0.0)
        damping = np.where(spread > 0, np.log1p(spread) / np.where(spread > 0, spread, 1.0), 1.0)
        ratio[active] = own + damping[:, None] * step
        active = active[spread > _SMALL_STEP]
        if not active.size:
            return ratio
    raise ChainError("the reversible fit of some counts does not converge")
