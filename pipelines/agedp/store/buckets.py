"""Household buckets: the store and the roster are split by household as well as by month, so that tasks stay small.

    <confidential>/store/buckets.json       {"buckets": 7}, written by the first run; one bucket by the first file

The bucket of a household is the CRC-32 of its id, modulo the number of buckets. A store keeps its number for ever. A
store without the record has the number of its manifests: those of earlier versions have one bucket.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from agedp.local_files import atomic_files
from agedp.local_files.checksums import checked_json, read_checked_json
from agedp.local_files.internal_files import FileKind, FileNotice, read_content
from agedp_data.datasets.validation import Ints

_HOUSEHOLDS_PER_BUCKET: Final = 50_000
_TOO_LARGE: Final = 4
_RECORD: Final = "buckets.json"


def bucket_of(household_id: str, buckets: int) -> int:
    """Return the bucket of a household, from 0; the same on every machine and in every process.

    >>> bucket_of("MAC000003", 1), bucket_of("MAC000003", 64)
    (0, 22)
    """
    return zlib.crc32(household_id.encode()) % buckets


def bucket_numbers(ids: Sequence[str], buckets: int) -> Ints:
    """Return the bucket of each household id.

    >>> bucket_numbers(["MAC000002", "MAC000003"], 4).tolist()
    [0, 2]
    """
    return np.fromiter((bucket_of(household, buckets) for household in ids), np.int64, len(ids))


def buckets_for(households: int) -> int:
    """Return the number of buckets of a new store for so many households on the roster, at least 1.

    >>> buckets_for(0), buckets_for(50_000), buckets_for(50_001), buckets_for(30_000_000)
    (1, 1, 2, 600)
    """
    return max(1, -(-households // _HOUSEHOLDS_PER_BUCKET))


def stored_buckets(folder: Path) -> int | None:
    """Return the number of buckets of a store; None if there is no store yet.

    A missing or damaged record is replaced by the number that the manifests contain.

    Args:
        folder: the folder of the store.

    Raises:
        InputError: the system denies access.
    """
    number = read_content(folder / _RECORD, _parse_number, FileKind.DERIVED, advice="").value
    return number if number is not None else _manifests_number(folder / "files")


def store_buckets(folder: Path, households: int) -> int:
    """Return the number of buckets of a store, or of one that is created now for so many households.

    Raises:
        InputError: the system denies access.
    """
    number = stored_buckets(folder)
    return buckets_for(households) if number is None else number


def record_buckets(folder: Path, buckets: int) -> None:
    """Record the number of buckets of a store, so that no manifest is read for it; one bucket once it has a file.

    Raises:
        ValueError: the store has another number already.
        InputError: the system denies access.
    """
    number = read_content(folder / _RECORD, _parse_number, FileKind.DERIVED, advice="").value
    stored = number or _manifests_number(folder / "files")
    if (stored or buckets) != buckets:
        raise ValueError(f"the store is opened with {buckets} household buckets, but has another number")
    if number is None and (buckets > 1 or stored):
        atomic_files.write(folder / _RECORD, checked_json({"buckets": buckets}))


def size_notice(folder: Path, buckets: int, households: int) -> FileNotice | None:
    """Return a notice about a store with far more households in a bucket than a new store would have.

    The size of the roster is confidential, and the number of buckets follows from it: only `private` has numbers.

    Args:
        folder: the folder of the store.
        buckets: its number of buckets.
        households: number of roster rows.

    >>> size_notice(Path("store"), 1, 200_000) is None, size_notice(Path("store"), 1, 200_001).public
    (True, 'the confidential store has too few household buckets for the roster')
    """
    wanted = buckets_for(households)
    if wanted <= _TOO_LARGE * buckets:
        return None
    public = "the confidential store has too few household buckets for the roster"
    numbers = (
        f"it has {buckets} household bucket{'s' * (buckets != 1)}, and a new store for {households:,} roster rows "
        f"would have {wanted}"
    )
    remedy = "runs need less memory with a new one, which the next run makes from the input files once it is removed"
    return FileNotice(public, f"{folder}: {numbers}; {remedy}")


def _parse_number(path: Path) -> int:
    number = read_checked_json(path.read_bytes())["buckets"]
    if not isinstance(number, int) or number < 1:
        raise ValueError("it names no number of buckets")
    return number


def _manifests_number(folder: Path) -> int | None:
    """Return the number of buckets of the first readable manifest; None without one."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".json")]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise atomic_files.unreadable_error(folder, error.errno) from None

    def parse(path: Path) -> int:
        return int(read_checked_json(path.read_bytes()).get("buckets", 1))

    numbers = (read_content(folder / name, parse, FileKind.DERIVED, advice="").value for name in names)
    return next((number for number in numbers if number is not None and number > 0), None)
