"""Report of the losses of each day and of all days so far, against the caps of the promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import to_float
from agedp_data.notions.notion import day_losses
from agedp_data.pictures.chart import Level, Line, chart
from agedp_data.pictures.page import table
from agedp_data.pictures.scales import date_axis, format_rounded_up, linear_axis


def spending_parts(rows: Sequence[ReleaseRecord], promise: Mapping[str, Any]) -> Iterator[str]:
    """Yield charts and a table of the daily and the cumulative loss, with the caps of the promise."""
    losses = day_losses(rows)
    if not losses:
        return
    first, last = date.fromisoformat(min(losses)), date.fromisoformat(max(losses))
    all_days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    spent = [losses.get(str(day), 0) for day in all_days]
    running_totals = [sum(spent[: i + 1]) for i in range(len(spent))] if len(spent) < 2 else _running_totals(spent)
    x = date_axis(first, last)
    positions = [float(day.toordinal()) for day in all_days]
    largest = max(spent)
    yield '<div class="two">'
    for title, values, cap, amount_text in (
        (
            "Loss of each day",
            spent,
            promise["max_day_epsilon"],
            f"at most {format_rounded_up(to_float(largest))} a day",
        ),
        (
            "Loss of all days so far",
            running_totals,
            promise["epsilon_total"],
            f"{format_rounded_up(to_float(running_totals[-1]))} in all",
        ),
    ):
        limit = None if cap == "unlimited" else float(cap)
        line = Line("spent", positions, [to_float(value) for value in values], steps=len(values) > 1)
        y = linear_axis([to_float(max(values)), *([limit] if limit is not None else [])], zero=True)
        levels = [Level(f"cap of the promise, {cap}", limit)] if limit is not None else []
        description = (
            f"{amount_text}; "
            + (f"the promise permits {cap}" if limit is not None else "the promise sets no limit")
            + "."
        )
        yield chart(
            title,
            f"Epsilon by day of the data: {description}",
            [line, *levels],
            x=x,
            y=y,
            y_title="epsilon",
            height=170,
        )
    yield "</div>"
    yield _month_table(all_days, spent, running_totals)


def _running_totals(spent: Sequence[int]) -> list[int]:
    totals, total = [], 0
    for loss in spent:
        total += loss
        totals.append(total)
    return totals


def _month_table(all_days: Sequence[date], spent: Sequence[int], running_totals: Sequence[int]) -> str:
    months: dict[str, list[int]] = {}
    for index, day in enumerate(all_days):
        months.setdefault(f"{day:%Y-%m}", []).append(index)
    rows = [
        (
            month,
            f"{sum(spent[i] > 0 for i in indices)}",
            format_rounded_up(to_float(max(spent[i] for i in indices))),
            format_rounded_up(to_float(sum(spent[i] for i in indices))),
            format_rounded_up(to_float(running_totals[indices[-1]])),
        )
        for month, indices in months.items()
    ]
    return table("The same by month: epsilon", ("month", "days", "largest day", "month", "so far"), rows)
