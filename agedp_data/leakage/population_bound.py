"""Population bound: from the chains of all households to the leakage bound.

Homogeneous chains have one kernel per household, cyclic chains one per phase of the day, computed in batches. Example:
chains with total variation .64 and .5 at one day give the bound of .64; one household whose rows are not
reliable gives L(a) = a at every age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, Mask, checked_loss, checked_steps, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.exact import PiecewiseLeakage, round_up_with_slack, with_slack
from agedp_data.leakage.function import frontier, frontier_of, gain, is_above_hull, leakage_from_total_variation
from agedp_data.markov import mixing
from agedp_data.markov.transitions import ascending_powers, ascending_products, power, stationary

# --------------------------------------------------------------------------------------------------
# Maximum of the leakage function over all households at many ages: bounded first, computed only where it can matter.
#
# A kernel's pieces (D, Q) satisfy Q - D <= Delta and Q <= R D, with R the largest ratio of two entries of a column. So
# they lie under two lines that meet in one point. If that point is under the upper hull of the pieces computed so far,
# the kernel adds nothing at any loss: the hull is concave, begins at the origin and is continued with slope one. Delta
# is first bounded by the mass that all rows share, 1 - sum of the columns' minima. Of thousands of households a
# handful is computed at each age, provided that a slowly mixing one comes first.
# --------------------------------------------------------------------------------------------------

Steps = NDArray[np.int64]
UpperHull = tuple[Floats, Floats]

_CHAINS_PER_BATCH = 512
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
            rows = rows[self._may_exceed(age, mixing.max_total_variation(rows), ratio)]
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
    for batch in _batches(chains, _CHAINS_PER_BATCH) if known is not None else _slowest_first(chains, steps):
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
            distance[is_present] = mixing.max_total_variation(rows)
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
        one_step_value = mixing.second_singular_value(power(batch, 1), distribution)
        for age, (step, kernels) in enumerate(ascending_powers(batch, steps)):
            # The singular values of a product are at most the products of the factors' own.
            ceiling = mixing.fill_bound(one_step_value**step, distribution)
            candidates = np.flatnonzero(ceiling > maximum[age])
            if not candidates.size:
                continue
            # The norm of Frobenius is at least the largest singular value, at a fraction of its price.
            norm = np.sqrt(
                (mixing.deflated_kernel(kernels[candidates], distribution[candidates]) ** 2).sum(axis=(-1, -2))
            )
            ceiling = np.minimum(ceiling[candidates], mixing.fill_bound(norm, distribution[candidates]))
            for candidate in np.argsort(-ceiling, kind="stable"):
                if ceiling[candidate] <= maximum[age]:
                    break
                kernel, law = kernels[candidates[candidate]], distribution[candidates[candidate]]
                maximum[age] = max(
                    maximum[age], float(mixing.fill_bound(mixing.second_singular_value(kernel, law), law))
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
    batches = list(_batches(chains, _CHAINS_PER_BATCH))
    if not all(mixing.is_reversible(batch).all() for batch in batches):
        return None
    return np.asarray(np.max([mixing.spectral_bound(batch, steps).max(axis=0) for batch in batches], axis=0))


def chain_bounds(chains: Floats, steps: Steps) -> dict[str, Floats]:
    r"""Bounds of the total variation over all households by name: "reversibilised", and "spectral" if it applies.

    Both bounds are the same for a chain and its reverse, so either may be passed.

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
    bounds = {"reversibilised": max_reversibilised_bound(chains, steps), "spectral": max_spectral_bound(chains, steps)}
    return {name: np.minimum(with_slack(bound), 1.0) for name, bound in bounds.items() if bound is not None}


def _slowest_first(chains: Floats, steps: Steps) -> Iterator[Floats]:
    """Yield the chains in batches, the slowest mixing ones at the first, middle and last step first."""
    ranking_steps = np.unique(steps[[0, len(steps) // 2, -1]]) if len(steps) else steps
    is_slowest = np.zeros(len(chains), np.bool_)
    distances = [mixing.total_variation_forward(batch, ranking_steps) for batch in _batches(chains, _CHAINS_PER_BATCH)]
    for column in np.concatenate(distances).T if distances else ():
        is_slowest[np.argsort(-column, kind="stable")[:_SLOWEST_PER_AGE]] = True
    yield chains[is_slowest]
    yield from _batches(chains[~is_slowest], _CHAINS_PER_BATCH)


def _batches(chains: Floats, size: int) -> Iterator[Floats]:
    for start in range(0, len(chains), size):
        yield chains[start : start + size]


# --------------------------------------------------------------------------------------------------
# Chains of households -> the leakage bound.
# --------------------------------------------------------------------------------------------------

HOUSEHOLDS_PER_BATCH = 16
"""How many households' kernels are held at a time: 48 phases of 12 states each."""

_markov_bound = partial(LeakageBound, assume="markov", distances="exact")

BOUND_METHODS = ("total_variation", "reversibilised", "spectral")


def composition_age_steps(days: Iterable[int], *, steps_per_day: int) -> NDArray[np.int64]:
    r"""Ages at which releases this many days apart need a leakage bound, for composition and temporal leakage.

    With m steps a day and g days from one release to the next: m g from the end of one day to the end of the other, and
    1 + m (g - 1) from there to its beginning. Successive days are always included. One step less is taken for the
    second age where that age is tabulated anyway.

    .. math:: \{m g\} \cup \{1 + m (g - 1)\}

    Source: extension of [T] eqs. 10 and 11 to days of several steps (`daily_release_leakage`).

    Args:
        days: gaps g between releases, integers >= 1 [days].
        steps_per_day: steps m of a day.

    Returns:
        Shape (T,) int64, ascending [steps].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> composition_age_steps([2, 7], steps_per_day=48).tolist(), composition_age_steps([2], steps_per_day=1).tolist()
    ([1, 48, 96, 289, 336], [1, 2])
    """
    gaps = {1, *days}
    day_begins = {1 + steps_per_day * (gap - 1) for gap in gaps if gap - 1 not in gaps}
    return np.array(sorted({steps_per_day * gap for gap in gaps} | day_begins), dtype=np.int64)


def leakage_bound(
    backward: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    reliable: ArrayLike,
    forward: ArrayLike | None = None,
    steps_per_day: int = 48,
    pieces: bool = False,
) -> LeakageBound:
    r"""Leakage bound of households from their one-step kernels, under the Markov assumption.

    A household that does not mix reliably (a state with too few visits for its row) has L(a) = a and total variation 1,
    and then so has the bound. "reversibilised" and (if every chain is reversible) "spectral" bound the total variation.

    .. math:: B(t, a) = \max_h L_{\hat P_h^t}(a), \qquad \Delta(t) = \max_h \Delta_h(t)

    Source: [A] Theorem 1 with the tight L; the maximum over households is that of [A] eq. 12.

    Args:
        backward: reversed one-step chains, shape (h, k, k), rows sum to 1 or are NaN (left out) [-].
        ages: shape (T,), ascending [steps].
        losses: shape (m,), ascending, for example `LOSS_GRID` [epsilon].
        reliable: whether all rows of a household are reliable, shape (h,) bool.
        forward: forward one-step chains of the same households, if forward losses are required.
        steps_per_day: steps of a day.
        pieces: whether to store the pieces of which L is the maximum, which are exact: for a public kernel.

    Returns:
        A bound with tables (T, m) [epsilon] and total variations (T,) [-].

    Raises:
        ChainError: no household, kernels that are not chains, or shapes that do not fit.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> bound = leakage_bound([[[0.9, 0.1], [0.1, 0.9]]], [1], [1.0], reliable=[True])
    >>> bound.backward.tolist(), bound.bounds["total_variation"].tolist()  # ln((.1 + .9 e)/(.9 + .1 e)), rounded up
    ([[0.776136586]], [0.800000000001])
    """
    chains, steps, grid = _checked(backward, forward, ages, losses, reliable=reliable, axes=3)
    if not np.all(reliable):
        return identity_leakage_bound(steps, grid, steps_per_day, forward=forward is not None, methods=BOUND_METHODS)
    hulls = {name: upper_hulls(kernels, steps) for name, kernels in chains.items()}
    bound = leakage_bound_of_hulls(hulls["backward"], steps, grid, steps_per_day, forward_hulls=hulls.get("forward"))
    exact = {
        name: tuple(PiecewiseLeakage.from_floats(*hull) for hull in upper.hulls)
        for name, upper in hulls.items()
        if pieces
    }
    return replace(bound, bounds={**bound.bounds, **chain_bounds(chains["backward"], steps)}, hulls=exact)


def leakage_bound_from_distances(
    distances: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    reliable: ArrayLike,
    forward: ArrayLike | None = None,
    steps_per_day: int = 48,
) -> LeakageBound:
    r"""Leakage bound of households of which only total variations are known, for example from `sampling_bound`.

    .. math:: B(t, a) = \ln(1 + \Delta(t)(e^a - 1)), \qquad \Delta(t) = \max_h \Delta_h(t)

    Source: [A] Theorem 1.

    Args:
        distances: total variations of the reversed chains, shape (h, T), between 0 and 1 [-].
        ages: shape (T,), ascending [steps].
        losses: shape (m,), ascending [epsilon].
        reliable: whether all rows of a household are reliable, shape (h,) bool.
        forward: total variations of the forward chains, shape (h, T), if forward losses are required.
        steps_per_day: steps of a day.

    Returns:
        A bound with tables (T, m) [epsilon] and total variations (T,) [-].

    Raises:
        ChainError: no household, distances outside [0, 1], or shapes that do not fit.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> bound = leakage_bound_from_distances([[0.64], [0.5]], [48], [0.5], reliable=[True, True])
    >>> bound.backward.tolist(), bound.bounds["total_variation"].tolist()  # rounded up; with a slack
    ([[0.347257872]], [0.640000000001])
    """
    steps, grid = checked_steps(ages, quantity="ages"), checked_loss(losses)
    both = [np.asarray(side, dtype=np.float64) for side in (distances, forward) if side is not None]
    if not both[0].size or any(side.shape != (np.size(reliable), steps.size) for side in both):
        raise ChainError("a leakage bound needs at least one household, and for each a distance at every age")
    if not np.all(reliable):
        return identity_leakage_bound(steps, grid, steps_per_day, forward=forward is not None, methods=BOUND_METHODS)
    maxima = [side.max(axis=0) for side in both]
    tables = [_rounded(leakage_from_total_variation(side[:, None], grid), grid) for side in maxima]
    bounds = {"total_variation": np.minimum(with_slack(maxima[0]), 1.0)}
    return _markov_bound(steps, grid, tables[0], [*tables, None][1], bounds, steps_per_day)


def cyclic_leakage_bound(
    backward: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    reliable: ArrayLike,
    forward: ArrayLike | None = None,
) -> LeakageBound:
    r"""Leakage bound of cyclic chains under the Markov assumption: maximum over households and phases.

    Every gap of a composition takes the worst phase, so the bound holds for any time of day of its inputs. As
    `leakage_bound`, without the spectral bounds, which refer to one kernel.

    .. math:: B(t, a) = \max_h \max_p L_{K_{h, p} K_{h, p-1} \cdots K_{h, p-t+1}}(a)

    Source: [A] Theorem 1 for a chain that is not time-homogeneous. Erratum: powers of one homogenised kernel
    understate the risk (night P = I, day P uniform: .62 where the truth is 1).

    Args:
        backward: reversed kernels by phase, shape (h, p, k, k), rows sum to 1 or are NaN [-].
        ages: shape (T,), ascending [steps].
        losses: shape (m,), ascending [epsilon].
        reliable: whether all rows of a household are reliable, shape (h,) bool.
        forward: forward kernels by phase, if forward losses are required.

    Returns:
        A bound with tables (T, m) [epsilon] and total variations (T,) [-].

    Raises:
        ChainError: no household, or shapes that do not fit.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> stay, mix = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    >>> cyclic_leakage_bound([[stay, mix]], [1, 2], [1.0], reliable=[True]).backward.tolist()  # 2 steps pass the mixing
    [[1.0], [0.0]]
    """
    chains, steps, grid = _checked(backward, forward, ages, losses, reliable=reliable, axes=4)
    day = chains["backward"].shape[1]
    if not np.all(reliable):
        return identity_leakage_bound(steps, grid, day, forward=forward is not None)
    hulls = {
        name: cyclic_upper_hulls(_batches(kernels, HOUSEHOLDS_PER_BATCH), steps, direction=name)[0]
        for name, kernels in chains.items()
    }
    return leakage_bound_of_hulls(hulls["backward"], steps, grid, day, forward_hulls=hulls.get("forward"))


def leakage_bound_of_hulls(
    backward: UpperHulls,
    steps: NDArray[np.int64],
    grid: Floats,
    steps_per_day: int,
    *,
    forward_hulls: UpperHulls | None = None,
) -> LeakageBound:
    r"""Leakage bound of upper hulls, backward and, if `forward_hulls` is passed, forward.

    .. math:: B(t, a) = \max_{(Q, D)} \ln \frac{1 + (e^a - 1) Q}{1 + (e^a - 1) D}

    Source: [T] eq. 24; pieces of all households together.

    Args:
        backward: hulls of T ages.
        steps: ages, shape (T,), ascending [steps].
        grid: losses, shape (m,), ascending [epsilon].
        steps_per_day: steps of a day.
        forward_hulls: hulls of the forward kernels at the same ages.

    Returns:
        A bound whose only method besides "tight" is "total_variation".

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> hulls = UpperHulls(1)
    >>> hulls.add(0, [[[0.9, 0.1], [0.1, 0.9]]])
    >>> bound = leakage_bound_of_hulls(hulls, np.array([1]), np.log([11.0]), 48)
    >>> bound(1, np.log(11.0), direction="backward", method="tight").round(6).item()  # ln(10 / 2)
    1.609438
    """
    bounds = {"total_variation": np.minimum(with_slack(backward.distances), 1.0)}
    forward = None if forward_hulls is None else _hull_table(forward_hulls, grid)
    return _markov_bound(steps, grid, _hull_table(backward, grid), forward, bounds, steps_per_day)


def identity_leakage_bound(
    steps: NDArray[np.int64],
    grid: Floats,
    steps_per_day: int,
    *,
    forward: bool = False,
    methods: Iterable[str] = ("total_variation",),
) -> LeakageBound:
    """Leakage bound that credits no age at all, for a population with a household that does not mix reliably.

    .. math:: B(t, a) = a

    Source: [T] Remark 1: L(a) is at most a.

    Args:
        steps: ages, shape (T,), ascending [steps].
        grid: losses, shape (m,), ascending [epsilon].
        steps_per_day: steps of a day.
        forward: whether to include the forward direction.
        methods: names of the total variations.

    Returns:
        A bound with L(a) = a and total variation 1.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> identity_leakage_bound(np.array([1]), np.array([0.5]), 48).backward.tolist()
    [[0.5]]
    """
    table = np.tile(grid, (steps.size, 1))
    bounds = {method: np.ones(steps.size) for method in methods}
    return _markov_bound(steps, grid, table, table if forward else None, bounds, steps_per_day)


def _checked(
    backward: ArrayLike,
    forward: ArrayLike | None,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    reliable: ArrayLike,
    axes: int,
) -> tuple[dict[str, Floats], NDArray[np.int64], Floats]:
    """Return the chains by direction, the ages and the losses."""
    sides = {"backward": backward, "forward": forward}
    chains = {name: np.asarray(side, dtype=np.float64) for name, side in sides.items() if side is not None}
    shape = chains["backward"].shape
    if len(shape) != axes or not shape[0] or np.shape(reliable) != shape[:1]:
        raise ChainError(
            "a leakage bound needs at least one household, and a mark for each whether its rows are reliable"
        )
    if any(side.shape != shape for side in chains.values()):
        raise ChainError("forward and backward chains must be those of the same households")
    return chains, checked_steps(ages, quantity="ages"), checked_loss(losses)


def _rounded(values: Floats, grid: Floats) -> Floats:
    return np.minimum(round_up_with_slack(values), grid)


def _hull_table(hulls: UpperHulls, grid: Floats) -> Floats:
    """Return the maximum of L over the households, (T, m)."""
    return np.array([_rounded(gain(over, under, grid), grid) for over, under in hulls.hulls])
