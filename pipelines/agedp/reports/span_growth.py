"""LEDGER -> (epsilon, delta) bounds over spans of days by day of the data, from sums of Rényi curves. Public.

A window that ends on a day is the difference of two sums, so that a report on ten years takes as long as one bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate

import numpy as np

from agedp.release_folder.span_bounds import span_losses
from agedp.reports.axes import evenly_spaced
from agedp.reports.loss_over_time import POINTS, BoundKey, LossOverTime
from agedp_data.accounting.renyi import Curve, approximate_epsilons
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import day_number
from agedp_data.notions.publication import Publication
from agedp_data.notions.span_curves import EMPTY, SpanCurves, span_of_charge
from agedp_data.statement.document import StatedBound

_INT64_LIMIT = 2.0**62


@dataclass(frozen=True, slots=True)
class GrowingSpan:
    """Releases about the span of days up to each released day: numbers of the days, curves (n, 64), sums of losses."""

    days: tuple[int, ...]
    curves: Curve
    pure: tuple[int, ...]

    def largest_so_far(self, delta: Decimal) -> list[int]:
        """Return the largest loss at a delta of a span that ends on a day or before [nano-epsilon], by day."""
        return [*accumulate(approximate_epsilons(self.curves, delta, pure=self.pure), max)]


def growing_span(
    curves: SpanCurves, rows: Sequence[ReleaseRecord], publication: Publication, days: int | None
) -> GrowingSpan:
    """Return the last so many days up to each released day, or all of them, with the draws that touch them."""
    _, publication = publication.separated(rows)
    spans = curves.of(rows)
    periods = [draw for draw in publication.charges if draw.is_release]
    numbers = np.array(sorted({*spans, *(day_number(draw.last_day) for draw in periods)}))
    ordered = [spans.get(number, EMPTY) for number in numbers.tolist()]
    sums = _cumulative(np.array([span.curve for span in ordered]))
    pure_sums = [0, *accumulate(span.pure for span in ordered)]
    starts = numbers * 0 if days is None else numbers - days + 1
    begins = np.searchsorted(numbers, starts)
    totals = sums[1:] - sums[begins]
    pure = [last - pure_sums[begin] for last, begin in zip(pure_sums[1:], begins.tolist(), strict=True)]
    for draw in (draw for draw in publication.charges if draw.loss > 0):
        is_touched = (day_number(draw.last_day) >= starts) & ((days is None) | (day_number(draw.first_day) <= numbers))
        if draw.is_release:  # published with its last day
            is_touched = is_touched & (day_number(draw.last_day) <= numbers)
        totals = totals + is_touched[:, None] * span_of_charge(draw).curve
        pure = [loss + draw.loss * touched for loss, touched in zip(pure, is_touched.tolist(), strict=True)]
    return GrowingSpan(tuple(numbers.tolist()), totals, tuple(pure))


def _cumulative(curves: Curve) -> Curve:
    """Return the sums of no curve, the first, the first two, and so on."""
    is_small = curves.dtype != object and float(curves.max()) * len(curves) < _INT64_LIMIT
    exact = curves if is_small else curves.astype(object)
    return np.concatenate([exact[:1] * 0, np.cumsum(exact, axis=0)])


def spans_over_time(
    bounds: Sequence[StatedBound], rows: Sequence[ReleaseRecord], publication: Publication, *, points: int = POINTS
) -> dict[BoundKey, LossOverTime]:
    """Return the bounds of a statement over spans of days with a delta, after each of `points` days; as stated at last.

    A window that also touches a draw about later days is counted at the last of these days.
    """
    released = [row for row in rows if row.state == "released"]
    curves = SpanCurves(publication)
    over_time = {}
    for loss in span_losses(bounds, publication) if released else ():
        growing = growing_span(curves, released, publication, loss.days)
        values = growing.largest_so_far(loss.delta)
        [bound] = loss.bounds(released, None, None)
        values[-1] = bound.value or 0
        shown = evenly_spaced(range(len(values)), points)
        over_time[BoundKey(bound.name, bound.about, bound.assumption)] = LossOverTime(
            tuple(date.fromordinal(growing.days[index]).isoformat() for index in shown),
            tuple(values[index] for index in shown),
        )
    return over_time
