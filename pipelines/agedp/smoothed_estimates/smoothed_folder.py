"""Files of smoothed estimates -> a folder of their own, beside the release folder and never in it.

    daily_average_smoothed.parquet  smoothing.json  smoothed.html  datapackage.json  SHA256SUMS

Decisions:

* Each file is put in place by rename, SHA256SUMS last: a folder whose sums do not match was interrupted, and smoothing
  again completes it. All files are replaced; files of other names stay.
* A folder is taken if it is new, empty, or has estimates of the same population, ledger and kind: those of a
  rehearsal, or of another ledger that uses the name, never replace real ones. Everything else is refused, above all
  a release folder and what is inside it, whose checksums must not change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agedp.local_files import atomic_files
from agedp.release_folder.folder_statement import ESTIMATES_RECORD
from agedp.release_folder.folder_writer import add_checksums
from agedp.release_folder.release_folder import STATEMENT
from agedp_data.datasets import filesystem
from agedp_data.errors import InputError
from agedp_data.statement.document import Statement

TABLE: Final = "daily_average_smoothed.parquet"
RECORD: Final = ESTIMATES_RECORD
PAGE: Final = "smoothed.html"
PACKAGE_FILE: Final = "datapackage.json"
_READABLE: Final = 0o644


def check_target(target: str | Path, release: Path, statement: Statement) -> Path:
    """Return the folder for estimates of a release, if they may be written there.

    Args:
        target: the folder; it need not exist.
        release: the release folder that they were computed from.
        statement: of the release.

    Raises:
        InputError: it is the release folder or inside it, or it has other files; the message says what to do.
    """
    if filesystem.is_url(str(target)):
        raise InputError("--out: is a URL; name a folder of this machine, and upload it afterwards")
    path = Path(target)
    resolved, source = path.resolve(), release.resolve()
    if resolved == source or source in resolved.parents:
        place = "the release folder" if resolved == source else "inside the release folder"
        raise InputError(f"{path}: is {place}, whose files must not change; name a folder beside it")
    if not atomic_files.path_exists(resolved):
        return path
    if not resolved.is_dir():
        raise InputError(f"{path}: is a file; name a new folder")
    names = {entry.name for entry in resolved.iterdir() if not atomic_files.is_temporary(entry.name)}
    if STATEMENT in names:
        raise InputError(f"{path}: is a release folder; name a new folder for the estimates")
    if names and (what := _other_content(resolved, statement) if RECORD in names else "has other files already"):
        raise InputError(f"{path}: {what}; name a new or empty folder")
    return path


def _other_content(folder: Path, statement: Statement) -> str:
    """Return what estimates a folder has, if they are of another release than that of a statement; "" if of the same.

    >>> from types import SimpleNamespace
    >>> _other_content(Path("nowhere"), SimpleNamespace(population="homes"))
    'has estimates without a readable record'
    """
    try:
        record = json.loads((folder / RECORD).read_bytes())
        if record["population"] != statement.population:
            return "has estimates of another population"
        if record["rehearsal"] != statement.rehearsal:
            return f"has estimates of a {'rehearsal' if record['rehearsal'] else 'release that is no rehearsal'}"
        return "" if record["ledger"]["id"] == statement.ledger.id else "has estimates of another ledger"
    except (OSError, ValueError, LookupError, TypeError):
        return "has estimates without a readable record"


def write_estimates(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of estimates, SHA256SUMS last, and make the folder unless it exists.

    Raises:
        InputError: the folder cannot be written.
    """
    with atomic_files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    atomic_files.remove_stale_files(folder)
    for name, content in add_checksums(dict(sorted(files.items(), key=lambda item: item[0] != RECORD))).items():
        atomic_files.write(folder / name, content, mode=_READABLE)


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """Return smoothing.json; the same record, the same bytes."""
    return (json.dumps(record, indent=1, ensure_ascii=True) + "\n").encode()
