"""What a SQLite file must be made of to be a ledger: the tables, and triggers that keep them append-only.

Triggers guard against slips (an UPDATE, a DELETE, an INSERT OR REPLACE), not against whoever owns the file: that is
what the hash chain, `verify` and the heads in published folders are for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sqlalchemy import Connection, create_engine

from agedp_data.ledger import schema
from agedp_data.ledger.oddities import Parts, compared

_PARTS: Final = "SELECT type, name, coalesce(tbl_name, ''), coalesce(sql, '') FROM sqlite_master"
_OF_SQLITE: Final = "sqlite_stat"  # tables of ANALYZE, which say nothing


def create(connection: Connection) -> None:
    """Create tables, triggers and version in an empty SQLite database, inside the caller's transaction."""
    schema.create(connection)
    for trigger in _triggers():
        connection.exec_driver_sql(trigger)


def oddities(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return (what, how) of every table, index, trigger and view that is not as `create` made it."""
    return compared(_made(), _parts(connection))


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
        if not name.startswith(_OF_SQLITE)
    }


def _form(connection: Connection, table: str) -> str:
    """Return the columns of a table (name, type, may be null, key) and which of them are unique together."""
    columns = connection.exec_driver_sql("SELECT * FROM pragma_table_xinfo(?)", (table,)).all()
    indices = connection.exec_driver_sql(
        'SELECT l.name, i.name FROM pragma_index_list(?) l, pragma_index_info(l.name) i WHERE l."unique" ORDER BY 1, 2',
        (table,),
    ).all()
    return repr(([tuple(each) for each in columns], [tuple(each) for each in indices]))


def _triggers() -> list[str]:
    """Return the statements that make SQLite refuse changes, deletions and rows out of turn."""
    newest = ", ".join(f'coalesce((SELECT max(seq) FROM "{name}"), 0)' for name in schema.TABLES)  # noqa: S608 - our own names
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    kept = [
        f'CREATE TRIGGER "{name}_{verb.lower()}" BEFORE {verb} ON "{name}" {refuse}'
        for name in ("meta", *schema.TABLES)
        for verb in ("UPDATE", "DELETE")
    ]
    out_of_turn = f"NEW.seq IS NOT 1 + max({newest})"
    in_turn = [
        f'CREATE TRIGGER "{name}_next" BEFORE INSERT ON "{name}" WHEN {out_of_turn} {refuse}' for name in schema.TABLES
    ]
    same = " AND ".join(f"{key} = NEW.{key}" for key in ("population", "series", "day", "revision"))
    known = f'EXISTS (SELECT 1 FROM "release" WHERE {same})'  # noqa: S608 - our own names
    once = f'CREATE TRIGGER "release_once" BEFORE INSERT ON "release" WHEN {known} {refuse}'
    same_name = "EXISTS (SELECT 1 FROM meta WHERE name = NEW.name)"
    meta = f'CREATE TRIGGER "meta_once" BEFORE INSERT ON "meta" WHEN {same_name} {refuse}'
    return [*kept, *in_turn, once, meta]
