"""Discounted differential privacy: losses whose weight falls with their age (Farokhi, ICCPS 2020: [F]).

Decisions. The schedule counts releases, not days: the k-th released day gets its k-th loss, skipped days have none,
and a series with `horizon_days` closes after that many. Days that come in another order, an amended epsilon or
a backlog leave less than the schedule has; then a day gets the remaining loss, and "renewal" is the remaining loss and
nothing else. Caps only cut: "optimal" is the optimum before them, what a cap takes from a day goes to no other day, and
`agedp plan` compares only schedules that no cap cuts. "paper" has the certified constant; that of [F] Corollary 16
breaks the promise for some rates and is not offered. Under clock = "publication-day" a day without a remaining loss is
skipped as well: on another date there might be some, but a backlog would hold up the series for ever.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import PrivateAttr, model_validator

from agedp_data.accounting.discount_schedules import Exponential, Hyperbolic, infinite_horizon_schedule, schedule
from agedp_data.accounting.discounting import SAFE_TOTAL, DiscountName, DiscountWeights, weighted_sum_to_nano
from agedp_data.amendment_rules import LOWER
from agedp_data.arrays import Floats
from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import Refused
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
    Remembered,
    TickMeter,
)
from agedp_data.notions.publication import (
    Alternative,
    Comparison,
    Publication,
    day_number,
    promise_keys,
    total_charge,
    unavailable,
)
from agedp_data.parameters import Amount, Days, Epsilon, wrong

# --------------------------------------------------------------------------------------------------
# Bounds on the discounted loss of released rows, under any promise ([F]).
#
# [F] Farokhi: Temporally Discounted Differential Privacy for Evolving Datasets on an Infinite Horizon. ICCPS 2020.
# https://doi.org/10.48550/arXiv.1908.03995
# --------------------------------------------------------------------------------------------------

Clock = Literal["data-day", "publication-day"]

BY_CLOCK: Final[dict[Clock, str]] = {"data-day": "", "publication-day": " by publication"}
_TICK: Final[dict[Clock, Literal["day", "published_on"]]] = {"data-day": "day", "publication-day": "published_on"}
_OF_CLOCK: Final[dict[Clock, str]] = {"data-day": "days of the data", "publication-day": "days of publication"}


@dataclass(frozen=True, slots=True)
class DiscountedLoss:
    r"""Accountant of the discounted loss: the discounted sum of all days' losses, free of assumptions.

    .. math:: \max_t \sum_{k \le t} a(t - k)\, \varepsilon_k + \sum_i e_i

    The losses e_i of draws and of rows about several days count in full on every day (`publication`).

    Source: [F] Definitions 10 and 14, in integers [nano-epsilon]. Erratum: both must hold for every t.

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
    """

    discount: DiscountName
    rate: Decimal
    clock: Clock
    publication: Publication = field(default=Publication(), hash=False)
    name: ClassVar[str] = "discounted"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest sum on any day, and the sum on the newest one (or `at`, if that is later)."""
        del leakage_bound
        rows, events = self.publication.parted(history)
        charge, ticks = total_charge(events), TickMeter(_TICK[self.clock]).read(rows).losses
        weights = discount_weights(self.discount, self.rate)
        newest = max([*ticks, *([day_number(at)] if at else [])], default=0)
        counted = format_weight(self.discount, self.rate)
        scope = f"all published days of one household, a loss j {_OF_CLOCK[self.clock]} ago counted {counted}"
        if charge:
            scope += ", the calibration draws counted in full"
        worst, now = self.names
        largest = weights.largest(ticks) + charge
        newest_sum = weighted_sum_to_nano(weights.total(ticks, newest)) + charge
        return [
            LossBound(worst, largest, "assumption-free", f"{scope}, on the worst day", odds=False),
            LossBound(now, newest_sum, "assumption-free", scope, odds=False),
        ]

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of its bounds: on the worst day, on the newest one."""
        worst = f"discounted sum ({self.discount} {self.rate:f}{BY_CLOCK[self.clock]})"
        return worst, f"{worst} on the newest day"


def format_weight(discount: DiscountName, rate: Decimal) -> str:
    """Return the formula of the weight of a loss j days old.

    Source: [F] Definitions 9 and 13.

    Args:
        discount: name of the discount.
        rate: discount rate [-].

    Returns:
        Text with j for the age in days.

    >>> format_weight("exponential", Decimal("0.99")), format_weight("hyperbolic", Decimal(3))
    ('0.99^j', '1/(1 + 3 j)')
    """
    return f"{rate}^j" if discount == "exponential" else f"1/(1 + {rate} j)"


@lru_cache(maxsize=64)
def discount_weights(discount: DiscountName, rate: Decimal) -> DiscountWeights:
    """Return the weights of a discount, one object for equal ones.

    Source: [F] Definitions 9 and 13 (`DiscountWeights`).

    Args:
        discount: name of the discount.
        rate: discount rate [-].

    Returns:
        Weights in units of 2^-64 [-].
    """
    return DiscountWeights(discount, rate)


# --------------------------------------------------------------------------------------------------
# The losses of a discounted schedule in whole nano-epsilon, rounded down, each schedule computed once.
# --------------------------------------------------------------------------------------------------

PlannedLosses = tuple[int, ...]
NamedDiscount = Exponential | Hyperbolic


@lru_cache(maxsize=64)
def closed_plan(discount: NamedDiscount, epsilon: float, horizon: int, method: str) -> PlannedLosses:
    """Return the losses of a series of `horizon` releases [nano-epsilon].

    Source: `discount_schedules.schedule`.

    Args:
        discount: the discount.
        epsilon: bound on the discounted sum [epsilon].
        horizon: number of releases.
        method: name of the schedule.
    """
    return _whole(schedule(discount, epsilon=epsilon, horizon=horizon, method=method))


@lru_cache(maxsize=64)
def endless_plan(discount: NamedDiscount, epsilon: float, releases: int, method: str) -> PlannedLosses:
    """Return the first losses of a series without end [nano-epsilon].

    Source: `discount_schedules.infinite_horizon_schedule`.

    Args:
        discount: the discount.
        epsilon: bound on the discounted sum [epsilon].
        releases: number of losses.
        method: name of the schedule.
    """
    return _whole(infinite_horizon_schedule(discount, epsilon=epsilon, releases=releases, method=method))


def _whole(losses: Floats) -> PlannedLosses:
    return tuple(floor_nano(loss) for loss in losses.tolist())


# --------------------------------------------------------------------------------------------------
# The promise.
# --------------------------------------------------------------------------------------------------

ScheduleName = Literal["renewal", "optimal", "constant", "classical", "paper"]

_WITH_HORIZON: tuple[ScheduleName, ...] = ("optimal", "constant", "classical")
_SHOWN: tuple[ScheduleName, ...] = ("optimal", "renewal", "constant", "paper", "classical")
_RESIDUE = 1000
"""A day's remaining budget counts as 0 if it is this many times smaller than the scheduled loss."""

_YEAR = 366

_SOON_SOLVED = 20_000
"""Releases up to which an optimum that is not about to be released is worth its time, unless in closed form."""

_OPENING: dict[Clock, str] = {
    "data-day": (
        "Old losses are discounted by the day of the data: what was said about a day counts {what} once the data are j "
        "days older than the newest, whenever it was published."
    ),
    "publication-day": (
        "Old losses are discounted by the day of publication: what was said counts {what} j days after it was "
        "published; days of the data that were published together are not discounted against each other."
    ),
}


class _SumOnDay(Remembered):
    """The discounted sum of all losses on a day, kept until a loss changes or another day is asked about.

    Days and losses stand in arrays, in which only what changed is written again.
    """

    def __init__(self) -> None:
        self._losses: DayLosses[int] | None = None
        self._seen = self._day = self._sum = 0
        self._places: dict[int, int] = {}
        self._days, self._values = array("q"), array("q")

    def on(self, losses: DayLosses[int], day: int, weights: DiscountWeights) -> int:
        """Return `weights.total(losses, day)`."""
        if losses is self._losses and (len(losses.changes), day) == (self._seen, self._day):
            return self._sum
        if losses is not self._losses:
            self._losses, self._seen, self._places, self._days, self._values = losses, 0, {}, array("q"), array("q")
        if not losses or losses.total >= SAFE_TOTAL:
            self._losses, total = None, weights.total(losses, day)
        else:
            for tick in losses.changes[self._seen :]:
                place = self._places.setdefault(tick, len(self._days))
                if place == len(self._days):
                    self._days.append(tick)
                    self._values.append(0)
                self._values[place] = losses.get(tick, 0)
            days, values = (np.frombuffer(numbers, np.int64) for numbers in (self._days, self._values))
            total = weights.total_of(days, values, day)
        self._seen, self._day, self._sum = len(losses.changes), day, total
        return total


class Discounted(EnforcedPromise):
    r"""The discounted sum of the losses is at most `epsilon` on every day.

    .. math:: \sum_{k \le t} a(t-k)\, \varepsilon_k \le \varepsilon \;\; \text{for every } t, \qquad
        a(j) = \alpha^j \text{ or } \frac{1}{1 + \beta j}

    with losses in [epsilon] and the age j in [days] since the day that `clock` names.

    Source: [F] Definitions 10 ("exponential") and 14 ("hyperbolic"). Errata: the definitions need "for every t"; after
    Definition 13 the factor is 1/(1 + beta (t-k)).

    References:
        [F] https://doi.org/10.48550/arXiv.1908.03995
    """

    name: ClassVar[str] = "discounted"
    slides: ClassVar[bool] = True
    written_as: ClassVar[Mapping[str, str]] = {"alpha": "rate", "beta": "rate"}
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="epsilon",
        own_bound=OwnBound("discounted sum ({discount} {rate})", "discounted sum"),
        typed=("discount", "rate"),
        proposals={"discount": '"exponential"', "epsilon": "1", "clock": '"data-day"'},
        credit_remedy="a discount that falls faster",
        past="Discounting gives old losses a smaller weight and does not undo them.",
    )

    notion: Literal["discounted"]
    discount: DiscountName
    """Weight of a loss that is j days old: rate^j, or 1 / (1 + rate j)."""
    rate: Amount
    """Discount rate; below 1 if exponential."""
    epsilon: Annotated[Epsilon, LOWER]
    """Bound on the discounted sum of the losses, on every day."""
    schedule: ScheduleName
    """Allocation of the losses to the days; [the notions](notions.md) compare them."""
    horizon_days: Annotated[Days | None, LOWER] = None
    """Number of releases after which the series closes; required for "optimal"."""
    clock: Clock
    """Whether the age of a loss counts from the day of the data or from the day of publication."""

    _ticks: TickMeter = PrivateAttr()
    _sums: _SumOnDay = PrivateAttr(default_factory=_SumOnDay)

    def model_post_init(self, context: object, /) -> None:
        """Count days by the clock."""
        super().model_post_init(context)
        self._ticks = TickMeter(_TICK[self.clock])

    @model_validator(mode="after")
    def _rate_and_horizon(self) -> Self:
        if self.discount == "exponential" and self.rate >= 1:
            raise wrong('must lie between 0 and 1 for discount = "exponential", both excluded', "rate")
        if self.horizon_days is None and self.schedule == "optimal":
            raise wrong('is missing; schedule = "optimal" needs the number of days', "horizon_days")
        if self.horizon_days is None and self.schedule == "constant" and self.discount == "hyperbolic":
            reason = "is missing; a constant loss under hyperbolic discounting needs the number of days"
            raise wrong(reason, "horizon_days")
        if self.horizon_days is not None and self.schedule not in _WITH_HORIZON:
            raise wrong('is used by schedule = "optimal", "constant" and "classical" only; remove it', "horizon_days")
        return self

    @model_validator(mode="after")
    def _first_day_fits(self) -> Self:
        quick = self.discount == "exponential" or (self.horizon_days or 0) <= _SOON_SOLVED
        if self.schedule != "optimal" or quick:
            first = min(self._wanted(0), floor_nano(self.epsilon), self.day_cap)
            if first == 0:
                raise wrong("is too little for the schedule: the first day's part rounds to nothing", "epsilon")
            refuse_day_above_caps(self, first, "epsilon")
        if self.schedule == "renewal" and self._second < _RESIDUE:
            reason = "the first day spends epsilon, whose weight on the second day is close to 1"
            raise wrong(f'{reason}, so the second has no budget; take schedule = "constant" or "optimal"', "rate")
        return self

    @property
    def opening(self) -> str:
        """Return the first line of a statement: the clock of the discount."""
        draws = " The draws of the calibration count in full on every day." if self.charges else ""
        return _OPENING[self.clock].format(what=format_weight(self.discount, self.rate)) + draws

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps and the bound of the discounted sum, which no day of the data exceeds under its own clock.

        By publication the cap alone bounds a day: its series may be published on several dates, discounted apart.
        """
        bound = floor_nano(self.epsilon)
        sums = dict.fromkeys(DiscountedLoss(self.discount, self.rate, self.clock).names, bound)
        day = self.day_cap if self.clock == "publication-day" else min(self.day_cap, bound)
        return {**super().limits, DAY_BOUND: day, **sums}

    def loss(
        self,
        history: Sequence[HistoryRow],
        day: str,
        leakage_bound: LeakageBoundLike | None,
        published_on: str | None = None,
    ) -> int:
        """Return the schedule's loss, as far as caps and the discounted sum on every day from now on leave it.

        Without `published_on` the next date is the newest of the history: dates do not run backwards, and later
        ones leave more.
        """
        losses, ticks = self.day_losses(history), self._ticks.read(history).losses
        spent, earlier = losses.get(day, 0), ticks
        if spent:
            earlier = DayLosses[int]()
            for row in history:
                if row.state == "released":
                    tick = self._ticks.tick(row)
                    earlier.put(tick, earlier.get(tick, 0) + (0 if row.day == day else row.loss))
        bound, now = floor_nano(self.epsilon) - self.charge, day_number(day)
        if self.clock == "publication-day":
            dates = (ticks.newest, day_number(published_on) if published_on else None)
            now = max((date for date in dates if date is not None), default=now)
        available = self._available(earlier, now, bound)
        planned = min(self.day_limit(day), self.planned_loss(losses.without(day), day, leakage_bound))
        regular = min(self._second, planned) if self.schedule == "renewal" else planned
        if available * _RESIDUE < regular:  # what roundings left of a schedule is no release
            return 0
        allowed = min(planned, available)
        if not self.fits_total(history, day, allowed):
            return 0
        return max(0, min(allowed - spent, self._available(ticks, now, bound) if spent else available))

    def _available(self, ticks: DayLosses[int], now: int, bound: int) -> int:
        """Return the largest further loss now that keeps the discounted sum within its bound on every day."""
        if ticks.newest is not None and ticks.newest > now:
            return self._weights.available(ticks, now, bound)
        return self._weights.rest(self._sums.on(ticks, now, self._weights), bound)

    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the loss that the schedule has for the next release after those of other days."""
        del day, leakage_bound
        return self._wanted(losses.released)

    def losses_in_order(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> Iterator[int]:
        """Yield the losses of the schedule, for "renewal" what the days before leave, after a year the newest one.

        Days of an archive that are published on one date are not discounted against each other.
        """
        del leakage_bound
        is_renewal = self.schedule == "renewal"
        is_one_date = self.clock == "publication-day" and self.age_days is None  # only an archive has no age
        bound, ticks, rest = floor_nano(self.epsilon) - self.charge, dict[int, int](), 0
        for number, day in enumerate(days):
            tick, planned = 0 if is_one_date else day_number(day), min(self.day_cap, self._wanted(number))
            if not (is_one_date or is_renewal):
                rest = planned
            elif number < _YEAR:
                rest = self._weights.available(ticks, tick, bound)
            is_residue = rest * _RESIDUE < (min(self._second, planned) if is_renewal else planned)
            yield (loss := 0 if is_residue else min(planned, rest))
            ticks[tick] = ticks.get(tick, 0) + loss

    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if the discounted sum would exceed epsilon on any day, or if `horizon_days` are released."""
        del leakage_bound
        ticks, now = self._ticks.read(history).losses, self._ticks.tick(new_row)
        if ticks.newest is None or ticks.newest <= now:
            largest = self._weights.with_loss(self._sums.on(ticks, now, self._weights), new_row.loss)
        else:
            largest = self._weights.largest({**ticks, now: ticks.get(now, 0) + new_row.loss}, since=now)
        value = largest + self.charge
        refuse_above(new_row.day, "the discounted sum", value, ("epsilon", floor_nano(self.epsilon)))
        released = self.losses_with(history, new_row).released
        if self.horizon_days is not None and new_row.loss > 0 and released > self.horizon_days:
            raise Refused(f"{new_row.day}: horizon_days = {self.horizon_days} days are released and the series is over")

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day, the undiscounted total, and the discounted sums."""
        account = DiscountedLoss(self.discount, self.rate, self.clock, self._publication)
        return [*self.cap_bounds(history), *account.bounds(history, leakage_bound, at)]

    def charged_limits(self) -> Iterator[tuple[str, int, int]]:
        """Yield the caps and epsilon, each with the draws that take a part of it."""
        yield from super().charged_limits()
        yield "epsilon", self.charge, floor_nano(self.epsilon)

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return the promised schedule, and for its discount and those of [compare] the two of least noise."""
        promised = comparison.promise if isinstance(comparison.promise, cls) else None
        of_compare: tuple[tuple[DiscountName, Decimal | None], ...] = (
            ("exponential", comparison.exponential),
            ("hyperbolic", comparison.hyperbolic),
        )
        discounts: list[tuple[DiscountName, Decimal, Clock]] = [
            *([(promised.discount, promised.rate, promised.clock)] if promised else []),
            *((name, rate, "data-day") for name, rate in of_compare if rate is not None),
        ]
        if not discounts:
            return (unavailable("needs a rate; name one in [compare] exponential or hyperbolic"),)
        days = comparison.days
        alternatives = [_candidate(*discounts[0], promised.schedule, promised.horizon_days)] if promised else []
        if promised and promised.horizon_days not in (None, days):  # a method names its horizon if not the period
            alternatives = [replace(alternatives[0], method=f"{alternatives[0].method} of {promised.horizon_days}")]
        for discount in discounts:
            alternatives += [
                _candidate(*discount, "renewal", None),
                _candidate(*discount, "optimal", days, _hard_to_solve(days)),
            ]
        return tuple({alternative.method: alternative for alternative in reversed(alternatives)}.values())[::-1]

    @classmethod
    def comparison_accountants(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the discounts of [compare], by days of the data, unless they are what is promised."""
        discounts: list[tuple[DiscountName, Decimal | None]] = [
            ("exponential", comparison.exponential),
            ("hyperbolic", comparison.hyperbolic),
        ]
        publication, promise = comparison.publication, comparison.promise
        chosen = ((name, rate) for name, rate in discounts if rate is not None)
        accountants = [DiscountedLoss(name, rate, "data-day", publication) for name, rate in chosen]
        if not isinstance(promise, cls):
            return tuple(accountants)
        promised = DiscountedLoss(promise.discount, promise.rate, promise.clock, publication)
        return tuple(accountant for accountant in accountants if accountant != promised)

    def alternatives(self, days: int) -> dict[str, float]:
        """Return the mean noise scale over `days` releases by schedule [multiple of the clamp], the promised one first.

        Without schedules that a cap would cut, that take long, or that this discount does not have. Empty where a cap
        cuts the promised one, or an archive's days, published on one date, are not discounted against each other.
        """
        if self.clock == "publication-day" and self.age_days is None:  # only an archive has no age
            return {}
        count = self.horizon_days or days
        names = [self.schedule, *(name for name in _SHOWN if name != self.schedule)]
        mean_noise: dict[str, float] = {}
        for name in names:
            if name != "optimal" or name == self.schedule or count <= _SOON_SOLVED:
                ended = name != self.schedule or name == "renewal" or self.horizon_days is not None
                losses = (closed_plan if ended else endless_plan)(self._discounting, float(self._room), count, name)
                if losses[-1] > 0 and max(losses) <= self.day_cap and self.permits_days(losses):  # no cap cuts it
                    mean_noise[name] = float(np.mean(NANO / np.array(losses)))
        return mean_noise if self.schedule in mean_noise else {}

    def _wanted(self, released: int) -> int:
        """Return the loss of the next release by the schedule [nano-epsilon]."""
        if self._room <= 0:
            return 0
        if self.schedule == "renewal":
            return floor_nano(self._room)
        if self.horizon_days is None:
            count = max(64, 1 << released.bit_length())
            losses = endless_plan(self._discounting, float(self._room), count, self.schedule)
            return losses[released]
        losses = closed_plan(self._discounting, float(self._room), self.horizon_days, self.schedule)
        return losses[released] if released < self.horizon_days else 0

    @property
    def _second(self) -> int:
        """Return renewal's second loss, epsilon less what the first still counts; later ones fall by a logarithm."""
        rate = Fraction(self.rate)
        part = 1 - rate if self.discount == "exponential" else rate / (1 + rate)
        return floor_nano(part * Fraction(self._room))

    @property
    def _room(self) -> Decimal:
        """Return what the calibration draws leave of epsilon for the schedule [epsilon]."""
        return Decimal(floor_nano(self.epsilon) - self.charge) / NANO if self.charges else self.epsilon

    @property
    def _discounting(self) -> NamedDiscount:
        return Exponential(float(self.rate)) if self.discount == "exponential" else Hyperbolic(float(self.rate))

    @property
    def _weights(self) -> DiscountWeights:
        return discount_weights(self.discount, self.rate)


def _candidate(
    discount: DiscountName, rate: Decimal, clock: Clock, schedule: ScheduleName, horizon: int | None, reason: str = ""
) -> Alternative:
    keys: dict[str, object] = {"discount": discount, "rate": rate, "schedule": schedule, "clock": clock}
    if horizon is not None:
        keys["horizon_days"] = horizon
    return Alternative(
        f"{discount} {rate}{BY_CLOCK[clock]}, {schedule}", promise_keys("epsilon", **keys), reason=reason
    )


def _hard_to_solve(days: int | None) -> str:
    """Return why an optimum over `days` days is not among the alternatives; "" if it is."""
    if days is None:
        return "an optimum needs [schedule] last_day"
    return f"an optimum over {days} days takes long; renewal is near it" if days > _SOON_SOLVED else ""
