"""LEDGER + model -> how every figure grew day by day, and how much noise it would have asked for. Public.

Everything here goes over accounts and knows no notion by name: a figure that a notion states has a course and a price.
The figures of the first k days are those of a ledger that ends there, so the last point of a course is the statement's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import NANO
from agedp_data.notions.notion import Accountant, LeakageBoundLike, LossAtAge, LossBound, Method

POINTS = 32
"""Days at which a course is worked out: a chart shows no more."""

_MAX_DAY_LOSS = 100 * NANO
_RELATIVE_TOLERANCE = 0.003
_MIN_FACTOR = 1e-12


class BoundKey(NamedTuple):
    """What tells figures apart."""

    name: str
    about: str
    assumption: str


@dataclass(frozen=True, slots=True)
class LossOverTime:
    """A figure by day of the data, whole 1e-9 epsilon; None where it is infinite."""

    days: tuple[str, ...]
    values: tuple[int | None, ...]


def bound_key(figure: LossBound) -> BoundKey:
    """Return what tells a figure from others."""
    return BoundKey(figure.name, figure.about, figure.assumption)


class _CachedLeakageBound:
    """An envelope that works out each value once: the figures of many days ask for the same ones again and again."""

    def __init__(self, envelope: LeakageBoundLike) -> None:
        self._envelope = envelope
        self._left: dict[tuple[int, float, str, Method], float] = {}
        self._suprema: dict[tuple[int, float, str, Method], float] = {}
        self._whole: dict[tuple[int, str], LossAtAge] = {}
        self.steps_per_day, self.assume, self.methods = envelope.steps_per_day, envelope.assume, envelope.methods
        self.looks_ahead, self.ages = envelope.looks_ahead, envelope.ages

    def __call__(self, age: int, loss: float, *, direction: str, method: Method) -> float:
        key = (age, loss, direction, method)
        if key not in self._left:
            self._left[key] = float(self._envelope(age, loss, direction=direction, method=method))
        return self._left[key]

    def whole(self, age: int, *, direction: str) -> LossAtAge:
        key = (age, direction)
        if key not in self._whole:
            self._whole[key] = self._envelope.whole(age, direction=direction)
        return self._whole[key]

    def supremum(self, gap: int, loss: float, *, direction: str, method: Method) -> float:
        key = (gap, loss, direction, method)
        if key not in self._suprema:
            self._suprema[key] = self._envelope.supremum(gap, loss, direction=direction, method=method)
        return self._suprema[key]


def losses_over_time(
    accounts: Sequence[Accountant],
    rows: Sequence[ReleaseRecord],
    envelope: LeakageBoundLike | None,
    *,
    points: int = POINTS,
) -> dict[BoundKey, LossOverTime]:
    """Return what the figures of all accounts came to, counting the days up to each of some days, the last included."""
    released = _released_rows(rows)
    days = sorted({row.day for row in released})
    count = min(points, len(days))
    chosen = [days[round(i * (len(days) - 1) / max(1, count - 1))] for i in range(count)]
    if count == 1:
        chosen = days
    kept = None if envelope is None else _CachedLeakageBound(envelope)
    values: dict[BoundKey, dict[str, int | None]] = {}
    for day in chosen:
        known = [row for row in released if row.day <= day]
        for account in accounts:
            for figure in account.figures(known, kept, None):
                values.setdefault(bound_key(figure), {})[day] = figure.value
    return {key: LossOverTime(tuple(found), tuple(found.values())) for key, found in values.items()}


def noise_factors(
    accounts: Sequence[Accountant],
    rows: Sequence[ReleaseRecord],
    envelope: LeakageBoundLike | None,
    *,
    goal: int = NANO,
) -> dict[BoundKey, float | None]:
    """Return by figure how many times the noise would have been what it was, had the figure been held to `goal`.

    All losses are multiplied by the same number, noise is divided by it; that number is found by trying, to .3 %. None
    where no loss of a day up to 100 brings the figure to the goal. Figures that are infinite or 0 are left out.
    """
    released = _released_rows(rows)
    found: dict[BoundKey, float | None] = {}
    for account in accounts:
        price = _NoiseSearch(account, released, envelope, goal)
        for key, value in price.figures(1.0).items():
            if value and key not in found:
                found[key] = price.of(key, value)
    return found


@dataclass(frozen=True, slots=True)
class _NoiseSearch:
    account: Accountant
    rows: Sequence[ReleaseRecord]
    envelope: LeakageBoundLike | None
    goal: int

    def figures(self, times: float) -> dict[BoundKey, int | None]:
        """Return the figures of these rows with every loss so many times as large."""
        factor = Fraction(times)
        rows = [replace(row, loss=math.ceil(row.loss * factor)) for row in self.rows] if times != 1.0 else self.rows
        return {bound_key(figure): figure.value for figure in self.account.figures(rows, self.envelope, None)}

    def of(self, key: BoundKey, value: int) -> float | None:
        """Return how many times the noise of the rows brings a figure of this value to the goal."""
        largest = _MAX_DAY_LOSS / max(row.loss for row in self.rows)
        below: tuple[float, float] | None = None
        above: tuple[float, float] | None = None
        times = min(self.goal / value, largest)
        while times > _MIN_FACTOR:
            told = self.figures(times).get(key)
            reached = math.inf if told is None else float(max(told, 1))
            if abs(reached - self.goal) <= _RELATIVE_TOLERANCE * self.goal:
                return 1.0 / times
            if reached < self.goal and times >= largest:
                return None
            below, above = ((times, reached), above) if reached < self.goal else (below, (times, reached))
            if below and above and above[0] < below[0] * (1 + _RELATIVE_TOLERANCE):
                return 1.0 / below[0]  # a figure that jumps over the goal
            times = min(_next_factor(below, above, self.goal), largest)
        return None


def _next_factor(below: tuple[float, float] | None, above: tuple[float, float] | None, goal: float) -> float:
    """Return the next number to try: on the line through both points, in logarithms, but well inside them."""
    if below is None or above is None:
        return 4 * below[0] if below else above[0] / 4 if above else 1.0
    width = math.log(above[0] / below[0])
    rise = math.log(above[1] / below[1])
    share = math.log(goal / below[1]) / rise if math.isfinite(rise) and rise > 0 else 0.5
    return below[0] * math.exp(width * min(max(share, 0.1), 0.9))


def _released_rows(rows: Sequence[ReleaseRecord]) -> list[ReleaseRecord]:
    return sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.seq))


def schedule_noise_kwh(means: Mapping[str, float], *, clamp_wh: int, share: float, households: int) -> dict[str, float]:
    """Return by schedule the mean standard deviation of a daily mean's noise, kWh a home, from scales in clamps.

    >>> schedule_noise_kwh({"even": 2.0}, clamp_wh=50_000, share=0.5, households=100)["even"] == math.sqrt(2) * 2
    True
    """
    per_clamp = math.sqrt(2.0) * clamp_wh / (1000.0 * share * households)
    return {name: mean * per_clamp for name, mean in means.items()}
