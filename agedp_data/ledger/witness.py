"""The witness of a ledger: the newest confirmed head, stored in another place than the ledger.

A machine that is restored from a snapshot has an older ledger, an older release folder and older confidential records,
all of the same moment; nothing on it shows that days were released since. The witness does: it contains the hash of
the ledger's newest row that is no statement. One record such as

    {"new": "9f3c...", "old": "1b7a...", "schema": "agedp-witness-1", "state": "confirmed"}

is written around every commit that changes this head: first `pending`, then the commit, then `confirmed`; only
confirmed rows are published. The committed head of a record is `new` if it is confirmed, else `old`.

Decisions.

* Statement rows do not count. They draw nothing, a recovered ledger does not have them, and the closing row of a
  transferred ledger is one. The head that a release folder names is never a statement either, so a ledger that was
  recovered from the newest folder contains the committed head.
* A ledger continues if it contains the committed head, or a pending one. It may have later rows (a run of another
  population without a witness, an older copy of the witness): these are confirmed before anything is published.
* Every write is a compare-and-set. Each committed head therefore extends the previous one, however many copies of a
  ledger exist and wherever one of them is killed, and every published row is on this one chain.
* The record is identified by its address, not by the ledger: a machine that is restored to the time before its first
  release has an empty ledger, which has no id yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, TypeVar

from agedp_data.config.contract import parse_contract
from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger.records import NO_HASH, canonical

SCHEMA: Final = "agedp-witness-1"
_ATTEMPTS: Final = 20
_OUT_OF_DATE: Final = (
    "confirmed rows that this ledger lacks: the ledger is an older copy, or another copy of it is in use. Nothing was "
    "drawn. Put back the newest ledger, or restore it from the newest release folder (`agedp ledger recover`). "
    "If neither exists, docs/recover.md explains how to continue without them"
)
_MISSING: Final = (
    "has no record, but the contract requires a witness. Nothing was drawn. Put back the record, or remove "
    "[output] witness from the run file and record that by `agedp ledger amend`"
)
_OVERTAKEN: Final = (
    "was changed by another copy of this ledger while this run was under way; nothing of this run is published. End "
    "the other copy, and continue with the newest ledger"
)

_Error = TypeVar("_Error", bound=LedgerError)


@dataclass(frozen=True, slots=True)
class WitnessState:
    """One record of a witness: a head, the head before it, and whether the commit between the two is confirmed.

    Heads are hashes of rows that are no statements (`HashChain.content_head`).
    """

    old: str
    new: str
    state: Literal["pending", "confirmed"]

    @property
    def committed_head(self) -> str:
        """Return the newest head that is certainly committed."""
        return self.new if self.state == "confirmed" else self.old


class Witness(Protocol):
    """Storage of one record: a file, an object or a row of a database.

    Every call raises LedgerError if the storage does not answer or its record cannot be parsed.
    """

    @property
    def address(self) -> str:
        """Return where the record is stored, for the operator only."""

    def read(self) -> WitnessState | None:
        """Return the record, None if it does not exist."""

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Replace the record atomically if it is the expected one.

        Args:
            expected: the record that was read; None if there was none.
            state: the new record.

        Returns:
            Whether the record was replaced; False if another process changed it meanwhile.
        """


class WitnessedRows(Protocol):
    """The rows of a ledger as a witness sees them, implemented by `HashChain`."""

    @property
    def content_head(self) -> str:
        """Return the hash of the newest row that is no statement, 64 zeros for an empty ledger."""

    def row_number(self, head: str) -> int | None:
        """Return the number of the row with this hash, None if this ledger has no such row."""

    def promise_to(self, population: str) -> str | None:
        """Return the text of the contract in force, None before the first contract."""


def format_state(state: WitnessState) -> bytes:
    """Return a record as the bytes that are stored: one line of JSON.

    >>> format_state(WitnessState("aa", "bb", "pending")).decode().strip()
    '{"new":"bb","old":"aa","schema":"agedp-witness-1","state":"pending"}'
    """
    record = {"schema": SCHEMA, "old": state.old, "new": state.new, "state": state.state}
    return (canonical(record) + "\n").encode()


def parse_state(content: bytes) -> WitnessState:
    """Return a stored record.

    Raises:
        ValueError: the bytes are no record, or one of a newer agedp.
    """
    try:
        record: Any = json.loads(content)
    except RecursionError:
        raise ValueError("no record of a witness") from None
    match record:
        case {"schema": "agedp-witness-1", "old": str(old), "new": str(new), "state": "pending" | "confirmed" as state}:
            return WitnessState(old, new, state)
    raise ValueError("no record of a witness")


def witness_error(kind: type[_Error], witness: Witness, problem: str) -> _Error:
    """Return an error about a witness; only its private text names the address.

    Args:
        kind: class of the error.
        witness: the witness, whose address is quoted.
        problem: the rest of the sentence "the witness ...".
    """
    return kind(f"the witness {problem}", private=f"the witness {witness.address} {problem}")


def damaged_record_error(witness: Witness) -> LedgerError:
    """Return the error about a record that cannot be parsed."""
    return witness_error(
        LedgerError, witness, "holds no record that this agedp understands. Put back a good copy, or update agedp"
    )


def names_witness(promise: str | None) -> bool:
    """Return whether a contract requires a witness.

    >>> names_witness('{"output":{"witness":"required"}}'), names_witness('{"population":{}}'), names_witness(None)
    (True, False, False)
    """
    return promise is not None and parse_contract(promise).requires_witness


class CommitWitness:
    """The protocol around the commits of one ledger, for the runs of one population; `Ledger.attach` uses it.

    Each write transaction calls `confirm_head`, then `announce` before its commit, and `confirm` after it.
    """

    def __init__(self, witness: Witness, *, population: str) -> None:
        self._witness = witness
        self._population = population

    def check(self, read_rows: Callable[[], WitnessedRows]) -> None:
        """Raise if the ledger lacks rows that the witness confirmed; nothing is written.

        The record is read first: the rows, which are read after it, contain everything confirmed by then.

        Raises:
            LedgerError: the ledger is older than the witness, or the record is missing.
        """
        state = self._witness.read()
        self._require_contained(state, read_rows())

    def confirm_head(self, rows: WitnessedRows) -> WitnessState | None:
        """Bring the record to the ledger's head and return it; call it while nobody else writes to the ledger.

        A commit that was never confirmed is confirmed; one that was never carried out stays pending.

        Raises:
            LedgerError: as `check`.
        """
        for _ in range(_ATTEMPTS):
            state = self._witness.read()
            self._require_contained(state, rows)
            if state is None or state.committed_head == rows.content_head:
                return state
            confirmed = WitnessState(state.committed_head, rows.content_head, "confirmed")
            if self._witness.compare_and_set(state, confirmed):
                return confirmed
        raise self._overtaken_error()

    def announce(self, expected: WitnessState | None, *, old: str, new: str) -> WitnessState:
        """Write that the head is about to change from `old` to `new`, if the record is as `confirm_head` returned it.

        Raises:
            LedgerBehind: another copy of the ledger was faster; nothing may be committed.
        """
        pending = WitnessState(old, new, "pending")
        if self._witness.compare_and_set(expected, pending) or self._witness.read() == pending:
            return pending
        raise self._overtaken_error()

    def confirm(self, pending: WitnessState, read_rows: Callable[[], WitnessedRows]) -> None:
        """Write that the announced commit was carried out; another run of the same ledger may have done so.

        Raises:
            LedgerError: another copy of the ledger was faster, or the record is missing; nothing may be published.
        """
        confirmed = replace(pending, state="confirmed")
        for _ in range(_ATTEMPTS):
            if self._witness.compare_and_set(pending, confirmed):
                return
            state = self._witness.read()
            if state == pending:
                continue
            if state is None:
                raise witness_error(LedgerError, self._witness, _MISSING)
            rows = read_rows()
            committed_head, committed = rows.row_number(state.committed_head), rows.row_number(pending.new)
            if committed_head is not None and committed is not None and committed_head >= committed:
                return
            break
        raise self._overtaken_error()

    def _require_contained(self, state: WitnessState | None, rows: WitnessedRows) -> None:
        if state is None:
            if names_witness(rows.promise_to(self._population)):
                raise witness_error(LedgerError, self._witness, _MISSING)
            return
        if (
            state.committed_head != NO_HASH
            and rows.row_number(state.committed_head) is None
            and rows.row_number(state.new) is None
        ):
            raise witness_error(LedgerBehind, self._witness, _OUT_OF_DATE)

    def _overtaken_error(self) -> LedgerBehind:
        return witness_error(LedgerBehind, self._witness, _OVERTAKEN)
