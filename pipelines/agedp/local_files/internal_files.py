"""Files of the confidential folder: their names, how one of them is read, and the consequence of a damaged one.

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
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import DamagedFile
from agedp_data.errors import ChainError

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
        if not atomic_files.path_exists(path):
            return FileContent(None)
    except OSError as error:
        if error.errno in _ABSENT:
            return FileContent(None)
        if error.errno is not None:
            raise atomic_files.unreadable_error(path, error.errno) from None
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
        with atomic_files.write_errors(path):
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
            raise atomic_files.unreadable_error(path, number) from None
        problem = "is missing or damaged"
        raise DamagedFile(f"a confidential table {problem}", private=f"{path}: {problem}") from None
    return atomic_files.read_table(path, schema)


class InternalPaths:
    """The confidential folder of a run, and its files.

    >>> InternalPaths(Path("confidential")).coverage.as_posix()
    'confidential/coverage.parquet'

    Attributes:
        folder: the confidential folder.
        store: the folder of the stored readings.
        release_copy: the local copy of a release folder at a URL.
        sums: the daily sums of the last run.
        true_means: the table of true means.
        true_counts: the table of true counts.
        coverage: the table of coverage.
        counted_states: the table of means by states and by readings.
        quality: the table of kept and rejected rows by file and reason.
        roster_history: the rosters of released days.
        roster: the folder of what is derived from the roster file.
        ledger_checkpoint: where the last reading of the ledger ended.
        publication: the last complete publication of the release folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store, self.release_copy = folder / "store", folder / "release"
        self.sums, self.quality = folder / "sums.parquet", folder / "quality.parquet"
        self.true_means, self.true_counts = folder / "true_means.parquet", folder / "true_counts.parquet"
        self.coverage, self.counted_states = folder / "coverage.parquet", folder / "counted_states.parquet"
        self.roster_history, self.roster = folder / "released_rosters.parquet", folder / "roster"
        self.ledger_checkpoint, self.publication = folder / "ledger_checkpoint.json", folder / "publication.json"
