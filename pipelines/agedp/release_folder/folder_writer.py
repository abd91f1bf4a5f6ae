"""Files -> release folder: each is put in place by rename, SHA256SUMS last, so an interrupted write fails its sums.

A release folder at a URL has a local copy in the confidential folder: fetched before use, uploaded file by file.
Objects cannot be renamed or locked. Each is uploaded completely, SHA256SUMS last, so that an interrupted upload has
checksums that do not match, as on a disk; then everything is read back. If runs on several machines upload at the same
time, the last one reads the ledger again (`publish.publish_release`).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from agedp.local_files import atomic_files
from agedp.local_files.locks import exclusive_lock
from agedp.release_folder.folder_files import max_bytes
from agedp.release_folder.origin import list_published_files
from agedp.release_folder.partitions import list_files, months_by_table
from agedp.release_folder.release_folder import SUMS, is_release_file
from agedp_data.datasets.filesystem import input_errors, system_at
from agedp_data.errors import InputError
from agedp_data.foreign_files import is_plain_path, plain_path, regular_file
from agedp_data.messages import escape_text

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
) -> bool:
    """Write the files, SHA256SUMS last, and remove those of another release; skip what the folder has already.

    Args:
        folder: the release folder.
        files: content by path.
        remote: the URL of the release.
        unchanged: SHA-256 by path of the release's other files, which the folder has: those of closed months.

    Returns:
        Whether the folder has exactly these files; at a URL other runs may write at the same time.

    Raises:
        InputError: the folder cannot be written, or a link leads out of it.
    """
    all_files = add_checksums(files, unchanged=unchanged)
    _make_folder(folder)
    _check_no_links(folder, files)
    _remove_stale_files(folder, files)
    tables = months_by_table({**files, **unchanged})
    obsolete = [
        path for path in list_published_files(folder, tables) if _name(folder, path) not in {*all_files, *unchanged}
    ]
    if obsolete or not _has_files(folder, all_files):
        for name, content in files.items():
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
    for inside in {parent for name in names for parent in Path(plain_path(name, "[output] release")).parents[:-1]}:
        if (folder / inside).is_symlink():
            raise InputError(f"[output] release: {inside.as_posix()} is a link, not a folder; remove it")


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def _remove_stale_files(folder: Path, files: Iterable[str]) -> None:
    """Remove temporary files of killed runs from the folders in which files are written."""
    for inside in sorted({(folder / name).parent for name in files} | {folder}):
        if inside.is_dir():
            atomic_files.remove_stale_files(inside)


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
            regular_file(folder, name, max_bytes=len(content)).read_bytes() == content
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
            for name in list_files(self.copy):
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
    problem = "" if is_plain_path(name) else "has a name that is no plain path below the URL"
    if (size or 0) > max_bytes(name):
        problem = f"has {size:,} bytes, too many for its name"
    if problem:
        text = f"[output] release: an object {problem}; remove it"
        raise InputError(text, private=f"{text}: {escape_text(name, 200)}")
    modified = next((entry[key] for key in ("LastModified", "last_modified", "mtime", "created") if entry.get(key)), "")
    return ObjectVersion(size, f"{size} {entry.get('ETag', '')} {modified}")
