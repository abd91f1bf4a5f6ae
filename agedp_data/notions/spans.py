"""What the releases of a span of days reveal in all, pure or at a delta: the curves of rows, and their sum.

Every row has a pure loss and a Rényi curve; both add up over rows, and of the figures at a delta the smaller counts.
Example: over a few days the pure sum is the smaller one, over a year the curve is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar, Final

import numpy as np

from agedp_data import mechanisms
from agedp_data.accounting import renyi
from agedp_data.accounting.temporal_allocation import largest_feasible
from agedp_data.epsilon import NANO
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import (
    ASSUMPTION_FREE,
    TOTAL_BOUND,
    HistoryMeter,
    HistoryRow,
    Kind,
    LossBound,
    Undo,
    name_at_delta,
    scope_at_delta,
)
from agedp_data.notions.publication import Event, Publication, Statistic, day_number, days_near, share_of, window_sums
from agedp_data.series.sensitivity import Change

# --------------------------------------------------------------------------------------------------
# Rényi curves of released rows by day of the data: what the (epsilon, delta) loss of a span of days is computed from.
#
# A household's readings of the days of a span change what is released about these days alone. So the curve of a span
# is the sum of the curves of its rows (`accounting.renyi`):
#
# * a row of values of which a household moves each by a bounded amount, together by the row's sensitivity, under noise
#   of the row's scale (`renyi.vector_curve`): one sum by all of it, counts by one each, half-hours by their clamp;
# * a row that covers several days: its curve, once in every span that touches its period;
# * a row of an unknown mechanism, and a calibration draw: randomised response with its loss. A draw counts once in
#   every span that touches its period (`publication`);
# * a day that is only planned: the rows that its loss would give to the series in force, by their shares.
#
# A household may also be free to change by a bounded amount a day only (`change`): then a row of a known series moves
# by its sensitivity to that change. Rows of unknown series and calibration draws count in full.
#
# Example: a year of releases with epsilon 0.1 a day comes to 36.5, and at delta = 1e-6 to 10.75.
# --------------------------------------------------------------------------------------------------

DISCRETE_LAPLACE: Final = "discrete-laplace"
_INT64_LIMIT: Final = 2.0**62


_NO_CURVE: Final = np.zeros(len(renyi.ORDERS), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Releases about some days: their Rényi curve [1e-12 epsilon] and the sum of their pure losses [nano-epsilon]."""

    curve: renyi.Curve
    pure: int

    def __add__(self, other: Span) -> Span:
        """Return both together: losses add up."""
        if other.curve is _NO_CURVE or self.curve is _NO_CURVE:
            return Span(self.curve if other.curve is _NO_CURVE else other.curve, self.pure + other.pure)
        return Span(_sum(self.curve, other.curve), self.pure + other.pure)

    def __neg__(self) -> Span:
        """Return what takes this span away again."""
        return Span(self.curve if self.curve is _NO_CURVE else -self.curve, -self.pure)

    def times(self, number: int) -> Span:
        """Return so many spans like this one."""
        return Span(renyi.multiply(self.curve, number), number * self.pure)

    def epsilon(self, delta: Decimal | None) -> int:
        """Return the loss at a delta, rounded up [nano-epsilon]; without one the sum of the pure losses."""
        return self.pure if delta is None else renyi.approximate_epsilon(self.curve, delta, pure=self.pure)


EMPTY: Final = Span(_NO_CURVE, 0)


def together(spans: Iterable[Span]) -> Span:
    """Return many spans together; the sum of none is empty.

    Source: `accounting.renyi`, curves add up.

    Args:
        spans: releases about some days each.
    """
    spans = list(spans)
    curves, pure = [span.curve for span in spans if span.curve is not _NO_CURVE], sum(span.pure for span in spans)
    if len(curves) <= 1:
        return Span(curves[0] if curves else _NO_CURVE, pure)
    return Span(renyi.compose(np.array(curves)), pure)


Parts = Mapping[str, Fraction]
"""Part of a day's loss by series (`Promise.part_of_day`)."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Releases in windows of days, at least one window."""

    spans: Sequence[Span]

    def largest(self, delta: Decimal | None, more: Span = EMPTY) -> int:
        """Return the largest loss of a window with `more` in it, at a delta, rounded up [nano-epsilon]."""
        pure = [span.pure + more.pure for span in self.spans]
        if delta is None:
            return max(pure)
        curves = np.array([span.curve for span in self.spans])
        return max(renyi.approximate_epsilons(_sum(curves, more.curve), delta, pure=pure))


class SpanCurves(HistoryMeter):
    """Span of each day of a growing history, of the rows about several days, and of all days.

    `parts` are the parts of a planned day's loss by series, by default their shares. `change` is what may happen to
    each day of a household. With `is_pure` losses are pure alone, as recorded or planned, and no curve is computed.
    """

    def __init__(
        self,
        publication: Publication,
        parts: Parts | None = None,
        *,
        change: Change = "replacement",
        is_pure: bool = False,
    ) -> None:
        super().__init__()
        self._publication, self._change, self._is_pure = publication, change, is_pure
        self._parts = (
            {name: share_of(series) for name, series in publication.series.items()} if parts is None else parts
        )
        self.days: dict[int, Span] = {}
        """Releases about each single day, by number of the day."""
        self.periods: list[tuple[int, int, Span]] = []
        """Releases about several days, with the numbers of the first and last one."""
        self._all = EMPTY
        self._windows_of = self._all
        self._windows: dict[tuple[object, ...], Windows] = {}
        self._draws = [
            (day_number(draw.first_day), day_number(draw.last_day), span_of(draw)) for draw in publication.charges
        ]
        self._equal_losses: dict[tuple[int, int, Decimal, int, tuple[int, ...]], int] = {}
        self._planned_day = 0, EMPTY

    def are_of(self, publication: Publication, parts: Parts, *, is_pure: bool) -> bool:
        """Return whether these are the curves of a publication with these parts."""
        return (publication, parts, is_pure) == (self._publication, self._parts, self._is_pure)

    @property
    def draws(self) -> Span:
        """Return all calibration draws together."""
        return sum((span for _, _, span in self._draws), EMPTY)

    def draws_near(self, day: str, days: int) -> Span:
        """Return the draws that are in a window of so many days around `day`, together."""
        number = day_number(day)
        near = (span for first, last, span in self._draws if first < number + days and last > number - days)
        return sum(near, EMPTY)

    def total(self, history: Sequence[HistoryRow], *, without: str = "", with_row: HistoryRow | None = None) -> Span:
        """Return all rows and draws together, without the rows of one day, or with a further row."""
        days = self.read(history).days
        total = self._all + self.draws
        if without and (own := days.get(day_number(without))):
            total += -own
        return total if with_row is None else total + self.of_row(with_row)

    def add(self, row: HistoryRow) -> Undo:
        """Add the span of a row to its day or to the periods."""
        span, before = self.of_row(row), self._all
        first, last = map(day_number, self._publication.covered_days(row))
        of_day = self.days.get(last) if first == last else None
        if first < last:
            self.periods.append((first, last, span))
        else:
            self.days[last] = (of_day or EMPTY) + span
        self._all = before + span
        return partial(self._take_back, last if first == last else None, of_day, before)

    def _take_back(self, day: int | None, of_day: Span | None, before: Span) -> None:
        self._all = before
        if day is None:
            del self.periods[-1]
        elif of_day is None:
            del self.days[day]
        else:
            self.days[day] = of_day

    def covered_ends(self, history: Sequence[HistoryRow]) -> set[int]:
        """Return the first and last days of all rows that cover several days, by number of the day."""
        return {end for first, last, _ in self.read(history).periods for end in (first, last)}

    def of_row(self, row: HistoryRow) -> Span:
        """Return the span of one row; a planned row without a series is a whole day."""
        if self._is_pure:
            return Span(_NO_CURVE, row.loss)
        if not row.series:
            return self.of_planned_day(row.loss)
        statistic = self._publication.statistic(row)
        if row.mechanism == DISCRETE_LAPLACE and row.scale > 0:
            if statistic is not None and self._change != "replacement" and not statistic.covers_periods:
                return self._moved(statistic, row.scale)
            return Span(_row_curve(row.sensitivity, row.scale, self._largest_move(statistic, row)), row.loss)
        if row.mechanism == "" and statistic is not None:
            return self._planned(statistic, row.loss)
        return Span(_unknown_curve(row.loss), row.loss)

    def of_planned_day(self, loss: int) -> Span:
        """Return the span of a day with this loss [nano-epsilon], divided among the series in force."""
        series = self._publication.series
        if not series or self._is_pure:
            return Span(_NO_CURVE if self._is_pure else _unknown_curve(loss), loss)
        if loss != self._planned_day[0]:  # one loss is asked about several times in a row
            spans = (self._planned(statistic, int(self._parts[name] * loss)) for name, statistic in series.items())
            self._planned_day = loss, together(spans)
        return self._planned_day[1]

    def _planned(self, statistic: Statistic, loss: int) -> Span:
        """Return the span of a row with at most this loss, with the scale that it would be drawn with."""
        if loss <= 0:
            return EMPTY
        return self._moved(statistic, _planned_scale(statistic.sensitivity("replacement"), loss))

    def _moved(self, statistic: Statistic, scale: float) -> Span:
        """Return the span of a row about a change of the day."""
        return _moved_row(statistic.sensitivity(self._change), scale, self._cell_move(statistic, self._change))

    def _largest_move(self, statistic: Statistic | None, row: HistoryRow) -> int:
        """Return the most that one cell of a row moves; of an unknown series one cell may move by all."""
        if statistic is None or statistic.covers_periods:
            return row.sensitivity
        return self._cell_move(statistic, "replacement")

    def _cell_move(self, statistic: Statistic, change: Change) -> int:
        if statistic.covers_periods:  # a sum over days moves by the moves of all of them
            return statistic.sensitivity(change)
        return statistic.largest_move(change, minutes=self._publication.interval_minutes)

    def equal_loss(self, days: int, *, epsilon: int, delta: Decimal, cap: int, beside: Span = EMPTY) -> int:
        r"""Return the largest loss of each of so many days that together stay within (epsilon, delta).

        .. math:: \max \{ e : \varepsilon_{w R(e) + B}(\delta) \le \varepsilon \}

        Args:
            days: number w of the days.
            epsilon: bound on all of them [nano-epsilon].
            delta: probability [-].
            cap: largest loss of a day [nano-epsilon].
            beside: what else is in the span, with curve B.

        Returns:
            Rounded down [nano-epsilon]; 0 if no loss fits.
        """
        key = days, epsilon, delta, cap, tuple(beside.curve.tolist())
        if key not in self._equal_losses:

            def fits(loss: int) -> bool:
                return (self.of_planned_day(loss).times(days) + beside).epsilon(delta) <= epsilon

            self._equal_losses[key] = largest_feasible(fits, cap)
        return self._equal_losses[key]

    def windows(
        self,
        history: Sequence[HistoryRow],
        days: int,
        *,
        around: tuple[str, str] | None = None,
        without: str = "",
        with_draws: bool = True,
    ) -> Windows:
        """Return windows of consecutive days such that every other one has no more in it than one of them.

        A release about day d is in the windows that begin from d - w + 1 to d, a draw in those that touch its period.
        So the windows that matter begin where a release or a draw comes in.

        Args:
            history: the rows.
            days: length w of the window [days].
            around: first and last day, ISO text, of a range; only windows that contain a day of it. None: all windows.
            without: a day, ISO text, whose rows are left out.
            with_draws: whether calibration draws are in them.
        """
        spans, left_out = self.read(history).days, day_number(without) if without else None
        if self._windows_of is not self._all:  # a sum of all rows is an object of one history alone
            self._windows_of, self._windows = self._all, {}
        key = days, around, left_out if left_out in spans else None, with_draws
        if key not in self._windows:
            self._windows[key] = Windows(self._window_sums(days, around, left_out, with_draws))
        return self._windows[key]

    def _window_sums(
        self, days: int, around: tuple[str, str] | None, left_out: int | None, with_draws: bool
    ) -> list[Span]:
        spans, span = self.days, None if around is None else (day_number(around[0]), day_number(around[1]))
        near = days_near(span, days=days, count=len(spans))
        numbers = (number for number in (spans if near is None else near) if number in spans)
        placed = [(number, number, spans[number]) for number in numbers if number != left_out]
        draws = self._draws if with_draws else []
        return window_sums([*draws, *self.periods, *placed], together, days=days, around=span) or [EMPTY]


def span_of(event: Event) -> Span:
    """Return the span of a calibration draw, or of a row that covers several days.

    Source: `accounting.renyi`; a draw is randomised response with its loss, a row a sum with Laplace noise.

    Args:
        event: the draw or row.
    """
    if event.scale > 0:  # sums alone cover several days
        return Span(_row_curve(event.sensitivity, event.scale, event.sensitivity), event.pure)
    return Span(_unknown_curve(event.pure), event.pure)


def _sum(curves: renyi.Curve, more: renyi.Curve) -> renyi.Curve:
    """Return the sum of curves, as Python integers where int64 may not hold it; the last order has the largest."""
    largest = float(curves[-1] if curves.ndim == 1 else curves[:, -1].max())
    if abs(largest) + abs(float(more[-1])) > _INT64_LIMIT:
        return np.asarray(curves.astype(object) + more.astype(object))
    return np.asarray(curves + more)


@lru_cache(maxsize=2**14)
def _row_curve(sensitivity: int, scale: float, largest_move: int) -> renyi.Curve:
    return renyi.vector_curve(sensitivity, largest_move=largest_move, scale=scale)


@lru_cache(maxsize=2**10)
def _unknown_curve(loss: int) -> renyi.Curve:
    return renyi.pure_curve(Fraction(loss, NANO)) if loss > 0 else _NO_CURVE


@lru_cache(maxsize=2**14)
def _planned_scale(sensitivity: int, loss: int) -> float:
    return mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(loss, NANO))


@lru_cache(maxsize=2**14)
def _moved_row(sensitivity: int, scale: float, largest_move: int) -> Span:
    if sensitivity == 0:
        return EMPTY
    recorded = mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)
    return Span(_row_curve(sensitivity, scale, largest_move), recorded)


# --------------------------------------------------------------------------------------------------
# The (epsilon, delta) loss of a span of days: what all releases together say about everything one household did.
#
# .. math:: \Pr[M(h) \in S] \le e^{\varepsilon} \Pr[M(h') \in S] + \delta \quad \text{for every set } S \text{ of
# results}
#
# for any two accounts h, h' of one household that differ on the days of the span alone. The figure follows from the
# rows of a ledger (sensitivity and scale) and assumes nothing about households. It holds in addition to the sum of the
# pure losses and never exceeds it.
#
# Decisions. Two deltas are always shown, so that nobody takes delta for a choice without a price. Up to about 14 days
# the pure sum is the smaller one; figures within a hundredth of it are not shown unless they are promised.
#
# [CKS] Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy. NeurIPS 2020.
# https://doi.org/10.48550/arXiv.2004.00010
# --------------------------------------------------------------------------------------------------

STANDARD_DELTAS: Final = (Decimal("1e-6"), Decimal("1e-9"))
YEAR: Final = 365


def bound_at_delta(name: str, value: int, kind: Kind, about: str, *, delta: Decimal, assumption: str = "") -> LossBound:
    """Return an (epsilon, delta) bound: its name and its scope say delta, and it bounds no change of odds by itself.

    Source: data structure, without a formula.

    Args:
        name: name of the bound of pure losses.
        value: its epsilon at delta [nano-epsilon].
        kind: its class.
        about: its scope.
        delta: probability [-].
        assumption: what it rests on, if it is conditional.
    """
    scope = scope_at_delta(about, delta)
    return LossBound(name_at_delta(name, delta), value, kind, scope, assumption, odds=False, delta=delta)


@dataclass(frozen=True, slots=True)
class SpanLoss:
    r"""Accountant of the (epsilon, delta) loss of any `days` consecutive days of the data, or of all days.

    .. math:: \max_t \varepsilon_{\sum_{k \in [t, t+w-1]} R^{(k)}}(\delta)

    Source: [CKS] Proposition 12 for the conversion; the window as in `WindowLoss` [nano-epsilon]. Calibration draws
    count once in every span that touches their period.

    References:
        [CKS] https://doi.org/10.48550/arXiv.2004.00010
    """

    publication: Publication = field(hash=False)
    delta: Decimal
    days: int | None = None
    curves: SpanCurves | None = field(default=None, hash=False)
    """Curves of the same history that another accountant has computed already."""
    name: ClassVar[str] = "span"

    @property
    def bound_name(self) -> str:
        """Return the name of the bound."""
        return name_at_delta(self._span_name, self.delta)

    @property
    def _span_name(self) -> str:
        return TOTAL_BOUND if self.days is None else f"window of {self.days} days"

    def epsilon(self, history: Sequence[HistoryRow]) -> int:
        """Return the loss at `delta`, rounded up [nano-epsilon]."""
        curves = self.curves or SpanCurves(self.publication)
        if self.days is None:
            return curves.total(history).epsilon(self.delta)
        return curves.windows(history, self.days).largest(self.delta)

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the bound of the span."""
        del leakage_bound, at
        return [self.bound_of(self.epsilon(history))]

    def bound_of(self, epsilon: int) -> LossBound:
        """Return the bound with a value [nano-epsilon]."""
        days = "all published days" if self.days is None else f"any {self.days} consecutive days"
        draws = ", and all its days of the calibration" if self.publication.charges and self.days is None else ""
        about = f"{days} of one household{draws}"
        return bound_at_delta(self._span_name, epsilon, ASSUMPTION_FREE, about, delta=self.delta)


def span_figures(
    history: Sequence[HistoryRow], publication: Publication, promised: Decimal | None = None
) -> list[LossBound]:
    """Return the (epsilon, delta) bounds that a statement shows, whether or not one is promised.

    They are those of all days and, where the days reach over more than a year, of any 365 days; at both standard deltas
    and at the promised one. Without a promised delta those that say something are shown: all deltas of a span for which
    one lies more than a hundredth below the pure sum.

    Source: `SpanLoss`.

    Args:
        history: rows of the ledger.
        publication: series of all contracts, and calibration draws.
        promised: the delta that is promised.

    Returns:
        Bounds without an assumption [nano-epsilon].
    """
    curves = SpanCurves(publication)
    numbers: Collection[int] = curves.read(history).days.keys()
    deltas = stated_deltas(promised)
    numbers = {*numbers, *curves.covered_ends(history)}
    reach = max(numbers, default=0) - min(numbers, default=0) + 1
    spans: list[int | None] = [None, *([YEAR] if numbers and reach > YEAR else [])]
    bounds: list[LossBound] = []
    for days in spans:
        pure = curves.total(history).pure if days is None else curves.windows(history, days).largest(None)
        losses = [SpanLoss(publication, delta, days, curves) for delta in deltas]
        values = [loss.epsilon(history) for loss in losses]
        if 100 * min(values) < 99 * pure or (promised is not None and days is None):
            bounds += [loss.bound_of(value) for loss, value in zip(losses, values, strict=True)]
    return bounds


def stated_deltas(promised: Decimal | None) -> tuple[Decimal, ...]:
    """Return the deltas of the figures of a statement, the largest first: the standard ones and the promised one.

    Source: data structure, without a formula.

    Args:
        promised: the delta that is promised; None for none.

    >>> [str(delta) for delta in stated_deltas(Decimal("1e-7"))]
    ['0.000001', '1E-7', '1E-9']
    """
    return tuple(sorted({*STANDARD_DELTAS, *([] if promised is None else [promised])}, reverse=True))
