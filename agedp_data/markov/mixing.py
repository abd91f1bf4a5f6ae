"""How fast chains mix: exact total variation Delta(t), spectral gap, and upper bounds of Delta(t) by the spectrum.

Example: for P = [[.9, .1], [.1, .9]] the second eigenvalue is .8, the spectral gap .2, and Delta(t) = .8^t.

Decisions:

* All values are those of the REVERSED chain: ageing and backward leakage lead from the present back to the reading.
  The forward kernel understates the risk of non-reversible chains (docs/papers.md).
* Bounds carry an upward slack (5e-15 on the eigenvalue or singular value, 1e-15 on the result), so that rounding
  never puts a bound below the exact Delta(t).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats, Mask, filled_kernel, step_list
from agedp_data.errors import ChainError
from agedp_data.markov.transitions import ascending_powers, recurrent_part, reverse, stationary, transition_matrix

MIXING_NAMES = {
    "spectral_gap": "spectral gap",
    "total_variation": "total variation",
    "spectral": "spectral-gap bound for reversible chains (eq. 55 of Zhang et al. 2024)",
    "reversible_fit": "spectral-gap bound of the reversible fit (indicative)",
    "reversibilised": "spectral-gap bound of the reversibilised chain (any chain)",
}
"""What the measures of mixing are called wherever people read of them; keys as in the model's folder."""

REVERSIBLE_TOLERANCE = 1e-9
_SPECTRAL_SLACK = 5e-15
_RESULT_SLACK = 1e-15
_CHUNK = 512


def total_variation(transition: ArrayLike, steps: ArrayLike) -> Floats:
    r"""Delta(t): largest total variation between two rows of the t-step reversed chain, computed exactly.

    The decay of dependence on an old reading; `leakage_from_total_variation` makes a loss of it ([A] Theorem 1).

    .. math:: \Delta(t) = \max_{x, x'} \frac{1}{2} \sum_y |\hat P^t(x, y) - \hat P^t(x', y)|

    Source: [A] eq. 12. Erratum: the forward kernel in place of the reversed one is unsafe. For the 12-state chain
    P(i, 0) = P(i, min(i + 1, 11)) = 1/2 it gives .5 and .25 at t = 1 and 2; the reversed chain has 1 and 1.

    Args:
        transition: forward transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and 1 [-]; 0 for a single visited state.

    Raises:
        ChainError: several recurrent classes, no state with data, or steps that are not integers >= 0.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> total_variation([[0.9, 0.1], [0.1, 0.9]], [0, 1, 2]).round(12).tolist()
    [1.0, 0.8, 0.64]
    """
    return total_variation_forward(reverse(transition), steps)


def total_variation_forward(transition: ArrayLike, steps: ArrayLike) -> Floats:
    r"""Largest total variation between two rows of the t-step chain as it is passed, without reversing it.

    Use it for chains that are reversed already, and for forward leakage.

    .. math:: \max_{x, x'} \frac{1}{2} \sum_y |P^t(x, y) - P^t(x', y)|

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and 1 [-].

    Raises:
        ChainError: no state that can be followed, or steps that are not integers >= 0.

    References:
        [A] eq. 12 with the kernel P in place of the reversed one. https://doi.org/10.1109/TIT.2023.3340147

    >>> total_variation_forward([[1.0, 0.0], [0.5, 0.5]], [1, 2]).tolist()  # state 0 is absorbing: .5^t
    [0.5, 0.25]
    """
    return _per_step(steps, np.asarray(transition, dtype=np.float64), max_total_variation)


def max_total_variation(kernel: ArrayLike) -> Floats:
    r"""Largest total variation between two rows of a kernel. Rows of NaN are left out.

    .. math:: \max_{x, x'} \frac{1}{2} \sum_y |K(x, y) - K(x', y)|

    Args:
        kernel: shape (..., k, n), rows sum to 1 or are NaN [-]; rectangular kernels are permitted.

    Returns:
        Shape (...), between 0 and 1 [-].

    Raises:
        ChainError: a matrix whose rows are not probabilities, or no row with data.

    References:
        [A] eq. 12 for one kernel. https://doi.org/10.1109/TIT.2023.3340147

    >>> max_total_variation([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]]).round(12).item()  # (.5 + .5 + 0) / 2
    0.5
    """
    rows = filled_kernel(kernel)
    stack = rows.reshape((-1, *rows.shape[-2:]))
    result = np.zeros(stack.shape[0])
    for start in range(0, stack.shape[0], _CHUNK):
        batch = stack[start : start + _CHUNK]
        for row in range(batch.shape[1]):
            distance = np.abs(batch[:, row, None, :] - batch).sum(axis=-1).max(axis=-1) / 2
            result[start : start + _CHUNK] = np.maximum(result[start : start + _CHUNK], distance)
    return np.minimum(result, 1.0).reshape(rows.shape[:-2])


def spectral_bound(transition: ArrayLike, steps: ArrayLike) -> Floats:
    r"""Upper bound of Delta(t) for reversible chains by the second largest eigenvalue modulus.

    .. math:: \Delta(t) \le \min\Bigl(1, \max_x \sqrt{\frac{1 - \pi(x)}{\pi(x)}}\ \lambda_*^t\Bigr)

    Source: [A] eq. 55, from Proposition 5. Erratum: for reversible chains only, which household chains are not.

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and 1 [-].

    Raises:
        ChainError: a chain not reversible (`is_reversible`), several recurrent classes, or steps not integers >= 0.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> spectral_bound([[0.9, 0.1], [0.1, 0.9]], [1, 2]).round(12).tolist()  # pi = (1/2, 1/2): factor 1
    [0.8, 0.64]
    """
    if not is_reversible(transition).all():
        raise ChainError("eq. 55 holds for reversible chains only; use the reversibilised bound or the exact value")
    distribution = stationary(transition)
    _, smallest = _two_smallest(distribution)
    rate = np.minimum(_second_eigenvalue(transition, distribution) + _SPECTRAL_SLACK, 1.0)
    factor = np.sqrt((1 - smallest) / smallest)
    step = step_list(steps, "steps")
    return _clip_bound(factor[..., None] * rate[..., None] ** step, distribution[..., None, :])


def reversibilised_bound(transition: ArrayLike, steps: ArrayLike) -> Floats:
    r"""Upper bound of Delta(t) for every chain: spectral-gap bound of the reversibilised t-step chain.

    .. math:: \Delta(t) \le \min\Bigl(1, \frac{1}{2} \sqrt{\frac{1}{\pi_{(1)}} + \frac{1}{\pi_{(2)}}} \,
        \sigma_2(D^{1/2} P^t D^{-1/2})\Bigr), \qquad D = \mathrm{diag}(\pi)

    with pi_(1), pi_(2) the two smallest positive stationary probabilities. A chain and its reverse have the same
    singular values, so the bound holds for both.

    Source: Fill's bound, applied to P^t. It replaces [A] eq. 55 where the chain is not reversible.

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and 1 [-].

    Raises:
        ChainError: several recurrent classes, no state with data, or steps that are not integers >= 0.

    References:
        Fill: Eigenvalue Bounds on Convergence to Stationarity for Nonreversible Markov Chains. Ann. Appl. Probab. 1(1),
        1991. https://doi.org/10.1214/aoap/1177005981

    >>> reversibilised_bound([[0.9, 0.1], [0.1, 0.9]], [1, 2]).round(12).tolist()  # 1/2 sqrt(2 + 2) = 1
    [0.8, 0.64]
    """
    distribution = stationary(transition)
    chain = np.asarray(transition, dtype=np.float64)
    return _per_step(steps, chain, lambda kernel: fill_bound(second_singular_value(kernel, distribution), distribution))


def fill_bound(sigma: ArrayLike, distribution: Floats) -> Floats:
    r"""Fill's bound of the total variation from a second singular value.

    .. math:: \min\Bigl(1, \frac{1}{2} \sqrt{1 / \pi_{(1)} + 1 / \pi_{(2)}}\ \sigma_2\Bigr)

    Args:
        sigma: second singular values, shape (...), between 0 and 1 [-].
        distribution: stationary distributions, shape (..., k) [-].

    Returns:
        Shape (...), between 0 and 1 [-]; 0 for a single visited state.

    References:
        Fill 1991, as in `reversibilised_bound`. https://doi.org/10.1214/aoap/1177005981

    >>> fill_bound(0.25, np.array([0.5, 0.5])).round(12).item()  # 1/2 sqrt(2 + 2) = 1
    0.25
    """
    second, smallest = _two_smallest(distribution)
    value = np.minimum(np.asarray(sigma) + _SPECTRAL_SLACK, 1.0)
    return _clip_bound(np.sqrt(1 / smallest + 1 / second) / 2 * value, distribution)


def second_singular_value(kernel: Floats, distribution: Floats) -> Floats:
    r"""Second singular value of kernels in symmetrised form.

    .. math:: \sigma_2(D^{1/2} P^t D^{-1/2}), \qquad D = \mathrm{diag}(\pi)

    Args:
        kernel: kernels over t steps, shape (..., k, k) [-].
        distribution: their stationary distributions, shape (..., k) [-].

    Returns:
        Shape (...), between 0 and 1 up to rounding [-].

    References:
        Fill 1991, as in `reversibilised_bound`. https://doi.org/10.1214/aoap/1177005981

    >>> second_singular_value(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5])).round(12).item()
    0.8
    """
    return np.asarray(np.linalg.svd(deflated_kernel(kernel, distribution), compute_uv=False)[..., 0])


def deflated_kernel(kernel: Floats, distribution: Floats) -> Floats:
    r"""Symmetrised kernel without its singular value 1 (vectors sqrt(pi)); the spectral norm of the result is sigma_2.

    .. math:: D^{1/2} P^t D^{-1/2} - \sqrt{\pi} \sqrt{\pi}^T

    Args:
        kernel: kernels over t steps, shape (..., k, k) [-].
        distribution: their stationary distributions, shape (..., k) [-].

    Returns:
        Shape (..., k, k) [-].

    References:
        Fill 1991, as in `reversibilised_bound`. https://doi.org/10.1214/aoap/1177005981

    >>> deflated_kernel(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5])).round(12).tolist()  # P - 1/2
    [[0.4, -0.4], [-0.4, 0.4]]
    """
    return _symmetrised(np.nan_to_num(kernel), distribution) - np.sqrt(
        distribution[..., :, None] * distribution[..., None, :]
    )


def spectral_gap(transition: ArrayLike) -> Floats:
    r"""Spectral gap: 1 for a single visited state or independent readings, 0 for a periodic chain.

    .. math:: \gamma = 1 - \lambda_*, \qquad \lambda_* = \max_{i \ge 2} |\lambda_i|

    Source: [A] section VI-B, after eq. 55. Erratum: eq. 57 bounds lambda_1, not lambda_* (counter-example: period 2).

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].

    Returns:
        Shape (...), between 0 and 1 [-].

    Raises:
        ChainError: several recurrent classes, or no state at all.

    References:
        Levin, Peres: Markov Chains and Mixing Times, 2nd ed., chapter 12, 2017. https://doi.org/10.1090/mbk/107

    >>> round(float(spectral_gap([[0.9, 0.1], [0.1, 0.9]])), 12)
    0.2
    """
    return np.clip(1 - _second_eigenvalue(transition, stationary(transition)), 0.0, 1.0)


def is_reversible(transition: ArrayLike) -> Mask:
    r"""Whether a chain satisfies detailed balance, within 1e-9 of the larger side.

    .. math:: \pi(x) P(x, y) = \pi(y) P(y, x)

    Args:
        transition: transition matrices, shape (..., k, k), rows sum to 1 or are NaN [-].

    Returns:
        Shape (...) bool.

    Raises:
        ChainError: several recurrent classes, or no state at all.

    References:
        [A] eq. 55 holds under this condition. https://doi.org/10.1109/TIT.2023.3340147

    >>> bool(is_reversible([[0.9, 0.1], [0.3, 0.7]])), bool(is_reversible([[0, 1, 0], [0, 0, 1], [1, 0, 0]]))
    (True, False)
    """
    distribution = stationary(transition)
    flow = distribution[..., :, None] * recurrent_part(transition)[0]
    reversed_flow = np.swapaxes(flow, -1, -2)
    is_balanced = np.abs(flow - reversed_flow) <= REVERSIBLE_TOLERANCE * np.maximum(flow, reversed_flow)
    return np.asarray(is_balanced.all(axis=(-1, -2)))


def _per_step(steps: ArrayLike, chain: Floats, measure: Callable[[Floats], Floats]) -> Floats:
    """Return a measure of each power of the chain: (..., T) in the order of the steps."""
    step = step_list(steps, "steps")
    result = np.empty((*chain.shape[:-2], step.size))
    for t, kernel in ascending_powers(chain, step):
        result[..., step == t] = np.asarray(measure(kernel))[..., None]
    return result


def _symmetrised(matrix: Floats, distribution: Floats) -> Floats:
    """Return D^1/2 M D^-1/2 on the states that pi visits, zeros elsewhere."""
    root = np.sqrt(distribution)
    inverse = np.where(distribution > 0, 1 / np.where(distribution > 0, root, 1.0), 0.0)
    return root[..., :, None] * matrix * inverse[..., None, :]


def _second_eigenvalue(transition: ArrayLike, distribution: Floats) -> Floats:
    matrix = _symmetrised(recurrent_part(transition)[0], distribution)
    # The eigenvalue one removed: its left and right vector is sqrt(pi) in this form.
    matrix = matrix - np.sqrt(distribution[..., :, None] * distribution[..., None, :])
    modulus: Floats = np.abs(np.linalg.eigvals(matrix)).max(axis=-1)
    return np.minimum(modulus, 1.0)


def _two_smallest(distribution: Floats) -> tuple[Floats, Floats]:
    """Return the second smallest and the smallest positive probability (1, 1 if there is one state alone)."""
    ranked = np.sort(np.where(distribution > 0, distribution, 1.0), axis=-1)
    return (ranked[..., 1] if distribution.shape[-1] > 1 else np.ones(distribution.shape[:-1])), ranked[..., 0]


def _clip_bound(bound: Floats, distribution: Floats) -> Floats:
    """Return the bound with its slack, at most one; 0 for a single visited state."""
    has_one_state = (distribution > 0).sum(axis=-1) == 1
    return np.where(has_one_state, 0.0, np.minimum(bound + _RESULT_SLACK, 1.0))


# --------------------------------------------------------------------------------------------------
# Reversible fit: the chain in detailed balance under which the counted transitions are most likely.
#
# Example: the counts [[0, 3, 1], [1, 0, 3], [3, 1, 0]] go round the states. Their reversible fit moves to either other
# state with probability 1/2.
#
# [A] eq. 55 bounds Delta(t) of reversible chains only, and counted chains never are exactly. The fit is the nearest
# chain to which it applies.
#
# Decisions:
#
# * The usual iteration X = S / (N(x)/w(x) + N(y)/w(y)) takes hundreds of rounds. Its fixed point minimises a convex
#   function of log w, so Newton's method takes about six, with steps short enough to descend always (Bach 2010).
# * A household stops when its own step is small, so its fit does not depend on the others in its stack.
# --------------------------------------------------------------------------------------------------

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
