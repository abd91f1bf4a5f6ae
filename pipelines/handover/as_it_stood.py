"""LEDGER -> release folder as of a date: the ledger stores every statement, so each can be written out again.

A statement is selected by its number in the ledger, or by a date: the last one made by the end of that date. A clock
that was set back can give a statement an early date. So its date here is never before that of a row that it describes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger import Ledger, StatementRecord
from pipelines import locks
from pipelines.handover.in_place import add_checksums, file_checksums, make_folder, write_release_files
from pipelines.handover.received import ReleaseFolder
from pipelines.publish import folder_files
from pipelines.work import Work


def write_folder_as_of(work: Work, ledger: Ledger, day: date) -> bool:
    """Write the release folder as of the end of a day; return whether its bytes are the same.

    Other software, another [output] interval or another [compare] writes the same values in other bytes.

    Raises:
        InputError: nothing was published by that day.
        LedgerError: the statement contains other days or losses than the rows that it names.
        ContractChanged: the run file differs from the contract.
    """
    statements = [
        statement for known_on, statement in _dated_statements(ledger, work.population) if known_on <= day.isoformat()
    ]
    if not statements:
        raise InputError(f"nothing was published to {work.population!r} by {day}")
    return _write_folder(work, ledger, statements[-1])


def write_folder_of_statement(work: Work, ledger: Ledger, seq: int) -> bool:
    """Write the release folder of the statement with this number; return whether its bytes are the same.

    Raises:
        InputError: no statement of the population has this number.
        LedgerError: the statement contains other days or losses than the rows that it names.
        ContractChanged: the run file differs from the contract.
    """
    statements = [statement for statement in ledger.statements(work.population) if statement.seq == seq]
    if not statements:
        raise InputError(f"no statement to {work.population!r} has the number {seq}; `agedp ledger show` lists them")
    return _write_folder(work, ledger, statements[0])


def _write_folder(work: Work, ledger: Ledger, statement_record: StatementRecord) -> bool:
    ledger.require_unchanged(work.promise, population=work.population)
    statement = json.loads(statement_record.claim)
    newest = ledger.row_number(statement["ledger"]["head"]) or 0
    rows = [row for row in ledger.rows(work.population) if row.seq <= newest]
    contracts = [contract for contract in ledger.contracts(work.population) if contract.seq <= newest]
    files = folder_files(work, ledger, statement, rows, contracts)
    is_same = file_checksums(files) == dict(statement_record.files)
    if not is_same:
        _check_bounds_agree(files)
    with locks.exclusive_lock(make_folder(work.release)):
        write_release_files(work.release, files)
        if work.remote_folder is not None:
            work.remote_folder.put(add_checksums(files))
    return is_same


def _check_bounds_agree(files: Mapping[str, bytes]) -> None:
    """Check that a statement agrees with its tables, where its files cannot be compared byte for byte."""
    with TemporaryDirectory() as folder:
        write_release_files(Path(folder), files)
        try:
            ReleaseFolder(Path(folder)).verify()
        except InputError as error:
            raise LedgerError(f"the ledger's rows are not what this statement tells: {error}") from None


def _dated_statements(ledger: Ledger, population: str) -> Iterator[tuple[str, StatementRecord]]:
    """Yield the statements of a population, each with the newest date of the rows up to it, oldest first."""
    newest_date = ""
    for row in ledger.all_rows():
        if not isinstance(row, StatementRecord):
            newest_date = max(newest_date, row.at)
        elif row.population == population:
            newest_date = max(newest_date, row.at)
            yield newest_date, row
