"""From the chains of all households to their envelope."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.envelope import LeakageBound
from agedp_data.chains.hull import PiecewiseLeakage
from agedp_data.chains.maxima import UpperHulls, max_reversibilised_bound, max_spectral_bound, upper_hulls
from agedp_data.chains.rounding import round_up_with_slack
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps
from agedp_data.privacy.leakage import leakage_from_total_variation
from agedp_data.privacy.pieces import gain

BOUND_METHODS = ("total_variation", "reversibilised", "spectral")


def composition_age_steps(days: Iterable[int], *, steps_per_day: int) -> NDArray[np.int64]:
    """Return the ages in steps at which releases that lie so many days apart need an envelope (MATHS 4).

    With m steps a day and g days from one release to the next: m g from the end of one day to that of the other, and
    1 + m (g - 1) from there to its beginning; days that follow each other among them. One step less is taken for the
    latter where it is tabulated anyhow.

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
        reliable: whether all rows of a household are reliable.
        forward: forward one-step chains of the same households, if forward losses are wanted.
        steps_per_day: how many steps make a day.
        pieces: whether to keep those that L is the largest of, which say more of a kernel than the grid does: for one
            that is public.

    Raises:
        ChainError: no household, kernels that are no chains, or shapes that do not fit.
    """
    kernels = np.asarray(backward, dtype=np.float64)
    steps, grid, is_reliable = (
        checked_steps(ages, what="ages"),
        checked_loss(losses),
        np.asarray(reliable, dtype=np.bool_),
    )
    if kernels.ndim != 3 or not kernels.shape[0] or is_reliable.shape != kernels.shape[:1]:
        raise ChainError("an envelope needs at least one household, and a mark for each whether its rows are reliable")
    if forward is not None and np.shape(forward) != kernels.shape:
        raise ChainError("forward and backward chains must be those of the same households")
    if not is_reliable.all():
        return _identity_bound(steps, grid, forward is not None, steps_per_day)
    hulls_by_direction = {"backward": upper_hulls(kernels, steps)}
    if forward is not None:
        hulls_by_direction["forward"] = upper_hulls(np.asarray(forward, dtype=np.float64), steps)
    tables = {name: _hull_table(upper, grid) for name, upper in hulls_by_direction.items()}
    bounds = {
        "total_variation": round_up_with_slack(hulls_by_direction["backward"].distances),
        **_chain_bounds(kernels, steps),
    }
    capped = {name: np.minimum(bound, 1.0) for name, bound in bounds.items()}
    pieces_by_direction = (
        {
            name: tuple(PiecewiseLeakage.from_floats(*hull) for hull in upper.hulls)
            for name, upper in hulls_by_direction.items()
        }
        if pieces
        else {}
    )
    return LeakageBound(
        steps, grid, **tables, bounds=capped, steps_per_day=steps_per_day, assume="markov", hulls=pieces_by_direction
    )


def leakage_bound_from_distances(
    distances: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    *,
    reliable: ArrayLike,
    forward: ArrayLike | None = None,
    steps_per_day: int = 48,
) -> LeakageBound:
    """Return the envelope of households of which only total variations are known, for example `sampling_bound`.

    L(a) = ln(1 + Delta(t)(e^a - 1)) with the largest Delta over the households, those of the reversed chains; of the
    forward ones, if losses ahead are wanted, `forward`.

    Shapes: (h, T), (T,) ascending steps, (m,), (h,) bool, (h, T) -> tables (T, m), bounds (T,). Units: [-].

    Raises:
        ChainError: no household, distances outside [0, 1], or shapes that do not fit.

    >>> found = leakage_bound_from_distances([[0.64], [0.5]], [48], [0.5], reliable=[True, True])
    >>> found.backward.tolist(), found.bounds["total_variation"].tolist()  # rounded up to whole 1e-9
    ([[0.347257872]], [0.640000001])
    """
    backward_distance, is_reliable = np.asarray(distances, dtype=np.float64), np.asarray(reliable, dtype=np.bool_)
    forward_distance = backward_distance if forward is None else np.asarray(forward, dtype=np.float64)
    steps, grid = checked_steps(ages, what="ages"), checked_loss(losses)
    if (
        backward_distance.ndim != 2
        or not backward_distance.shape[0]
        or not backward_distance.shape == forward_distance.shape == (is_reliable.size, steps.size)
    ):
        raise ChainError("an envelope needs at least one household, and for each a distance at every age")
    if not is_reliable.all():
        return _identity_bound(steps, grid, forward is not None, steps_per_day)
    backward_table, forward_table = (
        _distance_table(distance.max(axis=0), grid) for distance in (backward_distance, forward_distance)
    )
    bounds = {"total_variation": np.minimum(round_up_with_slack(backward_distance.max(axis=0)), 1.0)}
    return LeakageBound(
        steps, grid, backward_table, None if forward is None else forward_table, bounds, steps_per_day, "markov"
    )


def _distance_table(distances: Floats, grid: Floats) -> Floats:
    return np.minimum(round_up_with_slack(leakage_from_total_variation(distances[:, None], grid)), grid)


def _identity_bound(steps: NDArray[np.int64], grid: Floats, with_forward: bool, steps_per_day: int) -> LeakageBound:
    """Return the envelope that credits no age at all."""
    table = np.tile(grid, (steps.size, 1))
    bounds = {name: np.ones(steps.size) for name in BOUND_METHODS}
    return LeakageBound(steps, grid, table, table if with_forward else None, bounds, steps_per_day, "markov")


def _hull_table(hulls: UpperHulls, grid: Floats) -> Floats:
    """Return the largest L (T, m) over the households."""
    return np.array([np.minimum(round_up_with_slack(gain(over, under, grid)), grid) for over, under in hulls.hulls])


def _chain_bounds(kernels: Floats, steps: NDArray[np.int64]) -> dict[str, Floats]:
    # Both are the same for a chain and its reverse, so either may be given.
    bounds = {"reversibilised": max_reversibilised_bound(kernels, steps)}
    spectral = max_spectral_bound(kernels, steps)
    if spectral is not None:
        bounds["spectral"] = spectral
    return {name: round_up_with_slack(bound) for name, bound in bounds.items()}
