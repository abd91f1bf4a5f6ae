"""The day-to-day change of a mean against which planned noise is judged: the estimate from released rows, or 1 kWh.

The estimate is that of `agedp.signal_against_noise`, for the smallest group of the series. Example: an estimate of 0.7
kWh with a standard error of 0.1 makes noise of 0.4 kWh usable, of 1 kWh unusable, and of 0.6 kWh uncertain.

Decisions:

* Noise is USABLE if it is below the estimate by two standard errors, UNUSABLE if it is above it by two, else NOT
  CERTAIN. Without an estimate it is compared with the assumed 1 kWh, and one of the first two.
* The number of households or the bound that a plan advises brings the noise down to one change: the estimate if it is
  at least two standard errors above 0. Below that it may be nothing but noise. Then it is 1 kWh, or the estimate plus
  two standard errors where this is less: a larger change would contradict the released rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agedp.signal_against_noise import ASSUMED_CHANGE_KWH, smallest_group
from agedp_data.ledger import ReleaseRecord
from agedp_data.smoothing.signal_estimate import SignalEstimate, Verdict


@dataclass(frozen=True, slots=True)
class ChangeYardstick:
    """Change that planned noise is compared with [kWh per household], and its `estimate`, None without enough days."""

    kwh: float = ASSUMED_CHANGE_KWH
    estimate: SignalEstimate | None = None

    @property
    def is_estimated(self) -> bool:
        """Return whether the change is the estimate; otherwise it is assumed."""
        return self.estimate is not None and self.estimate.is_significant

    def verdict(self, noise_kwh: float) -> Verdict:
        """Return whether days of this noise can be told apart: "visible" is usable, "hidden" unusable."""
        if self.estimate is not None:
            return self.estimate.verdict(noise_kwh)
        return "visible" if noise_kwh <= self.kwh else "hidden"


def change_yardstick(rows: Iterable[ReleaseRecord], series: str) -> ChangeYardstick:
    """Return the change that noise of a series is compared with, from the released rows of all series."""
    signal = smallest_group(rows, series)
    estimate = None if signal is None else signal.daily.estimate
    if estimate is None:
        return ChangeYardstick()
    if estimate.is_significant:
        return ChangeYardstick(estimate.change, estimate)
    highest = estimate.change + 2 * estimate.standard_error
    return ChangeYardstick(min(ASSUMED_CHANGE_KWH, highest) or ASSUMED_CHANGE_KWH, estimate)
