"""Paths of a release folder with the layout "monthly": a folder for each table, with a file for each month.

    daily_averages_use/published_month=2026-11/daily_averages_use.parquet
    ledger_rows/published_month=2026-11/ledger_rows.jsonl

Data set readers know the form (Hive partitions): `pandas.read_parquet("release/daily_averages_use")` returns all
months, with a column `published_month`.

Decisions:

* The month is that in which rows were published, not that of their days. Late days, given-up days, amendments and
  releases of periods are published after others of the same days, so a file by month of the days could never be closed.
* A series has its name in the name of its folder, also the first one of a statistic: which one was first may be open
  when its first file is written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from agedp_data.errors import InputError

MONTH_KEY: Final = "published_month"
ROWS_TABLE: Final = "ledger_rows"
SUMS_FILE: Final = "SHA256SUMS"
MAX_ENTRIES: Final = 100_000
"""Files of a release folder: 40 tables of 20 years have 10,000."""
_PATH: Final = re.compile(
    rf"(?P<table>[^/\\.][^/\\]*)/{MONTH_KEY}=(?P<month>[0-9]{{4}}-[0-9]{{2}})/(?P=table)\.(parquet|jsonl)"
)


def partition_path(table: str, month: str) -> str:
    """Return the path of a month of a table in its release folder.

    >>> partition_path("daily_averages_use", "2026-11")
    'daily_averages_use/published_month=2026-11/daily_averages_use.parquet'
    """
    return f"{table}/{MONTH_KEY}={month}/{table}.{'jsonl' if table == ROWS_TABLE else 'parquet'}"


def partition_of(path: str) -> tuple[str, str] | None:
    """Return table and month of a path, None for the path of another file.

    >>> partition_of("ledger_rows/published_month=2026-11/ledger_rows.jsonl"), partition_of("report.html")
    (('ledger_rows', '2026-11'), None)
    """
    match = _PATH.fullmatch(path)
    if match is None or path != partition_path(match["table"], match["month"]):
        return None
    return match["table"], match["month"]


def months_by_table(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the months of each table among paths, in order."""
    months: dict[str, list[str]] = {}
    for path in sorted(paths):
        if (partition := partition_of(path)) is not None:
            months.setdefault(partition[0], []).append(partition[1])
    return months


def list_files(folder: Path) -> Iterator[str]:
    """Yield the paths of the entries of a release folder; of folders of partitions, of what is in them instead.

    That is each file, link, pipe, ... of a table and of its months, and each folder in a month, whose content is not
    listed. A run and verification both list a release by this function.

    Raises:
        InputError: more than 100,000 entries.
    """
    entries = list(islice(_entries(folder), MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        raise InputError(f"the release folder has more than {MAX_ENTRIES:,} files; ask for the release again")
    yield from sorted(entries)


def _entries(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if not (_is_folder(path) and any(path.glob(f"{MONTH_KEY}=*"))):
            yield path.name
            continue
        for entry in _visible_entries(path):
            if not _is_folder(entry):
                yield f"{path.name}/{entry.name}"
            else:
                yield from (f"{path.name}/{entry.name}/{inside.name}" for inside in _visible_entries(entry))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _visible_entries(folder: Path) -> Iterator[Path]:
    """Yield the entries of a folder without temporary files, which no reader takes."""
    return (entry for entry in folder.iterdir() if not entry.name.startswith("."))


def is_monthly(paths: Iterable[str]) -> bool:
    """Return whether the paths are of a folder with the layout "monthly": one of them is of a month of ledger rows."""
    return any(path.startswith(f"{ROWS_TABLE}/") for path in paths)


def stated_checksums(checksums: Mapping[str, str], listing: bytes) -> dict[str, str]:
    """Return the checksums that the ledger keeps with a statement.

    Those of all files; with the layout "monthly", of the files outside partitions and of SHA256SUMS, which lists the
    partitions: the ledger would otherwise grow by a line for each month every night.

    Args:
        checksums: SHA-256 of each file by its path.
        listing: content of SHA256SUMS.
    """
    if not is_monthly(checksums):
        return dict(checksums)
    plain = {path: digest for path, digest in checksums.items() if "/" not in path}
    return {**plain, SUMS_FILE: hashlib.sha256(listing).hexdigest()}
