"""LEDGER -> release folder: a projection of what was drawn; same head and same software, same bytes.

Every file is put in place by rename, SHA256SUMS last: a folder whose sums do not match was cut off, and
publishing again mends it. Nothing here reads a reading.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import noise, tables
from agedp_data.errors import InputError
from agedp_data.ledger import Release
from agedp_data.losses import NANO, recorded
from pipelines import folders

if TYPE_CHECKING:
    import pandas as pd

AVERAGES, STATEMENT, WORDS, SUMS = "daily_averages.parquet", "statement.json", "STATEMENT.md", "SHA256SUMS"
METADATA_KEY = b"agedp"
_READABLE = 0o644


def averages(rows: Sequence[Release], *, coverage: Decimal, versions: Mapping[str, int]) -> pa.Table:
    """Return the daily averages of released rows; intervals cover the noise of `mean_kwh` and nothing else."""
    lines = [_line(row, i, coverage, versions) for row in sorted(rows, key=_by_day) for i in range(len(row.cells))]
    names = tables.DAILY_AVERAGES.names
    return tables.columns(tables.DAILY_AVERAGES, **{name: [line[name] for line in lines] for name in names})


def _by_day(row: Release) -> tuple[str, int]:
    return row.day, row.revision


def _line(row: Release, cell: int, coverage: Decimal, versions: Mapping[str, int]) -> dict[str, Any]:
    per_home = 1000.0 * row.households[cell]
    half = noise.interval(row.scale, coverage)
    value = row.values[cell]
    return {
        "day": date.fromisoformat(row.day),
        "group": row.cells[cell],
        "revision": row.revision,
        "households": row.households[cell],
        "noisy_sum_wh": value,
        "mean_kwh": value / per_home,
        "noise_sd_kwh": noise.standard_deviation(row.scale) / per_home,
        "low_kwh": (value - half) / per_home,
        "high_kwh": (value + half) / per_home,
        "published_on": date.fromisoformat(row.published_on),
        "epsilon": _epsilon_up(row.loss),
        "version": versions[row.contract],
    }


def _epsilon_up(loss: int) -> float:
    """Return a loss as a float that is not below it."""
    nearest = loss / NANO
    return nearest if recorded(nearest) >= loss else (loss + 1) / NANO


def with_guarantee(table: pa.Table, guarantee: Mapping[str, Any]) -> pa.Table:
    """Return the table with its guarantee in the schema metadata, one JSON key."""
    text = json.dumps(guarantee, sort_keys=True, ensure_ascii=True).encode()
    return table.replace_schema_metadata({METADATA_KEY: text})


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file; the same table, the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def sums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files in place, SHA256SUMS last; untouched if they already lie there whole."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in sums(files).items()).encode()
    if _holds(folder, {**files, SUMS: listing}):
        return
    with folders.readable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        folders.write(folder / name, content, mode=_READABLE)
    folders.write(folder / SUMS, listing, mode=_READABLE)


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """A release as it is handed over: Parquet, statement, checksums."""

    path: Path

    def table(self) -> pd.DataFrame:
        """Return the daily averages as a data frame."""
        frame: pd.DataFrame = self._arrow().to_pandas(date_as_object=False)
        return frame

    def _arrow(self) -> pa.Table:
        try:
            return pq.read_table(self.path / AVERAGES)
        except (OSError, pa.ArrowException):
            raise InputError(f"{AVERAGES} is missing or damaged; ask for the release again") from None

    @property
    def statement(self) -> dict[str, Any]:
        """Return the statement."""
        try:
            claim = json.loads((self.path / STATEMENT).read_bytes())
        except (OSError, ValueError):
            raise InputError(f"{STATEMENT} is missing or damaged; ask for the release again") from None
        if not isinstance(claim, dict):
            raise InputError(f"{STATEMENT} is no statement; ask for the release again")
        return claim

    def verify(self) -> None:
        """Check sums, schema and arithmetic.

        Raises:
            InputError: which file or figure is not as it was published.
        """
        self._verify_sums()
        table = self._arrow()
        if table.schema.remove_metadata() != tables.DAILY_AVERAGES.remove_metadata():
            raise InputError(f"{AVERAGES} has other columns than it was published with")
        guarantee = (table.schema.metadata or {}).get(METADATA_KEY)
        if guarantee is None:
            raise InputError(f"{AVERAGES} carries no guarantee in its metadata")
        if json.loads(guarantee)["ledger"] != self.statement["ledger"]:
            raise InputError(f"{AVERAGES} and {STATEMENT} are of different releases")
        for line in table.to_pylist():
            _check_line(line)

    def _verify_sums(self) -> None:
        try:
            listed = (self.path / SUMS).read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{SUMS} is missing: no release folder, or one that was cut off") from None
        wanted = {name: digest for digest, _, name in (line.partition("  ") for line in listed)}
        if not {AVERAGES, STATEMENT, WORDS} <= set(wanted):
            raise InputError(f"{SUMS} does not name every file of a release")
        for name, digest in wanted.items():
            path = self.path / Path(name).name
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise InputError(f"{Path(name).name} is not the file that was published; ask for the release again")


def _check_line(line: Mapping[str, Any]) -> None:
    mean = line["noisy_sum_wh"] / (1000.0 * line["households"])
    sound = line["mean_kwh"] == mean and line["low_kwh"] <= mean <= line["high_kwh"]
    if not (sound and line["noise_sd_kwh"] > 0 and line["epsilon"] > 0 and line["households"] > 0):
        raise InputError(f"{AVERAGES}: the figures of {line['day']} do not agree with each other")


def open_release(path: str | Path) -> ReleaseFolder:
    """Return the release in a folder.

    Raises:
        InputError: there is no such folder.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name the release folder itself")
    return ReleaseFolder(folder)
