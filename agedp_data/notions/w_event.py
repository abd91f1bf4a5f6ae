"""w-event privacy: a bound on the loss of any window of consecutive days.

Decisions. A day without a release counts as loss 0, so that a window never skips it. A day that is released late is
checked in all windows that contain it, those of later days among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import repeat
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import model_validator

from agedp_data.accounting.temporal_allocation import largest_feasible
from agedp_data.amendment_rules import LOWER, RAISE
from agedp_data.epsilon import floor_nano
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.classical import refuse_day_above_caps
from agedp_data.notions.enforcement import EnforcedPromise, refuse_above
from agedp_data.notions.notion import (
    DAY_BOUND,
    Accountant,
    DayLosses,
    HistoryRow,
    LossBound,
    Losses,
    NotionText,
    OwnBound,
    day_losses,
    name_at_delta,
)
from agedp_data.notions.publication import Alternative, Comparison, Publication, largest_window, promise_keys
from agedp_data.notions.spans import SpanLoss, stated_deltas
from agedp_data.parameters import Days, Epsilon, wrong
from agedp_data.series.series_terms import days_of

Spend = Literal["even", "remaining", "per-row"]
_WEEK: Final = 7
_MONTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_YEAR: Final = sum(_MONTHS)


@lru_cache(maxsize=256)
def rows_of_a_window(row_days: int, window_days: int) -> int:
    r"""Return how many rows of a series a window touches at most; use it to divide the window's epsilon among them.

    .. math:: 1 + \max \{k : \text{the first days of } k \text{ rows in a row lie within } w - 1 \text{ days}\}

    Source: counted; a window touches the most rows where it begins on the last day of one. Every year counts 365
    days, so that no window touches more.

    Args:
        row_days: days that a row covers: 1, 7 of a week, 28 to 31 of a month, 365 or 366 of a year [days].
        window_days: length w of the window [days].

    >>> [rows_of_a_window(31, window) for window in (7, 29, 30, 366)]  # 31 January and 1 March are 30 days
    [2, 2, 3, 13]
    """
    if row_days <= _WEEK:
        return 1 + -(-(window_days - 1) // row_days)
    lengths = _MONTHS if row_days < _YEAR else (_YEAR,)
    first_days = 0
    while _shortest(lengths, first_days) < window_days - 1:
        first_days += 1
    return 1 + first_days


def _shortest(lengths: Sequence[int], number: int) -> int:
    """Return the fewest days of so many periods in a row; of their lengths one follows the other, in a circle."""
    whole, rest = divmod(number, len(lengths))
    circle = [*lengths, *lengths]
    return whole * sum(lengths) + min(sum(circle[begin : begin + rest]) for begin in range(len(lengths)))


class WEvent(EnforcedPromise):
    r"""Every window of `window_days` consecutive days of the data spends at most `epsilon_per_window` [epsilon].

    .. math:: \sum_{k=t}^{t+w-1} \varepsilon_k \le \varepsilon \quad \text{for every day } t

    Neighbouring datasets differ in the readings of one household on days within one window of w days. An event of m
    days is covered by ceil(m/w) windows, whose losses add up.

    Source: Kellaris et al., Theorem 3. `spend` = "even" gives each day 1/w of the bound, "remaining" half of the loss
    that its fullest window has left (the budget distribution of the paper). "per-row" gives a row about a week, month
    or year an equal part for each such row that a window can touch, where "even" gives it that of a single day.

    References:
        Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7,
        2014. https://doi.org/10.14778/2732977.2732989
    """

    name: ClassVar[str] = "w-event"
    slides: ClassVar[bool] = True
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="epsilon_per_window",
        own_bound=OwnBound("window of {window_days} days", "window of {window_days} days"),
        typed=("window_days",),
        proposals={"window_days": "7", "epsilon_per_window": "1"},
        takes_delta=True,
        credit_remedy="a window_days below the number of days",
    )

    notion: Literal["w-event"]
    window_days: Annotated[Days, RAISE]
    """Length of the window, in days."""
    epsilon_per_window: Annotated[Epsilon, LOWER]
    """Epsilon of any `window_days` consecutive days."""
    spend: Spend
    """Epsilon of a day: an equal part of the window's, or half of what the window has left; "per-row": of a row about
    several days, an equal part for each row that a window touches."""

    @model_validator(mode="after")
    def _first_day_fits(self) -> Self:
        first = min(self.planned_loss(DayLosses(), "2000-01-01", None), self.day_cap)
        if first == 0:
            raise wrong("is too little for the window: a day's part rounds to nothing", "epsilon_per_window")
        if self.delta is None:
            refuse_day_above_caps(self, first, "epsilon_per_window")
        elif self.spend == "remaining":
            raise wrong('must not be "remaining" where delta is promised: halves of it would not end', "spend")
        return self

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps and the window's epsilon, which without `delta` no day exceeds either."""
        window = floor_nano(self.epsilon_per_window)
        of_window = WindowLoss(self.window_days).bound_name
        if self.delta is not None:
            return {**super().limits, of_window: None, name_at_delta(of_window, self.delta): window}
        return {**super().limits, DAY_BOUND: min(self.day_cap, window), of_window: window}

    @property
    def row_remedy(self) -> str:
        """Return the rule for rows about several days, where they have the part of a single day."""
        if self.spend != "even" or not self._publication.has_periods:
            return ""
        return 'spend = "per-row", with which a row has its part of the window, where "even" gives it that of one day'

    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return a window_days-th of the window's epsilon, or half of the budget that the fullest window has left.

        Around a calibration its draws come first: a window has w equal parts of the rest at most.
        With `delta` the rule is that of `planned_after`.
        """
        del leakage_bound
        window = floor_nano(self.epsilon_per_window)
        spent, draws = self._fullest_window(losses, day), self._fullest_window({}, day)
        available = max(0, window - spent)
        if self.spend == "remaining":
            return available // 2
        return min(available, max(0, window - draws) // self.window_days)

    def planned_period(
        self, history: Sequence[HistoryRow], first: date, last: date, leakage_bound: LeakageBoundLike | None
    ) -> int:
        """Return the loss of which a row about several days may have its share; for "per-row" see `rows_of_a_window`.

        Whatever else has spent of the windows that it touches, the promise admits no more than they have left.
        """
        if self.spend != "per-row":
            return super().planned_period(history, first, last, leakage_bound)
        rows = rows_of_a_window((last - first).days + 1, self.window_days)
        covered = [day.isoformat() for day in days_of(first, last)][: None if self.charges else 1]
        limit = min(map(self.day_limit, covered))
        if self.delta is not None:
            return min(limit, *(self._equal_loss(day, self.delta, rows) for day in covered))
        around = (first.isoformat(), last.isoformat())
        draws = largest_window({}, days=self.window_days, events=self.charges, around=around)
        return min(limit, max(0, floor_nano(self.epsilon_per_window) - draws) // rows)

    def _fullest_window(self, losses: Mapping[str, int], day: str) -> int:
        """Return the largest loss of a window that contains a day, with the draws that touch it."""
        return largest_window(losses, days=self.window_days, events=self.charges, around=(day, day))

    def planned_after(self, history: Sequence[HistoryRow], day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the planned loss of `day` [nano-epsilon]; with `delta` of equal losses at (epsilon, delta).

        If the windows around the day have less left, it is the largest loss that they permit.
        """
        if self.delta is None:
            return super().planned_after(history, day, leakage_bound)
        equal = min(self.day_limit(day), self._equal_loss(day, self.delta))
        return largest_feasible(self._window_permits(history, day), equal)

    def losses_in_order(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> Iterable[int]:
        """Return equal parts of the window's epsilon, of its rest beside draws, or halves of what the window leaves."""
        if self.delta is not None:
            return (self._equal_loss(day, self.delta) for day in days)
        if self.spend != "remaining" and not self.charges:  # no window is ever fuller
            return repeat(floor_nano(self.epsilon_per_window) // self.window_days, len(days))
        return super().losses_in_order(days, leakage_bound)

    def _equal_loss(self, day: str, delta: Decimal, rows: int | None = None) -> int:
        """Return the largest loss that each day of a window, or so many rows, can have beside the draws near `day`."""
        draws = self._curves.draws_near(day, self.window_days)
        number, window = rows or self.window_days, floor_nano(self.epsilon_per_window)
        return self._curves.equal_loss(number, epsilon=window, delta=delta, cap=self.day_cap, beside=draws)

    def _window_permits(self, history: Sequence[HistoryRow], day: str) -> Callable[[int], bool]:
        """Return whether every window around a day permits a loss of the whole day."""
        window = floor_nano(self.epsilon_per_window)
        windows = self._curves.windows(history, self.window_days, around=(day, day), without=day)
        return lambda loss: windows.largest(self.delta, self._curves.of_planned_day(loss)) <= window

    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if a window that contains the day, before or after it, would spend too much."""
        del leakage_bound
        spent = self.largest_window(history, new_row, days=self.window_days, delta=self.delta)
        bound = ("epsilon_per_window", floor_nano(self.epsilon_per_window))
        refuse_above(new_row.day, f"a window of {self.window_days} days{self.at_delta}", spent, bound)

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day, the total, and the largest loss of a window."""
        windows = WindowLoss(self.window_days, self._publication).bounds(history, leakage_bound, at)
        deltas = () if self.delta is None else stated_deltas(self.delta)
        spans = (SpanLoss(self._publication, delta, self.window_days, self._curves) for delta in deltas)
        at_deltas = [bound for span in spans for bound in span.bounds(history, None, None)]
        return [*self.cap_bounds(history), *windows, *at_deltas]

    def exceeded_spans(self, history: Sequence[HistoryRow]) -> Mapping[str, str]:
        """Return the keys of bounds that the released days exceed, of all days or of a window, each with the reason."""
        exceeded = dict(super().exceeded_spans(history))
        window = floor_nano(self.epsilon_per_window)
        spent = self._curves.windows(history, self.window_days).largest(self.delta)
        if spent > window:
            keys = self.exceeded_span("epsilon_per_window", spent, window)
            exceeded |= keys | ({} if self.delta is None else {"window_days": keys["delta"]})
        return exceeded

    def charged_limits(self) -> Iterator[tuple[str, int, int]]:
        """Yield the caps and the window's epsilon, each with the draws that take a part of it."""
        yield from super().charged_limits()
        if self.delta is None:
            yield "epsilon_per_window", self.charge_of_windows(self.window_days), floor_nano(self.epsilon_per_window)

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return the rules for spending a window's epsilon, for the promised window, that of [compare], or a week.

        With `delta` each day has an equal loss.
        """
        promised = comparison.promise if isinstance(comparison.promise, cls) else None
        days = promised.window_days if promised else comparison.window_days or _WEEK
        rules = ("even", "remaining") if comparison.promise.delta is None else ("even",)
        spends = sorted(rules, key=lambda spend: promised is not None and spend != promised.spend)
        return tuple(
            Alternative(f"{days} days, {spend}", promise_keys("epsilon_per_window", window_days=days, spend=spend))
            for spend in spends
        )

    @classmethod
    def comparison_accountants(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the accountant of the window of [compare], by default a week, unless that window is promised."""
        days = comparison.window_days or _WEEK
        promised = comparison.promise.window_days if isinstance(comparison.promise, cls) else None
        return () if days == promised else (WindowLoss(days, comparison.publication),)


@dataclass(frozen=True, slots=True)
class WindowLoss:
    r"""Accountant of the w-event loss: the largest sum over `window_days` consecutive days of the data.

    .. math:: \max_t \sum_{k=t}^{t+w-1} \varepsilon_k

    A calibration draw is in each window that touches its period, once (`largest_window`).

    Source: Kellaris et al., as in `WEvent` [nano-epsilon].

    References:
        Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7,
        2014. https://doi.org/10.14778/2732977.2732989
    """

    window_days: int
    publication: Publication = field(default=Publication(), hash=False)
    name: ClassVar[str] = "w-event"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest sum over windows."""
        del leakage_bound, at
        rows, events = self.publication.parted(history)
        value = largest_window(day_losses(rows), days=self.window_days, events=events)
        about = f"any {self.window_days} consecutive days of one household"
        return [LossBound(self.bound_name, value, "assumption-free", about)]

    @property
    def bound_name(self) -> str:
        """Return the name of the bound."""
        return f"window of {self.window_days} days"
