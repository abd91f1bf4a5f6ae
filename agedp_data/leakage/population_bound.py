"""Population bound: from the chains of all households to the leakage bound.

Homogeneous chains have one kernel per household, cyclic chains one per phase of the day, computed in batches. Example:
chains with total variation .64 and .5 at one day give the bound of .64; one household whose rows are not
reliable gives L(a) = a at every age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss, checked_steps
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.exact import PiecewiseLeakage, round_up_with_slack, with_slack
from agedp_data.leakage.function import leakage_from_total_variation
from agedp_data.leakage.pieces import gain
from agedp_data.leakage.upper_hulls import UpperHulls, chain_bounds, cyclic_upper_hulls, upper_hulls

HOUSEHOLDS_PER_BATCH = 16
"""How many households' kernels are held at a time: 48 phases of 12 states each."""

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
    return LeakageBound(steps, grid, tables[0], [*tables, None][1], bounds, steps_per_day, "markov", distances="exact")


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
    hulls = {name: cyclic_upper_hulls(_batches(kernels), steps, direction=name)[0] for name, kernels in chains.items()}
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
    return LeakageBound(
        steps, grid, _hull_table(backward, grid), forward, bounds, steps_per_day, "markov", distances="exact"
    )


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
    return LeakageBound(
        steps, grid, table, table if forward else None, bounds, steps_per_day, "markov", distances="exact"
    )


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


def _batches(chains: Floats) -> Iterator[Floats]:
    for start in range(0, len(chains), HOUSEHOLDS_PER_BATCH):
        yield chains[start : start + HOUSEHOLDS_PER_BATCH]
