"""delta-neighbourhood privacy: plausible changes are protected well, larger ones in proportion ([D], MATHS 6).

[D] is C. Fang and E.-C. Chang, Differential Privacy with delta-Neighbourhood for Spatial and Dynamic Datasets, 2014
(slides). Datasets are neighbours if the use of one household differs by less than delta and all else agrees; their
distance is the number of such moves, and what a release says about them is at most distance times epsilon. Who is
counted is known (the roster), so an arrival or departure is a step only where it is asked for.

The slides are not followed to the letter: "bounded" and "unbounded" are the other way round (`standard_distance`); in
whole numbers {0, 0, 0, 0} and {0, 0, 0, 9} are three moves apart at delta = 5, not two, for a move is at most 4; and
"2 delta costs 2 epsilon" needs values half-way, and of moves below delta always a third one (`moves`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.counts import cumulative_counts, shifted_histograms
from agedp_data.privacy.exact import Number, Whole, as_written, on_one_scale
from agedp_data.privacy.windows import window_budgets

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
_NO_MOVE_MESSAGE = "between whole numbers no move is shorter than 1; take a larger delta"

Neighbours = Literal["bounded", "unbounded", "combined"]


def moves(size: ArrayLike, *, delta: Number) -> NDArray[np.int64]:
    """Return how many moves, each shorter than delta, make a change of each size.

    floor(x/delta) + 1 for 0 < x; between whole numbers, where a move is at most m = ceil(delta) - 1, ceil(x/m).
    Sizes of an integer type are taken for changes between whole numbers, others for changes on the line. Any mechanism
    that is epsilon-private towards one move costs a change of x at most moves(x) epsilon; some cost just that.

    Shapes: (...) -> (...). Units: [any], delta [the same] -> [moves].

    Raises:
        ChainError: a delta that is not above 0, a negative size, or whole numbers with delta <= 1, where nothing moves.

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
    """Return the fewest steps from one dataset to the other: moves shorter than delta, arrivals and departures.

    Datasets are multisets of values. Without `source` the larger one has arrivals, as many as it is larger, anywhere,
    and no departures: of equal sizes the distance counts moves alone. With `source`, the S of [D], a household may
    arrive or leave at any point nearer than delta to a point of S, however many do. Datasets of an integer type live
    among whole numbers, others on the line. The pairing is an assignment problem (sorted order is not always best:
    {0, 1} to {1, 2} is one move at delta = 3).

    Shapes: (n,), (m,), (s,) -> []. Units: [any], delta [the same] -> [steps].

    Raises:
        ChainError: values that are no finite numbers, a delta that is not above 0, or datasets that no steps connect.

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
    """Return the distance under a standard neighbourhood, where a change of any size is one step.

    "bounded": replacements; "unbounded": arrivals and departures; "combined": all three (Kifer and Machanavajjhala,
    SIGMOD 2011; the slides give the first two names the other way round). Shapes: (n,), (m,) -> []. Units: [steps].

    Raises:
        ChainError: "bounded" for datasets of different sizes, or an unknown name.

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
    """Return what Laplace noise on a linear query (a sum, a mean) says about a change of a household's use.

    epsilon min(x, full)/delta, exactly, and no mechanism of this noise says less (MATHS 6). For other statistics
    see `sensitivity`, for other mechanisms `moves`. Exact: `losses.ceil_nano` rounds it up. Amounts that are floats are
    taken as written. Units: size, delta, full [the same], epsilon [-] -> [-].

    Args:
        size: how large a change.
        epsilon: loss of a change of delta.
        delta: the change that is protected.
        full: the range of a household's use, its clamp; no change is larger. None: unbounded.

    Raises:
        ChainError: a delta, epsilon or range that is not above 0, or a negative size.

    >>> [float(loss_of_change(size, epsilon=0.1, delta=2, full=50)) for size in (2, 4, 50, 99)]
    [0.1, 0.2, 2.5, 2.5]
    """
    exact_size = as_written(size)
    if exact_size < 0:
        raise ChainError("the size of a change is at least 0")
    clamped_size = exact_size if full is None else min(exact_size, _exact_positive(full, "full"))
    return _exact_positive(epsilon, "epsilon") * clamped_size / _exact_positive(delta, "delta")


def full_range_loss(epsilon: Number, *, protected: int, full: int) -> Fraction:
    """Return the loss of a replacement, epsilon full/protected: what every other accountant is fed (MATHS 6).

    Exact: `losses.ceil_nano` rounds it up, and `losses.floor_nano` rounds what a cap on it leaves down. Never less than
    epsilon. Units: epsilon [-], sensitivities [the statistic's] -> [-].

    Args:
        epsilon: loss of a change of delta.
        protected: L1 sensitivity to a change of delta (`sensitivity`, `Move(delta)`).
        full: L1 sensitivity to a replacement of the whole day.

    Raises:
        ChainError: sensitivities that are not 1 <= protected <= full, or an epsilon that is not above 0.

    >>> float(full_range_loss(0.1, protected=2_000, full=50_000))  # a sum, delta = 2 kWh, clamp 50 kWh
    2.5
    """
    if not 1 <= protected <= full:
        raise ChainError(f"a change of delta moves the statistic by {protected} of {full}, which is no part of it")
    return _exact_positive(epsilon, "epsilon") * full / protected


def _count_moves(sizes: Whole, scaled_delta: int, *, integer_unit: int | None) -> Whole:
    """Return the moves of each size; `one` is what 1 is on the scale of sizes and step if only whole numbers exist."""
    if integer_unit is None:
        return np.where(sizes > 0, sizes // scaled_delta + 1, 0)
    longest_move = (scaled_delta - 1) // integer_unit * integer_unit  # the longest whole move below delta
    return -(-sizes // longest_move) if longest_move else np.where(sizes > 0, _UNREACHABLE, 0)


def _steps_to_source(values: Whole, source: Whole, scaled_delta: int, integer_unit: int | None) -> Whole:
    """Return the steps by which each value leaves (or arrives): the moves to the source, the last one being that."""
    if not source.size:
        raise ChainError("without a point in the source nobody arrives or leaves; take source = None")
    steps = _count_moves(np.abs(values[:, None] - source[None, :]).min(axis=1), scaled_delta, integer_unit=integer_unit)
    return np.where(steps == 0, 1, steps)


def _with_outside(move_cost: Whole, departure_cost: Whole, arrival_cost: Whole) -> Whole:
    """Return the square problem in which everyone may be paired with the outside, and the outside with itself."""
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
    """Return what is left of two multisets without what they share, which no shortest way needs to move."""
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
