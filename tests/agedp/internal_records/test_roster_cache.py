"""A large roster is read once for each state of its file, and compared once with each released day."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import date, timedelta

import pytest

from agedp.internal_records import roster_history
from agedp.internal_records.roster_history import RosterChecks, RosterDigest
from agedp.local_files.books import Books
from agedp.pipeline import run_stages
from agedp_data.errors import InputError, Refused
from agedp_data.roster import Roster, read_roster
from tests.books import forget, spoil

FIRST = date(2013, 1, 1)
NAMES = ["A", "A!", 'A"', "é", "\U0001f600", "B\\", "a b", "\x7f", "\t", "z"]


@pytest.fixture(autouse=True)
def _cached(monkeypatch):
    """Rosters of all sizes have a cache, and files settle at once."""
    monkeypatch.setattr(roster_history, "LEAST_BYTES", 0)
    monkeypatch.setattr(roster_history, "SETTLING_NS", 0)
    monkeypatch.setattr(roster_history, "LEAST_ROWS", 0)


def text(rows, columns=("area",)):
    return "\n".join([",".join(("household_id", "from", "to", *columns)), *(",".join(map(str, row)) for row in rows)])


ROWS = [("A", FIRST, "", "n"), ("B", FIRST, date(2013, 2, 1), "s"), ("C", date(2013, 1, 9), "", "s")]


def write(path, content, *, ns=10**18):
    path.write_text(content)
    os.utime(path, ns=(ns, ns))
    return str(path)


def load(folder, location, columns=()) -> Roster:
    return roster_history.load_roster(location, Books(folder / "books.sqlite"), path_columns=columns)


def answers(roster):
    days = [FIRST + timedelta(days=number) for number in (0, 8, 40)]
    return (
        [roster.counts.cells(day, by) for day in days for by in (None, "area")],
        roster.read_off,
        tuple(roster.counts.groups),
    )


def test_an_unchanged_file_is_not_read_again(tmp_path, monkeypatch):
    location = write(tmp_path / "r.csv", text(ROWS))
    first = load(tmp_path, location)
    with monkeypatch.context() as patch:
        patch.setattr(roster_history.rosters, "read_roster_bytes", None)
        again = load(tmp_path, location)
        assert answers(again) == answers(first)
        assert (again.has_rows, first.file_digest) == (False, again.file_digest)
    assert (list(again.rows.ids), again.rows.last.tolist()) == (list(first.rows.ids), first.rows.last.tolist())


def test_another_version_reads_the_roster_again(tmp_path, monkeypatch):
    location = write(tmp_path / "r.csv", text(ROWS))
    load(tmp_path, location)
    with monkeypatch.context() as patch:
        patch.setattr(roster_history, "version", lambda _: "99.1")
        assert load(tmp_path, location).has_rows
        assert not load(tmp_path, location).has_rows
    assert load(tmp_path, location).has_rows


@pytest.mark.parametrize("damage", ["times", "content", "spoiled", "gone"])
def test_the_cache_follows_the_file(tmp_path, damage):
    location = write(tmp_path / "r.csv", text(ROWS))
    load(tmp_path, location)
    rows = [*ROWS, ("D", FIRST, "", "n")] if damage == "content" else ROWS
    if damage in ("times", "content"):
        write(tmp_path / "r.csv", text(rows), ns=10**18 + 1)
    elif damage == "gone":
        forget(tmp_path, "rosters")
    else:
        spoil(tmp_path, "rosters")
    for _ in range(2):
        assert answers(load(tmp_path, location)) == answers(read_roster(location))


def test_a_file_that_just_changed_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(roster_history, "SETTLING_NS", 10**18)
    location = write(tmp_path / "r.csv", text(ROWS))
    load(tmp_path, location)
    write(tmp_path / "r.csv", text([*ROWS, ("D", FIRST, "", "n")]))
    assert answers(load(tmp_path, location)) == answers(read_roster(location))


def test_a_cached_roster_that_is_replaced_is_not_half_read(tmp_path):
    location = write(tmp_path / "r.csv", text(ROWS))
    load(tmp_path, location)
    cached = load(tmp_path, location)
    write(tmp_path / "r.csv", text(ROWS[:1]))
    with pytest.raises(InputError, match="changed while it was read; run again"):
        _ = cached.rows


def test_day_digests_are_those_of_sorted_json_lines(tmp_path):
    """The form that every recorded roster history has."""
    rows = [(name, number % 3, 4 + number % 4, 'n"é'[number % 3]) for number, name in enumerate(NAMES)]
    body = "".join(
        '"{}",{},{},"{}"\n'.format(
            name.replace('"', '""'), FIRST + timedelta(days=first), FIRST + timedelta(days=last),
            group.replace('"', '""'),
        )
        for name, first, last, group in rows
        if name.strip(" \t")
    )  # fmt: skip
    (tmp_path / "r.csv").write_text(f"household_id,from,to,area\n{body}")
    digest = RosterDigest(read_roster(tmp_path / "r.csv"))
    for number in range(-1, 9):
        members = [row for row in rows if row[0].strip(" \t") and row[1] <= number <= row[2]]
        for column, texts in ((None, [[row[0]] for row in members]), ("area", [[row[0], row[3]] for row in members])):
            lines = sorted(json.dumps(line).encode() for line in texts)
            expected = hashlib.sha256(b"\n".join(lines)).hexdigest()
            assert digest.digest(FIRST + timedelta(days=number), column) == expected


def digest_of(tmp_path, rows, columns=("area",)) -> RosterDigest:
    return RosterDigest(load(tmp_path, write(tmp_path / "r.csv", text(rows, columns))))


THROUGH = date(2013, 1, 31)
SAME = [
    [*ROWS[:2], ("C", date(2013, 1, 9), date(2013, 1, 31), "s")],  # C leaves later
    [*ROWS, ("D", date(2013, 2, 1), "", "n")],
    [ROWS[2], ROWS[0], ROWS[1]],
    [ROWS[0], ("B", FIRST, date(2013, 1, 31), "s"), ROWS[2]],
]
OTHER = [
    [*ROWS, ("D", date(2013, 1, 31), "", "n")],
    [*ROWS[:2], ("C", date(2013, 1, 9), date(2013, 1, 30), "s")],
    [*ROWS[:2], ("C", date(2013, 1, 10), "", "s")],
    [*ROWS[:2], ("C", date(2013, 1, 9), "", "n")],
    [*ROWS[:2], ("CC", date(2013, 1, 9), "", "s")],
    ROWS[:2],
]


def test_rows_of_later_days_leave_the_compared_days_as_they_were(tmp_path):
    records = {FIRST: "x", THROUGH: "y"}
    checks = RosterChecks(Books(tmp_path / "books.sqlite"), "homes")
    assert checks.last_compared(digest_of(tmp_path, ROWS), records) is None
    checks.store(digest_of(tmp_path, ROWS), records)
    for rows in (ROWS, *SAME):
        assert checks.last_compared(digest_of(tmp_path, rows), {**records, date(2013, 2, 2): "z"}) == THROUGH
    for rows in OTHER:
        assert checks.last_compared(digest_of(tmp_path, rows), records) is None
    assert checks.last_compared(digest_of(tmp_path, ROWS, ("region",)), records) is None
    for changed in ({FIRST: "x"}, {FIRST: "x", THROUGH: "z"}, {THROUGH: "y"}, {**records, FIRST + timedelta(1): "n"}):
        assert checks.last_compared(digest_of(tmp_path, ROWS), changed) is None
    assert RosterChecks(checks.books, "others").last_compared(digest_of(tmp_path, ROWS), records) is None


@pytest.fixture
def home(houses, tmp_path):
    house = houses(tmp_path)
    days = [FIRST + timedelta(days=number) for number in range(4)]
    house.fill(days)
    house.write(FIRST, days[-1])
    os.utime(house.folder / "roster.csv", ns=(10**18, 10**18))
    return house


def test_a_night_with_nothing_due_loads_no_household(home):
    home.run(today=FIRST + timedelta(days=9))
    context = home.context(today=FIRST + timedelta(days=10))
    session = home.session(today=FIRST + timedelta(days=10))
    session.roster_history.check_unchanged(session.roster_digest, session.ledger)
    assert (len(session.history.rows), session.run.roster.has_rows, context.roster.has_rows) == (4, False, False)


def test_a_changed_released_day_is_still_refused(home):
    home.run(today=FIRST + timedelta(days=2))
    lines = (home.folder / "roster.csv").read_text()
    (home.folder / "roster.csv").write_text(lines + f"D,{FIRST + timedelta(days=3)},\n")
    run_stages(home.context(today=FIRST + timedelta(days=3))).check_not_refused()
    (home.folder / "roster.csv").write_text(lines + f"D,{FIRST},\n")
    for _ in range(2):
        with pytest.raises(Refused, match="other households on 2013-01-01"):
            run_stages(home.context(today=FIRST + timedelta(days=4)))
