"""Maximum of the leakage function over all households at many ages: bounded first, computed only where it can matter.

A kernel's pieces (D, Q) satisfy Q - D <= Delta and Q <= R D, with R the largest ratio of two entries of a column. So
they lie under two lines that meet in one point. If that point is under the upper hull of the pieces computed so far,
the kernel adds nothing at any loss: the hull is concave, begins at the origin and is continued with slope one. Delta
is first bounded by the mass that all rows share, 1 - sum of the columns' minima. Of thousands of households a handful
is computed at each age, provided that a slowly mixing one comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Mask, filled_kernel
from agedp_data.leakage.exact import with_slack
from agedp_data.leakage.pieces import frontier, frontier_of, is_above_hull
from agedp_data.markov.cyclic import ascending_products
from agedp_data.markov.mixing import (
    deflated_kernel,
    fill_bound,
    is_reversible,
    max_total_variation,
    second_singular_value,
    spectral_bound,
    total_variation_forward,
)
from agedp_data.markov.transitions import ascending_powers, power, stationary

Steps = NDArray[np.int64]
UpperHull = tuple[Floats, Floats]

_HOUSEHOLDS_PER_BATCH = 512
_SLOWEST_PER_AGE = 8


class UpperHulls:
    r"""Upper hulls of the pieces (D, Q) of many kernels, one hull per age.

    Use it to take the maximum of L over many households without a table per household: L of a hull is `gain`.

    .. math:: \max_K L_K(a) = \max_{(Q, D)} \ln \frac{1 + (e^a - 1) Q}{1 + (e^a - 1) D}

    Source: [T] eq. 24.

    Attributes:
        hulls: for each age (Q, D), from the largest Q/D to the largest Q - D.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> hulls = UpperHulls(1)
    >>> hulls.add(0, [[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> hulls.distances.round(12).tolist()  # max(.9 - .1, .6 - .4)
    [0.8]
    """

    __slots__ = ("hulls",)

    def __init__(self, ages: int) -> None:
        self.hulls: list[UpperHull] = [(np.zeros(1), np.zeros(1)) for _ in range(ages)]

    def add(self, age: int, kernels: ArrayLike) -> None:
        """Add kernels (h, k, n) at the age with this index; rows of NaN are left out."""
        rows = filled_kernel(kernels)
        low, high = rows.min(axis=1), rows.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(high > low, high / low, 1.0).max(axis=1)
        shared = np.where(ratio > 1, np.clip(1 - low.sum(axis=1), 0, 1), 0.0)
        may_exceed = self._may_exceed(age, shared, ratio)
        rows, ratio = rows[may_exceed], ratio[may_exceed]
        if rows.size:
            rows = rows[self._may_exceed(age, max_total_variation(rows), ratio)]
        if rows.size:
            self.hulls[age] = frontier_of(rows, self.hulls[age])

    def joined(self, others: Iterable[UpperHulls]) -> UpperHulls:
        """Return the hulls of the pieces of these and others together, in this order."""
        result = UpperHulls(len(self.hulls))
        for age, hulls in enumerate(zip(self.hulls, *(other.hulls for other in others), strict=True)):
            over, under = (np.concatenate(side) for side in zip(*hulls, strict=True))
            result.hulls[age] = frontier(over, under)
        return result

    @property
    def distances(self) -> Floats:
        """Return the largest total variation at each age (T,)."""
        return np.array([(over - under).max() for over, under in self.hulls])

    def _may_exceed(self, age: int, distance: Floats, ratio: Floats) -> Mask:
        """Return which kernels may have a piece above the hull: those whose two bounds meet above it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            under = np.where(ratio > 1, distance / (ratio - 1), 0.0)
        return is_above_hull(under + distance, under, *self.hulls[age])


def upper_hulls(chains: Floats, steps: Steps, *, known: UpperHulls | None = None) -> UpperHulls:
    r"""Upper hulls of the powers of chains, over all households.

    .. math:: \max_h L_{P_h^t}(a) = \max_{(Q, D)} \ln \frac{1 + (e^a - 1) Q}{1 + (e^a - 1) D}

    Source: [T] eq. 24; pieces of all households together.

    Args:
        chains: one-step kernels, shape (h, k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), ascending [steps].
        known: hulls of slowly mixing chains at these ages, which the result includes; if not given, the slowest of
            `chains` come first.

    Returns:
        Hulls of T ages.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> hulls = upper_hulls(np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]]), np.array([1, 2]))
    >>> hulls.distances.round(12).tolist()
    [0.8, 0.64]
    """
    hulls = UpperHulls(len(steps))
    if known is not None:
        hulls.hulls = list(known.hulls)
    for batch in _batches(chains) if known is not None else _slowest_first(chains, steps):
        for age, (_, kernels) in enumerate(ascending_powers(batch, steps)):
            hulls.add(age, kernels)
    return hulls


def cyclic_upper_hulls(chains: Iterable[Floats], steps: Steps, *, direction: str) -> tuple[UpperHulls, Floats]:
    r"""Upper hulls over all households and phases, and the total variation of each household.

    .. math:: \max_h \max_p L_{K_{h, p, t}}(a), \qquad \Delta_h(t) = \max_p \Delta(K_{h, p, t})

    Source: [T] eq. 24 and [A] eq. 12, for the products of one-step kernels (`ascending_products`).

    Raises:
        ChainError: steps that are not integers >= 0, or rows that are not probabilities.

    Args:
        chains: batches of kernels by phase, shape (b, p, k, k) each [-].
        steps: ages, shape (T,), ascending [steps].
        direction: "backward" or "forward".

    Returns:
        Hulls of T ages; total variation of each household, maximum over phases, shape (h, T) [-].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay, mix = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    >>> _, distances = cyclic_upper_hulls([np.array([[stay, mix]])], np.array([1, 2]), direction="backward")
    >>> distances.tolist()
    [[1.0, 0.0]]
    """
    hulls, distances = UpperHulls(steps.size), [np.zeros((0, steps.size))]
    for batch in chains:
        variation = np.zeros((len(batch), steps.size))
        for age, (_, products) in enumerate(ascending_products(batch, steps, direction=direction)):
            flat = products.reshape(-1, *products.shape[-2:])
            is_present = ~np.isnan(flat).all(axis=(-1, -2))
            rows = filled_kernel(flat[is_present])
            distance = np.zeros(len(flat))
            distance[is_present] = max_total_variation(rows)
            variation[:, age] = distance.reshape(len(batch), -1).max(axis=1)
            hulls.add(age, rows)
        distances.append(variation)
    return hulls, np.concatenate(distances)


def max_reversibilised_bound(chains: Floats, steps: Steps) -> Floats:
    r"""Maximum of `reversibilised_bound` over the households, computed only where it can matter.

    .. math:: \max_h \min\Bigl(1, \frac{1}{2} \sqrt{1 / \pi_{h(1)} + 1 / \pi_{h(2)}}\ \sigma_{h, 2}(t)\Bigr)

    Source: Fill's bound, as in `reversibilised_bound`; submultiplicative norms tell which households can matter.

    Args:
        chains: one-step kernels, shape (h, k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), ascending [steps].

    Returns:
        Shape (T,), between 0 and 1 [-].

    Raises:
        ChainError: a chain with several recurrent classes.

    References:
        Fill 1991. https://doi.org/10.1214/aoap/1177005981

    >>> max_reversibilised_bound(np.array([[[0.9, 0.1], [0.1, 0.9]]]), np.array([1, 2])).round(12).tolist()
    [0.8, 0.64]
    """
    maximum = np.zeros(len(steps))
    for batch in _slowest_first(chains, steps):
        distribution = stationary(batch)
        one_step_value = second_singular_value(power(batch, 1), distribution)
        for age, (step, kernels) in enumerate(ascending_powers(batch, steps)):
            # The singular values of a product are at most the products of the factors' own.
            ceiling = fill_bound(one_step_value**step, distribution)
            candidates = np.flatnonzero(ceiling > maximum[age])
            if not candidates.size:
                continue
            # The norm of Frobenius is at least the largest singular value, at a fraction of its price.
            norm = np.sqrt((deflated_kernel(kernels[candidates], distribution[candidates]) ** 2).sum(axis=(-1, -2)))
            ceiling = np.minimum(ceiling[candidates], fill_bound(norm, distribution[candidates]))
            for candidate in np.argsort(-ceiling, kind="stable"):
                if ceiling[candidate] <= maximum[age]:
                    break
                household = candidates[candidate]
                maximum[age] = max(
                    maximum[age],
                    float(
                        fill_bound(
                            second_singular_value(kernels[household], distribution[household]), distribution[household]
                        )
                    ),
                )
    return maximum


def max_spectral_bound(chains: Floats, steps: Steps) -> Floats | None:
    r"""Maximum of `spectral_bound` over the households, or None if one of the chains is not reversible.

    .. math:: \max_h \min\Bigl(1, \max_x \sqrt{\frac{1 - \pi_h(x)}{\pi_h(x)}}\ \lambda_{h, *}^t\Bigr)

    Source: [A] eq. 55, for reversible chains only.

    Args:
        chains: one-step kernels, shape (h, k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), ascending [steps].

    Returns:
        Shape (T,), between 0 and 1 [-], or None.

    Raises:
        ChainError: a chain with several recurrent classes.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> max_spectral_bound(np.array([[[0.9, 0.1], [0.1, 0.9]]]), np.array([1, 2])).round(12).tolist()
    [0.8, 0.64]
    """
    batches = list(_batches(chains))
    if not all(is_reversible(batch).all() for batch in batches):
        return None
    return np.asarray(np.max([spectral_bound(batch, steps).max(axis=0) for batch in batches], axis=0))


def chain_bounds(chains: Floats, steps: Steps) -> dict[str, Floats]:
    r"""Bounds of the total variation over all households by name: "reversibilised", and "spectral" if it applies.

    Use it beside `upper_hulls`. Both bounds are the same for a chain and its reverse, so either may be passed.

    .. math:: \max_h \min(1, b_h(t) + s), \qquad s \text{ the slack for rounding}

    Source: Fill's bound and [A] eq. 55, as in `max_reversibilised_bound` and `max_spectral_bound`.

    Args:
        chains: one-step kernels, shape (h, k, k), rows sum to 1 or are NaN [-].
        steps: ages, shape (T,), ascending [steps].

    Returns:
        Arrays of shape (T,), between 0 and 1 [-].

    Raises:
        ChainError: a chain with several recurrent classes.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> bounds = chain_bounds(np.array([[[0.9, 0.1], [0.1, 0.9]]]), np.array([1]))
    >>> {name: values.round(9).tolist() for name, values in bounds.items()}
    {'reversibilised': [0.8], 'spectral': [0.8]}
    """
    bounds = {
        "reversibilised": max_reversibilised_bound(chains, steps),
        "spectral": max_spectral_bound(chains, steps),
    }
    return {name: np.minimum(with_slack(bound), 1.0) for name, bound in bounds.items() if bound is not None}


def _slowest_first(chains: Floats, steps: Steps) -> Iterator[Floats]:
    """Yield the chains in batches, the slowest mixing ones at the first, middle and last step first."""
    ranking_steps = np.unique(steps[[0, len(steps) // 2, -1]]) if len(steps) else steps
    is_slowest = np.zeros(len(chains), np.bool_)
    distances = [total_variation_forward(batch, ranking_steps) for batch in _batches(chains)]
    for column in np.concatenate(distances).T if distances else ():
        is_slowest[np.argsort(-column, kind="stable")[:_SLOWEST_PER_AGE]] = True
    yield chains[is_slowest]
    yield from _batches(chains[~is_slowest])


def _batches(chains: Floats) -> Iterator[Floats]:
    for start in range(0, len(chains), _HOUSEHOLDS_PER_BATCH):
        yield chains[start : start + _HOUSEHOLDS_PER_BATCH]
