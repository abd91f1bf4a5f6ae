"""Files -> release folder: each is put in place by rename, SHA256SUMS last, so an interrupted write fails its sums."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from agedp.local_files import atomic_files
from agedp.release_folder.origin import list_published_files
from agedp.release_folder.release_folder import SUMS

_READABLE = 0o644


def file_checksums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}


def write_release_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files, SHA256SUMS last, and remove those of another release; does nothing if the folder has them."""
    all_files = add_checksums(files)
    atomic_files.remove_stale_files(make_folder(folder))
    obsolete = [path for path in list_published_files(folder) if path.name not in all_files]
    if not obsolete and _has_files(folder, all_files):
        return
    for name, content in files.items():
        atomic_files.write(folder / name, content, mode=_READABLE)
    with atomic_files.write_errors(folder):
        for path in obsolete:
            path.unlink(missing_ok=True)
    atomic_files.write(folder / SUMS, all_files[SUMS], mode=_READABLE)


def add_checksums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a release and, last, their checksums."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in file_checksums(files).items())
    return {**files, SUMS: listing.encode()}


def make_folder(folder: Path) -> Path:
    """Create a release folder unless it exists; return it."""
    with atomic_files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _has_files(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False
