"""Enforcement of a promise, the same for every notion: the caps first, then the notion's own rule.

Calibration draws count like releases (`publication`): a day of their periods has less of its limit left, all days have
less of `epsilon_total`, and each notion leaves room for them in its own bound. Draws that leave nothing are refused
before they are drawn (`check_charges_fit`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, Self, TypeVar

from pydantic import PrivateAttr

from agedp_data.epsilon import format_delta, format_epsilon
from agedp_data.errors import ChainError, Refused
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import (
    ASSUMPTION_FREE,
    CALIBRATION_DAY_BOUND,
    DAY_BOUND,
    TOTAL_BOUND,
    DayLosses,
    HistoryRow,
    LossBound,
    Losses,
    LossMeter,
    Promise,
    Remembered,
)
from agedp_data.notions.publication import (
    Events,
    Publication,
    charge_on,
    covered_losses,
    format_periods,
    largest_day,
    largest_window,
    share_of,
    total_charge,
)
from agedp_data.notions.spans import SpanCurves, SpanLoss
from agedp_data.series.series_terms import days_of

# --------------------------------------------------------------------------------------------------
# The bounds that the caps of every promise are about: the largest loss of a day, and the sum over all days.
# --------------------------------------------------------------------------------------------------


def is_total_at_delta(name: str) -> bool:
    """Return whether a bound is the (epsilon, delta) bound of all days.

    Source: text, as `name_at_delta`.

    Args:
        name: name of a bound.

    >>> is_total_at_delta("total (delta 1e-6)"), is_total_at_delta("total")
    (True, False)
    """
    return name.startswith(f"{TOTAL_BOUND} (delta ")


def own_bound_name(limits: Mapping[str, int | None]) -> str:
    """Return the bound that a promise limits in addition to a day's loss and the total; "" if there is none.

    Source: data structure, without a formula.

    Args:
        limits: upper bounds over future releases by name [nano-epsilon], None if unlimited.

    >>> own_bound_name({"day": 5, "total": None, "window of 7 days": None, "window of 7 days (delta 1e-6)": 9})
    'window of 7 days (delta 1e-6)'
    """
    caps = (DAY_BOUND, TOTAL_BOUND)
    own = (name for name, limit in limits.items() if limit is not None and name not in caps)
    return next((name for name in own if not is_total_at_delta(name)), "")


def spent_bounds(losses: Mapping[str, int], events: Events = ()) -> list[LossBound]:
    r"""Return the assumption-free bounds of every notion: the largest loss of a day, and the sum over all days.

    .. math:: \max_d \Bigl[ \varepsilon_d + \sum_{i:\, d \in P_i} e_i \Bigr], \qquad
        \sum_d \varepsilon_d + \sum_i e_i

    With draws e_i about the periods P_i the first is over published days; a third bound is over the days of all P_i,
    published or not, which no cap of the promise limits where nothing is published.

    Source: sequential composition, [A] Proposition 2, as `day_losses` and `publication`.

    Args:
        losses: loss of each day [nano-epsilon].
        events: calibration draws, and released rows that cover several days.

    >>> [bound.value for bound in spent_bounds({"2013-01-01": 5, "2013-01-02": 7})]
    [7, 12]
    >>> from agedp_data.notions.publication import Event
    >>> draw = Event("2012-01-01", "2013-01-01", 4)
    >>> [bound.value for bound in spent_bounds({"2013-01-01": 5, "2013-01-02": 7}, (draw,))]
    [9, 16, 9]
    """
    draws = tuple(event for event in events if event.kind == "draw")
    total, losses = sum(losses.values()) + total_charge(events), covered_losses(losses, events)
    days, beside = ("any one published day", ", and all its days of the calibration") if draws else ("any one day", "")
    bounds = [
        LossBound(DAY_BOUND, largest_day(losses, draws), ASSUMPTION_FREE, f"{days} of one household"),
        LossBound(TOTAL_BOUND, total, ASSUMPTION_FREE, f"all published days of one household{beside}"),
    ]
    if draws:
        in_periods = {day: loss for day, loss in losses.items() if charge_on(draws, day)}
        scope = f"any one day of one household from {format_periods(draws)}, published or not"
        value = largest_window(in_periods, days=1, events=draws)
        bounds.append(LossBound(CALIBRATION_DAY_BOUND, value, ASSUMPTION_FREE, scope))
    return bounds


# --------------------------------------------------------------------------------------------------
# Every promise: its caps, then the rule of the notion.
# --------------------------------------------------------------------------------------------------

_Answer = TypeVar("_Answer")


class ModelCache(Remembered, dict[int, _Answer]):
    """Solutions under models, by `id` of the model; each entry holds its model, so that its id is not used again."""


class EnforcedPromise(Promise, ABC):
    """A promise that sets the loss of each day and refuses what would break it."""

    _day_losses: LossMeter = PrivateAttr(default_factory=LossMeter)
    _curves: SpanCurves = PrivateAttr(default_factory=lambda: SpanCurves(Publication()))
    _solutions: ModelCache[Any] = PrivateAttr(default_factory=ModelCache)
    """What a notion solved under a model, for these calibration draws."""

    def for_publication(self, publication: Publication) -> Self:
        """Return this promise over what is published; with other draws it is solved anew under every model."""
        promise = super().for_publication(publication)
        parts = {name: promise.part_of_day(name, share_of(series)) for name, series in publication.series.items()}
        is_pure = promise.delta is None
        if not promise._curves.are_of(publication, parts, is_pure=is_pure):
            promise._curves = SpanCurves(publication, parts, is_pure=is_pure)
        if publication.charges != self.charges:
            promise._solutions = ModelCache()
        if publication.has_periods or self._publication.has_periods:
            promise._day_losses = LossMeter(publication)
        return promise

    def day_losses(self, history: Sequence[HistoryRow]) -> DayLosses[str]:
        """Return the loss of each day by rows about it alone [nano-epsilon]; it changes with the next question."""
        return self._day_losses.read(history).losses

    def events(self, history: Sequence[HistoryRow]) -> Events:
        """Return the calibration draws, and the rows of a history that cover several days."""
        return (*self.charges, *self._day_losses.read(history).periods)

    def ended(self, history: Sequence[HistoryRow]) -> Mapping[str, str]:
        """Return the UTC instant at which the input of each day ended that a released row is named by."""
        return self._day_losses.read(history).ended

    def names_day(self, history: Sequence[HistoryRow], day: str) -> bool:
        """Return whether a released row of a history is named by a day."""
        return day in self.ended(history)

    @property
    def charge(self) -> int:
        """Return the loss of all calibration draws together [nano-epsilon]."""
        return total_charge(self.charges)

    def charge_on(self, day: str) -> int:
        """Return the loss of the calibration draws about a day [nano-epsilon]."""
        return charge_on(self.charges, day)

    def day_limit(self, day: str) -> int:
        """Return the loss that the releases of a day may have [nano-epsilon]: its limit, less the draws about it."""
        return self._day_key[1] - self.charge_on(day)

    @property
    def _day_key(self) -> tuple[str, int]:
        """Return the key and the value of the limit of a day; without draws the notion's own rule is stricter."""
        limit = self.limits[DAY_BOUND] if self.charges else self.day_cap
        if limit is None or limit >= self.day_cap:
            return "max_day_epsilon", self.day_cap
        return self.TEXT.epsilon_key, limit

    def cap_bounds(self, history: Sequence[HistoryRow]) -> list[LossBound]:
        """Return the largest loss of a day and the total, the calibration draws among them; with `delta` at it too."""
        bounds = spent_bounds(self.day_losses(history), self.events(history))
        if self.delta is None:
            return bounds
        return [*bounds, *SpanLoss(self._publication, self.delta, curves=self._curves).bounds(history, None, None)]

    def total(self, history: Sequence[HistoryRow], new_row: HistoryRow | None = None) -> int:
        """Return the loss of all rows and draws that `epsilon_total` bounds [nano-epsilon], at `delta` if promised."""
        return self._curves.total(history, with_row=new_row).epsilon(self.delta)

    def fits_total(self, history: Sequence[HistoryRow], day: str, loss: int) -> bool:
        """Return whether `epsilon_total` permits this loss of the whole of `day` [nano-epsilon], beside other days."""
        if self.total_cap is None:
            return True
        others = self._curves.total(history, without=day)
        return (others + self._curves.of_planned_day(loss)).epsilon(self.delta) <= self.total_cap

    def permits_days(self, losses: Sequence[int]) -> bool:
        """Return whether `epsilon_total` permits days with these losses [nano-epsilon] beside the draws."""
        if self.total_cap is None or sum(losses) + self.charge <= self.total_cap:
            return True
        days = (self._curves.of_planned_day(loss).times(number) for loss, number in Counter(losses).items())
        return self.delta is not None and sum(days, self._curves.draws).epsilon(self.delta) <= self.total_cap

    @property
    def at_delta(self) -> str:
        """Return the promised delta for messages about sums over several days, "" without one."""
        return "" if self.delta is None else f" (delta {format_delta(self.delta)})"

    def losses_with(self, history: Sequence[HistoryRow], new_row: HistoryRow) -> Losses:
        """Return the loss of each day by rows about it alone if `new_row`, a released row, came to the history."""
        return self._day_losses.read(history).losses_with(new_row)

    def events_with(self, history: Sequence[HistoryRow], new_row: HistoryRow) -> Events:
        """Return `events(history)`, and `new_row` if it covers several days."""
        period = self._publication.period_of(new_row)
        return self.events(history) if period is None else (*self.events(history), period)

    def largest_day(self, history: Sequence[HistoryRow], new_row: HistoryRow, *, with_draws: bool = True) -> int:
        """Return the largest loss of a day that `new_row` covers, with it and, if asked, the draws about that day."""
        return self.largest_window(history, new_row, days=1, delta=None, with_draws=with_draws)

    def largest_window(
        self,
        history: Sequence[HistoryRow],
        new_row: HistoryRow,
        *,
        days: int,
        delta: Decimal | None,
        with_draws: bool = True,
    ) -> int:
        """Return the largest loss of a window that contains a day of `new_row`, with it [nano-epsilon]."""
        around = self._publication.covered_days(new_row)
        windows = self._curves.windows(history, days, around=around, with_draws=with_draws)
        return windows.largest(delta, self._curves.of_row(new_row))

    @abstractmethod
    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the loss that the notion plans for `day` as a whole [nano-epsilon], given the losses of other days."""

    def planned_after(self, history: Sequence[HistoryRow], day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the loss that the notion plans for `day` as a whole [nano-epsilon], after the rows of other days.

        For most notions it follows from their losses (`planned_loss`); caps are applied afterwards.
        """
        return self.planned_loss(self.day_losses(history).without(day), day, leakage_bound)

    @abstractmethod
    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Refuse `new_row` if with it the history breaks the rule of the notion; the caps hold already.

        Raises:
            Refused: the rule would be broken; the message has day, bound and excess.
        """

    @abstractmethod
    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the bounds of all released rows: the largest loss of a day, the total, and the notion's own."""

    def loss(
        self,
        history: Sequence[HistoryRow],
        day: str,
        leakage_bound: LeakageBoundLike | None,
        published_on: str | None = None,
    ) -> int:
        """Return the budget that `day` has left [nano-epsilon]; 0 once the series has ended.

        A day whose whole planned loss no longer fits in `epsilon_total` ends the series: the rest of the
        budget would pay for a release that is nothing but noise.
        """
        del published_on
        spent = self.day_losses(history).get(day, 0)
        planned = min(self.day_limit(day), self.planned_after(history, day, leakage_bound))
        if not self.fits_total(history, day, planned):
            return 0
        return max(0, planned - spent)

    def planned_series(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> list[int]:
        """Return the loss of each of `days`, if all are released in order, up to the end of the series [nano-epsilon].

        Use it where a whole series is judged before its first day: no history is built up day by day.

        Args:
            days: ISO dates, ascending.
            leakage_bound: the model's; None without one.
        """
        losses: list[int] = []
        for day, planned in zip(days, self.losses_in_order(days, leakage_bound), strict=False):  # a plan may end first
            loss = min(self.day_limit(day) if self.charges else self.day_cap, planned)
            if loss <= 0:
                break
            losses.append(loss)
        numbers = range(1, len(losses) + 1)
        return losses[: bisect_left(numbers, True, key=lambda number: not self.permits_days(losses[:number]))]

    def losses_in_order(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> Iterable[int]:
        """Return the losses that the notion plans for `days` in order [nano-epsilon], before the caps cut them.

        A notion overrides it where its plan is at hand.
        """
        losses = DayLosses[str]()
        for day in days:
            loss = min(self.day_cap, self.planned_loss(losses, day, leakage_bound))
            losses.put(day, loss)
            yield loss

    def planned_period(
        self, history: Sequence[HistoryRow], first: date, last: date, leakage_bound: LeakageBoundLike | None
    ) -> int:
        """Return the loss of which a row about several days may have its share [nano-epsilon].

        It is the smallest planned loss of a day that the row covers. Any window that the row touches contains one of
        these days, whose share is not spent otherwise. So the row fits where its days were released with the rest.
        """
        days = (day.isoformat() for day in days_of(first, last))
        return min(min(self.day_limit(day), self.planned_after(history, day, leakage_bound)) for day in days)

    def admit(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if `new_row` breaks a cap or the rule of the notion; a skipped day spends nothing."""
        if new_row.state != "released":
            return
        if new_row.loss < 0:
            raise Refused(f"{new_row.day}: a loss cannot be negative")
        refuse_above(new_row.day, "the day", self.largest_day(history, new_row), self._day_key)
        if self.total_cap is not None:
            what = f"the sum over all days{self.at_delta}"
            refuse_above(new_row.day, what, self.total(history, new_row), ("epsilon_total", self.total_cap))
        self.check(history, new_row, leakage_bound)

    def review(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Do nothing: without a model in the promise, what was admitted stays within it."""

    def check_charges(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if the calibration draws bring a bound above its limit, or leave nothing for a day.

        Use it before a draw, with the draw among the charges of the publication; then there may be no model yet. What
        was above a limit without draws, because the promise was tightened, is no reason.
        """
        if not self.charges:
            return
        limits, without = self.limits, self.for_publication(replace(self._publication, charges=()))
        spent = {bound.name: bound.value for bound in without.bounds(history, leakage_bound, None)}
        for bound in self.bounds(history, leakage_bound, None):
            limit, value = limits.get(bound.name), bound.value
            if limit is not None and value is not None and value > max(limit, spent[bound.name] or 0):
                raise Refused(
                    f"with calibration draws of {format_epsilon(self.charge)} the bound {bound.name!r} comes to "
                    f"{format_epsilon(value)}, more than {format_epsilon(limit)}. Lower the losses of the draws, or "
                    "raise the bound; nothing was drawn"
                )
        for key, charge, limit in self.charged_limits():
            if charge >= limit:
                raise Refused(
                    f"{key} = {format_epsilon(limit)} leaves nothing for a release beside calibration draws of "
                    f"{format_epsilon(charge)}. Lower the losses of the draws, or raise {key}; nothing was drawn"
                )
        for day in self._coming_days(history):
            budget = remaining = 0
            with suppress(ChainError, Refused):  # no model yet, and the budget follows from it
                budget, remaining = (each.loss(history, day, leakage_bound) for each in (without, self))
            if budget > 0 >= remaining:
                raise Refused(
                    f"calibration draws of {format_epsilon(self.charge)} leave nothing for {day}, which has "
                    f"{format_epsilon(budget)} without them. Lower the losses of the draws, or raise the bounds; "
                    "nothing was drawn"
                )

    def _coming_days(self, history: Sequence[HistoryRow]) -> set[str]:
        """Return the first day to be released, and the first ones in and after each period of a draw."""
        first = (self._publication.first_day or date(1, 1, 2)).isoformat()
        begin = max([first, *(next_day(row.day) for row in history)])
        last = (self._publication.last_day or date.max).isoformat()
        days = {begin, *(day for draw in self.charges for day in (draw.first_day, next_day(draw.last_day)))}
        return {day for day in days if begin <= day <= last}

    def charged_limits(self) -> Iterator[tuple[str, int, int]]:
        """Yield the keys of the promise of which draws take a part: key, loss of the draws, limit [nano-epsilon].

        The day's limit counts the draws about days to be released. A notion adds the keys of its own.
        """
        yield (*self._day_key[:1], self.charge_of_windows(1), self._day_key[1])
        if self.total_cap is not None:
            yield "epsilon_total", self._curves.draws.epsilon(self.delta), self.total_cap

    def charge_of_windows(self, days: int) -> int:
        """Return the largest loss of the draws in any window of so many days that contains a day to be released."""
        first, last = self._publication.first_day, self._publication.last_day
        around = ((first or date.min).isoformat(), (last or date.max).isoformat())
        return largest_window({}, days=days, events=self.charges, around=around)

    def violations(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> Mapping[str, str]:
        """Return {}: most bounds give later days a budget again, or are themselves the caps of the series."""
        del history, leakage_bound
        return {}

    def exceeded_spans(self, history: Sequence[HistoryRow]) -> Mapping[str, str]:
        """Return the keys of bounds over several days that the released days exceed, each with the reason.

        An amendment that lowers or removes delta must leave room for what is released. Without delta the bound is the
        sum of the pure losses, which a promise may have exceeded while it had one.
        """
        total = self.total(history)
        if self.total_cap is None or total <= self.total_cap:
            return {}
        return self.exceeded_span("epsilon_total", total, self.total_cap)

    def exceeded_span(self, key: str, value: int, limit: int) -> dict[str, str]:
        """Return delta, and with it the key of the bound, if a delta is promised, with the reason."""
        reason = (
            f"{key} = {format_epsilon(limit)}{self.at_delta} is below {format_epsilon(value)}, which the released days "
            "come to already"
        )
        return {"delta": reason} | ({} if self.delta is None else {key: reason})


def next_day(day: str) -> str:
    """Return the ISO date of the following day.

    Source: calendar arithmetic.

    Args:
        day: ISO date before the last one that there is.

    >>> next_day("2012-02-28")
    '2012-02-29'
    """
    return date.fromordinal(date.fromisoformat(day).toordinal() + 1).isoformat()


def refuse_above(day: str, what: str, value: int | None, bound: tuple[str, int]) -> None:
    """Refuse a value above a bound.

    Source: definition of a bound; the notion names the source of the value.

    Args:
        day: ISO date of the release.
        what: subject of the message.
        value: loss that the release would reach [nano-epsilon]; None is infinite.
        bound: key of [promise] and its value [nano-epsilon].

    Raises:
        Refused: the value exceeds the bound.
    """
    key, limit = bound
    if value is None:
        raise Refused(f"{day}: {what} would be infinite, {key} = {format_epsilon(limit)}")
    if value > limit:
        raise Refused(
            f"{day}: {what} would come to {format_epsilon(value)}, {format_epsilon(value - limit)} more than "
            f"{key} = {format_epsilon(limit)}"
        )
