"""What `agedp publish` says."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from agedp_data.errors import InputError
from agedp_data.readers.storage import told
from pipelines.handover.as_it_stood import write_folder_as_of, write_folder_of_statement
from pipelines.publish import publish_release
from pipelines.work import load_work


def published(run_file: Path, day: date | None, *, statement: int | None = None) -> tuple[dict[str, Any], str]:
    """Write the release folder, now, as it stood on a day, or as a statement told of it; say so to machines and people.

    Raises:
        InputError: both a day and a statement, or one that never was.
    """
    if day is not None and statement is not None:
        raise InputError("--as-of and --statement each name one folder; give one of them")
    work = load_work(run_file)
    ledger = work.checked_ledger()
    if statement is not None:
        same, stood = write_folder_of_statement(work, ledger, statement), f", as statement {statement} told of it"
    elif day is not None:
        same, stood = write_folder_as_of(work, ledger, day), f", as it stood at the end of {day}"
    else:
        publish_release(work, ledger)
        same, stood = True, ""
    changed = "; other software, interval or ledger than then: the figures are the same, the bytes not"
    return {"same_bytes": same}, f"{told(work.run.output.release)}: written again{stood}{'' if same else changed}"
