"""Contract + ledger + roster -> forecast, if every day is released when due: next loss, its noise, last day."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from agedp.budget import ReleaseTerms, closed_days
from agedp.covered_days import whole_periods
from agedp.effective_promise import WHOLE_DAY, EffectivePromise
from agedp_data import clock, mechanisms
from agedp_data.datasets.registry import layout_of
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused
from agedp_data.ledger import ContractRecord, canonical
from agedp_data.ledger.release_headers import AnyRelease
from agedp_data.notions.notion import HistoryRow, LossBound
from agedp_data.parameters import watt_hours
from agedp_data.roster import Roster, group_columns
from agedp_data.series.layers import layer_width_kwh
from agedp_data.series.series import AnySeries, series_of

_MAX_DAYS_AHEAD = 3652
"""Days that a forecast covers: ten years, or one year if epsilon_total is unlimited."""


Skip = tuple[date, str]
"""A day that will be skipped, and its series; "" for all of them."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of a series under a contract, and the bounds of its releases so far.

    `next_day` is the first day after the newest in the ledger, None if the series is over; `loss` its budget
    [nano-epsilon]; `noise_sd_kwh` the noise of its daily means by series [kWh per household of the smallest group].
    `last_day` is the last day that can be released, None if none can; `ended_by_promise` tells whether the promise ends
    there, rather than the period or the forecast. `skipped` are days with zero budget before later ones with some.
    `stopped` is the reason why releases stop at once, if the released rows break the promise under a model in force;
    `refusal` the bound that the day after the last one would break, if it has any budget. `history` are the released
    rows and the expected ones.
    """

    next_day: date | None
    loss: int
    noise_sd_kwh: Mapping[str, float]
    last_day: date | None
    ended_by_promise: bool
    skipped: tuple[Skip, ...]
    stopped: str
    refusal: str
    bounds: tuple[LossBound, ...]
    history: tuple[HistoryRow, ...]


@dataclass(frozen=True, slots=True)
class ForecastContract:
    """A contract to forecast: its parsed text, and its promise with all models in force, its own model first."""

    contract: Mapping[str, Any]
    effective_promise: EffectivePromise

    @property
    def has_periods(self) -> bool:
        """Return whether a series has rows that cover several days."""
        return _has_periods(self.contract)

    @property
    def series(self) -> dict[str, AnySeries]:
        """Return the series by name."""
        return _series_of(canonical(self.contract["series"]))

    def due_names(self, day: date) -> tuple[str, ...]:
        """Return the series that have a row of a day."""
        return _due_names(self.contract, self.series, day)

    @classmethod
    def of(cls, terms: ReleaseTerms) -> ForecastContract:
        """Return the contract of a run file under these terms."""
        return cls(terms.text, terms.effective_promise)


@dataclass(frozen=True, slots=True)
class ForecastView:
    """Starting point of a forecast: released rows, roster, date, contracts so far."""

    rows: tuple[AnyRelease, ...]
    roster: Roster
    today: date
    contracts: tuple[ContractRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedRelease:
    """A release in a forecast: the columns that a notion reads."""

    population: str
    series: str
    day: str
    state: str
    loss: int
    input_ended_at: str
    published_on: str
    contract: str = ""
    sensitivity: int = 0
    scale: float = 0.0
    mechanism: str = ""


@dataclass(slots=True)
class SimulatedSeries:
    """A simulated series: released days, skipped days, and whether the series ended.

    `refusal` is the bound that the first refused day would break, if that day has any budget.
    """

    history: list[AnyRelease | SimulatedRelease]
    released: list[SimulatedRelease] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    ended: bool = False
    stopped: str = ""
    refusal: str = ""


def forecast(contract: ForecastContract, view: ForecastView, *, days_ahead: int | None = None) -> Forecast:
    """Return the forecast under a contract, over `days_ahead` days or as far as forecasts go."""
    bounds = tuple(
        contract.effective_promise.notion.bounds(view.rows, contract.effective_promise.leakage_bounds[0], None)
    )
    days = list(islice(upcoming_days(contract.contract, view.rows), days_ahead))
    simulated = simulate_days(contract, view, days)
    if not days:
        return Forecast(None, 0, {}, None, False, tuple(simulated.skipped), simulated.stopped, "", bounds, view.rows)
    last = date.fromisoformat(simulated.released[-1].day) if simulated.released else None
    first = [row.loss for row in simulated.released if row.day == days[0].isoformat()]
    loss = first[0] if first else 0
    sd = _noise_sd(contract, loss, _smallest_groups(contract.contract, view.roster, days[0]))
    reasons, history = (simulated.stopped, simulated.refusal), tuple(simulated.history)
    return Forecast(days[0], loss, sd, last, simulated.ended, tuple(simulated.skipped), *reasons, bounds, history)


def upcoming_days(terms: Mapping[str, Any], rows: Sequence[AnyRelease]) -> Iterator[date]:
    """Yield the days after the newest in the ledger, without skip_days, as far as forecasts go."""
    schedule = terms["schedule"]
    next_days = [date.fromisoformat(row.day) + timedelta(days=1) for row in rows]
    day = max(next_days, default=date.fromisoformat(schedule["first_day"]))
    unlimited = terms["promise"]["epsilon_total"] == "unlimited"
    end = day + timedelta(days=_MAX_DAYS_AHEAD // (10 if unlimited else 1))
    last = date.fromisoformat(schedule["last_day"]) if "last_day" in schedule else end
    skipped = frozenset(schedule.get("skip_days", ()))
    series = _series_of(canonical(terms["series"])) if _has_periods(terms) else {}
    while day <= min(last, end):
        if day.isoformat() not in skipped and (not series or _due_names(terms, series, day)):
            yield day
        day += timedelta(days=1)


def simulate_days(contract: ForecastContract, view: ForecastView, days: Sequence[date]) -> SimulatedSeries:
    """Return the simulated release of half-released days and of `days`, each when due, up to the first refusal."""
    simulated = SimulatedSeries(list(view.rows))
    try:
        contract.effective_promise.review(view.rows)
    except Refused as refused:
        simulated.ended, simulated.stopped = True, str(refused)
    newest = max((row.published_on for row in view.rows), default="")
    not_before = max(newest, earliest_date(contract.contract, view.today))
    for day, series in [*_half_released_days(contract.contract, view), *((day, "") for day in days)]:
        if simulated.ended:
            break
        row = replace(simulated_release(contract.contract, day, not_before=not_before), series=series)
        if series or not contract.has_periods:
            _simulate_row(contract, simulated, row, day)
            continue
        whole = contract.effective_promise.day_budget(simulated.history, row.day, row.published_on).loss
        before = len(simulated.history)
        for name in contract.due_names(day):
            if not simulated.ended:
                _simulate_row(contract, simulated, replace(row, series=name), day)
        if len(simulated.history) > before:
            simulated.released.append(replace(row, loss=whole))
    return simulated


def _simulate_row(contract: ForecastContract, simulated: SimulatedSeries, row: SimulatedRelease, day: date) -> None:
    """Add the simulated row of a series, or of all together, to the history; skip it, or end the series."""
    promise = contract.effective_promise
    if not contract.has_periods:
        share = _share(contract, row.series) if row.series else WHOLE_DAY
        budget = promise.day_budget(simulated.history, row.day, row.published_on, share=share)
    else:
        series = contract.series[row.series]
        budget = promise.series_budget(simulated.history, day, row.published_on, name=row.series, series=series)
        budget = promise.largest_admitted(simulated.history, budget, lambda loss: replace(row, loss=loss))
    if budget.skipped:
        simulated.skipped.append((day, row.series))
        return
    row = replace(row, loss=budget.loss)
    simulated.refusal = _refusal(promise, simulated.history, row) if budget.loss > 0 else ""
    if budget.loss <= 0 or simulated.refusal:
        simulated.ended = True
        return
    simulated.history.append(row)
    if not row.series:
        simulated.released.append(row)


def _half_released_days(terms: Mapping[str, Any], view: ForecastView) -> Iterator[tuple[date, str]]:
    """Yield the days that some series published and others did not: a run was interrupted between them."""
    next_seq = max((row.seq for row in view.rows), default=0) + 1
    contracts = (*view.contracts, ContractRecord("", canonical(terms), seq=next_seq))
    closed = closed_days(view.rows, contracts)
    for day in sorted({row.day for row in view.rows}):
        for series in _due_names(terms, _series_of(canonical(terms["series"])), date.fromisoformat(day)):
            if (day, series) not in closed:
                yield date.fromisoformat(day), series


@lru_cache(maxsize=16)
def _series_of(text: str) -> dict[str, AnySeries]:
    return series_of({"series": json.loads(text)})


def _has_periods(terms: Mapping[str, Any]) -> bool:
    return any(series.get("every", "day") != "day" for series in terms["series"].values())


def _due_names(terms: Mapping[str, Any], series: Mapping[str, AnySeries], day: date) -> tuple[str, ...]:
    schedule = terms["schedule"]
    skipped = [date.fromisoformat(skip_day) for skip_day in schedule.get("skip_days", ())]
    return whole_periods(series, day, since=date.fromisoformat(schedule["first_day"]), skipped=skipped)


def earliest_date(terms: Mapping[str, Any], today: date) -> str:
    """Return the first date on which a contract's days are published, ISO text; "" for that of a simulated clock."""
    return "" if terms["schedule"]["mode"] == "rehearsal" else today.isoformat()


def simulated_release(terms: Mapping[str, Any], day: date, *, not_before: str) -> SimulatedRelease:
    """Return a row of a day that is published when it is due, on `not_before` (ISO date) at the earliest."""
    day_end = layout_of(terms["input"]["dataset"], terms["input"].get("columns")).day_end(day)
    due = clock.due_on(day_end, age_days=terms["promise"].get("age_days", 0)).isoformat()
    population = terms["population"]["name"]
    return SimulatedRelease(
        population, "", day.isoformat(), "released", 0, clock.format_instant(day_end), max(due, not_before)
    )


def _refusal(
    effective_promise: EffectivePromise, history: Sequence[AnyRelease | SimulatedRelease], row: SimulatedRelease
) -> str:
    """Return the reason why a row is refused, "" if it is admitted."""
    try:
        effective_promise.admit(history, row)
    except Refused as refused:
        return str(refused)
    return ""


def _share(contract: ForecastContract, series: str) -> Fraction:
    """Return the share of a day's budget that a series has."""
    return contract.effective_promise.notion.part_of_day(series, Fraction(contract.contract["series"][series]["share"]))


def _noise_sd(contract: ForecastContract, loss: int, households: Mapping[str, int]) -> dict[str, float]:
    """Return the noise standard deviation of each daily mean for a day with this loss [kWh per household]."""
    noise_sd_kwh: dict[str, float] = {}
    for name, series in contract.contract["series"].items():
        part = int(_share(contract, name) * loss)
        if part > 0 and households.get(name):
            width = watt_hours(layer_width_kwh(series["clamp_kwh"], series.get("above_kwh")))
            scale = mechanisms.laplace_scale(sensitivity=width, loss=Fraction(part, NANO))
            noise_sd_kwh[name] = mechanisms.standard_deviation(scale) / (1000.0 * households[name])
    return noise_sd_kwh


def _smallest_groups(terms: Mapping[str, Any], roster: Roster, day: date) -> dict[str, int]:
    """Return the size of the smallest published group of each daily mean; series without such a group are left out."""
    min_households = terms["population"]["min_households"]
    groups = {
        name: [number for _, number in roster.cells(day, group_columns(series.get("by"))) if number >= min_households]
        for name, series in terms["series"].items()
        if series["statistic"] == "mean"
        and series.get("every", "day") == "day"
        and roster.has(group_columns(series.get("by")))
    }
    return {name: min(numbers) for name, numbers in groups.items() if numbers}
