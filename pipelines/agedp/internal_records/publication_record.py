"""The last complete publication of each release folder, so that a night without a change does not write it again.

    <confidential>/publication.json     derived; without it the folders are written again, with the same bytes

Populations that share the confidential folder have a release folder each. A record names the head of the ledger, a
digest of everything else that the folder's bytes depend on, and the files as they were written: size, times of the last
change, and the digest of SHA256SUMS, which has the digests of all files. A file that was replaced, edited or restored
has another time of change, so the folder is read and repaired as ever.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileKind, read_content
from agedp_data.errors import AgedpError

FileState = tuple[int, int, int]
"""Size, and the times of the last change of content and of anything [ns]."""


@dataclass(frozen=True, slots=True)
class PublicationRecord:
    """A complete publication.

    Attributes:
        ledger_head: head of the ledger after it, with its statement.
        origin_head: head of the ledger that its files name.
        population: name of the population.
        facts: digest of all that the files depend on beside the ledger.
        folder: the release folder.
        files: state of each file by its path in the folder.
        sums: SHA-256 of its list of checksums.
    """

    ledger_head: str
    origin_head: str
    population: str
    facts: str
    folder: str
    files: dict[str, FileState]
    sums: str

    def is_of_folder(self, folder: Path, *, sums: str) -> bool:
        """Return whether this is the folder, its files unchanged since they were written; `sums` names its list."""
        return (
            self.folder == str(folder.absolute())
            and self.files == folder_state(folder)
            and self.sums == _digest(folder / sums)
        )


def record_of(folder: Path, *, sums: str, **facts: str) -> PublicationRecord:
    """Return the record of a folder that was just published; `facts` are the remaining fields."""
    return PublicationRecord(
        folder=str(folder.absolute()), files=folder_state(folder), sums=_digest(folder / sums), **facts
    )


def folder_state(folder: Path) -> dict[str, FileState]:
    """Return the state of every file and empty folder below a folder, by its path there."""
    return {str(Path(entry.path).relative_to(folder)): _state(entry) for entry in _files_below(folder)}


def _files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    entries = list[os.DirEntry[str]]()
    with suppress(OSError), os.scandir(folder) as listed:
        entries = list(listed)
    for entry in entries:
        inside = list(_files_below(Path(entry.path))) if entry.is_dir(follow_symlinks=False) else []
        yield from inside or [entry]


def _state(entry: os.DirEntry[str]) -> FileState:
    with suppress(OSError):
        status = entry.stat()
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return -1, -1, -1


def _digest(path: Path) -> str:
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file of any size; "" for one that cannot be read."""
    with suppress(OSError), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""


def read_publication(path: Path, folder: Path) -> PublicationRecord | None:
    """Return the last complete publication of a release folder; None if its record is missing or damaged."""
    return next((record for record in _read_publications(path) if record.folder == str(folder.absolute())), None)


def save_publication(path: Path, record: PublicationRecord) -> None:
    """Write the record of a publication, beside those of other folders; without it the next run publishes again."""
    others = [stored for stored in _read_publications(path) if stored.folder != record.folder]
    present = [stored for stored in others if Path(stored.folder).is_dir()]
    body = json.dumps([asdict(stored) for stored in (record, *present)], sort_keys=True)
    content = json.dumps({"publication": body, "sha256": hashlib.sha256(body.encode()).hexdigest()})
    with suppress(AgedpError, OSError):
        atomic_files.write(path, f"{content}\n".encode())


def _read_publications(path: Path) -> tuple[PublicationRecord, ...]:
    return read_content(path, _parse, FileKind.DERIVED, advice="it is made again").value or ()


def _parse(path: Path) -> tuple[PublicationRecord, ...]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    body: str = document["publication"]
    if hashlib.sha256(body.encode()).hexdigest() != document["sha256"]:
        raise ValueError("the record of the publication is damaged")
    return tuple(_record(**fields) for fields in json.loads(body))


def _record(*, files: dict[str, list[int]], **texts: str) -> PublicationRecord:
    states = {name: (size, modified, changed) for name, (size, modified, changed) in files.items()}
    return PublicationRecord(files=states, **texts)
