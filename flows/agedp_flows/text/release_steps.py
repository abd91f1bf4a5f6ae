"""What to do after a first plan and a first run: commands to copy, who may see what, and when the next day is due."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from agedp.ledger_session import LedgerSession
from agedp.pipeline import RunSummary
from agedp.stage_values import due_date, last_due_date
from agedp_data.config import RunFile
from agedp_data.datasets.filesystem import format_location, is_url
from agedp_flows.text.next_steps import command_step
from agedp_flows.text.run_text import format_path


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
