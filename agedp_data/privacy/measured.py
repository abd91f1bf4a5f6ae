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
_LARGEST_LOSS = 50.0
_GRID = 1024
_NEARLY_ALWAYS = 0.95
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
    shown, heads = np.asarray(statistic, np.float64), np.asarray(coins, np.bool_)
    found = [0.0]
    for margin in MARGINS:
        says_heads = shown >= 1 - margin - _ROUNDING
        says_tails = ~says_heads & (shown <= margin + _ROUNDING)
        right = np.count_nonzero(says_heads & heads) + np.count_nonzero(says_tails & ~heads)
        guesses = np.count_nonzero(says_heads | says_tails)
        found.append(least_loss(int(right), int(guesses), unlikely=_unlikely(confidence)))
    return max(found)


def least_loss(right: int, guesses: int, *, unlikely: float) -> float:
    """Return the loss below which so many right guesses have a probability below `unlikely`; -inf if none is right.

    Units: [-].
    """
    if not right:
        return -math.inf
    wrong = float(beta.isf(unlikely, guesses - right + 1, right))  # of the wrong ones: near 0 it keeps its digits
    return math.log1p(-wrong) - math.log(wrong) if wrong < 1 else -math.inf


def detection_power(
    losses: Sequence[float], promised: float, trials: int, *, confidence: float, reach: ArrayLike = 1.0
) -> float:
    """Return how likely composed Laplace mechanisms are, at least, to prove more than is promised.

    So many trials of the sum of the mechanisms' log likelihood ratios, each a value x + Laplace(1/loss) clipped to
    0..1: x = 0 for tails, `reach` for heads; the likeliest of the margins alone. A sum of draws is weaker evidence than
    one draw of the same loss: all parts must come out far for it to be told. Units: [-].
    """
    tails, heads = _composed(np.asarray(losses, np.float64), np.broadcast_to(reach, len(losses)))
    number = np.arange(1, trials + 1)
    needed = np.asarray(binom.isf(_unlikely(confidence), number, 1 / (1 + math.exp(-promised)))) + 1
    return max(_chance(tails, heads, margin, needed) for margin in MARGINS)


def shows(losses: Sequence[float], promised: float, trials: int, *, confidence: float, reach: ArrayLike = 1.0) -> bool:
    """Tell whether more than is promised is proven at least 19 times out of 20; arguments as of `detection_power`."""
    return detection_power(losses, promised, trials, confidence=confidence, reach=reach) >= _NEARLY_ALWAYS


def detectable_epsilon(promised: float, trials: int, *, parts: Sequence[float] = (1.0,), confidence: float) -> float:
    """Return the least loss, composed of `parts` in proportion, of which trials would prove more than is promised.

    As `shows` tells. inf if there is none up to 50: with so few trials nothing would be noticed. Units: [-].

    >>> more = detectable_epsilon(0.2, 20_000, parts=(1, 1), confidence=0.999)
    >>> detectable_epsilon(0.2, 20_000, confidence=0.999) < more
    True
    """
    each = np.asarray(parts, np.float64) / math.fsum(parts)

    def proves(loss: float) -> bool:
        return shows((each * loss).tolist(), promised, trials, confidence=confidence)

    low = high = promised
    while not proves(high):  # doubled, for a sum of many parts is told worse again where each of them is large
        if high >= _LARGEST_LOSS:
            return math.inf
        low, high = high, min(2 * high, _LARGEST_LOSS)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


def _chance(tails: Floats, heads: Floats, margin: float, needed: Floats) -> float:
    """Return how likely one margin's guesses are to be right as often as `needed`, by their number from 1 on."""
    place = np.arange(tails.size) / max(1, tails.size - 1)
    high = place >= 1 - margin - _ROUNDING
    low = ~high & (place <= margin + _ROUNDING)
    right = (tails[low].sum() + heads[high].sum()) / 2
    guessed = right + (tails[high].sum() + heads[low].sum()) / 2
    if guessed <= 0:
        return 0.0
    number = np.arange(1, needed.size + 1)
    shown = binom.sf(needed - 1, number, min(1.0, right / guessed))
    return float(binom.pmf(number, needed.size, min(1.0, guessed)) @ shown)


def _unlikely(confidence: float) -> float:
    return (1 - confidence) / len(MARGINS)


def _composed(losses: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the law of the sum under both inputs, on a grid from 0 to the sum of the losses."""
    tails = heads = np.ones(1)
    steps = np.maximum(1, np.rint(_GRID * losses / losses.sum())).astype(int)
    for loss, far, count in zip(losses.tolist(), reach.tolist(), steps.tolist(), strict=True):
        edges = (np.arange(count) + 0.5) * loss / count
        tails = np.convolve(tails, np.diff(_laplace(edges), prepend=0, append=1))
        heads = np.convolve(heads, np.diff(_laplace(edges - far * loss), prepend=0, append=1))
    return tails, heads


def _laplace(values: Floats) -> Floats:
    """Return the distribution function of Laplace's law of scale 1."""
    tail = np.exp(-np.abs(values)) / 2
    return np.where(values < 0, tail, 1 - tail)
