"""Whether the confidential report would be written as it is: same ledger, records, files, run file and software.

    <confidential>/report.json     digest of everything that the report was made from, and of the page; derived

A night with nothing new would make the same page again, with charts of every day that was ever released.

Decisions:

* A file of days that are not released yet changes one table, the rows of all files by reason. It alone is no reason to
  make the page again: the table follows with the next released day, and quality.parquet is always current.
* A report with a warning about a damaged file is not recorded, so every run repeats the warning.
* Where it cannot be told whether something has changed, the report is written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Final

from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.local_files.checksums import checked_json, read_checked_json
from agedp.local_files.internal_files import FileKind, read_content
from agedp.stage_values import Delivery
from agedp.statement_facts import SOFTWARE
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.filesystem import file_status
from agedp_data.datasets.timestamps import day_number
from agedp_data.errors import AgedpError

REPORT: Final = "report.html"
RECORD: Final = "report.json"


def is_report_current(session: LedgerSession, delivery: Delivery) -> bool:
    """Return whether the report was made from what this run would make it from, and is still as it was written."""
    folder = session.run.paths.folder
    record = read_content(folder / RECORD, _read_record, FileKind.DERIVED, advice="").value
    return record is not None and record == _record(session, delivery)


def note_report(session: LedgerSession, delivery: Delivery) -> None:
    """Record what the report was made from; without the record the next run makes it again."""
    with suppress(AgedpError, OSError):
        if (record := _record(session, delivery)) is not None:
            atomic_files.write(session.run.paths.folder / RECORD, checked_json(record))


def _read_record(path: Path) -> dict[str, str]:
    return {str(key): str(digest) for key, digest in read_checked_json(path.read_bytes()).items()}


def _record(session: LedgerSession, delivery: Delivery) -> dict[str, str] | None:
    """Return the digests of the sources and of the page; None if one of them cannot be told."""
    run, folder = session.run, session.run.paths.folder
    if not run.roster.file_digest:  # a roster of no file
        return None
    try:
        page = (folder / REPORT).read_bytes()
        sources = {
            "software": {name: version(name) for name in SOFTWARE},
            "run file": repr(run.run_file),
            "roster": session.roster_digest.file_digest,
            "ledger": session.open_ledger.head(),
            "files": [_contents_of_released_days(session, delivery), run.store.retained_from()],
            "tables": [(path.name, file_status(str(path)).fingerprint) for path in _confidential_tables(session)],
        }
    except (OSError, AgedpError):
        return None
    text = json.dumps(sources, sort_keys=True).encode()
    return {"sources": hashlib.sha256(text).hexdigest(), "page": hashlib.sha256(page).hexdigest()}


def _contents_of_released_days(session: LedgerSession, delivery: Delivery) -> list[str]:
    """Return the files that may have rows of days up to the newest released one, in order."""
    newest = max((row.day for row in session.history if row.state == "released"), default="")
    last = day_number(date.fromisoformat(newest)) if newest else 0
    return [content for content in delivery.contents if delivery.first_days.get(content, 0) <= last]


def _confidential_tables(session: LedgerSession) -> Iterator[Path]:
    """Yield the tables that the report reads, as far as they exist."""
    run, paths = session.run, session.run.paths
    model, folders = run.run_file.model, list[Path]()
    if isinstance(model, EstimatedModel) and run.run_file.schedule.reads_input:  # else no file of the model is read
        folders = [paths.folder / "forgetting", Path(model.file)]
    tables = (paths.true_means, paths.true_counts, paths.coverage, paths.counted_states)
    yield from (path for path in tables if path.exists())
    for folder in folders:
        yield from sorted(path for path in folder.glob("*") if path.is_file())
