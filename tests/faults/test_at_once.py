"""Many at once, another who holds the ledger, a clock that was set back: each day is drawn once, in order of dates."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing

import pytest

from agedp.release_folder.release_folder import open_release
from tests.faults.scenes import BEFORE, NOW, Scene
from tests.nights.keyed import draws

Scenes = Callable[[str], Scene]
WAITS = "agedp: another run works in the same folder; waiting until it ends\n"


@pytest.mark.parametrize(
    ("name", "rounds"),
    [("the first run", 1), *(pytest.param(name, 5, marks=pytest.mark.long) for name in ("the first run", "a night"))],
)
def test_of_twenty_runs_at_once_each_day_is_drawn_by_one_and_the_folder_is_whole(
    scene: Scenes, name: str, rounds: int
) -> None:
    for _ in range(rounds):
        trials = scene(name)
        ends = trials.runs.at_once(*[trials.order(boundaries=False)] * 20)
        assert Counter((end.status, end.err.replace(WAITS, "")) for end in ends) == {(0, ""): 20}
        assert draws(trials.journal) == trials.drawn
        assert trials.everything() == trials.rows
        assert trials.contents() == trials.files
        trials.verified()


def test_of_many_at_once_some_of_them_killed_the_others_go_on(scene: Scenes) -> None:
    trials = scene("a night")
    orders = [trials.order(like=like, kill_at=1) for like in ("committed", "commit", "fsync", "os.rename*")]
    trials.runs.at_once(*orders, *[trials.order()] * 4)
    trials.mended()
    trials.verified()


def test_a_run_that_was_held_up_while_it_published_does_not_write_over_what_another_published(scene: Scenes) -> None:
    trials = scene("a night")
    earlier = {"now": "2026-02-01T06:00:00+00:00"}  # one day is due
    held_up = trials.order(like="open .statement.json.*", kill_at=1, pauses=5.0) | earlier
    ends = trials.runs.at_once(held_up, trials.order(begins_after=2.0))
    assert [(end.status, end.err) for end in ends] == [(0, "")] * 2
    trials.verified()
    released = {row.day for row in trials.everything() if hasattr(row, "scale")}
    assert len(released) == 4
    assert {str(day.date()) for day in open_release(trials.house / "release").table()["day"]} == released


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_ledger_that_another_process_holds_for_long_stops_in_one_line(scene: Scenes, how: str) -> None:
    trials = scene("a night")
    with closing(sqlite3.connect(trials.house / trials.ledger, isolation_level=None)) as other:
        other.execute(f"BEGIN {how}")
        end = trials.runs.one(trials.order(patience=0.2))
    assert (end.status, "another process has held it" in end.line) == (3, True)
    trials.mended()


def test_a_clock_set_back_in_the_middle_of_a_night_publishes_nothing_before_what_it_published(scene: Scenes) -> None:
    trials = scene("a night")
    assert trials.runs.one(trials.order(like="committed", kill_at=3)).killed
    rows = trials.after_death()
    end = trials.runs.one(trials.order() | {"now": BEFORE})
    assert (end.status, end.err) == (0, "")
    dates = [row.published_on for row in trials.everything() if hasattr(row, "published_on")]
    assert dates == sorted(dates)
    assert trials.everything()[: len(rows)] == rows
    assert trials.runs.one(trials.order() | {"now": NOW}).status == 0
    values = {(row.series, row.day): row.values for row in trials.rows if hasattr(row, "published_on")}
    found = [row for row in trials.everything() if hasattr(row, "published_on")]
    assert {(row.series, row.day): row.values for row in found} == values
    assert [row.published_on for row in found] == sorted(row.published_on for row in found)
    assert sum(row.loss for row in found) == sum(row.loss for row in trials.rows if hasattr(row, "loss"))
    assert draws(trials.journal) == trials.drawn
