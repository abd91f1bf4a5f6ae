"""Input files: their list, their order and the hashes of their content.

Only the private text of a message names a file: file names can be household ids.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agedp_data.datasets import filesystem
from agedp_data.datasets.compression import UTF_8, open_decompressed
from agedp_data.errors import InputError, UnreadableFile
from agedp_data.messages import escape_text

PARQUET_EXTENSIONS = (".parquet", ".pq")
EXTENSIONS = (".csv", ".gz", ".zip", ".zst", *PARQUET_EXTENSIONS)
HEAD_BYTES = 64 * 1024
SEGMENT_BYTES = 32 * 1024 * 1024
_HASH_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input file at the time of listing.

    Only `label` ("input 12 of 40") is public. `fingerprint` changes whenever the content may have changed. `encoding`
    is that of its text, as declared.
    """

    location: str
    label: str
    size: int
    modified_ns: int
    touched_ns: int
    fingerprint: str
    encoding: str = UTF_8

    @property
    def name(self) -> str:
        """Return the file name without its folder."""
        return self.location.rpartition("/")[2]

    def error(self, problem: str, *, private: str | None = None) -> InputError:
        """Return the error to raise about this file.

        Args:
            problem: public text, after the label.
            private: text after the file's name, if it may say more than `problem`.
        """
        return InputError(
            f"{self.label}: {problem}", private=f"{filesystem.format_location(self.location)}: {private or problem}"
        )

    def unreadable(self, problem: str, *, private: str | None = None) -> UnreadableFile:
        """Return the error to raise about the content of the file; texts as in `error`."""
        error = self.error(problem, private=private)
        return UnreadableFile(str(error), private=error.private)

    def check_unchanged(self) -> None:
        """Check that the file has not changed since it was listed.

        Raises:
            InputError: it has.
        """
        with filesystem.input_errors(f"{self.label}:", self.location):
            current = filesystem.file_status(self.location)
        if current.fingerprint != self.fingerprint:
            raise self.error("changed while it was read; run again when the delivery is complete")


@dataclass(frozen=True, slots=True)
class InputListing:
    """The input files in reading order, and the number of names that were skipped."""

    sources: tuple[InputFile, ...]
    ignored: int


def list_input_files(patterns: Sequence[str], *, excluding: Sequence[str] = (), required: bool = True) -> InputListing:
    """Return the files that paths, globs and URLs name, in natural order.

    Hidden files, unknown extensions and files of `excluding` (a roster in the folder of the readings) are skipped and
    counted.

    Raises:
        InputError: no usable file, or a file that cannot be opened.
    """
    locations = sorted(
        {location for pattern in patterns for location in filesystem.list_locations(pattern)}, key=natural_sort_key
    )
    named = [location for location in locations if _has_input_extension(location)]
    excluded = {filesystem.canonical_location(location) for location in excluding}
    canonical_locations = filesystem.canonical_locations(named)
    candidates = [
        location for location, canonical in zip(named, canonical_locations, strict=True) if canonical not in excluded
    ]
    usable = [location for location in candidates if _is_file(location)]
    if not usable and required:
        problem = "no usable input file"
        hint = "names end in .csv, .gz, .zip, .zst or .parquet" if locations else "nothing is there by that name"
        raise InputError(
            f"[input] files: {problem} ({len(locations)} passed over); {hint}",
            private=f"{escape_text(', '.join(map(filesystem.format_location, patterns)), 500)}: {problem}; {hint}",
        )
    sources = (_input_file(location, f"input {i} of {len(usable)}") for i, location in enumerate(usable, 1))
    return InputListing(tuple(sources), len(locations) - len(usable))


def _has_input_extension(location: str) -> bool:
    name = location.rpartition("/")[2]
    return not name.startswith(".") and name.lower().endswith(EXTENSIONS)


def is_parquet(location: str) -> bool:
    """Return whether a file is Parquet, by its name."""
    return location.lower().endswith(PARQUET_EXTENSIONS)


def _is_file(location: str) -> bool:
    with filesystem.input_errors("[input] files: a named file", location):
        return filesystem.is_regular(location)


def _input_file(location: str, label: str) -> InputFile:
    with filesystem.input_errors(f"{label}:", location):
        status = filesystem.file_status(location)
        if not filesystem.is_url(location):
            with Path(location).open("rb"):  # report a missing permission now rather than in the middle
                pass
    return InputFile(location, label, status.size, status.modified_ns, status.touched_ns, status.fingerprint)


def natural_sort_key(name: str) -> list[tuple[int, int, str]]:
    """Return the sort key of the natural order of names, in which digits compare as numbers.

    >>> sorted(["chunk_10.csv", "chunk_2.csv"], key=natural_sort_key)
    ['chunk_2.csv', 'chunk_10.csv']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]


def read_head(source: InputFile) -> bytes:
    """Return the first bytes of a file, decompressed.

    Raises:
        InputError: as `open_decompressed`.
    """
    with open_decompressed(source) as stream:
        return bytes(stream.read(HEAD_BYTES))


@dataclass(frozen=True, slots=True)
class FileSegment:
    """A byte range of a file as stored, hashed independently of the other segments."""

    source: InputFile
    start: int


def file_segments(source: InputFile) -> list[FileSegment]:
    """Return the segments of a file, which can be hashed in parallel; an empty file has one.

    See `combine_digests` for the content hash that results.
    """
    return [FileSegment(source, start) for start in range(0, max(source.size, 1), SEGMENT_BYTES)]


def hash_segment(segment: FileSegment) -> bytes:
    """Return the SHA-256 of a segment, 32 bytes.

    Raises:
        InputError: the file cannot be read.
    """
    digest = hashlib.sha256()
    remaining = SEGMENT_BYTES
    location = segment.source.location
    with filesystem.input_errors(f"{segment.source.label}:", location), filesystem.open_at(location) as stream:
        stream.seek(segment.start)
        while remaining and (
            chunk := stream.read(min(remaining, _HASH_BYTES))
        ):  # small: hashed while the caches hold it
            digest.update(chunk)
            remaining -= len(chunk)
    return digest.digest()


def combine_digests(digests: Sequence[bytes]) -> str:
    """Return the content hash of a file: the SHA-256 of the hashes of its segments, in their order.

    Args:
        digests: result of `hash_segment` for each of `file_segments`.

    Returns:
        64 hexadecimal digits.
    """
    return hashlib.sha256(b"".join(digests)).hexdigest()
