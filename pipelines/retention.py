"""What leaves the confidential store, and which rows came too late: both after the day is published.

Readings older than `engine.keep_days`, counted from the run's date, leave the store month by month, parts and DAYS,
and with the last month of a file its rows that were set aside, but never before their days are released. The
manifests stay, so that the same bytes are not read again. An archive keeps its readings unless `keep_days` is
written: its days are old by nature.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pipelines import folders
from pipelines.store import Store


def forget(store: Store, *, today: date, keep_days: int, needed_from: date) -> None:
    """Remove the months wholly before `today` - `keep_days` and before `needed_from`, the next day to release."""
    keep_from = min(today - timedelta(days=keep_days), needed_from)
    first_kept = f"{keep_from:%Y-%m}"
    gone = [folder for folder in store.folder.glob("month=*") if folder.name.removeprefix("month=") < first_kept]
    if not gone:
        return
    folders.write(store.folder / "forgotten_before", first_kept.encode())
    for folder in gone:
        shutil.rmtree(store.folder / "days" / folder.name, ignore_errors=True)
        shutil.rmtree(store.folder / "part_days" / folder.name, ignore_errors=True)
        with folders.readable(folder), suppress(FileNotFoundError):
            shutil.rmtree(folder)
    for content, manifest in store.manifests().items():
        if all(month < first_kept for month in manifest.months):
            for path in (store.folder / "quarantine").glob(f"{content}-*.parquet"):
                path.unlink(missing_ok=True)


def late_rows(store: Store, contents: Collection[str], released: Collection[date]) -> int:
    """Return how many rows of these files are of days that were released before they came."""
    days = pa.array(sorted(released), pa.date32())
    late = 0
    for month in sorted({f"{day:%Y-%m}" for day in released}):
        for piece in store.pieces(month, list(contents)):
            part = folders.read_table(store.month(month) / piece.name, columns=["day"])
            late += int(pc.sum(pc.is_in(part["day"], value_set=days).cast(pa.int64())).as_py() or 0)
    return late
