"""What draws alone prove about a loss: a lower bound, exact at its confidence, whatever made the draws.

Each trial tosses a fair coin for one of two neighbouring inputs, and the coin is guessed from what is published. Given
any output, either side of the coin has a probability of at most e^loss/(1 + e^loss). So however few guesses are made,
and whether or not the trials depend on each other, the right ones among them are stochastically at most as many as
Bin(guesses, e^loss/(1 + e^loss)): Steinke, Nasr and Jagielski, Privacy Auditing with One (1) Training Run (2023),
theorem 5.2 at delta = 0. Their share is bounded from below by Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, binom

from agedp_data.privacy.kernel import Floats

MARGINS: Final = (0.0, 0.2, 0.35, 0.5)
"""How far from either end a statistic may lie for a guess to be made: ends alone tell most, but are rare."""
_MAX_LOSS = 50.0
_GRID = 1024
_DETECTION_POWER = 0.95
_ROUNDING = 1e-9


def epsilon_lower_bound(statistic: ArrayLike, coins: ArrayLike, *, confidence: float) -> float:
    """Return a loss that trials prove at a confidence, 0 if they prove none.

        max over the margins of ln(s/(1 - s)), s the lower bound of the share of right guesses, each at 1 - confidence
        divided by the number of margins,

    where statistic <= margin is guessed to be tails and statistic >= 1 - margin heads, and nothing in between.
    `statistic` (n,) from 0, as if the coin showed tails, to 1; `coins` (n,) True for heads. Units: [-].

    >>> heads = np.arange(4000) % 2 == 0
    >>> epsilon_lower_bound(heads, heads, confidence=0.999) > 5, epsilon_lower_bound(heads, ~heads, confidence=0.999)
    (True, 0.0)
    """
    scores, heads = np.asarray(statistic, np.float64), np.asarray(coins, np.bool_)
    bounds = [0.0]
    for margin in MARGINS:
        guesses_heads = scores >= 1 - margin - _ROUNDING
        guesses_tails = ~guesses_heads & (scores <= margin + _ROUNDING)
        correct = np.count_nonzero(guesses_heads & heads) + np.count_nonzero(guesses_tails & ~heads)
        guesses = np.count_nonzero(guesses_heads | guesses_tails)
        bounds.append(epsilon_from_guesses(int(correct), int(guesses), significance=_margin_significance(confidence)))
    return max(bounds)


def epsilon_from_guesses(correct: int, guesses: int, *, significance: float) -> float:
    """Return the loss below which so many right guesses have a probability below `unlikely`; -inf if none is right.

    Units: [-].
    """
    if not correct:
        return -math.inf
    # the share of wrong guesses, not of right ones: near 0 it keeps its digits
    wrong_share = float(beta.isf(significance, guesses - correct + 1, correct))
    return math.log1p(-wrong_share) - math.log(wrong_share) if wrong_share < 1 else -math.inf


def detection_power(
    losses: Sequence[float], promised: float, trials: int, *, confidence: float, span: ArrayLike = 1.0
) -> float:
    """Return how likely composed Laplace mechanisms are, at least, to prove more than is promised.

    So many trials of the sum of the mechanisms' log likelihood ratios, each a value x + Laplace(1/loss) clipped to
    0..1: x = 0 for tails, `reach` for heads; the likeliest of the margins alone. A sum of draws is weaker evidence than
    one draw of the same loss: all parts must come out far for it to be told. Units: [-].
    """
    tails, heads = _likelihood_ratio_laws(np.asarray(losses, np.float64), np.broadcast_to(span, len(losses)))
    number = np.arange(1, trials + 1)
    needed = np.asarray(binom.isf(_margin_significance(confidence), number, 1 / (1 + math.exp(-promised)))) + 1
    return max(_margin_power(tails, heads, margin, needed) for margin in MARGINS)


def is_detectable(
    losses: Sequence[float], promised: float, trials: int, *, confidence: float, span: ArrayLike = 1.0
) -> bool:
    """Tell whether more than is promised is proven at least 19 times out of 20; arguments as of `detection_power`."""
    return detection_power(losses, promised, trials, confidence=confidence, span=span) >= _DETECTION_POWER


def detectable_epsilon(promised: float, trials: int, *, parts: Sequence[float] = (1.0,), confidence: float) -> float:
    """Return the least loss, composed of `parts` in proportion, of which trials would prove more than is promised.

    As `is_detectable` tells. inf if there is none up to 50: with so few trials nothing would be noticed. Units: [-].

    >>> more = detectable_epsilon(0.2, 20_000, parts=(1, 1), confidence=0.999)
    >>> detectable_epsilon(0.2, 20_000, confidence=0.999) < more
    True
    """
    shares = np.asarray(parts, np.float64) / math.fsum(parts)

    def is_proven(loss: float) -> bool:
        return is_detectable((shares * loss).tolist(), promised, trials, confidence=confidence)

    low = high = promised
    while not is_proven(high):  # doubled, for a sum of many parts is told worse again where each of them is large
        if high >= _MAX_LOSS:
            return math.inf
        low, high = high, min(2 * high, _MAX_LOSS)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_proven(middle) else (middle, high)
    return high


def _margin_power(tails: Floats, heads: Floats, margin: float, needed: Floats) -> float:
    """Return how likely one margin's guesses are to be right as often as `needed`, by their number from 1 on."""
    position = np.arange(tails.size) / max(1, tails.size - 1)
    guesses_heads = position >= 1 - margin - _ROUNDING
    guesses_tails = ~guesses_heads & (position <= margin + _ROUNDING)
    correct = (tails[guesses_tails].sum() + heads[guesses_heads].sum()) / 2
    guess_probability = correct + (tails[guesses_heads].sum() + heads[guesses_tails].sum()) / 2
    if guess_probability <= 0:
        return 0.0
    number = np.arange(1, needed.size + 1)
    power = binom.sf(needed - 1, number, min(1.0, correct / guess_probability))
    return float(binom.pmf(number, needed.size, min(1.0, guess_probability)) @ power)


def _margin_significance(confidence: float) -> float:
    return (1 - confidence) / len(MARGINS)


def _likelihood_ratio_laws(losses: Floats, span: Floats) -> tuple[Floats, Floats]:
    """Return the law of the sum under both inputs, on a grid from 0 to the sum of the losses."""
    tails = heads = np.ones(1)
    steps = np.maximum(1, np.rint(_GRID * losses / losses.sum())).astype(int)
    for loss, distance, count in zip(losses.tolist(), span.tolist(), steps.tolist(), strict=True):
        edges = (np.arange(count) + 0.5) * loss / count
        tails = np.convolve(tails, np.diff(_laplace_cdf(edges), prepend=0, append=1))
        heads = np.convolve(heads, np.diff(_laplace_cdf(edges - distance * loss), prepend=0, append=1))
    return tails, heads


def _laplace_cdf(values: Floats) -> Floats:
    """Return the distribution function of Laplace's law of scale 1."""
    tail = np.exp(-np.abs(values)) / 2
    return np.where(values < 0, tail, 1 - tail)
