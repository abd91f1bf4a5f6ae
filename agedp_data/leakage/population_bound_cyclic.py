"""Population bound of cyclic chains: from the kernels of all households and phases to the leakage bound, in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss, checked_steps, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.exact import round_up_with_slack
from agedp_data.leakage.pieces import gain
from agedp_data.leakage.upper_hulls import UpperHulls
from agedp_data.markov.cyclic import ascending_products
from agedp_data.markov.mixing import max_total_variation

HOUSEHOLDS_PER_BATCH = 16
"""How many households' kernels are held at a time: 48 phases of 12 states each."""


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

    Source: [A] Theorem 1 for a chain that is not time-homogeneous. Erratum A4: powers of one homogenised kernel
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
    chains, is_reliable = np.asarray(backward, dtype=np.float64), np.asarray(reliable, dtype=np.bool_)
    steps, grid = checked_steps(ages, quantity="ages"), checked_loss(losses)
    if chains.ndim != 4 or not len(chains) or is_reliable.shape != chains.shape[:1]:
        raise ChainError(
            "a leakage bound needs at least one household, and a mark for each whether its rows are reliable"
        )
    if forward is not None and np.shape(forward) != chains.shape:
        raise ChainError("forward and backward chains must be those of the same households")
    day = chains.shape[1]
    if not is_reliable.all():
        return identity_leakage_bound(steps, grid, day, with_forward=forward is not None)
    backward_hulls, _ = cyclic_upper_hulls(_batches(chains), steps, direction="backward")
    forward_hulls = None
    if forward is not None:
        forward_hulls, _ = cyclic_upper_hulls(
            _batches(np.asarray(forward, dtype=np.float64)), steps, direction="forward"
        )
    return leakage_bound_of_hulls(backward_hulls, steps, grid, day, forward_hulls=forward_hulls)


def cyclic_upper_hulls(
    chains: Iterable[Floats], steps: NDArray[np.int64], *, direction: str
) -> tuple[UpperHulls, Floats]:
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
    bounds = {"total_variation": np.minimum(round_up_with_slack(backward.distances), 1.0)}
    forward = None if forward_hulls is None else _leakage_table(forward_hulls, grid)
    return LeakageBound(steps, grid, _leakage_table(backward, grid), forward, bounds, steps_per_day, "markov")


def identity_leakage_bound(
    steps: NDArray[np.int64], grid: Floats, steps_per_day: int, *, with_forward: bool = False
) -> LeakageBound:
    """Leakage bound that credits no age at all, for a population with a household that does not mix reliably.

    .. math:: B(t, a) = a

    Source: [T] Remark 1: L(a) is at most a.

    Args:
        steps: ages, shape (T,), ascending [steps].
        grid: losses, shape (m,), ascending [epsilon].
        steps_per_day: steps of a day.
        with_forward: whether to include the forward direction.

    Returns:
        A bound with L(a) = a and total variation 1.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> identity_leakage_bound(np.array([1]), np.array([0.5]), 48).backward.tolist()
    [[0.5]]
    """
    table = np.tile(grid, (steps.size, 1))
    bounds = {"total_variation": np.ones(steps.size)}
    return LeakageBound(steps, grid, table, table if with_forward else None, bounds, steps_per_day, "markov")


def _batches(chains: Floats) -> Iterator[Floats]:
    for start in range(0, len(chains), HOUSEHOLDS_PER_BATCH):
        yield chains[start : start + HOUSEHOLDS_PER_BATCH]


def _leakage_table(hulls: UpperHulls, grid: Floats) -> Floats:
    return np.array([np.minimum(round_up_with_slack(gain(over, under, grid)), grid) for over, under in hulls.hulls])
