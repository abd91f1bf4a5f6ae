"""Every edit behind the back of a ledger on PostgreSQL is found; slips are refused by the database itself."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import Text

from agedp_data.errors import LedgerError
from agedp_data.ledger.backends import ledger_tables
from tests.agedp_data.ledger.behind import faults, raw, without_triggers
from tests.agedp_data.ledger.conftest import Book
from tests.postgresql import PostgreSQL

TABLES = ("contract", "model", "release", "statement")
PARTS = {
    "trigger release_kept is missing": ["DROP TRIGGER release_kept ON release"],
    "trigger model_kept was changed": ["ALTER TABLE model DISABLE TRIGGER model_kept"],
    "trigger statement_next was changed": [
        "DROP TRIGGER statement_next ON statement",
        "CREATE TRIGGER statement_next AFTER INSERT ON statement FOR EACH ROW EXECUTE FUNCTION ledger_next()",
        "ALTER TABLE statement ENABLE ALWAYS TRIGGER statement_next",
    ],
    "trigger more is none of a ledger's": [
        "CREATE TRIGGER more BEFORE INSERT ON model FOR EACH ROW EXECUTE FUNCTION ledger_next()"
    ],
    "table release was changed": ["ALTER TABLE release ADD COLUMN more TEXT"],
    "table contract was changed": ["ALTER TABLE contract ALTER COLUMN promise DROP NOT NULL"],
    "table statement was changed": ["ALTER TABLE statement DROP CONSTRAINT statement_hash_key"],
    "table meta was changed": ["ALTER TABLE meta ENABLE ROW LEVEL SECURITY"],
    "table model was changed": ["ALTER TABLE model SET UNLOGGED"],
    "table more is none of a ledger's": ["CREATE TABLE more (x int)"],
    "view more is none of a ledger's": ["CREATE VIEW more AS SELECT 1"],
    "sequence more is none of a ledger's": ["CREATE SEQUENCE more"],
    "index more is none of a ledger's": ["CREATE INDEX more ON model (at)"],
    "rule more is none of a ledger's": ["CREATE RULE more AS ON INSERT TO model DO INSTEAD NOTHING"],
}


@pytest.fixture
def place(new_schema: str) -> str:
    return new_schema


def test_an_untouched_ledger_has_no_faults(full: Book, postgresql: PostgreSQL) -> None:
    raw(postgresql, full, "ANALYZE")
    assert faults(full) == []


@pytest.mark.parametrize(
    "said", [said if i % 3 == 1 else pytest.param(said, marks=pytest.mark.long) for i, said in enumerate(PARTS)]
)
def test_whatever_is_missing_changed_or_added_beside_the_rows_is_named_and_stops_writing(
    full: Book, postgresql: PostgreSQL, said: str
) -> None:
    raw(postgresql, full, *PARTS[said], triggers=True)
    assert [fault.removeprefix("0 ") for fault in faults(full)] == [said]
    with full.open() as ledger:
        assert len(ledger.rows()) == 3  # what was drawn can be read
        row = full.planned(9)
        with pytest.raises(LedgerError, match=f"its {said}, so nothing is written"):
            ledger.release(row.population, row.series, row.day, draw=full.never, admit=lambda _: row)


def test_a_function_with_another_source_and_rows_of_another_table_are_found(full: Book, postgresql: PostgreSQL) -> None:
    hollow = "CREATE OR REPLACE FUNCTION ledger_kept() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$"
    raw(postgresql, full, hollow, "CREATE TABLE child () INHERITS (model)", triggers=True)
    assert faults(full) == [
        "0 table child is none of a ledger's",
        "0 table model was changed",
        *(f"0 trigger {name}_kept was changed" for name in sorted(("meta", *TABLES))),
    ]


@pytest.mark.parametrize("table", ["meta", "release"])
@pytest.mark.parametrize("statement", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0}"])
def test_the_tables_are_append_only_even_for_a_superuser(
    full: Book, postgresql: PostgreSQL, table: str, statement: str
) -> None:
    said = statement.format(table, "name" if table == "meta" else "at")
    for before in ((), ("SET session_replication_role = replica",)):
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            raw(postgresql, full, *before, said, triggers=True)
    assert faults(full) == []


def test_a_row_cannot_be_put_in_out_of_turn_nor_a_day_twice(full: Book, postgresql: PostgreSQL) -> None:
    columns = ", ".join(
        f'"{each.name}"' for each in ledger_tables.TABLES["release"].c if each.name not in ("seq", "hash")
    )
    for seq in (3, 9):
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            raw(
                postgresql,
                full,
                f"INSERT INTO release (seq, {columns}, hash) SELECT {seq}, {columns}, 'f' FROM release WHERE seq = 3",
                triggers=True,
            )
    with pytest.raises(psycopg.errors.UniqueViolation):
        raw(
            postgresql,
            full,
            f"INSERT INTO release (seq, {columns}, hash) SELECT 8, {columns}, 'f' FROM release WHERE seq = 3",
            triggers=True,
        )


def test_every_edit_of_every_column_is_found_at_its_row(full: Book, postgresql: PostgreSQL) -> None:
    tried = 0
    with full.open() as ledger, without_triggers(postgresql, full) as connection:
        for table, seq in (("contract", 1), ("model", 2), ("release", 4), ("statement", 6)):
            for column in ledger_tables.TABLES[table].c:
                edited = f"\"{column.name}\" || ' '" if isinstance(column.type, Text) else f'"{column.name}" + 100'
                [kept] = connection.execute(f'SELECT "{column.name}" FROM {table} WHERE seq = {seq}').fetchone()
                connection.execute(f'UPDATE {table} SET "{column.name}" = {edited} WHERE seq = {seq}')
                now = seq + 100 if column.name == "seq" else seq
                assert now in {fault.seq for fault in ledger.verify()}, (table, column.name)
                connection.execute(f'UPDATE {table} SET "{column.name}" = %s WHERE seq = {now}', (kept,))
                tried += 1
        assert {fault.seq for fault in ledger.verify()} == {0}  # the triggers
    assert tried == sum(len(table.c) for table in ledger_tables.TABLES.values())


@pytest.mark.parametrize("table", TABLES[2:3])
def test_a_table_that_cannot_be_read_is_named_with_what_helps(full: Book, postgresql: PostgreSQL, table: str) -> None:
    raw(postgresql, full, f"ALTER TABLE {table} RENAME COLUMN at TO on_day")
    said = [fault for fault in faults(full) if fault.startswith(f"0 table {table} ")]
    assert said[0].startswith(f"0 table {table} cannot be read: its tables are not those of a ledger")
    assert said[1] == f"0 table {table} was changed"
    with full.open() as ledger, pytest.raises(LedgerError, match="put back a good copy"):
        ledger.rows()


def test_a_row_taken_out_stops_whoever_reads_on(full: Book, postgresql: PostgreSQL) -> None:
    with full.open() as ledger:
        ledger.rows()
        raw(postgresql, full, "DELETE FROM statement WHERE seq = 7")
        with pytest.raises(LedgerError, match="replaced or shortened"):
            ledger.rows()
    raw(postgresql, full, "DELETE FROM release WHERE seq = 4")
    assert any(fault.startswith("5 release row 4 to 4 missing") for fault in faults(full))
