"""The roster by household bucket: one Parquet file for each bucket, so that a task reads the rows of its own alone.

    <confidential>/roster/<digest>-<buckets>/bucket=007.parquet

A bucket holds all rows of its households (`buckets.bucket_of`). So the members and cells of the buckets add up to those
of the roster. The folder is named by the digest of the roster file: it is written once for each state of the file, and
the last four that were used are kept.

Decisions:

* The files are derived. A damaged one is removed with its folder; the next call of `write_bucketed_roster` writes both.
* With one bucket nothing is written: the value holds the roster itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files, locks
from agedp.local_files.atomic_files import DamagedFile, FolderRemoved
from agedp.local_files.internal_files import read_columns
from agedp.store.buckets import bucket_numbers
from agedp_data.roster import Roster, read_roster
from agedp_data.text_columns import TextColumn, as_strings, sorted_codes

FOLDER: Final = "roster"
_GROUP: Final = "group "
"""Prefix of the stored group columns: a roster may have a group column of any name."""
_MOST: Final = 4
"""Number of rosters kept, the last used ones: populations that share the confidential folder have one each."""


@dataclass(frozen=True, slots=True)
class BucketedRoster:
    """The roster rows by household bucket; a small value that tasks receive.

    Attributes:
        folder: the folder of the files of its buckets, on a path that all workers see.
        buckets: number of buckets.
        whole: the roster itself, where there is one bucket.
    """

    folder: Path
    buckets: int
    whole: Roster | None = None

    def bucket(self, number: int) -> Roster:
        """Return the roster rows of one bucket; `ids` are its households, which may be none.

        Args:
            number: the bucket, from 0.

        Raises:
            FolderRemoved: a file is damaged or missing; the next call of `write_bucketed_roster` writes it again.
            InputError: the system denies access.
        """
        if self.whole is not None:
            return self.whole
        try:
            table = read_columns(_bucket_path(self.folder, number))
        except DamagedFile:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise FolderRemoved("the roster in the confidential folder was damaged; run again to rebuild it") from None
        ids, household = sorted_codes(TextColumn(_one_array(table["household_id"])))
        groups = {
            name.removeprefix(_GROUP): TextColumn(_one_array(table[name]))
            for name in table.column_names
            if name.startswith(_GROUP)
        }
        first, last = (table[name].to_numpy() for name in ("first", "last"))
        return Roster(TextColumn(ids), household, first, last, groups)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    joined = column.unify_dictionaries().combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def write_bucketed_roster(folder: Path, roster: Roster | Path | str, buckets: int) -> BucketedRoster:
    """Return the roster by bucket, written once for each state of it; the last used states are kept.

    Args:
        folder: the confidential folder.
        roster: the roster, or the path or URL of its file.
        buckets: number of buckets.

    Raises:
        InputError: the roster is invalid, or the folder cannot be written.
    """
    whole = roster if isinstance(roster, Roster) else read_roster(roster)
    if buckets == 1:
        return BucketedRoster(folder / FOLDER, 1, whole)
    target = folder / FOLDER / f"{whole.file_digest or _content_digest(whole)}-{buckets}"
    with locks.exclusive_lock(atomic_files.make_private(target.parent)):
        if not target.is_dir():
            with atomic_files.complete_folder(target) as temporary:
                _write_buckets(temporary, whole, buckets)
        os.utime(target)
        folders = [path for path in target.parent.iterdir() if path.is_dir()]
        for path in sorted(folders, key=lambda path: (path == target, path.stat().st_mtime_ns))[:-_MOST]:
            shutil.rmtree(path, ignore_errors=True)
    return BucketedRoster(target, buckets)


def _content_digest(roster: Roster) -> str:
    digest = hashlib.sha256()
    for name, texts in (("", roster.ids), *roster.groups.items()):
        labels, codes = sorted_codes(texts)
        digest.update(json.dumps([name, labels.to_pylist()]).encode() + codes.astype("<i8").tobytes())
    for numbers in (roster.household, roster.first, roster.last):
        digest.update(numbers.astype("<i8").tobytes())
    return digest.hexdigest()


def _write_buckets(folder: Path, roster: Roster, buckets: int) -> None:
    """Write one file for each bucket, its rows in the order of the roster."""
    table = pa.table(
        {
            "household_id": as_strings(roster.ids).take(pa.array(roster.household)),
            "first": roster.first,
            "last": roster.last,
            **{f"{_GROUP}{name}": as_strings(labels).dictionary_encode() for name, labels in roster.groups.items()},
        }
    )
    bucket = bucket_numbers(roster.ids, buckets)[roster.household]
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(buckets + 1))
    for number in range(buckets):
        rows = table.take(pa.array(order[ends[number] : ends[number + 1]]))
        atomic_files.write_table(_bucket_path(folder, number), rows, sync=False)


def _bucket_path(folder: Path, number: int) -> Path:
    return folder / f"bucket={number:03}.parquet"
