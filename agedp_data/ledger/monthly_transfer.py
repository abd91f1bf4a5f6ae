"""Ledger rows of a release folder by month of publication: a file for each month, closed once a later one has begun.

A row of a release is of the month of its `published_on`, any other row of that of its date `at`, but no row is of an
earlier month than the rows before it. So rows are only added to the newest month, also after an amendment, for late or
given-up days, and if a clock was set back. Example: the release of 28 November that was published on 1 December is in
`2026-12`.

A file begins with a header: `schema`, `version`, `ledger`, its `month`, the hash `after` which its rows follow (that of
the newest row of earlier months), the `head` that they end with, the number of `rows`, and `previous`, the SHA-256 of
the file of the month before. So each file can be checked alone, given the file before it, and no file can be taken
out, exchanged or doubled unnoticed.

Decisions:

* The rows of a population contain a model from the first contract or release on that names it, and upgrades from the
  first record on that needs them, whenever they were stored. They are of the month in which they enter.
* The recovery record of a recovered ledger, its first row, is of the first month. All rows of such a ledger have new
  hashes, so that all months are written once more.
* The header has no head of the whole ledger: it would change with the rows of other populations. statement.json has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agedp_data.errors import LedgerError
from agedp_data.ledger.lifecycle import SINCE_FORM_2, LedgerUpgrade, RecoveryRecord, read_lifecycle_record
from agedp_data.ledger.records import (
    NO_HASH,
    ContractRecord,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
)
from agedp_data.ledger.transfer import LedgerExport, format_lines, parse_lines

MONTH_SCHEMA: Final = "agedp-ledger-rows-month-1"
_ADVICE: Final = "ask for the release again"


@dataclass(frozen=True, slots=True)
class MonthRows:
    """The rows of one month, oldest first, and the hash of the newest row of the months before."""

    month: str
    after: str
    rows: tuple[Row, ...]

    @property
    def head(self) -> str:
        """Return the hash of the newest row."""
        return self.rows[-1].hash


def rows_by_month(rows: Sequence[Row]) -> tuple[MonthRows, ...]:
    """Return the rows of one population by month of publication, oldest month first; a month without rows is left out.

    Args:
        rows: all rows of a population, as `export_population` returns them.
    """
    by_month: dict[str, list[Row]] = {}
    month = ""
    recoveries: list[Row] = []
    for row in _by_entry(rows):
        if _is_recovery(row):
            recoveries.append(row)
        else:
            month = max(month, (row.published_on if isinstance(row, ReleaseRecord) else row.at)[:7])
            by_month.setdefault(month, []).append(row)
    if recoveries:
        by_month.setdefault(min(by_month, default=recoveries[0].at[:7]), []).extend(recoveries)
    return tuple(_linked(by_month))


def _is_recovery(row: Row) -> bool:
    return isinstance(row, StatementRecord) and isinstance(read_lifecycle_record(row), RecoveryRecord)


def _linked(by_month: Mapping[str, Sequence[Row]]) -> Iterator[MonthRows]:
    newest = 0, NO_HASH
    for month, of_month in by_month.items():
        ordered = sorted(of_month, key=lambda row: row.seq)
        yield MonthRows(month, newest[1], tuple(ordered))
        newest = max(newest, (ordered[-1].seq, ordered[-1].hash))


def _by_entry(rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order in which the rows of their population contain them."""
    named_since: dict[str, int] = {}
    needed_since: list[int] = []
    for row in sorted(rows, key=lambda row: row.seq):
        if isinstance(row, ContractRecord | ReleaseRecord):
            model = row.model if isinstance(row, ReleaseRecord) else row.terms.model_hash or ""
            named_since.setdefault(model, row.seq)
        elif isinstance(row, StatementRecord) and isinstance(read_lifecycle_record(row), SINCE_FORM_2):
            needed_since.append(row.seq)

    def entry(row: Row) -> tuple[int, int]:
        since = 0
        if isinstance(row, ModelRecord):
            since = named_since.get(row.model, 0)
        elif isinstance(row, StatementRecord) and isinstance(read_lifecycle_record(row), LedgerUpgrade):
            since = min(needed_since, default=0)
        return max(row.seq, since), row.seq

    return sorted(rows, key=entry)


def format_month(rows: MonthRows, *, ledger: str, previous: str) -> str:
    """Return the rows of a month as the text of a file.

    Args:
        rows: of the month.
        ledger: id of the ledger.
        previous: SHA-256 of the file of the month before, "" for the first one.
    """
    entries = {"ledger": ledger, "month": rows.month, "after": rows.after, "head": rows.head, "previous": previous}
    return format_lines(MONTH_SCHEMA, entries, rows.rows)


def parse_months(files: Mapping[str, Iterable[str]]) -> LedgerExport:
    """Return the rows of all months together; their hashes are not checked here.

    Args:
        files: the lines of each month's file, each with its end.

    Raises:
        LedgerError: a file is missing, damaged, exchanged or of another ledger; the message names its month.
    """
    rows: list[Row] = []
    written: list[tuple[str, str, tuple[Row, ...]]] = []
    previous, ledger = "", ""
    for month, lines in sorted(files.items()):
        digest = hashlib.sha256()
        try:
            header, of_month = parse_lines(_hashed(lines, digest), MONTH_SCHEMA)
        except LedgerError as error:
            raise LedgerError(f"month {month}: {error}") from None
        ledger = ledger or str(header.get("ledger"))
        if header.get("month") != month:
            raise LedgerError(f"month {month}: the file is of another month; {_ADVICE}")
        if header.get("ledger") != ledger:
            raise LedgerError(f"month {month}: the file is of another ledger; {_ADVICE}")
        if header.get("previous") != previous:
            raise LedgerError(f"month {month}: the file does not follow the month before it; {_ADVICE}")
        if not of_month or header.get("head") != of_month[-1].hash:
            raise LedgerError(f"month {month}: the file does not end at the head that it names; {_ADVICE}")
        written.append((month, str(header.get("after")), of_month))
        rows += of_month
        previous = digest.hexdigest()
    rows.sort(key=lambda row: row.seq)
    for expected, stored in zip(rows_by_month(rows), written, strict=False):
        if (expected.month, expected.after, expected.rows) != stored:
            raise LedgerError(f"month {stored[0]}: rows of another month, or rows are missing before them; {_ADVICE}")
    return LedgerExport(ledger, rows[-1].hash if rows else NO_HASH, is_complete=False, rows=tuple(rows))


def _hashed(lines: Iterable[str], digest: hashlib._Hash) -> Iterator[str]:
    for line in lines:
        digest.update(line.encode())
        yield line
