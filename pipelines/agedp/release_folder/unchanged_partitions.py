"""A release folder with the layout "monthly" -> the files of closed months that a publication leaves as they are.

Their SHA-256 are taken from SHA256SUMS, if the ledger has a statement with this SHA256SUMS. A file of another size than
datapackage.json lists is written again, and one that was modified after SHA256SUMS is read and compared: a night costs
no reading of earlier months. Verification, `agedp publish` and a run that reads the ledger completely read everything.

Decisions:

* The newest month that SHA256SUMS lists was not closed, so it is always written again.
* One file that is not as it was has its month, and those after it, computed again.
* Another [output] interval, or another format of the columns (`partition_resources.PARTITION_FORMAT`), has all months
  computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from agedp.release_folder.folder_files import PACKAGE, STATEMENT, SUMS
from agedp.release_folder.parquet_limits import read_limited_schema
from agedp.release_folder.partitioned_tables import kind_of
from agedp.release_folder.partitions import is_monthly, partition_of
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.release_folder.table_comparison import interval_coverage
from agedp_data.errors import InputError
from agedp_data.foreign_files import file_digest, parse_json, read_small_file, regular_file
from agedp_data.statement.partition_resources import FORMAT_KEY, PARTITION_FORMAT

_DAMAGED: Final = (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class UnchangedPartitions:
    """Files of closed months in a folder: SHA-256 and size by path. `since` is the first month to write, "" for all."""

    folder: Path = Path()
    since: str = ""
    checksums: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def without(self, tables: Iterable[str]) -> UnchangedPartitions:
        """Return the files that are not of these tables, which are not written any more."""
        removed = {*tables}
        kept = {path: digest for path, digest in self.checksums.items() if path.partition("/")[0] not in removed}
        return replace(self, checksums=kept)


def unchanged_partitions(
    folder: Path, *, ledger: str, recorded: Collection[str], coverage: Decimal, reads_all: bool = False
) -> UnchangedPartitions:
    """Return the files of closed months that a publication need not write.

    Args:
        folder: the release folder.
        ledger: id of the ledger; a recovered ledger has new hashes, so that all months are written.
        recorded: SHA-256 of every SHA256SUMS with which the ledger has a statement of the population.
        coverage: of the intervals that are to be published.
        reads_all: whether every file is read and compared with its SHA-256, whatever its times are.
    """
    with suppress(InputError, *_DAMAGED):
        sums = folder / SUMS
        listing = read_small_file(folder, SUMS)
        checksums = ReleaseFolder(folder).checksums
        is_recorded = is_monthly(checksums) and hashlib.sha256(listing).hexdigest() in recorded
        if is_recorded and _statement_ledger(folder, checksums[STATEMENT]) == ledger:
            return _unchanged(folder, checksums, -1 if reads_all else sums.stat().st_mtime_ns, coverage)
    return UnchangedPartitions()


def _unchanged(folder: Path, checksums: Mapping[str, str], written_ns: int, coverage: Decimal) -> UnchangedPartitions:
    months = {path: of[1] for path in checksums if (of := partition_of(path)) is not None}
    newest = max(months.values())
    series = [path for path, month in months.items() if month == newest and kind_of(path.partition("/")[0])]
    schemas = (read_limited_schema(regular_file(folder, path), path) for path in series[:1])
    if any(interval_coverage(schema.empty_table()) != coverage for schema in schemas):
        return UnchangedPartitions()
    sizes = dict(_listed_sizes(folder, checksums[PACKAGE]))
    closed = {path for path, month in months.items() if month < newest}
    changed = [path for path in closed if not _is_unchanged(folder, path, checksums[path], sizes[path], written_ns)]
    since = min((months[path] for path in changed), default=newest)
    kept = sorted(path for path in closed if months[path] < since)
    kept_checksums, kept_sizes = {path: checksums[path] for path in kept}, {path: sizes[path] for path in kept}
    return UnchangedPartitions(folder, since, kept_checksums, kept_sizes)


def _statement_ledger(folder: Path, digest: str) -> str:
    return str(_listed_document(folder, STATEMENT, digest)["ledger"]["id"])


def _listed_document(folder: Path, name: str, digest: str) -> dict[str, Any]:
    content = read_small_file(folder, name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("the file is not the listed one")
    document: dict[str, Any] = parse_json(content)
    return document


def _listed_sizes(folder: Path, digest: str) -> Iterator[tuple[str, int]]:
    for resource in _listed_document(folder, PACKAGE, digest)["resources"]:
        if "partitions" in resource and resource.get(FORMAT_KEY) != PARTITION_FORMAT:
            raise ValueError("the files of months have another format")
        for part in resource.get("partitions", ()):
            yield part["path"], int(part["bytes"])


def _is_unchanged(folder: Path, name: str, digest: str, size: int, written_ns: int) -> bool:
    try:
        path = regular_file(folder, name)
        status = path.stat()
        if status.st_size != size:
            return False
        modified_ns = max(status.st_mtime_ns, status.st_ctime_ns)  # an editor can restore the first of them alone
        return modified_ns <= written_ns or file_digest(path) == digest
    except (OSError, InputError):
        return False
