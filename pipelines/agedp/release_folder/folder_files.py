"""Names of the files of a release folder, and the checks that its files are the listed ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from agedp.release_folder import partitions
from agedp_data import foreign_files
from agedp_data.errors import InputError
from agedp_data.messages import escape_text
from agedp_data.series.series import DERIVED_TABLES
from agedp_data.statement import datapackage
from agedp_data.statement.datapackage import PartitionedTable, PartitionFile
from agedp_data.statement.document import Statement

STATEMENT, WORDS, SUMS = "statement.json", "STATEMENT.md", partitions.SUMS_FILE
ROWS, PACKAGE, REPORT = "ledger_rows.jsonl", "datapackage.json", "report.html"
DEPLOYMENT, EXPLORE = "deployment.json", "explore.html"
SIGNATURE = "SIGNATURE.json"
"""Not listed in SHA256SUMS, which it signs."""
_DERIVED = frozenset(table.file for table in DERIVED_TABLES)
WITHOUT_PACKAGE = ("agedp-statement-1",)
_NOT_LISTED = f"not listed in {SUMS}"
_MAX_ROWS_ALONE = 10**7
_MAX_NAMED = 10
"""Files of one kind of fault that a message names."""


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as the bytes of a file; the same document, the same bytes."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def is_release_file(name: str) -> bool:
    """Return whether a release folder may contain a file of this name; other files are neither checked nor removed."""
    table, is_inside, _ = name.partition("/")
    if is_inside:  # a folder of partitions has no other files: readers of data sets read all
        return table == partitions.ROWS_TABLE or is_release_file(f"{table}.parquet")
    stem = name.removesuffix(".parquet")
    is_table = stem in _DERIVED or partitions.kind_of(stem) is not None
    texts = (STATEMENT, WORDS, ROWS, PACKAGE, DEPLOYMENT, SUMS, SIGNATURE, REPORT, EXPLORE)
    return (is_table and stem != name) or name in texts


def max_bytes(name: str) -> int:
    """Return the largest size of a file of a release by its name: those that are parsed as a whole are small."""
    is_small = name in (STATEMENT, WORDS, PACKAGE, DEPLOYMENT, SUMS, SIGNATURE)
    return foreign_files.MAX_TEXT_BYTES if is_small else foreign_files.MAX_FILE_BYTES


def check_sums(folder: Path, listed: str, expected: Mapping[str, str]) -> None:
    """Check that the files of a folder are those that SHA256SUMS lists, and that it lists every file of a release.

    Args:
        folder: the release folder.
        listed: content of SHA256SUMS.
        expected: SHA-256 of each file by its name, as listed.

    Raises:
        InputError: files that are missing, differ or are not listed; the message names them.
    """
    tables = [name for name in expected if partitions.kind_of(name.partition("/")[0].removesuffix(".parquet"))]
    has_rows = partitions.is_monthly(expected) or ROWS in expected
    if not tables or not has_rows or not {STATEMENT, WORDS} <= set(expected):
        raise InputError(f"{SUMS} does not name every file of a release")
    if listed != "".join(f"{digest}  {name}\n" for name, digest in expected.items()):
        raise InputError(f"{SUMS} differs from the published file; ask for the release again")
    if faults := list(_file_faults(folder, expected)):
        removal = "remove it, or " if all(_NOT_LISTED in fault for fault in faults) else ""
        raise InputError(f"{'; '.join(faults)}; {removal}ask for the release again")


def _file_faults(folder: Path, expected: Mapping[str, str]) -> Iterator[str]:
    """Yield one text each about the files that differ, are missing, or are not listed."""
    changed, missing = [], []
    for name, digest in expected.items():
        try:
            if foreign_files.file_digest(foreign_files.regular_file(folder, name, max_bytes=max_bytes(name))) != digest:
                changed.append(name)
        except OSError:
            missing.append(name)
    unlisted = sorted(set(filter(is_release_file, partitions.list_files(folder))) - set(expected) - {SUMS, SIGNATURE})
    if changed:
        differ = "differs from the published file" if len(changed) == 1 else "differ from the published files"
        yield f"{_names_text(changed)} {differ}"
    if missing:
        yield f"{_names_text(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if unlisted:
        yield f"{_names_text(unlisted)}: {_NOT_LISTED}, so not part of this release"


def _names_text(names: Sequence[str]) -> str:
    """Return the names of files, the first ten and the number of all if there are more.

    >>> _names_text(["a", "b"]), _names_text([str(i) for i in range(12)])
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 files)')
    """
    text = ", ".join(map(escape_text, names[:_MAX_NAMED]))
    return text if len(names) <= _MAX_NAMED else f"{text}, ... ({len(names):,} files)"


def check_one_layout(listed: Set[str]) -> None:
    """Check that a folder with partitions by month has no tables or ledger rows beside them.

    Raises:
        InputError: it has.
    """
    beside = sorted(name for name in listed if name == ROWS or ("/" not in name and name.endswith(".parquet")))
    if partitions.is_monthly(listed) and beside:
        raise InputError(f"{escape_text(beside[0])} is beside the files of months; ask for the release again")


def max_table_rows(folder: Path, listed: Iterable[str]) -> int:
    """Return the largest number of rows that a table of a folder may have: the bytes of its ledger rows.

    Of a folder without ledger rows, of which one table may be read, it is 10 million.
    """
    names = [name for name in listed if name == ROWS or name.startswith(f"{partitions.ROWS_TABLE}/")] or [ROWS]
    size = 0
    for name in names:
        with suppress(OSError):
            size += (folder / name).stat(follow_symlinks=False).st_size
    return size or _MAX_ROWS_ALONE


def _schema(folder: Path, name: str) -> pa.Schema:
    return foreign_files.read_limited_schema(foreign_files.regular_file(folder, name), name)


def partitioned_tables(folder: Path, checksums: Mapping[str, str]) -> Iterator[PartitionedTable]:
    """Yield the tables by month of a folder whose files have these checksums."""
    for table, months in partitions.months_by_table(checksums).items():
        paths = [partitions.partition_path(table, month) for month in months]
        files = (
            PartitionFile(path, checksums[path], foreign_files.regular_file(folder, path).stat().st_size)
            for path in paths
        )
        yield PartitionedTable(
            table, tuple(files), None if table == partitions.ROWS_TABLE else _schema(folder, paths[-1])
        )


def _stored_files(folder: Path, checksums: Mapping[str, str]) -> Iterator[tuple[str, datapackage.StoredFile]]:
    """Yield the files of a folder that are of no month, by name, but datapackage.json."""
    for name, digest in checksums.items():
        if name != PACKAGE and not partitions.partition_of(name):
            schema = _schema(folder, name) if name.endswith(".parquet") else None
            yield name, datapackage.StoredFile(foreign_files.regular_file(folder, name).stat().st_size, digest, schema)


def check_package(folder: Path, listed: Mapping[str, str], statement: Statement) -> None:
    """Check datapackage.json, which catalogues read; releases of early versions have none.

    Args:
        folder: the release folder.
        listed: SHA-256 of its files by name, which `check_sums` compared.
        statement: of the folder.

    Raises:
        InputError: it is missing, or differs from the statement or the listed files.
    """
    if PACKAGE not in listed:
        if statement.schema_name not in WITHOUT_PACKAGE:
            raise InputError(f"{SUMS} does not name {PACKAGE}, which a release of this kind has")
        return
    try:
        files = dict(_stored_files(folder, listed))
        descriptor = foreign_files.parse_json(foreign_files.read_small_file(folder, PACKAGE))
        by_month = [resource for resource in descriptor["resources"] if isinstance(resource["path"], list)]
        faults = (
            *datapackage.package_faults(descriptor, statement, files),
            *datapackage.partition_faults(by_month, statement, list(partitioned_tables(folder, listed))),
        )
        fault = next(iter(faults), None)
    except (OSError, LookupError, TypeError, ValueError, AttributeError):
        raise InputError(f"{PACKAGE} lacks entries of a release") from None
    if fault is not None:
        raise InputError(f"{PACKAGE} {fault}; ask for the release again")
