"""Output of `agedp run` and `agedp publish`, and texts that several commands share: public facts in a few lines.

`agedp publish` writes the release folder again (`publish_folder`) before its output.

Decisions:

* Everything is a function of the run file, the public part of the model and the ledger. Counts of input rows appear on
  the terminal only (`_quality_line`), never in `--json`, a log or an artifact.
* The preflight of the input files is for the operator's terminal alone: it names counts and days.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp.internal_records.bookkeeping import read_verdict
from agedp.internal_records.household_accounts import AccountOverview, HouseholdAccounts
from agedp.ledger_session import LedgerSession
from agedp.pipeline import RunSummary
from agedp.planning.forecast import Skip
from agedp.planning.row_noise import GroupNoise, group_noises, smallest_group
from agedp.preflight.input_checks import Finding, first_refusal
from agedp.release_folder.result_tables import METADATA_KEY
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext
from agedp.signal_against_noise import mean_names, newest_sum_noise, sum_noises, three_digits
from agedp.stage_values import Delivery, DueDays, PlannedRelease, due_date, last_due_date
from agedp.stages.input_check import CheckedSums, check_input_files
from agedp.stages.plan import end_within_30_days
from agedp.stages.publish import publish_release, write_folder_as_of, write_folder_of_statement
from agedp.stages.report import format_reports_status
from agedp.statement_facts import read_newest_rows
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.run_file import delta_warning
from agedp_data.datasets.filesystem import format_location, is_url
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import Busy, InputError, LedgerError, RunFileError
from agedp_data.ledger import ReleaseRecord
from agedp_data.messages import escape_text, sentence_start
from agedp_data.notions.enforcement import is_total_at_delta, own_bound_name
from agedp_data.notions.notion import Notion
from agedp_data.roster import ALL
from agedp_data.series.layered_mean import series_text
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import layer_number
from agedp_data.statement.document import StatedBound
from agedp_data.statement.markdown import markdown
from agedp_data.statement.note_texts import is_of_span, with_delta
from agedp_data.table_schemas import LEVEL
from agedp_flows.text.layer_text import layer_lines, period_lines
from agedp_flows.text.noise_text import (
    assumption_text,
    exception_once,
    exception_text,
    labelled_bound,
    noise_lines,
    scope_text,
    signal_json,
    signal_lines,
)
from agedp_flows.text.number_text import count_text, format_bound, format_column, format_loss
from agedp_flows.text.screen import Column, command_step, heading, table_lines, text_column, warning

# --------------------------------------------------------------------------------------------------
# Output of `agedp run`: the newest published values of the release folder, in a few lines.
# --------------------------------------------------------------------------------------------------

_MAX_LINES: Final = 12
_SHOWN_DAYS: Final = 3
_SHOWN_EVERY: Final = 180
"""Minutes from one shown half-hour of a profile to the next."""

_INTERVAL: Final = (Column("interval from"), Column("to"))
"""The ends of the noise interval [the unit of the column before them]."""

_Row = Mapping[Any, Any]


def newest_lines(folder: ReleaseFolder, run: RunFile) -> list[str]:
    """Return the newest published values: of means, or else the first distribution; of each profile and coverage."""
    lines = _mean_lines([*folder.averages().values()], run)
    lines += _period_lines([*folder.periods().values()])
    if not lines:
        counts = (_count_lines(_newest(table), _name(table)) for table in folder.distributions().values())
        lines = next(filter(None, counts), [])
    is_alone = not lines
    for table in [*folder.profiles().values(), *folder.profile_releases().values()]:
        rows = _newest(table)
        lines += _half_hour_lines(rows) if is_alone and "households" in table.column_names else []
        lines += _profile_lines(rows, _name(table))
        is_alone = False
    for table in folder.coverages().values():
        lines += _coverage_lines(_newest(table), _name(table))
    return lines


def _name(table: pa.Table) -> str:
    return str(json.loads(table.schema.metadata[METADATA_KEY])["of"])


def _newest(table: pa.Table) -> list[_Row]:
    """Return the rows of the newest day."""
    if not table.num_rows:
        return []
    return list(table.filter(pc.equal(table["day"], pc.max(table["day"]))).to_pylist())


def _place(row: _Row, name: str) -> str:
    """Return the series and the group of a row, the group only if there are groups."""
    series = f"{name}/{row[LEVEL.name]}" if LEVEL.name in row else name
    return series if row["group"] == ALL else f"{series}, group {row['group']}"


def _mean_lines(tables: Sequence[pa.Table], run: RunFile) -> list[str]:
    """Return the newest days of a mean; of several means or groups the newest day, with series and group."""
    shown = [(table, _newest(table)) for table in tables if table.num_rows]
    if not shown:
        return []
    first = f"{_name(shown[0][0])}/1"
    layer = f" of {series_text(first, run.series[first])}" if first in run.series and len(shown) == 1 else ""
    columns = [
        *(text_column("day"), Column("households"), Column(f"mean kWh{layer}"), *_INTERVAL, text_column("published on"))
    ]
    if len(shown) == 1 and shown[0][1][0]["group"] == ALL and LEVEL.name not in shown[0][1][0]:
        rows = shown[0][0].slice(max(shown[0][0].num_rows - _SHOWN_DAYS, 0)).to_pylist()
        return table_lines(columns, _mean_rows(rows))
    lines: list[list[str]] = []
    for table, rows in shown:
        name = _name(table)
        name = series_text(f"{name}/1", run.series[f"{name}/1"]) if f"{name}/1" in run.series else name
        first_rows = _first_of_levels(rows)
        places = [_place(row, name) for row in first_rows]
        lines += [[*cells, place] for cells, place in zip(_mean_rows(first_rows), places, strict=True)]
    return table_lines([*columns, text_column("series and group")], lines)


def _mean_rows(rows: Sequence[_Row]) -> list[list[str]]:
    days = [(f"{row['day']:%Y-%m-%d}", str(row["households"]), f"{row['published_on']:%Y-%m-%d}") for row in rows]
    return [
        [day, households, *interval, published_on]
        for (day, households, published_on), interval in zip(days, _interval_texts(rows), strict=True)
    ]


def _interval_texts(rows: Sequence[_Row]) -> list[list[str]]:
    """Return the mean of each row and the ends of its noise interval, all with the same decimals."""
    texts = format_column(row[key] for row in rows for key in ("mean_kwh", "low_kwh", "high_kwh"))
    return [texts[i : i + 3] for i in range(0, len(texts), 3)]


def _first_of_levels(rows: Sequence[_Row]) -> list[_Row]:
    """Return the first rows of each level, few enough for a terminal."""
    by_level: dict[str, list[_Row]] = {}
    for row in rows:
        by_level.setdefault(row.get(LEVEL.name, ""), []).append(row)
    most = max(1, _MAX_LINES // len(by_level)) if by_level else 0
    return [row for of_level in by_level.values() for row in of_level[:most]]


def _period_lines(tables: Sequence[pa.Table]) -> list[str]:
    lines = []
    for table in tables:
        rows = _first_of_levels(_newest(table))
        for row, interval in zip(rows, _interval_texts(rows), strict=True):
            lines.append([str(row["first_day"]), str(row["day"]), *interval, _place(row, _name(table))])
    dates = text_column("first day"), text_column("last day")
    mean = Column("mean kWh per household and day")
    return table_lines([*dates, mean, *_INTERVAL, text_column("series and group")], lines) if lines else []


def _count_lines(rows: Sequence[_Row], name: str) -> list[str]:
    if not rows:
        return []
    columns = (
        *(text_column("day"), text_column("series and group"), Column("from kWh"), Column("to kWh")),
        Column(f"households (noise sd {three_digits(rows[0]['noise_sd'])})"),
    )
    return table_lines(
        columns,
        [
            (
                f"{row['day']:%Y-%m-%d}",
                _place(row, name),
                f"{row['bin_low_kwh']:g}",
                f"{row['bin_high_kwh']:g}",
                str(row["households_noisy"]),
            )
            for row in rows[:_MAX_LINES]
        ],
    )


def _half_hour_lines(rows: Sequence[_Row]) -> list[str]:
    """Return the heading and a half-hour, or hour, of every three hours, of the first group."""
    if not rows:
        return []
    shown = [row for row in rows if row["group"] == rows[0]["group"] and row["start_minute"] % _SHOWN_EVERY == 0]
    group = "" if rows[0]["group"] == ALL else f" ({rows[0]['group']})"
    columns = [text_column("day"), text_column("begins"), Column("households"), Column(f"mean kWh{group}"), *_INTERVAL]
    return table_lines(
        columns,
        [
            (f"{row['day']:%Y-%m-%d}", _clock(row), str(row["households"]), *interval)
            for row, interval in zip(shown, _interval_texts(shown), strict=True)
        ],
    )


def _profile_lines(rows: Sequence[_Row], name: str) -> list[str]:
    """Return one line for the first group of a profile, of a month's one for each kind of day: sum and largest value.

    >>> cell = {"group": "all", "day": "2013-01-01"}
    >>> rows = [{**cell, "start_minute": 0, "mean_kwh": 0.2}, {**cell, "start_minute": 30, "mean_kwh": 0.4}]
    >>> _profile_lines(rows, "shape")
    ['shape on 2013-01-01: 0.6 kWh in all half-hours, largest 0.4 kWh at 00:30']
    """
    lines = []
    first_level = [row for row in rows if row["group"] == rows[0]["group"]]
    for kind in dict.fromkeys(row.get("day_kind", "") for row in first_level):
        shown = [row for row in first_level if row.get("day_kind", "") == kind]
        total, largest = sum(row["mean_kwh"] for row in shown), max(shown, key=lambda row: row["mean_kwh"])
        of_kind = f", {kind}" if kind else ""
        lines.append(
            f"{_place(largest, name)}{of_kind} on {largest['day']}: {three_digits(total)} kWh in all half-hours, "
            f"largest {three_digits(largest['mean_kwh'])} kWh at {_clock(largest)}"
        )
    return lines


def _coverage_lines(rows: Sequence[_Row], name: str) -> list[str]:
    if not rows:
        return []
    usable = Column(f"with a usable day (noise sd {three_digits(rows[0]['noise_sd'])})")
    columns = text_column("day"), Column("households"), usable, Column("share %"), text_column("series and group")
    return table_lines(
        columns,
        [
            (
                f"{row['day']:%Y-%m-%d}",
                str(row["households"]),
                str(row["usable_noisy"]),
                f"{100 * row['coverage']:.1f}",
                _place(row, name),
            )
            for row in _first_of_levels(rows)
        ],
    )


def _clock(row: _Row) -> str:
    return f"{row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}"


# --------------------------------------------------------------------------------------------------
# Output of `agedp ledger households`, and the line of a run about shared households: for the terminal only.
#
# How many households are counted elsewhere too, and where, is confidential: it is in no file, log or `--json`.
# --------------------------------------------------------------------------------------------------

_FLOW_RUN: Final = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect for the process of a flow run."""
_KINDS: Final = {"release": "releases", "rehearsal": "rehearsal over readings"}


def check_on_terminal() -> None:
    """Refuse to show confidential numbers where Prefect would store them.

    Raises:
        LedgerError: the process is that of a Prefect flow run.
    """
    context = sys.modules.get("prefect.context")
    is_in_flow = context is not None and context.FlowRunContext.get() is not None
    if is_in_flow or os.environ.get(_FLOW_RUN):
        raise LedgerError("`agedp ledger households` shows confidential numbers; use it on a terminal, not in Prefect")


def rebuild_register(run_file: Path) -> None:
    """Fill a lost household register again from the ledger and the roster of a run file.

    Raises:
        LedgerError: the register is there, or no ledger exists.
    """
    session = LedgerSession.open_existing(RunContext.load(run_file), checks_register=False)
    _accounts(session).rebuild(session.open_ledger, session.run.roster)


def household_lines(run_file: Path) -> list[str]:
    """Return the accounts of a run file's population as lines for the terminal."""
    session = LedgerSession.open_existing(RunContext.load(run_file))
    return overview_lines(_accounts(session).overview(session.open_ledger))


def _accounts(session: LedgerSession) -> HouseholdAccounts:
    accounts = session.accounts
    if accounts is None:
        raise RunFileError(
            "no household register counts these releases: they are of synthetic households, or of a table in memory"
        )
    return accounts


def overview_lines(overview: AccountOverview) -> list[str]:
    """Return the accounts of a population as lines."""
    rebuilt = " It was lost and filled again on that day." if overview.is_rebuilt else ""
    largest, shared = overview.largest, overview.shared
    return [
        heading("Accounts of households (confidential)"),
        f"Households of the population in the register: {overview.households:,}",
        f"Largest loss about one day of a household: {format_loss(largest.day)}",
        f"Largest loss about all days of a household: {format_loss(largest.total)}",
        f"Households that are counted elsewhere too: {shared.households:,}",
        *_source_lines(overview),
        f"The register counts since {overview.since}.{rebuilt}",
    ]


def shared_lines(session: LedgerSession) -> list[str]:
    """Return a line about the households of a run that are counted elsewhere too; none if there are none."""
    accounts = session.accounts
    if accounts is None or session.ledger is None or session.ledger.household_account(session.population) is None:
        return []
    overview = accounts.overview(session.ledger)
    if not overview.shared.households:
        return []
    largest = overview.largest
    return [
        f"{overview.shared.households:,} of {overview.households:,} households are counted elsewhere too; largest loss "
        f"about one household: {format_loss(largest.day)} about a day, {format_loss(largest.total)} in all",
        *_source_lines(overview),
    ]


def _source_lines(overview: AccountOverview) -> list[str]:
    return [
        f"  {number:,} in population {population!r} ({_KINDS.get(kind, kind)})"
        for population, kind, number in overview.shared.by_source
    ]


# --------------------------------------------------------------------------------------------------
# The verdict on an estimated model, repeated by `agedp plan` and `agedp run`. Confidential: terminal only.
#
# It comes from readings. Neither `--json`, Prefect, the ledger nor the release folder contain it; nothing depends on
# it.
# --------------------------------------------------------------------------------------------------

_LABEL = "Check of the estimated model (confidential)"


def verdict_lines(run: RunContext) -> list[str]:
    """Return the verdict on the run's estimated model in one line; nothing without such a model."""
    if run.model is None or not isinstance(run.run_file.model, EstimatedModel):
        return []
    verdict = read_verdict(Path(run.run_file.output.confidential), run.model.id)
    if verdict is None:
        return [f"{_LABEL}: none, because its check is not in the confidential folder."]
    return [f"{_LABEL}: {verdict.verdict}. {escape_text(verdict.reason, 1000)}"]


# --------------------------------------------------------------------------------------------------
# Output of `agedp run` and `agedp publish`, and texts that several commands share: public facts in a few lines.
# --------------------------------------------------------------------------------------------------

_TITLE = "Preflight of the input files (confidential)"
_SYNTHETIC = "Synthetic households, as many as the roster has on each day: no input file is read."


def preflight_lines(checked: CheckedSums | None) -> list[str]:
    """Return the findings of a run: all of them before the first release, later only warnings and refusals."""
    if checked is None:
        return []
    findings = [finding for finding in checked.findings if checked.sums.is_first or finding.verdict != "ok"]
    return [heading(f"{_TITLE}:"), *_table(findings)] if findings else []


def planned_preflight_lines(session: LedgerSession, due_days: DueDays) -> list[str]:
    """Read the input files and return the findings about them before the first release; nothing after it."""
    if session.released_days:
        return []
    if not session.run.run_file.schedule.reads_input:
        return [_SYNTHETIC]
    try:
        checked = check_input_files(session, due_days)
    except (InputError, Busy) as error:
        return [f"{_TITLE}: {escape_text(error.private, 1000)}"]
    if checked is None or not checked.findings:
        return ["The first run checks the input files before anything is registered, and shows what it finds."]
    refusal = first_refusal(checked.findings)
    ending = [] if refusal is None else [f"  `agedp run` refuses: {refusal.text}"]
    return [heading(f"{_TITLE}:"), *_table(checked.findings), *ending]


def _table(findings: Sequence[Finding]) -> list[str]:
    cells = [
        (finding.name, finding.verdict, finding.text if finding.verdict != "ok" else finding.sentence)
        for finding in findings
    ]
    return table_lines([text_column("check"), text_column("verdict"), text_column("result")], cells, indent="  ")


def finite_or_none(value: float | None) -> float | None:
    """Return a number as JSON has it: an infinite one is null."""
    return value if value is not None and math.isfinite(value) else None


def statement_markdown(folder: ReleaseFolder) -> str:
    """Return the statement of a release folder as Markdown."""
    return markdown(folder.read_statement()) if (folder.path / "statement.json").exists() else "Nothing was due yet."


def result_json(summary: RunSummary) -> dict[str, Any]:
    """Return the result of a run as JSON: public facts only."""
    run = summary.run.run_file
    return {
        "population": run.population.name,
        "mode": run.schedule.mode,
        "released": [
            {"series": row.series, "day": row.day, "epsilon": format_epsilon(row.loss)} for row in summary.drawn
        ],
        "waiting": [day.isoformat() for day in summary.due_days.waiting],
        "skipped": [{"series": row.series, "day": row.day} for row in summary.released if row.state == "skipped"],
        "signal": signal_json(summary.session),
        "folder": format_path(run.output.release),
        "reports": format_reports_status(summary.report),
    }


def result_lines(summary: RunSummary, *, verbose: bool = False) -> list[str]:
    """Return the result of a run as lines for the terminal; with `verbose` with the layers and the bounds of spans."""
    run, rows = summary.run.run_file, summary.drawn
    lines = [*_quality_lines(summary, verbose=verbose), *preflight_lines(summary.checked)] if summary.delivery else []
    if not run.schedule.reads_input:
        lines = [_SYNTHETIC]
    days = len({row.day for row in rows})
    skipped, min_households = skips_count_text(summary.released), run.population.min_households
    reasons = f"skip_days, no delivery, below {min_households} households, or a day budget of zero"
    lines.append(
        f"{count_text(days, 'day')} released now"
        + (f", {skipped} skipped ({reasons})" if skipped else "")
        + ("" if summary.released else ": nothing was due that is not released already")
    )
    lines += waiting_lines(summary.due_days.waiting)
    lines += delta_warning_lines(run)
    if (last_day := end_within_30_days(summary.session)) is not None:
        lines.append(warning(f"the promise ends soon: {last_day} is the last day it permits"))
    folder = ReleaseFolder(summary.run.release_folder)
    if (folder.path / "statement.json").exists():
        lines += [*newest_lines(folder, run), *_sum_lines(summary.session)]
        lines += [*signal_lines(summary.session), *noise_lines(_newest_rows(summary.session), run)]
        lines += layer_lines(run.series) if verbose else []
        lines += _bound_lines(run, folder.read_statement().bounds, verbose=verbose)
        lines.append(f"release folder: {format_path(run.output.release)}")
    return [*lines, *verdict_lines(summary.run), *shared_lines(summary.session)]


def _quality_lines(summary: RunSummary, *, verbose: bool) -> list[str]:
    """Return the line about the input rows if there are new files."""
    delivery = summary.delivery
    if delivery is None or summary.checked is None:
        return []
    is_shown = verbose or summary.checked.sums.is_first or delivery.files_new or delivery.late_rows
    return [_quality_line(delivery)] if is_shown else []


def _bound_lines(run: RunFile, bounds: Sequence[StatedBound], *, verbose: bool) -> list[str]:
    """Return the bounds of a day and of all days, and those that the promise limits; with `verbose` that of a span."""
    of_day, total = (labelled_bound(bound) for bound in bounds[:2])
    lines = [of_day, total + ("; the sum of the losses is not capped" if run.promise.delta else "")]
    if verbose and not run.promise.delta:
        lines += [labelled_bound(bound) for bound in [*filter(is_of_span, bounds)][:1]]
    lines += promised_bound_lines(run.notion, {bound.name: bound for bound in bounds})
    return exception_once(lines, bounds[0].conditional_days)


def format_path(location: str) -> str:
    """Return a path relative to the current folder if it is below it; a URL without user and query."""
    path = Path(location)
    return (
        str(path.relative_to(Path.cwd()))
        if not is_url(location) and path.is_relative_to(Path.cwd())
        else format_location(location)
    )


def waiting_lines(days: Sequence[date]) -> list[str]:
    """Return the due days that wait for the marker of their delivery."""
    if not days:
        return []
    wait = f"{count_text(len(days), 'due day')} wait{'s' * (len(days) == 1)} for delivery"
    return [warning(f"{wait}: {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else ""))]


def delta_warning_lines(run: RunFile) -> list[str]:
    """Return the warning about a large delta; nothing for a smaller one or none."""
    return [warning(text) for text in filter(None, [delta_warning(run.promise, run.population.min_households)])]


def skips_count_text(rows: Sequence[ReleaseRecord]) -> str:
    """Return how many releases are skipped on released days, and how many whole days, "" for none.

    Args:
        rows: rows with all states.
    """
    released = {row.day for row in rows if row.state == "released"}
    skipped = [row.day for row in rows if row.state != "released"]
    days, on_released = set(skipped) - released, [day for day in skipped if day in released]
    if not on_released:
        return count_text(len(days), "day") if days else ""
    of_same_days = f"{count_text(len(on_released), 'release')} on {len(set(on_released)):,} of the same days"
    return of_same_days + (f" and {count_text(len(days), 'other day')}" if days else "")


def skips_text(skips: Sequence[Skip]) -> str:
    """Return the days that will be skipped as text: adjacent days as a period, days of one series with its name.

    >>> skips_text([(date(2013, 1, 4), ""), (date(2013, 1, 5), ""), (date(2013, 1, 8), "n")])
    '2013-01-04 to 2013-01-05, n of 2013-01-08'
    """
    periods: list[tuple[str, date, date]] = []
    for day, series in sorted(skips, key=lambda skip: (skip[1], skip[0])):
        if periods and periods[-1][0] == series and (day - periods[-1][2]).days == 1:
            periods[-1] = (series, periods[-1][1], day)
        else:
            periods.append((series, day, day))
    return ", ".join(_period_text(*period) for period in periods)


def _period_text(series: str, first: date, last: date) -> str:
    return (f"{series} of " if series else "") + (f"{first} to {last}" if last > first else f"{first}")


def skips_json(skips: Sequence[Skip]) -> list[dict[str, str]]:
    """Return the days that will be skipped as JSON."""
    return [{"day": day.isoformat()} | ({"series": series} if series else {}) for day, series in skips]


def _quality_line(delivery: Delivery) -> str:
    rejected = ", ".join(f"{number:,} {reason}" for reason, number in delivery.rejected.items()) or "none"
    return (
        f"{count_text(delivery.files, 'input file')} ({delivery.files_new} new): {delivery.rows_read:,} rows = "
        f"{delivery.rows_kept:,} kept + {delivery.rows_read - delivery.rows_kept:,} rejected ({rejected})"
        + (f"; {delivery.late_rows:,} rows came too late, for days that are released" if delivery.late_rows else "")
    )


def _newest_rows(session: LedgerSession) -> list[ReleaseRecord]:
    return [] if session.ledger is None else read_newest_rows(session.ledger, session.population)


def _sum_lines(session: LedgerSession) -> list[str]:
    """Return the noise of the sum of the layers of each mean that has some, on its newest day."""
    names = [name for name in session.run.run_file.series if layer_number(name)]
    newest = ((name, newest_sum_noise(session.rows, name)) for name in mean_names(names))
    return [
        f"{name}, sum of the layers: noise {three_digits(sum_noise[1])} kWh per household on {sum_noise[0]}"
        for name, sum_noise in newest
        if sum_noise is not None
    ]


def promised_bound_lines(notion: Notion, bounds: Mapping[str, StatedBound], *, when: str = "") -> list[str]:
    """Return the bounds that a promise limits in addition to a day's loss and the pure total, with their limits.

    `bounds` are those of a statement by name, `when` follows their label. A bound with a delta has its own name.
    """
    total_at_delta = (name for name, limit in notion.limits.items() if limit is not None and is_total_at_delta(name))
    shown = [bounds[name] for name in (*total_at_delta, own_bound_name(notion.limits)) if name in bounds]
    return [_promised_bound_line(bound, when) for bound in shown]


def _promised_bound_line(bound: StatedBound, when: str) -> str:
    label = sentence_start(bound.name.partition(" (delta")[0]) if bound.delta else "Bound of the notion"
    value = format_bound(bound.epsilon, limit=bound.limit)
    epsilon = f"epsilon {value}{with_delta(bound.delta)} of at most {bound.limit}"
    text = f"{label}{when}: {epsilon}{exception_text(bound.conditional_days)}. Scope: {scope_text(bound.scope)}."
    return " ".join(filter(None, [text, assumption_text(bound.assumption)]))


def noise_deviation(row: ReleaseRecord, series: AnySeries) -> tuple[float, str]:
    """Return the standard deviation of a planned day's noise, and its unit.

    For a mean, or each half-hour of a profile: that of its smallest group [kWh]. For counts: that of each [households].
    """
    sd = max(of.noise_sd for of in group_noises(row, series))
    return sd, "kwh" if series.unit == "kWh" else "households"


def publish_folder(run_file: Path, day: date | None, *, statement: int | None = None) -> tuple[dict[str, Any], str]:
    """Write the release folder as of now, of a day or of a statement, and return the result as JSON and as text.

    Raises:
        InputError: both a day and a statement, or a day or statement that does not exist.
    """
    if day is not None and statement is not None:
        raise InputError("--as-of and --statement each name one folder; give one of them")
    session = LedgerSession.open_existing(RunContext.load(run_file))
    if statement is not None:
        is_identical = write_folder_of_statement(session, statement)
        version_text = f", as of statement {statement}"
    elif day is not None:
        is_identical = write_folder_as_of(session, day)
        version_text = f", as of the end of {day}"
    else:
        publish_release(session)
        is_identical, version_text = True, ""
    note = "; software, interval or ledger differ from then: the numbers are equal, the bytes are not"
    location = format_location(session.run.run_file.output.release)
    text = f"{location}: written again{version_text}{'' if is_identical else note}"
    return {"same_bytes": is_identical}, text if session.history else "nothing is released yet; nothing was written"


# --------------------------------------------------------------------------------------------------
# Table of `agedp plan` with the planned days of each series: households of the smallest group, epsilon and noise.
# --------------------------------------------------------------------------------------------------

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
    rows = [release.row for release in planned if release.row.state == "released"]
    skips = skips_count_text([release.row for release in planned])
    skipped = f" and {skips} will be skipped" if skips else ""
    days = len({row.day for row in rows})
    of_days = f"{count_text(days, 'day')}, " if days < len(rows) else ""
    verb = "is" if len(rows) == 1 else "are"
    lines: list[str] = [heading(f"{of_days}{count_text(len(rows), 'release')} {verb} due{skipped}:")]
    lines += _due_text_table(run, list(_once_per_skip(planned)))
    lines += _skipped_lines(planned)
    lines += [*layer_lines(run.series), *period_lines(run.series)] if verbose else []
    for name, noise_by_day in sum_noises(rows).items():
        lines.append(f"{name}, sum of the layers: noise {three_digits(max(noise_by_day.values()))} kWh per household")
    return lines


def _due_text_table(run: RunFile, releases: Sequence[tuple[PlannedRelease, str]]) -> list[str]:
    """Return the table, "..." in place of lines that are left out, the unit in the heading if all rows share it."""
    shown = _shown_lines([(name, bool(release.skip_reason)) for release, name in releases])
    texts = {i: _row_texts(run, releases[i][0]) for i in shown}
    units = {cells.unit for cells in texts.values() if cells.unit}
    unit = f", {min(units)}" if len(units) == 1 else ""
    has_groups = any(cells.groups for cells in texts.values())
    has_notes = any(cells.note(unit) for cells in texts.values())
    columns = [
        *(text_column("day"), text_column("publish on"), text_column("series")),
        Column("households (smallest group)" if has_groups else "households"),
        *([Column("groups")] if has_groups else []),
        *(Column("epsilon"), Column(f"noise sd{unit}")),
        *([text_column("")] if has_notes else []),
    ]
    rows: list[Sequence[str]] = []
    for before, i in pairwise([-1, *shown]):
        if i > before + 1:
            rows.append(["..."])
        cells, row = texts[i], releases[i][0].row
        rows.append(
            [
                *(row.day, row.published_on, releases[i][1] or _ALL_SERIES, cells.households),
                *([cells.groups or "1"] if has_groups else []),
                *(cells.epsilon, cells.noise),
                *([cells.note(unit)] if has_notes else []),
            ]
        )
    return table_lines(columns, rows)


@dataclass(frozen=True, slots=True)
class _RowTexts:
    """The cells of a planned release; `groups` is "" without groups, `unit` and `noise` of a skipped day as well."""

    households: str
    groups: str
    epsilon: str = ""
    noise: str = ""
    unit: str = ""
    remark: str = ""

    def note(self, heading_unit: str) -> str:
        """Return the last cell: the unit, unless the heading has it, and the remark."""
        return ", ".join(filter(None, ["" if heading_unit else self.unit, self.remark]))


def _row_texts(run: RunFile, release: PlannedRelease) -> _RowTexts:
    """Return the cells of a release: households of the smallest group, a mean over the days that a row covers."""
    row, series = release.row, run.series[release.row.series]
    noises = group_noises(row, series)
    groups = len({of.group for of in noises})
    households = str(min((of.households for of in noises), default=0))
    texts = _RowTexts(households, f"{groups}" if groups > 1 else "")
    if row.state != "released":
        return replace(texts, remark=f"skipped: {release.skip_reason}")
    sd, unit = noise_deviation(row, series)
    texts = replace(texts, epsilon=format_loss(row.loss), noise=three_digits(sd))
    if unit != "kwh":
        return replace(texts, unit="households per count")
    if not series.reads_half_hours:
        return replace(texts, unit="kWh per household")
    interval = "half-hour" if run.input.interval_minutes < _HOUR else "hour"
    return replace(texts, unit=f"kWh per {interval}", remark=by_day_kind(smallest_group(row, series)))


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


def _skipped_lines(planned: Sequence[PlannedRelease]) -> list[str]:
    """Return the days that will be skipped, by reason, including those whose lines are not shown."""
    reasons: dict[str, list[Skip]] = {}
    for release, series in _once_per_skip(planned):
        if release.skip_reason:
            skip = date.fromisoformat(release.row.day), series
            reasons.setdefault(release.skip_reason, []).append(skip)
    return [f"skipped ({reason}): {skips_text(skips)}" for reason, skips in reasons.items()]


# --------------------------------------------------------------------------------------------------
# What to do after a first plan and a first run: commands to copy, who may see what, and when the next day is due.
# --------------------------------------------------------------------------------------------------


def after_plan(session: LedgerSession, run_file: Path, *, refused: bool) -> list[str]:
    """Return the next steps of a plan before the first release; `refused`: whether that release would be refused."""
    if session.rows:
        return []
    until = _until(session.run.run_file, session.run.as_of)
    compared = command_step("the noise of every notion at the same bound", "plan", run_file, "--notions", *until)
    if refused:
        return [compared]
    return [compared, command_step("release what is due; the promise is then fixed", "run", run_file, *until)]


def _until(run: RunFile, as_of: date | None) -> list[str]:
    """Return the option with the simulated date of a rehearsal: without it all days of the period are due."""
    is_rehearsal = run.schedule.mode == "rehearsal"
    return ["--as-of", str(as_of)] if is_rehearsal and as_of is not None and as_of != last_due_date(run) else []


def after_run(summary: RunSummary, run_file: Path) -> list[str]:
    """Return the next steps of a first run: check the folder, what is confidential, and when the next day is due."""
    if not summary.drawn or len(summary.session.history) > len(summary.released):
        return []
    run = summary.run.run_file
    folder = format_path(run.output.release)
    steps = [] if is_url(run.output.release) else [command_step("the check that recipients make", "verify", folder)]
    is_rehearsal = run.schedule.mode == "rehearsal"
    handed_over = "Rehearsal: hand over nothing" if is_rehearsal else f"Hand over {folder} and nothing else"
    return [
        *steps,
        f"{handed_over}. Confidential: {format_path(run.output.confidential)}, the roster and the input "
        f"files. Back up the ledger, {_ledger_text(run)}.",
        *_next_day_lines(summary, run_file),
    ]


def _ledger_text(run: RunFile) -> str:
    address = run.output.ledger
    name = address.removeprefix("sqlite:///")
    return format_path(name) if name != address else format_location(address)


def _next_day_lines(summary: RunSummary, run_file: Path) -> list[str]:
    """Return when the next day is due, or that the period is complete."""
    run, waiting = summary.run.run_file, summary.due_days.waiting
    newest = max(date.fromisoformat(row.day) for row in summary.session.history)
    if run.schedule.last_day is not None and newest >= run.schedule.last_day and not waiting:
        return [f"The period is complete: {run.schedule.last_day} is its last day."]
    covers_periods = any(series.covers_periods for series in run.series.values())
    if summary.refusal is not None or waiting or covers_periods:
        return []
    day = newest + timedelta(days=1)
    while day in run.schedule.skipped_days:
        day += timedelta(days=1)
    due_on = due_date(run, day)
    return [command_step(f"day {day} is due on {due_on}", "run", run_file, *_until(run, due_on))]
