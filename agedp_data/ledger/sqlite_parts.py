"""The tables of a ledger in SQLite, and the triggers that keep them append-only.

Triggers protect against mistakes (an UPDATE, a DELETE, an INSERT OR REPLACE), not against the owner of the file. Hash
chain, `verify` and the heads in published folders detect what an owner changes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sqlalchemy import Connection, create_engine

from agedp_data.ledger import schema
from agedp_data.ledger.oddities import Parts, compare_parts

_PARTS: Final = "SELECT type, name, coalesce(tbl_name, ''), coalesce(sql, '') FROM sqlite_master"
_OF_SQLITE: Final = "sqlite_stat"  # tables of ANALYZE, which are ignored


def create(connection: Connection) -> None:
    """Create tables, triggers and version in an empty SQLite database, inside the caller's transaction."""
    schema.create(connection)
    for trigger in _triggers():
        connection.exec_driver_sql(trigger)


def changed_parts(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return (part, difference) for every table, index, trigger and view that differs from what `create` makes."""
    return compare_parts(_expected_parts(), _parts(connection))


@lru_cache(maxsize=1)
def _expected_parts() -> Parts:
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            create(connection)
            return _parts(connection)
    finally:
        engine.dispose()


def _parts(connection: Connection) -> Parts:
    """Return the definitions of a database's parts, without regard to spaces and quotes.

    Tables are compared by columns and keys, because later versions may word CREATE TABLE differently.
    """
    listed = connection.exec_driver_sql(_PARTS).all()
    return {
        (kind, name): _table_definition(connection, name)
        if kind == "table"
        else "".join(f"{of} {sql}".replace('"', " ").split())
        for kind, name, of, sql in listed
        if not name.startswith(_OF_SQLITE)
    }


def _table_definition(connection: Connection, table: str) -> str:
    """Return the columns of a table (name, type, may be null, key) and which of them are unique together."""
    columns = connection.exec_driver_sql("SELECT * FROM pragma_table_xinfo(?)", (table,)).all()
    indices = connection.exec_driver_sql(
        'SELECT l.name, i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE l."unique" ORDER BY 1, 2',
        (table,),
    ).all()
    return repr(([tuple(row) for row in columns], [tuple(row) for row in indices]))


def _triggers() -> list[str]:
    """Return the statements that make SQLite refuse updates, deletions and rows with a wrong number."""
    newest = ", ".join(f'coalesce((SELECT max(seq) FROM "{name}"), 0)' for name in schema.TABLES)  # noqa: S608 - our own names
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    unchangeable = [
        f'CREATE TRIGGER "{name}_{verb.lower()}" BEFORE {verb} ON "{name}" {refuse}'
        for name in ("meta", *schema.TABLES)
        for verb in ("UPDATE", "DELETE")
    ]
    not_next = f"NEW.seq IS NOT 1 + max({newest})"
    consecutive = [
        f'CREATE TRIGGER "{name}_next" BEFORE INSERT ON "{name}" WHEN {not_next} {refuse}' for name in schema.TABLES
    ]
    same_release = " AND ".join(f"{key} = NEW.{key}" for key in ("population", "series", "day", "revision"))
    is_stored = f'EXISTS (SELECT 1 FROM "release" WHERE {same_release})'  # noqa: S608 - our own names
    unique_release = f'CREATE TRIGGER "release_once" BEFORE INSERT ON "release" WHEN {is_stored} {refuse}'
    same_key = "EXISTS (SELECT 1 FROM meta WHERE name = NEW.name)"
    unique_meta = f'CREATE TRIGGER "meta_once" BEFORE INSERT ON "meta" WHEN {same_key} {refuse}'
    return [*unchangeable, *consecutive, unique_release, unique_meta]
