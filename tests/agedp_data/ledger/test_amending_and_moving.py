"""Contracts that follow each other, ledgers that are closed, copied row by row, or begun again from their rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agedp_data.errors import LedgerError
from agedp_data.ledger import Ledger, ReleaseRecord, StatementRecord
from agedp_data.ledger.lifecycle import (
    LEDGER_POPULATION,
    ClosedLedger,
    RecoveryRecord,
    format_lifecycle_record,
    read_lifecycle_record,
)
from agedp_data.ledger.transfer import complete_export, export_population, format_export, parse_export, recovered_rows
from tests.agedp_data.ledger.texts import promise

TIGHTER = promise(epsilon="0.4")


def statement(book, **changed):
    fields = {"population": book.homes, "claim": book.claim(), "files": (("a.parquet", book.digest),), "software": "1"}
    return StatementRecord(**(fields | changed), at=book.day(9))


def into(tmp_path, rows, name="new.sqlite"):
    ledger = Ledger.open(f"sqlite:///{tmp_path / name}", create=True)
    ledger.import_rows(rows)
    return ledger


def test_releases_refer_to_the_newest_contract_of_their_time(full):
    with full.open() as ledger:
        first = ledger.contracts()[0]
        second = ledger.amend(TIGHTER, population=full.homes, at=full.day(10))
        assert [row.hash for row in ledger.contracts(full.homes)] == [first.hash, second.hash]
        with pytest.raises(LedgerError, match="not the one in force"):
            full.add(ledger, 4)
        full.contract = second.hash
        full.add(ledger, 4)
        assert [row.contract for row in ledger.rows()] == [first.hash] * 3 + [second.hash]
        assert ledger.verify() == ()
        ledger.require_unchanged(TIGHTER, population=full.homes)


def test_an_amendment_that_changes_nothing_is_no_row(full):
    with full.open() as ledger:
        known, length = ledger.contracts()[-1], ledger.length()
        assert ledger.amend(full.promise, population=full.homes, at=full.day(10)) == known
        assert ledger.length() == length


def test_who_was_promised_nothing_has_nothing_to_amend(full):
    with full.open() as ledger, pytest.raises(LedgerError, match="no contract of 'others'"):
        ledger.amend(TIGHTER, population="others", at=full.day(10))


def test_of_two_amendments_of_one_contract_the_second_is_refused(full):
    with full.open() as ledger:
        seen = ledger.contracts()[-1].hash
        ledger.amend(TIGHTER, population=full.homes, at=full.day(10), after=seen)
        with pytest.raises(LedgerError, match="amended meanwhile"):
            ledger.amend(full.promise, population=full.homes, at=full.day(10), after=seen)


def handed_over(ledger, book):
    found = []
    ledger.export_and_close(found.append, at=book.day(11))
    return found[0]


def test_a_closed_ledger_takes_no_row_and_says_why(full):
    with full.open() as ledger:
        rows = handed_over(ledger, full)
        assert len(rows) == 7
        assert ledger.length() == 8
        for attempt in (
            lambda: full.add(ledger, 9),
            lambda: ledger.amend(TIGHTER, population=full.homes, at=full.day(12)),
            lambda: ledger.register_model("{}", at=full.day(12)),
            lambda: ledger.record("x", population=full.homes, files={}, software="", at=full.day(12)),
        ):
            with pytest.raises(LedgerError, match="closed on 2025-01-12 after 7 rows and continues elsewhere"):
                attempt()
        assert full.add(ledger, 0) == ledger.rows()[0]  # what was drawn can be read for ever
        assert ledger.verify() == ()


def test_nothing_is_drawn_from_a_closed_ledger(full):
    with full.open() as ledger:
        handed_over(ledger, full)
        with pytest.raises(LedgerError, match="was closed"):
            full.release(ledger, 9, full.never)


def test_a_ledger_is_handed_over_the_same_twice_and_closed_once(full):
    with full.open() as ledger:
        assert handed_over(ledger, full) == handed_over(ledger, full)
        assert ledger.length() == 8


def test_what_cannot_be_written_closes_nothing(full):
    def fail(_):
        raise OSError("disk full")

    with full.open() as ledger:
        with pytest.raises(OSError, match="disk full"):
            ledger.export_and_close(fail, at=full.day(11))
        assert not ledger.is_closed()
        full.add(ledger, 9)


def test_a_copy_is_the_ledger_row_by_row_and_goes_on(full, tmp_path):
    with full.open() as ledger:
        found = parse_export(format_export(complete_export(handed_over(ledger, full))))
        with into(tmp_path, found.rows) as copy:
            assert copy.all_rows() == ledger.all_rows()[:-1]
            assert copy.id == ledger.id
            assert copy.verify() == ()
            full.add(copy, 9)


def test_a_ledger_with_rows_is_not_filled(full, tmp_path):
    with full.open() as ledger, pytest.raises(LedgerError, match="holds rows already"):
        ledger.import_rows(ledger.all_rows())
    assert not (tmp_path / "new.sqlite").exists()


def test_no_character_of_an_exported_file_can_be_changed(full, tmp_path):
    with full.open() as ledger:
        text = format_export(complete_export(ledger.all_rows()))
    begin = text.index("\n") + 1
    empty = into(tmp_path, ())
    for place in range(begin, len(text), 37):
        spoilt = text[:place] + chr((ord(text[place]) + 1) % 128) + text[place + 1 :]
        with pytest.raises(LedgerError):
            empty.import_rows(parse_export(spoilt).rows)
    assert empty.length() == 0


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: "", "the file is not one of ledger rows"),
        (lambda text: "{}\n", "the file is not one of ledger rows"),
        (lambda text: text[:-1], "cut off"),
        (lambda text: text[: text.rindex("\n", 0, -1) + 1], "cut off"),
        (lambda text: text + "[]\n", "line 9 is not a row"),
        (lambda text: text + '{"table":1}\n', "cut off"),
        (lambda text: text.replace('"table":"model"', '"table":"other"'), "line 3 is not a row"),
        (lambda text: text.replace('"version":"1"', '"version":"2"'), "has version '2', which a newer agedp reads"),
    ],
)
def test_a_file_that_is_no_export_is_one_line(full, spoil, message):
    with full.open() as ledger:
        text = format_export(complete_export(ledger.all_rows()))
    with pytest.raises(LedgerError, match=message):
        parse_export(spoil(text))


def test_a_folder_carries_its_own_population_up_to_its_head(full):
    with full.open() as ledger:
        other = ledger.register(promise("others"), at=full.day(9))
        row = full.planned(1, population="others", contract=other.hash, published_on=full.day(9))
        ledger.release("others", row.series, row.day, draw=lambda _: [1, 2], admit=lambda _: row)
        rows = ledger.rows(full.homes)
        found = export_population(ledger, full.homes, head=rows[-1].hash)
        assert [row.seq for row in found.rows] == [1, 2, 3, 4, 5]
        assert not found.is_complete
        assert [row.seq for row in export_population(ledger, full.homes, head=rows[0].hash).rows] == [1, 3]
        with pytest.raises(LedgerError, match="no row of the ledger"):
            export_population(ledger, full.homes, head="f" * 64)


def test_a_recovered_ledger_begins_with_its_seam_and_knows_the_old_heads(full, tmp_path):
    with full.open() as ledger:
        rows = ledger.rows()
        found = export_population(ledger, full.homes, head=rows[-1].hash)
        lost_id = ledger.id
        assert ledger.recovery() is None
    with into(tmp_path, recovered_rows(found, statement(full), at=full.day(20))) as copy:
        assert copy.verify() == ()
        assert copy.recovery() == RecoveryRecord(lost_id, rows[-1].hash, tuple(row.hash for row in found.rows))
        assert copy.all_rows()[0].files == (("a.parquet", full.digest),)

        def said(row: ReleaseRecord) -> ReleaseRecord:
            return replace(row, seq=0, hash="", contract="")

        assert [said(row) for row in copy.rows()] == [said(row) for row in rows]
        assert {row.contract for row in copy.rows()} == {copy.contracts()[0].hash}
        for row in rows:
            place = copy.row_number(row.hash)
            assert copy.all_rows()[place - 1].day == row.day
        assert not copy.contains("f" * 64)
        full.contract = copy.contracts()[0].hash
        assert full.add(copy, 0) == copy.rows()[0]  # drawn once for ever
        full.add(copy, 9)
        assert copy.verify() == ()


def test_rows_with_a_loss_below_their_noise_are_not_recovered(full):
    with full.open() as ledger:
        found = export_population(ledger, full.homes, head=ledger.rows()[-1].hash)
    less = tuple(replace(row, loss=1) if isinstance(row, ReleaseRecord) and row.loss else row for row in found.rows)
    with pytest.raises(LedgerError, match="below sensitivity"):
        recovered_rows(replace(found, rows=less), statement(full), at=full.day(20))


@pytest.mark.parametrize(
    "claim",
    [
        "",
        "[]",
        "[1]",
        '{"closed":{}}',
        '{"opened":{"head":"a","rows":1}}',
        json.dumps({"recovered": {"ledger": "a", "head": "b", "hashes": "c"}}),
        format_lifecycle_record(ClosedLedger("0" * 64, 0)),
        format_lifecycle_record(ClosedLedger("0" * 64, 7)),
        format_lifecycle_record(RecoveryRecord("", "0" * 64, ())),
    ],
)
def test_a_mark_that_is_none_or_comes_at_the_wrong_place_is_refused(full, claim):
    with full.open() as ledger, pytest.raises(LedgerError, match="cannot take this statement"):
        ledger.record(claim, population=LEDGER_POPULATION, files={}, software="", at=full.day(9))


def test_a_statement_to_people_is_no_mark(full):
    assert read_lifecycle_record(statement(full, claim=format_lifecycle_record(ClosedLedger("0" * 64, 7)))) is None
