"""Output of `agedp plan`, and of `agedp ledger amend`: what a run file permits, and what another contract permitted.

A plan has the due days of each series (households of the smallest group, loss and noise), the end of the promise, what
spans of days come to and what a promised delta buys, and the contract. An amendment has every difference with its
verdict, and each bound under both contracts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agedp.budget import DAYS_NEAR, PlannedRelease
from agedp.ledger_session import LedgerSession
from agedp.plan_facts import PlanFacts, read_plan
from agedp.planning.forecast import Forecast, Skip
from agedp.planning.notion_comparison import can_compare
from agedp.planning.row_noise import GroupNoise, group_noises, noise_deviation, smallest_group
from agedp.signal_against_noise import signal_text, sum_noises, three_digits
from agedp_data.config import RunFile
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import LossBound
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_flows.text import noise_text, run_text
from agedp_flows.text.bound_text import promised_bound_lines
from agedp_flows.text.comparison_text import comparison_lines
from agedp_flows.text.screen import WILL_BE_REFUSED, command_step, format_loss, table_lines
from agedp_flows.text.template_lines import render_lines

if TYPE_CHECKING:
    from agedp.stages.amend import Amendment

_MAX_SHOWN: Final = 5
"""Lines shown at the beginning, and at the end, of a longer table."""
_ALL_SERIES: Final = "all series"
_HOUR: Final = 60


def plan_lines(session: LedgerSession, *, verbose: bool = False) -> list[str]:
    """Return the plan as lines for the terminal, before the first release with the findings about the input files.

    With `verbose` also sums over spans, other schedules, all notions before the first release, and the contract.
    """
    facts = read_plan(session)
    plan, run, planned = facts.plan, facts.plan.run.run_file, facts.plan.now.planned
    rows = [release.row for release in planned if release.row.state == "released"]
    listed, reasons = list(_once_per_skip(planned)), dict[str, list[Skip]]()
    for release, series in listed:  # of all days that will be skipped, also of those whose lines are not shown
        if release.skip_reason:
            reasons.setdefault(release.skip_reason, []).append((date.fromisoformat(release.row.day), series))
    signals = [signal_text(signal) for signal in facts.signals] or noise_text.planned_mean_lines(rows, run.series)
    return render_lines(
        "plan",
        **_span_facts(facts),
        verbose=verbose,
        rows=rows,
        days=len({row.day for row in rows}),
        skips=run_text.skips_count_text([release.row for release in planned]),
        due_table=_due_table(run, listed) if planned else [],
        reasons=reasons,
        layers=noise_text.layer_lines(run.series),
        periods=noise_text.period_lines(run.series),
        sum_noises=sum_noises(rows),
        reversed_levels=noise_text.level_lines(run, plan.run.roster.counts),
        noises=[*signals, *noise_text.noise_lines([*facts.newest, *rows], run)],
        waiting=plan.due_days.waiting,
        preflight=run_text.planned_preflight_lines(session, plan.due_days),
        bounds=_bound_lines(facts),
        days_near=DAYS_NEAR,
        mean_noises=[f"{name} {three_digits(mean)}" for name, mean in facts.mean_noises.items()] if verbose else [],
        notions=_notion_lines(facts) if verbose else [],
        contract=json.dumps(plan.contract, indent=2).splitlines(),
    )


def span_lines(facts: PlanFacts) -> list[str]:
    """Return what a promised delta buys, and what the days of the period come to at each delta."""
    return render_lines("spans", **_span_facts(facts))


def _span_facts(facts: PlanFacts) -> dict[str, object]:
    warnings = run_text.delta_warning_lines(facts.plan.terms.run)
    return {"facts": facts, "plan": facts.plan, "delta_warnings": warnings}


def _bound_lines(facts: PlanFacts) -> list[str]:
    """Return the bound that the promise limits, after these releases."""
    notion = facts.plan.terms.notion
    when = " after these releases"
    return promised_bound_lines(notion, facts.bounds, when=when) if facts.plan.now.releases else []


def _notion_lines(facts: PlanFacts) -> list[str]:
    """Return the comparison of all notions before the first release, or why there is none."""
    if facts.has_begun or facts.plan.forecast.next_day is None:
        return []
    try:
        return ["", *comparison_lines(facts.notions()), ""]
    except RunFileError as error:
        return [str(error)]


def after_plan(session: LedgerSession, run_file: Path, lines: Iterable[str]) -> list[str]:
    """Return the next steps of a plan with these lines before the first release, unless that would be refused."""
    if session.history.rows:
        return []
    run = session.run.run_file
    until = run_text.until_option(run, session.run.as_of)
    steps = []
    if can_compare(run):
        steps.append(command_step("the noise of every notion at the same bound", "compare", run_file, *until))
    if not any(line.startswith(WILL_BE_REFUSED) for line in lines):
        steps.append(command_step("release what is due; the promise is then fixed", "run", run_file, *until))
    return steps


class _RowTexts(NamedTuple):
    """The cells of a planned release; `groups` is "" without groups, `unit` and `noise` of a skipped day as well."""

    households: str
    groups: str
    epsilon: str
    noise: str
    unit: str
    remark: str


def _due_table(run: RunFile, releases: Sequence[tuple[PlannedRelease, str]]) -> list[str]:
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
    (sd, kind), unit, remark = noise_deviation(row, series), "kWh per household", ""
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


def amendment_lines(amendment: Amendment) -> list[str]:
    """Return an amendment as lines for the terminal."""
    before, after = amendment.before, amendment.after
    bounds = list(_paired_bounds(before.bounds, after.bounds))
    return render_lines("amendment", amendment=amendment, noises=_noise_changes(before, after), bounds=bounds)


def _noise_changes(before: Forecast, after: Forecast) -> list[tuple[str, str, str]]:
    """Return the name of each mean, or layer of one, and its noise before and after the amendment."""
    old, new = _noise_texts(before), _noise_texts(after)
    layered = {mean_name(name) for name in (*before.noise_sd_kwh, *after.noise_sd_kwh) if layer_number(name)}
    places = sorted({*old, *new})
    labels = [f"{name}, layer {layer}" if name in layered else name for name, layer in places]
    return [(label, old.get(of, "-"), new.get(of, "-")) for label, of in zip(labels, places, strict=True)]


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
