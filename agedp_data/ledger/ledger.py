"""The ledger: one transaction admits, draws and stores, so that a day is drawn once whatever happens.

A release is looked up, admitted against the whole history of its population, drawn and stored inside one
write transaction. Killed before the commit, nothing was drawn as far as anybody can see; after it, the same
values are read for ever. Of two runs at once, one draws and the other reads.

`at` of a release is its `published_on` unless the admitted row says otherwise. Rows are checked on their way
in by the rules that `verify` applies (`chain`), and on their way out: an edited row stops whoever reads it.
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, SupportsIndex

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from agedp_data import clock
from agedp_data.errors import LedgerError
from agedp_data.ledger import schema
from agedp_data.ledger.chain import Chain, key_of
from agedp_data.ledger.marks import OF_LEDGER, Closed, claim_of
from agedp_data.ledger.reading import AnyRow, History, Reading, unchanged
from agedp_data.ledger.rows import (
    Contract,
    Model,
    Release,
    Row,
    Statement,
    canonical,
    columns_of,
    sha256,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


class Ledger(Reading):
    """The append-only record of one or more populations, in one SQLite file."""

    def register(
        self, contract: Mapping[str, Any], *, population: str | None = None, at: str | date | None = None
    ) -> Contract:
        """Return the contract in force: `contract`, stored if it is the population's first.

        `population` is the one that the contract names, `at` today, unless they are given.

        Raises:
            ContractChanged: another promise was made; the message lists the difference key by key.
            TypeError: a contract with anything but strings, integers, booleans, lists and objects.
        """
        people = str(contract["population"]["name"]) if population is None else population
        with self._writing() as connection:
            known = self._chain.contracts.get(people)
            if known:
                return unchanged(known[-1], contract)
            day = _day(clock.today() if at is None else at)
            return self._store(connection, Contract(people, canonical(contract), at=day))

    def amend(
        self, contract: Mapping[str, Any], *, population: str, at: str | date, after: str | None = None
    ) -> Contract:
        """Return the contract in force from now on: `contract`, stored unless the newest says the same.

        Whether the change is permitted is for the caller to know (`config.amendments`); `after` is the hash of
        the contract that it was compared with, so that of two amendments at once the second is refused.

        Raises:
            LedgerError: nothing was promised to the population yet, or another contract came in between.
        """
        with self._writing() as connection:
            known = self._chain.contracts.get(population)
            if not known:
                raise LedgerError(
                    f"nothing was promised to {population!r} yet; the first `agedp run` registers the run file"
                )
            if after is not None and known[-1].hash != after:
                raise LedgerError("the contract was amended meanwhile; look at the difference again")
            promise = canonical(contract)
            if known[-1].promise == promise:
                return known[-1]
            return self._store(connection, Contract(population, promise, at=_day(at)))

    def adopt(self, envelope: str, *, at: str | date) -> Model:
        """Return the model whose public part is `envelope`, stored if it is not there yet."""
        name = sha256(envelope)
        with self._writing() as connection:
            known = self._chain.models.get(name)
            return known or self._store(connection, Model(name, envelope, at=_day(at)))

    def record(
        self, claim: str, *, population: str, files: Mapping[str, str], software: str, at: str | date
    ) -> Statement:
        """Return the statement with this claim and these files, stored unless it is the newest already."""
        named = tuple(sorted(files.items()))
        with self._writing() as connection:
            known = self._chain.statements.get(population)
            if known and (known[-1].claim, known[-1].files) == (claim, named):
                return known[-1]
            row = Statement(population, claim, named, software, at=_day(at))
            return self._store(connection, row)

    def release(
        self,
        population: str,
        series: str,
        day: str | date,
        *,
        draw: Callable[[Release], Iterable[SupportsIndex]],
        admit: Callable[[History], Release],
    ) -> Release:
        """Return the stored release of `day`; if there is none, admit, draw and store it at once.

        `admit` gets all rows of the population, oldest first, and returns the release without values, or
        raises `Refused`; `draw` gets that release and returns one noisy integer for each of its cells. A
        skipped release is stored without a draw. Whatever either raises leaves the ledger as it was.

        Raises:
            LedgerError: the admitted release breaks a rule of the ledger; nothing is stored.
        """
        key = (population, series, _day(day), 0)
        with self._writing() as connection:
            stored = self._chain.by_key.get(key)
            if stored is not None:
                return stored
            planned = admit(tuple(self._chain.releases.get(population, ())))
            if key_of(planned) != key or planned.values:
                raise LedgerError(f"asked to release {key}, admitted {key_of(planned)} or values before the draw")
            planned = replace(planned, seq=0, at=planned.at or planned.published_on, hash="")
            if planned.state == "skipped":
                return self._store(connection, planned)
            # No draw for what cannot be stored: every rule is tried with zeros in place of the values.
            self._require(connection, replace(planned, values=(0,) * len(planned.cells)))
            values = tuple(operator.index(value) for value in draw(planned))
            return self._store(connection, replace(planned, values=values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold one write transaction over everything inside: read as of one moment, stored at once at its end.

        What raises inside has stored nothing itself, and what was stored before it stays. Of a process that is killed
        inside nothing stays, and nothing that it drew was seen by anybody.
        """
        failed: Exception | None = None
        with self._lock:
            if self._held is not None:
                raise RuntimeError("a transaction is held already")
            try:
                with self._writing() as self._held:
                    try:
                        yield
                    except DBAPIError:
                        raise
                    except Exception as error:  # raised again behind the commit
                        failed = error
            except BaseException:
                self._chain = Chain()  # it may know rows that were never committed
                raise
            finally:
                self._held = None
        if failed is not None:
            raise failed

    def hand_over(self, write: Callable[[tuple[Row, ...]], None], *, at: str | date) -> None:
        """Give all rows to `write` and close the ledger, in one transaction; closed already, `write` them again.

        What is handed over lacks the closing row, or the copy could not go on.
        """
        with self._writing() as connection:
            rows = self._everything()
            if self._chain.closed:
                write(rows[:-1])
                return
            write(rows)
            mark = Closed(self._chain.head, self._chain.length)
            self._store(connection, Statement(OF_LEDGER, claim_of(mark), (), "", at=_day(at)))

    def fill(self, rows: Sequence[Row]) -> None:
        """Store sealed rows as the whole of an empty ledger, every hash recomputed.

        Raises:
            LedgerError: the ledger holds rows, or these do not make a chain; nothing is stored.
        """
        chain = Chain()
        faults = [fault for row in rows for fault in chain.add(table_of(row), columns_of(row))]
        if faults:
            raise LedgerError(
                f"the rows make no ledger: row {faults[0].seq} ({faults[0].table}): {faults[0].what}; take a good copy"
            )
        with self._writing() as connection:
            if self._chain.length:
                raise LedgerError("that ledger holds rows already; name a new one")
            for row in rows:
                connection.execute(schema.TABLES[table_of(row)].insert().values(columns_of(row)))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Hold the only write transaction there is, with all rows known."""
        with self._lock, self._connected(write=True) as connection:
            self._refresh(connection)
            yield connection

    def _store(self, connection: Connection, row: AnyRow) -> AnyRow:
        """Seal a row and insert it; memory takes it from the file with the next look at it, not before."""
        row = replace(row, seq=self._chain.length + 1)
        row = replace(row, hash=self._chain.sealed(row))
        self._require(connection, row)
        connection.execute(schema.TABLES[table_of(row)].insert().values(columns_of(row)))
        return row

    def _require(self, connection: Connection, row: Row) -> None:
        """Refuse a row that breaks a rule, or any row if the file cannot be written."""
        schema.require_writable(connection)
        flaws = self._chain.flaws(row)
        if flaws:
            raise LedgerError(f"the ledger cannot take this {table_of(row)}: {'; '.join(flaws)}")


def _day(value: str | date) -> str:
    """Return a day as ISO text; an instant is finer than what the ledger may hold."""
    if isinstance(value, datetime):
        raise TypeError("the ledger holds days, not instants")
    return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
