"""What a contract permits from here on, if every day is released when due: the next loss, its noise, the last day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from agedp_data import clock, noise
from agedp_data.chains.envelope import Envelope
from agedp_data.errors import Refused
from agedp_data.ledger import Release
from agedp_data.losses import NANO
from agedp_data.notions.notion import Figure, Notion
from agedp_data.notions.parameters import watt_hours
from agedp_data.readers.datasets import layout_of
from agedp_data.roster import ALL, Roster

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
class Side:
    """One of the two contracts: its text read, its promise, its model."""

    contract: Mapping[str, Any]
    notion: Notion
    envelope: Envelope | None


@dataclass(frozen=True, slots=True)
class View:
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


def outlook(side: Side, view: View, *, days_ahead: int | None = None) -> Outlook:
    """Return what a contract permits from here on, looking as many days ahead as it may take, or as asked."""
    figures = tuple(side.notion.figures(view.rows, side.envelope, None))
    days = list(islice(_days(side.contract, view.rows), days_ahead))
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


def _released(side: Side, view: View, days: Sequence[date]) -> list[_Day]:
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
    ended = layout_of(terms["input"]["dataset"], terms["input"].get("columns")).day_end(day)
    due = clock.due_on(ended, age_days=terms["promise"].get("age_days", 0)).isoformat()
    population = terms["population"]["name"]
    return _Day(population, "", day.isoformat(), "released", loss, clock.instant(ended), max(due, not_before))


def _admitted(side: Side, history: Sequence[Release | _Day], row: _Day) -> bool:
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
