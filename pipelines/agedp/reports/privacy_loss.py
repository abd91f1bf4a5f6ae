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
from decimal import Decimal

from agedp.reports.axes import (
    Scale,
    date_axis,
    evenly_spaced,
    format_number,
    format_rounded_up,
    linear_axis,
    logarithmic_axis,
    with_powers,
)
from agedp.reports.chart_layers import Hover
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
from agedp_data.statement.document import StatedBound, Statement
from agedp_data.statement.odds import INFINITE, short_factor, short_number

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

    `factor` is by how much odds may change, "" if the bound limits none; `limit` the upper bound over future
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

    @property
    def short(self) -> str:
        """Return epsilon for people, rounded up to three digits."""
        return short_number(self.text)

    @property
    def name(self) -> str:
        """Return the name of the bound for people: "total (delta 10⁻⁶)"."""
        return with_powers(self.key.name)


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
            _factor_text(bound) if bound.factor else "",
            bound.limit,
            bound.conditional_days is not None,
            bound.delta,
        )
        for index, bound in enumerate(statement.bounds)
    ]


def _factor_text(bound: StatedBound) -> str:
    """Return the factor of a bound for people: "× 1.65"."""
    return "any factor" if bound.epsilon == INFINITE else f"×\u00a0{short_factor(bound.epsilon)}"


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
            part("lettered", bound.letter, bound.name),
            part("with_bar", bound.short, _bar_length(bound, scale), "full" if bound.is_unconditional else "open"),
            bound.factor or "–",
            bound.limit,
            *([_noise_text(bound, noise_factors, sd_kwh or 0.0)] if has_noise_column else []),
            with_powers(f"{bound.key.scope} · {bound.condition}"),
        )
        for bound in bounds
    ]
    alone = ", of the noisy releases alone" if any(bound.leaves_out_model for bound in bounds) else ""
    of_delta = _DELTA_NOTE if any(bound.delta is not None for bound in bounds) else ""
    caption = (
        "Upper bounds on epsilon after all released days, rounded up to three digits; limits are exact. Bars: "
        f"{format_number(scale.low)} to {format_number(scale.high)}, logarithmic; filled: assumption-free, outlined: "
        f"if the model holds{alone}. A sum of discounted losses bounds no odds{of_delta}."
    )
    noise = ["noise at 1"] if has_noise_column else []
    columns = ("bound", "epsilon", "odds change by at most", "limit", *noise, "scope, and when it holds")
    yield text_table(caption, columns, rows)


def _bar_length(bound: LabelledBound, scale: Scale) -> int:
    return max(1, round(1000 * (scale.position(bound.epsilon) if bound.epsilon > 0 else 0.0)))


def _noise_text(bound: LabelledBound, noise_factors: Mapping[BoundKey, float | None], sd_kwh: float) -> str:
    if bound.key not in noise_factors:
        return "–"
    factor = noise_factors[bound.key]
    without_release = "draws decide" if bound.epsilon > 1 else "caps decide"
    return without_release if factor is None else f"{format_number(sd_kwh * factor)}\u00a0kWh"


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
        yield paragraph(_constant_text([bound for same_bounds in constant.values() for bound in same_bounds]))
    if not changing:
        return
    values = {curve: [_to_epsilon(value) for value in curve.values] for curve in changing}
    lines = [
        Line(
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
        f"{bound.letter}, {bound.name}: {format_rounded_up(values[curve][-1])} at the end"
        for curve, same_bounds in changing.items()
        for bound in same_bounds
    )
    description = f"Bounds by day of the data, on a logarithmic scale. {end_texts}."
    x = date_axis(date.fromisoformat(dates[0]), date.fromisoformat(dates[-1]))
    y = logarithmic_axis([value for epsilons in values.values() for value in epsilons])
    title, y_title = "Bounds as the days were released", "epsilon (each step: ten times)"
    yield chart(title, description, [*lines, _DAY_HOVER], x=x, y=y, y_title=y_title, height=240)
    shown_dates = evenly_spaced(dates, _MAX_DATES)
    rows = [
        (f"{same_bounds[0].letter} {_line_name(same_bounds)}", *(_value_at(curve, day) for day in shown_dates))
        for curve, same_bounds in changing.items()
    ]
    yield table("The same in numbers: epsilon, counting the days up to", ("bound", *shown_dates), rows)


def _constant_text(bounds: Sequence[LabelledBound]) -> str:
    """Return the sentence on bounds that had their present value from the first released day on."""
    texts = [f"{bound.letter}, {bound.name} (epsilon {bound.short})" for bound in bounds]
    names = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"Unchanged since the first released day: {names}."


def _line_name(bounds: Sequence[LabelledBound]) -> str:
    """Return the name of a line that several bounds share."""
    first, *further_bounds = bounds
    if_model = "" if first.is_unconditional else " (if the model holds)"
    same_text = f"; the same: {', '.join(bound.letter for bound in further_bounds)}" if further_bounds else ""
    return f"{first.name}{if_model}{same_text}"


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
