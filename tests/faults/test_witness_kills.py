"""Killed again and again beside a witness, a series is never refused, draws no stored day and publishes no other."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from agedp.release_folder.origin import release_origins
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import ReleaseRecord
from agedp_data.ledger.witness_file import FileWitness
from tests.faults.scenes import WITNESS, Scene
from tests.faults.test_at_once import WAITS
from tests.faults.test_on_a_server import goes_on
from tests.nights.keyed import draws

Scenes = Callable[..., Scene]
NAMES = ("the first run, with a witness", "a night, with a witness")
AROUND_THE_RECORD = ("os.rename .homes.witness.new", "open .homes.witness.new", "open .homes.witness.lock")


@pytest.mark.parametrize(
    ("like", "nth"), [(AROUND_THE_RECORD[0], 1), (AROUND_THE_RECORD[0], 2), ("commit", 1), ("committed", 1)]
)
def test_killed_around_a_commit_a_run_ends_as_undisturbed(scene: Scenes, like: str, nth: int) -> None:
    end = scene("a night, with a witness").trial(like=like, kill_at=nth)
    assert end.killed
    assert fnmatchcase(end.passed[-1], like)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_each_record_write_it_ends_as_undisturbed(scene: Scenes, name: str) -> None:
    trials = scene(name)
    for like in AROUND_THE_RECORD:
        times = sum(fnmatchcase(passed, like) for passed in trials.passed)
        assert times
        assert all(trials.trial(like=like, kill_at=nth).killed for nth in range(1, times + 1))


@pytest.mark.parametrize(("kills", "in_between"), [(8, 0), pytest.param(300, 10, marks=pytest.mark.long)])
def test_killed_many_times_no_day_has_two_values(scene: Scenes, kills: int, in_between: int) -> None:
    chance = random.Random(kills)  # noqa: S311 - instants, no secrets
    pending, ends = 0, 0
    for name in NAMES:
        trials = scene(name)
        begun = time.monotonic()
        assert trials.runs.one(trials.order()).status == 0
        lasts = time.monotonic() - begun
        trials.restore()
        died = 0
        while died < kills // len(NAMES):
            killed = _run(trials, chance, lasts)
            died, ends = died + killed, ends + (not killed)
            pending += killed and _is_pending(trials)
        trials.mended()
    print(f"{kills} kills, {pending} between pending and confirmed, {ends} runs to their end")
    assert pending >= in_between


def _run(trials: Scene, chance: random.Random, lasts: float) -> bool:
    """Run once more, and kill it anywhere; a run that comes to its end begins anew. Return whether it was killed."""
    stored = {(row.series, row.day) for row in trials.after_death() if isinstance(row, ReleaseRecord)}
    drawn, by_time = draws(trials.journal), chance.random() < 0.5
    instant = (
        {"kill_after": chance.uniform(0, lasts)} if by_time else {"kill_at": chance.randint(1, len(trials.passed))}
    )
    end = trials.runs.one(trials.order(**instant))
    assert not stored & set(draws(trials.journal) - drawn)
    _require_published_is_settled(trials)
    if end.killed:
        return True
    assert (end.status, end.err) == (0, ""), end
    assert trials.everything() == trials.rows
    assert trials.contents() == trials.files
    trials.restore()
    return False


def _is_pending(trials: Scene) -> bool:
    record = FileWitness(trials.house / WITNESS).read()
    return record is not None and record.state == "pending"


def _require_published_is_settled(trials: Scene) -> None:
    """Require that the release folder, whole or cut off, names no head that the witness has not confirmed."""
    heads = {sign.head for sign in release_origins(trials.house / "release")}
    record = FileWitness(trials.house / WITNESS).read()
    if heads:
        assert record is not None
        with Ledger.open(trials.shelf.url(trials.ledger)) as ledger:
            settled = ledger.row_number(record.committed_head)
            places = [ledger.row_number(head) for head in heads]
        assert settled is not None
        assert all(place is not None and place <= settled for place in places)


def test_a_run_whose_lost_commit_was_carried_out_goes_on(scene: Scenes) -> None:
    trials = scene("a night, with a witness", on_server=True)
    goes_on(trials, "terminate", like="commit", kill_at=1)


def test_of_runs_at_once_beside_a_witness_none_is_refused(scene: Scenes) -> None:
    trials = scene("a night, with a witness")
    ends = trials.runs.at_once(*[trials.order(boundaries=False)] * 4)
    assert Counter((end.status, end.err.replace(WAITS, "")) for end in ends) == {(0, ""): 4}
    assert draws(trials.journal) == trials.drawn
    assert trials.everything() == trials.rows
    assert trials.contents() == trials.files
