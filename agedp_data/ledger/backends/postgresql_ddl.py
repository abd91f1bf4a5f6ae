"""The tables of a ledger in PostgreSQL, and the triggers that keep them append-only.

Triggers protect against mistakes, not against the owner of the tables. They fire ALWAYS, also for changes that a
replication applies. Each part is compared with the server's catalogue: columns and keys by name, functions by their
source. A table that a crash empties (UNLOGGED), that shows only some of its rows (row security, rules) or rows of
further tables (inheritance) is refused as well. Objects of an extension are ignored.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, Connection, PrimaryKeyConstraint, Table, Text, UniqueConstraint

from agedp_data.ledger.backends import ledger_tables
from agedp_data.ledger.backends.ledger_tables import Parts, compare_parts

_FUNCTIONS: Final = {
    "kept": """CREATE FUNCTION ledger_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
END $$""",
    "next": """CREATE FUNCTION ledger_next() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    place text := quote_ident(TG_TABLE_SCHEMA);
    newest bigint;
BEGIN
    EXECUTE 'SELECT greatest('
        || 'coalesce((SELECT max(seq) FROM ' || place || '.contract), 0), '
        || 'coalesce((SELECT max(seq) FROM ' || place || '.model), 0), '
        || 'coalesce((SELECT max(seq) FROM ' || place || '.release), 0), '
        || 'coalesce((SELECT max(seq) FROM ' || place || '.statement), 0))' INTO newest;
    IF NEW.seq IS DISTINCT FROM newest + 1 THEN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$""",
}
_ROW, _BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 4, 8, 16, 32
"""Bits of pg_trigger.tgtype."""

_TABLES: Final = """
    WITH own AS (
        SELECT * FROM pg_class AS c WHERE relnamespace = quote_ident(current_schema())::regnamespace
        AND relkind IN ('r', 'v', 'm', 'p', 'f', 'S')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')
    ), fields AS (
        SELECT attrelid, string_agg(
            attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN '' ELSE ' null' END
            || CASE WHEN atthasdef OR attidentity <> '' THEN ' default' ELSE '' END, ', ' ORDER BY attnum) AS said
        FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
    ), keys AS (
        SELECT conrelid, CASE WHEN contype IN ('p', 'u') THEN contype::text ELSE conname END || ' '
            || (SELECT coalesce(string_agg(attname, ', ' ORDER BY attname), '') FROM pg_attribute
                WHERE attrelid = conrelid AND attnum = ANY (conkey)) AS said
        FROM pg_constraint WHERE contype <> 'n'
    )
    SELECT relname, relkind::text || relpersistence::text, relrowsecurity
        OR EXISTS (SELECT FROM pg_inherits WHERE own.oid IN (inhrelid, inhparent)),
        (SELECT said FROM fields WHERE attrelid = own.oid),
        (SELECT string_agg(said, '; ' ORDER BY said COLLATE "C") FROM keys WHERE conrelid = own.oid)
    FROM own"""
_INDICES_AND_RULES: Final = """
    SELECT 'index', relname::text, '' FROM pg_class AS c
    WHERE relkind IN ('i', 'I') AND relnamespace = quote_ident(current_schema())::regnamespace
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid)
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')
    UNION ALL
    SELECT 'rule', rulename::text, relname::text FROM pg_rewrite JOIN pg_class AS c ON c.oid = ev_class
    WHERE relkind IN ('r', 'p') AND relnamespace = quote_ident(current_schema())::regnamespace"""
_TRIGGERS: Final = """
    SELECT tgname, relname, tgtype, tgenabled::text, tgqual IS NULL AND tgnargs = 0 AND proconfig IS NULL, prosrc
    FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid JOIN pg_proc AS p ON p.oid = tgfoid
    WHERE NOT tgisinternal AND relnamespace = quote_ident(current_schema())::regnamespace"""
_KINDS: Final = {"v": "view", "m": "view", "S": "sequence"}


def create(connection: Connection) -> None:
    """Create tables, triggers and version in an empty schema, inside the caller's transaction."""
    ledger_tables.create(connection)
    for statement in (*_FUNCTIONS.values(), *_triggers()):
        connection.exec_driver_sql(statement)


def remove(connection: Connection) -> None:
    """Drop what `create` creates, inside the caller's transaction."""
    ledger_tables.METADATA.drop_all(connection, checkfirst=False)
    connection.exec_driver_sql("DROP FUNCTION ledger_kept(), ledger_next()")


def _triggers() -> list[str]:
    """Return the statements that make PostgreSQL refuse updates, deletions and rows with a wrong number."""
    statements = []
    for name in ("meta", *ledger_tables.TABLES):
        statements += [
            f"CREATE TRIGGER {name}_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} EXECUTE FUNCTION ledger_kept()",
            f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_kept",
        ]
    for name in ledger_tables.TABLES:
        statements += [
            f"CREATE TRIGGER {name}_next BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION ledger_next()",
            f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_next",
        ]
    return statements


def changed_parts(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return (part, difference) for every table, index, trigger and rule that differs from what `create` makes."""
    return compare_parts(_expected_parts(), _stored_parts(connection))


def _expected_parts() -> Parts:
    triggers = {
        f"{name}_kept": (name, _BEFORE | _DELETE | _UPDATE | _TRUNCATE) for name in ("meta", *ledger_tables.TABLES)
    }
    triggers |= {f"{name}_next": (name, _ROW | _BEFORE | _INSERT) for name in ledger_tables.TABLES}
    return {
        **{("table", name): _table_definition(table) for name, table in ledger_tables.METADATA.tables.items()},
        **{
            ("trigger", name): repr((table, kind, "A", True, _FUNCTIONS[name.rpartition("_")[2]].split("$$")[1]))
            for name, (table, kind) in triggers.items()
        },
    }


def _table_definition(table: Table) -> str:
    columns = ", ".join(f"{item.name} {_column_type(item)}" for item in table.columns)
    keys = [
        f"{'p' if isinstance(item, PrimaryKeyConstraint) else 'u'} {', '.join(sorted(item.columns.keys()))}"
        for item in table.constraints
        if isinstance(item, PrimaryKeyConstraint | UniqueConstraint)
    ]
    return repr(("rp", False, columns, "; ".join(sorted(keys))))


def _column_type(column: Column[Any]) -> str:
    return "text" if isinstance(column.type, Text) else "bigint"


def _stored_parts(connection: Connection) -> Parts:
    parts: dict[tuple[str, str], str] = {}
    for name, kind, *definition in connection.exec_driver_sql(_TABLES):
        parts[_KINDS.get(kind[0], "table"), name] = repr((kind, *definition))
    for name, *definition in connection.exec_driver_sql(_TRIGGERS):
        parts["trigger", name] = repr(tuple(definition))
    for kind, name, table in connection.exec_driver_sql(_INDICES_AND_RULES):
        parts[kind, name] = table
    return parts
