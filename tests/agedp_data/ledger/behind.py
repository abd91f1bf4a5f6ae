"""Statements behind the back of a ledger on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.agedp_data.ledger.conftest import Book
from tests.postgresql import PostgreSQL


@contextmanager
def without_triggers(server: PostgreSQL, book: Book) -> Iterator[Any]:
    """Give the superuser's connection to a ledger whose triggers are off meanwhile."""
    schema = book.url.rpartition("%3D")[2]
    with server.connection(book.url.partition("@/")[2].partition("?")[0]) as connection:
        connection.execute(f"SET search_path = {schema}")
        listed = connection.execute(
            "SELECT tgname, relname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid"
            f" WHERE NOT tgisinternal AND relnamespace = '{schema}'::regnamespace"
        ).fetchall()
        for name, table in listed:
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield connection
        for name, table in listed:
            connection.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def raw(server: PostgreSQL, book: Book, *statements: str, triggers: bool = False) -> None:
    """Carry out statements as the superuser, without the ledger's triggers unless they are wanted."""
    if not triggers:
        with without_triggers(server, book) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    with server.connection(book.url.partition("@/")[2].partition("?")[0]) as connection:
        connection.execute(f"SET search_path = {book.url.rpartition('%3D')[2]}")
        for statement in statements:
            connection.execute(statement)


def faults(book: Book) -> list[str]:
    with book.open() as ledger:
        return [f"{fault.seq} {fault.table} {fault.problem}" for fault in ledger.verify()]
