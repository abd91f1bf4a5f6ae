"""What released days say about the present under a frozen envelope: age-dependent figures of ledger rows.

Everything is integer arithmetic on whole 1e-9 epsilon, rounded up at each use of the envelope, so that what
is planned, what is admitted and what is stated are the same numbers.

Gaps between inputs are gaps between days of the data: a day counts as one day of the chain also when the
clock changes. Days that are released out of order take their place by the time of their input.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar, Final, Literal, SupportsFloat

import numpy as np

from agedp_data.chains.rounding import to_integers
from agedp_data.losses import number
from agedp_data.notions.notion import Figure, Forgetting, Method, Row, day_losses
from agedp_data.privacy.ageing import compose_through
from agedp_data.privacy.kernel import Floats

Secret = Literal["day", "half-hour"]
DAY: Final = "day"
HALF_HOUR: Final = "half-hour"

ABOUT: dict[Secret, str] = {
    DAY: "the total of one household's current day",
    HALF_HOUR: "one household's current half-hour",
}
_ASSUMED = {
    "markov": "each household forgets at least as fast as the model says, by a Markov chain, and on its own",
    "curve": "each household forgets at least as fast as the model says, and on its own",
}
NO_MODEL = "there is no model"


def whole(loss: SupportsFloat) -> int | None:
    """Return a float loss in whole 1e-9, rounded up; None if infinite.

    The float nearest to a whole number of 1e-9 stands for that number (`losses.recorded` would take its
    binary value and go one further).

    >>> whole(0.1), whole(0.1000000001), whole(float("inf"))
    (100000000, 100000001, None)
    """
    nano = to_integers([float(loss)])[0]
    return nano if isinstance(nano, int) else None


class Forgotten:
    """L at an age in steps, on whole losses, each value computed once.

    With assume = "markov" releases compose through the gaps between their inputs ([A] eq. 25 in its corrected
    form: sort by input time); with "curve" nothing is known of the joint law and the losses of all but one
    release add in full: min over j of L_{age_j}(e_j) + sum of the others.
    """

    def __init__(self, envelope: Forgetting, *, method: Method) -> None:
        self.envelope = envelope
        self.method = method
        self._known: dict[tuple[int, int], int] = {}

    def __call__(self, age_steps: int, loss: int) -> int:
        """Return what is left of a whole loss at an age, rounded up and never above it."""
        if age_steps <= 0 or loss == 0:
            return loss
        key = (age_steps, loss)
        if key not in self._known:
            left = self.envelope(age_steps, number(loss), direction="backward", method=self.method)
            rounded = whole(left)
            self._known[key] = loss if rounded is None else min(rounded, loss)
        return self._known[key]

    def peak(self, loss: int, age_steps: int) -> int | None:
        """Return the largest risk if every day, for ever, spends `loss` and is published at `age_steps`."""
        composed = self.envelope.supremum(
            self.envelope.steps_per_day, number(loss), direction="backward", method=self.method
        )
        at_age = whole(self.envelope(age_steps, composed, direction="backward", method=self.method))
        return at_age if age_steps > 0 else whole(composed)

    def risk(self, losses: Mapping[str, int], age_steps: int) -> int:
        """Return the risk of days with these losses, the newest of them `age_steps` old."""
        days = sorted((date.fromisoformat(day).toordinal(), loss) for day, loss in losses.items())
        if not days:
            return 0
        rule = self._composed if self.envelope.assume == "markov" else self._sum_but_one
        return rule(days, age_steps)

    def _composed(self, days: Sequence[tuple[int, int]], age_steps: int) -> int:
        # In whole 1e-9, which floats hold exactly up to 2^53 (9 million epsilon).
        inputs = [day * self.envelope.steps_per_day for day, _ in days]
        now = inputs[-1] + age_steps
        ages, losses = [now - read for read in inputs], [loss for _, loss in days]
        published = [now] * len(days)
        return int(compose_through(published, ages, losses, [now], through=self._passed)[0])

    def _passed(self, gap: int, loss: Floats) -> Floats:
        return np.asarray(self(gap, int(loss)), dtype=np.float64)

    def _sum_but_one(self, days: Sequence[tuple[int, int]], age_steps: int) -> int:
        # loss - L(loss) grows with the loss and with the age: only a loss above all older ones can win.
        gain = largest = 0
        for day, loss in days:
            if loss > largest:
                largest = loss
                age = age_steps + (days[-1][0] - day) * self.envelope.steps_per_day
                gain = max(gain, loss - self(age, loss))
        return sum(loss for _, loss in days) - gain


@dataclass(frozen=True, slots=True)
class AgedLoss:
    """The largest risk at any instant, of the current day or half-hour of a household.

    `age_days` is the age below which nothing is published; where the publication date alone proves a larger
    age, that one counts. For the secret "day" ages are rounded down to whole days: the day began then. A model
    that has no figures by `method` (an earlier curve beside a newer kernel) is read by its total variations.
    """

    age_days: int
    method: Method
    secret: Secret
    name: ClassVar[str] = "age-dependent"

    def figures(self, history: Sequence[Row], envelope: Forgetting | None, at: str | None) -> list[Figure]:
        """Return the largest risk at `at` and at every later publication; without a model None, and why."""
        if envelope is None:
            return [Figure("risk", None, "conditional", ABOUT[self.secret], NO_MODEL)]
        method: Method = self.method if self.method in envelope.methods else "total_variation"
        assumption = f"{_ASSUMED[envelope.assume]} (method {method})"
        value = self._largest(history, Forgotten(envelope, method=method), at)
        return [Figure("risk", value, "conditional", ABOUT[self.secret], assumption)]

    def _largest(self, history: Sequence[Row], forgotten: Forgotten, at: str | None) -> int:
        rows = sorted((row for row in history if row.state == "released"), key=lambda row: row.published_on)
        dates = [row.published_on for row in rows]
        instants = {day for day in dates if at is None or day >= at} | ({at} if at is not None else set())
        return max((self.risk_at(rows[: _through(dates, on)], forgotten, on) for on in instants), default=0)

    def risk_at(self, rows: Sequence[Row], forgotten: Forgotten, on: str) -> int:
        """Return the risk of `rows`, all of them released and public on the date `on`."""
        if not rows:
            return 0
        newest = max(rows, key=lambda row: row.day)
        age = self.age_steps(newest.input_ended_at, on, forgotten.envelope.steps_per_day)
        return forgotten.risk(day_losses(rows), age)

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


def utc_midnight(day: str) -> datetime:
    """Return the first instant of a UTC date."""
    return datetime.combine(date.fromisoformat(day), time(), UTC)


def _through(dates: Sequence[str], on: str) -> int:
    # ISO dates sort as text; "~" follows every digit, so rows of the date itself are included.
    return bisect_left(dates, on + "~")
