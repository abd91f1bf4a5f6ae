"""Killed anywhere and started again, a command leaves what it leaves undisturbed: rows, hashes, bytes, no litter."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from agedp.release_folder.origin import release_origins
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import ReleaseRecord
from agedp_data.ledger.witness import FileWitness
from tests.agedp_flows.serving import environment, processes_of
from tests.command import beside_verdict
from tests.faults.inside_sqlite import INSIDE, find_vfs
from tests.faults.runs import SERVER, LedgerServer
from tests.faults.scenes import SCENES, WITNESS, Scene
from tests.nights.keyed import draws

Scenes = Callable[..., Scene]
NAMED = {
    "the first run": {"execute CREATE TRIGGER*": 1, "committed": 2},
    "a night": {
        "execute INSERT INTO release*": 2,
        "committed": 2,
        "put released_rosters": 1,
        "os.rename .SHA256SUMS.*": 1,
        "put true_means": 1,
        "commit the book": 2,
        "os.rmdir month=2026-01": 2,
    },
    "a night, with a witness": {"os.rename .homes.witness.new": 2, "commit": 1, "committed": 1},
    "publish": {"os.rename .SHA256SUMS.*": 1},
    "calibrate": {"os.rename .public.json.*": 1},
    "amend": {"committed": 1},
    "export": {"commit": 1},
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
@pytest.mark.parametrize(
    ("name", "on_server"),
    [(name, where) for name in SCENES for where in (False, True) if name != "calibrate" or not where],
)
def test_killed_at_every_boundary_and_run_again_it_is_as_undisturbed(scene: Scenes, name: str, on_server: bool) -> None:
    trials = scene(name, on_server=on_server)
    killed = [trials.trial(kill_at=at).killed for at in range(1, len(trials.passed) + 1)]
    assert all(killed[:-4])  # of two threads both may come to make a folder, or one


@pytest.mark.long
@pytest.mark.parametrize("name", ["the first run", "a night", "a night, with a witness", "amend", "import"])
def test_killed_inside_a_commit_of_sqlite_and_inside_its_rollback(scene: Scenes, name: str) -> None:
    if find_vfs() is None:
        pytest.skip("SQLite lies in Python's module and lets nobody replace its system calls")
    trials, chance, rollbacks = scene(name), random.Random(name), 0  # noqa: S311 - instants, no secrets
    calls = [passed for passed in trials.run(like=INSIDE).passed if passed.startswith("sqlite ")]
    # only between the sync of a journal's folder and its end there is something to undo
    in_commit = [at for at in range(1, len(calls)) if _last(calls[:at], "openDirectory") > _last(calls[:at], "unlink")]
    # not the last call: it depends on how fast the other thread was
    for number, at in enumerate((*chance.sample(range(1, len(calls)), 8), *chance.sample(in_commit, 48))):
        if number >= 16 and rollbacks:  # else all of them were in commits of the accounts, which `verify` leaves alone
            break
        trials.restore()
        assert trials.run(like=INSIDE, kill_at=at).killed, at
        verify = ("ledger", "verify", trials.shelf.url(trials.ledger))  # draws nothing, but undoes what was half stored
        rollbacks += trials.run(*verify, like=INSIDE, kill_at=chance.randint(1, 4)).killed
        rows = trials.after_death()
        trials.mend()
        trials.require_drawn_once(rows)
    assert rollbacks


def _last(calls: list[str], name: str) -> int:
    """Return how many calls there were up to the last one of this name."""
    return max((number for number, call in enumerate(calls, 1) if call == f"sqlite {name}"), default=0)


@pytest.mark.parametrize(
    ("name", "kills"),
    [("a night, with a witness", 6), *(pytest.param(name, 150, marks=pytest.mark.long) for name in list(SCENES)[:4])],
)
def test_killed_again_and_again_at_random_no_day_has_two_values(scene: Scenes, name: str, kills: int) -> None:
    chance, trials = random.Random(kills), scene(name)  # noqa: S311 - instants, no secrets
    begun = time.monotonic()
    assert trials.run().status == 0
    lasts = time.monotonic() - begun
    trials.restore()
    died = 0
    while died < kills:
        stored = {(row.series, row.day) for row in trials.after_death() if isinstance(row, ReleaseRecord)}
        drawn, by_time = draws(trials.journal), chance.random() < 0.5
        instant, boundary = chance.uniform(0, lasts), chance.randint(1, len(trials.passed))
        end = trials.run(**{"kill_after": instant} if by_time else {"kill_at": boundary})
        assert not stored & set(draws(trials.journal) - drawn)
        require_published_is_settled(trials)
        died += end.killed
        if not end.killed:  # it came to its end and begins anew
            assert (end.status, beside_verdict(end.err)) == (0, ""), end
            trials.require_undisturbed()
            trials.restore()
    trials.mend()


def require_published_is_settled(trials: Scene) -> None:
    """Require that the release folder, whole or cut off, names no head that the witness has not confirmed."""
    heads = {origin.head for origin in release_origins(trials.house / "release")}
    if trials.witnessed and heads:
        record = FileWitness(trials.house / WITNESS).read()
        assert record is not None
        with Ledger.open(trials.shelf.url(trials.ledger)) as ledger:
            settled = ledger.row_number(record.committed_head)
            places = [ledger.row_number(head) for head in heads]
        assert settled is not None
        assert all(place is not None and place <= settled for place in places)


CUTS = (
    ("a night, with a witness", "commit", 1),
    ("import", "commit", 2),
    ("a night", "execute INSERT INTO release*", 2),
    ("a night", "committed", 1),
    ("amend", "commit", 1),
    ("export", "commit", 1),
)


@pytest.mark.parametrize("how", ["terminate", pytest.param("kill", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "like", "nth"), [CUTS[0], *(pytest.param(*cut, marks=pytest.mark.long) for cut in CUTS[1:])]
)
def test_a_run_whose_connection_is_cut_or_whose_server_crashes_goes_on(
    scene: Scenes, name: str, like: str, nth: int, how: str
) -> None:
    if how == "kill" and os.geteuid():
        pytest.skip("only root may kill a process of the server's user")
    trials = scene(name, on_server=True)
    assert isinstance(trials.shelf, LedgerServer)
    end = trials.run(**trials.shelf.cut(how), like=like, kill_at=nth)
    assert len(end.passed) >= len(trials.passed)
    trials.shelf.server.wait()
    assert (end.status, beside_verdict(end.err)) == (0, ""), end
    trials.require_undisturbed()
    assert set((draws(trials.journal) - trials.drawn).values()) <= {1}
    assert trials.drawn - draws(trials.journal) == Counter()


def flow(trials: Scene, *, kill_after: float = 300, **how: object) -> int:
    """Run the flow in a process of its own; return its status."""
    order = trials.order("run", "run.toml", "--flow", log=str(trials.folder / "log"), **how)
    words = [sys.executable, str(SERVER), "--order", json.dumps(order)]
    with subprocess.Popen(
        words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            _, err = run.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            run.kill()
            _, err = run.communicate()
    assert "Traceback" not in err
    return run.returncode


@pytest.mark.prefect
@pytest.mark.parametrize(
    "how",
    [
        {"like": "execute INSERT INTO release*", "kill_at": 3},
        pytest.param({"like": "open .*.json.*", "kill_at": 1}, marks=pytest.mark.long),
        pytest.param({"like": "os.rename .SHA256SUMS.*", "kill_at": 1}, marks=pytest.mark.long),
        *(pytest.param({"kill_after": seconds}, marks=pytest.mark.long) for seconds in (3, 8, 12, 16)),
    ],
)
def test_a_killed_flow_leaves_no_server_and_the_next_run_mends(scene: Scenes, how: dict[str, object]) -> None:
    trials = scene("a night")
    assert flow(trials, **how) == -9 or "kill_after" in how  # type: ignore[arg-type]
    rows = trials.after_death()
    assert processes_of(trials.house, seconds=30) == []
    trials.mend()
    trials.require_drawn_once(rows)


@pytest.mark.long
@pytest.mark.prefect
def test_the_flow_mends_what_a_killed_run_left(scene: Scenes) -> None:
    trials = scene("a night")
    assert trials.run(like="committed", kill_at=4).killed
    assert flow(trials) == 0
    trials.require_undisturbed()
