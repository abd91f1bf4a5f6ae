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
from pathlib import Path
from typing import Final

MONTH_KEY: Final = "published_month"
ROWS_TABLE: Final = "ledger_rows"
SUMS_FILE: Final = "SHA256SUMS"
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
    """Yield the paths of the entries of a release folder; of folders of partitions, of all files in them instead."""
    for path in sorted(folder.iterdir()):
        is_partitioned = not path.is_symlink() and path.is_dir() and any(path.glob(f"{MONTH_KEY}=*"))
        if not is_partitioned:
            yield path.name
        else:
            yield from (
                entry.relative_to(folder).as_posix()
                for entry in sorted(path.rglob("*"))
                if not entry.is_dir() and not entry.name.startswith(".")  # temporary files; no reader takes these
            )


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
