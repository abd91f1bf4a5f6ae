"""Write transactions of a ledger: rows are read, checked, numbered and stored in one, and a witness confirms it.

A transaction that the server aborted is repeated from its beginning.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends import ledger_tables
from agedp_data.ledger.backends.backend import LedgerDatabase, run_transaction
from agedp_data.ledger.ledger_reader import LedgerReader
from agedp_data.ledger.records import (
    ContractRecord,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
    columns_of,
    table_of,
)
from agedp_data.ledger.witness import CommitWitness, WitnessState

if TYPE_CHECKING:
    from collections.abc import Callable

AnyLedger = TypeVar("AnyLedger", bound="LedgerTransactions")
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Row = TypeVar("_Row", ContractRecord, ModelRecord, ReleaseRecord, StatementRecord)


def in_write_transaction(
    method: Callable[Concatenate[AnyLedger, _Parameters], _Result],
) -> Callable[Concatenate[AnyLedger, _Parameters], _Result]:
    """Run a method in the open write transaction, or in a new one, after reading all stored rows."""

    @wraps(method)
    def in_transaction(self: AnyLedger, /, *args: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        def work() -> _Result:
            self._refresh(self._write_connection)
            return method(self, *args, **keywords)

        return self.in_one_transaction(work) if self._connection is None else work()

    return in_transaction


class LedgerTransactions(LedgerReader):
    """A ledger whose rows can be added within transactions; `Ledger` has the methods that add them."""

    def __init__(self, database: LedgerDatabase) -> None:
        super().__init__(database)
        self._witness: CommitWitness | None = None
        self._announced: WitnessState | None = None

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
                return self._run_with_witness(lambda: _result_or_error(work))
            finally:
                self._connection = None

        with self._lock:
            if self._connection is not None:
                raise RuntimeError("a transaction is held already")
            try:
                result, error = run_transaction(self._database, self._with_fresh_chain(transaction_body), write=True)
            except BaseException:
                self._reset_chain()  # it may contain rows that were never committed
                raise
            if self._chain.length:
                self._last_head = self._chain.head
            self._confirm()
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
        self._refresh(self._write_connection)
        old = self._chain.content_head
        record = self._witness.confirm_head(self._chain)
        result = work()
        self._refresh(self._write_connection)
        if self._chain.content_head != old:
            self._announced = self._witness.announce(record, old=old, new=self._chain.content_head)
        return result

    def _confirm(self) -> None:
        """Confirm the announced commit to the witness; rows of an unconfirmed commit must not be published."""
        if self._witness is not None and self._announced is not None:
            self._witness.confirm(self._announced, self._read)

    def _store(self, row: _Row) -> _Row:
        """Number and hash a row and insert it; `_chain` gets it from the database with the next `_refresh`."""
        row = replace(row, seq=self._chain.length + 1)
        row = replace(row, hash=self._chain.next_hash(row))
        self._require(row)
        self._insert(row)
        return row

    def _require(self, row: Row) -> None:
        """Raise LedgerError for a row that breaks a rule, or if the database cannot be written."""
        self._database.require_writable(self._write_connection)
        texts = self._chain.broken_rules(row)
        if texts:
            raise LedgerError(f"the ledger cannot take this {table_of(row)}: {'; '.join(texts)}")

    def _insert(self, row: Row) -> None:
        self._write_connection.execute(ledger_tables.TABLES[table_of(row)].insert(), columns_of(row))

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
