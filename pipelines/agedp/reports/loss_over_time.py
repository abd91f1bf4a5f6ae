"""LEDGER + model -> every bound by day of the data, and the noise that would bring it to epsilon 1. Public.

The functions work on accountants and do not distinguish notions. The bounds of the first k days are those of a ledger
that ends there, so the last point of a curve equals the statement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import NamedTuple, SupportsFloat

from agedp.reports.axes import evenly_spaced
from agedp_data.epsilon import NANO
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import Accountant, LossBound

POINTS = 32
"""Number of days at which a curve is computed: a chart shows no more."""

_GOAL = NANO
_MAX_DAY_LOSS = 100 * NANO
_RELATIVE_TOLERANCE = 0.003
_MIN_FACTOR = 1e-12


class BoundKey(NamedTuple):
    """Key of a bound: name, scope, assumption."""

    name: str
    scope: str
    assumption: str


@dataclass(frozen=True, slots=True)
class LossOverTime:
    """A bound by day of the data [nano-epsilon]; None where it is infinite."""

    days: tuple[str, ...]
    values: tuple[int | None, ...]


def bound_key(bound: LossBound) -> BoundKey:
    """Return the key of a bound."""
    return BoundKey(bound.name, bound.about, bound.assumption)


class _CachedLeakageBound:
    """A leakage bound with cached values: the bounds of many days need the same ones."""

    def __init__(self, leakage_bound: LeakageBoundLike) -> None:
        self.steps_per_day, self.assume = leakage_bound.steps_per_day, leakage_bound.assume
        self.methods, self.has_both_directions = leakage_bound.methods, leakage_bound.has_both_directions
        self.ages, self._leakage = leakage_bound.ages, cache(leakage_bound)
        self.exact_leakage, self.supremum = cache(leakage_bound.exact_leakage), cache(leakage_bound.supremum)

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> SupportsFloat:
        return self._leakage(age, loss, direction=direction, method=method)


def losses_over_time(
    accountants: Sequence[Accountant],
    rows: Sequence[ReleaseRecord],
    leakage_bound: LeakageBoundLike | None,
    *,
    points: int = POINTS,
) -> dict[BoundKey, LossOverTime]:
    """Return the bounds of all accountants after each of `points` days, evenly spaced and with the last day."""
    released = _released_rows(rows)
    days = sorted({row.day for row in released})
    cached = None if leakage_bound is None else _CachedLeakageBound(leakage_bound)
    values: dict[BoundKey, dict[str, int | None]] = {}
    for day in evenly_spaced(days, points):
        rows_so_far = [row for row in released if row.day <= day]
        for accountant in accountants:
            for bound in accountant.bounds(rows_so_far, cached, None):
                values.setdefault(bound_key(bound), {})[day] = bound.value
    return {key: LossOverTime(tuple(by_day), tuple(by_day.values())) for key, by_day in values.items()}


def noise_factors(
    accountants: Sequence[Accountant],
    rows: Sequence[ReleaseRecord],
    leakage_bound: LeakageBoundLike | None,
) -> dict[BoundKey, float | None]:
    """Return by bound the factor by which the noise would change if the bound were equal to epsilon 1.

    All losses are multiplied by the same number and the noise is divided by it; the number is found by iteration, to
    0.3 %. None where no loss up to 100 per day reaches it. Bounds that are infinite or 0 are left out.
    """
    released = _released_rows(rows)
    factors: dict[BoundKey, float | None] = {}
    for accountant in accountants:
        search = _NoiseSearch(accountant, released, leakage_bound)
        for key, value in search.bounds(1.0).items():
            if value and key not in factors:
                factors[key] = search.noise_factor(key, value)
    return factors


@dataclass(frozen=True, slots=True)
class _NoiseSearch:
    accountant: Accountant
    rows: Sequence[ReleaseRecord]
    leakage_bound: LeakageBoundLike | None

    def bounds(self, loss_factor: float) -> dict[BoundKey, int | None]:
        """Return the bounds of these rows with every loss multiplied by a factor."""
        fraction = Fraction(loss_factor)
        rows = (
            [replace(row, loss=math.ceil(row.loss * fraction)) for row in self.rows]
            if loss_factor != 1.0
            else self.rows
        )
        return {bound_key(bound): bound.value for bound in self.accountant.bounds(rows, self.leakage_bound, None)}

    def noise_factor(self, key: BoundKey, value: int) -> float | None:
        """Return the noise factor that brings a bound of this value to epsilon 1, None if none does."""
        largest = _MAX_DAY_LOSS / max(row.loss for row in self.rows)
        below: tuple[float, float] | None = None
        above: tuple[float, float] | None = None
        loss_factor = min(_GOAL / value, largest)
        while loss_factor > _MIN_FACTOR:
            bound_value = self.bounds(loss_factor).get(key)
            reached_value = math.inf if bound_value is None else float(max(bound_value, 1))
            if abs(reached_value - _GOAL) <= _RELATIVE_TOLERANCE * _GOAL:
                return 1.0 / loss_factor
            if reached_value < _GOAL and loss_factor >= largest:
                return None
            below, above = (
                ((loss_factor, reached_value), above)
                if reached_value < _GOAL
                else (below, (loss_factor, reached_value))
            )
            if below and above and above[0] < below[0] * (1 + _RELATIVE_TOLERANCE):
                return 1.0 / below[0]  # the bound jumps at epsilon 1
            loss_factor = min(_next_factor(below, above), largest)
        return None


def _next_factor(below: tuple[float, float] | None, above: tuple[float, float] | None) -> float:
    """Return the next factor to try: interpolated between both points in logarithms, and well inside them."""
    if below is None or above is None:
        return 4 * below[0] if below else above[0] / 4 if above else 1.0
    width = math.log(above[0] / below[0])
    rise = math.log(above[1] / below[1])
    share = math.log(_GOAL / below[1]) / rise if math.isfinite(rise) and rise > 0 else 0.5
    return below[0] * math.exp(width * min(max(share, 0.1), 0.9))


def _released_rows(rows: Sequence[ReleaseRecord]) -> list[ReleaseRecord]:
    return sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.seq))


def schedule_noise_kwh(
    mean_scales: Mapping[str, float], *, clamp_wh: int, share: float, households: int
) -> dict[str, float]:
    """Return by schedule the mean noise standard deviation of a daily mean [kWh per household], from scales in clamps.

    >>> schedule_noise_kwh({"even": 2.0}, clamp_wh=50_000, share=0.5, households=100)["even"] == math.sqrt(2) * 2
    True
    """
    per_clamp = math.sqrt(2.0) * clamp_wh / (1000.0 * share * households)
    return {name: mean_scale * per_clamp for name, mean_scale in mean_scales.items()}
