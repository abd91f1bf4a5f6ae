"""Names of the files of a release folder, and the checks that its files are the listed ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

import pyarrow.parquet as pq

from agedp.release_folder.derived_tables import DERIVED_FILES
from agedp.release_folder.partitions import (
    ROWS_TABLE,
    SUMS_FILE,
    is_monthly,
    list_files,
    months_by_table,
    partition_of,
    partition_path,
)
from agedp.release_folder.published_series import FILES
from agedp_data.errors import InputError
from agedp_data.messages import escape_text
from agedp_data.statement import datapackage, partition_resources
from agedp_data.statement.document import Statement
from agedp_data.statement.partition_resources import PartitionedTable, partition_file

AVERAGES, STATEMENT, WORDS, SUMS = "daily_averages.parquet", "statement.json", "STATEMENT.md", SUMS_FILE
ROWS, PACKAGE, REPORT = "ledger_rows.jsonl", "datapackage.json", "report.html"
_RELEASE_FILE = re.compile(rf"({'|'.join(FILES.values())})(_.+)?\.parquet|report\.html")
WITHOUT_PACKAGE = ("agedp-statement-1",)
_NOT_LISTED = f"not listed in {SUMS}"
_MAX_NAMED = 10
"""Files of one kind of fault that a message names."""


def is_release_file(name: str) -> bool:
    """Return whether a release folder may contain a file of this name; other files are neither checked nor removed."""
    names = {AVERAGES, *DERIVED_FILES, STATEMENT, WORDS, ROWS, PACKAGE, SUMS}
    table, is_inside, _ = name.partition("/")
    if is_inside:  # a folder of partitions has no other files: readers of data sets read all
        return table == ROWS_TABLE or is_release_file(f"{table}.parquet")
    return name in names or _RELEASE_FILE.fullmatch(name) is not None


def check_sums(folder: Path, listed: str, expected: Mapping[str, str]) -> None:
    """Check that the files of a folder are those that SHA256SUMS lists, and that it lists every file of a release.

    Args:
        folder: the release folder.
        listed: content of SHA256SUMS.
        expected: SHA-256 of each file by its name, as listed.

    Raises:
        InputError: files that are missing, differ or are not listed; the message names them.
    """
    tables = [name for name in expected if name.startswith(tuple(FILES.values()))]
    has_rows = is_monthly(expected) or ROWS in expected
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
        inside = name if partition_of(name) else Path(name).name
        path = folder / inside
        if not path.is_file():
            missing.append(inside)
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            changed.append(inside)
    unlisted = sorted(set(filter(is_release_file, list_files(folder))) - set(expected) - {SUMS})
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
    if is_monthly(listed) and beside:
        raise InputError(f"{escape_text(beside[0])} is beside the files of months; ask for the release again")


def partitioned_tables(folder: Path, listed: Iterable[str]) -> list[PartitionedTable]:
    """Return the tables by month of a folder, by reading all of its files.

    Raises:
        OSError: a file is missing or damaged.
    """
    tables = []
    for name, months in months_by_table(listed).items():
        paths = [partition_path(name, month) for month in months]
        files = tuple(partition_file(path, (folder / path).read_bytes()) for path in paths)
        schema = None if name == ROWS_TABLE else pq.read_schema(folder / paths[-1])
        tables.append(PartitionedTable(name, files, schema))
    return tables


def check_package(folder: Path, listed: Set[str], statement: Statement) -> None:
    """Check datapackage.json, which catalogues read; releases of early versions have none.

    Raises:
        InputError: it is missing, or differs from the statement or the listed files.
    """
    if PACKAGE not in listed:
        if statement.schema_name not in WITHOUT_PACKAGE:
            raise InputError(f"{SUMS} does not name {PACKAGE}, which a release of this kind has")
        return
    files = {name: (folder / name).read_bytes() for name in listed - {PACKAGE} if not partition_of(name)}
    try:
        descriptor = json.loads((folder / PACKAGE).read_bytes())
        by_month = [resource for resource in descriptor["resources"] if isinstance(resource["path"], list)]
        faults = (
            *datapackage.package_faults(descriptor, statement, files),
            *partition_resources.partition_faults(by_month, statement, partitioned_tables(folder, listed)),
        )
        fault = next(iter(faults), None)
    except (OSError, LookupError, TypeError, ValueError, AttributeError):
        raise InputError(f"{PACKAGE} lacks entries of a release") from None
    if fault is not None:
        raise InputError(f"{PACKAGE} {fault}; ask for the release again")
