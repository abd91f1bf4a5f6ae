"""Every edit behind the ledger's back is found: cell by cell, row by row, and with a chain made anew."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest

from agedp_data.errors import LedgerError

TABLES = ("contract", "model", "release", "statement")
LENGTH = 7


def raw(book, *, triggers=False):
    connection = sqlite3.connect(book.path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    if not triggers:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
    return closing(connection)


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


def faults(book):
    with book.open() as ledger:
        return ledger.verify()


def test_an_untouched_ledger_has_no_faults(full):
    assert faults(full) == ()
    assert len({seq for _, seq, _, _ in cells(full)}) == LENGTH
    assert faults(full) == ()  # dropping the triggers is no change of what was said


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


@pytest.mark.parametrize("seq", [0, 4, 5, 8, 9])
def test_a_row_put_in_is_found(full, seq):
    with raw(full) as connection:
        connection.execute(
            "INSERT INTO statement SELECT ?, at, population, claim, files, software, text,"
            " 'f' || substr(hash, 2) FROM statement WHERE seq = 6",
            (seq,),
        )
    assert seq in {fault.seq for fault in faults(full)}


def test_a_meta_row_changed_or_put_in_is_found_or_refused(full):
    with raw(full) as connection:
        connection.execute("INSERT INTO meta VALUES ('other', 'x')")
    assert [(fault.seq, fault.table) for fault in faults(full)] == [(0, "meta")]
    with raw(full) as connection:
        connection.execute("UPDATE meta SET content = '99' WHERE name = 'version'")
    with pytest.raises(LedgerError, match="schema version 99"):
        full.open()


def rechain(book, seq, column, value):
    """Edit one cell and make texts and hashes anew from there, as a careful forger would."""
    with raw(book) as connection:
        connection.row_factory = sqlite3.Row
        rows = sorted(
            ((table, dict(row)) for table in TABLES for row in connection.execute(f'SELECT * FROM "{table}"')),
            key=lambda each: each[1]["seq"],
        )
        previous = "0" * 64
        for table, row in rows:
            if row["seq"] == seq:
                row["text"] = json.dumps(
                    json.loads(row["text"]) | {column: value}, sort_keys=True, separators=(",", ":")
                )
                row[column] = value if isinstance(value, (str, int)) else json.dumps(value)
            row["hash"] = hashlib.sha256((previous + row["text"]).encode()).hexdigest()
            previous = row["hash"]
            names = ", ".join(f'"{name}" = ?' for name in row)
            connection.execute(f'UPDATE "{table}" SET {names} WHERE seq = {row["seq"]}', tuple(row.values()))


def test_the_forger_of_these_tests_knows_how_to_chain(full):
    rechain(full, 7, "software", "2")
    assert faults(full) == ()


@pytest.mark.parametrize(
    ("seq", "column", "value", "said"),
    [
        (3, "loss", 749_999_999, "below sensitivity"),
        (3, "scale", "3.9999999", "below sensitivity"),
        (3, "sensitivity", 4, "below sensitivity"),
        (3, "values", [1], "1 values"),
        (3, "state", "skipped", "skipped day with values"),
        (3, "population", "elsewhere", "not the one in force"),
        (3, "contract", "f" * 64, "not the one in force"),
        (4, "model", "f" * 64, "model it names"),
        (4, "published_on", "2025-01-01", "before 2025-01-08"),
        (4, "day", "2025-1-2", "day is not"),
        (2, "envelope", "{}", "not the hash of its public part"),
        (1, "promise", "[ ]", "not canonical"),
        (6, "at", "yesterday", "at is not"),
    ],
)
def test_a_forged_chain_is_found_where_its_meaning_is_impossible(full, seq, column, value, said):
    rechain(full, seq, column, value)
    assert any(fault.seq == seq and said in fault.what for fault in faults(full)), faults(full)


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
