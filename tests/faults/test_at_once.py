"""Many at once, another who holds the ledger, a clock that was set back: each day is drawn once, in order of dates."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing

import pytest

from agedp.release_verification import open_release
from tests.command import beside_verdict
from tests.faults.runs import LedgerServer
from tests.faults.scenes import BEFORE, NOW, Scene
from tests.nights.keyed import draws

Scenes = Callable[..., Scene]


@pytest.mark.parametrize(
    ("name", "on_server", "number"),
    [
        ("the first run", False, 8),
        ("a night, with a witness", True, 4),
        *(
            pytest.param(name, on_server, 20, marks=pytest.mark.long)
            for name in ("the first run", "a night", "a night, with a witness")
            for on_server in (False, True)
        ),
    ],
)
def test_of_many_runs_at_once_each_day_is_drawn_by_one_and_the_folder_is_whole(
    scene: Scenes, name: str, on_server: bool, number: int
) -> None:
    scene(name, on_server=on_server).at_once(number)


def test_of_many_at_once_some_of_them_killed_the_others_go_on(scene: Scenes) -> None:
    trials = scene("a night")
    orders = [trials.order(like=like, kill_at=1) for like in ("committed", "fsync", "os.rename*")]
    trials.runs.at_once(*orders, *[trials.order()] * 3)
    trials.mend()


def test_a_run_that_was_held_up_while_it_published_does_not_write_over_what_another_published(scene: Scenes) -> None:
    trials = scene("a night")
    earlier = {"now": "2026-02-01T06:00:00+00:00"}  # one day is due
    held_up = trials.order(like="open .statement.json.*", kill_at=1, pauses=3.0, **earlier)
    ends = trials.runs.at_once(held_up, trials.order(begins_after=1.0))
    assert [(end.status, end.err) for end in ends] == [(0, "")] * 2
    trials.verify()
    released = {row.day for row in trials.stored() if hasattr(row, "scale")}
    assert len(released) == 4
    assert {str(day.date()) for day in open_release(trials.house / "release").table()["day"]} == released


def test_a_ledger_that_another_process_holds_for_long_stops_in_one_line(scene: Scenes) -> None:
    trials = scene("a night")
    for how in ("IMMEDIATE", "EXCLUSIVE"):
        with closing(sqlite3.connect(trials.house / trials.ledger, isolation_level=None)) as foreign:
            foreign.execute(f"BEGIN {how}")
            end = trials.run(patience=0.2)
        assert (end.status, "another process has held it" in end.line) == (3, True)
    trials.mend()


def test_a_server_that_is_not_there_stops_each_command_in_one_line_and_draws_nothing(scene: Scenes) -> None:
    trials = scene("a night, with a witness", on_server=True)
    assert isinstance(trials.shelf, LedgerServer)
    rows, url = trials.stored(), trials.shelf.url(trials.ledger)
    trials.shelf.server.stop()
    try:
        for words in (("run", "run.toml"), ("ledger", "verify", url), ("verify", "release", "--ledger", url)):
            end = trials.run(*words, boundaries=False, patience=1)
            assert (end.status, end.out, "no server listens there" in end.line) == (3, "", True), end
    finally:
        trials.shelf.server.start()
    assert trials.stored() == rows
    assert draws(trials.journal) == Counter()
    trials.mend()


def test_a_clock_set_back_in_the_middle_of_a_night_publishes_nothing_before_what_it_published(scene: Scenes) -> None:
    trials = scene("a night")
    assert trials.run(like="committed", kill_at=3).killed
    rows = trials.after_death()
    end = trials.run(now=BEFORE)
    assert (end.status, beside_verdict(end.err)) == (0, "")
    assert trials.stored()[: len(rows)] == rows
    assert trials.run(now=NOW).status == 0
    expected = {(row.series, row.day): row.values for row in trials.rows if hasattr(row, "published_on")}
    releases = [row for row in trials.stored() if hasattr(row, "published_on")]
    assert {(row.series, row.day): row.values for row in releases} == expected
    assert [row.published_on for row in releases] == sorted(row.published_on for row in releases)
    assert sum(row.loss for row in releases) == sum(row.loss for row in trials.rows if hasattr(row, "loss"))
    assert draws(trials.journal) == trials.drawn
