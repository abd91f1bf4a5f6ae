"""Input files as bytes: which ones, in what order, unpacked, cut at line ends, named by content.

A block is a range of whole CSV rows. A line end inside quotes does not end a row, so in a file with quotes
the cuts are made where an even number of quotes precedes; where a quote opens elsewhere than at the start of
a field, parity proves nothing and the file is read as one block. Results therefore never depend on the block
size.

Messages name a file in their private text only: file names can be household ids.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from agedp_data.errors import InputError
from agedp_data.readers.globbing import globbed
from agedp_data.shown import shown

EXTENSIONS = (".csv", ".csv.gz", ".csv.zip", ".csv.zst", ".gz", ".zip", ".zst")
HEAD_BYTES = 64 * 1024
_CHUNK = 8 * 1024 * 1024
_QUOTE, _LF = ord('"'), ord("\n")
_BEFORE_QUOTE = np.isin(np.arange(256), list(b',\r\n"'))


@dataclass(frozen=True, slots=True)
class Source:
    """One input file; `label` ("input 12 of 40") is all that may leave the house."""

    path: Path
    label: str
    size: int
    modified_ns: int

    def error(self, what: str, *, private: str | None = None) -> InputError:
        """Return the error to raise about this file; its name and what `private` quotes stay in the private text."""
        return InputError(f"{self.label}: {what}", private=f"{shown(str(self.path))}: {private or what}")

    def check_unchanged(self) -> None:
        """Raise InputError if the file is no longer the one that was listed."""
        try:
            now = self.path.stat()
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})") from None
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified_ns):
            raise self.error("changed while it was read; run again when the delivery is complete")


@dataclass(frozen=True, slots=True)
class Listing:
    """The input files in reading order, and how many names were passed over."""

    sources: tuple[Source, ...]
    ignored: int


def list_sources(patterns: Sequence[str], *, required: bool = True) -> Listing:
    """Return the files that the globs name, numerically ordered; hidden and unknown ones are counted.

    Raises:
        InputError: nothing usable, or a file that cannot be opened.
    """
    found = {path for pattern in patterns for path in _named(pattern)}
    paths = sorted(found, key=numeric)
    usable = [p for p in paths if _is_file(p) and _has_known_name(p)]
    if not usable and required:
        raise InputError(
            f"[input] files: no usable input file ({len(paths)} passed over); names end in .csv, .gz, .zip or .zst",
            private=f"{shown(', '.join(patterns), 500)}: no usable input file; names end in .csv, .gz, .zip or .zst",
        )
    return Listing(
        tuple(_source(path, f"input {i} of {len(usable)}") for i, path in enumerate(usable, 1)),
        sum(not path.is_dir() for path in paths) - len(usable),
    )


def _has_known_name(path: Path) -> bool:
    return not path.name.startswith(".") and path.name.lower().endswith(EXTENSIONS)


def _is_file(path: Path) -> bool:
    """Return whether this is a file to be read; pipes, sockets and devices might never end."""
    try:
        status = path.stat()
    except OSError as error:
        if not _has_known_name(path):
            return False
        what = f"cannot be opened ({error.strerror})"
        raise InputError(f"[input] files: a named file {what}", private=f"{shown(str(path))}: {what}") from None
    return stat.S_ISREG(status.st_mode)


def _named(pattern: str) -> Iterable[Path]:
    path = Path(pattern)
    try:
        if path.is_dir():
            return list(path.iterdir())
        if path.exists():  # before globbing: a name may hold brackets
            return [path]
        if has_magic(pattern):
            return [Path(name) for name in globbed(pattern)]
    except OSError as error:
        what, where = f"cannot be opened ({error.strerror})", shown(str(error.filename or path))
        raise InputError(f"[input] files: a named folder {what}", private=f"{where}: {what}") from None
    raise InputError("[input] files: a named file does not exist", private=f"{shown(str(path))}: does not exist")


def _source(path: Path, label: str) -> Source:
    try:
        status = path.stat()
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(
            f"{label}: cannot be opened ({error.strerror})",
            private=f"{shown(str(path))}: cannot be opened ({error.strerror})",
        ) from None
    return Source(path, label, status.st_size, status.st_mtime_ns)


def numeric(path: Path | str) -> list[tuple[int, int, str]]:
    """Return what sorts names as people do: chunk_2 before chunk_10."""
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def content_id(source: Source) -> str:
    """Return the SHA-256 of the file's bytes as they lie there (packed if packed)."""
    digest = hashlib.sha256()
    try:
        with source.path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise source.error(f"cannot be read ({error.strerror})") from None
    return digest.hexdigest()


def _packed(source: Source) -> str:
    return source.path.suffix.lower() if source.path.suffix.lower() in (".gz", ".zip", ".zst") else ""


def _open(source: Source) -> IO[bytes]:
    match _packed(source):
        case ".gz":
            return gzip.GzipFile(source.path)  # type: ignore[return-value]  # it is one in all but name
        case ".zip":
            return _open_zip(source)
        case ".zst":
            return pa.CompressedInputStream(pa.OSFile(os.fspath(source.path)), "zstd")  # type: ignore[no-any-return]
        case _:
            return source.path.open("rb")


def _open_zip(source: Source) -> IO[bytes]:
    archive = zipfile.ZipFile(source.path)
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise source.error(f"the archive holds {len(members)} files; one is expected, unpack it first")
    return archive.open(members[0])


def read_bytes(source: Source, start: int = 0, stop: int | None = None) -> bytes:
    """Return bytes [start, stop) of the unpacked file.

    Raises:
        InputError: cut-off or damaged archive, a packing that cannot be opened here, no permission.
    """
    length = -1 if stop is None else stop - start
    if _packed(source) and source.size == 0:  # gzip takes this for an empty file
        raise source.error("the archive is cut off or damaged; fetch it again")
    try:
        with _open(source) as stream:
            if start and not _packed(source):
                stream.seek(start)
            elif start:
                _skip(stream, start)
            return bytes(stream.read() if length < 0 else stream.read(length))
    except NotImplementedError:
        raise source.error("this kind of zip (deflate64?) cannot be read; unpack it and pack it again as .gz") from None
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, pa.ArrowException):
        raise source.error("the archive is cut off or damaged; fetch it again") from None
    except RuntimeError:  # zipfile's word for an encrypted member
        raise source.error("the archive is encrypted; unpack it first") from None
    except OSError as error:
        if _packed(source) and error.errno in (None, errno.EINVAL):  # a place before the archive's beginning
            raise source.error("the archive is cut off or damaged; fetch it again") from None
        raise source.error(f"cannot be read ({error.strerror or type(error).__name__})") from None


def _skip(stream: IO[bytes], count: int) -> None:
    while count > 0 and (chunk := stream.read(min(count, _CHUNK))):
        count -= len(chunk)


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes [start, stop) of one file, whole rows; `number` counts the blocks of the file from 0."""

    source: Source
    number: int
    start: int
    stop: int | None


def cut(source: Source, *, start: int, block_bytes: int) -> tuple[Block, ...]:
    """Cut a file from `start` (its first data row) into blocks of whole rows.

    A packed file is one block: it can only be read from its beginning.
    """
    if _packed(source):
        return (Block(source, 0, start, None),)
    ends = [*_row_ends(source, start, block_bytes), source.size]
    starts = [start, *ends[:-1]]
    return tuple(
        Block(source, i, a, b) for i, (a, b) in enumerate((a, b) for a, b in zip(starts, ends, strict=True) if b > a)
    )


def _row_ends(source: Source, start: int, block_bytes: int) -> Iterator[int]:
    """Yield positions behind line ends, at least `block_bytes` apart, at which a row surely ends."""
    quoted = _quotes(source, start)
    if quoted is None:
        return
    last, parity = start, 0
    for offset, chunk in _chunks(source, start):
        array = np.frombuffer(chunk, np.uint8)
        ends = np.flatnonzero(array == _LF)
        if quoted:
            quotes_before = np.searchsorted(np.flatnonzero(array == _QUOTE), ends)
            ends = ends[(quotes_before + parity) % 2 == 0]
            parity += chunk.count(b'"')
        for end in _spaced(ends + offset + 1, last, block_bytes):
            last = end
            yield end


def _spaced(ends: np.ndarray[tuple[int], np.dtype[np.int64]], last: int, least: int) -> Iterator[int]:
    while (i := int(np.searchsorted(ends, last + least))) < len(ends):
        last = int(ends[i])
        yield last


def _quotes(source: Source, start: int) -> bool | None:
    """Return whether the file has quotes; None if one opens elsewhere than at the start of a field.

    A field in quotes may end anywhere: behind its closing quote none opens before the next field does.
    """
    parity, before, any_quote = 0, _LF, False
    for _, chunk in _chunks(source, start):
        if b'"' in chunk:
            array = np.frombuffer(chunk, np.uint8)
            at = np.flatnonzero(array == _QUOTE)
            opens = (np.arange(len(at)) + parity) % 2 == 0
            if not _BEFORE_QUOTE[np.where(at > 0, array[at - 1], np.uint8(before))[opens]].all():
                return None
            any_quote, parity = True, (parity + len(at)) % 2
        before = chunk[-1]
    return any_quote


def _chunks(source: Source, start: int) -> Iterator[tuple[int, bytes]]:
    try:
        with source.path.open("rb") as stream:
            stream.seek(start)
            offset = start
            while chunk := stream.read(_CHUNK):
                yield offset, chunk
                offset += len(chunk)
    except OSError as error:
        raise source.error(f"cannot be read ({error.strerror})") from None
