"""The tables, made from the row classes, and what is asked of them: the same in every database.

What keeps them append-only is each database's own (`sqlite_parts`, `postgresql_parts`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Integer, MetaData, Table, Text, UniqueConstraint, or_, select
from sqlalchemy import inspect as inspector

from agedp_data.ledger import rows

VERSION = "1"
"""Of tables and columns, of which a new ledger is made."""
READS: Mapping[str, str] = {"1": "0.1"}
"""The versions that are read and written here, and the first agedp that does so."""

METADATA = MetaData()
META = Table(
    "meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("content", Text, nullable=False),
)


def _table(name: str, row: type[rows.Row]) -> Table:
    """Declare a row class as a table: whole numbers as 64-bit integers, everything else as text."""
    kinds = {field.name: field.type for field in fields(row)}
    number = BigInteger().with_variant(Integer(), "sqlite")
    others = [key for key in kinds if key not in ("seq", "at", "hash")]
    columns = [Column(key, number if kinds[key] == "int" else Text(), nullable=False) for key in ("at", *others)]
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


TABLES = {name: _table(name, row) for name, row in rows.TABLES.items()}


def create(connection: Connection) -> None:
    """Create tables and version in an empty database, inside the caller's transaction."""
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(META.insert().values(name="version", content=VERSION))
    if VERSION != "1":  # agedp 0.1 wrote no more than the version
        connection.execute(META.insert().values(name="needs", content=READS[VERSION]))


def is_empty(connection: Connection) -> bool:
    """Tell whether the database holds no table at all."""
    return not inspector(connection).get_table_names()


def needs(connection: Connection) -> str | None:
    """Return the version of agedp that a newer ledger says that it needs, None if it says none."""
    return connection.execute(select(META.c.content).where(META.c.name == "needs")).scalar()


def version(connection: Connection) -> str | None:
    """Return the schema version that a database claims, None if it is no ledger."""
    looked = inspector(connection)
    if not {"meta", *TABLES} <= set(looked.get_table_names()):
        return None
    if {column["name"] for column in looked.get_columns("meta")} != set(META.c.keys()):
        return None
    return connection.execute(select(META.c.content).where(META.c.name == "version")).scalar()


Found = tuple[str, Mapping[str, Any]]


def newer(connection: Connection, since: int) -> list[Found]:
    """Return (table, columns) of the rows of all tables from `since` on, in order; those with no place come last."""
    return in_order(each for name in TABLES for each in rows_of(connection, name, since))


def rows_of(connection: Connection, name: str, since: int) -> list[Found]:
    """Return (table, columns) of the rows of one table from `since` on, and of those that no number puts in order."""
    seq = TABLES[name].c.seq
    query = select(TABLES[name]).where(or_(seq >= since, seq < 1, seq.is_(None)))
    return [(name, dict(columns)) for columns in connection.execute(query).mappings()]


def in_order(found: Iterable[Found]) -> list[Found]:
    """Return rows in the order of their numbers; those with no place come last."""

    def place(each: Found) -> tuple[float, str]:
        seq = each[1]["seq"]
        return (seq if has_place(seq) else math.inf), each[0]

    return sorted(found, key=place)


def has_place(seq: object) -> bool:
    """Tell whether a row's number puts it somewhere on the chain."""
    return type(seq) is int and seq >= 1
