"""A release as it is handed over, for whoever receives it: read it, and check that it is as it was published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data import tables
from agedp_data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

AVERAGES, STATEMENT, WORDS, SUMS = "daily_averages.parquet", "statement.json", "STATEMENT.md", "SHA256SUMS"
METADATA_KEY = b"agedp"


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
