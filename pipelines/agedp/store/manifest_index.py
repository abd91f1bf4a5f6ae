"""All manifests in one file: a night reads it, and the manifest of each file that is new, damaged or changed since.

    <confidential>/store/manifests.json     by content id: the state of the manifest's file, and the manifest

The manifests stay the truth. An entry counts as long as the file of its manifest has the size, the times and the inode
that it had when it was read, and no entry counts without a file. The index is derived: it is written again whenever it
differs, so a missing or damaged one costs one reading of every manifest. A damaged manifest has no entry: a later
version may be able to read it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileKind, read_content
from agedp.store.manifest import Manifest
from agedp.store.store import Store
from agedp_data.datasets.filesystem import local_fingerprint

INDEX: Final = "manifests.json"
_FORMAT: Final = 1
"""Version of the entries; an index of another version is written again."""
_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class _Entry:
    """The state of the file of a manifest, and the manifest."""

    state: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class StoredManifests:
    """The manifests of a store, under any rules.

    Attributes:
        manifests: by content id, without damaged ones.
        damaged: content ids of the damaged ones.
    """

    manifests: dict[str, Manifest]
    damaged: frozenset[str]


def read_manifests(store: Store) -> StoredManifests:
    """Return the manifests of all files in a store, from the index as far as their files are unchanged.

    Raises:
        InputError: the system denies access; an existing file must not count as missing.
    """
    states = _file_states(store.folder / "files")
    indexed = _read_index(store)
    entries: dict[str, _Entry] = {}
    for content, state in sorted(states.items()):
        entry = indexed.get(content)
        if entry is not None and entry.state == state:
            entries[content] = entry
        elif (manifest := store.manifest(content)) is not None:
            entries[content] = _Entry(state, manifest)
    if any(indexed.get(content) is not entry for content, entry in entries.items()) or len(entries) != len(indexed):
        _write_index(store, entries)
    manifests = {content: entry.manifest for content, entry in entries.items()}
    return StoredManifests(manifests, frozenset(states.keys() - manifests.keys()))


def _file_states(folder: Path) -> dict[str, str]:
    """Return the fingerprint of the file of each manifest."""
    try:
        with os.scandir(folder) as entries:
            files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(_SUFFIX)]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise atomic_files.unreadable_error(folder, error.errno) from None
    return {name.removesuffix(_SUFFIX): local_fingerprint(status) for name, status in files if not name.startswith(".")}


def _read_index(store: Store) -> dict[str, _Entry]:
    def parse(path: Path) -> dict[str, _Entry]:
        check, _, body = path.read_bytes().partition(b"\n")
        if check != _checksum(body):
            raise ValueError("the checksum differs")
        index = json.loads(body)
        if index["format"] != _FORMAT:
            raise ValueError("it is of another version")
        manifests = index["manifests"].items()
        return {content: _Entry(str(state), Manifest.from_json(record)) for content, (state, record) in manifests}

    return read_content(store.folder / INDEX, parse, FileKind.DERIVED, advice="").value or {}


def _write_index(store: Store, entries: Mapping[str, _Entry]) -> None:
    records = {content: (entry.state, entry.manifest.to_json()) for content, entry in entries.items()}
    body = json.dumps({"format": _FORMAT, "manifests": records}).encode()
    atomic_files.write(store.folder / INDEX, _checksum(body) + b"\n" + body)


def _checksum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode()
