"""What was claimed can be written out again as it stood, and nothing is claimed that was not promised."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta

import pyarrow.parquet as pq
import pytest

from agedp.ledger_session import LedgerSession
from agedp.ledger_transfer import verify_against
from agedp.release_folder.release_folder import open_release
from agedp.release_folder.result_tables import METADATA_KEY
from agedp.run_context import RunContext
from agedp.stages import publish as publishing
from agedp.stages.amend import preview_amendment, record_amendment
from agedp.stages.publish import publish_release, write_folder_as_of, write_folder_of_statement
from agedp_data.errors import ContractChanged, InputError, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.ledger.backends import sqlite

FIRST = date(2026, 3, 1)
LAST = FIRST + timedelta(days=7)
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.5\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 0.5\nepsilon_total = 30\n"
)
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "{}.csv"\n'
SECOND = '[series.second]\nstatistic = "mean"\nclamp_kwh = 40\nshare = 0.5\n'


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    """Three homes with readings of eight days, two curves."""
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=i) for i in range(8)]
    house.london({(home, day, slot): 200 for home in "ABC" for day in days for slot in range(48)})
    house.roster([(home, FIRST, None) for home in "ABC"])
    (house.folder / "slow.csv").write_text("1,0.9\n7,0.8\n")
    (house.folder / "fast.csv").write_text("1,0.1\n7,0.01\n")
    return house


@pytest.fixture
def homes(made, houses, tmp_path):
    return houses(shutil.copytree(made.folder, tmp_path / "house"))


def write(homes, promise, *, rest="", title="Made up", second=False):
    homes.write(FIRST, LAST, mode="live", promise=promise, rest=rest + (SECOND if second else ""))
    text = homes.run_file.read_text().replace('title = "Made up"', f'title = "{title}"')
    homes.run_file.write_text(text.replace("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n") if second else text)


def by_hand(homes, call, day):
    """Do something with the ledger on a day of March 2026, as `agedp publish` and `ledger amend` do."""
    from agedp_data import clock

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "today", lambda: date(2026, 3, day))
        now = clock.now().replace(year=2026, month=3, day=day)
        return call(LedgerSession.open(RunContext.load(homes.run_file, now=now)))


def amended(session):
    return record_amendment(session, preview_amendment(session))


def statements(homes):
    with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}") as ledger:
        return [(one.seq, one.at, one) for one in ledger.statements("homes")]


def test_a_statement_is_dated_after_what_it_tells_and_a_day_shows_the_last_one_by_its_end(homes):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    of_the_fourth = homes.files()
    write(homes, CLASSICAL.format(0.25))
    by_hand(homes, amended, 10)
    by_hand(homes, publish_release, 10)
    write(homes, CLASSICAL.format(0.25), title="Another title")
    by_hand(homes, publish_release, 20)
    assert [at for _, at, _ in statements(homes)] == ["2026-03-04", "2026-03-10", "2026-03-20"]
    for day, title, epsilon in (
        (20, "Another title", "0.25"), (19, "Made up", "0.25"), (10, "Made up", "0.25"), (9, "Made up", "0.5")
    ):  # fmt: skip
        assert by_hand(homes, lambda session, day=day: write_folder_as_of(session, date(2026, 3, day)), 21)
        claim = open_release(homes.folder / "release").statement
        assert (claim["title"], claim["contract"]["promise"]["epsilon_per_day"]) == (title, epsilon), day
    assert homes.files() == of_the_fourth
    with pytest.raises(InputError, match="no statement of 'homes' was published"):
        by_hand(homes, lambda session: write_folder_as_of(session, date(2026, 3, 3)), 21)


def test_a_clock_set_back_dates_no_statement_before_the_one_before_it(homes):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 6))
    write(homes, CLASSICAL.format(0.5), title="Another title")
    by_hand(homes, publish_release, 2)
    assert [at for _, at, _ in statements(homes)] == ["2026-03-06", "2026-03-06"]


def test_every_statement_can_be_written_out_again_and_verified_two_of_one_date_too(homes):
    kept = []
    for title, until in (("One", 4), ("Two", 4), ("Three", 6)):
        write(homes, CLASSICAL.format(0.5), title=title)
        homes.run(today=date(2026, 3, until))
        kept.append(homes.files())
    assert [at for _, at, _ in statements(homes)] == ["2026-03-04", "2026-03-04", "2026-03-06"]
    for (seq, _, _), files in reversed(list(zip(statements(homes), kept, strict=True))):
        assert by_hand(homes, lambda session, seq=seq: write_folder_of_statement(session, seq), 8)
        assert homes.files() == files
        open_release(homes.folder / "release").verify()
        by_hand(homes, lambda session: verify_against(open_release(homes.folder / "release"), session.open_ledger), 8)
    with pytest.raises(InputError, match="no statement of 'homes' has the number 1; `agedp ledger show` lists them"):
        by_hand(homes, lambda session: write_folder_of_statement(session, 1), 8)


@pytest.mark.parametrize("as_of", [False, True])
@pytest.mark.parametrize(
    ("promise", "curve", "key"),
    [
        (AGED, "fast", "model.hash"),
        (AGED.replace("0.5", "0.1"), "slow", "promise.epsilon_per_day"),
        (CLASSICAL.format(0.1), "slow", "promise.notion"),
    ],
)
def test_nothing_is_published_from_a_run_file_that_is_not_the_contract(homes, promise, curve, key, as_of):
    write(homes, AGED, rest=CURVE.format("slow"))
    homes.run(today=date(2026, 3, 4))
    before, said = homes.files(), statements(homes)
    write(homes, promise, rest=CURVE.format(curve))
    call = (lambda session: write_folder_as_of(session, date(2026, 3, 4))) if as_of else publish_release
    with pytest.raises(ContractChanged, match=key) as caught:
        by_hand(homes, call, 5)
    assert caught.value.exit_status == 3
    assert (homes.files(), statements(homes)) == (before, said)


def test_files_of_a_later_release_leave_the_folder_and_nobody_else_s_do(homes):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    before = homes.files()
    write(homes, CLASSICAL.format(0.5), second=True)
    by_hand(homes, amended, 4)
    homes.run(today=date(2026, 3, 6))
    release = homes.folder / "release"
    (release / "notes.parquet").write_text("of somebody else")
    later = (release / "daily_averages_second.parquet").read_bytes()
    by_hand(homes, lambda session: write_folder_as_of(session, date(2026, 3, 5)), 7)
    open_release(release).verify()
    assert homes.files() == {**before, "notes.parquet": b"of somebody else"}
    (release / "daily_averages_second.parquet").write_bytes(later)
    with pytest.raises(InputError, match=r"daily_averages_second.parquet: not listed in SHA256SUMS"):
        open_release(release).verify()


def test_the_zone_of_the_day_is_the_contract_s(homes):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    metadata = pq.read_schema(homes.folder / "release" / "daily_averages.parquet").metadata
    assert json.loads(metadata[METADATA_KEY])["day_zone"] == "GMT"


def test_a_statement_that_tells_other_days_than_its_rows_is_not_written_out(homes):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    before = homes.files()
    with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}") as ledger:
        kept = ledger.statements("homes")[-1]
        claim = json.loads(kept.claim)
        claim["days"]["released"] += 1
        text = json.dumps(claim, sort_keys=True)
        seq = ledger.record(text, population="homes", files=dict(kept.files), software=kept.software, at=kept.at).seq
    with pytest.raises(
        LedgerError,
        match=r"rows differ from this statement: statement\.json and ledger_rows\.jsonl contain different d",
    ):
        by_hand(homes, lambda session: write_folder_of_statement(session, seq), 8)
    assert homes.files() == before


def test_nobody_releases_between_the_rows_of_a_statement_and_its_head(homes, monkeypatch):
    write(homes, CLASSICAL.format(0.5))
    homes.run(today=date(2026, 3, 4))
    write(homes, CLASSICAL.format(0.5), title="Another title")
    stated, refused = publishing.build_statement, []

    def others_try(facts):
        with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}") as other:
            try:
                other.register_model("{}", at="2026-03-05")
            except LedgerError as error:
                refused.append(str(error))
        return stated(facts)

    monkeypatch.setattr(publishing, "build_statement", others_try)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    by_hand(homes, publish_release, 5)
    assert len(refused) == 1
    assert "another process has held it" in refused[0]
    with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}") as ledger:
        verify_against(open_release(homes.folder / "release"), ledger)
        assert not ledger.models()
