r"""Least-squares consistency: noisy values of a total and of its groups -> estimates of all of them that add up.

The idea: a total and the sum of its groups are two noisy values of one number. Their mean, weighted by precision, is
better than either, and the groups share the correction in proportion to their variances. Released values go in and
nothing else, so no privacy loss is added.

Example: a total of 10 and two groups of 3 and 4, all with variance 1. The groups sum to 7 with variance 2, so the total
is estimated as 9 with variance 2/3, and each group gains 1.

Decisions:

* Values form a tree. A node may be divided in several ways at once, by tariff and by region, and each of its parts
  may be divided again. Two passes over the tree give the generalised least-squares estimate.
* A node that was not measured has an infinite variance. Parts of which one is not measured say nothing about their sum.
  Such parts are left out by the caller: least squares would leave their values as they are.

[HRMS] Hay, Rastogi, Miklau, Suciu: Boosting the Accuracy of Differentially Private Histograms Through Consistency.
PVLDB 2010. https://doi.org/10.14778/1920841.1920970
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np

from agedp_data import mechanisms
from agedp_data.arrays import Floats
from agedp_data.epsilon import EpsilonLike
from agedp_data.errors import ChainError
from agedp_data.roster import PATH_SEPARATOR


@dataclass(frozen=True, slots=True)
class NoisyValue:
    """A number, or one for each day, and the variance of its noise; an infinite variance: not measured."""

    value: float | Floats
    variance: float | Floats


@dataclass(frozen=True, slots=True)
class HierarchyNode:
    """A noisy value and its partitions; the parts of each add up to it."""

    noisy: NoisyValue
    partitions: tuple[tuple[HierarchyNode, ...], ...] = ()


def precision_mean(values: Sequence[NoisyValue]) -> NoisyValue:
    r"""Return the mean of noisy values of one number, weighted by precision; use it where a number was drawn twice.

    .. math:: \hat x = \hat v \sum_i \frac{x_i}{v_i}, \quad \frac{1}{\hat v} = \sum_i \frac{1}{v_i}

    Source: generalised least squares for independent errors (Gauss-Markov theorem).

    Args:
        values: values of any shape with positive variances; infinite ones do not count.

    Returns:
        The mean and its variance.

    Raises:
        ChainError: a variance that is not positive, or nothing was measured.

    >>> precision_mean([NoisyValue(10.0, 1.0), NoisyValue(7.0, 2.0)])
    NoisyValue(value=9.0, variance=0.6666666666666666)
    """
    if not all(_is_true(value.variance > 0) for value in values):
        raise ChainError("a noisy value has a variance above 0")
    precision = sum(1.0 / value.variance for value in values)
    if not _is_true(precision > 0):
        raise ChainError("a number has no estimate if neither it nor its parts were measured")
    variance = 1.0 / precision
    return NoisyValue(sum(value.value * (variance / value.variance) for value in values), variance)


def consistent_estimates(root: HierarchyNode) -> HierarchyNode:
    r"""Return the tree with the least-squares estimate of each node: the parts of a node add up to it.

    For a total x with variance v and one partition into groups with values x_g and variances v_g, with S = sum of v_g:

    .. math:: \hat x = \hat v \Bigl( \frac{x}{v} + \frac{\sum_g x_g}{S} \Bigr), \quad
              \frac{1}{\hat v} = \frac{1}{v} + \frac{1}{S}, \quad
              \hat x_g = x_g + \frac{v_g}{S} \Bigl( \hat x - \sum_h x_h \Bigr), \quad
              \hat v_g = v_g - \frac{v_g^2}{S} + \frac{v_g^2}{S^2} \hat v

    Several partitions each add a term 1/S. Source: [HRMS] Theorem 3, here for unequal variances and several partitions:
    upwards each node is combined with the sums of its parts, downwards each difference is divided among the parts.

    Args:
        root: values of any shape, the same one for all nodes. Noise is independent.

    Returns:
        A tree of the same form; the variances are those of the estimates.

    Raises:
        ChainError: a variance that is not positive, or a node is measured neither itself nor by its parts.

    References:
        [HRMS] https://doi.org/10.14778/1920841.1920970

    >>> groups = HierarchyNode(NoisyValue(3.0, 1.0)), HierarchyNode(NoisyValue(4.0, 1.0))
    >>> total = consistent_estimates(HierarchyNode(NoisyValue(10.0, 1.0), (groups,)))
    >>> total.noisy.value, [group.noisy.value for group in total.partitions[0]]
    (9.0, [4.0, 5.0])
    """
    upwards = _upwards(root)
    return _downwards(upwards, upwards.noisy)


def _upwards(node: HierarchyNode) -> HierarchyNode:
    """Return the tree in which each node has the estimate from itself and all that lies below it."""
    partitions = tuple(tuple(map(_upwards, parts)) for parts in node.partitions)
    return HierarchyNode(precision_mean([node.noisy, *map(_sum, partitions)]), partitions)


def _downwards(node: HierarchyNode, estimate: NoisyValue) -> HierarchyNode:
    """Return the subtree whose root has this estimate; the nodes have their estimates from below."""
    partitions = []
    for parts in node.partitions:
        below = _sum(parts)
        difference = estimate.value - below.value
        estimates = [
            _corrected(part.noisy, part.noisy.variance / below.variance, difference, estimate) for part in parts
        ]
        partitions.append(tuple(map(_downwards, parts, estimates)))
    return HierarchyNode(estimate, tuple(partitions))


def _corrected(part: NoisyValue, weight: float | Floats, difference: float | Floats, total: NoisyValue) -> NoisyValue:
    """Return a part after its share of the difference between the total and the sum of all parts."""
    return NoisyValue(part.value + weight * difference, part.variance * (1 - weight) + weight**2 * total.variance)


def _sum(parts: Sequence[HierarchyNode]) -> NoisyValue:
    values = [part.noisy for part in parts]
    return NoisyValue(sum(noisy.value for noisy in values), sum(noisy.variance for noisy in values))


def _is_true(condition: object) -> bool:
    """Return whether a comparison holds, of a number or of all numbers of an array; numpy is slow for single ones."""
    return condition is True or bool(np.all(condition))  # type: ignore[call-overload]


# --------------------------------------------------------------------------------------------------
# Sums of independent discrete Laplace noises of several scales: standard deviation, and an interval that holds.
#
# The idea: the energy of a month is the sum of its released days, so its noise is the sum of their noises. The law of
# a sum S of n noises with q_i = exp(-1/scale_i) has the characteristic function
#
# .. math:: \varphi(\theta) = \prod_{i=1}^n \frac{1}{1 + 2 \sigma_i^2 \sin^2(\theta/2)}, \quad
#           2 \sigma_i^2 = \frac{4 q_i}{(1 - q_i)^2}
#
# which is real and positive, and is inverted on a lattice.
#
# Example: the mean of 31 days with noise of scale 100,000 Wh each has noise with a standard deviation of
# sqrt(2 x 31) x 100,000 = 787,401 Wh of energy, and lies within 1,548,623 Wh with probability 95 %.
#
# Decisions:
#
# * An interval covers its share with certainty: every error of the inversion is bounded, and the bounds are added on
#   the safe side. They are below 1e-10, or below 1e-7 if one noise exceeds all others together by far.
# * The normal approximation is not used. Its interval of 95 % covers 93.8 % of one noise and 94.7 % of seven; that of
#   99 % covers 97.4 % and 98.6 %.
#
# [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
# https://doi.org/10.1145/1536414.1536464
# --------------------------------------------------------------------------------------------------

_FAR_TAIL: Final = 1e-14
"""Probability beyond half a period of the lattice: what aliasing adds at most."""
_TRUNCATION: Final = 1e-11
"""Bound on the terms that are left out, if so few of them can be computed."""
_MOST_TERMS: Final = 2**17
_ULP: Final = float(np.finfo(np.float64).eps)
_CHERNOFF_RATES: Final = np.concatenate([np.geomspace(1e-4, 0.5, 48), 1 - np.geomspace(0.5, 1e-9, 48)[1:]])
"""Rates of the exponential bound, as parts of the largest possible one."""


def sum_deviation(scales: Iterable[float]) -> float:
    r"""Return the standard deviation of a sum of independent noises; use it for the error of a sum of releases.

    .. math:: \sigma = \Bigl( \sum_i \frac{2 q_i}{(1 - q_i)^2} \Bigr)^{1/2}

    Source: variance of the law of [GRS]; variances of independent noises add up.

    Args:
        scales: noise scale of each term, > 0 [any unit].

    Returns:
        Standard deviation [unit of `scales`].

    Raises:
        ChainError: a scale that is not a positive number.

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> round(sum_deviation([3.0, 4.0]), 3)  # sqrt(4.223^2 + 5.642^2)
    7.048
    """
    counts = Counter(scales)
    return math.sqrt(math.fsum(number * mechanisms.standard_deviation(scale) ** 2 for scale, number in counts.items()))


def sum_interval(scales: Iterable[float], coverage: EpsilonLike) -> int:
    r"""Return a half-width w of the noise interval of a sum: P(abs(S) <= w) >= coverage, and w is the smallest such.

    .. math:: P(|S| \le w) = \frac{1}{M} \Bigl[ 2w + 1 + 2 \sum_{k=1}^{(M-1)/2} \varphi(\theta_k)
              \frac{\sin((2w+1) \theta_k / 2)}{\sin(\theta_k / 2)} \Bigr] - A, \quad \theta_k = \frac{2 \pi k}{M}

    Source: inverse discrete Fourier transform of the law of S modulo an odd M. A is the probability of the multiples of
    M; an exponential bound keeps it below 1e-14. One noise has a closed form (`mechanisms.interval`).

    Args:
        scales: noise scale of each term, > 0 [any unit].
        coverage: probability that the interval holds, in (0, 1) [-].

    Returns:
        Half-width, integer >= 0 [unit of `scales`]. Where the coverage of an integer differs from the one that is asked
        for by less than the error of the inversion, 1e-10 as a rule, the next larger integer may be returned.

    Raises:
        ChainError: no scale, a scale that is not a positive number, or a coverage outside (0, 1).

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464
        Chernoff: A Measure of Asymptotic Efficiency for Tests of a Hypothesis Based on the Sum of Observations. Ann.
        Math. Statist. 23, 1952.

    >>> sum_interval([1.0, 1.0], 0.6), sum_interval([1.0, 1.0], 0.7)  # P(0) = .280, P(abs <= 1) = .644
    (1, 2)
    """
    terms = sorted(scales)
    smallest_width = mechanisms.interval(max(terms, default=math.nan), coverage)
    if len(terms) == 1:
        return smallest_width
    return _inverted_interval(tuple(sorted(Counter(terms).items())), Fraction(coverage))


@dataclass(frozen=True, slots=True, eq=False)
class _InvertedLaw:
    """Law of a sum of noises on a lattice: `number` noises of each `rate` = 1/scale, and the terms of its inversion."""

    number: Floats
    rate: Floats
    period: int
    weights: Floats
    error: float

    def bounds(self, width: int) -> tuple[float, float]:
        """Return a lower and an upper bound on P(abs(S) <= width)."""
        if width < 0:
            return 0.0, 0.0
        if width > (self.period - 1) // 2:
            return 1 - _FAR_TAIL, 1.0
        part = (2 * width + 1) / self.period
        terms = self.weights * np.sin(np.pi * part * np.arange(1, self.weights.size + 1))
        probability = part + float(terms.sum())
        return max(0.0, probability - self.error - _FAR_TAIL), min(1.0, probability + self.error)

    def tail_width(self, tail: float) -> int:
        """Return a width that the sum exceeds with at most this probability."""
        return _chernoff_width(self.number, self.rate, tail)


@lru_cache(maxsize=2**14)
def _inverted_interval(counts: tuple[tuple[float, int], ...], share: Fraction) -> int:
    """Return the half-width of a sum's interval by inversion of its law, by the number of noises of each scale."""
    law = _inverted_law(counts)
    high = law.tail_width(float(1 - share))
    if law.bounds(high)[0] < share:
        return high  # the exponential bound holds where the inversion resolves no smaller tail
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if law.bounds(middle)[0] >= share else (middle, high)
    return high


def _inverted_law(counts: tuple[tuple[float, int], ...]) -> _InvertedLaw:
    """Return the law of a sum, by the number of noises of each scale."""
    scales, numbers = np.array(counts, np.float64).T
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ChainError("a noise scale is a positive number")
    rate = 1 / scales
    period = 2 * _chernoff_width(numbers, rate, _FAR_TAIL) + 1
    doubled_variance = 4 * np.exp(-rate) / np.expm1(-rate) ** 2
    terms, truncation = _terms_needed(numbers, doubled_variance, period)
    half_angle = np.pi * np.arange(1, terms + 1) / period
    squared_sine = np.sin(half_angle) ** 2
    exponent = np.zeros(terms)
    for number, variance in zip(numbers, doubled_variance, strict=True):
        exponent += number * np.log1p(variance * squared_sine)
    weights = 2 * np.exp(-exponent) / (period * np.sin(half_angle))
    rounding = (64 + len(counts)) * _ULP * (1 + float(np.abs(weights).sum()))
    return _InvertedLaw(numbers, rate, period, weights, truncation + rounding)


def _chernoff_width(number: Floats, rate: Floats, tail: float) -> int:
    r"""Return a width w with P(|S| > w) <= tail.

    .. math:: P(|S| \ge x) \le 2 e^{-tx} \prod_i \frac{(1 - q_i)^2}{(1 - q_i e^t)(1 - q_i e^{-t})}, \quad
              0 < t < 1/\mathrm{scale}
    """
    slope = rate.min() * _CHERNOFF_RATES[:, None]
    log_moments = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(slope - rate)) - np.log(-np.expm1(-slope - rate))
    bound = (math.log(2) - math.log(tail) + (number * log_moments).sum(axis=1)) / slope[:, 0]
    return max(math.ceil(float(bound.min()) * (1 + 1e-9)) - 1, 0)


def _terms_needed(number: Floats, doubled_variance: Floats, period: int) -> tuple[int, float]:
    r"""Return how many terms of the inversion are computed, and a bound on the sum of all others.

    With sin(x/2) >= x/pi on [0, pi], the term of index k is at most g(theta_k)/k, where g is a product of factors
    1/(1 + c theta^2). Its slope p = -d ln g/d ln theta never decreases, hence

    .. math:: \sum_{k > K} \frac{g(\theta_k)}{k} \le \int_K^\infty g(\theta_K) \Bigl( \frac{K}{x} \Bigr)^p \frac{dx}{x}
              = \frac{g(\theta_K)}{p}
    """
    all_terms = (period - 1) // 2
    most = min(all_terms, _MOST_TERMS)
    candidates = np.unique(np.ceil(np.geomspace(min(16, most), most, 48)).astype(np.int64)) if most else np.zeros(1)
    angle = 2 * np.pi * candidates / period
    growth = doubled_variance * (angle[:, None] / np.pi) ** 2
    slope = (2 * number * growth / (1 + growth)).sum(axis=1)
    decay = np.exp(-(number * np.log1p(growth)).sum(axis=1))
    bound = np.divide(decay, slope, out=np.full(decay.shape, np.inf), where=slope > 0)
    enough = np.flatnonzero(bound <= _TRUNCATION)
    if enough.size and candidates[enough[0]] < all_terms:
        return int(candidates[enough[0]]), float(bound[enough[0]])
    return most, 0.0 if most == all_terms else float(bound[-1])


# --------------------------------------------------------------------------------------------------
# Means of one quantity: averages of all households and of groups, some of which add up to others.
# --------------------------------------------------------------------------------------------------

Columns = tuple[str, ...]
"""Group columns, the finest first; none: all households."""


def next_coarser(columns: Columns, drawn: Collection[Columns]) -> Columns | None:
    """Return the columns of the groups that groups by these columns add up to: the finest coarser ones, None without.

    Groups by ("feeder", "area") add up to those by ("area",), and these to all households, ().

    Args:
        columns: of the groups.
        drawn: those of the values that there are.

    >>> next_coarser(("feeder", "area"), [("area",), ()]), next_coarser(("feeder", "area"), [("tariff",)])
    (('area',), None)
    """
    suffixes = (columns[i:] for i in range(1, len(columns) + 1))
    return next((suffix for suffix in suffixes if suffix in drawn), None)


def totals_with_groups(series: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the names of means that add up to each other: all households, groups, and groups within these.

    Args:
        series: series of one contract by name.

    Returns:
        Names by quantity, those of all households first, then coarser before finer groups; means that neither add up to
        another nor are such a sum are left out.

    >>> mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.4"}
    >>> terms = {"tariffs": {**mean, "by": "tariff"}, "total": mean, "low": {**mean, "clamp_kwh": "9"}}
    >>> from agedp_data.series.series import series_of
    >>> totals_with_groups(series_of({"series": terms}))
    [('total', 'tariffs')]
    """
    by_quantity: dict[tuple[int, int, int, int, str], list[str]] = {}
    means = {name: mean for name, mean in series.items() if mean.statistic == "mean" and not mean.covers_periods}
    for name in sorted(means, key=lambda name: (len(means[name].columns), means[name].columns, name)):
        by_quantity.setdefault(means[name].quantity, []).append(name)
    sums = (_with_sums({name: means[name].columns for name in names}) for names in by_quantity.values())
    return [names for names in sums if names]


def _with_sums(columns: Mapping[str, Columns]) -> tuple[str, ...]:
    """Return the names of the means of which one is the sum of another."""
    drawn = set(columns.values())
    coarser = {finer: next_coarser(finer, drawn) for finer in drawn}
    related = {finer for finer in drawn if coarser[finer] is not None} | set(coarser.values())
    return tuple(name for name in columns if columns[name] in related)


# --------------------------------------------------------------------------------------------------
# Noisy sums of a day, by levels of groups -> least-squares estimates in which finer groups add up to coarser ones.
#
# Groups of a hierarchy are named by paths, so "north/F12" lies in "north" and this in all households. Groups that add
# up to a coarser one are a partition of it (`consistency.HierarchyNode`).
#
# Example: areas north and south, and the feeders of north alone: north and its feeders are one tree, south another
# one.
#
# Decisions:
#
# * A partition counts only if its households are as many as those of the group that it divides. Where small groups
#   were not released, nothing is known of the rest. What lies below an incomplete partition is estimated by itself.
# * The groups of several hierarchies, or columns, are partitions of the same total side by side.
# * A group without a coarser one is the root of a tree. A tree of one group has no estimate but the noisy value.
# --------------------------------------------------------------------------------------------------

GroupPlace = tuple[Columns, int]
"""Group columns, the finest first, and the place among their groups."""


@dataclass(frozen=True, slots=True)
class DrawnGroups:
    """Groups by the same columns on one day: names, households and noisy sums, each (n,); "all" for no column."""

    groups: tuple[str, ...]
    households: tuple[int, ...]
    noisy: tuple[NoisyValue, ...]


@dataclass(frozen=True, slots=True)
class GroupEstimate:
    """An estimate of a group's sum, and the columns of all groups whose noisy sums enter it."""

    noisy: NoisyValue
    based_on: frozenset[Columns]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A group and its complete partitions."""

    place: GroupPlace
    partitions: tuple[tuple[_Branch, ...], ...]

    def places(self) -> Iterator[GroupPlace]:
        yield self.place
        for parts in self.partitions:
            for part in parts:
                yield from part.places()


def consistent_groups(drawn: Mapping[Columns, DrawnGroups]) -> dict[GroupPlace, GroupEstimate]:
    """Return the estimates of groups that are divided by finer ones, or are part of such a division.

    Args:
        drawn: the groups of a day by their columns.

    Returns:
        Estimates by place; groups without one are left out, and their noisy sums are the best values.

    >>> total = DrawnGroups(("all",), (9,), (NoisyValue(10.0, 1.0),))
    >>> areas = DrawnGroups(("n", "s"), (4, 5), (NoisyValue(3.0, 1.0), NoisyValue(4.0, 1.0)))
    >>> [estimate.noisy.value for estimate in consistent_groups({(): total, ("area",): areas}).values()]
    [9.0, 4.0, 5.0]
    """
    parts = _complete_partitions(drawn)
    inner = {place for partitions in parts.values() for places in partitions for place in places}
    estimates: dict[GroupPlace, GroupEstimate] = {}
    for place in parts:
        if place not in inner:
            branch = _branch(place, parts)
            based_on = frozenset(columns for columns, _ in branch.places())
            root = consistent_estimates(_node(branch, drawn))
            estimates |= {at: GroupEstimate(noisy, based_on) for at, noisy in _values(branch, root)}
    return estimates


def _complete_partitions(drawn: Mapping[Columns, DrawnGroups]) -> dict[GroupPlace, list[list[GroupPlace]]]:
    """Return the partitions of each group whose households are all in them."""
    place_of = {
        columns: {_path(columns, group): i for i, group in enumerate(of.groups)} for columns, of in drawn.items()
    }
    partitions: dict[GroupPlace, list[list[GroupPlace]]] = {}
    for columns, of in drawn.items():
        coarser = next_coarser(columns, drawn)
        if coarser is None:
            continue
        by_group: dict[int, list[int]] = {}
        for i, group in enumerate(of.groups):
            divided = place_of[coarser].get(_path(columns, group)[: len(coarser)])
            if divided is not None:
                by_group.setdefault(divided, []).append(i)
        for divided, parts in by_group.items():
            if sum(of.households[i] for i in parts) == drawn[coarser].households[divided]:
                partitions.setdefault((coarser, divided), []).append([(columns, i) for i in parts])
    return partitions


def _path(columns: Columns, group: str) -> tuple[str, ...]:
    """Return the labels of a group, the coarsest first; a label of a single column may contain the separator."""
    if not columns:
        return ()
    return tuple(group.split(PATH_SEPARATOR)) if len(columns) > 1 else (group,)


def _branch(place: GroupPlace, partitions: Mapping[GroupPlace, list[list[GroupPlace]]]) -> _Branch:
    below = partitions.get(place, ())
    return _Branch(place, tuple(tuple(_branch(part, partitions) for part in parts) for parts in below))


def _node(branch: _Branch, drawn: Mapping[Columns, DrawnGroups]) -> HierarchyNode:
    columns, i = branch.place
    partitions = (tuple(_node(part, drawn) for part in parts) for parts in branch.partitions)
    return HierarchyNode(drawn[columns].noisy[i], tuple(partitions))


def _values(branch: _Branch, node: HierarchyNode) -> Iterator[tuple[GroupPlace, NoisyValue]]:
    """Yield the estimates of a tree by place, each group before its parts."""
    yield branch.place, node.noisy
    for parts, nodes in zip(branch.partitions, node.partitions, strict=True):
        for part, of_part in zip(parts, nodes, strict=True):
            yield from _values(part, of_part)
