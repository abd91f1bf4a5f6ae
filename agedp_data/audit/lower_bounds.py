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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, binom, norm

from agedp_data.arrays import Floats, Whole
from agedp_data.audit import noise_tests

MARGINS: Final = (0.0, 0.2, 0.35, 0.5)
"""Largest distance of a statistic from 0 or 1 for a guess: the ends prove most, but are rare."""
_MAX_LOSS = 50.0
_GRID = 1024
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


def detection_power(losses: Sequence[float], promised: float, trials: int, *, confidence: float) -> float:
    r"""Return a lower bound of the probability that an audit proves more than the promised loss.

    .. math:: \max_{\text{margins}} P\bigl( \hat\varepsilon_{\text{margin}} > \varepsilon_{\text{promised}} \bigr)

    Model: independent trials of the sum of the mechanisms' log likelihood ratios, each x + Laplace(1/loss) clipped to
    [0, 1], x = 0 for bit 0 and x = 1 for bit 1; the most powerful margin alone. A sum of draws is weaker evidence
    than one draw of the same loss. Source: exact binomial power of the test of [S] Theorem 5.2.

    Args:
        losses: losses of the composed mechanisms, > 0 [epsilon].
        promised: promised loss of a trial, >= 0 [epsilon].
        trials: number of trials.
        confidence: as in `epsilon_lower_bound` [-].

    Returns:
        Probability [-].

    References:
        [S] Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run. NeurIPS 2023.
        https://doi.org/10.48550/arXiv.2305.08846

    >>> detection_power([8.0], 0.0, 1000, confidence=0.999) > 0.999, detection_power([1.0], 8.0, 100, confidence=0.999)
    (True, 0.0)
    """
    tails, heads = _likelihood_ratio_laws(np.asarray(losses, np.float64))
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
        return power >= DETECTION_POWER

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


def _likelihood_ratio_laws(losses: Floats) -> tuple[Floats, Floats]:
    """Return the law of the sum under bit 0 and bit 1, on a grid from 0 to the sum of the losses."""
    tails = heads = np.ones(1)
    steps = np.maximum(1, np.rint(_GRID * losses / losses.sum())).astype(int)
    for loss, count in zip(losses.tolist(), steps.tolist(), strict=True):
        edges = (np.arange(count) + 0.5) * loss / count
        tails = np.convolve(tails, np.diff(_laplace_cdf(edges), prepend=0, append=1))
        heads = np.convolve(heads, np.diff(_laplace_cdf(edges - loss), prepend=0, append=1))
    return tails, heads


def _laplace_cdf(values: Floats) -> Floats:
    """Return the distribution function of Laplace's law of scale 1."""
    tail = np.exp(-np.abs(values)) / 2
    return np.where(values < 0, tail, 1 - tail)


# --------------------------------------------------------------------------------------------------
# Power of an audit: the size of its synthetic datasets, and the faults that it could not have detected.
#
# The idea: the number of draws limits what they prove. The probability that the tests detect each of seven faults is
# computed for the losses and the sizes of this audit; a fault below 0.95 is named beside the result.
#
# Example: at epsilon 0.07, 4,000 groups over 8 days in two ledgers show a household of each group that is counted
# twice, a shift of 0.03 noise scales of each draw, with probability 0.97.
#
# Decisions:
#
# * Lower bounds of epsilon need groups of k households that all change: at a small loss both values of a bit look
#   alike so often that even twice the loss is not significant. A promise of L permits k L for the group.
# * Sizes grow until every fault is detected, or no size up to the largest detects more.
# * The losses of the first days stand for those of later ones; the power that is reported uses the recorded scales.
# --------------------------------------------------------------------------------------------------

DEFAULT_GROUPS: Final = 1_600
"""Number of groups whose bits are guessed."""
MAX_HOUSEHOLDS: Final = 102_400
"""Largest number of households of these groups; with more an audit may take longer than a minute."""
MAX_DRAWS: Final = 900_000
"""Largest number of draws of an audit, unless its smallest size has more."""
DETECTION_POWER: Final = 0.95
"""A fault that is detected with a smaller probability is reported as not ruled out."""
_TARGET_GROUP_LOSS = 1.5  # easiest to detect: less is hidden by chance, with more the decisive outputs are rare
_CHOSEN_POWER = 0.97
_SIZES: Final = ((400, 4, 2), *((groups, 8, 2) for groups in (400, 800, 1200, 1600, 2000, 2400, 2800, 3200)))

FAULTS_OF_SUMS: Final = ("a household counted twice", "the readings of a household counted twice", "a skipped clamp")
"""Faults that shift exact values. Of the sums that are recorded before a draw, the audit compares each value."""


@dataclass(frozen=True, slots=True)
class AuditDatasets:
    """The synthetic households of an audit: each group is published alone and has a household whose use varies.

    Args:
        groups: number of groups whose bits are guessed, >= 1.
        households_per_group: households of such a group that all change with its bit, >= 1; a further one has a bit of
            its own.
        varying_groups: number of groups that have only the household whose use varies, >= 1.
        days: number of days, >= 1.
        ledgers: number of fresh ledgers in which the days are released, >= 1.

    >>> AuditDatasets(2, 3).total_households  # 2 groups of 3 + 1 + 1, 400 of 1
    410
    """

    groups: int
    households_per_group: int
    varying_groups: int = 400
    days: int = 4
    ledgers: int = 2

    @property
    def total_groups(self) -> int:
        """Return the number of all groups."""
        return self.groups + self.varying_groups

    @property
    def total_households(self) -> int:
        """Return the households of all groups."""
        return self.groups * (self.households_per_group + 2) + self.varying_groups


@dataclass(frozen=True, slots=True)
class AuditedRelease:
    r"""A release of an audit: its loss and the change that one household causes in it.

    Args:
        day: day of the data, ISO date.
        series: name of the series.
        epsilon: recorded loss of the release [epsilon].
        moved_cells: cells that a changed household changes.
        span: change of a household as a part of the sensitivity; below 1 if no use counts as a little use [-].

    >>> AuditedRelease("2013-01-01", "mean", 0.5, 1, span=0.5).effective_epsilon  # 0.5 * 0.5
    0.25
    """

    day: str
    series: str
    epsilon: float
    moved_cells: int
    span: float = 1.0

    @property
    def effective_epsilon(self) -> float:
        """Return the loss at the distance of the two synthetic households, epsilon times span [epsilon]."""
        return self.epsilon * self.span


@dataclass(frozen=True, slots=True)
class AuditedSeries:
    """The noise of a series in an audit, and how far faults of the sums shift its exact values.

    Args:
        scale: recorded noise scales, shape (ledgers, days) [Wh, or households].
        groups: number of groups.
        cells: number of cells of a group.
        shifts: shift by fault, shape (days, groups, cells), integers [unit of `scale`].
    """

    scale: Floats
    groups: int
    cells: int
    shifts: Mapping[str, Whole]


def households_per_group(epsilon: float) -> int:
    r"""Return the households of a group whose promised loss is nearest to the easiest one to detect.

    .. math:: k = \mathrm{round}(1.5 / \varepsilon), \quad 1 \le k \le 64

    A smaller loss of a group is hidden by chance; of a larger one the decisive outputs are rare.

    Args:
        epsilon: loss of a release, > 0 [epsilon].

    >>> households_per_group(0.07)  # 1.5/0.07 = 21.4
    21
    """
    return max(1, min(round(_TARGET_GROUP_LOSS / epsilon), MAX_HOUSEHOLDS // DEFAULT_GROUPS))


def audit_sizes(epsilon: float, *, cells: int) -> Iterator[AuditDatasets]:
    """Yield the sizes that an audit may have, the smallest first.

    Args:
        epsilon: loss of a release, > 0 [epsilon].
        cells: number of cells of a group in all series; the draws of larger sizes would take longer than a minute.

    >>> next(audit_sizes(0.5, cells=1))
    AuditDatasets(groups=1600, households_per_group=3, varying_groups=400, days=4, ledgers=2)
    >>> len(list(audit_sizes(0.5, cells=1))), len(list(audit_sizes(0.5, cells=100)))
    (9, 1)
    """
    base = AuditDatasets(DEFAULT_GROUPS, households_per_group(epsilon))
    for varying_groups, days, ledgers in _SIZES:
        size = replace(base, varying_groups=varying_groups, days=days, ledgers=ledgers)
        if size.total_groups * days * ledgers * cells <= MAX_DRAWS or (varying_groups, days, ledgers) == _SIZES[0]:
            yield size


def is_chosen_size(powers: Mapping[str, float], largest: Mapping[str, float]) -> bool:
    """Return whether a size detects with probability 0.97 each fault that the largest size so detects.

    Args:
        powers: detection power by fault at this size [-].
        largest: detection power by fault at the largest size [-].

    >>> is_chosen_size({"a": 0.995, "b": 0.2}, {"a": 1.0, "b": 0.5})
    True
    """
    return all(powers[fault] >= _CHOSEN_POWER for fault, power in largest.items() if power >= _CHOSEN_POWER)


def fault_powers(series: Sequence[AuditedSeries], *, significance: float) -> dict[str, float]:
    """Return by fault the probability that the best test of the best series detects it.

    The seven faults: half the noise; 10 % less noise; the same noise on every day, in every ledger (as of a generator
    that is seeded by the day) and in every group; a household of each group counted twice; a skipped clamp.

    Args:
        series: series of the audit; a fault of the noise concerns all of them.
        significance: probability of a false alarm of each test, in (0, 1) [-].

    >>> scale = np.full((2, 4), 1e5)  # 50 kWh at epsilon 0.5
    >>> shifts = {"twice": np.full((4, 400, 1), 20_000)}
    >>> powers = fault_powers([AuditedSeries(scale, 400, 1, shifts)], significance=1e-8)
    >>> {fault: round(power, 2) for fault, power in powers.items() if power < 0.995}
    {'10 % less noise': 0.41}
    """
    powers: dict[str, float] = {}
    for one_series in series:
        for fault, power in _series_powers(one_series, significance):
            powers[fault] = max(power, powers.get(fault, 0.0))
    for fault in dict.fromkeys(fault for one_series in series for fault in one_series.shifts):
        shifted = [(one_series.scale, one_series.shifts[fault]) for one_series in series]
        if any(shift.any() for _, shift in shifted):  # a fault that changes no value is none
            powers[fault] = shifted_noise_power(shifted, significance=significance)
    return powers


def undetectable_faults(powers: Mapping[str, float]) -> tuple[str, ...]:
    """Return the faults that an audit detects with a probability below 0.95.

    A fault of the sums is detected for certain where they are recorded, hence only its later form is named.

    >>> undetectable_faults({"half the noise": 0.94, "10 % less noise": 0.96})
    ('half the noise',)
    """
    later = " between the recorded sums and the draw"
    weak = [fault for fault, power in powers.items() if power < DETECTION_POWER]
    return tuple(f"{fault}{later}" if fault in FAULTS_OF_SUMS else fault for fault in weak)


def moved_cell_losses(releases: Sequence[AuditedRelease], households: int) -> list[float]:
    r"""Return the loss of each draw that a change of a group affects, for `detectable_epsilon`.

    .. math:: k \, \varepsilon_{\text{effective}} / \text{moved cells}, \quad \text{once per moved cell}

    Args:
        releases: releases whose losses compose.
        households: households k of a group.

    Returns:
        Losses, one per moved cell [epsilon].

    >>> moved_cell_losses([AuditedRelease("2013-01-01", "counts", 0.5, 2)], 4)  # 4 * 0.5/2, twice
    [1.0, 1.0]
    """
    losses = [(households * of.effective_epsilon / of.moved_cells, of.moved_cells) for of in releases]
    return [loss for loss, cells in losses for _ in range(cells)]


def small_noise_power(scale: Floats, draws: int, factor: float, *, significance: float) -> float:
    r"""Return the probability that noise of a fraction of its recorded scale has significantly small sizes.

    .. math:: P(T \le t_\alpha) \approx \Phi\left( \frac{t_\alpha - E T}{\sqrt{\mathrm{Var} T}} \right)

    with the moments at the fraction of the scale: near 1/2 the normal approximation is accurate.

    Args:
        scale: recorded noise scales, any shape [any unit].
        draws: number of draws of each release.
        factor: fraction of the recorded scale, in (0, 1] [-].
        significance: probability of a false alarm of the test, in (0, 1) [-].

    >>> [small_noise_power(np.array([1000.0]), n, 0.9, significance=1e-8) > 0.95 for n in (5000, 6500)]
    [False, True]
    """
    scales = scale.ravel()
    threshold = noise_tests.small_size_threshold(scales, draws, significance=significance)
    means, variances = noise_tests.size_moments(factor * scales)
    mean, variance = draws * float((means / scales).sum()), draws * float((variances / scales**2).sum())
    if threshold < 0 or variance == 0:
        return float(threshold >= mean)
    return float(norm.cdf((threshold - mean) / math.sqrt(variance)))


def copied_noise_power(scale: Floats, second_scale: Floats, draws: int, *, significance: float) -> float:
    r"""Return the probability that pairs of the same noise are detected: 0 or 1 unless most draws are 0.

    .. math:: P(X = Y)^n < \alpha \quad \text{or} \quad 2^{-n_{\ne 0}} < \alpha

    Copies scaled to another recorded scale are equal in sign only, so that equality counts only at equal scales.

    Args:
        scale: recorded scales of the first release of each pair, shape (m,) [any unit].
        second_scale: recorded scales of the second one, shape (m,) [unit of `scale`].
        draws: number of draws of each release.
        significance: probability of a false alarm of each test, in (0, 1) [-].

    >>> copied_noise_power(np.array([1000.0]), np.array([900.0]), 30, significance=1e-8) > 0.999
    True
    >>> copied_noise_power(np.array([1000.0]), np.array([1000.0]), 1, significance=1e-8)
    0.0
    """
    pairs = scale.size * draws
    if not pairs:
        return 0.0
    if np.array_equal(scale, second_scale):
        equality = float(noise_tests.equality_probability(scale, second_scale).mean())
        if pairs * math.log(max(equality, 1e-300)) < math.log(significance):
            return 1.0
    needed = math.floor(-math.log2(significance)) + 1
    return float(binom.sf(needed - 1, pairs, float(noise_tests.nonzero_probability(scale).mean())))


def shifted_noise_power(series: Sequence[tuple[Floats, Whole]], *, significance: float) -> float:
    r"""Return the probability that a fault of the sums is detected by the signs of the residuals of all series.

    .. math:: P(S \ge x_\alpha \|w\|) \approx \Phi\left( \frac{E S - x_\alpha \|w\|}{\sqrt{\mathrm{Var} S}} \right),
       \quad w_i = E \, \mathrm{sign}(X_i + m_i)

    Args:
        series: recorded noise scales, shape (ledgers, days), and shifts m, shape (days, groups, cells), integers [Wh,
            or households].
        significance: probability of a false alarm of the test, in (0, 1) [-].

    >>> shift = np.full((4, 1000, 1), 4)
    >>> [round(shifted_noise_power([(np.full((2, 4), s), shift)], significance=1e-8), 3) for s in (40.0, 80.0)]
    [0.997, 0.076]
    """
    mean = square = variance = 0.0
    for scale, shift in series:
        scales = scale[:, :, None, None]
        weight = noise_tests.expected_sign(scales, shift[None])
        nonzero = noise_tests.nonzero_probability(scales, shift[None])
        mean += float((weight**2).sum())
        square += float((weight**2 * nonzero).sum())
        variance += float((weight**2 * (nonzero - weight**2)).sum())
    missing = noise_tests.sign_sum_threshold(significance) * math.sqrt(square) - mean
    return float(norm.cdf(-missing / math.sqrt(variance))) if variance > 0 else float(mean > 0 and missing <= 0)


def _series_powers(series: AuditedSeries, significance: float) -> Iterator[tuple[str, float]]:
    scale, draws = series.scale, series.groups * series.cells
    for fault, factor in (("half the noise", 0.5), ("10 % less noise", 0.9)):
        yield fault, small_noise_power(scale, draws, factor, significance=significance)
    ledgers, days = (size // 2 * 2 for size in scale.shape)
    by_ledger = scale[:ledgers:2].ravel(), scale[1:ledgers:2].ravel()
    by_day = scale[:, :days:2].ravel(), scale[:, 1:days:2].ravel()
    yield "the same noise on every day", copied_noise_power(*by_day, draws, significance=significance)
    yield "the same noise for a day in every ledger", copied_noise_power(*by_ledger, draws, significance=significance)
    pairs = series.groups // 2 * series.cells
    power = copied_noise_power(scale.ravel(), scale.ravel(), pairs, significance=significance)
    yield "the same noise in every group", power
