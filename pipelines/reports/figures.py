"""Report of the privacy loss: every bound of the statement, its cost in noise, and its growth by day.

Each bound is on a page once, with all that the statement contains about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from typing import Any

from agedp_data.losses import to_float
from agedp_data.pictures.chart import Line, chart
from agedp_data.pictures.page import paragraph, size_bar, table, text_table
from agedp_data.pictures.scales import date_axis, format_number, format_rounded_up, logarithmic_axis
from agedp_data.statement_words import holds_when
from pipelines.reports.courses import BoundKey, LossOverTime

_STYLES = 6
_NOISE_NOTE = (
    "The mean of the newest day carries noise with a standard deviation of {} kWh a home. Held to epsilon 1 instead, "
    "for the same days in the same proportions, a figure would have asked for its noise at 1."
)
_CAPS_NOTE = (
    "A figure under a model is no reason for less noise by itself: models may be wrong, so the caps of the promise "
    "hold whatever a model says."
)
_DATES = 3


@dataclass(frozen=True, slots=True)
class LabelledBound:
    """A bound of the statement with its letter in tables and charts; epsilon is `inf` if infinite.

    `factor` is the factor by which odds may change, "" if the bound limits none; `limit` the upper bound over future
    releases.
    """

    letter: str
    key: BoundKey
    text: str
    epsilon: float
    is_unconditional: bool
    condition: str
    factor: str
    limit: str


def labelled_bounds(statement: Mapping[str, Any]) -> list[LabelledBound]:
    """Return the bounds of a statement in its order."""
    return [
        LabelledBound(
            _letter(index),
            BoundKey(bound["name"], bound["about"], bound["assumption"]),
            bound["epsilon"],
            math.inf if bound["epsilon"] == "infinite" else float(bound["epsilon"]),
            bound["kind"] == "assumption-free",
            holds_when(bound),
            f"×\u00a0{bound['factor']}" if bound.get("factor") else "",
            bound.get("limit", ""),
        )
        for index, bound in enumerate(statement["figures"])
    ]


def _letter(index: int) -> str:
    """Return A to Z, then AA and on.

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    return (_letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def bounds_table(
    bounds: Sequence[LabelledBound], noise_factors: Mapping[BoundKey, float | None], *, sd_kwh: float | None
) -> Iterator[str]:
    """Yield the table of bounds with bars on one logarithmic scale, and the noise at which each would be 1.

    `times` has the factor of the noise by bound, None if the caps decide; `sd_kwh` is the noise of the newest mean
    [kWh per household], None if no mean was released.
    """
    scale = logarithmic_axis([bound.epsilon for bound in bounds])
    has_noise_column = sd_kwh is not None and any(bound.key in noise_factors for bound in bounds)
    if has_noise_column:
        yield paragraph(_NOISE_NOTE.format(format_number(sd_kwh or 0.0)), "soft")
        if any(not bound.is_unconditional for bound in bounds if bound.key in noise_factors):
            yield paragraph(_CAPS_NOTE, "soft")
    rows = [
        (
            f'<b class="letter">{bound.letter}</b> {escape(bound.key.name)}',
            size_bar(scale.position(bound.epsilon) if bound.epsilon > 0 else 0.0, filled=bound.is_unconditional),
            f"<strong>{escape(bound.text)}</strong>",
            escape(bound.factor or "–"),
            escape(bound.limit or "none"),
            *([_noise_text(bound, noise_factors, sd_kwh or 0.0)] if has_noise_column else []),
            escape(f"{bound.key.scope} · {bound.condition}"),
        )
        for bound in bounds
    ]
    caption = (
        f"Epsilon at most, after all days released. Bars: {format_number(scale.low)} to "
        f"{format_number(scale.high)}, logarithmic; "
        "filled: always true, outlined: true if the model is. A sum of discounted losses bounds no odds."
    )
    noise = ["noise at 1"] if has_noise_column else []
    columns = ("figure", "", "epsilon", "odds change by", "limit", *noise, "about what, and when it holds")
    yield text_table(caption, columns, rows)


def _noise_text(bound: LabelledBound, noise_factors: Mapping[BoundKey, float | None], sd_kwh: float) -> str:
    if bound.key not in noise_factors:
        return "–"
    factor = noise_factors[bound.key]
    return "caps decide" if factor is None else f"{format_number(sd_kwh * factor)}\u00a0kWh"


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
    description = f"Every figure by day of the data, on a logarithmic scale. {end_texts}."
    x = date_axis(date.fromisoformat(dates[0]), date.fromisoformat(dates[-1]))
    title = "Every figure as the days were released"
    yield chart(title, description, lines, x=x, y=y, y_title="epsilon (each step: ten times)", height=240)
    shown_dates = sorted({dates[round(i * (len(dates) - 1) / _DATES)] for i in range(_DATES + 1)})
    rows = [
        (f"{same_bounds[0].letter} {_line_name(same_bounds)}", *(_value_at(curve, day) for day in shown_dates))
        for curve, same_bounds in bounds_by_curve.items()
    ]
    yield table("The same in numbers: epsilon, counting the days up to", ("figure", *shown_dates), rows)


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
    rows = [
        (
            name + (" (as promised)" if name == promised else ""),
            format_number(kwh),
            f"{format_number(kwh / schedules[promised])} ×",
        )
        for name, kwh in schedules.items()
    ]
    caption = "Noise by schedule of the same promise: mean standard deviation over its days, kWh a home, before caps"
    return table(caption, ("schedule", "noise", "as promised"), rows)
