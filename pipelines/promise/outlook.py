"""What a contract permits from here on, if every day is released when due: the next loss, its noise, the last day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from agedp_data import clock, noise
from agedp_data.errors import Refused
from agedp_data.ledger import ContractRecord, ReleaseRecord, canonical
from agedp_data.losses import NANO
from agedp_data.notions.notion import LossBound
from agedp_data.notions.parameters import watt_hours
from agedp_data.readers.datasets import layout_of
from agedp_data.roster import ALL, Roster
from pipelines.promise.grant import WHOLE_DAY, EffectivePromise
from pipelines.promise.in_force import closed_days

_MAX_DAYS_AHEAD = 3652
"""How far ahead the end of a promise is looked for: ten years, one if epsilon_total sets it no end."""


Skip = tuple[date, str]
"""A day that will be skipped, and its series; "" for all of them."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a contract permits from here on, and what it says of what was released.

    `next_day` is the first day behind the newest in the ledger, None if the series is over; `loss` what it is
    granted, whole 1e-9 epsilon; `noise_sd_kwh` that of its daily means, kWh a home, by series (of its smallest
    group). `last_day` is the last day that can be released, None if none can; `ended_by_promise` tells whether
    the promise ends there, or the period does (or the years that were looked at). `skipped` are the days to which
    the promise leaves nothing, while it leaves later ones something. `stopped` says why releases stop at once, if
    what is released breaks the promise under a model that binds; `beyond` which bound the day behind the last would
    break, if it is granted anything.
    """

    next_day: date | None
    loss: int
    noise_sd_kwh: Mapping[str, float]
    last_day: date | None
    ended_by_promise: bool
    skipped: tuple[Skip, ...]
    stopped: str
    beyond: str
    figures: tuple[LossBound, ...]


@dataclass(frozen=True, slots=True)
class ForecastContract:
    """One of the two contracts: its text read, its promise and all models that bind it, its own model first."""

    contract: Mapping[str, Any]
    effective_promise: EffectivePromise


@dataclass(frozen=True, slots=True)
class ForecastView:
    """What both are looked at from: everything released so far, who is counted, the date, the contracts so far."""

    rows: tuple[ReleaseRecord, ...]
    roster: Roster
    today: date
    contracts: tuple[ContractRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedRelease:
    """A day that is only imagined: what a notion reads of a release."""

    population: str
    series: str
    day: str
    state: str
    loss: int
    input_ended_at: str
    published_on: str
    contract: str = ""


@dataclass(slots=True)
class SimulatedSeries:
    """What becomes of the days from here on: those released, those skipped, and whether the series ended.

    `beyond` says which bound a day that is granted something would break.
    """

    history: list[ReleaseRecord | SimulatedRelease]
    released: list[SimulatedRelease] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    ended: bool = False
    stopped: str = ""
    beyond: str = ""


def forecast(contract: ForecastContract, view: ForecastView, *, days_ahead: int | None = None) -> Forecast:
    """Return what a contract permits from here on, looking as many days ahead as it may take, or as asked."""
    bounds = tuple(
        contract.effective_promise.notion.figures(view.rows, contract.effective_promise.leakage_bounds[0], None)
    )
    days = list(islice(upcoming_days(contract.contract, view.rows), days_ahead))
    simulated = simulate_days(contract, view, days)
    if not days:
        return Forecast(None, 0, {}, None, False, tuple(simulated.skipped), simulated.stopped, "", bounds)
    last = date.fromisoformat(simulated.released[-1].day) if simulated.released else None
    first = [row.loss for row in simulated.released if row.day == days[0].isoformat()]
    loss = first[0] if first else 0
    sd = _noise_sd(contract, loss, _smallest_groups(contract.contract, view.roster, days[0]))
    reasons = (simulated.stopped, simulated.beyond)
    return Forecast(days[0], loss, sd, last, simulated.ended, tuple(simulated.skipped), *reasons, bounds)


def upcoming_days(terms: Mapping[str, Any], rows: Sequence[ReleaseRecord]) -> Iterator[date]:
    """Yield the days behind the newest in the ledger, without skip_days, as far as the end is looked for."""
    schedule = terms["schedule"]
    next_days = [date.fromisoformat(row.day) + timedelta(days=1) for row in rows]
    day = max(next_days, default=date.fromisoformat(schedule["first_day"]))
    unlimited = terms["promise"]["epsilon_total"] == "unlimited"
    end = day + timedelta(days=_MAX_DAYS_AHEAD // (10 if unlimited else 1))
    last = date.fromisoformat(schedule["last_day"]) if "last_day" in schedule else end
    skipped = frozenset(schedule.get("skip_days", ()))
    while day <= min(last, end):
        if day.isoformat() not in skipped:
            yield day
        day += timedelta(days=1)


def simulate_days(contract: ForecastContract, view: ForecastView, days: Sequence[date]) -> SimulatedSeries:
    """Return what becomes of half-released days and of `days`, each released when due, up to the first refused."""
    simulated = SimulatedSeries(list(view.rows))
    try:
        contract.effective_promise.review(view.rows)
    except Refused as refused:
        simulated.ended, simulated.stopped = True, str(refused)
    newest = max((row.published_on for row in view.rows), default="")
    not_before = max(newest, _earliest(contract.contract, view.today))
    for day, series in [*_half_released_days(contract.contract, view), *((day, "") for day in days)]:
        if simulated.ended:
            break
        share = _share(contract, series) if series else WHOLE_DAY
        row = replace(_simulated_release(contract.contract, day, not_before=not_before), series=series)
        budget = contract.effective_promise.day_budget(simulated.history, row.day, row.published_on, share=share)
        if budget.skipped:
            simulated.skipped.append((day, series))
            continue
        row = replace(row, loss=budget.loss)
        simulated.beyond = _refusal(contract.effective_promise, simulated.history, row) if budget.loss > 0 else ""
        if budget.loss <= 0 or simulated.beyond:
            simulated.ended = True
            break
        simulated.history.append(row)
        if not series:
            simulated.released.append(row)
    return simulated


def _half_released_days(terms: Mapping[str, Any], view: ForecastView) -> Iterator[tuple[date, str]]:
    """Yield the days that some series published and others did not yet: a run was cut off between them."""
    next_seq = max((row.seq for row in view.rows), default=0) + 1
    contracts = (*view.contracts, ContractRecord("", canonical(terms), seq=next_seq))
    closed = closed_days(view.rows, contracts)
    for day in sorted({row.day for row in view.rows}):
        for series in terms["series"]:
            if (day, series) not in closed:
                yield date.fromisoformat(day), series


def _earliest(terms: Mapping[str, Any], today: date) -> str:
    return "" if terms["schedule"]["mode"] == "rehearsal" else today.isoformat()


def _simulated_release(terms: Mapping[str, Any], day: date, *, not_before: str) -> SimulatedRelease:
    day_end = layout_of(terms["input"]["dataset"], terms["input"].get("columns")).day_end(day)
    due = clock.due_on(day_end, age_days=terms["promise"].get("age_days", 0)).isoformat()
    population = terms["population"]["name"]
    return SimulatedRelease(
        population, "", day.isoformat(), "released", 0, clock.instant(day_end), max(due, not_before)
    )


def _refusal(
    effective_promise: EffectivePromise, history: Sequence[ReleaseRecord | SimulatedRelease], row: SimulatedRelease
) -> str:
    """Return why a row may not follow, "" if it may."""
    try:
        effective_promise.admit(history, row)
    except Refused as refused:
        return str(refused)
    return ""


def _share(contract: ForecastContract, series: str) -> Fraction:
    """Return which part of a day's loss a series is granted."""
    return contract.effective_promise.notion.part_of_day(series, Fraction(contract.contract["series"][series]["share"]))


def _noise_sd(contract: ForecastContract, loss: int, households: Mapping[str, int]) -> dict[str, float]:
    """Return the standard deviation of each daily mean's noise, kWh a home, when the day is granted `loss`."""
    noise_sd_kwh: dict[str, float] = {}
    for name, series in contract.contract["series"].items():
        part = int(_share(contract, name) * loss)
        if part > 0 and households.get(name):
            clamp = watt_hours(Decimal(series["clamp_kwh"]))
            scale = noise.laplace_scale(sensitivity=clamp, loss=Fraction(part, NANO))
            noise_sd_kwh[name] = noise.standard_deviation(scale) / (1000.0 * households[name])
    return noise_sd_kwh


def _smallest_groups(terms: Mapping[str, Any], roster: Roster, day: date) -> dict[str, int]:
    """Return how many homes the smallest published group of each daily mean has; nothing of a series without one."""
    min_households = terms["population"]["min_households"]
    groups = {
        name: [number for _, number in roster.cells(day, series.get("by")) if number >= min_households]
        for name, series in terms["series"].items()
        if series["statistic"] == "mean" and series.get("by", ALL) in (ALL, *roster.groups)
    }
    return {name: min(numbers) for name, numbers in groups.items() if numbers}
