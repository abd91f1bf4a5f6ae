"""A release folder for its recipients: read the tables and the statement, and verify that nothing was changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp.release_folder.verification import (
    METADATA_KEY,
    PublishedValue,
    check_averages,
    check_distribution,
    first_differing_day,
    ledger_values,
    published_value,
)
from agedp_data.datasets import filesystem
from agedp_data.epsilon import format_epsilon, round_nano
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger import ContractRecord, ReleaseRecord, canonical
from agedp_data.ledger.transfer import parse_export
from agedp_data.messages import suggest_file
from agedp_data.notions.notion import ASSUMPTION_FREE
from agedp_data.statement import datapackage
from agedp_data.statement.document import SCHEMA, odds_factor

if TYPE_CHECKING:
    import pandas as pd

AVERAGES, STATEMENT, WORDS, SUMS = "daily_averages.parquet", "statement.json", "STATEMENT.md", "SHA256SUMS"
ROWS, PACKAGE, REPORT = "ledger_rows.jsonl", "datapackage.json", "report.html"
MEANS, DISTRIBUTION = "daily_averages", "daily_distribution"
_RELEASE_FILE = re.compile(r"daily_(averages|distribution)(_.+)?\.parquet|report\.html")
_WITHOUT_PACKAGE = ("agedp-statement-1",)
__all__ = ["METADATA_KEY", "ReleaseFolder", "open_release"]
_EPSILON_TEXT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def is_release_file(name: str) -> bool:
    """Return whether a release folder may contain a file of this name; other files are neither checked nor removed."""
    return name in (AVERAGES, STATEMENT, WORDS, ROWS, PACKAGE, SUMS) or _RELEASE_FILE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """A release folder: Parquet tables, statement, data package, checksums."""

    path: Path

    def table(self, name: str = MEANS) -> pd.DataFrame:
        """Return a published table as a data frame: the daily averages, or the table of this name.

        Raises:
            InputError: the release has no such table, or it is damaged.
        """
        frame: pd.DataFrame = self._arrow(f"{name}.parquet").to_pandas(date_as_object=False)
        return frame

    def averages(self) -> dict[str, pa.Table]:
        """Return the daily averages by file name: one file for each series that is a mean.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(MEANS)

    def distributions(self) -> dict[str, pa.Table]:
        """Return the daily distributions by file name, one file for each such series.

        Raises:
            InputError: a file that is missing or damaged.
        """
        return self._tables(DISTRIBUTION)

    def _tables(self, kind: str) -> dict[str, pa.Table]:
        names = [name for name in self.checksums if name.startswith(kind) and name.endswith(".parquet")]
        return {name: self._arrow(name) for name in names}

    def _arrow(self, name: str) -> pa.Table:
        try:
            return pq.read_table(self.path / name)
        except (OSError, pa.ArrowException):
            raise InputError(f"{name} is missing or damaged; ask for the release again") from None

    @property
    def statement(self) -> dict[str, Any]:
        """Return the statement.

        Raises:
            InputError: statement.json is missing or damaged.
        """
        try:
            statement = json.loads((self.path / STATEMENT).read_bytes())
        except (OSError, ValueError):
            raise InputError(f"{STATEMENT} is missing or damaged; ask for the release again") from None
        if not isinstance(statement, dict):
            raise InputError(f"{STATEMENT} is not a statement; ask for the release again")
        return statement

    @property
    def checksums(self) -> dict[str, str]:
        """Return the SHA-256 of each file by its name, as SHA256SUMS lists them.

        Raises:
            InputError: SHA256SUMS is missing or damaged.
        """
        return {
            name: digest
            for digest, _, name in (line.partition("  ") for line in self._checksum_text().split("\n")[:-1])
        }

    def _checksum_text(self) -> str:
        try:
            return (self.path / SUMS).read_bytes().decode("ascii")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{SUMS} is missing: no release folder, or one that was cut off") from None

    def other_files(self) -> tuple[str, ...]:
        """Return the names of files in the folder that are not part of a release and are not verified."""
        return tuple(sorted(path.name for path in self.path.iterdir() if not is_release_file(path.name)))

    def verify(self) -> None:
        """Verify checksums, schema and arithmetic: every value must follow from the other ones.

        Raises:
            InputError: a file or value that differs from what was published.
        """
        self._verify_sums()
        statement = self.statement
        if statement.get("schema") not in (SCHEMA, *_WITHOUT_PACKAGE):
            raise InputError(f"{STATEMENT} is of a version that this agedp does not know; update agedp")
        try:
            rows = [row for name, table in self.averages().items() for row in check_averages(name, table, statement)]
            rows += [
                row
                for name, table in self.distributions().items()
                for row in check_distribution(name, table, statement)
            ]
            _check_statement(statement, rows)
            self._verify_rows(statement, [published_value(row) for row in rows])
            _check_words((self.path / WORDS).read_text(encoding="utf-8"), statement)
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise InputError(f"its tables or {STATEMENT} lack entries of a release") from None
        self._verify_package(statement)

    def _verify_sums(self) -> None:
        listed, expected = self._checksum_text(), self.checksums
        tables = [name for name in expected if name.startswith((MEANS, DISTRIBUTION))]
        if not tables or not {STATEMENT, WORDS} <= set(expected):
            raise InputError(f"{SUMS} does not name every file of a release")
        if listed != "".join(f"{digest}  {name}\n" for name, digest in expected.items()):
            raise InputError(f"{SUMS} differs from the published file; ask for the release again")
        for name, digest in expected.items():
            path = self.path / Path(name).name
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise InputError(f"{Path(name).name} differs from the published file; ask for the release again")
        names = {path.name for path in self.path.iterdir() if is_release_file(path.name)}
        if unlisted := sorted(names - set(expected) - {SUMS}):
            raise InputError(
                f"{', '.join(unlisted)}: not listed in {SUMS}, so not part of this release; remove it, or ask for the "
                "release again"
            )

    def _verify_rows(self, statement: Mapping[str, Any], published: Sequence[PublishedValue]) -> None:
        """Check that the ledger rows in the folder, which serve recovery, agree with tables and statement."""
        if ROWS not in self.checksums:
            return
        try:
            ledger_rows = parse_export((self.path / ROWS).read_text(encoding="utf-8")).rows
        except (LedgerError, UnicodeDecodeError) as error:
            raise InputError(f"{ROWS}: {error}") from None
        contracts = [row for row in ledger_rows if isinstance(row, ContractRecord)]
        releases = [row for row in ledger_rows if isinstance(row, ReleaseRecord)]
        if {row.population for row in contracts} | {row.population for row in releases} != {statement["population"]}:
            raise InputError(f"{ROWS} and {STATEMENT} are of different populations")
        if not contracts or contracts[-1].promise != canonical(statement["contract"]):
            raise InputError(f"{ROWS} and {STATEMENT} hold different contracts")
        if not {row.contract for row in releases} <= {row.hash for row in contracts}:
            raise InputError(f"{ROWS} lacks a contract that its releases name")
        if day := first_differing_day(published, ledger_values(releases, contracts)):
            raise InputError(f"the tables and {ROWS} contain different values of {day}; ask for the release again")

    def _verify_package(self, statement: Mapping[str, Any]) -> None:
        """Check datapackage.json, which catalogues read; releases of early versions have none."""
        listed = set(self.checksums)
        if PACKAGE not in listed:
            if statement["schema"] not in _WITHOUT_PACKAGE:
                raise InputError(f"{SUMS} does not name {PACKAGE}, which a release of this kind has")
            return
        files = {name: (self.path / name).read_bytes() for name in listed - {PACKAGE}}
        try:
            fault = next(
                datapackage.package_faults(json.loads((self.path / PACKAGE).read_bytes()), statement, files), None
            )
        except (LookupError, TypeError, ValueError, AttributeError):
            raise InputError(f"{PACKAGE} lacks entries of a release") from None
        if fault is not None:
            raise InputError(f"{PACKAGE} {fault}; ask for the release again")


def _check_statement(statement: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Check the days and losses of the statement against the rows of the tables."""
    # the groups of a day are one release; its series are several
    losses_by_release = {(row["day"].isoformat(), row["of"]): round_nano(row["epsilon"]) for row in rows}
    spent: dict[str, int] = {}
    for (day, _), loss in losses_by_release.items():
        spent[day] = spent.get(day, 0) + loss
    dates = [row["published_on"].isoformat() for row in rows]
    min_households = statement["contract"]["population"]["min_households"]
    days = {"first": min(spent, default=""), "last": max(spent, default=""), "released": len(spent)}
    assumption_free = {
        bound["name"]: bound["epsilon"] for bound in statement["figures"] if bound["kind"] == ASSUMPTION_FREE
    }
    expected = {
        "day": format_epsilon(max(spent.values(), default=0)),
        "total": format_epsilon(sum(spent.values())),
    }
    is_consistent = (
        {key: statement["days"][key] for key in days} == days
        and not set(statement["days"]["skipped"]) & set(spent)
        and statement["published"] == {"first": min(dates, default=""), "last": max(dates, default="")}
        and all(1 <= row["version"] <= statement["version"] for row in rows)
        and all(
            row["households"] >= min_households
            for row in rows
            if row["version"] == statement["version"] and "households" in row
        )
        and {name: assumption_free[name] for name in expected} == expected
        and statement.get("ending", {"spent": assumption_free["total"]})["spent"] == assumption_free["total"]
        and all(_is_consistent(bound) for bound in statement["figures"])
    )
    if not is_consistent:
        raise InputError(f"{STATEMENT} and the tables contain different days or losses")


def _is_consistent(bound: Mapping[str, str]) -> bool:
    """Return whether a bound's factor, if it has one, is e^epsilon, and its limit is at least the bound."""
    epsilon, limit = bound["epsilon"], bound.get("limit", "")
    if epsilon == "infinite":
        return bound.get("factor", epsilon) in ("", epsilon) and limit in ("", "unlimited")
    if not _EPSILON_TEXT.fullmatch(epsilon):
        return False
    loss = round_nano(Decimal(epsilon))
    is_within_limit = limit in ("", "unlimited") or Decimal(limit) >= Decimal(epsilon)
    return is_within_limit and bound.get("factor", "") in ("", odds_factor(loss))


def _check_words(words: str, statement: Mapping[str, Any]) -> None:
    lines = words.splitlines()
    for bound in statement["figures"]:
        start = f"| {bound['name']} | {bound['epsilon']} | {bound['about']} |"
        if not any(line.startswith(start) for line in lines):
            raise InputError(f"{WORDS} and {STATEMENT} contain different bounds")


def open_release(path: str | Path) -> ReleaseFolder:
    """Return the release folder at a path; use it to read or verify a release.

    Raises:
        InputError: the folder does not exist, may not be read, or is a URL.
    """
    if filesystem.is_url(str(path)):
        raise InputError(
            f"{filesystem.format_location(str(path))} is a URL; download its files into a folder, then name that folder"
        )
    folder = Path(path)
    try:
        exists = folder.is_dir()
        if exists:
            next(folder.iterdir(), None)
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check its permissions") from None
    if not exists:
        message = f"{folder} is not a folder; name the release folder itself"
        raise InputError(message, private=f"{message}{suggest_file(folder)}")
    return ReleaseFolder(folder)
