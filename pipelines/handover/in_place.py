"""Files -> release folder: each in place by rename, SHA256SUMS last; one whose sums do not match was cut off."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pipelines import folders
from pipelines.handover.received import SUMS
from pipelines.handover.signs import published_in

_READABLE = 0o644


def sums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files in place, SHA256SUMS last, and remove those of another release; nothing if they lie there whole."""
    whole = with_sums(files)
    folders.remove_stale_files(made(folder))
    of_another = [path for path in published_in(folder) if path.name not in whole]
    if not of_another and _holds(folder, whole):
        return
    for name, content in files.items():
        folders.write(folder / name, content, mode=_READABLE)
    with folders.write_errors(folder):
        for path in of_another:
            path.unlink(missing_ok=True)
    folders.write(folder / SUMS, whole[SUMS], mode=_READABLE)


def with_sums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a release and, last, their checksums."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in sums(files).items())
    return {**files, SUMS: listing.encode()}


def made(folder: Path) -> Path:
    """Return a release folder, made if need be."""
    with folders.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False
