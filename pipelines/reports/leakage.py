"""Report of temporal leakage: loss about each day from all releases, by the model's public part. Public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from agedp_data.chains.envelope import LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import to_float
from agedp_data.notions.fading import losses_by_day_number
from agedp_data.notions.leaked import DayLeakage, TemporalLosses
from agedp_data.notions.notion import day_losses
from agedp_data.pictures.chart import Level, Line, chart
from agedp_data.pictures.page import table
from agedp_data.pictures.scales import date_axis, format_rounded_up, linear_axis


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
        f"Epsilon by day of the data, if the model holds: what all releases together say about each day, "
        f"{format_rounded_up(to_float(largest.total))} at most (about {_day_text(largest)}), of "
        f"which the day's own release says "
        f"{format_rounded_up(to_float(largest_own))} at most."
    )
    y = linear_axis([to_float(largest.total), *([] if alpha is None else [alpha])], zero=True)
    x = date_axis(date.fromordinal(day_leakages[0].day), date.fromordinal(day_leakages[-1].day))
    title = "What all releases together say about each day"
    yield chart(title, description, [*lines, *levels], x=x, y=y, y_title="epsilon", height=220)
    months: dict[str, list[DayLeakage]] = {}
    for leakage in day_leakages:
        months.setdefault(f"{date.fromordinal(leakage.day):%Y-%m}", []).append(leakage)
    month_rows = [
        (month, *(_largest_text(values) for _, _, values in _loss_curves(month_leakages)))
        for month, month_leakages in months.items()
    ]
    columns = ("month", *(name for _, name, _ in _loss_curves(day_leakages)))
    yield table("The same by month: epsilon, the largest of its days", columns, month_rows)


def _loss_curves(day_leakages: Sequence[DayLeakage]) -> list[tuple[str, str, list[int]]]:
    return [
        ("a", "all releases", [leakage.total for leakage in day_leakages]),
        ("b", "the day's own and earlier ones", [leakage.day_loss + leakage.backward for leakage in day_leakages]),
        ("c", "the day's own and later ones", [leakage.day_loss + leakage.forward for leakage in day_leakages]),
        ("d", "the day's own alone", [leakage.day_loss for leakage in day_leakages]),
    ]


def _largest_text(values: Sequence[int]) -> str:
    return format_rounded_up(to_float(max(values)))


def _day_text(leakage: DayLeakage) -> str:
    return date.fromordinal(leakage.day).isoformat()
