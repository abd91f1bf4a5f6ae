"""A released day keeps its roster and is drawn once, whatever becomes of the ledger's address or of a killed run."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from agedp.internal_records.roster_history import RosterDigest, RosterHistory
from agedp.local_files.books import Books
from agedp.stages.amend import amend
from agedp_data.errors import LedgerBehind, Refused
from agedp_data.ledger import Ledger
from agedp_data.roster import Roster, RosterRows
from tests.agedp.conftest import ended_in_draw
from tests.books import forget

FIRST = date(2013, 1, 1)
OLD, NEW = tuple("ABCDEF"), tuple("UVWXYZ")
DAYS = [FIRST + timedelta(days=i) for i in range(6)]
TWO = '[series.second]\nstatistic = "mean"\nclamp_kwh = 50\nshare = 0.5\n'


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    """Twelve homes with readings of six days, six of them on the roster."""
    house = houses(tmp_path_factory.mktemp("house"))
    house.london({(home, day, slot): 200 for home in OLD + NEW for day in DAYS for slot in range(48)})
    return house


@pytest.fixture
def homes(made, houses, tmp_path):
    found = houses(shutil.copytree(made.folder, tmp_path / "house"))
    roster(found)
    run_file(found)
    return found


def roster(homes, members=OLD, *, groups="ab", column="tariff", since=FIRST, until=""):
    lines = [f"{home},{since},{until},{groups[i % len(groups)]}" for i, home in enumerate(members)]
    (homes.folder / "roster.csv").write_text("\n".join([f"household_id,from,to,{column}", *lines]) + "\n")


def run_file(homes, *edits, mode="archive", second=False, by=""):
    """Write a run file, with some of its names replaced."""
    promise = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
    promise += "age_days = 1\n" if mode == "rehearsal" else ""
    homes.write(FIRST, DAYS[-1], mode=mode, promise=promise, rest=TWO if second else "")
    keys = ("share = 0.5\n" if second else "") + (f'by = "{by}"\n' if by else "")
    homes.edit(("clamp_kwh = 50\n[promise]", f"clamp_kwh = 50\n{keys}[promise]"), *edits)


ELSEWHERE = (('"release"', '"elsewhere"'), ("ledger.sqlite", "other.sqlite"))
OTHERS = ('"homes"', '"others"')


def day_before(number):
    """The date of a run that releases this many days."""
    return FIRST + timedelta(days=number)


def test_renamed_ledger_and_folder_release_no_day_again(homes):
    homes.run(today=day_before(3))
    run_file(homes, *ELSEWHERE)
    with pytest.raises(LedgerBehind, match="2013-01-01 of 'homes' was released from another ledger") as caught:
        homes.run(today=day_before(5))
    assert caught.value.exit_status == 3
    assert not (homes.folder / "other.sqlite").exists()
    run_file(homes)
    assert len(homes.run(today=day_before(5)).released) == 2


def test_an_older_ledger_is_found_without_any_release_folder(homes):
    homes.run(today=day_before(2))
    shutil.copy(homes.folder / "ledger.sqlite", homes.folder / "older.sqlite")
    homes.run(today=day_before(4))
    shutil.copy(homes.folder / "older.sqlite", homes.folder / "ledger.sqlite")
    shutil.rmtree(homes.folder / "release")
    with pytest.raises(LedgerBehind, match="2013-01-03 of 'homes' was released"):
        homes.run(today=day_before(5))


@pytest.mark.parametrize("released", [0, 2])
def test_a_run_that_releases_meanwhile_is_no_lost_ledger(homes, monkeypatch, released):
    """Another run does all of its work just before this one reads which days are recorded as released."""
    if released:
        homes.run(today=day_before(released))
    read, others = Books.rows, [lambda: homes.run(today=day_before(4))]

    def read_after_another(books, table):
        if table == "released_rosters" and others:
            others.pop()()
        return read(books, table)

    monkeypatch.setattr(Books, "rows", read_after_another)
    homes.run(today=day_before(4))
    assert (len(homes.rows()), others) == (4, [])


def test_rehearsals_neither_bind_nor_are_bound(homes):
    run_file(homes, ("ledger.sqlite", "try.sqlite"), ('"release"', '"try"'), mode="rehearsal")
    homes.run(as_of=day_before(4))
    run_file(homes)
    homes.run(today=day_before(3))
    run_file(homes, ("ledger.sqlite", "again.sqlite"), ('"release"', '"again"'), mode="rehearsal")
    homes.run(as_of=day_before(4))
    assert [len(homes.rows(name=name)) for name in ("try.sqlite", "ledger.sqlite", "again.sqlite")] == [3, 3, 3]


def killed(homes, number, *, until):
    """Let a run end in its n-th draw: what it would still have recorded is not."""
    with ended_in_draw(number), pytest.MonkeyPatch.context() as patch:
        patch.setattr(RosterHistory, "record_rosters", lambda *_, **__: None)
        homes.run(today=day_before(until))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda homes: roster(homes, NEW), "2013-01-01"),
        (lambda homes: split(homes, DAYS[1]), "2013-01-02"),
    ],
)
def test_a_half_released_day_goes_on_with_the_same_households_only(homes, change, named):
    run_file(homes, second=True)
    killed(homes, 4, until=3)  # the first day is complete, the second half done
    assert [(row.day, row.series) for row in homes.rows()][-1] == ("2013-01-02", "daily_mean")
    change(homes)
    with pytest.raises(Refused, match=f"other households on {named}"):
        homes.run(today=day_before(3))
    assert len(homes.rows()) == 3
    roster(homes)
    homes.run(today=day_before(3))
    assert Counter((row.day, row.series) for row in homes.rows()) == Counter(
        (str(day), series) for day in DAYS[:3] for series in ("daily_mean", "second")
    )


def split(homes, day):
    """From this day on the roster counts the other homes."""
    rows = [f"{home},{FIRST},{day - timedelta(days=1)},a" for home in OLD] + [f"{home},{day},,a" for home in NEW]
    (homes.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")


def test_a_day_that_was_noted_and_never_drawn_binds_nobody(homes):
    killed(homes, 3, until=4)  # two days drawn, the third and fourth noted
    split(homes, DAYS[2])
    homes.run(today=day_before(4))
    assert len(homes.rows()) == 4
    run_file(homes, *ELSEWHERE, OTHERS)
    killed(homes, 1, until=1)
    run_file(homes, ELSEWHERE[0], ("ledger.sqlite", "third.sqlite"), OTHERS)
    homes.run(today=day_before(1))
    assert len(homes.rows(name="third.sqlite")) == 1


def test_of_two_runs_with_two_rosters_one_draws_a_day(homes):
    run_file(homes, second=True)
    work = homes.context()
    with Ledger.open(f"sqlite:///{homes.folder / 'ledger.sqlite'}", create=True):
        mine, theirs = RosterDigest(work.roster), RosterDigest(other_roster(homes))
    notes = RosterHistory(Books(homes.folder / "confidential" / "books.sqlite"), "homes", "id", rehearsal=False)
    first, second = (notes.before_draw(one, [], DAYS[:3]) for one in (mine, theirs))
    first(DAYS[0], ())
    killed(homes, 2, until=1)
    [row] = homes.rows()
    with pytest.raises(Refused, match="other households on 2013-01-01"):
        second(DAYS[0], (row,))
    second(DAYS[1], (row,))  # a day that nobody began
    with pytest.raises(Refused, match="other households on 2013-01-02"):
        first(DAYS[1], (row, replace(row, day="2013-01-02")))


def other_roster(homes):
    roster(homes, NEW)
    found = homes.context().roster
    roster(homes)
    return found


def without_notes(homes):
    forget(homes.folder / "confidential", "released_rosters")


def test_without_notes_the_homes_of_each_group_are_compared(homes):
    run_file(homes, by="tariff")
    homes.run(today=day_before(2))
    without_notes(homes)
    roster(homes, groups="aab")
    with pytest.raises(Refused, match="other households on 2013-01-01"):
        homes.run(today=day_before(3))
    roster(homes)
    homes.run(today=day_before(3))
    without_notes(homes)
    run_file(homes)
    amend(homes.context())
    roster(homes, OLD[:5], column="other")
    with pytest.raises(Refused, match="other households"):  # fewer homes than the groups had
        homes.run(today=day_before(4))
    roster(homes, column="other")
    homes.run(today=day_before(4))


def test_digests_tell_rosters_apart_by_who_is_in_which_group():
    def of(rows):
        ids = tuple(sorted({home for home, _ in rows}))
        code = {home: i for i, home in enumerate(ids)}
        many = np.array([code[home] for home, _ in rows]), np.zeros(len(rows), np.int64), np.full(len(rows), 99999)
        return RosterDigest(Roster(RosterRows(ids, *many, {"g": tuple(group for _, group in rows)})))

    one = of([("A", "x"), ("B", "y")])
    for rows, members, groups in (
        ([("B", "y"), ("A", "x")], True, True),
        ([("A", "y"), ("B", "x")], True, False),
        ([("A", "x"), ("C", "y")], False, False),
        ([('A"', "x"), ("B", "y")], False, False),
    ):
        other = of(rows)
        assert (one.digest(FIRST, None) == other.digest(FIRST, None)) is members
        assert (one.digest(FIRST, "g") == other.digest(FIRST, "g")) is groups
