"""Access to input files, by path, URL or glob: on local disks, or on any file system that fsspec opens.

A URL is s3://, memory://, ... In a glob, `**` matches folders at any depth, including links to folders.

Decisions:

* Local files are opened by the operating system itself: its errors and its file times are exact.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import escape, glob, has_magic
from pathlib import Path
from typing import IO, Any, Final

from agedp_data.errors import InputError, Unavailable
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
        raise InputError(
            "[input] files: a named file does not exist", private=f"{format_location(pattern)}: does not exist"
        )
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
    system, path = system_at(pattern)
    system.invalidate_cache()
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
        elif "=" in entry.name:
            yield from _files_of_folder(entry)
        elif entry.name == DELTA_LOG:
            raise _delta_error(str(folder))


def _urls_of_folder(system: Any, folder: str) -> Iterator[str]:  # noqa: ANN401  (fsspec is untyped)
    for info in system.ls(folder, detail=True):
        name = str(info["name"]).rstrip("/").rpartition("/")[2]
        if info["type"] == "file":
            yield str(info["name"])
        elif "=" in name:
            yield from _urls_of_folder(system, str(info["name"]))
        elif name == DELTA_LOG:
            raise _delta_error(folder)


def _delta_error(folder: str) -> InputError:
    """Return the error about a Delta table: its folder also holds files with deleted and replaced rows."""
    problem = "is a Delta table, whose folder also holds deleted rows"
    advice = "pass it to the Python API as deltalake.DeltaTable(...), or write its rows as Parquet"
    return InputError(
        f"[input] files: a named folder {problem}; {advice}", private=f"{format_location(folder)}: {problem}; {advice}"
    )


def file_status(location: str) -> FileStatus:
    """Return the status of a file without opening it.

    Raises:
        OSError: the file does not exist or its folder cannot be read; a service at a URL may raise other errors.
    """
    if not is_url(location):
        stat_result = os.stat(location)  # noqa: PTH116  (of thousands of files)
        return FileStatus(
            stat_result.st_size,
            stat_result.st_mtime_ns,
            max(stat_result.st_mtime_ns, stat_result.st_ctime_ns),
            local_fingerprint(stat_result),
        )
    system, path = system_at(location)
    system.invalidate_cache()
    info = system.info(path)
    modified = next((info[key] for key in ("LastModified", "last_modified", "mtime", "created") if info.get(key)), 0)
    modified_ns = _ns(modified)
    return FileStatus(
        int(info["size"]), modified_ns, modified_ns, f"{info['size']} {modified_ns} {info.get('ETag', '')}"
    )


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
    system, path = system_at(location)
    system.invalidate_cache()
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
        system, path = system_at(location)
        system.invalidate_cache()
        return bytes(system.cat_file(path))


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
        raise InputError(
            f"{label.rstrip(':')}: {problem}{hint}", private=f"{format_location(location)}: {problem}{hint}"
        ) from None
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
