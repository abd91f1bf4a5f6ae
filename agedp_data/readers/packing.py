"""Packed files: .gz, .zip with one member, .zst. They can only be read from their beginning, as a stream."""

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

from agedp_data.errors import InputError
from agedp_data.readers.storage import open_at

_PACKINGS = (".gz", ".zip", ".zst")
_DAMAGED = "the archive is cut off or damaged; fetch it again"


class DescribesErrors(Protocol):
    """A file that can say in one line what is wrong with it."""

    @property
    def location(self) -> str:
        """Path or URL."""

    @property
    def size(self) -> int:
        """Bytes as it lies there."""

    def error(self, what: str, *, private: str | None = None) -> InputError:
        """Return the error to raise."""

    def unreadable(self, what: str, *, private: str | None = None) -> InputError:
        """Return the error to raise about what the file contains."""


def is_packed(location: str) -> bool:
    """Return whether a file is packed, by its name."""
    return location.lower().endswith(_PACKINGS)


@contextmanager
def unpacked(source: DescribesErrors) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if it is packed, and say in one line what stands in the way.

    Raises:
        InputError: cut-off or damaged archive, a packing that cannot be opened here, no permission.
    """
    packed = is_packed(source.location)
    if packed and source.size == 0:  # gzip takes this for an empty file
        raise source.unreadable(_DAMAGED)
    try:
        with ExitStack() as stack:
            yield _opened(source, stack)
    except NotImplementedError:
        raise source.unreadable(
            "this kind of zip (deflate64?) cannot be read; unpack it and pack it again as .gz"
        ) from None
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, pa.ArrowException):
        if not packed:
            raise
        raise source.unreadable(_DAMAGED) from None
    except RuntimeError as error:  # zipfile's word for an encrypted member
        if not packed or "encrypted" not in str(error):
            raise
        raise source.unreadable("the archive is encrypted; unpack it first") from None
    except OSError as error:
        if packed and error.errno in (None, errno.EINVAL):  # a place before the archive's beginning
            raise source.unreadable(_DAMAGED) from None
        raise source.error(f"cannot be read ({error.strerror or type(error).__name__})") from None


def _opened(source: DescribesErrors, stack: ExitStack) -> IO[bytes]:
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
    members = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise source.unreadable(f"the archive holds {len(members)} files; one is expected, unpack it first")
    return archive.open(members[0])
