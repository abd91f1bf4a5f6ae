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

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from agedp_data.config.contract import parse_contract
from agedp_data.datasets.filesystem import format_location, input_errors, system_at
from agedp_data.errors import InputError, LedgerBehind, LedgerError
from agedp_data.ledger.backends.backend import parse_url
from agedp_data.ledger.backends.postgresql import PostgreSQLDatabase, explain_sqlstate
from agedp_data.ledger.records import NO_HASH, canonical
from agedp_data.messages import escape_text

if TYPE_CHECKING:
    import psycopg


SCHEMA: Final = "agedp-witness-1"
_ATTEMPTS: Final = 20
_OUT_OF_DATE: Final = (
    "confirmed rows that this ledger lacks: the ledger is an older copy, or another copy of it is in use. Nothing was "
    "drawn. Put back the newest ledger, or restore it from the newest release folder (`agedp ledger recover`). "
    "If neither exists, docs/operate.md explains how to continue without them"
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
        is_contained = any(rows.row_number(head) is not None for head in (state.committed_head, state.new))
        if state.committed_head != NO_HASH and not is_contained:
            raise witness_error(LedgerBehind, self._witness, _OUT_OF_DATE)

    def _overtaken_error(self) -> LedgerBehind:
        return witness_error(LedgerBehind, self._witness, _OVERTAKEN)


# --------------------------------------------------------------------------------------------------
# A witness in a file: replaced atomically by renaming, synced with its folder, compared under a lock.
#
# The folder is never created: an unmounted disk must not look like a witness that was never used.
# --------------------------------------------------------------------------------------------------

LOCK_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.02


class FileWitness:
    """A file on another disk than the ledger, as a `Witness`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        """Return the path, quoted."""
        return repr(escape_text(str(self.path)))

    def read(self) -> WitnessState | None:
        """Return the record in the file, None if the file does not exist."""
        try:
            return parse_state(self.path.read_bytes())
        except FileNotFoundError:
            self._require_folder()
            return None
        except OSError as error:
            raise self._access_error("cannot be read", error) from None
        except ValueError:
            raise damaged_record_error(self) from None

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Replace the file under an exclusive lock; return False if its record is not `expected`.

        Raises:
            LedgerError: the folder does not exist or cannot be written, or the lock is held for a minute.
        """
        self._require_folder()
        try:
            with self._exclusive_lock():
                if self.read() != expected:
                    return False
                self._replace(format_state(state))
                return True
        except OSError as error:
            raise self._access_error("cannot be written", error) from None

    def _replace(self, content: bytes) -> None:
        """Replace the content of the file; the lock makes sure that no other process uses the temporary name."""
        temporary = self.path.with_name(f".{self.path.name}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > deadline:
                    problem = "is held by another process for a minute. End that process if it hangs, and run again"
                    raise witness_error(LedgerError, self, problem)
                time.sleep(_PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _require_folder(self) -> None:
        if not self.path.parent.is_dir():
            problem = "lies in a folder that does not exist. Mount its disk, or make the folder"
            raise witness_error(LedgerError, self, problem)

    def _access_error(self, problem: str, error: OSError) -> LedgerError:
        problem = f"{problem} ({error.strerror or type(error).__name__}). Check its permissions"
        return witness_error(LedgerError, self, problem)


# --------------------------------------------------------------------------------------------------
# A witness in an object store: compared and replaced by conditional writes (If-Match, If-None-Match).
#
# A store that ignores these conditions would let two copies of a ledger write over each other. A new record is
# therefore written twice more, under conditions that are false; a store that accepts either is refused.
# --------------------------------------------------------------------------------------------------

_CONFLICTS: Final = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412"))
_NO_TAG: Final = f'"{"0" * 32}"'


class ObjectWitness:
    """One object, named by an s3:// URL, as a `Witness`."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def address(self) -> str:
        """Return the URL."""
        return format_location(self.url)

    def read(self) -> WitnessState | None:
        """Return the record in the object, None if the object does not exist."""
        return self._fetch()[0]

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Write the object on the condition that it has not changed; return whether it was written.

        Raises:
            LedgerError: the service does not answer, or it ignores conditions (tried when the record is created).
        """
        current, tag = self._fetch()
        if current != expected:
            return False
        content = format_state(state)
        if expected is not None:
            return self._put(content, IfMatch=tag)
        if not self._put(content, IfNoneMatch="*"):
            return False
        if self._put(content, IfNoneMatch="*") or self._put(content, IfMatch=_NO_TAG):
            problem = (
                "lies in a store that ignores If-Match and If-None-Match, so that two machines could both write it"
            )
            raise witness_error(LedgerError, self, f"{problem}. Name another place")
        return True

    def _fetch(self) -> tuple[WitnessState | None, str]:
        """Return the record and an entity tag read before it: a change in between makes the conditional write fail."""
        try:
            with self._open_system() as (system, path):
                system.invalidate_cache()
                try:
                    tag = str(system.info(path)["ETag"])
                    content = bytes(system.cat_file(path))
                except FileNotFoundError:
                    return None, ""
            return parse_state(content), tag
        except ValueError:
            raise damaged_record_error(self) from None

    def _put(self, content: bytes, **condition: str) -> bool:
        with self._open_system() as (system, path):
            try:
                system.pipe_file(path, content, **condition)
            except OSError as error:
                if not _is_conflict(error):
                    raise
                return False
        return True

    @contextmanager
    def _open_system(self) -> Iterator[tuple[Any, str]]:
        try:
            with input_errors("the witness", self.url):
                yield system_at(self.url)
        except InputError as error:
            raise LedgerError(str(error), private=error.private) from None


def _is_conflict(error: OSError) -> bool:
    """Return whether the store refused a write because its condition did not hold."""
    cause: Any = error.__cause__
    response = getattr(cause, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return isinstance(error, FileExistsError) or str(code) in _CONFLICTS


# --------------------------------------------------------------------------------------------------
# A witness in a row of a PostgreSQL table, of a population that 0.2 began: compared and replaced in one statement.
#
# The table `agedp_witness` is in the first schema of the role's search path. The address names the row after `#`; its
# default is "ledger". No table and no row is made any more: 0.3 withdrew them for new populations.
# --------------------------------------------------------------------------------------------------

_DEFAULT_NAME: Final = "ledger"
_SELECT: Final = "SELECT state FROM agedp_witness WHERE name = %s"
_UPDATE: Final = "UPDATE agedp_witness SET state = %s WHERE name = %s AND state = %s"
_NO_RIGHT: Final = "42501"


class _WitnessServer(PostgreSQLDatabase):
    """A server whose errors are about the witness."""

    subject = "the witness"


class RowWitness:
    """One row of a table, as a `Witness`."""

    def __init__(self, url: str) -> None:
        url_without_name, _, name = url.partition("#")
        parts = parse_url(url_without_name, "the address of the witness", example="postgresql://host/database")
        self._server = _WitnessServer.of(parts)
        self._name = name or _DEFAULT_NAME
        self._address = f"{self._name!r} in {parts.database!r} on {parts.host!r}"

    @property
    def address(self) -> str:
        """Return the names of row, database and host."""
        return self._address

    def read(self) -> WitnessState | None:
        """Return the record in the row, None if the row does not exist."""
        with self._open_connection() as connection:
            row = connection.execute(_SELECT, (self._name,)).fetchone()
        try:
            return None if row is None else parse_state(str(row[0]).encode())
        except ValueError:
            raise damaged_record_error(self) from None

    def compare_and_set(self, expected: WitnessState | None, state: WitnessState) -> bool:
        """Update the row if it still contains `expected`; return whether it was written. A first record is none.

        Raises:
            LedgerError: the server refused or does not answer, or the table has other columns.
        """
        if expected is None:
            return False
        with self._open_connection() as connection:
            texts = format_state(state).decode(), self._name, format_state(expected).decode()
            return connection.execute(_UPDATE, texts).rowcount == 1

    @contextmanager
    def _open_connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection in autocommit mode: each statement is one transaction."""
        try:
            import psycopg  # noqa: PLC0415
        except ImportError:
            problem = "needs the driver psycopg. Install agedp with its extra postgresql"
            raise witness_error(LedgerError, self, problem) from None
        connection = self._server.connect()
        try:
            yield connection
        except psycopg.Error as error:
            problem = explain_sqlstate(error)
            if (error.sqlstate or "").startswith("42") and error.sqlstate != _NO_RIGHT:
                remedy = "Put it back, or name its schema in search_path"
                problem = f"its table agedp_witness is missing or has other columns. {remedy}"
            raise witness_error(LedgerError, self, f"cannot be used: {problem}") from None
        finally:
            connection.close()


# --------------------------------------------------------------------------------------------------
# From the address in [output] witness to its witness: a file, an object or a row.
# --------------------------------------------------------------------------------------------------


def witness_at(address: str) -> Witness:
    """Return the witness at a path, an s3:// URL or a postgresql:// URL; nothing is opened.

    >>> witness_at("/mnt/other/london.witness").address
    "'/mnt/other/london.witness'"
    """
    protocol = address.partition("://")[0] if "://" in address else ""
    if protocol == "s3":
        return ObjectWitness(address)
    return RowWitness(address) if protocol.startswith("postgresql") else FileWitness(Path(address))
