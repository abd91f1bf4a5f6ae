"""Retention of the confidential store, and rows that arrived too late; both after the day is published.

Readings older than `engine.keep_days`, counted from the run's date, are removed month by month, but never before their
days are released: parts, DAYS and rejected rows. A part with younger months is written again without the old ones.
Rejected rows without a month are as old as the newest reading of their file, or as the file if it has none. An archive
retains its readings unless `keep_days` is written: all of its days are old.

The files that remain contain no reading of a household: the manifests (counts by month, so that the same bytes are
not parsed again), the book, QUALITY and the row numbers that deduplication rejected (of listed files and retained
months), and SUMS of the last due days, which are as confidential as the true means.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from agedp.local_files import atomic_files
from agedp.store.month_reader import load_part
from agedp.store.part_writer import cut_part
from agedp.store.store import Store, months_of_folder, read_retained_from, write_retained_from

_FOLDERS = ("days", "part_days", "quarantine", ".")


def remove_old_months(store: Store, *, today: date, keep_days: int, needed_from: date) -> None:
    """Remove the months wholly before `today` - `keep_days` and before `needed_from`, the next day to release.

    The first retained month is recorded before anything is removed. The next call completes an interrupted removal, and
    removed readings never count as missing.

    Args:
        store: the confidential store.
        today: the present UTC date.
        keep_days: key `keep_days` of [engine] [days].
        needed_from: the earliest day that is not released yet.

    Raises:
        InputError: the system refuses a removal.
    """
    keep_from = min(today - timedelta(days=keep_days), needed_from)
    first_kept = f"{keep_from:%Y-%m}"
    folders = [folder for name in _FOLDERS for folder in (store.folder / name).glob("month=*")]
    begun = [folder for folder in folders if months_of_folder(folder.name)[0] < first_kept]
    if begun and first_kept > read_retained_from(store.folder):  # what was removed remains so
        write_retained_from(store.folder, first_kept)
    if old_months := [month for month in store.books.keys("deduplicated") if month < first_kept]:
        store.books.put_derived("deduplicated", {}, removed=old_months)
    for folder in begun:
        with atomic_files.write_errors(folder), suppress(FileNotFoundError):
            if months_of_folder(folder.name)[1] < first_kept:
                shutil.rmtree(folder)
            elif folder.parent == store.folder:
                for path in folder.glob("*.parquet"):
                    cut_part(store, folder.name, path.name, first_kept)
    for path in store.quarantine_folder("").glob("*.parquet"):
        manifest = store.manifest(path.stem.rpartition("-")[0])
        if manifest is None:
            continue
        changed = datetime.fromtimestamp(manifest.modified_ns // 10**9, UTC)  # of a file without readings
        if max(manifest.months, default=f"{changed:%Y-%m}") < first_kept:
            with atomic_files.write_errors(path):
                path.unlink(missing_ok=True)


def count_late_rows(store: Store, contents: Collection[str], released: Collection[date]) -> int:
    """Return the number of rows of these files whose days were released before the files arrived.

    Late rows change no release: they are counted for the confidential record only.

    Args:
        store: the confidential store.
        contents: the content ids of the newly ingested files.
        released: the days that were released before.
    """
    manifests = [manifest for content in contents if (manifest := store.manifest(content)) is not None]
    months = {month for manifest in manifests for month in manifest.months}
    late_months = sorted(months & {f"{day:%Y-%m}" for day in released})
    if not late_months:
        return 0
    days, late = pa.array(sorted(released), pa.date32()), 0
    for month, bucket in product(late_months, range(store.buckets)):
        for stored_part in store.month_parts(month, list(contents), bucket):
            table = load_part(store, stored_part, ["day"])
            late += int(pc.sum(pc.is_in(table["day"], value_set=days).cast(pa.int64())).as_py() or 0)
    return late
