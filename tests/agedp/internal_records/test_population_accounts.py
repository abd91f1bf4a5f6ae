"""Every release of readings counts for every population that shares a household, whatever ledger or folder it is of."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
from datetime import date, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agedp.internal_records import population_accounts
from agedp.internal_records.population_accounts import AccountsPlace, HouseholdKey
from agedp.internal_records.roster_history import RosterHistory
from agedp.ledger_session import LedgerSession
from agedp.ledger_transfer import export_ledger, import_ledger, recover
from agedp.pipeline import sanitise
from agedp.release_verification import open_release
from agedp.stages import report
from agedp.stages.amend import amend
from agedp.stages.ingest import read_files
from agedp.stages.plan import RELEASED_ELSEWHERE, plan
from agedp.stages.publish import publish_release
from agedp_data.epsilon import format_epsilon
from agedp_data.errors import AgedpError, ContractChanged, InputError, LedgerBehind, LedgerError, Refused
from agedp_data.ledger.account_database import AccountRows
from agedp_data.ledger.lifecycle import HouseholdAccount
from agedp_data.statement.note_texts import NOTES, odds_factor
from agedp_flows.text.run_text import household_lines, shared_lines
from tests.agedp.conftest import House, ended_in_draw
from tests.agedp.release_folder.forger import forge
from tests.books import forget
from tests.compatibility.fixtures import unpack
from tests.postgresql import PostgreSQL

FIRST = date(2013, 1, 1)
DAYS = [FIRST + timedelta(days=i) for i in range(8)]
HOMES = "ABCDEF"
HALF = 500_000_000
ACCOUNTS, KEY, PLACE = "household_register.sqlite", "household_register.key", "household_register.place"
SHARED = 'household_register = "sqlite:///shared/register.sqlite"'


def after(number: int) -> date:
    """The date of a run that releases this many days."""
    return FIRST + timedelta(days=number)


@pytest.fixture(scope="module")
def filled(houses: type[House], tmp_path_factory: pytest.TempPathFactory) -> House:
    """Six households with readings of eight days."""
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill(DAYS, households=HOMES)
    house.write(FIRST, DAYS[-1])
    session = house.session(today=FIRST)
    with session.run.store.locked():
        read_files(session)  # once for all tests
    return house


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the internal report out, which costs half of a run."""
    monkeypatch.setattr(report, "_write_report", lambda *_: ())


@pytest.fixture
def house(filled: House, houses: type[House], tmp_path: Path) -> House:
    return houses(shutil.copytree(filled.folder, tmp_path / "house"))


def name_population(house: House, name: str, members: str = HOMES, *, mode: str = "archive", more: str = "") -> None:
    """Write a population with ledger and release folder of its own; the confidential folder is shared."""
    aged = "age_days = 1\n" if mode == "rehearsal" else ""
    promise = f'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n{aged}'
    house.roster([(home, FIRST, None) for home in members])
    house.write(FIRST, DAYS[-1], mode=mode, promise=promise)
    house.edit(('"homes"', f'"{name}"\n{more}'), ("ledger.sqlite", f"{name}.sqlite"), ('"release"', f'"{name}"'))


def account(house: House, population: str = "homes", ledger: str = "ledger.sqlite") -> HouseholdAccount:
    with house.ledger(ledger) as opened:
        found = opened.household_account(population)
    assert found is not None
    return found


def halves(house: House, population: str = "homes", ledger: str = "") -> tuple[float, float]:
    """Return the account of a population: about a day and in all, in halves of epsilon."""
    found = account(house, population, ledger or f"{population}.sqlite")
    return found.day / HALF, found.total / HALF


def statement(house: House, name: str) -> dict[str, object]:
    content: dict[str, object] = json.loads((house.folder / name / "statement.json").read_text())
    return content


def test_of_one_population_the_account_equals_day_and_total(house: House) -> None:
    house.roster(
        [("A", FIRST, DAYS[1]), ("B", FIRST, None), ("C", DAYS[1], DAYS[3]), *((n, FIRST, None) for n in "DE")]
    )
    for days in (2, 5):
        house.run(today=after(days))
        stated = statement(house, "release")
        bounds = {bound["name"]: bound["epsilon"] for bound in stated["figures"]}
        assert [bounds[name] for name in ("day", "total")] == ["0.5", str(days / 2).removesuffix(".0")]
        assert [stated["household_account"][name] for name in ("day", "total")] == [bounds["day"], bounds["total"]]
    found = account(house)
    assert (found.day, found.total, found.gaps) == (HALF, 5 * HALF, ())
    text = (house.folder / "release" / "STATEMENT.md").read_text()
    assert "the losses of one household come to at most: of a day 0.5, in all 2.5." in text
    assert f"not known to these accounts since {found.since}" in text
    house.release.verify()


def test_the_accounts_have_digests_and_no_name(house: House) -> None:
    house.run(today=after(2))
    confidential = house.folder / "confidential"
    key, accounts = HouseholdKey((confidential / KEY).read_bytes()), (confidential / ACCOUNTS).read_bytes()
    assert [stat.S_IMODE((confidential / name).stat().st_mode) for name in (KEY, ACCOUNTS)] == [0o600, 0o600]
    for digest in key.households(HOMES):
        assert digest in accounts
        for content in (*house.files().values(), (house.folder / "ledger.sqlite").read_bytes()):
            assert digest not in content
            assert digest.hex().encode() not in content
    for name in ("homes", "household A", "london", "a.csv", str(house.folder)):
        assert name.encode() not in accounts


def test_a_renamed_population_is_counted_and_stated_or_refused(house: House) -> None:
    name_population(house, "one")
    assert RELEASED_ELSEWHERE not in plan(house.session(today=after(4))).notices
    house.run(today=after(4))
    assert not plan(house.session(today=after(5))).notices  # said once, before the first draw
    lines = household_lines(house.run_file)
    assert lines[-1].startswith("Other populations that share a household: not known to these accounts since ")
    name_population(house, "two")
    before = "households of this roster are released elsewhere: 1 population, epsilon 2 about all days of one of them; "
    [line] = shared_lines(house.session(today=after(2)))
    assert line.startswith(before)
    assert RELEASED_ELSEWHERE in plan(house.session(today=after(2))).notices
    summary = house.run(today=after(2))
    assert (halves(house, "one"), halves(house, "two")) == ((1, 4), (2, 6))
    assert shared_lines(summary.session)[0].startswith("Other populations that share a household: 1, known to these")
    assert "  releases: 0.5 about a day, 2 in all" in household_lines(house.run_file)
    name_population(house, "one")
    house.run(today=after(4))  # nothing is due; the account is published anew
    assert halves(house, "one") == (2, 6)
    name_population(house, "three", "EF", more='shared_households = "refuse"')
    with pytest.raises(Refused, match="on 2013-01-01 households are on the roster that another") as caught:
        house.run(today=after(2))
    assert "Households on the roster: 2" in caught.value.private
    assert "roster: 2" not in str(caught.value)
    assert house.rows(name="three.sqlite") == ()


def test_refusing_shared_households_tightens_and_never_loosens(house: House) -> None:
    refuse = 'shared_households = "refuse"'
    name_population(house, "one", "ABC", more=refuse)
    house.run(today=after(1))
    name_population(house, "one", "ABC")
    with pytest.raises(ContractChanged, match="shared_households"):
        house.run(today=after(2))
    with pytest.raises(Refused, match="households that are counted elsewhere too would be released"):
        amend(house.context(today=after(2)))
    name_population(house, "two", "DEF")
    house.run(today=after(1))
    name_population(house, "two", "DEF", more=refuse)
    amend(house.context(today=after(2)))
    house.run(today=after(2))
    name_population(house, "three", "CD")
    house.run(today=after(1))
    name_population(house, "three", "CD", more=refuse)
    with pytest.raises(Refused, match="are counted in another population, ledger or rehearsal already"):
        amend(house.context(today=after(2)))
    name_population(house, "two", "DEF", more=refuse)
    with pytest.raises(Refused, match="2013-01-03"):
        house.run(today=after(3))


def test_refusal_is_by_the_days_of_each_household(house: House) -> None:
    name_population(house, "one", "ABC")
    house.run(today=after(1))
    name_population(house, "two", "CDE", more='shared_households = "refuse"')
    with pytest.raises(Refused, match="2013-01-01"):
        house.run(today=after(1))
    house.roster([("C", DAYS[2], None), ("D", FIRST, None), ("E", FIRST, None)])
    house.run(today=after(2))  # C is taken off these days, and nothing of the refused run was entered
    assert halves(house, "two") == (1, 2)
    with pytest.raises(Refused, match="2013-01-03"):
        house.run(today=after(3))


def test_a_population_counts_each_that_shares_a_household(house: House) -> None:
    for name, members, days in (("all", HOMES, 3), ("left", "ABC", 2), ("right", "DEF", 5), ("merged", "CD", 1)):
        name_population(house, name, members)
        house.run(today=after(days))
    assert halves(house, "left") == (2, 5)
    assert halves(house, "right") == (2, 8)
    assert halves(house, "merged") == (4, 11)  # all, left and right


def test_a_household_that_leaves_on_the_first_released_day_is_counted(house: House) -> None:
    name_population(house, "one")
    house.roster([("A", FIRST, FIRST), *((home, FIRST, None) for home in "BCD")])
    house.run(today=after(2))
    name_population(house, "two", "AEF")
    house.run(today=after(1))
    assert halves(house, "two") == (2, 3)


def test_folders_share_accounts_in_a_file_and_the_key_beside_it(house: House) -> None:
    (house.folder / "shared").mkdir()
    for name in ("one", "two"):
        name_population(house, name)
        house.edit(('confidential = "confidential"', f'confidential = "{name}-confidential"\n{SHARED}'))
        house.run(today=after(2))
    assert halves(house, "two") == (2, 4)
    assert {path.name for path in (house.folder / "shared").iterdir()} >= {KEY, "register.sqlite"}
    (house.folder / "shared" / KEY).unlink()
    with pytest.raises(LedgerError, match="the key of the household register is not there"):
        house.run(today=after(3))


def test_one_file_under_two_rules_for_ids_shares_all_households(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name_population(house, "one", "AB")
    house.run(today=after(2))
    name_population(house, "two", "CD")
    house.run(today=after(2))
    assert halves(house, "two") == (1, 2)  # the same rule: their digests tell that they share none
    rule = population_accounts.HouseholdKey.file
    monkeypatch.setattr(HouseholdKey, "file", lambda key, text: rule(key, text.replace("london", "long")))
    name_population(house, "refusing", "EF", more='shared_households = "refuse"')
    with pytest.raises(Refused, match="on 2013-01-01 households are on the roster that another"):
        house.run(today=after(1))  # E and F are counted nowhere by their digests
    assert house.rows(name="refusing.sqlite") == ()
    name_population(house, "three", "DE")
    house.run(today=after(1))
    assert halves(house, "three") == (3, 5)


def test_each_rehearsal_over_readings_is_a_population_of_its_own(house: House) -> None:
    name_population(house, "try", mode="rehearsal")
    for number in (1, 2, 3):  # the same contract on the same date: the same first row of the ledger
        house.run(as_of=after(3))
        assert halves(house, "try") == (number, 2 * number)
        (house.folder / "try.sqlite").unlink()
        shutil.rmtree(house.folder / "try")
    name_population(house, "homes")
    house.run(today=after(2))
    assert halves(house) == (4, 8)


def test_a_moved_or_recovered_ledger_counts_once(house: House) -> None:
    house.run(today=after(2))
    shutil.copytree(house.folder / "release", house.folder / "older")
    house.run(today=after(3))
    export_ledger(f"sqlite:///{house.folder / 'ledger.sqlite'}", house.folder / "rows", closed_at=after(3))
    import_ledger(house.folder / "rows", f"sqlite:///{house.folder / 'again0.sqlite'}")
    house.edit(("ledger.sqlite", "again0.sqlite"))
    for number in (1, 2):  # a recovered ledger is lost as well
        house.run(today=after(3 + number))
        assert halves(house, ledger=f"again{number - 1}.sqlite") == (1, 3 + number)
        recover(house.folder / "release", f"sqlite:///{house.folder / f'again{number}.sqlite'}", at=after(4))
        house.edit((f"again{number - 1}.sqlite", f"again{number}.sqlite"))
    house.run(today=after(6))
    assert halves(house, ledger="again2.sqlite") == (1, 6)
    recover(house.folder / "older", f"sqlite:///{house.folder / 'older.sqlite'}", at=after(4))
    shutil.rmtree(house.folder / "release")
    house.edit(("again2.sqlite", "older.sqlite"))
    forget(house.folder / "confidential", "released_rosters")
    with pytest.raises(LedgerBehind, match="2013-01-03 of 'homes' was released from another ledger"):
        house.run(today=after(7))


def test_another_ledger_draws_no_released_day_whatever_file_is_gone(house: House) -> None:
    house.run(today=after(3))
    house.edit(("ledger.sqlite", "other.sqlite"), ('"release"', '"elsewhere"'))
    for name in ("books.sqlite", "sums.parquet", ACCOUNTS, KEY):
        kept = (house.folder / "confidential" / name).rename(house.folder / "kept")
        with pytest.raises(LedgerError):
            house.run(today=after(3))
        kept.rename(house.folder / "confidential" / name)
    assert not (house.folder / "other.sqlite").exists()


def without_accounts(patch: pytest.MonkeyPatch) -> None:
    """Let runs be those of agedp 0.1, which had none."""
    patch.setattr(LedgerSession, "accounts", property(lambda _: None))


def test_a_folder_of_0_1_goes_on_and_says_what_is_not_known(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        without_accounts(patch)
        name_population(house, "try", mode="rehearsal")
        house.run(as_of=after(3))
        name_population(house, "other", "AB")
        house.run(today=after(2))
        name_population(house, "homes")
        house.run(today=after(3))
    house.run(today=after(4))
    assert halves(house) == (1, 4)
    assert account(house, ledger="homes.sqlite").gaps == ("rehearsals", "releases")
    notes = statement(house, "homes")["notes"]
    assert any(note.startswith("Rehearsals took place beside this release before") for note in notes)
    name_population(house, "other", "AB")
    house.run(today=after(3))
    assert halves(house, "other") == (2, 7)
    name_population(house, "new", "AB")
    house.run(today=after(1))
    assert account(house, "new", "new.sqlite").gaps == ()


def test_another_population_of_the_ledger_is_a_known_gap_in_another_folder(house: House) -> None:
    name_population(house, "one")
    house.run(today=after(2))
    name_population(house, "two")
    house.edit(("two.sqlite", "one.sqlite"), ('confidential = "confidential"', 'confidential = "confidential2"'))
    house.run(today=after(2))
    assert account(house, "two", "one.sqlite").gaps == ("releases",)
    across = {bound["name"]: bound["epsilon"] for bound in statement(house, "two")["figures"]}
    assert across["total with the other populations"] == "2"
    assert NOTES.overlap in statement(house, "two")["notes"]


@pytest.mark.parametrize("name", ["day", "total"])
def test_no_stated_loss_of_all_populations_is_below_that_of_one(house: House, name: str) -> None:
    """The rows of a folder are those of its population alone: what they give is the least that all of them come to."""
    name_population(house, "one")
    house.run(today=after(2))
    name_population(house, "two")
    house.edit(("two.sqlite", "one.sqlite"), ('confidential = "confidential"', 'confidential = "confidential2"'))
    house.run(today=after(2))
    own = {"day": HALF, "total": 2 * HALF}[name]
    for lowered, message in ((own, "report.html differs"), (own - 1, "is below that of this population")):

        def lower(content: dict[str, Any], lowered: int = lowered) -> None:
            [bound] = [of for of in content["figures"] if of["name"] == f"{name} with the other populations"]
            bound.update(epsilon=format_epsilon(lowered), factor=odds_factor(lowered))

        forge(house.folder / "two", lower)
        with pytest.raises(InputError, match=message):
            open_release(house.folder / "two").verify()


def test_accounts_that_are_lost_begin_anew_and_the_statement_says_so(house: House) -> None:
    name_population(house, "other", "AB")
    house.run(today=after(2))
    name_population(house, "homes")
    house.run(today=after(3))
    assert halves(house) == (2, 5)
    (house.folder / "confidential" / ACCOUNTS).unlink()
    house.run(today=after(4))
    found = account(house, ledger="homes.sqlite")
    assert (halves(house), found.gaps) == ((2, 6), ("rebuilt",))
    notes = statement(house, "homes")["notes"]
    assert any(note.startswith("The accounts of populations that counted this one were lost") for note in notes)
    name_population(house, "other", "AB")
    house.run(today=after(3))
    assert halves(house, "other") == (2 + 1, 3 + 4 + 2)  # itself, homes, and what homes had recorded of others
    (house.folder / "confidential" / KEY).unlink()
    with pytest.raises(LedgerError, match="the key of the household register is not there"):
        house.session(today=after(5)) and house.run(today=after(5))


def columns_of(path: Path) -> list[tuple[str, str | None]]:
    """Return each table, to be emptied, and each of its columns, to be lowered."""
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            (table, column)
            for table in tables
            for column in (None, *(row[1] for row in connection.execute(f"PRAGMA table_info({table})")))
        ]


def test_no_edit_of_the_accounts_makes_a_stated_loss_smaller(house: House, tmp_path: Path) -> None:
    for name, days in (("other", 3), ("homes", 2)):
        name_population(house, name)
        house.run(today=after(days))
    assert halves(house) == (2, 5)
    attacks = columns_of(house.folder / "confidential" / ACCOUNTS)
    assert len(attacks) >= 4 + 2 + 7 + 4 + 3
    for number, (table, column) in enumerate(attacks):
        attacked = House(shutil.copytree(house.folder, tmp_path / f"attacked{number}"))
        with sqlite3.connect(attacked.folder / "confidential" / ACCOUNTS) as connection:
            if column is None:
                connection.execute(f"DELETE FROM {table}")
            else:
                connection.execute(f"UPDATE OR REPLACE {table} SET {column} = min({column}, 0)")
        connection.close()
        try:
            attacked.run(today=after(4))
        except LedgerError:
            assert halves(attacked) == (2, 5), (table, column)  # refused: nothing is drawn, nothing stated
            assert len(attacked.rows(name="homes.sqlite")) == 2
            continue
        day, total = halves(attacked)
        assert day >= 2, (table, column)
        assert total >= 7, (table, column)


def test_a_killed_run_leaves_its_charge_and_the_next_one_computes_the_same(house: House) -> None:
    with ended_in_draw(3), pytest.MonkeyPatch.context() as patch:
        patch.setattr(RosterHistory, "record_rosters", lambda *_, **__: None)
        patch.setattr("agedp.stages.release.DAYS_PER_TRANSACTION", 2)
        house.run(today=after(6))
    assert len(house.rows()) == 2
    session = house.session(today=after(6))
    assert session.accounts is not None
    assert session.accounts.counted_elsewhere(session.ledger) == ()
    overview = session.accounts.overview(session.open_ledger)
    assert overview is not None
    assert (overview.own.charged_day, overview.own.charged_total) == (HALF, 4 * HALF)  # two drawn, two charged
    house.run(today=after(6))
    assert halves(house, ledger="ledger.sqlite") == (1, 6)


class Ended(Exception):
    """A run that is killed."""


def killed(*_: object, **__: object) -> None:
    raise Ended


@pytest.mark.parametrize(
    "path", ["agedp_data.ledger.account_database.AccountDatabase.create", "agedp.stages.publish.record_account"]
)
def test_a_run_killed_before_and_after_the_draws_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(path, killed)
        with pytest.raises(Ended):
            house.run(today=after(2))
    publish_release(house.session(today=after(2))) if house.rows() else None
    house.run(today=after(2))
    assert halves(house, ledger="ledger.sqlite") == (1, 2)
    assert len(house.rows()) == 2


def test_what_is_published_between_two_runs_opens_no_accounts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name_population(house, "other")
    house.run(today=after(3))
    name_population(house, "homes")
    house.run(today=after(2))
    with monkeypatch.context() as patch:
        patch.setattr("agedp.stages.publish.record_account", killed)
        with pytest.raises(Ended):
            house.run(today=after(3))
    monkeypatch.setattr(AccountsPlace, "open", killed)
    publish_release(house.session(today=after(3)))
    assert halves(house) == (2, 6)  # what the ledger has recorded of others, and three days of its own
    open_release(house.folder / "homes").verify()


def test_a_full_disk_while_charging_draws_nothing(house: House) -> None:
    house.run(today=after(1))
    accounts = house.folder / "confidential" / ACCOUNTS
    with sqlite3.connect(accounts) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON population BEGIN SELECT RAISE(ABORT, 'full'); END")
    connection.close()
    with pytest.raises(LedgerError, match="the household register: "):
        house.run(today=after(3))
    assert len(house.rows()) == 1


def test_two_populations_released_at_once_are_both_counted(house: House) -> None:
    for name in ("one", "two"):
        name_population(house, name)
        shutil.copy(house.run_file, house.folder / f"{name}.toml")
    errors: list[BaseException] = []

    def release(name: str) -> None:
        try:
            sanitise(house.folder / f"{name}.toml")
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=release, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (2, 16) in [halves(house, name) for name in ("one", "two")]  # the later one


def test_a_register_of_0_2_without_which_nothing_is_known_must_be_there(house: House) -> None:
    house.run(today=after(2))
    with house.ledger() as ledger:
        found = ledger.household_account("homes")
        assert found is not None
        old = HouseholdAccount("homes", found.day, found.total, found.since)
        ledger.record_account(old, at=after(2))
    (house.folder / "confidential" / ACCOUNTS).unlink()
    with pytest.raises(LedgerError, match=r"that agedp 0\.2 kept of this population is not there"):
        house.run(today=after(3))
    assert len(house.rows()) == 2


@pytest.mark.parametrize("place", ["user", "home", "empty", "foreign", "read-only", "missing"])
def test_the_default_place_is_the_users_own_or_the_confidential_folder(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500 if place == "read-only" else 0o700)
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data") if place == "user" else "")
    monkeypatch.setenv("HOME", "" if place == "empty" else str(tmp_path / "none" if place == "missing" else home))
    monkeypatch.setattr(population_accounts, "_is_permanent", lambda _: True)
    if place == "foreign":
        monkeypatch.setattr("os.geteuid", lambda: home.stat().st_uid + 1)
    house.run(today=after(2))
    folder = {"user": home / "data" / "agedp", "home": home / ".local" / "share" / "agedp"}.get(place)
    expected = folder or house.folder / "confidential"
    assert (expected / ACCOUNTS).exists()
    assert (expected / KEY).exists()
    assert (house.folder / "confidential" / PLACE).exists() == (folder is not None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    house.run(today=after(3))  # a population stays where it began
    assert not (tmp_path / "elsewhere" / "agedp" / ACCOUNTS).exists()
    assert halves(house, ledger="ledger.sqlite") == (1, 3)
    assert account(house).gaps == ()


def test_a_file_system_in_memory_or_of_a_container_is_not_permanent() -> None:
    assert population_accounts._is_permanent(Path("/"))
    assert not population_accounts._is_permanent(Path("/dev/shm"))  # noqa: S108


def test_a_release_is_the_same_without_and_with_foreign_accounts(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for data in (tmp_path / "first", tmp_path / "second", tmp_path / "second", None):
        copy = House(shutil.copytree(house.folder, tmp_path / f"copy{len(files)}"))
        if data is not None:
            monkeypatch.setenv("XDG_DATA_HOME", str(data))
        name = "other" if len(files) == 1 else "homes"
        name_population(copy, name, "DEF" if len(files) == 1 else "ABC")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("agedp_data.mechanisms.discrete_laplace", lambda values, **_: [int(v) for v in values])
            copy.run(today=after(2))
        files.append({path.name: path.read_bytes() for path in (copy.folder / name).iterdir() if path.is_file()})
        if data is None:
            assert (copy.folder / "confidential" / ACCOUNTS).exists()
        monkeypatch.undo()
        monkeypatch.setattr(report, "_write_report", lambda *_: ())
    assert files[0] == files[2] == files[3]


def test_machines_share_accounts_by_their_key(house: House, houses: type[House], postgresql: PostgreSQL) -> None:
    database = postgresql.database()
    try:
        url, second = postgresql.url(database), houses(shutil.copytree(house.folder, house.folder.with_name("second")))
        for machine in (house, second):
            machine.edit(("ledger =", f'household_register = "{url}"\nledger ='))
        second.edit(('"homes"', '"again"'))
        house.run(today=after(3))
        with pytest.raises(LedgerError, match="the key of the household register is not there"):
            second.run(today=after(2))
        shutil.copy(house.folder / "confidential" / KEY, second.folder / "confidential" / KEY)
        second.run(today=after(2))
        assert account(second, "again").total == 5 * HALF
        assert not (second.folder / "confidential" / ACCOUNTS).exists()
        (second.folder / "confidential" / KEY).write_bytes(bytes(32))
        with pytest.raises(LedgerError, match="was filled with another key"):
            second.run(today=after(3))
    finally:
        postgresql.drop(database)


def test_the_accounts_are_no_ledger(house: House) -> None:
    shutil.copy(house.folder / "roster.csv", house.folder / "register.sqlite")
    house.edit(("ledger =", 'household_register = "sqlite:///register.sqlite"\nledger ='))
    with pytest.raises(LedgerError, match="not a household register") as caught:
        house.run(today=after(1))
    assert "register.sqlite" not in str(caught.value)
    house.edit(("register.sqlite", "ledger.sqlite"))
    with pytest.raises(AgedpError, match="is the ledger; name a file, or a schema, of its own"):
        house.context()


def test_a_register_of_0_2_is_taken_over_in_one_step(tmp_path: Path) -> None:
    unpack("0.2/shared-households", tmp_path / "world")
    path = tmp_path / "world" / "shared" / "register.sqlite"
    database, key = AccountsPlace.of(tmp_path / "none", f"sqlite:///{path}").open_or_create()
    with sqlite3.connect(path) as connection:
        before = connection.execute(
            "SELECT min(first_day), max(last_day), sum(loss) FROM draw GROUP BY source ORDER BY source"
        ).fetchall()
        households = connection.execute("SELECT digest FROM household").fetchall()
    with pytest.raises(Ended):
        database.write(killed, seal=key.seal)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT content FROM register_meta WHERE name = 'version'").fetchall() == [("1",)]
        assert len(connection.execute("SELECT * FROM draw").fetchall()) > 0
    populations = database.write(AccountRows.populations, seal=key.seal)
    assert [(of.first_day, of.last_day, of.charged_total) for of in populations] == before
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT content FROM register_meta WHERE name = 'version'").fetchall() == [("2",)]
        assert {*connection.execute("SELECT DISTINCT digest FROM member")} == {*households}
        for table in ("source", "draw", "membership", "household"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
    assert len(database.write(lambda rows: rows.sharing(populations[0]), seal=key.seal)) == 1


def test_a_running_population_is_not_moved_to_accounts_that_do_not_know_it(house: House) -> None:
    house.run(today=after(2))
    house.edit(("ledger =", f"{SHARED}\nledger ="))
    (house.folder / "shared").mkdir()
    with pytest.raises(LedgerError, match="names accounts that do not know this population"):
        house.session(today=after(3))
    for name, moved in ((ACCOUNTS, "register.sqlite"), (KEY, KEY)):
        (house.folder / "confidential" / name).rename(house.folder / "shared" / moved)
    house.run(today=after(3))
    assert (halves(house, ledger="ledger.sqlite"), account(house).gaps) == ((1, 3), ())
