"""Report of the model, from its public part: privacy loss by age of the data, and temporal leakage. Public.

The temporal leakage is the loss about each day from all releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from agedp.reports.axes import (
    Scale,
    by_month,
    date_axis,
    evenly_spaced,
    format_rounded_up,
    linear_axis,
    logarithmic_axis,
)
from agedp.reports.html import side_by_side, table
from agedp.reports.svg import Level, Line, chart
from agedp_data.accounting.temporal_recursion import DayLeakage, TemporalLosses
from agedp_data.epsilon import to_float
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.notions.aged_loss import AgedLeakage
from agedp_data.notions.notion import day_losses, losses_by_day_number
from agedp_data.parameters import Method

_MAX_AGE_DAYS = 400
_MAX_ROWS, _LOGARITHMIC_RATIO = 8, 30
_METHODS: Mapping[str, str] = {"tight": "exact", **MIXING_NAMES}


def model_parts(leakage_bound: LeakageBound, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield the risk by age of one day's loss, by method, and of all released days, by the sharpest method."""
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
    all_days = [to_float(composition.leakage(newest + age * leakage_bound.steps_per_day)) for age in ages]
    yield side_by_side(
        [
            _age_chart(
                f"Aged loss of one day with epsilon {format_rounded_up(to_float(largest))}", ages, by_method_name
            ),
            _age_chart("Risk: loss about the present, all days", ages, {_METHODS.get(name, name): all_days}),
        ]
    )
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
    change_indices = [
        0,
        *(i for i in range(1, len(ages)) if any(curve[i] != curve[i - 1] for curve in curves)),
        len(ages) - 1,
    ]
    return [ages[index] for index in evenly_spaced(sorted(set(change_indices)), _MAX_ROWS)]


def _age_chart(title: str, ages: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    lines = [
        Line(
            name,
            [float(age) for age in ages],
            values,
            style=index,
            steps=True,
            letter="" if len(curves) < 2 else str(index + 1),
        )
        for index, (name, values) in enumerate(curves.items())
    ]
    description = "; ".join(
        f"{name}: {format_rounded_up(values[0])} fresh, {format_rounded_up(values[-1])} after {ages[-1]} days"
        for name, values in curves.items()
    )
    all_values = [value for values in curves.values() for value in values]
    is_logarithmic = min(all_values) < max(all_values) / _LOGARITHMIC_RATIO
    y = logarithmic_axis(all_values, decades=4) if is_logarithmic else linear_axis(all_values, zero=True)
    return chart(
        title,
        f"Epsilon by age of the newest data. {description}.",
        lines,
        x=_age_axis(ages),
        y=y,
        y_title="epsilon (each step: ten times)" if is_logarithmic else "epsilon",
        height=190,
    )


def _age_axis(ages: Sequence[int]) -> Scale:
    axis = linear_axis([float(age) for age in ages], zero=True)
    last = float(ages[-1])
    return Scale(0.0, last, tuple((value, f"{text} d") for value, text in axis.ticks if value <= last))


def leakage_parts(
    leakage_bound: LeakageBound, rows: Sequence[ReleaseRecord], promise: Mapping[str, Any]
) -> Iterator[str]:
    """Yield backward, forward and total temporal leakage by day as a chart, and by month as a table."""
    if not leakage_bound.has_both_directions:
        return
    day_leakages = list(TemporalLosses(leakage_bound).of(losses_by_day_number(day_losses(rows))))
    if len(day_leakages) < 2:
        return
    positions = [float(leakage.day) for leakage in day_leakages]
    lines = [
        Line(name, positions, [to_float(value) for value in values], letter=letter, style=index, dots=False)
        for index, (letter, name, values) in enumerate(_loss_curves(day_leakages))
    ]
    alpha = float(promise["alpha"]) if "alpha" in promise else None
    levels = [] if alpha is None else [Level(f"alpha of the promise, {promise['alpha']}", alpha)]
    largest = max(day_leakages, key=lambda leakage: leakage.total)
    largest_own = max(leakage.day_loss for leakage in day_leakages)
    description = (
        "Epsilon by day of the data, if the model holds: temporal leakage about each day from all releases, at most "
        f"{format_rounded_up(to_float(largest.total))} (about {_day_text(largest)}). The loss of the day's own release "
        f"is at most {format_rounded_up(to_float(largest_own))}."
    )
    y = linear_axis([to_float(largest.total), *([] if alpha is None else [alpha])], zero=True)
    x = date_axis(date.fromordinal(day_leakages[0].day), date.fromordinal(day_leakages[-1].day))
    title = "Temporal leakage about each day from all releases"
    yield chart(title, description, [*lines, *levels], x=x, y=y, y_title="epsilon", height=220)
    months = by_month(day_leakages, lambda leakage: date.fromordinal(leakage.day))
    month_rows = [
        (month, *(_largest_text(values) for _, _, values in _loss_curves(month_leakages)))
        for month, month_leakages in months.items()
    ]
    columns = ("month", *(name for _, name, _ in _loss_curves(day_leakages)))
    yield table("The same by month: largest epsilon of its days", columns, month_rows)


def _loss_curves(day_leakages: Sequence[DayLeakage]) -> list[tuple[str, str, list[int]]]:
    return [
        ("a", "all releases", [leakage.total for leakage in day_leakages]),
        (
            "b",
            "the day's own and earlier ones",
            [leakage.day_loss + leakage.backward for leakage in day_leakages],
        ),
        (
            "c",
            "the day's own and later ones",
            [leakage.day_loss + leakage.forward for leakage in day_leakages],
        ),
        ("d", "the day's own alone", [leakage.day_loss for leakage in day_leakages]),
    ]


def _largest_text(values: Sequence[int]) -> str:
    return format_rounded_up(to_float(max(values)))


def _day_text(leakage: DayLeakage) -> str:
    return date.fromordinal(leakage.day).isoformat()
