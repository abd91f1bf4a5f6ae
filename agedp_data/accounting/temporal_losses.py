"""Temporal leakage of released rows about any one day, under a leakage bound, in nano-epsilon ([T] section 3).

All arithmetic is on integers, so that the planned, the admitted and the stated numbers are the same. With m steps a
day, e_k the loss of day k and g days between one released day and the next,

    c_k = e_k + L_back(m g)(c_(k-1)),   C_k = e_k + L_ahead(m g)(C_(k+1)),
    TPL_k = e_k + L_back(1 + m (g_before - 1))(c_(k-1)) + L_ahead(1 + m (g_after - 1))(C_(k+1)),

which is `Recursion` with the integer leakage functions of a model. A step may begin several releases back
(`Composition`, orders): a chain in which one day gives no mixing may mix in two, for half-hours as for days.

Decisions. "Any one day" includes days without a release: between two released days such a day has e = 0, and before the
first or after the last one its leakage never exceeds that day's. A gap of g days is g days of the chain, also when the
clock changes. Days are composed by their own time, in whichever order they were released.

A larger loss of a released day never lowers a bound. A first loss of a day may, under a table: the day divides a gap in
two, and L_(g+h) <= L_g(L_h) holds for the exact L only, not between the losses of a table. Both bounds are valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from agedp_data.accounting.composition import Composition
from agedp_data.accounting.temporal_recursion import OneSidedRecursion, Recursion
from agedp_data.leakage.function import LeakageBoundLike

_FURTHEST: Final = 7
"""Largest order of a step: a week of days, the longest habit that it is meant for."""


class DayLeakage(NamedTuple):
    """Leakage about one day [nano-epsilon]: its own loss, the backward and the forward part.

    Source: [T] eq. 10.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> DayLeakage(day=3, day_loss=5, backward=2, forward=1).total
    8
    """

    day: int
    day_loss: int
    backward: int
    forward: int

    @property
    def total(self) -> int:
        """Total temporal leakage, BPL + FPL - e = own loss + backward part + forward part ([T] eq. 10)."""
        return self.day_loss + self.backward + self.forward


class TemporalLosses:
    r"""Temporal leakage of losses by the number of the day, under a leakage bound.

    .. math:: TPL_k = e_k + B_{1 + m(g - 1)}(c_{k-1}) + F_{1 + m(g' - 1)}(C_{k+1})

    Source: [T] Definitions 5 to 8, eqs. 5, 10 and 11, with L for daily releases as in the head of this module. Erratum:
    in eqs. 5, 10 and 11 "=" must read "<=".

    Args:
        leakage_bound: leakage bound in both directions.
        higher_order: whether a step may begin several releases back. False, as in [T], never lowers a bound.

    Attributes:
        recursion: recursion of both directions by gaps in days, losses in [nano-epsilon].
        orders: orders of a step; those of which the bound has an age.
        last_days: days after a release at which the tabulated age changes next.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release under Temporal
        Correlations. IEEE TKDE, 2018. https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.leakage.population_bound import leakage_bound
    >>> stay = [[[0.9, 0.1], [0.1, 0.9]]]
    >>> bound = leakage_bound(stay, [1], [0.1], reliable=[True], forward=stay, steps_per_day=1)
    >>> TemporalLosses(bound).largest({0: 10**8, 1: 10**8})  # .1 + ln((1 + .9 x)/(1 + .1 x)), x = e^.1 - 1
    179976001
    """

    def __init__(self, leakage_bound: LeakageBoundLike, *, higher_order: bool = True) -> None:
        self._leakage_bound = leakage_bound
        self.steps_per_day = leakage_bound.steps_per_day
        ages = [int(age) for age in leakage_bound.ages]
        self.last_days = sorted({-(-(age - 1) // self.steps_per_day) for age in ages})
        # An age of 1 + m (g - 1) steps is that of the beginning of a day, not of g - 1 whole ones.
        tabulated = {age // self.steps_per_day for age in ages if age % self.steps_per_day == 0}
        self.orders = {1, *(j for j in range(2, _FURTHEST + 1) if higher_order and j in tabulated)}
        self.recursion = Recursion(self._one_side("backward"), self._one_side("forward"))
        self._backward = self.recursion.backward.composition()

    def of(self, losses: Mapping[int, int]) -> Iterator[DayLeakage]:
        """Yield the leakage about each day with a release, in the order of the days."""
        days, earlier, later = self._sides(losses, 0)
        for day, backward, forward in zip(days, earlier.leakages, reversed(later.leakages), strict=True):
            yield DayLeakage(day, losses[day], backward, forward)

    def largest(self, losses: Mapping[int, int], *, loss_of_every_later_day: int = 0) -> int | None:
        """Largest leakage about any one day [nano-epsilon], None if that is infinite.

        With a loss of every later day, as many of these days are examined as the largest order: a step over all of them
        bounds the leakage of any further day by the limit.
        """
        limit = self.limit(loss_of_every_later_day)
        if limit is None:
            return None
        newest = max(losses, default=0)
        number = max(self.orders) if loss_of_every_later_day else 0
        to_come = {newest + 1 + i: loss_of_every_later_day for i in range(number)}
        return max((limit, *(value for _, value in self._day_leakages({**losses, **to_come}, loss_of_every_later_day))))

    def day_of_largest_leakage(self, losses: Mapping[int, int]) -> tuple[int, int]:
        """Return a day with the largest leakage, with a release if possible, and the leakage; some loss is above 0."""
        return max(self._day_leakages(losses, 0), key=lambda day_and_leakage: day_and_leakage[1])

    def limit(self, loss: int) -> int | None:
        """Leakage of days with this loss without end [nano-epsilon]; None if that is infinite."""
        return self.recursion.endless_total(loss)

    def _day_leakages(self, losses: Mapping[int, int], loss_of_every_later_day: int) -> Iterator[tuple[int, int]]:
        """Yield (day, leakage) for the days with a release, then for the days between at which it may be largest."""
        days, earlier, later = self._sides(losses, loss_of_every_later_day)
        for day, backward, forward in zip(days, earlier.leakages, reversed(later.leakages), strict=True):
            yield day, losses[day] + backward + forward
        for count, next_day in enumerate(days[1:], start=1):
            newest = days[count - 1]
            for after in self._days_before_drops(days[max(0, count - _FURTHEST) : count], next_day - newest):
                backward = earlier.leakage(newest + after, count=count)
                yield newest + after, backward + later.leakage(-newest - after, count=len(days) - count)

    def _days_before_drops(self, earlier_days: list[int], gap: int) -> set[int]:
        """Return how many days after the newest release of a gap the leakage may be largest.

        The leakage of the earlier releases drops where one from which a step may begin comes to the next tabulated age.
        That of the later ones only grows on the way there, so the last day before each drop has at least the leakage of
        the days before it.
        """
        if gap == 1:
            return set()
        newest = earlier_days[-1]
        ages = [newest - earlier_days[-j] for j in self.orders if j <= len(earlier_days)]
        return {last - age for last in self.last_days for age in ages if 1 <= last - age < gap} | {gap - 1}

    def _sides(
        self, losses: Mapping[int, int], loss_of_every_later_day: int
    ) -> tuple[list[int], Composition[int], Composition[int]]:
        days = sorted(day for day, loss in losses.items() if loss > 0)
        spent = [losses[day] for day in days]
        self._backward.replace(days, spent)  # a series asks for the same days and one more
        future = loss_of_every_later_day
        past = (future, self.recursion.forward.supremum(future) or 0) if future else None
        later = self.recursion.forward.composition(past)
        later.replace([-day for day in reversed(days)], spent[::-1])
        return days, self._backward, later

    def _one_side(self, direction: str) -> OneSidedRecursion[int]:
        leakage_at = lru_cache(maxsize=None)(
            lambda steps: self._leakage_bound.exact_leakage(steps, direction=direction)
        )
        m = self.steps_per_day
        day_at = None if m == 1 else lambda days: leakage_at(1 + m * (days - 1))
        return OneSidedRecursion(lambda days: leakage_at(m * days), day_at, self.orders)
