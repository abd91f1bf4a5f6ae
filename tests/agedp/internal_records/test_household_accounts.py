"""Every release of readings is counted for the same households, whatever population, ledger or rehearsal it is of."""

from __future__ import annotations

import json
import shutil
import stat
from datetime import date, timedelta
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from agedp.internal_records.household_accounts import HouseholdAccounts
from agedp.internal_records.register_members import HouseholdKey, RegisterPlace
from agedp.internal_records.roster_history import RosterHistory
from agedp.ledger_session import LedgerSession
from agedp.ledger_transfer import export_ledger, import_ledger, recover
from agedp.pipeline import sanitise
from agedp.stages import report
from agedp.stages.amend import amend
from agedp.stages.ingest import read_files
from agedp_data import mechanisms
from agedp_data.errors import AgedpError, ContractChanged, LedgerBehind, LedgerError, Refused
from agedp_data.ledger import Ledger
from agedp_data.ledger.lifecycle import CalibrationDraw, HouseholdAccount
from agedp_data.roster import read_roster
from agedp_data.statement.note_texts import NOTES
from agedp_flows.text.run_text import household_lines, rebuild_register, shared_lines
from tests.agedp.conftest import House, ended_in_draw
from tests.books import forget
from tests.postgresql import PostgreSQL

FIRST = date(2013, 1, 1)
DAYS = [FIRST + timedelta(days=i) for i in range(8)]
HOMES = "ABCDEF"
HALF = 500_000_000
REGISTER, KEY = "household_register.sqlite", "household_register.key"
SHARED = 'household_register = "sqlite:///shared/register.sqlite"'


def after(number: int) -> date:
    """The date of a run that releases this many days."""
    return FIRST + timedelta(days=number)


@pytest.fixture(scope="module")
def filled(houses: type[House], tmp_path_factory: pytest.TempPathFactory) -> House:
    """Six homes with readings of eight days."""
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


def sums(house: House, population: str) -> tuple[int, int]:
    """Return the account of a population in its own ledger: of a day, in all."""
    found = account(house, population, f"{population}.sqlite")
    return found.day, found.total


def test_of_one_population_the_account_equals_day_and_total(house: House) -> None:
    house.roster(
        [("A", FIRST, DAYS[1]), ("B", FIRST, None), ("C", DAYS[1], DAYS[3]), *((n, FIRST, None) for n in "DE")]
    )
    for days in (2, 5):
        house.run(today=after(days))
        statement = json.loads((house.folder / "release" / "statement.json").read_text())
        stated = {bound["name"]: bound["epsilon"] for bound in statement["figures"]}
        assert [stated[name] for name in ("day", "total")] == ["0.5", str(days / 2).removesuffix(".0")]
        assert [statement["household_account"][name] for name in ("day", "total")] == [stated["day"], stated["total"]]
    found = account(house)
    assert (found.day, found.total, found.gaps) == (HALF, 5 * HALF, ())
    text = (house.folder / "release" / "STATEMENT.md").read_text()
    assert "the losses of one household come to at most: of a day 0.5, in all 2.5." in text
    assert "cannot see shared households" not in text
    house.release.verify()


def test_the_folder_has_no_digest_and_the_register_no_name(house: House) -> None:
    house.run(today=after(2))
    confidential = house.folder / "confidential"
    key, register = HouseholdKey((confidential / KEY).read_bytes()), (confidential / REGISTER).read_bytes()
    assert [stat.S_IMODE((confidential / name).stat().st_mode) for name in (KEY, REGISTER)] == [0o600, 0o600]
    assert len(key.secret) == 32
    for home in HOMES:
        digest = key.household(home)
        assert digest in register
        for content in (*house.files().values(), (house.folder / "ledger.sqlite").read_bytes()):
            assert digest not in content
            assert digest.hex().encode() not in content
    house.roster([(f"household {home}", FIRST, None) for home in HOMES])
    (house.folder / "ledger.sqlite").unlink()
    assert b"household A" not in register


def test_a_renamed_population_is_counted_and_said_or_refused(house: House) -> None:
    name_population(house, "one")
    house.run(today=after(4))
    name_population(house, "two")
    summary = house.run(today=after(2))
    assert (sums(house, "one"), sums(house, "two")) == ((HALF, 4 * HALF), (2 * HALF, 6 * HALF))
    assert shared_lines(summary.session)[0].startswith("6 of 6 households are counted elsewhere too; largest loss")
    lines = household_lines(house.run_file)
    assert "Households that are counted elsewhere too: 6" in lines
    assert "  6 in population 'one' (releases)" in lines
    name_population(house, "one")
    house.run(today=after(4))  # nothing is due; the account is published anew
    assert sums(house, "one") == (2 * HALF, 6 * HALF)
    statement = json.loads((house.folder / "one" / "statement.json").read_text())
    assert "6 in" not in json.dumps(statement["household_account"])
    name_population(house, "three", "EF", more='shared_households = "refuse"')
    with pytest.raises(Refused, match="on 2013-01-01 households are on the roster that another") as caught:
        house.run(today=after(2))
    assert "2 (2 in 'one' (release), 2 in 'two' (release))" in caught.value.private
    assert "2 in" not in str(caught.value)
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


def test_split_and_merged_populations_add_up_by_household(house: House) -> None:
    name_population(house, "all")
    house.run(today=after(3))
    for name, members, days in (("left", "ABC", 2), ("right", "DEF", 5)):
        name_population(house, name, members)
        house.run(today=after(days))
    name_population(house, "merged", "CD")
    house.run(today=after(1))
    assert sums(house, "left") == (2 * HALF, 5 * HALF)
    assert sums(house, "right") == (2 * HALF, 8 * HALF)
    assert sums(house, "merged") == (3 * HALF, 9 * HALF)


def test_households_that_are_taken_off_a_refused_roster_are_free(house: House) -> None:
    name_population(house, "one", "ABC")
    house.run(today=after(1))
    name_population(house, "two", "CDE", more='shared_households = "refuse"')
    with pytest.raises(Refused, match="2013-01-01"):
        house.run(today=after(1))
    name_population(house, "two", "DE", more='shared_households = "refuse"')
    house.run(today=after(1))
    assert sums(house, "two") == (HALF, HALF)


def test_another_population_of_the_ledger_is_a_known_gap_in_another_folder(house: House) -> None:
    name_population(house, "one")
    house.run(today=after(2))
    name_population(house, "two")
    house.edit(("two.sqlite", "one.sqlite"), ('confidential = "confidential"', 'confidential = "confidential2"'))
    house.run(today=after(2))
    assert account(house, "two", "one.sqlite").gaps == ("releases",)
    statement = json.loads((house.folder / "two" / "statement.json").read_text())
    across = {bound["name"]: bound["epsilon"] for bound in statement["figures"]}
    assert across["total with the other populations"] == "2"
    assert NOTES.overlap in statement["notes"]


def test_folders_share_a_register_in_a_file_and_the_key_beside_it(house: House) -> None:
    (house.folder / "shared").mkdir()
    for name in ("one", "two"):
        name_population(house, name)
        house.edit(('confidential = "confidential"', f'confidential = "{name}-confidential"\n{SHARED}'))
        house.run(today=after(2))
    assert sums(house, "two") == (2 * HALF, 4 * HALF)
    assert {path.name for path in (house.folder / "shared").iterdir()} >= {KEY, "register.sqlite"}
    (house.folder / "shared" / KEY).unlink()
    with pytest.raises(LedgerError, match="the key of the household register is not there"):
        house.run(today=after(3))


@pytest.mark.parametrize("same_values", [False, True])
def test_each_rehearsal_over_readings_is_a_draw_of_its_own(
    house: House, monkeypatch: pytest.MonkeyPatch, *, same_values: bool
) -> None:
    if same_values:  # equal rows in all ledgers
        monkeypatch.setattr(mechanisms, "discrete_laplace", lambda values, **_: np.asarray(values))
    name_population(house, "try", mode="rehearsal")
    for number in (1, 2, 3):  # the same contract on the same date: the same first row of the ledger
        house.run(as_of=after(3))
        found = account(house, "try", "try.sqlite")
        assert (found.day, found.total) == (number * HALF, number * 2 * HALF)
        (house.folder / "try.sqlite").unlink()
        shutil.rmtree(house.folder / "try")
    name_population(house, "homes")
    house.run(today=after(2))
    assert sums(house, "homes") == (4 * HALF, 8 * HALF)


def test_a_rehearsal_that_shares_no_household_is_not_repeated(house: House) -> None:
    name_population(house, "try", mode="rehearsal", more='shared_households = "refuse"')
    house.run(as_of=after(3))
    (house.folder / "try.sqlite").unlink()
    shutil.rmtree(house.folder / "try")
    with pytest.raises(Refused, match="were rehearsed on readings in another ledger"):
        house.run(as_of=after(3))


def test_a_moved_ledger_counts_once(house: House) -> None:
    house.run(today=after(3))
    export_ledger(f"sqlite:///{house.folder / 'ledger.sqlite'}", house.folder / "rows", closed_at=after(3))
    import_ledger(house.folder / "rows", f"sqlite:///{house.folder / 'moved.sqlite'}")
    house.edit(("ledger.sqlite", "moved.sqlite"))
    house.run(today=after(5))
    assert account(house, ledger="moved.sqlite").total == 5 * HALF


def test_a_recovered_ledger_counts_once_and_what_it_lost_stays_charged(house: House) -> None:
    house.run(today=after(2))
    shutil.copytree(house.folder / "release", house.folder / "older")
    house.run(today=after(4))
    for number, folder in enumerate(("release", "release"), 1):  # a recovered ledger is lost as well
        recover(house.folder / folder, f"sqlite:///{house.folder / f'again{number}.sqlite'}", at=after(4))
        house.edit((f"again{number - 1}.sqlite" if number > 1 else "ledger.sqlite", f"again{number}.sqlite"))
        house.run(today=after(4 + number))
        assert account(house, ledger=f"again{number}.sqlite").total == (4 + number) * HALF
    recover(house.folder / "older", f"sqlite:///{house.folder / 'older.sqlite'}", at=after(4))
    shutil.rmtree(house.folder / "release")
    house.edit(("again2.sqlite", "older.sqlite"))
    forget(house.folder / "confidential", "released_rosters")
    with pytest.raises(LedgerBehind, match="2013-01-03 of 'homes' was released from another ledger"):
        house.run(today=after(7))
    house.edit(('name = "homes"', 'name = "others"'))
    house.run(today=after(2))
    assert account(house, "others", "older.sqlite").total == 8 * HALF


def test_without_any_one_file_nothing_is_drawn_a_second_time(house: House) -> None:
    house.run(today=after(3))
    before, confidential = house.rows(), house.folder / "confidential"
    for path, text in (
        (house.folder / "ledger.sqlite", "published from a ledger that is not there"),
        (confidential / REGISTER, "the household register is not there, although it counted releases"),
        (confidential / KEY, "the key of the household register is not there"),
    ):
        kept = path.rename(house.folder / "kept")
        with pytest.raises(LedgerError, match=text):
            house.session(today=after(4))
        kept.rename(path)
    for number, name in enumerate(("books.sqlite", "sums.parquet"), 4):
        (confidential / name).unlink()
        house.run(today=after(number))
    shutil.rmtree(house.folder / "release")
    house.run(today=after(6))
    assert house.rows()[:3] == before
    assert account(house).total == 6 * HALF


def test_another_ledger_draws_no_released_day_whatever_file_is_gone(house: House) -> None:
    house.run(today=after(3))
    house.edit(("ledger.sqlite", "other.sqlite"), ('"release"', '"elsewhere"'))
    for name in ("books.sqlite", "sums.parquet", REGISTER, KEY):
        kept = (house.folder / "confidential" / name).rename(house.folder / "kept")
        with pytest.raises(LedgerError):
            house.run(today=after(3))
        kept.rename(house.folder / "confidential" / name)
    assert not (house.folder / "other.sqlite").exists()


def without_register(patch: pytest.MonkeyPatch) -> None:
    """Let runs be those of agedp 0.1, which had no register."""
    patch.setattr(LedgerSession, "accounts", property(lambda _: None))


def test_a_folder_of_0_1_goes_on_and_says_what_is_not_known(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        without_register(patch)
        name_population(house, "try", mode="rehearsal")
        house.run(as_of=after(3))
        name_population(house, "other", "AB")
        house.run(today=after(2))
        name_population(house, "homes")
        house.run(today=after(3))
    house.run(today=after(4))
    found = account(house, "homes", "homes.sqlite")
    assert (found.day, found.total, found.gaps) == (HALF, 4 * HALF, ("rehearsals", "releases"))
    notes = json.loads((house.folder / "homes" / "statement.json").read_text())["notes"]
    assert any(note.startswith("Rehearsals took place beside this release before") for note in notes)
    name_population(house, "other", "AB")
    house.run(today=after(3))
    assert sums(house, "other") == (2 * HALF, 7 * HALF)
    assert account(house, "other", "other.sqlite").gaps == ("rehearsals",)


def test_in_a_folder_of_0_1_true_means_alone_stop_a_second_draw(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        without_register(patch)
        house.run(today=after(3))
    forget(house.folder / "confidential", "released_rosters")
    house.edit(("ledger.sqlite", "other.sqlite"), ('"release"', '"elsewhere"'))
    with pytest.raises(LedgerBehind, match="2013-01-01 of 'homes' was released from another ledger"):
        house.run(today=after(3))
    house.edit(("other.sqlite", "ledger.sqlite"), ('"elsewhere"', '"release"'))
    house.run(today=after(4))
    assert account(house).total == 4 * HALF


def test_a_lost_register_is_filled_again_and_the_statement_says_so(house: House) -> None:
    name_population(house, "other", "AB")
    house.run(today=after(2))
    name_population(house, "homes")
    house.run(today=after(3))
    assert sums(house, "homes") == (2 * HALF, 5 * HALF)
    with pytest.raises(LedgerError, match="the household register is there and knows"):
        rebuild_register(house.run_file)
    (house.folder / "confidential" / REGISTER).unlink()
    with pytest.raises(LedgerError, match="although it counted releases"):
        household_lines(house.run_file)
    rebuild_register(house.run_file)
    house.run(today=after(4))
    found = account(house, "homes", "homes.sqlite")
    assert (found.total, found.gaps) == (4 * HALF, ("rebuilt", "releases"))
    notes = json.loads((house.folder / "homes" / "statement.json").read_text())["notes"]
    assert any(note.startswith(f"The register of households was lost, and on {found.since} it") for note in notes)
    for name in (KEY, REGISTER):
        (house.folder / "confidential" / name).unlink()
    with pytest.raises(LedgerError, match="although it counted releases"):
        house.session(today=after(5))
    name_population(house, "new", "AB")
    house.run(today=after(1))  # makes a new register
    assert account(house, "new", "new.sqlite").gaps == ("releases",)
    name_population(house, "homes")
    with pytest.raises(LedgerError, match="does not know this population, although it counted it"):
        house.session(today=after(5))
    rebuild_register(house.run_file)
    house.run(today=after(5))
    assert (sums(house, "homes"), account(house, "homes", "homes.sqlite").gaps) == (
        (2 * HALF, 6 * HALF), ("rebuilt", "releases")
    )  # fmt: skip


def test_a_run_that_is_killed_leaves_a_charge_until_its_ledger_draws(house: House) -> None:
    with ended_in_draw(3), pytest.MonkeyPatch.context() as patch:
        patch.setattr(RosterHistory, "record_rosters", lambda *_, **__: None)
        patch.setattr("agedp.stages.release.DAYS_PER_TRANSACTION", 2)
        house.run(today=after(6))
    session = house.session(today=after(6))
    assert session.accounts is not None
    assert len(house.rows()) == 2
    assert session.accounts.overview(session.open_ledger).largest.total == 4 * HALF  # two drawn, two charged
    assert session.accounts.overview(session.open_ledger).largest.day == HALF
    house.run(today=after(6))
    assert account(house).total == 6 * HALF


class Ended(Exception):
    """A run that is killed."""


def killed(*_: object, **__: object) -> None:
    raise Ended


def test_a_run_killed_while_it_creates_the_register_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    confidential = house.folder / "confidential"
    for path in ("agedp.internal_records.register_members.HouseholdRegister.create", "pathlib.Path.replace"):
        accounts = house.session(today=after(1)).accounts
        assert accounts is not None
        (confidential / f"{KEY}.begun").write_bytes(bytes(32))
        with monkeypatch.context() as patch:
            patch.setattr(path, killed)
            with pytest.raises(Ended):
                accounts.place.ensure(today="2013-01-01")
        assert not (confidential / KEY).exists()
    house.run(today=after(1))
    assert account(house).total == HALF
    assert not (confidential / f"{KEY}.begun").exists()


def test_a_calibration_draw_counts_once_in_all_ledgers_that_have_it(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(f"household_id,from,to\nA,{FIRST},\nB,{FIRST},\n")
    roster, days = read_roster(tmp_path / "roster.csv"), (str(FIRST), str(DAYS[3]))
    accounts = HouseholdAccounts(RegisterPlace(tmp_path), "homes", "release", refuses_shared=False, today="2013-01-09")
    planned = CalibrationDraw("homes", *days, '{"of":"mixing"}', (), HALF)

    def total(ledger: Ledger) -> tuple[int, int]:
        found = accounts.account(ledger, roster)
        assert found is not None
        return found.day, found.total

    def draw_in(name: str, value: int) -> tuple[Ledger, CalibrationDraw]:
        ledger = Ledger.open(f"sqlite:///{tmp_path / name}", create=True)

        def draw() -> list[int]:
            accounts.charge_calibration(planned, ledger, roster)
            return [value]

        return ledger, ledger.draw_once("homes", days, {"of": "mixing"}, loss=HALF, draw=draw, at=FIRST)

    first, drawn = draw_in("first", 4)
    adopting = Ledger.open(f"sqlite:///{tmp_path / 'adopting'}", create=True)
    adopting.adopt(drawn, at=FIRST)
    assert total(first) == total(adopting) == (HALF, HALF)
    again, _ = draw_in("again", 4)  # a draw of its own, although it came out equal
    assert total(again) == total(first) == (2 * HALF, 2 * HALF)
    assert total(draw_in("other", 5)[0]) == (3 * HALF, 3 * HALF)


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
    found = [sums(house, name) for name in ("one", "two")]
    assert (2 * HALF, 16 * HALF) in found  # the later one; the earlier one may have published before


def test_machines_share_a_register_by_its_key(house: House, houses: type[House], postgresql: PostgreSQL) -> None:
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
        assert not (second.folder / "confidential" / REGISTER).exists()
        (second.folder / "confidential" / KEY).write_bytes(bytes(32))
        with pytest.raises(LedgerError, match="was filled with another key"):
            second.run(today=after(3))
    finally:
        postgresql.drop(database)


def test_the_register_is_no_ledger(house: House) -> None:
    shutil.copy(house.folder / "roster.csv", house.folder / "register.sqlite")
    house.edit(("ledger =", 'household_register = "sqlite:///register.sqlite"\nledger ='))
    with pytest.raises(LedgerError, match="not a household register") as caught:
        house.run(today=after(1))
    assert "register.sqlite" not in str(caught.value)
    house.edit(("register.sqlite", "ledger.sqlite"))
    with pytest.raises(AgedpError, match="is the ledger; name a file, or a schema, of its own"):
        house.context()
