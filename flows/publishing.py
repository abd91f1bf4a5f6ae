"""What `agedp publish` says."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from agedp_data.errors import InputError
from agedp_data.readers.storage import format_location
from pipelines.handover.as_it_stood import project_as_of, project_statement
from pipelines.publish import project
from pipelines.work import begin


def published(run_file: Path, day: date | None, *, statement: int | None = None) -> tuple[dict[str, Any], str]:
    """Write the release folder, now, as it stood on a day, or as a statement told of it; say so to machines and people.

    Raises:
        InputError: both a day and a statement, or one that never was.
    """
    if day is not None and statement is not None:
        raise InputError("--as-of and --statement each name one folder; give one of them")
    work = begin(run_file)
    ledger = work.checked_ledger()
    if statement is not None:
        same, stood = project_statement(work, ledger, statement), f", as statement {statement} told of it"
    elif day is not None:
        same, stood = project_as_of(work, ledger, day), f", as it stood at the end of {day}"
    else:
        project(work, ledger)
        same, stood = True, ""
    changed = "; other software, interval or ledger than then: the figures are the same, the bytes not"
    return {
        "same_bytes": same
    }, f"{format_location(work.run.output.release)}: written again{stood}{'' if same else changed}"
