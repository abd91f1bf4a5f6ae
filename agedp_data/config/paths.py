"""Paths and URLs of a run file: paths relative to its folder, URLs unchanged, and the address of the ledger."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import PlainValidator, ValidationInfo

from agedp_data.datasets.filesystem import URL_CHAIN
from agedp_data.parameters import FREE, TEXT, Marker, text, wrong

LOCATION: Final = Marker()
"""Marks a key that names a file or folder: only private texts may contain its value."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MAX_PART_BYTES = 255
_DIALECTS = ("sqlite", "postgresql")
_ROW_NAME = re.compile(r"[A-Za-z0-9_-]{0,64}")
_POSTGRESQL_PORT: Final = 5432


def is_url(location: str) -> bool:
    """Return whether a location is a URL, not a path.

    >>> is_url("s3://meters/incoming"), is_url("/srv/meters")
    (True, False)
    """
    return _URL.match(location) is not None


def absolute_location(location: str, folder: Path) -> str:
    """Return the absolute path of a path relative to the run file's folder; a URL unchanged.

    >>> absolute_location("incoming", Path("/srv/meters")), absolute_location("s3://m/in", Path("/srv"))
    ('/srv/meters/incoming', 's3://m/in')
    """
    return location if is_url(location) else str(folder / location)


def _run_file_folder(info: ValidationInfo) -> Path:
    context = info.context
    return context["folder"] if isinstance(context, Mapping) else Path.cwd()


def _path_text(value: object) -> str:
    """Return a text that can be a path; raise for a part longer than a file system permits."""
    value_text = text(value)
    if any(len(part.encode()) > _MAX_PART_BYTES for part in value_text.split("/")):
        raise wrong(
            f"has a part that is longer than {_MAX_PART_BYTES} bytes, which no file system takes",
            hide=is_url(value_text),
        )
    return value_text


def _location(value: object, info: ValidationInfo) -> str:
    value_text = _path_text(value)
    if is_url(value_text):
        _split_url(value_text)
    return absolute_location(value_text, _run_file_folder(info))


def _shared_folder(value: object, info: ValidationInfo) -> str:
    """Return a path, never a URL: locks, renames and permissions protect the files in it."""
    value_text = _path_text(value)
    if is_url(value_text):
        raise wrong(
            "must be a path: locks, renames and owner-only permissions keep what lies there safe, which a URL has none "
            "of; name a folder on a file system that all machines share",
            hide=True,
        )
    return absolute_location(value_text, _run_file_folder(info))


def _pattern(value: object, info: ValidationInfo) -> str:
    value_text = _path_text(value)
    if is_url(value_text):
        _split_url(value_text)
        return value_text
    # The folder's name is no pattern, even if it contains brackets.
    return str(Path(glob.escape(str(_run_file_folder(info)))) / value_text)


def _marker(value: object) -> str:
    value_text = _path_text(value)
    if "{day}" not in value_text or re.search(r"[{}]", value_text.replace("{day}", "")):
        raise wrong("must contain {day}, which stands for the date, and no other braces")
    if is_url(value_text):
        _split_url(value_text)
        if any(url.username or url.query for url in map(urlsplit, URL_CHAIN.split(value_text))):
            raise wrong("is published with the promise: its URL must have no user and no query", hide=True)
    return value_text


def _ledger(value: object, info: ValidationInfo) -> str:
    value_text = _path_text(value)
    if not is_url(value_text):
        raise wrong('must be a URL such as "sqlite:///out/ledger.sqlite"', hide=True)
    parts = _split_url(value_text)
    dialect = parts.scheme.partition("+")[0]
    if dialect not in _DIALECTS:
        raise wrong("must begin with sqlite:/// or postgresql://", hide=True)
    if dialect == "postgresql":
        if len(parts.path) < 2:
            raise wrong("names no database; write postgresql://host/database", hide=True)
        return value_text
    path = value_text.partition(":///")[2]
    if parts.netloc or parts.query or parts.fragment or path in ("", ":memory:"):
        raise wrong("must be sqlite:/// and the path of a file: the ledger outlives the run", hide=True)
    return f"{parts.scheme}:///{_run_file_folder(info) / path}"


def _witness(value: object, info: ValidationInfo) -> str:
    """Return a path, or the URL of an object or of a row."""
    value_text = _path_text(value)
    if not is_url(value_text):
        return absolute_location(value_text, _run_file_folder(info))
    parts = _split_url(value_text)
    protocol = parts.scheme.partition("+")[0]
    if protocol not in ("s3", "postgresql"):
        raise wrong("must be a path, or begin with s3://", hide=True)
    if len(parts.path) < 2 or (protocol == "s3" and not parts.netloc):
        raise wrong("must name an object, s3://bucket/name", hide=True)
    if protocol == "s3" and (parts.query or parts.fragment):
        raise wrong("must end with the name of the object; remove what follows ? or #", hide=True)
    if not _ROW_NAME.fullmatch(parts.fragment):
        raise wrong("must name its row behind # by letters, digits, - and _, at most 64", hide=True)
    return value_text


def database_of(url: str) -> tuple[str, str, str]:
    """Return host, port and database of a postgresql:// address, "" for a part that it does not name.

    >>> database_of("postgresql+psycopg://agedp@db.internal/london?sslmode=require#ledger")
    ('db.internal', '5432', 'london')
    """
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    port = parts.port or query.get("port") or _POSTGRESQL_PORT
    return parts.hostname or query.get("host", ""), str(port), parts.path.strip("/")


def schema_of(url: str) -> tuple[str, str, str, str]:
    """Return host, port, database and options of a postgresql:// address, of which the options may name a schema.

    >>> schema_of("postgresql://host/homes?options=-csearch_path%3Dregister")
    ('host', '5432', 'homes', '-csearch_path=register')
    """
    options = parse_qs(urlsplit(url).query).get("options", [""])
    return *database_of(url), options[-1]


def ledger_path(url: str) -> str:
    """Return the file of a ledger's address as `LedgerUrl` resolved it; the address of a server unchanged.

    >>> ledger_path("sqlite:////srv/ledger.sqlite"), ledger_path("postgresql://host/database")
    ('/srv/ledger.sqlite', 'postgresql://host/database')
    """
    return url if url.startswith("postgresql") else url.partition(":///")[2]


def _split_url(url: str) -> SplitResult:
    """Return the parts of a URL, of a chained URL those of the first; raise for a password."""
    try:
        parts = [urlsplit(part) for part in URL_CHAIN.split(url)]
        passwords = [part.password for part in parts if part.password is not None]
        _ = [part.port for part in parts]  # a text in place of the port may be a password that contains a slash
    except ValueError:
        raise wrong("is not a URL that can be read", hide=True) from None
    if passwords or any(re.search(r"(?i)(passw|pwd|secret|token)[a-z]*=", part.query) for part in parts):
        raise wrong("has a password in it; keep it in ~/.pgpass or the environment", hide=True)
    return parts[0]


Location = Annotated[str, PlainValidator(_location), TEXT, LOCATION, FREE]
SharedFolder = Annotated[str, PlainValidator(_shared_folder), TEXT, LOCATION, FREE]
OptionalLocation = Annotated[str | None, PlainValidator(_location), TEXT, LOCATION, FREE]
Pattern = Annotated[str, PlainValidator(_pattern), TEXT]
LedgerUrl = Annotated[str, PlainValidator(_ledger), TEXT, LOCATION, FREE]
RegisterUrl = Annotated[str | None, PlainValidator(_ledger), TEXT, LOCATION, FREE]
WitnessLocation = Annotated[str | None, PlainValidator(_witness), TEXT, LOCATION, FREE]
DayMarker = Annotated[str, PlainValidator(_marker), TEXT]
