"""The least peak risk for each error, over age and interval: of a penalty (Figure 6), and of a run file.

`compute_frontier` takes run file, leakage bound, roster and published rows; `agedp plan --frontier` of 0.2 printed it.

Public: it uses no reading. Before the next release, the newest mean is at most A + S days old (age plus interval). As
an estimate of the current day its error consists of the noise and of the change of the mean in these days:

    f(A + S, e)^2 = (standard deviation of the noise at e)^2 + (A + S) change^2      [kWh per household]

for a random walk of the mean with `change` from day to day (`row_noise.change_yardstick`): estimated from the
published series, or 1 kWh per household without enough days. The risk is the peak of an endless series of such
releases, L_A(z*) with z* the supremum of z -> e + L_S(z) under assume = "markov" ([A] Theorem 3); under "curve" the
composed loss of the period's releases by the sum rule. The search is exact over whole days (`accounting.ageing`); no
loss exceeds `max_day_epsilon`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agedp.planning.forecast import ForecastView, smallest_group_size
from agedp.planning.row_noise import ChangeYardstick, change_yardstick
from agedp.signal_against_noise import rows_of_means
from agedp_data import mechanisms
from agedp_data.accounting.ageing import AgePlan, PeakRiskFunction, Penalty, plan_ageing, plan_least_penalty
from agedp_data.accounting.temporal_allocation import largest_feasible
from agedp_data.config.run_file import RunFile
from agedp_data.epsilon import floor_nano, to_float
from agedp_data.errors import ChainError, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ReleaseRecord
from agedp_data.model import Model
from agedp_data.notions.age_dependent import AgeDependent
from agedp_data.notions.notion import DayLosses
from agedp_data.notions.publication import share_of, total_charge
from agedp_data.notions.spans import SpanCurves
from agedp_data.parameters import MANY_DAYS, Method
from agedp_data.roster import RosterCounts
from agedp_data.series.mean import is_daily_mean

HORIZON_DAYS = 28

_ROUNDING = 1e-6
_ROWS = 8
_SMALLEST_CAP_DIVISOR = 8  # of the day's cap, where the table ends


@dataclass(frozen=True, slots=True)
class SchedulePoint:
    """A schedule: loss of each release [-], age and interval [days], peak risk [-], error and noise [kWh/household].

    A risk without a peak is infinite: it grows with every release until `ended_by` ("epsilon_total" or "last_day") ends
    the series, with the composed loss `adds_up_to`; None if nothing ends it.

    `days` is the number of days that `epsilon_total`, at the promised delta, suffices for, None if unlimited.
    `promised` marks the schedule of the run file; `cheapest` the daily schedule with the smallest error and a risk of
    at most the target (a run publishes daily).
    """

    loss: float
    age_days: int
    interval_days: int
    risk: float
    error_kwh: float
    noise_kwh: float
    days: int | None
    adds_up_to: float | None = None
    ended_by: str = ""
    promised: bool = False
    cheapest: bool = False


@dataclass(frozen=True, slots=True)
class Frontier:
    """Schedules by ascending error, and their inputs; `target` is the risk promised or reached by the run file."""

    choices: tuple[SchedulePoint, ...]
    series: str
    households: int
    method: Method
    target: float | None
    change: ChangeYardstick


def frontier(
    risk_of: PeakRiskFunction,
    penalty: Penalty,
    *,
    max_penalties: list[float],
    horizon: int,
    max_loss: float,
) -> list[AgePlan | None]:
    r"""Best schedule for each bound on the penalty: the trade-off between risk and error.

    Use it to draw the privacy-utility curve of a chain.

    .. math:: f_{max} \mapsto \min \varepsilon^* \quad \text{s.t.} \quad f(A + S, \varepsilon) \le f_{max}

    Source: [A] Fig. 6. Erratum to Corollary 3: its condition fails for the mean square error, so a trade-off exists.

    Args:
        risk_of: as in `plan_ageing`.
        penalty: as in `plan_ageing`.
        max_penalties: bounds, one per result [unit of the penalty].
        horizon: the largest A + S tried, >= 1 [steps].
        max_loss: the largest loss of a release [epsilon].

    Returns:
        One schedule per bound, None where no schedule satisfies it.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> plans = frontier(lambda loss, age, interval: loss, lambda t, e: t + 1 / e, max_penalties=[1, 3], horizon=9)
    >>> plans[0], round(plans[1].loss, 9)  # 1 + 1 / .5 = 3
    (None, 0.5)
    """
    plans: list[AgePlan | None] = []
    for max_penalty in max_penalties:
        try:
            plans.append(plan_ageing(risk_of, penalty, max_penalty=max_penalty, horizon=horizon, max_loss=max_loss))
        except ChainError:
            plans.append(None)
    return plans


def compute_frontier(run: RunFile, model: Model | None, view: ForecastView) -> Frontier:
    """Return the frontier of a run file; nothing is drawn or written.

    Raises:
        RunFileError: the run file has no model, or publishes no mean.
    """
    if model is None:
        raise RunFileError("there is no frontier of age and risk without a [model]: nothing is credited for age")
    return _FrontierSearch(run, model.leakage_bound, view.roster, rows_of_means(view.rows, view.contracts)).frontier()


class _FrontierSearch:
    """Risk and error as functions of age, interval and loss, for one run file."""

    def __init__(
        self, run: RunFile, leakage_bound: LeakageBound, roster: RosterCounts, rows: Sequence[ReleaseRecord]
    ) -> None:
        means = [(name, series) for name, series in run.series.items() if is_daily_mean(series)]
        if not means:
            raise RunFileError("a frontier shows the error of a mean; the run file publishes no mean")
        self.run, self.leakage_bound, (self.name, self.series) = run, leakage_bound, means[0]
        promise = run.promise
        self.method: Method = promise.method if isinstance(promise, AgeDependent) else run.model.tightest_method  # type: ignore[union-attr]
        self.households = smallest_group_size(roster, run.schedule.first_day, self.series.by)
        if self.households < 1:
            raise RunFileError("the roster has no household on [schedule] first_day; there is no error to compare")
        self.share = float(share_of(run.series[self.name]))
        self.charge = total_charge(run.notion.charges)
        self.cap = to_float(promise.day_cap)
        self.change = change_yardstick(rows, self.name)
        self.horizon = min(HORIZON_DAYS, max(1, int(leakage_bound.ages[-1]) // leakage_bound.steps_per_day + 1))
        self.peak = lru_cache(maxsize=None)(self._peak)
        self.permitted = lru_cache(maxsize=None)(self._permitted)

    def noise_kwh(self, loss: float) -> float:
        scale = self.series.width_wh / (self.share * loss)
        return mechanisms.standard_deviation(scale) / (1000.0 * self.households)

    def error(self, total_days: float, loss: float) -> float:
        return math.hypot(self.noise_kwh(loss), math.sqrt(total_days) * self.change.kwh)

    def risk(self, loss: float, age: int, interval: int) -> float:
        """Return the peak risk, calibration draws included.

        Ages and intervals are rounded down to tabulated ages, which gives an upper bound.
        """
        return self.peak(loss, self._tabulated(age), self._tabulated(interval), interval) + to_float(self.charge)

    def _tabulated(self, days: int) -> int:
        smaller_ages = [int(age) for age in self.leakage_bound.ages if age <= days * self.leakage_bound.steps_per_day]
        return smaller_ages[-1] if smaller_ages else 0

    def _peak(self, loss: float, age: int, gap: int, interval: int) -> float:
        leakage_bound, options = self.leakage_bound, {"direction": "backward", "method": self.method}
        if leakage_bound.assume != "markov":
            return self._sum_of_releases(loss, age, interval)
        composed = leakage_bound.supremum(gap, loss, **options) if gap else math.inf
        return float(leakage_bound(age, composed, **options)) if age else composed

    def _sum_of_releases(self, loss: float, age: int, interval: int) -> float:
        """Return the composed loss of the period without the Markov property: all losses, the oldest release aged."""
        end = self._end(loss, interval)
        if end is None:
            return math.inf
        releases, _ = end
        oldest = age + (releases - 1) * interval * self.leakage_bound.steps_per_day
        oldest_leakage = (
            float(self.leakage_bound(oldest, loss, direction="backward", method=self.method)) if oldest else loss
        )
        return (releases - 1) * loss + oldest_leakage

    def _end(self, loss: float, interval: int) -> tuple[int, str] | None:
        """Return the number of releases until the series ends, and what ends it first; None if nothing does."""
        days, permitted = self.run.schedule.days, self.permitted(loss)
        ends = [] if days is None else [((days - 1) // interval + 1, "last_day")]
        if permitted is not None:
            ends.append((max(1, permitted), "epsilon_total"))
        return min(ends, default=None)

    def _permitted(self, loss: float) -> int | None:
        """Return the number of releases with this loss that `epsilon_total` permits, None if it is unlimited."""
        promise = self.run.promise
        if promise.total_cap is None:
            return None
        if promise.delta is None:
            return int(to_float(promise.total_cap - self.charge) / loss)
        return permitted_days(self.run, floor_nano(loss))

    def frontier(self) -> Frontier:
        promised = self._promised()
        target = None if promised is None else promised.risk
        lowest, highest = self.error(1, self.cap), self.error(self.horizon, self.cap / _SMALLEST_CAP_DIVISOR)
        error_limits = [lowest * (highest / lowest) ** (i / (_ROWS - 1)) for i in range(_ROWS)]
        plans = frontier(self.risk, self.error, max_penalties=error_limits, horizon=self.horizon, max_loss=self.cap)
        points = [self._schedule_point(plan) for plan in plans if plan is not None]
        if promised is not None:
            best = self._cheapest_daily(promised.risk)
            is_cheapest = (
                best is not None and best.age_days == promised.age_days and math.isclose(best.loss, promised.loss)
            )
            points += [replace(promised, cheapest=is_cheapest)]
            points += [best] if best is not None and not is_cheapest else []
        ordered = tuple(sorted(set(points), key=lambda point: (point.error_kwh, point.risk, point.promised)))
        return Frontier(ordered, self.name, self.households, self.method, target, self.change)

    def _cheapest_daily(self, risk: float) -> SchedulePoint | None:
        """Return the daily schedule with the smallest error and at most this risk."""
        if not math.isfinite(risk):
            return None
        plan = plan_least_penalty(
            self.risk, self.error, max_risk=risk, horizon=self.horizon, max_loss=self.cap, max_interval=1
        )
        return None if plan is None else self._schedule_point(plan, cheapest=True)

    def _promised(self) -> SchedulePoint | None:
        """Return the schedule of the run file, one release per day; None if its loss is not constant."""
        promise = self.run.notion
        if not isinstance(promise, AgeDependent):
            return None
        loss = to_float(promise.planned_loss(DayLosses(), self.run.schedule.first_day.isoformat(), self.leakage_bound))
        if not loss:
            return None
        age = promise.age_days
        risk = self.risk(loss, age, 1)
        if promise.risk is not None:
            target = to_float(floor_nano(promise.risk))
            if risk > target * (1 + _ROUNDING):  # the first loss cannot be spent daily: releases compose
                return None
            risk = target
        return self._schedule_point(AgePlan(loss, age, 1, risk, self.error(age + 1, loss)), promised=True)

    def _schedule_point(self, plan: AgePlan, *, promised: bool = False, cheapest: bool = False) -> SchedulePoint:
        permitted = self.permitted(plan.loss)
        days = None if permitted is None else permitted * int(plan.interval)
        age, interval = int(plan.age), int(plan.interval)
        series_end = None if math.isfinite(plan.risk) else self._end(plan.loss, interval)
        adds_up_to, ended_by = (None, "") if series_end is None else (series_end[0] * plan.loss, series_end[1])
        if adds_up_to is not None:
            adds_up_to += to_float(self.charge)
        noise, risk, error = self.noise_kwh(plan.loss), plan.risk, plan.penalty
        return SchedulePoint(
            plan.loss, age, interval, risk, error, noise, days, adds_up_to, ended_by, promised, cheapest
        )


def permitted_days(run: RunFile, loss: int) -> int:
    """Return the number of days with this loss that `epsilon_total` permits at the promised delta.

    Args:
        run: a run file with a number in `epsilon_total` and a delta.
        loss: loss of each day [nano-epsilon].
    """
    parts = {name: run.notion.part_of_day(name, share_of(series)) for name, series in run.series.items()}
    promise, curves = run.promise, SpanCurves(run.publication, parts)
    day, limit = curves.of_planned_day(loss), promise.total_cap or 0
    return largest_feasible(lambda days: (day.times(days) + curves.draws).epsilon(promise.delta) <= limit, MANY_DAYS)
