r"""Shares of a total beside its groups: the noise of both for an equal (epsilon, delta) bound of a span of days.

The idea: a household is in one group, so the groups of a day cost one release, and their sum is a noisy total with G
times the variance of a group. A total of its own, released beside them, is a second release. By pure sums its share of
the loss is lost to the groups. Over a long span at a delta the squares of small losses add up instead, so that a total
with half of the groups' loss costs the groups 12 % of noise; least squares (`series.consistency`) returns a part of it.

Example: a year, 10 groups, one third of each day's loss for the total. The groups have 1.08 times the noise of groups
alone, the total 0.60 times the noise of their sum. By pure sums the groups would have 1.45 times the noise.

Decisions:

* Compared are releases with an equal bound over the same days: the loss of a day is solved for each choice of shares.
* Noise is that of the sums; how many households a group has does not matter. Scales are those of sums in watt-hours, so
  large that the variance is 2 / loss^2 in units of the clamp.
* Shares are whole percents, as people write them.

[HRMS] Hay, Rastogi, Miklau, Suciu: Boosting the Accuracy of Differentially Private Histograms Through Consistency.
PVLDB 2010. https://doi.org/10.14778/1920841.1920970
[CKS] Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy. NeurIPS 2020.
https://doi.org/10.48550/arXiv.2004.00010
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from agedp_data.accounting.renyi import Curve, approximate_epsilon, compose, laplace_curve, largest_equal_loss, multiply
from agedp_data.epsilon import NANO, EpsilonLike
from agedp_data.errors import ChainError

_PERCENTS: Final = 100

GroupSeries = tuple[int, Fraction]
"""A series of groups: the number G of its groups, and its part of what all series of groups have."""


@dataclass(frozen=True, slots=True)
class SpanBudget:
    """Bound of a span of `days`: `epsilon` at `delta` [nano-epsilon], and `cap`, the largest loss of a day.

    A delta of 0 is the pure sum. `sensitivity` is the clamp [Wh].

    Source: data structure, without a formula.
    """

    days: int
    epsilon: int
    delta: EpsilonLike
    cap: int
    sensitivity: int


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Noise of a total with a `share`, and of its groups, after least squares.

    `groups` is the noise of a group of each series, as a multiple of that of groups alone; `total` that of the total,
    as a multiple of that of the best sum of groups alone.

    Source: data structure, without a formula; `shared_noise` computes it.
    """

    share: Fraction
    groups: tuple[float, ...]
    total: float


def consistent_noise(total_loss: float, groups: Sequence[tuple[int, float]]) -> tuple[float, tuple[float, ...]]:
    r"""Return the noise of a total and of a group of each series, after least squares.

    With v_0 and v_k the variances of the total and of a group of series k, which has G_k groups:

    .. math:: \frac{1}{\hat v_0} = \frac{1}{v_0} + \sum_k \frac{1}{G_k v_k}, \quad
              \hat v_k = v_k \Bigl( 1 - \frac{1}{G_k} \Bigr) + \frac{\hat v_0}{G_k^2}, \quad
              v = \frac{2 U^2}{\mathrm{loss}^2}

    Source: [HRMS] Theorem 3 for one level; `series.consistency` computes the same from released values.

    Args:
        total_loss: loss of the release of the total, >= 0 [epsilon]; 0: it is not released.
        groups: number of groups and loss of each series of groups.

    Returns:
        Standard deviation of the total's sum, and of a group's sum by series [sqrt(2) U, with U the clamp].

    References:
        [HRMS] https://doi.org/10.14778/1920841.1920970

    >>> total, (group,) = consistent_noise(0.5, [(4, 1.0)])  # v_0 = 4, sum of the groups 4: the mean of both has 2
    >>> round(total**2, 6), round(group**2, 6)
    (2.0, 0.875)
    """
    variance = 1 / (total_loss**2 + sum(loss**2 / number for number, loss in groups))
    return math.sqrt(variance), tuple(
        math.sqrt((1 - 1 / number) / loss**2 + variance / number**2) for number, loss in groups
    )


def span_epsilon(losses: Sequence[float], *, days: int, delta: EpsilonLike, sensitivity: int) -> int:
    r"""Return the bound over a span of days of which each has releases with these losses, rounded up.

    Source: [CKS] Proposition 12, as `renyi.approximate_epsilon`.

    Args:
        losses: losses of the series of a day, above 0 [epsilon].
        days: number of days.
        delta: probability, 0 <= delta < 1 [-].
        sensitivity: clamp [Wh].

    Returns:
        Integer [nano-epsilon].

    References:
        [CKS] https://doi.org/10.48550/arXiv.2004.00010

    >>> span_epsilon([0.1], days=365, delta=1e-6, sensitivity=50_000) / 10**9  # reference value: 10.748
    10.748499677
    """
    pure = days * sum(math.ceil(loss * NANO) for loss in losses)
    return approximate_epsilon(multiply(_curve(losses, sensitivity), days), delta, pure=pure)


def shared_noise(share: Fraction, groups: Sequence[GroupSeries], budget: SpanBudget) -> SharedNoise:
    r"""Return the noise of a total with a share of each day's loss and of its groups, compared with groups alone.

    .. math:: e(w) = \max \{ e : \varepsilon_{T R(w e) + T \sum_k R((1 - w) p_k e)}(\delta) \le \varepsilon \}

    Source: `consistent_noise` for losses w e(w) and (1 - w) p_k e(w), divided by that of groups alone, p_k e(0).

    Args:
        share: share w of the total, from 0 to below 1.
        groups: series of groups; their parts p_k add up to 1.
        budget: the bound that both keep.

    Raises:
        ChainError: a share outside [0, 1), no groups, or a budget without room for a release.

    >>> year = SpanBudget(365, 10 * 10**9, 1e-6, 10**9, 50_000)
    >>> noise = shared_noise(Fraction(1, 3), [(10, Fraction(1))], year)
    >>> round(noise.groups[0], 2), round(noise.total, 2)
    (1.08, 0.6)
    """
    if not 0 <= share < 1 or not groups:
        raise ChainError(f"a share of {float(share):g}: a total has a share from 0 to below 1 beside groups")
    alone = _day_losses(Fraction(0), groups, budget)[1:]
    total_loss, *losses = _day_losses(share, groups, budget)
    if not all(alone) or not all(losses):
        raise ChainError("the bound leaves no loss for a day")
    numbers = [number for number, _ in groups]
    total, by_series = consistent_noise(total_loss, list(zip(numbers, losses, strict=True)))
    best_sum = min(math.sqrt(number) / loss for number, loss in zip(numbers, alone, strict=True))
    return SharedNoise(
        share, tuple(noise * loss for noise, loss in zip(by_series, alone, strict=True)), total / best_sum
    )


def largest_share(groups: Sequence[GroupSeries], budget: SpanBudget, *, max_cost: float) -> SharedNoise | None:
    r"""Return the best share of a total at which no group has more than `max_cost` times the noise of groups alone.

    .. math:: \max \{ w : \max_k \sigma_k(w) \le c \, \sigma_k(0) \}

    The noise of the groups grows with the share. That of the total first grows and then falls where losses add up
    purely, so the largest share is the best one or none is better than the sum of the groups.

    Source: bisection over `shared_noise`.

    Args:
        groups: series of groups; their parts add up to 1.
        budget: the bound that both keep.
        max_cost: largest noise c of a group, as a multiple of that of groups alone, above 1.

    Returns:
        The noise at that share; None if no share makes the total better than the sum of the groups.

    Raises:
        ChainError: no groups, or a budget without room for a release.

    >>> year = SpanBudget(365, 10 * 10**9, 1e-6, 10**9, 50_000)
    >>> largest_share([(4, Fraction(1))], year, max_cost=1.1).share, largest_share([(4, Fraction(1))],
    ...     SpanBudget(365, 10 * 10**9, 0, 10**9, 50_000), max_cost=1.1)
    (Fraction(39, 100), None)
    """
    low, high = 0, _PERCENTS
    best: SharedNoise | None = None
    while high - low > 1:
        middle = (low + high) // 2
        noise = shared_noise(Fraction(middle, _PERCENTS), groups, budget)
        if max(noise.groups) <= max_cost:
            low, best = middle, noise
        else:
            high = middle
    return best if best is not None and best.total < 1 else None


def _day_losses(share: Fraction, groups: Sequence[GroupSeries], budget: SpanBudget) -> list[float]:
    """Return the losses of the total and of each series of groups on a day, the largest that keep the budget."""
    parts = [float(part) for part in (share, *((1 - share) * part for _, part in groups))]
    loss = largest_equal_loss(
        lambda nano: _curve([part * nano / NANO for part in parts], budget.sensitivity),
        budget.days,
        epsilon=budget.epsilon,
        delta=budget.delta,
        cap=budget.cap,
    )
    return [part * loss / NANO for part in parts]


def _curve(losses: Sequence[float], sensitivity: int) -> Curve:
    return compose(laplace_curve(sensitivity, np.array([sensitivity / loss for loss in losses if loss > 0])))
