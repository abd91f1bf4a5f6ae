"""Killed anywhere and started again, a command leaves what it leaves undisturbed: rows, hashes, bytes, no litter."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from tests.faults.scenes import SCENES, Scene

Scenes = Callable[[str], Scene]
NAMED = {
    "the first run": {
        "open ledger.sqlite": 1,
        "execute CREATE TABLE*": 4,
        "execute CREATE TRIGGER*": 1,
        "committed": 2,
    },
    "a night": {
        "os.rename .*.json.*": 1,
        "execute INSERT INTO release*": 2,
        "commit": 1,
        "committed": 2,
        "os.rename .released_rosters.*": 1,
        "os.rename .statement.json.*": 1,
        "os.rename .SHA256SUMS.*": 1,
        "os.rename .true_means.*": 1,
        "os.rmdir month=2026-01": 2,
    },
    "publish": {"fsync": 2, "os.rename .SHA256SUMS.*": 1},
    "calibrate": {"os.rename .public.json.*": 1},
    "amend": {"committed": 1},
    "export": {"os.rename .rows.jsonl.*": 1, "commit": 1},
    "import": {"committed": 1},
    "recover": {"execute INSERT INTO release*": 1},
}
"""The n-th of the boundaries that are named so."""


@pytest.mark.parametrize("name", NAMED)
def test_killed_at_a_named_boundary_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str) -> None:
    trials = scene(name)
    for like, nth in NAMED[name].items():
        end = trials.trial(like=like, kill_at=nth)
        assert end.killed, like
        assert fnmatchcase(end.passed[-1], like)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENES)
def test_killed_at_every_boundary_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str) -> None:
    trials = scene(name)
    killed = [trials.trial(kill_at=at).killed for at in range(1, len(trials.passed) + 1)]
    assert all(killed[:-4])  # of two threads both may come to make a folder, or one


@pytest.mark.parametrize("times", [2, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["the first run", "a night"])
def test_killed_at_random_instants_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str, times: int) -> None:
    trials = scene(name)
    begun = time.monotonic()
    assert trials.runs.one(trials.order()).status == 0
    lasts = time.monotonic() - begun
    chance = random.Random(times)  # noqa: S311 - instants, no secrets
    killed = [trials.trial(kill_after=chance.uniform(0, lasts)).killed for _ in range(times)]
    assert sum(killed) >= times // 4


@pytest.mark.long
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace kills inside SQLite's own writes")
@pytest.mark.parametrize("name", ["the first run", "a night"])
def test_killed_at_every_system_call_on_the_ledger_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str) -> None:
    trials = scene(name)
    at = 1
    while trials.trial(kill_in_ledger=at, boundaries=False).killed:
        at += 1
    assert at > 30


def test_killed_again_and_again_in_one_night_it_goes_on_where_it_stood(scene: Scenes) -> None:
    trials = scene("a night")
    lengths = []
    end = trials.runs.one(trials.order(kill_at=30))
    while end.killed and len(lengths) < 12:
        lengths.append(len(trials.after_death()))
        end = trials.runs.one(trials.order(kill_at=30))
    assert len(lengths) > 2
    assert lengths == sorted(lengths)
    trials.mended()
