"""The ledger: one transaction admits, draws and stores a release, so that each day is drawn exactly once.

A release is looked up, admitted against the complete history of its population, drawn and stored inside one write
transaction. A process that is killed before the commit has published nothing; after the commit every reader gets the
same values. Of two concurrent runs one draws and the other reads. A transaction that the server aborted is repeated
from its beginning: it looks the release up first, so it finds what was stored after all.

The column `at` of a release is its `published_on` unless the admitted row has another date. Rows are checked by the
same rules (`hash_chain`) when they are written and when they are read: reading an edited row raises LedgerError.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from datetime import date, datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, SupportsIndex, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from agedp_data import clock
from agedp_data.config.contract import comparable
from agedp_data.errors import ContractChanged, LedgerError
from agedp_data.ledger import lifecycle, records
from agedp_data.ledger.backends import backend
from agedp_data.ledger.backends.backend import LedgerDatabase, run_transaction
from agedp_data.ledger.hash_chain import HashChain, release_key
from agedp_data.ledger.ledger_reader import History, LedgerReader, require_same_contract
from agedp_data.ledger.signature import KeyHistory
from agedp_data.ledger.witness import CommitWitness, WitnessState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


# --------------------------------------------------------------------------------------------------
# Write transactions of a ledger: rows are read, checked, numbered and stored in one, and a witness confirms it.
#
# A transaction that the server aborted is repeated from its beginning.
# --------------------------------------------------------------------------------------------------

AnyLedger = TypeVar("AnyLedger", bound="LedgerTransactions")
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Row = TypeVar("_Row", records.ContractRecord, records.ModelRecord, records.ReleaseRecord, records.StatementRecord)


def in_write_transaction(
    method: Callable[Concatenate[AnyLedger, _Parameters], _Result],
) -> Callable[Concatenate[AnyLedger, _Parameters], _Result]:
    """Run a method in the open write transaction, or in a new one."""

    @wraps(method)
    def in_transaction(self: AnyLedger, /, *args: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        work = partial(method, self, *args, **keywords)
        return self.in_one_transaction(work) if self._connection is None else work()

    return in_transaction


class LedgerTransactions(LedgerReader):
    """A ledger whose rows can be added within transactions; `Ledger` has the methods that add them."""

    def __init__(self, database: LedgerDatabase) -> None:
        super().__init__(database)
        self._witness: CommitWitness | None = None
        self._announced: WitnessState | None = None
        self._writable: Connection | None = None

    def in_one_transaction(self, work: Callable[[], _Result]) -> _Result:
        """Return the result of `work`, which reads one snapshot and commits everything that it stores together.

        Use it to release several days at the cost of one commit. If `work` raises, the rows that it stored before are
        committed and the exception is raised again. If the process is killed inside, nothing is stored, and nobody has
        seen a drawn value. `work` is called again from its beginning if the server aborts the transaction; it then
        reads what was stored by then.

        Raises:
            LedgerError: the database failed, or the witness refused the commit.
            RuntimeError: a transaction is open already.
        """

        def transaction_body(connection: Connection) -> tuple[_Result, None] | tuple[None, Exception]:
            self._connection = connection
            try:
                self._refresh(connection)  # nobody else adds a row before the commit
                return self._run_with_witness(lambda: _result_or_error(work))
            finally:
                self._connection = self._writable = None

        with self._lock:
            if self._connection is not None:
                raise RuntimeError("a transaction is held already")
            try:
                result, error = run_transaction(self._database, self._with_fresh_chain(transaction_body), write=True)
            except BaseException:
                self._chain = HashChain()  # this one may contain rows that were never committed
                raise
            if self._chain.length:
                self._last_head = self._chain.head
            if self._witness is not None and self._announced is not None:  # before anything of the commit is published
                self._witness.confirm(self._announced, self._read)
        if error is not None:
            raise error
        return cast(_Result, result)

    def attach(self, witness: CommitWitness) -> None:
        """Let a witness confirm every commit from now on; refuse a ledger that lacks rows the witness confirmed.

        Raises:
            LedgerError: the ledger is older than the witness, or the witness has no record or does not answer.
        """
        self._witness = witness
        witness.check(self._read)

    def _run_with_witness(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in the open transaction, and announce the resulting head to the witness before the commit."""
        self._announced = None
        if self._witness is None:
            return work()
        old = self._chain.content_head
        record = self._witness.confirm_head(self._chain)
        result = work()
        if self._chain.content_head != old:
            self._announced = self._witness.announce(record, old=old, new=self._chain.content_head)
        return result

    def _store(self, row: _Row) -> _Row:
        """Number, hash and check a row and insert it; the next transaction reads that the database has it as newest."""
        row = replace(row, seq=self._chain.length + 1)
        row = replace(row, hash=self._chain.next_hash(row))
        self._require(row)
        self._insert(row)
        self._chain.append(row)
        return row

    def _require(self, row: records.Row) -> None:
        """Raise LedgerError for a row that breaks a rule, or if the database cannot be written in this transaction."""
        if self._writable is not self._write_connection:
            self._database.require_writable(self._write_connection)
            self._writable = self._write_connection
        texts = self._chain.broken_rules(row)
        if texts:
            raise LedgerError(f"the ledger cannot take this {records.table_of(row)}: {'; '.join(texts)}")

    def _insert(self, row: records.Row) -> None:
        self._write_connection.execute(backend.TABLES[records.table_of(row)].insert(), records.columns_of(row))

    @property
    def _write_connection(self) -> Connection:
        """Return the connection of the open write transaction."""
        if self._connection is None:
            raise RuntimeError("no transaction is held")
        return self._connection


def _result_or_error(work: Callable[[], _Result]) -> tuple[_Result, None] | tuple[None, Exception]:
    """Return the result of `work`, or its error, which the caller raises after the commit."""
    try:
        return work(), None
    except DBAPIError:
        raise
    except Exception as error:
        return None, error


# --------------------------------------------------------------------------------------------------
# The ledger: what a write transaction admits, draws and stores.
# --------------------------------------------------------------------------------------------------


class Ledger(LedgerTransactions):
    """A ledger that can be written: contracts, models, releases and statements are added, no row is changed.

    Every method that adds rows is one write transaction; within `in_one_transaction` several methods share one.
    """

    @in_write_transaction
    def register(
        self, contract: Mapping[str, Any], *, population: str | None = None, at: str | date | None = None
    ) -> records.ContractRecord:
        """Return the contract in force: `contract`, stored if it is the first, or if the one before it does not bind.

        The earlier one then stays in the hash chain. Defaults: the population that the contract names, and today.

        Raises:
            ContractChanged: the registered contract differs; the message lists the differences key by key.
            TypeError: a contract with anything but strings, integers, booleans, lists and objects.
        """
        name = str(contract["population"]["name"]) if population is None else population
        contracts = self._chain.contracts.get(name)
        if contracts:
            try:
                return require_same_contract(contracts[-1], contract)
            except ContractChanged:
                if self.is_bound(name):
                    raise
        day = _iso_day(clock.today() if at is None else at)
        return self._store(records.ContractRecord(name, records.canonical(contract), at=day))

    @in_write_transaction
    def amend(
        self, contract: Mapping[str, Any], *, population: str, at: str | date, after: str | None = None
    ) -> records.ContractRecord:
        """Return the contract in force from now on: `contract`, stored unless it equals the newest one.

        The caller checks whether the change is permitted (`config.amendment`). `after` is the hash of the contract
        that it was compared with, so that the second of two concurrent amendments is refused.

        Raises:
            LedgerError: the population has no contract yet, or another contract was stored in between.
        """
        contracts = self._chain.contracts.get(population)
        if not contracts:
            raise LedgerError(
                f"the ledger has no contract of {population!r} yet; the first `agedp run` registers the run file"
            )
        old, new = comparable(contracts[-1].terms.keys, contract)
        if old == new:
            return contracts[-1]
        if after is not None and contracts[-1].hash != after:
            raise LedgerError("the contract was amended meanwhile; look at the difference again")
        return self._store(records.ContractRecord(population, records.canonical(contract), at=_iso_day(at)))

    @in_write_transaction
    def register_model(self, public_text: str, *, at: str | date) -> records.ModelRecord:
        """Return the record of a model with this public part, stored unless the ledger has it already."""
        name = records.sha256(public_text)
        if name in self._chain.models:
            return next(record for record in self.models() if record.model == name)
        return self._store(records.ModelRecord(name, public_text, at=_iso_day(at)))

    @in_write_transaction
    def record(
        self, statement_text: str, *, population: str, files: Mapping[str, str], software: str, at: str | date
    ) -> records.StatementRecord:
        """Return the privacy statement of a population, stored unless the newest one has the same text and files.

        Args:
            statement_text: canonical JSON of the statement; its population and head are checked against the ledger.
            population: name of the population.
            files: SHA-256 of each published file, by name.
            software: version of agedp that wrote the statement.
            at: date of the row.

        Raises:
            LedgerError: the statement breaks a rule of the ledger; nothing is stored.
        """
        files_by_name = tuple(sorted(files.items()))
        newest = self.newest_statement(population)
        if newest is not None and (newest.claim, newest.files) == (statement_text, files_by_name):
            return newest
        row = records.StatementRecord(population, statement_text, files_by_name, software, at=_iso_day(at))
        return self._store(row)

    @in_write_transaction
    def upgrade(self, *, at: str | date, form: int = lifecycle.LEDGER_FORM) -> records.StatementRecord | None:
        """Store a record that later rows may have a form, the newest by default; return None if they may already.

        No row is rewritten. A version of agedp without that form refuses the ledger from then on.
        """
        if self._chain.form >= form:
            return None
        return self._store(_lifecycle_row(lifecycle.LedgerUpgrade(form, lifecycle.LEDGER_NEEDS[form]), at))

    @in_write_transaction
    def draw_once(
        self,
        population: str,
        period: tuple[str | date, str | date],
        query: Mapping[str, Any],
        *,
        loss: int,
        draw: Callable[[], Iterable[SupportsIndex]],
        at: str | date,
    ) -> lifecycle.CalibrationDraw:
        """Return the stored answer of a query about a period; if there is none, draw and store it in one transaction.

        Args:
            population: name of the population.
            period: first and last day of the readings.
            query: all that is asked, and how; public.
            loss: privacy loss about all readings of a household in the period [nano-epsilon].
            draw: returns the answer, one integer or more.
            at: date of the row.

        Raises:
            LedgerError: the record breaks a rule of the ledger; nothing is drawn.
        """
        first_day, last_day = map(_iso_day, period)
        planned = lifecycle.CalibrationDraw(population, first_day, last_day, records.canonical(query), (0,), loss)
        stored = self._chain.calibration_draws.get(planned.key)
        if stored is not None:
            return stored
        self._upgrade_for(planned, at)
        # Never draw what cannot be stored: check every rule first, with a zero in place of the value.
        self._require(_lifecycle_row(planned, at))
        drawn = replace(planned, value=tuple(operator.index(value) for value in draw()))
        self._store(_lifecycle_row(drawn, at))
        return drawn

    @in_write_transaction
    def adopt(self, draw: lifecycle.CalibrationDraw, *, at: str | date) -> lifecycle.CalibrationDraw:
        """Return a calibration draw that was made under another ledger, stored here unless it is known already.

        Raises:
            LedgerError: this ledger has another answer of the same query, or the record breaks a rule.
        """
        stored = self._chain.calibration_draws.get(draw.key)
        if stored is not None and stored != draw:
            raise LedgerError(
                "the ledger holds another draw for the same question about the same period; the model was not drawn "
                "under this ledger. Calibrate again into another [model] file"
            )
        if stored is None:
            self._upgrade_for(draw, at)
            self._store(_lifecycle_row(draw, at))
        return draw

    @in_write_transaction
    def record_account(self, account: lifecycle.HouseholdAccount, *, at: str | date) -> lifecycle.HouseholdAccount:
        """Return the newest account of a population: `account`, stored unless it is the newest already.

        Raises:
            LedgerError: it is below an earlier one.
        """
        if self._chain.accounts.get(account.population) != account:
            self._upgrade_for(account, at)
            self._store(_lifecycle_row(account, at))
        return account

    @in_write_transaction
    def record_key(self, key: lifecycle.SigningKey, *, at: str | date) -> lifecycle.SigningKey:
        """Store the key that signs the folders of this ledger from now on, unless it is the newest one already."""
        newest = KeyHistory.of(self.statements(lifecycle.LEDGER_POPULATION)).newest
        if newest != key.fingerprint:
            self._upgrade_for(key, at)
            self._store(_lifecycle_row(key, at))
        return key

    def _upgrade_for(self, record: lifecycle.LifecycleRecord, at: str | date) -> None:
        """Store an upgrade to the form of a record unless the ledger has it."""
        self.upgrade(at=at, form=lifecycle.form_of(record))

    @in_write_transaction
    def release(
        self,
        population: str,
        series: str,
        day: str | date,
        *,
        draw: Callable[[records.ReleaseRecord], Iterable[SupportsIndex]],
        admit: Callable[[History], records.ReleaseRecord],
    ) -> records.ReleaseRecord:
        """Return the stored release of `day`; if it does not exist, admit, draw and store it in one transaction.

        `admit` gets the headers of all releases of the population, oldest first, and returns the release without
        values, or raises `Refused`; `draw` gets that release and returns one noisy integer for each of its cells. A
        skipped release is stored without a draw. An exception of either leaves the ledger unchanged.

        Raises:
            LedgerError: the admitted release breaks a rule of the ledger; nothing is stored.
        """
        key = (population, series, _iso_day(day), 0)
        stored = self._chain.by_key.get(key)
        if stored is not None:
            return self.rows_of([stored])[0]
        planned = admit(tuple(self._chain.releases.get(population, ())))
        if release_key(planned) != key or planned.values:
            raise LedgerError(f"asked to release {key}, admitted {release_key(planned)} or values before the draw")
        planned = replace(planned, seq=0, at=planned.at or planned.published_on, hash="")
        if planned.state == "skipped":
            return self._store(planned)
        # Never draw what cannot be stored: check every rule first, with zeros in place of the values.
        self._require(replace(planned, values=(0,) * len(planned.cells)))
        values = tuple(operator.index(value) for value in draw(planned))
        return self._store(replace(planned, values=values))

    @in_write_transaction
    def export_and_close(self, write: Callable[[tuple[records.Row, ...]], None], *, at: str | date) -> None:
        """Pass all rows to `write` and close the ledger, in one transaction; a closed ledger is only written again.

        The exported rows exclude the closing row: with it the copy would be closed as well.
        """
        rows = self._all_rows()
        if self._chain.closing_text:
            write(rows[:-1])
            return
        write(rows)
        closing = lifecycle.ClosedLedger(self._chain.head, self._chain.length)
        self._store(_lifecycle_row(closing, at))

    def import_rows(self, rows: Sequence[records.Row]) -> None:
        """Store exported rows in an empty ledger, after recomputing every hash.

        Raises:
            LedgerError: the ledger has rows, or these rows are no valid chain; nothing is stored.
        """
        chain = HashChain()
        faults = [fault for row in rows for fault in chain.add(records.table_of(row), records.columns_of(row))]
        if faults:
            first = faults[0]
            raise LedgerError(
                f"the rows make no ledger: row {first.seq} ({first.table}): {first.problem}; take a good copy"
            )
        is_retry = False

        def work() -> None:
            nonlocal is_retry
            if is_retry and self.head() == chain.head:
                return  # the first attempt was committed, but the server's answer was lost
            is_retry = True
            if self.length():
                raise LedgerError("that ledger holds rows already; name a new one")
            for row in rows:
                self._insert(row)

        self.in_one_transaction(work)


def _lifecycle_row(record: lifecycle.LifecycleRecord, at: str | date) -> records.StatementRecord:
    return records.StatementRecord(
        lifecycle.LEDGER_POPULATION, lifecycle.format_lifecycle_record(record), (), "", at=_iso_day(at)
    )


def _iso_day(value: str | date) -> str:
    """Return a day as ISO text; raise TypeError for a datetime, because the ledger stores days only."""
    if isinstance(value, datetime):
        raise TypeError("the ledger holds days, not instants")
    return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
