"""The ledger on a PostgreSQL server: a run that is killed, or loses its server, or meets others, is as undisturbed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from tests.faults.scenes import SCENES, Scene
from tests.faults.shelves import OnServer
from tests.faults.test_at_once import WAITS
from tests.nights.keyed import draws

Scenes = Callable[..., Scene]
NAMED = {
    "a night": {"execute INSERT INTO release*": 2},
}
"""The n-th of the boundaries that are named so."""
CUTS = (
    ("a night", "commit", 1),
    ("import", "commit", 2),
    ("a night", "execute INSERT INTO release*", 2),
    ("a night", "committed", 1),
    ("amend", "commit", 1),
    ("export", "commit", 1),
)
FEW = (*CUTS[:2], *(pytest.param(*cut, marks=pytest.mark.long) for cut in CUTS[2:]))


@pytest.mark.parametrize("name", NAMED)
def test_killed_at_a_named_boundary_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str) -> None:
    trials = scene(name, on_server=True)
    for like, nth in NAMED[name].items():
        end = trials.trial(like=like, kill_at=nth)
        assert end.killed, like
        assert fnmatchcase(end.passed[-1], like)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SCENES if name != "calibrate"])
def test_killed_at_every_boundary_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str) -> None:
    trials = scene(name, on_server=True)
    killed = [trials.trial(kill_at=at).killed for at in range(1, len(trials.passed) + 1)]
    assert all(killed[:-4])  # of two threads both may come to make a folder, or one


def goes_on(trials: Scene, how: str, **where: object) -> None:
    """Cut the run's connection at a boundary; it ends as if nothing had been, and nothing is drawn that was stored."""
    assert isinstance(trials.shelf, OnServer)
    trials.shelf.server.wait()
    trials.restore()
    end = trials.runs.one(trials.order(**trials.shelf.cut(how), **where))
    assert len(end.passed) >= len(trials.passed)
    trials.shelf.server.wait()
    assert (end.status, end.err) == (0, ""), end
    assert trials.everything() == trials.rows
    assert trials.contents() == trials.files
    assert set((draws(trials.journal) - trials.drawn).values()) <= {1}
    assert trials.drawn - draws(trials.journal) == Counter()


@pytest.mark.parametrize(("name", "like", "nth"), FEW)
def test_a_run_whose_connection_is_ended_goes_on_by_itself(scene: Scenes, name: str, like: str, nth: int) -> None:
    goes_on(scene(name, on_server=True), "terminate", like=like, kill_at=nth)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may kill a process of the server's user")
@pytest.mark.parametrize(("name", "like", "nth"), CUTS)
def test_a_run_goes_on_when_its_server_has_crashed(scene: Scenes, name: str, like: str, nth: int) -> None:
    goes_on(scene(name, on_server=True), "kill", like=like, kill_at=nth)


@pytest.mark.long
@pytest.mark.parametrize("name", ["the first run", "a night"])
def test_a_run_goes_on_wherever_its_connection_is_ended(scene: Scenes, name: str) -> None:
    trials = scene(name, on_server=True)
    for at in range(1, len(trials.passed) + 1):
        goes_on(trials, "terminate", kill_at=at)


@pytest.mark.parametrize(
    ("name", "runs_at_once"),
    [("a night", 4), *(pytest.param(name, 20, marks=pytest.mark.long) for name in ("the first run", "a night"))],
)
def test_of_many_runs_at_once_each_day_is_drawn_by_one_and_the_folder_is_whole(
    scene: Scenes, name: str, runs_at_once: int
) -> None:
    trials = scene(name, on_server=True)
    ends = trials.runs.at_once(*[trials.order(boundaries=False)] * runs_at_once)
    assert Counter((end.status, end.err.replace(WAITS, "")) for end in ends) == {(0, ""): runs_at_once}
    assert draws(trials.journal) == trials.drawn
    assert trials.everything() == trials.rows
    assert trials.contents() == trials.files
    trials.verified()


def test_a_server_that_is_not_there_stops_each_command_in_one_line_and_draws_nothing(scene: Scenes) -> None:
    trials = scene("a night", on_server=True)
    assert isinstance(trials.shelf, OnServer)
    rows, url = trials.everything(), trials.shelf.url(trials.ledger)
    trials.shelf.server.stop()
    try:
        for words in (
            ("run", "run.toml"),
            ("ledger", "verify", url),
            ("verify", "release", "--ledger", url),
        ):
            end = trials.runs.one(trials.order(*words, boundaries=False))
            assert (end.status, end.out, "no server listens there" in end.line) == (3, "", True), end
    finally:
        trials.shelf.server.start()
    assert trials.everything() == rows
    assert draws(trials.journal) == Counter()
    trials.mended()
