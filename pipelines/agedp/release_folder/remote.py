"""A release folder at a URL, with a local copy in the confidential folder: fetched before use, uploaded file by file.

Objects cannot be renamed or locked. Each is uploaded completely, SHA256SUMS last, so that an interrupted upload has
checksums that do not match, as on a disk; then everything is read back. If runs on several machines upload at the same
time, the last one reads the ledger again (`publish.publish_release`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agedp.local_files import atomic_files
from agedp.release_folder.release_folder import is_release_file
from agedp_data.datasets.filesystem import input_errors, system_at

_LABEL: Final = "[output] release:"
_TRIAL: Final = ".agedp-trial"


@dataclass(slots=True)
class RemoteFolder:
    """A release folder at a URL, and its local copy."""

    url: str
    copy: Path
    _versions: dict[str, str] = field(default_factory=dict)

    def fetch(self) -> None:
        """Update the local copy from the URL; files under other names than those of a release are ignored.

        Raises:
            InputError: the server does not answer, or denies reading.
        """
        atomic_files.make_private(self.copy)
        with input_errors(_LABEL, self.url):
            versions = self._list_objects()
            for path in self.copy.iterdir():
                if is_release_file(path.name) and path.name not in versions:
                    path.unlink(missing_ok=True)
            for name, version in versions.items():
                if self._versions.get(name) != version or not (self.copy / name).exists():
                    atomic_files.write(self.copy / name, self._read(name))
            self._versions = versions

    def put(self, files: Mapping[str, bytes]) -> bool:
        """Upload the files in their order; before the last, the checksums, remove objects that the copy does not have.

        Return whether exactly these files are at the URL afterwards: another run may have uploaded others meanwhile.

        Raises:
            InputError: the server does not answer, or denies writing.
        """
        with input_errors(_LABEL, self.url):
            present = {name: self._read(name) for name in self._list_objects()}
            if self._is_complete(present, files):
                return True
            system, root = self._root()
            *names, checksums_name = files
            for name in names:
                if present.get(name) != files[name]:
                    system.pipe_file(f"{root}/{name}", files[name])
            for name in self._removed_names(present):
                system.rm_file(f"{root}/{name}")
            system.pipe_file(f"{root}/{checksums_name}", files[checksums_name])
            return self._is_complete({name: self._read(name) for name in self._list_objects()}, files)

    def _is_complete(self, present: Mapping[str, bytes], expected: Mapping[str, bytes]) -> bool:
        return not self._removed_names(present) and all(
            present.get(name) == content for name, content in expected.items()
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

    def _list_objects(self) -> dict[str, str]:
        """Return the objects of the release by name, each with a text that changes when its content does."""
        system, root = self._root()
        try:
            entries = system.ls(root, detail=True)
        except FileNotFoundError:  # nothing was uploaded yet; a missing bucket raises on the first write
            return {}
        by_name = {str(entry["name"]).rpartition("/")[2]: entry for entry in entries if entry["type"] == "file"}
        return {name: _version_text(entry) for name, entry in sorted(by_name.items()) if is_release_file(name)}

    def _read(self, name: str) -> bytes:
        system, root = self._root()
        content: bytes = system.cat_file(f"{root}/{name}")
        return content


def _version_text(entry: Mapping[str, Any]) -> str:
    modified = next((entry[key] for key in ("LastModified", "last_modified", "mtime", "created") if entry.get(key)), "")
    return f"{entry.get('size')} {entry.get('ETag', '')} {modified}"
