"""Output of `agedp run`, `agedp publish` and `agedp ledger households`, and texts that several commands share.

A run prints its counts of input rows, its findings, its newest published values in a few lines, and its bounds; a first
run also what to do next: commands to copy, who may see what, and when the next day is due.
`agedp publish` writes the release folder again (`publish_folder`) before its output.

Decisions:

* Everything is a function of the run file, the public part of the model and the ledger. Counts of input rows appear on
  the terminal only (`run.txt`), never in `--json`, a log or an artifact.
* The preflight of the input files is for the operator's terminal alone: it names counts and days.
* So is the verdict on an estimated model, which comes from readings: neither `--json`, Prefect, the ledger nor the
  release folder contain it, and nothing depends on it.
* How many households are counted elsewhere too, and where, is confidential: it is in no file, log or `--json`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp.internal_records.bookkeeping import read_verdict
from agedp.ledger_session import LedgerSession
from agedp.pipeline import RunSummary
from agedp.preflight.alerts import Alert
from agedp.preflight.input_checks import Finding, first_refusal
from agedp.release_folder.result_tables import METADATA_KEY
from agedp.release_verification import ReleaseFolder
from agedp.run_context import RunContext
from agedp.signal_against_noise import mean_names, newest_sum_noise, released_signals, signal_text
from agedp.stage_values import DueDays, due_date, last_due_date
from agedp.stages import input_check, plan, publish
from agedp.statement_facts import read_newest_rows
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.run_file import delta_warning
from agedp_data.datasets.filesystem import format_location, format_path
from agedp_data.errors import Busy, InputError, LedgerError, RunFileError
from agedp_data.ledger import ReleaseRecord
from agedp_data.messages import count_text, escape_text
from agedp_data.roster import ALL
from agedp_data.series.layered_mean import series_text
from agedp_data.series.series_terms import layer_number
from agedp_data.statement.document import StatedBound
from agedp_data.statement.markdown import markdown
from agedp_data.statement.note_texts import is_of_span
from agedp_data.table_schemas import LEVEL
from agedp_flows.text import bound_text, noise_text
from agedp_flows.text.screen import (
    format_column,
    format_loss,
    heading,
    refusal_line,
    table_lines,
    warning,
)
from agedp_flows.text.template_lines import render_lines

_MAX_LINES: Final = 12
_SHOWN_DAYS: Final = 3
_SHOWN_EVERY: Final = 180
"""Minutes from one shown half-hour of a profile to the next."""

_Row = Mapping[Any, Any]


def _newest_facts(folder: ReleaseFolder, run: RunFile) -> dict[str, Any]:
    """Return the newest published values: of means, or else the first distribution; of each profile and coverage."""
    periods = [row for table in _filled(folder.periods()) for row in _intervals(_first_of_levels(_newest(table)))]
    means = _newest_means(_filled(folder.averages()), run)
    counts = [] if means["means"] or periods else _filled(folder.distributions())[:1]
    profiles = [*folder.profiles().values(), *folder.profile_releases().values()]
    first = [] if means["means"] or periods or counts else [table for table in profiles[:1] if table.num_rows]
    alone = [_newest(table) for table in first if "households" in table.column_names]
    return {
        **means,
        "periods": periods,
        "counts": [row for table in counts for row in _newest(table)[:_MAX_LINES]],
        "half_hours": [row for rows in alone for row in _half_hours(rows)],
        "profiles": [row for table in profiles if table.num_rows for row in _profile_rows(_newest(table))],
        "coverages": [_first_of_levels(_newest(table)) for table in _filled(folder.coverages())],
    }


def _filled(tables: Mapping[str, pa.Table]) -> list[pa.Table]:
    return [table for table in tables.values() if table.num_rows]


def _name(table: pa.Table) -> str:
    return str(json.loads(table.schema.metadata[METADATA_KEY])["of"])


def _newest(table: pa.Table, label: str = "") -> list[_Row]:
    """Return the rows of the newest day of a table that has rows, each with its series and group as `place`."""
    rows = table.filter(pc.equal(table["day"], pc.max(table["day"]))).to_pylist()
    return [{**row, "place": _place(row, label or _name(table))} for row in rows]


def _place(row: _Row, name: str) -> str:
    """Return the series and the group of a row, the group only if there are groups."""
    series = f"{name}/{row[LEVEL.name]}" if LEVEL.name in row else name
    return series if row["group"] == ALL else f"{series}, group {row['group']}"


def _newest_means(tables: Sequence[pa.Table], run: RunFile) -> dict[str, Any]:
    """Return the newest days of a mean; of several means or groups the newest day, with series and group."""
    names = [_name(table) for table in tables]
    layers = {name: f"{name}/1" for name in names if f"{name}/1" in run.series}
    labels = {name: series_text(layer, run.series[layer]) for name, layer in layers.items()}
    shown = [_newest(table, labels.get(name, name)) for table, name in zip(tables, names, strict=True)]
    is_alone = len(shown) == 1
    has_places = not is_alone or shown[0][0]["group"] != ALL or LEVEL.name in shown[0][0]
    if has_places:
        rows = [row for of_table in shown for row in _intervals(_first_of_levels(of_table))]
    else:
        rows = _intervals(tables[0].slice(max(tables[0].num_rows - _SHOWN_DAYS, 0)).to_pylist())
    layer = f" of {labels[names[0]]}" if is_alone and names[0] in labels else ""
    return {"means": rows, "has_places": has_places, "layer": layer}


def _intervals(rows: Sequence[_Row]) -> list[_Row]:
    """Return rows with their mean and the ends of its noise as `interval`, all with the same decimals."""
    texts = format_column(row[key] for row in rows for key in ("mean_kwh", "low_kwh", "high_kwh"))
    return [{**row, "interval": texts[3 * i : 3 * i + 3]} for i, row in enumerate(rows)]


def _first_of_levels(rows: Sequence[_Row]) -> list[_Row]:
    """Return the first rows of each level, few enough for a terminal."""
    by_level: dict[str, list[_Row]] = {}
    for row in rows:
        by_level.setdefault(row.get(LEVEL.name, ""), []).append(row)
    return [row for of_level in by_level.values() for row in of_level[: max(1, _MAX_LINES // len(by_level))]]


def _half_hours(rows: Sequence[_Row]) -> list[_Row]:
    """Return a half-hour, or hour, of every three hours, of the first group."""
    of_group = (row for row in rows if row["group"] == rows[0]["group"])
    return _intervals([row for row in of_group if row["start_minute"] % _SHOWN_EVERY == 0])


def _profile_rows(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Yield the largest value of the first group of a profile, of a month's of each kind of day, and the sum, `total`.

    >>> cell = {"group": "all", "day": "2013-01-01"}
    >>> rows = [{**cell, "start_minute": 0, "mean_kwh": 0.25}, {**cell, "start_minute": 30, "mean_kwh": 0.5}]
    >>> [(row["total"], row["start_minute"]) for row in _profile_rows(rows)]
    [(0.75, 30)]
    """
    by_kind: dict[str, list[_Row]] = {}
    for row in rows:
        if row["group"] == rows[0]["group"]:
            by_kind.setdefault(row.get("day_kind", ""), []).append(row)
    for kind, shown in by_kind.items():
        largest = max(shown, key=lambda row: row["mean_kwh"])
        yield {**largest, "day_kind": kind, "total": sum(row["mean_kwh"] for row in shown)}


_FLOW_RUN: Final = "PREFECT__FLOW_RUN_ID"
"""Set by Prefect for the process of a flow run."""


def _is_in_flow() -> bool:
    context = sys.modules.get("prefect.context")
    return bool(os.environ.get(_FLOW_RUN)) or (context is not None and context.FlowRunContext.get() is not None)


def check_on_terminal() -> None:
    """Refuse to show confidential numbers where Prefect would store them.

    Raises:
        LedgerError: the process is that of a Prefect flow run.
    """
    if _is_in_flow():
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
    return render_lines("households", overview=overview, sharing_alone=False)


def shared_lines(session: LedgerSession) -> list[str]:
    """Return lines about the populations that share a household with that of a run; none if there are none.

    There are none in a Prefect flow run either, which would store them.
    """
    accounts = session.accounts
    if accounts is None or _is_in_flow():
        return []
    if session.ledger is None or session.ledger.household_account(session.run.population) is None:
        others = [] if session.history.rows else accounts.counted_elsewhere(session.ledger)
        total = format_loss(sum(of.charged_total for of in others))
        text = (
            f"households of this roster are released elsewhere: {count_text(len(others), 'population')}, epsilon "
            f"{total} about all days of one of them; a further release adds its losses to that. To refuse it: "
            '[population] shared_households = "refuse"'
        )
        return [warning(text)] if others else []
    overview = accounts.overview(session.ledger)
    if overview is None or not overview.sharing:
        return []
    return render_lines("households", overview=overview, sharing_alone=True)


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


def result_lines(summary: RunSummary, *, verbose: bool = False) -> list[str]:
    """Return the result of a run as lines for the terminal; with `verbose` with the layers and the bounds of spans."""
    run, session = summary.run.run_file, summary.session
    is_published = (summary.run.release_folder / "statement.json").exists()
    return render_lines(
        "run",
        summary=summary,
        verbose=verbose,
        synthetic=_SYNTHETIC,
        preflight=preflight_lines(summary.checked),
        has_periods=any(series.covers_periods for series in run.series.values()),  # rows count then, not days
        skipped=skips_count_text(summary.released),
        waiting=summary.due_days.waiting,
        delta_warnings=delta_warning_lines(run),
        last_day=plan.end_within_30_days(session),
        published=published_lines(session, verbose=verbose) if is_published else [],
        checks=[*verdict_lines(summary.run), *shared_lines(session)],
    )


def published_lines(session: LedgerSession, *, verbose: bool = False) -> list[str]:
    """Return the newest published values, their noise and the bounds of a release folder; public."""
    run, ledger, folder = session.run.run_file, session.ledger, ReleaseFolder(session.run.release_folder)
    population = run.population.name
    newest = [] if ledger is None else read_newest_rows(ledger, population)
    layered = mean_names(filter(layer_number, run.series))
    rows = ledger.rows(population) if layered and ledger is not None else ()
    sums = {name: newest_sum_noise(rows, name) for name in layered}
    signals = map(signal_text, released_signals(ledger, run))
    layers = noise_text.layer_lines(run.series) if verbose else []
    return render_lines(
        "published",
        **_newest_facts(folder, run),
        sums={name: noise for name, noise in sums.items() if noise is not None},
        noises=[*signals, *noise_text.noise_lines(newest, run), *layers],
        bounds=_bound_lines(run, folder.read_statement().bounds, verbose=verbose),
    )


def _bound_lines(run: RunFile, bounds: Sequence[StatedBound], *, verbose: bool) -> list[str]:
    """Return the bounds of a day and of all days, and those that the promise limits; with `verbose` that of a span."""
    of_day, total = (bound_text.labelled_bound(bound) for bound in bounds[:2])
    lines = [of_day, total + ("; the sum of the losses is not capped" if run.promise.delta else "")]
    if verbose and not run.promise.delta:
        lines += [bound_text.labelled_bound(bound) for bound in [*filter(is_of_span, bounds)][:1]]
    lines += bound_text.promised_bound_lines(run.notion, {bound.name: bound for bound in bounds})
    return bound_text.exception_once(lines, bounds[0].conditional_days)


def alert_lines(alerts: Sequence[Alert]) -> list[str]:
    """Return one line per kind of alert about the input, for the operator's terminal; confidential."""
    return render_lines("alerts", alerts=alerts)


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


def until_option(run: RunFile, as_of: date | None) -> list[str]:
    """Return the option with the simulated date of a rehearsal: without it all days of the period are due."""
    is_rehearsal = run.schedule.mode == "rehearsal"
    return ["--as-of", str(as_of)] if is_rehearsal and as_of is not None and as_of != last_due_date(run) else []


def after_run(summary: RunSummary, run_file: Path) -> list[str]:
    """Return the next steps of a first run: check the folder, what is confidential, and when the next day is due."""
    if not summary.drawn or len(summary.session.history.rows) > len(summary.released):
        return []
    run, waiting = summary.run.run_file, summary.due_days.waiting
    newest, last = max(date.fromisoformat(row.day) for row in summary.session.history.rows), run.schedule.last_day
    has_periods = any(series.covers_periods for series in run.series.values())
    day = newest + timedelta(days=1)
    while day in run.schedule.skipped_days:
        day += timedelta(days=1)
    address = run.output.ledger
    file = address.removeprefix("sqlite:///")
    return render_lines(
        "after_run",
        run=run,
        run_file=run_file,
        ledger=format_path(file) if file != address else format_location(address),
        is_complete=last is not None and newest >= last and not waiting,
        next_day=None if summary.refusal is not None or waiting or has_periods else day,
        due_on=due_date(run, day),
        until=until_option(run, due_date(run, day)),
    )
