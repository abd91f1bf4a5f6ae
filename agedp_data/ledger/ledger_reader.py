"""Questions about a ledger: contracts, models, releases and statements, by population; heads, and faults."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agedp_data.config.contract import parse_contract
from agedp_data.errors import ContractChanged
from agedp_data.ledger.backends import connect
from agedp_data.ledger.backends.backend import run_transaction
from agedp_data.ledger.chain_reader import ChainReader, rows_of_population
from agedp_data.ledger.ledger_faults import ledger_faults
from agedp_data.ledger.lifecycle import (
    CalibrationDraw,
    HouseholdAccount,
    RecoveryRecord,
    Takeover,
    read_lifecycle_record,
)
from agedp_data.ledger.records import (
    NO_HASH,
    ContractRecord,
    Fault,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
    canonical,
)
from agedp_data.ledger.release_headers import AnyRelease, ReleaseHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

History = tuple[ReleaseHeader, ...]


class LedgerReader(ChainReader):
    """The rows of one ledger, of one or more populations; use it wherever nothing is written.

    Every method reads the rows that were added since the last call, and raises LedgerError if the database cannot be
    read or a row was changed.
    """

    @staticmethod
    def exists(url: str) -> bool:
        """Return whether a ledger exists at `url`; an empty file, or one whose creation was interrupted, is none.

        Raises:
            LedgerError: an address that cannot be used, a file that is no ledger, a server that cannot be asked.
        """
        return connect.ledger_exists(connect.database_at(url))

    @property
    def id(self) -> str:
        """The id of this ledger: the hash of its first row, "" while it is empty."""
        heads = self._read().heads
        return next(iter(heads), "")

    def history(self, population: str | None = None, series: str | None = None) -> History:
        """Return the headers of the releases, oldest first, skipped days included; nothing of their vectors is read.

        Args:
            population: name of a population; None for all.
            series: name of a series; None for all.
        """
        headers = rows_of_population(self._read().releases, population)
        return tuple(header for header in headers if series is None or header.series == series)

    def rows(
        self, population: str | None = None, series: str | None = None, *, days: tuple[str, str] | None = None
    ) -> tuple[ReleaseRecord, ...]:
        """Return the releases with their values, oldest first, skipped days included; use `history` where it suffices.

        Args:
            population: name of a population; None for all.
            series: name of a series; None for all.
            days: first and last day (ISO dates); None for all.
        """
        return self.rows_of(
            [header for header in self.history(population, series) if days is None or days[0] <= header.day <= days[1]]
        )

    def rows_of(self, headers: Iterable[AnyRelease]) -> tuple[ReleaseRecord, ...]:
        """Return the complete releases with these headers, oldest first."""
        rows = self._stored_rows("release", [header.seq for header in headers])
        return tuple(row for row in rows if isinstance(row, ReleaseRecord))

    def require_unchanged(self, contract: Mapping[str, Any], *, population: str) -> None:
        """Check a run file's contract against the registered one; nothing is written.

        Raises:
            ContractChanged: they differ in meaning; the message lists the differences key by key. Without a registered
                contract nothing is raised.
        """
        contracts = self.contracts(population)
        if contracts:
            require_same_contract(contracts[-1], contract)

    def contracts(self, population: str | None = None) -> tuple[ContractRecord, ...]:
        """Return the contracts, oldest first, of one population or of all.

        The last contract of a population is in force; the earlier ones apply to the releases that name their hashes.
        """
        return tuple(rows_of_population(self._read().contracts, population))

    def models(self) -> tuple[ModelRecord, ...]:
        """Return the models, oldest first, including those that no contract names any more."""
        rows = self._stored_rows("model", sorted(self._read().models.values()))
        return tuple(row for row in rows if isinstance(row, ModelRecord))

    def statements(self, population: str | None = None) -> tuple[StatementRecord, ...]:
        """Return the statement rows, oldest first, of one population or of all.

        Lifecycle records are statement rows of the population "".
        """
        numbers = self._read().statement_numbers
        return self._statements(
            sorted(number for name in numbers for number in numbers[name] if population in {None, name})
        )

    def newest_statement(self, population: str) -> StatementRecord | None:
        """Return the newest privacy statement of a population, None before the first."""
        return next(iter(self._statements(self._read().statement_numbers.get(population, [])[-1:])), None)

    def first_statement(self, population: str) -> StatementRecord | None:
        """Return the first privacy statement of a population, None without one; no others are read."""
        return next(iter(self._statements(self._read().statement_numbers.get(population, [])[:1])), None)

    def newest_statements(self, population: str, number: int) -> tuple[StatementRecord, ...]:
        """Return the newest so many privacy statements of a population, oldest first; no others are read."""
        return self._statements(self._read().statement_numbers.get(population, [])[-number:])

    def _statements(self, numbers: Sequence[int]) -> tuple[StatementRecord, ...]:
        return tuple(row for row in self._stored_rows("statement", numbers) if isinstance(row, StatementRecord))

    def newest_date(self, population: str) -> str:
        """Return the newest date (ISO) of the rows of the ledger, of statements only those of a population counting."""
        dates = self._read().newest_dates
        return max(dates.get("", ""), dates.get(population, ""))

    def calibration_draws(self, population: str | None = None) -> tuple[CalibrationDraw, ...]:
        """Return the calibration draws, oldest first, about one population or about all."""
        draws = self._read().calibration_draws.values()
        return tuple(draw for draw in draws if population in {None, draw.population})

    def household_account(self, population: str) -> HouseholdAccount | None:
        """Return the newest household account of a population, None if there is none."""
        return self._read().accounts.get(population)

    def head(self) -> str:
        """Return the hash of the newest row, 64 zeros for an empty ledger."""
        return self._read().head

    def content_head(self) -> str:
        """Return the hash of the newest row that is no statement and no record of the ledger's life."""
        return self._read().content_head

    def length(self) -> int:
        """Return the number of rows of all tables."""
        return self._read().length

    def contains(self, head: str) -> bool:
        """Return whether `head` was the head of this ledger at some time; True for the head of an empty ledger.

        Use it to detect a ledger that is shorter than a published folder. Hashes of the ledgers that this one was
        recovered from count as well.
        """
        return head == NO_HASH or self.row_number(head) is not None

    def row_number(self, head: str) -> int | None:
        """Return the number of the row with this hash, None if there is none.

        Hashes in the ledgers that this one was recovered from count as well.
        """
        return self._read().row_number(head)

    def is_closed(self) -> bool:
        """Return whether the ledger was closed: no row can be added, and another ledger continues it."""
        return bool(self._read().closing_text)

    def recovery(self) -> RecoveryRecord | None:
        """Return the recovery record of this ledger, None if it was never recovered."""
        records = [read_lifecycle_record(row) for row in self._read().lifecycle_rows]
        return next((record for record in records if isinstance(record, RecoveryRecord)), None)

    def is_taken_over(self) -> bool:
        """Return whether rows of this ledger were exported from a ledger that was never closed and is lost.

        If that ledger turns up again, both must not be used: the same days would be drawn twice.
        """
        return any(isinstance(read_lifecycle_record(row), Takeover) for row in self._read().lifecycle_rows)

    def earlier_folder_files(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the files (name, SHA-256) of the folders that the earlier ledgers were recovered from."""
        recovery = self.recovery()
        return () if recovery is None else tuple(earlier.files for earlier in recovery.earlier_ledgers)

    def all_rows(self) -> tuple[Row, ...]:
        """Return the rows of all tables, oldest first."""
        return self._all_rows()

    def verify(self) -> tuple[Fault, ...]:
        """Return every fault of the database and of its rows; each hash is recomputed from the columns.

        Rows removed at the end leave a valid, shorter chain; whether it `contains` a published head shows that.

        Raises:
            LedgerError: the database cannot be read at all.
        """
        return run_transaction(self._database, partial(ledger_faults, self._database), write=False)


def require_same_contract(registered: ContractRecord, contract: Mapping[str, Any]) -> ContractRecord:
    """Return the registered contract if `contract` has the same meaning.

    Raises:
        ContractChanged: they differ; the message lists the differences key by key.
    """
    promise = canonical(contract)
    if registered.promise == promise:
        return registered
    changes = registered.terms.counted.differences(parse_contract(promise).counted)
    if not changes:
        return registered
    raise ContractChanged(
        f"the run file differs from the contract of {registered.population!r} of {registered.at}: {'; '.join(changes)};"
        " undo the change, or check with `agedp ledger amend` whether it can be recorded"
    )
