"""w-event privacy: a bound on the loss of any window of consecutive days.

Decisions. A day without a release counts as loss 0, so that a window never skips it. A day that is released late is
checked in all windows that contain it, those of later days among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import repeat
from typing import Annotated, ClassVar, Final, Literal, Self, get_args

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
    NoiseExample,
    NotionText,
    OwnBound,
    day_losses,
    name_at_delta,
)
from agedp_data.notions.publication import Alternative, Comparison, Publication, largest_window, promise_keys
from agedp_data.notions.spans import SpanLoss, stated_deltas
from agedp_data.parameters import Days, Epsilon, wrong

Spend = Literal["even", "remaining"]
_WEEK: Final = 7


class WEvent(EnforcedPromise):
    r"""Every window of `window_days` consecutive days of the data spends at most `epsilon_per_window` [epsilon].

    .. math:: \sum_{k=t}^{t+w-1} \varepsilon_k \le \varepsilon \quad \text{for every day } t

    Neighbouring datasets differ in the readings of one household on days within one window of w days. An event of m
    days is covered by ceil(m/w) windows, whose losses add up.

    Source: Kellaris et al., Theorem 3. `spend` = "even" gives each day 1/w of the bound, "remaining" half of the loss
    that its fullest window has left (the budget distribution of the paper).

    References:
        Kellaris, Papadopoulos, Xiao, Papadias: Differentially Private Event Sequences over Infinite Streams. PVLDB 7,
        2014. https://doi.org/10.14778/2732977.2732989
    """

    name: ClassVar[str] = "w-event"
    slides: ClassVar[bool] = True
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="epsilon_per_window",
        own_bound=OwnBound("window of {window_days} days", "window of {window_days} days"),
        examples=(
            NoiseExample(
                "epsilon {e} for any {window_days} consecutive days",
                {"window_days": "7", "epsilon_per_window": "{e}", "spend": '"even"'},
            ),
        ),
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
    """Epsilon of a day: an equal part of the window's, or half of what the window has left."""

    @model_validator(mode="after")
    def _first_day_fits(self) -> Self:
        first = min(self.planned_loss(DayLosses(), "2000-01-01", None), self.day_cap)
        if first == 0:
            raise wrong("is too little for the window: a day's part rounds to nothing", "epsilon_per_window")
        if self.delta is None:
            refuse_day_above_caps(self, first, "epsilon_per_window")
        elif self.spend == "remaining":
            raise wrong('must be "even" where delta is promised: halves of what remains would not end', "spend")
        return self

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps and the window's epsilon, which without `delta` no day exceeds either."""
        window = floor_nano(self.epsilon_per_window)
        of_window = WindowLoss(self.window_days).bound_name
        if self.delta is not None:
            return {**super().limits, of_window: None, name_at_delta(of_window, self.delta): window}
        return {**super().limits, DAY_BOUND: min(self.day_cap, window), of_window: window}

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
        if self.spend == "even" and not self.charges:  # no window is ever fuller
            return repeat(floor_nano(self.epsilon_per_window) // self.window_days, len(days))
        return super().losses_in_order(days, leakage_bound)

    def _equal_loss(self, day: str, delta: Decimal) -> int:
        """Return the largest loss that each day of a window can have beside the draws near `day` [nano-epsilon]."""
        draws = self._curves.draws_near(day, self.window_days)
        window = floor_nano(self.epsilon_per_window)
        return self._curves.equal_loss(self.window_days, epsilon=window, delta=delta, cap=self.day_cap, beside=draws)

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
        rules = get_args(Spend) if comparison.promise.delta is None else ("even",)
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
