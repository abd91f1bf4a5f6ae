"""The ledger: one transaction admits, draws and stores a release, so that each day is drawn exactly once.

A release is looked up, admitted against the complete history of its population, drawn and stored inside one write
transaction. A process that is killed before the commit has published nothing; after the commit every reader gets the
same values. Of two concurrent runs one draws and the other reads. A transaction that the server aborted is repeated
from its beginning: it looks the release up first, so it finds what was stored after all.

The column `at` of a release is its `published_on` unless the admitted row has another date. Rows are checked by the
same rules (`hash_chain`) when they are written and when they are read: reading an edited row raises LedgerError.
"""

from __future__ import annotations

import json
import operator
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsIndex, TypeVar

from agedp_data import clock
from agedp_data.config.contract import comparable
from agedp_data.errors import LedgerError
from agedp_data.format_versions import FORM, NEEDS
from agedp_data.ledger.hash_chain import HashChain, release_key
from agedp_data.ledger.ledger_reader import History, require_same_contract
from agedp_data.ledger.ledger_transactions import LedgerTransactions, in_write_transaction
from agedp_data.ledger.lifecycle import (
    LEDGER_POPULATION,
    CalibrationDraw,
    ClosedLedger,
    HouseholdAccount,
    LedgerUpgrade,
    LifecycleRecord,
    format_lifecycle_record,
)
from agedp_data.ledger.records import (
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Ledger(LedgerTransactions):
    """A ledger that can be written: contracts, models, releases and statements are added, no row is changed.

    Every method that adds rows is one write transaction; within `in_one_transaction` several methods share one.
    """

    @in_write_transaction
    def register(
        self, contract: Mapping[str, Any], *, population: str | None = None, at: str | date | None = None
    ) -> ContractRecord:
        """Return the contract in force: `contract`, stored if it is the population's first.

        `population` defaults to the one that the contract names, `at` to today.

        Raises:
            ContractChanged: the registered contract differs; the message lists the differences key by key.
            TypeError: a contract with anything but strings, integers, booleans, lists and objects.
        """
        name = str(contract["population"]["name"]) if population is None else population
        contracts = self._chain.contracts.get(name)
        if contracts:
            return require_same_contract(contracts[-1], contract)
        day = _iso_day(clock.today() if at is None else at)
        return self._store(ContractRecord(name, canonical(contract), at=day))

    @in_write_transaction
    def amend(
        self, contract: Mapping[str, Any], *, population: str, at: str | date, after: str | None = None
    ) -> ContractRecord:
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
        promise = canonical(contract)
        old, new = comparable(json.loads(contracts[-1].promise), contract)
        if old == new:
            return contracts[-1]
        if after is not None and contracts[-1].hash != after:
            raise LedgerError("the contract was amended meanwhile; look at the difference again")
        return self._store(ContractRecord(population, promise, at=_iso_day(at)))

    @in_write_transaction
    def register_model(self, public_text: str, *, at: str | date) -> ModelRecord:
        """Return the record of a model with this public part, stored unless the ledger has it already."""
        name = sha256(public_text)
        if name in self._chain.models:
            return next(record for record in self.models() if record.model == name)
        return self._store(ModelRecord(name, public_text, at=_iso_day(at)))

    @in_write_transaction
    def record(
        self, statement_text: str, *, population: str, files: Mapping[str, str], software: str, at: str | date
    ) -> StatementRecord:
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
        row = StatementRecord(population, statement_text, files_by_name, software, at=_iso_day(at))
        return self._store(row)

    @in_write_transaction
    def upgrade(self, *, at: str | date) -> StatementRecord | None:
        """Store a record that later rows may have the newest form; return None if the ledger has it already.

        No row is rewritten. A version of agedp without that form refuses the ledger from then on.
        """
        if self._chain.form >= FORM:
            return None
        return self._store(_lifecycle_row(LedgerUpgrade(FORM, NEEDS[FORM]), at))

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
    ) -> CalibrationDraw:
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
        planned = CalibrationDraw(population, first_day, last_day, canonical(query), (0,), loss)
        stored = self._chain.calibration_draws.get(planned.key)
        if stored is not None:
            return stored
        self._upgrade_for_records(at)
        # Never draw what cannot be stored: check every rule first, with a zero in place of the value.
        self._require(_lifecycle_row(planned, at))
        drawn = replace(planned, value=tuple(operator.index(value) for value in draw()))
        self._store(_lifecycle_row(drawn, at))
        return drawn

    @in_write_transaction
    def adopt(self, draw: CalibrationDraw, *, at: str | date) -> CalibrationDraw:
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
            self._upgrade_for_records(at)
            self._store(_lifecycle_row(draw, at))
        return draw

    @in_write_transaction
    def record_account(self, account: HouseholdAccount, *, at: str | date) -> HouseholdAccount:
        """Return the newest household account of a population: `account`, stored unless it is the newest already."""
        if self._chain.accounts.get(account.population) != account:
            self._upgrade_for_records(at)
            self._store(_lifecycle_row(account, at))
        return account

    def _upgrade_for_records(self, at: str | date) -> None:
        """Store an upgrade to the newest form unless the ledger has it, and read it back into the chain."""
        if self.upgrade(at=at) is not None:
            self._refresh(self._write_connection)

    @in_write_transaction
    def release(
        self,
        population: str,
        series: str,
        day: str | date,
        *,
        draw: Callable[[ReleaseRecord], Iterable[SupportsIndex]],
        admit: Callable[[History], ReleaseRecord],
    ) -> ReleaseRecord:
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
    def export_and_close(self, write: Callable[[tuple[Row, ...]], None], *, at: str | date) -> None:
        """Pass all rows to `write` and close the ledger, in one transaction; a closed ledger is only written again.

        The exported rows exclude the closing row: with it the copy would be closed as well.
        """
        rows = self._all_rows()
        if self._chain.closing_text:
            write(rows[:-1])
            return
        write(rows)
        closing = ClosedLedger(self._chain.head, self._chain.length)
        self._store(_lifecycle_row(closing, at))

    def import_rows(self, rows: Sequence[Row]) -> None:
        """Store exported rows in an empty ledger, after recomputing every hash.

        Raises:
            LedgerError: the ledger has rows, or these rows are no valid chain; nothing is stored.
        """
        chain = HashChain()
        faults = [fault for row in rows for fault in chain.add(table_of(row), columns_of(row))]
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


def _lifecycle_row(record: LifecycleRecord, at: str | date) -> StatementRecord:
    return StatementRecord(LEDGER_POPULATION, format_lifecycle_record(record), (), "", at=_iso_day(at))


def _iso_day(value: str | date) -> str:
    """Return a day as ISO text; raise TypeError for a datetime, because the ledger stores days only."""
    if isinstance(value, datetime):
        raise TypeError("the ledger holds days, not instants")
    return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
