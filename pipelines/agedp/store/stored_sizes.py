"""Sizes of the stored parts by one listing of each month's folder, to compare them with all manifests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agedp.local_files import atomic_files
from agedp.store.manifest import Manifest
from agedp.store.store import Store


class StoredSizes:
    """The sizes of the parts of a store; each folder is listed when it is first asked for.

    Do not keep it while parts are written or removed.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._retained_from = store, store.retained_from()
        self._by_folder: dict[tuple[str, int], tuple[Mapping[str, int], Mapping[str, int]]] = {}

    def contains(self, content: str, manifest: Manifest | None) -> bool:
        """Return whether a file is completely in the store, every part with the size that its manifest contains.

        Parts of months that retention removed are not expected.

        Raises:
            InputError: the system denies access.
        """
        return (
            manifest is not None
            and manifest.buckets == self._store.buckets
            and all(
                self._sizes(month, bucket)[table].get(f"{content}-{number}.parquet") == size
                for number, part in enumerate(manifest.parts)
                for month, bucket, *sizes in part.stored_sizes()
                if month >= self._retained_from
                for table, size in enumerate(sizes)
            )
        )

    def _sizes(self, month: str, bucket: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the sizes of the READINGS and of the PART_DAYS of a month and bucket by file name."""
        if (month, bucket) not in self._by_folder:
            folders = self._store.month_folder(month, bucket), self._store.part_days_folder(month, bucket)
            self._by_folder[month, bucket] = _sizes_in(folders[0]), _sizes_in(folders[1])
        return self._by_folder[month, bucket]


def _sizes_in(folder: Path) -> dict[str, int]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise atomic_files.unreadable_error(folder, error.errno) from None
