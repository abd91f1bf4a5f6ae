"""What a report says of losses: every figure of the statement side by side, how they grew, what they cost in noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from typing import Any

from agedp_data.ledger import Release
from agedp_data.losses import number
from agedp_data.notions.notion import day_losses
from agedp_data.pictures.chart import Level, Line, chart
from agedp_data.pictures.page import paragraph, said_table, size_bar, table
from agedp_data.pictures.scales import days, linear, logarithmic, plain, short
from pipelines.reports.courses import Course, Key

_STYLES = 6
_CAPS = (
    "A figure under a model is no reason for less noise by itself: models may be wrong, so the caps of the promise "
    "hold whatever a model says."
)
_DATES = 3


@dataclass(frozen=True, slots=True)
class Lettered:
    """A figure of the statement under the letter by which tables and charts call it; epsilon is `inf` if infinite."""

    letter: str
    key: Key
    text: str
    epsilon: float
    always: bool
    odds: bool


def lettered(claim: Mapping[str, Any]) -> list[Lettered]:
    """Return the figures of a statement in its order."""
    return [
        Lettered(
            _letter(place),
            Key(figure["name"], figure["about"], figure["assumption"]),
            figure["epsilon"],
            math.inf if figure["epsilon"] == "infinite" else float(figure["epsilon"]),
            figure["kind"] == "assumption-free",
            figure.get("factor", "") != "",
        )
        for place, figure in enumerate(claim["figures"])
    ]


def _letter(place: int) -> str:
    """Return A to Z, then AA and on.

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    return (_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def figures_table(figures: Sequence[Lettered]) -> str:
    """Return the figures side by side with bars on one logarithmic scale."""
    scale = logarithmic([one.epsilon for one in figures])
    rows = [
        (
            f'<b class="letter">{one.letter}</b> {escape(one.key.name)}',
            f"<strong>{escape(at_most(one))}</strong>",
            size_bar(scale.place(one.epsilon) if one.epsilon > 0 else 0.0, filled=one.always),
            escape(odds(one.epsilon) if one.odds else "–"),
            escape(f"{one.key.about}: {'always' if one.always else f'if {one.key.assumption}'}"),
        )
        for one in figures
    ]
    caption = (
        f"Epsilon at most, after all days released. Bars: {plain(scale.low)} to {plain(scale.high)}, logarithmic; "
        "filled: always true, outlined: true if the model is. A sum of discounted losses bounds no odds."
    )
    return said_table(caption, ("figure", "epsilon", "", "odds change by", "about what, and when it holds"), rows)


def at_most(one: Lettered) -> str:
    """Return an epsilon exactly if that is short, else rounded up to four digits."""
    if len(one.text) <= 7 or not 0 < one.epsilon < math.inf:
        return one.text
    rounded = Context(prec=4, rounding=ROUND_CEILING).plus(Decimal(one.text))
    return f"{rounded.normalize():f}"


def odds(epsilon: float) -> str:
    r"""Return by which factor everything released changes the odds of any guess, at most.

    >>> odds(0.5), odds(0.001), odds(182.5), odds(math.inf)
    ('×\xa01.65', '×\xa01.01', '×\xa010^79.3', 'without limit')
    """
    if math.isinf(epsilon):
        return "without limit"
    if epsilon > math.log(1000):
        return f"×\u00a010^{plain(math.ceil(10 * epsilon / math.log(10)) / 10)}"
    return f"×\u00a0{math.ceil(100 * math.exp(epsilon) - 1e-9) / 100:g}"


def growth(figures: Sequence[Lettered], found: Mapping[Key, Course]) -> Iterator[str]:
    """Yield one chart of all figures as days were released, and a table of some of these days."""
    drawn = [(one, found[one.key]) for one in figures if one.key in found]
    dates = sorted({day for _, course in drawn for day in course.days})
    if len(dates) < 2:
        return
    values = {one.letter: [_epsilon(value) for value in course.values] for one, course in drawn}
    y = logarithmic([value for each in values.values() for value in each])
    alike: dict[Course, list[Lettered]] = {}
    for one, course in drawn:
        alike.setdefault(course, []).append(one)
    lines = [
        Line(
            _named(ones),
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
    yield chart(title, about, lines, x=x, y=y, y_title="epsilon (each step: ten times)", height=300)
    shown = sorted({dates[round(i * (len(dates) - 1) / _DATES)] for i in range(_DATES + 1)})
    rows = [
        (f"{ones[0].letter} {_named(ones)}", *(_at(course, day) for day in shown)) for course, ones in alike.items()
    ]
    yield table("The same in numbers: epsilon, counting the days up to", ("figure", *shown), rows)


def _named(ones: Sequence[Lettered]) -> str:
    """Return the name of a line that several figures share."""
    first, *others = ones
    if_model = "" if first.always else " (if the model holds)"
    also = f"; the same: {', '.join(one.letter for one in others)}" if others else ""
    return f"{first.key.name}{if_model}{also}"


def _epsilon(value: int | None) -> float:
    return math.inf if value is None else number(value)


def _at(course: Course, day: str) -> str:
    known = [value for at, value in zip(course.days, course.values, strict=True) if at <= day]
    return "infinite" if not known or known[-1] is None else short(number(known[-1]))


def spending(rows: Sequence[Release], promise: Mapping[str, Any]) -> Iterator[str]:
    """Yield what each day cost and what all came to so far, against the caps of the promise."""
    losses = day_losses(rows)
    if not losses:
        return
    first, last = date.fromisoformat(min(losses)), date.fromisoformat(max(losses))
    every = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    spent = [losses.get(str(day), 0) for day in every]
    so_far = [sum(spent[: i + 1]) for i in range(len(spent))] if len(spent) < 2 else _running(spent)
    x = days(first, last)
    at = [float(day.toordinal()) for day in every]
    most = max(spent)
    yield '<div class="two">'
    for title, values, cap, about in (
        ("Loss of each day", spent, promise["max_day_epsilon"], f"at most {short(number(most))} a day"),
        ("Loss of all days so far", so_far, promise["epsilon_total"], f"{short(number(so_far[-1]))} in all"),
    ):
        limit = None if cap == "unlimited" else float(cap)
        line = Line("spent", at, [number(value) for value in values], steps=len(values) > 1)
        y = linear([number(max(values)), *([limit] if limit is not None else [])], zero=True)
        levels = [Level(f"cap of the promise, {cap}", limit)] if limit is not None else []
        said = f"{about}; " + (f"the promise permits {cap}" if limit is not None else "the promise sets no limit") + "."
        yield chart(
            title, f"Epsilon by day of the data: {said}", [line, *levels], x=x, y=y, y_title="epsilon", height=170
        )
    yield "</div>"
    yield _by_month(every, spent, so_far)


def _running(spent: Sequence[int]) -> list[int]:
    found, total = [], 0
    for loss in spent:
        total += loss
        found.append(total)
    return found


def _by_month(every: Sequence[date], spent: Sequence[int], so_far: Sequence[int]) -> str:
    months: dict[str, list[int]] = {}
    for place, day in enumerate(every):
        months.setdefault(f"{day:%Y-%m}", []).append(place)
    rows = [
        (
            month,
            f"{sum(spent[i] > 0 for i in places)}",
            short(number(max(spent[i] for i in places))),
            short(number(sum(spent[i] for i in places))),
            short(number(so_far[places[-1]])),
        )
        for month, places in months.items()
    ]
    return table("The same by month: epsilon", ("month", "days", "largest day", "month", "so far"), rows)


def prices(
    figures: Sequence[Lettered], times: Mapping[Key, float | None], *, sd_kwh: float, schedules: Mapping[str, float]
) -> Iterator[str]:
    """Yield what it would have cost in noise to hold each figure to epsilon 1, and other schedules of the notion."""
    priced = [(one, times[one.key]) for one in figures if one.key in times]
    if priced:
        yield paragraph(
            f"The mean of the newest day carries noise with a standard deviation of {plain(sd_kwh)} kWh a home. Held "
            "to epsilon 1 instead, for the same days in the same proportions, a figure would have asked for this noise:"
        )
        if any(not one.always for one, _ in priced):
            yield paragraph(_CAPS, "soft")
        scale = logarithmic([sd_kwh, *(sd_kwh * each for _, each in priced if each is not None)])
        yield said_table(
            "Noise (standard deviation, kWh a home) at which a figure would be 1",
            ("figure", "noise", "", "as of now", "about"),
            [_price(one, each, sd_kwh, scale.place) for one, each in priced],
        )
    if schedules:
        own = next(iter(schedules))
        rows = [
            (name + (" (as promised)" if name == own else ""), plain(kwh), f"{plain(kwh / schedules[own])} ×")
            for name, kwh in schedules.items()
        ]
        caption = (
            "Noise by schedule of the same promise: mean standard deviation over its days, kWh a home, before caps"
        )
        yield table(caption, ("schedule", "noise", "as promised"), rows)


def _price(one: Lettered, times: float | None, sd_kwh: float, place: Any) -> tuple[str, ...]:  # noqa: ANN401
    name, about = f'<b class="letter">{one.letter}</b> {escape(one.key.name)}', escape(one.key.about)
    if times is None:
        return name, "hardly any", size_bar(0.0, filled=one.always), "the caps alone decide", about
    bar = size_bar(place(sd_kwh * times), filled=one.always)
    return name, f"<strong>{plain(sd_kwh * times)}</strong>", bar, f"{plain(times)}\u00a0×", about
