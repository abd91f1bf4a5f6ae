"""run file + envelope + ledger + clock -> PLAN: which days are due, and what each may spend.

A day is due `age_days` after its end (in an archive without `age_days`: at its end). `archive` publishes every
due day of the period now, under its true date; `rehearsal` steps a simulated date from where the ledger stands
to `as_of` and publishes each day on the first date on which it is due. Nothing here depends on a reading: the
plan is a function of the run file, the model's public part, the roster's counts and the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from agedp_data import clock, noise
from agedp_data.chains.envelope import Envelope
from agedp_data.config import RunFile
from agedp_data.errors import Refused, RunFileError
from agedp_data.ledger import Release
from agedp_data.losses import NANO, epsilon
from agedp_data.notions.notion import Notion
from agedp_data.readers.datasets import LAYOUTS
from agedp_data.roster import Roster

RELEASED, SKIPPED = "released", "skipped"
MECHANISM = "discrete-laplace"
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Due:
    """A day to publish: when its data ended, on which date it is published, how many households are counted."""

    day: date
    input_ended_at: str
    publish_on: date
    households: int


@dataclass(frozen=True, slots=True)
class Terms:
    """What every release of a run refers to: notion, envelope, and the ledger's names of contract and model."""

    run: RunFile
    notion: Notion
    envelope: Envelope | None
    contract: str
    model: str


def last_as_of(run: RunFile) -> date:
    """Return the date on which the last day of the period is due.

    Raises:
        RunFileError: the period has no last day.
    """
    if run.schedule.last_day is None:
        raise RunFileError("a rehearsal without [schedule] last_day needs --as-of DATE")
    return _due_on(run, run.schedule.last_day)


def due_days(
    run: RunFile, roster: Roster, rows: Sequence[Release], *, today: date, as_of: date | None, not_before: date
) -> tuple[Due, ...]:
    """Return the days that are due and not in the ledger for every series, oldest first.

    A rehearsed day is published when it is due, but on no date before `not_before`: a ledger's dates never run
    backwards.
    """
    until = as_of or today
    done = {(row.day, row.series) for row in rows}
    found = []
    for day in _period(run, until):
        due = _due_on(run, day)
        if due > until:
            break
        if all((day.isoformat(), series) in done for series in run.series):
            continue
        publish_on = max(due, not_before) if run.schedule.mode == "rehearsal" else today
        ended = clock.instant(LAYOUTS[run.input.dataset].day_end(day))
        found.append(Due(day, ended, publish_on, roster.households(day)))
    return tuple(found)


def _period(run: RunFile, until: date) -> Iterator[date]:
    day = run.schedule.first_day
    while day <= min(run.schedule.last_day or until, until):
        yield day
        day += timedelta(days=1)


def _due_on(run: RunFile, day: date) -> date:
    ended = LAYOUTS[run.input.dataset].day_end(day)
    return clock.due_on(ended, age_days=run.promise.age_days or 0)


@dataclass(frozen=True, slots=True)
class Planned:
    """A row that may be stored, without its values, and the loss that its noise is to be drawn for."""

    row: Release
    loss: Fraction


def planned_release(terms: Terms, due: Due, series: str, history: Sequence[Release]) -> Planned:
    """Return the row that will be stored; a day with too few households is skipped.

    The day's loss is granted before any of its series is drawn and shared among them; each share is rounded
    down, the scale up, and the recorded loss is that of the scale.

    Raises:
        Refused: the promise does not permit the release; nothing was drawn.
    """
    run = terms.run
    if due.households < run.population.min_households:
        return Planned(_row(terms, due, series, state=SKIPPED, scale=0.0, loss=0), Fraction(0))
    day = due.day.isoformat()
    others = [row for row in history if row.day != day]
    granted = terms.notion.loss(others, day, terms.envelope)
    share = run.series[series].share
    loss = granted if share is None else int(Fraction(share) * granted)
    if loss <= 0:
        raise Refused(f"{day}: {_ended(terms, others)}; nothing was drawn")
    spend = Fraction(loss, NANO)
    scale = noise.laplace_scale(sensitivity=run.series[series].clamp_wh, loss=spend)
    recorded = noise.recorded_loss(sensitivity=run.series[series].clamp_wh, scale=scale)
    row = _row(terms, due, series, state=RELEASED, scale=scale, loss=recorded)
    terms.notion.admit(history, row, terms.envelope)
    return Planned(row, spend)


def _ended(terms: Terms, history: Sequence[Release]) -> str:
    """Return why a day is granted nothing: what is spent, or a promise that no loss keeps."""
    promise = terms.run.promise
    if not any(row.state == RELEASED for row in history):
        return f'no loss, however small, keeps the promise of notion = "{promise.notion}" with this model'
    spent = epsilon(sum(row.loss for row in history))
    return f"the promise permits no further release: {spent} is spent, epsilon_total = {promise.epsilon_total}"


def _row(terms: Terms, due: Due, series: str, *, state: str, scale: float, loss: int) -> Release:
    return Release(
        population=terms.run.population.name,
        series=series,
        day=due.day.isoformat(),
        revision=0,
        state=state,
        cells=(_ALL,),
        values=(),
        households=(due.households,),
        sensitivity=terms.run.series[series].clamp_wh,
        scale=scale,
        mechanism=MECHANISM,
        loss=loss,
        input_ended_at=due.input_ended_at,
        published_on=due.publish_on.isoformat(),
        contract=terms.contract,
        model=terms.model,
    )


@dataclass(frozen=True, slots=True)
class Foresight:
    """What would be released if it were done now, and what would be refused first."""

    releases: tuple[Release, ...]
    refused: Refused | None


def foresee(terms: Terms, due: Sequence[Due], history: Sequence[Release]) -> Foresight:
    """Go over the due days as `release` would, on a history that only exists here; draws nothing."""
    rows = list(history)
    done = {(row.day, row.series) for row in history}
    planned: list[Release] = []
    for one in due:
        for series in terms.run.series:
            if (one.day.isoformat(), series) in done:
                continue
            try:
                row = planned_release(terms, one, series, rows).row
            except Refused as refused:
                return Foresight(tuple(planned), refused)
            planned.append(row)
            rows.append(row)
    return Foresight(tuple(planned), None)
