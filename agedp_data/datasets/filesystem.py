"""Access to input files, by path, URL or glob: on local disks, or on any file system that fsspec opens.

A URL is s3://, memory://, ... In a glob, `**` matches folders at any depth, including links to folders.

Decisions:

* Local files are opened by the operating system itself: its errors and its file times are exact.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape, glob, has_magic
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.table_text import text_decoder
from agedp_data.errors import InputError, Unavailable, UnreadableFile
from agedp_data.messages import escape_text

_ANY_DEPTH = re.compile(r"(?:^|(?<=/))\*\*(?:/|$)")


def expand_glob(pattern: str) -> Iterator[str]:
    """Yield the paths that a glob matches; `**` matches folders at any depth, and enters linked folders.

    Each folder under `**` is entered once, because links may be circular.
    """
    match = _ANY_DEPTH.search(pattern)
    if match is None:
        yield from glob(pattern)  # noqa: PTH207  (Path.glob accepts no absolute pattern)
        return
    before, after = pattern[: match.start()], pattern[match.end() :] or "*"
    entered: set[tuple[int, int]] = set()
    for top in glob(before) if before else ["."]:  # noqa: PTH207
        for folder in _folders(top, entered):
            yield from expand_glob(f"{escape(folder.rstrip('/'))}/{after}")


def _folders(top: str, entered: set[tuple[int, int]]) -> Iterator[str]:
    for folder, subfolders, _ in os.walk(top, onerror=_raise_error, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            subfolders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield folder


def _raise_error(error: OSError) -> None:
    raise error


URL_CHAIN: Final = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*://)")
"""Separator of chained URLs, of which each is inside the next, as in fsspec: zip://a.csv::https://host/a.zip."""
DELTA_LOG: Final = "_delta_log"
"""The folder that makes its parent a Delta table."""
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 10.0
"""Time limits of a service at a URL: for the connection, and for each answer [s]."""

SETTLING_NS: Final = 2 * 10**9
"""A file that changed so shortly before it was listed may change again without a newer time [ns]."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """Size and times of a file as its file system reports them.

    `touched_ns` is the latest of its times; `fingerprint` is a text that changes whenever the content may have changed.
    """

    size: int
    modified_ns: int
    touched_ns: int
    fingerprint: str


def is_url(location: str) -> bool:
    """Return whether a location is a URL, not a path.

    >>> is_url("s3://meters/2013.csv"), is_url("/srv/meters/2013.csv")
    (True, False)
    """
    return "://" in location


def canonical_location(location: str) -> str:
    """Return the canonical spelling of a location: links and `..` resolved, a URL as its file system writes it.

    Use it to recognise one file under two names.
    """
    if not is_url(location):
        return os.path.realpath(location)  # Path.resolve raises for circular links
    system, path = system_at(location)
    return str(system.unstrip_protocol(path))


def canonical_locations(locations: Sequence[str]) -> list[str]:
    """Return the canonical spelling of each location; the links of a folder with many files are resolved once."""
    folders: dict[str, str] = {}
    canonical = []
    for location in locations:
        folder, name = os.path.split(location)
        if is_url(location) or name in ("", ".", "..") or os.path.islink(location):  # noqa: PTH114  (of many names)
            canonical.append(canonical_location(location))
            continue
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        canonical.append(f"{folders[folder].rstrip('/')}/{name}")
    return canonical


def system_at(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it.

    The time limits of this module apply unless fsspec's configuration has settings for the protocol.
    """
    import fsspec  # noqa: PLC0415  (slow to import, and only URLs need it)

    protocol = url.partition("://")[0]
    options = {} if protocol in fsspec.config.conf else _timeout_options(protocol)
    system, path = fsspec.core.url_to_fs(url, **options)
    return system, str(path)


def _fresh_system_at(url: str) -> tuple[Any, str]:
    """Return the file system of a URL without its cached listings, and the path in it."""
    system, path = system_at(url)
    system.invalidate_cache()
    return system, path


def _timeout_options(protocol: str) -> dict[str, Any]:
    """Return the fsspec options that keep a silent service from blocking, or being retried, for minutes."""
    if protocol == "s3":  # s3fs tries five times; each try would be five of botocore's
        seconds = {"connect_timeout": CONNECT_SECONDS, "read_timeout": ANSWER_SECONDS}
        return {"config_kwargs": {**seconds, "retries": {"total_max_attempts": 1}}}
    if protocol in ("http", "https"):
        from aiohttp import ClientTimeout  # noqa: PLC0415  (comes with fsspec's own http)

        return {"client_kwargs": {"timeout": ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=ANSWER_SECONDS)}}
    return {}


def list_locations(pattern: str) -> list[str]:
    """Return the files that a path, a folder, a glob or a URL names, unsorted; for a folder all files in it.

    Raises:
        InputError: a file or folder that is named without a glob does not exist or cannot be opened.
    """
    label = "a named URL" if is_url(pattern) else "a named folder"
    with input_errors(f"[input] files: {label}", pattern):
        locations = _list_urls(pattern) if is_url(pattern) else _list_paths(pattern)
    if locations is None:
        private = f"{format_location(pattern)}: does not exist"
        raise InputError("[input] files: a named file does not exist", private=private)
    return locations


def _list_paths(pattern: str) -> list[str] | None:
    path = Path(pattern)
    if path.is_dir():
        return list(_files_of_folder(path))
    if path.exists():  # before globbing: a name may contain brackets
        return [pattern]
    if has_magic(pattern):
        return [name for name in expand_glob(pattern) if not os.path.isdir(name)]  # noqa: PTH112
    return None


def _list_urls(pattern: str) -> list[str] | None:
    system, path = _fresh_system_at(pattern)
    if has_magic(path):
        names = [name for name, info in system.glob(path, detail=True).items() if info["type"] == "file"]
    elif system.isdir(path):
        names = list(_urls_of_folder(system, path))
    elif system.exists(path):
        names = [path]
    else:
        return None
    return [system.unstrip_protocol(name) for name in names]


def _files_of_folder(folder: Path) -> Iterator[str]:
    """Yield the files of a folder, and those of the folders `column=value` in it, as Hive and Spark write them."""
    for entry in folder.iterdir():
        if not entry.is_dir():
            yield str(entry)
        elif _is_part(entry.name, str(folder)):
            yield from _files_of_folder(entry)


def _urls_of_folder(system: Any, folder: str) -> Iterator[str]:  # noqa: ANN401  (fsspec is untyped)
    for info in system.ls(folder, detail=True):
        if info["type"] == "file":
            yield str(info["name"])
        elif _is_part(str(info["name"]).rstrip("/").rpartition("/")[2], folder):
            yield from _urls_of_folder(system, str(info["name"]))


def _is_part(name: str, folder: str) -> bool:
    """Return whether a folder in the named one has some of its files; refuse that of a Delta table.

    The folder of a Delta table also holds files with deleted and replaced rows.
    """
    if name == DELTA_LOG:
        problem = "is a Delta table, whose folder also holds deleted rows; pass it to the Python API as "
        problem += "deltalake.DeltaTable(...), or write its rows as Parquet"
        private = f"{format_location(folder)}: {problem}"
        raise InputError(f"[input] files: a named folder {problem}", private=private)
    return "=" in name


def file_status(location: str) -> FileStatus:
    """Return the status of a file without opening it.

    Raises:
        OSError: the file does not exist or its folder cannot be read; a service at a URL may raise other errors.
    """
    if not is_url(location):
        status = os.stat(location)  # noqa: PTH116  (of thousands of files)
        touched_ns = max(status.st_mtime_ns, status.st_ctime_ns)
        return FileStatus(status.st_size, status.st_mtime_ns, touched_ns, local_fingerprint(status))
    system, path = _fresh_system_at(location)
    info = system.info(path)
    modified = next((info[key] for key in ("LastModified", "last_modified", "mtime", "created") if info.get(key)), 0)
    modified_ns = _ns(modified)
    fingerprint = f"{info['size']} {modified_ns} {info.get('ETag', '')}"
    return FileStatus(int(info["size"]), modified_ns, modified_ns, fingerprint)


def local_fingerprint(status: os.stat_result) -> str:
    """Return a text that changes whenever the content of a local file may have changed."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _ns(modified: Any) -> int:  # noqa: ANN401  (every file system has its own)
    if isinstance(modified, datetime):
        return int((modified if modified.tzinfo else modified.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000
    return int(float(modified) * 1e6) * 1000 if isinstance(modified, int | float) else 0


def is_regular(location: str) -> bool:
    """Return whether this is a regular file; pipes, sockets and devices might never end."""
    return is_url(location) or stat.S_ISREG(os.stat(location).st_mode)  # noqa: PTH116  (of thousands of files)


def exists(location: str) -> bool:
    """Return whether a file exists at a path or URL; a service is asked anew, without cached listings."""
    if not is_url(location):
        return Path(location).exists()
    system, path = _fresh_system_at(location)
    return bool(system.exists(path))


def open_at(location: str) -> IO[bytes]:
    """Open a file at a path or URL for reading, as a seekable stream; the caller closes it."""
    if not is_url(location):
        return Path(location).open("rb")
    system, path = system_at(location)
    return system.open(path, "rb", cache_type="none")  # type: ignore[no-any-return]


def read_bytes(location: str, label: str) -> bytes:
    """Return the bytes of a small file at a URL; `label` names it in messages.

    Raises:
        InputError: it cannot be read.
    """
    with input_errors(f"{label}:", location):
        system, path = _fresh_system_at(location)
        return bytes(system.cat_file(path))


def format_path(location: str) -> str:
    """Return a path relative to the current folder if it is below it; a URL without user and query."""
    path = Path(location)
    is_below = not is_url(location) and path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd())) if is_below else format_location(location)


def format_location(location: str) -> str:
    """Return a location for messages, without user and query of a URL: they may be credentials.

    >>> format_location("https://me@host/roster.csv?sig=aXz"), format_location("/srv/a?b.csv")
    ('https://host/roster.csv', '/srv/a?b.csv')
    >>> format_location("zip://roster.csv::https://me@host/a.zip?sig=aXz")
    'zip://roster.csv::https://host/a.zip'
    """
    if not is_url(location):
        return escape_text(location)
    return escape_text("::".join(map(_without_credentials, URL_CHAIN.split(location))))


def _without_credentials(url: str) -> str:
    protocol, _, rest = url.partition("://")
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{protocol}://{host.rpartition('@')[2]}{slash}{path}"


@contextmanager
def input_errors(label: str, location: str) -> Iterator[None]:
    """Turn errors of a disk or a service inside the `with` block into one-line errors.

    Args:
        label: public name of the file or folder, such as "input 12 of 40:".
        location: path or URL, for the private text only.

    Raises:
        Unavailable: the disk or service may answer later.
        InputError: any other error of the disk or service, or a package for the protocol is missing.
    """
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        protocol = location.partition("://")[0]
        problem = f"{protocol}:// needs a package that is not installed ({error.name or 'see its documentation'})"
        hint = "; for s3:// install agedp with its extra s3" if protocol == "s3" else ""
        private = f"{format_location(location)}: {problem}{hint}"
        raise InputError(f"{label.rstrip(':')}: {problem}{hint}", private=private) from None
    except Exception as error:
        if not (is_url(location) or isinstance(error, OSError)):
            raise
        # the message of a service may quote names; the class names the kind of error
        number = error.errno if isinstance(error, OSError) else None  # a service may put anything there
        text = os.strerror(number) if isinstance(number, int) and number else type(error).__name__
        problem = f"cannot be opened ({text})"
        kind = Unavailable if _is_transient(error) else InputError
        raise kind(f"{label} {problem}", private=f"{format_location(location)}: {problem}") from None


_TRANSIENT_CODES: Final = (
    "EAGAIN", "EBUSY", "EIO", "ESTALE", "ETIMEDOUT", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH",
)  # fmt: skip
_TRANSIENT_NUMBERS: Final = frozenset(getattr(errno, code) for code in _TRANSIENT_CODES)
_TRANSIENT_NAMES: Final = frozenset(
    ("ClientConnectionError", "ServerTimeoutError", "EndpointConnectionError", "HTTPClientError", "SlowDown")
)
"""Errors of aiohttp and botocore, which are not imported for their names."""


def _is_transient(error: Exception) -> bool:
    """Return whether the same call may succeed later: a silent service or disk, not a missing file or permission."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, OSError) and error.errno in _TRANSIENT_NUMBERS:
        return True
    return any(kind.__name__ in _TRANSIENT_NAMES for kind in type(error).__mro__)


# --------------------------------------------------------------------------------------------------
# Files as streams of UTF-8: .gz, .zip with one member, .zst, and other encodings.
#
# Compressed files and those of another encoding can only be read from their beginning.
# --------------------------------------------------------------------------------------------------

UTF_8 = "utf-8"
_TRANSCODED_BYTES = 2**20
_SYSTEM_FILES = (".ds_store", "thumbs.db", "desktop.ini")
_EXTENSIONS = (".gz", ".zip", ".zst")
_DAMAGED = "the archive is cut off or damaged; fetch it again"

NO_MEMORY = (
    "needs more memory than this process can have; a small compressed file can expand to any size. Check how large it "
    "becomes, or lower [engine] block_mib or workers"
)


def is_compressed(location: str) -> bool:
    """Return whether a file is compressed, by its name.

    >>> is_compressed("chunk_1.csv.GZ"), is_compressed("chunk_1.csv")
    (True, False)
    """
    return location.lower().endswith(_EXTENSIONS)


def is_stream(source: InputFile) -> bool:
    """Return whether a file can only be read from its beginning."""
    return is_compressed(source.location) or source.encoding != UTF_8


@contextmanager
def open_decompressed(source: InputFile) -> Iterator[IO[bytes]]:
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
        problem = "this kind of zip (deflate64?) cannot be read; extract it and compress it again as .gz"
        raise source.unreadable(problem) from None
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


def _decompressed_stream(source: InputFile, stack: ExitStack) -> IO[bytes]:
    stream = stack.enter_context(open_at(source.location))
    match source.location.lower().rpartition(".")[2]:
        case "gz":
            return cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=stream)))
        case "zip":
            archive = stack.enter_context(zipfile.ZipFile(stream))
            members = [of for of in archive.infolist() if not of.is_dir() and not _is_of_system(of.filename)]
            if len(members) != 1:
                problem = f"the archive holds {len(members)} files; one is expected; extract it first"
                raise source.unreadable(problem)
            return stack.enter_context(archive.open(members[0]))
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


# --------------------------------------------------------------------------------------------------
# Input files: their list, their order and the hashes of their content.
#
# Only the private text of a message names a file: file names can be household ids.
# --------------------------------------------------------------------------------------------------

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
        return InputError(f"{self.label}: {problem}", private=f"{format_location(self.location)}: {private or problem}")

    def unreadable(self, problem: str, *, private: str | None = None) -> UnreadableFile:
        """Return the error to raise about the content of the file; texts as in `error`."""
        error = self.error(problem, private=private)
        return UnreadableFile(str(error), private=error.private)

    def check_unchanged(self) -> None:
        """Check that the file has not changed since it was listed.

        Raises:
            InputError: it has.
        """
        with input_errors(f"{self.label}:", self.location):
            current = file_status(self.location)
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
    locations = sorted({location for pattern in patterns for location in list_locations(pattern)}, key=natural_sort_key)
    names = ((location, location.rpartition("/")[2]) for location in locations)
    named = [place for place, name in names if not name.startswith(".") and name.lower().endswith(EXTENSIONS)]
    excluded = {canonical_location(location) for location in excluding}
    canonical = canonical_locations(named)
    candidates = [location for location, address in zip(named, canonical, strict=True) if address not in excluded]
    usable = [location for location in candidates if _is_file(location)]
    if not usable and required:
        problem = "no usable input file"
        hint = "names end in .csv, .gz, .zip, .zst or .parquet" if locations else "nothing is there by that name"
        raise InputError(
            f"[input] files: {problem} ({len(locations)} passed over); {hint}",
            private=f"{escape_text(', '.join(map(format_location, patterns)), 500)}: {problem}; {hint}",
        )
    sources = (_input_file(location, f"input {i} of {len(usable)}") for i, location in enumerate(usable, 1))
    return InputListing(tuple(sources), len(locations) - len(usable))


def is_parquet(location: str) -> bool:
    """Return whether a file is Parquet, by its name."""
    return location.lower().endswith(PARQUET_EXTENSIONS)


def _is_file(location: str) -> bool:
    with input_errors("[input] files: a named file", location):
        return is_regular(location)


def _input_file(location: str, label: str) -> InputFile:
    with input_errors(f"{label}:", location):
        status = file_status(location)
        if not is_url(location):
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
    with input_errors(f"{segment.source.label}:", location), open_at(location) as stream:
        stream.seek(segment.start)
        while remaining and (chunk := stream.read(min(remaining, _HASH_BYTES))):  # hashed while the caches hold it
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


# --------------------------------------------------------------------------------------------------
# Files as chunks of whole lines: files are split at line ends, and results never depend on where.
# --------------------------------------------------------------------------------------------------

_WINDOW = 4 * 1024
_STEP = 8 * 1024 * 1024
_MAX_LINE_BYTES = LONGEST_LINE + len(b"\r\n")
"""Bytes that are passed on of a line that is too long: enough to recognise it as too long."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes [start, stop) of one file: whole lines, parsed independently of the other chunks.

    `number` counts the chunks of a file from 0; `stop` None means the end, for a compressed file.
    """

    source: InputFile
    number: int
    start: int
    stop: int | None


def split_into_chunks(
    source: InputFile, *, start: int, chunk_bytes: int, block_start: bytes = b"\n"
) -> tuple[Chunk, ...]:
    """Split a file from `start` (its first data row) into chunks of whole lines of at least `chunk_bytes`.

    Each but the first begins after the line end of a `block_start`, such as a line end and the first cell of a block.

    A compressed file is one chunk, as is one of another encoding: it can only be read from its beginning.
    """
    if is_stream(source):
        return (Chunk(source, 0, start, None),)
    with open_decompressed(source) as stream:
        ends = [*_line_ends(stream, start, source.size, chunk_bytes, block_start), source.size]
    starts = [start, *ends[:-1]]
    pairs = [(a, b) for a, b in zip(starts, ends, strict=True) if b > a]
    return tuple(Chunk(source, i, a, b) for i, (a, b) in enumerate(pairs))


def read_lines(chunk: Chunk, *, batch_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a chunk in batches of about `batch_bytes` bytes, each of whole lines.

    A line longer than `LONGEST_LINE` is truncated, so that no line needs more memory than that.

    Raises:
        InputError: the file cannot be read.
    """
    with open_decompressed(chunk.source) as stream:
        if is_stream(chunk.source):
            yield from _read_stream(stream, chunk.start, batch_bytes)
        else:
            yield from _read_seekable(stream, chunk, batch_bytes)


def _read_stream(stream: IO[bytes], start: int, batch_bytes: int) -> Iterator[bytes]:
    while start > 0 and (skipped := stream.read(min(start, _STEP))):
        start -= len(skipped)
    rest = b""
    while data := stream.read(batch_bytes):
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end : end + _MAX_LINE_BYTES]
    if rest:
        yield rest


def _read_seekable(stream: IO[bytes], chunk: Chunk, batch_bytes: int) -> Iterator[bytes]:
    """Yield batches that are read at once and never copied: their ends are searched first."""
    stop = chunk.source.size if chunk.stop is None else chunk.stop
    start, max_bytes = chunk.start, batch_bytes + _MAX_LINE_BYTES
    for end in (*_line_ends(stream, start, stop, batch_bytes), stop):
        stream.seek(start)
        data = stream.read(min(end - start, max_bytes))
        if end - start > max_bytes:  # its last line is too long: it continues where the batch could have ended
            data = data[: data.rfind(b"\n") + 1 + _MAX_LINE_BYTES] + b"\n"
        yield data
        start = end


def _line_ends(stream: IO[bytes], start: int, stop: int, chunk_bytes: int, block_start: bytes = b"\n") -> Iterator[int]:
    """Yield positions after line ends that begin `block_start`, before `stop` and at least `chunk_bytes` apart."""
    position, kept = start + chunk_bytes, len(block_start) - 1
    while position < stop:
        stream.seek(position - 1)
        window, end = b"", -1
        while end < 0 and (following := stream.read(_WINDOW)):
            window = window[max(len(window) - kept, 0) :] + following  # it may begin in one window and end in the next
            end = window.find(block_start)
            position += len(following) if end < 0 else end + len(following) - len(window)
        if end < 0 or position >= stop:
            return
        yield position
        position += chunk_bytes
