r"""Losses about whole periods: a draw of a calibration is about all readings of a household in its period at once.

A draw with loss e about a period P is e-differentially private in the household's readings of P taken together: for two
accounts h, h' of them, Pr[draw | h] <= e^e Pr[draw | h']. Daily releases have their losses given the draw. Losses add
(basic composition), and what is made of a draw adds nothing (post-processing). Hence a draw counts

* once in the total: any change of the household's days changes what was drawn from once;
* once in each window that touches P, however many of its days lie in P, and not in the others, for the same reason;
* in the figure of each day of P, as that of a window of one day;
* always in a figure about correlated days (risk, temporal leakage), inside or outside P. With x the secret, y the
  releases and h all days of the household,

  .. math:: \Pr[draw, y \mid x] = \sum_h \Pr[h \mid x] \Pr[draw \mid h] \Pr[y \mid h, draw]

  in which Pr[draw | h] varies by a factor e^e at most over all h. Without it the sum is what the notion bounds, so the
  losses add whatever the chain;
* always, and in full, in a discounted sum: no age of a draw is defined by which it could count less;
* in full about a small change of a day: the draw bounds any change alike, a small one among them.

So it is neither aged, discounted nor scaled. Several draws add up, and none is ever forgotten. Losses are whole
nano-epsilon, days ISO text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache


@dataclass(frozen=True, slots=True, order=True)
class PeriodLoss:
    """Loss of one draw about all readings of a household from `first_day` to `last_day`, both ISO dates.

    A released row that covers several days is such a draw too: `is_release`, with its L1 sensitivity and noise scale.

    >>> PeriodLoss("2012-01-01", "2012-12-31", 10**9).touches("2012-12-31")
    True
    """

    first_day: str
    last_day: str
    loss: int
    is_release: bool = False
    sensitivity: int = 0
    scale: float = 0.0

    def touches(self, day: str) -> bool:
        """Return whether a day lies in the period."""
        return self.first_day <= day <= self.last_day


Charges = tuple[PeriodLoss, ...]
"""The losses of all calibration draws about a population, and of released rows that cover several days."""


def total_charge(charges: Iterable[PeriodLoss]) -> int:
    """Return the loss of all draws together [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        charges: losses of the draws.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """
    return sum(charge.loss for charge in charges)


def charge_on(charges: Iterable[PeriodLoss], day: str) -> int:
    """Return the loss of the draws whose period contains a day [nano-epsilon].

    Source: sequential composition, [A] Proposition 2.

    Args:
        charges: losses of the draws.
        day: ISO date.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> charge_on([PeriodLoss("2012-01-01", "2012-01-31", 5), PeriodLoss("2012-01-31", "2012-02-01", 2)], "2012-01-31")
    7
    """
    return sum(charge.loss for charge in charges if charge.touches(day))


def covered_losses(losses: Mapping[str, int], charges: Iterable[PeriodLoss]) -> dict[str, int]:
    """Return the loss about each day [nano-epsilon]: a released row counts in full on every day that it covers.

    Source: sequential composition, [A] Proposition 2; calibration draws are left out.

    Args:
        losses: loss of each day by rows about one day [nano-epsilon].
        charges: losses of rows that cover several days.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> covered_losses({"2013-01-02": 5}, [PeriodLoss("2013-01-01", "2013-01-02", 4, is_release=True)])
    {'2013-01-02': 9, '2013-01-01': 4}
    """
    covered = dict(losses)
    for charge in charges:
        if charge.is_release:
            for number in range(_number(charge.first_day), _number(charge.last_day) + 1):
                day = date.fromordinal(number).isoformat()
                covered[day] = covered.get(day, 0) + charge.loss
    return covered


def format_periods(charges: Iterable[PeriodLoss]) -> str:
    """Return the periods of the draws, for sentences.

    Source: text, without a formula.

    Args:
        charges: losses of the draws.

    >>> format_periods([PeriodLoss("2012-01-01", "2012-01-31", 5), PeriodLoss("2012-01-01", "2012-01-31", 2)])
    '2012-01-01 to 2012-01-31'
    """
    return " or from ".join(sorted({f"{charge.first_day} to {charge.last_day}" for charge in charges}))


def largest_charged_window(
    charges: Iterable[PeriodLoss], losses: Mapping[str, int], *, days: int, around: tuple[str, str] | None = None
) -> int:
    r"""Largest loss of any `days` consecutive days, a draw counted once in each window that touches its period.

    .. math:: \max_t \Bigl[ \sum_{k=t}^{t+w-1} \varepsilon_k + \sum_{i:\, P_i \cap [t, t+w-1] \ne \emptyset} e_i \Bigr]

    Source: Kellaris et al., Theorem 3, with sequential composition of the draws. A release is a draw about one day: it
    is in the windows that begin from w - 1 days before its first day to its last day.

    Args:
        charges: losses e_i of the draws about the periods P_i.
        losses: loss of each released day [nano-epsilon].
        days: length w of the window [days].
        around: first and last day of a range; only windows that contain a day of it count.

    Returns:
        [nano-epsilon]; 0 without losses.

    References:
        Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7,
        2014. https://doi.org/10.14778/2732977.2732989

    >>> draw = PeriodLoss("2013-01-04", "2013-01-31", 4)
    >>> largest_charged_window([draw], {"2013-01-02": 5, "2013-01-05": 2, "2013-01-06": 1}, days=3)  # 5 + 4 from 2 to 4
    9
    """
    loss_at_start: dict[float, int] = {}
    earliest, latest = (-math.inf, math.inf) if around is None else (_number(around[0]) - days + 1, _number(around[1]))
    releases = [(_number(day), _number(day), loss) for day, loss in losses.items()]
    for first, last, loss in [*_periods(charges), *releases]:
        begin, end = max(first - days + 1, earliest), min(last, latest)
        if begin <= end:
            loss_at_start[begin] = loss_at_start.get(begin, 0) + loss
            loss_at_start[end + 1] = loss_at_start.get(end + 1, 0) - loss
    largest = total = 0
    for start in sorted(loss_at_start):
        total += loss_at_start[start]
        largest = max(largest, total)
    return largest


def _periods(charges: Iterable[PeriodLoss]) -> list[tuple[int, int, int]]:
    return [(_number(charge.first_day), _number(charge.last_day), charge.loss) for charge in charges]


@lru_cache(maxsize=2**14)
def _number(day: str) -> int:
    return date.fromisoformat(day).toordinal()
