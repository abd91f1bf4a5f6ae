"""run file + envelope + ledger + clock -> PLAN: which days are due, and what each may spend.

A day is due `age_days` after its end (in an archive without `age_days`: at its end). `live` and `archive` publish
every due day now, under the true date, so a missed week needs nothing special; `rehearsal` steps a simulated date
from where the ledger stands to `as_of` and publishes each day on the first date on which it is due. Nothing here
depends on a reading: the plan is a function of the run file, the model's public part, the roster's counts, the
delivery's markers and the ledger.

A day is skipped, without a draw or a loss, if its delivery never came, if too few households are on the roster, or
if the promise leaves it nothing while it leaves later days something (`grant`): the days behind it go on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction

from agedp_data import clock, noise
from agedp_data.chains.envelope import Envelope
from agedp_data.config import RunFile
from agedp_data.errors import LedgerError, Refused, RunFileError
from agedp_data.ledger import Release
from agedp_data.losses import NANO, epsilon
from agedp_data.notions.notion import Notion
from agedp_data.readers import storage
from agedp_data.readers.datasets import layout_of
from agedp_data.readers.layout import Layout
from agedp_data.roster import Roster
from pipelines.promise.grant import Binding

RELEASED, SKIPPED = "released", "skipped"
MECHANISM = "discrete-laplace"
NO_DELIVERY = "no delivery"
TOO_FEW = "fewer homes on the roster than [population] min_households"

Cells = tuple[tuple[str, int], ...]
"""Groups of a release and how many households each counts."""


@dataclass(frozen=True, slots=True)
class Due:
    """A day to publish: when its data ended, on which date it is published, who is counted, by which series.

    `cells` by series leaves out groups with fewer than `min_households`; `series` are those that did not publish it
    yet; `given_up` says that the delivery's marker never came.
    """

    day: date
    input_ended_at: str
    publish_on: date
    cells: Mapping[str, Cells]
    series: tuple[str, ...]
    given_up: bool = False

    @property
    def households(self) -> int:
        """Return how many households are counted in the release that counts most."""
        return max((sum(number for _, number in cells) for cells in self.cells.values()), default=0)


@dataclass(frozen=True, slots=True)
class Agenda:
    """The days to publish now, oldest first, and those that are due but wait for their delivery's marker."""

    due: tuple[Due, ...]
    waiting: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """What every release of a run refers to: notion, envelopes, and the ledger's names of contract and model.

    The first envelope is the newest model's, the others those of every model that a contract ever named: what one
    of them does not permit is not permitted, so no new model loosens a promise.
    """

    run: RunFile
    notion: Notion
    envelopes: tuple[Envelope | None, ...]
    contract: str
    model: str

    @property
    def binding(self) -> Binding:
        """Return the promise with all models that bind it."""
        return Binding(self.notion, self.envelopes)


def last_as_of(run: RunFile) -> date | None:
    """Return the date on which the last day of the period is due, if it has a last day."""
    return None if run.schedule.last_day is None else _due_on(run, run.schedule.last_day)


def agenda(
    run: RunFile, roster: Roster, done: Collection[tuple[str, str]], *, until: datetime, not_before: date
) -> Agenda:
    """Return the days that are due at `until` and not `done`, as (day, series), for every series.

    A day waits for its delivery's marker, if the run file names one, for at most `give_up_days` after it was due;
    days behind it do not wait for it. A rehearsed day is published when it is due, or given up when its time is
    over, others now; none on a date before `not_before`: a ledger's dates never run backwards.

    Raises:
        LedgerError: days are due, but the clock says a date before `not_before`.
    """
    found: list[Due] = []
    waiting: list[date] = []
    for day in _period(run, until.date()):
        series = tuple(name for name in run.series if (day.isoformat(), name) not in done)
        if not series:
            continue
        ended = _layout(run).day_end(day)
        due_at = ended + timedelta(days=run.promise.age_days or 0)
        if due_at > until:
            break
        delivered = _delivered(run, day)
        given_up = not delivered and until >= due_at + timedelta(days=run.schedule.patience_days)
        if not delivered and not given_up:
            waiting.append(day)
            continue
        waited = timedelta(days=run.schedule.patience_days if given_up else 0)
        rehearsed = run.schedule.mode == "rehearsal"
        publish_on = max(_due_on(run, day) + waited, not_before) if rehearsed else until.date()
        found.append(Due(day, clock.instant(ended), publish_on, _cells(run, roster, day), series, given_up))
    if found and run.schedule.mode != "rehearsal" and until.date() < not_before:
        raise LedgerError(
            f"the clock says {until.date()}, but the ledger's newest release was published on {not_before}, and its "
            "dates never run backwards: set the clock right, or run again on that date"
        )
    # a day that was given up lies behind days that were due while it waited
    return Agenda(tuple(sorted(found, key=lambda one: one.publish_on)), tuple(waiting))


def _delivered(run: RunFile, day: date) -> bool:
    """Tell whether the delivery of a day left its marker, a public event; without markers age alone decides."""
    marker = run.schedule.marker
    if marker is None:
        return True
    place = marker.replace("{day}", day.isoformat())
    if storage.is_url(place):
        with storage.answered(f"[schedule] wait_for: the marker of {day}", place):
            return storage.exists(place)
    try:
        (run.folder / place).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # not seen is not absent: the day would be given up
        raise RunFileError(
            f"[schedule] wait_for: the marker of {day} cannot be looked for ({error.strerror}); correct the path, or "
            "let this user read its folder"
        ) from None
    return True


def _cells(run: RunFile, roster: Roster, day: date) -> dict[str, Cells]:
    """Return the cells of each series on a day: all, or the groups of its roster column, large ones only."""
    least = run.population.min_households
    return {
        name: tuple((cell, number) for cell, number in roster.cells(day, series.by) if number >= least)
        for name, series in run.series.items()
    }


def _period(run: RunFile, until: date) -> Iterator[date]:
    day = run.schedule.first_day
    while day <= min(run.schedule.last_day or until, until):
        yield day
        day += timedelta(days=1)


def _layout(run: RunFile) -> Layout:
    return layout_of(run.input.dataset, run.input.named_columns)


def _due_on(run: RunFile, day: date) -> date:
    ended = _layout(run).day_end(day)
    return clock.due_on(ended, age_days=run.promise.age_days or 0)


@dataclass(frozen=True, slots=True)
class Planned:
    """A row that may be stored, without its values, the loss its noise is to be drawn for, or why it is skipped."""

    row: Release
    loss: Fraction
    why: str = ""


def planned_release(terms: Terms, due: Due, series: str, history: Sequence[Release]) -> Planned:
    """Return the row that will be stored; a day without delivery, with too few households or no loss is skipped.

    The day's loss is granted before any of its series is drawn and shared among them; each share is rounded
    down, the scale up, and the recorded loss is that of the scale.

    Raises:
        Refused: the promise does not permit the release, nor a later one; nothing was drawn.
    """
    run = terms.run
    if due.given_up or not due.cells[series]:
        return _skipped(terms, due, series, NO_DELIVERY if due.given_up else TOO_FEW)
    share = run.series[series].share
    part = terms.notion.part_of_day(series, Fraction(1 if share is None else share))
    on = due.publish_on.isoformat()
    grant = terms.binding.grant(history, due.day.isoformat(), on, share=part)
    if grant.skipped:
        return _skipped(terms, due, series, grant.skipped)
    if grant.loss <= 0:
        raise Refused(f"{due.day}: {ended_because(terms, history)}; nothing was drawn")
    spend = Fraction(grant.loss, NANO)
    sensitivity = run.series[series].sensitivity("replacement")
    scale = noise.laplace_scale(sensitivity=sensitivity, loss=spend)
    recorded = noise.recorded_loss(sensitivity=sensitivity, scale=scale)
    row = _row(terms, due, series, state=RELEASED, scale=scale, loss=recorded)
    terms.binding.admit(history, row)
    return Planned(row, spend)


def _skipped(terms: Terms, due: Due, series: str, why: str) -> Planned:
    return Planned(_row(terms, due, series, state=SKIPPED, scale=0.0, loss=0), Fraction(0), why)


def ended_because(terms: Terms, history: Sequence[Release]) -> str:
    """Return why a day is granted nothing: its days are over, what is spent, or a promise that no loss keeps."""
    promise = terms.run.promise
    horizon: object = getattr(promise, "horizon_days", None)
    if isinstance(horizon, int) and len({row.day for row in history if row.loss}) >= horizon:
        return f"horizon_days = {horizon} days are released and the series is over"
    if why := next(filter(None, map(terms.notion.obstacle, terms.envelopes)), ""):
        return why
    spent = sum(row.loss for row in history)
    if promise.total_cap is None or promise.total_cap - spent >= promise.day_cap:
        models = sum(envelope is not None for envelope in terms.envelopes)
        beside = [
            *(["what is released already"] if spent else []),
            *(["this model" if models == 1 else "each of its models, earlier ones too"] if models else []),
        ]
        beside_it = f" with {' and '.join(beside)}" if beside else ""
        return f'no loss, however small, keeps the promise of notion = "{promise.notion}"{beside_it}'
    return f"the promise permits no further release: {epsilon(spent)} is spent, epsilon_total = {promise.epsilon_total}"


def _row(terms: Terms, due: Due, series: str, *, state: str, scale: float, loss: int) -> Release:
    statistic = terms.run.series[series]
    groups = due.cells[series] if state == RELEASED else ()
    cells = [(cell, number) for group, number in groups for cell in statistic.cells(group)]
    return Release(
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
class Foresight:
    """What would be released or skipped if it were done now, and what would be refused first."""

    planned: tuple[Planned, ...]
    refused: Refused | None

    @property
    def releases(self) -> tuple[Release, ...]:
        """Return the rows, without values."""
        return tuple(one.row for one in self.planned)


def foresee(terms: Terms, due: Sequence[Due], history: Sequence[Release]) -> Foresight:
    """Go over the due days as `release` would, on a history that only exists here; draws nothing."""
    rows = list(history)
    found: list[Planned] = []
    for one in due:
        for series in one.series:
            try:
                planned = planned_release(terms, one, series, rows)
            except Refused as refused:
                return Foresight(tuple(found), refused)
            found.append(planned)
            rows.append(planned.row)
    return Foresight(tuple(found), None)
