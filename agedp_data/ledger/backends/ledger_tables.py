"""The tables of a ledger, derived from the row classes, with queries on them and comparison of their definitions.

Tables and queries are equal for every database. The triggers that keep them append-only differ by database (`sqlite`,
`postgresql_ddl`). The definitions of a database's tables, indices and triggers are compared with those of a new ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy import inspect as inspector

from agedp_data.ledger import records
from agedp_data.messages import escape_text

VERSION = "1"
"""Schema version of a new ledger's tables and columns."""
READABLE_VERSIONS: Mapping[str, str] = {"1": "0.1"}
"""Schema versions that this agedp reads and writes, each with the first version of agedp that does."""

METADATA = MetaData()
META = Table(
    "meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("content", Text, nullable=False),
)


def _table(name: str, row: type[records.Row]) -> Table:
    """Return the table of a row class: integers as 64-bit integers, every other field as text."""
    types = {field.name: field.type for field in fields(row)}
    number = BigInteger().with_variant(Integer(), "sqlite")
    names = [key for key in types if key not in ("seq", "at", "hash")]
    columns = [Column(key, number if types[key] == "int" else Text(), nullable=False) for key in ("at", *names)]
    unique = [UniqueConstraint("population", "series", "day", "revision")] if name == "release" else []
    return Table(
        name,
        METADATA,
        Column("seq", number, primary_key=True, autoincrement=False),
        *columns,
        Column("text", Text, nullable=False),
        Column("hash", Text, nullable=False, unique=True),
        *unique,
    )


TABLES = {name: _table(name, row) for name, row in records.TABLES.items()}


def create(connection: Connection) -> None:
    """Create tables and schema version in an empty database, inside the caller's transaction.

    The triggers that keep the tables append-only are created by the backend.
    """
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(META.insert().values(name="version", content=VERSION))
    if VERSION != "1":  # agedp 0.1 wrote no more than the version
        connection.execute(META.insert().values(name="needs", content=READABLE_VERSIONS[VERSION]))


def is_empty(connection: Connection) -> bool:
    """Return whether the database has no table."""
    return not inspector(connection).get_table_names()


def needed_version(connection: Connection) -> str | None:
    """Return the version of agedp that a ledger needs, None if it does not name one.

    Use it for the message about a newer schema.
    """
    return connection.execute(select(META.c.content).where(META.c.name == "needs")).scalar()


def schema_version(connection: Connection) -> str | None:
    """Return the schema version of a database.

    Returns:
        The version; None if the database is no ledger: a table, or a column of `meta`, is missing.
    """
    tables = inspector(connection)
    if not {"meta", *TABLES} <= set(tables.get_table_names()):
        return None
    if {column["name"] for column in tables.get_columns("meta")} != set(META.c.keys()):
        return None
    return connection.execute(select(META.c.content).where(META.c.name == "version")).scalar()


StoredRow = tuple[str, Mapping[str, Any]]
PAGE: Final = 64
"""Rows of one table that are read at a time; a row may have thousands of cells."""


# Built once: a release asks both questions, and building them takes longer than answering them.
_PAGES = {
    name: select(table).where(table.c.seq >= bindparam("since")).order_by(table.c.seq).limit(PAGE)
    for name, table in TABLES.items()
}
_HEADS = union_all(
    *(
        select(table.c.seq, table.c.hash, literal(name)).where(where)
        for name, table in TABLES.items()
        # apart: together, SQLite would scan the table
        for where in (table.c.seq >= bindparam("since"), table.c.seq < 1)
    )
)


def rows_since(connection: Connection, since: int) -> list[StoredRow]:
    """Return the stored rows of all tables from number `since` on, in the order of their numbers.

    Rows without a valid number, which only an edit from outside can make, come last.
    """
    return sort_rows(row for name in TABLES for row in table_rows_since(connection, name, since))


def pages_since(connection: Connection, since: int) -> Iterator[list[StoredRow]]:
    """Yield the rows that `rows_since` returns in pages, so that years of rows are never in memory at once."""
    while True:
        pages = {name: _page(connection, name, since) for name in TABLES}
        ends = [page[-1][1]["seq"] for page in pages.values() if len(page) == PAGE]
        end = min(filter(is_row_number, ends), default=None)
        rows = sort_rows(row for page in pages.values() for row in page)
        yield [row for row in rows if end is None or not is_row_number(row[1]["seq"]) or row[1]["seq"] <= end]
        if end is None:
            break
        since = end + 1
    unnumbered = sort_rows(row for name in TABLES for row in _unnumbered_rows(connection, name))
    if unnumbered:
        yield unnumbered


def rows_up_to(connection: Connection, name: str, last: int) -> Iterator[Mapping[str, Any]]:
    """Yield the stored rows of one table up to number `last`, oldest first, a page at a time."""
    since = 1
    while rows := [columns for _, columns in _page(connection, name, since) if columns["seq"] <= last]:
        yield from rows
        since = rows[-1]["seq"] + 1


def _page(connection: Connection, name: str, since: int) -> list[StoredRow]:
    return [(name, dict(columns)) for columns in connection.execute(_PAGES[name], {"since": since}).mappings()]


def _unnumbered_rows(connection: Connection, name: str) -> list[StoredRow]:
    table = TABLES[name]
    query = select(table).where(or_(table.c.seq < 1, table.c.seq.is_(None)))
    return [(name, dict(columns)) for columns in connection.execute(query).mappings()]


def heads_since(connection: Connection, since: int) -> list[tuple[Any, str, str]]:
    """Return (number, hash, table) of the rows from number `since` on, and of those below 1, by one query."""
    return [(number, digest, name) for number, digest, name in connection.execute(_HEADS, {"since": since})]


def page_of_heads(connection: Connection, heads: Sequence[tuple[Any, str, str]]) -> list[StoredRow] | None:
    """Return the rows with these heads, in the order of their numbers, from their tables alone.

    None if they do not fit into a page, or if a number is not valid; `pages_since` reads these.
    """
    if not 0 < len(heads) <= PAGE or not all(is_row_number(number) for number, _, _ in heads):
        return None
    since = min(number for number, _, _ in heads)
    return sort_rows(row for name in {name for _, _, name in heads} for row in _page(connection, name, since))


def rows_numbered(connection: Connection, name: str, numbers: Sequence[int]) -> Iterator[StoredRow]:
    """Yield the stored rows of one table with these numbers, oldest first."""
    table = TABLES[name]
    for start in range(0, len(numbers), PAGE):
        query = select(table).where(table.c.seq.in_(numbers[start : start + PAGE])).order_by(table.c.seq)
        for columns in connection.execute(query).mappings():
            yield name, dict(columns)


def stored_hashes(connection: Connection) -> dict[str, int]:
    """Return the number of every row by its hash; it reads no content of a row."""
    return {
        digest: number
        for table in TABLES.values()
        for number, digest in connection.execute(select(table.c.seq, table.c.hash))
    }


def table_rows_since(connection: Connection, name: str, since: int) -> list[StoredRow]:
    """Return the stored rows of one table from number `since` on, and those without a valid number.

    Returns:
        Pairs of table name and columns, in no particular order.
    """
    seq = TABLES[name].c.seq
    query = select(TABLES[name]).where(or_(seq >= since, seq < 1, seq.is_(None)))
    return [(name, dict(columns)) for columns in connection.execute(query).mappings()]


def sort_rows(rows: Iterable[StoredRow]) -> list[StoredRow]:
    """Return rows in the order of their numbers; those without a valid number come last.

    >>> sort_rows([("model", {"seq": 2}), ("release", {"seq": None}), ("contract", {"seq": 1})])
    [('contract', {'seq': 1}), ('model', {'seq': 2}), ('release', {'seq': None})]
    """

    def position(row: StoredRow) -> tuple[float, str]:
        seq = row[1]["seq"]
        return (seq if is_row_number(seq) else math.inf), row[0]

    return sorted(rows, key=position)


def is_row_number(seq: object) -> bool:
    """Return whether a value is a valid row number: an integer from 1 on.

    >>> is_row_number(1), is_row_number(0), is_row_number("1")
    (True, False, False)
    """
    return type(seq) is int and seq >= 1


Parts = Mapping[tuple[str, str], str]
"""Definitions of the tables, indices, triggers and views of a database, by kind and name."""


def compare_parts(expected: Parts, stored: Parts) -> tuple[tuple[str, str], ...]:
    """Return (part, difference) for every part that is missing, changed or does not belong to a ledger.

    >>> compare_parts({("table", "a"): "x", ("table", "b"): "y"}, {("table", "a"): "z", ("view", "c"): ""})
    (('table a', 'was changed'), ('table b', 'is missing'), ('view c', "is none of a ledger's"))
    """
    return tuple(
        (f"{kind} {escape_text(name, 80)}", _difference(expected.get((kind, name)), stored.get((kind, name))))
        for kind, name in sorted(expected.keys() | stored.keys())
        if expected.get((kind, name)) != stored.get((kind, name))
    )


def _difference(expected: str | None, stored: str | None) -> str:
    if stored is None:
        return "is missing"
    return "was changed" if expected is not None else "is none of a ledger's"
