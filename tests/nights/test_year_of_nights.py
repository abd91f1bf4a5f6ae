"""A simulated year of nights: whatever happens, each day is drawn once, kept for ever, and worth what was delivered."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.command import agedp
from tests.nights.course import Course, sample_course, year_course
from tests.nights.deliveries import FIRST
from tests.nights.year import House


def live_through(folder: Path, course: Course) -> House:
    house = House(folder, course)
    for night in course.nights:
        house.night(night)
        if night not in course.no_run:
            house.check(night)
    return house


def require_everything_said(house: House) -> None:
    """Every day of the period was released, or skipped for want of its marker."""
    days = [str(FIRST + timedelta(days=day)) for day in range(house.course.days)]
    assert sorted(row.day for row in house.rows) == days
    assert len({row.contract for row in house.rows}) >= 5
    assert sum(row.state == "skipped" for row in house.rows) == 1


def require_as_archived(house: House, *, free: frozenset[str]) -> None:
    """Days whose files all came before they were released are, but for what is `free`, as an archive has them."""
    versions = {begin: number for number, begin in enumerate(sorted(house.course.terms), 1)}
    ours = {row["day"]: row for row in house.table}
    late = {one.day for one in house.course.parcels if one.night > house.said_in[one.day]}
    compared = 0
    for begin, version in versions.items():
        archived = {row["day"]: row for row in house.archive(begin)}
        for day, row in ours.items():
            if row["version"] != version:
                continue
            same = {key: each for key, each in row.items() if key not in free}
            other = {key: each for key, each in archived[day].items() if key not in free}
            if (day - FIRST).days in late:
                assert same["noisy_sum_wh"] != other["noisy_sum_wh"], "the delivered data did not stand"
            else:
                assert same == other
                compared += 1
    assert compared > len(ours) / 2
    assert late


def require_every_statement_again(house: House) -> None:
    """The folder of every date on which a statement was made is written again, and at last today's, to the byte."""
    release = house.folder / "out" / "release"
    today = {path.name: path.read_bytes() for path in release.iterdir()}
    made = dict(house.statements())
    for at in sorted(made):
        assert agedp("publish", house.run_file, "--as-of", at)[0] == 0
        assert agedp("verify", release, "--ledger", house.ledger)[0] == 0
        assert made[at] in (release / "statement.json").read_text()
    assert agedp("publish", house.run_file)[0] == 0
    assert {path.name: path.read_bytes() for path in release.iterdir()} == today


DATES = frozenset({"published_on", "version"})
LOSSES = frozenset({"epsilon", "noise_sd_kwh", "low_kwh", "high_kwh"})


@pytest.mark.parametrize(
    ("notion", "by_history"),
    [
        ("age-dependent", frozenset()),
        # what a day is granted depends on what was released before it, and under which model
        pytest.param("risk", LOSSES, marks=pytest.mark.long),
        pytest.param("w-event", LOSSES, marks=pytest.mark.long),
    ],
)
def test_three_weeks_of_nights_publish_what_an_archive_does(
    tmp_path: Path, notion: str, by_history: frozenset[str]
) -> None:
    house = live_through(tmp_path, sample_course(notion))
    require_everything_said(house)
    require_as_archived(house, free=DATES | by_history)
    require_every_statement_again(house)


@pytest.mark.long
def test_a_year_of_nights_publishes_what_an_archive_does(tmp_path: Path) -> None:
    house = live_through(tmp_path, year_course())
    assert len(house.course.crashes) == 20
    require_everything_said(house)
    require_as_archived(house, free=DATES)
    require_every_statement_again(house)
