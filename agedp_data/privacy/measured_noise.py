"""Whether noise is as large as its loss asks for, and lies about what a clamp permits: how many draws are near.

Where the true figures are made up they are known, and so is every draw. Of discrete Laplace noise of scale
sensitivity/loss about half the draws lie within ln 2 scales; were it too small, more would, and were a sum not clamped,
fewer. Both are binomial counts, told at any loss: half the noise puts three quarters of the draws there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import binom

_UNIT = 1e-9  # a recorded loss is rounded up to it


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The noise that a loss asks for at a sensitivity [whole units]: P(k) ~ e^(-|k| loss/sensitivity)."""

    sensitivity: int
    loss: float

    @property
    def width(self) -> int:
        """Return how far from the true figure about half the draws lie at most [unit of the sensitivity]."""
        return max(0, math.floor(math.log(2) * self.sensitivity / self.loss))

    def near(self, *, times: float = 1.0, off: int = 0) -> float:
        """Return how likely a draw is to lie within the width, at so many times the loss, off by so much.

        P(|X + off| <= width) = F(width - off) - F(-width - off - 1), with q = e^(-loss/sensitivity),
        F(k) = 1 - q^(k + 1)/(1 + q) from k = 0 on and q^(-k)/(1 + q) below.

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
        """Return `near` of the most noise that is recorded with this loss, which is rounded up."""
        return self.near(times=max(1 - _UNIT / self.loss, 1e-3))


def is_noise_too_small(near_count: int, draws: int, law: NoiseLaw, *, significance: float) -> bool:
    """Tell whether so many draws near the true figures are too many for noise as large as the law's."""
    return bool(binom.sf(near_count - 1, draws, law.near()) < significance)


def is_noise_too_large(near_count: int, draws: int, law: NoiseLaw, *, significance: float) -> bool:
    """Tell whether so few draws near the true figures are too few for noise about them alone."""
    return bool(binom.cdf(near_count, draws, law.least_near) < significance)


def small_noise_power(law: NoiseLaw, times: float, draws: int, *, significance: float) -> float:
    """Return how likely noise of so many times the loss is to be told."""
    needed = binom.isf(significance, draws, law.near()) + 1
    return float(binom.sf(needed - 1, draws, law.near(times=times)))


def misplaced_noise_power(law: NoiseLaw, offset: int, draws: int, *, significance: float) -> float:
    """Return how likely it is to be told that a draw in two is off by so much."""
    max_near = binom.ppf(significance, draws, law.least_near) - 1
    return float(binom.cdf(max_near, draws, (law.near() + law.near(off=offset)) / 2))


def _discrete_laplace_cdf(k: int, rate: float) -> float:
    """Return P(X <= k); what overflows is 0."""
    if k >= 0:
        return 1 - math.exp(-(k + 1) * rate) / (1 + math.exp(-rate))
    return math.exp(k * rate) / (1 + math.exp(-rate))
