"""Output of a run on the terminal: its result, warnings to the operator, and the error that ended it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from agedp_data.errors import AgedpError, PreflightFailed
from agedp_data.messages import escape_text
from agedp_flows.cli.options import print_answer, print_text

if TYPE_CHECKING:
    from agedp.run_context import Work


@dataclass(frozen=True, slots=True)
class ResultView:
    """How the result is printed: as JSON, not at all (`quiet`) or as text; `warns` prints alerts on standard error."""

    as_json: bool
    quiet: bool
    warns: bool


def end_run(
    view: ResultView,
    work: Work,
    error: AgedpError | None,
    result: Callable[[], tuple[dict[str, Any], Sequence[str]]],
) -> None:
    """Print the result of a run if it released something, then warnings and alerts, then raise its error.

    A report that failed after publication is a warning, because the release was published.

    Raises:
        AgedpError: `error`. What was released before it stays released and is printed.
    """
    from agedp.preflight.alerts import format_alerts
    from agedp.stages.report import format_report_warnings
    from agedp_flows.text.preflight_text import preflight_lines

    if error is None or work.released:
        facts, lines = result()
        print_answer(facts, "\n".join(lines), as_json=view.as_json, quiet=view.quiet)
    elif isinstance(error, PreflightFailed) and not (view.as_json or view.quiet):
        print_text("\n".join(preflight_lines(work)))
    warnings = (*_unseen_findings(view, work), *format_alerts(work.alerts)) if view.warns else ()
    for line in (*format_report_warnings(work), *warnings):
        typer.echo(f"agedp: {escape_text(line, 1000)}", err=True)
    if error is not None:
        raise error


def _unseen_findings(view: ResultView, work: Work) -> list[str]:
    """Return the warnings of the preflight before the first release, if the table is not printed."""
    if not (view.quiet and work.is_first):
        return []
    return [f"warning: {finding.check}: {finding.result}" for finding in work.findings if finding.verdict == "warning"]
