"""The roster file of a run -> its numbers of households by group and day, without its ids where it did not change.

    <confidential>/roster/file.json         size, times and digest of the roster file
    <confidential>/roster/counts.parquet    the numbers of households, with the digest of their file

While size, times and inode of the file are the same, it is not read: a night on which nothing is due loads no id. Where
they changed, the digest of the bytes decides. The rows are read when somebody needs them.

Decisions:

* Both files are derived. A damaged one is written again, and so are the numbers that another version computed: it may
  read rosters differently.
* Small rosters are parsed in less time than a cache takes: they have none.
* The times of a file that changed within two seconds of being read are not stored: it may change again unnoticed. A
  file at a URL is always read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.checksums import checked_json, read_checked_json
from agedp.local_files.internal_files import FileKind, read_columns, read_content
from agedp_data.datasets.filesystem import SETTLING_NS, FileStatus, file_status, is_url
from agedp_data.errors import InputError
from agedp_data.roster import Roster, RosterCounts, parse_roster, read_roster_bytes
from agedp_data.roster_rows import RosterRows, check_path_labels, roster_error
from agedp_data.text_columns import TextColumn, as_strings

LEAST_BYTES: Final = 2**20
"""Rosters below this size have no cache [bytes]."""
_DIGEST, _READ_OFF, _VERSION = b"roster", b"read_off", b"version"
_GROUP: Final = "group "


def load_roster(location: str, folder: Path, *, path_columns: Collection[str]) -> Roster:
    """Return the roster of a file; of a large one that did not change the numbers alone, until its rows are needed.

    Args:
        location: path or URL of the roster.
        folder: the folder `roster` of the confidential folder.
        path_columns: as in `read_roster`.

    Raises:
        InputError: as `read_roster`.
    """
    status, read_ns = _status(location), time.time_ns()
    if status is not None and status.size < LEAST_BYTES:
        return parse_roster(location, read_roster_bytes(location), path_columns=path_columns)
    digest = None if status is None else _known_digest(folder, location, status)
    content = None
    if digest is None:
        content = read_roster_bytes(location)
        digest = hashlib.sha256(content).hexdigest()
    counts = _read_counts(folder, digest)
    is_settled = status is not None and status.touched_ns < read_ns - SETTLING_NS
    if counts is None or not check_path_labels(counts.groups, path_columns):
        roster = _parse_unchanged(location, content, digest, path_columns)
        _write(folder, location, roster, status if is_settled else None)
        return roster
    if content is not None:
        _write_status(folder, location, digest, status if is_settled else None)
    return Roster.of_counts(counts, partial(_load_rows, location, digest, path_columns), file_digest=digest)


def _version() -> bytes:
    return version("agedp").encode()


def _status(location: str) -> FileStatus | None:
    """Return the status of a local file; None for one at a URL, and where reading it explains why there is none."""
    with suppress(OSError):
        return None if is_url(location) or not Path(location).is_file() else file_status(location)
    return None


def _load_rows(location: str, digest: str, path_columns: Collection[str]) -> RosterRows:
    return _parse_unchanged(location, None, digest, path_columns).rows


def _parse_unchanged(location: str, content: bytes | None, digest: str, path_columns: Collection[str]) -> Roster:
    roster = parse_roster(location, content or read_roster_bytes(location), path_columns=path_columns)
    if roster.file_digest != digest:
        raise roster_error(location, "the file changed while it was read; run again")
    return roster


def _known_digest(folder: Path, location: str, status: FileStatus) -> str | None:
    """Return the digest of a file that did not change since it was stored; None if it may have changed."""

    def parse(path: Path) -> tuple[str, str, str]:
        record = read_checked_json(path.read_bytes())
        return str(record["location"]), str(record["fingerprint"]), str(record["digest"])

    stored = read_content(folder / "file.json", parse, FileKind.DERIVED, advice="").value
    return stored[2] if stored is not None and stored[:2] == (location, status.fingerprint) else None


def _read_counts(folder: Path, digest: str) -> RosterCounts | None:
    """Return the stored numbers of the roster with this digest."""
    table = read_content(folder / "counts.parquet", read_columns, FileKind.DERIVED, advice="").value
    metadata = {} if table is None else table.schema.metadata or {}
    if table is None or (metadata.get(_DIGEST), metadata.get(_VERSION)) != (digest.encode(), _version()):
        return None
    groups = {
        name.removeprefix(_GROUP): TextColumn(column.unify_dictionaries().combine_chunks())
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith(_GROUP)
    }
    first, last, number = (table[name].to_numpy().astype(np.int64) for name in ("first", "last", "number"))
    return RosterCounts(first, last, number, groups, metadata.get(_READ_OFF) == b"1")


def _write(folder: Path, location: str, roster: Roster, status: FileStatus | None) -> None:
    """Store the numbers of a roster; without permission or space the next run computes them again."""
    counts = roster.counts
    table = pa.table(
        {
            "first": counts.first,
            "last": counts.last,
            "number": counts.number,
            **{f"{_GROUP}{name}": as_strings(labels).dictionary_encode() for name, labels in counts.groups.items()},
        }
    )
    read_off = b"1" if roster.read_off else b"0"
    metadata = {_DIGEST: roster.file_digest.encode(), _READ_OFF: read_off, _VERSION: _version()}
    with suppress(InputError):
        atomic_files.make_private(folder)
        atomic_files.write_table(folder / "counts.parquet", table.replace_schema_metadata(metadata), sync=False)
    _write_status(folder, location, roster.file_digest, status)


def _write_status(folder: Path, location: str, digest: str, status: FileStatus | None) -> None:
    if status is not None:
        record = {"location": location, "fingerprint": status.fingerprint, "digest": digest}
        with suppress(InputError):
            atomic_files.write(folder / "file.json", checked_json(record))
