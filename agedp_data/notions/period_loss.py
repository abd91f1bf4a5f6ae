r"""Losses about whole periods: a draw of a calibration tells of all readings of a household in its period at once.

A draw with loss e about a period P says about any function of the household at most e: for two accounts h, h' of all
its readings in P, Pr[draw | h] <= e^e Pr[draw | h']. So do the daily releases about their days, given the draw; the
losses add (basic composition), and what is made of a draw adds nothing (post-processing). A draw therefore counts

* once in the total;
* once in each window that touches P, however many days of P the window contains: a change of several days of P is one
  change of what was drawn from;
* in the figure of each day of P;
* always in a figure about correlated days (risk, temporal leakage): with x the secret and y the releases,
  Pr[draw, y | x] = sum over h of Pr[h | x] Pr[draw | h] Pr[y | h, draw], whose factor Pr[draw | h] varies by e^e at
  most over all h, and the rest is what the notion bounds;
* always, and without a discount, in a discounted sum.

It is neither aged, discounted nor scaled to a small change: the choice of a model bounds any change alike. Several
draws add up. Losses are whole nano-epsilon, days ISO text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, order=True)
class PeriodLoss:
    """Loss of one draw about all readings of a household from `first_day` to `last_day`, both ISO dates.

    >>> PeriodLoss("2012-01-01", "2012-12-31", 10**9).touches("2012-12-31")
    True
    """

    first_day: str
    last_day: str
    loss: int

    @property
    def days(self) -> tuple[int, int]:
        """Return the numbers of the first and the last day."""
        return date.fromisoformat(self.first_day).toordinal(), date.fromisoformat(self.last_day).toordinal()

    def touches(self, day: str) -> bool:
        """Return whether a day lies in the period."""
        return self.first_day <= day <= self.last_day
