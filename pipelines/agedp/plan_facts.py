"""Forecast of a run + ledger -> the facts of a plan: what `agedp plan` prints as lines and as JSON. Public.

Every number is computed here, once; `flows/agedp_flows/text/templates/plan.txt` has the words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from agedp.budget import PlannedRelease
from agedp.ledger_session import LedgerSession
from agedp.planning.forecast import skip_facts
from agedp.planning.notion_comparison import ComparisonTarget, NotionComparison, compare_promises, model_days
from agedp.planning.row_noise import group_noises, noise_deviation, smallest_group
from agedp.planning.span_price import PeriodTotals, SpanPrice, filling_loss, period_totals, span_prices
from agedp.signal_against_noise import SeriesSignal, released_signals
from agedp.stages.plan import RunForecast, forecast_run
from agedp.statement_facts import read_newest_rows
from agedp_data.epsilon import exact_text, finite_or_none, format_epsilon
from agedp_data.errors import RunFileError
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions import Promise
from agedp_data.series.series import AnySeries
from agedp_data.statement.document import StatedBound
from agedp_data.statement.facts import state_bound

_YEAR: Final = 365


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """A plan with what the ledger has published: `newest` rows of the series, and their `signals`."""

    plan: RunForecast
    newest: tuple[ReleaseRecord, ...]
    signals: tuple[SeriesSignal, ...]

    @property
    def has_begun(self) -> bool:
        """Return whether the ledger has rows of the population."""
        return bool(self.plan.history.rows)

    @property
    def prices(self) -> list[SpanPrice]:
        """Return what each bound with a promised delta permits a day."""
        return span_prices(self.plan.terms.run)

    @property
    def filling(self) -> SpanPrice | None:
        """Return the loss that would fill `epsilon_total`, before the first release."""
        return None if self.has_begun else filling_loss(self.plan.terms.run)

    @property
    def totals(self) -> PeriodTotals | None:
        """Return what the whole period comes to; None if it has no last day, or the forecast ends before it."""
        expected, schedule = self.plan.forecast, self.plan.terms.run.schedule
        last = schedule.last_day
        if last is None:
            return None
        while last in schedule.skipped_days:
            last -= timedelta(days=1)
        newest = max((row.day for row in expected.history), default="")
        is_whole = expected.ended_by_promise or newest >= last.isoformat()
        return period_totals(self.plan.terms.run, expected.history) if is_whole else None

    @property
    def bounds(self) -> dict[str, StatedBound]:
        """Return the bounds after these releases, by name."""
        plan, notion = self.plan, self.plan.terms.notion
        bounds = notion.bounds([*plan.history.rows, *plan.now.releases], plan.terms.leakage_bound, None)
        days = model_days(plan.run.run_file.model, plan.history.contracts)
        exception = {"conditional_days": days} if days else {}
        return {bound.name: state_bound(bound, notion.limits).model_copy(update=exception) for bound in bounds}

    @property
    def horizon(self) -> int | None:
        """Return the number of releases after which the series ends, None if the promise has no horizon."""
        horizon: object = getattr(self.plan.run.run_file.promise, "horizon_days", None)
        return horizon if isinstance(horizon, int) else None

    @property
    def compared_days(self) -> int:
        """Return the number of days over which schedules are compared: the horizon, the days due now, or a year."""
        return self.horizon or max(len({release.row.day for release in self.plan.now.planned}), _YEAR)

    @property
    def mean_noises(self) -> dict[str, float]:
        """Return the mean noise scale of the promised schedule and of alternatives, if there are any."""
        notion = self.plan.terms.notion  # over the published days, as the promise is enforced
        return notion.alternatives(self.compared_days) if isinstance(notion, Promise) else {}

    def notions(self) -> NotionComparison:
        """Return how each notion would keep the bound of the run file; before the first release.

        Raises:
            RunFileError: no mean is published, or no remaining day has enough households on the roster.
        """
        plan = self.plan
        view = plan.history.view(plan.run.roster.counts, plan.run.today)
        return compare_promises(plan.terms, view, ComparisonTarget())

    @property
    def facts(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        plan, run, means = self.plan, self.plan.run.run_file, self.mean_noises
        return {
            "population": run.population.name,
            "due": [_planned_facts(planned, run.series[planned.row.series]) for planned in plan.now.planned],
            "skipped_ahead": skip_facts(plan.skipped_ahead),
            "waiting": [day.isoformat() for day in plan.due_days.waiting],
            "refused": plan.refused,
            **({} if plan.verdict is None else {"verdict": plan.verdict.facts}),
            "spent": format_epsilon(plan.spent),
            "last_possible_day": plan.last_possible_day,
            "ended_by_promise": plan.ended_by_promise,
            "no_end_until": "" if plan.open_until is None else plan.open_until.isoformat(),
            "ended": plan.ended,
            "signal": [signal.facts for signal in self.signals],
            **self.span_facts,
            **({"mean_noise_by_schedule": means} if means else {}),
            **({} if self.has_begun else {"notions": self._notion_facts()}),
            "contract": plan.contract,
        }

    def _notion_facts(self) -> dict[str, Any]:
        try:
            return self.notions().facts
        except RunFileError as error:
            return {"lacking": str(error)}

    @property
    def span_facts(self) -> dict[str, Any]:
        """Return what a promised delta buys and what the period comes to as optional keys of the JSON."""
        facts, totals = dict[str, Any](), self.totals
        if prices := self.prices:
            facts["price_of_delta"] = [_price_facts(price) for price in prices]
        if totals is not None:
            by_delta = [{"delta": exact_text(delta), "epsilon": format_epsilon(loss)} for delta, loss in totals.at]
            facts["period"] = {"days": totals.days, "pure_total": format_epsilon(totals.pure), "totals": by_delta}
            if totals.tight is not None:
                tight = {"delta": exact_text(totals.tight[0]), "epsilon": totals.tight[1]}
                facts["period"]["tighter_not_enforced"] = tight
        return facts


def read_plan(session: LedgerSession) -> PlanFacts:
    """Return the plan of a run with the present ledger; writes and draws nothing.

    Raises:
        ContractChanged: the run file differs from the contract.
    """
    plan, ledger, run = forecast_run(session), session.ledger, session.run.run_file
    newest = () if ledger is None else read_newest_rows(ledger, run.population.name)
    return PlanFacts(plan, tuple(newest), released_signals(ledger, run))


def _planned_facts(planned: PlannedRelease, series: AnySeries) -> dict[str, Any]:
    row = planned.row
    facts: dict[str, Any] = {"day": row.day, "series": row.series, "state": row.state, "publish_on": row.published_on}
    facts["households"] = {of.group: of.households for of in group_noises(row, series)}
    facts["epsilon"] = format_epsilon(row.loss)
    if row.state != "released":
        return facts | {"why": planned.skip_reason}
    sd, unit = noise_deviation(row, series)
    by_kind = {f"noise_sd_kwh_{of.day_kind}": of.noise_sd for of in smallest_group(row, series) if of.day_kind}
    return facts | {f"noise_sd_{unit}": sd} | by_kind


def _price_facts(price: SpanPrice) -> dict[str, Any]:
    bound = {"key": price.key, "epsilon": format_epsilon(price.epsilon), "delta": exact_text(price.delta)}
    losses = {"epsilon_a_day": format_epsilon(price.loss), "pure_total": format_epsilon(price.pure_total)}
    without = {"epsilon_a_day_without_delta": format_epsilon(price.pure_loss)}
    noise = {"noise_ratio_without_delta": finite_or_none(price.noise_ratio)}
    return {**bound, "days": price.days, **losses, **without, **noise}
