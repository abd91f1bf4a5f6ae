"""Ledger transfer, recovery of a lost ledger, and verification of a release folder against a ledger.

* Transfer: LEDGER -> file -> LEDGER (`export_ledger`, `import_ledger`).
* Recovery: release folder -> LEDGER (`recover`). A folder contains one population: each other population of a lost
  ledger is recovered to a ledger of its own.
* Verification (`agedp verify FOLDER --ledger URL`, for recipients who are given a ledger): the folder's head is in the
  hash chain, and the values of folder and ledger are equal.

Decisions:

* Only one copy of a ledger may continue: `export_ledger` with `closed_at` closes the old one in the transaction that
  exports its rows.
* A recovered ledger cannot have the old hashes, because a folder does not contain every earlier statement. So it begins
  with a recovery record that names them (`agedp_data.ledger.lifecycle`), and further releases follow the folder's last
  one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from agedp.local_files import atomic_files
from agedp.release_folder.folder_files import ROWS, SUMS
from agedp.release_folder.partitions import partitions_of, stated_checksums
from agedp.release_folder.verification import check_tables
from agedp.release_verification import ReleaseFolder, open_release
from agedp_data import clock
from agedp_data.errors import InputError, LedgerBehind, LedgerError
from agedp_data.foreign_files import read_lines, read_small_file
from agedp_data.ledger import Ledger, ReleaseRecord, StatementRecord, transfer
from agedp_data.ledger.backends.connect import database_at
from agedp_data.ledger.records import Row
from agedp_data.messages import suggest_file

if TYPE_CHECKING:
    from agedp.release_verification import Verification


def export_ledger(url: str, path: Path, *, closed_at: date | None = None) -> int:
    """Write every row of a ledger to a file; with `closed_at`, close the ledger; return the number of rows.

    The file records that the ledger is closed, and only after it was. A closed ledger can be exported again, with
    `closed_at` or without: the file is the same. Where the same file exists already, closing continues: an earlier call
    was interrupted between the two.

    Raises:
        LedgerError: the ledger does not exist.
        InputError: another file of that name exists.
    """
    name_taken = InputError("the file to export to exists; name a new one", private=f"{path} exists; name a new file")
    if path.exists() and closed_at is None:
        raise name_taken
    written: list[Row] = []

    def write(rows: tuple[Row, ...]) -> None:
        written[:] = rows
        if not path.exists():
            atomic_files.write(path, _export_bytes(rows, closed=False))
            return
        exports = (_export_bytes(rows, closed=closed) for closed in (True, False))
        if not path.is_file() or path.read_bytes() not in exports:
            raise name_taken

    with Ledger.open(url) as ledger:
        if closed_at is None and not ledger.is_closed():
            write(ledger.all_rows())
        else:
            ledger.export_and_close(write, at=closed_at or clock.today())
            closed_export = _export_bytes(written, closed=True)
            if path.read_bytes() != closed_export:
                atomic_files.write(path, closed_export)
    return len(written)


def _export_bytes(rows: Sequence[Row], *, closed: bool) -> bytes:
    return transfer.format_export(transfer.complete_export(rows, is_closed=closed)).encode("ascii")


def import_ledger(path: Path, url: str, *, lost_at: date | None = None) -> int:
    """Fill an empty new ledger with the rows of an exported file, every hash recomputed; return the number of rows.

    `lost_at` states that the exported ledger, which was not closed, no longer exists; the new one records the takeover.

    Raises:
        LedgerError: a file that is not an export or was changed, an export of a ledger that may still continue, or a
            target ledger that is not empty.
    """
    export = transfer.parse_export(_read_rows(path))
    if not export.is_complete:
        raise LedgerError(
            "these rows are only a part of a ledger; `agedp ledger recover FOLDER` restores one from them"
        )
    complete = transfer.complete_export(export.rows)
    if (export.ledger, export.head) != (complete.ledger, complete.head):
        raise LedgerError("the file of ledger rows does not end at the head that it names; take a good copy")
    if not export.is_closed and lost_at is None:
        raise LedgerError(
            "this was exported from a ledger that can still continue, and two ledgers would draw the same days twice; "
            "export it with --close, or give --lost if that ledger no longer exists"
        )
    rows = export.rows
    if not export.is_closed and lost_at is not None:
        rows = transfer.takeover_rows(export, at=lost_at.isoformat())
    _fill(url, rows)
    return len(export.rows)


def recover(path: str | Path, url: str, *, at: date) -> int:
    """Restore a lost ledger from a release folder into an empty new one; return the number of recovered releases.

    Raises:
        InputError: a tampered or damaged folder.
        LedgerError: a folder without its ledger rows, rows that differ from its tables, or a ledger that is not empty.
    """
    folder = open_release(path)
    folder.verify()
    export, statement = folder.ledger_rows(), folder.read_statement()
    if (export.ledger, export.head) != (statement.ledger.id, statement.ledger.head):
        raise LedgerError(f"{ROWS} and statement.json are of different ledgers")
    if not all(transfer.is_folder_record(row) for row in export.rows if isinstance(row, StatementRecord)):
        raise LedgerError(f"{ROWS} holds statements, which no folder carries")
    software = json.dumps(statement.software, sort_keys=True)
    published = [row.published_on for row in export.rows if isinstance(row, ReleaseRecord)]
    newest = max(published, default=export.rows[0].at)
    record = StatementRecord(statement.population, statement.text(), _stated_files(folder), software, at=newest)
    _fill(url, transfer.recovered_rows(export, record, at=at.isoformat()))
    return len(published)


def _stated_files(folder: ReleaseFolder) -> tuple[tuple[str, str], ...]:
    """Return the files of a folder as the ledger keeps them with its statement."""
    listing = read_small_file(folder.path, SUMS)
    return tuple(sorted(stated_checksums(folder.checksums, listing).items()))


def _fill(url: str, rows: tuple[Row, ...]) -> None:
    with database_at(url).removed_on_error(), Ledger.open(url, create=True) as ledger:
        ledger.import_rows(rows)


def _read_rows(path: Path) -> Iterator[str]:
    try:
        if not path.is_file():  # a pipe may never end
            raise FileNotFoundError
        yield from read_lines(path)
    except (OSError, ValueError):
        raise InputError(
            "the file of ledger rows is missing or damaged",
            private=f"{path}: missing or damaged; take a good copy{'' if path.exists() else suggest_file(path)}",
        ) from None


def verify(folder: str | Path, *, ledger: str | None = None, key: str = "", not_before: str = "") -> Verification:
    """Verify a release folder against its ledger rows: tables, statement, texts; and against a ledger if one is named.

    Use it on every folder that you receive, before you read a value.

    Args:
        folder: the release folder.
        ledger: URL of the ledger that it was published from; recipients have none.
        key: fingerprint of the key that must have signed it, got by another way than the folder (64 hex digits).
        not_before: `newest_row` of an earlier folder; an older folder is refused.

    Returns:
        What was compared with the ledger rows of the folder, and what was not.

    Raises:
        InputError: what differs from what was published; the message names file, day and column, or the figure.
        LedgerError: the ledger is damaged, or differs from the folder.

    >>> verify("nowhere")
    Traceback (most recent call last):
        ...
    agedp_data.errors.InputError: nowhere is not a folder; name the release folder itself
    """
    release = open_release(folder)
    verification = release.verify(key=key, not_before=not_before)
    if ledger is not None:
        with Ledger.open(ledger) as opened:
            if opened.verify():
                raise LedgerError("the ledger is not as it was written; `agedp ledger verify` lists what differs")
            verify_against(release, opened)
    return verification


def verify_against(folder: ReleaseFolder, ledger: Ledger) -> None:
    """Check a verified folder against a ledger: its head, its values, its files.

    Raises:
        LedgerBehind: the ledger lacks rows that the folder contains.
        LedgerError: another ledger, other values, or files of which the ledger has no statement.
    """
    statement = folder.read_statement()
    population, head = statement.population, statement.ledger.head
    if ledger.row_number(head) is None:
        if ledger.length() and statement.ledger.id != ledger.id:
            raise LedgerError("the folder's head is not on the hash chain: it was published from another ledger")
        raise LedgerBehind(
            "the ledger is shorter than the folder: it lacks the row that the folder ends with; put back its newest "
            "copy, or restore it from the folder (`agedp ledger recover`)"
        )
    rows = transfer.export_population(ledger, population, head=head).rows
    tables = folder.series_tables()  # months together: those of a recovered ledger have other row numbers
    try:
        check_tables(tables, tables.__getitem__, statement, partitions_of(rows, monthly=False))
    except InputError as error:
        raise LedgerError(f"the folder and the ledger contain different values: {error}") from None
    files = _stated_files(folder)
    if files not in {*(statement.files for statement in ledger.statements(population)), *ledger.earlier_folder_files()}:
        raise LedgerError("the ledger keeps no statement with the files of this folder; `agedp publish` writes it anew")
