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

from agedp_data.chains.transitions import closed, power, reverse, stationary
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, Mask, checked_steps, filled

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
    backward = reverse(transition)
    return _per_step(steps, backward.shape[:-2], lambda t: largest_distance(power(backward, t)))


def largest_distance(kernel: ArrayLike) -> Floats:
    """Return the largest total variation between two rows: (..., k, n) -> (...). Rows of NaN are left out."""
    rows = filled(kernel)
    stack = rows.reshape((-1, *rows.shape[-2:]))
    result = np.zeros(stack.shape[0])
    for start in range(0, stack.shape[0], _CHUNK):
        part = stack[start : start + _CHUNK]
        for row in range(part.shape[1]):
            apart = np.abs(part[:, row, None, :] - part).sum(axis=-1).max(axis=-1) / 2
            result[start : start + _CHUNK] = np.maximum(result[start : start + _CHUNK], apart)
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
    law = stationary(transition)
    _, smallest = _two_smallest(law)
    rate = np.minimum(_second_eigenvalue(transition, law) + _SPECTRAL_SLACK, 1.0)
    factor = np.sqrt((1 - smallest) / smallest)
    return _per_step(steps, rate.shape, lambda t: _clipped(factor * rate**t, law))


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
    law = stationary(transition)
    second, smallest = _two_smallest(law)
    factor = np.sqrt(1 / smallest + 1 / second) / 2

    def bound(t: int) -> Floats:
        # Minus the pair of the singular value one; the norm of what remains is sigma_2.
        matrix = _symmetrised(np.nan_to_num(power(transition, t)), law)
        matrix = matrix - np.sqrt(law[..., :, None] * law[..., None, :])
        sigma = np.linalg.svd(matrix, compute_uv=False)[..., 0]
        return _clipped(factor * np.minimum(sigma + _SPECTRAL_SLACK, 1.0), law)

    return _per_step(steps, law.shape[:-1], bound)


def spectral_gap(transition: ArrayLike) -> Floats:
    """Return 1 - lambda_*, lambda_* the second largest modulus of an eigenvalue: (..., k, k) -> (...).

    1 for a single visited state, 0 for a periodic chain. Units: [-]. Raises ChainError as `stationary`.

    >>> round(float(spectral_gap([[0.9, 0.1], [0.1, 0.9]])), 12)
    0.2
    """
    return np.clip(1 - _second_eigenvalue(transition, stationary(transition)), 0.0, 1.0)


def is_reversible(transition: ArrayLike) -> Mask:
    """Return whether pi(x) P(x, y) = pi(y) P(y, x) within 1e-9 of the larger side: (..., k, k) -> (...)."""
    law = stationary(transition)
    flow = law[..., :, None] * closed(transition)[0]
    back = np.swapaxes(flow, -1, -2)
    same = np.abs(flow - back) <= REVERSIBLE_TOLERANCE * np.maximum(flow, back)
    return np.asarray(same.all(axis=(-1, -2)))


def _per_step(steps: ArrayLike, shape: tuple[int, ...], figure: Callable[[int], Floats]) -> Floats:
    step: NDArray[np.int64] = checked_steps(steps)
    if step.ndim != 1:
        raise ChainError(f"steps are a list of whole numbers, got shape {step.shape}")
    result = np.empty((*shape, step.size))
    for t in np.unique(step).tolist():
        result[..., step == t] = np.asarray(figure(t))[..., None]
    return result


def _symmetrised(matrix: Floats, law: Floats) -> Floats:
    """Return D^1/2 M D^-1/2 on the states that pi visits, zeros elsewhere."""
    root = np.sqrt(law)
    inverse = np.where(law > 0, 1 / np.where(law > 0, root, 1.0), 0.0)
    return root[..., :, None] * matrix * inverse[..., None, :]


def _second_eigenvalue(transition: ArrayLike, law: Floats) -> Floats:
    matrix = _symmetrised(closed(transition)[0], law)
    # The eigenvalue one removed: its left and right vector is sqrt(pi) in this form.
    matrix = matrix - np.sqrt(law[..., :, None] * law[..., None, :])
    largest: Floats = np.abs(np.linalg.eigvals(matrix)).max(axis=-1)
    return np.minimum(largest, 1.0)


def _two_smallest(law: Floats) -> tuple[Floats, Floats]:
    """Return the second smallest and the smallest positive probability (1, 1 if there is one state alone)."""
    ranked = np.sort(np.where(law > 0, law, 1.0), axis=-1)
    return (ranked[..., 1] if law.shape[-1] > 1 else np.ones(law.shape[:-1])), ranked[..., 0]


def _clipped(bound: Floats, law: Floats) -> Floats:
    """Return the bound with its slack, at most one; 0 for a single visited state."""
    alone = (law > 0).sum(axis=-1) == 1
    return np.where(alone, 0.0, np.minimum(bound + _RESULT_SLACK, 1.0))
