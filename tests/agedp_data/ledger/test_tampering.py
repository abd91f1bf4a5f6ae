"""Every edit behind the ledger's back is found: cell by cell, row by row, and with a chain made anew."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing, contextmanager

import pytest

from agedp_data.errors import LedgerError

TABLES = ("contract", "model", "release", "statement")
LENGTH = 7


@contextmanager
def raw(book, *, triggers=False):
    """The file itself; without its triggers until the end, unless they are wanted."""
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        listed = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        dropped = {} if triggers else dict(connection.execute(listed).fetchall())
        for name in dropped:
            connection.execute(f'DROP TRIGGER "{name}"')
        yield connection
        for statement in dropped.values():
            connection.execute(statement)


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
            " 'f' || substr(hash, 2) FROM statement WHERE seq = 6",
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
        with pytest.raises(LedgerError, match=r"row -1 of the ledger .* it has no place"):
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
    with full.open() as ledger, pytest.raises(LedgerError, match="it has no place"):
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
    assert [f"{fault.table} {fault.what}" for fault in faults(full)] == [said]
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
    said = [f"{fault.table} {fault.what}" for fault in faults(full) if fault.table == f"table {table}"]
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


def rechain(book, seq, column, value, **more):
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
                changed = {column: value, **more}
                row["text"] = json.dumps(json.loads(row["text"]) | changed, sort_keys=True, separators=(",", ":"))
                row |= {
                    key: each if isinstance(each, (str, int)) else json.dumps(each, separators=(",", ":"))
                    for key, each in changed.items()
                }
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
        (3, "state", "skipped", "skipped day with cells"),
        (3, "population", "elsewhere", "not the one in force"),
        (3, "contract", "f" * 64, "not the one in force"),
        (4, "model", "f" * 64, "model it names"),
        (4, "published_on", "2025-01-01", "before 2025-01-08"),
        (4, "day", "2025-1-2", "day is not"),
        (2, "envelope", "{}", "not the hash of its public part"),
        (1, "promise", "[ ]", "not canonical"),
        (6, "at", "yesterday", "at is not"),
        (6, "at", "9999-12-31", "at is not"),
        (3, "series", "other", "its contract has no series 'other'"),
        (3, "households", [5, 0], "households is not from 1"),
        (3, "households", [5, 2**70], "households is not from 1"),
        (3, "cells", ["all", "\ud800"], "cells does not hold"),
        (3, "revision", 2**40, "beyond 32 bits"),
        (4, "day", "9999-12-31", "day is not"),
        (4, "input_ended_at", "0001-01-01T00:00:00Z", "not a UTC instant"),
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


def other(text, change):
    said = json.loads(text)
    change(said)
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.pop("population"), "population: Field required"),
        (lambda said: said["population"].update(name="others"), "to other people"),
        (lambda said: said["population"].update(min_households="3"), "population.min_households"),
        (lambda said: said["population"].update(min_households=0), "population.min_households"),
        (lambda said: said["population"].update(min_households=True), "population.min_households"),
        (lambda said: said.update(series=["mean"]), "series"),
        (lambda said: said.update(series={}), "series"),
        (lambda said: said["series"].update(mean={}), "series.mean.statistic"),
        (lambda said: said["series"]["mean"].update(share="half"), "series.mean.share"),
        (lambda said: said["series"]["mean"].update(by=1), "series.mean.by"),
        (lambda said: said["schedule"].update(first_day="9999-12-31"), "schedule.first_day"),
        (lambda said: said["schedule"].update(last_day=20261231), "schedule.last_day"),
        (lambda said: said["promise"].update(age_days=10**9), "promise.age_days"),
        (lambda said: said["promise"].update(epsilon_total=9), "promise.epsilon_total"),
        (lambda said: said.update(model="f"), "model"),
        (lambda said: said.update(model={"hash": "f" * 64}), "the model it names is not in the ledger"),
        (lambda said: said["input"].update(columns={"missing": 1}), "input.columns"),
        (lambda said: said.update(more=None), "not canonical JSON"),
        (lambda said: said.update(more="\ud800"), "not canonical JSON"),
        (lambda said: said.update(more=json.loads("[" * 40 + "]" * 40)), "not canonical JSON"),
    ],
)
def test_a_promise_of_another_form_is_one_fault_of_its_row(full, change, said):
    rechain(full, 1, "promise", other(json.dumps(full.promise), change))
    found = [fault.what for fault in faults(full) if fault.seq == 1]
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.pop("ledger"), "ledger: Field required"),
        (lambda said: said["ledger"].update(head=7), "ledger.head"),
        (lambda said: said["ledger"].update(head="f" * 64), "the head that the claim names"),
        (lambda said: said.update(population="others"), "to other people"),
        (lambda said: said.update(version="2"), "version"),
        (lambda said: said["days"].pop("released"), "days.released"),
        (lambda said: said["days"].update(first="2025-02-30"), "days.first"),
        (lambda said: said.update(figures=[{}]), "figures.0.name"),
        (lambda said: said.update(notes="none"), "notes"),
        (lambda said: said["contract"].pop("input"), "contract.input"),
        (lambda said: said.update(title=["x"]), "title"),
        (lambda said: said.update(title="\udfff"), "not canonical JSON"),
        (lambda said: said.update(title=0.5), "not canonical JSON"),
    ],
)
def test_a_claim_of_another_form_is_one_fault_of_its_row(full, change, said):
    rechain(full, 7, "claim", other(full.claim("claim 2"), change))
    [fault] = faults(full)
    assert fault.seq == 7
    assert said in fault.what


@pytest.mark.parametrize("claim", ["", "null", "[]", '"x"', "{}", "NaN", "[" * 5000, "1" * 5000, "{"])
def test_a_claim_that_is_no_object_is_one_fault_of_its_row(full, claim):
    rechain(full, 7, "claim", claim)
    [fault] = faults(full)
    assert (fault.seq, len(fault.what) < 300) == (7, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.pop("envelope"),
        lambda said: said.update(envelope=[]),
        lambda said: said["envelope"].update(ages=[]),
        lambda said: said["envelope"].update(ages=[10**30]),
        lambda said: said["envelope"].update(bounds={}),
        lambda said: said["envelope"].update(steps_per_day=10**30),
        lambda said: said["envelope"].update(losses=["many"]),
        lambda said: said["envelope"].update(more=1),
        lambda said: said["envelope"].update(assume=["curve"]),
    ],
)
def test_a_model_without_an_envelope_is_one_fault_of_its_row(full, change):
    envelope = other(full.envelope, change)
    rechain(full, 2, "envelope", envelope, model=hashlib.sha256(envelope.encode()).hexdigest())
    [fault] = [fault for fault in faults(full) if fault.seq == 2]
    assert fault.what.startswith("the model ")
