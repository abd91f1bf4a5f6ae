"""Contract + ledger + roster -> forecast, if every day is released when due: next loss, its noise, last day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from agedp.budget import EffectivePromise, ReleaseTerms, closed_days, whole_periods
from agedp_data import clock, mechanisms
from agedp_data.config import RunFile
from agedp_data.datasets.layout import Layout
from agedp_data.epsilon import NANO, format_epsilon
from agedp_data.errors import Refused
from agedp_data.ledger import ContractRecord
from agedp_data.ledger.records import AnyRelease
from agedp_data.notions.notion import HistoryRow, LossBound
from agedp_data.notions.publication import share_of
from agedp_data.roster import GroupColumns, RosterCounts
from agedp_data.series.mean import is_daily_mean

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

    @property
    def facts(self) -> dict[str, Any]:
        """Return the forecast as JSON."""
        values = [(of.name, "infinite" if of.value is None else format_epsilon(of.value)) for of in self.bounds]
        return {
            "next_day": self.next_day.isoformat() if self.next_day else "",
            "epsilon": format_epsilon(self.loss),
            "noise_sd_kwh": dict(self.noise_sd_kwh),
            "last_day": self.last_day.isoformat() if self.last_day else "",
            "ended_by_promise": self.ended_by_promise,
            "skipped": skip_facts(self.skipped),
            "stopped": self.stopped,
            "figures": [{"name": name, "epsilon": epsilon} for name, epsilon in values],
        }


def skip_facts(skips: Iterable[Skip]) -> list[dict[str, str]]:
    """Return the days that will be skipped as JSON."""
    return [{"day": day.isoformat()} | ({"series": series} if series else {}) for day, series in skips]


@dataclass(frozen=True, slots=True)
class ForecastView:
    """Starting point of a forecast: released rows, roster, date, contracts so far."""

    rows: tuple[AnyRelease, ...]
    roster: RosterCounts
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

    history: tuple[AnyRelease | SimulatedRelease, ...]
    released: list[SimulatedRelease] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    ended: bool = False
    stopped: str = ""
    refusal: str = ""


def forecast(terms: ReleaseTerms, view: ForecastView, *, days_ahead: int | None = None) -> Forecast:
    """Return the forecast of a run file, or of a contract, over `days_ahead` days or as far as forecasts go."""
    bounds = tuple(terms.notion.bounds(view.rows, terms.leakage_bound, None))
    days = list(islice(upcoming_days(terms.run, view.rows), days_ahead))
    simulated = simulate_days(terms, view, days)
    if not days:
        return Forecast(None, 0, {}, None, False, tuple(simulated.skipped), simulated.stopped, "", bounds, view.rows)
    released, skipped, history = simulated.released, tuple(simulated.skipped), simulated.history
    last = date.fromisoformat(released[-1].day) if released else None
    loss = next((row.loss for row in released if row.day == days[0].isoformat()), 0)
    sd, reasons = _noise_sd(terms, loss, view.roster, days[0]), (simulated.stopped, simulated.refusal)
    return Forecast(days[0], loss, sd, last, simulated.ended, skipped, *reasons, bounds, history)


def upcoming_days(run: RunFile, rows: Sequence[AnyRelease]) -> Iterator[date]:
    """Yield the days after the newest in the ledger, without skip_days, as far as forecasts go."""
    skipped, has_periods = run.schedule.skipped_days, _has_periods(run)
    day, end = forecast_days(run, rows)
    last = min(run.schedule.last_day or end, end)
    while day <= last:
        if day not in skipped and (not has_periods or _due_names(run, day)):
            yield day
        day += timedelta(days=1)


def forecast_days(run: RunFile, rows: Sequence[AnyRelease]) -> tuple[date, date]:
    """Return the day after the newest in the ledger, and the last day of a forecast without an end of the period."""
    next_days = [date.fromisoformat(row.day) + timedelta(days=1) for row in rows]
    day = max(next_days, default=run.schedule.first_day)
    return day, day + timedelta(days=_MAX_DAYS_AHEAD // (10 if run.promise.total_cap is None else 1))


def simulate_days(terms: ReleaseTerms, view: ForecastView, days: Sequence[date]) -> SimulatedSeries:
    """Return the simulated release of half-released days and of `days`, each when due, up to the first refusal."""
    simulated, run, promise = SimulatedSeries(view.rows), terms.run, terms.effective_promise
    layout, has_periods = run.input.layout, _has_periods(run)
    try:
        promise.review(view.rows)
    except Refused as refused:
        simulated.ended, simulated.stopped = True, str(refused)
    newest = max((row.published_on for row in view.rows), default="")
    not_before = max(newest, earliest_date(run, view.today))
    for day, series in [*_half_released_days(run, view), *((day, "") for day in days)]:
        if simulated.ended:
            break
        row = simulated_release(run, layout, day, not_before=not_before, series=series)
        if series or not has_periods:
            _simulate_row(run, promise, simulated, row)
            continue
        whole = promise.day_budget(simulated.history, row.day, row.published_on).loss
        before = len(simulated.history)
        for name in _due_names(run, day):
            if not simulated.ended:
                _simulate_row(run, promise, simulated, replace(row, series=name))
        if len(simulated.history) > before:
            simulated.released.append(replace(row, loss=whole))
    return simulated


def _simulate_row(run: RunFile, promise: EffectivePromise, simulated: SimulatedSeries, row: SimulatedRelease) -> None:
    """Add the simulated row of a series, or of all together, to the history; skip it, or end the series."""
    day = date.fromisoformat(row.day)
    if not row.series:
        budget = promise.day_budget(simulated.history, row.day, row.published_on)
    else:
        series = run.series[row.series]
        budget = promise.series_budget(simulated.history, day, row.published_on, name=row.series, series=series)
    if _has_periods(run):
        budget = promise.largest_admitted(simulated.history, budget, lambda loss: replace(row, loss=loss))
    if budget.skipped:
        simulated.skipped.append((day, row.series))
        return
    row, simulated.refusal = replace(row, loss=budget.loss), ""
    if budget.loss > 0:
        try:
            promise.admit(simulated.history, row)
        except Refused as refused:
            simulated.refusal = str(refused)
    if budget.loss <= 0 or simulated.refusal:
        simulated.ended = True
        return
    simulated.history = (*simulated.history, row)
    if not row.series:
        simulated.released.append(row)


def _half_released_days(run: RunFile, view: ForecastView) -> Iterator[tuple[date, str]]:
    """Yield the days that some series published and others did not: a run was interrupted between them."""
    closed = closed_days(view.rows, view.contracts, run.series)
    for day in sorted({row.day for row in view.rows}):
        for series in _due_names(run, date.fromisoformat(day)):
            if (day, series) not in closed:
                yield date.fromisoformat(day), series


def _has_periods(run: RunFile) -> bool:
    return any(series.covers_periods for series in run.series.values())


def _due_names(run: RunFile, day: date) -> tuple[str, ...]:
    series = dict(sorted(run.series.items()))  # as a contract's text has them
    return whole_periods(series, day, since=run.schedule.first_day, skipped=run.schedule.skipped_days)


def earliest_date(run: RunFile, today: date) -> str:
    """Return the first date on which the days are published, ISO text; "" for that of a simulated clock."""
    return "" if run.schedule.mode == "rehearsal" else today.isoformat()


def simulated_release(
    run: RunFile, layout: Layout, day: date, *, not_before: str, series: str = "", loss: int = 0
) -> SimulatedRelease:
    """Return a row of a day that is published when it is due, on `not_before` (ISO date) at the earliest."""
    text, ended_at, due = _texts_of(day, layout.day_end(day), run.promise.age_days or 0)
    return SimulatedRelease(run.population.name, series, text, "released", loss, ended_at, max(due, not_before))


@lru_cache(maxsize=2 * _MAX_DAYS_AHEAD)
def _texts_of(day: date, day_end: datetime, age_days: int) -> tuple[str, str, str]:
    """Return a day, its end and the date on which it is due, as recorded: each promise compared has the same days."""
    return day.isoformat(), clock.format_instant(day_end), clock.due_on(day_end, age_days=age_days).isoformat()


def _noise_sd(terms: ReleaseTerms, loss: int, roster: RosterCounts, day: date) -> dict[str, float]:
    """Return the noise standard deviation of each daily mean for a day with this loss [kWh per household].

    It is that of the smallest published group; means without such a group are left out.
    """
    noise_sd_kwh: dict[str, float] = {}
    for name, series in sorted(terms.run.series.items()):
        if is_daily_mean(series) and roster.has(series.by):
            part = int(terms.notion.part_of_day(name, share_of(series)) * loss)
            households = smallest_group_size(roster, day, series.by, terms.run.population.min_households)
            if part > 0 and households:
                scale = mechanisms.laplace_scale(sensitivity=series.width_wh, loss=Fraction(part, NANO))
                noise_sd_kwh[name] = mechanisms.standard_deviation(scale) / (1000.0 * households)
    return noise_sd_kwh


def smallest_group_size(roster: RosterCounts, day: date, by: GroupColumns, min_households: int = 1) -> int:
    """Return the size of the smallest published group of roster columns on a day, 0 without such a group."""
    return min((households for _, households in roster.cells(day, by) if households >= min_households), default=0)
