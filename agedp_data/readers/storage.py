"""Where what is read lies: this machine's disks, or anything that fsspec opens by URL (s3://, memory://, ...).

Local names go through the system itself: its errors are exact, and what tells that a file was touched is too.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import has_magic
from pathlib import Path
from typing import IO, Any, Final

import fsspec

from agedp_data.errors import InputError, Unavailable
from agedp_data.readers.globbing import globbed
from agedp_data.shown import escape_text

LINK: Final = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*://)")
"""What joins URLs of which one lies in what the next one names, as fsspec has it: zip://a.csv::https://host/a.zip."""
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 10.0
"""How long a service by URL may take for a connection, and be silent while it is asked for something."""


@dataclass(frozen=True, slots=True)
class Status:
    """Size and times of a file (`touched_ns`: the last of all), and a text that changes whenever its content may."""

    size: int
    modified_ns: int
    touched_ns: int
    stamp: str


def is_url(location: str) -> bool:
    """Return whether a location is a URL."""
    return "://" in location


def place(location: str) -> str:
    """Return the one text of a place that has several: links and `..` followed, a URL as its file system writes it."""
    if not is_url(location):
        return os.path.realpath(location)  # Path.resolve raises where links go round in a circle
    system, path = system_at(location)
    return str(system.unstrip_protocol(path))


def system_at(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it; it waits as told here, or as fsspec is configured."""
    protocol = url.partition("://")[0]
    told = {} if protocol in fsspec.config.conf else _patience(protocol)
    system, path = fsspec.core.url_to_fs(url, **told)
    return system, str(path)


def _patience(protocol: str) -> dict[str, Any]:
    """Return what keeps a service that does not answer from being waited for, and asked again, for minutes."""
    if protocol == "s3":  # s3fs tries five times; each of these would be botocore's five
        seconds = {"connect_timeout": CONNECT_SECONDS, "read_timeout": ANSWER_SECONDS}
        return {"config_kwargs": {**seconds, "retries": {"total_max_attempts": 1}}}
    if protocol in ("http", "https"):
        from aiohttp import ClientTimeout  # noqa: PLC0415  (comes with fsspec's own http)

        return {"client_kwargs": {"timeout": ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=ANSWER_SECONDS)}}
    return {}


def named(pattern: str) -> list[str]:
    """Return what a path, a folder, a glob or a URL names, but for folders, unsorted; all that is in it if a folder.

    Raises:
        InputError: a file or folder that is named without a glob and is not there, or cannot be opened.
    """
    what = "a named URL" if is_url(pattern) else "a named folder"
    with answered(f"[input] files: {what}", pattern):
        found = _named_by_url(pattern) if is_url(pattern) else _named(pattern)
    if found is None:
        raise InputError("[input] files: a named file does not exist", private=f"{told(pattern)}: does not exist")
    return found


def _named(pattern: str) -> list[str] | None:
    path = Path(pattern)
    if path.is_dir():
        return [str(one) for one in path.iterdir() if not one.is_dir()]
    if path.exists():  # before globbing: a name may hold brackets
        return [pattern]
    if has_magic(pattern):
        return [name for name in globbed(pattern) if not Path(name).is_dir()]
    return None


def _named_by_url(pattern: str) -> list[str] | None:
    system, path = system_at(pattern)
    system.invalidate_cache()
    if has_magic(path):
        names = [name for name, info in system.glob(path, detail=True).items() if info["type"] == "file"]
    elif system.isdir(path):
        names = [info["name"] for info in system.ls(path, detail=True) if info["type"] == "file"]
    elif system.exists(path):
        names = [path]
    else:
        return None
    return [system.unstrip_protocol(name) for name in names]


def status(location: str) -> Status:
    """Return what is known of a file without opening it."""
    if not is_url(location):
        found = Path(location).stat()
        stamp = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
        return Status(found.st_size, found.st_mtime_ns, max(found.st_mtime_ns, found.st_ctime_ns), stamp)
    system, path = system_at(location)
    system.invalidate_cache()
    info = system.info(path)
    when = next((info[key] for key in ("LastModified", "last_modified", "mtime", "created") if info.get(key)), 0)
    modified_ns = _ns(when)
    return Status(int(info["size"]), modified_ns, modified_ns, f"{info['size']} {modified_ns} {info.get('ETag', '')}")


def _ns(when: Any) -> int:  # noqa: ANN401  (every file system has its own)
    if isinstance(when, datetime):
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000
    return int(float(when) * 1e6) * 1000 if isinstance(when, int | float) else 0


def is_regular(location: str) -> bool:
    """Return whether this is a file to be read; pipes, sockets and devices might never end."""
    return is_url(location) or stat.S_ISREG(Path(location).stat().st_mode)


def exists(location: str) -> bool:
    """Return whether there is a file at a path or URL."""
    if not is_url(location):
        return Path(location).exists()
    system, path = system_at(location)
    system.invalidate_cache()
    return bool(system.exists(path))


def open_at(location: str) -> IO[bytes]:
    """Open a file for reading."""
    if not is_url(location):
        return Path(location).open("rb")
    system, path = system_at(location)
    return system.open(path, "rb", cache_type="none")  # type: ignore[no-any-return]


def whole(location: str, label: str) -> bytes:
    """Return all of a small file at a URL; `label` names it in messages.

    Raises:
        InputError: it cannot be read.
    """
    with answered(f"{label}:", location):
        system, path = system_at(location)
        system.invalidate_cache()
        return bytes(system.cat_file(path))


def told(location: str) -> str:
    """Return a location for messages, of a URL neither user nor query: they may let others in.

    >>> told("https://me@host/roster.csv?sig=aXz"), told("/srv/a?b.csv")
    ('https://host/roster.csv', '/srv/a?b.csv')
    >>> told("zip://roster.csv::https://me@host/a.zip?sig=aXz")
    'zip://roster.csv::https://host/a.zip'
    """
    if not is_url(location):
        return escape_text(location)
    return escape_text("::".join(map(_bare, LINK.split(location))))


def _bare(url: str) -> str:
    protocol, _, rest = url.partition("://")
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{protocol}://{host.rpartition('@')[2]}{slash}{path}"


@contextmanager
def answered(label: str, location: str) -> Iterator[None]:
    """Turn what a disk or a service answers instead of a file into one line; names stay private."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        protocol = location.partition("://")[0]
        what = f"{protocol}:// needs a package that is not installed ({error.name or 'see its documentation'})"
        hint = "; for s3:// install agedp with its extra s3" if protocol == "s3" else ""
        raise InputError(f"{label.rstrip(':')}: {what}{hint}", private=f"{told(location)}: {what}{hint}") from None
    except Exception as error:
        if not (is_url(location) or isinstance(error, OSError)):
            raise
        # a service's own words may quote names; the class says what kind of refusal it is
        number = error.errno if isinstance(error, OSError) else None  # a service may put anything there
        text = os.strerror(number) if isinstance(number, int) and number else type(error).__name__
        what = f"cannot be opened ({text})"
        kind = Unavailable if _is_transient(error) else InputError
        raise kind(f"{label} {what}", private=f"{told(location)}: {what}") from None


_TRANSIENT_CODES: Final = (
    "EAGAIN", "EBUSY", "EIO", "ESTALE", "ETIMEDOUT", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH",
)  # fmt: skip
_TRANSIENT_NUMBERS: Final = frozenset(getattr(errno, code) for code in _TRANSIENT_CODES)
_TRANSIENT_NAMES: Final = frozenset(
    ("ClientConnectionError", "ServerTimeoutError", "EndpointConnectionError", "HTTPClientError", "SlowDown")
)
"""Errors of aiohttp and botocore, which are not imported for their names."""


def _is_transient(error: Exception) -> bool:
    """Tell whether the same call may succeed later: a silent service or disk, not a missing file or permission."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, OSError) and error.errno in _TRANSIENT_NUMBERS:
        return True
    return any(kind.__name__ in _TRANSIENT_NAMES for kind in type(error).__mro__)
