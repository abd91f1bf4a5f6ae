"""Output of `agedp run` and `agedp publish`, and texts that several commands share: public facts in a few lines.

`agedp publish` writes the release folder again (`publish_folder`) before its output.

Decisions:

* Everything is a function of the run file, the public part of the model and the ledger. Counts of input rows appear on
  the terminal only (`_quality_line`), never in `--json`, a log or an artifact.
* The preflight of the input files is for the operator's terminal alone: it names counts and days.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from agedp.layer_noise import sum_noise_line
from agedp.ledger_session import LedgerSession
from agedp.pipeline import RunSummary
from agedp.planning.forecast import Skip
from agedp.planning.row_noise import group_noises
from agedp.preflight.input_checks import Finding, first_refusal
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.row_means import read_newest_rows
from agedp.run_context import RunContext
from agedp.signal_against_noise import mean_names
from agedp.stage_values import Delivery, DueDays
from agedp.stages.input_check import CheckedSums, check_input_files
from agedp.stages.plan import end_within_30_days
from agedp.stages.publish import publish_release, write_folder_as_of, write_folder_of_statement
from agedp.stages.report import format_reports_status
from agedp_data.config import RunFile
from agedp_data.config.delta_size import delta_warning
from agedp_data.datasets.filesystem import format_location, is_url
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import Busy, InputError
from agedp_data.ledger import ReleaseRecord
from agedp_data.messages import escape_text, sentence_start
from agedp_data.notions.cap_bounds import is_total_at_delta, own_bound_name
from agedp_data.notions.notion import Notion
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import layer_number
from agedp_data.statement.delta_texts import is_of_span, with_delta
from agedp_data.statement.document import StatedBound
from agedp_data.statement.markdown import markdown
from agedp_flows.text.bound_text import assumption_text, exception_once, exception_text, labelled_bound, scope_text
from agedp_flows.text.household_text import shared_lines
from agedp_flows.text.layer_text import layer_lines
from agedp_flows.text.newest_text import newest_lines
from agedp_flows.text.noise_text import noise_lines
from agedp_flows.text.number_text import count_text, format_bound
from agedp_flows.text.screen import heading, table_lines, text_column, warning
from agedp_flows.text.signal_text import signal_json, signal_lines
from agedp_flows.text.verdict_text import verdict_lines

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
    return [line for name in mean_names(names) for line in sum_noise_line(session.rows, name)]


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
