"""What a report says of losses: every figure of the statement side by side, what it costs in noise, how it grew.

Each figure stands on a page once, with all that the statement says of it.
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
from agedp_data.pictures.page import paragraph, said_table, size_bar, table
from agedp_data.pictures.scales import days, logarithmic, plain, short
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
    """A figure of the statement under the letter by which tables and charts call it; epsilon is `inf` if infinite.

    `factor` is that by which odds may change, "" if the figure bounds none; `limit` what the promise bounds it by.
    """

    letter: str
    key: BoundKey
    text: str
    epsilon: float
    always: bool
    holds: str
    factor: str
    limit: str


def labelled_bounds(claim: Mapping[str, Any]) -> list[LabelledBound]:
    """Return the figures of a statement in its order."""
    return [
        LabelledBound(
            _letter(place),
            BoundKey(figure["name"], figure["about"], figure["assumption"]),
            figure["epsilon"],
            math.inf if figure["epsilon"] == "infinite" else float(figure["epsilon"]),
            figure["kind"] == "assumption-free",
            holds_when(figure),
            f"×\u00a0{figure['factor']}" if figure.get("factor") else "",
            figure.get("limit", ""),
        )
        for place, figure in enumerate(claim["figures"])
    ]


def _letter(place: int) -> str:
    """Return A to Z, then AA and on.

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    return (_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def bounds_table(
    figures: Sequence[LabelledBound], times: Mapping[BoundKey, float | None], *, sd_kwh: float | None
) -> Iterator[str]:
    """Yield the figures side by side with bars on one logarithmic scale, and what each would cost in noise at 1.

    `times` is by which factor the noise would change, None if hardly any would do; `sd_kwh` the noise of the newest
    mean, None if no mean was released.
    """
    scale = logarithmic([one.epsilon for one in figures])
    priced = sd_kwh is not None and any(one.key in times for one in figures)
    if priced:
        yield paragraph(_NOISE_NOTE.format(plain(sd_kwh or 0.0)), "soft")
        if any(not one.always for one in figures if one.key in times):
            yield paragraph(_CAPS_NOTE, "soft")
    rows = [
        (
            f'<b class="letter">{one.letter}</b> {escape(one.key.name)}',
            size_bar(scale.place(one.epsilon) if one.epsilon > 0 else 0.0, filled=one.always),
            f"<strong>{escape(one.text)}</strong>",
            escape(one.factor or "–"),
            escape(one.limit or "none"),
            *([_noise_text(one, times, sd_kwh or 0.0)] if priced else []),
            escape(f"{one.key.about} · {one.holds}"),
        )
        for one in figures
    ]
    caption = (
        f"Epsilon at most, after all days released. Bars: {plain(scale.low)} to {plain(scale.high)}, logarithmic; "
        "filled: always true, outlined: true if the model is. A sum of discounted losses bounds no odds."
    )
    noise = ["noise at 1"] if priced else []
    columns = ("figure", "", "epsilon", "odds change by", "limit", *noise, "about what, and when it holds")
    yield said_table(caption, columns, rows)


def _noise_text(one: LabelledBound, times: Mapping[BoundKey, float | None], sd_kwh: float) -> str:
    if one.key not in times:
        return "–"
    factor = times[one.key]
    return "caps decide" if factor is None else f"{plain(sd_kwh * factor)}\u00a0kWh"


def rounded_up_text(one: LabelledBound) -> str:
    """Return an epsilon exactly if that is short, else rounded up to four digits."""
    if len(one.text) <= 7 or not 0 < one.epsilon < math.inf:
        return one.text
    rounded = Context(prec=4, rounding=ROUND_CEILING).plus(Decimal(one.text))
    return f"{rounded.normalize():f}"


def growth_parts(figures: Sequence[LabelledBound], found: Mapping[BoundKey, LossOverTime]) -> Iterator[str]:
    """Yield one chart of all figures as days were released, and a table of some of these days."""
    drawn = [(one, found[one.key]) for one in figures if one.key in found]
    dates = sorted({day for _, course in drawn for day in course.days})
    if len(dates) < 2:
        return
    values = {one.letter: [_to_epsilon(value) for value in course.values] for one, course in drawn}
    y = logarithmic([value for each in values.values() for value in each])
    alike: dict[LossOverTime, list[LabelledBound]] = {}
    for one, course in drawn:
        alike.setdefault(course, []).append(one)
    lines = [
        Line(
            _line_name(ones),
            [float(date.fromisoformat(day).toordinal()) for day in course.days],
            values[ones[0].letter],
            letter=ones[0].letter,
            style=place % _STYLES,
            dots=False,
        )
        for place, (course, ones) in enumerate(alike.items())
    ]
    ends = "; ".join(f"{one.letter}, {one.key.name}: {short(values[one.letter][-1])} at the end" for one, _ in drawn)
    about = f"Every figure by day of the data, on a logarithmic scale. {ends}."
    x = days(date.fromisoformat(dates[0]), date.fromisoformat(dates[-1]))
    title = "Every figure as the days were released"
    yield chart(title, about, lines, x=x, y=y, y_title="epsilon (each step: ten times)", height=240)
    shown = sorted({dates[round(i * (len(dates) - 1) / _DATES)] for i in range(_DATES + 1)})
    rows = [
        (f"{ones[0].letter} {_line_name(ones)}", *(_value_at(course, day) for day in shown))
        for course, ones in alike.items()
    ]
    yield table("The same in numbers: epsilon, counting the days up to", ("figure", *shown), rows)


def _line_name(ones: Sequence[LabelledBound]) -> str:
    """Return the name of a line that several figures share."""
    first, *others = ones
    if_model = "" if first.always else " (if the model holds)"
    also = f"; the same: {', '.join(one.letter for one in others)}" if others else ""
    return f"{first.key.name}{if_model}{also}"


def _to_epsilon(value: int | None) -> float:
    return math.inf if value is None else to_float(value)


def _value_at(course: LossOverTime, day: str) -> str:
    known = [value for at, value in zip(course.days, course.values, strict=True) if at <= day]
    return "infinite" if not known or known[-1] is None else short(to_float(known[-1]))


def schedules_table(schedules: Mapping[str, float]) -> str:
    """Return the mean noise, kWh a home, of each schedule that the promise could follow, its own first."""
    own = next(iter(schedules))
    rows = [
        (name + (" (as promised)" if name == own else ""), plain(kwh), f"{plain(kwh / schedules[own])} ×")
        for name, kwh in schedules.items()
    ]
    caption = "Noise by schedule of the same promise: mean standard deviation over its days, kWh a home, before caps"
    return table(caption, ("schedule", "noise", "as promised"), rows)
