"""`agedp publish`: write the release folder again, and its output."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from agedp_data.errors import InputError
from agedp_data.readers.storage import format_location
from pipelines.handover.as_it_stood import write_folder_as_of, write_folder_of_statement
from pipelines.publish import publish_release
from pipelines.work import load_work


def publish_folder(run_file: Path, day: date | None, *, statement: int | None = None) -> tuple[dict[str, Any], str]:
    """Write the release folder as of now, of a day or of a statement, and return the result as JSON and as text.

    Raises:
        InputError: both a day and a statement, or a day or statement that does not exist.
    """
    if day is not None and statement is not None:
        raise InputError("--as-of and --statement each name one folder; give one of them")
    work = load_work(run_file)
    ledger = work.checked_ledger()
    if statement is not None:
        is_identical = write_folder_of_statement(work, ledger, statement)
        version_text = f", as statement {statement} told of it"
    elif day is not None:
        is_identical = write_folder_as_of(work, ledger, day)
        version_text = f", as it stood at the end of {day}"
    else:
        publish_release(work, ledger)
        is_identical, version_text = True, ""
    note = "; other software, interval or ledger than then: the figures are the same, the bytes not"
    text = f"{format_location(work.run.output.release)}: written again{version_text}{'' if is_identical else note}"
    return {"same_bytes": is_identical}, text
