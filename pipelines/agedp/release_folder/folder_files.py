"""Names of the files of a release folder, and the checks that its files are the listed ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Set
from pathlib import Path

from agedp.release_folder.derived_tables import DERIVED_FILES
from agedp.release_folder.published_series import FILES
from agedp_data.errors import InputError
from agedp_data.messages import escape_text
from agedp_data.statement import datapackage
from agedp_data.statement.document import Statement

AVERAGES, STATEMENT, WORDS, SUMS = "daily_averages.parquet", "statement.json", "STATEMENT.md", "SHA256SUMS"
ROWS, PACKAGE, REPORT = "ledger_rows.jsonl", "datapackage.json", "report.html"
_RELEASE_FILE = re.compile(rf"({'|'.join(FILES.values())})(_.+)?\.parquet|report\.html")
WITHOUT_PACKAGE = ("agedp-statement-1",)


def is_release_file(name: str) -> bool:
    """Return whether a release folder may contain a file of this name; other files are neither checked nor removed."""
    names = {AVERAGES, *DERIVED_FILES, STATEMENT, WORDS, ROWS, PACKAGE, SUMS}
    return name in names or _RELEASE_FILE.fullmatch(name) is not None


def check_sums(folder: Path, listed: str, expected: Mapping[str, str]) -> None:
    """Check that the files of a folder are those that SHA256SUMS lists, and that it lists every file of a release.

    Args:
        folder: the release folder.
        listed: content of SHA256SUMS.
        expected: SHA-256 of each file by its name, as listed.

    Raises:
        InputError: a file that is missing, differs or is not listed.
    """
    tables = [name for name in expected if name.startswith(tuple(FILES.values()))]
    if not tables or not {STATEMENT, WORDS, ROWS} <= set(expected):
        raise InputError(f"{SUMS} does not name every file of a release")
    if listed != "".join(f"{digest}  {name}\n" for name, digest in expected.items()):
        raise InputError(f"{SUMS} differs from the published file; ask for the release again")
    for name, digest in expected.items():
        path = folder / Path(name).name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise InputError(
                f"{escape_text(Path(name).name)} differs from the published file; ask for the release again"
            )
    names = {path.name for path in folder.iterdir() if is_release_file(path.name)}
    if unlisted := sorted(names - set(expected) - {SUMS}):
        foreign = ", ".join(map(escape_text, unlisted))
        raise InputError(
            f"{foreign}: not listed in {SUMS}, so not part of this release; remove it, or ask for the release again"
        )


def check_package(folder: Path, listed: Set[str], statement: Statement) -> None:
    """Check datapackage.json, which catalogues read; releases of early versions have none.

    Raises:
        InputError: it is missing, or differs from the statement or the listed files.
    """
    if PACKAGE not in listed:
        if statement.schema_name not in WITHOUT_PACKAGE:
            raise InputError(f"{SUMS} does not name {PACKAGE}, which a release of this kind has")
        return
    files = {name: (folder / name).read_bytes() for name in listed - {PACKAGE}}
    try:
        fault = next(datapackage.package_faults(json.loads((folder / PACKAGE).read_bytes()), statement, files), None)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError(f"{PACKAGE} lacks entries of a release") from None
    if fault is not None:
        raise InputError(f"{PACKAGE} {fault}; ask for the release again")
