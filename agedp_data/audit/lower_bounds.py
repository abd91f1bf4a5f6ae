r"""Lower bounds on epsilon from an audit: exact at their confidence, whatever mechanism made the outputs.

The idea: in each trial a fair bit chooses one of two neighbouring inputs, and the bit is guessed from the output. Given
any output, either value of the bit has a probability of at most e^epsilon/(1 + e^epsilon). So the number of correct
guesses is stochastically at most

.. math:: \mathrm{Bin}\left( \text{guesses}, \frac{e^\varepsilon}{1 + e^\varepsilon} \right),

however few guesses are made and whether or not the trials are independent ([S] Theorem 5.2 at delta = 0). The share of
correct guesses is bounded from below by [C], and the share gives epsilon.

Example: 4,000 correct guesses of 4,000 bound epsilon from below by more than 5 at confidence 0.999.

[S] Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run. NeurIPS 2023.
https://doi.org/10.48550/arXiv.2305.08846
[C] Clopper, Pearson: The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial. Biometrika 26,
1934. https://doi.org/10.1093/biomet/26.4.404
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, binom

from agedp_data.arrays import Floats

MARGINS: Final = (0.0, 0.2, 0.35, 0.5)
"""Largest distance of a statistic from 0 or 1 for a guess: the ends prove most, but are rare."""
_MAX_LOSS = 50.0
_GRID = 1024
_DETECTION_POWER = 0.95
_ROUNDING = 1e-9


def epsilon_lower_bound(statistic: ArrayLike, coins: ArrayLike, *, confidence: float) -> float:
    r"""Return a lower bound on the loss of a mechanism from the trials of an audit; 0 if the trials prove nothing.

    .. math:: \hat\varepsilon = \max \Bigl( 0, \max_{\text{margins}} \ln \frac{s}{1 - s} \Bigr)

    with s the lower Clopper-Pearson bound of the share of correct guesses at significance (1 - confidence)/(number of
    margins). A statistic <= margin is guessed as 0, one >= 1 - margin as 1, and nothing in between. Source: [S] Theorem
    5.2 at delta = 0; [C].

    Args:
        statistic: one number per trial, shape (n,), from 0 (as if the bit was 0) to 1 (as if it was 1) [-].
        coins: the bits, shape (n,), bool.
        confidence: probability that the bound holds, in (0, 1) [-].

    Returns:
        Lower bound, >= 0 [epsilon].

    References:
        [S] Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run. NeurIPS 2023.
        https://doi.org/10.48550/arXiv.2305.08846
        [C] Clopper, Pearson: The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial.
        Biometrika 26, 1934. https://doi.org/10.1093/biomet/26.4.404

    >>> bits = np.arange(4000) % 2 == 0
    >>> epsilon_lower_bound(bits, bits, confidence=0.999) > 5, epsilon_lower_bound(bits, ~bits, confidence=0.999)
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
    r"""Return the loss below which at least this many correct guesses have a probability below `significance`.

    .. math:: \ln \frac{s}{1 - s}, \quad P\bigl( \mathrm{Bin}(\text{guesses}, s) \ge \text{correct} \bigr) =
       \text{significance}

    Source: [C]; [S] Theorem 5.2 for the meaning of s.

    Args:
        correct: number of correct guesses, 0 <= correct <= guesses.
        guesses: number of guesses.
        significance: one-sided error probability, in (0, 1) [-].

    Returns:
        Lower bound, any sign [epsilon]; -inf without a correct guess.

    References:
        [S] Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run. NeurIPS 2023.
        https://doi.org/10.48550/arXiv.2305.08846
        [C] Clopper, Pearson: The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial.
        Biometrika 26, 1934. https://doi.org/10.1093/biomet/26.4.404

    >>> round(epsilon_from_guesses(2, 2, significance=0.25), 9)  # s^2 = 1/4: s = 1/2
    0.0
    """
    if not correct:
        return -math.inf
    # the share of wrong guesses, not of right ones: near 0 it keeps its digits
    wrong_share = float(beta.isf(significance, guesses - correct + 1, correct))
    return math.log1p(-wrong_share) - math.log(wrong_share) if wrong_share < 1 else -math.inf


def detection_power(
    losses: Sequence[float], promised: float, trials: int, *, confidence: float, span: ArrayLike = 1.0
) -> float:
    r"""Return a lower bound of the probability that an audit proves more than the promised loss.

    .. math:: \max_{\text{margins}} P\bigl( \hat\varepsilon_{\text{margin}} > \varepsilon_{\text{promised}} \bigr)

    Model: independent trials of the sum of the mechanisms' log likelihood ratios, each x + Laplace(1/loss) clipped to
    [0, 1], x = 0 for bit 0 and x = `span` for bit 1; the most powerful margin alone. A sum of draws is weaker evidence
    than one draw of the same loss. Source: exact binomial power of the test of [S] Theorem 5.2.

    Args:
        losses: losses of the composed mechanisms, > 0 [epsilon].
        promised: promised loss of a trial, >= 0 [epsilon].
        trials: number of trials.
        confidence: as in `epsilon_lower_bound` [-].
        span: distance of the two inputs as a part of the sensitivity, scalar or one per loss, in (0, 1] [-].

    Returns:
        Probability [-].

    References:
        [S] Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run. NeurIPS 2023.
        https://doi.org/10.48550/arXiv.2305.08846

    >>> detection_power([8.0], 0.0, 1000, confidence=0.999) > 0.999, detection_power([1.0], 8.0, 100, confidence=0.999)
    (True, 0.0)
    """
    tails, heads = _likelihood_ratio_laws(np.asarray(losses, np.float64), np.broadcast_to(span, len(losses)))
    number = np.arange(1, trials + 1)
    needed = np.asarray(binom.isf(_margin_significance(confidence), number, 1 / (1 + math.exp(-promised)))) + 1
    return max(_margin_power(tails, heads, margin, needed) for margin in MARGINS)


def detectable_epsilon(promised: float, trials: int, *, parts: Sequence[float] = (1.0,), confidence: float) -> float:
    r"""Return the least loss of which an audit proves, with probability 0.95, more than the promised loss.

    .. math:: \min \{ \varepsilon : \text{detection power of losses } \varepsilon \, p_i / \textstyle\sum_j p_j
       \text{ is at least } 0.95 \}

    Use it to report beside an audit which faults it could not have detected. Source: [S] Theorem 5.2.

    Args:
        promised: promised loss of a trial, > 0 [epsilon].
        trials: number of trials.
        parts: proportions p_i of the composed mechanisms, > 0 [-].
        confidence: as in `epsilon_lower_bound` [-].

    Returns:
        Loss, to a relative accuracy of 1e-3 [epsilon]; inf if no loss up to 50 is detectable.

    References:
        [S] Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run. NeurIPS 2023.
        https://doi.org/10.48550/arXiv.2305.08846

    >>> two_parts = detectable_epsilon(0.2, 20_000, parts=(1, 1), confidence=0.999)
    >>> 0.2 < detectable_epsilon(0.2, 20_000, confidence=0.999) < two_parts
    True
    """
    shares = np.asarray(parts, np.float64) / math.fsum(parts)

    def is_proven(loss: float) -> bool:
        power = detection_power((shares * loss).tolist(), promised, trials, confidence=confidence)
        return power >= _DETECTION_POWER

    low = high = promised
    while not is_proven(high):  # doubled: a sum of many parts is harder to detect again where each is large
        if high >= _MAX_LOSS:
            return math.inf
        low, high = high, min(2 * high, _MAX_LOSS)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_proven(middle) else (middle, high)
    return high


def _margin_power(tails: Floats, heads: Floats, margin: float, needed: Floats) -> float:
    """Return the probability that a margin has at least `needed` correct guesses, given by the number of guesses."""
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
    """Return the law of the sum under bit 0 and bit 1, on a grid from 0 to the sum of the losses."""
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
