"""LEDGER -> release folder, of now or as of a date: the same head and software give the same bytes.

The folder is a function of the ledger's rows; nothing here reads a reading. An incomplete folder is repaired by
publishing again. The ledger stores every statement, so each can be written out again: a statement is selected by its
number in the ledger, or by a date, as the last one made by the end of that date.

Decisions:

* A clock that was set back can give a statement an early date. So its date here is never before that of a row that it
  describes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agedp.local_files import locks
from agedp.release_folder.folder_writer import add_checksums, file_checksums, make_folder, write_release_files
from agedp.release_folder.release_folder import PACKAGE, REPORT, ROWS, STATEMENT, WORDS, ReleaseFolder, open_release
from agedp.release_folder.result_tables import list_published_series, parquet_bytes, series_table
from agedp.reports.public_report import public_report
from agedp.run_context import Work, apply_earlier_contracts
from agedp.statement_facts import (
    bounds_across_populations,
    contract_versions,
    counted_states_flags,
    estimation_periods,
    loss_bounds,
    newest_head,
    other_populations,
    release_titles,
    series_end,
    statement_notes,
)
from agedp_data.datasets.zone_changes import tzdata_version
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord, StatementRecord
from agedp_data.ledger.transfer import export_population, format_export
from agedp_data.notions.notion import LossBound
from agedp_data.statement.datapackage import datapackage
from agedp_data.statement.document import Statement, read_statement
from agedp_data.statement.facts import StatementFacts, build_statement
from agedp_data.statement.markdown import markdown

__all__ = ["ReleaseFolder", "open_release", "publish_release", "write_folder_as_of", "write_folder_of_statement"]


SOFTWARE = ("agedp", "opendp", "numpy", "scipy", "pyarrow")
_ATTEMPTS = 5


def publish_release(work: Work, ledger: Ledger) -> None:
    """Write the release folder of the ledger, and store its statement; does nothing without a release.

    One run at a time: of two concurrent runs, the one that has read fewer rows must not overwrite the newer folder. The
    statement is consistent: no release is stored between its rows and its own record.

    Raises:
        ContractChanged: the run file differs from the contract; nothing is published.
        InputError: another run writes to the same URL again and again.
    """
    ledger.require_unchanged(work.promise, population=work.population)
    if ledger.rows(work.population):
        with locks.exclusive_lock(make_folder(work.release)):
            for _ in range(_ATTEMPTS):
                files = ledger.in_one_transaction(lambda: _record_statement(work, ledger))
                write_release_files(work.release, files)
                head = ledger.head()
                if work.remote_folder is None or (
                    work.remote_folder.put(add_checksums(files)) and ledger.head() == head
                ):
                    return
        raise InputError("[output] release: another run keeps writing there at the same time; run again")


def _record_statement(work: Work, ledger: Ledger) -> dict[str, bytes]:
    """Store the statement of all rows in the ledger and return the files of the release folder."""
    ledger.require_unchanged(work.promise, population=work.population)
    apply_earlier_contracts(work, ledger)
    rows, contracts = ledger.rows(work.population), ledger.contracts(work.population)
    text = build_statement(_statement_facts(work, ledger, contracts, rows)).text()
    statement = read_statement(text)  # with its keys in the order in which the ledger returns them
    files = folder_files(work, ledger, statement, rows, contracts)
    ledger.record(
        text,
        population=work.population,
        files=file_checksums(files),
        software=json.dumps(statement.software, sort_keys=True),
        at=_statement_date(work, ledger),
    )
    return files


def _statement_date(work: Work, ledger: Ledger) -> str:
    """Return the date of a statement: today, but never before its rows or the statement before it."""
    dates = [
        row.at for row in ledger.all_rows() if not isinstance(row, StatementRecord) or row.population == work.population
    ]
    today = [] if work.run.schedule.mode == "rehearsal" else [work.today.isoformat()]
    return max([*dates, *today])


def folder_files(
    work: Work,
    ledger: Ledger,
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> dict[str, bytes]:
    """Return the files of a release folder without its checksums; they depend on the run file by the interval only."""
    files = {
        STATEMENT: _json_bytes(statement.content()),
        WORDS: markdown(statement).encode(),
        ROWS: format_export(export_population(ledger, work.population, head=statement.ledger.head)).encode(),
    }
    for series in list_published_series(rows, contracts):
        table = series_table(series, statement, rows, contracts, coverage=work.run.output.interval)
        files[series.file] = parquet_bytes(table)
    files[REPORT] = public_report(work, ledger, statement, rows, contracts)
    # the data package lists all other files, so it comes last
    files[PACKAGE] = _json_bytes(datapackage(statement, files))
    return files


def _json_bytes(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def _statement_facts(
    work: Work, ledger: Ledger, contracts: Sequence[ContractRecord], rows: Sequence[ReleaseRecord]
) -> StatementFacts:
    released = {row.day for row in rows if row.state == "released"}
    beyond_states, represented = counted_states_flags(contracts, rows)
    return StatementFacts(
        title=release_titles(work),
        contract=json.loads(contracts[-1].promise),
        days=sorted(released),
        skipped=sorted({row.day for row in rows} - released),  # a day that one series only skipped is released
        published_on=sorted({row.published_on for row in rows if row.state == "released"}),
        bounds=[*statement_bounds(work, rows), *bounds_across_populations(ledger, work.population)],
        limits=work.run.notion.limits,
        ending=series_end(work, contracts, rows),
        model=work.model.public if work.model else None,
        notes=statement_notes(work, ledger),
        ledger_id=ledger.id,
        head=newest_head(ledger),
        versions=contract_versions(contracts),
        software={name: version(name) for name in SOFTWARE} | _tzdata_software(),
        other_populations=len(other_populations(ledger, work.population)),
        opening=work.run.promise.opening,
        beyond_states=beyond_states,
        represented=represented,
        estimated_from=estimation_periods(contracts),
    )


def statement_bounds(work: Work, rows: Sequence[ReleaseRecord]) -> list[LossBound]:
    """Return the bounds of these releases under the promise and under every other notion that applies."""
    return loss_bounds(work, rows)


def _tzdata_software() -> dict[str, str]:
    """Return the version of the time zone database, which decides where days begin."""
    database_version = tzdata_version()
    return {"tzdata": database_version} if database_version else {}


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
        raise InputError(f"no statement of {work.population!r} was published by {day}")
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
        raise InputError(f"no statement of {work.population!r} has the number {seq}; `agedp ledger show` lists them")
    return _write_folder(work, ledger, statements[0])


def _write_folder(work: Work, ledger: Ledger, statement_record: StatementRecord) -> bool:
    ledger.require_unchanged(work.promise, population=work.population)
    statement = read_statement(statement_record.claim)
    newest = ledger.row_number(statement.ledger.head) or 0
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
            raise LedgerError(f"the ledger's rows differ from this statement: {error}") from None


def _dated_statements(ledger: Ledger, population: str) -> Iterator[tuple[str, StatementRecord]]:
    """Yield the statements of a population, each with the newest date of the rows up to it, oldest first."""
    newest_date = ""
    for row in ledger.all_rows():
        if not isinstance(row, StatementRecord):
            newest_date = max(newest_date, row.at)
        elif row.population == population:
            newest_date = max(newest_date, row.at)
            yield newest_date, row
