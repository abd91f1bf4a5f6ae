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

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.accounting.composition import (
    GapLeakage,
    compose_with,
    compose_without_markov,
    composed_losses,
    sum_rule,
)
from agedp_data.accounting.renyi import Curve, approximate_epsilon
from agedp_data.arrays import Floats, checked_loss, checked_steps, step_list
from agedp_data.epsilon import EpsilonLike, ceil_nano, to_float
from agedp_data.errors import ChainError
from agedp_data.leakage.exact import round_up_with_slack
from agedp_data.leakage.function import fixed_point, leakage, leakage_from_total_variation, supremum
from agedp_data.markov.mixing import reversibilised_bound, spectral_bound, total_variation
from agedp_data.markov.transitions import ascending_powers, ascending_products, power, reverse

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


# --------------------------------------------------------------------------------------------------
# Approximate age-dependent privacy: (epsilon, delta) of old releases, an extension of [A].
#
# A mechanism that is (eps, delta)-DP is, at age t, (ln(1 + Delta(t)(e^eps - 1)), Delta(t) delta)-age-dependent DP
# about the present: advanced joint convexity of the hockey-stick divergence, applied to two input distributions that
# share all but Delta of their mass. Example: Delta = 0.64 turns (0.5, 1e-6) into (0.347, 6.4e-7).
#
# All pure releases of a span have a whole profile of such pairs, one for each epsilon. `aged_epsilon` ages the
# profile: at Delta = 0.05, a year of epsilon 0.1 a day with 10.75 at delta = 1e-6 has 6.59 about the present.
#
# Decisions:
#
# * The Gaussian mechanism is admitted by the first two functions only. Releases of this project are pure: delta = 0.
# * Only total variation is used; a tight (eps, delta) form through the kernel is not known.
# * A span needs the Markov assumption: given the newest input, the earlier ones say nothing more about the present.
#   Only then is the distance of whole pasts that of the newest inputs. A declared curve alone does not age a span.
# --------------------------------------------------------------------------------------------------

_AGE_GAPS = 8


def approximate_risk(
    transition: ArrayLike, loss: ArrayLike, delta: ArrayLike, age_steps: ArrayLike
) -> tuple[Floats, Floats]:
    r"""Age-dependent (epsilon, delta) about the present of one release.

    Use it for a mechanism with delta > 0; `risk` is sharper for delta = 0.

    .. math:: \varepsilon(t) = \ln(1 + \Delta(t)(e^{\varepsilon_C} - 1)), \qquad \delta(t) = \Delta(t)\, \delta_C

    Source: Theorem 2 of Balle, Barthe, Gaboardi on the setting of [A] Theorem 1; [A] leaves the case open.

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-].
        loss: epsilon of the mechanism, shape (...), >= 0 [epsilon].
        delta: delta of the mechanism, shape (...), from 0 to 1 [probability].
        age_steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Loss [epsilon] and delta [probability], shape (..., T) each.

    Raises:
        ChainError: a delta outside [0, 1]; as `risk`.

    References:
        Balle, Barthe, Gaboardi: Privacy Amplification by Subsampling. NeurIPS 2018.
        https://doi.org/10.48550/arXiv.1807.01647
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> loss, delta = approximate_risk([[0.9, 0.1], [0.1, 0.9]], 0.5, 1e-6, [2])  # Delta(2) = .8^2 = .64
    >>> loss.round(6).tolist(), delta.round(12).tolist()
    ([0.347258], [6.4e-07])
    """
    losses, deltas = checked_loss(loss)[..., None], _probability(delta)[..., None]
    distance = total_variation(transition, step_list(age_steps, "ages"))
    shape = np.broadcast_shapes(losses.shape, deltas.shape, distance.shape)
    aged = (
        np.broadcast_to(leakage_from_total_variation(distance, losses), shape),
        np.broadcast_to(distance * deltas, shape),
    )
    return aged[0].copy(), aged[1].copy()


def compose_approximate(
    transition: ArrayLike,
    published: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    deltas: ArrayLike,
    at: ArrayLike,
) -> tuple[Floats, Floats]:
    r"""Age-dependent (epsilon, delta) about the present of all releases published so far.

    Use it for schedules of mechanisms with delta > 0; `compose` is sharper for delta = 0.

    .. math:: z_k = \varepsilon_k + \ln(1 + \Delta(e^{z_{k-1}} - 1)), \qquad d_k = \delta_k + \Delta\, d_{k-1}

    with Delta over the gap between consecutive inputs, and once more from the newest input to t. Equal input times add.
    A delta above 1 means that the bound is void.

    Source: [A] Theorem 3, corrected as in `compose_with`; the delta part as in `approximate_risk`.

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-].
        published: S, instants of publication, shape (n,), integers [steps].
        ages: A, age of each input at publication, shape (n,), integers >= 0 [steps].
        losses: epsilon of each release, shape (n,), >= 0 [epsilon].
        deltas: delta of each release, shape (n,), from 0 to 1 [probability].
        at: t, shape (T,), integers [steps].

    Returns:
        Loss [epsilon] and delta [probability], shape (..., T) each.

    Raises:
        ChainError: a delta outside [0, 1]; as `compose`.

    References:
        Balle, Barthe, Gaboardi: Privacy Amplification by Subsampling. NeurIPS 2018.
        https://doi.org/10.48550/arXiv.1807.01647
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> loss, delta = compose_approximate([[0.9, 0.1], [0.1, 0.9]], [1, 2], [0, 0], [0.0, 0.0], [0.1, 0.1], [3])
    >>> delta.round(12).tolist()  # (.1 * .8 + .1) * .8
    [0.144]
    """
    epsilons, probabilities = checked_loss(losses), _probability(deltas)
    if epsilons.ndim != 1 or epsilons.shape != probabilities.shape:
        raise ChainError(f"one delta per loss: losses of shape {epsilons.shape}, deltas of shape {probabilities.shape}")
    variation_over = lru_cache(_AGE_GAPS)(lambda gap: total_variation(transition, [gap])[..., 0])

    def gap_leakage(gap: int, pair: Floats) -> Floats:
        variation = variation_over(gap)
        return np.stack(
            np.broadcast_arrays(leakage_from_total_variation(variation, pair[..., 0]), variation * pair[..., 1]),
            axis=-1,
        )

    composed = composed_losses(
        published, ages, np.stack((epsilons, probabilities), axis=-1), at, gap_leakage=gap_leakage
    )
    table = np.stack(np.broadcast_arrays(*composed), axis=-1) if composed else np.zeros((2, 0))
    return table[..., 0, :], table[..., 1, :]


def aged_epsilon(curve: Curve, distance: float, delta: EpsilonLike, *, pure: int) -> int:
    r"""Epsilon at a delta, about the present, of all releases of a span together.

    .. math:: \varepsilon'(\delta) = \ln \bigl( 1 + \Delta\,(e^{\varepsilon(\delta / \Delta)} - 1) \bigr)

    with epsilon(.) that of `approximate_epsilon`: two present states imply two laws of the household's past that share
    all but Delta of their mass, and the releases are (epsilon, delta)-DP in the whole past at every epsilon.

    Source: Theorem 2 of Balle, Barthe, Gaboardi on the setting of [A] Theorem 1, at each point of the profile.

    Args:
        curve: Rényi curve of the releases together, shape (64,) [1e-12 epsilon].
        distance: Delta, total variation of the reversed chain from the present to the newest input, 0 to 1 [-].
        delta: probability, 0 <= delta < 1 [-].
        pure: sum of the pure losses [nano-epsilon].

    Returns:
        Integer from 0 to that of the span, rounded up [nano-epsilon].

    Raises:
        ChainError: a distance or a delta outside its range.

    References:
        Balle, Barthe, Gaboardi: Privacy Amplification by Subsampling. NeurIPS 2018.
        https://doi.org/10.48550/arXiv.1807.01647
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> from agedp_data.accounting.renyi import laplace_curve
    >>> year = 365 * laplace_curve(50_000, 500_000.0)  # epsilon 0.1 a day
    >>> [aged_epsilon(year, distance, 1e-6, pure=36_500_000_000) for distance in (1.0, 0.05, 0.0)]
    [10748499677, 6591931362, 0]
    """
    if not 0 <= distance <= 1:
        raise ChainError("a total variation is a number from 0 to 1")
    if not 0 <= delta < 1:
        raise ChainError(f"delta = {delta}: a probability from 0 to below 1")
    if distance <= delta:  # the two laws differ by no more than delta
        return 0
    unaged = approximate_epsilon(curve, Fraction(delta) / Fraction(distance), pure=pure)
    aged = round_up_with_slack(leakage_from_total_variation(distance, to_float(unaged)))
    return min(unaged, ceil_nano(float(aged)))


def _probability(delta: ArrayLike) -> Floats:
    values = np.asarray(delta, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ChainError("a delta is a probability, from 0 to 1")
    return values


# --------------------------------------------------------------------------------------------------
# Pure losses: one release at an age, a schedule, and the age of its information.
# --------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------
# Age planner: age, interval and loss of a periodic schedule with the least peak risk and a bounded error.
#
# Inputs of a periodic schedule are at most A + S old (age at publication plus interval). For a penalty f(A + S, eps)
# that increases with age and decreases with the loss, the smallest feasible loss depends on A + S alone; the rest is a
# search over integer ages and intervals. Example: with f = t + 1/eps <= 4, a total of 3 steps needs a loss of 1.
#
# Decisions:
#
# * The search is exact for every chain and penalty. [A] Algorithms 1 and 2 need geometric decay and round at the end
#   (`plan_geometric_decay` in docs/papers/age).
# * Erratum: by [A] eq. 24 the largest age of information on integer steps is A + S - 1; f(A + S) is the value an
#   instant before the next publication.
# --------------------------------------------------------------------------------------------------

Penalty = Callable[[float, float], float]
PeakRiskFunction = Callable[..., float]

_MIN_LOSS, _MAX_LOSS = 1e-12, 1e6


@dataclass(frozen=True, slots=True)
class AgePlan:
    r"""Periodic schedule with its peak risk and penalty.

    Use it as the result of `plan_ageing` and `plan_least_penalty`.

    .. math:: A_n = A, \quad S_{n+1} - S_n = S, \quad \varepsilon_n = \varepsilon \text{ for all releases } n

    Source: [A] Definition 12, eq. 29.

    Attributes:
        loss: loss of each release about its input [epsilon].
        age: A, from an input to its publication [steps].
        interval: S, from one publication to the next [steps].
        risk: supremum of the loss about the present [epsilon].
        penalty: f(A + S, loss) [unit of the penalty].

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> plan = AgePlan(loss=1.0, age=2, interval=1, risk=0.25, penalty=4.0)
    >>> plan.age + plan.interval
    3
    """

    loss: float
    age: float
    interval: float
    risk: float
    penalty: float


def plan_ageing(
    risk_of: PeakRiskFunction, penalty: Penalty, *, max_penalty: float, horizon: int, max_loss: float = _MAX_LOSS
) -> AgePlan:
    r"""Schedule of least peak risk whose penalty is within a bound.

    Use it to choose age, interval and loss of releases for a required accuracy. Of equal risks the smallest age wins.
    At most horizon (horizon + 1)/2 calls of `risk_of`.

    .. math:: \min_{A \ge 0,\, S \ge 1,\, \varepsilon > 0} \varepsilon^*(A, S, \varepsilon)
        \quad \text{s.t.} \quad f(A + S, \varepsilon) \le f_{max}, \quad A + S \le \text{horizon}

    Source: [A] eqs. 28 and 39, solved over integers. Erratum: Algorithms 1 and 2 do not run as printed.

    Args:
        risk_of: (loss, age=A, interval=S) -> peak risk, not decreasing in the loss, such as
            `functools.partial(peak, chain, method="tight")`; called by position if it has no such parameters [epsilon].
        penalty: (A + S, loss) -> f, not increasing in the loss.
        max_penalty: the largest f permitted [unit of the penalty].
        horizon: the largest A + S tried, >= 1 [steps].
        max_loss: the largest loss of a release [epsilon].

    Returns:
        The schedule.

    Raises:
        ChainError: no loss satisfies the penalty at any age, or a horizon below one step.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> def risk_of(loss, age, interval):
    ...     return loss * 0.5**age
    >>> plan = plan_ageing(risk_of, lambda t, loss: t + 1 / loss, max_penalty=4, horizon=9)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.risk, 9)  # A + S = 3 needs a loss of 1
    (2, 1, 1.0, 0.25)
    """
    _check_horizon(horizon)
    peak_risk = _named_risk(risk_of)
    best: AgePlan | None = None
    for total in range(1, horizon + 1):
        loss = smallest_loss(penalty, total, max_penalty=max_penalty, max_loss=max_loss)
        if loss is None:
            continue
        smallest_penalty = float(penalty(total, loss))
        for age in range(total):
            risk = peak_risk(loss, age, total - age)
            if best is None or risk < best.risk:
                best = AgePlan(loss, age, total - age, risk, smallest_penalty)
    if best is None:
        raise ChainError(f"no loss keeps the penalty within {max_penalty} at any age up to {horizon}; allow more")
    return best


def plan_least_penalty(
    risk_of: PeakRiskFunction,
    penalty: Penalty,
    *,
    max_risk: float,
    horizon: int,
    max_loss: float,
    max_interval: int | None = None,
) -> AgePlan | None:
    r"""Schedule of least penalty whose peak risk is within a bound; None if there is none.

    Use it to find the most accurate schedule for a required privacy. Of equal penalties the least risk wins, then the
    smallest age. The loss is the largest that satisfies the bound, to the last digit.

    .. math:: \min_{A \ge 0,\, S \ge 1,\, \varepsilon} f(A + S, \varepsilon)
        \quad \text{s.t.} \quad \varepsilon^*(A, S, \varepsilon) \le \varepsilon_{max}, \quad A + S \le \text{horizon}

    Source: [A] eq. 28 with objective and constraint exchanged.

    Args:
        risk_of: as in `plan_ageing`.
        penalty: as in `plan_ageing`.
        max_risk: the largest peak risk permitted [epsilon].
        horizon: the largest A + S tried, >= 1 [steps].
        max_loss: the largest loss of a release [epsilon].
        max_interval: the largest S tried [steps]; None for no bound.

    Returns:
        The schedule, or None.

    Raises:
        ChainError: a horizon below one step.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> def risk_of(loss, age, interval):
    ...     return loss * 0.5**age
    >>> plan = plan_least_penalty(risk_of, lambda t, loss: t + 1 / loss, max_risk=0.3, horizon=9, max_loss=2.0)
    >>> plan.age, plan.interval, round(plan.loss, 9), round(plan.penalty, 6)  # A = 1 permits .6: 2 + 1 / .6
    (1, 1, 0.6, 3.666667)
    """
    _check_horizon(horizon)
    peak_risk = _named_risk(risk_of)
    best: AgePlan | None = None
    for total in range(1, horizon + 1):
        for age in range(max(0, total - (max_interval or total)), total):
            # The loss must beat the best penalty, or this split has no better schedule.
            smallest = _MIN_LOSS if best is None else smallest_loss(penalty, total, max_penalty=best.penalty)
            if smallest is None or smallest > max_loss or peak_risk(smallest, age, total - age) > max_risk:
                continue
            loss = _largest_satisfying(
                smallest, max_loss, partial(_is_within_risk, peak_risk, age, total - age, max_risk)
            )
            candidate = AgePlan(loss, age, total - age, peak_risk(loss, age, total - age), float(penalty(total, loss)))
            if best is None or (candidate.penalty, candidate.risk) < (best.penalty, best.risk):
                best = candidate
    return best


def smallest_loss(penalty: Penalty, total: float, *, max_penalty: float, max_loss: float = _MAX_LOSS) -> float | None:
    r"""Smallest loss whose penalty is within a bound, to the last digit; None if `max_loss` does not suffice.

    Use it for the loss that an accuracy requires at a fixed age.

    .. math:: \min \{\varepsilon : f(t, \varepsilon) \le f_{max}\}

    Source: [A] eq. 39c; bisection, since f does not increase with the loss.

    Args:
        penalty: (t, loss) -> f, not increasing in the loss.
        total: t = A + S [steps].
        max_penalty: the largest f permitted [unit of the penalty].
        max_loss: the largest loss tried [epsilon].

    Returns:
        Loss [epsilon], at least 1e-12, or None.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> smallest_loss(lambda t, loss: t / loss, 3, max_penalty=2)
    1.5
    """

    def is_feasible(loss: float) -> bool:
        return bool(penalty(total, loss) <= max_penalty)

    if not is_feasible(max_loss):
        return None
    return _MIN_LOSS if is_feasible(_MIN_LOSS) else _bisect(_MIN_LOSS, max_loss, lambda loss: not is_feasible(loss))[1]


def _is_within_risk(
    peak_risk: Callable[[float, int, int], float], age: int, interval: int, max_risk: float, loss: float
) -> bool:
    return peak_risk(loss, age, interval) <= max_risk


def _largest_satisfying(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """Largest number up to `high` for which `holds` is true; it is true for `low`."""
    return high if holds(high) else _bisect(low, high, holds)[0]


def _bisect(low: float, high: float, below: Callable[[float], bool]) -> tuple[float, float]:
    """Two neighbouring floats between which `below`, true at `low`, becomes false."""
    while True:
        # Halve the exponent first, then the number: some sixty steps to neighbouring floats.
        middle = float(np.sqrt(low * high)) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if below(middle) else (low, middle)


def _check_horizon(horizon: int) -> None:
    if horizon < 1:
        raise ChainError(f"a plan looks at least one step ahead, got a horizon of {horizon}")


def _named_risk(risk_of: PeakRiskFunction) -> Callable[[float, int, int], float]:
    try:
        inspect.signature(risk_of).bind(0.0, age=0, interval=1)
    except (TypeError, ValueError):
        return lambda loss, age, interval: float(risk_of(loss, age, interval))
    return lambda loss, age, interval: float(risk_of(loss, age=age, interval=interval))
