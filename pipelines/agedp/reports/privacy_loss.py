"""Report of the privacy loss: bounds of the statement, their growth by day, and the loss by size of a change.

* Bounds: every bound of the statement, its cost in noise, and its growth by day. Each bound is on a page once, with all
  that the statement contains about it.
* Bounded changes: privacy loss of a day by size of the change in a household's use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal

from agedp.reports.axes import (
    Scale,
    date_axis,
    evenly_spaced,
    format_number,
    format_rounded_up,
    linear_axis,
    logarithmic_axis,
)
from agedp.reports.chart_layers import Hover
from agedp.reports.constants import constant_value
from agedp.reports.hover import day_text
from agedp.reports.html import paragraph, part, table, text_table
from agedp.reports.loss_over_time import BoundKey, LossOverTime
from agedp.reports.svg import Line, Marks, chart
from agedp_data.epsilon import to_float
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.bounded_change import BoundedChangeLoss
from agedp_data.notions.notion import Accountant
from agedp_data.notions.publication import Publication
from agedp_data.parameters import exact_text
from agedp_data.statement.document import Statement

_STYLES = 6
_NOISE_NOTE = (
    "The noise of {} has a standard deviation of {} kWh per household. Noise at 1: the standard "
    "deviation that would bring a bound to epsilon 1, for the same days with losses in the same proportions."
)
_CAPS_NOTE = (
    "A bound that is conditional on a model does not justify less noise by itself: models may be wrong, so the caps of "
    "the promise hold whatever the model."
)
_MAX_DATES = 4
_DELTA_NOTE = ", nor does an epsilon with a delta alone: a result is at most e^epsilon times as probable, plus delta"


@dataclass(frozen=True, slots=True)
class LabelledBound:
    """A bound of the statement with its letter in tables and charts; epsilon is `inf` if infinite.

    `factor` is the factor by which odds may change, "" if the bound limits none; `limit` the upper bound over future
    releases; `leaves_out_model` whether it is of the noisy releases alone; `delta` that of its epsilon, None for none.
    """

    letter: str
    key: BoundKey
    text: str
    epsilon: float
    is_unconditional: bool
    condition: str
    factor: str
    limit: str
    leaves_out_model: bool = False
    delta: str | None = None


def labelled_bounds(statement: Statement) -> list[LabelledBound]:
    """Return the bounds of a statement in its order."""
    return [
        LabelledBound(
            _letter(index),
            BoundKey(bound.name, bound.scope, bound.assumption),
            bound.epsilon,
            math.inf if bound.epsilon == "infinite" else float(bound.epsilon),
            bound.is_unconditional,
            bound.holds,
            f"×\u00a0{bound.factor}" if bound.factor else "",
            bound.limit,
            bound.conditional_days is not None,
            bound.delta,
        )
        for index, bound in enumerate(statement.bounds)
    ]


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
    scale = logarithmic_axis([bound.epsilon for bound in bounds])
    has_noise_column = sd_kwh is not None and any(bound.key in noise_factors for bound in bounds)
    if has_noise_column:
        yield paragraph(
            _NOISE_NOTE.format(
                f"{layer}, on the newest day," if layer else "the newest day's mean", format_number(sd_kwh or 0.0)
            ),
            "soft",
        )
        if any(not bound.is_unconditional for bound in bounds if bound.key in noise_factors):
            yield paragraph(_CAPS_NOTE, "soft")
    rows = [
        (
            part("lettered", bound.letter, bound.key.name),
            part("size_bar", _bar_length(bound, scale), "full" if bound.is_unconditional else "open"),
            part("strong", bound.text),
            bound.factor or "–",
            bound.limit,
            *([_noise_text(bound, noise_factors, sd_kwh or 0.0)] if has_noise_column else []),
            f"{bound.key.scope} · {bound.condition}",
        )
        for bound in bounds
    ]
    alone = ", of the noisy releases alone" if any(bound.leaves_out_model for bound in bounds) else ""
    of_delta = _DELTA_NOTE if any(bound.delta is not None for bound in bounds) else ""
    caption = (
        "Upper bounds on epsilon after all released days, in all digits; elsewhere rounded up to four. Bars: "
        f"{format_number(scale.low)} to {format_number(scale.high)}, logarithmic; filled: assumption-free, outlined: "
        f"if the model holds{alone}. A sum of discounted losses bounds no odds{of_delta}."
    )
    noise = ["noise at 1"] if has_noise_column else []
    columns = ("bound", "", "epsilon", "odds change by", "limit", *noise, "scope, and when it holds")
    yield text_table(caption, columns, rows)


def _bar_length(bound: LabelledBound, scale: Scale) -> int:
    return max(1, round(1000 * (scale.position(bound.epsilon) if bound.epsilon > 0 else 0.0)))


def _noise_text(bound: LabelledBound, noise_factors: Mapping[BoundKey, float | None], sd_kwh: float) -> str:
    if bound.key not in noise_factors:
        return "–"
    factor = noise_factors[bound.key]
    without_release = "draws decide" if bound.epsilon > 1 else "caps decide"
    return without_release if factor is None else f"{format_number(sd_kwh * factor)}\u00a0kWh"


def rounded_up_text(bound: LabelledBound) -> str:
    """Return an epsilon exactly if that is short, else rounded up to four digits."""
    if len(bound.text) <= 7 or not 0 < bound.epsilon < math.inf:
        return bound.text
    rounded = Context(prec=4, rounding=ROUND_CEILING).plus(Decimal(bound.text))
    return f"{rounded.normalize():f}"


def growth_parts(bounds: Sequence[LabelledBound], losses_over_time: Mapping[BoundKey, LossOverTime]) -> Iterator[str]:
    """Yield one chart of all bounds by day of the data, and a table of some of these days."""
    drawn_bounds = [(bound, losses_over_time[bound.key]) for bound in bounds if bound.key in losses_over_time]
    dates = sorted({day for _, curve in drawn_bounds for day in curve.days})
    if len(dates) < 2:
        return
    values = {bound.letter: [_to_epsilon(value) for value in curve.values] for bound, curve in drawn_bounds}
    if all(constant_value(epsilons) is not None for epsilons in values.values()):
        yield paragraph("Every bound had its present value after each of the released days.")
        return
    y = logarithmic_axis([value for epsilons in values.values() for value in epsilons])
    bounds_by_curve: dict[LossOverTime, list[LabelledBound]] = {}
    for bound, curve in drawn_bounds:
        bounds_by_curve.setdefault(curve, []).append(bound)
    lines = [
        Line(
            _line_name(same_bounds),
            [float(date.fromisoformat(day).toordinal()) for day in curve.days],
            values[same_bounds[0].letter],
            letter=same_bounds[0].letter,
            style=index % _STYLES,
            dots=False,
        )
        for index, (curve, same_bounds) in enumerate(bounds_by_curve.items())
    ]
    end_texts = "; ".join(
        f"{bound.letter}, {bound.key.name}: {format_rounded_up(values[bound.letter][-1])} at the end"
        for bound, _ in drawn_bounds
    )
    description = f"Every bound by day of the data, on a logarithmic scale. {end_texts}."
    x = date_axis(date.fromisoformat(dates[0]), date.fromisoformat(dates[-1]))
    title = "Every bound as the days were released"
    yield chart(
        title, description, [*lines, _DAY_HOVER], x=x, y=y, y_title="epsilon (each step: ten times)", height=240
    )
    shown_dates = evenly_spaced(dates, _MAX_DATES)
    rows = [
        (f"{same_bounds[0].letter} {_line_name(same_bounds)}", *(_value_at(curve, day) for day in shown_dates))
        for curve, same_bounds in bounds_by_curve.items()
    ]
    yield table("The same in numbers: epsilon, counting the days up to", ("bound", *shown_dates), rows)


def _line_name(bounds: Sequence[LabelledBound]) -> str:
    """Return the name of a line that several bounds share."""
    first, *further_bounds = bounds
    if_model = "" if first.is_unconditional else " (if the model holds)"
    same_text = f"; the same: {', '.join(bound.letter for bound in further_bounds)}" if further_bounds else ""
    return f"{first.key.name}{if_model}{same_text}"


def _to_epsilon(value: int | None) -> float:
    return math.inf if value is None else to_float(value)


def _value_at(curve: LossOverTime, day: str) -> str:
    values_so_far = [value for curve_day, value in zip(curve.days, curve.values, strict=True) if curve_day <= day]
    return (
        "infinite" if not values_so_far or values_so_far[-1] is None else format_rounded_up(to_float(values_so_far[-1]))
    )


def schedules_table(schedules: Mapping[str, float]) -> str:
    """Return the table of mean noise [kWh per household] by schedule of the promise, the promised one first."""
    promised = next(iter(schedules))
    promised_kwh = schedules[promised]
    rows = [
        (
            f"{name} (as promised)" if name == promised else name,
            format_number(kwh),
            f"{format_number(kwh / promised_kwh)} ×",
        )
        for name, kwh in schedules.items()
    ]
    caption = (
        "Noise by schedule of the same promise: mean standard deviation over its days, kWh per household, before caps"
    )
    return table(caption, ("schedule", "noise", "ratio to promised"), rows)


_DAY_HOVER = Hover(day_text, "epsilon", format_rounded_up)
_SIZE_HOVER = Hover(lambda size: f"{format_number(size)} kWh", "epsilon", format_rounded_up)
_POINTS = 40
_MAX_ROWS = 8


def size_parts(
    accountants: Sequence[Accountant], rows: Sequence[ReleaseRecord], publication: Publication, *, full_wh: int
) -> Iterator[str]:
    """Yield the loss of a day by size of change up to the full range, if the statement has a bound for any size."""
    sizes = sorted({accountant.size_kwh for accountant in accountants if isinstance(accountant, BoundedChangeLoss)})
    released = [row for row in rows if row.state == "released"]
    if not sizes or not released:
        return
    grid = sorted({Decimal(full_wh * i // _POINTS) / 1000 for i in range(1, _POINTS + 1)})
    losses = {size: _loss(size, released, publication) for size in {*grid, *sizes}}
    size_texts = ", ".join(f"{exact_text(size)} kWh: {format_rounded_up(losses[size])}" for size in sizes)
    description = f"Upper bounds for any one day. {size_texts}; any size: {format_rounded_up(losses[grid[-1]])}."
    layers: list[Line | Marks] = [
        Line("epsilon", [float(size) for size in grid], [losses[size] for size in grid], dots=False),
        Marks("sizes of the statement", [float(size) for size in sizes if size <= grid[-1]]),
    ]
    x, y = linear_axis([0.0, float(grid[-1])]), linear_axis([0.0, losses[grid[-1]]], zero=True)
    title = "Privacy loss of a day by size of the change, kWh"
    yield chart(title, description, [*layers, _SIZE_HOVER], x=x, y=y, y_title="epsilon", height=170)
    table_sizes = sorted({*sizes, *grid[_POINTS // _MAX_ROWS - 1 :: _POINTS // _MAX_ROWS]})
    yield table(
        "The same in numbers: upper bound on epsilon for any one day",
        ("change of one household's use by at most, kWh", "epsilon"),
        [(exact_text(size), format_rounded_up(losses[size])) for size in table_sizes],
    )


def _loss(size: Decimal, rows: Sequence[ReleaseRecord], publication: Publication) -> float:
    [bound] = BoundedChangeLoss(size, publication).bounds(rows, None, None)
    return to_float(bound.value or 0)
