"""Calibration draws and accounts: drawn once, permitted by their form, carried by folders and recoveries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agedp_data.errors import LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import (
    CalibrationDraw,
    HouseholdAccount,
    LedgerUpgrade,
    LifecycleRecord,
    PopulationAccount,
    SigningKey,
    format_lifecycle_record,
    read_lifecycle_record,
)
from agedp_data.ledger.records import NO_HASH, StatementRecord, columns_of, sha256, text_of
from agedp_data.ledger.transfer import export_population, recovered_rows
from tests.agedp_data.ledger.conftest import Book, everywhere
from tests.agedp_data.ledger.texts import claim

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
