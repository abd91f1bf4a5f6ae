"""How a run ends on the terminal: the result, warnings to the operator, and the error that ended it, if one did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from agedp_data.errors import AgedpError, PreflightFailed
from agedp_data.shown import escape_text
from flows.commands.options import answer, say
from pipelines.internal_reports import format_report_warnings

if TYPE_CHECKING:
    from pipelines.work import Work


@dataclass(frozen=True, slots=True)
class ResultView:
    """Who reads the result: a program, nobody (`quiet`) or people; `warns` if alerts go to standard error."""

    as_json: bool
    quiet: bool
    warns: bool


def end_run(
    view: ResultView,
    work: Work,
    error: AgedpError | None,
    result: Callable[[], tuple[dict[str, Any], Sequence[str]]],
) -> None:
    """Print the result of a run if it released something, then warnings and alerts, then raise what ended it.

    A report that failed after publication is a warning: the run did what it is for.

    Raises:
        AgedpError: `error`. What was released before it stays released and is printed.
    """
    from flows.preflight_text import preflight_lines
    from pipelines.preflight.alerts import format_alerts

    if error is None or work.released:
        facts, lines = result()
        answer(facts, "\n".join(lines), as_json=view.as_json, quiet=view.quiet)
    elif isinstance(error, PreflightFailed) and not (view.as_json or view.quiet):
        say("\n".join(preflight_lines(work)))
    warnings = (*_unseen_findings(view, work), *format_alerts(work.alerts)) if view.warns else ()
    for line in (*format_report_warnings(work), *warnings):
        typer.echo(f"agedp: {escape_text(line, 1000)}", err=True)
    if error is not None:
        raise error


def _unseen_findings(view: ResultView, work: Work) -> list[str]:
    """Return the remarkable findings before the first release for whoever does not see the table."""
    if not (view.quiet and work.is_first):
        return []
    return [f"warning: {each.check}: {each.result}" for each in work.findings if each.verdict == "warning"]
