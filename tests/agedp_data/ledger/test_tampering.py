"""Every edit behind the ledger's back is found, in a file and on a server; slips are refused by the database itself."""

from __future__ import annotations

import random
import sqlite3
from itertools import product

import psycopg
import pytest

from agedp_data.errors import LedgerError
from tests.agedp_data.ledger.behind import TABLES, faults, raw

EVERYWHERE = True
LONG_ON_A_SERVER = {
    "test_an_edited_row_stops_whoever_reads_it", "test_every_row_taken_out_before_the_newest_is_found",
    "test_rows_that_changed_places_are_found", "test_a_row_put_in_is_found",
    "test_a_row_put_in_before_the_first_is_found_by_who_reads_on",
    "test_a_table_that_cannot_be_read_is_named_with_what_helps",
}  # fmt: skip
"""What reads the rows is the same code for both kinds of database."""
LENGTH = 7
REFUSED_BY_THE_DATABASE = (sqlite3.Error, psycopg.Error)
in_a_file = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
on_a_server = pytest.mark.parametrize("place", ["postgresql"], indirect=True)


def rows(behind):
    """(seq, table) of every row."""
    return sorted((seq, table) for table in TABLES for (seq,) in behind(f'SELECT seq FROM "{table}"'))


def lines(book):
    return [f"{fault.seq} {fault.table} {fault.problem}" for fault in faults(book)]


def test_an_untouched_ledger_has_no_faults(full):
    with raw(full) as behind:
        assert [seq for seq, _ in rows(behind)] == list(range(1, LENGTH + 1))
    with raw(full, triggers=True) as behind:  # the database's own statistics are nothing foreign
        behind("ANALYZE")
        behind("VACUUM")
    assert faults(full) == ()


def edits(value):
    if isinstance(value, int):
        return [value + 1, value - 1, value + 100, "x", 0.5]
    return [value + " ", "", "x" + value, value.encode(), "0", "[]", "{}", "null", "NaN", "[" * 5000]


def check_edits(book, chosen, edits_of):
    """Edit cells of the chosen rows one at a time; what the database takes is found at its row."""
    missed, tried = [], 0
    with book.open() as ledger, raw(book) as behind:
        for seq, table in chosen(rows(behind)):
            for column, value in behind.row(table, seq).items():
                for edited in edits_of(value):
                    if edited == value or (column == "seq" and not isinstance(edited, int)):
                        continue
                    try:
                        behind(f'UPDATE "{table}" SET "{column}" = ? WHERE seq = ?', edited, seq)
                    except REFUSED_BY_THE_DATABASE:
                        continue
                    now = edited if column == "seq" else seq
                    if behind.row(table, now)[column] == value:
                        continue  # the server rounds 0.5 to the 0 that it holds
                    tried += 1
                    first = next((fault for fault in ledger.verify() if fault.seq), None)  # 0: the triggers
                    if first is None or (column != "seq" and (first.seq, first.table) != (seq, table)):
                        missed.append((table, seq, column, edited))
                    behind(f'UPDATE "{table}" SET "{column}" = ? WHERE seq = ?', value, now)
    assert missed == []
    assert faults(book) == ()
    return tried


def test_an_edit_of_any_column_is_found_at_its_row(full):
    choice = random.Random(1)  # noqa: S311 - a sample
    assert (
        check_edits(full, lambda listed: listed[:1] + listed[1:4:2] + listed[6:], lambda v: [choice.choice(edits(v))])
        > 25
    )


@pytest.mark.long
def test_every_edit_of_every_cell_is_found_at_its_row(full):
    assert check_edits(full, list, edits) > (700 if full.server is None else 500)


def test_an_edited_row_stops_whoever_reads_it(full):
    with raw(full) as behind:
        behind('UPDATE "release" SET "values" = \'[1,2]\' WHERE seq = 3')
    with full.open() as ledger:
        with pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
            ledger.rows()
        with pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
            full.add(ledger, 9)
        assert [fault.seq for fault in ledger.verify()] == [3, 3]


def test_every_row_taken_out_before_the_newest_is_found(full):
    with full.open() as ledger, raw(full) as behind:
        head = ledger.head()
        for seq, table in rows(behind):
            row = behind.row(table, seq)
            behind(f'DELETE FROM "{table}" WHERE seq = ?', seq)
            found = {fault.seq for fault in full.open().verify()}
            assert found == {0} if seq == LENGTH else {0, seq + 1} <= found
            if seq == LENGTH:  # a chain cut off at its end is a valid chain: a published head shows it
                assert not full.open().contains(head)
            behind(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', *row.values())
    assert faults(full) == ()


def test_a_row_taken_out_stops_whoever_reads_on(full):
    with full.open() as ledger:
        ledger.rows()
        with raw(full) as behind:
            behind("DELETE FROM statement WHERE seq = 7")
        with pytest.raises(LedgerError, match="replaced or shortened"):
            ledger.rows()


@pytest.mark.parametrize(("first", "second"), [(("release", 3), ("release", 4)), (("contract", 1), ("model", 2))])
def test_rows_that_changed_places_are_found(full, first, second):
    with raw(full) as behind:
        for (table, seq), number in ((first, -1), (second, first[1]), ((first[0], -1), second[1])):
            behind(f'UPDATE "{table}" SET seq = ? WHERE seq = ?', number, seq)
    assert {first[1], second[1]} <= {fault.seq for fault in faults(full)}


def test_a_row_put_in_is_found(full):
    for seq in (-(2**63), -3, 0, 4, 5, 8, 9):
        with raw(full) as behind:
            row = behind.row("statement", 6)
            row |= {"seq": seq, "hash": "g" + row["hash"][1:]}  # no hash of another row
            behind(f"INSERT INTO statement VALUES ({', '.join('?' * len(row))})", *row.values())
        assert seq in {fault.seq for fault in faults(full)}
        with full.open() as ledger, pytest.raises(LedgerError, match="was changed or damaged"):
            ledger.rows()
        with raw(full) as behind:
            behind("DELETE FROM statement WHERE seq = ?", seq)
    assert faults(full) == ()


def test_a_row_put_in_before_the_first_is_found_by_who_reads_on(full):
    with full.open() as ledger:
        ledger.rows()
        with raw(full) as behind:
            behind("UPDATE statement SET seq = -1 WHERE seq = 6")
        with pytest.raises(LedgerError, match=r"row -1 of the ledger .* it has no valid number"):
            ledger.rows()


@in_a_file
def test_a_row_without_a_number_is_found_in_a_table_that_was_made_to_take_it(full):
    with raw(full) as behind:
        [(made,)] = behind("SELECT sql FROM sqlite_master WHERE name = 'model'")
        behind("ALTER TABLE model RENAME TO old")
        behind(made.replace("seq INTEGER NOT NULL", "seq INTEGER").replace("PRIMARY KEY (seq)", "UNIQUE (seq)"))
        behind("INSERT INTO model SELECT * FROM old")
        behind("INSERT INTO model SELECT NULL, at, model, envelope, text, 'f' FROM old")
        behind("DROP TABLE old")
    assert {(0, "model"), (0, "table model")} <= {(fault.seq, fault.table) for fault in faults(full)}
    with full.open() as ledger, pytest.raises(LedgerError, match="it has no valid number"):
        ledger.rows()


HOLLOW = "CREATE TRIGGER {0} AFTER INSERT ON {1} BEGIN SELECT 1; END"
NEXT = "CREATE TRIGGER {0} {1} INSERT ON {2} FOR EACH ROW EXECUTE FUNCTION ledger_next()"
EVERY_PART = {
    "table more is none of a ledger's": ["CREATE TABLE more (x int)"],
    "table release was changed": ["ALTER TABLE release ADD COLUMN more TEXT"],
    "view more is none of a ledger's": ["CREATE VIEW more AS SELECT 1"],
    "index more is none of a ledger's": ["CREATE INDEX more ON model (at)"],
}
PARTS = {
    "sqlite": EVERY_PART | {
        "trigger release_update is missing": ["DROP TRIGGER release_update"],
        "trigger meta_once was changed": [
            "DROP TRIGGER meta_once",
            "CREATE TRIGGER meta_once BEFORE INSERT ON meta WHEN 0 BEGIN SELECT RAISE(ABORT, 'no'); END",
        ],
        "trigger statement_next was changed": [
            "DROP TRIGGER statement_next", HOLLOW.format("statement_next", "statement"),
        ],
        "trigger more is none of a ledger's": [HOLLOW.format("more", "model")],
    },
    "postgresql": EVERY_PART | {
        "trigger release_kept is missing": ["DROP TRIGGER release_kept ON release"],
        "trigger model_kept was changed": ["ALTER TABLE model DISABLE TRIGGER model_kept"],
        "trigger statement_next was changed": [
            "DROP TRIGGER statement_next ON statement", NEXT.format("statement_next", "AFTER", "statement"),
            "ALTER TABLE statement ENABLE ALWAYS TRIGGER statement_next",
        ],
        "trigger more is none of a ledger's": [NEXT.format("more", "BEFORE", "model")],
        "table contract was changed": ["ALTER TABLE contract ALTER COLUMN promise DROP NOT NULL"],
        "table statement was changed": ["ALTER TABLE statement DROP CONSTRAINT statement_hash_key"],
        "table meta was changed": ["ALTER TABLE meta ENABLE ROW LEVEL SECURITY"],
        "table model was changed": ["ALTER TABLE model SET UNLOGGED"],
        "sequence more is none of a ledger's": ["CREATE SEQUENCE more"],
        "rule more is none of a ledger's": ["CREATE RULE more AS ON INSERT TO model DO INSTEAD NOTHING"],
    },
}  # fmt: skip
IN_THE_LONG_RUN = [part for number, part in enumerate(PARTS["postgresql"]) if number % 3 != 1]


@pytest.mark.parametrize(
    ("place", "part"),
    [
        pytest.param(kind, part, marks=[pytest.mark.long] * (kind == "postgresql" and part in IN_THE_LONG_RUN))
        for kind, parts in PARTS.items()
        for part in parts
    ],
    indirect=["place"],
)
def test_a_part_that_is_missing_changed_or_added_stops_writing(full, part):
    with raw(full, triggers=True) as behind:
        for statement in PARTS["sqlite" if full.server is None else "postgresql"][part]:
            behind(statement)
    assert lines(full) == [f"0 {part}"]
    with full.open() as ledger:
        assert len(ledger.rows()) == 3  # what was drawn can be read
        with pytest.raises(LedgerError, match=f"its {part}, so nothing is written"):
            full.release(ledger, 9, full.never)
        with pytest.raises(LedgerError, match="export"):
            ledger.record(full.claim("more"), population=full.homes, files={}, software="1", at=full.day(9))


@on_a_server
def test_a_function_with_another_source_and_rows_of_another_table_are_found(full):
    with raw(full, triggers=True) as behind:
        behind("CREATE OR REPLACE FUNCTION ledger_kept() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$")
        behind("CREATE TABLE child () INHERITS (model)")
    assert lines(full) == [
        "0 table child is none of a ledger's",
        "0 table model was changed",
        *(f"0 trigger {name}_kept was changed" for name in sorted(("meta", *TABLES))),
    ]


@in_a_file
@pytest.mark.parametrize("name", ["release_update", "a_trigger"])
def test_a_ledger_whose_spelling_of_its_parts_alone_differs_is_whole(full, name):
    with raw(full, triggers=True) as behind:
        [(made,)] = behind("SELECT sql FROM sqlite_master WHERE name = 'release_update'")
        behind("DROP TRIGGER release_update")
        behind(made.replace('"release_update"', name).replace(" ", "  ").replace('ON  "release"', "ON\trelease"))
    assert (faults(full) == ()) == (name == "release_update")


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_cannot_be_read_is_named_with_what_helps(full, table):
    with raw(full) as behind:
        behind(f'ALTER TABLE "{table}" RENAME COLUMN at TO on_day')
    first, second = (line for line in lines(full) if line.startswith(f"0 table {table} "))
    assert first.startswith(f"0 table {table} cannot be read")
    assert "put back a good copy" in first
    assert second == f"0 table {table} was changed"
    with full.open() as ledger, pytest.raises(LedgerError, match="put back a good copy") as caught:
        ledger.rows()
    assert "ledger verify" not in str(caught.value)


def test_a_meta_row_changed_or_put_in_is_found_or_refused(full):
    with raw(full) as behind:
        behind("INSERT INTO meta VALUES ('other', 'x')")
    assert [(fault.seq, fault.table) for fault in faults(full)] == [(0, "table meta")]
    with raw(full) as behind:
        behind("UPDATE meta SET content = '99' WHERE name = 'version'")
    with pytest.raises(LedgerError, match="schema version 99, which a newer agedp reads; update agedp"):
        full.open()


def test_the_tables_are_append_only_even_for_a_superuser(full):
    columns = {"meta": "name"} | dict.fromkeys(TABLES, "at")
    statements = ['UPDATE "{0}" SET {1} = {1}', 'DELETE FROM "{0}"']
    statements += ['INSERT OR REPLACE INTO "{0}" SELECT * FROM "{0}"'] if full.server is None else ['TRUNCATE "{0}"']
    settings = [] if full.server is None else ["SET session_replication_role = replica"]
    with raw(full, triggers=True) as behind:
        for before in ([], settings):
            for statement in before:
                behind(statement)
            for table, column in columns.items():
                for statement in statements:
                    with pytest.raises(REFUSED_BY_THE_DATABASE, match="append-only"):
                        behind(statement.format(table, column))
    assert faults(full) == ()


def test_a_day_cannot_be_put_in_twice_nor_out_of_turn(full):
    with raw(full, triggers=True) as behind:
        row = behind.row("release", 3) | {"hash": "f"}
        verbs = ["INSERT"] + ["INSERT OR REPLACE"] * (full.server is None)
        for verb, seq in product(verbs, (3, 8, 9)):
            with pytest.raises(REFUSED_BY_THE_DATABASE, match=r"append-only|duplicate key|UNIQUE"):
                behind(f'{verb} INTO "release" VALUES ({", ".join("?" * len(row))})', *(row | {"seq": seq}).values())
    assert faults(full) == ()
