"""The tables, made from the row classes, and the triggers that keep them append-only.

Only the part common to SQLite and PostgreSQL is used for the tables; the triggers are SQLite's. They guard
against slips (an UPDATE, a DELETE, an INSERT OR REPLACE), not against whoever owns the file: that is what the
hash chain, `verify` and the heads in published folders are for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
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
    create_engine,
    false,
    or_,
    select,
)
from sqlalchemy import inspect as inspector

from agedp_data.ledger import rows
from agedp_data.shown import shown

VERSION = "1"

Parts = Mapping[tuple[str, str], str]
"""By kind and name the tables, indices, triggers and views of a database, and the statement that makes each."""

_PARTS: Final = "SELECT type, name, coalesce(tbl_name, ''), coalesce(sql, '') FROM sqlite_master"
_OF_SQLITE: Final = "sqlite_stat"  # tables of ANALYZE, which say nothing

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
    """Create tables, triggers and version in an empty SQLite database, inside the caller's transaction."""
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(META.insert().values(name="version", content=VERSION))
    for trigger in _triggers():
        connection.exec_driver_sql(trigger)


def require_writable(connection: Connection) -> None:
    """Make SQLite take its write lock, which BEGIN IMMEDIATE leaves out for a read-only file."""
    connection.execute(META.delete().where(false()))


def is_empty(connection: Connection) -> bool:
    """Tell whether the database holds no table at all."""
    return not inspector(connection).get_table_names()


def version(connection: Connection) -> str | None:
    """Return the schema version that a database claims, None if it is no ledger."""
    looked = inspector(connection)
    if not {"meta", *TABLES} <= set(looked.get_table_names()):
        return None
    if {column["name"] for column in looked.get_columns("meta")} != set(META.c.keys()):
        return None
    return connection.execute(select(META.c.content).where(META.c.name == "version")).scalar()


def is_whole(connection: Connection) -> bool:
    """Tell whether SQLite finds its own file in order: pages, indices, constraints."""
    return connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]


def oddities(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return (what, how) of every table, index, trigger and view that is not as `create` made it."""
    made, found = _made(), _parts(connection)
    names = sorted(made.keys() | {key for key in found if not key[1].startswith(_OF_SQLITE)})
    return tuple(
        (f"{kind} {shown(name, 80)}", _how(made.get((kind, name)), found.get((kind, name))))
        for kind, name in names
        if made.get((kind, name)) != found.get((kind, name))
    )


def _how(made: str | None, found: str | None) -> str:
    if found is None:
        return "is missing"
    return "was changed" if made is not None else "is none of a ledger's"


@lru_cache(maxsize=1)
def _made() -> Parts:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            create(connection)
            return _parts(connection)
    finally:
        engine.dispose()


def _parts(connection: Connection) -> Parts:
    """Return what a database is made of; how a statement is spaced and quoted does not count.

    Tables are told by their columns and keys: whoever writes CREATE TABLE next year may word it otherwise.
    """
    listed = connection.exec_driver_sql(_PARTS).all()
    return {
        (kind, name): _form(connection, name) if kind == "table" else "".join(f"{of} {sql}".replace('"', " ").split())
        for kind, name, of, sql in listed
    }


def _form(connection: Connection, table: str) -> str:
    """Return the columns of a table (name, type, may be null, key) and which of them are unique together."""
    columns = connection.exec_driver_sql("SELECT * FROM pragma_table_xinfo(?)", (table,)).all()
    indices = connection.exec_driver_sql(
        'SELECT l.name, i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE l."unique" ORDER BY 1, 2',
        (table,),
    ).all()
    return repr(([tuple(each) for each in columns], [tuple(each) for each in indices]))


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


def _triggers() -> list[str]:
    """Return the statements that make SQLite refuse changes, deletions and rows out of turn."""
    newest = ", ".join(f'coalesce((SELECT max(seq) FROM "{name}"), 0)' for name in TABLES)  # noqa: S608 - our own names
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    kept = [
        f'CREATE TRIGGER "{name}_{verb.lower()}" BEFORE {verb} ON "{name}" {refuse}'
        for name in ("meta", *TABLES)
        for verb in ("UPDATE", "DELETE")
    ]
    out_of_turn = f"NEW.seq IS NOT 1 + max({newest})"
    in_turn = [f'CREATE TRIGGER "{name}_next" BEFORE INSERT ON "{name}" WHEN {out_of_turn} {refuse}' for name in TABLES]
    same = " AND ".join(f"{key} = NEW.{key}" for key in ("population", "series", "day", "revision"))
    known = f'EXISTS (SELECT 1 FROM "release" WHERE {same})'  # noqa: S608 - our own names
    once = f'CREATE TRIGGER "release_once" BEFORE INSERT ON "release" WHEN {known} {refuse}'
    same_name = "EXISTS (SELECT 1 FROM meta WHERE name = NEW.name)"
    meta = f'CREATE TRIGGER "meta_once" BEFORE INSERT ON "meta" WHEN {same_name} {refuse}'
    return [*kept, *in_turn, once, meta]
