"""Output of `agedp run`, `agedp publish` and `agedp ledger households`, and texts that several commands share.

A run prints its counts of input rows, its findings, its newest published values in a few lines, and its bounds; a first
run also what to do next: commands to copy, who may see what, and when the next day is due.
`agedp publish` writes the release folder again (`publish_folder`) before its output.

Decisions:

* Everything is a function of the run file, the public part of the model and the ledger. Counts of input rows appear on
  the terminal only (`_quality_lines`), never in `--json`, a log or an artifact.
* The preflight of the input files is for the operator's terminal alone: it names counts and days.
* So is the verdict on an estimated model, which comes from readings: neither `--json`, Prefect, the ledger nor the
  release folder contain it, and nothing depends on it.
* How many households are counted elsewhere too, and where, is confidential: it is in no file, log or `--json`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp.internal_records.bookkeeping import read_verdict
from agedp.internal_records.population_accounts import AccountOverview
from agedp.ledger_session import LedgerSession
from agedp.pipeline import RunSummary
from agedp.planning.notion_comparison import can_compare
from agedp.planning.row_noise import sum_noise_line
from agedp.preflight.input_checks import Finding, first_refusal
from agedp.release_folder.result_tables import METADATA_KEY
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext
from agedp.signal_against_noise import mean_names, released_signals, signal_text, three_digits
from agedp.stage_values import DueDays, due_date, last_due_date
from agedp.stages import input_check, plan, publish, report
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
from agedp_data.series.series_terms import layer_number
from agedp_data.statement.document import StatedBound
from agedp_data.statement.markdown import markdown
from agedp_data.statement.note_texts import is_of_span, with_delta
from agedp_data.table_schemas import LEVEL
from agedp_flows.text import noise_text
from agedp_flows.text.screen import (
    WILL_BE_REFUSED,
    command_step,
    count_text,
    format_bound,
    format_column,
    format_loss,
    heading,
    refusal_line,
    table_lines,
    warning,
)

_MAX_LINES: Final = 12
_SHOWN_DAYS: Final = 3
_SHOWN_EVERY: Final = 180
"""Minutes from one shown half-hour of a profile to the next."""

_INTERVAL: Final = ">interval from", ">to"
"""The ends of the noise interval [the unit of the column before them]."""

_Row = Mapping[Any, Any]


def newest_lines(folder: ReleaseFolder, run: RunFile) -> list[str]:
    """Return the newest published values: of means, or else the first distribution; of each profile and coverage."""
    lines = [*_mean_lines(_filled(folder.averages()), run), *_period_lines(_filled(folder.periods()))]
    if not lines:
        lines = [line for table in _filled(folder.distributions())[:1] for line in _count_lines(table)]
    is_alone = not lines
    for table in [*folder.profiles().values(), *folder.profile_releases().values()]:
        if table.num_rows:
            lines += _half_hour_lines(_newest(table)) if is_alone and "households" in table.column_names else []
            lines += _profile_lines(_newest(table), _name(table))
        is_alone = False
    for table in _filled(folder.coverages()):
        lines += _coverage_lines(_newest(table), _name(table))
    return lines


def _filled(tables: Mapping[str, pa.Table]) -> list[pa.Table]:
    return [table for table in tables.values() if table.num_rows]


def _name(table: pa.Table) -> str:
    return str(json.loads(table.schema.metadata[METADATA_KEY])["of"])


def _newest(table: pa.Table) -> list[_Row]:
    """Return the rows of the newest day of a table that has rows."""
    return list(table.filter(pc.equal(table["day"], pc.max(table["day"]))).to_pylist())


def _place(row: _Row, name: str) -> str:
    """Return the series and the group of a row, the group only if there are groups."""
    series = f"{name}/{row[LEVEL.name]}" if LEVEL.name in row else name
    return series if row["group"] == ALL else f"{series}, group {row['group']}"


def _mean_lines(tables: Sequence[pa.Table], run: RunFile) -> list[str]:
    """Return the newest days of a mean; of several means or groups the newest day, with series and group."""
    shown = [(table, _newest(table), _name(table)) for table in tables]
    if not shown:
        return []
    layers = {name: f"{name}/1" for _, _, name in shown if f"{name}/1" in run.series}
    labels = {name: series_text(layer, run.series[layer]) for name, layer in layers.items()}
    table, rows, name = shown[0]
    is_alone = len(shown) == 1
    layer = f" of {labels[name]}" if is_alone and name in labels else ""
    headings = ["day", ">households", f">mean kWh{layer}", *_INTERVAL, "published on"]
    if is_alone and rows[0]["group"] == ALL and LEVEL.name not in rows[0]:
        newest = table.slice(max(table.num_rows - _SHOWN_DAYS, 0)).to_pylist()
        return table_lines(headings, [_mean_cells(*of_row) for of_row in _with_intervals(newest)])
    lines = [
        [*_mean_cells(row, interval), _place(row, labels.get(name, name))]
        for _, rows, name in shown
        for row, interval in _with_intervals(_first_of_levels(rows))
    ]
    return table_lines([*headings, "series and group"], lines)


def _mean_cells(row: _Row, interval: Sequence[str]) -> list[str]:
    return [str(row["day"]), str(row["households"]), *interval, str(row["published_on"])]


def _with_intervals(rows: Sequence[_Row]) -> Iterator[tuple[_Row, list[str]]]:
    """Yield rows with their mean and the ends of its noise interval, all with the same decimals."""
    texts = format_column(row[key] for row in rows for key in ("mean_kwh", "low_kwh", "high_kwh"))
    yield from ((row, texts[3 * i : 3 * i + 3]) for i, row in enumerate(rows))


def _first_of_levels(rows: Sequence[_Row]) -> list[_Row]:
    """Return the first rows of each level, few enough for a terminal."""
    by_level: dict[str, list[_Row]] = {}
    for row in rows:
        by_level.setdefault(row.get(LEVEL.name, ""), []).append(row)
    return [row for of_level in by_level.values() for row in of_level[: max(1, _MAX_LINES // len(by_level))]]


def _period_lines(tables: Sequence[pa.Table]) -> list[str]:
    lines = [
        [str(row["first_day"]), str(row["day"]), *interval, _place(row, _name(table))]
        for table in tables
        for row, interval in _with_intervals(_first_of_levels(_newest(table)))
    ]
    headings = "first day", "last day", ">mean kWh per household and day", *_INTERVAL, "series and group"
    return table_lines(headings, lines) if lines else []


def _count_lines(table: pa.Table) -> list[str]:
    rows, lines = _newest(table), []
    for row in rows[:_MAX_LINES]:
        bin_kwh = f"{row['bin_low_kwh']:g}", f"{row['bin_high_kwh']:g}"
        lines.append((str(row["day"]), _place(row, _name(table)), *bin_kwh, str(row["households_noisy"])))
    households = f">households (noise sd {three_digits(rows[0]['noise_sd'])})"
    return table_lines(["day", "series and group", ">from kWh", ">to kWh", households], lines)


def _half_hour_lines(rows: Sequence[_Row]) -> list[str]:
    """Return the heading and a half-hour, or hour, of every three hours, of the first group."""
    shown = [row for row in rows if row["group"] == rows[0]["group"] and row["start_minute"] % _SHOWN_EVERY == 0]
    group = "" if rows[0]["group"] == ALL else f" ({rows[0]['group']})"
    lines = [[str(row["day"]), _clock(row), str(row["households"]), *ends] for row, ends in _with_intervals(shown)]
    return table_lines(["day", "begins", ">households", f">mean kWh{group}", *_INTERVAL], lines)


def _profile_lines(rows: Sequence[_Row], name: str) -> list[str]:
    """Return one line for the first group of a profile, of a month's one for each kind of day: sum and largest value.

    >>> cell = {"group": "all", "day": "2013-01-01"}
    >>> rows = [{**cell, "start_minute": 0, "mean_kwh": 0.2}, {**cell, "start_minute": 30, "mean_kwh": 0.4}]
    >>> _profile_lines(rows, "shape")
    ['shape on 2013-01-01: 0.6 kWh in all half-hours, largest 0.4 kWh at 00:30']
    """
    by_kind: dict[str, list[_Row]] = {}
    for row in rows:
        if row["group"] == rows[0]["group"]:
            by_kind.setdefault(row.get("day_kind", ""), []).append(row)
    lines = []
    for kind, shown in by_kind.items():
        total, largest = sum(row["mean_kwh"] for row in shown), max(shown, key=lambda row: row["mean_kwh"])
        of_kind = f", {kind}" if kind else ""
        lines.append(
            f"{_place(largest, name)}{of_kind} on {largest['day']}: {three_digits(total)} kWh in all half-hours, "
            f"largest {three_digits(largest['mean_kwh'])} kWh at {_clock(largest)}"
        )
    return lines


def _coverage_lines(rows: Sequence[_Row], name: str) -> list[str]:
    usable = f">with a usable day (noise sd {three_digits(rows[0]['noise_sd'])})"
    lines = []
    for row in _first_of_levels(rows):
        share = f"{100 * row['coverage']:.1f}"
        lines.append((str(row["day"]), str(row["households"]), str(row["usable_noisy"]), share, _place(row, name)))
    return table_lines(["day", ">households", usable, ">share %", "series and group"], lines)


def _clock(row: _Row) -> str:
    return f"{row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}"


_FLOW_RUN: Final = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect for the process of a flow run."""
_KINDS: Final = {"release": "releases", "rehearsal": "rehearsal over readings", "earlier": "accounts that were lost"}


def check_on_terminal() -> None:
    """Refuse to show confidential numbers where Prefect would store them.

    Raises:
        LedgerError: the process is that of a Prefect flow run.
    """
    context = sys.modules.get("prefect.context")
    is_in_flow = context is not None and context.FlowRunContext.get() is not None
    if is_in_flow or os.environ.get(_FLOW_RUN):
        raise LedgerError("`agedp ledger households` shows confidential numbers; use it on a terminal, not in Prefect")


def household_lines(run_file: Path) -> list[str]:
    """Return what the accounts know of a run file's population as lines for the terminal.

    Raises:
        RunFileError: no accounts count the population.
        LedgerError: there is no ledger yet, or the accounts do not know the population.
    """
    session = LedgerSession.open_existing(RunContext.load(run_file))
    if session.accounts is None:
        raise RunFileError(
            "no accounts count these releases: they are of synthetic households, or of a table in memory"
        )
    overview = session.accounts.overview(session.open_ledger)
    if overview is None:
        raise LedgerError("the accounts of populations do not know this one yet; a run that draws enters it")
    account, own = overview.account, overview.own
    return [
        heading("Accounts of populations (confidential)"),
        f"Largest loss about one day of a household: {format_loss(account.day)}",
        f"Largest loss about all days of a household: {format_loss(account.total)}",
        f"This population alone: {format_loss(own.charged_day)} about a day, {format_loss(own.charged_total)} in all",
        *_sharing_lines(overview),
    ]


def shared_lines(session: LedgerSession) -> list[str]:
    """Return lines about the populations that share a household with that of a run; none if there are none."""
    accounts = session.accounts
    if accounts is None or session.ledger is None or session.ledger.household_account(session.run.population) is None:
        return []
    overview = accounts.overview(session.ledger)
    return [] if overview is None or not overview.sharing else _sharing_lines(overview)


def _sharing_lines(overview: AccountOverview) -> list[str]:
    account, sharing = overview.account, overview.sharing
    if not sharing:
        return [f"Other populations that share a household: not known to these accounts since {account.since}"]
    return [
        f"Other populations that share a household: {len(sharing)}, known to these accounts since {account.since}. "
        "Largest loss about one household: "
        f"{format_loss(account.day)} about a day, {format_loss(account.total)} in all",
        *(
            f"  {_KINDS.get(entry.kind, entry.kind)}: {format_loss(entry.charged_day)} about a day, "
            f"{format_loss(entry.charged_total)} in all"
            for entry in sharing
        ),
    ]


_LABEL = "Check of the estimated model (confidential)"


def verdict_lines(run: RunContext) -> list[str]:
    """Return the verdict on the run's estimated model in one line; nothing without such a model."""
    if run.model is None or not isinstance(run.run_file.model, EstimatedModel):
        return []
    verdict = read_verdict(Path(run.run_file.output.confidential), run.model.id)
    if verdict is None:
        return [f"{_LABEL}: none, because its check is not in the confidential folder."]
    return [f"{_LABEL}: {verdict.verdict}. {escape_text(verdict.reason, 1000)}"]


_TITLE = "Preflight of the input files (confidential)"
_SYNTHETIC = "Synthetic households, as many as the roster has on each day: no input file is read."


def preflight_lines(checked: input_check.CheckedSums | None) -> list[str]:
    """Return the findings of a run: all of them before the first release, later only warnings and refusals."""
    if checked is None:
        return []
    return _finding_lines([of for of in checked.findings if checked.sums.is_first or of.verdict != "ok"])


def planned_preflight_lines(session: LedgerSession, due_days: DueDays) -> list[str]:
    """Read the input files and return the findings about them before the first release; nothing after it."""
    if session.history.released_days:
        return []
    if not session.run.run_file.schedule.reads_input:
        return [_SYNTHETIC]
    try:
        checked = input_check.check_input_files(session, due_days)
    except (InputError, Busy) as error:
        return [f"{_TITLE}: {escape_text(error.private, 1000)}"]
    if checked is None or not checked.findings:
        return ["The first run checks the input files before anything is registered, and shows what it finds."]
    refusal = first_refusal(checked.findings)
    ending = [] if refusal is None else [refusal_line(refusal.text)]
    return [*_finding_lines(checked.findings), *ending]


def _finding_lines(findings: Sequence[Finding]) -> list[str]:
    cells = [(of.name, of.verdict, of.text if of.verdict != "ok" else of.sentence) for of in findings]
    table = table_lines(["check", "verdict", "result"], cells, indent="  ")
    return [heading(f"{_TITLE}:"), *table] if findings else []


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
        "signal": [signal.facts for signal in released_signals(summary.session.ledger, run)],
        "folder": format_path(run.output.release),
        "reports": report.format_reports_status(summary.report),
    }


def result_lines(summary: RunSummary, *, verbose: bool = False) -> list[str]:
    """Return the result of a run as lines for the terminal; with `verbose` with the layers and the bounds of spans."""
    run, session = summary.run.run_file, summary.session
    lines = [*_quality_lines(summary, verbose=verbose), *preflight_lines(summary.checked)] if summary.delivery else []
    if not run.schedule.reads_input:
        lines = [_SYNTHETIC]
    skipped, min_households = skips_count_text(summary.released), run.population.min_households
    reasons = f"skip_days, no delivery, below {min_households} households, or a day budget of zero"
    lines.append(
        f"{_released_text(summary)} released now"
        + (f", {skipped} skipped ({reasons})" if skipped else "")
        + ("" if summary.released else ": nothing was due that is not released already")
    )
    lines += [*waiting_lines(summary.due_days.waiting), *delta_warning_lines(run)]
    if (last_day := plan.end_within_30_days(session)) is not None:
        lines.append(warning(f"the promise ends soon: {last_day} is the last day it permits"))
    if (summary.run.release_folder / "statement.json").exists():
        lines += [*published_lines(session, verbose=verbose), f"release folder: {format_path(run.output.release)}"]
    return [*lines, *verdict_lines(summary.run), *shared_lines(session)]


def published_lines(session: LedgerSession, *, verbose: bool = False) -> list[str]:
    """Return the newest published values, their noise and the bounds of a release folder; public."""
    run, ledger, folder = session.run.run_file, session.ledger, ReleaseFolder(session.run.release_folder)
    lines = newest_lines(folder, run)
    for name in mean_names([name for name in run.series if layer_number(name)]):
        lines += sum_noise_line([] if ledger is None else ledger.rows(run.population.name), name)
    newest = [] if ledger is None else read_newest_rows(ledger, run.population.name)
    lines += [*map(signal_text, released_signals(ledger, run)), *noise_text.noise_lines(newest, run)]
    lines += noise_text.layer_lines(run.series) if verbose else []
    return [*lines, *_bound_lines(run, folder.read_statement().bounds, verbose=verbose)]


def _quality_lines(summary: RunSummary, *, verbose: bool) -> list[str]:
    """Return the line about the input rows if there are new files."""
    delivery = summary.delivery
    if delivery is None or summary.checked is None:
        return []
    if not (verbose or summary.checked.sums.is_first or delivery.files_new or delivery.late_rows):
        return []
    reasons = ", ".join(f"{reason}: {number:,}" for reason, number in delivery.rejected.items())
    rejected = f" ({reasons})" if reasons else ""
    late = f"; {delivery.late_rows:,} rows came too late, for days that are released" if delivery.late_rows else ""
    return [
        f"{count_text(delivery.files, 'input file')} ({delivery.files_new} new): {delivery.rows_read:,} rows = "
        f"{delivery.rows_kept:,} kept + {delivery.rows_read - delivery.rows_kept:,} rejected{rejected}{late}"
    ]


def _bound_lines(run: RunFile, bounds: Sequence[StatedBound], *, verbose: bool) -> list[str]:
    """Return the bounds of a day and of all days, and those that the promise limits; with `verbose` that of a span."""
    of_day, total = (noise_text.labelled_bound(bound) for bound in bounds[:2])
    lines = [of_day, total + ("; the sum of the losses is not capped" if run.promise.delta else "")]
    if verbose and not run.promise.delta:
        lines += [noise_text.labelled_bound(bound) for bound in [*filter(is_of_span, bounds)][:1]]
    lines += promised_bound_lines(run.notion, {bound.name: bound for bound in bounds})
    return noise_text.exception_once(lines, bounds[0].conditional_days)


def format_path(location: str) -> str:
    """Return a path relative to the current folder if it is below it; a URL without user and query."""
    path = Path(location)
    is_below = not is_url(location) and path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd())) if is_below else format_location(location)


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


def promised_bound_lines(notion: Notion, bounds: Mapping[str, StatedBound], *, when: str = "") -> list[str]:
    """Return the bounds that a promise limits in addition to a day's loss and the pure total, with their limits.

    `bounds` are those of a statement by name, `when` follows their label. A bound with a delta has its own name.
    """
    total_at_delta = (name for name, limit in notion.limits.items() if limit is not None and is_total_at_delta(name))
    lines = []
    for bound in [bounds[name] for name in (*total_at_delta, own_bound_name(notion.limits)) if name in bounds]:
        label = sentence_start(bound.name.partition(" (delta")[0]) if bound.delta else "Bound of the notion"
        epsilon = f"epsilon {format_bound(bound.epsilon, limit=bound.limit)}{with_delta(bound.delta)}"
        exception, scope = noise_text.exception_text(bound.conditional_days), noise_text.scope_text(bound.scope)
        text = f"{label}{when}: {epsilon} of at most {bound.limit}{exception}. Scope: {scope}."
        lines.append(" ".join(filter(None, [text, noise_text.assumption_text(bound.assumption)])))
    return lines


def publish_folder(run_file: Path, day: date | None, *, statement: int | None = None) -> tuple[dict[str, Any], str]:
    """Write the release folder as of now, of a day or of a statement, and return the result as JSON and as text.

    Raises:
        InputError: both a day and a statement, or a day or statement that does not exist.
    """
    if day is not None and statement is not None:
        raise InputError("--as-of and --statement each name one folder; give one of them")
    session = LedgerSession.open_existing(RunContext.load(run_file))
    if statement is not None:
        is_identical = publish.write_folder_of_statement(session, statement)
        version_text = f", as of statement {statement}"
    elif day is not None:
        is_identical = publish.write_folder_as_of(session, day)
        version_text = f", as of the end of {day}"
    else:
        publish.publish_release(session)
        is_identical, version_text = True, ""
    note = "; software, interval, averages_by or ledger differ from then: the numbers are equal, the bytes are not"
    location = format_location(session.run.run_file.output.release)
    text = f"{location}: written again{version_text}{'' if is_identical else note}"
    has_rows = bool(session.history.rows)
    return {"same_bytes": is_identical}, text if has_rows else "nothing is released yet; nothing was written"


def after_plan(session: LedgerSession, run_file: Path, lines: Iterable[str]) -> list[str]:
    """Return the next steps of a plan with these lines before the first release, unless that would be refused."""
    if session.history.rows:
        return []
    run = session.run.run_file
    until = _until(run, session.run.as_of)
    steps = []
    if can_compare(run):
        steps.append(command_step("the noise of every notion at the same bound", "compare", run_file, *until))
    if not any(line.startswith(WILL_BE_REFUSED) for line in lines):
        steps.append(command_step("release what is due; the promise is then fixed", "run", run_file, *until))
    return steps


def _released_text(summary: RunSummary) -> str:
    """Return how many days are released now; of series whose rows cover periods, how many rows."""
    if any(series.covers_periods for series in summary.run.run_file.series.values()):
        return count_text(len(summary.drawn), "row")
    return count_text(len({row.day for row in summary.drawn}), "day")


def _until(run: RunFile, as_of: date | None) -> list[str]:
    """Return the option with the simulated date of a rehearsal: without it all days of the period are due."""
    is_rehearsal = run.schedule.mode == "rehearsal"
    return ["--as-of", str(as_of)] if is_rehearsal and as_of is not None and as_of != last_due_date(run) else []


def after_run(summary: RunSummary, run_file: Path) -> list[str]:
    """Return the next steps of a first run: check the folder, what is confidential, and when the next day is due."""
    if not summary.drawn or len(summary.session.history.rows) > len(summary.released):
        return []
    run = summary.run.run_file
    folder = format_path(run.output.release)
    steps = [] if is_url(run.output.release) else [command_step("the check that recipients make", "verify", folder)]
    is_rehearsal = run.schedule.mode == "rehearsal"
    handed_over = "Rehearsal: hand over nothing" if is_rehearsal else f"Hand over {folder} and nothing else"
    address = run.output.ledger
    file = address.removeprefix("sqlite:///")
    ledger = format_path(file) if file != address else format_location(address)
    return [
        *steps,
        f"{handed_over}. Confidential: {format_path(run.output.confidential)}, the roster and the input "
        f"files. Back up the ledger, {ledger}.",
        *_next_day_lines(summary, run_file),
    ]


def _next_day_lines(summary: RunSummary, run_file: Path) -> list[str]:
    """Return when the next day is due, or that the period is complete."""
    run, waiting = summary.run.run_file, summary.due_days.waiting
    newest = max(date.fromisoformat(row.day) for row in summary.session.history.rows)
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
