"""The hash chain of a ledger: every row is checked when it is added, in the order of `seq`.

The same class verifies a stored ledger (`verify`), checks a row before it is written, and is the index of an open
ledger, so that a release reads only the rows that were added since the last one.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agedp_data import clock
from agedp_data.config.contract import format_unknown_version
from agedp_data.errors import LedgerError
from agedp_data.ledger import lifecycle, records
from agedp_data.ledger.records import HOUSEHOLD_DAYS, HOUSEHOLDS, INT64, check_dates, check_draw, header_of
from agedp_data.messages import escape_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agedp_data.ledger.records import ReleaseHeader
    from agedp_data.series.series import AnySeries

_MAX_SHOWN = 80


class HashChain:
    """The rows so far: `length`, `head`, and an index of what later rows refer to.

    `content_head` is the hash of the newest row that is no statement: statements draw nothing and promise nothing.
    Calibration draws and household accounts, which are stored as statement rows, count as content.
    `earlier_heads` are hashes of rows in the ledgers that this one was recovered from, with their row numbers here.
    `releases` are headers: cells and values stay in the database, as do models and statements, of which the numbers
    of their rows are held (`models`, `statement_numbers`), and of accounts the newest of each population (`accounts`,
    `account_rows`). `newest_dates` has the newest date of a row: of statements by population, and under "" that of all
    other rows but records of the ledger's life.
    `closing_text` is the reason why no row can be added, "" for an open ledger.
    """

    def __init__(self) -> None:
        self.length = 0
        self.head = records.NO_HASH
        self.content_head = records.NO_HASH
        self.heads: dict[str, int] = {}
        self.earlier_heads: dict[str, int] = {}
        self.closing_text = ""
        self.form = 1
        self.contracts: dict[str, list[records.ContractRecord]] = defaultdict(list)
        self.series: dict[str, Mapping[str, AnySeries]] = {}
        self.models: dict[str, int] = {}
        self.releases: dict[str, list[ReleaseHeader]] = defaultdict(list)
        self.statement_numbers: dict[str, list[int]] = defaultdict(list)
        self.lifecycle_rows: list[records.StatementRecord] = []
        self.newest_dates: dict[str, str] = {}
        self.calibration_draws: dict[tuple[str, str, str, str], lifecycle.CalibrationDraw] = {}
        self.accounts: dict[str, lifecycle.HouseholdAccount] = {}
        self.account_rows: dict[str, records.StatementRecord] = {}
        self.by_key: dict[tuple[str, str, str, int], ReleaseHeader] = {}
        self.published_on = ""

    def next_hash(self, row: records.Row) -> str:
        """Return the hash of a row if it is added next: SHA-256 of `head`, followed by the row's canonical text.

        The row must have its number, because the text contains it.
        """
        return records.sha256(self.head + records.text_of(row))

    def add(self, table: str, columns: Mapping[str, Any]) -> tuple[records.Fault, ...]:
        """Add the next row and return its faults.

        A row with faults is added as well, so that the rows after it are checked against its stored hash. Only a row
        without a valid number is not added.

        Args:
            table: name of the row's table.
            columns: the row as the database stores it, with `seq`, `text` and `hash`.

        Returns:
            Every fault of the row; () for a valid row.
        """
        seq = columns["seq"]
        if not records.is_row_number(seq):
            number = seq if isinstance(seq, int) else 0
            return (records.Fault(number, table, "an inserted row: it has no valid number"),)
        texts = [f"a second row numbered {seq}"] if seq <= self.length else []
        if seq > self.length + 1:
            texts.append(f"row {self.length + 1} to {seq - 1} missing before it")
        row: records.Row | None = None
        try:
            row = records.row_from_columns(table, columns)
        except ValueError as error:
            texts.append(str(error))
        if row is not None:
            texts += check_hash(row, columns, previous=self.head)
            texts += self.broken_rules(row)
            self._index(row)
        self._extend(seq, str(columns["hash"]))
        return tuple(records.Fault(seq, table, text) for text in texts)

    def append(self, row: records.Row) -> None:
        """Add the next row without a check; use it for a row that breaks no rule and is stored as it is."""
        self._index(row)
        self._extend(row.seq, row.hash)

    def _extend(self, seq: int, digest: str) -> None:
        self.length, self.head = seq, digest
        self.heads[digest] = seq

    def broken_rules(self, row: records.Row) -> tuple[str, ...]:
        """Return the rules that a row breaks as the next row of this chain, one text each; () if it may be added.

        Number and hash are checked by `add` only: a row is also checked before it has them, and before it is drawn.
        """
        match row:
            case records.ContractRecord():
                texts = self._check_contract(row)
            case records.ModelRecord():
                texts = self._check_model(row)
            case records.StatementRecord():
                texts = self._check_statement(row)
            case records.ReleaseRecord():
                texts = self._check_release(row)
        closing = (self.closing_text,) if self.closing_text else ()
        return (*closing, *(() if clock.is_date(row.at) else ("at is not an ISO date",)), *texts)

    def row_number(self, head: str) -> int | None:
        """Return the number of the row with this hash, None if there is none.

        Hashes in the ledgers that this one was recovered from count as well.
        """
        number = self.heads.get(head, self.earlier_heads.get(head))
        return number if number is not None and number <= self.length else None

    def promise_to(self, population: str) -> str | None:
        """Return the canonical text of the contract in force with a population, None before the first contract."""
        contracts = self.contracts.get(population)
        return contracts[-1].promise if contracts else None

    def _index(self, row: records.Row) -> None:
        if is_content(row):
            self.content_head = row.hash
        match row:
            case records.ContractRecord():
                self.index_contract(row)
                self._note_date("", row.at)
            case records.ModelRecord():
                self.models[row.model] = row.seq
                self._note_date("", row.at)
            case records.StatementRecord():
                self.statement_numbers[row.population].append(row.seq)
                if row.population == lifecycle.LEDGER_POPULATION:
                    self.index_lifecycle(row)
                else:
                    self._note_date(row.population, row.at)
            case records.ReleaseRecord():
                self.index_release(header_of(row))
                self._note_date("", row.at)

    def _note_date(self, population: str, at: str) -> None:
        self.newest_dates[population] = max(self.newest_dates.get(population, ""), at)

    def index_contract(self, row: records.ContractRecord) -> None:
        """Add a checked contract to the index."""
        self.contracts[row.population].append(row)
        with suppress(ValueError, LedgerError):
            records.parse_promise(row.promise)
            self.series[row.hash] = row.terms.series

    def index_release(self, header: ReleaseHeader) -> None:
        """Add the header of a checked release to the index."""
        self.releases[header.population].append(header)
        self.by_key[release_key(header)] = header
        if clock.is_date(header.published_on):
            self.published_on = max(self.published_on, header.published_on)

    def index_lifecycle(self, row: records.StatementRecord) -> None:
        """Add a checked lifecycle record to the index; of household accounts, one a night, the newest is held."""
        record = lifecycle.read_lifecycle_record(row)
        if not isinstance(record, lifecycle.HouseholdAccount):
            self.lifecycle_rows.append(row)
        match record:
            case lifecycle.ClosedLedger(_, number):
                self.closing_text = (
                    f"the ledger was closed on {escape_text(row.at, _MAX_SHOWN)} after {number} rows and "
                    "continues elsewhere; name the ledger that it was moved to"
                )
            case lifecycle.LedgerUpgrade(form, _):
                self.form = form
            case lifecycle.CalibrationDraw() as draw:
                self.calibration_draws[draw.key] = draw
            case lifecycle.HouseholdAccount() as account:
                self.accounts[account.population] = account
                self.account_rows[account.population] = row
            case lifecycle.RecoveryRecord() as recovery:
                ledgers: list[lifecycle.EarlierLedger | lifecycle.RecoveryRecord] = [
                    *recovery.earlier_ledgers,
                    recovery,
                ]
                for earlier in ledgers:
                    numbered = enumerate(earlier.hashes, row.seq + 1)
                    self.earlier_heads |= {digest: number for number, digest in numbered if digest}
                    self.earlier_heads.setdefault(earlier.head, row.seq + len(earlier.hashes))

    def _check_statement(self, row: records.StatementRecord) -> Iterator[str]:
        for name, digest in row.files:
            if not is_sha256(digest):
                yield f"file {escape_text(name, _MAX_SHOWN)!r} has no SHA-256"
        if row.population != lifecycle.LEDGER_POPULATION:
            yield from self._check_privacy_statement(row)
            return
        record = lifecycle.read_lifecycle_record(row)
        if record is None:
            yield "a record that this agedp does not know: neither a closing, a recovery, a takeover nor an upgrade"
        if isinstance(record, lifecycle.LedgerUpgrade) and record.form not in lifecycle.LEDGER_NEEDS:
            newest = lifecycle.LEDGER_FORM
            yield format_unknown_version("the ledger from here on", record.form, record.needs, newest=newest)
        if isinstance(record, lifecycle.LedgerUpgrade) and record.form <= self.form:
            yield "it does not upgrade to a later form"
        if isinstance(record, lifecycle.ClosedLedger | lifecycle.Takeover) and (record.head, record.rows) != (
            self.head,
            self.length,
        ):
            yield "it closes or takes over another ledger"
        if isinstance(record, lifecycle.RecoveryRecord) and self.length:
            yield "a recovery record that is not the first row"
        form = lifecycle.form_of(record)
        if self.form < form:
            yield f"a record of form {form} before the ledger was upgraded to it"
        if isinstance(record, lifecycle.CalibrationDraw):
            yield from self._check_calibration_draw(record)
        if isinstance(record, lifecycle.HouseholdAccount):
            yield from self._check_account(record)
        if isinstance(record, lifecycle.SigningKey) and not is_sha256(record.fingerprint):
            yield "a signing key whose fingerprint is no SHA-256"

    def _check_account(self, account: lifecycle.HouseholdAccount) -> Iterator[str]:
        if not 0 <= account.day <= account.total < INT64.stop:
            yield "an account of a day that is negative, or beyond its total or 64 bits"
        if not isinstance(account, lifecycle.PopulationAccount):
            return
        if not (0 <= account.own_day <= account.day and account.own_day <= account.own_total <= account.total):
            yield "an account that is below the part of its own population"
        before = self.accounts.get(account.population)
        if before is not None and (account.day < before.day or account.total < before.total):
            yield "an account that is below the one before it"

    def _check_calibration_draw(self, draw: lifecycle.CalibrationDraw) -> Iterator[str]:
        if draw.key in self.calibration_draws:
            yield "the same calibration draw a second time"
        if not (clock.is_date(draw.first_day) and clock.is_date(draw.last_day) and draw.first_day <= draw.last_day):
            yield "a calibration draw without a period"
        if not 0 < draw.loss < INT64.stop or not all(value in INT64 for value in draw.value):
            yield "a calibration draw without a loss, or with a number beyond 64 bits"
        if not records.is_canonical(draw.query):
            yield "a calibration draw whose query is not canonical JSON"

    def _check_privacy_statement(self, row: records.StatementRecord) -> Iterator[str]:
        try:
            statement = records.parse_statement(row.claim)
        except ValueError as error:
            yield str(error)
            return
        if statement.population != row.population:
            yield "the statement and its row name different populations"
        if self.row_number(statement.ledger.head) is None:
            yield "the head that the statement names is not on the hash chain before it"

    def _check_contract(self, row: records.ContractRecord) -> Iterator[str]:
        try:
            promise = records.parse_promise(row.promise)
        except ValueError as error:
            yield str(error)
            return
        if promise.population.name != row.population:
            yield "the contract and its row name different populations"
        if promise.model is not None and promise.model.hash is not None and promise.model.hash not in self.models:
            yield "the model it names is not in the ledger"

    def _check_model(self, row: records.ModelRecord) -> Iterator[str]:
        if row.model != records.sha256(row.envelope):
            yield "the model's id is not the hash of its public part"
        if row.model in self.models:
            yield "a model stored twice"
        try:
            records.require_leakage_bound(row.envelope)
        except ValueError as error:
            yield str(error)

    def _check_release(self, row: records.ReleaseRecord) -> Iterator[str]:
        if release_key(row) in self.by_key:
            day, name = (escape_text(text, _MAX_SHOWN) for text in (row.day, row.series))
            yield f"{day} of series {name!r} is released already"
        contracts = self.contracts[row.population]
        if not contracts or contracts[-1].hash != row.contract:
            yield "the contract it names is not the one in force"
        of_contract = self.series.get(row.contract)
        series = None if of_contract is None else of_contract.get(row.series)
        if of_contract is not None and series is None:
            yield f"its contract has no series {escape_text(row.series, _MAX_SHOWN)!r}"
        if series is not None and not series.holds(row.cells):
            yield f"its cells are not those of its contract's {series.cell_words[0]}"
        if row.model and row.model not in self.models:
            yield "the model it names is not in the ledger"
        if row.published_on < self.published_on:
            published_on = escape_text(row.published_on, _MAX_SHOWN)
            yield f"published on {published_on}, before {self.published_on} of an earlier row"
        yield from check_dates(row)
        covers_period = series is not None and series.covers_periods
        yield from check_draw(row, counts=HOUSEHOLD_DAYS if covers_period else HOUSEHOLDS)


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 as hexadecimal digits."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def is_content(row: records.Row) -> bool:
    """Return whether a row says more than a statement: every row but statements and records of the ledger's life."""
    return not isinstance(row, records.StatementRecord) or lifecycle.form_of(lifecycle.read_lifecycle_record(row)) > 1


def check_hash(row: records.Row, columns: Mapping[str, Any], *, previous: str) -> Iterator[str]:
    """Yield what is wrong with the stored columns of a row: each follows from its text, and its hash from both.

    `previous` is the hash of the row before it.
    """
    expected = records.columns_of(row)
    for name in sorted(expected.keys() - {"hash", "text"}):
        if columns[name] != expected[name]:
            yield f"{name} is not written canonically"
    if columns["text"] != expected["text"]:
        yield "the columns are not those of the text that was hashed"
    if columns["hash"] != records.sha256(f"{previous}{expected['text']}"):
        yield "the hash does not follow from the row and the one before it"


def release_key(row: records.ReleaseRecord | ReleaseHeader) -> tuple[str, str, str, int]:
    """Return the unique key of a release within a ledger: population, series, day and revision.

    Two rows with the same key would be two draws for one day, which the ledger refuses.
    """
    return row.population, row.series, row.day, row.revision
