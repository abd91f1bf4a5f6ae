"""How fast chains forget: the exact total variation Delta(t) and the bounds that need only a spectrum.

All figures are those of the REVERSED chain: ageing and backward leakage go from the present back to what was
read ([A] (12) with the forward kernel is unsafe for chains that are not reversible, MATHS 9). Bounds carry an
upward slack (5e-15 on the eigen- or singular value, 1e-15 on the result) so that rounding never puts one
below the exact Delta.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.sampling import sampling_bound
from agedp_data.chains.transitions import ascending_powers, recurrent_part, reverse, stationary
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, Mask, checked_steps, filled

__all__ = [
    "MIXING_NAMES",
    "deflated_kernel",
    "fill_bound",
    "is_reversible",
    "max_total_variation",
    "reversibilised_bound",
    "sampling_bound",
    "second_singular_value",
    "spectral_bound",
    "spectral_gap",
    "total_variation",
    "total_variation_forward",
]

MIXING_NAMES = {
    "spectral_gap": "spectral gap",
    "total_variation": "total variation",
    "spectral": "the paper's spectral bound (reversible chains)",
    "reversibilised": "spectral-gap bound of the reversibilised chain (every chain)",
}
"""What the measures of mixing are called wherever people read of them; keys as in the model's public part."""

REVERSIBLE_TOLERANCE = 1e-9
_SPECTRAL_SLACK = 5e-15
_RESULT_SLACK = 1e-15
_CHUNK = 512


def total_variation(transition: ArrayLike, steps: ArrayLike) -> Floats:
    """Return Delta(t): the largest total variation between two rows of the t-step reversed chain, exactly.

    Shapes: (..., k, k), (T,) int -> (..., T). Units: [steps] -> [-]. 0 for a single visited state.

    Raises:
        ChainError: several recurrent classes, no state with data, or steps that are no whole numbers.

    References: [A] eq. 12, with the reversed chain.

    >>> total_variation([[0.9, 0.1], [0.1, 0.9]], [0, 1, 2]).round(12).tolist()
    [1.0, 0.8, 0.64]
    """
    return total_variation_forward(reverse(transition), steps)


def total_variation_forward(transition: ArrayLike, steps: ArrayLike) -> Floats:
    """Return the same of the chain as given, not reversed: for chains that are reversed already, or look ahead."""
    return _per_step(steps, np.asarray(transition, dtype=np.float64), max_total_variation)


def max_total_variation(kernel: ArrayLike) -> Floats:
    """Return the largest total variation between two rows: (..., k, n) -> (...). Rows of NaN are left out."""
    rows = filled(kernel)
    stack = rows.reshape((-1, *rows.shape[-2:]))
    result = np.zeros(stack.shape[0])
    for start in range(0, stack.shape[0], _CHUNK):
        batch = stack[start : start + _CHUNK]
        for row in range(batch.shape[1]):
            distance = np.abs(batch[:, row, None, :] - batch).sum(axis=-1).max(axis=-1) / 2
            result[start : start + _CHUNK] = np.maximum(result[start : start + _CHUNK], distance)
    return np.minimum(result, 1.0).reshape(rows.shape[:-2])


def spectral_bound(transition: ArrayLike, steps: ArrayLike) -> Floats:
    """Return min(1, max sqrt((1 - pi)/pi) lambda_*^t), an upper bound of Delta(t) for reversible chains.

    Shapes: (..., k, k), (T,) int -> (..., T). Units: [steps] -> [-].

    Raises:
        ChainError: a chain that is not reversible (see `is_reversible`), or as `total_variation`.

    References: [A] eq. 55, which holds for reversible chains only.

    >>> spectral_bound([[0.9, 0.1], [0.1, 0.9]], [1, 2]).round(12).tolist()
    [0.8, 0.64]
    """
    if not is_reversible(transition).all():
        raise ChainError("eq. 55 holds for reversible chains only; use the reversibilised bound or the exact value")
    distribution = stationary(transition)
    _, smallest = _two_smallest(distribution)
    rate = np.minimum(_second_eigenvalue(transition, distribution) + _SPECTRAL_SLACK, 1.0)
    factor = np.sqrt((1 - smallest) / smallest)
    step = _checked_step_list(steps)
    return _clip_bound(factor[..., None] * rate[..., None] ** step, distribution[..., None, :])


def reversibilised_bound(transition: ArrayLike, steps: ArrayLike) -> Floats:
    """Return min(1, 1/2 sqrt(1/pi_(1) + 1/pi_(2)) sigma_2(D^1/2 P^t D^-1/2)), an upper bound of Delta(t).

    D = diag(pi), pi_(1) and pi_(2) the two smallest visited. Valid for every chain and, as both have the same
    singular values, for the forward chain as well. Shapes: (..., k, k), (T,) int -> (..., T). Units: [steps]
    -> [-].

    Raises:
        ChainError: as `total_variation`.

    References: Fill, Annals of Applied Probability 1991, applied to P^t.

    >>> reversibilised_bound([[0.9, 0.1], [0.1, 0.9]], [1, 2]).round(12).tolist()
    [0.8, 0.64]
    """
    distribution = stationary(transition)
    chain = np.asarray(transition, dtype=np.float64)
    return _per_step(steps, chain, lambda kernel: fill_bound(second_singular_value(kernel, distribution), distribution))


def fill_bound(sigma: ArrayLike, distribution: Floats) -> Floats:
    """Return min(1, 1/2 sqrt(1/pi_(1) + 1/pi_(2)) sigma) for singular values (...) and laws (..., k)."""
    second, smallest = _two_smallest(distribution)
    value = np.minimum(np.asarray(sigma) + _SPECTRAL_SLACK, 1.0)
    return _clip_bound(np.sqrt(1 / smallest + 1 / second) / 2 * value, distribution)


def second_singular_value(kernel: Floats, distribution: Floats) -> Floats:
    """Return sigma_2(D^1/2 P^t D^-1/2) of kernels (..., k, k) = P^t with stationary laws (..., k)."""
    return np.asarray(np.linalg.svd(deflated_kernel(kernel, distribution), compute_uv=False)[..., 0])


def deflated_kernel(kernel: Floats, distribution: Floats) -> Floats:
    """Return D^1/2 P^t D^-1/2 without the pair of its singular value one; the norm of what remains is sigma_2."""
    return _symmetrised(np.nan_to_num(kernel), distribution) - np.sqrt(
        distribution[..., :, None] * distribution[..., None, :]
    )


def spectral_gap(transition: ArrayLike) -> Floats:
    """Return 1 - lambda_*, lambda_* the second largest modulus of an eigenvalue: (..., k, k) -> (...).

    1 for a single visited state, 0 for a periodic chain. Units: [-]. Raises ChainError as `stationary`.

    >>> round(float(spectral_gap([[0.9, 0.1], [0.1, 0.9]])), 12)
    0.2
    """
    return np.clip(1 - _second_eigenvalue(transition, stationary(transition)), 0.0, 1.0)


def is_reversible(transition: ArrayLike) -> Mask:
    """Return whether pi(x) P(x, y) = pi(y) P(y, x) within 1e-9 of the larger side: (..., k, k) -> (...)."""
    distribution = stationary(transition)
    flow = distribution[..., :, None] * recurrent_part(transition)[0]
    reversed_flow = np.swapaxes(flow, -1, -2)
    is_balanced = np.abs(flow - reversed_flow) <= REVERSIBLE_TOLERANCE * np.maximum(flow, reversed_flow)
    return np.asarray(is_balanced.all(axis=(-1, -2)))


def _per_step(steps: ArrayLike, chain: Floats, measure: Callable[[Floats], Floats]) -> Floats:
    """Return a figure of each power of the chain: (..., T) in the order of the steps."""
    step = _checked_step_list(steps)
    result = np.empty((*chain.shape[:-2], step.size))
    for t, kernel in ascending_powers(chain, step):
        result[..., step == t] = np.asarray(measure(kernel))[..., None]
    return result


def _checked_step_list(steps: ArrayLike) -> NDArray[np.int64]:
    step = checked_steps(steps)
    if step.ndim != 1:
        raise ChainError(f"steps are a list of whole numbers, got shape {step.shape}")
    return step


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
