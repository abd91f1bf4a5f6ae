"""What draws alone prove about a loss: a lower bound, exact at its confidence, whatever made the draws.

For two neighbouring inputs and any event E, loss >= ln(P(E | one)/P(E | other)). The event is chosen on one half of
the draws and tried on the other half, so the bound needs no correction for the choice; both probabilities are bounded
by Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, binom

from agedp_data.privacy.kernel import Floats

_THRESHOLDS = 25
_LARGEST_LOSS = 50.0
_GRID = 1024
_UNLUCKY = 0.025  # on either side: both at once 1 time in 20 at most


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


def shows(losses: Sequence[float], promised: float, draws: int, *, confidence: float, reach: ArrayLike = 1.0) -> bool:
    """Tell whether draws of composed Laplace mechanisms prove more than is promised, 19 times out of 20.

    So many draws a side of the sum of the mechanisms' log likelihood ratios, each a value x + Laplace(1/loss) clipped
    to 0..1: x = 0 under one input and `reach` under the other. A sum of draws is weaker evidence than one draw of the
    same loss: all parts must come out far for it to be told. Hits are taken at the edge of their law.
    """
    none, much = _composed(np.asarray(losses, np.float64), np.broadcast_to(reach, len(losses)))
    below = np.cumsum(none + much) / 2
    cuts = np.unique(np.searchsorted(below, np.linspace(0, 1, _THRESHOLDS + 2)[1:-1]))
    of, below_none, below_much = draws // 2, np.cumsum(none)[cuts], np.cumsum(much)[cuts]
    for first, second in ((below_none, below_much), (1 - below_much, 1 - below_none)):
        hits, others = _law(_UNLUCKY, of, first), _law(1 - _UNLUCKY, of, second)
        for hit, other in zip(hits, others, strict=True):
            if least_loss(int(hit), of, int(other), of, confidence=confidence) > promised:
                return True
    return False


def noticed_loss(promised: float, draws: int, *, parts: Sequence[float] = (1.0,), confidence: float) -> float:
    """Return the least loss, composed of `parts` in proportion, of which draws would prove more than is promised.

    As `shows` tells. inf if there is none up to 50: with so few draws nothing would be noticed. Units: [-].

    >>> noticed_loss(0.2, 20_000, confidence=0.999) < noticed_loss(0.2, 20_000, parts=(1, 1), confidence=0.999)
    True
    """
    each = np.asarray(parts, np.float64) / math.fsum(parts)

    def proves(loss: float) -> bool:
        return shows((each * loss).tolist(), promised, draws, confidence=confidence)

    low = high = promised
    while not proves(high):  # doubled, for a sum of many parts is told worse again where each of them is large
        if high >= _LARGEST_LOSS:
            return math.inf
        low, high = high, min(2 * high, _LARGEST_LOSS)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def _law(at: float, of: int, probability: Floats) -> Floats:
    """Return a quantile of how often an event comes."""
    found: Floats = np.asarray(binom.ppf(at, of, np.clip(probability, 0.0, 1.0)))
    return found


def _composed(losses: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the law of the sum under both inputs, on a grid."""
    none = much = np.ones(1)
    steps = np.maximum(1, np.rint(_GRID * losses / losses.sum())).astype(int)
    for loss, far, count in zip(losses.tolist(), reach.tolist(), steps.tolist(), strict=True):
        edges = (np.arange(count) + 0.5) * loss / count
        none = np.convolve(none, np.diff(_laplace(edges), prepend=0, append=1))
        much = np.convolve(much, np.diff(_laplace(edges - far * loss), prepend=0, append=1))
    return none, much


def _laplace(values: Floats) -> Floats:
    """Return the distribution function of Laplace's law of scale 1."""
    tail = np.exp(-np.abs(values)) / 2
    return np.where(values < 0, tail, 1 - tail)


def _bound(draws: list[Floats], event: tuple[float, bool, int], confidence: float) -> float:
    threshold, above, swap = event
    hits = [int(np.count_nonzero(each >= threshold if above else each < threshold)) for each in draws]
    first, second = (1, 0) if swap else (0, 1)
    return least_loss(hits[first], draws[first].size, hits[second], draws[second].size, confidence=confidence)
