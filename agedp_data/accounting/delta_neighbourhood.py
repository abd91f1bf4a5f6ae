"""delta-neighbourhood privacy: bounded changes are protected well, larger ones in proportion ([D]).

The idea: two datasets are delta-neighbours if the use of one household differs by less than delta and all else agrees.
The distance of two datasets is the number of such moves, and a release that is epsilon-private towards one move has a
loss of at most distance times epsilon (group privacy). Membership is public (the roster), so that arrivals and
departures are steps only on request.

Example: with delta = 2 kWh and epsilon = 0.1 a change of 4 kWh costs 0.2, the full range of 50 kWh costs 2.5.

Decisions and errata of the slides:

* "Bounded" and "unbounded" are swapped in [D]; `standard_distance` uses the usual meaning.
* On integers {0, 0, 0, 0} and {0, 0, 0, 9} are three moves apart at delta = 5, not two: with the strict inequality
  a move is at most 4.
* "2 delta costs 2 epsilon" needs values half-way. For moves below delta a change of 2 delta takes three (`moves`).

[D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.accounting.windows import window_budgets
from agedp_data.arrays import Number, Whole, as_written, on_one_scale
from agedp_data.errors import ChainError
from agedp_data.series.sensitivity import cumulative_counts, shifted_histograms

__all__ = [
    "cumulative_counts",
    "distance",
    "full_range_loss",
    "loss_of_change",
    "moves",
    "shifted_histograms",
    "standard_distance",
    "window_budgets",
]

_UNREACHABLE = -1
_NO_MOVE_MESSAGE = "whole numbers differ by at least 1; take a larger delta"

Neighbours = Literal["bounded", "unbounded", "combined"]


def moves(size: ArrayLike, *, delta: Number) -> NDArray[np.int64]:
    r"""Return the number of moves, each shorter than delta, that make a change of each size; use it for group privacy.

    .. math:: m(x) = \lfloor x / \delta \rfloor + 1 \text{ on the line}, \quad
       m(x) = \lceil x / (\lceil \delta \rceil - 1) \rceil \text{ on integers}, \quad m(0) = 0

    Source: [D] "Proposed formulation". A mechanism that is epsilon-private towards one move has a loss of at most m(x)
    epsilon about a change of x, with equality for some mechanisms. Erratum: "2 delta costs 2 epsilon" ([D] Scenario 3)
    needs values half-way; for moves below delta m(2 delta) = 3.

    Args:
        size: sizes of changes, shape (...), >= 0 [any unit]. Integer types are changes between integers, others are
            changes on the line.
        delta: bound of a move, > 0 [unit of `size`].

    Returns:
        Moves, shape (...), int64.

    Raises:
        ChainError: a delta that is not above 0, a negative size, or integers with delta <= 1, where no move exists.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> moves([0, 4, 5, 9], delta=5).tolist(), moves([4.0, 5.0, 9.0], delta=5).tolist()
    ([0, 1, 2, 3], [1, 2, 2])
    """
    _exact_positive(delta, "delta")
    sizes, scaled_delta, scaled_unit = on_one_scale(size, delta, 1)
    if sizes.size and sizes.min() < 0:
        raise ChainError("the size of a change is at least 0")
    move_counts = _count_moves(
        sizes, int(scaled_delta), integer_unit=int(scaled_unit) if _is_integer_type(size) else None
    )
    if (move_counts == _UNREACHABLE).any():
        raise ChainError(_NO_MOVE_MESSAGE)
    return np.asarray(move_counts, dtype=np.int64)


def distance(a: ArrayLike, b: ArrayLike, *, delta: Number, source: ArrayLike | None = None) -> int:
    r"""Return the least number of steps between two datasets: moves shorter than delta, arrivals and departures.

    .. math:: d(a, b) = \min_{\pi} \sum_i m(|a_i - b_{\pi(i)}|) + \bigl| |a| - |b| \bigr|

    Source: [D] "Standard vs delta-neighbourhood" (edit distance); m as in `moves`. Datasets are multisets. Without
    `source` the larger one has arrivals anywhere, as many as it is larger, and no departures. With `source`, the S of
    [D], a household may arrive or depart at any point nearer than delta to a point of S. The pairing is an assignment
    problem: sorted order is not always best ({0, 1} to {1, 2} is one move at delta = 3). Erratum: the slides' table has
    2 for the second example, which holds on the line only.

    Args:
        a: values, shape (n,) [any unit]; integer types live on integers, others on the line.
        b: values, shape (m,) [unit of `a`].
        delta: bound of a move, > 0 [unit of `a`].
        source: points S, shape (s,), or None [unit of `a`].

    Returns:
        Steps, integer >= 0.

    Raises:
        ChainError: values that are not finite numbers, a delta that is not above 0, or datasets that no steps connect.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> distance([0, 0, 0, 0], [0, 0, 1, 1], delta=5), distance([0, 0, 0, 0], [0, 0, 0, 9], delta=5)  # [D], table
    (2, 3)
    >>> distance([0.0, 0, 0, 0], [0.0, 0, 0, 9], delta=5)
    2
    """
    _exact_positive(delta, "delta")
    datasets = [np.ravel(values) for values in (a, b, () if source is None else source)]
    *scaled_datasets, scaled_delta, scaled_unit = on_one_scale(*datasets, delta, 1)
    is_integer = all(_is_integer_type(dataset) for dataset in datasets if dataset.size)
    delta_units, integer_unit = int(scaled_delta), int(scaled_unit) if is_integer else None
    only_a, only_b = _multiset_differences(scaled_datasets[0], scaled_datasets[1])
    move_cost = _count_moves(np.abs(only_a[:, None] - only_b[None, :]), delta_units, integer_unit=integer_unit)
    if source is None:
        return _min_assignment_cost(move_cost) + abs(only_a.size - only_b.size)
    departure_cost, arrival_cost = (
        _steps_to_source(dataset, scaled_datasets[2], delta_units, integer_unit) for dataset in (only_a, only_b)
    )
    return _min_assignment_cost(_with_outside(move_cost, departure_cost, arrival_cost))


def standard_distance(a: ArrayLike, b: ArrayLike, *, neighbours: Neighbours) -> int:
    r"""Return the distance under a standard neighbourhood, where a change of any size is one step.

    .. math:: |a \setminus b| \text{ (bounded)}, \quad |a \setminus b| + |b \setminus a| \text{ (unbounded)}, \quad
       \max(|a \setminus b|, |b \setminus a|) \text{ (combined)}

    Source: [K] for the names: bounded = replacements, unbounded = arrivals and departures, combined = all three.
    Erratum: [D] "Datasets Neighbourhood" has bounded and unbounded swapped.

    Args:
        a: values, shape (n,) [any unit].
        b: values, shape (m,) [unit of `a`].
        neighbours: "bounded" | "unbounded" | "combined".

    Returns:
        Steps, integer >= 0.

    Raises:
        ChainError: "bounded" for datasets of different sizes, or an unknown name.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.
        [K] Kifer, Machanavajjhala: No Free Lunch in Data Privacy. SIGMOD 2011.
        https://doi.org/10.1145/1989323.1989345

    >>> [standard_distance([0, 0, 0, 0], [0, 0, 0, 9], neighbours=name) for name in ("bounded", "unbounded")]
    [1, 2]
    """
    only_a, only_b = _multiset_differences(*on_one_scale(np.ravel(a), np.ravel(b)))
    match neighbours:
        case "unbounded":
            return only_a.size + only_b.size
        case "combined":
            return max(only_a.size, only_b.size)
        case "bounded" if only_a.size == only_b.size:
            return only_a.size
        case "bounded":
            raise ChainError("replacements never change how many there are; datasets of different sizes are not joined")
    raise ChainError(f'neighbours = {neighbours!r}: known are "bounded", "unbounded" and "combined"')


def loss_of_change(size: Number, *, epsilon: Number, delta: Number, full: Number | None = None) -> Fraction:
    r"""Return the loss of Laplace noise on a linear query (a sum, a mean) about a change of a household's use.

    .. math:: \varepsilon(x) = \varepsilon \, \frac{\min(x, U)}{\delta}

    Source: privacy loss of the Laplace mechanism at distance x; linear, and exact: no mechanism of this noise has less.
    For other statistics see `shifted_sensitivity` and `cumulative_sensitivity`, for other mechanisms `moves`. Erratum:
    by `moves` alone 2 delta would cost 3 epsilon; for Laplace noise the 2 epsilon of [D] Scenario 3 are right.

    Args:
        size: size x of the change, >= 0 [any unit]; a float counts as its shortest decimal.
        epsilon: loss about a change of delta, > 0 [epsilon].
        delta: protected change, > 0 [unit of `size`].
        full: range U of a household's use, its clamp, > 0; None: unbounded [unit of `size`].

    Returns:
        Exact fraction [epsilon]; round it up with `ceil_nano`.

    Raises:
        ChainError: a delta, epsilon or range that is not above 0, or a negative size.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> [float(loss_of_change(size, epsilon=0.1, delta=2, full=50)) for size in (2, 4, 50, 99)]
    [0.1, 0.2, 2.5, 2.5]
    """
    exact_size = as_written(size)
    if exact_size < 0:
        raise ChainError("the size of a change is at least 0")
    clamped_size = exact_size if full is None else min(exact_size, _exact_positive(full, "full"))
    return _exact_positive(epsilon, "epsilon") * clamped_size / _exact_positive(delta, "delta")


def full_range_loss(epsilon: Number, *, protected: int, full: int) -> Fraction:
    r"""Return the loss about a replacement of the day; every accountant except delta-neighbourhood uses this one.

    .. math:: \varepsilon_{\mathrm{full}} = \varepsilon \, \frac{\Delta_{\mathrm{full}}}{\Delta_\delta} \ge \varepsilon

    Source: privacy loss of Laplace noise calibrated to the sensitivity of a move ([D] "Sensitivity").

    Args:
        epsilon: loss about a change of delta, > 0 [epsilon].
        protected: L1 sensitivity to a change of delta, e.g. `sum_sensitivity(Move(delta))`, integer >= 1.
        full: L1 sensitivity to a replacement, integer >= `protected` [unit of `protected`].

    Returns:
        Exact fraction [epsilon]; round a loss up with `ceil_nano`, a budget down with `floor_nano`.

    Raises:
        ChainError: sensitivities that are not 1 <= protected <= full, or an epsilon that is not above 0.

    References:
        [D] Fang, Chang: Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets. ASIA CCS 2014.

    >>> float(full_range_loss(0.1, protected=2_000, full=50_000))  # a sum, delta = 2 kWh, clamp 50 kWh
    2.5
    """
    if not 1 <= protected <= full:
        raise ChainError(f"a change of delta moves the statistic by {protected} of {full}, which is no part of it")
    return _exact_positive(epsilon, "epsilon") * full / protected


def _count_moves(sizes: Whole, scaled_delta: int, *, integer_unit: int | None) -> Whole:
    """Return the moves of each size; `integer_unit` is 1 on the scale of sizes and delta, None on the line."""
    if integer_unit is None:
        return np.where(sizes > 0, sizes // scaled_delta + 1, 0)
    longest_move = (scaled_delta - 1) // integer_unit * integer_unit  # the longest whole move below delta
    return -(-sizes // longest_move) if longest_move else np.where(sizes > 0, _UNREACHABLE, 0)


def _steps_to_source(values: Whole, source: Whole, scaled_delta: int, integer_unit: int | None) -> Whole:
    """Return the steps by which each value departs (or arrives): the moves to the source, at least one."""
    if not source.size:
        raise ChainError("without a point in the source no value arrives or leaves; take source = None")
    steps = _count_moves(np.abs(values[:, None] - source[None, :]).min(axis=1), scaled_delta, integer_unit=integer_unit)
    return np.where(steps == 0, 1, steps)


def _with_outside(move_cost: Whole, departure_cost: Whole, arrival_cost: Whole) -> Whole:
    """Return the square problem in which every value may be paired with the outside, and the outside with itself."""
    n, m = move_cost.shape
    square = np.full((n + m, n + m), _UNREACHABLE, dtype=object)
    square[:n, :m] = move_cost
    square[np.arange(n), m + np.arange(n)] = departure_cost
    square[n + np.arange(m), np.arange(m)] = arrival_cost
    square[n:, m:] = 0
    return square


def _min_assignment_cost(cost: Whole) -> int:
    """Return the least cost of pairing all of the smaller side."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415  (slow to import, and few commands need it)

    weights = cost.astype(np.float64)
    weights[weights == _UNREACHABLE] = np.inf
    try:
        rows, columns = linear_sum_assignment(weights)
    except ValueError:  # no pairing at all
        raise ChainError(_NO_MOVE_MESSAGE) from None
    return sum(int(entry) for entry in cost[rows, columns])


def _multiset_differences(first: Whole, second: Whole) -> tuple[Whole, Whole]:
    """Return both differences of two multisets; a shortest path never moves what they share."""
    first_counts, second_counts = Counter(first.tolist()), Counter(second.tolist())
    return tuple(  # type: ignore[return-value]
        np.array(list(difference.elements()), dtype=first.dtype)
        for difference in (first_counts - second_counts, second_counts - first_counts)
    )


def _is_integer_type(values: ArrayLike) -> bool:
    return np.asarray(values).dtype.kind in "iu"


def _exact_positive(value: Number, name: str) -> Fraction:
    exact = as_written(value)
    if exact <= 0:
        raise ChainError(f"{name} = {value}: must be above 0")
    return exact
