"""How often the 90 % intervals of smoothed estimates held the true figure of real households: measured, not assumed.

Data: the 40 London households of 2013 (Low Carbon London) that are at hand, of which 37 have readings on all but five
days. The true series is the unclamped daily mean of 365 days: of all 37, of each half of them (18 and 19, every second
one), and of four groups of nine. Priors are those of the package, and for a half those fitted to the true series of the
other half, so that nothing of its households enters. Laplace noise of known standard deviation is added, 20 draws of
it. Estimates see the noisy series and the calendar (holidays of GB-ENG, no weather). Groups are published beside their
total, whose noise is `noise_kwh`; the noise of a group is four times that.

Shares are over days and draws: all days; special days (holidays, 22 December to 1 January); and the hardest tenth,
37 days with the largest residual of the true series from weekdays, holidays, year's end and two harmonics of the year.
Between draws the share of the hardest tenth varies by 0.1.

Example: archive, 37 households, noise of 1.5 kWh: 92 % of all days, 95 % of special days, 72 % of the hardest tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class MeasuredCoverage:
    """Share of days inside the intervals, and error of the estimates as part of the error of the noisy figures."""

    series: str
    variant: Literal["archive", "live"]
    noise_kwh: float
    error_ratio: float
    all_days: float
    special_days: float
    hardest_days: float


MEASURED: Final = (
    MeasuredCoverage("37 households", "archive", 0.6, 0.71, 0.91, 0.92, 0.82),
    MeasuredCoverage("37 households", "archive", 1.5, 0.47, 0.92, 0.95, 0.72),
    MeasuredCoverage("37 households", "live", 0.6, 0.80, 0.92, 0.92, 0.88),
    MeasuredCoverage("37 households", "live", 1.5, 0.57, 0.94, 0.95, 0.87),
    MeasuredCoverage("half, prior of the other half", "archive", 0.6, 0.79, 0.91, 0.92, 0.82),
    MeasuredCoverage("half, prior of the other half", "archive", 1.5, 0.53, 0.92, 0.93, 0.72),
    MeasuredCoverage("half, prior of the other half", "live", 0.6, 0.85, 0.91, 0.91, 0.88),
    MeasuredCoverage("half, prior of the other half", "live", 1.5, 0.62, 0.93, 0.93, 0.86),
    MeasuredCoverage("4 groups of 9", "archive", 0.6, 0.43, 0.88, 0.85, 0.57),
    MeasuredCoverage("4 groups of 9", "archive", 1.5, 0.24, 0.90, 0.90, 0.59),
    MeasuredCoverage("4 groups of 9", "live", 0.6, 0.47, 0.90, 0.85, 0.68),
    MeasuredCoverage("4 groups of 9", "live", 1.5, 0.27, 0.94, 0.90, 0.77),
)
"""Twelve measurements; print those of the variant and the noise nearest to a release."""
