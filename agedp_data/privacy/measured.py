"""What draws alone prove about a loss: a lower bound, exact at its confidence, whatever made the draws.

For two neighbouring inputs and any event E, loss >= ln(P(E | one)/P(E | other)). The event is chosen on one half of
the draws and tried on the other half, so the bound needs no correction for the choice; both probabilities are bounded
by Clopper and Pearson (1934).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from agedp_data.privacy.kernel import Floats

_THRESHOLDS = 25
_LARGEST_LOSS = 50.0


def proven_loss(one: ArrayLike, other: ArrayLike, *, confidence: float) -> float:
    """Return a loss that independent draws under two neighbouring inputs prove, 0 if they prove none.

        ln(p/q) with P(p <= P(E | one) and P(E | other) <= q) >= confidence,

    E a half-line of the statistic that is given, its threshold, its side and the order of the inputs chosen among 25
    quantiles on the first half of the draws. Shapes: (n,), (m,). Units: [-]. Source: exact binomial bounds
    (Clopper and Pearson 1934), after the audit of Ding et al. (2018).

    >>> draws = np.arange(4000.0)
    >>> proven_loss(draws, draws, confidence=0.999)
    0.0
    """
    halves = [np.asarray(draws, np.float64) for draws in (one, other)]
    chosen, tried = [draws[::2] for draws in halves], [draws[1::2] for draws in halves]
    pooled = np.quantile(np.concatenate(chosen), np.linspace(0, 1, _THRESHOLDS + 2)[1:-1])
    events = [(threshold, above, swap) for threshold in np.unique(pooled) for above in (True, False) for swap in (0, 1)]
    best = max(events, key=lambda event: _bound(chosen, event, confidence))
    return max(0.0, _bound(tried, best, confidence))


def least_loss(hits: int, of: int, other_hits: int, of_other: int, *, confidence: float) -> float:
    """Return ln(p/q), p below the probability of `hits` in `of` and q above that of the other, both at once.

    -inf if there is no hit at all. Units: [-].
    """
    each = (1 - confidence) / 2
    low = float(beta.ppf(each, hits, of - hits + 1)) if hits else 0.0
    high = float(beta.isf(each, other_hits + 1, of_other - other_hits)) if other_hits < of_other else 1.0
    return math.log(low / high) if low > 0 else -math.inf


def noticed_loss(promised: float, draws: int, *, confidence: float) -> float:
    """Return the least loss of a Laplace mechanism of which so many draws a side would prove more than is promised.

    inf if there is none up to 50: with so few draws nothing would be noticed. Units: [-].
    """
    of = draws // 2

    def proves(loss: float) -> bool:
        hits, others = round(of / 2), round(of / 2 * math.exp(-loss))
        return least_loss(hits, of, others, of, confidence=confidence) > promised

    if not proves(_LARGEST_LOSS):
        return math.inf
    low, high = promised, _LARGEST_LOSS
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def _bound(draws: list[Floats], event: tuple[float, bool, int], confidence: float) -> float:
    threshold, above, swap = event
    hits = [int(np.count_nonzero(each >= threshold if above else each < threshold)) for each in draws]
    first, second = (1, 0) if swap else (0, 1)
    return least_loss(hits[first], draws[first].size, hits[second], draws[second].size, confidence=confidence)
