"""Composition of the losses of several days under a model, incremental, in nano-epsilon ([A] eq. 25).

A further newest day costs one step; an older one repeats the steps after it, once, when the risk is next computed. So
the bounds of a series take one pass, not one for each publication.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Protocol


class AgedLeakageLike(Protocol):
    """The leakage function at an age in steps, as `AgedLeakage`.

    Source: [A] Theorem 1 with the tight L, as in `ComposedLoss`.
    """

    @property
    def leakage_bound(self) -> ComposableModel:
        """The model."""

    def __call__(self, age_steps: int, loss: int) -> int:
        """Return it, rounded up and never above `loss`."""


class ComposableModel(Protocol):
    """What this module needs to know of a model.

    Source: [A] Theorem 3 requires the Markov property, which `assume` states.
    """

    @property
    def steps_per_day(self) -> int:
        """Steps of the chain in a day."""

    @property
    def assume(self) -> str:
        """Either "markov" or "curve"."""


class ComposedLoss:
    r"""Days and their losses [nano-epsilon]; `risk` is their composed loss about the present.

    With assume = "markov", over the gaps between the inputs:

    .. math:: z_1 = e_1, \qquad z_k = e_k + L_{g_k}(z_{k-1}), \qquad \varepsilon(t) = L_{age}(z_n)

    With assume = "curve", where the joint distribution is unknown:

    .. math:: \varepsilon(t) \le \min_j \; L_{age_j}(e_j) + \sum_{k \ne j} e_k

    Source: [A] eq. 25. Erratum: its bracket is misplaced and its lookup is wrong for overlapping ages; releases are
    sorted by the time of their input. "curve": [A] Theorem 1 for one release, Proposition 2 for all others.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147
    """

    def __init__(self, leakage: AgedLeakageLike, losses: Mapping[str, int]) -> None:
        self._leakage = leakage
        self._steps = leakage.leakage_bound.steps_per_day
        ordered = sorted((_number(day), loss) for day, loss in losses.items())
        self._days = [day for day, _ in ordered]
        self._losses = [loss for _, loss in ordered]
        self._total = sum(self._losses)
        self._composed: list[int] = []  # z of the first days, or the largest loss up to each of them

    def add(self, day: str, loss: int) -> None:
        """Add a loss about a day, which may be there already."""
        number = _number(day)
        index = bisect_left(self._days, number)
        if self._has(index, number):
            self._losses[index] += loss
        else:
            self._days.insert(index, number)
            self._losses.insert(index, loss)
        self._total += loss
        del self._composed[index:]

    def risk(self, age_steps: int) -> int:
        """Return what the days say about the present, the newest of them `age_steps` old."""
        if not self._days:
            return 0
        if self._leakage.leakage_bound.assume != "markov":
            return self._total - self._gain(self._records(), age_steps + self._days[-1] * self._steps)
        for index in range(len(self._composed), len(self._days)):
            previous = (self._days[index - 1], self._composed[-1]) if index else None
            self._composed.append(self._compose(previous, self._days[index], self._losses[index]))
        return self._leakage(age_steps, self._composed[-1])

    def with_day(self, day: str) -> Callable[[int, int], int]:
        """Return (loss, age in steps of the newest day) -> the risk if `day` had so much more loss."""
        number, index = _number(day), bisect_left(self._days, _number(day))
        has_day = self._has(index, number)
        spent = self._losses[index] if has_day else 0
        newest = max([number, *self._days[-1:]])
        if self._leakage.leakage_bound.assume != "markov":
            # a day that this one hides stays hidden when its loss grows
            other_days = [(other_day, loss) for other_day, loss in self._records() if other_day != number]
            today = newest * self._steps
            return lambda loss, age: (
                self._total + loss - self._gain(sorted([*other_days, (number, spent + loss)]), age + today)
            )
        self.risk(0)
        previous = (self._days[index - 1], self._composed[index - 1]) if index else None
        later_days = list(zip(self._days[index + has_day :], self._losses[index + has_day :], strict=True))

        def risk(loss: int, age_steps: int) -> int:
            composed = (number, self._compose(previous, number, spent + loss))
            for later, its_loss in later_days:
                composed = (later, self._compose(composed, later, its_loss))
            return self._leakage(age_steps, composed[1])

        return risk

    def _has(self, index: int, number: int) -> bool:
        return index < len(self._days) and self._days[index] == number

    def _compose(self, previous: tuple[int, int] | None, day: int, loss: int) -> int:
        return loss if previous is None else loss + self._leakage((day - previous[0]) * self._steps, previous[1])

    def _records(self) -> Iterator[tuple[int, int]]:
        """Yield the days whose loss is above all older ones; kept is the largest loss up to each day."""
        for index in range(len(self._composed), len(self._days)):
            self._composed.append(max(self._losses[index], self._composed[-1] if index else 0))
        index = bisect_left(self._composed, 1)
        while index < len(self._composed):
            yield self._days[index], self._losses[index]
            index = bisect_left(self._composed, self._composed[index] + 1, lo=index)

    def _gain(self, candidates: Iterable[tuple[int, int]], today: int) -> int:
        # loss - L(loss) grows with the loss and with the age: only a loss above all older ones can win.
        gain = largest = 0
        for day, loss in candidates:
            if loss > largest:
                largest = loss
                gain = max(gain, loss - self._leakage(today - day * self._steps, loss))
        return gain


def _number(day: str) -> int:
    return date.fromisoformat(day).toordinal()
