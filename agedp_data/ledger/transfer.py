"""Ledger transfer: rows exported as lines of JSON, parsed again, and numbered and hashed in a new chain.

A file of rows begins with a header: `schema`, the ledger's schema `version`, its `ledger` id and `head`, the number of
`rows`, whether the file is complete (`whole`), and if so whether the ledger was `closed` and cannot continue. Each
further line is one object: table, text, hash. A release folder contains such a file with the rows of its population,
from which a lost ledger can be recovered. That file omits statement rows, each of which repeats a complete statement,
except for recovery and upgrade records, the calibration draws and household accounts of its population, and signing
keys. The rows therefore get new hashes in the new chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from agedp_data.config.contract import format_reader_version
from agedp_data.errors import LedgerError
from agedp_data.foreign_files import check_nesting, parse_json
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import (
    LEDGER_POPULATION,
    SINCE_FORM_2,
    EarlierLedger,
    LedgerUpgrade,
    RecoveryRecord,
    SigningKey,
    Takeover,
    format_lifecycle_record,
    read_lifecycle_record,
)
from agedp_data.ledger.records import (
    NO_HASH,
    READABLE_VERSIONS,
    VERSION,
    ContractRecord,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
    canonical,
    columns_of,
    outline_of,
    row_from_text,
    sha256,
    table_of,
    text_of,
)

if TYPE_CHECKING:
    from agedp_data.ledger.ledger_reader import LedgerReader

SCHEMA: Final = "agedp-ledger-rows-1"


@dataclass(frozen=True, slots=True)
class LedgerExport:
    """Rows of a ledger, oldest first, with that ledger's id and head; `is_complete` if no row is omitted.

    `is_closed`: a complete ledger that was closed after these rows; the closing record itself is not exported.
    """

    ledger: str
    head: str
    is_complete: bool
    rows: tuple[Row, ...]
    is_closed: bool = False


def format_export(export: LedgerExport) -> str:
    """Return exported rows as the text of a file: a header and one line of JSON for each row.

    `parse_export` is the inverse. The same rows give the same bytes.
    """
    entries: dict[str, str | int] = {
        "ledger": export.ledger,
        "head": export.head,
        "whole": int(export.is_complete),
        **({"closed": int(export.is_closed)} if export.is_complete else {}),
    }
    return format_lines(SCHEMA, entries, export.rows)


def format_lines(schema: str, entries: Mapping[str, str | int], rows: Sequence[Row]) -> str:
    """Return rows as the text of a file: a header with these entries, and one line of JSON for each row."""
    header = {
        "schema": schema,
        "version": VERSION,
        **({"needs": READABLE_VERSIONS[VERSION]} if VERSION != "1" else {}),
        "rows": len(rows),
        **entries,
    }
    records = ({"table": table_of(row), "text": text_of(row), "hash": row.hash} for row in rows)
    return "".join(f"{canonical(record)}\n" for record in (header, *records))


def parse_export(lines: Iterable[str]) -> LedgerExport:
    """Return the rows of an exported file; their hashes are not checked here.

    Args:
        lines: of the file, each with its end, one in memory at a time.

    Raises:
        LedgerError: another kind of file, a newer version, a truncated file, or a line that is no row.
    """
    header, rows = parse_lines(lines, SCHEMA)
    is_complete, is_closed = (header.get(key) == 1 for key in ("whole", "closed"))
    return LedgerExport(str(header.get("ledger")), str(header.get("head")), is_complete, rows, is_closed)


def parse_lines(lines: Iterable[str], schema: str) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """Return the header of a file of this schema and its rows; the inverse of `format_lines`.

    The first line that is no row ends the reading, so that no more of a file than its good rows is in memory.

    Raises:
        LedgerError: as `parse_export`.
    """
    cut_off = LedgerError("the file of ledger rows was cut off; write or fetch it again")
    numbered = enumerate(lines, 1)
    number, first = next(numbered, (1, "{}"))
    header = _parse_object(number, first)
    if header.get("schema") != schema:
        raise LedgerError("the file is not one of ledger rows that this agedp knows; `agedp ledger export` writes one")
    if header.get("version") not in READABLE_VERSIONS:
        version, reader = ascii(header.get("version")), format_reader_version(header.get("needs"))
        raise LedgerError(f"the file of ledger rows has version {version}, which {reader} reads; update agedp")
    rows: list[Row] = []
    for number, line in numbered:
        record = _parse_object(number, line) if line.endswith("\n") else None
        if record is None or len(rows) == header.get("rows"):
            raise cut_off
        rows.append(_parse_row(number, record))
    if header.get("rows") != len(rows) or not first.endswith("\n"):
        raise cut_off
    return header, tuple(rows)


def _parse_object(number: int, line: str) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise LedgerError(f"line {number} is not a row of a ledger; take a good copy of the file")
    return record


def _parse_row(number: int, record: Mapping[str, Any]) -> Row:
    try:
        if set(record) == {"table", "text", "hash"} and all(isinstance(value, str) for value in record.values()):
            row = row_from_text(record["table"], record["text"], record["hash"])
            check_nesting(_inner_text(row))
            return row
        problem = "its keys are not table, text and hash, each with a text"
    except ValueError as error:
        problem = str(error)
    raise LedgerError(f"line {number} is not a row of a ledger: {problem}; take a good copy of the file")


def _inner_text(row: Row) -> str:
    """Return the JSON text in a row, which later readers parse without a limit."""
    match row:
        case ContractRecord(promise=text) | ModelRecord(envelope=text) | StatementRecord(claim=text):
            return text
    return ""


def complete_export(rows: Sequence[Row], *, is_closed: bool = False) -> LedgerExport:
    """Return the export of all rows of a ledger, for `agedp ledger export`.

    Args:
        rows: all rows, oldest first, without a closing record.
        is_closed: whether that ledger was closed, so that no row can be added to it any more.
    """
    first, last = (rows[0].hash, rows[-1].hash) if rows else ("", NO_HASH)
    return LedgerExport(first, last, is_complete=True, rows=tuple(rows), is_closed=is_closed)


def export_population(ledger: LedgerReader, population: str, *, head: str) -> LedgerExport:
    """Return the export of one population for its release folder: contracts, models and releases up to `head`.

    The recovery record of a recovered ledger is included; of one with calibration draws or household accounts, these
    and its upgrades.

    Raises:
        LedgerError: no row of the ledger has the hash `head`.
    """
    outline = export_outline(ledger, population, head=head)
    return replace(outline, rows=complete_rows(ledger, outline.rows))


def export_outline(ledger: LedgerReader, population: str, *, head: str) -> LedgerExport:
    """Return the same export with releases of which no vector is read (`records.outline_of`).

    Raises:
        LedgerError: no row of the ledger has the hash `head`.
    """
    newest = ledger.row_number(head)
    if newest is None:
        raise LedgerError("the head that was asked for lies on no row of the ledger")
    contracts = ledger.contracts(population)
    headers = [header for header in ledger.history(population) if header.seq <= newest]
    model_ids = {row.model for row in headers} | {row.terms.model_hash for row in contracts if row.seq <= newest}
    models = [row for row in ledger.models() if row.model in model_ids]
    records = ledger.statements(LEDGER_POPULATION)
    is_signed = any(row.terms.is_signed for row in contracts if row.seq <= newest)
    of_population = _record_rows(records, population, is_signed=is_signed)
    found: list[Row] = [*_recovery_rows(records), *of_population, *contracts, *models]
    rows = [*(row for row in found if row.seq <= newest), *map(outline_of, headers)]
    return LedgerExport(ledger.id, head, is_complete=False, rows=tuple(sorted(rows, key=lambda row: row.seq)))


def complete_rows(ledger: LedgerReader, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows of a ledger with the complete releases in the places of their outlines."""
    releases = ledger.rows_of(row for row in rows if isinstance(row, ReleaseRecord))
    by_number = {row.seq: row for row in releases}
    return tuple(by_number.get(row.seq, row) for row in rows)


def _is_record(row: Row, kinds: type | tuple[type, ...]) -> TypeGuard[StatementRecord]:
    """Return whether a row is a lifecycle record of one of these kinds."""
    return isinstance(row, StatementRecord) and isinstance(read_lifecycle_record(row), kinds)


def _recovery_rows(rows: Iterable[Row]) -> list[StatementRecord]:
    return [row for row in rows if _is_record(row, RecoveryRecord)]


def _record_rows(rows: Iterable[Row], population: str, *, is_signed: bool) -> list[StatementRecord]:
    """Return the draws, accounts and, where folders are signed, keys of a population, after the upgrades for them.

    An account may be the head that an earlier statement names, so that a recovered ledger must know it.
    """
    records = [(row, read_lifecycle_record(row)) for row in rows if isinstance(row, StatementRecord)]
    upgrades = [row for row, record in records if isinstance(record, LedgerUpgrade)]
    entries = [
        row
        for row, record in records
        if (is_signed and isinstance(record, SigningKey))
        or (isinstance(record, SINCE_FORM_2) and record.population == population)
    ]
    return [*upgrades, *entries] if entries else []


def is_folder_record(row: StatementRecord) -> bool:
    """Return whether the rows of a release folder may contain this statement row."""
    return isinstance(read_lifecycle_record(row), (RecoveryRecord, LedgerUpgrade, SigningKey, *SINCE_FORM_2))


def recovered_rows(export: LedgerExport, statement: StatementRecord, *, at: str) -> tuple[Row, ...]:
    """Return the rows of a recovered ledger: recovery record, the rows of a folder with new hashes, its statement.

    The recovery record names the lost ledger, the hashes that its rows had there, and the files that they were read
    from; the same for each ledger before it, if the lost ledger had been recovered itself.

    Raises:
        LedgerError: the rows are no valid chain.
    """
    recoveries = _recovery_rows(export.rows)
    restored = [row for row in export.rows if row not in recoveries]
    earlier = [ledger for row in recoveries for ledger in _earlier_ledgers(row, restored)]
    record = RecoveryRecord(export.ledger, export.head, tuple(row.hash for row in restored), tuple(earlier))
    text, files, software = format_lifecycle_record(record), statement.files, statement.software
    recovery = StatementRecord(LEDGER_POPULATION, text, files, software, at=at)
    return _rebuild_chain([recovery, *restored, statement])


def _earlier_ledgers(recovery: StatementRecord, restored: Sequence[Row]) -> list[EarlierLedger]:
    """Return the ledgers that a recovery record names, their hashes in the order of the restored rows."""
    record = read_lifecycle_record(recovery)
    if not isinstance(record, RecoveryRecord):
        return []
    latest, ledgers = EarlierLedger(record.ledger, record.head, record.hashes, recovery.files), []
    for ledger in (*record.earlier_ledgers, latest):
        hash_by_number = dict(enumerate(ledger.hashes, recovery.seq + 1))
        last = max((number for number, row in enumerate(restored, 1) if hash_by_number.get(row.seq)), default=0)
        ledgers.append(replace(ledger, hashes=tuple(hash_by_number.get(row.seq, "") for row in restored[:last])))
    return ledgers


def takeover_rows(export: LedgerExport, *, at: str) -> tuple[Row, ...]:
    """Return exported rows with a takeover record, for a ledger that was never closed and is lost.

    Args:
        export: all rows of the lost ledger.
        at: date of the takeover record.

    Returns:
        The rows with their old hashes, and the takeover record as the next row of the same chain.
    """
    length = len(export.rows)
    text = format_lifecycle_record(Takeover(export.head, length))
    takeover = StatementRecord(LEDGER_POPULATION, text, (), "", seq=length + 1, at=at)
    return *export.rows, replace(takeover, hash=sha256(export.head + text_of(takeover)))


def _rebuild_chain(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return rows numbered and hashed as one chain; releases refer to the contracts by their new hashes."""
    chain, sealed, contracts = HashChain(), list[Row](), dict[str, str]()
    for row in rows:
        new_row = row
        if isinstance(new_row, ReleaseRecord):
            new_row = replace(new_row, contract=contracts.get(new_row.contract, ""))
        new_row = replace(new_row, seq=chain.length + 1)
        new_row = replace(new_row, hash=chain.next_hash(new_row))
        faults = chain.add(table_of(new_row), columns_of(new_row))
        if faults:
            raise LedgerError(f"the rows make no ledger: {faults[0].table}: {faults[0].problem}; take a good copy")
        if isinstance(row, ContractRecord):
            contracts[row.hash] = new_row.hash
        sealed.append(new_row)
    return tuple(sealed)


# --------------------------------------------------------------------------------------------------
# Ledger rows of a release folder by month of publication: a file for each month, closed once a later one has begun.
#
# A row of a release is of the month of its `published_on`, any other row of that of its date `at`, but no row is of an
# earlier month than the rows before it. So rows are only added to the newest month, also after an amendment, for late
# or given-up days, and if a clock was set back. Example: the release of 28 November that was published on 1 December
# is in `2026-12`.
#
# A file begins with a header: `schema`, `version`, `ledger`, its `month`, the hash `after` which its rows follow (that
# of the newest row of earlier months), the `head` that they end with, the number of `rows`, and `previous`, the
# SHA-256 of the file of the month before. So each file can be checked alone, given the file before it, and no file can
# be taken out, exchanged or doubled unnoticed.
#
# Decisions:
#
# * The rows of a population contain a model from the first contract or release on that names it, and upgrades from the
#   first record on that needs them, whenever they were stored. They are of the month in which they enter.
# * The recovery record of a recovered ledger, its first row, is of the first month. All rows of such a ledger have new
#   hashes, so that all months are written once more.
# * The header has no head of the whole ledger: it would change with the rows of other populations. statement.json has
#   it.
# --------------------------------------------------------------------------------------------------

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
        if _is_record(row, RecoveryRecord):
            recoveries.append(row)
        else:
            month = max(month, (row.published_on if isinstance(row, ReleaseRecord) else row.at)[:7])
            by_month.setdefault(month, []).append(row)
    if recoveries:
        by_month.setdefault(min(by_month, default=recoveries[0].at[:7]), []).extend(recoveries)
    months: list[MonthRows] = []
    newest = 0, NO_HASH
    for month, of_month in by_month.items():
        ordered = sorted(of_month, key=lambda row: row.seq)
        months.append(MonthRows(month, newest[1], tuple(ordered)))
        newest = max(newest, (ordered[-1].seq, ordered[-1].hash))
    return tuple(months)


def _by_entry(rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order in which the rows of their population contain them."""
    named_since: dict[str, int] = {}
    needed_since: list[int] = []
    for row in sorted(rows, key=lambda row: row.seq):
        if isinstance(row, ContractRecord | ReleaseRecord):
            model = row.model if isinstance(row, ReleaseRecord) else row.terms.model_hash or ""
            named_since.setdefault(model, row.seq)
        elif _is_record(row, (SigningKey, *SINCE_FORM_2)):
            needed_since.append(row.seq)

    def entry(row: Row) -> tuple[int, int]:
        since = 0
        if isinstance(row, ModelRecord):
            since = named_since.get(row.model, 0)
        elif _is_record(row, LedgerUpgrade):
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
        head = of_month[-1].hash if of_month else None
        problems = (
            ("month", month, "is of another month"),
            ("ledger", ledger, "is of another ledger"),
            ("previous", previous, "does not follow the month before it"),
            ("head", head, "does not end at the head that it names"),
        )
        for key, expected, problem in problems:
            if expected is None or header.get(key) != expected:
                raise LedgerError(f"month {month}: the file {problem}; {_ADVICE}")
        written.append((month, str(header.get("after")), of_month))
        rows += of_month
        previous = digest.hexdigest()
    rows.sort(key=lambda row: row.seq)
    for due, stored in zip(rows_by_month(rows), written, strict=False):
        if (due.month, due.after, due.rows) != stored:
            raise LedgerError(f"month {stored[0]}: rows of another month, or rows are missing before them; {_ADVICE}")
    return LedgerExport(ledger, rows[-1].hash if rows else NO_HASH, is_complete=False, rows=tuple(rows))


def _hashed(lines: Iterable[str], digest: hashlib._Hash) -> Iterator[str]:
    for line in lines:
        digest.update(line.encode())
        yield line
