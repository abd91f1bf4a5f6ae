"""Files -> release folder: each is put in place by rename, SHA256SUMS last, so an interrupted write fails its sums.

A release folder at a URL has a local copy in the confidential folder: fetched before use, uploaded file by file.
Objects cannot be renamed or locked. Each is uploaded completely, SHA256SUMS last, so that an interrupted upload has
checksums that do not match, as on a disk; then everything is read back. If runs on several machines upload at the same
time, the last one reads the ledger again (`publish.publish_release`).

Decisions:

* The newest month that SHA256SUMS lists was not closed, so it is always written again.
* One file that is not as it was has its month, and those after it, computed again.
* Another [output] interval, or another format of the columns (`datapackage.PARTITION_FORMAT`), has all
  months computed again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import exclusive_lock
from agedp.release_folder import partitions
from agedp.release_folder.folder_files import (
    PACKAGE,
    ROWS,
    SIGNATURE,
    STATEMENT,
    SUMS,
    is_release_file,
    json_bytes,
    max_bytes,
)
from agedp.release_folder.origin import list_published_files
from agedp.release_folder.release_folder import FolderReader
from agedp.release_folder.result_tables import monthly_partitions, parquet_bytes
from agedp.release_folder.verification import interval_coverage
from agedp_data import foreign_files
from agedp_data.datasets.filesystem import input_errors, system_at
from agedp_data.errors import InputError
from agedp_data.ledger.records import sha256
from agedp_data.ledger.transfer import LedgerExport, complete_rows, format_export, format_month, rows_by_month
from agedp_data.messages import escape_text
from agedp_data.series.result_table import DerivedTable, Noise
from agedp_data.series.series import DERIVED_TABLES
from agedp_data.statement.datapackage import (
    FORMAT_KEY,
    PARTITION_FORMAT,
    PartitionedTable,
    PartitionFile,
    datapackage,
    partition_file,
    partition_resources,
)
from agedp_data.statement.document import Statement

if TYPE_CHECKING:
    from agedp_data.ledger.ledger_reader import LedgerReader

_READABLE = 0o644
NO_FILES: Final[Mapping[str, str]] = MappingProxyType({})


def file_checksums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}


def write_release_files(
    folder: Path,
    files: Mapping[str, bytes],
    remote: RemoteFolder | None = None,
    *,
    unchanged: Mapping[str, str] = NO_FILES,
    sign: Callable[[str], bytes] | None = None,
) -> bool:
    """Write the files, SHA256SUMS last, and remove those of another release; skip what the folder has already.

    Args:
        folder: the release folder.
        files: content by path.
        remote: the URL of the release.
        unchanged: SHA-256 by path of the release's other files, which the folder has: those of closed months.
        sign: returns the signature of the folder, given the SHA-256 of SHA256SUMS.

    Returns:
        Whether the folder has exactly these files; at a URL other runs may write at the same time.

    Raises:
        InputError: the folder cannot be written, or a link leads out of it.
    """
    all_files = add_checksums(files, unchanged=unchanged)
    if sign is not None:  # before SHA256SUMS, the last
        signature = sign(hashlib.sha256(all_files[SUMS]).hexdigest())
        all_files = {**files, SIGNATURE: signature, SUMS: all_files[SUMS]}
    _make_folder(folder)
    _check_no_links(folder, files)
    for place in sorted({(folder / file).parent for file in files} | {folder}):
        if place.is_dir():  # temporary files of killed runs
            atomic_files.remove_stale_files(place)
    tables = partitions.months_by_table({**files, **unchanged})
    obsolete = [
        path
        for path in list_published_files(folder, tables)
        if path.relative_to(folder).as_posix() not in {*all_files, *unchanged}
    ]
    if obsolete or not _has_files(folder, all_files):
        for name, content in all_files.items():
            if name == SUMS:
                continue
            _make_folder((folder / name).parent)
            if "/" not in name or not _has_files(folder, {name: content}):
                atomic_files.write(folder / name, content, mode=_READABLE)
        with atomic_files.write_errors(folder):
            for path in obsolete:
                _remove(path, folder)
        atomic_files.write(folder / SUMS, all_files[SUMS], mode=_READABLE)
    return remote is None or remote.put(all_files, unchanged)


def _check_no_links(folder: Path, names: Iterable[str]) -> None:
    """Check that a file of each name, a plain path, would be written below the folder."""
    for inside in {
        parent for name in names for parent in Path(foreign_files.plain_path(name, "[output] release")).parents[:-1]
    }:
        if (folder / inside).is_symlink():
            raise InputError(f"[output] release: {inside.as_posix()} is a link, not a folder; remove it")


def _remove(path: Path, folder: Path) -> None:
    """Remove what is in the way of a release, never what a link leads to, and the folders of it that become empty."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    _remove_empty_folders(path.parent, folder)


def _remove_empty_folders(inside: Path, folder: Path) -> None:
    """Remove the folder of a month, and that of its table, if nothing is in them any more."""
    while inside != folder:
        try:
            inside.rmdir()
        except OSError:  # not empty, or removed already
            return
        inside = inside.parent


def listing_of(checksums: Mapping[str, str]) -> bytes:
    """Return the content of SHA256SUMS."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(checksums.items())).encode()


def add_checksums(files: Mapping[str, bytes], *, unchanged: Mapping[str, str] = NO_FILES) -> dict[str, bytes]:
    """Return the files of a release and, last, the checksums of these and of the `unchanged` ones."""
    return {**files, SUMS: listing_of({**file_checksums(files), **unchanged})}


def locked_release_folder(folder: Path) -> AbstractContextManager[None]:
    """Create a release folder unless it exists, and let one run at a time write to it."""
    _make_folder(folder)
    return exclusive_lock(folder)


def _make_folder(folder: Path) -> None:
    with atomic_files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _has_files(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all(
            foreign_files.regular_file(folder, name, max_bytes=len(content)).read_bytes() == content
            for name, content in files.items()
        )
    except (OSError, InputError):
        return False


_LABEL: Final = "[output] release:"
_TRIAL: Final = ".agedp-trial"
_MAX_IN_MEMORY: Final = 2**26
"""Size of an object that is downloaded in one request [bytes]."""


@dataclass(slots=True)
class RemoteFolder:
    """A release folder at a URL, and its local copy."""

    url: str
    copy: Path
    _versions: dict[str, ObjectVersion] = field(default_factory=dict)

    def fetch(self) -> None:
        """Update the local copy from the URL; files under other names than those of a release are ignored.

        Raises:
            InputError: the server does not answer, or denies reading.
        """
        atomic_files.make_private(self.copy)
        with input_errors(_LABEL, self.url):
            versions = self._list_objects()
            for name in partitions.list_files(self.copy):
                if is_release_file(name) and name not in versions:
                    _remove(self.copy / name, self.copy)
            _check_no_links(self.copy, versions)
            for name, version in versions.items():
                if self._versions.get(name) != version or not (self.copy / name).exists():
                    (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
                    self._download(name, version.size)
            self._versions = versions

    def put(self, files: Mapping[str, bytes], unchanged: Mapping[str, str] = NO_FILES) -> bool:
        """Upload the files in their order; before the last, the checksums, remove objects that the copy does not have.

        Objects of `unchanged` files are uploaded from the copy if they are not those that were fetched; they are not
        read. Return whether exactly these files are at the URL afterwards: another run may have uploaded others
        meanwhile.

        Raises:
            InputError: the server does not answer, or denies writing.
        """
        with input_errors(_LABEL, self.url):
            present = self._read_present(files, unchanged)
            if self._is_complete(present, files, unchanged):
                return True
            system, root = self._root()
            *names, checksums_name = files
            for name in names:
                if present.get(name) != files[name]:
                    system.pipe_file(f"{root}/{name}", files[name])
            for name in unchanged:
                if name not in present:
                    system.pipe_file(f"{root}/{name}", (self.copy / name).read_bytes())
            for name in self._removed_names(present):
                system.rm_file(f"{root}/{name}")
            system.pipe_file(f"{root}/{checksums_name}", files[checksums_name])
            versions = self._list_objects()
            self._versions |= {name: version for name, version in versions.items() if name in unchanged}
            return self._is_complete(self._read_present(files, unchanged), files, unchanged)

    def _read_present(self, files: Mapping[str, bytes], unchanged: Mapping[str, str]) -> dict[str, bytes]:
        """Return the objects by name; nothing of those that are unchanged, and not those that differ from the copy.

        Only objects of the size of one of the files are read.
        """
        versions = self._list_objects()
        fetched = {name for name in unchanged if name in versions and versions[name] == self._versions.get(name)}
        read = {
            name: self._read(name) if version.size in (None, len(files.get(name, b""))) else b""
            for name, version in versions.items()
            if name not in unchanged
        }
        return read | dict.fromkeys(fetched, b"")

    def _is_complete(
        self, present: Mapping[str, bytes], expected: Mapping[str, bytes], unchanged: Mapping[str, str]
    ) -> bool:
        return (
            not self._removed_names(present)
            and unchanged.keys() <= present.keys()
            and all(present.get(name) == content for name, content in expected.items())
        )

    def _removed_names(self, present: Iterable[str]) -> list[str]:
        return [name for name in present if not (self.copy / name).exists()]

    def try_writing(self) -> None:
        """Write a trial object to the URL and remove it; called before a draw.

        Raises:
            InputError: the server denies it or does not answer; nothing was drawn.
        """
        with input_errors(_LABEL, self.url):
            system, root = self._root()
            system.pipe_file(f"{root}/{_TRIAL}", b"agedp tries whether it may write here\n")
            system.rm_file(f"{root}/{_TRIAL}")

    def _root(self) -> tuple[Any, str]:
        system, root = system_at(self.url)
        system.invalidate_cache()
        return system, root.rstrip("/")

    def _list_objects(self) -> dict[str, ObjectVersion]:
        """Return the objects of the release by name, each with its size and a text that changes when its content does.

        Raises:
            InputError: an object of a table has a name that is no plain path below the URL, or is too large.
        """
        system, root = self._root()
        try:
            entries = system.ls(root, detail=True)
        except FileNotFoundError:  # nothing was uploaded yet; a missing bucket raises on the first write
            return {}
        objects = {_base_name(entry): entry for entry in entries if entry["type"] == "file"}
        for table in (_base_name(entry) for entry in entries if entry["type"] == "directory"):
            if is_release_file(f"{table}/"):
                inside = system.find(f"{root}/{table}", detail=True)
                objects |= {_path_inside(f"{root}/{table}", path): inside[path] for path in inside}
        return {
            name: _version_of(name, entry)
            for name, entry in sorted(objects.items())
            if is_release_file(name) and not name.endswith("/")  # an object that marks an empty folder
        }

    def _read(self, name: str) -> bytes:
        system, root = self._root()
        content: bytes = system.cat_file(f"{root}/{name}")
        return content

    def _download(self, name: str, size: int | None) -> None:
        """Write an object to the copy; a large one is not in memory as a whole."""
        system, root = self._root()
        if size is not None and size <= _MAX_IN_MEMORY:
            atomic_files.write(self.copy / name, self._read(name))
            return
        with system.open(f"{root}/{name}", "rb") as source:
            atomic_files.write_with(self.copy / name, lambda stream: shutil.copyfileobj(source, stream, 2**20))


class ObjectVersion(NamedTuple):
    """An object of a release at a URL: size [bytes] if known, and a text that changes when its content does."""

    size: int | None
    text: str


def _base_name(entry: Mapping[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


def _path_inside(table: str, path: str) -> str:
    """Return the path of an object in a release folder, given the place of the table that contains it.

    >>> _path_inside("bucket/daily_averages_use", "bucket/daily_averages_use/published_month=2026-11/x.parquet")
    'daily_averages_use/published_month=2026-11/x.parquet'
    """
    return f"{table.rpartition('/')[2]}{path.removeprefix(table)}"


def _version_of(name: str, entry: Mapping[str, Any]) -> ObjectVersion:
    """Return the version of an object whose name becomes a path of the copy.

    Raises:
        InputError: the name is no plain path, or the object is larger than such a file can be.
    """
    size = entry.get("size")
    problem = "" if foreign_files.is_plain_path(name) else "has a name that is no plain path below the URL"
    if (size or 0) > max_bytes(name):
        problem = f"has {size:,} bytes, too many for its name"
    if problem:
        text = f"[output] release: an object {problem}; remove it"
        raise InputError(text, private=f"{text}: {escape_text(name, 200)}")
    modified = next((entry[key] for key in ("LastModified", "last_modified", "mtime", "created") if entry.get(key)), "")
    return ObjectVersion(size, f"{size} {entry.get('ETag', '')} {modified}")


# --------------------------------------------------------------------------------------------------
# A release folder with the layout "monthly" -> the files of closed months that a publication leaves as they are.
#
# Their SHA-256 are taken from SHA256SUMS, if the ledger has a statement with this SHA256SUMS. A file of another size
# than datapackage.json lists is written again, and one that was modified after SHA256SUMS is read and compared: a
# night costs no reading of earlier months. Verification, `agedp publish` and a run that reads the ledger completely
# read everything.
# --------------------------------------------------------------------------------------------------

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
        listing = foreign_files.read_small_file(folder, SUMS)
        checksums = FolderReader(folder).checksums
        is_recorded = partitions.is_monthly(checksums) and hashlib.sha256(listing).hexdigest() in recorded
        if is_recorded and _listed_document(folder, STATEMENT, checksums[STATEMENT])["ledger"]["id"] == ledger:
            return _unchanged(folder, checksums, -1 if reads_all else sums.stat().st_mtime_ns, coverage)
    return UnchangedPartitions()


def _unchanged(folder: Path, checksums: Mapping[str, str], written_ns: int, coverage: Decimal) -> UnchangedPartitions:
    months = {path: of[1] for path in checksums if (of := partitions.partition_of(path)) is not None}
    newest = max(months.values())
    series = [path for path, month in months.items() if month == newest and partitions.kind_of(path.partition("/")[0])]
    schemas = (foreign_files.read_limited_schema(foreign_files.regular_file(folder, path), path) for path in series[:1])
    if any(interval_coverage(schema.empty_table()) != coverage for schema in schemas):
        return UnchangedPartitions()
    sizes = dict(_listed_sizes(folder, checksums[PACKAGE]))
    closed = {path for path, month in months.items() if month < newest}
    changed = [path for path in closed if not _is_unchanged(folder, path, checksums[path], sizes[path], written_ns)]
    since = min((months[path] for path in changed), default=newest)
    kept = sorted(path for path in closed if months[path] < since)
    kept_checksums, kept_sizes = {path: checksums[path] for path in kept}, {path: sizes[path] for path in kept}
    return UnchangedPartitions(folder, since, kept_checksums, kept_sizes)


def _listed_document(folder: Path, name: str, digest: str) -> dict[str, Any]:
    content = foreign_files.read_small_file(folder, name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("the file is not the listed one")
    document: dict[str, Any] = foreign_files.parse_json(content)
    return document


def _listed_sizes(folder: Path, digest: str) -> Iterator[tuple[str, int]]:
    for resource in _listed_document(folder, PACKAGE, digest)["resources"]:
        if "partitions" in resource and resource.get(FORMAT_KEY) != PARTITION_FORMAT:
            raise ValueError("the files of months have another format")
        for part in resource.get("partitions", ()):
            yield part["path"], int(part["bytes"])


def _is_unchanged(folder: Path, name: str, digest: str, size: int, written_ns: int) -> bool:
    try:
        path = foreign_files.regular_file(folder, name)
        status = path.stat()
        if status.st_size != size:
            return False
        modified_ns = max(status.st_mtime_ns, status.st_ctime_ns)  # an editor can restore the first of them alone
        return modified_ns <= written_ns or foreign_files.file_digest(path) == digest
    except (OSError, InputError):
        return False


# --------------------------------------------------------------------------------------------------
# Statement and LEDGER rows -> the files of a release folder, before they are written.
#
# With the layout "monthly" these are the files of the months that are not closed, or not as they were; the others are
# known by their checksum and size.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The files of a release folder by path, and the files of closed months that stay as they are."""

    files: Mapping[str, bytes]
    kept: UnchangedPartitions = field(default_factory=UnchangedPartitions)

    @property
    def unchanged(self) -> Mapping[str, str]:
        """Return the SHA-256 of the files that stay as they are, by path."""
        return self.kept.checksums

    @property
    def paths(self) -> frozenset[str]:
        """Return the paths of all files, new and unchanged."""
        return frozenset({*self.files, *self.unchanged})

    def with_files(self, files: Mapping[str, bytes]) -> FolderContent:
        """Return the content with further files."""
        return replace(self, files={**self.files, **files})

    def with_package(self, statement: Statement) -> FolderContent:
        """Return the content with datapackage.json, which lists all other files."""
        plain = {path: content for path, content in self.files.items() if not partitions.partition_of(path)}
        by_month = partition_resources(list(self._partitioned()), statement)
        return self.with_files({PACKAGE: json_bytes(datapackage(statement, plain, by_month))})

    def _partitioned(self) -> Iterator[PartitionedTable]:
        """Yield the tables by month; columns of one without a new file are those of its newest file in the folder."""
        for table, months in partitions.months_by_table({**self.files, **self.unchanged}).items():
            paths = [partitions.partition_path(table, month) for month in months]
            files = [
                partition_file(path, self.files[path])
                if path in self.files
                else PartitionFile(path, self.unchanged[path], self.kept.sizes[path])
                for path in paths
            ]
            last, schema = paths[-1], None
            if table != partitions.ROWS_TABLE:
                schema = pq.read_schema(
                    pa.BufferReader(self.files[last]) if last in self.files else self.kept.folder / last
                )
            yield PartitionedTable(table, tuple(files), schema)

    def stated_checksums(self) -> dict[str, str]:
        """Return the checksums that the ledger keeps with the statement of the folder."""
        checksums = dict(sorted({**file_checksums(self.files), **self.unchanged}.items()))
        return partitions.stated_checksums(checksums, listing_of(checksums))


def release_content(
    statement: Statement,
    export: LedgerExport,
    words: Mapping[str, bytes],
    noise: Noise,
    derived: Sequence[DerivedTable] = DERIVED_TABLES,
    *,
    ledger: LedgerReader | None = None,
    unchanged: UnchangedPartitions | None = None,
) -> FolderContent:
    """Return statement, ledger rows and tables of a release, with one partition or one for each month.

    Args:
        statement: of the release.
        export: the ledger rows of the population; with the layout "monthly" releases without their vectors
            (`export_outline`).
        words: the files of the statement.
        noise: of the values.
        derived: the derived tables to write.
        ledger: that of these rows, of which only those of the months to be written are read completely.
        unchanged: with the layout "monthly", the files of closed months that stay as they are.
    """
    if unchanged is None or ledger is None:
        files = {**words, ROWS: format_export(export).encode()}
        tables = partitions.release_tables(
            statement, partitions.partitions_of(export.rows, monthly=False), noise, derived=derived
        )
        return FolderContent(files | {path: parquet_bytes(table) for path, table in tables})
    unchanged = unchanged.without(table.file for table in DERIVED_TABLES if table not in derived)
    kept = partitions.months_by_table(unchanged.checksums)
    months = [
        month if month.month < unchanged.since else replace(month, rows=complete_rows(ledger, month.rows))
        for month in rows_by_month(export.rows)
    ]
    files, previous = dict(words), ""
    for month in months:
        path = partitions.partition_path(partitions.ROWS_TABLE, month.month)
        if month.month < unchanged.since:
            previous = unchanged.checksums[path]
        else:
            text = format_month(month, ledger=export.ledger, previous=previous)
            files[path], previous = text.encode("ascii"), sha256(text)
    tables = partitions.release_tables(
        statement,
        monthly_partitions(months),
        noise,
        derived=derived,
        since=unchanged.since,
        added=[table for table in derived if table.file not in kept],
        ledger=ledger,
    )
    return FolderContent(files | {path: parquet_bytes(table) for path, table in tables}, unchanged)
