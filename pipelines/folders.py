"""Files put in place whole: written beside their name, synced, renamed; confidential ones for their owner only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data.errors import InputError

_PRIVATE = 0o600


def make_private(folder: Path) -> Path:
    """Return a folder that only its owner may enter; it and the parents that it lacks are made if need be."""
    with readable(folder):
        lacking = [] if folder.exists() else [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(lacking):  # mkdir's own parents=True would let others in
            one.mkdir(exist_ok=True, mode=0o700)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def write(path: Path, content: bytes, *, mode: int = _PRIVATE) -> None:
    """Write bytes so that the name holds either the old content or the new."""
    write_with(path, lambda stream: stream.write(content), mode=mode)


def write_table(path: Path, table: pa.Table, *, mode: int = _PRIVATE, **options: object) -> None:
    """Write a Parquet file (zstd) so that the name holds either the old content or the new."""
    write_with(path, lambda stream: pq.write_table(table, stream, compression="zstd", **options), mode=mode)


def write_with(path: Path, fill: Callable[[IO[bytes]], object], *, mode: int = _PRIVATE) -> None:
    """Fill a temporary file beside `path`, sync it and rename it."""
    with readable(path):
        # by chance, not by process number: in a container that comes again, and meets what a killed run left
        temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                fill(stream)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn the system's refusals (disk full, read-only, no permission) into one line."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written ({error.strerror or type(error).__name__}); nothing was published from it"
        raise InputError(f"[output] {what}", private=f"{path}: {what}") from None


def read_table(path: Path) -> pa.Table:
    """Return a confidential table that an earlier stage wrote."""
    try:
        return pq.ParquetFile(path, page_checksum_verification=True).read()
    except (OSError, pa.ArrowException):
        what = "is missing or damaged; run again to make it anew"
        raise InputError(f"a confidential table {what}", private=f"{path}: {what}") from None


def rows_in(path: Path) -> int | None:
    """Return how many rows a table has by its footer; None if it is missing or cut off, and must be made anew."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return None
