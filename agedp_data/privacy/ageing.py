"""Age-dependent differential privacy: what old outputs say about the present ([A], MATHS 3).

The loss eps_C of a query about its input stays for ever. What fades is its loss about the PRESENT: at age t
it is L_K(eps_C), K the t-step reversed chain (tight), or by [A] Theorem 1 ln(1 + Delta(t)(e^eps_C - 1)).
Households are independent, and each is the Markov chain that is stated; without that only
`compose_without_markov` adds up. Figures are per chain; the promise is the largest over households.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.spectrum import reversibilised_bound, spectral_bound, total_variation
from agedp_data.chains.transitions import ascending_powers, power, reverse
from agedp_data.errors import ChainError
from agedp_data.privacy.approximate import approximate_risk, compose_approximate
from agedp_data.privacy.composition import (
    Through,
    compose_through,
    compose_without_markov,
    line,
    sum_rule,
)
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps
from agedp_data.privacy.leakage import leakage, leakage_from_total_variation, supremum
from agedp_data.privacy.pieces import fixed_point

__all__ = [
    "age_artificially",
    "age_of_information",
    "approximate_risk",
    "compose",
    "compose_approximate",
    "compose_through",
    "compose_without_markov",
    "peak",
    "risk",
    "risk_of_curve",
    "sum_rule",
]

_GAPS = 8  # kernels of a stack kept at a time; schedules repeat few gaps

_DISTANCES = {
    "total_variation": total_variation,
    "spectral": spectral_bound,
    "reversibilised": reversibilised_bound,
}


def risk(transition: ArrayLike, loss: ArrayLike, age_steps: ArrayLike, *, method: str) -> Floats:
    """Return the loss about the present of one query at each age.

    Shapes: (..., k, k), (...), (T,) int -> (..., T). Units: [-], [-], [steps] -> [-].

    Args:
        transition: forward one-step chains, rows of NaN left out.
        loss: loss of the mechanism about its input; infinity gives the bound for every mechanism ([A] Theorem
            2).
        age_steps: steps since the input.
        method: "tight", "total_variation" ([A] Theorem 1), "spectral" (with [A] eq. 55) or "reversibilised".

    Raises:
        ChainError: an unknown method, or as the methods themselves.

    >>> risk([[0.9, 0.1], [0.1, 0.9]], 2.0, [3, 6, 10], method="tight").round(4).tolist()
    [0.8234, 0.4047, 0.1639]
    """
    steps, losses = line(age_steps, "ages"), checked_loss(loss)
    if method != "tight":
        return leakage_from_total_variation(_distance(method)(transition, steps), losses[..., None])
    backward = reverse(transition)
    result = np.zeros((*np.broadcast_shapes(backward.shape[:-2], losses.shape), steps.size))
    for step, kernel in ascending_powers(backward, steps):
        result[..., steps == step] = leakage(kernel, losses)[..., None]
    return result


def risk_of_curve(curve: ArrayLike, loss: ArrayLike, ages: ArrayLike) -> Floats:
    """Return ln(1 + d(t)(e^eps - 1)) at each age for a declared curve of total variations.

    Shapes: (T,), () or (T,), (T,) -> (T,). Units: [-], [-], [steps] -> [-]. References: [A] Theorem 1.

    Raises:
        ChainError: a curve that increases with age, leaves [0, 1] or does not fit the ages.

    >>> risk_of_curve([1.0, 0.64], 0.5, [0, 48]).round(6).tolist()
    [0.5, 0.347258]
    """
    distances, steps = np.asarray(curve, dtype=np.float64), line(ages, "ages")
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
    """Return the loss about the present of all outputs published so far, at each instant of `at`.

    Any schedule in any order; see `compose_through`. Shapes: (..., k, k), (n,) int, (n,) int, (n,), (T,) int
    -> (..., T). Units: [steps], [-] -> [-]. Methods and errors: as `risk`.

    References: MATHS 3, which corrects [A] Theorem 3, eq. 25.

    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> compose(chain, [1, 2, 3], [5, 5, 5], [0.5, 0.5, 0.5], [3], method="tight").round(10).tolist()
    [0.3557487386]
    """
    return compose_through(published, ages, losses, at, through=_through(transition, method))


def age_of_information(published: ArrayLike, ages: ArrayLike, horizon: int) -> NDArray[np.int64]:
    """Return the age of the newest publication's input at 0, 1, ..., horizon; 0 at the start.

    AoI(t + 1) = A_n if t + 1 = S_n, else AoI(t) + 1; the smallest age if several are published at once.
    Shapes: (n,) int, (n,) int -> (horizon + 1,). Units: [steps].

    Raises:
        ChainError: publications before step 1, negative ages or horizon, or lengths that differ.

    References: [A] eq. 24.

    >>> age_of_information([4, 8], [2, 1], 9).tolist()
    [0, 1, 2, 3, 2, 3, 4, 5, 1, 2]
    """
    instants, age, last = line(published, "publications"), line(ages, "ages"), int(checked_steps(horizon))
    if instants.shape != age.shape or (instants < 1).any():
        raise ChainError("the age of information needs one age per publication, none before step 1")
    restart = np.full(last + 1, -1, dtype=np.int64)
    restart[0] = 0
    for when, old in sorted(zip(instants.tolist(), age.tolist(), strict=True), reverse=True):
        if when <= last:
            restart[when] = old
    step = np.arange(last + 1)
    since = np.maximum.accumulate(np.where(restart >= 0, step, 0))
    return restart[since] + step - since


def peak(transition: ArrayLike, loss: ArrayLike, *, age: int, interval: int, method: str) -> Floats:
    """Return the largest loss about the present of releases every `interval` steps, each `age` steps old, for ever.

    L_A(z*), z* the supremum of z -> e + L_S(z): reached just after a publication, in the limit. By total variation
    alone that is [A] eq. 30, ln(1 + Delta(A)(e^eps - 1)/(1 - Delta(S) e^eps)), or infinite if Delta(S) e^eps >= 1;
    then only this bound diverges, and not, as [A] says there, the loss.

    Shapes: (..., k, k), (...) -> (...), broadcast. Units: [-], [-], [steps], [steps] -> [-].

    Args:
        transition: forward one-step chains, rows of NaN left out.
        loss: loss of each release about its input.
        age: steps from an input to its publication, A.
        interval: steps from one publication to the next, S.
        method: as `risk`.

    Raises:
        ChainError: as `risk`.

    References: [A] Proposition 3, corrected in MATHS 3 and 9.

    >>> float(peak([[0.9, 0.1], [0.1, 0.9]], 1.0, age=0, interval=1, method="tight").round(9))
    2.749726736
    >>> float(peak([[0.9, 0.1], [0.1, 0.9]], 1.0, age=0, interval=1, method="total_variation"))
    inf
    """
    losses = checked_loss(loss)
    apart, before = (checked_steps(steps, what="an age and an interval") for steps in (interval, age))
    if apart.ndim or before.ndim:
        raise ChainError("a periodic schedule has one age and one interval")
    if method == "tight":
        backward = reverse(transition)
        return leakage(power(backward, before), supremum(power(backward, apart), losses))
    distances = _distance(method)(transition, [int(apart), int(before)])
    each, between = np.broadcast_arrays(losses, distances[..., 0])
    limit = fixed_point(between[..., None], np.zeros_like(between)[..., None], each)
    return leakage_from_total_variation(distances[..., 1], limit)


def age_artificially(
    states: ArrayLike, transition: ArrayLike, steps: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return states drawn from the reversed chain `steps` earlier, each for itself; -1 (missing) stays.

    X_-t ~ P^t reversed (x, .) ([A] Definition 5). A mechanism of loss eps then has L(eps) about the state itself,
    L that of this kernel: for any data if the chain is declared, for none if it comes from the same households. In
    a series it counts as a query of that loss whose input is the PRESENT, not as one with an old input (MATHS 3).

    Shapes: (..., ) int, (k, k); or (h, ...) int, (h, k, k) with a chain for each household -> as the states. Units:
    [-], [-], [steps].

    Args:
        states: current states 0..k-1.
        transition: forward one-step chains.
        steps: how far back.
        rng: the source of randomness; never the system's own for a test that must repeat.

    Raises:
        ChainError: a state that the chain does not have or that has no reversed row; shapes that do not fit.

    >>> age_artificially([0, 2, -1], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], 1, np.random.default_rng(1)).tolist()
    [2, 1, -1]
    """
    state, kernel = np.asarray(states), power(reverse(transition), steps)
    if kernel.shape[:-2] != state.shape[: kernel.ndim - 2] or state.dtype.kind not in "iu":
        raise ChainError(f"states of shape {state.shape} do not fit chains of shape {kernel.shape}")
    k = kernel.shape[-1]
    if (state >= k).any():
        raise ChainError(f"there are {k} states, got a higher one")
    known = state >= 0
    chain = np.arange(kernel[..., 0, 0].size).reshape((*kernel.shape[:-2], *(1,) * (state.ndim - kernel.ndim + 2)))
    row = np.broadcast_to(chain, state.shape)[known] * k + state[known]
    if np.isnan(kernel.reshape(-1, k)[row]).any():
        raise ChainError("a state without a row of the reversed chain cannot be aged")
    total = np.nan_to_num(kernel).cumsum(axis=-1).reshape(-1, k)[row]
    drawn = (rng.random(row.size)[:, None] * total[:, -1:] >= total).sum(axis=-1)
    result = state.astype(np.int64)
    result[known] = drawn
    return result


def _through(transition: ArrayLike, method: str) -> Through:
    """Return how a loss passes over a gap of steps by one of the methods."""
    if method == "tight":
        backward = reverse(transition)
        kernel = lru_cache(_GAPS)(lambda gap: power(backward, gap))
        return lambda gap, loss: leakage(kernel(gap), loss)
    figure = _distance(method)
    distance = lru_cache(_GAPS)(lambda gap: figure(transition, [gap])[..., 0])
    return lambda gap, loss: leakage_from_total_variation(distance(gap), loss)


def _distance(method: str) -> Callable[[ArrayLike, ArrayLike], Floats]:
    if method not in _DISTANCES:
        known = ", ".join(f'"{name}"' for name in ("tight", *_DISTANCES))
        raise ChainError(f'there is no method "{method}"; there are {known}')
    return _DISTANCES[method]
