"""run file + LEDGER -> a new contract for the same population: what changes, what it does to every figure, recorded.

Both contracts are looked at in the same way, the old one rebuilt from its text and from the model that it names:
what the next day would be granted, how large its noise would be, on which day the promise would end if every day
were released when due, and what all that was released so far comes to under it. Nothing is drawn; what loosens
the promise is refused before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from agedp_data import clock, noise
from agedp_data.chains.envelope import Envelope
from agedp_data.config.amendments import Change, amendment
from agedp_data.config.contracts import promise_of
from agedp_data.errors import LedgerError, Refused
from agedp_data.ledger import Contract, Ledger, Release, canonical
from agedp_data.losses import NANO
from agedp_data.notions.notion import Figure, Notion
from agedp_data.notions.parameters import watt_hours
from agedp_data.readers.datasets import LAYOUTS
from agedp_data.roster import ALL, Roster
from pipelines.work import Work

_FURTHEST_DAYS = 3652
"""How far ahead the end of a promise is looked for: ten years, one if epsilon_total sets it no end."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a contract permits from here on, and what it says of what was released.

    `next_day` is the first day behind the newest in the ledger, None if the series is over; `loss` what it is
    granted, whole 1e-9 epsilon; `noise_sd_kwh` that of its daily means, kWh a home, by series (of its smallest
    group). `last_day` is the last day that can be released, None if none can; `ended_by_promise` tells whether
    the promise ends there, or the period does (or the years that were looked at).
    """

    next_day: date | None
    loss: int
    noise_sd_kwh: Mapping[str, float]
    last_day: date | None
    ended_by_promise: bool
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Amendment:
    """A run file against the contract in force: every difference with its verdict, and the outlook of both."""

    changes: tuple[Change, ...]
    before: Outlook
    after: Outlook
    in_force: str

    @property
    def refused(self) -> tuple[Change, ...]:
        """Return the changes that loosen the promise."""
        return tuple(change for change in self.changes if change.verdict == "refused")


def amend(work: Work) -> Contract:
    """Record the run file as the contract in force from the next unreleased day on, and return that contract.

    Raises:
        Refused: something would loosen the promise; each key with its reason, nothing is written.
        LedgerError: nothing was promised to the population yet.
    """
    return record(work, foresee_amendment(work))


def record(work: Work, found: Amendment) -> Contract:
    """Record an amendment that was looked at, if everything in it is allowed and nothing came in between.

    Raises:
        Refused: something would loosen the promise.
        LedgerError: the contract was amended meanwhile.
    """
    require_allowed(found)
    with work.ledger() as ledger:
        at = _recorded_on(work, ledger)
        if work.model is not None:
            ledger.adopt(work.model.text, at=at)
        return ledger.amend(work.promise, population=work.population, at=at, after=found.in_force)


def require_allowed(found: Amendment) -> None:
    """Raise Refused if a change loosens the promise, naming each such key and why."""
    if found.refused:
        said = "; ".join(f"{each.key}: {each.old} -> {each.new}: {each.why}" for each in found.refused)
        raise Refused(f"the contract cannot be amended so: {said}; nothing was recorded")


def _recorded_on(work: Work, ledger: Ledger) -> date:
    """Return the date of the amendment: in a rehearsal the simulated clock stands at its last publication."""
    if work.run.schedule.mode != "rehearsal":
        return clock.today()
    dates = [date.fromisoformat(row.published_on) for row in ledger.rows()]
    return max(dates, default=work.run.schedule.first_day)


def foresee_amendment(work: Work) -> Amendment:
    """Return what the run file would change in the contract, and what that does to every figure; writes nothing.

    Raises:
        LedgerError: nothing was promised to the population yet, or a contract that this version cannot read.
    """
    with work.ledger() as ledger:
        contracts = ledger.contracts(work.population)
        rows = ledger.rows(work.population)
        models = {model.model: model.envelope for model in ledger.models()}
    if not contracts:
        raise LedgerError(
            f"nothing was promised to {work.population!r} yet; the first `agedp run` registers the run file as it is"
        )
    old, new = json.loads(contracts[-1].promise), work.promise
    before = _Side(old, promise_of(contracts[-1].promise), _envelope(old, models))
    after = _Side(new, promise_of(canonical(new)), work.model.envelope if work.model else None)
    view = _View(tuple(rows), work.roster, clock.today())
    return Amendment(amendment(old, new), _outlook(before, view), _outlook(after, view), contracts[-1].hash)


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two contracts: its text read, its promise, its model."""

    contract: Mapping[str, Any]
    notion: Notion
    envelope: Envelope | None


@dataclass(frozen=True, slots=True)
class _View:
    """What both are looked at from: everything released so far, who is counted, and the date."""

    rows: tuple[Release, ...]
    roster: Roster
    today: date


@dataclass(frozen=True, slots=True)
class _Day:
    """A day that is only imagined: what a notion reads of a release."""

    population: str
    series: str
    day: str
    state: str
    loss: int
    input_ended_at: str
    published_on: str


def _envelope(old: Mapping[str, Any], models: Mapping[str, str]) -> Envelope | None:
    """Return the envelope of the model that a contract names, as the ledger keeps it."""
    name = old.get("model", {}).get("hash")
    if name is None:
        return None
    if name not in models:
        raise LedgerError("the ledger lacks the model that its contract names; put back a good copy")
    return Envelope.from_json(json.loads(models[name])["envelope"])


def _outlook(side: _Side, view: _View) -> Outlook:
    figures = tuple(side.notion.figures(view.rows, side.envelope, None))
    days = list(_days(side.contract, view.rows))
    if not days:
        return Outlook(None, 0, {}, None, ended_by_promise=False, figures=figures)
    released = _released(side, view, days)
    last = date.fromisoformat(released[-1].day) if released else None
    granted = released[0].loss if released else 0
    sd = _noise_sd(side.contract, granted, _homes(side.contract, view.roster, days[0]))
    return Outlook(days[0], granted, sd, last, len(released) < len(days), figures)


def _days(terms: Mapping[str, Any], rows: Sequence[Release]) -> Iterator[date]:
    """Yield the days behind the newest in the ledger, as far as the end is looked for."""
    schedule = terms["schedule"]
    behind = [date.fromisoformat(row.day) + timedelta(days=1) for row in rows]
    day = max(behind, default=date.fromisoformat(schedule["first_day"]))
    unlimited = terms["promise"]["epsilon_total"] == "unlimited"
    end = day + timedelta(days=_FURTHEST_DAYS // (10 if unlimited else 1))
    last = date.fromisoformat(schedule["last_day"]) if "last_day" in schedule else end
    while day <= min(last, end):
        yield day
        day += timedelta(days=1)


def _released(side: _Side, view: _View, days: Sequence[date]) -> list[_Day]:
    """Return the days that the promise would permit if each were released when due, up to the first refused."""
    history: list[Release | _Day] = list(view.rows)
    newest = max((row.published_on for row in view.rows), default="")
    made: list[_Day] = []
    for day in days:
        loss = side.notion.loss(history, day.isoformat(), side.envelope)
        row = _imagined(side.contract, day, loss, not_before=max(newest, _earliest(side.contract, view.today)))
        if loss <= 0 or not _admitted(side, history, row):
            break
        history.append(row)
        made.append(row)
    return made


def _earliest(terms: Mapping[str, Any], today: date) -> str:
    return "" if terms["schedule"]["mode"] == "rehearsal" else today.isoformat()


def _imagined(terms: Mapping[str, Any], day: date, loss: int, *, not_before: str) -> _Day:
    ended = LAYOUTS[terms["input"]["dataset"]].day_end(day)
    due = clock.due_on(ended, age_days=terms["promise"].get("age_days", 0)).isoformat()
    population = terms["population"]["name"]
    return _Day(population, "", day.isoformat(), "released", loss, clock.instant(ended), max(due, not_before))


def _admitted(side: _Side, history: Sequence[Release | _Day], row: _Day) -> bool:
    try:
        side.notion.admit(history, row, side.envelope)
    except Refused:
        return False
    return True


def _noise_sd(terms: Mapping[str, Any], loss: int, homes: Mapping[str, int]) -> dict[str, float]:
    """Return the standard deviation of each daily mean's noise, kWh a home, when the day is granted `loss`."""
    found: dict[str, float] = {}
    for name, series in terms["series"].items():
        part = int(Fraction(series["share"]) * loss)
        if part > 0 and homes.get(name):
            clamp = watt_hours(Decimal(series["clamp_kwh"]))
            scale = noise.laplace_scale(sensitivity=clamp, loss=Fraction(part, NANO))
            found[name] = noise.standard_deviation(scale) / (1000.0 * homes[name])
    return found


def _homes(terms: Mapping[str, Any], roster: Roster, day: date) -> dict[str, int]:
    """Return how many homes the smallest published group of each daily mean has; nothing of a series without one."""
    least = terms["population"]["min_households"]
    groups = {
        name: [number for _, number in roster.cells(day, series.get("by")) if number >= least]
        for name, series in terms["series"].items()
        if series["statistic"] == "mean" and series.get("by", ALL) in (ALL, *roster.groups)
    }
    return {name: min(numbers) for name, numbers in groups.items() if numbers}
