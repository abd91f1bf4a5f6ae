"""Losses of several days put together under a model, in whole 1e-9 epsilon: integers only, kept as days are added.

Adding the newest day costs one step, whatever lies before it; adding an older one repeats the steps behind it,
once, when the risk is next asked for. So the figures of a series take one pass, not one for each publication.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Protocol


class AgedLeakageLike(Protocol):
    """What is left of a whole loss at an age in steps: `aged.Forgotten`."""

    @property
    def envelope(self) -> ComposableModel:
        """The model."""

    def __call__(self, age_steps: int, loss: int) -> int:
        """Return it, rounded up and never above `loss`."""


class ComposableModel(Protocol):
    """What this module needs to know of a model."""

    @property
    def steps_per_day(self) -> int:
        """Steps of the chain in a day."""

    @property
    def assume(self) -> str:
        """Either "markov" or "curve"."""


class ComposedLoss:
    """Days and their losses; `risk` says what they come to about the present.

    With assume = "markov" releases compose through the gaps between their inputs, z_k = e_k + L_gap(z_(k-1)) ([A]
    eq. 25 in its corrected form: sort by input time), and the present sees L_age(z_n). With "curve" nothing is known
    of the joint law: min over j of L_(age_j)(e_j) + the other losses (MATHS 2b).
    """

    def __init__(self, left: AgedLeakageLike, losses: Mapping[str, int]) -> None:
        self._left = left
        self._steps = left.envelope.steps_per_day
        ordered = sorted((_number(day), loss) for day, loss in losses.items())
        self._days = [day for day, _ in ordered]
        self._losses = [loss for _, loss in ordered]
        self._total = sum(self._losses)
        self._kept: list[int] = []  # z of the first days, or the largest loss up to each of them

    def add(self, day: str, loss: int) -> None:
        """Add a loss about a day, which may be there already."""
        number = _number(day)
        place = bisect_left(self._days, number)
        if self._has(place, number):
            self._losses[place] += loss
        else:
            self._days.insert(place, number)
            self._losses.insert(place, loss)
        self._total += loss
        del self._kept[place:]

    def risk(self, age_steps: int) -> int:
        """Return what the days say about the present, the newest of them `age_steps` old."""
        if not self._days:
            return 0
        if self._left.envelope.assume != "markov":
            return self._total - self._gain(self._records(), age_steps + self._days[-1] * self._steps)
        for place in range(len(self._kept), len(self._days)):
            before = (self._days[place - 1], self._kept[-1]) if place else None
            self._kept.append(self._next(before, self._days[place], self._losses[place]))
        return self._left(age_steps, self._kept[-1])

    def with_day(self, day: str) -> Callable[[int, int], int]:
        """Return (loss, age in steps of the newest day) -> the risk if `day` had so much more loss."""
        number, place = _number(day), bisect_left(self._days, _number(day))
        there = self._has(place, number)
        spent = self._losses[place] if there else 0
        newest = max([number, *self._days[-1:]])
        if self._left.envelope.assume != "markov":
            # a day that this one hides stays hidden when its loss grows
            others = [(each, loss) for each, loss in self._records() if each != number]
            now = newest * self._steps
            return lambda loss, age: (
                self._total + loss - self._gain(sorted([*others, (number, spent + loss)]), age + now)
            )
        self.risk(0)
        before = (self._days[place - 1], self._kept[place - 1]) if place else None
        behind = list(zip(self._days[place + there :], self._losses[place + there :], strict=True))

        def risk(loss: int, age_steps: int) -> int:
            known = (number, self._next(before, number, spent + loss))
            for later, its_loss in behind:
                known = (later, self._next(known, later, its_loss))
            return self._left(age_steps, known[1])

        return risk

    def _has(self, place: int, number: int) -> bool:
        return place < len(self._days) and self._days[place] == number

    def _next(self, before: tuple[int, int] | None, day: int, loss: int) -> int:
        return loss if before is None else loss + self._left((day - before[0]) * self._steps, before[1])

    def _records(self) -> Iterator[tuple[int, int]]:
        """Yield the days whose loss is above all older ones; kept is the largest loss up to each day."""
        for place in range(len(self._kept), len(self._days)):
            self._kept.append(max(self._losses[place], self._kept[-1] if place else 0))
        place = bisect_left(self._kept, 1)
        while place < len(self._kept):
            yield self._days[place], self._losses[place]
            place = bisect_left(self._kept, self._kept[place] + 1, lo=place)

    def _gain(self, candidates: Iterable[tuple[int, int]], now: int) -> int:
        # loss - L(loss) grows with the loss and with the age: only a loss above all older ones can win.
        gain = largest = 0
        for day, loss in candidates:
            if loss > largest:
                largest = loss
                gain = max(gain, loss - self._left(now - day * self._steps, loss))
        return gain


def _number(day: str) -> int:
    return date.fromisoformat(day).toordinal()
