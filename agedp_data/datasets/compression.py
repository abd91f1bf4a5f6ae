"""Compressed files: .gz, .zip with one member, .zst. They can only be read from their beginning, as a stream."""

from __future__ import annotations

import errno
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Protocol, cast

import pyarrow as pa

from agedp_data.datasets.filesystem import open_at
from agedp_data.errors import InputError

_EXTENSIONS = (".gz", ".zip", ".zst")
_DAMAGED = "the archive is cut off or damaged; fetch it again"

NO_MEMORY = (
    "needs more memory than this process can have; a small compressed file can expand to any size. Check how large it "
    "becomes, or lower [engine] block_mib or workers"
)


class DescribesErrors(Protocol):
    """A file that can return one-line errors about itself."""

    @property
    def location(self) -> str:
        """Path or URL."""

    @property
    def size(self) -> int:
        """Bytes of the file as stored."""

    def error(self, problem: str, *, private: str | None = None) -> InputError:
        """Return the error to raise."""

    def unreadable(self, problem: str, *, private: str | None = None) -> InputError:
        """Return the error to raise about the content of the file."""


def is_compressed(location: str) -> bool:
    """Return whether a file is compressed, by its name.

    >>> is_compressed("chunk_1.csv.GZ"), is_compressed("chunk_1.csv")
    (True, False)
    """
    return location.lower().endswith(_EXTENSIONS)


@contextmanager
def open_decompressed(source: DescribesErrors) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if it is compressed.

    Raises:
        InputError: truncated or damaged archive, unsupported compression, no permission.
    """
    compressed = is_compressed(source.location)
    if compressed and source.size == 0:  # gzip reads this as an empty file
        raise source.unreadable(_DAMAGED)
    try:
        with ExitStack() as stack:
            yield _decompressed_stream(source, stack)
    except NotImplementedError:
        raise source.unreadable(
            "this kind of zip (deflate64?) cannot be read; extract it and compress it again as .gz"
        ) from None
    except MemoryError:  # before ArrowException, which Arrow's is as well
        raise source.error(NO_MEMORY) from None
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, pa.ArrowException):
        if not compressed:
            raise
        raise source.unreadable(_DAMAGED) from None
    except RuntimeError as error:  # zipfile raises it for an encrypted member
        if not compressed or "encrypted" not in str(error):
            raise
        raise source.unreadable("the archive is encrypted; extract it first") from None
    except OSError as error:
        if compressed and error.errno in (None, errno.EINVAL):  # an offset before the archive's beginning
            raise source.unreadable(_DAMAGED) from None
        raise source.error(f"cannot be read ({error.strerror or type(error).__name__})") from None


def _decompressed_stream(source: DescribesErrors, stack: ExitStack) -> IO[bytes]:
    stream = stack.enter_context(open_at(source.location))
    match source.location.lower().rpartition(".")[2]:
        case "gz":
            return cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=stream)))
        case "zip":
            return stack.enter_context(_member(source, stack.enter_context(zipfile.ZipFile(stream))))
        case "zst":
            return stack.enter_context(pa.CompressedInputStream(pa.PythonFile(stream), "zstd"))
        case _:
            return stream


def _member(source: DescribesErrors, archive: zipfile.ZipFile) -> IO[bytes]:
    members = [
        member for member in archive.infolist() if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if len(members) != 1:
        raise source.unreadable(f"the archive holds {len(members)} files; one is expected; extract it first")
    return archive.open(members[0])
