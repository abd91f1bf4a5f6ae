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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError


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
