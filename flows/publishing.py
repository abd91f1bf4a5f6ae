"""What `agedp publish` says."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from pipelines.publish import project, project_as_of
from pipelines.work import begin


def published(run_file: Path, day: date | None, *, as_json: bool) -> str:
    """Write the release folder and return one line about it."""
    work = begin(run_file)
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
