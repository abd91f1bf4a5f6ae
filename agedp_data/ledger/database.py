"""What a ledger asks of the database that it lies in, whichever it is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from agedp_data.errors import LedgerError

MEND: Final = "put back a good copy, or restore it from the release folder (`agedp ledger recover`)"
BUSY: Final = "another process has held it for a minute; wait for that run to end and start again"


class TransactionAborted(LedgerError):
    """A transaction that the server gave up or lost; to be begun again, by reading what is stored."""


class ServerUnreachable(LedgerError):
    """A server to which there is no connection; nothing was begun."""


class LedgerDatabase(Protocol):
    """Where one ledger lies."""

    @property
    def engine(self) -> Engine:
        """What opens it anew for each transaction: the only one that writes if `agedp_write` is set."""

    @property
    def folder(self) -> Path | None:
        """The folder that it needs room in, None if that is a server's affair."""

    def there(self) -> bool:
        """Tell whether there is anything that a ledger could be in."""

    def make_room(self, *, create: bool) -> None:
        """Make a place for a new ledger if `create`; raise LedgerError if there is none and none can be made."""

    def unmade(self) -> AbstractContextManager[None]:
        """Take back the ledger that is made in here if anything fails; what holds rows stays."""

    def is_empty(self, connection: Connection) -> bool:
        """Tell whether it holds no table at all."""

    def create(self, connection: Connection) -> None:
        """Make tables, triggers and version, inside the caller's transaction."""

    def oddities(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """Return (what, how) of everything that is not as `create` made it."""

    def is_whole(self, connection: Connection) -> bool:
        """Tell whether the database finds its own pages in order, as far as it can be asked."""

    def require_writable(self, connection: Connection) -> None:
        """Raise, before anything is drawn, if no row can be added."""

    def about(self, words: str) -> LedgerError:
        """Return an error that says which ledger the words are about."""

    def in_words(self, error: DBAPIError) -> str:
        """Say what an error of the database means to the user."""

    def refusal(self, error: DBAPIError) -> LedgerError:
        """Return what is raised for an error of the database; GivenUp if another attempt may succeed."""
