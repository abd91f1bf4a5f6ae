"""Where things are: paths against the run file's folder, URLs as written, and the ledger's address."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import PlainValidator, ValidationInfo

from agedp_data.notions.parameters import FREE, Marker, text, wrong
from agedp_data.readers.storage import URL_CHAIN

PLACE: Final = Marker()
"""Names a file or folder: its value may stand in private texts only."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LONGEST_PART = 255
_DIALECTS = ("sqlite", "postgresql")
_ROW = re.compile(r"[A-Za-z0-9_-]{0,64}")
_POSTGRESQL_PORT: Final = 5432


def is_url(place: str) -> bool:
    """Return whether a place is a URL, not a path.

    >>> is_url("s3://meters/incoming"), is_url("/srv/meters")
    (True, False)
    """
    return _URL.match(place) is not None


def resolve(place: str, folder: Path) -> str:
    """Return an absolute path for a path that is relative to the run file's folder; a URL as it stands."""
    return place if is_url(place) else str(folder / place)


def _folder(info: ValidationInfo) -> Path:
    context = info.context
    return context["folder"] if isinstance(context, Mapping) else Path.cwd()


def _path(value: object) -> str:
    """Return a text that a file system can take."""
    written = text(value)
    if any(len(part.encode()) > _LONGEST_PART for part in written.split("/")):
        raise wrong(
            f"has a part that is longer than {_LONGEST_PART} bytes, which no file system takes", hide=is_url(written)
        )
    return written


def _place(value: object, info: ValidationInfo) -> str:
    written = _path(value)
    if is_url(written):
        _split(written)
    return resolve(written, _folder(info))


def _shared_folder(value: object, info: ValidationInfo) -> str:
    """Return a path: what lies there is kept safe by locks, renames and permissions."""
    written = _path(value)
    if is_url(written):
        raise wrong(
            "must be a path: locks, renames and owner-only permissions keep what lies there safe, which a URL has none "
            "of; name a folder on a file system that all machines share",
            hide=True,
        )
    return resolve(written, _folder(info))


def _pattern(value: object, info: ValidationInfo) -> str:
    written = _path(value)
    if is_url(written):
        _split(written)
        return written
    # The folder is no pattern, even if its name contains brackets.
    return str(Path(glob.escape(str(_folder(info)))) / written)


def _marker(value: object) -> str:
    written = _path(value)
    if "{day}" not in written or re.search(r"[{}]", written.replace("{day}", "")):
        raise wrong("must contain {day}, which stands for the date, and no other braces")
    if is_url(written):
        _split(written)
        if any(one.username or one.query for one in map(urlsplit, URL_CHAIN.split(written))):
            raise wrong("is published with the promise: its URL must have no user and no query", hide=True)
    return written


def _ledger(value: object, info: ValidationInfo) -> str:
    written = _path(value)
    if not is_url(written):
        raise wrong('must be a URL such as "sqlite:///out/ledger.sqlite"', hide=True)
    parts = _split(written)
    dialect = parts.scheme.partition("+")[0]
    if dialect not in _DIALECTS:
        raise wrong("must begin with sqlite:/// or postgresql://", hide=True)
    if dialect == "postgresql":
        if len(parts.path) < 2:
            raise wrong("names no database; write postgresql://host/database", hide=True)
        return written
    path = written.partition(":///")[2]
    if parts.netloc or parts.query or parts.fragment or path in ("", ":memory:"):
        raise wrong("must be sqlite:/// and the path of a file: the ledger outlives the run", hide=True)
    return f"{parts.scheme}:///{_folder(info) / path}"


def _witness(value: object, info: ValidationInfo) -> str:
    """Return a path, or the URL of an object or of a row."""
    written = _path(value)
    if not is_url(written):
        return resolve(written, _folder(info))
    parts = _split(written)
    protocol = parts.scheme.partition("+")[0]
    if protocol not in ("s3", "postgresql"):
        raise wrong("must be a path, or begin with s3:// or postgresql://", hide=True)
    if len(parts.path) < 2 or (protocol == "s3" and not parts.netloc):
        raise wrong("must name an object, s3://bucket/name, or a database, postgresql://host/database", hide=True)
    if protocol == "s3" and (parts.query or parts.fragment):
        raise wrong("must end with the name of the object; remove what follows ? or #", hide=True)
    if not _ROW.fullmatch(parts.fragment):
        raise wrong("must name its row behind # by letters, digits, - and _, at most 64", hide=True)
    return written


def database_of(url: str) -> tuple[str, str, str]:
    """Return host, port and database of a postgresql:// address, as far as it names them.

    >>> database_of("postgresql+psycopg://agedp@db.internal/london?sslmode=require#ledger")
    ('db.internal', '5432', 'london')
    """
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    port = parts.port or query.get("port") or _POSTGRESQL_PORT
    return parts.hostname or query.get("host", ""), str(port), parts.path.strip("/")


def ledger_path(url: str) -> str:
    """Return the file of a ledger's address as `LedgerUrl` resolved it; an address on a server as it stands.

    >>> ledger_path("sqlite:////srv/ledger.sqlite"), ledger_path("postgresql://host/database")
    ('/srv/ledger.sqlite', 'postgresql://host/database')
    """
    return url if url.startswith("postgresql") else url.partition(":///")[2]


def _split(url: str) -> SplitResult:
    """Return the parts of a URL, of several the outermost one's; none has a password."""
    try:
        parts = [urlsplit(one) for one in URL_CHAIN.split(url)]
        passwords = [one.password for one in parts if one.password is not None]
        _ = [one.port for one in parts]  # words in its place may be a password with a slash in it
    except ValueError:
        raise wrong("is not a URL that can be read", hide=True) from None
    if passwords or any(re.search(r"(?i)(passw|pwd|secret|token)[a-z]*=", one.query) for one in parts):
        raise wrong("has a password in it; keep it in ~/.pgpass or the environment", hide=True)
    return parts[0]


Place = Annotated[str, PlainValidator(_place), PLACE, FREE]
SharedFolder = Annotated[str, PlainValidator(_shared_folder), PLACE, FREE]
OptionalPlace = Annotated[str | None, PlainValidator(_place), PLACE, FREE]
Pattern = Annotated[str, PlainValidator(_pattern)]
LedgerUrl = Annotated[str, PlainValidator(_ledger), PLACE, FREE]
WitnessPlace = Annotated[str | None, PlainValidator(_witness), PLACE, FREE]
DayMarker = Annotated[str, PlainValidator(_marker)]
