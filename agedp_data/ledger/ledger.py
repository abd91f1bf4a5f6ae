"""The ledger: one transaction admits, draws and stores, so that a day is drawn once whatever happens.

A release is looked up, admitted against the whole history of its population, drawn and stored inside one
write transaction. Killed before the commit, nothing was drawn as far as anybody can see; after it, the same
values are read for ever. Of two runs at once, one draws and the other reads.

`at` of a release is its `published_on` unless the admitted row says otherwise. Rows are checked on their way
in by the rules that `verify` applies (`chain`), and on their way out: an edited row stops whoever reads it.
"""

from __future__ import annotations

import json
import operator
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

from sqlalchemy import Connection, Engine, select

from agedp_data.errors import ContractChanged, LedgerBehind, LedgerError
from agedp_data.ledger import schema, storage
from agedp_data.ledger.chain import Chain, key_of
from agedp_data.ledger.marks import OF_LEDGER, Closed, claim_of
from agedp_data.ledger.rows import (
    NO_HASH,
    Contract,
    Fault,
    Model,
    Release,
    Row,
    Statement,
    canonical,
    columns_of,
    differences,
    sha256,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

History = tuple[Release, ...]
AnyRow = TypeVar("AnyRow", Contract, Model, Release, Statement)


class Ledger:
    """The append-only record of one or more populations, in one SQLite file."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._path = path
        self._chain = Chain()
        self._lock = threading.RLock()

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Self:
        """Open the ledger at `url`, or make it (mode 0600) if `create` and there is none.

        Raises:
            LedgerError: an address or a file that cannot be used; one line says why and what would help.
        """
        path = storage.path_of(url)
        return cls(storage.prepared(path, create=create), path)

    def close(self) -> None:
        """Let go of the file and of what was read from it."""
        self._engine.dispose()
        self._chain = Chain()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------- writing

    def register(self, contract: Mapping[str, Any], *, population: str, at: str | date) -> Contract:
        """Return the contract in force: `contract`, stored if it is the population's first.

        Raises:
            ContractChanged: another promise was made; the message lists the difference key by key.
            TypeError: a contract with anything but strings, integers, booleans, lists and objects.
        """
        with self._writing() as connection:
            known = self._chain.contracts.get(population)
            if known:
                return _unchanged(known[-1], contract)
            return self._store(connection, Contract(population, canonical(contract), at=_day(at)))

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

    # ------------------------------------------------------------------------------------------- reading

    @property
    def id(self) -> str:
        """What names this ledger: the hash of its first row, "" before there is one."""
        heads = self._read().heads
        return next(iter(heads), "")

    def rows(self, population: str | None = None, series: str | None = None) -> History:
        """Return the releases, oldest first, of one population or series or of all."""
        found = _of(self._read().releases, population)
        return tuple(row for row in found if series is None or row.series == series)

    def require_unchanged(self, contract: Mapping[str, Any], *, population: str) -> None:
        """Raise ContractChanged if another promise was made to the population; writes nothing."""
        known = self.contracts(population)
        if known:
            _unchanged(known[-1], contract)

    def contracts(self, population: str | None = None) -> tuple[Contract, ...]:
        """Return the contracts, oldest first; the last of a population is in force."""
        return tuple(_of(self._read().contracts, population))

    def models(self) -> tuple[Model, ...]:
        """Return the models, oldest first."""
        return tuple(self._read().models.values())

    def statements(self, population: str | None = None) -> tuple[Statement, ...]:
        """Return the statements, oldest first."""
        return tuple(_of(self._read().statements, population))

    def head(self) -> str:
        """Return the hash of the newest row, 64 zeros if there is none."""
        return self._read().head

    def length(self) -> int:
        """Return the number of rows of all tables."""
        return self._read().length

    def contains(self, head: str) -> bool:
        """Tell whether `head` was the head of this ledger at some time; an empty ledger's head always was."""
        return head == NO_HASH or self.place(head) is not None

    def place(self, head: str) -> int | None:
        """Return the number of the row with this hash, here or in the ledger this one was recovered from."""
        return self._read().place(head)

    def closed(self) -> bool:
        """Tell whether the ledger goes on elsewhere."""
        return bool(self._read().closed)

    def everything(self) -> tuple[Row, ...]:
        """Return the rows of all tables, oldest first."""
        self._read()
        return self._everything()

    def verify(self) -> tuple[Fault, ...]:
        """Return everything that is wrong, recomputed from the columns of all rows.

        Rows cut off at the end leave a valid, shorter chain: `contains` a published head shows that.

        Raises:
            LedgerError: the file cannot be read at all.
        """
        chain = Chain()
        faults: list[Fault] = []
        with storage.transaction(self._engine, self._path, write=False) as connection:
            meta = [(name, content) for name, content in connection.execute(select(schema.META))]
            for table, columns in schema.newer(connection, 0):
                faults += chain.add(table, columns)
        if meta != [("version", schema.VERSION)]:
            faults.append(Fault(0, "meta", "it holds something other than the schema version"))
        return tuple(faults)

    # ------------------------------------------------------------------------------------------- inside

    def _read(self) -> Chain:
        """Return the chain with all rows that are in the file now."""
        with self._lock, storage.transaction(self._engine, self._path, write=False) as connection:
            self._refresh(connection)
            return self._chain

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """Hold the only write transaction there is, with all rows known."""
        with self._lock, storage.transaction(self._engine, self._path, write=True) as connection:
            self._refresh(connection)
            yield connection

    def _store(self, connection: Connection, row: AnyRow) -> AnyRow:
        """Seal a row and insert it; memory takes it from the file once it is committed, not before."""
        row = replace(row, seq=self._chain.length + 1)
        row = replace(row, hash=self._chain.sealed(row))
        self._require(connection, row)
        connection.execute(schema.TABLES[table_of(row)].insert().values(columns_of(row)))
        return row

    def _everything(self) -> tuple[Row, ...]:
        """Return the rows that are known."""
        chain = self._chain
        found: list[Row] = [*chain.models.values(), *_of(chain.contracts, None)]
        found += [*_of(chain.releases, None), *_of(chain.statements, None)]
        return tuple(sorted(found, key=lambda row: row.seq))

    def _refresh(self, connection: Connection) -> None:
        """Read the rows that came since the last look, and check that the last one seen is still there."""
        newer = schema.newer(connection, self._chain.length)
        if self._chain.length and (not newer or newer.pop(0)[1]["hash"] != self._chain.head):
            raise LedgerBehind("the ledger was replaced or shortened while it was open; put back the newest copy")
        for table, columns in newer:
            faults = self._chain.add(table, columns)
            if faults:
                self._chain = Chain()
                raise LedgerError(
                    f"row {faults[0].seq} of the ledger was changed or damaged ({faults[0].what});"
                    " put back a good copy; `agedp ledger verify` lists everything"
                )

    def _require(self, connection: Connection, row: Row) -> None:
        """Refuse a row that breaks a rule, or any row if the file cannot be written."""
        schema.require_writable(connection)
        flaws = self._chain.flaws(row)
        if flaws:
            raise LedgerError(f"the ledger cannot take this {table_of(row)}: {'; '.join(flaws)}")


def _unchanged(known: Contract, contract: Mapping[str, Any]) -> Contract:
    """Return the known contract if it says the same."""
    promise = canonical(contract)
    if known.promise == promise:
        return known
    changes = differences(json.loads(known.promise), json.loads(promise))
    raise ContractChanged(
        f"the promise to {known.population!r} of {known.at} says otherwise: {'; '.join(changes)};"
        " undo the change or record it with `agedp ledger amend`"
    )


def _of(found: Mapping[str, list[AnyRow]], population: str | None) -> list[AnyRow]:
    """Return the rows of one population or of all, in the order of the ledger."""
    if population is not None:
        return found.get(population, [])
    return sorted((row for part in found.values() for row in part), key=lambda row: row.seq)


def _day(value: str | date) -> str:
    """Return a day as ISO text; an instant is finer than what the ledger may hold."""
    if isinstance(value, datetime):
        raise TypeError("the ledger holds days, not instants")
    return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
