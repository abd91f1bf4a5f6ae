"""`agedp status`: what is due and when next, the last release, what is used of each limit, and what needs attention."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from agedp_data import clock
from tests.agedp_flows.worlds import World, make


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make(tmp_path_factory.mktemp("unreleased") / "world", mode="live")


@pytest.fixture
def world(unreleased: World, tmp_path: Path) -> World:
    """A live world of the days 2 to 7 February 2013, each due when it is a day old."""
    return unreleased.copy(tmp_path / "world")


def on(day: int) -> Any:
    """Let it be 3 o'clock on a day of February 2013."""
    return mock.patch.object(clock, "now", return_value=datetime(2013, 2, day, 3, tzinfo=UTC))


def test_the_days_of_a_series_from_the_first_to_the_last(world: World) -> None:
    with on(3):
        before = world.load("status", "run.toml")
    assert (before["due"], before["next"]) == ([], {"day": "2013-02-02", "due_on": "2013-02-04"})
    assert (before["last"], before["ended"]) == ([], "")
    with on(5):  # 2 February ended with 3 February, 0:00, and was a day old on the 4th
        due = world.load("status", "run.toml")
        assert due["due"] == ["2013-02-02", "2013-02-03"]
        assert due["next"] == {"day": "2013-02-04", "due_on": "2013-02-06"}
        world.succeed("run", "run.toml", "--quiet")
        released = world.load("status", "run.toml")
    assert released["due"] == []
    [last] = released["last"]
    assert (last["day"], last["published_on"], last["epsilon"]) == ("2013-02-03", "2013-02-05", "0.5")
    used = {bound["bound"]: (bound["used"], bound["limit"]) for bound in released["budget"]}
    assert used["total"] == ("1", "3")  # two days at 0.5
    assert released["warnings"] == []  # the period ends with the promise, as it says
    with on(10):
        world.succeed("run", "run.toml", "--quiet")
        ended = world.load("status", "run.toml")
    assert (ended["due"], ended["next"]) == ([], None)
    assert ended["ended"] == "its period ended with 2013-02-07"


def test_what_is_used_is_never_shown_above_its_limit(world: World) -> None:
    """In three digits 1.0002 would be 1.01."""
    day = "epsilon_per_day = 0.5001", "max_day_epsilon = 0.5001"
    world.edit(("epsilon_per_day = 0.5", day[0]), ("max_day_epsilon = 0.5", day[1]), ("_total = 3", "_total = 1.0005"))
    with on(5):
        world.succeed("run", "run.toml", "--quiet")
        text = world.succeed("status", "run.toml")
    assert re.search(r" 1\.0002 +1\.0005$", text, re.MULTILINE)


def test_days_that_nobody_releases_are_a_warning(world: World) -> None:
    with on(4):
        world.succeed("run", "run.toml", "--quiet")
    with on(6):  # due since the 5th: one day late
        assert not any("nothing was released" in line for line in world.load("status", "run.toml")["warnings"])
    with on(7):
        [warning] = [line for line in world.load("status", "run.toml")["warnings"] if "nothing was" in line]
    assert warning.startswith("nothing was released for 3 days: 2013-02-03 was due on 2013-02-05.")


def test_a_promise_that_ends_soon_is_a_warning_and_then_has_ended(world: World) -> None:
    world.edit(("epsilon_total = 3", "epsilon_total = 1.5"))  # three days at 0.5
    with on(5):
        world.succeed("run", "run.toml", "--quiet")
        soon = world.load("status", "run.toml")
    assert soon["warnings"] == ["the promise ends soon: 2013-02-04 is the last day it permits"]
    assert soon["next"] == {"day": "2013-02-04", "due_on": "2013-02-06"}
    with on(6):
        world.succeed("run", "run.toml", "--quiet")
    with on(7):
        ended = world.load("status", "run.toml")
    assert (ended["due"], ended["next"]) == ([], None)
    assert "epsilon_total = 1.5" in ended["ended"]


def test_a_folder_that_cannot_be_written_is_a_warning(world: World) -> None:
    (world.folder / "blocked").touch()
    world.edit(('release = "out/release"', 'release = "blocked/release"'))
    with on(5):
        public = world.load("status", "run.toml")["warnings"]
        text = world.succeed("status", "run.toml")
    assert len(public) == 1
    assert public[0].startswith("[output] release: the folder cannot be written (")
    assert "blocked" not in public[0]  # paths are for the terminal
    assert "blocked/release' cannot be written" in text


def test_a_folder_that_is_older_than_the_ledger_is_a_warning(world: World, tmp_path: Path) -> None:
    with on(4):
        world.succeed("run", "run.toml", "--quiet")
    shutil.copytree(world.folder / "out" / "release", tmp_path / "older")
    with on(5):
        world.succeed("run", "run.toml", "--quiet")
        shutil.rmtree(world.folder / "out" / "release")
        shutil.copytree(tmp_path / "older", world.folder / "out" / "release")
        lagging = [line for line in world.load("status", "run.toml")["warnings"] if "folder" in line]
        assert [line.partition(";")[0] for line in lagging] == [
            "the release folder is older than the ledger: it has 1 of the 2 released days of the ledger"
        ]
        world.succeed("publish", "run.toml")
        assert not [line for line in world.load("status", "run.toml")["warnings"] if "folder" in line]


def test_what_would_stop_the_next_run_ends_it_the_same_way(world: World) -> None:
    with on(5):
        world.succeed("run", "run.toml", "--quiet")
        (world.folder / "out" / "ledger.sqlite").rename(world.folder / "moved.sqlite")
        assert "the release folder was published from a ledger" in world.refuse("status", "run.toml", status=3)
        (world.folder / "moved.sqlite").rename(world.folder / "out" / "ledger.sqlite")
        world.edit(("clamp_kwh = 20", "clamp_kwh = 21"))
        assert "clamp_kwh" in world.refuse("status", "run.toml", status=3)
    assert "rnu.toml" in world.refuse("status", "rnu.toml", status=2)


def test_a_first_release_that_would_be_refused_is_named(world: World) -> None:
    world.edit(('accept = ["useless", "no-credit", "total"]\n', ""), ("clamp_kwh = 20", "clamp_kwh = 200"))
    with on(5):
        status = world.load("status", "run.toml")
        text = world.succeed("status", "run.toml")
    assert "no span is of use" in status["refused"]
    assert "Will be refused: run.toml: " in text


def test_it_reads_no_reading_and_writes_no_release(world: World) -> None:
    shutil.rmtree(world.folder / "incoming")
    with on(5):
        assert world.load("status", "run.toml")["due"] == ["2013-02-02", "2013-02-03"]
    assert not (world.folder / "out" / "ledger.sqlite").exists()


def test_a_second_release_of_the_same_households_is_told_and_a_run_states_it(unreleased: World, tmp_path: Path) -> None:
    """Two days at epsilon 0.5 in each of two folders whose accounts are one: 1 about a day, 2 in all."""
    worlds = [unreleased.copy(tmp_path / name) for name in ("one", "two")]
    for world in worlds:
        text = (world.folder / "run.toml").read_text()
        (world.folder / "run.toml").write_text(
            text.replace("[output]\n", f'[output]\nhousehold_register = "sqlite:///{tmp_path}/shared.sqlite"\n', 1)
        )
    with on(5):
        for world in worlds:
            world.succeed("run", "run.toml", "--quiet")
        told = worlds[0].succeed("status", "run.toml")
        assert "lost epsilon 1 about a day and 2 in all, and the folder states 0.5 and 1. `agedp run` states it" in told
        assert "other releases" not in worlds[1].succeed("status", "run.toml")
        assert "other releases" not in str(worlds[0].load("status", "run.toml"))  # who shares is published nowhere
        worlds[0].succeed("run", "run.toml", "--quiet")
        assert "other releases" not in worlds[0].succeed("status", "run.toml")
    assert "of a day 1, in all 2" in (worlds[0].folder / "out" / "release" / "STATEMENT.md").read_text()
