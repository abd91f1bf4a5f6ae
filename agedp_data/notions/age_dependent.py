"""Age-dependent privacy: a bound on what aged releases reveal about a household's present state ([A]).

Example: with risk = 0.1 and age_days = 2, a chain that mixes fast lets each day spend up to `max_day_epsilon`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import groupby, repeat
from typing import Annotated, ClassVar, Final, Literal, Self, SupportsFloat

from pydantic import PrivateAttr, model_validator

from agedp_data.accounting.ageing import aged_epsilon
from agedp_data.accounting.composition import Composition, SumComposition
from agedp_data.accounting.temporal_allocation import largest_feasible
from agedp_data.amendment_rules import LOWER, RAISE
from agedp_data.epsilon import NANO, floor_nano, format_epsilon, to_float
from agedp_data.errors import ChainError, Refused
from agedp_data.leakage.exact import to_integers
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.classical import refuse_day_above_caps
from agedp_data.notions.enforcement import EnforcedPromise, ModelCache, refuse_above
from agedp_data.notions.notion import (
    DAY_BOUND,
    Accountant,
    ChangedDays,
    HistoryRow,
    LossBound,
    Losses,
    NotionText,
    OwnBound,
)
from agedp_data.notions.publication import (
    Alternative,
    Comparison,
    Publication,
    day_number,
    promise_keys,
    total_charge,
)
from agedp_data.notions.spans import EMPTY, Span, SpanCurves, bound_at_delta, stated_deltas
from agedp_data.parameters import AgeDays, Epsilon, Method, wrong

# --------------------------------------------------------------------------------------------------
# Age-dependent loss of released rows under a leakage bound, in nano-epsilon ([A] Theorems 1 and 3).
#
# All arithmetic is on integers, rounded up at each use of the leakage bound, so that the planned, the admitted and the
# stated numbers are the same.
#
# Decisions. A gap between inputs is a gap between days of the data: a day counts as one day of the chain also when the
# clock changes. Days that are released out of order are composed by the time of their input.
# --------------------------------------------------------------------------------------------------

Secret = Literal["day", "half-hour"]
DAY: Final = "day"
HALF_HOUR: Final = "half-hour"

ABOUT: dict[Secret, str] = {
    DAY: "the total of one household's current day",
    HALF_HOUR: "one household's current half-hour",
}
ASSUMED = {
    "markov": "each household is an independent Markov chain that mixes at least as fast as the model",
    "curve": "each household is independent of the others and mixes at least as fast as the model",
}
_OF_A_SHARE = {
    "markov": "the household is one of those whose estimated chains lie below the model's curve ({share}; which ones "
    "is not published) and mixes as its chain says, by a Markov chain, independently of the others",
    "curve": "the household is one of those whose estimated chains lie below the model's curve ({share}; which ones is "
    "not published) and mixes as its chain says, independently of the others",
}
NO_MODEL = "there is no model"
RISK: Final = "risk"

# From 1000 epsilon on floats are coarser than the slack that covers them, and no promise is about such losses.
_NOTHING_CREDITED: Final = 1000 * NANO


def _float_to_nano(loss: SupportsFloat) -> int | None:
    """Return a float loss [epsilon] in nano-epsilon, rounded up; None if infinite.

    The float nearest to a whole number of nano-epsilon counts as that number (`epsilon.ceil_nano` would take its binary
    value and go one further).

    >>> _float_to_nano(0.1), _float_to_nano(0.1000000001), _float_to_nano(float("inf"))
    (100000000, 100000001, None)
    """
    nano = to_integers([float(loss)])[0]
    return nano if isinstance(nano, int) else None


@lru_cache(maxsize=8)
def _computed(leakage_bound: LeakageBoundLike, method: Method) -> dict[tuple[int, int], int]:
    """Return the values of L so far, by age and loss: promise, bounds and comparisons ask for the same ones."""
    del leakage_bound, method
    return {}


class AgedLeakage:
    r"""The leakage function L at an age in steps, in nano-epsilon; each value is computed once.

    .. math:: (t, a) \mapsto L_{\hat P^t}(a)

    Source: [A] Theorem 1 with the tight L, in integers [nano-epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """

    def __init__(self, leakage_bound: LeakageBoundLike, *, method: Method) -> None:
        self.leakage_bound = leakage_bound
        self.method = method
        self._cache = _computed(leakage_bound, method)
        self._composition = self.composition()
        self._changed = ChangedDays()

    def __call__(self, age_steps: int, loss: int) -> int:
        r"""Leakage L_{\hat P^t}(a) of a loss at an age t, rounded up and never above `loss`.

        Args:
            age_steps: age t [steps of the chain].
            loss: privacy loss a about the input [nano-epsilon].

        Returns:
            [nano-epsilon].
        """
        if age_steps <= 0 or loss == 0 or loss >= _NOTHING_CREDITED:
            return loss
        key = (age_steps, loss)
        if key not in self._cache:
            remaining = self.leakage_bound(age_steps, to_float(loss), direction="backward", method=self.method)
            rounded = _float_to_nano(remaining)
            self._cache[key] = loss if rounded is None else min(rounded, loss)
        return self._cache[key]

    def peak(self, loss: int, age_steps: int) -> int | None:
        r"""Largest risk of a daily series without end, each day with the same loss.

        .. math:: L_{\hat P^A}(z^*), \qquad z^* = \sup_z \; e + L_{\hat P^{1\,day}}(z)

        Source: [A] Theorem 3 and eq. 30, with the tight L.

        Args:
            loss: loss e of each day [nano-epsilon].
            age_steps: age A of a day at its release [steps].

        Returns:
            [nano-epsilon]; None if the risk is infinite.
        """
        composed = self.leakage_bound.supremum(
            self.leakage_bound.steps_per_day, to_float(loss), direction="backward", method=self.method
        )
        at_age = _float_to_nano(self.leakage_bound(age_steps, composed, direction="backward", method=self.method))
        return at_age if age_steps > 0 else _float_to_nano(composed)

    def composition(self) -> Composition[int]:
        """Return an empty composition of losses [nano-epsilon] by the instant of their input (`instant`)."""
        composed = Composition if self.leakage_bound.assume == "markov" else SumComposition
        return composed(lambda gap: partial(self, gap))

    def of(self, losses: Mapping[str, int]) -> Composition[int]:
        """Return the composition of days with these losses; the caller must not change it.

        Losses of a growing history are asked about again with what one row changed: only that is composed again.
        """
        days = self._changed.since(losses)
        if days is None:
            releases = sorted((self.instant(day), loss) for day, loss in losses.items())
            self._composition.replace([instant for instant, _ in releases], [loss for _, loss in releases])
        for day in days or ():
            self._composition.set(self.instant(day), losses.get(day))
        return self._composition

    def instant(self, day: str) -> int:
        """Return the instant of a day's input [steps of the chain], from a common origin."""
        return day_number(day) * self.leakage_bound.steps_per_day


@dataclass(frozen=True, slots=True)
class AgedLoss:
    """Accountant of the age-dependent loss: the largest risk at any instant, about the current day or half-hour.

    `age_days` is the age below which nothing is released; where the publication date alone proves a larger age, that
    one counts. For the secret "day" ages are rounded down to whole days, since the current day began then. A model
    without bounds by `method` (an earlier curve beside a newer kernel) is read by its total variations; a bound that is
    reported for its method alone is then left out. The loss of all draws and of rows about several days is added
    unaged (`publication`).

    Source: [A] Definition 10 and Theorem 3, composed as in `Composition` [nano-epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """

    age_days: int
    method: Method
    secret: Secret
    bound_name: str = RISK
    publication: Publication = field(default=Publication(), hash=False)
    name: ClassVar[str] = "age-dependent"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest risk at `at` and at every later publication; without a model None, and why."""
        if leakage_bound is None:
            return [LossBound(self.bound_name, None, "conditional", ABOUT[self.secret], NO_MODEL)]
        if self.bound_name != RISK and self.method not in leakage_bound.methods:
            return []
        method: Method = self.method if self.method in leakage_bound.methods else "total_variation"
        assumption = f"{assumed(leakage_bound)} (method {method})"
        rows, events = self.publication.parted(history)
        value = self._largest(rows, AgedLeakage(leakage_bound, method=method), at) + total_charge(events)
        return [LossBound(self.bound_name, value, "conditional", ABOUT[self.secret], assumption)]

    def by(self, method: Method) -> AgedLoss:
        """Return the same of another method, under a name of its own."""
        return replace(self, method=method, bound_name=f"{RISK} ({method.replace('_', ' ')})")

    def _largest(self, history: Sequence[HistoryRow], aged: AgedLeakage, at: str | None) -> int:
        composition, largest = aged.composition(), 0
        for rows, age in self.publications(history, at, aged.leakage_bound.steps_per_day):
            for row in rows:
                composition.add(aged.instant(row.day), row.loss)
            if age is not None:
                largest = max(largest, composition.leakage(composition.inputs[-1] + age))
        return largest

    def publications(
        self, history: Sequence[HistoryRow], at: str | None, steps_per_day: int
    ) -> Iterator[tuple[list[HistoryRow], int | None]]:
        """Yield the rows of each publication date, and the age of the newest input then [steps]; no age before `at`.

        Between publications the risk only falls: only `at` and later publications matter.
        """
        rows, newest = sorted((row for row in history if row.state == "released"), key=_published), ""
        dates = {row.published_on: () for row in rows} | ({at: ()} if at is not None else {})
        of_date = {on: list(released) for on, released in groupby(rows, key=_published)}
        for on in sorted(dates):
            published = of_date.get(on, [])
            newest = max([newest, *(f"{row.day} {row.input_ended_at}" for row in published)])
            is_asked = newest and (at is None or on >= at)
            yield published, self.age_steps(newest.partition(" ")[2], on, steps_per_day) if is_asked else None

    def risk_at(self, losses: Losses, aged: AgedLeakage, on: str, *, newest: str, ended_at: str) -> int:
        """Return the risk of released days with these losses, all of them public on the date `on`.

        `ended_at` is the instant at which the input of the newest day ended.
        """
        age = self.age_steps(ended_at, on, aged.leakage_bound.steps_per_day)
        return aged.of(losses).leakage(aged.instant(newest) + age)

    def age_steps(self, input_ended_at: str, on: str, steps_per_day: int) -> int:
        """Return the age of an input at 00:00 UTC of a date, rounded down, and at least `age_days`.

        >>> AgedLoss(2, "tight", "half-hour").age_steps("2013-10-05T14:00:00Z", "2013-10-09", 48)
        164
        """
        elapsed = utc_midnight(on) - datetime.fromisoformat(input_ended_at)
        steps = elapsed * steps_per_day // timedelta(days=1)
        if self.secret == DAY:
            steps -= steps % steps_per_day
        return max(self.age_days * steps_per_day, steps)


def assumed(leakage_bound: LeakageBoundLike) -> str:
    """Return the assumption of a bound under a model: about each household, or about those that the model bounds.

    Source: text, without a formula.

    Args:
        leakage_bound: the model.
    """
    if leakage_bound.share:
        return _OF_A_SHARE[leakage_bound.assume].format(share=leakage_bound.share)
    return ASSUMED[leakage_bound.assume]


def utc_midnight(day: str) -> datetime:
    """Return the first instant of a UTC date.

    Source: ISO 8601 date, 00:00 UTC.

    Args:
        day: ISO date.

    Returns:
        An instant with time zone UTC.

    Raises:
        ValueError: not an ISO date.
    """
    return datetime.combine(date.fromisoformat(day), time(), UTC)


def _published(row: HistoryRow) -> str:
    return row.published_on


# --------------------------------------------------------------------------------------------------
# Loss about the present of all aged releases together, as (epsilon, delta) bounds under a chain.
#
# The idea: the bound of a span (`spans`) is about everything that a household did on the released days. Under a
# Markov chain the whole past says about the present what the newest released day says, and that has the total
# variation Delta of its age. So the profile of the span ages as one release does (`accounting.ageing`).
#
# Decisions:
#
# * Without the Markov assumption nothing is returned: a declared curve bounds what one day says about the present, and
#   leaving one release of many to it gains next to nothing.
# * It is returned where it says more than both bounds beside it: the risk, composed from pure losses, and the bound of
#   the span without ageing. Households that mix fast have the smaller risk, those that hardly mix the one of the span.
#   A pure risk has a smaller epsilon at a delta already; less than that says nothing.
# * Calibration draws are not aged. A draw with loss c has probabilities within e^c for all pasts of a household, so c
#   is added, and delta of the releases is divided by e^c first.
# --------------------------------------------------------------------------------------------------

_ROUNDED_DOWN = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class AgedSpanLoss:
    r"""Accountant of the (epsilon, delta) loss of all releases about the present, at each of `deltas`.

    For any two states s, s' of the household now, and every set S of results,

    .. math:: \Pr[S \mid s] \le e^{\varepsilon} \Pr[S \mid s'] + \delta, \qquad
        \varepsilon = c + \ln \bigl( 1 + \Delta\,(e^{\varepsilon_R(\delta e^{-c} / \Delta)} - 1) \bigr)

    with R the curve of all rows published until then, Delta the total variation at the age of the newest of them, and c
    the loss of the calibration draws; the largest over `at` and all later publications.

    `risk` is the accountant of the smallest pure risk: its age, its secret and what is published.

    Source: `aged_epsilon`; the ages as in `AgedLoss` [nano-epsilon].
    """

    risk: AgedLoss
    deltas: tuple[Decimal, ...]
    name: ClassVar[str] = "age-dependent"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the loss at each delta; nothing without a chain, or if it says no more than the bounds beside it."""
        if leakage_bound is None or leakage_bound.assume != "markov":
            return []
        curves = SpanCurves(self.risk.publication)
        rows, events = self.risk.publication.parted(history)
        spans = self._spans(curves, rows, leakage_bound, at)
        unaged, charge = [curves.total(history).epsilon(delta) for delta in self.deltas], total_charge(events)
        losses = [min(loss, _aged_loss(spans, charge, delta)) for loss, delta in zip(unaged, self.deltas, strict=True)]
        if losses == unaged:
            return []
        pure_risk = self.risk.bounds(history, leakage_bound, at)[0].value
        if pure_risk is not None:
            if all(loss >= _at_delta(pure_risk, delta) for loss, delta in zip(losses, self.deltas, strict=True)):
                return []
            losses = [min(loss, pure_risk) for loss in losses]
        days = self.risk.age_days
        age = f", the newest of whose days is at least {days} day{'s' * (days > 1)} old" if days else ""
        scope = f"{ABOUT[self.risk.secret]}, by all releases together{age}"
        name, assumption = f"{RISK} of all days", assumed(leakage_bound)
        return [
            bound_at_delta(name, loss, "conditional", scope, delta=delta, assumption=assumption)
            for delta, loss in zip(self.deltas, losses, strict=True)
        ]

    def _spans(
        self, curves: SpanCurves, rows: Sequence[HistoryRow], leakage_bound: LeakageBoundLike, at: str | None
    ) -> list[tuple[float, Span]]:
        """Return total variation and span of those publications that no later one of the same age contains."""
        span, span_at_age = EMPTY, {}
        for published, age in self.risk.publications(rows, at, leakage_bound.steps_per_day):
            span = sum(map(curves.of_row, published), span)
            if age is not None:
                span_at_age[age] = span
        return [(leakage_bound.total_variation(age), span) for age, span in span_at_age.items()]


def _aged_loss(spans: Sequence[tuple[float, Span]], charge: int, delta: Decimal) -> int:
    """Return the largest aged loss at a delta, with what counts unaged."""
    part = Fraction(delta) * Fraction(math.exp(-to_float(charge)) * _ROUNDED_DOWN) if charge else delta
    aged = (aged_epsilon(span.curve, distance, part, pure=span.pure) for distance, span in spans)
    return max(aged, default=0) + charge


def _at_delta(risk: int, delta: Decimal) -> int:
    """Return the epsilon at a delta of any release with this pure loss [nano-epsilon].

    Randomised response, the worst of them, is (x, delta)-private for e^x = e^risk - delta (1 + e^risk).
    """
    epsilon = to_float(risk)
    part = float(delta) * (1 + math.exp(-epsilon))
    return max(0, floor_nano(epsilon + math.log1p(-part))) if part < 1 else 0


# --------------------------------------------------------------------------------------------------
# The promise.
# --------------------------------------------------------------------------------------------------


class AgeDependent(EnforcedPromise):
    r"""Days are released `age_days` old, with a constant loss, or with the largest one that keeps `risk`.

    .. math:: \varepsilon(t) = L_{\hat P^t}(\varepsilon_C), \qquad
        z_1 = e_1,\; z_k = e_k + L_{\hat P^{g_k}}(z_{k-1}),\; \varepsilon(t) = L_{\hat P^{t - u_n}}(z_n)

    with the reversed chain, g_k the gaps between the inputs, all losses in [epsilon]. Two present states of one
    household are compared, not two old days: the old day keeps the loss of its day.

    Source: [A] Definition 4, Theorems 1 and 3. Errata: the forward kernel of eq. 12 understates the risk of
    non-reversible chains; eq. 25 taken literally is wrong where an input is older than the previous publication, so
    releases are sorted by input time.

    With `risk` and assume = "markov" the day's loss is the largest constant e with L_A(z*) <= risk, z* the supremum of
    z -> e + L_1day(z). With assume = "curve" it is the largest e of a single release, spent until the sum rule
    (`Composition`) is exhausted.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147
    """

    name: ClassVar[str] = "age-dependent"
    needs_model: ClassVar[bool] = True
    TEXT: ClassVar[NotionText] = NotionText(
        epsilon_key="epsilon_per_day",
        own_bound=OwnBound(RISK, "risk at {age_days} days"),
        proposals={"secret": '"day"'},
        credit_remedy="a model that mixes faster",
        past="Ageing protects the present only.",
    )

    notion: Literal["age-dependent"]
    age_days: Annotated[AgeDays, RAISE]
    """Age of a day at its release, in days; required for "live", "rehearsal" and "age-dependent"."""
    epsilon_per_day: Annotated[Epsilon | None, LOWER] = None
    """Epsilon of one day; write this key or `risk`."""
    risk: Annotated[Epsilon | None, LOWER] = None
    """Bound on the age-dependent loss about the present. The epsilon of a day is solved from the model's public part,
    within the caps.
    """
    method: Method
    """How the bound is computed. "tight": the exact leakage function of the chains. "total_variation": from the total
    variation alone, all that a declared curve allows. "spectral", "reversibilised": from the spectral-gap bound of
    reversible chains, of the reversibilised chain (every chain).
    """
    secret: Secret
    """What the bound is about: the total of the current day, or one half-hour."""

    _solutions: ModelCache[tuple[LeakageBoundLike, int, AgedLeakage]] = PrivateAttr(default_factory=ModelCache)

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.epsilon_per_day is None and self.risk is None:
            raise wrong("is missing; write it, or risk to have it solved", "epsilon_per_day")
        if self.epsilon_per_day is not None and self.risk is not None:
            raise wrong("stands beside risk; write exactly one of the two", "epsilon_per_day")
        if self.epsilon_per_day is not None:
            refuse_day_above_caps(self, floor_nano(self.epsilon_per_day))
        return self

    def planned_loss(self, losses: Losses, day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return `epsilon_per_day`, or the solved loss, less where `losses` would bring the risk above its bound."""
        if self.risk is None:
            return floor_nano(self.epsilon_per_day or 0)
        constant, aged = self._constant(leakage_bound)
        bound, age = floor_nano(self.risk) - self.charge, self.age_days * aged.leakage_bound.steps_per_day

        composition, instant = aged.of(losses), aged.instant(day)
        newest = max([instant, *composition.inputs[-1:]])

        def fits(loss: int) -> bool:
            return composition.leakage_with(instant, loss, newest + age) <= bound

        if aged.leakage_bound.assume == "markov":
            return largest_feasible(fits, constant)
        return constant if fits(constant) else 0

    def losses_in_order(self, days: Sequence[str], leakage_bound: LeakageBoundLike | None) -> Iterable[int]:
        """Return the same loss for each day: `epsilon_per_day`, or the solved one; under a curve as long as it fits."""
        if self.risk is None:
            return repeat(floor_nano(self.epsilon_per_day or 0), len(days))
        constant, aged = self._constant(leakage_bound)
        is_chain = aged.leakage_bound.assume == "markov"  # whose supremum keeps the risk
        return repeat(constant, len(days)) if is_chain else super().losses_in_order(days, leakage_bound)

    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if `new_row` is younger than `age_days`, or a day or the risk exceeds its bound."""
        self._refuse_young(new_row)
        if self.epsilon_per_day is not None:
            spent = self.losses_with(history, new_row)[new_row.day]
            refuse_above(new_row.day, "the day", spent, ("epsilon_per_day", floor_nano(self.epsilon_per_day)))
        if self.risk is not None:
            losses, aged = self.losses_with(history, new_row), self._constant(leakage_bound)[1]
            newest = max(self.day_losses(history).newest or "", new_row.day)
            ended_at = self.ended(history).get(newest, new_row.input_ended_at)
            risk = self._account.risk_at(losses, aged, new_row.published_on, newest=newest, ended_at=ended_at)
            risk += self.charge
            refuse_above(new_row.day, f"the risk to {ABOUT[self.secret]}", risk, ("risk", floor_nano(self.risk)))

    def review(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if the released days exceed `risk` at any instant under this leakage bound."""
        if self.risk is None:
            return
        bound = self._account.bounds(history, leakage_bound, None)[0]
        if bound.value is None or bound.value > floor_nano(self.risk):
            description = "no finite risk" if bound.value is None else f"a risk of {format_epsilon(bound.value)}"
            raise Refused(
                f"under a model that its contracts name the released days already have {description}, more than risk = "
                f"{format_epsilon(floor_nano(self.risk))}; releases stop, nothing is rewritten"
            )

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the largest loss of a day, the total, and last the largest risk from `at` on."""
        return [*self.cap_bounds(history), *self._account.bounds(history, leakage_bound, at)]

    def charged_limits(self) -> Iterator[tuple[str, int, int]]:
        """Yield the caps, and `risk` if that is what is promised, each with the draws that take a part of it."""
        yield from super().charged_limits()
        if self.risk is not None:
            yield "risk", self.charge, floor_nano(self.risk)

    @classmethod
    def candidates(cls, comparison: Comparison) -> tuple[Alternative, ...]:
        """Return the risk by every method of the model, at the age of the run file, or at the end of the day."""
        promised = comparison.promise if isinstance(comparison.promise, cls) else None
        methods: tuple[Method, ...] = comparison.methods or ("tight",)
        age, secret = comparison.promise.age_days or 0, promised.secret if promised else DAY
        methods_by_preference = sorted(methods, key=lambda method: promised is not None and method != promised.method)
        return tuple(
            Alternative(
                method.replace("_", " "),
                promise_keys("risk", age_days=age, method=method, secret=secret),
                bound_name=RISK,
            )
            for method in methods_by_preference
        )

    @classmethod
    def comparison_accountants(cls, comparison: Comparison) -> tuple[Accountant, ...]:
        """Return the risk by every method that the model allows, the sharpest as "risk" where none is promised.

        Under this promise also the risk of all days at each stated delta.
        """
        if not comparison.methods:
            return ()
        promise, publication = comparison.promise, comparison.publication
        promised = promise._account if isinstance(promise, cls) else None
        accountant = promised or AgedLoss(promise.age_days or 0, comparison.methods[0], DAY)
        accountant = replace(accountant, publication=publication)
        further = (accountant.by(method) for method in comparison.methods if method != accountant.method)
        if not isinstance(promise, cls):
            return (accountant, *further)
        sharpest = replace(accountant, method=comparison.methods[0])
        return (*further, AgedSpanLoss(sharpest, stated_deltas(promise.delta)))

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps, `epsilon_per_day` where it is less, and `risk` if that is what is promised."""
        day = min(self.day_cap, floor_nano(self.epsilon_per_day)) if self.epsilon_per_day is not None else self.day_cap
        risk = {} if self.risk is None else {RISK: floor_nano(self.risk)}
        return {**super().limits, DAY_BOUND: day, **risk}

    @property
    def _account(self) -> AgedLoss:
        return AgedLoss(self.age_days, self.method, self.secret, publication=self._publication)

    def _refuse_young(self, new_row: HistoryRow) -> None:
        # The date is all that is recorded, so its last instant must already be too early.
        end_of_date = utc_midnight(new_row.published_on) + timedelta(days=1)
        if end_of_date < datetime.fromisoformat(new_row.input_ended_at) + timedelta(days=self.age_days):
            raise Refused(
                f"{new_row.day}: published on {new_row.published_on} it would be younger than "
                f"age_days = {self.age_days}"
            )

    def _constant(self, leakage_bound: LeakageBoundLike | None) -> tuple[int, AgedLeakage]:
        if leakage_bound is None:
            raise ChainError("a promise of risk needs a model; declare one, or run `agedp calibrate`")
        if id(leakage_bound) not in self._solutions:
            aged = AgedLeakage(leakage_bound, method=self.method)
            self._solutions[id(leakage_bound)] = (leakage_bound, self._solve(aged), aged)
        return self._solutions[id(leakage_bound)][1:]

    def _solve(self, aged: AgedLeakage) -> int:
        age = self.age_days * aged.leakage_bound.steps_per_day
        bound = floor_nano(self.risk or 0) - self.charge

        def keeps(loss: int) -> bool:
            if aged.leakage_bound.assume != "markov":
                return aged(age, loss) <= bound
            peak = aged.peak(loss, age)
            return peak is not None and peak <= bound

        return largest_feasible(keeps, self.day_cap)
