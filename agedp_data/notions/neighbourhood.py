"""delta-neighbourhood privacy: small changes of a day have a small loss, larger ones in proportion ([D]).

[D] is Fang and Chang, 2014. The loss of a change by at most delta sets the noise, bounded over windows of days of the
data. The recorded loss, which the caps bound and every other notion composes, is that of a change of any size: for a
mean clamp/delta times as much, so that max_day_epsilon often binds; then small changes lose less than the bound.

Decisions. Several series share the loss about small changes; each then has its own ratio to the full range. A histogram
has the same loss for a small change as for any (it may cross an edge), so nothing is gained on it. "per-request" is a
window_days-th of the window's epsilon; "offline" plans every day of a known period, skipped ones too, and never spends
more than the windows around a day have left. A day beyond such a plan gets the smallest planned loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import repeat
from math import ceil
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import PrivateAttr, model_validator

from agedp_data.amendment_rules import LOWER, RAISE
from agedp_data.epsilon import NANO, exact_text, floor_nano, format_epsilon
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.enforcement import EnforcedPromise, refuse_above
from agedp_data.notions.notion import (
    ASSUMPTION_FREE,
    Accountant,
    DayLosses,
    HistoryRow,
    LossBound,
    Losses,
    LossMeter,
    NotionText,
    OwnBound,
)
from agedp_data.notions.publication import (
    Alternative,
    Comparison,
    Publication,
    covered_losses,
    largest_day,
    largest_window,
    promise_keys,
    unavailable,
)
from agedp_data.notions.spans import SpanCurves, bound_at_delta, stated_deltas
from agedp_data.parameters import Days, Epsilon, Fraction01, PositiveKwh, watt_hours, wrong
from agedp_data.series.sensitivity import Move

# --------------------------------------------------------------------------------------------------
# Loss of released rows about a bounded change of a household's use of a day ([D]); assumption-free.
#
# A change of one day, of each day of a window, and, as an (epsilon, delta) bound, of every day: such as a new
# appliance.
# --------------------------------------------------------------------------------------------------


def small_losses(publication: Publication, size_wh: int) -> LossMeter:
    r"""Return the meter of the loss of each day about changes of at most `size_wh`.

    The parts of a day's rows add up exactly, and the day is rounded up.

    .. math:: \varepsilon_d(x) = \Bigl\lceil \sum_{k \in d} \varepsilon_k \frac{\Delta f_k(x)}{\Delta f_k} \Bigr\rceil

    Source: [D], as in `Neighbourhood`; exact fractions, rounded up to whole [nano-epsilon].

    Args:
        publication: the series of all contracts.
        size_wh: size of the change [Wh].
    """
    parts: dict[tuple[str, str], Fraction] = {}

    def part_of(row: HistoryRow) -> Fraction:
        key = row.contract, row.series
        if key not in parts:
            parts[key] = publication.part(row, size_wh)
        return parts[key]

    return LossMeter(publication, part_of)


@dataclass(frozen=True, slots=True)
class BoundedChangeLoss:
    """Accountant of the loss about a change by at most `size_kwh` of a household's day, and of a window of days.

    Calibration draws and rows that cover several days count in full, whatever the size (`publication`).

    Source: [D], as in `Neighbourhood`; losses in [nano-epsilon].
    """

    size_kwh: Decimal
    publication: Publication = field(hash=False)
    window_days: int | None = None
    name: ClassVar[str] = "neighbourhood"

    @property
    def day_bound_name(self) -> str:
        """Return the name of the bound of one day."""
        return f"change of {exact_text(self.size_kwh)} kWh"

    @property
    def window_bound_name(self) -> str:
        """Return the name of the bound of a window."""
        return f"{self.day_bound_name}, window of {self.window_days} days"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day and, with `window_days`, of a window."""
        del leakage_bound, at
        meter, draws = small_losses(self.publication, watt_hours(self.size_kwh)).read(history), self.publication.charges
        losses, events = meter.losses, (*draws, *meter.periods)
        largest = largest_day(covered_losses(losses, events), draws)
        change = _change_text(self.size_kwh)
        scope = f"{change}, on any one {'published day' if draws else 'day'}"
        bounds = [LossBound(self.day_bound_name, largest, ASSUMPTION_FREE, scope)]
        if self.window_days is not None:
            value = largest_window(losses, days=self.window_days, events=events)
            about = f"{change} a day, on any {self.window_days} consecutive days"
            bounds.append(LossBound(self.window_bound_name, value, ASSUMPTION_FREE, about))
        return bounds


@dataclass(frozen=True, slots=True)
class SustainedChangeLoss:
    r"""Accountant of the loss about changes by at most `size_kwh` on every day, as (epsilon, delta) bounds at `deltas`.

    .. math:: \varepsilon_{R}(\delta), \qquad R = \sum_k R^{(k)}(\Delta f_k(x), b_k)

    with the sensitivity of each row to the change of a day, and its scale. Calibration draws count in full. Nothing is
    returned where no delta brings the loss below the sum of the pure losses about such changes.

    Source: [D] for the change; composition of Rényi curves as in `SpanCurves` [nano-epsilon].
    """

    size_kwh: Decimal
    publication: Publication = field(hash=False)
    deltas: tuple[Decimal, ...]
    name: ClassVar[str] = "neighbourhood"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the loss of all days at each delta."""
        del leakage_bound, at
        total = SpanCurves(self.publication, change=Move(watt_hours(self.size_kwh))).total(history)
        losses = [total.epsilon(delta) for delta in self.deltas]
        if not losses or min(losses) >= total.pure:
            return []
        draws = ", and of any size on its other days of the calibration" if self.publication.charges else ""
        scope = f"{_change_text(self.size_kwh)} on each published day, all of them together{draws}"
        name = f"change of {exact_text(self.size_kwh)} kWh on every day"
        return [
            bound_at_delta(name, loss, ASSUMPTION_FREE, scope, delta=delta)
            for delta, loss in zip(self.deltas, losses, strict=True)
        ]


def _change_text(size_kwh: Decimal) -> str:
    return f"a change of the use with which one household counts by at most {exact_text(size_kwh)} kWh"


# --------------------------------------------------------------------------------------------------
# The promise.
# --------------------------------------------------------------------------------------------------

Spend = Literal["fraction", "per-request", "offline"]

_SPENDS: Final[tuple[Spend, ...]] = ("fraction", "per-request", "offline")
_FRACTION: Final = Decimal("0.2")
_WEEK: Final = 7
_UNBOUND: Final = Publication()


class Neighbourhood(EnforcedPromise):
    r"""Changes by at most `delta_kwh` of a household's days lose at most `epsilon_per_window` in any window of days.

    .. math:: \sum_{k=t}^{t+w-1} \varepsilon_k(\delta) \le \varepsilon, \qquad
        \varepsilon_k(x) = \varepsilon_k \frac{\Delta f(x)}{\Delta f}

    with losses in [epsilon] and the sensitivity to a change of size x over that to any change: for a mean x/clamp.
    Neighbouring datasets differ in one household, by at most delta_kwh on each day of a window.

    Source: [D] sections 2 and 5. Errata: the labels bounded and unbounded are swapped; "sensitivity is still 2" holds
    for moves below delta only. `spend`: "fraction" of the window's remaining loss, "per-request" 1/w of the bound,
    "offline" the plan with the least noise over the period.

    References:
        [D] Fang, Chang: Differential privacy with delta-neighbourhood for spatial and dynamic datasets. ASIACCS, 2014.
    """

    name: ClassVar[str] = "neighbourhood"
    slides: ClassVar[bool] = True
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="epsilon_per_window",
        own_bound=OwnBound("change of {delta_kwh} kWh, window of {window_days} days", "change of {delta_kwh} kWh"),
        typed=("delta_kwh", "window_days"),
        proposals={
            "delta_kwh": "1",
            "window_days": "7",
            "epsilon_per_window": "1",
            "spend": '"per-request"',
            "fraction": "0.2",
        },
        credit_remedy="a smaller delta_kwh or window_days",
    )

    notion: Literal["neighbourhood"]
    delta_kwh: PositiveKwh
    """Size of the change of a household's day that is protected."""
    window_days: Annotated[Days, RAISE]
    """Length of the window, in days."""
    epsilon_per_window: Annotated[Epsilon, LOWER]
    """Epsilon of any `window_days` consecutive days about changes of at most `delta_kwh` a day."""
    spend: Spend
    """Epsilon of a day: a fraction of what the window has left, an equal part of it, or a plan for known days."""
    fraction: Fraction01 | None = None
    """The fraction, required for spend = "fraction"."""

    _small: LossMeter = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Begin without a publication: every change counts in full."""
        super().model_post_init(context)
        self._small = small_losses(_UNBOUND, self.delta_wh)

    def for_publication(self, publication: Publication) -> Self:
        """Return this promise over what is published."""
        promise = super().for_publication(publication)
        promise._small = small_losses(publication, self.delta_wh)
        return promise

    @property
    def delta_wh(self) -> int:
        """Return the size of a change that is protected, in whole watt-hours."""
        return watt_hours(self.delta_kwh)

    @property
    def needs_period(self) -> bool:
        """Return whether days can be planned only for a period with a known last day."""
        return self.spend == "offline"

    @model_validator(mode="after")
    def _fraction_goes_with_its_rule(self) -> Self:
        if self.spend == "fraction" and self.fraction is None:
            raise wrong('is missing; spend = "fraction" needs one such as 0.2', "fraction")
        if self.spend != "fraction" and self.fraction is not None:
            raise wrong('is used by spend = "fraction" only; remove it', "fraction")
        if self._wanted("2000-01-01", floor_nano(self.epsilon_per_window)) == 0:
            raise wrong("is too little for the window: a day's part rounds to nothing", "epsilon_per_window")
        return self

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps, and the bounds of a window and a day about small changes.

        The loss about a change of any size grows with the clamp, which an amendment may raise: the cap bounds it.
        """
        window = floor_nano(self.epsilon_per_window)
        of_day = self._own
        return {**super().limits, of_day.window_bound_name: window, of_day.day_bound_name: min(window, self.day_cap)}

    @property
    def opening(self) -> str:
        """Return the first sentences of a statement: which changes are protected better, and which are not."""
        delta = exact_text(self.delta_kwh)
        draws = (
            " The draws of the calibration bound small changes of its days no better than large ones."
            if self.charges
            else ""
        )
        return (
            f"The promise is about small changes: of the use with which a household's day counts, by at most {delta} "
            "kWh. The loss about larger ones is larger, for a sum or mean in proportion. A day that goes missing, or "
            "comes to have readings, need not be a small change (it counts as missing_kwh): of it, and of changes of "
            "any size on one day, the figure 'day' tells, of changes on several days, such as moving out, the figure "
            f"'total'.{draws}"
        )

    @property
    def remark(self) -> str:
        """Return the cap that gives small changes a smaller epsilon than the window does, if one does."""
        planned = self._wanted("", floor_nano(self.epsilon_per_window))
        any_size = int(planned * self._publication.times(self.delta_wh))
        if any_size <= self.day_cap:
            return ""
        small_loss = ceil(self.day_cap / self._publication.times(self.delta_wh))
        return (
            f"max_day_epsilon = {self.max_day_epsilon:f} is the binding limit: epsilon {format_epsilon(planned)} per "
            f"day for changes of {exact_text(self.delta_kwh)} kWh would be epsilon {format_epsilon(any_size)} for "
            f"changes of any size; a day uses epsilon {format_epsilon(small_loss)} for small changes instead, with "
            "more noise"
        )

    @property
    def shared_quantity(self) -> str:
        """Return what the shares of several series refer to: a day's loss about a small change."""
        return (
            f"each day's loss about a change by at most {exact_text(self.delta_kwh)} kWh; its share of a day's loss "
            "about larger changes differs"
        )

    def part_of_day(self, series: str, share: Fraction) -> Fraction:
        """Return the part of a day's loss that gives a series its share of the loss about small changes."""
        return self._publication.share(series, share, self.delta_wh)

    def planned_after(self, history: Sequence[HistoryRow], day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the budget of `day` for changes of any size, in the shares of the series in force."""
        return self.planned_loss(self._small.read(history).losses, day, leakage_bound)

    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the budget of `day` for changes of any size, given the losses of all days about small changes."""
        del leakage_bound
        other_days = losses.without(day) if isinstance(losses, DayLosses) else losses
        window = floor_nano(self.epsilon_per_window)
        spent = largest_window(other_days, days=self.window_days, events=self.charges, around=(day, day))
        available = max(0, window - spent)
        return int(self._wanted(day, available) * self._publication.times(self.delta_wh))

    def losses_in_order(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> Iterator[int]:
        """Yield the budgets for changes of any size, each after the losses about small changes of the window before."""
        times, small = self._publication.times(self.delta_wh), DayLosses[str]()
        if self.spend == "per-request" and not self.charges:  # no window is ever fuller
            yield from repeat(int(self._wanted("", floor_nano(self.epsilon_per_window)) * times), len(days))
            return
        for day in days:
            loss = min(self.day_limit(day), self.planned_loss(small, day, leakage_bound))
            small.put(day, ceil(loss / times))
            if len(small) > self.window_days:
                small.put(min(small), None)
            yield loss

    def _wanted(self, day: str, available: int) -> int:
        """Return the planned loss of a day about small changes, given the window's remaining budget, rounded down."""
        window = floor_nano(self.epsilon_per_window)
        if self.fraction is not None:
            return int(Fraction(self.fraction) * available)
        draws = largest_window({}, days=self.window_days, events=self.charges, around=(day, day)) if day else 0
        room = max(0, window - draws)
        first, last = self._publication.first_day, self._publication.last_day
        if self.spend == "per-request" or first is None or last is None:
            return min(available, room // self.window_days)
        plan = _plan((last - first).days + 1, self.window_days, self.epsilon_per_window)
        index = (date.fromisoformat(day) - first).days if day else 0
        return min(available, (plan[index] if 0 <= index < len(plan) else min(plan)) * room // window)

    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Refuse a release with which a window that contains the day loses too much about small changes.

        Raises:
            Refused: it does.
        """
        del leakage_bound
        around, events = self._publication.covered_days(new_row), self.events_with(history, new_row)
        losses = self._small.read(history).losses_with(new_row)
        spent = largest_window(losses, days=self.window_days, events=events, around=around)
        what = f"changes of {exact_text(self.delta_kwh)} kWh in a window of {self.window_days} days"
        refuse_above(new_row.day, what, spent, ("epsilon_per_window", floor_nano(self.epsilon_per_window)))

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day, the total, and the losses about small changes of a day and of a window."""
        return [*self.cap_bounds(history), *self._own.bounds(history, leakage_bound, at)]

    def charged_limits(self) -> Iterator[tuple[str, int, int]]:
        """Yield the caps and the window's epsilon, each with the draws that take a part of it."""
        yield from super().charged_limits()
        yield "epsilon_per_window", self.charge_of_windows(self.window_days), floor_nano(self.epsilon_per_window)

    @property
    def _own(self) -> BoundedChangeLoss:
        return BoundedChangeLoss(self.delta_kwh, self._publication, self.window_days)

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return a window_days-th of the window's epsilon for each size of change, and the rule of the run file."""
        promised = comparison.promise if isinstance(comparison.promise, cls) else None
        days = promised.window_days if promised else comparison.window_days or _WEEK
        sizes = dict.fromkeys([promised.delta_kwh] if promised else []) | dict.fromkeys(comparison.delta_kwh)
        if not sizes:
            return (unavailable("needs a size of change; name some in [compare] delta_kwh"),)
        rules: list[dict[str, object]] = [{"spend": "per-request"}]
        if promised and promised.spend != "per-request":
            rules.insert(0, {"spend": promised.spend} | ({"fraction": promised.fraction} if promised.fraction else {}))
        return tuple(
            Alternative(
                f"{size} kWh, {days} days, {rule['spend']}",
                promise_keys("epsilon_per_window", delta_kwh=size, window_days=days, **rule),
            )
            for size in sizes
            for rule in rules
        )

    @classmethod
    def comparison_accountants(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the loss of a change of each size in [compare]; under this promise of delta and twice that as well.

        Under this promise also the loss of changes of every day by delta, as (epsilon, delta) bounds.
        """
        promise, publication = comparison.promise, comparison.publication
        sizes, sustained = set(comparison.delta_kwh), []
        if isinstance(promise, cls):
            sizes = (sizes | {2 * promise.delta_kwh}) - {promise.delta_kwh}
            sustained = [SustainedChangeLoss(promise.delta_kwh, publication, stated_deltas(promise.delta))]
        return (*sustained, *(BoundedChangeLoss(size, publication) for size in sorted(sizes)))

    def alternatives(self, days: int) -> dict[str, float]:
        """Return the mean noise scale over `days` days by spend, as a multiple of the clamp, the promised one first."""
        from agedp_data.accounting.windows import window_budgets  # noqa: PLC0415  (a plan alone needs it)

        times, window = float(self._publication.times(self.delta_wh)), floor_nano(self.epsilon_per_window)
        names = [self.spend, *(name for name in _SPENDS if name != self.spend)]
        share = float(self.fraction or _FRACTION)
        mean_noise = {}
        for name in names:
            losses = window_budgets(
                np.arange(days),
                window=self.window_days,
                epsilon=window / NANO,
                method=name,
                fraction=share,
                requests=self.window_days,
            )
            label = f"{name} ({share:g})" if name == "fraction" else name
            mean_noise[label] = float(np.mean(1 / losses)) / times
        return mean_noise


@lru_cache(maxsize=16)
def _plan(days: int, window: int, epsilon: Decimal) -> tuple[int, ...]:
    """Return the offline plan of `days` days, rounded down [nano-epsilon]."""
    from agedp_data.accounting.windows import window_budgets  # noqa: PLC0415  (a plan alone needs it)

    losses = window_budgets(np.arange(days), window=window, epsilon=float(epsilon), method="offline")
    window_loss = floor_nano(epsilon)
    return tuple(min(window_loss, floor_nano(day_loss)) for day_loss in losses.tolist())
