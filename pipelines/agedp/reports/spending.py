"""LEDGER -> losses of each day and of all days so far, against the caps of the promise. Public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate

from agedp.reports.axes import by_month, date_axis, format_rounded_up, linear_axis, with_powers
from agedp.reports.chart_layers import Hover
from agedp.reports.constants import constant_value
from agedp.reports.hover import day_text
from agedp.reports.html import paragraph, side_by_side, table
from agedp.reports.span_growth import growing_span
from agedp.reports.svg import Level, Line, chart
from agedp_data.config.contract_document import PromiseTerms
from agedp_data.epsilon import to_float
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import day_losses
from agedp_data.notions.period_loss import charge_on, covered_losses, total_charge
from agedp_data.notions.publication import Publication
from agedp_data.notions.span_curves import SpanCurves
from agedp_data.statement.delta_texts import with_delta

_HOVER = Hover(day_text, "epsilon", format_rounded_up)


def spending_parts(
    rows: Sequence[ReleaseRecord], promise: PromiseTerms, publication: Publication, delta: Decimal | None
) -> Iterator[str]:
    """Yield charts and a table of the daily and the cumulative loss, with the caps of the promise.

    The losses of calibration draws count on the published days of their periods, and in the sums from the first day on.
    With a `delta` the cumulative loss at it is shown beside the sum of the losses.
    """
    days, with_periods = publication.separated(rows)
    losses, charges = day_losses(rows), publication.draws
    if not losses:
        return
    by_day = covered_losses(day_losses(days), with_periods.charges)
    first, last = date.fromisoformat(min(by_day)), date.fromisoformat(max(by_day))
    all_days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    spent = [losses.get(str(day), 0) for day in all_days]
    of_days = [by_day[day] + charge_on(charges, day) if day in by_day else 0 for day in map(str, all_days)]
    sums = [*accumulate(spent, initial=total_charge(charges))][1:]
    draws = ", calibration draws included" if charges else ""
    on_days = f"at most {format_rounded_up(to_float(max(of_days)))} per day{draws}"
    in_total = f"{format_rounded_up(to_float(sums[-1]))} in total{draws}"
    totals = {"spent": sums}
    if delta is not None:
        at_delta, text = _totals_at(delta, rows, publication, all_days), with_powers(with_delta(f"{delta:f}"))
        totals = {"sum of the losses": sums, f"epsilon{text}": at_delta}
        in_total += f"; {format_rounded_up(to_float(at_delta[-1]))}{text}"
    at_delta_text = with_powers(with_delta(promise.delta))
    so_far = _chart("Composed loss so far", all_days, totals, promise.epsilon_total, (in_total, at_delta_text))
    released = [loss for loss in of_days if loss]
    if constant_value(released) is not None:
        yield paragraph(_constant_text(released, len(all_days), draws, promise.max_day_epsilon))
        if len(all_days) > 1:
            yield so_far
    else:
        of_day = _chart("Loss of each day", all_days, {"spent": of_days}, promise.max_day_epsilon, (on_days, ""))
        yield side_by_side([of_day, so_far])
    yield _month_table(all_days, spent, totals)


def _constant_text(losses: Sequence[int], days: int, draws: str, cap: str) -> str:
    """Return the sentence on equal losses of the released days [nano-epsilon] among `days` days."""
    of_days = "The released day has" if len(losses) == 1 else f"Each of the {len(losses):,} released days has"
    without = days - len(losses)
    skipped = f"; the {without:,} other days in between have none" if without > 1 else ""
    skipped = "; the day without a release in between has none" if without == 1 else skipped
    permitted = "the promise sets no limit" if cap == "unlimited" else f"the promise permits {cap} per day"
    return f"{of_days} a loss of epsilon {format_rounded_up(to_float(losses[0]))}{draws}{skipped}; {permitted}."


def _totals_at(
    delta: Decimal, rows: Sequence[ReleaseRecord], publication: Publication, all_days: Sequence[date]
) -> list[int]:
    """Return the loss of all rows up to each day, and of the calibration draws, at a delta [nano-epsilon]."""
    growing = growing_span(SpanCurves(publication), rows, publication, None)
    epsilons = dict(zip(growing.days, growing.largest_so_far(delta), strict=True))
    return [*accumulate((epsilons.get(day.toordinal(), 0) for day in all_days), max)]


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
        Line(name, positions, [to_float(value) for value in values], style=style, steps=len(days) > 1)
        for style, (name, values) in enumerate(losses.items())
    ]
    levels = [Level(f"cap of the promise, {cap}{at_delta}", limit) for limit in caps]
    y = linear_axis([*(to_float(max(values)) for values in losses.values()), *caps], zero=True)
    cap_text = f"the promise permits {cap}{at_delta}" if caps else "the promise sets no limit"
    description = f"Epsilon by day of the data: {amount_text}; {cap_text}."
    x = date_axis(days[0], days[-1])
    return chart(title, description, [*lines, *levels, _HOVER], x=x, y=y, y_title="epsilon", height=170)


def _month_table(all_days: Sequence[date], spent: Sequence[int], totals: Mapping[str, Sequence[int]]) -> str:
    months = by_month(range(len(all_days)), all_days.__getitem__)
    rows = []
    for month, indices in months.items():
        losses = [spent[i] for i in indices]
        epsilons = map(to_float, (max(losses), sum(losses), *(values[indices[-1]] for values in totals.values())))
        rows.append((month, f"{sum(loss > 0 for loss in losses)}", *map(format_rounded_up, epsilons)))
    so_far = ["so far"] if len(totals) == 1 else [f"so far, {name}" for name in totals]
    return table("The same by month: epsilon", ("month", "days", "largest day", "month", *so_far), rows)
