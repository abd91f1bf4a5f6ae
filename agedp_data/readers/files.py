"""Input files: which ones, in what order, named by content.

Messages name a file in their private text only: file names can be household ids.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agedp_data.errors import InputError, UnreadableFile
from agedp_data.readers import storage
from agedp_data.readers.packing import unpacked
from agedp_data.shown import escape_text

EXTENSIONS = (".csv", ".csv.gz", ".csv.zip", ".csv.zst", ".gz", ".zip", ".zst")
HEAD_BYTES = 64 * 1024
LEAF_BYTES = 32 * 1024 * 1024
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input file; `label` ("input 12 of 40") is all that may leave the house."""

    location: str
    label: str
    size: int
    modified_ns: int
    touched_ns: int
    stamp: str

    @property
    def name(self) -> str:
        """Return the file's own name."""
        return self.location.rpartition("/")[2]

    def error(self, what: str, *, private: str | None = None) -> InputError:
        """Return the error to raise about this file; its name and what `private` quotes stay in the private text."""
        return InputError(f"{self.label}: {what}", private=f"{storage.told(self.location)}: {private or what}")

    def unreadable(self, what: str, *, private: str | None = None) -> UnreadableFile:
        """Return the error to raise about what the file contains; texts as in `error`."""
        error = self.error(what, private=private)
        return UnreadableFile(str(error), private=error.private)

    def check_unchanged(self) -> None:
        """Raise InputError if the file is no longer the one that was listed."""
        with storage.answered(f"{self.label}:", self.location):
            now = storage.status(self.location)
        if now.stamp != self.stamp:
            raise self.error("changed while it was read; run again when the delivery is complete")


@dataclass(frozen=True, slots=True)
class Listing:
    """The input files in reading order, and how many names were passed over."""

    sources: tuple[InputFile, ...]
    ignored: int


def list_sources(patterns: Sequence[str], *, but: Sequence[str] = (), required: bool = True) -> Listing:
    """Return the files that paths, globs and URLs name, numerically ordered; hidden and unknown ones are counted.

    So are those of `but`: a roster beside the readings is no reading, whatever the glob.

    Raises:
        InputError: nothing usable, or a file that cannot be opened.
    """
    found = sorted({location for pattern in patterns for location in storage.named(pattern)}, key=numeric)
    others = {storage.place(location) for location in but}
    named = [location for location in found if _has_known_name(location) and storage.place(location) not in others]
    usable = [location for location in named if _is_file(location)]
    if not usable and required:
        what = "no usable input file"
        hint = "names end in .csv, .gz, .zip or .zst" if found else "nothing is there by that name"
        raise InputError(
            f"[input] files: {what} ({len(found)} passed over); {hint}",
            private=f"{escape_text(', '.join(map(storage.told, patterns)), 500)}: {what}; {hint}",
        )
    sources = (_source(location, f"input {i} of {len(usable)}") for i, location in enumerate(usable, 1))
    return Listing(tuple(sources), len(found) - len(usable))


def _has_known_name(location: str) -> bool:
    name = location.rpartition("/")[2]
    return not name.startswith(".") and name.lower().endswith(EXTENSIONS)


def _is_file(location: str) -> bool:
    with storage.answered("[input] files: a named file", location):
        return storage.is_regular(location)


def _source(location: str, label: str) -> InputFile:
    with storage.answered(f"{label}:", location):
        found = storage.status(location)
        if not storage.is_url(location):
            with Path(location).open("rb"):  # no permission is better said now than in the middle
                pass
    return InputFile(location, label, found.size, found.modified_ns, found.touched_ns, found.stamp)


def numeric(name: str) -> list[tuple[int, int, str]]:
    """Return what sorts names as people do: chunk_2 before chunk_10."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]


def read_head(source: InputFile) -> bytes:
    """Return the first bytes of a file, unpacked.

    Raises:
        InputError: as `packing.unpacked`.
    """
    with unpacked(source) as stream:
        return bytes(stream.read(HEAD_BYTES))


@dataclass(frozen=True, slots=True)
class FileSegment:
    """A stretch of a file as it lies there, to be hashed apart from the others."""

    source: InputFile
    start: int


def leaves(source: InputFile) -> list[FileSegment]:
    """Return the stretches that a file's digest is made of."""
    return [FileSegment(source, start) for start in range(0, max(source.size, 1), LEAF_BYTES)]


def digest_leaf(leaf: FileSegment) -> bytes:
    """Return the SHA-256 of a stretch."""
    digest = hashlib.sha256()
    remaining = LEAF_BYTES
    location = leaf.source.location
    with storage.answered(f"{leaf.source.label}:", location), storage.open_at(location) as stream:
        stream.seek(leaf.start)
        while remaining and (chunk := stream.read(min(remaining, _CHUNK))):  # small: hashed while the caches hold it
            digest.update(chunk)
            remaining -= len(chunk)
    return digest.digest()


def digest_of(digests: Sequence[bytes]) -> str:
    """Return the digest of a file from those of its stretches: SHA-256 over them."""
    return hashlib.sha256(b"".join(digests)).hexdigest()
