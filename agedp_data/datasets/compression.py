"""Files as streams of UTF-8: .gz, .zip with one member, .zst, and other encodings.

Compressed files and those of another encoding can only be read from their beginning.
"""

from __future__ import annotations

import codecs
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
from agedp_data.datasets.table_text import text_decoder
from agedp_data.errors import InputError

UTF_8 = "utf-8"
_TRANSCODED_BYTES = 2**20
_SYSTEM_FILES = (".ds_store", "thumbs.db", "desktop.ini")
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

    @property
    def encoding(self) -> str:
        """Encoding of its text."""

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


def is_stream(source: DescribesErrors) -> bool:
    """Return whether a file can only be read from its beginning."""
    return is_compressed(source.location) or source.encoding != UTF_8


@contextmanager
def open_decompressed(source: DescribesErrors) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if it is compressed, and as UTF-8 if it is in another encoding.

    Bytes that are no text of the encoding become U+FFFD.

    Raises:
        InputError: truncated or damaged archive, unsupported compression, no permission.
    """
    compressed = is_compressed(source.location)
    if compressed and source.size == 0:  # gzip reads this as an empty file
        raise source.unreadable(_DAMAGED)
    try:
        with ExitStack() as stack:
            stream = _decompressed_stream(source, stack)
            yield stream if source.encoding == UTF_8 else cast(IO[bytes], _Utf8Stream(stream, source.encoding))
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


class _Utf8Stream:
    """A stream of text in another encoding, read as UTF-8 without a byte-order mark."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream, self._rest, self._is_first = stream, b"", True
        self._encoding = encoding
        self._decoder: codecs.IncrementalDecoder | None = None

    def read(self, size: int = -1) -> bytes:
        """Return at most so many bytes; all that follow if negative."""
        while size < 0 or len(self._rest) < size:
            raw = self._stream.read(_TRANSCODED_BYTES)
            self._decoder = self._decoder or text_decoder(self._encoding, raw)
            text = self._decoder.decode(raw, final=not raw)
            self._rest += text.removeprefix("\ufeff").encode() if self._is_first else text.encode()
            self._is_first &= not text
            if not raw:
                break
        taken, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return taken


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


def _is_of_system(name: str) -> bool:
    """Return whether a name in an archive is that of a file which an operating system adds unasked.

    >>> [_is_of_system(name) for name in ("__MACOSX/._a.csv", "in/.DS_Store", "Thumbs.db", "in/._a.csv", "in/a.csv")]
    [True, True, True, True, False]
    """
    base = name.rpartition("/")[2]
    return name.startswith("__MACOSX/") or base.startswith("._") or base.lower() in _SYSTEM_FILES


def _member(source: DescribesErrors, archive: zipfile.ZipFile) -> IO[bytes]:
    members = [member for member in archive.infolist() if not member.is_dir() and not _is_of_system(member.filename)]
    if len(members) != 1:
        raise source.unreadable(f"the archive holds {len(members)} files; one is expected; extract it first")
    return archive.open(members[0])
