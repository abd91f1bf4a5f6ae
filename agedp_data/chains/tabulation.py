"""From the chains of all households to their envelope, a block of households at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.envelope import Envelope
from agedp_data.chains.rounding import guarded
from agedp_data.chains.spectrum import is_reversible, reversibilised_bound, spectral_bound
from agedp_data.chains.transitions import power
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps, filled
from agedp_data.privacy.pieces import frontier_of, gain

_HOUSEHOLDS = 512

METHODS = ("total_variation", "reversibilised", "spectral")


def tabulate(
    backward: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    forgets: ArrayLike,
    forward: ArrayLike | None = None,
    steps_per_day: int = 48,
) -> Envelope:
    """Return the envelope of households from their one-step kernels, under the Markov assumption.

    L is the maximum over households of L_K for K the kernel's t-th power, the total variation likewise, and
    "reversibilised" and (if every chain is reversible) "spectral" bound it. A household that does not forget
    (a state seen too rarely for a reliable row) has L(a) = a and total variation 1, and then so has the
    envelope.

    Shapes: (h, k, k), (T,) steps, (m,), (h,) bool -> tables (T, m), bounds (T,). Units: [-].

    Args:
        backward: reversed one-step chains, rows of NaN left out.
        ages: ascending steps.
        losses: ascending grid, for example `LOSS_GRID`.
        forgets: whether all rows of a household are reliable.
        forward: forward one-step chains of the same households, if forward losses are wanted.
        steps_per_day: how many steps make a day.

    Raises:
        ChainError: no household, kernels that are no chains, or shapes that do not fit.
    """
    kernels = np.asarray(backward, dtype=np.float64)
    steps, grid, reliable = (
        checked_steps(ages, what="ages"),
        checked_loss(losses),
        np.asarray(forgets, dtype=np.bool_),
    )
    if kernels.ndim != 3 or not kernels.shape[0] or reliable.shape != kernels.shape[:1]:
        raise ChainError("an envelope needs at least one household, and a mark for each whether its rows are reliable")
    if forward is not None and np.shape(forward) != kernels.shape:
        raise ChainError("forward and backward chains must be those of the same households")
    if not reliable.all():
        return _remembers(steps, grid, forward is not None, steps_per_day)
    table, distance = _maxima(kernels, steps, grid)
    bounds = _chain_bounds(kernels, steps)
    ahead = None
    if forward is not None:
        ahead, other = _maxima(np.asarray(forward, dtype=np.float64), steps, grid)
        distance = np.maximum(distance, other)
    bounds = {"total_variation": guarded(distance), **bounds}
    capped = {name: np.minimum(bound, 1.0) for name, bound in bounds.items()}
    return Envelope(steps, grid, table, ahead, capped, steps_per_day, "markov")


def _remembers(steps: NDArray[np.int64], grid: Floats, ahead: bool, steps_per_day: int) -> Envelope:
    """Return the envelope that credits no age at all."""
    table = np.tile(grid, (steps.size, 1))
    bounds = {name: np.ones(steps.size) for name in METHODS}
    return Envelope(steps, grid, table, table if ahead else None, bounds, steps_per_day, "markov")


def _maxima(kernels: Floats, steps: NDArray[np.int64], grid: Floats) -> tuple[Floats, Floats]:
    """Return the largest L (T, m) and total variation (T,) over the households."""
    pieces = [(np.zeros(1), np.zeros(1)) for _ in steps]
    for block in _blocks(kernels):
        for i, step in enumerate(steps.tolist()):
            pieces[i] = frontier_of(filled(power(block, step)), pieces[i])
    table = [np.minimum(guarded(gain(over, under, grid)), grid) for over, under in pieces]
    return np.array(table), np.array([(over - under).max() for over, under in pieces])


def _chain_bounds(kernels: Floats, steps: NDArray[np.int64]) -> dict[str, Floats]:
    blocks = list(_blocks(kernels))
    figures = {"reversibilised": reversibilised_bound}
    if all(is_reversible(block).all() for block in blocks):
        figures["spectral"] = spectral_bound
    # Both are the same for a chain and its reverse, so either may be given.
    return {
        name: guarded(np.max([figure(block, steps).max(axis=0) for block in blocks], axis=0))
        for name, figure in figures.items()
    }


def _blocks(kernels: Floats) -> Iterator[Floats]:
    for start in range(0, kernels.shape[0], _HOUSEHOLDS):
        yield kernels[start : start + _HOUSEHOLDS]
