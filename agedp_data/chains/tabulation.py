"""From the chains of all households to their envelope."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.envelope import LeakageBound
from agedp_data.chains.hull import PiecewiseLeakage
from agedp_data.chains.maxima import UpperHulls, largest_reversibilised, largest_spectral, maxima
from agedp_data.chains.rounding import guarded
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps
from agedp_data.privacy.leakage import leakage_from_total_variation
from agedp_data.privacy.pieces import gain

METHODS = ("total_variation", "reversibilised", "spectral")


def steps_of_days(days: Iterable[int], *, steps_per_day: int) -> NDArray[np.int64]:
    """Return the ages in steps at which releases that lie so many days apart need an envelope (MATHS 4).

    With m steps a day and g days from one release to the next: m g from the end of one day to that of the other, and
    1 + m (g - 1) from there to its beginning; days that follow each other among them. One step less is taken for the
    latter where it is tabulated anyhow.

    >>> steps_of_days([2, 7], steps_per_day=48).tolist(), steps_of_days([2], steps_per_day=1).tolist()
    ([1, 48, 96, 289, 336], [1, 2])
    """
    gaps = {1, *days}
    begins = {1 + steps_per_day * (gap - 1) for gap in gaps if gap - 1 not in gaps}
    return np.array(sorted({steps_per_day * gap for gap in gaps} | begins), dtype=np.int64)


def leakage_bound(
    backward: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    forgets: ArrayLike,
    forward: ArrayLike | None = None,
    steps_per_day: int = 48,
    pieces: bool = False,
) -> LeakageBound:
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
        pieces: whether to keep those that L is the largest of, which say more of a kernel than the grid does: for one
            that is public.

    Raises:
        ChainError: no household, kernels that are no chains, or shapes that do not fit.
    """
    kernels = np.asarray(backward, dtype=np.float64)
    steps, grid, reliable = (
        checked_steps(ages, quantity="ages"),
        checked_loss(losses),
        np.asarray(forgets, dtype=np.bool_),
    )
    if kernels.ndim != 3 or not kernels.shape[0] or reliable.shape != kernels.shape[:1]:
        raise ChainError("an envelope needs at least one household, and a mark for each whether its rows are reliable")
    if forward is not None and np.shape(forward) != kernels.shape:
        raise ChainError("forward and backward chains must be those of the same households")
    if not reliable.all():
        return _remembers(steps, grid, forward is not None, steps_per_day)
    found = {"backward": maxima(kernels, steps)}
    if forward is not None:
        found["forward"] = maxima(np.asarray(forward, dtype=np.float64), steps)
    tables = {name: _of_hulls(each, grid) for name, each in found.items()}
    bounds = {"total_variation": guarded(found["backward"].distances), **_chain_bounds(kernels, steps)}
    capped = {name: np.minimum(bound, 1.0) for name, bound in bounds.items()}
    hulls = (
        {name: tuple(PiecewiseLeakage.of(*one) for one in each.hulls) for name, each in found.items()} if pieces else {}
    )
    return LeakageBound(steps, grid, **tables, bounds=capped, steps_per_day=steps_per_day, assume="markov", hulls=hulls)


def tabulate_distances(
    distances: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    forgets: ArrayLike,
    forward: ArrayLike | None = None,
    steps_per_day: int = 48,
) -> LeakageBound:
    """Return the envelope of households of which only total variations are known, for example `sampling_bound`.

    L(a) = ln(1 + Delta(t)(e^a - 1)) with the largest Delta over the households, those of the reversed chains; of the
    forward ones, if losses ahead are wanted, `forward`.

    Shapes: (h, T), (T,) ascending steps, (m,), (h,) bool, (h, T) -> tables (T, m), bounds (T,). Units: [-].

    Raises:
        ChainError: no household, distances outside [0, 1], or shapes that do not fit.

    >>> found = tabulate_distances([[0.64], [0.5]], [48], [0.5], forgets=[True, True])
    >>> found.backward.tolist(), found.bounds["total_variation"].tolist()  # rounded up to whole 1e-9
    ([[0.347257872]], [0.640000001])
    """
    known, reliable = np.asarray(distances, dtype=np.float64), np.asarray(forgets, dtype=np.bool_)
    ahead = known if forward is None else np.asarray(forward, dtype=np.float64)
    steps, grid = checked_steps(ages, quantity="ages"), checked_loss(losses)
    if known.ndim != 2 or not known.shape[0] or not known.shape == ahead.shape == (reliable.size, steps.size):
        raise ChainError("an envelope needs at least one household, and for each a distance at every age")
    if not reliable.all():
        return _remembers(steps, grid, forward is not None, steps_per_day)
    table, other = (_table(each.max(axis=0), grid) for each in (known, ahead))
    bounds = {"total_variation": np.minimum(guarded(known.max(axis=0)), 1.0)}
    return LeakageBound(steps, grid, table, None if forward is None else other, bounds, steps_per_day, "markov")


def _table(distances: Floats, grid: Floats) -> Floats:
    return np.minimum(guarded(leakage_from_total_variation(distances[:, None], grid)), grid)


def _remembers(steps: NDArray[np.int64], grid: Floats, ahead: bool, steps_per_day: int) -> LeakageBound:
    """Return the envelope that credits no age at all."""
    table = np.tile(grid, (steps.size, 1))
    bounds = {name: np.ones(steps.size) for name in METHODS}
    return LeakageBound(steps, grid, table, table if ahead else None, bounds, steps_per_day, "markov")


def _of_hulls(found: UpperHulls, grid: Floats) -> Floats:
    """Return the largest L (T, m) over the households."""
    return np.array([np.minimum(guarded(gain(over, under, grid)), grid) for over, under in found.hulls])


def _chain_bounds(kernels: Floats, steps: NDArray[np.int64]) -> dict[str, Floats]:
    # Both are the same for a chain and its reverse, so either may be given.
    figures = {"reversibilised": largest_reversibilised(kernels, steps)}
    spectral = largest_spectral(kernels, steps)
    if spectral is not None:
        figures["spectral"] = spectral
    return {name: guarded(figure) for name, figure in figures.items()}
