"""From the cyclic chains of all households to their envelope, a few households at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.cyclic import ascending_products
from agedp_data.chains.envelope import LeakageBound
from agedp_data.chains.maxima import UpperHulls
from agedp_data.chains.rounding import round_up_with_slack
from agedp_data.chains.spectrum import max_total_variation
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps, filled
from agedp_data.privacy.pieces import gain

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
    """Return the envelope of cyclic chains, under the Markov assumption: largest over households and phases.

    Every gap of a composition takes the worst phase, so the bound holds whatever the hours of its inputs. Shapes:
    (h, p, k, k), (T,) steps, (m,), (h,) bool -> tables (T, m), total variation (T,). As `tabulation.tabulate`, but
    for the spectral bounds, which are about one kernel.

    Raises:
        ChainError: no household, or shapes that do not fit.
    """
    chains, is_reliable = np.asarray(backward, dtype=np.float64), np.asarray(reliable, dtype=np.bool_)
    steps, grid = checked_steps(ages, what="ages"), checked_loss(losses)
    if chains.ndim != 4 or not len(chains) or is_reliable.shape != chains.shape[:1]:
        raise ChainError("an envelope needs at least one household, and a mark for each whether its rows are reliable")
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
    """Return the hulls over all households and phases, and each household's total variation, largest over phases.

    Shapes: blocks (b, p, k, k) of kernels, (T,) -> hulls of T ages, (h, T).
    """
    hulls, distances = UpperHulls(steps.size), [np.zeros((0, steps.size))]
    for batch in chains:
        variation = np.zeros((len(batch), steps.size))
        for age, (_, products) in enumerate(ascending_products(batch, steps, direction=direction)):
            flat = products.reshape(-1, *products.shape[-2:])
            is_present = ~np.isnan(flat).all(axis=(-1, -2))
            rows = filled(flat[is_present])
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
    """Return the envelope of hulls, backward and, if they are given, ahead; its one bound is the total variation."""
    bounds = {"total_variation": np.minimum(round_up_with_slack(backward.distances), 1.0)}
    forward = None if forward_hulls is None else _leakage_table(forward_hulls, grid)
    return LeakageBound(steps, grid, _leakage_table(backward, grid), forward, bounds, steps_per_day, "markov")


def identity_leakage_bound(
    steps: NDArray[np.int64], grid: Floats, steps_per_day: int, *, with_forward: bool = False
) -> LeakageBound:
    """Return the envelope that credits no age at all: a household counts as never forgotten."""
    table = np.tile(grid, (steps.size, 1))
    bounds = {"total_variation": np.ones(steps.size)}
    return LeakageBound(steps, grid, table, table if with_forward else None, bounds, steps_per_day, "markov")


def _batches(chains: Floats) -> Iterator[Floats]:
    for start in range(0, len(chains), HOUSEHOLDS_PER_BATCH):
        yield chains[start : start + HOUSEHOLDS_PER_BATCH]


def _leakage_table(hulls: UpperHulls, grid: Floats) -> Floats:
    return np.array([np.minimum(round_up_with_slack(gain(over, under, grid)), grid) for over, under in hulls.hulls])
