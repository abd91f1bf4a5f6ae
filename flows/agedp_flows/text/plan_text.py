"""Output of `agedp plan`, and of `agedp ledger amend`: what a run file permits, and what another contract permitted.

A plan has the due days of each series (households of the smallest group, loss and noise), the end of the promise, what
spans of days come to and what a promised delta buys, and the contract. An amendment has every difference with its
verdict, and each bound under both contracts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agedp.budget import DAYS_NEAR, PlannedRelease, format_end_reason
from agedp.ledger_session import LedgerSession
from agedp.planning.forecast import Forecast, Skip
from agedp.planning.notion_comparison import ComparisonTarget
from agedp.planning.row_noise import GroupNoise, group_noises, smallest_group
from agedp.planning.span_price import PeriodTotals, SpanPrice, filling_loss, period_totals, span_prices
from agedp.signal_against_noise import sum_noises, three_digits
from agedp.stages import plan as plan_stage
from agedp.statement_facts import read_newest_rows
from agedp_data.config import RunFile
from agedp_data.epsilon import exact_text, format_delta, format_epsilon
from agedp_data.errors import RunFileError
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.records import AnyRelease
from agedp_data.notions import Promise
from agedp_data.notions.notion import LossBound
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_data.statement.facts import state_bound
from agedp_flows.text import noise_text, run_text
from agedp_flows.text.comparison_text import envelope_days, promises_json, promises_lines
from agedp_flows.text.screen import (
    count_text,
    finite_or_none,
    format_budget,
    format_loss,
    heading,
    refusal_line,
    table_lines,
    warning,
)

if TYPE_CHECKING:
    from agedp.stages.amend import Amendment


def span_lines(plan: plan_stage.RunForecast) -> list[str]:
    """Return what a promised delta buys, and what the days of the period come to at each delta."""
    run, totals = plan.terms.run, _totals(plan)
    lines = [*run_text.delta_warning_lines(run), *(_price_line(price, run) for price in span_prices(run))]
    if not plan.history.rows and (price := filling_loss(run)) is not None:
        days = count_text(price.days, "day")
        lines.append(f"epsilon_per_day = {format_budget(price.loss)} would fill {price.key} over {days}")
    if totals is not None:
        at = ", ".join(f"{format_loss(loss)} at delta = {format_delta(delta)}" for delta, loss in totals.at)
        days = count_text(totals.days, "day")
        together = f"{days}, released and planned, together: epsilon {format_loss(totals.pure)} by their pure sum"
        lines.append(f"{together}; {at}")
    if totals is not None and totals.tight is not None:
        delta, epsilon = totals.tight
        at_delta = f"{three_digits(epsilon)} at delta = {format_delta(delta)}"
        lines.append(f"   tighter, not enforced (privacy-loss distribution): {at_delta}")
    return lines


def span_json(plan: plan_stage.RunForecast) -> dict[str, Any]:
    """Return the same as optional keys of the plan's JSON."""
    prices, totals, facts = span_prices(plan.terms.run), _totals(plan), dict[str, Any]()
    if prices:
        facts["price_of_delta"] = [_price_json(price) for price in prices]
    if totals is not None:
        by_delta = [{"delta": exact_text(delta), "epsilon": format_epsilon(loss)} for delta, loss in totals.at]
        facts["period"] = {"days": totals.days, "pure_total": format_epsilon(totals.pure), "totals": by_delta}
    if totals is not None and totals.tight is not None:
        tight = {"delta": exact_text(totals.tight[0]), "epsilon": totals.tight[1]}
        facts["period"]["tighter_not_enforced"] = tight
    return facts


def _totals(plan: plan_stage.RunForecast) -> PeriodTotals | None:
    """Return what the whole period comes to; None if it has no last day, or the forecast ends before it."""
    forecast, last = plan.forecast, plan.terms.run.schedule.last_day
    if last is None:
        return None
    while last in plan.terms.run.schedule.skipped_days:
        last -= timedelta(days=1)
    newest = max((row.day for row in forecast.history), default="")
    is_whole = forecast.ended_by_promise or newest >= last.isoformat()
    return period_totals(plan.terms.run, forecast.history) if is_whole else None


def _price_line(price: SpanPrice, run: RunFile) -> str:
    ratio = f", with {price.noise_ratio:.2f} times the noise" if price.pure_loss else ""
    days, pure_sum = count_text(price.days, "day"), f"{format_loss(price.pure_total)} by their pure sum"
    bound = f"{price.key} = {format_epsilon(price.epsilon)} over {days}"
    if price.is_capped:
        cap = f"max_day_epsilon = {run.promise.max_day_epsilon:f} limits the day, {days} to {pure_sum}"
        permitted = f"{cap}; {bound} alone permits {format_budget(price.uncapped_loss)}"
    else:
        permitted = f"{bound} permits epsilon {format_budget(price.loss)} on each of them, {pure_sum}"
    without = f"Without delta it would permit {format_budget(price.pure_loss)} a day{ratio}"
    return f"delta = {format_delta(price.delta)}: {permitted}. {without}"


def _price_json(price: SpanPrice) -> dict[str, Any]:
    return {
        "key": price.key,
        "epsilon": format_epsilon(price.epsilon),
        "delta": exact_text(price.delta),
        "days": price.days,
        "epsilon_a_day": format_epsilon(price.loss),
        "pure_total": format_epsilon(price.pure_total),
        "epsilon_a_day_without_delta": format_epsilon(price.pure_loss),
        "noise_ratio_without_delta": finite_or_none(price.noise_ratio),
    }


_MAX_SHOWN: Final = 5
"""Lines shown at the beginning, and at the end, of a longer table."""
_ALL_SERIES: Final = "all series"
_HOUR: Final = 60


def due_lines(run: RunFile, planned: Sequence[PlannedRelease], *, verbose: bool = False) -> list[str]:
    """Return the due days with their releases, what will be skipped, and the noise of sums of layers.

    With `verbose` also what layers and means of periods are.
    """
    if not planned:
        return ["nothing is due that is not released already"]
    rows, listed = _released(planned), list(_once_per_skip(planned))
    skips = run_text.skips_count_text([release.row for release in planned])
    skipped = f" and {skips} will be skipped" if skips else ""
    days = len({row.day for row in rows})
    of_days = f"{count_text(days, 'day')}, " if days < len(rows) else ""
    verb = "is" if len(rows) == 1 else "are"
    lines: list[str] = [heading(f"{of_days}{count_text(len(rows), 'release')} {verb} due{skipped}:")]
    lines += _due_text_table(run, listed)
    reasons: dict[str, list[Skip]] = {}  # of all days that will be skipped, also of those whose lines are not shown
    for release, series in listed:
        if release.skip_reason:
            reasons.setdefault(release.skip_reason, []).append((date.fromisoformat(release.row.day), series))
    lines += [f"skipped ({reason}): {run_text.skips_text(skips)}" for reason, skips in reasons.items()]
    lines += [*noise_text.layer_lines(run.series), *noise_text.period_lines(run.series)] if verbose else []
    for name, noise_by_day in sum_noises(rows).items():
        lines.append(f"{name}, sum of the layers: noise {three_digits(max(noise_by_day.values()))} kWh per household")
    return lines


def _released(planned: Iterable[PlannedRelease]) -> list[ReleaseRecord]:
    return [release.row for release in planned if release.row.state == "released"]


class _RowTexts(NamedTuple):
    """The cells of a planned release; `groups` is "" without groups, `unit` and `noise` of a skipped day as well."""

    households: str
    groups: str
    epsilon: str
    noise: str
    unit: str
    remark: str


def _due_text_table(run: RunFile, releases: Sequence[tuple[PlannedRelease, str]]) -> list[str]:
    """Return the table, "..." in place of lines that are left out, the unit in the heading if all rows share it."""
    shown = _shown_lines([(name, bool(release.skip_reason)) for release, name in releases])
    texts = {i: _row_texts(run, releases[i][0]) for i in shown}
    units = {cells.unit for cells in texts.values() if cells.unit}
    unit = f", {min(units)}" if len(units) == 1 else ""
    notes = {i: ", ".join(filter(None, ["" if unit else of.unit, of.remark])) for i, of in texts.items()}
    has_groups, has_notes = any(cells.groups for cells in texts.values()), any(notes.values())
    households, groups = (">households (smallest group)", [">groups"]) if has_groups else (">households", [])
    headings = ["day", "publish on", "series", households, *groups, ">epsilon", f">noise sd{unit}"]
    rows: list[Sequence[str]] = []
    for before, i in pairwise([-1, *shown]):
        if i > before + 1:
            rows.append(["..."])
        (release, series), cells = releases[i], texts[i]
        place = release.row.day, release.row.published_on, series or _ALL_SERIES, cells.households
        counted = [cells.groups or "1"] if has_groups else []
        rows.append([*place, *counted, cells.epsilon, cells.noise, *([notes[i]] if has_notes else [])])
    return table_lines([*headings, *([""] if has_notes else [])], rows)


def _row_texts(run: RunFile, release: PlannedRelease) -> _RowTexts:
    """Return the cells of a release: households of the smallest group, a mean over the days that a row covers."""
    row, series = release.row, run.series[release.row.series]
    noises = group_noises(row, series)
    groups = len({of.group for of in noises})
    counts = str(min((of.households for of in noises), default=0)), f"{groups}" if groups > 1 else ""
    if row.state != "released":
        return _RowTexts(*counts, "", "", "", f"skipped: {release.skip_reason}")
    (sd, kind), unit, remark = run_text.noise_deviation(row, series), "kWh per household", ""
    if kind != "kwh":
        unit = "households per count"
    elif series.reads_half_hours:
        unit = f"kWh per {'half-hour' if run.input.interval_minutes < _HOUR else 'hour'}"
        remark = by_day_kind(smallest_group(row, series))
    return _RowTexts(*counts, format_loss(row.loss), three_digits(sd), unit, remark)


def _shown_lines(lines: Sequence[tuple[str, bool]]) -> list[int]:
    """Return which lines are shown, of each its series and whether it is skipped: ends, and one line of each series.

    >>> _shown_lines([("a", False)] * 20 + [("b", True), ("b", False)] + [("a", False)] * 20)
    [0, 1, 2, 3, 4, 21, 37, 38, 39, 40, 41]
    """
    if len(lines) <= 2 * _MAX_SHOWN:
        return list(range(len(lines)))
    first: dict[str, int] = {}
    for i in sorted(range(len(lines)), key=lambda i: lines[i][1]):  # a released line, if there is one
        first.setdefault(lines[i][0], i)
    ends = [*range(_MAX_SHOWN), *range(len(lines) - _MAX_SHOWN, len(lines))]
    covered = {lines[i][0] for i in ends if not lines[i][1]}
    return sorted({*ends, *(i for name, i in first.items() if name not in covered)})


def by_day_kind(noises: Sequence[GroupNoise]) -> str:
    """Return the noise of weekdays and of weekends; "" for a profile of single days.

    >>> by_day_kind([GroupNoise("all", 75, 10.14, "weekday"), GroupNoise("all", 75, 8.516, "weekend")])
    'weekday 10.1, weekend 8.52'
    """
    return ", ".join(f"{of.day_kind} {three_digits(of.noise_sd)}" for of in noises if of.day_kind)


def _once_per_skip(planned: Sequence[PlannedRelease]) -> Iterator[tuple[PlannedRelease, str]]:
    """Yield the planned releases with their series; a day skipped for one reason in several series once, with ""."""
    of_days: dict[str, list[str]] = {}
    for release in planned:
        of_days.setdefault(release.row.day, []).append(release.skip_reason)
    whole = {day for day, reasons in of_days.items() if reasons[0] and len(reasons) > 1 and len({*reasons}) == 1}
    yielded: set[str] = set()
    for release in planned:
        day = release.row.day
        if day not in yielded:
            yield release, "" if day in whole else release.row.series
        yielded |= {day} & whole


_YEAR = 365


def plan_json(session: LedgerSession) -> dict[str, Any]:
    """Return the plan as JSON."""
    plan, run = plan_stage.forecast_run(session), session.run.run_file
    reason, forecast, has_begun = ended_reason(plan), plan.forecast, bool(plan.history.rows)
    last_day = forecast.last_day.isoformat() if forecast.last_day and forecast.ended_by_promise else ""
    try:
        notions = {} if has_begun else promises_json(session, ComparisonTarget())
    except RunFileError as error:
        notions = {"lacking": str(error)}
    means = _mean_noise_by_schedule(plan)
    return {
        "population": run.population.name,
        "due": [_planned_json(planned, run.series[planned.row.series]) for planned in plan.now.planned],
        "skipped_ahead": run_text.skips_json(_skipped_ahead(plan)),
        "waiting": [day.isoformat() for day in plan.due_days.waiting],
        "refused": next(iter(refusals(plan)), str(plan.now.refused or "")),
        **({} if plan.verdict is None else {"verdict": plan.verdict.facts}),
        "spent": format_epsilon(plan.spent),
        "last_possible_day": _last_released_day(plan) if reason else last_day,
        "ended": reason,
        "signal": noise_text.signal_json(session.ledger, run),
        **span_json(plan),
        **({"mean_noise_by_schedule": means} if means else {}),
        **({} if has_begun else {"notions": notions}),
        "contract": plan.contract,
    }


def _planned_json(planned: PlannedRelease, series: AnySeries) -> dict[str, Any]:
    row = planned.row
    counted = {of.group: of.households for of in group_noises(row, series)}
    line: dict[str, Any] = {
        "day": row.day,
        "series": row.series,
        "state": row.state,
        "publish_on": row.published_on,
        "households": counted,
        "epsilon": format_epsilon(row.loss),
    }
    if row.state != "released":
        return line | {"why": planned.skip_reason}
    sd, unit = run_text.noise_deviation(row, series)
    by_kind = {f"noise_sd_kwh_{of.day_kind}": of.noise_sd for of in smallest_group(row, series) if of.day_kind}
    return line | {f"noise_sd_{unit}": sd} | by_kind


def plan_table(run: RunFile, planned: Sequence[PlannedRelease]) -> list[dict[str, str]]:
    """Return the due days as a public table: day, series, households, epsilon, noise, and why a day is skipped."""
    lines = []
    for release, series in _once_per_skip(planned):
        row, of = release.row, _row_texts(run, release)
        households = f"{of.households} in the smallest of {of.groups} groups" if of.groups else of.households
        noise = f"{of.noise} {of.unit}".removesuffix(" per household").strip()
        place = {"day": row.day, "series": series or _ALL_SERIES, "households": households}
        rest = {"epsilon": of.epsilon, "noise sd": noise, "publish on": row.published_on, "remark": of.remark}
        lines.append(place | rest)
    return lines


def plan_lines(session: LedgerSession, *, verbose: bool = False) -> list[str]:
    """Return the plan as lines for the terminal.

    With `verbose` also sums over spans, other schedules, all notions before the first release, and
    the contract.
    """
    plan, run = plan_stage.forecast_run(session), session.run.run_file
    schedule, rows = run.schedule, _released(plan.now.planned)
    released = [] if session.ledger is None else read_newest_rows(session.ledger, run.population.name)
    lines = [
        *map(refusal_line, refusals(plan)),
        *(plan.verdict.lines if plan.verdict else []),
        *due_lines(run, plan.now.planned, verbose=verbose),
        *map(warning, noise_text.level_lines(run, session.run.roster.counts)),
        *(noise_text.signal_lines(session.ledger, run) or noise_text.planned_mean_lines(rows, run.series)),
        *noise_text.noise_lines([*released, *rows], run),  # of what has no signal
        *run_text.waiting_lines(plan.due_days.waiting),
    ]
    if schedule.mode == "live" and schedule.wait_for is None:
        lines.append(
            "no [schedule] wait_for: a day is released at its age, delivered or not; readings missing then stay missing"
        )
    lines += run_text.planned_preflight_lines(session, plan.due_days)
    lines += [*_spent_lines(plan), *_horizon_lines(run), *filter(None, [plan.terms.notion.remark])]
    lines += span_lines(plan) if verbose or run.promise.delta is not None else []
    return [*lines, *_detail_lines(session, plan)] if verbose else lines


def _detail_lines(session: LedgerSession, plan: plan_stage.RunForecast) -> list[str]:
    """Return what `--verbose` adds: comparisons with other promises, and the contract.

    All notions are compared before the first release; later a line names the option that prints this.
    """
    means = [f"{name} {three_digits(mean)}" for name, mean in _mean_noise_by_schedule(plan).items()]
    period = f"over {_compared_days(plan)} days, one published each day"
    text = f"mean noise scale by schedule {period}, as a multiple of clamp_kwh, before caps: {', '.join(means)}"
    lines = [text] if means else []
    if plan.forecast.next_day is not None and plan.history.rows:
        lines.append("Notions that guarantee the same bound, and their noise: `agedp compare`")
    elif plan.forecast.next_day is not None:
        try:
            lines += ["", *promises_lines(session, ComparisonTarget()), ""]
        except RunFileError as error:
            lines.append(str(error))
    contract = json.dumps(plan.contract, indent=2).splitlines()
    return [*lines, heading("contract, as it will be registered:"), *(f"  {line}" for line in contract)]


def refusals(plan: plan_stage.RunForecast) -> list[str]:
    """Return why a first run refuses the run file, before it draws anything."""
    refusals, run, verdict = list[str](), plan.run.run_file, plan.verdict
    for check in (plan_stage.check_corrections_declared, plan_stage.check_model_accepted):
        try:
            check(run, plan.history.contracts)
        except RunFileError as error:
            refusals.append(str(error))
    return [*refusals, *filter(None, [plan_stage.verdict_refusal(verdict, plan.terms, plan.run)])]


def _spent_lines(plan: plan_stage.RunForecast) -> list[str]:
    """Return the spent and planned loss, its total cap, and the end of the promise."""
    planned, promise = sum(row.loss for row in plan.now.releases), plan.run.run_file.promise
    total = promise.epsilon_total
    draws = " and calibration draws" if plan.terms.notion.charges else ""
    total_cap = "no total cap" if total == "unlimited" else f"epsilon_total = {total:f}"
    if promise.delta is not None:
        total_cap = "the sum of the losses is not capped"
    lines = [
        f"Cumulative epsilon per household (sequential composition of all published days{draws}): "
        f"{format_loss(plan.spent)} spent, these releases add {format_loss(planned)}; {total_cap}",
        *_promised_bound_lines(plan),
        *end_lines(plan),
    ]
    skipped_later = _skipped_ahead(plan)
    later = f"days that will be skipped later ({DAYS_NEAR}): {run_text.skips_text(skipped_later)}"
    return [*lines, later] if skipped_later else lines


def end_lines(plan: plan_stage.RunForecast) -> list[str]:
    """Return the last possible day of the promise, or when the series ended and why."""
    forecast = plan.forecast
    if reason := ended_reason(plan):
        return [f"the series has ended: last released day {_last_released_day(plan)}; {reason}"]
    if plan.now.refused is not None:
        last = plan.now.releases[-1].day if plan.now.releases else "none"
        return [f"the promise ends: last possible day {last}; then {plan.now.refused}"]
    if forecast.next_day is None:
        return []
    length = "a year" if plan.run.run_file.promise.epsilon_total == "unlimited" else "ten years"
    ends = f"end of the period, or of a forecast of {length}"
    explanation = "the promise ends there" if forecast.ended_by_promise else ends
    return [f"last possible day, if each day is released when due: {forecast.last_day or 'none'} ({explanation})"]


def ended_reason(plan: plan_stage.RunForecast) -> str:
    """Return why the series has ended, "" if it continues or has not begun."""
    forecast, rows = plan.forecast, plan.history.rows
    if not rows or plan.now.releases:
        return ""
    if plan.now.refused is not None:
        return str(plan.now.refused)
    if forecast.next_day is None:
        return f"its period ended with {plan.run.run_file.schedule.last_day}"
    if forecast.last_day is None and forecast.ended_by_promise:
        return forecast.stopped or forecast.refusal or format_end_reason(plan.terms, rows)
    return ""


def _last_released_day(plan: plan_stage.RunForecast) -> str:
    return max((row.day for row in plan.history.rows if row.state == "released"), default="none")


def _promised_bound_lines(plan: plan_stage.RunForecast) -> list[str]:
    """Return the bound that the promise limits, after these releases."""
    notion, rows = plan.terms.notion, list[AnyRelease]([*plan.history.rows, *plan.now.releases])
    if not plan.now.releases:
        return []
    bounds = notion.bounds(rows, plan.terms.leakage_bound, None)
    days = envelope_days(plan.run.run_file.model, plan.history.contracts)
    exception = {"conditional_days": days} if days else {}
    entries = {bound.name: state_bound(bound, notion.limits).model_copy(update=exception) for bound in bounds}
    return run_text.promised_bound_lines(notion, entries, when=" after these releases")


def _horizon(run: RunFile) -> int | None:
    """Return the number of releases after which the series ends, None if the promise has no horizon."""
    horizon: object = getattr(run.promise, "horizon_days", None)
    return horizon if isinstance(horizon, int) else None


def _horizon_lines(run: RunFile) -> list[str]:
    """Return one line if the horizon of the promise differs from the number of days of the schedule."""
    horizon, days = _horizon(run), run.schedule.days
    if horizon is None or days is None or horizon == days:
        return []
    text = f"horizon_days = {horizon}, but [schedule] has {days} days: "
    if horizon < days:
        return [f"{text}the series ends after {horizon} days"]
    return [f"{text}the epsilon of the other {horizon - days} days stays unspent; horizon_days = {days} has less noise"]


def _mean_noise_by_schedule(plan: plan_stage.RunForecast) -> dict[str, float]:
    """Return the mean noise scale of the promised schedule and of alternatives, if there are any."""
    notion = plan.terms.notion  # over the published days, as the promise is enforced
    return notion.alternatives(_compared_days(plan)) if isinstance(notion, Promise) else {}


def _compared_days(plan: plan_stage.RunForecast) -> int:
    """Return the number of days over which schedules are compared: the horizon, the days due now, or a year."""
    return _horizon(plan.run.run_file) or max(len({release.row.day for release in plan.now.planned}), _YEAR)


def _skipped_ahead(plan: plan_stage.RunForecast) -> list[Skip]:
    """Return the days that will be skipped once they are due, if every day is released then."""
    due = max((planned_release.row.day for planned_release in plan.now.planned), default="")
    return [(day, series) for day, series in plan.forecast.skipped if day.isoformat() > due and not series]


def amendment_json(amendment: Amendment, *, recorded: bool) -> dict[str, Any]:
    """Return an amendment as JSON: every change, and the forecast under both contracts."""
    changes = [asdict(change) for change in amendment.changes]
    forecasts = {"before": _forecast_json(amendment.before), "after": _forecast_json(amendment.after)}
    return {"changes": changes, **forecasts, "recorded": recorded}


def _forecast_json(forecast: Forecast) -> dict[str, Any]:
    values = [(of.name, "infinite" if of.value is None else format_epsilon(of.value)) for of in forecast.bounds]
    return {
        "next_day": _day_text(forecast.next_day),
        "epsilon": format_epsilon(forecast.loss),
        "noise_sd_kwh": dict(forecast.noise_sd_kwh),
        "last_day": _day_text(forecast.last_day),
        "ended_by_promise": forecast.ended_by_promise,
        "skipped": run_text.skips_json(forecast.skipped),
        "stopped": forecast.stopped,
        "figures": [{"name": name, "epsilon": epsilon} for name, epsilon in values],
    }


def amendment_lines(amendment: Amendment) -> list[str]:
    """Return an amendment as lines for the terminal."""
    if not amendment.changes:
        return ["the run file equals the contract in the ledger; there is nothing to amend"]
    changes = [(change.key, change.old, change.new, f"{change.verdict}: {change.why}") for change in amendment.changes]
    ends = ">contract", ">run file"
    return [
        heading("the run file differs from the contract in force:"),
        *table_lines(["key", *ends, "verdict"], changes, indent="  "),
        heading(f"from the next unreleased day on ({_day_text(amendment.after.next_day) or 'the series is over'}):"),
        *table_lines(["quantity", *ends], [*_bound_changes(amendment)], indent="  "),
        *([f"  then {amendment.after.stopped}"] if amendment.after.stopped else []),
    ]


def _bound_changes(amendment: Amendment) -> Iterator[tuple[str, str, str]]:
    """Yield each bound's name and its text before and after the amendment."""
    before, after = amendment.before, amendment.after
    yield "epsilon of that day", format_loss(before.loss), format_loss(after.loss)
    old_noise, new_noise = _noise_texts(before), _noise_texts(after)
    layered = {mean_name(name) for name in (*before.noise_sd_kwh, *after.noise_sd_kwh) if layer_number(name)}
    for place in sorted({*old_noise, *new_noise}):
        label = f"{place[0]}, layer {place[1]}" if place[0] in layered else place[0]
        old, new = old_noise.get(place, "-"), new_noise.get(place, "-")
        yield f"noise of {label}, kWh per household (standard deviation)", old, new
    yield "last day that can be released", _end_text(before), _end_text(after)
    skipped = [run_text.skips_text(forecast.skipped) for forecast in (before, after)]
    if any(skipped):
        yield "days that will be skipped", skipped[0] or "none", skipped[1] or "none"
    for name, old, new in _paired_bounds(before.bounds, after.bounds):
        yield f"releases so far, {name}", old, new


def _paired_bounds(before: Sequence[LossBound], after: Sequence[LossBound]) -> Iterator[tuple[str, str, str]]:
    """Yield each bound of the releases so far; one with another delta is paired with its predecessor."""
    old, new = (
        {bound.name: "infinite" if bound.value is None else format_loss(bound.value) for bound in bounds}
        for bounds in (before, after)
    )
    added = [name for name in new if name not in old]
    for name, value in old.items():
        if name in new:
            yield name, value, new[name]
        elif successor := next((key for key in added if _without_delta(key) == _without_delta(name)), ""):
            added.remove(successor)
            yield f"{name} -> {successor}", value, new[successor]
        else:
            yield name, value, "-"
    for name in added:
        yield name, "-", new[name]


def _without_delta(name: str) -> str:
    return name.partition(" (delta ")[0]


def _noise_texts(forecast: Forecast) -> dict[tuple[str, int], str]:
    """Return the noise of each mean by name and layer; a mean of one clamp is layer 1, whose file it has."""
    noise = forecast.noise_sd_kwh.items()
    return {(mean_name(name), layer_number(name) or 1): three_digits(sd_kwh) for name, sd_kwh in noise}


def _end_text(forecast: Forecast) -> str:
    day = _day_text(forecast.last_day) or "none"
    return f"{day} ({'the promise ends' if forecast.ended_by_promise else 'the promise lasts longer'})"


def _day_text(day: object) -> str:
    return "" if day is None else str(day)
