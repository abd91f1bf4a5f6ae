"""Tests of the noise in an audit: is it as large as its loss requires, and does it lie around the clamped values?

The idea: the exact values of synthetic data are known, and so is every draw. About half the draws of discrete Laplace
noise of scale sensitivity/loss lie within ln 2 scales. Noise that is too small puts more draws there, a sum that is not
clamped fewer. Both are binomial counts, and half the noise puts three quarters of the draws there at any loss.

Example: sensitivity 1,000 and loss 0.01 give a width of 69,314; half the draws are within, 3/4 at half the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import binom

_UNIT = 1e-9  # a recorded loss is rounded up to it


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    r"""The discrete Laplace law that a loss requires at a sensitivity.

    .. math:: P(k) = \frac{1 - q}{1 + q} q^{|k|}, \quad q = e^{-\varepsilon / \Delta_1}

    Source: [GRS]. Use it as the null hypothesis of `is_noise_too_small` and `is_noise_too_large`.

    Args:
        sensitivity: L1 sensitivity, integer >= 1 [any integer unit].
        loss: privacy loss, > 0 [epsilon].

    References:
        [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
        https://doi.org/10.1145/1536414.1536464

    >>> NoiseLaw(1000, 0.01).width  # ln 2 * 100,000
    69314
    """

    sensitivity: int
    loss: float

    @property
    def width(self) -> int:
        """Return ln 2 scales, rounded down: about half the draws lie within this distance [unit of `sensitivity`]."""
        return max(0, math.floor(math.log(2) * self.sensitivity / self.loss))

    def near(self, *, times: float = 1.0, off: int = 0) -> float:
        r"""Return the probability that a draw lies within the width, at `times` the loss, shifted by `off`.

        .. math:: P(|X + \mathrm{off}| \le w) = F(w - \mathrm{off}) - F(-w - \mathrm{off} - 1), \quad
           F(k) = 1 - \frac{q^{k+1}}{1 + q} \; (k \ge 0), \quad F(k) = \frac{q^{-k}}{1 + q} \; (k < 0)

        Source: distribution function of the law of [GRS] with q = exp(-times loss/sensitivity).

        Args:
            times: factor on the loss, > 0; 2 is half the noise [-].
            off: shift of the draws [unit of the sensitivity].

        Returns:
            Probability [-].

        References:
            [GRS] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms. STOC 2009.
            https://doi.org/10.1145/1536414.1536464

        >>> law = NoiseLaw(1000, 0.01)
        >>> round(law.near(), 3), round(law.near(times=2), 3), round(law.near(off=200_000), 3)
        (0.5, 0.75, 0.102)
        """
        rate = times * self.loss / self.sensitivity
        return max(
            0.0, _discrete_laplace_cdf(self.width - off, rate) - _discrete_laplace_cdf(-self.width - off - 1, rate)
        )

    @property
    def least_near(self) -> float:
        """Return `near` of the largest noise with this recorded loss, which is rounded up [-]."""
        return self.near(times=max(1 - _UNIT / self.loss, 1e-3))


def is_noise_too_small(near_count: int, draws: int, law: NoiseLaw, *, significance: float) -> bool:
    r"""Return whether more draws lie near the exact values than noise as large as the law's puts there.

    .. math:: P\bigl( \mathrm{Bin}(\text{draws}, p_{\text{near}}) \ge \text{near count} \bigr) < \text{significance}

    Args:
        near_count: draws within the width.
        draws: number of draws.
        law: noise that the loss requires.
        significance: probability of a false alarm, in (0, 1) [-].

    >>> [is_noise_too_small(count, 100, NoiseLaw(1000, 0.01), significance=1e-6) for count in (50, 80)]
    [False, True]
    """
    return bool(binom.sf(near_count - 1, draws, law.near()) < significance)


def is_noise_too_large(near_count: int, draws: int, law: NoiseLaw, *, significance: float) -> bool:
    r"""Return whether fewer draws lie near the exact values than noise around them puts there.

    .. math:: P\bigl( \mathrm{Bin}(\text{draws}, p_{\text{least near}}) \le \text{near count} \bigr) <
    \text{significance}

    A cause other than large noise is a sum that was not clamped: its draws lie around another value.

    Args:
        near_count: draws within the width.
        draws: number of draws.
        law: noise that the loss requires.
        significance: probability of a false alarm, in (0, 1) [-].

    >>> [is_noise_too_large(count, 100, NoiseLaw(1000, 0.01), significance=1e-6) for count in (50, 20)]
    [False, True]
    """
    return bool(binom.cdf(near_count, draws, law.least_near) < significance)


def small_noise_power(law: NoiseLaw, times: float, draws: int, *, significance: float) -> float:
    r"""Return the probability that `is_noise_too_small` detects noise of `times` the loss.

    .. math:: P\bigl( \mathrm{Bin}(\text{draws}, p_{\text{near}}(\text{times})) \ge \text{critical count} \bigr)

    Args:
        law: noise that the loss requires.
        times: factor on the loss; 2 is half the noise [-].
        draws: number of draws.
        significance: probability of a false alarm, in (0, 1) [-].

    Returns:
        Probability [-].

    >>> small_noise_power(NoiseLaw(1000, 0.01), 2, 1600, significance=1e-6) > 0.999  # 3/4 are near
    True
    """
    needed = binom.isf(significance, draws, law.near()) + 1
    return float(binom.sf(needed - 1, draws, law.near(times=times)))


def misplaced_noise_power(law: NoiseLaw, offset: int, draws: int, *, significance: float) -> float:
    r"""Return the probability that `is_noise_too_large` detects a shift of every second draw.

    .. math:: P\bigl( \mathrm{Bin}(\text{draws}, (p_{\text{near}} + p_{\text{near}}(\text{offset}))/2) \le
       \text{critical count} \bigr)

    Args:
        law: noise that the loss requires.
        offset: shift of the affected draws [unit of the sensitivity].
        draws: number of draws.
        significance: probability of a false alarm, in (0, 1) [-].

    Returns:
        Probability [-].

    >>> misplaced_noise_power(NoiseLaw(1000, 0.01), 10**6, 1600, significance=1e-6) > 0.999  # 1/4 are near
    True
    """
    max_near = binom.ppf(significance, draws, law.least_near) - 1
    return float(binom.cdf(max_near, draws, (law.near() + law.near(off=offset)) / 2))


def _discrete_laplace_cdf(k: int, rate: float) -> float:
    """Return P(X <= k); what overflows is 0."""
    if k >= 0:
        return 1 - math.exp(-(k + 1) * rate) / (1 + math.exp(-rate))
    return math.exp(k * rate) / (1 + math.exp(-rate))
