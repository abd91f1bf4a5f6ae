"""The ledger: one transaction admits, draws and stores, so that a day is drawn once whatever happens.

A release is looked up, admitted against the whole history of its population, drawn and stored inside one
write transaction. Killed before the commit, nothing was drawn as far as anybody can see; after it, the same
values are read for ever. Of two runs at once, one draws and the other reads. A transaction that a server gave up is
carried out again from its beginning, which is to look the release up: what was stored after all is found there.

`at` of a release is its `published_on` unless the admitted row says otherwise. Rows are checked on their way
in by the rules that `verify` applies (`chain`), and on their way out: an edited row stops whoever reads it.
"""

from __future__ import annotations

import json
import operator
from dataclasses import replace
from datetime import date, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, SupportsIndex, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from agedp_data import clock
from agedp_data.config.meanings import comparable
from agedp_data.errors import LedgerError
from agedp_data.format_versions import FORM, NEEDS
from agedp_data.ledger import schema
from agedp_data.ledger.chain import HashChain, key_of
from agedp_data.ledger.database import LedgerDatabase
from agedp_data.ledger.marks import OF_LEDGER, ClosedLedger, LedgerUpgrade, claim_of
from agedp_data.ledger.reading import AnyRow, History, LedgerReader, unchanged
from agedp_data.ledger.rows import (
    ContractRecord,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
    canonical,
    columns_of,
    sha256,
    table_of,
)
from agedp_data.ledger.transactions import carried_out
from agedp_data.ledger.witness import CommitWitness, WitnessState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _writes(
    method: Callable[Concatenate[Ledger, _Given], _Result],
) -> Callable[Concatenate[Ledger, _Given], _Result]:
    """Carry out a method in a write transaction, with all rows known: in the one that is held, or one of its own."""

    @wraps(method)
    def in_transaction(self: Ledger, /, *args: _Given.args, **more: _Given.kwargs) -> _Result:
        def work() -> _Result:
            self._refresh(self._writing)
            return method(self, *args, **more)

        return self.together(work) if self._held is None else work()

    return in_transaction


class Ledger(LedgerReader):
    """The append-only record of one or more populations, in one database."""

    def __init__(self, database: LedgerDatabase) -> None:
        super().__init__(database)
        self._witness: CommitWitness | None = None
        self._announced: WitnessState | None = None

    @_writes
    def register(
        self, contract: Mapping[str, Any], *, population: str | None = None, at: str | date | None = None
    ) -> ContractRecord:
        """Return the contract in force: `contract`, stored if it is the population's first.

        `population` is the one that the contract names, `at` today, unless they are given.

        Raises:
            ContractChanged: another promise was made; the message lists the difference key by key.
            TypeError: a contract with anything but strings, integers, booleans, lists and objects.
        """
        people = str(contract["population"]["name"]) if population is None else population
        known = self._chain.contracts.get(people)
        if known:
            return unchanged(known[-1], contract)
        day = _day(clock.today() if at is None else at)
        return self._store(ContractRecord(people, canonical(contract), at=day))

    @_writes
    def amend(
        self, contract: Mapping[str, Any], *, population: str, at: str | date, after: str | None = None
    ) -> ContractRecord:
        """Return the contract in force from now on: `contract`, stored unless the newest says the same.

        Whether the change is permitted is for the caller to know (`config.amendments`); `after` is the hash of
        the contract that it was compared with, so that of two amendments at once the second is refused.

        Raises:
            LedgerError: nothing was promised to the population yet, or another contract came in between.
        """
        known = self._chain.contracts.get(population)
        if not known:
            raise LedgerError(
                f"nothing was promised to {population!r} yet; the first `agedp run` registers the run file"
            )
        promise = canonical(contract)
        old, new = comparable(json.loads(known[-1].promise), contract)
        if old == new:
            return known[-1]
        if after is not None and known[-1].hash != after:
            raise LedgerError("the contract was amended meanwhile; look at the difference again")
        return self._store(ContractRecord(population, promise, at=_day(at)))

    @_writes
    def adopt(self, envelope: str, *, at: str | date) -> ModelRecord:
        """Return the model whose public part is `envelope`, stored if it is not there yet."""
        name = sha256(envelope)
        known = self._chain.models.get(name)
        return known or self._store(ModelRecord(name, envelope, at=_day(at)))

    @_writes
    def record(
        self, claim: str, *, population: str, files: Mapping[str, str], software: str, at: str | date
    ) -> StatementRecord:
        """Return the statement with this claim and these files, stored unless it is the newest already."""
        named = tuple(sorted(files.items()))
        known = self._chain.statements.get(population)
        if known and (known[-1].claim, known[-1].files) == (claim, named):
            return known[-1]
        row = StatementRecord(population, claim, named, software, at=_day(at))
        return self._store(row)

    @_writes
    def upgrade(self, *, at: str | date) -> StatementRecord | None:
        """Store a mark that rows may have the newest form from here on; None if a mark says so already.

        No row is rewritten. An agedp that does not know that form refuses the ledger from then on.
        """
        if self._chain.form >= FORM:
            return None
        return self._store(StatementRecord(OF_LEDGER, claim_of(LedgerUpgrade(FORM, NEEDS[FORM])), (), "", at=_day(at)))

    @_writes
    def release(
        self,
        population: str,
        series: str,
        day: str | date,
        *,
        draw: Callable[[ReleaseRecord], Iterable[SupportsIndex]],
        admit: Callable[[History], ReleaseRecord],
    ) -> ReleaseRecord:
        """Return the stored release of `day`; if there is none, admit, draw and store it at once.

        `admit` gets all rows of the population, oldest first, and returns the release without values, or
        raises `Refused`; `draw` gets that release and returns one noisy integer for each of its cells. A
        skipped release is stored without a draw. Whatever either raises leaves the ledger as it was.

        Raises:
            LedgerError: the admitted release breaks a rule of the ledger; nothing is stored.
        """
        key = (population, series, _day(day), 0)
        stored = self._chain.by_key.get(key)
        if stored is not None:
            return stored
        planned = admit(tuple(self._chain.releases.get(population, ())))
        if key_of(planned) != key or planned.values:
            raise LedgerError(f"asked to release {key}, admitted {key_of(planned)} or values before the draw")
        planned = replace(planned, seq=0, at=planned.at or planned.published_on, hash="")
        if planned.state == "skipped":
            return self._store(planned)
        # No draw for what cannot be stored: every rule is tried with zeros in place of the values.
        self._require(replace(planned, values=(0,) * len(planned.cells)))
        values = tuple(operator.index(value) for value in draw(planned))
        return self._store(replace(planned, values=values))

    def together(self, work: Callable[[], _Result]) -> _Result:
        """Return what `work` makes, all in one write transaction: read as of one moment, stored at once at its end.

        What raises inside has stored nothing itself, and what was stored before it stays. Of a process that is killed
        inside nothing stays, and nothing that it drew was seen by anybody. `work` is done again from its beginning if
        a server gave the transaction up; it then reads what was stored by then.
        """

        def held(connection: Connection) -> tuple[_Result, None] | tuple[None, Exception]:
            self._held = connection
            try:
                return self._witnessed(lambda: _outcome(work))
            finally:
                self._held = None

        with self._lock:
            if self._held is not None:
                raise RuntimeError("a transaction is held already")
            try:
                made, failed = carried_out(self._database, self._anew(held), write=True)
            except BaseException:
                self._forget()  # it may know rows that were never committed
                raise
            if self._chain.length:
                self._seen = self._chain.head
            self._confirm()
        if failed is not None:
            raise failed
        return cast(_Result, made)

    def attach(self, witness: CommitWitness) -> None:
        """Let a witness attest every commit from now on, and refuse the ledger if the witness confirmed more.

        Raises:
            LedgerError: the ledger is older than the witness, or the witness has no record or does not answer.
        """
        self._witness = witness
        witness.check(self._read)

    def _witnessed(self, work: Callable[[], _Result]) -> _Result:
        """Do work in the transaction that is held, and announce the head that it leads to before the commit."""
        self._announced = None
        if self._witness is None:
            return work()
        self._refresh(self._writing)
        old = self._chain.content_head
        record = self._witness.settle(self._chain)
        result = work()
        self._refresh(self._writing)
        if self._chain.content_head != old:
            self._announced = self._witness.announce(record, old=old, new=self._chain.content_head)
        return result

    def _confirm(self) -> None:
        """Confirm the commit that was announced; what is not confirmed must not be published."""
        if self._witness is not None and self._announced is not None:
            self._witness.confirm(self._announced, self._read)

    @_writes
    def hand_over(self, write: Callable[[tuple[Row, ...]], None], *, at: str | date) -> None:
        """Give all rows to `write` and close the ledger, in one transaction; closed already, `write` them again.

        What is handed over lacks the closing row, or the copy could not go on.
        """
        rows = self._everything()
        if self._chain.closed:
            write(rows[:-1])
            return
        write(rows)
        mark = ClosedLedger(self._chain.head, self._chain.length)
        self._store(StatementRecord(OF_LEDGER, claim_of(mark), (), "", at=_day(at)))

    def fill(self, rows: Sequence[Row]) -> None:
        """Store sealed rows as the whole of an empty ledger, every hash recomputed.

        Raises:
            LedgerError: the ledger holds rows, or these do not make a chain; nothing is stored.
        """
        chain = HashChain()
        faults = [fault for row in rows for fault in chain.add(table_of(row), columns_of(row))]
        if faults:
            raise LedgerError(
                f"the rows make no ledger: row {faults[0].seq} ({faults[0].table}): {faults[0].what}; take a good copy"
            )
        begun = False

        def work() -> None:
            nonlocal begun
            if begun and self.head() == chain.head:
                return  # stored, and the answer was lost
            begun = True
            if self.length():
                raise LedgerError("that ledger holds rows already; name a new one")
            for row in rows:
                self._insert(row)

        self.together(work)

    def _store(self, row: AnyRow) -> AnyRow:
        """Seal a row and insert it; memory takes it from the database with the next look at it, not before."""
        row = replace(row, seq=self._chain.length + 1)
        row = replace(row, hash=self._chain.sealed(row))
        self._require(row)
        self._insert(row)
        return row

    def _require(self, row: Row) -> None:
        """Refuse a row that breaks a rule, or any row if the database cannot be written."""
        self._database.require_writable(self._writing)
        flaws = self._chain.flaws(row)
        if flaws:
            raise LedgerError(f"the ledger cannot take this {table_of(row)}: {'; '.join(flaws)}")

    def _insert(self, row: Row) -> None:
        self._writing.execute(schema.TABLES[table_of(row)].insert().values(columns_of(row)))

    @property
    def _writing(self) -> Connection:
        """Return the connection of the write transaction that is held."""
        if self._held is None:
            raise RuntimeError("no transaction is held")
        return self._held


def _outcome(work: Callable[[], _Result]) -> tuple[_Result, None] | tuple[None, Exception]:
    """Return what work makes, or the error that is raised again behind the commit."""
    try:
        return work(), None
    except DBAPIError:
        raise
    except Exception as error:
        return None, error


def _day(value: str | date) -> str:
    """Return a day as ISO text; an instant is finer than what the ledger may hold."""
    if isinstance(value, datetime):
        raise TypeError("the ledger holds days, not instants")
    return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
