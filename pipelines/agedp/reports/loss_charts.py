"""Charts and tables of the privacy loss: the bounds, their growth over time and over spans, what each day spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import NamedTuple, SupportsFloat

import numpy as np

from agedp.release_folder.span_bounds import span_losses
from agedp.reports import svg
from agedp.reports.html import TEXTS, paragraph, part, side_by_side, table, text_table
from agedp_data.accounting.renyi import Curve, approximate_epsilons
from agedp_data.accounting.temporal_recursion import DayLeakage, TemporalLosses
from agedp_data.config.contract_document import PromiseTerms
from agedp_data.epsilon import NANO, exact_text, to_float
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.ledger import ReleaseRecord
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.notions import Promise, Temporal
from agedp_data.notions.age_dependent import AgedLeakage
from agedp_data.notions.neighbourhood import BoundedChangeLoss
from agedp_data.notions.notion import Accountant, LossBound, day_losses, losses_about_days, losses_by_day_number
from agedp_data.notions.publication import Publication, charge_on, day_number, total_charge
from agedp_data.notions.spans import EMPTY, SpanCurves, span_of
from agedp_data.parameters import Method
from agedp_data.statement.document import StatedBound, Statement
from agedp_data.statement.note_texts import INFINITE, short_factor, short_number, with_delta

_TEXTS = TEXTS["loss_charts"]

# --------------------------------------------------------------------------------------------------
# LEDGER + model -> every bound by day of the data and by age, and the noise that would bring it to epsilon 1. Public.
#
# The functions on bounds work on accountants and do not distinguish notions. The bounds of the first k days are those
# of a ledger that ends there, so the last point of a curve equals the statement.
#
# The report of the model shows, from its public part, the privacy loss by age of the data and the temporal leakage:
# the loss about each day from all releases.
# --------------------------------------------------------------------------------------------------

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
    for day in svg.evenly_spaced(days, points):
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
_AGE_HOVER = svg.Hover(lambda age: f"age {age:.0f} days", "epsilon", svg.format_rounded_up)
_DAY_HOVER = svg.Hover(svg.day_text, "epsilon", svg.format_rounded_up)
_ALL_METHODS: tuple[Method, ...] = ("tight", "total_variation", "spectral", "reversibilised")
_METHODS: Mapping[str, str] = {"tight": "exact", **MIXING_NAMES}


def model_parts(leakage_bound: LeakageBound, rows: Sequence[ReleaseRecord], charge: int = 0) -> Iterator[str]:
    """Yield the risk by age of one day's loss, by method, and of all released days, by the sharpest method.

    `charge` is the loss of all calibration draws, which the risk of all days contains [nano-epsilon].
    """
    losses = day_losses(rows)
    if not losses:
        return
    max_age = -(-int(leakage_bound.ages[-1]) // leakage_bound.steps_per_day)
    ages = list(range(min(max(max_age, 2) * 5 // 4 + 1, _MAX_AGE_DAYS)))
    largest = max(losses.values())
    by_method = {
        name: AgedLeakage(leakage_bound, method=name) for name in _ALL_METHODS if name in leakage_bound.methods
    }
    by_method_name = {
        _METHODS.get(name, name): [to_float(aged_leakage(age * leakage_bound.steps_per_day, largest)) for age in ages]
        for name, aged_leakage in by_method.items()
    }
    name, aged_leakage = next(iter(by_method.items()))
    composition = aged_leakage.of(losses)
    newest = composition.inputs[-1]
    all_days = [to_float(charge + composition.leakage(newest + age * leakage_bound.steps_per_day)) for age in ages]
    title = f"Aged loss of one day with epsilon {svg.format_rounded_up(to_float(largest))}"
    of_all_days = {_METHODS.get(name, name): all_days}
    draws = " and calibration draws" if charge else ""
    risk_chart = _age_chart(f"Risk: loss about the present, all days{draws}", ages, of_all_days)
    yield side_by_side([_age_chart(title, ages, by_method_name), risk_chart])
    shown_ages = _ages_with_changes(ages, [*by_method_name.values(), all_days])
    table_rows = [
        (f"{age}", *(svg.format_rounded_up(values[ages.index(age)]) for values in [*by_method_name.values(), all_days]))
        for age in shown_ages
    ]
    columns = ("age, days", *(f"one day, {name}" for name in by_method_name), f"all days, {_METHODS.get(name, name)}")
    yield table("The same in numbers: epsilon by age", columns, table_rows)


def _ages_with_changes(ages: Sequence[int], curves: Sequence[Sequence[float]]) -> list[int]:
    """Return a few ages at which a curve changes, with the first and the last age."""
    changes = [i for i in range(1, len(ages)) if any(curve[i] != curve[i - 1] for curve in curves)]
    return [ages[index] for index in svg.evenly_spaced(sorted({0, *changes, len(ages) - 1}), _MAX_ROWS)]


def _age_chart(title: str, ages: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    if all(svg.constant_value(values) is not None for values in curves.values()):
        values_text = "; ".join(f"{name}: {svg.format_rounded_up(values[0])}" for name, values in curves.items())
        return paragraph(f"{title}: epsilon is the same at every age from 0 to {ages[-1]} days. {values_text}.")
    positions = [float(age) for age in ages]
    lines = [
        svg.Line(name, positions, values, style=i, steps=True, letter="" if len(curves) < 2 else str(i + 1))
        for i, (name, values) in enumerate(curves.items())
    ]
    description = "; ".join(
        f"{name}: {svg.format_rounded_up(values[0])} fresh, {svg.format_rounded_up(values[-1])} after {ages[-1]} days"
        for name, values in curves.items()
    )
    all_values = [value for values in curves.values() for value in values]
    is_logarithmic = min(all_values) < max(all_values) / _LOGARITHMIC_RATIO
    y = svg.logarithmic_axis(all_values, decades=4) if is_logarithmic else svg.linear_axis(all_values, zero=True)
    y_title = "epsilon (each step: ten times)" if is_logarithmic else "epsilon"
    about = f"Epsilon by age of the newest data. {description}."
    axis = svg.linear_axis([float(number) for number in ages], zero=True)
    last = float(ages[-1])
    x = svg.Scale(0.0, last, tuple((tick, f"{text} d") for tick, text in axis.ticks if tick <= last))
    return svg.chart(title, about, [*lines, _AGE_HOVER], x=x, y=y, y_title=y_title, height=190)


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
    if all(svg.constant_value(values) is not None for _, _, values in curves):
        values_text = "; ".join(f"{name}: epsilon {_largest_text(values)}" for _, name, values in curves)
        yield paragraph(
            f"The temporal leakage is the same about each of the {len(day_leakages):,} days. {values_text}."
        )
        return
    positions = [float(leakage.day) for leakage in day_leakages]
    lines = [
        svg.Line(name, positions, [to_float(value) for value in values], letter=letter, style=index, dots=False)
        for index, (letter, name, values) in enumerate(curves)
    ]
    promised = promise.alpha if isinstance(promise, Temporal) else None
    levels = [] if promised is None else [svg.Level(f"alpha of the promise, {exact_text(promised)}", float(promised))]
    largest = max(day_leakages, key=lambda leakage: leakage.total)
    largest_own = max(leakage.day_loss for leakage in day_leakages)
    largest_total, everything = to_float(largest.total + charge), _everything(charge)
    description = (
        f"Epsilon by day of the data, if the model holds: temporal leakage about each day from {everything}, at most "
        f"{svg.format_rounded_up(largest_total)} (about {date.fromordinal(largest.day)}). The loss of the day's own "
        f"release is at most {svg.format_rounded_up(to_float(largest_own))}."
    )
    y = svg.linear_axis([largest_total, *([] if promised is None else [float(promised)])], zero=True)
    x = svg.date_axis(date.fromordinal(day_leakages[0].day), date.fromordinal(day_leakages[-1].day))
    title = f"Temporal leakage about each day from {everything}"
    yield svg.chart(title, description, [*lines, *levels, _DAY_HOVER], x=x, y=y, y_title="epsilon", height=220)
    months = svg.by_month(day_leakages, lambda leakage: date.fromordinal(leakage.day))
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
    return svg.format_rounded_up(to_float(max(values)))


# --------------------------------------------------------------------------------------------------
# Report of the privacy loss: bounds of the statement, their growth by day, and the loss by size of a change.
#
# * Bounds: every bound of the statement, its cost in noise, and its growth by day. Each bound is on a page once, with
#   all that the statement contains about it.
# * Bounded changes: privacy loss of a day by size of the change in a household's use.
# --------------------------------------------------------------------------------------------------

_STYLES = 6
_MAX_DATES = 4
_DELTA_NOTE = ", nor does an epsilon with a delta alone: a result is at most e^epsilon times as probable, plus delta"


@dataclass(frozen=True, slots=True)
class LabelledBound:
    """A bound of the statement with its letter in tables and charts."""

    letter: str
    stated: StatedBound

    @property
    def key(self) -> BoundKey:
        """Return the key of the bound."""
        return BoundKey(self.stated.name, self.stated.scope, self.stated.assumption)

    @property
    def epsilon(self) -> float:
        """Return epsilon; `inf` if it is infinite."""
        return math.inf if self.stated.epsilon == INFINITE else float(self.stated.epsilon)

    @property
    def short(self) -> str:
        """Return epsilon for people, rounded up to three digits."""
        return short_number(self.stated.epsilon)

    @property
    def name(self) -> str:
        """Return the name of the bound for people: "total (delta 10⁻⁶)"."""
        return svg.with_powers(self.stated.name)

    @property
    def factor(self) -> str:
        """Return by how much odds may change, "" if the bound limits none."""
        if not self.stated.factor:
            return ""
        epsilon = self.stated.epsilon
        return "any factor" if epsilon == INFINITE else f"×\u00a0{short_factor(epsilon)}"


def labelled_bounds(statement: Statement) -> list[LabelledBound]:
    """Return the bounds of a statement in its order."""
    return [LabelledBound(_letter(index), bound) for index, bound in enumerate(statement.bounds)]


def _letter(index: int) -> str:
    """Return A to Z, then AA and on.

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    return (_letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def bounds_table(
    bounds: Sequence[LabelledBound],
    noise_factors: Mapping[BoundKey, float | None],
    *,
    sd_kwh: float | None,
    layer: str = "",
) -> Iterator[str]:
    """Yield the table of bounds with bars on one logarithmic scale, and the noise at which each would be 1.

    `times` has the factor of the noise by bound, None if the caps decide; `sd_kwh` is the noise of the newest mean
    [kWh per household], None if no mean was released; `layer` is what it is called if it is a layer.
    """
    scale = svg.logarithmic_axis([bound.epsilon for bound in bounds])
    has_noise_column = sd_kwh is not None and any(bound.key in noise_factors for bound in bounds)
    if has_noise_column:
        yield paragraph(
            _TEXTS.noise_note.format(
                f"{layer}, on the newest day," if layer else "the newest day's mean", svg.format_number(sd_kwh or 0.0)
            ),
            "soft",
        )
        if any(not bound.stated.is_unconditional for bound in bounds if bound.key in noise_factors):
            yield paragraph(_TEXTS.caps_note, "soft")
    rows = [
        (
            part("lettered", bound.letter, bound.name),
            part(
                "with_bar",
                bound.short,
                max(1, round(1000 * (scale.position(bound.epsilon) if bound.epsilon > 0 else 0.0))),
                "full" if bound.stated.is_unconditional else "open",
            ),
            bound.factor or "–",
            bound.stated.limit,
            *([_noise_text(bound, noise_factors, sd_kwh or 0.0)] if has_noise_column else []),
            svg.with_powers(f"{bound.stated.scope} · {bound.stated.holds}"),
        )
        for bound in bounds
    ]
    alone = (
        ", of the noisy releases alone" if any(bound.stated.conditional_days is not None for bound in bounds) else ""
    )
    of_delta = _DELTA_NOTE if any(bound.stated.delta is not None for bound in bounds) else ""
    caption = (
        "Upper bounds on epsilon after all released days, rounded up to three digits; limits are exact. Bars: "
        f"{svg.format_number(scale.low)} to {svg.format_number(scale.high)}, logarithmic; filled: assumption-free, "
        f"outlined: if the model holds{alone}. A sum of discounted losses bounds no odds{of_delta}."
    )
    noise = ["noise at 1"] if has_noise_column else []
    columns = ("bound", "epsilon", "odds change by at most", "limit", *noise, "scope, and when it holds")
    yield text_table(caption, columns, rows)


def _noise_text(bound: LabelledBound, noise_factors: Mapping[BoundKey, float | None], sd_kwh: float) -> str:
    if bound.key not in noise_factors:
        return "–"
    factor = noise_factors[bound.key]
    without_release = "draws decide" if bound.epsilon > 1 else "caps decide"
    return without_release if factor is None else f"{svg.format_number(sd_kwh * factor)}\u00a0kWh"


def growth_parts(bounds: Sequence[LabelledBound], losses_over_time: Mapping[BoundKey, LossOverTime]) -> Iterator[str]:
    """Yield one chart of the bounds that changed by day of the data, a sentence on the others, and a table of days."""
    bounds_by_curve: dict[LossOverTime, list[LabelledBound]] = {}
    for bound in bounds:
        if bound.key in losses_over_time:
            bounds_by_curve.setdefault(losses_over_time[bound.key], []).append(bound)
    dates = sorted({day for curve in bounds_by_curve for day in curve.days})
    if len(dates) < 2:
        return
    constant = {curve: of for curve, of in bounds_by_curve.items() if len({*curve.values}) == 1}
    changing = {curve: of for curve, of in bounds_by_curve.items() if curve not in constant}
    if constant:
        texts = [
            f"{bound.letter}, {bound.name} (epsilon {bound.short})"
            for same_bounds in constant.values()
            for bound in same_bounds
        ]
        names = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
        yield paragraph(f"Unchanged since the first released day: {names}.")
    if not changing:
        return
    values = {curve: [math.inf if value is None else to_float(value) for value in curve.values] for curve in changing}
    lines = [
        svg.Line(
            _line_name(same_bounds),
            [float(date.fromisoformat(day).toordinal()) for day in curve.days],
            values[curve],
            letter=same_bounds[0].letter,
            style=index % _STYLES,
            dots=False,
        )
        for index, (curve, same_bounds) in enumerate(changing.items())
    ]
    end_texts = "; ".join(
        f"{bound.letter}, {bound.name}: {svg.format_rounded_up(values[curve][-1])} at the end"
        for curve, same_bounds in changing.items()
        for bound in same_bounds
    )
    description = f"Bounds by day of the data, on a logarithmic scale. {end_texts}."
    x = svg.date_axis(date.fromisoformat(dates[0]), date.fromisoformat(dates[-1]))
    y = svg.logarithmic_axis([value for epsilons in values.values() for value in epsilons])
    title, y_title = "Bounds as the days were released", "epsilon (each step: ten times)"
    yield svg.chart(title, description, [*lines, _DAY_HOVER], x=x, y=y, y_title=y_title, height=240)
    shown_dates = svg.evenly_spaced(dates, _MAX_DATES)
    rows = [
        (f"{same_bounds[0].letter} {_line_name(same_bounds)}", *(_value_at(curve, day) for day in shown_dates))
        for curve, same_bounds in changing.items()
    ]
    yield table("The same in numbers: epsilon, counting the days up to", ("bound", *shown_dates), rows)


def _line_name(bounds: Sequence[LabelledBound]) -> str:
    """Return the name of a line that several bounds share."""
    first, *further_bounds = bounds
    if_model = "" if first.stated.is_unconditional else " (if the model holds)"
    same_text = f"; the same: {', '.join(bound.letter for bound in further_bounds)}" if further_bounds else ""
    return f"{first.name}{if_model}{same_text}"


def _value_at(curve: LossOverTime, day: str) -> str:
    values_so_far = [value for curve_day, value in zip(curve.days, curve.values, strict=True) if curve_day <= day]
    return (
        "infinite"
        if not values_so_far or values_so_far[-1] is None
        else svg.format_rounded_up(to_float(values_so_far[-1]))
    )


def schedules_table(schedules: Mapping[str, float]) -> str:
    """Return the table of mean noise [kWh per household] by schedule of the promise, the promised one first."""
    promised = next(iter(schedules))
    promised_kwh = schedules[promised]
    rows = [
        (
            f"{name} (as promised)" if name == promised else name,
            svg.format_number(kwh),
            f"{svg.format_number(kwh / promised_kwh)} ×",
        )
        for name, kwh in schedules.items()
    ]
    caption = (
        "Noise by schedule of the same promise: mean standard deviation over its days, kWh per household, before caps"
    )
    return table(caption, ("schedule", "noise", "ratio to promised"), rows)


_SIZE_HOVER = svg.Hover(lambda size: f"{svg.format_number(size)} kWh", "epsilon", svg.format_rounded_up)
_POINTS = 40
_MAX_SIZE_ROWS = 8


def size_parts(
    accountants: Sequence[Accountant], rows: Sequence[ReleaseRecord], publication: Publication, *, full_wh: int
) -> Iterator[str]:
    """Yield the loss of a day by size of change up to the full range, if the statement has a bound for any size."""
    sizes = sorted({accountant.size_kwh for accountant in accountants if isinstance(accountant, BoundedChangeLoss)})
    released = [row for row in rows if row.state == "released"]
    if not sizes or not released:
        return
    grid = sorted({Decimal(full_wh * i // _POINTS) / 1000 for i in range(1, _POINTS + 1)})
    losses = {}
    for size in {*grid, *sizes}:
        [bound] = BoundedChangeLoss(size, publication).bounds(released, None, None)
        losses[size] = to_float(bound.value or 0)
    size_texts = ", ".join(f"{exact_text(size)} kWh: {svg.format_rounded_up(losses[size])}" for size in sizes)
    description = f"Upper bounds for any one day. {size_texts}; any size: {svg.format_rounded_up(losses[grid[-1]])}."
    layers: list[svg.Line | svg.Marks] = [
        svg.Line("epsilon", [float(size) for size in grid], [losses[size] for size in grid], dots=False),
        svg.Marks("sizes of the statement", [float(size) for size in sizes if size <= grid[-1]]),
    ]
    x, y = svg.linear_axis([0.0, float(grid[-1])]), svg.linear_axis([0.0, losses[grid[-1]]], zero=True)
    title = "Privacy loss of a day by size of the change, kWh"
    yield svg.chart(title, description, [*layers, _SIZE_HOVER], x=x, y=y, y_title="epsilon", height=170)
    table_sizes = sorted({*sizes, *grid[_POINTS // _MAX_SIZE_ROWS - 1 :: _POINTS // _MAX_SIZE_ROWS]})
    yield table(
        "The same in numbers: upper bound on epsilon for any one day",
        ("change of one household's use by at most, kWh", "epsilon"),
        [(exact_text(size), svg.format_rounded_up(losses[size])) for size in table_sizes],
    )


# --------------------------------------------------------------------------------------------------
# LEDGER -> (epsilon, delta) bounds over spans of days by day of the data, from sums of Rényi curves. Public.
#
# A window that ends on a day is the difference of two sums, so that a report on ten years takes as long as one bound.
# --------------------------------------------------------------------------------------------------

_INT64_LIMIT = 2.0**62


@dataclass(frozen=True, slots=True)
class GrowingSpan:
    """Releases about the span of days up to each released day: numbers of the days, curves (n, 64), sums of losses."""

    days: tuple[int, ...]
    curves: Curve
    pure: tuple[int, ...]

    def largest_so_far(self, delta: Decimal) -> list[int]:
        """Return the largest loss at a delta of a span that ends on a day or before [nano-epsilon], by day."""
        return [*accumulate(approximate_epsilons(self.curves, delta, pure=self.pure), max)]


def growing_span(
    curves: SpanCurves, rows: Sequence[ReleaseRecord], publication: Publication, days: int | None
) -> GrowingSpan:
    """Return the last so many days up to each released day, or all of them, with the draws that touch them."""
    events, spans = publication.parted(rows)[1], curves.read(rows).days
    periods = {day_number(event.last_day) for event in events if event.kind == "row"}
    numbers = np.array(sorted({*spans, *periods}))
    ordered = [spans.get(number, EMPTY) for number in numbers.tolist()]
    sums = _cumulative(np.array([span.curve for span in ordered]))
    pure_sums = [0, *accumulate(span.pure for span in ordered)]
    starts = numbers * 0 if days is None else numbers - days + 1
    begins = np.searchsorted(numbers, starts)
    totals = sums[1:] - sums[begins]
    pure = [last - pure_sums[begin] for last, begin in zip(pure_sums[1:], begins.tolist(), strict=True)]
    for event in (event for event in events if event.pure > 0):
        first, last = day_number(event.first_day), day_number(event.last_day)
        is_touched = (last >= starts) & ((days is None) | (first <= numbers))
        if event.kind == "row":  # published with its last day
            is_touched = is_touched & (last <= numbers)
        totals = totals + is_touched[:, None] * span_of(event).curve
        pure = [loss + event.pure * touched for loss, touched in zip(pure, is_touched.tolist(), strict=True)]
    return GrowingSpan(tuple(numbers.tolist()), totals, tuple(pure))


def _cumulative(curves: Curve) -> Curve:
    """Return the sums of no curve, the first, the first two, and so on."""
    is_small = curves.dtype != object and float(curves.max()) * len(curves) < _INT64_LIMIT
    exact = curves if is_small else curves.astype(object)
    return np.concatenate([exact[:1] * 0, np.cumsum(exact, axis=0)])


def spans_over_time(
    bounds: Sequence[StatedBound], rows: Sequence[ReleaseRecord], publication: Publication, *, points: int = POINTS
) -> dict[BoundKey, LossOverTime]:
    """Return the bounds of a statement over spans of days with a delta, after each of `points` days; as stated at last.

    A window that also touches a draw about later days is counted at the last of these days.
    """
    released = [row for row in rows if row.state == "released"]
    curves = SpanCurves(publication)
    over_time = {}
    for loss in span_losses(bounds, publication) if released else ():
        growing = growing_span(curves, released, publication, loss.days)
        values = growing.largest_so_far(loss.delta)
        [bound] = loss.bounds(released, None, None)
        values[-1] = bound.value or 0
        shown = svg.evenly_spaced(range(len(values)), points)
        over_time[BoundKey(bound.name, bound.about, bound.assumption)] = LossOverTime(
            tuple(date.fromordinal(growing.days[index]).isoformat() for index in shown),
            tuple(values[index] for index in shown),
        )
    return over_time


# --------------------------------------------------------------------------------------------------
# LEDGER -> losses of each day and of all days so far, against the caps of the promise. Public.
# --------------------------------------------------------------------------------------------------


def spending_parts(
    rows: Sequence[ReleaseRecord], promise: PromiseTerms, publication: Publication, delta: Decimal | None
) -> Iterator[str]:
    """Yield charts and a table of the daily and the cumulative loss, with the caps of the promise.

    The losses of calibration draws count on the published days of their periods, and in the sums from the first day on.
    With a `delta` the cumulative loss at it is shown beside the sum of the losses.
    """
    losses, charges = day_losses(rows), publication.charges
    if not losses:
        return
    by_day = losses_about_days(rows, publication)
    first, last = date.fromisoformat(min(by_day)), date.fromisoformat(max(by_day))
    all_days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    spent = [losses.get(str(day), 0) for day in all_days]
    of_days = [by_day[day] + charge_on(charges, day) if day in by_day else 0 for day in map(str, all_days)]
    sums = [*accumulate(spent, initial=total_charge(charges))][1:]
    draws = ", calibration draws included" if charges else ""
    on_days = f"at most {svg.format_rounded_up(to_float(max(of_days)))} per day{draws}"
    in_total = f"{svg.format_rounded_up(to_float(sums[-1]))} in total{draws}"
    totals = {"spent": sums}
    if delta is not None:
        growing = growing_span(SpanCurves(publication), rows, publication, None)
        epsilons = dict(zip(growing.days, growing.largest_so_far(delta), strict=True))
        at_delta = [*accumulate((epsilons.get(day.toordinal(), 0) for day in all_days), max)]
        text = svg.with_powers(with_delta(f"{delta:f}"))
        totals = {"sum of the losses": sums, f"epsilon{text}": at_delta}
        in_total += f"; {svg.format_rounded_up(to_float(at_delta[-1]))}{text}"
    at_delta_text = svg.with_powers(with_delta(promise.delta))
    so_far = _chart("Composed loss so far", all_days, totals, promise.epsilon_total, (in_total, at_delta_text))
    released = [loss for loss in of_days if loss]
    if svg.constant_value(released) is not None:
        yield paragraph(_equal_losses_text(released, len(all_days), draws, promise.max_day_epsilon))
        if len(all_days) > 1:
            yield so_far
    else:
        of_day = _chart("Loss of each day", all_days, {"spent": of_days}, promise.max_day_epsilon, (on_days, ""))
        yield side_by_side([of_day, so_far])
    yield _month_table(all_days, spent, totals)


def _equal_losses_text(losses: Sequence[int], days: int, draws: str, cap: str) -> str:
    """Return the sentence on equal losses of the released days [nano-epsilon] among `days` days."""
    of_days = "The released day has" if len(losses) == 1 else f"Each of the {len(losses):,} released days has"
    without = days - len(losses)
    skipped = f"; the {without:,} other days in between have none" if without > 1 else ""
    skipped = "; the day without a release in between has none" if without == 1 else skipped
    permitted = "the promise sets no limit" if cap == "unlimited" else f"the promise permits {cap} per day"
    return f"{of_days} a loss of epsilon {svg.format_rounded_up(to_float(losses[0]))}{draws}{skipped}; {permitted}."


def _chart(
    title: str, days: Sequence[date], losses: Mapping[str, Sequence[int]], cap: str, texts: tuple[str, str]
) -> str:
    """Return the chart of losses by day [nano-epsilon], by name, with their cap, a number or "unlimited".

    `texts` are what the losses come to, and the delta of the cap, "" without one.
    """
    amount_text, at_delta = texts
    caps = [] if cap == "unlimited" else [float(cap)]
    positions = [float(day.toordinal()) for day in days]
    lines = [
        svg.Line(name, positions, [to_float(value) for value in values], style=style, steps=len(days) > 1)
        for style, (name, values) in enumerate(losses.items())
    ]
    levels = [svg.Level(f"cap of the promise, {cap}{at_delta}", limit) for limit in caps]
    y = svg.linear_axis([*(to_float(max(values)) for values in losses.values()), *caps], zero=True)
    cap_text = f"the promise permits {cap}{at_delta}" if caps else "the promise sets no limit"
    description = f"Epsilon by day of the data: {amount_text}; {cap_text}."
    x = svg.date_axis(days[0], days[-1])
    return svg.chart(title, description, [*lines, *levels, _DAY_HOVER], x=x, y=y, y_title="epsilon", height=170)


def _month_table(all_days: Sequence[date], spent: Sequence[int], totals: Mapping[str, Sequence[int]]) -> str:
    months = svg.by_month(range(len(all_days)), all_days.__getitem__)
    rows = []
    for month, indices in months.items():
        losses = [spent[i] for i in indices]
        epsilons = map(to_float, (max(losses), sum(losses), *(values[indices[-1]] for values in totals.values())))
        rows.append((month, f"{sum(loss > 0 for loss in losses)}", *map(svg.format_rounded_up, epsilons)))
    so_far = ["so far"] if len(totals) == 1 else [f"so far, {name}" for name in totals]
    return table("The same by month: epsilon", ("month", "days", "largest day", "month", *so_far), rows)
