"""Every edit behind the ledger's back is found: cell by cell, row by row, and with a chain made anew."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from agedp_data.errors import LedgerError
from tests.agedp_data.ledger.forging import TABLES, faults, raw

LENGTH = 7


def cells(book):
    """(table, seq, column, value) of every cell."""
    found = []
    with raw(book) as connection:
        connection.row_factory = sqlite3.Row
        for table in TABLES:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                found += [(table, row["seq"], column, row[column]) for column in row.keys()]  # noqa: SIM118
    return found


def edits(value):
    if isinstance(value, int):
        return [value + 1, value - 1, "x", 0.5]
    return [value + " ", "", "x" + value, value.encode(), "0", "[]", "{}", "null", "NaN", "[" * 5000]


def test_an_untouched_ledger_has_no_faults(full):
    assert faults(full) == ()
    assert len({seq for _, seq, _, _ in cells(full)}) == LENGTH
    assert faults(full) == ()  # triggers taken away and put back leave no trace


def test_every_edit_of_every_cell_is_found_at_its_row(full):
    ledger = full.open()
    bare_of_triggers = cells(full)
    original = full.path.read_bytes()
    tried = 0
    for table, seq, column, value in bare_of_triggers:
        for edited in edits(value):
            if edited == value or (column == "seq" and not isinstance(edited, int)):
                continue
            full.path.write_bytes(original)
            with raw(full) as connection:
                try:
                    connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE seq = ?', (edited, seq))
                except sqlite3.IntegrityError:
                    continue  # the database itself refuses a second row of that number
            found = ledger.verify()
            tried += 1
            assert found, (table, seq, column, edited)
            if column != "seq":
                assert found[0].seq == seq
                assert found[0].table == table
    assert tried > 700


def test_an_edited_row_stops_whoever_reads_it(full):
    with raw(full) as connection:
        connection.execute('UPDATE "release" SET "values" = \'[1,2]\' WHERE seq = 3')
    with full.open() as ledger:
        with pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
            ledger.rows()
        with pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
            full.add(ledger, 9)
        assert [fault.seq for fault in ledger.verify()] == [3, 3]


def test_every_row_taken_out_before_the_newest_is_found(full):
    original = full.path.read_bytes()
    for table, seq in sorted({(table, seq) for table, seq, _, _ in cells(full)}):
        full.path.write_bytes(original)
        with full.open() as ledger:
            head = ledger.head()
        with raw(full) as connection:
            connection.execute(f'DELETE FROM "{table}" WHERE seq = ?', (seq,))
        if seq < LENGTH:
            assert any(fault.seq == seq + 1 for fault in faults(full))
        else:  # a chain cut off at its end is a valid chain: a published head shows it
            with full.open() as ledger:
                assert ledger.verify() == ()
                assert not ledger.contains(head)


@pytest.mark.parametrize(("first", "second"), [(("release", 3), ("release", 4)), (("contract", 1), ("model", 2))])
def test_rows_that_changed_places_are_found(full, first, second):
    with raw(full) as connection:
        for (table, seq), other in ((first, -1), (second, first[1])):
            connection.execute(f'UPDATE "{table}" SET seq = ? WHERE seq = ?', (other, seq))
        connection.execute(f'UPDATE "{first[0]}" SET seq = ? WHERE seq = -1', (second[1],))
    assert {first[1], second[1]} <= {fault.seq for fault in faults(full)}


@pytest.mark.parametrize("seq", [-(2**63), -3, 0, 4, 5, 8, 9])
def test_a_row_put_in_is_found(full, seq):
    with raw(full) as connection:
        connection.execute(
            "INSERT INTO statement SELECT ?, at, population, claim, files, software, text,"
            " 'g' || substr(hash, 2) FROM statement WHERE seq = 6",
            (seq,),
        )
    assert seq in {fault.seq for fault in faults(full)}
    with full.open() as ledger, pytest.raises(LedgerError, match="was changed or damaged"):
        ledger.rows()


def test_a_row_put_in_before_the_first_is_found_by_who_reads_on(full):
    with full.open() as ledger:
        ledger.rows()
        with raw(full) as connection:
            connection.execute("UPDATE statement SET seq = -1 WHERE seq = 6")
        with pytest.raises(LedgerError, match=r"row -1 of the ledger .* it has no valid number"):
            ledger.rows()


def test_a_row_without_a_number_is_found_in_a_table_that_was_made_to_take_it(full):
    with raw(full) as connection:
        [made] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'model'").fetchone()
        connection.execute("ALTER TABLE model RENAME TO old")
        connection.execute(
            made.replace("seq INTEGER NOT NULL", "seq INTEGER").replace("PRIMARY KEY (seq)", "UNIQUE (seq)")
        )
        connection.execute("INSERT INTO model SELECT * FROM old")
        connection.execute("INSERT INTO model SELECT NULL, at, model, envelope, text, 'f' FROM old")
        connection.execute("DROP TABLE old")
    assert {(0, "model"), (0, "table model")} <= {(fault.seq, fault.table) for fault in faults(full)}
    with full.open() as ledger, pytest.raises(LedgerError, match="it has no valid number"):
        ledger.rows()


PARTS = {
    "trigger release_update is missing": ['DROP TRIGGER "release_update"'],
    "trigger meta_once was changed": [
        'DROP TRIGGER "meta_once"',
        'CREATE TRIGGER "meta_once" BEFORE INSERT ON "meta" WHEN 0 BEGIN SELECT RAISE(ABORT, \'no\'); END',
    ],
    "trigger statement_next was changed": [
        'DROP TRIGGER "statement_next"',
        'CREATE TRIGGER "statement_next" AFTER INSERT ON "statement" BEGIN SELECT 1; END',
    ],
    "trigger more is none of a ledger's": ['CREATE TRIGGER more AFTER INSERT ON "model" BEGIN SELECT 1; END'],
    "table more is none of a ledger's": ["CREATE TABLE more (x)"],
    "table release was changed": ["ALTER TABLE release ADD COLUMN more TEXT"],
    "view more is none of a ledger's": ["CREATE VIEW more AS SELECT 1"],
    "index more is none of a ledger's": ["CREATE INDEX more ON model (at)"],
}


@pytest.mark.parametrize("said", PARTS)
def test_whatever_is_missing_changed_or_added_beside_the_rows_is_named_and_stops_writing(full, said):
    with closing(sqlite3.connect(full.path, isolation_level=None)) as connection:
        for statement in PARTS[said]:
            connection.execute(statement)
    assert [f"{fault.table} {fault.problem}" for fault in faults(full)] == [said]
    with full.open() as ledger:
        assert len(ledger.rows()) == 3  # what was drawn can be read
        row = full.planned(9)
        with pytest.raises(LedgerError, match=f"its {said}, so nothing is written"):
            ledger.release(row.population, row.series, row.day, draw=full.never, admit=lambda _: row)
        with pytest.raises(LedgerError, match="export"):
            ledger.record(full.claim("more"), population=full.homes, files={}, software="1", at=full.day(9))


def test_statistics_of_sqlite_itself_are_nothing_foreign(full):
    with raw(full, triggers=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("VACUUM")
    assert faults(full) == ()


@pytest.mark.parametrize("name", ["release_update", "a_trigger"])
def test_a_ledger_whose_spelling_of_its_parts_alone_differs_is_whole(full, name):
    with closing(sqlite3.connect(full.path, isolation_level=None)) as connection:
        [made] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'release_update'").fetchone()
        connection.execute("DROP TRIGGER release_update")
        connection.execute(
            made.replace('"release_update"', name).replace(" ", "  ").replace('ON  "release"', "ON\trelease")
        )
    assert (faults(full) == ()) == (name == "release_update")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_cannot_be_read_is_named_with_what_helps(full, table):
    with raw(full) as connection:
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN at TO on_day')
    said = [f"{fault.table} {fault.problem}" for fault in faults(full) if fault.table == f"table {table}"]
    assert said[0].startswith(f"table {table} cannot be read")
    assert "put back a good copy" in said[0]
    assert said[1] == f"table {table} was changed"
    with full.open() as ledger, pytest.raises(LedgerError, match="put back a good copy") as caught:
        ledger.rows()
    assert "ledger verify" not in str(caught.value)


def test_a_meta_row_changed_or_put_in_is_found_or_refused(full):
    with raw(full) as connection:
        connection.execute("INSERT INTO meta VALUES ('other', 'x')")
    assert [(fault.seq, fault.table) for fault in faults(full)] == [(0, "table meta")]
    with raw(full) as connection:
        connection.execute("UPDATE meta SET content = '99' WHERE name = 'version'")
    with pytest.raises(LedgerError, match="schema version 99"):
        full.open()


@pytest.mark.parametrize("table", ["meta", *TABLES])
@pytest.mark.parametrize("verb", ["UPDATE", "DELETE", "REPLACE"])
def test_the_tables_are_append_only(full, table, verb):
    column = "name" if table == "meta" else "at"
    statement = {
        "UPDATE": f'UPDATE "{table}" SET {column} = {column}',
        "DELETE": f'DELETE FROM "{table}"',
        "REPLACE": f'INSERT OR REPLACE INTO "{table}" SELECT * FROM "{table}"',
    }[verb]
    with raw(full, triggers=True) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)


def test_a_day_cannot_be_put_in_twice_nor_out_of_turn(full):
    copy = 'INSERT OR REPLACE INTO "release" SELECT ? AS seq, at, {} FROM "release" WHERE seq = 3'
    with raw(full, triggers=True) as connection:
        names = [row[1] for row in connection.execute('PRAGMA table_info("release")')][2:]
        for seq in (8, 9):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(copy.format(", ".join(f'"{name}"' for name in names)), (seq,))
