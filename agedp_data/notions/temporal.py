"""Temporal privacy: a bound on the leakage of all releases about any one day ([T]).

Decisions. The k-th released day gets the k-th loss of a plan made for days in a row. Where days came in another order,
under an amended alpha or a newer model, the rest of the plan is lowered as far as necessary, all of its losses alike,
so that later days keep theirs. Every release is checked against alpha on every day, past ones and days without a
release among them; so alpha holds for all later releases. A day may thus have no budget near days that were
released before (or next to none, which would buy noise alone), and is then skipped. Leakage about a past day stays. An
alpha below it would end the series, so an amendment to one is refused; a newer model under which the released days
exceed alpha does end it.

With `delta` no model is needed. The leakage about a day by all releases is at most what these say about the whole
series of the household, whatever the correlation of its days, and that is an (epsilon, delta) figure (`spans`).
Every release must keep alpha by this figure or by the chain's. "even" divides the figure among the days; "best" does so
where this has less noise than the chain's plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import repeat
from operator import le
from typing import Annotated, ClassVar, Final, Literal, Self, get_args

from pydantic import PrivateAttr, model_validator

from agedp_data.accounting.temporal_allocation import Budget, Plan, largest_feasible, temporal_allocation
from agedp_data.accounting.temporal_recursion import TemporalLosses
from agedp_data.amendment_rules import LOWER
from agedp_data.epsilon import floor_nano, format_delta, format_epsilon
from agedp_data.errors import Refused
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.age_dependent import assumed
from agedp_data.notions.enforcement import EnforcedPromise, ModelCache, refuse_above
from agedp_data.notions.notion import (
    DAY_BOUND,
    TOTAL_BOUND,
    Accountant,
    ChangedDays,
    DayApart,
    DayLosses,
    HistoryRow,
    LossBound,
    Losses,
    NotionText,
    OwnBound,
    day_losses,
    losses_by_day_number,
    name_at_delta,
)
from agedp_data.notions.publication import (
    Alternative,
    Comparison,
    Events,
    Publication,
    day_number,
    promise_keys,
    total_charge,
)
from agedp_data.notions.spans import bound_at_delta, stated_deltas
from agedp_data.parameters import Epsilon, Horizon, wrong

# --------------------------------------------------------------------------------------------------
# Temporal leakage of released rows about any one day: under a model, and without one at a delta ([T]).
# --------------------------------------------------------------------------------------------------

LEAKAGE: Final = "temporal leakage"
_INDEPENDENT: Final = "households are independent of each other, whatever the correlation between the days of each"
_ABOUT: Final = "any one day of one household, released or not, by all days released so far"


@dataclass(frozen=True, slots=True)
class TemporalLeakage:
    """Accountant of the temporal leakage about any one day by all days released so far, under any promise.

    The loss of all draws and of rows about several days is added (`publication`).

    Source: [T] Definition 8 and eq. 11 (`TemporalLosses`) [nano-epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328
    """

    publication: Publication = field(default=Publication(), hash=False)
    name: ClassVar[str] = "temporal"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest leakage about any one day; nothing under a model without forward leakage."""
        del at
        if leakage_bound is None or not leakage_bound.has_both_directions:
            return []
        rows, events = self.publication.parted(history)
        charge, losses = total_charge(events), losses_by_day_number(day_losses(rows))
        leakage = TemporalLosses(leakage_bound).largest(losses)
        value = None if leakage is None else leakage + charge
        about = f"{_ABOUT} and the calibration draws" if charge else _ABOUT
        return [LossBound(LEAKAGE, value, "conditional", about, assumed(leakage_bound))]


def leakage_at_delta(span: int, by_chain: Sequence[LossBound], delta: Decimal, draws: Events) -> LossBound:
    r"""Return the temporal leakage at a delta: the smaller of the span's figure and the chain's.

    For a secret x (one day), results y and the whole series h of a household,

    .. math:: \Pr[y \in S \mid x] = \sum_h \Pr[h \mid x] \Pr[y \in S \mid h]
              \le e^{\varepsilon} \Pr[y \in S \mid x'] + \delta ,

    since the releases together are (epsilon, delta)-private towards h, whatever the law of h given x.

    Source: convexity of (epsilon, delta) in both arguments; households are independent of each other.

    Args:
        span: loss of all rows and draws at delta (`SpanLoss`) [nano-epsilon].
        by_chain: the bounds under a model (`TemporalLeakage`), none without one.
        delta: probability [-].
        draws: calibration draws.
    """
    value, assumption = span, _INDEPENDENT
    for bound in by_chain:
        if bound.value is not None and bound.value < value:
            value, assumption = bound.value, bound.assumption
    about = f"{_ABOUT} and the calibration draws" if draws else _ABOUT
    return bound_at_delta(LEAKAGE, value, "conditional", about, delta=delta, assumption=assumption)


# --------------------------------------------------------------------------------------------------
# Sentences about a temporal promise: what it promises, and why no loss keeps it under a model.
# --------------------------------------------------------------------------------------------------


def opening(alpha: Decimal, delta: Decimal | None, *, has_draws: bool) -> str:
    """Return the first sentence of a statement: alpha, the bound about any one day by all releases.

    Source: text, without a formula.

    Args:
        alpha: bound on the temporal leakage [epsilon].
        delta: probability with which it is promised [-]; None for none.
        has_draws: whether calibration draws count as well.
    """
    draws = " and the draws of the calibration" if has_draws else ""
    bound, meaning = f"epsilon {alpha:f}", ""
    if delta is not None:
        bound = f"the bound of epsilon {alpha:f} with delta {format_delta(delta)}"
        meaning = (
            f". By that bound every set of results is at most e^{alpha:f} times as probable under any other use of the "
            f"day, plus {format_delta(delta)}"
        )
    return (
        f"No further release takes what all noisy releases, those still to come as well,{draws} together say about "
        f"any one day of a household beyond {bound}, under the assumption of the figure "
        f"'{name_at_delta(LEAKAGE, delta)}'{meaning}."
    )


def chain_obstacle(alpha: Decimal, horizon_days: int | Literal["unlimited"], budget: Budget, left: int) -> str:
    """Return that the temporal correlation of a model is too strong for a plan, and a plan that is possible.

    Source: text, without a formula.

    Args:
        alpha: bound on the temporal leakage [epsilon].
        horizon_days: number of releases [days].
        budget: the allocation.
        left: what calibration draws leave of alpha [nano-epsilon].
    """
    if horizon_days == "unlimited":
        return (
            f"under this model no constant loss without end keeps alpha = {alpha:f}: the temporal correlation "
            'is too strong; name horizon_days with budget = "best" '
            f"(365 days leave each of them epsilon {format_epsilon(left // 365)} at least)"
        )
    if budget in ("supremum", "exact"):
        return (
            f"under this model no constant loss without end keeps alpha = {alpha:f}, which budget = "
            f'"{budget}" needs: the temporal correlation is too strong; "even" leaves each of '
            f"{horizon_days} days epsilon {format_epsilon(left // horizon_days)}"
        )
    return f"alpha = {alpha:f} over {horizon_days} days leaves a day less than 0.000000001"


# --------------------------------------------------------------------------------------------------
# The promise.
# --------------------------------------------------------------------------------------------------

_RESIDUE = 1000
"""A day's remaining budget counts as 0 if it is this many times smaller than the planned loss."""

_ENDING: tuple[Budget, ...] = ("exact", "even")


class ChainLosses:
    """Temporal leakage of a growing history under a model: only days whose loss changed are composed again.

    The same of a plan: whether the days so far follow it. Its losses are compared with those of the days once.
    """

    def __init__(self, leakage_bound: LeakageBoundLike) -> None:
        self._temporal = TemporalLosses(leakage_bound)
        self._changed = ChangedDays()
        self._planned: DayLosses[str] | None = None
        self._seen = self._kept = 0

    def largest(self, losses: Losses) -> int | None:
        """Return the largest leakage about any one day [nano-epsilon], None if that is infinite."""
        days = self._changed.since(losses)
        if days is None:
            return self._temporal.largest(losses_by_day_number(losses))
        return self._temporal.largest_after({day_number(day): losses.get(day, 0) for day in days})

    def largest_of(self, losses: Mapping[int, int], *, loss_of_every_later_day: int) -> int | None:
        """Return the largest leakage of any losses by the number of the day, as `TemporalLosses.largest`."""
        self._changed.forget()
        return self._temporal.largest(losses, loss_of_every_later_day=loss_of_every_later_day)

    def day_of_largest_leakage(self, losses: Losses) -> tuple[int, int]:
        """Return the number of a day with the largest leakage, and the leakage."""
        self._changed.forget()
        return self._temporal.day_of_largest_leakage(losses_by_day_number(losses))

    def is_as_planned(self, losses: Losses, day: str, plan: Plan, *, endless: bool) -> bool:
        """Return whether all other days are earlier than `day`, and none has more than its loss in the plan.

        Without an end the plan is one loss for each day.
        """
        days, count = losses.others if isinstance(losses, DayApart) else losses, len(losses)
        if not days.is_ascending or days.order[count - 1 : count] > [day] or (count < len(days) and day != days.newest):
            in_order, planned = [losses[each] for each in sorted(losses)], repeat(plan[0]) if endless else plan
            return max(losses, default="") < day and all(map(le, in_order, planned))
        if days is not self._planned:
            self._planned, self._kept = days, 0
        elif not {*days.changes[self._seen :]} <= {*days.order[self._kept :]}:
            self._kept = 0
        self._seen = len(days.changes)
        while self._kept < count and days[days.order[self._kept]] <= plan[0 if endless else self._kept]:
            self._kept += 1
        return self._kept >= count


class Temporal(EnforcedPromise):
    r"""The total temporal leakage of all releases about any one day, past or future, is at most `alpha`.

    .. math:: \max_k TPL_k \le \alpha, \qquad TPL_k = BPL_k + FPL_k - e_k

    Neighbouring datasets differ in one household's day k; its other days follow the chain, which the adversary knows.

    Source: [T] Definition 8 [epsilon]. `horizon_days` = N closes the series after N releases; without end each day has
    the loss whose supremum is alpha ([T] Algorithm 7). Plans: `temporal_allocation`.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
    """

    name: ClassVar[str] = "temporal"
    needs_model: ClassVar[bool] = True
    composes_ahead: ClassVar[bool] = True
    slides: ClassVar[bool] = True
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="alpha",
        own_bound=OwnBound(LEAKAGE, LEAKAGE),
        proposals={"alpha": "1"},
        takes_delta=True,
        credit_remedy="a model whose days depend less on each other",
    )

    notion: Literal["temporal"]
    alpha: Annotated[Epsilon, LOWER]
    """Bound on the temporal privacy leakage of all releases about any one day."""
    horizon_days: Annotated[Horizon, LOWER]
    """Number of releases after which the series closes; "unlimited" leaves it open."""
    budget: Budget
    """Allocation of alpha to the days; [the notions](notions.md) compare them."""

    _solutions: ModelCache[tuple[LeakageBoundLike, ChainLosses, Plan]] = PrivateAttr(default_factory=ModelCache)

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return every budget that the period permits, over the promised horizon or the period's days."""
        promised = comparison.promise if isinstance(comparison.promise, cls) else None
        horizon: int | Literal["unlimited"] = promised.horizon_days if promised else comparison.days or "unlimited"
        budgets = [budget for budget in get_args(Budget) if horizon != "unlimited" or budget not in _ENDING]
        return tuple(
            Alternative(budget, promise_keys("alpha", horizon_days=horizon, budget=budget))
            for budget in sorted(budgets, key=lambda budget: promised is not None and budget != promised.budget)
        )

    @model_validator(mode="after")
    def _with_a_last_release(self) -> Self:
        if self.delta is not None and self._endless and self.epsilon_total == "unlimited":
            raise wrong(
                "needs a number of days in horizon_days, or a number in epsilon_total: releases without an end have no "
                "(alpha, delta) bound",
                "delta",
            )
        return self

    @property
    def requires_model(self) -> bool:
        """Return whether the promise cannot be kept without a model: with `delta` "even" and "best" need none."""
        return self.delta is None or self.budget in ("supremum", "exact")

    @model_validator(mode="after")
    def _without_end(self) -> Self:
        if self.horizon_days == "unlimited" and self.budget in _ENDING:
            raise wrong('needs a number of days in horizon_days; "unlimited" goes with "supremum"', "budget")
        return self

    @property
    def opening(self) -> str:
        """Return the first sentence of a statement: alpha, the bound about any one day by all releases.

        Under an earlier model a day may have leaked more; that cannot be undone and ends the series.
        """
        return opening(self.alpha, self.delta, has_draws=bool(self.charges))

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps and alpha, which without `delta` no day's own loss exceeds either.

        "even" with `delta` keeps alpha by the total at that delta alone, whatever the model.
        """
        alpha = floor_nano(self.alpha)
        if self.delta is not None:
            total = alpha if self.total_cap is None else min(alpha, self.total_cap)
            of_total = {name_at_delta(TOTAL_BOUND, self.delta): total} if self.budget == "even" else {}
            return {**super().limits, **of_total, LEAKAGE: None, name_at_delta(LEAKAGE, self.delta): alpha}
        return {**super().limits, DAY_BOUND: min(self.day_cap, alpha), LEAKAGE: alpha}

    def planned_after(self, history: Sequence[HistoryRow], day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the planned loss of `day` [nano-epsilon], by the chain's plan or by the span's equal losses.

        If earlier days have spent more than their equal loss, the rest is divided among the days to come.
        """
        if self.delta is None or self._follows_chain(leakage_bound, self.delta):
            return super().planned_after(history, day, leakage_bound)
        released = self.day_losses(history).but(day).released
        rest, alpha, delta = self._releases - released if self._releases else 1, floor_nano(self.alpha), self.delta
        if rest <= 0:
            return 0
        others = self._curves.total(history, without=day)

        def fits(loss: int) -> bool:
            return (others + self._curves.of_planned_day(loss).times(rest)).epsilon(delta) <= alpha

        equal = min(self.day_limit(day), self._equal_loss(delta))
        loss = largest_feasible(fits, equal)
        return loss if loss * _RESIDUE >= equal else 0

    def losses_in_order(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> Iterable[int]:
        """Return the chain's plan, without an end its one loss each day, or the span's equal losses up to alpha."""
        if self.delta is None or self._follows_chain(leakage_bound, self.delta):
            plan = self._under(leakage_bound)[1]
            return repeat(plan[0], len(days)) if plan and self._endless else plan
        loss, alpha, delta = self._equal_loss(self.delta), floor_nano(self.alpha), self.delta
        day, draws = self._curves.of_planned_day(loss), self._curves.draws
        most = self._releases or len(days)
        return repeat(loss, largest_feasible(lambda number: (day.times(number) + draws).epsilon(delta) <= alpha, most))

    @property
    def _releases(self) -> int:
        """Return the number of days to be released: the horizon, or the days of the period; 0 if there is no end."""
        first, last = self._publication.first_day, self._publication.last_day
        if self.horizon_days != "unlimited":
            return self.horizon_days
        return 0 if first is None or last is None else (last - first).days + 1

    def _equal_loss(self, delta: Decimal) -> int:
        """Return the loss of each day by which all of them come to alpha at `delta`; without an end the day's cap."""
        return self._curves.equal_loss(
            max(1, self._releases),
            epsilon=floor_nano(self.alpha),
            delta=delta,
            cap=self.day_cap,
            beside=self._curves.draws,
        )

    def _counts_chain(self, leakage_bound: LeakageBoundLike | None) -> bool:
        """Return whether, with `delta`, a release may keep alpha by the chain too: by one with both directions."""
        return leakage_bound is not None and leakage_bound.has_both_directions and self.budget != "even"

    def _follows_chain(self, leakage_bound: LeakageBoundLike | None, delta: Decimal) -> bool:
        """Return whether days get the losses of the chain's plan: it is asked for, or has less noise on average."""
        if not self._counts_chain(leakage_bound):
            return False
        _, plan = self._under(leakage_bound)
        if self.requires_model or not plan:
            return bool(plan)
        equal = self._equal_loss(delta)
        return self._endless or equal == 0 or sum(equal / loss if loss else math.inf for loss in plan) < len(plan)

    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the next loss of the plan, less where days are out of order or earlier losses exceed the plan."""
        chain, plan = self._under(leakage_bound)
        planned, later = self._plan_rest(plan, len(losses))
        if planned == 0 or chain.is_as_planned(losses, day, plan, endless=self._endless):
            return planned
        alpha, leakage_so_far = self._alpha_of_releases, chain.largest(losses)
        if leakage_so_far is None or leakage_so_far > alpha:
            return 0  # no later loss lowers it
        spent, number = losses_by_day_number(losses), day_number(day)
        newest = max([number, *spent])

        def fits(loss: int) -> bool:
            to_come = {newest + 1 + i: plan_loss * loss // planned for i, plan_loss in enumerate(later)}
            every_later = loss if self._endless else 0
            leakage = chain.largest_of({**spent, number: loss, **to_come}, loss_of_every_later_day=every_later)
            return leakage is not None and leakage <= alpha

        loss_left = largest_feasible(fits, planned)
        return loss_left if loss_left * _RESIDUE >= planned else 0

    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Refuse a release with which the leakage about some day exceeds alpha, or after `horizon_days` releases.

        Raises:
            Refused: either is the case.
        """
        losses = self.losses_with(history, new_row)
        if self.horizon_days != "unlimited" and new_row.loss > 0 and losses.released > self.horizon_days:
            raise Refused(f"{new_row.day}: horizon_days = {self.horizon_days} days are released and the series is over")
        bound, what = ("alpha", floor_nano(self.alpha)), "the temporal leakage of all releases about one day"
        if self.delta is None or self._counts_chain(leakage_bound):
            leakage = self._under(leakage_bound)[0].largest(losses)
            by_chain = None if leakage is None else leakage + self.charge
            if self.delta is None:
                refuse_above(new_row.day, what, by_chain, bound)
            if by_chain is not None and by_chain <= bound[1]:
                return
        spent = self._curves.total(history, with_row=new_row).epsilon(self.delta)
        refuse_above(new_row.day, what + self.at_delta, spent, bound)

    def review(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Refuse if under this leakage bound the leakage of the released days exceeds alpha about some day.

        Raises:
            Refused: it does; releases stop.
        """
        for reason in self.violations(history, leakage_bound).values():
            raise Refused(f"{reason}; releases stop, nothing is rewritten")

    def violations(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> Mapping[str, str]:
        """Return alpha, with the reason, if the releases exceed alpha about some day under this model."""
        losses = self.day_losses(history)
        if not losses.released:
            return {}
        if self.delta is not None:
            spent = self._curves.total(history).epsilon(self.delta)
            if spent <= floor_nano(self.alpha):
                return {}
            if not self._counts_chain(leakage_bound):
                return self.exceeded_span("alpha", spent, floor_nano(self.alpha))
        day, leakage = self._under(leakage_bound)[0].day_of_largest_leakage(losses)
        bound = leakage + self.charge
        if bound <= floor_nano(self.alpha):
            return {}
        date_text = date.fromordinal(day).isoformat()
        reason = f"alpha = {self.alpha:f} is below {format_epsilon(bound)}, the leakage so far about {date_text}"
        return {"alpha": reason}

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day, the total, and the largest leakage about any one day so far."""
        by_chain = TemporalLeakage(self._publication).bounds(history, leakage_bound, at)
        return [*self.cap_bounds(history), *by_chain, *self._at_deltas(history, by_chain)]

    def _at_deltas(self, history: Sequence[HistoryRow], by_chain: Sequence[LossBound]) -> list[LossBound]:
        """Return the promised (alpha, delta) bound and those at the standard deltas; none without a delta."""
        if self.delta is None:
            return []
        total, chain = self._curves.total(history), () if self.budget == "even" else by_chain
        deltas = stated_deltas(self.delta)
        return [leakage_at_delta(total.epsilon(delta), chain, delta, self.charges) for delta in deltas]

    def charged_limits(self) -> Iterator[tuple[str, int, int]]:
        """Yield the caps and alpha, each with the draws that take a part of it."""
        yield from super().charged_limits()
        yield "alpha", self._curves.draws.epsilon(self.delta), floor_nano(self.alpha)

    @classmethod
    def comparison_accountants(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the temporal leakage under the model, unless it is what is promised."""
        if not comparison.methods or isinstance(comparison.promise, cls):
            return ()
        return (TemporalLeakage(comparison.publication),)

    def obstacle(self, leakage_bound: LeakageBoundLike | None) -> str:
        """Return that the temporal correlation of the model is too strong for the plan, and a plan that is possible."""
        if self.delta is not None and not self._follows_chain(leakage_bound, self.delta):
            days = f" over {self._releases} days" if self._releases else ""
            too_little = f"alpha = {self.alpha:f}{self.at_delta}{days} leaves a day less than 0.000000001"
            return "" if self._equal_loss(self.delta) else too_little
        if self._under(leakage_bound)[1]:
            return ""
        return chain_obstacle(self.alpha, self.horizon_days, self.budget, self._alpha_of_releases)

    @property
    def _alpha_of_releases(self) -> int:
        """Return what the calibration draws leave of alpha, 0 if nothing [nano-epsilon]."""
        return max(0, floor_nano(self.alpha) - self.charge)

    @property
    def _endless(self) -> bool:
        return self.horizon_days == "unlimited"

    def _plan_rest(self, plan: Plan, released: int) -> tuple[int, Plan]:
        """Return the loss of the next release after `released` ones, and the later losses (() without a horizon)."""
        if self._endless:
            return (plan[0], ()) if plan else (0, ())
        return (plan[released], plan[released + 1 :]) if released < len(plan) else (0, ())

    def _under(self, leakage_bound: LeakageBoundLike | None) -> tuple[ChainLosses, Plan]:
        """Return the temporal losses under a leakage bound, and the plan: () for none, one loss without a horizon.

        Raises:
            Refused: a model without losses ahead.
        """
        if leakage_bound is None or not leakage_bound.has_both_directions:
            raise Refused(
                'notion = "temporal" needs a model with forward leakage, and this model has none: calibrate again '
                "under another [model] file, or declare a kernel"
            )
        if id(leakage_bound) not in self._solutions:
            horizon = None if self.horizon_days == "unlimited" else self.horizon_days
            alpha = self._alpha_of_releases
            plan = temporal_allocation(leakage_bound, alpha, horizon, self.budget, self.day_cap) if alpha else ()
            self._solutions[id(leakage_bound)] = leakage_bound, ChainLosses(leakage_bound), plan
        return self._solutions[id(leakage_bound)][1:]
