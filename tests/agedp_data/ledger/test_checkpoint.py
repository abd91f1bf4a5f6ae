"""Checkpoints: a reading that goes on from one knows what a complete reading knows, and finds what was changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp_data.errors import LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.ledger_reader import LedgerCheckpoint, parse_checkpoint, parse_checkpoint_of_any_version
from agedp_data.ledger.lifecycle import HouseholdAccount
from agedp_data.ledger.records import columns_of, table_of
from agedp_data.ledger.transfer import export_population, recovered_rows
from tests.agedp_data.ledger.conftest import Book, everywhere

TODAY = date(2026, 3, 4)


def checkpoint_of(url: str) -> LedgerCheckpoint:
    """Return the checkpoint of a complete reading, as a file would return it."""
    with Ledger.open(url) as ledger:
        checkpoint = ledger.advance_checkpoint(verified_on=TODAY)
    assert checkpoint is not None
    return parse_checkpoint(checkpoint.format())


def facts(ledger: Ledger, population: str) -> dict[str, object]:
    """Return everything that a ledger is asked."""
    return {
        "rows": ledger.all_rows(), "releases": ledger.rows(population), "history": ledger.history(),
        "contracts": ledger.contracts(), "models": ledger.models(), "statements": ledger.statements(),
        "newest": ledger.newest_statement(population), "date": ledger.newest_date(population), "id": ledger.id,
        "heads": (ledger.head(), ledger.content_head()), "numbers": [ledger.row_number(h) for h in known(ledger)],
        "draws": ledger.calibration_draws(), "account": ledger.household_account(population),
        "closed": ledger.is_closed(), "recovery": ledger.recovery(), "taken over": ledger.is_taken_over(),
    }  # fmt: skip


def known(ledger: Ledger) -> list[str]:
    return [row.hash for row in ledger.all_rows()]


def edit(book: Book, statement: str, *, triggers_return: bool = True) -> None:
    """Change a ledger's file from outside, as its owner can."""
    with closing(sqlite3.connect(book.path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute(statement)
        for _, sql in triggers if triggers_return else ():
            connection.execute(sql)


@everywhere
def test_a_reading_from_a_checkpoint_knows_what_a_complete_one_knows(full):
    checkpoint = checkpoint_of(full.url)
    with full.open() as ledger:
        full.add(ledger, 3)
        ledger.record_account(HouseholdAccount(full.homes, 1, 2, "2025-01-01", ("rebuilt",)), at=full.day(10))
        full.record(ledger, full.claim("claim 3"), at=full.day(11))
        complete = facts(ledger, full.homes)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger:
        assert facts(ledger, full.homes) == complete
        assert not ledger.is_read_completely
        later = ledger.advance_checkpoint(verified_on=date(2026, 4, 1))
        assert (later.length, later.verified_on) == (ledger.length(), TODAY)  # still the day of the complete reading
        assert ledger.advance_checkpoint(verified_on=TODAY) is None


def test_a_damaged_checkpoint_is_none(full):
    content = checkpoint_of(full.url).format()
    assert parse_checkpoint(content).format() == content
    for place in range(0, len(content), 97):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        for damaged in (changed, content[:place]):
            with pytest.raises((ValueError, LookupError, TypeError)):
                parse_checkpoint(damaged)
    heading, _, body = content.partition(b"\n")
    other_version = json.dumps({**json.loads(heading), "software": "0.0"}).encode()
    with pytest.raises(ValueError, match="another version"):
        parse_checkpoint(other_version + b"\n" + body)
    hashes = [row.hash for row in full.open().all_rows()]
    assert parse_checkpoint_of_any_version(other_version + b"\n" + body).state["hashes"] == hashes
    with pytest.raises(ValueError, match="damaged"):
        parse_checkpoint_of_any_version(other_version + b"\n" + body.replace(b"a", b"b", 1))


def test_a_checkpoint_of_another_ledger_is_not_used(full, tmp_path):
    other = Book(f"sqlite:///{tmp_path / 'other.sqlite'}")
    with other.begin() as ledger:
        other.add(ledger, 5)
    with full.open() as ledger:
        complete = facts(ledger, full.homes)
    with Ledger.open(full.url, checkpoint=checkpoint_of(other.url)) as ledger:
        assert facts(ledger, full.homes) == complete
        assert ledger.is_read_completely
        assert ledger.advance_checkpoint(verified_on=date(2026, 5, 5)).verified_on == date(2026, 5, 5)


def test_a_changed_row_above_a_checkpoint_is_found(full):
    checkpoint = checkpoint_of(full.url)
    with full.open() as ledger:
        row = full.add(ledger, 3)
    edit(full, f"UPDATE release SET \"values\" = '[1,1]' WHERE seq = {row.seq}")
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger, pytest.raises(LedgerError, match=f"row {row.seq} of"):
        ledger.history()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE release SET hash = 'a' WHERE seq = 3", "DELETE FROM release WHERE seq = 4",
        "UPDATE release SET seq = 70 WHERE seq = 3",
    ],
)  # fmt: skip
def test_a_lost_row_below_a_checkpoint_is_found_at_once(full, statement):
    checkpoint = checkpoint_of(full.url)
    edit(full, statement)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger, pytest.raises(LedgerError, match="changed or damaged"):
        ledger.history()


def test_a_changed_value_below_a_checkpoint_is_found_when_it_is_read(full):
    checkpoint = checkpoint_of(full.url)
    with full.open() as ledger:
        history = ledger.history()
    edit(full, "UPDATE release SET \"values\" = '[1,1]', loss = 1 WHERE seq = 3")
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger:
        assert ledger.history() == history  # losses are those of the checkpoint
        with pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
            ledger.rows(full.homes)
        assert {fault.seq for fault in ledger.verify()} == {3}
    with full.open() as ledger, pytest.raises(LedgerError, match="row 3 of the ledger was changed"):
        ledger.history()  # as a complete reading finds it, once a month


CHANGED_COLUMNS = (
    "UPDATE release SET text = replace(text, 'a', 'b') WHERE seq = 3",
    "UPDATE release SET \"values\" = '[1,1]' WHERE seq = 3",
    'UPDATE release SET "values" = 7 WHERE seq = 3',
    "UPDATE release SET loss = 1 WHERE seq = 3",
    "UPDATE release SET scale = scale || '0' WHERE seq = 3",
    "UPDATE contract SET promise = '{}' WHERE seq = 1",
)


@pytest.mark.parametrize("statement", CHANGED_COLUMNS)
def test_a_changed_row_below_a_checkpoint_is_found_before_a_draw(full, statement):
    checkpoint = checkpoint_of(full.url)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger:
        ledger.compare_restored()
    edit(full, statement)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger, pytest.raises(LedgerError, match=r"row [13] of"):
        ledger.compare_restored()


def forged(checkpoint: LedgerCheckpoint, change) -> LedgerCheckpoint:
    """Return a checkpoint after a change of its state, with a checksum that fits."""
    state = json.loads(json.dumps(checkpoint.state))
    change(state)
    return parse_checkpoint(replace(checkpoint, state=state).format())


def test_a_forged_checkpoint_is_found_before_a_draw(full):
    def spend_nothing(state):
        state["releases"]["loss"] = [0] * len(state["releases"]["loss"])

    def widen(state):
        state["contracts"] = [text.replace("0.5", "9.5") for text in state["contracts"]]

    def forget(state):
        for values in state["releases"].values():
            del values[-1]

    checkpoint = checkpoint_of(full.url)
    assert any("0.5" in text for text in checkpoint.state["contracts"])
    for change in (spend_nothing, widen, forget):
        false = forged(checkpoint, change)
        with Ledger.open(full.url, checkpoint=false) as ledger, pytest.raises(LedgerError, match="was changed"):
            ledger.compare_restored()


def test_a_checkpoint_with_headers_that_no_ledger_has_is_none(full):
    def lose_losses(state):
        state["releases"]["loss"] = [None] * len(state["releases"]["loss"])

    def lose_contracts(state):
        state["contracts"] = []

    checkpoint = checkpoint_of(full.url)
    for change in (lose_losses, lose_contracts):
        with pytest.raises(ValueError, match="that no ledger has"):
            forged(checkpoint, change)


def test_without_its_triggers_a_ledger_is_read_completely(full):
    checkpoint = checkpoint_of(full.url)
    edit(full, "UPDATE release SET loss = 1 WHERE seq = 3", triggers_return=False)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger, pytest.raises(LedgerError, match="row 3"):
        ledger.history()


def test_a_shortened_ledger_is_read_completely(full):
    with full.open() as ledger:
        added = full.add(ledger, 3)
    checkpoint = checkpoint_of(full.url)
    edit(full, f"DELETE FROM release WHERE seq = {added.seq}")
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger:
        assert ledger.length() == added.seq - 1
        assert ledger.is_read_completely
        assert checkpoint.ends_after(ledger.content_head())


@everywhere
def test_a_day_below_a_checkpoint_is_not_drawn_again(full):
    checkpoint = checkpoint_of(full.url)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger:
        assert full.release(ledger, 0, full.never) == ledger.rows(full.homes)[0]
        again = replace(ledger.rows(full.homes)[0], seq=ledger.length() + 1, hash="f" * 64)
        with pytest.raises(LedgerError):  # nor stored by a faulty program: the table is unique, too
            ledger.in_one_transaction(lambda: ledger._insert(again))
        assert ledger.verify() == ()


@everywhere
def test_two_runs_from_one_checkpoint_draw_a_day_once(full):
    checkpoint = checkpoint_of(full.url)
    with (
        Ledger.open(full.url, checkpoint=checkpoint) as one,
        Ledger.open(full.url, checkpoint=checkpoint) as other,
    ):
        assert one.history() == other.history()
        drawn = full.add(one, 3)
        assert full.release(other, 3, full.never) == drawn
        assert facts(one, full.homes) == facts(other, full.homes)


def test_rows_that_vanish_after_a_checkpoint_was_used_are_missed(full):
    checkpoint = checkpoint_of(full.url)
    with Ledger.open(full.url, checkpoint=checkpoint) as ledger:
        ledger.history()
        edit(full, "DELETE FROM statement WHERE seq = 7")
        with pytest.raises(LedgerBehind, match="replaced or shortened"):
            ledger.history()


def test_a_recovered_ledger_knows_its_earlier_heads_from_a_checkpoint(full, tmp_path):
    url = f"sqlite:///{tmp_path / 'recovered.sqlite'}"
    with full.open() as ledger, Ledger.open(url, create=True) as copy:
        export = export_population(ledger, full.homes, head=ledger.content_head())
        copy.import_rows(recovered_rows(export, ledger.newest_statement(full.homes), at=full.day(12)))
        complete = facts(copy, full.homes)
        numbers = [copy.row_number(row.hash) for row in ledger.rows()]
    with Ledger.open(url, checkpoint=checkpoint_of(url)) as copy:
        assert facts(copy, full.homes) == complete
        assert [copy.row_number(row.hash) for row in full.open().rows()] == numbers
        assert None not in numbers


def test_rows_are_read_by_days_and_series(full):
    with full.open() as ledger:
        assert [row.day for row in ledger.rows(full.homes, days=(full.day(1), full.day(2)))] == [
            full.day(1),
            full.day(2),
        ]
        assert ledger.rows(full.homes, "bins") == ()
        assert ledger.rows_of(ledger.history()[:1]) == ledger.rows()[:1]


STEPS = st.lists(st.sampled_from(["release", "skip", "other series", "model", "statement", "account"]), max_size=12)


@given(STEPS, st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_chain_from_any_checkpoint_is_the_whole_chain(tmp_path_factory, steps, data):
    book = Book(f"sqlite:///{tmp_path_factory.mktemp('chain') / 'ledger.sqlite'}")
    with book.begin() as ledger:
        for number, step in enumerate(steps):
            if step == "release":
                book.add(ledger, number)
            elif step == "skip":
                book.skip(ledger, number)
            elif step == "other series":
                book.add(ledger, number, series="bins")
            elif step == "model":
                ledger.register_model(book.leakage_bound, at=book.day(number))
            elif step == "statement":
                book.record(ledger, book.claim(str(number)), at=book.day(number))
            else:
                ledger.record_account(HouseholdAccount(book.homes, number, number + 1), at=book.day(number))
        rows = ledger.all_rows()
    whole, cut = HashChain(), data.draw(st.integers(1, len(rows)))
    for row in rows:
        if row.seq == cut + 1:
            break
        assert whole.add(table_of(row), columns_of(row)) == ()
    chain = parse_checkpoint(LedgerCheckpoint.of(whole, TODAY).format()).chain()
    for row in rows[cut:]:
        assert whole.add(table_of(row), columns_of(row)) == chain.add(table_of(row), columns_of(row)) == ()
    assert vars(chain) == vars(whole)
    assert all(later.seq == earlier.seq + 1 for earlier, later in pairwise(rows))
