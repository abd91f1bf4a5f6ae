"""Output of a run on the terminal: its result, warnings to the operator, and the error that ended it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from agedp_data.errors import PreflightFailed
from agedp_data.messages import escape_text
from agedp_flows.cli.options import print_answer, print_text

if TYPE_CHECKING:
    from agedp.run_summary import RunSummary


@dataclass(frozen=True, slots=True)
class ResultView:
    """How the result is printed: as JSON, not at all (`quiet`) or as text; `warns` prints alerts on standard error."""

    as_json: bool
    quiet: bool
    warns: bool


def end_run(
    view: ResultView,
    summary: RunSummary,
    result: Callable[[], tuple[dict[str, Any], Sequence[str]]],
) -> None:
    """Print the result of a run if it released something, then warnings and alerts, then raise its error.

    A report that failed after publication is a warning, because the release was published.

    Raises:
        Refused: the promise does not permit a day; what was released before it stays released and is printed.
        PreflightFailed: the input files make a first release senseless.
    """
    from agedp.preflight.alerts import format_alerts
    from agedp.stages.report import format_report_warnings
    from agedp_flows.text.preflight_text import preflight_lines

    error = summary.refusal
    if error is None or summary.released:
        facts, lines = result()
        print_answer(facts, "\n".join(lines), as_json=view.as_json, quiet=view.quiet)
    elif isinstance(error, PreflightFailed) and not (view.as_json or view.quiet):
        print_text("\n".join(preflight_lines(summary.checked)))
    warnings = (*_unseen_findings(view, summary), *format_alerts(summary.alerts)) if view.warns else ()
    for line in (*format_report_warnings(summary.notices, summary.failures), *warnings):
        typer.echo(f"agedp: {escape_text(line, 1000)}", err=True)
    summary.check_not_refused()


def _unseen_findings(view: ResultView, summary: RunSummary) -> list[str]:
    """Return the warnings of the preflight before the first release, if the table is not printed."""
    checked = summary.checked
    if checked is None or not (view.quiet and checked.sums.is_first):
        return []
    warnings = (finding for finding in checked.findings if finding.verdict == "warning")
    return [f"warning: {finding.check}: {finding.result}" for finding in warnings]
