"""A release folder by its URL: a copy inside the house, fetched before anybody asks it and put out file by file.

Nothing can be renamed or locked there. Each object is put whole, SHA256SUMS last, so that a release that is cut off has
sums that do not match, as on a disk; then everything is read back. Of runs on several machines the last one to put
its files out looks at the ledger again (`publish.publish_release`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agedp_data.readers.storage import answered, system_at
from pipelines import folders
from pipelines.handover.received import is_release_file

_LABEL: Final = "[output] release:"
_TRIAL: Final = ".agedp-trial"


@dataclass(slots=True)
class RemoteFolder:
    """A folder of objects by its URL, and where its copy lies."""

    url: str
    copy: Path
    _stamps: dict[str, str] = field(default_factory=dict)

    def fetch(self) -> None:
        """Make the copy what lies at the URL now; what a user keeps there under other names is left alone.

        Raises:
            InputError: nobody answers, or what is there may not be read.
        """
        folders.make_private(self.copy)
        with answered(_LABEL, self.url):
            found = self._listed()
            for path in self.copy.iterdir():
                if is_release_file(path.name) and path.name not in found:
                    path.unlink(missing_ok=True)
            for name, stamp in found.items():
                if self._stamps.get(name) != stamp or not (self.copy / name).exists():
                    folders.write(self.copy / name, self._read(name))
            self._stamps = found

    def put(self, files: Mapping[str, bytes]) -> bool:
        """Put the files out in their order, and remove what the copy no longer has before the last, their checksums.

        Return whether just that lies there in the end: somebody else may have put out other files meanwhile.

        Raises:
            InputError: nobody answers, or nothing may be written there.
        """
        with answered(_LABEL, self.url):
            there = {name: self._read(name) for name in self._listed()}
            if self._is_whole(there, files):
                return True
            system, root = self._root()
            *figures, sums = files
            for name in figures:
                if there.get(name) != files[name]:
                    system.pipe_file(f"{root}/{name}", files[name])
            for name in self._gone(there):
                system.rm_file(f"{root}/{name}")
            system.pipe_file(f"{root}/{sums}", files[sums])
            return self._is_whole({name: self._read(name) for name in self._listed()}, files)

    def _is_whole(self, there: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> bool:
        return not self._gone(there) and all(there.get(name) == content for name, content in wanted.items())

    def _gone(self, there: Iterable[str]) -> list[str]:
        return [name for name in there if not (self.copy / name).exists()]

    def try_writing(self) -> None:
        """Put an object there and remove it.

        Raises:
            InputError: that is not permitted, or nobody answers; nothing was drawn.
        """
        with answered(_LABEL, self.url):
            system, root = self._root()
            system.pipe_file(f"{root}/{_TRIAL}", b"agedp tries whether it may write here\n")
            system.rm_file(f"{root}/{_TRIAL}")

    def _root(self) -> tuple[Any, str]:
        system, root = system_at(self.url)
        system.invalidate_cache()
        return system, root.rstrip("/")

    def _listed(self) -> dict[str, str]:
        """Return the objects that a release may hold, by name, with a text that changes when they do."""
        system, root = self._root()
        try:
            found = system.ls(root, detail=True)
        except FileNotFoundError:  # nothing was put there yet; a bucket that is missing shows when it is written
            return {}
        named = {str(one["name"]).rpartition("/")[2]: one for one in found if one["type"] == "file"}
        return {name: _version_text(one) for name, one in sorted(named.items()) if is_release_file(name)}

    def _read(self, name: str) -> bytes:
        system, root = self._root()
        content: bytes = system.cat_file(f"{root}/{name}")
        return content


def _version_text(told: Mapping[str, Any]) -> str:
    when = next((told[key] for key in ("LastModified", "last_modified", "mtime", "created") if told.get(key)), "")
    return f"{told.get('size')} {told.get('ETag', '')} {when}"
