"""Amendments, moves, recovery, and the records of accounts that a ledger carries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agedp_data.errors import LedgerError
from agedp_data.ledger import Ledger, ReleaseRecord, StatementRecord
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import (
    LEDGER_POPULATION,
    CalibrationDraw,
    ClosedLedger,
    HouseholdAccount,
    LedgerUpgrade,
    LifecycleRecord,
    PopulationAccount,
    RecoveryRecord,
    SigningKey,
    format_lifecycle_record,
    read_lifecycle_record,
)
from agedp_data.ledger.records import NO_HASH, columns_of, sha256, text_of
from agedp_data.ledger.transfer import complete_export, export_population, format_export, parse_export, recovered_rows
from tests.agedp_data.ledger.conftest import Book, claim, everywhere, promise

# Contracts that follow each other, ledgers that are closed, copied row by row, or begun again from their rows.

TIGHTER = promise(epsilon="0.4")
CLOSED = format_lifecycle_record(ClosedLedger("0" * 64, 7))


def statement(book, claim=None):
    return StatementRecord(book.homes, claim or book.claim(), (("a.parquet", book.digest),), "1", at=book.day(9))


def into(tmp_path, rows):
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'new.sqlite'}", create=True)
    ledger.import_rows(rows)
    return ledger


def closed(ledger, book):
    handed = []
    ledger.export_and_close(handed.append, at=book.day(11))
    return handed[0]


def test_releases_refer_to_the_newest_contract_of_their_time(full):
    with full.open() as ledger:
        first, length = ledger.contracts()[0], ledger.length()
        assert ledger.amend(full.promise, population=full.homes, at=full.day(10)) == first
        assert ledger.length() == length
        second = ledger.amend(TIGHTER, population=full.homes, at=full.day(10), after=first.hash)
        assert [row.hash for row in ledger.contracts(full.homes)] == [first.hash, second.hash]
        with pytest.raises(LedgerError, match="amended meanwhile"):
            ledger.amend(full.promise, population=full.homes, at=full.day(10), after=first.hash)
        with pytest.raises(LedgerError, match="no contract of 'others'"):
            ledger.amend(TIGHTER, population="others", at=full.day(10))
        with pytest.raises(LedgerError, match="not the one in force"):
            full.add(ledger, 4)
        full.contract = second.hash
        full.add(ledger, 4)
        assert [row.contract for row in ledger.rows()] == [first.hash] * 3 + [second.hash]
        assert ledger.verify() == ()
        ledger.require_unchanged(TIGHTER, population=full.homes)


def test_a_closed_ledger_takes_no_row_and_says_why(full):
    with full.open() as ledger:
        rows = closed(ledger, full)
        assert (len(rows), closed(ledger, full) == rows, ledger.length()) == (7, True, 8)
        for attempt in (
            lambda: full.release(ledger, 9, full.never),
            lambda: ledger.amend(TIGHTER, population=full.homes, at=full.day(12)),
            lambda: ledger.register_model("{}", at=full.day(12)),
            lambda: full.record(ledger, "x", at=full.day(12)),
        ):
            with pytest.raises(LedgerError, match="closed on 2025-01-12 after 7 rows and continues elsewhere"):
                attempt()
        assert full.add(ledger, 0) == ledger.rows()[0]  # what was drawn can be read for ever
        assert ledger.verify() == ()


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
        export = parse_export(format_export(complete_export(closed(ledger, full))).splitlines(keepends=True))
        with into(tmp_path, export.rows) as copy:
            assert copy.all_rows() == ledger.all_rows()[:-1]
            assert (copy.id, copy.verify()) == (ledger.id, ())
            full.add(copy, 9)
            with pytest.raises(LedgerError, match="holds rows already"):
                copy.import_rows(ledger.all_rows())


def test_no_character_of_an_exported_file_can_be_changed(full, tmp_path):
    with full.open() as ledger:
        text = format_export(complete_export(ledger.all_rows()))
    empty = into(tmp_path, ())
    for place in range(text.index("\n") + 1, len(text), 73):
        spoilt = text[:place] + chr((ord(text[place]) + 1) % 128) + text[place + 1 :]
        with pytest.raises(LedgerError):
            empty.import_rows(parse_export(spoilt.splitlines(keepends=True)).rows)
    assert empty.length() == 0


SPOILT = [
    (lambda text: "", "not one of ledger rows"), (lambda text: "{}\n", "not one of ledger rows"),
    (lambda text: text[:-1], "cut off"), (lambda text: text[: text.rindex("\n", 0, -1) + 1], "cut off"),
    (lambda text: text + "[]\n", "line 9 is not a row"), (lambda text: text + '{"table":1}\n', "cut off"),
    (lambda text: text.replace('"table":"model"', '"table":"other"'), "line 3 is not a row"),
    (lambda text: text.replace('"version":"1"', '"version":"2"'), "has version '2', which a newer agedp reads"),
]  # fmt: skip


def test_a_file_that_is_no_export_is_one_line(full):
    with full.open() as ledger:
        text = format_export(complete_export(ledger.all_rows()))
    for spoil, message in SPOILT:
        with pytest.raises(LedgerError, match=message):
            parse_export(spoil(text).splitlines(keepends=True))


def test_a_folder_carries_its_own_population_up_to_its_head(full):
    with full.open() as ledger:
        other = ledger.register(promise("others"), at=full.day(9))
        full.add(ledger, 1, population="others", contract=other.hash, published_on=full.day(9))
        rows = ledger.rows(full.homes)
        export = export_population(ledger, full.homes, head=rows[-1].hash)
        assert [row.seq for row in export.rows] == [1, 2, 3, 4, 5]
        assert not export.is_complete
        assert [row.seq for row in export_population(ledger, full.homes, head=rows[0].hash).rows] == [1, 3]
        with pytest.raises(LedgerError, match="no row of the ledger"):
            export_population(ledger, full.homes, head="f" * 64)


def test_a_recovered_ledger_knows_the_old_heads_and_goes_on(full, tmp_path):
    with full.open() as ledger:
        rows, lost_id = ledger.rows(), ledger.id
        export = export_population(ledger, full.homes, head=rows[-1].hash)
        assert ledger.recovery() is None
    with into(tmp_path, recovered_rows(export, statement(full), at=full.day(20))) as copy:
        assert copy.verify() == ()
        assert copy.recovery() == RecoveryRecord(lost_id, rows[-1].hash, tuple(row.hash for row in export.rows))
        assert copy.all_rows()[0].files == (("a.parquet", full.digest),)

        def content(row: ReleaseRecord) -> ReleaseRecord:
            return replace(row, seq=0, hash="", contract="")

        assert [content(row) for row in copy.rows()] == [content(row) for row in rows]
        assert {row.contract for row in copy.rows()} == {copy.contracts()[0].hash}
        assert [copy.all_rows()[copy.row_number(row.hash) - 1].day for row in rows] == [row.day for row in rows]
        assert not copy.contains("f" * 64)
        full.contract = copy.contracts()[0].hash
        assert full.release(copy, 0, full.never) == copy.rows()[0]  # drawn once for ever
        full.add(copy, 9)
        assert copy.verify() == ()


def test_rows_with_a_loss_below_their_noise_are_not_recovered(full):
    with full.open() as ledger:
        export = export_population(ledger, full.homes, head=ledger.rows()[-1].hash)
    less = tuple(replace(row, loss=1) if isinstance(row, ReleaseRecord) and row.loss else row for row in export.rows)
    with pytest.raises(LedgerError, match="below sensitivity"):
        recovered_rows(replace(export, rows=less), statement(full), at=full.day(20))


def test_a_lifecycle_record_at_the_wrong_place_is_refused(full):
    claims = (
        *("", "[]", "[1]", '{"closed":{}}', '{"opened":{"head":"a","rows":1}}', CLOSED),
        json.dumps({"recovered": {"ledger": "a", "head": "b", "hashes": "c"}}),
        format_lifecycle_record(ClosedLedger("0" * 64, 0)),
        format_lifecycle_record(RecoveryRecord("", "0" * 64, ())),
    )
    with full.open() as ledger:
        for claim in claims:
            with pytest.raises(LedgerError, match="cannot take this statement"):
                full.record(ledger, claim, population=LEDGER_POPULATION, files={})
    assert read_lifecycle_record(statement(full, CLOSED)) is None  # of a population


# Calibration draws and accounts: drawn once, permitted by their form, carried by folders and recoveries.

QUERY = {"coverage": "0.95", "households": 5566}
PERIOD = ("2024-01-01", "2024-12-31")


def never() -> list[int]:
    raise AssertionError("drawn a second time")


def drawn(ledger: Ledger, draw: Callable[[], list[int]], **changed: object) -> CalibrationDraw:
    keys = {"population": "london-homes", "period": PERIOD, "query": QUERY, "loss": 10**9, "at": "2025-01-01"} | changed
    return ledger.draw_once(draw=draw, **keys)  # type: ignore[arg-type]


@everywhere
def test_a_question_is_drawn_once_in_a_ledger_that_was_upgraded_first(place: str) -> None:
    with Ledger.open(place, create=True) as ledger:
        first = drawn(ledger, lambda: [4])
        assert drawn(ledger, never) == first
        assert drawn(ledger, lambda: [7], query={**QUERY, "coverage": "0.9"}).value == (7,)
        assert drawn(ledger, lambda: [8], period=("2024-01-01", "2024-06-30")).value == (8,)
        assert [draw.value for draw in ledger.calibration_draws("london-homes")] == [(4,), (7,), (8,)]
        assert ledger.calibration_draws("other") == ()
        assert ledger.content_head() == ledger.head()
        assert [json.loads(row.claim).popitem()[0] for row in ledger.statements("")] == [
            "upgraded", *["calibration draw"] * 3,
        ]  # fmt: skip
    with Ledger.open(place) as ledger:
        assert ledger.verify() == ()
        assert drawn(ledger, never) == first


def test_a_draw_that_the_ledger_cannot_take_is_never_drawn(place: str) -> None:
    with Ledger.open(place, create=True) as ledger:
        for changed in ({"loss": 0}, {"period": PERIOD[::-1]}):
            with pytest.raises(LedgerError, match="calibration draw without a"):
                drawn(ledger, never, **changed)


def test_a_draw_of_another_ledger_is_adopted_once_and_never_contradicted(place: str) -> None:
    with Ledger.open(place, create=True) as ledger:
        draw = CalibrationDraw("london-homes", *PERIOD, '{"of":1}', (3,), 5)
        assert ledger.adopt(draw, at="2025-01-01") == ledger.adopt(draw, at="2025-01-02") == draw
        assert ledger.calibration_draws() == (draw,)
        with pytest.raises(LedgerError, match="another draw for the same question"):
            ledger.adopt(CalibrationDraw("london-homes", *PERIOD, '{"of":1}', (4,), 5), at="2025-01-02")


def test_the_newest_account_of_a_population_is_stored_once(place: str) -> None:
    book = Book(place)
    with book.begin() as ledger:
        head = ledger.content_head()
        for account in (HouseholdAccount("london-homes", 5, 9), HouseholdAccount("london-homes", 6, 9)):
            ledger.record_account(account, at="2025-01-09")
            length = ledger.length()
            assert ledger.record_account(account, at="2025-01-10") == ledger.household_account("london-homes")
            assert ledger.length() == length
        assert ledger.content_head() not in {head, NO_HASH}
        assert ledger.household_account("other") is None
        with pytest.raises(LedgerError, match="beyond its total"):
            ledger.record_account(HouseholdAccount("london-homes", 10, 9), at="2025-01-10")


def test_no_account_is_below_the_one_before_it(place: str) -> None:
    with Book(place).begin() as ledger:
        ledger.record_account(HouseholdAccount("london-homes", 5, 9, "2025-01-01"), at="2025-01-09")
        with pytest.raises(LedgerError, match="an account that is below the one before it"):
            ledger.record_account(PopulationAccount("london-homes", 4, 9, "2025-01-01"), at="2025-01-10")
        stored = ledger.record_account(PopulationAccount("london-homes", 5, 9, "2025-01-01", (), 2, 3), at="2025-01-10")
        for lower in (replace(stored, total=8), replace(stored, day=4), replace(stored, own_total=10)):
            with pytest.raises(LedgerError, match="an account that is below"):
                ledger.record_account(lower, at="2025-01-11")
        assert ledger.household_account("london-homes") == stored
        assert ledger.verify() == ()


@pytest.mark.parametrize(
    ("record", "form"),
    [
        (CalibrationDraw("p", *PERIOD, "{}", (1,), 1), 2),
        (HouseholdAccount("p", 1, 1), 2),
        (PopulationAccount("p", 1, 1), 3),
        (SigningKey("ab" * 32), 3),
    ],
    ids=["draw", "household", "population", "key"],
)
def test_a_record_of_a_later_form_needs_an_upgrade_before_it(record: LifecycleRecord, form: int) -> None:
    chain = HashChain()
    row = StatementRecord("", format_lifecycle_record(record), (), "", seq=1, at="2025-01-01")
    assert read_lifecycle_record(row) == record
    assert f"a record of form {form} before the ledger was upgraded to it" in chain.broken_rules(row)
    upgrade = StatementRecord("", format_lifecycle_record(LedgerUpgrade(form, "0.2")), (), "", seq=1, at="2025-01-01")
    stored = columns_of(upgrade) | {"hash": sha256(NO_HASH + text_of(upgrade))}
    assert chain.add("statement", stored) == ()
    assert chain.broken_rules(row) == ()


def test_a_folder_carries_the_draws_of_its_population(place: str) -> None:
    book = Book(place)
    with book.begin() as ledger:
        book.add(ledger, 1)
        drawn(ledger, lambda: [4])
        drawn(ledger, lambda: [5], population="elsewhere")
        export = export_population(ledger, "london-homes", head=ledger.content_head())
        kinds = [json.loads(row.claim) for row in export.rows if isinstance(row, StatementRecord)]
        assert [next(iter(kind)) for kind in kinds] == ["upgraded", "calibration draw"]
        assert kinds[1]["calibration draw"]["value"] == [4]


def test_a_recovered_ledger_keeps_draws_and_heads_however_often_it_is_recovered(tmp_path: Path) -> None:
    book, heads = Book(f"sqlite:///{tmp_path / '0.sqlite'}"), []
    ledger = book.begin()
    book.add(ledger, 1)
    first = drawn(ledger, lambda: [4])
    for number in (1, 2):
        heads.append(ledger.content_head())
        statement = book.record(ledger, claim(book.promise, head=ledger.content_head()))
        export = export_population(ledger, "london-homes", head=ledger.content_head())
        ledger.close()
        ledger = Ledger.open(f"sqlite:///{tmp_path / f'{number}.sqlite'}", create=True)
        ledger.import_rows(recovered_rows(export, statement, at="2025-02-01"))
        assert ledger.verify() == ()
        assert drawn(ledger, never) == first
        assert all(map(ledger.contains, heads))
    ledger.close()
