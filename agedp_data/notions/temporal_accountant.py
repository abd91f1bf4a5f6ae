"""Temporal leakage of released rows about any one day, under a leakage bound, in nano-epsilon ([T] section 3).

All arithmetic is on integers, so that the planned, the admitted and the stated numbers are the same. With m steps a
day, e_k the loss of day k and g days between one released day and the next,

    c_k = e_k + L_back(m g)(c_(k-1)),   C_k = e_k + L_ahead(m g)(C_(k+1)),
    TPL_k = e_k + L_back(1 + m (g_before - 1))(c_(k-1)) + L_ahead(1 + m (g_after - 1))(C_(k+1)).

The recursion may LEAP over releases, which then count by the sum of their losses (`accounting.higher_order`): instead
of L(c_(k-1)) the least of e_(k-1) + ... + e_(k-j+1) + L(c_(k-j)) over the gap from there. A chain in which one day
gives no mixing (two values are never confused, or its states are pairs of days) may mix in two. This holds for
half-hours as for days: P(y | x) = P(y_far | x) P(y_near | y_far, x) for the outputs y about a day x, where another x
changes the first factor by e^L(c_(k-j)) at most, and the second, whatever lies between, by e to the losses of y_near.

Decisions. "Any one day" includes days without a release: between two released days such a day has e = 0, and before the
first or after the last one its leakage never exceeds that day's. A gap counts as so many days of the chain, also when
the clock changes. Days are composed by their own time, whatever the order in which they were released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from agedp_data.notions.notion import LeakageBoundLike, LossAtAge

BACKWARD, FORWARD = "backward", "forward"
_FURTHEST: Final = 7
"""Releases over which the recursion may leap, at most: a week of days, the longest habit that a leap is made for."""


class DayLeakage(NamedTuple):
    """Leakage about one day [nano-epsilon]: its own loss, the backward and the forward part.

    Source: [T] eq. 10.
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
    """Temporal leakage of losses by the number of the day, under a leakage bound.

    Source: [T] Definitions 5 to 8, eqs. 5, 10 and 11, with L for daily releases as in the head of this module. Erratum:
    in eqs. 5, 10 and 11 "=" must read "<=".

    With `leaping` = False no release is leapt over, as in [T]: the bounds are never below, and the plans differ.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
    """

    def __init__(self, leakage_bound: LeakageBoundLike, *, higher_order: bool = True) -> None:
        self._leakage_bound = leakage_bound
        self.steps_per_day = leakage_bound.steps_per_day
        self._cache: dict[tuple[str, int], LossAtAge] = {}
        # How many days behind a release a step to the whole of a day is last read off each tabulated age.
        self.days_before_drops = sorted({-(-(int(age) - 1) // self.steps_per_day) for age in leakage_bound.ages})
        # An age of 1 + m (g - 1) steps is there for the beginning of a day, not for g - 1 whole ones.
        tabulated = {int(age) // self.steps_per_day for age in leakage_bound.ages if age % self.steps_per_day == 0}
        furthest = _FURTHEST if higher_order else 1
        self.orders = {1, *(j for j in range(2, furthest + 1) if j in tabulated)}
        self._backward_side = _OneSidedLosses(self, BACKWARD)

    def of(self, losses: Mapping[int, int]) -> Iterator[DayLeakage]:
        """Yield the leakage about each day with a release, in the order of the days."""
        days, back, ahead = self._sides(losses, 0)
        for day, earlier, later in zip(days, back.day_leakages, reversed(ahead.day_leakages), strict=True):
            yield DayLeakage(day, losses[day], earlier, later)

    def largest(self, losses: Mapping[int, int], *, loss_of_every_later_day: int = 0) -> int | None:
        """Largest leakage about any one day [nano-epsilon], None if that is infinite.

        `endless` is the loss of every day after the newest, for ever. As many of these days are examined as a leap is
        long: further ones can leap over them, so that nothing builds up any more but towards the limit.
        """
        limit = self.limit(loss_of_every_later_day)
        if limit is None:
            return None
        newest = max(losses, default=0)
        to_come = {
            newest + 1 + i: loss_of_every_later_day for i in range(max(self.orders) if loss_of_every_later_day else 0)
        }
        return max((limit, *(value for _, value in self._day_leakages({**losses, **to_come}, loss_of_every_later_day))))

    def day_of_largest_leakage(self, losses: Mapping[int, int]) -> tuple[int, int]:
        """Return a day with the largest leakage, with a release if possible, and the leakage; some loss is above 0."""
        return max(self._day_leakages(losses, 0), key=lambda day_and_leakage: day_and_leakage[1])

    def _day_leakages(self, losses: Mapping[int, int], loss_of_every_later_day: int) -> Iterator[tuple[int, int]]:
        """Yield (day, leakage) for the days with a release, then for the days between at which it may be largest."""
        days, back, ahead = self._sides(losses, loss_of_every_later_day)
        for day, earlier, later in zip(days, back.day_leakages, reversed(ahead.day_leakages), strict=True):
            yield day, losses[day] + earlier + later
        for k, (day, gap) in enumerate((day, later - day) for day, later in pairwise(days)):
            releases_after = len(days) - 1 - k
            for i in back.days_before_drops(gap, k + 1):
                yield day + i, back.leakage_of_day(i, k + 1) + ahead.leakage_of_day(gap - i, releases_after)

    def limit(self, loss: int) -> int | None:
        """Leakage of days with this loss without end [nano-epsilon]; None if that is infinite."""
        if self.supremum(BACKWARD, loss) is None or self.supremum(FORWARD, loss) is None:
            return None
        return loss + self._endless(BACKWARD, loss).leakage_of_day(1) + self._endless(FORWARD, loss).leakage_of_day(1)

    def supremum(self, direction: str, loss: int) -> int | None:
        r"""Supremum of the leakage of daily releases with this loss on one side, the newest included.

        .. math:: c^* = \sup_c \; e + L(c)

        Source: [T] Theorem 11. Erratum: the supremum is over all pairs of rows and prefixes, not the maximising pair of
        one loss.

        Args:
            direction: "backward" or "forward".
            loss: loss e of each day [nano-epsilon].

        Returns:
            [nano-epsilon]; None if it is infinite.
        """
        suprema = [self.end_to_end_leakage(direction, j).supremum(j * loss) for j in self.orders]
        return min((value for value in suprema if value is not None), default=None)

    def end_to_end_leakage(self, direction: str, days: int) -> LossAtAge:
        """Return L from one end of a day to the same end of a day so many days away."""
        return self._at(direction, self.steps_per_day * days)

    def whole_day_leakage(self, direction: str, days: int) -> LossAtAge:
        """Return L from one end of a day to the whole of a day so many days away."""
        return self._at(direction, 1 + self.steps_per_day * (days - 1))

    def _sides(
        self, losses: Mapping[int, int], loss_of_every_later_day: int
    ) -> tuple[list[int], _OneSidedLosses, _OneSidedLosses]:
        days = sorted(day for day, loss in losses.items() if loss > 0)
        spent = [losses[day] for day in days]
        self._backward_side.update(days, spent)  # a series asks for the same days and one more
        ahead = self._endless(FORWARD, loss_of_every_later_day)
        ahead.update([-day for day in reversed(days)], spent[::-1])
        return days, self._backward_side, ahead

    def _endless(self, direction: str, loss: int) -> _OneSidedLosses:
        """Return the side of a day behind which there are days of this loss for ever."""
        side = _OneSidedLosses(self, direction)
        if loss:
            side.assume_constant(loss, self.supremum(direction, loss) or 0, max(self.orders))
        return side

    def _at(self, direction: str, steps: int) -> LossAtAge:
        leakage = self._cache.get((direction, steps))
        if leakage is None:
            leakage = self._cache[direction, steps] = self._leakage_bound.exact_leakage(steps, direction=direction)
        return leakage


class _OneSidedLosses:
    """Releases in the order in which they come nearer, and their composed loss from one side.

    Day numbers grow towards the protected day (forward, the negative ones). `reached` is the leakage of the releases
    before each one about the whole of its day. Releases that are only imagined lie on the days directly before the
    first one and come first in `_day_numbers`, `_spent` and `_composed`: so many entries more than in `reached`.
    """

    def __init__(self, temporal_losses: TemporalLosses, direction: str) -> None:
        self._temporal_losses, self._direction = temporal_losses, direction
        self._furthest, self._blocks = max(temporal_losses.orders), temporal_losses.steps_per_day > 1
        self._day_numbers: list[int] = []
        self._spent: list[int] = []
        self._composed: list[int] = []  # c of each release
        self._n_assumed = 0
        self.day_leakages: list[int] = []

    def assume_constant(self, loss: int, supremum: int, number: int) -> None:
        """Begin with days of this loss of which there were infinitely many before; the first release says where."""
        self._composed, self._spent, self._n_assumed = [supremum] * number, [loss] * number, number
        self._day_numbers = list(range(-number, 0))

    def update(self, day_numbers: list[int], spent: list[int]) -> None:
        """Tell of these releases, the furthest first, going on from those that were the same the last time."""
        first = self._n_assumed
        if first and day_numbers and not self.day_leakages:  # now it is known where they end
            self._day_numbers = list(range(day_numbers[0] - first, day_numbers[0]))
        same = 0
        while (
            same < min(len(day_numbers), len(self.day_leakages))
            and self._day_numbers[first + same] == day_numbers[same]
            and self._spent[first + same] == spent[same]
        ):
            same += 1
        for entries in (self._day_numbers, self._spent, self._composed):
            del entries[first + same :]
        del self.day_leakages[same:]
        for day_number, loss in zip(day_numbers[same:], spent[same:], strict=True):
            day_leakages = self._least(day_number, len(self._composed), self._temporal_losses.whole_day_leakage)
            composed_leakage = (
                self._least(day_number, len(self._composed), self._temporal_losses.end_to_end_leakage)
                if self._blocks
                else day_leakages
            )
            self.day_leakages.append(day_leakages)
            self._day_numbers.append(day_number)
            self._spent.append(loss)
            self._composed.append(loss + composed_leakage)

    def leakage_of_day(self, gap: int, number: int | None = None) -> int:
        """Return the leakage of the first `number` releases about the whole of a day, `gap` days from the last."""
        count = len(self._composed) if number is None else number + self._n_assumed
        return (
            self._least(self._day_numbers[count - 1] + gap, count, self._temporal_losses.whole_day_leakage)
            if count
            else 0
        )

    def days_before_drops(self, gap: int, number: int) -> set[int]:
        """Return the days of the gap after the first so many releases at which the leakage may be largest.

        The leakage of these releases drops where any release that may be leapt to comes to the next tabulated age. That
        of the other side only grows on the way there, so the last day before each drop has at least the leakage of
        those before it.
        """
        if gap == 1:
            return set()
        count = number + self._n_assumed
        newest = self._day_numbers[count - 1]
        past = [newest - self._day_numbers[count - j] for j in self._temporal_losses.orders if j <= count]
        return {
            last - far for last in self._temporal_losses.days_before_drops for far in past if 1 <= last - far < gap
        } | {gap - 1}

    def _least(self, day_number: int, count: int, leakage_over: Callable[[str, int], LossAtAge]) -> int:
        if not count:
            return 0
        newest, losses_between = count - 1, 0
        least = leakage_over(self._direction, day_number - self._day_numbers[newest])(self._composed[newest])
        for j in range(2, min(self._furthest, count) + 1):
            losses_between += self._spent[count - j + 1]
            if losses_between >= least:
                break
            if j in self._temporal_losses.orders:
                from_there = leakage_over(self._direction, day_number - self._day_numbers[count - j])(
                    self._composed[count - j]
                )
                least = min(least, losses_between + from_there)
        return least
