"""Edits of any cell, forged chains and texts of another form are found at their row."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from itertools import chain, product

import psycopg
import pytest

from agedp_data.errors import LedgerError
from tests.agedp_data.ledger.conftest import TABLES, everywhere, faults, raw, rechain

# Every edit behind the ledger's back is found, in a file and on a server; slips are refused by the database itself.

LENGTH = 7
REFUSED_BY_THE_DATABASE = (sqlite3.Error, psycopg.Error)


def lines(book):
    return [f"{fault.seq} {fault.table} {fault.problem}" for fault in faults(book)]


def edits(value):
    if isinstance(value, int):
        return [value + 1, value - 1, value + 100, "x", 0.5]
    return [value + " ", "", "x" + value, value.encode(), "0", "[]", "{}", "null", "NaN", "[" * 5000]


def check_edits(book, chosen, edits_of):
    """Edit cells of the chosen rows one at a time; what the database takes is found at its row."""
    missed, tried = [], 0
    with book.open() as ledger, raw(book) as behind:
        for seq, table in chosen(behind.rows()):
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


@everywhere
def test_an_edit_of_any_column_is_found_at_its_row(full):
    with raw(full, triggers=True) as behind:  # the database's own statistics are nothing foreign
        behind("ANALYZE")
        behind("VACUUM")
    assert faults(full) == ()
    choice = random.Random(1)  # noqa: S311 - a sample
    rows = [0, 1, 3, 6]
    assert check_edits(full, lambda listed: [listed[i] for i in rows], lambda v: [choice.choice(edits(v))]) > 25


@pytest.mark.long
@everywhere
def test_every_edit_of_every_cell_is_found_at_its_row(full):
    assert check_edits(full, list, edits) > (700 if full.server is None else 500)


def test_an_edited_row_stops_reading_and_writing(full):
    with raw(full) as behind:
        behind('UPDATE "release" SET "values" = \'[1,2]\' WHERE seq = 3')
    with full.open() as ledger:
        for attempt in (ledger.rows, lambda: full.release(ledger, 9, full.never)):
            with pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
                attempt()
        assert [fault.seq for fault in ledger.verify()] == [3, 3]


def test_every_row_taken_out_is_found(full):
    with full.open() as ledger, raw(full) as behind:
        head = ledger.head()
        for seq, table in behind.rows():
            row = behind.row(table, seq)
            behind(f'DELETE FROM "{table}" WHERE seq = ?', seq)
            found = {fault.seq for fault in full.open().verify()}
            assert found == {0} if seq == LENGTH else {0, seq + 1} <= found
            if seq == LENGTH:  # a chain cut off at its end is a valid chain: a published head shows it
                assert not full.open().contains(head)
            behind.insert(table, row)
    assert faults(full) == ()


def test_a_row_put_in_is_found(full):
    with full.open() as earlier:
        earlier.rows()
        for seq in (-(2**63), -3, 0, 4, 8, 9):
            with raw(full) as behind:
                row = behind.row("statement", 6)
                behind.insert("statement", row | {"seq": seq, "hash": "g" + row["hash"][1:]})  # no hash of another row
            assert seq in {fault.seq for fault in faults(full)}
            with full.open() as ledger, pytest.raises(LedgerError, match="was changed or damaged"):
                ledger.rows()
            if seq < 1:
                with pytest.raises(LedgerError, match=rf"row {seq} of the ledger .* it has no valid number"):
                    earlier.rows()
            with raw(full) as behind:
                behind("DELETE FROM statement WHERE seq = ?", seq)
    assert faults(full) == ()


HOLLOW = "CREATE TRIGGER {0} AFTER INSERT ON {1} BEGIN SELECT 1; END"
NEXT = "CREATE TRIGGER {0} {1} INSERT ON {2} FOR EACH ROW EXECUTE FUNCTION ledger_next()"
EVERY_PART = {
    "index more_index is none of a ledger's": ["CREATE INDEX more_index ON model (at)"],
    "table more is none of a ledger's": ["CREATE TABLE more (x int)"],
    "table release was changed": ["ALTER TABLE release ADD COLUMN more TEXT"],
    "view more_view is none of a ledger's": ["CREATE VIEW more_view AS SELECT 1"],
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
        "trigger more_trigger is none of a ledger's": [HOLLOW.format("more_trigger", "model")],
    },
    "postgresql": EVERY_PART | {
        "trigger release_kept is missing": ["DROP TRIGGER release_kept ON release"],
        "trigger model_kept was changed": ["ALTER TABLE model DISABLE TRIGGER model_kept"],
        "trigger statement_next was changed": [
            "DROP TRIGGER statement_next ON statement", NEXT.format("statement_next", "AFTER", "statement"),
            "ALTER TABLE statement ENABLE ALWAYS TRIGGER statement_next",
        ],
        "trigger more_trigger is none of a ledger's": [NEXT.format("more_trigger", "BEFORE", "model")],
        "table contract was changed": ["ALTER TABLE contract ALTER COLUMN promise DROP NOT NULL"],
        "table statement was changed": ["ALTER TABLE statement DROP CONSTRAINT statement_hash_key"],
        "table meta was changed": ["ALTER TABLE meta ENABLE ROW LEVEL SECURITY"],
        "table model was changed": ["ALTER TABLE model SET UNLOGGED"],
        "sequence more_sequence is none of a ledger's": ["CREATE SEQUENCE more_sequence"],
        "rule more_rule is none of a ledger's": ["CREATE RULE more_rule AS ON INSERT TO model DO INSTEAD NOTHING"],
    },
}  # fmt: skip


@everywhere
def test_parts_missing_changed_or_added_are_named_and_stop_writing(full):
    parts = PARTS["sqlite" if full.server is None else "postgresql"]
    with raw(full, triggers=True) as behind:
        for statement in chain.from_iterable(parts.values()):
            behind(statement)
    assert sorted(lines(full)) == sorted(f"0 {part}" for part in parts)
    with full.open() as ledger:
        assert len(ledger.rows()) == 3  # what was drawn can be read
        with pytest.raises(LedgerError, match="so nothing is written"):
            full.release(ledger, 9, full.never)
        with pytest.raises(LedgerError, match="export"):
            full.record(ledger, full.claim("more"))


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_a_function_with_another_source_and_rows_of_a_child_are_found(full):
    with raw(full, triggers=True) as behind:
        behind("CREATE OR REPLACE FUNCTION ledger_kept() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$")
        behind("CREATE TABLE child () INHERITS (model)")
    changed = [f"0 trigger {name}_kept was changed" for name in sorted(("meta", *TABLES))]
    assert lines(full) == ["0 table child is none of a ledger's", "0 table model was changed", *changed]


def test_a_table_that_cannot_be_read_is_named_with_what_helps(full):
    with raw(full) as behind:
        behind('ALTER TABLE "release" RENAME COLUMN at TO on_day')
    first, second = (line for line in lines(full) if line.startswith("0 table release "))
    assert first.startswith("0 table release cannot be read")
    assert "put back a good copy" in first
    assert second == "0 table release was changed"
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


@everywhere
def test_the_tables_are_append_only_even_for_a_superuser(full):
    columns = {"meta": "name"} | dict.fromkeys(TABLES, "at")
    statements = ['UPDATE "{0}" SET {1} = {1}', 'DELETE FROM "{0}"']
    statements += ['INSERT OR REPLACE INTO "{0}" SELECT * FROM "{0}"'] if full.server is None else ['TRUNCATE "{0}"']
    with raw(full, triggers=True) as behind:
        for before in ([], [] if full.server is None else ["SET session_replication_role = replica"]):
            for statement in before:
                behind(statement)
            for (table, column), statement in product(columns.items(), statements):
                with pytest.raises(REFUSED_BY_THE_DATABASE, match="append-only"):
                    behind(statement.format(table, column))
    assert faults(full) == ()


@everywhere
def test_a_day_cannot_be_put_in_twice_nor_out_of_turn(full):
    with raw(full, triggers=True) as behind:
        row = behind.row("release", 3) | {"hash": "f"}
        verbs = ["INSERT"] + ["INSERT OR REPLACE"] * (full.server is None)
        for verb, seq in product(verbs, (3, 8, 9)):
            with pytest.raises(REFUSED_BY_THE_DATABASE, match=r"append-only|duplicate key|UNIQUE"):
                behind(f'{verb} INTO "release" VALUES ({", ".join("?" * len(row))})', *(row | {"seq": seq}).values())
    assert faults(full) == ()


# A chain made anew behind an edit is found where a row's meaning is impossible, or its texts have another form.


@pytest.fixture
def forge(full):
    """Return what changes a value of the sound ledger, makes the chain anew and returns the faults of the row."""
    sound = full.path.read_bytes()

    def forged(seq, column, value, **more):
        full.path.write_bytes(sound)
        rechain(full, seq, column, value, **more)
        return [fault.problem for fault in faults(full) if fault.seq == seq]

    return forged


IMPOSSIBLE = [
    (3, "loss", 749_999_999, "below sensitivity"), (3, "values", [1], "1 values"),
    (3, "state", "skipped", "skipped day with cells"), (3, "population", "elsewhere", "not the one in force"),
    (4, "published_on", "2025-01-01", "before 2025-01-08"), (4, "day", "2025-1-2", "day is not"),
    (4, "day", "9999-12-31", "day is not"), (4, "input_ended_at", "0001-01-01T00:00:00Z", "not a UTC instant"),
    (3, "households", [5, 2**70], "households is not from 1"), (3, "cells", ["all", "\ud800"], "cells does not hold"),
    (3, "revision", 2**40, "beyond 32 bits"), (3, "series", "other", "its contract has no series 'other'"),
    (2, "envelope", "{}", "not the hash of its public part"), (1, "promise", "[ ]", "not canonical"),
    (6, "files", {"statement.json": 1}, "files does not hold"), (6, "files", {"a": "1"}, "has no SHA-256"),
    (6, "files", [1, 2], "files does not hold"), (6, "files", [["statement.json", "0"]], "files does not hold"),
    (6, "at", "yesterday", "at is not"), (6, "at", "9999-12-31", "at is not"),
]  # fmt: skip


def test_a_forged_chain_is_found_where_its_meaning_is_impossible(full, forge):
    assert forge(7, "software", "2") == []  # the forger knows how to chain
    for seq, column, value, message in IMPOSSIBLE:
        problems = forge(seq, column, value)
        assert any(message in problem for problem in problems), (seq, column, value, problems)
    for column in ("published_on", "series"):
        assert max(map(len, forge(3, column, "x" * 5000))) < 300


def changed(text, path, value=...):
    """Return a document with another value at a dotted path, or without it."""
    document = part = json.loads(text)
    *above, last = path.split(".")
    for key in above:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


DEEP = json.loads("[" * 40 + "]" * 40)
PROMISES = [
    ("population", ..., "population: Field required"), ("population.name", "others", "name different populations"),
    *(("population.min_households", value, "population.min_households") for value in ("3", 0, True)),
    ("series", ["mean"], "series"), ("series", {}, "series"), ("series.mean", {}, "series.mean.statistic"),
    ("series.mean.share", "half", "series.mean.share"), ("series.mean.by", 1, "series.mean.by"),
    ("schedule.first_day", "9999-12-31", "schedule.first_day"), ("promise.age_days", 10**9, "promise.age_days"),
    ("promise.epsilon_total", 9, "promise.epsilon_total"), ("model", "f", "model"),
    ("model", {"hash": "f" * 64}, "the model it names is not in the ledger"),
    ("input.columns", {"missing": 1}, "input.columns"),
    *(("more", value, "not canonical JSON") for value in (None, "\ud800", DEEP)),
]  # fmt: skip
CLAIMS = [
    ("ledger", ..., "ledger: Field required"), ("ledger.head", 7, "ledger.head"),
    ("ledger.head", "f" * 64, "the head that the statement names"),
    ("population", "others", "name different populations"), ("version", "2", "version"),
    ("days.first", "2025-02-30", "days.first"), ("figures", [{}], "figures.0.name"), ("notes", "none", "notes"),
    ("contract.input", ..., "contract.input"), ("title", ["x"], "title"), ("title", 0.5, "not canonical JSON"),
]  # fmt: skip
MODELS = [
    ("envelope", ...), ("envelope", []), ("envelope.ages", []), ("envelope.ages", [10**30]), ("envelope.bounds", {}),
    ("envelope.steps_per_day", 10**30), ("envelope.losses", ["many"]), ("envelope.more", 1),
    ("envelope.assume", ["curve"]),
]  # fmt: skip


def test_a_text_of_another_form_is_one_fault_of_its_row(full, forge):
    documents = ((1, "promise", json.dumps(full.promise), PROMISES), (7, "claim", full.claim("claim 2"), CLAIMS))
    for seq, column, text, rows in documents:
        for path, value, message in rows:
            [problem] = forge(seq, column, changed(text, path, value))
            assert message in problem, (path, value)
    for claim in ("", "null", '"x"', "{}", "NaN", "[" * 5000, "1" * 5000):
        [problem] = forge(7, "claim", claim)
        assert len(problem) < 300, claim
    for path, value in MODELS:
        text = changed(full.leakage_bound, path, value)
        [problem] = forge(2, "envelope", text, model=hashlib.sha256(text.encode()).hexdigest())
        assert problem.startswith("the model "), (path, value)
