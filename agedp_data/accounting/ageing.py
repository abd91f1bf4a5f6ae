"""Age-dependent differential privacy [A]: the loss of old releases about the present.

The loss eps_C of a release about its own input never decreases. Its loss about the PRESENT does: at age t it is
L_K(eps_C) for the t-step reversed chain K (tight), or at most ln(1 + Delta(t)(e^eps_C - 1)) ([A] Theorem 1). Example:
two-state chain that keeps its state with probability 0.9, eps_C = 2: 0.82 after three steps, 0.16 after ten.

Decisions:

* Households are independent and each follows the given Markov chain. Without that assumption only
  `compose_without_markov` composes losses.
* The chain is reversed before use: with the forward chain, non-reversible chains are understated.
* Bounds are per chain; the bound of a release is the maximum over households.

[A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
https://doi.org/10.1109/TIT.2023.3340147
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.accounting.approximate_ageing import approximate_risk, compose_approximate
from agedp_data.accounting.composition import GapLeakage, compose_with, compose_without_markov, sum_rule
from agedp_data.arrays import Floats, checked_loss, checked_steps, step_list
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage, leakage_from_total_variation, supremum
from agedp_data.leakage.pieces import fixed_point
from agedp_data.markov.cyclic import ascending_products
from agedp_data.markov.mixing import reversibilised_bound, spectral_bound, total_variation
from agedp_data.markov.transitions import ascending_powers, power, reverse

__all__ = [
    "age_artificially",
    "age_of_information",
    "approximate_risk",
    "compose",
    "compose_approximate",
    "compose_with",
    "compose_without_markov",
    "peak",
    "risk",
    "risk_of_curve",
    "sum_rule",
]

_GAPS = 8  # kernels of a stack in memory at a time; schedules repeat few gaps

_DISTANCES = {
    "total_variation": total_variation,
    "spectral": spectral_bound,
    "reversibilised": reversibilised_bound,
}


def risk(transition: ArrayLike, loss: ArrayLike, age_steps: ArrayLike, *, method: str) -> Floats:
    r"""Age-dependent privacy loss about the present of one release made `age_steps` ago.

    An output stays public while its data age; this bounds what it still reveals about the household's current state.

    .. math:: \varepsilon(t) = L_{\hat P^t}(\varepsilon_C) \le \ln(1 + \Delta(t)(e^{\varepsilon_C} - 1))

    Source: [A] Definition 4 and Theorem 1, with the *reversed* chain. Erratum: the forward kernel in eq. 12 understates
    the risk of non-reversible chains (counter-example: chain i -> 0 or min(i + 1, 11), each with probability 1/2).

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-]; rows of NaN are left out.
        loss: loss of the mechanism about its input, shape (...), >= 0 [epsilon]; `inf`: any mechanism (Theorem 2).
        age_steps: ages, shape (T,), integers >= 0 [steps].
        method: "tight" (exact) | "total_variation" (Theorem 1) | "spectral" (with eq. 55) | "reversibilised".

    Returns:
        Shape (..., T) [epsilon], between 0 and `loss`.

    Raises:
        ChainError: an unknown method, no recurrent class, or `method="spectral"` for a chain that is not reversible.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> risk([[0.9, 0.1], [0.1, 0.9]], 2.0, [3, 6, 10], method="tight").round(4).tolist()
    [0.8234, 0.4047, 0.1639]
    """
    steps, losses = step_list(age_steps, "ages"), checked_loss(loss)
    if method != "tight":
        return leakage_from_total_variation(_distance(method)(transition, steps), losses[..., None])
    backward = reverse(transition)
    result = np.zeros((*np.broadcast_shapes(backward.shape[:-2], losses.shape), steps.size))
    for step, kernel in ascending_powers(backward, steps):
        result[..., steps == step] = leakage(kernel, losses)[..., None]
    return result


def risk_of_curve(curve: ArrayLike, loss: ArrayLike, ages: ArrayLike) -> Floats:
    r"""Age-dependent privacy loss of one release for a declared curve age -> d(age) of total variation; needs no chain.

    .. math:: \varepsilon(t) = \ln(1 + d(t)(e^{\varepsilon_C} - 1))

    Source: [A] Theorem 1.

    Args:
        curve: d, shape (T,), from 0 to 1, not increasing with age [-].
        loss: eps_C, shape () or (T,), >= 0 [epsilon].
        ages: shape (T,), integers >= 0 [steps].

    Returns:
        Shape (T,) [epsilon].

    Raises:
        ChainError: a curve that increases with age, is outside [0, 1] or does not fit the ages.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> risk_of_curve([1.0, 0.64], 0.5, [0, 48]).round(6).tolist()  # ln(1 + .64 (e^.5 - 1))
    [0.5, 0.347258]
    """
    distances, steps = np.asarray(curve, dtype=np.float64), step_list(ages, "ages")
    if distances.shape != steps.shape:
        raise ChainError(f"a curve has one value per age: {steps.size} ages, got shape {distances.shape}")
    if (np.diff(distances[np.lexsort((distances, steps))]) > 0).any():
        raise ChainError("a declared curve must not increase with age; the promise holds for every later instant")
    return leakage_from_total_variation(distances, loss)


def compose(
    transition: ArrayLike,
    published: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    at: ArrayLike,
    *,
    method: str,
) -> Floats:
    r"""Composed privacy loss about the present of all releases published so far, at each instant; for any schedule.

    .. math:: z_k = \varepsilon_k + L_{\hat P^{u_k - u_{k-1}}}(z_{k-1}), \ \varepsilon(t) = L_{\hat P^{t - u_m}}(z_m)

    Source: [A] Theorem 3. Erratum to eq. 25: its literal lookup gives .1927 here, which is unsafe (`compose_with`).

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-]; rows of NaN are left out.
        published: S, instants of publication, shape (n,), integers [steps].
        ages: A, age of each input at publication, shape (n,), integers >= 0 [steps].
        losses: loss of each release about its input, shape (n,), >= 0 [epsilon].
        at: t, shape (T,), integers [steps].
        method: as in `risk`.

    Returns:
        Shape (..., T) [epsilon], 0 before the first publication.

    Raises:
        ChainError: as `risk` and `compose_with`.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> compose(chain, [1, 2, 3], [5, 5, 5], [0.5, 0.5, 0.5], [3], method="tight").round(10).tolist()
    [0.3557487386]
    """
    return compose_with(published, ages, losses, at, gap_leakage=_gap_leakage(transition, method))


def age_of_information(published: ArrayLike, ages: ArrayLike, horizon: int) -> NDArray[np.int64]:
    r"""Age of the input of the newest publication at the instants 0, 1, ..., horizon.

    .. math:: \text{AoI}(t + 1) = A_n \text{ if } t + 1 = S_n, \text{ else } \text{AoI}(t) + 1

    Source: [A] Definition 11, eq. 24. Erratum: by eq. 24 the steady maximum is A + S - 1, not A + S.

    Args:
        published: S, instants of publication, shape (n,), integers >= 1 [steps].
        ages: A, shape (n,), integers >= 0 [steps]; the smallest counts if several are published at once.
        horizon: last instant, integer >= 0 [steps].

    Returns:
        Shape (horizon + 1,), int64 [steps], 0 at the start.

    Raises:
        ChainError: publications before step 1, negative ages or horizon, or lengths that differ.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> age_of_information([4, 8], [2, 1], 9).tolist()
    [0, 1, 2, 3, 2, 3, 4, 5, 1, 2]
    """
    instants, age, last = step_list(published, "publications"), step_list(ages, "ages"), int(checked_steps(horizon))
    if instants.shape != age.shape or (instants < 1).any():
        raise ChainError("the age of information needs one age per publication, none before step 1")
    restart = np.full(last + 1, -1, dtype=np.int64)
    restart[0] = 0
    for instant, input_age in sorted(zip(instants.tolist(), age.tolist(), strict=True), reverse=True):
        if instant <= last:
            restart[instant] = input_age
    step = np.arange(last + 1)
    latest = np.maximum.accumulate(np.where(restart >= 0, step, 0))
    return restart[latest] + step - latest


def peak(transition: ArrayLike, loss: ArrayLike, *, age: int, interval: int, method: str) -> Floats:
    r"""Supremum of the privacy loss about the present for periodic releases without end.

    Use it to choose age and interval; the supremum is approached just after a publication.

    .. math:: \varepsilon^* = L_{\hat P^A}(z^*) \le
        \ln\Big(1 + \frac{\Delta(A)(e^{\varepsilon} - 1)}{1 - \Delta(S) e^{\varepsilon}}\Big), \quad
        z^* \text{ the supremum of } z \mapsto \varepsilon + L_{\hat P^S}(z)

    Source: [A] Proposition 3, eqs. 30 and 31. Erratum: for Delta(S) e^eps >= 1 only this bound diverges; the tight loss
    can be finite, as in the example.

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-]; rows of NaN are left out.
        loss: loss of each release about its input, shape (...), >= 0 [epsilon].
        age: A, from an input to its publication, integer >= 0 [steps].
        interval: S, from one publication to the next, integer [steps].
        method: as in `risk`.

    Returns:
        Shape (...), broadcast [epsilon], `inf` if unbounded.

    Raises:
        ChainError: as `risk`; more than one age or interval.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> float(peak([[0.9, 0.1], [0.1, 0.9]], 1.0, age=0, interval=1, method="tight").round(9))
    2.749726736
    >>> float(peak([[0.9, 0.1], [0.1, 0.9]], 1.0, age=0, interval=1, method="total_variation"))  # .8 e > 1
    inf
    """
    losses = checked_loss(loss)
    gap, input_age = (checked_steps(steps, quantity="an age and an interval") for steps in (interval, age))
    if gap.ndim or input_age.ndim:
        raise ChainError("a periodic schedule has one age and one interval")
    if method == "tight":
        backward = reverse(transition)
        return leakage(power(backward, input_age), supremum(power(backward, gap), losses))
    distances = _distance(method)(transition, [int(gap), int(input_age)])
    epsilons, variation = np.broadcast_arrays(losses, distances[..., 0])
    composed = fixed_point(variation[..., None], np.zeros_like(variation)[..., None], epsilons)
    return leakage_from_total_variation(distances[..., 1], composed)


def age_artificially(
    states: ArrayLike, transition: ArrayLike, steps: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    r"""States `steps` earlier, drawn independently from the reversed chain; a missing state (-1) stays missing.

    Use it before a mechanism M. In a series, account it as a release of loss L(eps) whose input is the PRESENT, not as
    an old input. With a declared kernel the guarantee needs no model; with a kernel estimated from the same households
    it fails.

    .. math:: X_{-t} \sim \hat P^t(x, \cdot), \qquad M(X_{-t}) \text{ is } L_{\hat P^t}(\varepsilon)\text{-DP}

    Source: [A] Definition 5, eq. 10, and Corollary 1.

    Args:
        states: current states 0..k-1, shape (...), or (h, ...) with one chain per household.
        transition: forward transition matrix, shape (k, k) or (h, k, k), probabilities [-].
        steps: t, integer >= 0 [steps].
        rng: source of randomness; a seeded one for tests only.

    Returns:
        States, shape as `states`, int64.

    Raises:
        ChainError: a state without a row of the reversed chain; shapes that do not fit.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> age_artificially([0, 2, -1], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], 1, np.random.default_rng(1)).tolist()
    [2, 1, -1]
    """
    state, kernel = np.asarray(states), power(reverse(transition), steps)
    if kernel.shape[:-2] != state.shape[: kernel.ndim - 2] or state.dtype.kind not in "iu":
        raise ChainError(f"states of shape {state.shape} do not fit chains of shape {kernel.shape}")
    k = kernel.shape[-1]
    if (state >= k).any():
        raise ChainError(f"there are {k} states, got a higher one")
    observed = state >= 0
    chain = np.arange(kernel[..., 0, 0].size).reshape((*kernel.shape[:-2], *(1,) * (state.ndim - kernel.ndim + 2)))
    row = np.broadcast_to(chain, state.shape)[observed] * k + state[observed]
    if np.isnan(kernel.reshape(-1, k)[row]).any():
        raise ChainError("a state without a row of the reversed chain cannot be aged")
    cumulative = np.nan_to_num(kernel).cumsum(axis=-1).reshape(-1, k)[row]
    earlier_states = (rng.random(row.size)[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=-1)
    result = state.astype(np.int64)
    result[observed] = earlier_states
    return result


def _gap_leakage(transition: ArrayLike, method: str) -> GapLeakage:
    """Leakage over a gap of steps by one of the methods."""
    if method == "tight":
        backward = reverse(transition)
        kernel = lru_cache(_GAPS)(lambda gap: power(backward, gap))
        return lambda gap, loss: leakage(kernel(gap), loss)
    variation = _distance(method)
    variation_over = lru_cache(_GAPS)(lambda gap: variation(transition, [gap])[..., 0])
    return lambda gap, loss: leakage_from_total_variation(variation_over(gap), loss)


def _distance(method: str) -> Callable[[ArrayLike, ArrayLike], Floats]:
    if method not in _DISTANCES:
        methods = ", ".join(f'"{name}"' for name in ("tight", *_DISTANCES))
        raise ChainError(f'there is no method "{method}"; there are {methods}')
    return _DISTANCES[method]


def cyclic_risk(kernels: ArrayLike, loss: ArrayLike, age_steps: ArrayLike) -> Floats:
    r"""Age-dependent privacy loss about the present of one release, maximum over the phase of the present.

    As `risk` for a cyclic chain: the loss of a daily release whose input ended `age_steps` ago, at any time of day.

    .. math:: \varepsilon(t) = \max_p L_{\hat P_{p, t}}(\varepsilon_C)

    Source: [A] Definition 4 and Theorem 1 with the tight L. Erratum: powers of one homogenised kernel understate it.

    Args:
        kernels: reversed one-step kernels by phase, shape (..., p, k, k), rows sum to 1 or are NaN [-].
        loss: privacy loss of the mechanism, shape (...), >= 0, `inf` allowed [epsilon].
        age_steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Shape (..., T), between 0 and `loss` [epsilon].

    Raises:
        ChainError: shapes that do not fit, a negative loss or age.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> stay, mix = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    >>> cyclic_risk([stay, mix], 1.0, [0, 1, 2]).tolist()  # from the phase before mixing nothing is lost in one step
    [1.0, 1.0, 0.0]
    """
    steps, losses = checked_steps(age_steps, quantity="ages"), checked_loss(loss)
    shape = np.broadcast_shapes(np.shape(kernels)[:-3], losses.shape)
    result = np.zeros((*shape, steps.size))
    for t, product in ascending_products(kernels, steps, direction="backward"):
        result[..., steps == t] = leakage(product, losses[..., None]).max(axis=-1)[..., None]
    return result
