"""From the cyclic chains of all households to their envelope, a few households at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.cyclic import ascending_products
from agedp_data.chains.envelope import LeakageBound
from agedp_data.chains.maxima import UpperHulls
from agedp_data.chains.rounding import guarded
from agedp_data.chains.spectrum import max_total_variation
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps, filled_kernel
from agedp_data.privacy.pieces import gain

HOUSEHOLDS = 16
"""How many households' kernels are held at a time: 48 phases of 12 states each."""


def cyclic_leakage_bound(
    backward: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    forgets: ArrayLike,
    forward: ArrayLike | None = None,
) -> LeakageBound:
    """Return the envelope of cyclic chains, under the Markov assumption: largest over households and phases.

    Every gap of a composition takes the worst phase, so the bound holds whatever the hours of its inputs. Shapes:
    (h, p, k, k), (T,) steps, (m,), (h,) bool -> tables (T, m), total variation (T,). As `tabulation.tabulate`, but
    for the spectral bounds, which are about one kernel.

    Raises:
        ChainError: no household, or shapes that do not fit.
    """
    chains, reliable = np.asarray(backward, dtype=np.float64), np.asarray(forgets, dtype=np.bool_)
    steps, grid = checked_steps(ages, quantity="ages"), checked_loss(losses)
    if chains.ndim != 4 or not len(chains) or reliable.shape != chains.shape[:1]:
        raise ChainError("an envelope needs at least one household, and a mark for each whether its rows are reliable")
    if forward is not None and np.shape(forward) != chains.shape:
        raise ChainError("forward and backward chains must be those of the same households")
    day = chains.shape[1]
    if not reliable.all():
        return remembering(steps, grid, day, ahead=forward is not None)
    found, _ = cyclic_maxima(_few(chains), steps, direction="backward")
    ahead = None
    if forward is not None:
        ahead, _ = cyclic_maxima(_few(np.asarray(forward, dtype=np.float64)), steps, direction="forward")
    return envelope_of_maxima(found, steps, grid, day, ahead=ahead)


def cyclic_maxima(chains: Iterable[Floats], steps: NDArray[np.int64], *, direction: str) -> tuple[UpperHulls, Floats]:
    """Return the hulls over all households and phases, and each household's total variation, largest over phases.

    Shapes: blocks (b, p, k, k) of kernels, (T,) -> hulls of T ages, (h, T).
    """
    found, distances = UpperHulls(steps.size), [np.zeros((0, steps.size))]
    for block in chains:
        own = np.zeros((len(block), steps.size))
        for age, (_, products) in enumerate(ascending_products(block, steps, direction=direction)):
            flat = products.reshape(-1, *products.shape[-2:])
            some = ~np.isnan(flat).all(axis=(-1, -2))
            rows = filled_kernel(flat[some])
            apart = np.zeros(len(flat))
            apart[some] = max_total_variation(rows)
            own[:, age] = apart.reshape(len(block), -1).max(axis=1)
            found.add(age, rows)
        distances.append(own)
    return found, np.concatenate(distances)


def envelope_of_maxima(
    found: UpperHulls, steps: NDArray[np.int64], grid: Floats, steps_per_day: int, *, ahead: UpperHulls | None = None
) -> LeakageBound:
    """Return the envelope of hulls, backward and, if they are given, ahead; its one bound is the total variation."""
    bounds = {"total_variation": np.minimum(guarded(found.distances), 1.0)}
    forward = None if ahead is None else _table(ahead, grid)
    return LeakageBound(steps, grid, _table(found, grid), forward, bounds, steps_per_day, "markov")


def remembering(steps: NDArray[np.int64], grid: Floats, steps_per_day: int, *, ahead: bool = False) -> LeakageBound:
    """Return the envelope that credits no age at all: a household counts as never forgotten."""
    table = np.tile(grid, (steps.size, 1))
    bounds = {"total_variation": np.ones(steps.size)}
    return LeakageBound(steps, grid, table, table if ahead else None, bounds, steps_per_day, "markov")


def _few(chains: Floats) -> Iterator[Floats]:
    for start in range(0, len(chains), HOUSEHOLDS):
        yield chains[start : start + HOUSEHOLDS]


def _table(found: UpperHulls, grid: Floats) -> Floats:
    return np.array([np.minimum(guarded(gain(over, under, grid)), grid) for over, under in found.hulls])
