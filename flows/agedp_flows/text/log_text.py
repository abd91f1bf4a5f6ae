"""Public facts of a run in single lines: what a flow logs.

Every line is a function of the run file, the public part of the model and the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agedp.local_files.internal_files import FileNotice
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.run_context import RunContext
from agedp.stage_values import DueDays
from agedp.stages.release import ReleaseResult
from agedp.stages.report import ReportOutcome, format_reports_status
from agedp_data.epsilon import format_epsilon
from agedp_data.ledger import ReleaseRecord
from agedp_flows.text.run_text import count_text, format_path, noise_deviation, waiting_lines

_UNITS = {"kwh": "kWh per household", "households": "households per count"}


def due_text(due_days: DueDays) -> str:
    """Return which days are due."""
    days = [due.day for due in due_days.due]
    text = f"{count_text(len(days), 'day')} due: {days[0]} to {days[-1]}." if days else "No day is due."
    return " ".join([text, *(f"{line}." for line in waiting_lines(due_days.waiting))])


def released_text(released: ReleaseResult) -> str:
    """Return how many days were released and skipped, at which epsilon and noise."""
    rows = released.drawn
    days, skipped = len({row.day for row in rows}), len(released.rows) - len(rows)
    text = f"{count_text(days, 'day')} released, {skipped} skipped."
    if not rows:
        return text
    loss, noise = format_epsilon(_largest_day(rows)), _noise_text(released.session.run, rows)
    return f"{text} Epsilon per day: at most {loss}. Noise standard deviation: at most {noise}."


def published_text(run: RunContext, folder: ReleaseFolder | None) -> str:
    """Return the path of the release folder."""
    return "Nothing was due yet." if folder is None else f"Release folder: {format_path(run.run_file.output.release)}"


def report_text(outcome: ReportOutcome | None) -> str:
    """Return the path of the internal report, or the reason why it was not written."""
    text = format_reports_status(outcome)
    return "Nothing was due yet." if text is None else f"Internal report: {text}."


def warning_text(notices: Sequence[FileNotice]) -> str:
    """Return what failed after publication and which kinds of confidential files were damaged, without their names."""
    return f"Published with warnings: {'; '.join(dict.fromkeys(notice.public for notice in notices))}."


def _largest_day(rows: Sequence[ReleaseRecord]) -> int:
    losses: Counter[str] = Counter()
    for row in rows:
        losses[row.day] += row.loss
    return max(losses.values())


def _noise_text(run: RunContext, rows: Sequence[ReleaseRecord]) -> str:
    """Return the largest noise of each series."""
    noise: dict[str, tuple[float, str]] = {}
    for row in rows:
        sd, unit = noise_deviation(row, run.run_file.series[row.series])
        noise[row.series] = max(noise.get(row.series, (0.0, unit)), (sd, unit))
    return ", ".join(f"{sd:.3g} {_UNITS[unit]} ({series})" for series, (sd, unit) in noise.items())
