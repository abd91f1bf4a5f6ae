"""What `agedp publish` says."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from agedp_data.config import load
from pipelines.publish import project, project_as_of
from pipelines.work import begin


def published(run_file: Path, day: date | None, *, as_json: bool) -> str:
    """Write the release folder and return one line about it."""
    schedule = load(run_file).schedule
    # What is due plays no part here, so any date of a rehearsal will do.
    work = begin(run_file, as_of=schedule.first_day if schedule.mode == "rehearsal" else None)
    with work.ledger() as ledger:
        if day is None:
            project(work, ledger)
            same = True
        else:
            same = project_as_of(work, ledger, day)
    folder = work.run.output.release
    if as_json:
        return json.dumps({"same_bytes": same})
    stood = "" if day is None else f", as it stood on {day}"
    changed = "" if same else "; other software or another interval than then: the figures are the same, the bytes not"
    return f"{folder}: written again{stood}{changed}"
