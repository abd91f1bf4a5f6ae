"""What leaves the confidential store, and which rows came too late: both after the day is published.

Readings older than `engine.keep_days`, counted from the run's date, leave the store month by month, parts and DAYS,
but never before their days are released. The manifests stay, so that the same bytes are not read again.
An archive keeps its readings unless `keep_days` is written: its days are old by nature.
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
        with folders.readable(folder), suppress(FileNotFoundError):  # another run removes it, too
            shutil.rmtree(folder)


def late_rows(store: Store, contents: Collection[str], released: Collection[date]) -> int:
    """Return how many rows of these files are of days that were released before they came."""
    days = pa.array(sorted(released), pa.date32())
    late = 0
    for content in contents:
        manifest = store.manifest(content)
        for month in manifest.months if manifest else ():
            if not store.part(month, content).exists():
                continue
            part = folders.read_table(store.part(month, content))
            late += int(pc.sum(pc.is_in(part["day"], value_set=days).cast(pa.int64())).as_py() or 0)
    return late
