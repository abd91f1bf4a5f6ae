"""One transaction of a ledger, and how often it is begun again.

Every transaction opens the database anew: a fork shares no connection, a file put back from a backup is seen, and
closing leaves nothing behind. There is one writer at a time, so the second of two runs waits until the first has
stored what it drew.

A transaction that a server gave up, or whose connection was lost, is begun again a few times. Whether a lost COMMIT
was carried out is not guessed: the next attempt becomes the writer only after the server has ended the lost one, and
whatever is begun again reads the ledger before it draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from agedp_data.ledger.database import LedgerDatabase, ServerUnreachable, TransactionAborted

PAUSES = (0.1, 0.5, 2.0, 5.0, 10.0)
"""Seconds before each further attempt; a server that is restarted is back within them."""

_Result = TypeVar("_Result")


def carried_out(
    database: LedgerDatabase, work: Callable[[Connection], _Result], *, write: bool, making: bool = False
) -> _Result:
    """Return what `work` makes of a connection in one transaction; in another one if that was given up.

    Raises:
        LedgerError: in one line, whatever the database has to complain about.
    """
    lost: TransactionAborted | None = None
    pauses = iter(PAUSES)
    while True:
        try:
            with transaction(database, write=write, making=making) as connection:
                made = work(connection)
        except TransactionAborted as error:
            lost = error
        except ServerUnreachable:
            if lost is None:
                raise
        else:
            return made
        pause = next(pauses, None)
        if pause is None:
            raise lost
        time.sleep(pause)


@contextmanager
def transaction(database: LedgerDatabase, *, write: bool, making: bool = False) -> Iterator[Connection]:
    """Give a connection inside one transaction: committed at the end, rolled back on any exception.

    What is written goes through the triggers: a ledger that lacks one, or has one more, is not written to unless it
    is only `making`.

    Raises:
        LedgerError: in one line, whatever the database has to complain about.
    """
    try:
        with database.engine.connect().execution_options(agedp_write=write) as connection, connection.begin():
            if write and not making:
                _require_as_made(database, connection)
            yield connection
    except DBAPIError as error:
        raise database.refusal(error) from None


def _require_as_made(database: LedgerDatabase, connection: Connection) -> None:
    for what, how in database.oddities(connection):
        raise database.about(
            f"was changed from outside: its {what} {how}, so nothing is written to it; put "
            "back a good copy, or move its rows to a new one (`agedp ledger export`, `agedp ledger import --lost`)"
        )
