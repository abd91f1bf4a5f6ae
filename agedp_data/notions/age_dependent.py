"""Age-dependent privacy: a bound on what aged releases reveal about a household's present state ([A]).

Example: with risk = 0.1 and age_days = 2, a chain that mixes fast lets each day spend up to `max_day_epsilon`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import repeat
from typing import Annotated, ClassVar, Literal, Self

from pydantic import PrivateAttr, model_validator

from agedp_data.accounting.temporal_plans import largest_feasible
from agedp_data.amendment_rules import LOWER, RAISE
from agedp_data.epsilon import floor_nano, format_epsilon
from agedp_data.errors import ChainError, Refused
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.aged_loss import ABOUT, DAY, RISK, AgedLeakage, AgedLoss, Secret, utc_midnight
from agedp_data.notions.aged_span import AgedSpanLoss
from agedp_data.notions.alternatives import Alternative, Comparison, promise_keys
from agedp_data.notions.classical import refuse_day_above_caps
from agedp_data.notions.enforcement import EnforcedPromise, ModelCache, refuse_above
from agedp_data.notions.notion import (
    DAY_BOUND,
    Accountant,
    HistoryRow,
    LossBound,
)
from agedp_data.notions.notion_text import NoiseExample, NotionText, OwnBound
from agedp_data.notions.period_loss import total_charge
from agedp_data.notions.span_loss import stated_deltas
from agedp_data.parameters import AgeDays, Epsilon, Method, wrong


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
        examples=(
            NoiseExample(
                "epsilon {e} for each day; a model bounds the risk, its loss about the present by age",
                {"epsilon_per_day": "{e}", "age_days": "2", "method": '"total_variation"', "secret": '"day"'},
            ),
        ),
        proposals={"secret": '"day"'},
        credit_remedy="a model that mixes faster",
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
    """How the bound is computed. "tight": the exact leakage function of the chains, the sharpest. "total_variation":
    from the total variation alone. "spectral": from the spectral-gap bound (reversible chains).
    "reversibilised": from the spectral-gap bound of the reversibilised chain (every chain). A declared curve allows
    "total_variation" only.
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

    def planned_loss(self, losses: Mapping[str, int], day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return `epsilon_per_day`, or the solved loss, less where `losses` would bring the risk above its bound."""
        if self.risk is None:
            return floor_nano(self.epsilon_per_day or 0)
        constant, aged = self._constant(leakage_bound)
        bound, age = floor_nano(self.risk) - self.charge, self.age_days * aged.leakage_bound.steps_per_day

        composition, instant = aged.of(losses), aged.instant(day)
        newest = max([instant, *composition.inputs[-1:]])

        def fits(loss: int) -> bool:
            return composition.with_release(instant, loss).leakage(newest + age) <= bound

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
            rows = [row for row in (*history, new_row) if row.state == "released"]
            _, aged = self._constant(leakage_bound)
            risk = self._account.risk_at(rows, aged, new_row.published_on) + self.charge
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
        accountant = replace(accountant, charge=total_charge(publication.charges))
        further = (accountant.by(method) for method in comparison.methods if method != accountant.method)
        if not isinstance(promise, cls):
            return (accountant, *further)
        sharpest = replace(accountant, method=comparison.methods[0])
        return (*further, AgedSpanLoss(sharpest, publication, stated_deltas(promise.delta)))

    @property
    def limits(self) -> dict[str, int | None]:
        """Return the caps, `epsilon_per_day` where it is less, and `risk` if that is what is promised."""
        day = min(self.day_cap, floor_nano(self.epsilon_per_day)) if self.epsilon_per_day is not None else self.day_cap
        risk = {} if self.risk is None else {RISK: floor_nano(self.risk)}
        return {**super().limits, DAY_BOUND: day, **risk}

    @property
    def _account(self) -> AgedLoss:
        return AgedLoss(self.age_days, self.method, self.secret, charge=self.charge)

    def _refuse_young(self, new_row: HistoryRow) -> None:
        # The date is all that is recorded, so its last instant must already be too early.
        end_of_date = utc_midnight(new_row.published_on) + timedelta(days=1)
        if end_of_date < datetime.fromisoformat(new_row.input_ended_at) + timedelta(days=self.age_days):
            raise Refused(
                f"{new_row.day}: published on {new_row.published_on} it would be younger than "
                f"age_days = {self.age_days}; nothing was drawn"
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
