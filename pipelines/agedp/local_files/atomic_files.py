"""Files of the confidential folder, written atomically and checked, and the consequence of a damaged one.

They are written under a temporary name, synced and renamed; confidential ones are readable by their owner only.

The writer of a temporary file holds a lock on it, which ends with its process. A temporary file without a lock was
left by a killed run, and the next run removes it.

Checksums of confidential files: every changed byte is detected, in any position of the format.

The checksums of the Parquet format cover the pages, but neither their headers nor the footer; a changed bit there can
change values. So a CRC-32 of the complete file is inserted between the last page and the footer. Pages are located by
their offset from the beginning and the footer by its length from the end, so every Parquet reader reads the file.

>>> content = checked_parquet(pa.table({"day": [1, 2, 3]}))
>>> pq.read_table(pa.BufferReader(content))["day"].to_pylist()
[1, 2, 3]

A file of several tables (`GroupWriter`) has a row group for each, of which one is read without the others. The key
`agedp.groups` of its footer has the name of each, the bytes where it lies and their CRC-32; that of the footer is
before the footer.

A JSON object contains the checksum of all its other keys. Objects and single tables without a checksum were written by
an earlier version and are accepted.

A missing file is not damaged: `FileContent` without a value and without a notice. Damage has one consequence for each
kind:

* DERIVED: no value. The caller computes the file again from its sources.
* RECORD: the file is renamed to `<name>.damaged`, a notice reports it, and the record begins anew.
* SUPPLEMENT: no value, and a notice: a report omits a section. Nothing that is published depends on such a file.
* SOURCE: nothing replaces it. `DamagedFile` names the file and the remedy; it is raised before anything is drawn.

A file to which the system denies access is not damaged: every kind raises `InputError` then.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import logging
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Final, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data.errors import Busy, ChainError, InputError

_MARK: Final = b"AGDP"
_GROUPS_MARK: Final = b"AGDG"
_CHECK_BYTES: Final = len(_MARK) + 4
_MAGIC: Final = b"PAR1"
_ENDING: Final = 8  # the length of the footer, in four bytes, and four magic bytes
_KEY: Final = "checksum"
_GROUPS: Final = b"agedp.groups"
_TAIL_BYTES: Final = 2**15
"""Bytes at the end of a file that are read at once: nearly all footers fit."""


def checked_parquet(table: pa.Table, **options: object) -> bytes:
    """Return a table as a Parquet file (zstd unless given) with its checksum, readable by every Parquet reader.

    `options` are passed to `pyarrow.parquet.write_table`.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True, **{"compression": "zstd", **options})
    content = memoryview(sink.getvalue())
    footer = _footer_offset(content)
    check = _MARK + _crc(content[:footer], content[footer:])
    return b"".join((content[:footer], check, content[footer:]))


def write_checked_parquet(stream: IO[bytes], schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables to a stream as one Parquet file (zstd) with its checksum; in memory is one table at a time."""
    sink = _ChecksumStream(stream)
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd", write_page_checksum=True) as writer:
        for table in tables:
            writer.write_table(table.cast(schema))
        sink.keep_rest()
    sink.write_rest()


class _ChecksumStream(io.RawIOBase):
    """A stream that counts its bytes in a checksum, and keeps the last ones, in which the footer is."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._check, self._size = stream, 0, 0
        self._rest: bytearray | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, content: Any) -> int:  # noqa: ANN401  (any buffer)
        self._size += len(content)
        self._check = zlib.crc32(content, self._check)
        if self._rest is None:
            return self._stream.write(content)
        self._rest += content
        return len(content)

    def keep_rest(self) -> None:
        """Keep what is written from now on."""
        self._rest = bytearray()

    def write_rest(self) -> None:
        """Write what was kept, with the checksum of everything before the footer."""
        rest = memoryview(bytes(self._rest or b""))
        footer = _footer_offset(rest)
        self._stream.write(b"".join((rest[:footer], _MARK + self._check.to_bytes(4, "big"), rest[footer:])))


class GroupWriter:
    """Tables of one schema -> the bytes of a Parquet file with a row group for each; they stay in memory."""

    def __init__(self, schema: pa.Schema, **options: object) -> None:
        """Begin a file (zstd unless given); `options` are passed to `pyarrow.parquet.ParquetWriter`."""
        self._sink, self._groups, self._end = io.BytesIO(), dict[str, tuple[int, int, int]](), 0
        self._writer = pq.ParquetWriter(self._sink, schema, **{"compression": "zstd", **options})

    def add(self, name: str, table: pa.Table) -> None:
        """Write a table, of at least one row, as the row group of this name."""
        self._writer.write_table(table, row_group_size=len(table))
        start, self._end = self._end, self._sink.tell()
        with self._sink.getbuffer() as content:
            self._groups[name] = start, self._end, zlib.crc32(content[start:])

    def content(self) -> bytes:
        """Return the complete file; nothing can be added any more."""
        self._writer.add_key_value_metadata({_GROUPS: json.dumps(self._groups)})
        self._writer.close()
        with self._sink.getbuffer() as content:
            footer = content[self._end :]
            return b"".join((content[: self._end], _GROUPS_MARK, zlib.crc32(footer).to_bytes(4, "big"), footer))


class GroupReader:
    """A file of row groups, of which the footer is read and checked, and then single groups.

    Raises:
        OSError, ValueError, pa.ArrowException: it is missing or damaged, or no such file.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        """Read the footer of a file that is open without a buffer."""
        self._descriptor = stream.fileno()
        size = os.fstat(self._descriptor).st_size
        buffer = pa.allocate_buffer(size)  # as long as the file, of which only the bytes that are needed are read
        self._content, tail = memoryview(buffer), max(size - _TAIL_BYTES, 0)
        self._read(tail, size)
        footer = _footer_offset(self._content)
        if footer < _CHECK_BYTES:
            raise ValueError("it has no footer")
        self._read(footer - _CHECK_BYTES, max(tail, footer - _CHECK_BYTES))
        check = _GROUPS_MARK + zlib.crc32(self._content[footer:]).to_bytes(4, "big")
        if bytes(self._content[footer - _CHECK_BYTES : footer]) != check:
            raise ValueError("the checksum of the footer differs")
        metadata, self._groups = _parse_footer(bytes(self._content[footer:]))
        self.file = pq.ParquetFile(pa.BufferReader(buffer), metadata=metadata)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the row groups, in their order."""
        return tuple(self._groups)

    def read(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table of this name, or some of its columns."""
        if name not in self._groups:
            raise ValueError("it has no such row group")
        start, end, check = self._groups[name]
        self._read(start, end)
        if zlib.crc32(self._content[start:end]) != check:
            raise ValueError("the checksum of a row group differs")
        return self.file.read_row_group(self.names.index(name), columns=columns, use_threads=False)

    def _read(self, start: int, end: int) -> None:
        if os.preadv(self._descriptor, [self._content[start:end]], start) != end - start:
            raise ValueError("it is truncated")


@lru_cache(maxsize=16)
def _parse_footer(footer: bytes) -> tuple[pq.FileMetaData, dict[str, tuple[int, int, int]]]:
    """Return the metadata and the row groups of a file; its groups are read one after the other."""
    metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer))
    return metadata, json.loads(metadata.metadata[_GROUPS])


def check_parquet(content: bytes) -> None:
    """Compare a Parquet file with its checksum, if it has one.

    Raises:
        ValueError: they differ.
    """
    view = memoryview(content)
    footer = _footer_offset(view)
    check = bytes(view[max(footer - _CHECK_BYTES, 0) : max(footer, 0)])
    if check.startswith(_MARK) and check != _MARK + _crc(view[: footer - _CHECK_BYTES], view[footer:]):
        raise ValueError("the checksum differs")


def _footer_offset(content: memoryview) -> int:
    return len(content) - _ENDING - int.from_bytes(content[-_ENDING : -_ENDING // 2], "little")


def _crc(pages: memoryview, footer: memoryview) -> bytes:
    return zlib.crc32(footer, zlib.crc32(pages)).to_bytes(4, "big")


def checked_json(record: Mapping[str, Any]) -> bytes:
    """Return a JSON object with the checksum of its keys.

    >>> read_checked_json(checked_json({"rows": 144}))
    {'rows': 144}
    """
    return json.dumps({**record, _KEY: _checksum(record)}, sort_keys=True).encode()


def read_checked_json(content: bytes) -> dict[str, Any]:
    """Return the object that `checked_json` encoded.

    Raises:
        ValueError: it is not a JSON object, or its checksum differs.
    """
    record = json.loads(content)
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    if _KEY in record and record.pop(_KEY) != _checksum(record):
        raise ValueError("the checksum differs")
    return record


def _checksum(record: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())


_PRIVATE = 0o600
_REMEDY = "run again to rebuild it"
_TEMPORARY_SUFFIX = ".tmp"
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.tmp")


def make_private(folder: Path) -> Path:
    """Return a folder that only its owner may enter; it and missing parents are created.

    Modes are set explicitly, whatever the umask. An existing folder that others may enter is closed.

    Raises:
        InputError: the folder cannot be created, closed, or read.
    """
    with write_errors(folder):
        missing = [] if path_exists(folder) else [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):  # mkdir with parents=True would create open parents
            with suppress(FileExistsError):
                parent.mkdir(mode=0o700)
                parent.chmod(0o700)  # regardless of the umask
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    check_readable(folder)
    return folder


def restrict_access(folder: Path) -> Path:
    """Return a private folder whose entries only their owner may access, including entries that were copied into it.

    Raises:
        InputError: an entry is open and belongs to a different user.
    """
    with write_errors(make_private(folder)):
        for entry in _entries_below(folder):
            with suppress(FileNotFoundError):  # a temporary file of another run
                mode = entry.stat(follow_symlinks=False).st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    Path(entry.path).chmod(stat.S_IMODE(mode) & 0o700)
    return folder


def _entries_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield all entries of a folder, then those of its subfolders: a store has tens of thousands."""
    pending = [os.fspath(folder)]
    while pending:
        entries_found: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(pending.pop()) as entries:  # removed meanwhile, or no permission
            entries_found = list(entries)
        yield from entries_found
        pending += [entry.path for entry in entries_found if entry.is_dir(follow_symlinks=False)]


def write(path: Path, content: bytes, *, mode: int = _PRIVATE, sync: bool = True) -> None:
    """Write a file atomically: its name has either the old content or the new, also after a power cut.

    Args:
        path: the file, in an existing folder.
        content: the bytes.
        mode: the permissions; readable by the owner only unless given.
        sync: as `write_table`.

    Raises:
        InputError: no space, or no permission.
    """
    write_with(path, lambda stream: stream.write(content), mode=mode, sync=sync)


def write_table(path: Path, table: pa.Table, *, mode: int = _PRIVATE, sync: bool = True, **options: object) -> int:
    """Write a Parquet file (zstd unless `compression` is given) atomically; return its size in bytes.

    `sync=False` is for files whose loss in a power cut is detected, and which are then computed again.
    """
    content = checked_parquet(table, **options)
    write(path, content, mode=mode, sync=sync)
    return len(content)


def write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables one after the other into a Parquet file (zstd), atomically; in memory is one at a time.

    The metadata of the schema are written; `read_metadata` returns them.
    """
    write_with(path, lambda stream: write_checked_parquet(stream, schema, tables))


def read_metadata(path: Path) -> dict[bytes, bytes]:
    """Return the schema metadata of a Parquet file whose content is checked; empty if it is missing or damaged.

    Raises:
        InputError: the system denies access.
    """
    try:
        content = path.read_bytes()
        check_parquet(content)
        return pq.read_schema(pa.BufferReader(content)).metadata or {}
    except (OSError, ValueError, pa.ArrowException) as error:
        _require_access(path, error)
        return {}


def write_with(path: Path, fill: Callable[[IO[bytes]], object], *, mode: int = _PRIVATE, sync: bool = True) -> None:
    """Fill a temporary file in the folder of `path`, sync it and rename it to `path`.

    For content that is not in memory as a whole; `write` is for bytes.

    Args:
        path: the file, in an existing folder.
        fill: writes the content to the stream; if it raises, the temporary file is removed and `path` unchanged.
        mode: the permissions.
        sync: whether the content must survive a power cut.

    Raises:
        InputError: no space, or no permission.
    """
    with write_errors(path):
        if sync:  # parts are many; `remove_stale_files` removes theirs
            _remove_temporaries(path)
        descriptor, temporary = _open_temporary(path, mode)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                fill(stream)
                stream.flush()
                if sync:
                    os.fsync(stream.fileno())
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _open_temporary(path: Path, mode: int) -> tuple[int, Path]:
    """Open a new temporary file and lock it; repeat if another run removed it before it was locked."""
    while True:
        # random, not the process number: containers repeat it, so a file of a killed run may have the same name
        temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        if mode == _PRIVATE:
            os.fchmod(descriptor, mode)  # regardless of the umask
        with suppress(OSError):  # a file system without locks: then stale files are never removed
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)


def _target_name(path: Path) -> str | None:
    """Return the final name of a temporary file; None if the file is not temporary."""
    match = _TEMPORARY.fullmatch(path.name)
    return match["name"] if match else None


def is_temporary(name: str) -> bool:
    """Return whether this is the name of a temporary file, in use or left by a killed run.

    >>> is_temporary(".ledger.json.0123456789abcdef.tmp"), is_temporary("ledger.json")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def remove_stale_files(folder: Path) -> None:
    """Remove the temporary files of killed runs in a folder and below.

    A running process holds a lock on its temporary files: they are not touched. Files of different users are skipped.
    """
    temporary_files = (Path(entry.path) for entry in _entries_below(folder) if entry.name.endswith(_TEMPORARY_SUFFIX))
    _remove_unlocked(path for path in temporary_files if _target_name(path) is not None)


def _remove_temporaries(target: Path) -> None:
    """Remove the temporary files that killed runs left of a file."""
    _remove_unlocked(path for path in target.parent.iterdir() if _target_name(path) == target.name)


def _remove_unlocked(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # locked, removed meanwhile, or of a different user
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def check_writable(folder: Path, size: int) -> None:
    """Check that a folder, or its nearest existing parent, can be written: write a file of this size and remove it.

    Raises:
        OSError: no permission, or no space on the disk.
    """
    target = next(parent for parent in (folder, *folder.parents) if path_exists(parent)) / "room"
    _remove_temporaries(target)
    descriptor, temporary = _open_temporary(target, _PRIVATE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(bytes(size))
            stream.flush()
            os.fsync(stream.fileno())
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing (disk full, read-only, no permission, a thousand folders in another) into an InputError.

    The public text names no path.

    Raises:
        InputError: an OSError was raised inside, or a RecursionError of `mkdir`.
    """
    try:
        yield
        return
    except OSError as error:
        problem = f"cannot be written ({error.strerror or type(error).__name__})"
    except RecursionError:
        problem = "cannot be written (too many folders in one another)"
    raise InputError(f"[output] {problem}", private=f"{path}: {problem}")


@contextmanager
def complete_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to `path` when its content is complete.

    Raises:
        InputError: the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.making")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with write_errors(path):
            temporary.mkdir(parents=True)
            yield temporary
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def path_exists(path: Path) -> bool:
    """Return whether a path exists; missing permission is an error, not an answer.

    Raises:
        InputError: the system denies access.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:  # of a folder above it
        closed = next((folder for folder in reversed(path.parents) if not os.access(folder, os.X_OK)), path)
        raise unreadable_error(closed, error.errno) from None
    except OSError as error:
        raise unreadable_error(path, error.errno) from None
    return True


def check_readable(folder: Path) -> None:
    """Check that a confidential folder may be entered and listed.

    Raises:
        InputError: the system denies access.
    """
    if not os.access(folder, os.R_OK | os.X_OK):
        raise unreadable_error(folder, errno.EACCES)


def unreadable_error(path: Path, number: int | None) -> InputError:
    """Return the error about a confidential file to which the system denies access.

    Args:
        path: the file, named in the private text only.
        number: the error number of the system, which decides the remedy; None counts as a disk error.
    """
    remedy = "let this user read it" if number in (errno.EACCES, errno.EPERM) else "repair the disk, or put back a copy"
    problem = f"cannot be read ({os.strerror(number or errno.EIO)}); {remedy}"
    return InputError(f"something in the confidential folder {problem}", private=f"{path}: {problem}")


def _require_access(path: Path, error: Exception) -> None:
    """Raise InputError if an error of reading means that the system denies access, not that a file is damaged."""
    number = getattr(error, "errno", None)
    if number not in (None, errno.ENOENT):
        raise unreadable_error(path, number) from None


class DamagedFile(InputError):
    """A confidential table that is missing, truncated, altered, or not of its declared form.

    The message contains the remedy. Missing permission is an InputError, but never damage.
    """


class FolderRemoved(DamagedFile):
    """A damaged file of the store that was removed: it is computed again from the input files."""


def read_table(
    path: Path,
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None = None,
    group: str | None = None,
    remedy: str = _REMEDY,
) -> pa.Table:
    """Return a confidential table that an earlier stage wrote, or some of its columns, checked against its schema.

    Args:
        path: path of the table.
        schema: as `tables` declares it, with the columns that may have nulls.
        columns: the columns to read; all if None.
        group: the name of the table in a file of row groups; None: the file is the table.
        remedy: the advice to the user if the table is damaged.

    Raises:
        DamagedFile: the table differs from the one that was written.
        InputError: the system denies access.
    """
    try:
        if group is not None:
            with path.open("rb", buffering=0) as stream:
                reader = GroupReader(stream)
                file, table = reader.file, reader.read(group, columns)
        else:
            content = path.read_bytes()
            check_parquet(content)
            file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
            table = file.read(columns=columns, use_threads=False)
        stored_schema = file.schema_arrow
    except (OSError, ValueError, pa.ArrowException) as error:  # a spoilt name need not be UTF-8
        _require_access(path, error)
        raise _damaged_error(path, "is missing or damaged", remedy) from None
    if (stored_schema.names, stored_schema.types) != (schema.names, schema.types):
        raise _damaged_error(path, "has other columns than it was written with", remedy)
    if any(table[name].null_count and not schema.field(name).nullable for name in table.column_names):
        raise _damaged_error(path, "lacks values", remedy)
    return table


def group_names(path: Path) -> tuple[str, ...]:
    """Return the names of the row groups of a file, in their order.

    Raises:
        DamagedFile: the file is missing or damaged.
        InputError: the system denies access.
    """
    try:
        with path.open("rb", buffering=0) as stream:
            return GroupReader(stream).names
    except (OSError, ValueError, LookupError, pa.ArrowException) as error:
        _require_access(path, error)
        raise _damaged_error(path, "is missing or damaged", _REMEDY) from None


def table_rows(table: pa.Table, path: Path, *, remedy: str = _REMEDY) -> list[dict[str, Any]]:
    """Return the rows of a table that was read from `path`.

    Raises:
        DamagedFile: an impossible date.
    """
    try:
        return table.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        raise _damaged_error(path, "contains an invalid date", remedy) from None


def _damaged_error(path: Path, problem: str, remedy: str) -> DamagedFile:
    return DamagedFile(f"a confidential table {problem}; {remedy}", private=f"{path}: {problem}; {remedy}")


def count_rows(path: Path) -> int | None:
    """Return the number of rows of a table by its footer; None if it is missing or truncated.

    A quick test whether a table was completed: the content is neither read nor checked.
    """
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError, pa.ArrowException):
        return None


# --------------------------------------------------------------------------------------------------
# One run at a time in a folder, by a lock that ends with its process.
#
# A stopped run keeps its lock, so a waiting run logs a warning, and gives up in the end.
# --------------------------------------------------------------------------------------------------

WARN_AFTER_SECONDS = 5.0
MAX_WAIT_SECONDS = 3600.0
"""An hour: a first run over a large archive may take that long. A run that gives up has neither ingested nor drawn."""

_LOG = logging.getLogger("agedp")


@contextmanager
def exclusive_lock(folder: Path, *, max_wait_seconds: float | None = None) -> Iterator[None]:
    """Hold the exclusive lock of a folder; wait for it at most `max_wait_seconds`, by default an hour.

    On a file system without locks it does not wait.

    Raises:
        Busy: another process held the lock all the time; it may be stopped, or hang.
    """
    with write_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _wait_for_lock(descriptor, folder, MAX_WAIT_SECONDS if max_wait_seconds is None else max_wait_seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, folder: Path, max_wait_seconds: float) -> None:
    started, is_warned = time.monotonic(), False
    while not _try_lock(descriptor):
        waited = time.monotonic() - started
        if waited > max_wait_seconds:
            problem = "another run has held the folder for too long; end it if it hangs or is suspended"
            raise Busy(problem, private=f"{folder}: {problem}")
        if waited > WARN_AFTER_SECONDS and not is_warned:
            _LOG.warning("agedp: another run works in the same folder; waiting until it ends")
            is_warned = True
        time.sleep(min(0.02 + waited / 20, 0.5))


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


T = TypeVar("T")

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_PARSE_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, ChainError)


class FileKind(Enum):
    """The kind of a file, which decides the consequence of its damage."""

    DERIVED = "derived"
    RECORD = "record"
    SUPPLEMENT = "supplement"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class FileNotice:
    """A warning about a confidential file.

    Attributes:
        public: text for logs that leave the machine; it names no file.
        private: text for the operator's terminal, with the file and the remedy.
    """

    public: str
    private: str


@dataclass(frozen=True, slots=True)
class FileContent(Generic[T]):
    """The content of a file, or the consequence of its damage.

    Attributes:
        value: what `parse` returned; None if the file is missing or damaged.
        notice: a warning if the operator must know of the damage.
    """

    value: T | None
    notice: FileNotice | None = None


def read_content(path: Path, parse: Callable[[Path], T], kind: FileKind, *, advice: str) -> FileContent[T]:
    """Return the content of a file, or the consequence of its damage.

    Args:
        path: the file.
        parse: returns the value; raises `DamagedFile`, or a parse error on malformed content.
        kind: the kind of the file.
        advice: the remedy for a damaged file, for the operator.

    Raises:
        DamagedFile: a SOURCE is damaged.
        InputError: the system denies reading the file, or renaming a damaged RECORD.
    """
    try:
        return FileContent(parse(path))
    except DamagedFile:
        if not path_exists(path):
            return FileContent(None)
    except OSError as error:
        if error.errno in _ABSENT:
            return FileContent(None)
        if error.errno is not None:
            raise unreadable_error(path, error.errno) from None
    except (*_PARSE_ERRORS, pa.ArrowException):
        pass
    return _content_of_damaged(path, kind, advice)


def read_derived(path: Path, parse: Callable[[Path], T | None]) -> T | None:
    """Return the content of a DERIVED file; None if it is missing or damaged.

    Raises:
        InputError: the system denies access.
    """
    return read_content(path, parse, FileKind.DERIVED, advice="").value


def _content_of_damaged(path: Path, kind: FileKind, advice: str) -> FileContent[T]:
    if kind is FileKind.DERIVED:
        return FileContent(None)
    if kind is FileKind.SOURCE:
        raise DamagedFile(f"{path.name} in the confidential folder is damaged; {advice}")
    if kind is FileKind.RECORD:
        damaged = path.with_name(f"{path.name}.damaged")
        with write_errors(path):
            path.replace(damaged)
        public = "a confidential record was damaged and begins anew"
        private = f"{path} was damaged; it is renamed to {damaged.name}, and the record begins anew"
    else:
        public = "a confidential file is damaged, and the internal report lacks what it shows"
        private = f"{path} is damaged, and the internal report lacks what it shows"
    return FileContent(None, FileNotice(public, f"{private}. {advice}"))


def read_columns(path: Path) -> pa.Table:
    """Return a Parquet table whose columns depend on a model's settings.

    Raises:
        DamagedFile: it is missing, or not a Parquet table.
        InputError: the system denies access.
    """
    try:
        schema = pq.ParquetFile(path).schema_arrow
    except (OSError, ValueError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)
        if number not in (None, *_ABSENT):
            raise unreadable_error(path, number) from None
        problem = "is missing or damaged"
        raise DamagedFile(f"a confidential table {problem}", private=f"{path}: {problem}") from None
    return read_table(path, schema)


class InternalPaths:
    """The confidential folder of a run, and its files.

    >>> InternalPaths(Path("confidential")).books.as_posix()
    'confidential/books.sqlite'

    Attributes:
        folder: the confidential folder.
        store: the folder of the stored readings.
        release_copy: the local copy of a release folder at a URL.
        sums: the daily sums of the last run.
        quality: the table of kept and rejected rows by file and reason.
        roster: the folder of what is derived from the roster file.
        books: the book of everything else that is recorded (`books`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store, self.release_copy = folder / "store", folder / "release"
        self.sums, self.quality = folder / "sums.parquet", folder / "quality.parquet"
        self.roster, self.books = folder / "roster", folder / "books.sqlite"
