"""What the rows of a ledger add up to, checked row by row as they are added.

The same class audits a whole ledger (`verify`), guards what is about to be written, and is the memory of an
open ledger, so that a release reads only the rows that came since the last one.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from agedp_data import clock, losses
from agedp_data.format_versions import NEEDS, format_unknown_version
from agedp_data.ledger import forms, rows, schema
from agedp_data.ledger.marks import (
    OF_LEDGER,
    ClosedLedger,
    EarlierLedger,
    LedgerUpgrade,
    RecoveryRecord,
    Takeover,
    mark_of,
)
from agedp_data.shown import escape_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agedp_data.config.series import Distribution

_LONGEST = 80
STATES = ("released", "skipped")
INT32, INT64 = range(2**31), range(-(2**63), 2**63)
HOUSEHOLDS = range(1, 10**9 + 1)
LARGEST_SENSITIVITY, LARGEST_SCALE = 2**62, 2.0**55  # as `noise` draws


class HashChain:
    """The rows so far: `length`, `head`, and what later rows refer to.

    `content_head` is the hash of the newest row that is no statement: statements draw nothing and promise nothing.
    """

    def __init__(self) -> None:
        self.length = 0
        self.head = rows.NO_HASH
        self.content_head = rows.NO_HASH
        self.heads: dict[str, int] = {}
        self.former: dict[str, int] = {}
        self.closed = ""
        self.form = 1
        self.contracts: dict[str, list[rows.ContractRecord]] = defaultdict(list)
        self.series: dict[str, frozenset[str]] = {}
        self.distributions: dict[str, dict[str, Distribution]] = {}
        self.models: dict[str, rows.ModelRecord] = {}
        self.releases: dict[str, list[rows.ReleaseRecord]] = defaultdict(list)
        self.statements: dict[str, list[rows.StatementRecord]] = defaultdict(list)
        self.by_key: dict[tuple[str, str, str, int], rows.ReleaseRecord] = {}
        self.published_on = ""

    def sealed(self, row: rows.Row) -> str:
        """Return the hash that a row has as the next one of this chain."""
        return rows.sha256(self.head + rows.text_of(row))

    def add(self, table: str, columns: Mapping[str, Any]) -> tuple[rows.Fault, ...]:
        """Take the next row as the database holds it; return everything that is wrong with it."""
        seq = columns["seq"]
        if not schema.has_place(seq):
            return (rows.Fault(seq if isinstance(seq, int) else 0, table, "a row that was put in: it has no place"),)
        what = list(self._place(seq))
        row: rows.Row | None = None
        try:
            row = rows.row_of(table, columns)
        except ValueError as error:
            what.append(str(error))
        if row is not None:
            what += self._sealing(row, columns)
            what += self.flaws(row)
            self._keep(row)
        self.length, self.head = seq, str(columns["hash"])
        self.heads[self.head] = seq
        return tuple(rows.Fault(seq, table, each) for each in what)

    def flaws(self, row: rows.Row) -> tuple[str, ...]:
        """Return what is wrong with a row's meaning, given the rows before it."""
        match row:
            case rows.ContractRecord():
                found = self._contract(row)
            case rows.ModelRecord():
                found = self._model(row)
            case rows.StatementRecord():
                found = self._statement(row)
            case rows.ReleaseRecord():
                found = self._release(row)
        ended = (self.closed,) if self.closed else ()
        return (*ended, *(() if forms.is_date(row.at) else ("at is not an ISO date",)), *found)

    def place(self, head: str) -> int | None:
        """Return the number of the row that had this hash, here or in the ledger this one was recovered from."""
        found = self.heads.get(head, self.former.get(head))
        return found if found is not None and found <= self.length else None

    def promise_to(self, population: str) -> str | None:
        """Return the text of the contract in force with a population, None before there is one."""
        known = self.contracts.get(population)
        return known[-1].promise if known else None

    def _place(self, seq: int) -> Iterator[str]:
        if seq <= self.length:
            yield f"a second row numbered {seq}"
        elif seq > self.length + 1:
            yield f"row {self.length + 1} to {seq - 1} missing before it"

    def _sealing(self, row: rows.Row, columns: Mapping[str, Any]) -> Iterator[str]:
        expected = rows.columns_of(row)
        for name in sorted(expected.keys() - {"hash", "text"}):
            if columns[name] != expected[name]:
                yield f"{name} is not written canonically"
        if columns["text"] != expected["text"]:
            yield "the columns are not those of the text that was hashed"
        if columns["hash"] != rows.sha256(f"{self.head}{expected['text']}"):
            yield "the hash does not follow from the row and the one before it"

    def _keep(self, row: rows.Row) -> None:
        if not isinstance(row, rows.StatementRecord):
            self.content_head = row.hash
        match row:
            case rows.ContractRecord():
                self.contracts[row.population].append(row)
                with suppress(ValueError):
                    self.series[row.hash] = frozenset(forms.promise_in(row.promise).series)
                    self.distributions[row.hash] = forms.distributions_in(row.promise)
            case rows.ModelRecord():
                self.models[row.model] = row
            case rows.StatementRecord():
                self.statements[row.population].append(row)
                self._keep_mark(row)
            case rows.ReleaseRecord():
                self.releases[row.population].append(row)
                self.by_key[key_of(row)] = row
                if forms.is_date(row.published_on):
                    self.published_on = max(self.published_on, row.published_on)

    def _keep_mark(self, row: rows.StatementRecord) -> None:
        match mark_of(row):
            case ClosedLedger(_, number):
                self.closed = (
                    f"the ledger was closed on {escape_text(row.at, _LONGEST)} after {number} rows "
                    "and goes on elsewhere;"
                    " name the one it was moved to"
                )
            case LedgerUpgrade(form, _):
                self.form = form
            case RecoveryRecord() as seam:
                ledgers: tuple[EarlierLedger | RecoveryRecord, ...] = (*seam.former, seam)
                for lost in ledgers:
                    self.former |= {each: row.seq + number for number, each in enumerate(lost.hashes, 1) if each}
                    self.former.setdefault(lost.head, row.seq + len(lost.hashes))

    def _statement(self, row: rows.StatementRecord) -> Iterator[str]:
        for name, digest in row.files:
            if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
                yield f"file {escape_text(name, _LONGEST)!r} has no SHA-256"
        if row.population != OF_LEDGER:
            yield from self._claim(row)
            return
        mark = mark_of(row)
        if mark is None:
            yield "a mark that says nothing that this agedp knows: no closing, recovery, takeover or upgrade"
        if isinstance(mark, LedgerUpgrade) and mark.form not in NEEDS:
            yield format_unknown_version("the ledger from here on", mark.form, mark.needs)
        if isinstance(mark, LedgerUpgrade) and mark.form <= self.form:
            yield "it upgrades to no later form"
        if isinstance(mark, ClosedLedger | Takeover) and (mark.head, mark.rows) != (self.head, self.length):
            yield "it closes or takes over another ledger"
        if isinstance(mark, RecoveryRecord) and self.length:
            yield "a seam that is not the first row"

    def _claim(self, row: rows.StatementRecord) -> Iterator[str]:
        try:
            said = forms.claim_in(row.claim)
        except ValueError as error:
            yield str(error)
            return
        if said.population != row.population:
            yield "the claim is to other people than its row"
        if self.place(said.ledger.head) is None:
            yield "the head that the claim names is not on the chain before it"

    def _contract(self, row: rows.ContractRecord) -> Iterator[str]:
        try:
            said = forms.promise_in(row.promise)
        except ValueError as error:
            yield str(error)
            return
        if said.population.name != row.population:
            yield "the promise is to other people than its row"
        if said.model is not None and said.model.hash is not None and said.model.hash not in self.models:
            yield "the model it names is not in the ledger"

    def _model(self, row: rows.ModelRecord) -> Iterator[str]:
        if row.model != rows.sha256(row.envelope):
            yield "the model's id is not the hash of its public part"
        if row.model in self.models:
            yield "a model stored twice"
        try:
            forms.require_envelope(row.envelope)
        except ValueError as error:
            yield str(error)

    def _release(self, row: rows.ReleaseRecord) -> Iterator[str]:
        if key_of(row) in self.by_key:
            day, series = escape_text(row.day, _LONGEST), escape_text(row.series, _LONGEST)
            yield f"{day} of series {series!r} is released already"
        contracts = self.contracts[row.population]
        if not contracts or contracts[-1].hash != row.contract:
            yield "the contract it names is not the one in force"
        if row.series not in self.series.get(row.contract, {row.series}):
            yield f"its contract has no series {escape_text(row.series, _LONGEST)!r}"
        counts = self.distributions.get(row.contract, {}).get(row.series)
        if counts is not None and not counts.holds(row.cells):
            yield "its cells are not those of its contract's bins"
        if row.model and row.model not in self.models:
            yield "the model it names is not in the ledger"
        if row.published_on < self.published_on:
            published_on = escape_text(row.published_on, _LONGEST)
            yield f"published on {published_on}, before {self.published_on} of an earlier row"
        yield from _dates(row)
        yield from _draw(row)


def key_of(row: rows.ReleaseRecord) -> tuple[str, str, str, int]:
    """Return what names a release within a ledger."""
    return row.population, row.series, row.day, row.revision


def _dates(row: rows.ReleaseRecord) -> Iterator[str]:
    for name in ("day", "published_on"):
        if not forms.is_date(getattr(row, name)):
            yield f"{name} is not an ISO date"
    if not _is_utc(row.input_ended_at):
        yield "input_ended_at is not a UTC instant"


def _draw(row: rows.ReleaseRecord) -> Iterator[str]:
    """Yield what is wrong with state, cells and loss; a skipped day says nothing and costs nothing."""
    if row.state not in STATES:
        yield f"state is neither {' nor '.join(STATES)}"
    if len(set(row.cells)) < len(row.cells):
        yield "a cell is named twice"
    if not all(value in INT64 for value in row.values):
        yield "a value is beyond 64 bits"
    if row.revision not in INT32:
        yield "the revision is negative, or beyond 32 bits"
    if not all(count in HOUSEHOLDS for count in row.households):
        yield f"a number of households is not from 1 to {HOUSEHOLDS[-1]}"
    if row.sensitivity not in range(1, LARGEST_SENSITIVITY + 1):
        yield "sensitivity is not positive, or beyond 2^62"
        return
    if row.state == "skipped":
        if row.cells or row.values or row.households or row.loss:
            yield "a skipped day with cells, values or a loss"
        return
    if not row.cells or not len(row.cells) == len(row.values) == len(row.households):
        yield f"{len(row.cells)} cells, {len(row.values)} values, {len(row.households)} numbers of households"
    if not 0 < row.scale <= LARGEST_SCALE:
        yield "scale is not positive, or beyond 2^55"
    elif not losses.ceil_nano(Fraction(row.sensitivity) / Fraction(row.scale)) <= row.loss < INT64.stop:
        yield (
            f"loss {losses.format_epsilon(row.loss)} is below sensitivity {row.sensitivity} / scale {row.scale!r},"
            " or beyond 64 bits"
        )


def _is_utc(text: str) -> bool:
    """Tell whether a text is an instant as `clock.format_instant` writes it."""
    try:
        found = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return clock.format_instant(found) == text and forms.is_date(found.date().isoformat())
