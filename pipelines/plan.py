"""Run file + leakage bounds + ledger + DUE DAYS -> PLAN: the budget of each due day.

The plan is a function of the run file, the model's public part, the roster's counts, the delivery's markers and the
ledger: nothing here depends on a reading. A day is skipped, without a draw or a loss, if [schedule] skip_days lists it,
if its delivery never came, if too few households are on the roster, or if its budget is zero while later days still
have some (`promise.grant`). Later days are then released as planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from agedp_data import noise
from agedp_data.chains.envelope import LeakageBound
from agedp_data.config import RunFile
from agedp_data.errors import Refused
from agedp_data.ledger import ReleaseRecord
from agedp_data.losses import NANO, format_epsilon
from agedp_data.notions.notion import Notion
from pipelines.agenda import DueDay
from pipelines.promise.grant import EffectivePromise

RELEASED, SKIPPED = "released", "skipped"
MECHANISM = "discrete-laplace"
NO_DELIVERY = "no delivery"
TOO_FEW = "fewer homes on the roster than [population] min_households"
SKIP_DAYS = "[schedule] skip_days"


@dataclass(frozen=True, slots=True)
class ReleaseTerms:
    """Terms of every release of a run: notion, leakage bounds, and the hashes of contract and model in the ledger.

    The first leakage bound is the newest model's; the others are those of all models that a contract ever named. A
    release must be permitted under each of them, so no new model relaxes a promise.
    """

    run: RunFile
    notion: Notion
    leakage_bounds: tuple[LeakageBound | None, ...]
    contract: str
    model: str

    @property
    def effective_promise(self) -> EffectivePromise:
        """Return the promise with all models in force."""
        return EffectivePromise(self.notion, self.leakage_bounds)


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A row to store, without its values, with the loss of its noise, or the reason why the day is skipped."""

    row: ReleaseRecord
    loss: Fraction
    skip_reason: str = ""


def plan_release(terms: ReleaseTerms, due: DueDay, series: str, history: Sequence[ReleaseRecord]) -> PlannedRelease:
    """Return the row that will be stored; a day without delivery, with too few households or no budget is skipped.

    The day budget is fixed before any series of the day is drawn, and shared among the series. Each share is rounded
    down, the noise scale up, and the recorded loss is that of the scale.

    Raises:
        Refused: the promise permits neither this release nor a later one; nothing was drawn.
    """
    run = terms.run
    if reason := _skip_reason(due, series):
        return _skipped(terms, due, series, reason)
    share = run.series[series].share
    part = terms.notion.part_of_day(series, Fraction(1 if share is None else share))
    publish_on = due.publish_on.isoformat()
    budget = terms.effective_promise.day_budget(history, due.day.isoformat(), publish_on, share=part)
    if budget.skipped:
        return _skipped(terms, due, series, budget.skipped)
    if budget.loss <= 0:
        raise Refused(f"{due.day}: {format_end_reason(terms, history)}; nothing was drawn")
    spend = Fraction(budget.loss, NANO)
    sensitivity = run.series[series].sensitivity("replacement")
    scale = noise.laplace_scale(sensitivity=sensitivity, loss=spend)
    recorded_loss = noise.recorded_loss(sensitivity=sensitivity, scale=scale)
    row = _row(terms, due, series, state=RELEASED, scale=scale, loss=recorded_loss)
    terms.effective_promise.admit(history, row)
    return PlannedRelease(row, spend)


def _skip_reason(due: DueDay, series: str) -> str:
    """Return the public reason why a day is not drawn, "" if it is drawn."""
    if due.skipped:
        return SKIP_DAYS
    if due.given_up:
        return NO_DELIVERY
    return "" if due.cells[series] else TOO_FEW


def _skipped(terms: ReleaseTerms, due: DueDay, series: str, reason: str) -> PlannedRelease:
    return PlannedRelease(_row(terms, due, series, state=SKIPPED, scale=0.0, loss=0), Fraction(0), reason)


def format_end_reason(terms: ReleaseTerms, history: Sequence[ReleaseRecord]) -> str:
    """Return why a series has ended: its horizon, its total, or a promise that no loss keeps."""
    promise = terms.run.promise
    horizon: object = getattr(promise, "horizon_days", None)
    if isinstance(horizon, int) and len({row.day for row in history if row.loss}) >= horizon:
        return f"horizon_days = {horizon} days are released and the series is over"
    if obstacle := next(filter(None, map(terms.notion.obstacle, terms.leakage_bounds)), ""):
        return obstacle
    spent = sum(row.loss for row in history)
    if promise.total_cap is None or promise.total_cap - spent >= promise.day_cap:
        models = sum(leakage_bound is not None for leakage_bound in terms.leakage_bounds)
        constraints = [
            *(["what is released already"] if spent else []),
            *(["this model" if models == 1 else "each of its models, earlier ones too"] if models else []),
        ]
        constraints_text = f" with {' and '.join(constraints)}" if constraints else ""
        return f'no loss, however small, keeps the promise of notion = "{promise.notion}"{constraints_text}'
    total = f"epsilon_total = {promise.epsilon_total:f}"
    return f"the promise permits no further release: {format_epsilon(spent)} is spent, {total}"


def _row(terms: ReleaseTerms, due: DueDay, series: str, *, state: str, scale: float, loss: int) -> ReleaseRecord:
    statistic = terms.run.series[series]
    groups = due.cells[series] if state == RELEASED else ()
    cells = [(cell, number) for group, number in groups for cell in statistic.cells(group)]
    return ReleaseRecord(
        population=terms.run.population.name,
        series=series,
        day=due.day.isoformat(),
        revision=0,
        state=state,
        cells=tuple(cell for cell, _ in cells),
        values=(),
        households=tuple(number for _, number in cells),
        sensitivity=statistic.sensitivity("replacement"),
        scale=scale,
        mechanism=MECHANISM,
        loss=loss,
        input_ended_at=due.input_ended_at,
        published_on=due.publish_on.isoformat(),
        contract=terms.contract,
        model=terms.model,
    )


@dataclass(frozen=True, slots=True)
class DuePlan:
    """Planned releases and skipped days of a run now, and the first refusal, if any."""

    planned: tuple[PlannedRelease, ...]
    refused: Refused | None

    @property
    def releases(self) -> tuple[ReleaseRecord, ...]:
        """Return the rows, without values."""
        return tuple(planned.row for planned in self.planned)


def plan_due_days(terms: ReleaseTerms, due: Sequence[DueDay], history: Sequence[ReleaseRecord]) -> DuePlan:
    """Plan the due days in order, as `release` would, on a copy of the history; draws nothing."""
    rows = list(history)
    planned: list[PlannedRelease] = []
    for due_day in due:
        for series in due_day.series:
            try:
                release = plan_release(terms, due_day, series, rows)
            except Refused as refused:
                return DuePlan(tuple(planned), refused)
            planned.append(release)
            rows.append(release.row)
    return DuePlan(tuple(planned), None)
