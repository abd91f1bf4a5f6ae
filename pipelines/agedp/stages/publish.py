"""LEDGER -> release folder, of now or as of a date: the same head and software give the same bytes.

The folder is a function of the ledger's rows; nothing here reads a reading. A folder that is published already, of
this ledger and run file, is left as it is (`publish`). An incomplete folder is repaired by publishing
again. The ledger stores every statement, so each can be written out again: a statement is selected by its
number in the ledger, or by a date, as the last one made by the end of that date.

Decisions:

* A clock that was set back can give a statement an early date. So its date here is never before that of a row that it
  describes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agedp.internal_records.bookkeeping import record_of, save_publication
from agedp.internal_records.population_accounts import recorded_account
from agedp.internal_records.signing_keys import keys_of, signing_key
from agedp.ledger_session import LedgerSession, last_publication
from agedp.release_folder.folder_files import DEPLOYMENT, EXPLORE, REPORT, STATEMENT, SUMS, WORDS, json_bytes
from agedp.release_folder.folder_writer import (
    FolderContent,
    UnchangedPartitions,
    locked_release_folder,
    release_content,
    unchanged_partitions,
    write_release_files,
)
from agedp.release_verification import ReleaseFolder, open_release
from agedp.reports.chart_library import installed_library
from agedp.reports.report_data import ReleasedRows, charted_rows
from agedp.run_context import RunContext
from agedp.stage_values import DueDays
from agedp.stages.release import naming_charged_days
from agedp.statement_facts import SOFTWARE, statement_facts
from agedp_data.config import RunFile
from agedp_data.datasets.timestamps import tzdata_version
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord, StatementRecord
from agedp_data.ledger.lifecycle import LEDGER_POPULATION, PopulationAccount, SigningKey
from agedp_data.ledger.signature import KeyHistory, SignedFolder
from agedp_data.ledger.transfer import export_outline, export_population
from agedp_data.model import Model
from agedp_data.series.mean import AVERAGES_BY, PERIODS
from agedp_data.series.result_table import DerivedTable, Noise
from agedp_data.series.series import DERIVED_TABLES
from agedp_data.statement.deployment import deployment
from agedp_data.statement.document import Statement, read_statement
from agedp_data.statement.facts import build_statement
from agedp_data.statement.markdown import markdown
from agedp_data.statement.note_texts import NOTES
from agedp_data.versions import version

__all__ = ["ReleaseFolder", "open_release", "publish_release", "write_folder_as_of", "write_folder_of_statement"]


# --------------------------------------------------------------------------------------------------
# Whether the release folder is published already: same ledger, same software and run file, same files.
#
# The files of a release folder follow from the ledger, the run file, the roster's counts and the versions of the
# software. If none of them has changed since the last complete publication, and no file of the
# folder, publishing again would write the same bytes; so it is left out.
#
# Decisions.
#
# * A folder at a URL is always published again: other machines may write there, and only reading it back shows it.
# * A run that has read the ledger completely publishes in any case. So once a month (`ledger_checkpoints`) every byte
#   of the folder is compared with the ledger, whatever times of change say: closed months of the layout "monthly" by
#   the SHA-256 in SHA256SUMS, whose own the ledger has, and all other files with what the rows give.
# * Where it cannot be told whether something has changed, the folder is published again.
# --------------------------------------------------------------------------------------------------


def is_published(session: LedgerSession) -> bool:
    """Return whether the release folder is as the last complete publication left it, and would be written so again."""
    run, ledger = session.run, session.open_ledger
    publication = last_publication(run, session.remote_folder)
    return (
        publication is not None
        and not ledger.is_read_completely
        and run.roster.file_digest != ""  # a roster of no file
        and publication.population == run.population
        and publication.ledger_head == ledger.head()
        and publication.is_of_folder(run.release_folder, sums=SUMS)
        and publication.facts == _digest_of_facts(run, session.model)
    )


def _digest_of_facts(run: RunContext, model: Model | None) -> str:
    """Return the digest of what the files of a release folder depend on beside the ledger."""
    facts = {
        "software": {name: version(name) for name in SOFTWARE},
        "charts": installed_library().version if run.run_file.output.explore else "",
        "tzdata": tzdata_version(),
        "run file": repr(run.run_file),
        "model": "" if model is None else model.id,
        "roster": run.roster.file_digest,
        "released rosters": run.books.totals("released_rosters"),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


_ATTEMPTS = 5
_RECENT_STATEMENTS = 5
"""A folder of an earlier statement, a copy put back for example, is written completely with the layout "monthly"."""


def publish_folder(session: LedgerSession, due_days: DueDays) -> ReleaseFolder | None:
    """Stage 5: write the release folder from the ledger, and store its statement in the ledger; None without a ledger.

    A folder that is published already is left as it is; `publish_release` writes it in any case.

    Raises:
        ContractChanged: as `publish_release`.
        AgedpError: any other error; it counts the due days that are drawn already.
    """
    session = session.opened()
    if session.ledger is None:
        return None
    session = session.checked()
    with naming_charged_days(session, due_days):
        session.check_contract_unchanged()
        ledger = session.open_ledger
        record_account(session)
        if not is_published(session):
            publish_release(session, reads_closed_months=ledger.is_read_completely)
    return ReleaseFolder(session.run.release_folder)


def publish_release(session: LedgerSession, *, reads_closed_months: bool = True) -> None:
    """Write the release folder of a session's ledger, and store its statement; does nothing without a release.

    One run at a time: of two concurrent runs, the one that has read fewer rows must not overwrite the newer folder. The
    statement is consistent: no release is stored between its rows and its own record.

    Args:
        session: the session.
        reads_closed_months: whether every file of the layout "monthly" is compared with its SHA-256, whatever its
            time of change; otherwise only those that were changed since they were published.

    Raises:
        ContractChanged: the run file differs from the contract; nothing is published.
        InputError: another run writes to the same URL again and again.
    """
    run, ledger, remote_folder = session.run, session.open_ledger, session.remote_folder
    session.check_contract_unchanged()
    if ledger.history(run.population):
        folder = run.release_folder
        with locked_release_folder(folder):
            for _ in range(_ATTEMPTS):
                content, origin_head, head = ledger.in_one_transaction(
                    lambda: _record_statement(session, ledger, reads_closed_months)
                )
                sign = _signer(session, origin_head)
                is_complete = write_release_files(
                    folder, content.files, remote_folder, unchanged=content.unchanged, sign=sign
                )
                if remote_folder is None:
                    facts = {"population": run.population, "facts": _digest_of_facts(run, session.model)}
                    heads = {"ledger_head": head, "origin_head": origin_head}
                    save_publication(run.books, record_of(folder, sums=SUMS, **heads, **facts))
                    return
                if is_complete and ledger.head() == head:
                    return
        raise InputError("[output] release: another run keeps writing there at the same time; run again")


def _record_statement(
    session: LedgerSession, ledger: Ledger, reads_closed_months: bool
) -> tuple[FolderContent, str, str]:
    """Store the statement of all rows in the ledger.

    Returns:
        The content of the release folder, the head that it names, and the head of the ledger with the statement.
    """
    session.check_contract_unchanged()
    run, population, folder = session.run.run_file, session.run.population, session.run.release_folder
    account = recorded_account(ledger, population)
    if account is not None and not ledger.is_closed():
        ledger.record_account(account, at=_statement_date(session.run, ledger))
    if run.output.sign and not ledger.is_closed():
        key = signing_key(session.run.paths.folder, keys_of(ledger))
        ledger.record_key(SigningKey(key.fingerprint), at=_statement_date(session.run, ledger))
    history = session.history
    view = history.view(session.run.roster.counts, session.run.today)
    places = {
        NOTES.temporary_ledger: session.run.has_temporary_ledger,
        NOTES.outside_register: session.run.is_outside_register,
    }
    notes = [note for note, applies in places.items() if applies]
    facts = statement_facts(session.terms(), session.model, view, ledger, notes)
    text = build_statement(facts).text()
    statement = read_statement(text)  # its keys in the order in which the ledger returns them
    unchanged = UnchangedPartitions()
    if run.output.layout == "monthly":
        newest = ledger.newest_statements(population, _RECENT_STATEMENTS)
        recorded, coverage = {dict(row.files).get(SUMS, "") for row in newest}, run.output.interval
        unchanged = unchanged_partitions(
            folder, ledger=ledger.id, recorded=recorded, coverage=coverage, reads_all=reads_closed_months
        )
    content = folder_content(run, ledger, statement, history.contracts, unchanged=unchanged)
    ledger.record(
        text,
        population=population,
        files=content.stated_checksums(),
        software=json.dumps(statement.software, sort_keys=True),
        at=_statement_date(session.run, ledger),
    )
    return content, statement.ledger.head, ledger.head()


def _signer(session: LedgerSession, head: str) -> Callable[[str], bytes] | None:
    """Return what signs a folder that names a head, given the SHA-256 of SHA256SUMS; None where none is signed."""
    population, ledger = session.run.population, session.open_ledger
    number = ledger.row_number(head) or 0
    if not any(contract.terms.is_signed for contract in session.history.contracts if contract.seq <= number):
        return None
    rows = [row for row in ledger.statements(LEDGER_POPULATION) if row.seq <= number]
    key = signing_key(session.run.paths.folder, KeyHistory.of(rows))
    return lambda digest: key.sign(SignedFolder(population, ledger.id, head, number, digest))


def record_account(session: LedgerSession) -> None:
    """Store the account of the population, with every population that shares a household with it, if it has changed.

    It is a row of the ledger, so that the same head gives the same statement. A closed ledger keeps the account that it
    has.
    """
    run, accounts, ledger = session.run, session.accounts, session.open_ledger
    if accounts is None or ledger.is_closed() or not ledger.history(run.population):
        return

    def account() -> PopulationAccount | None:
        return accounts.account(ledger, session.roster_history.released_ledgers())

    def record() -> None:  # computed again: another run may have released in between
        if (changed := account()) is not None:
            ledger.record_account(changed, at=_statement_date(run, ledger))

    if account() not in (None, ledger.household_account(run.population)):
        ledger.in_one_transaction(record)


def _statement_date(run: RunContext, ledger: Ledger) -> str:
    """Return the date of a statement: today, but never before its rows or the statement before it."""
    today = [] if run.is_rehearsal else [run.today.isoformat()]
    return max([ledger.newest_date(run.population), *today])


def folder_content(
    run: RunFile,
    ledger: Ledger,
    statement: Statement,
    contracts: Sequence[ContractRecord],
    *,
    unchanged: UnchangedPartitions,
) -> FolderContent:
    """Return a release folder without its checksums; of the run file it depends on [output]."""
    from agedp.reports.explore_page import explore_page  # noqa: PLC0415  (charts and templates)
    from agedp.reports.public_report import public_report_page, report_data  # noqa: PLC0415  (charts and templates)

    noise, head, derived = Noise(run.output.interval), statement.ledger.head, _derived_tables(run, ledger)
    words = {STATEMENT: json_bytes(statement.content()), WORDS: markdown(statement).encode()}
    if run.output.deployment:
        words[DEPLOYMENT] = json_bytes(deployment(statement))
    if run.output.layout == "monthly":
        outline = export_outline(ledger, run.population.name, head=head)
        content = release_content(statement, outline, words, noise, derived, ledger=ledger, unchanged=unchanged)
        history = [row for row in outline.rows if isinstance(row, ReleaseRecord)]
        rows = ledger.rows_of(charted_rows(history))
    else:
        export = export_population(ledger, run.population.name, head=head)
        rows = tuple(row for row in export.rows if isinstance(row, ReleaseRecord))
        history = [*rows]
        content = release_content(statement, export, words, noise, derived)
    released = ReleasedRows(rows, history)
    file_names = {*content.paths, *([EXPLORE] if run.output.explore else [])}
    report = report_data(run, ledger.models(), statement, released, contracts, file_names=file_names)
    pages = {REPORT: public_report_page(report).encode()}
    if run.output.explore:
        pages[EXPLORE] = explore_page(report, installed_library())
    # the data package lists all other files, so it comes last
    return content.with_files(pages).with_package(statement)


def _derived_tables(run: RunFile, ledger: Ledger) -> list[DerivedTable]:
    """Return the derived tables that are written: of averages those of [output] averages_by, or the usual ones."""
    first = ledger.first_statement(run.population.name)
    version = json.loads(first.software).get("agedp", "0.1") if first is not None else ""
    usual = PERIODS if version.split(".")[:2] in (["0", "1"], ["0", "2"]) else ("month",)
    periods = usual if run.output.averages_by is None else run.output.averages_by
    left_out = [AVERAGES_BY[period] for period in PERIODS if period not in periods]
    return [table for table in DERIVED_TABLES if table not in left_out]


def write_folder_as_of(session: LedgerSession, day: date) -> bool:
    """Write the release folder as of the end of a day; return whether its bytes are the same.

    Other software, another [output] interval or another [compare] writes the same values in other bytes.

    Raises:
        InputError: nothing was published by that day.
        LedgerError: the statement contains other days or losses than the rows that it names.
        ContractChanged: the run file differs from the contract.
    """
    population = session.run.population
    dated_statements = _dated_statements(session.open_ledger, population)
    statements = [row for known_on, row in dated_statements if known_on <= day.isoformat()]
    if not statements:
        raise InputError(f"no statement of {population!r} was published by {day}")
    return _write_folder(session, statements[-1])


def write_folder_of_statement(session: LedgerSession, seq: int) -> bool:
    """Write the release folder of the statement with this number; return whether its bytes are the same.

    Raises:
        InputError: no statement of the population has this number.
        LedgerError: the statement contains other days or losses than the rows that it names.
        ContractChanged: the run file differs from the contract.
    """
    population = session.run.population
    statements = [row for row in session.open_ledger.statements(population) if row.seq == seq]
    if not statements:
        raise InputError(f"no statement of {population!r} has the number {seq}; `agedp ledger show` lists them")
    return _write_folder(session, statements[0])


def _write_folder(session: LedgerSession, statement_record: StatementRecord) -> bool:
    ledger, folder = session.open_ledger, session.run.release_folder
    session.check_contract_unchanged()
    statement = read_statement(statement_record.claim)
    newest = ledger.row_number(statement.ledger.head) or 0
    contracts = [contract for contract in session.history.contracts if contract.seq <= newest]
    run = _as_published(session.run.run_file, statement_record)
    content = folder_content(run, ledger, statement, contracts, unchanged=UnchangedPartitions())
    is_same, sign = content.stated_checksums() == dict(statement_record.files), _signer(session, statement.ledger.head)
    if not is_same:
        _check_bounds_agree(content.files, sign)
    with locked_release_folder(folder):
        write_release_files(folder, content.files, session.remote_folder, sign=sign)
    return is_same


def _as_published(run: RunFile, record: StatementRecord) -> RunFile:
    """Return a run file with the layout, the registry's entry and the averages of the files that a statement lists.

    [output] may have changed since. A statement of the layout "monthly" lists no averages: those of the run file count.
    """
    if not record.files:
        return run
    files = dict(record.files)
    as_published: dict[str, Any] = {"layout": "monthly", "deployment": DEPLOYMENT in files, "explore": EXPLORE in files}
    if SUMS not in files:  # `stated_checksums`; with the layout "monthly" it names no tables
        periods = tuple(period for period in PERIODS if f"{AVERAGES_BY[period].file}.parquet" in files)
        as_published |= {"layout": "single", "averages_by": periods}
    return run.model_copy(update={"output": run.output.model_copy(update=as_published)})


def _check_bounds_agree(files: Mapping[str, bytes], sign: Callable[[str], bytes] | None) -> None:
    """Check that a statement agrees with its tables, where its files cannot be compared byte for byte."""
    with TemporaryDirectory() as folder:
        write_release_files(Path(folder), files, sign=sign)
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
