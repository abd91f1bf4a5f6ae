"""Age-dependent loss of released rows under a leakage bound, in nano-epsilon ([A] Theorems 1 and 3).

All arithmetic is on integers, rounded up at each use of the leakage bound, so that the planned, the admitted and the
stated numbers are the same.

Decisions. A gap between inputs is a gap between days of the data: a day counts as one day of the chain also when the
clock changes. Days that are released out of order are composed by the time of their input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import ClassVar, Final, Literal, SupportsFloat

from agedp_data.accounting.composition import Composition, SumComposition
from agedp_data.epsilon import NANO, to_float
from agedp_data.leakage.exact import to_integers
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import HistoryRow, LossBound, day_losses, day_number
from agedp_data.parameters import Method

Secret = Literal["day", "half-hour"]
DAY: Final = "day"
HALF_HOUR: Final = "half-hour"

ABOUT: dict[Secret, str] = {
    DAY: "the total of one household's current day",
    HALF_HOUR: "one household's current half-hour",
}
ASSUMED = {
    "markov": "each household is an independent Markov chain that mixes at least as fast as the model",
    "curve": "each household is independent of the others and mixes at least as fast as the model",
}
_OF_A_SHARE = {
    "markov": "the household is one of those whose estimated chains lie below the model's curve ({share}; which ones "
    "is not published) and mixes as its chain says, by a Markov chain, independently of the others",
    "curve": "the household is one of those whose estimated chains lie below the model's curve ({share}; which ones is "
    "not published) and mixes as its chain says, independently of the others",
}
NO_MODEL = "there is no model"
RISK: Final = "risk"

# From 1000 epsilon on floats are coarser than the slack that covers them, and no promise is about such losses.
_NOTHING_CREDITED: Final = 1000 * NANO


def _float_to_nano(loss: SupportsFloat) -> int | None:
    """Return a float loss [epsilon] in nano-epsilon, rounded up; None if infinite.

    The float nearest to a whole number of nano-epsilon counts as that number (`epsilon.ceil_nano` would take its binary
    value and go one further).

    >>> _float_to_nano(0.1), _float_to_nano(0.1000000001), _float_to_nano(float("inf"))
    (100000000, 100000001, None)
    """
    nano = to_integers([float(loss)])[0]
    return nano if isinstance(nano, int) else None


class AgedLeakage:
    r"""The leakage function L at an age in steps, in nano-epsilon; each value is computed once.

    .. math:: (t, a) \mapsto L_{\hat P^t}(a)

    Source: [A] Theorem 1 with the tight L, in integers [nano-epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """

    def __init__(self, leakage_bound: LeakageBoundLike, *, method: Method) -> None:
        self.leakage_bound = leakage_bound
        self.method = method
        self._cache: dict[tuple[int, int], int] = {}
        self._composition = self.composition()

    def __call__(self, age_steps: int, loss: int) -> int:
        r"""Leakage L_{\hat P^t}(a) of a loss at an age t, rounded up and never above `loss`.

        Args:
            age_steps: age t [steps of the chain].
            loss: privacy loss a about the input [nano-epsilon].

        Returns:
            [nano-epsilon].
        """
        if age_steps <= 0 or loss == 0 or loss >= _NOTHING_CREDITED:
            return loss
        key = (age_steps, loss)
        if key not in self._cache:
            remaining = self.leakage_bound(age_steps, to_float(loss), direction="backward", method=self.method)
            rounded = _float_to_nano(remaining)
            self._cache[key] = loss if rounded is None else min(rounded, loss)
        return self._cache[key]

    def peak(self, loss: int, age_steps: int) -> int | None:
        r"""Largest risk of a daily series without end, each day with the same loss.

        .. math:: L_{\hat P^A}(z^*), \qquad z^* = \sup_z \; e + L_{\hat P^{1\,day}}(z)

        Source: [A] Theorem 3 and eq. 30, with the tight L.

        Args:
            loss: loss e of each day [nano-epsilon].
            age_steps: age A of a day at its release [steps].

        Returns:
            [nano-epsilon]; None if the risk is infinite.
        """
        composed = self.leakage_bound.supremum(
            self.leakage_bound.steps_per_day, to_float(loss), direction="backward", method=self.method
        )
        at_age = _float_to_nano(self.leakage_bound(age_steps, composed, direction="backward", method=self.method))
        return at_age if age_steps > 0 else _float_to_nano(composed)

    def composition(self) -> Composition[int]:
        """Return an empty composition of losses [nano-epsilon] by the instant of their input (`instant`)."""
        composed = Composition if self.leakage_bound.assume == "markov" else SumComposition
        return composed(lambda gap: partial(self, gap))

    def of(self, losses: Mapping[str, int]) -> Composition[int]:
        """Return the composition of days with these losses; the caller must not change it.

        A series asks for the same days and one more: only what changed is composed again.
        """
        releases = sorted((self.instant(day), loss) for day, loss in losses.items())
        self._composition.replace([instant for instant, _ in releases], [loss for _, loss in releases])
        return self._composition

    def instant(self, day: str) -> int:
        """Return the instant of a day's input [steps of the chain], from a common origin."""
        return day_number(day) * self.leakage_bound.steps_per_day


@dataclass(frozen=True, slots=True)
class AgedLoss:
    """Accountant of the age-dependent loss: the largest risk at any instant, about the current day or half-hour.

    `age_days` is the age below which nothing is released; where the publication date alone proves a larger age, that
    one counts. For the secret "day" ages are rounded down to whole days, since the current day began then. A model
    without bounds by `method` (an earlier curve beside a newer kernel) is read by its total variations; a bound that is
    reported for its method alone is then left out. `charge` is the loss of all calibration draws, added unaged
    (`period_loss`).

    Source: [A] Definition 10 and Theorem 3, composed as in `Composition` [nano-epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """

    age_days: int
    method: Method
    secret: Secret
    bound_name: str = RISK
    charge: int = 0
    name: ClassVar[str] = "age-dependent"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest risk at `at` and at every later publication; without a model None, and why."""
        if leakage_bound is None:
            return [LossBound(self.bound_name, None, "conditional", ABOUT[self.secret], NO_MODEL)]
        if self.bound_name != RISK and self.method not in leakage_bound.methods:
            return []
        method: Method = self.method if self.method in leakage_bound.methods else "total_variation"
        assumption = f"{assumed(leakage_bound)} (method {method})"
        value = self._largest(history, AgedLeakage(leakage_bound, method=method), at) + self.charge
        return [LossBound(self.bound_name, value, "conditional", ABOUT[self.secret], assumption)]

    def by(self, method: Method) -> AgedLoss:
        """Return the same of another method, under a name of its own."""
        return replace(self, method=method, bound_name=f"{RISK} ({method.replace('_', ' ')})")

    def _largest(self, history: Sequence[HistoryRow], aged: AgedLeakage, at: str | None) -> int:
        composition, largest = aged.composition(), 0
        for rows, age in self.publications(history, at, aged.leakage_bound.steps_per_day):
            for row in rows:
                composition.add(aged.instant(row.day), row.loss)
            if age is not None:
                largest = max(largest, composition.leakage(composition.inputs[-1] + age))
        return largest

    def publications(
        self, history: Sequence[HistoryRow], at: str | None, steps_per_day: int
    ) -> Iterator[tuple[list[HistoryRow], int | None]]:
        """Yield the rows of each publication date, and the age of the newest input then [steps]; no age before `at`.

        Between publications the risk only falls: only `at` and later publications matter.
        """
        rows, newest = sorted((row for row in history if row.state == "released"), key=_published), ""
        dates = {row.published_on: () for row in rows} | ({at: ()} if at is not None else {})
        of_date = {on: list(released) for on, released in groupby(rows, key=_published)}
        for on in sorted(dates):
            published = of_date.get(on, [])
            newest = max([newest, *(f"{row.day} {row.input_ended_at}" for row in published)])
            is_asked = newest and (at is None or on >= at)
            yield published, self.age_steps(newest.partition(" ")[2], on, steps_per_day) if is_asked else None

    def risk_at(self, rows: Sequence[HistoryRow], aged: AgedLeakage, on: str) -> int:
        """Return the risk of `rows`, all of them released and public on the date `on`."""
        if not rows:
            return 0
        newest = max(rows, key=attrgetter("day"))
        age = self.age_steps(newest.input_ended_at, on, aged.leakage_bound.steps_per_day)
        return aged.of(day_losses(rows)).leakage(aged.instant(newest.day) + age)

    def age_steps(self, input_ended_at: str, on: str, steps_per_day: int) -> int:
        """Return the age of an input at 00:00 UTC of a date, rounded down, and at least `age_days`.

        >>> AgedLoss(2, "tight", "half-hour").age_steps("2013-10-05T14:00:00Z", "2013-10-09", 48)
        164
        """
        elapsed = utc_midnight(on) - datetime.fromisoformat(input_ended_at)
        steps = elapsed * steps_per_day // timedelta(days=1)
        if self.secret == DAY:
            steps -= steps % steps_per_day
        return max(self.age_days * steps_per_day, steps)


def assumed(leakage_bound: LeakageBoundLike) -> str:
    """Return the assumption of a bound under a model: about each household, or about those that the model bounds.

    Source: text, without a formula.

    Args:
        leakage_bound: the model.
    """
    if leakage_bound.share:
        return _OF_A_SHARE[leakage_bound.assume].format(share=leakage_bound.share)
    return ASSUMED[leakage_bound.assume]


def utc_midnight(day: str) -> datetime:
    """Return the first instant of a UTC date.

    Source: ISO 8601 date, 00:00 UTC.

    Args:
        day: ISO date.

    Returns:
        An instant with time zone UTC.

    Raises:
        ValueError: not an ISO date.
    """
    return datetime.combine(date.fromisoformat(day), time(), UTC)


def _published(row: HistoryRow) -> str:
    return row.published_on
