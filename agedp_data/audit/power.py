r"""Power of an audit: the size of its synthetic datasets, and the faults that it could not have detected.

The idea: the number of draws limits what they prove. The probability that the tests detect each of seven faults is
computed for the losses and the sizes of this audit; a fault below 0.95 is named beside the result.

Example: at epsilon 0.07, 4,000 groups over 8 days in two ledgers show a household of each group that is counted twice,
a shift of 0.03 noise scales of each draw, with probability 0.97.

Decisions:

* Lower bounds of epsilon need groups of k households that all change: at a small loss both values of a bit look alike
  so often that even twice the loss is not significant. A promise of L permits k L for the group.
* Sizes grow until every fault is detected, or no size up to the largest detects more.
* The losses of the first days stand for those of later ones; the power that is reported uses the recorded scales.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.stats import binom, norm

from agedp_data.arrays import Floats, Whole
from agedp_data.audit.noise_law import equality_probability, expected_sign, nonzero_probability, size_moments
from agedp_data.audit.tail_bounds import sign_sum_threshold, small_size_threshold

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
    return tuple(
        f"{fault} between the recorded sums and the draw" if fault in FAULTS_OF_SUMS else fault
        for fault, power in powers.items()
        if power < DETECTION_POWER
    )


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
    return [
        households * release.effective_epsilon / release.moved_cells
        for release in releases
        for _ in range(release.moved_cells)
    ]


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
    threshold = small_size_threshold(scales, draws, significance=significance)
    means, variances = size_moments(factor * scales)
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
        equality = float(equality_probability(scale, second_scale).mean())
        if pairs * math.log(max(equality, 1e-300)) < math.log(significance):
            return 1.0
    needed = math.floor(-math.log2(significance)) + 1
    return float(binom.sf(needed - 1, pairs, float(nonzero_probability(scale).mean())))


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
        weight, nonzero = expected_sign(scales, shift[None]), nonzero_probability(scales, shift[None])
        mean += float((weight**2).sum())
        square += float((weight**2 * nonzero).sum())
        variance += float((weight**2 * (nonzero - weight**2)).sum())
    missing = sign_sum_threshold(significance) * math.sqrt(square) - mean
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
    yield (
        "the same noise in every group",
        copied_noise_power(scale.ravel(), scale.ravel(), pairs, significance=significance),
    )
