"""Stored statements are written again as of a date or by number, and only what the contract promises is published."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from agedp.ledger_transfer import verify_against
from agedp.stages import publish as publishing
from agedp.stages.amend import preview_amendment, record_amendment
from agedp.stages.publish import publish_release, write_folder_as_of, write_folder_of_statement
from agedp_data import clock
from agedp_data.errors import ContractChanged, InputError, LedgerError
from agedp_data.ledger.backends import sqlite

FIRST = date(2026, 3, 1)
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.5\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 0.5\nepsilon_total = 30\n"
)
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "{}.csv"\n'


@pytest.fixture
def homes(house):
    house.fill([FIRST + timedelta(days=i) for i in range(8)])
    (house.folder / "slow.csv").write_text("1,0.9\n7,0.8\n")
    (house.folder / "fast.csv").write_text("1,0.1\n7,0.01\n")
    return house


def write(homes, promise, *, rest="", title="Made up"):
    homes.write(FIRST, FIRST + timedelta(days=7), mode="live", promise=promise, rest=rest)
    homes.edit(('title = "Made up"', f'title = "{title}"'))


def on_day(homes, day, call):
    """Call with the session of a day of March 2026."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "today", lambda: date(2026, 3, day))
        return call(homes.session(today=date(2026, 3, day)))


def amend(session):
    record_amendment(session, preview_amendment(session))


def statements(homes):
    with homes.ledger() as ledger:
        return [(one.seq, one.at) for one in ledger.statements("homes")]


def test_the_last_statement_by_the_end_of_a_date_is_written_again(homes):
    published = []
    for title, until in (("One", 4), ("Two", 4), ("Three", 6)):
        write(homes, CLASSICAL.format(0.5), title=title)
        homes.run(today=date(2026, 3, until))
        published.append(homes.files())
    write(homes, CLASSICAL.format(0.25), title="Four")
    on_day(homes, 10, amend)
    on_day(homes, 10, publish_release)
    on_day(homes, 2, publish_release)  # a clock that was set back dates no statement before the one before it
    published.append(homes.files())
    assert [at[-2:] for _, at in statements(homes)] == ["04", "04", "06", "10"]
    for (seq, _), files in reversed(list(zip(statements(homes), published, strict=True))):
        assert on_day(homes, 21, lambda session, seq=seq: write_folder_of_statement(session, seq))
        assert homes.files() == files
        homes.release.verify()
        with homes.ledger() as ledger:
            verify_against(homes.release, ledger)
    for day, files in ((10, published[3]), (9, published[2]), (4, published[1])):
        assert on_day(homes, 21, lambda session, day=day: write_folder_as_of(session, date(2026, 3, day)))
        assert homes.files() == files
    for call, message in (
        (lambda session: write_folder_as_of(session, date(2026, 3, 3)), "no statement of 'homes' was published by"),
        (lambda session: write_folder_of_statement(session, 1), "no statement of 'homes' has the number 1; `agedp le"),
    ):
        with pytest.raises(InputError, match=message):
            on_day(homes, 21, call)


@pytest.mark.parametrize(
    ("promise", "curve", "key"),
    [
        (AGED, "fast", "model.hash"),
        (AGED.replace("0.5", "0.1"), "slow", "promise.epsilon_per_day"),
        (CLASSICAL.format(0.1), "slow", "promise.notion"),
    ],
)
def test_nothing_is_published_from_a_differing_run_file(homes, promise, curve, key):
    write(homes, AGED, rest=CURVE.format("slow"))
    homes.run(today=date(2026, 3, 4))
    before = homes.files(), statements(homes)
    write(homes, promise, rest=CURVE.format(curve))
    for call in (publish_release, lambda session: write_folder_as_of(session, date(2026, 3, 4))):
        with pytest.raises(ContractChanged, match=key) as refused:
            on_day(homes, 5, call)
        assert refused.value.exit_status == 3
    assert (homes.files(), statements(homes)) == before


def test_a_statement_that_differs_from_its_rows_is_not_written_again(homes):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    before = homes.files()
    with homes.ledger() as ledger:
        stored = ledger.statements("homes")[-1]
        statement = json.loads(stored.claim)
        statement["days"]["released"] += 1
        files, text = dict(stored.files), json.dumps(statement, sort_keys=True)
        seq = ledger.record(text, population="homes", files=files, software=stored.software, at=stored.at).seq
    with pytest.raises(LedgerError, match=r"rows differ from this statement: .* contain different days or losses"):
        on_day(homes, 8, lambda session: write_folder_of_statement(session, seq))
    assert homes.files() == before


def test_nothing_is_stored_between_rows_and_head(homes, monkeypatch):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    write(homes, CLASSICAL.format(0.5), title="Another title")
    build = publishing.build_statement

    def build_while_another_process_writes(facts):
        with homes.ledger() as other, pytest.raises(LedgerError, match="another process has held it"):
            other.register_model("{}", at="2026-03-05")
        return build(facts)

    monkeypatch.setattr(publishing, "build_statement", build_while_another_process_writes)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    on_day(homes, 5, publish_release)
    with homes.ledger() as ledger:
        verify_against(homes.release, ledger)
        assert not ledger.models()
