"""What a report shows of temporal leakage: what all releases say about each day, from the model's public part alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from agedp_data.chains.envelope import LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import to_float
from agedp_data.notions.fading import by_number
from agedp_data.notions.leaked import DayLeakage, TemporalLosses
from agedp_data.notions.notion import day_losses
from agedp_data.pictures.chart import Level, Line, chart
from agedp_data.pictures.page import table
from agedp_data.pictures.scales import days, linear, short


def leakage_parts(envelope: LeakageBound, rows: Sequence[ReleaseRecord], promise: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is said about each day by its own release, by earlier and by later ones, and the same by month."""
    if not envelope.looks_ahead:
        return
    found = list(TemporalLosses(envelope).of(by_number(day_losses(rows))))
    if len(found) < 2:
        return
    at = [float(one.day) for one in found]
    lines = [
        Line(name, at, [to_float(value) for value in values], letter=letter, style=place, dots=False)
        for place, (letter, name, values) in enumerate(_loss_curves(found))
    ]
    alpha = float(promise["alpha"]) if "alpha" in promise else None
    levels = [] if alpha is None else [Level(f"alpha of the promise, {promise['alpha']}", alpha)]
    most = max(found, key=lambda one: one.total)
    own = max(one.own for one in found)
    about = (
        f"Epsilon by day of the data, if the model holds: what all releases together say about each day, "
        f"{short(to_float(most.total))} at most (about {_day_text(most)}), of which the day's own release says "
        f"{short(to_float(own))} at most."
    )
    y = linear([to_float(most.total), *([] if alpha is None else [alpha])], zero=True)
    x = days(date.fromordinal(found[0].day), date.fromordinal(found[-1].day))
    title = "What all releases together say about each day"
    yield chart(title, about, [*lines, *levels], x=x, y=y, y_title="epsilon", height=220)
    months: dict[str, list[DayLeakage]] = {}
    for one in found:
        months.setdefault(f"{date.fromordinal(one.day):%Y-%m}", []).append(one)
    shown = [(month, *(_largest_text(values) for _, _, values in _loss_curves(of))) for month, of in months.items()]
    columns = ("month", *(name for _, name, _ in _loss_curves(found)))
    yield table("The same by month: epsilon, the largest of its days", columns, shown)


def _loss_curves(found: Sequence[DayLeakage]) -> list[tuple[str, str, list[int]]]:
    return [
        ("a", "all releases", [one.total for one in found]),
        ("b", "the day's own and earlier ones", [one.own + one.before for one in found]),
        ("c", "the day's own and later ones", [one.own + one.behind for one in found]),
        ("d", "the day's own alone", [one.own for one in found]),
    ]


def _largest_text(values: Sequence[int]) -> str:
    return short(to_float(max(values)))


def _day_text(one: DayLeakage) -> str:
    return date.fromordinal(one.day).isoformat()
