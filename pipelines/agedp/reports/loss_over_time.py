"""LEDGER + model -> every bound by day of the data and by age, and the noise that would bring it to epsilon 1. Public.

The functions on bounds work on accountants and do not distinguish notions. The bounds of the first k days are those of
a ledger that ends there, so the last point of a curve equals the statement.

The report of the model shows, from its public part, the privacy loss by age of the data and the temporal leakage: the
loss about each day from all releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cache
from typing import NamedTuple, SupportsFloat

from agedp.reports.axes import (
    Scale,
    by_month,
    date_axis,
    evenly_spaced,
    format_rounded_up,
    linear_axis,
    logarithmic_axis,
)
from agedp.reports.chart_layers import Hover
from agedp.reports.constants import constant_value
from agedp.reports.hover import day_text
from agedp.reports.html import paragraph, side_by_side, table
from agedp.reports.svg import Level, Line, chart
from agedp_data.accounting.temporal_recursion import DayLeakage, TemporalLosses
from agedp_data.epsilon import NANO, to_float
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.ledger import ReleaseRecord
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.notions import Promise, Temporal
from agedp_data.notions.aged_loss import AgedLeakage
from agedp_data.notions.notion import Accountant, LossBound, day_losses, losses_by_day_number
from agedp_data.parameters import Method, exact_text

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
        self.share = leakage_bound.share
        self.methods, self.has_both_directions = leakage_bound.methods, leakage_bound.has_both_directions
        self.ages, self._leakage = leakage_bound.ages, cache(leakage_bound)
        self.exact_leakage, self.supremum = cache(leakage_bound.exact_leakage), cache(leakage_bound.supremum)
        self.total_variation = leakage_bound.total_variation

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
    accountants: Sequence[Accountant], rows: Sequence[ReleaseRecord], leakage_bound: LeakageBoundLike | None
) -> dict[BoundKey, float | None]:
    """Return by bound the factor by which the noise would change if the bound were equal to epsilon 1.

    All losses are multiplied by the same number and the noise is divided by it; the number is found by iteration, to
    0.3 %. None where no loss up to 100 per day reaches it. Bounds that are infinite, 0 or with a delta are left out.
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
        bounds = self.accountant.bounds(rows, self.leakage_bound, None)
        return {bound_key(bound): bound.value for bound in bounds if bound.delta is None}

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


_MAX_AGE_DAYS = 400
_MAX_ROWS, _LOGARITHMIC_RATIO = 8, 30
_AGE_HOVER = Hover(lambda age: f"age {age:.0f} days", "epsilon", format_rounded_up)
_DAY_HOVER = Hover(day_text, "epsilon", format_rounded_up)
_METHODS: Mapping[str, str] = {"tight": "exact", **MIXING_NAMES}


def model_parts(leakage_bound: LeakageBound, rows: Sequence[ReleaseRecord], charge: int = 0) -> Iterator[str]:
    """Yield the risk by age of one day's loss, by method, and of all released days, by the sharpest method.

    `charge` is the loss of all calibration draws, which the risk of all days contains [nano-epsilon].
    """
    losses = day_losses(rows)
    if not losses:
        return
    ages = _ages(leakage_bound)
    largest = max(losses.values())
    by_method = {name: AgedLeakage(leakage_bound, method=name) for name in _methods(leakage_bound)}
    by_method_name = {
        _METHODS.get(name, name): [to_float(aged_leakage(age * leakage_bound.steps_per_day, largest)) for age in ages]
        for name, aged_leakage in by_method.items()
    }
    name, aged_leakage = next(iter(by_method.items()))
    composition = aged_leakage.of(losses)
    newest = composition.inputs[-1]
    all_days = [to_float(charge + composition.leakage(newest + age * leakage_bound.steps_per_day)) for age in ages]
    title = f"Aged loss of one day with epsilon {format_rounded_up(to_float(largest))}"
    of_all_days = {_METHODS.get(name, name): all_days}
    draws = " and calibration draws" if charge else ""
    risk_chart = _age_chart(f"Risk: loss about the present, all days{draws}", ages, of_all_days)
    yield side_by_side([_age_chart(title, ages, by_method_name), risk_chart])
    shown_ages = _ages_with_changes(ages, [*by_method_name.values(), all_days])
    table_rows = [
        (f"{age}", *(format_rounded_up(values[ages.index(age)]) for values in [*by_method_name.values(), all_days]))
        for age in shown_ages
    ]
    columns = ("age, days", *(f"one day, {name}" for name in by_method_name), f"all days, {_METHODS.get(name, name)}")
    yield table("The same in numbers: epsilon by age", columns, table_rows)


def _methods(leakage_bound: LeakageBound) -> list[Method]:
    methods: tuple[Method, ...] = ("tight", "total_variation", "spectral", "reversibilised")
    return [name for name in methods if name in leakage_bound.methods]


def _ages(leakage_bound: LeakageBound) -> list[int]:
    max_age_days = -(-int(leakage_bound.ages[-1]) // leakage_bound.steps_per_day)
    return list(range(min(max(max_age_days, 2) * 5 // 4 + 1, _MAX_AGE_DAYS)))


def _ages_with_changes(ages: Sequence[int], curves: Sequence[Sequence[float]]) -> list[int]:
    """Return a few ages at which a curve changes, with the first and the last age."""
    changes = [i for i in range(1, len(ages)) if any(curve[i] != curve[i - 1] for curve in curves)]
    return [ages[index] for index in evenly_spaced(sorted({0, *changes, len(ages) - 1}), _MAX_ROWS)]


def _age_chart(title: str, ages: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    if all(constant_value(values) is not None for values in curves.values()):
        values_text = "; ".join(f"{name}: {format_rounded_up(values[0])}" for name, values in curves.items())
        return paragraph(f"{title}: epsilon is the same at every age from 0 to {ages[-1]} days. {values_text}.")
    positions = [float(age) for age in ages]
    lines = [
        Line(name, positions, values, style=i, steps=True, letter="" if len(curves) < 2 else str(i + 1))
        for i, (name, values) in enumerate(curves.items())
    ]
    description = "; ".join(
        f"{name}: {format_rounded_up(values[0])} fresh, {format_rounded_up(values[-1])} after {ages[-1]} days"
        for name, values in curves.items()
    )
    all_values = [value for values in curves.values() for value in values]
    is_logarithmic = min(all_values) < max(all_values) / _LOGARITHMIC_RATIO
    y = logarithmic_axis(all_values, decades=4) if is_logarithmic else linear_axis(all_values, zero=True)
    y_title = "epsilon (each step: ten times)" if is_logarithmic else "epsilon"
    about = f"Epsilon by age of the newest data. {description}."
    return chart(title, about, [*lines, _AGE_HOVER], x=_age_axis(ages), y=y, y_title=y_title, height=190)


def _age_axis(ages: Sequence[int]) -> Scale:
    axis = linear_axis([float(age) for age in ages], zero=True)
    last = float(ages[-1])
    return Scale(0.0, last, tuple((value, f"{text} d") for value, text in axis.ticks if value <= last))


def leakage_parts(
    leakage_bound: LeakageBound, rows: Sequence[ReleaseRecord], promise: Promise, charge: int = 0
) -> Iterator[str]:
    """Yield backward, forward and total temporal leakage by day as a chart, and by month as a table.

    `charge` is the loss of all calibration draws, which the total contains [nano-epsilon].
    """
    if not leakage_bound.has_both_directions:
        return
    day_leakages = list(TemporalLosses(leakage_bound).of(losses_by_day_number(day_losses(rows))))
    if len(day_leakages) < 2:
        return
    curves = _loss_curves(day_leakages, charge)
    if all(constant_value(values) is not None for _, _, values in curves):
        values_text = "; ".join(f"{name}: epsilon {_largest_text(values)}" for _, name, values in curves)
        yield paragraph(
            f"The temporal leakage is the same about each of the {len(day_leakages):,} days. {values_text}."
        )
        return
    positions = [float(leakage.day) for leakage in day_leakages]
    lines = [
        Line(name, positions, [to_float(value) for value in values], letter=letter, style=index, dots=False)
        for index, (letter, name, values) in enumerate(curves)
    ]
    promised = promise.alpha if isinstance(promise, Temporal) else None
    levels = [] if promised is None else [Level(f"alpha of the promise, {exact_text(promised)}", float(promised))]
    largest = max(day_leakages, key=lambda leakage: leakage.total)
    largest_own = max(leakage.day_loss for leakage in day_leakages)
    largest_total, everything = to_float(largest.total + charge), _everything(charge)
    description = (
        f"Epsilon by day of the data, if the model holds: temporal leakage about each day from {everything}, at most "
        f"{format_rounded_up(largest_total)} (about {_day_text(largest)}). The loss of the day's own release "
        f"is at most {format_rounded_up(to_float(largest_own))}."
    )
    y = linear_axis([largest_total, *([] if promised is None else [float(promised)])], zero=True)
    x = date_axis(date.fromordinal(day_leakages[0].day), date.fromordinal(day_leakages[-1].day))
    title = f"Temporal leakage about each day from {everything}"
    yield chart(title, description, [*lines, *levels, _DAY_HOVER], x=x, y=y, y_title="epsilon", height=220)
    months = by_month(day_leakages, lambda leakage: date.fromordinal(leakage.day))
    month_rows = [
        (month, *(_largest_text(values) for _, _, values in _loss_curves(month_leakages, charge)))
        for month, month_leakages in months.items()
    ]
    columns = ("month", *(name for _, name, _ in curves))
    yield table("The same by month: largest epsilon of its days", columns, month_rows)


def _everything(charge: int) -> str:
    return "all releases and calibration draws" if charge else "all releases"


def _loss_curves(day_leakages: Sequence[DayLeakage], charge: int) -> list[tuple[str, str, list[int]]]:
    return [
        ("a", _everything(charge), [leakage.total + charge for leakage in day_leakages]),
        ("b", "the day's own and earlier ones", [leakage.day_loss + leakage.backward for leakage in day_leakages]),
        ("c", "the day's own and later ones", [leakage.day_loss + leakage.forward for leakage in day_leakages]),
        ("d", "the day's own alone", [leakage.day_loss for leakage in day_leakages]),
    ]


def _largest_text(values: Sequence[int]) -> str:
    return format_rounded_up(to_float(max(values)))


def _day_text(leakage: DayLeakage) -> str:
    return date.fromordinal(leakage.day).isoformat()
