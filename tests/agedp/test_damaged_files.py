"""Every file of the confidential and the model folder, spoiled in five ways, and the night after it.

The files are found by listing the folders, so a new kind is covered once a run writes it. Each night ends with status 0
(in silence, or with one line of warning), or with one line whose advice, once followed, leads to status 0. Noise that
only series, day and cell decide makes every wrong sum a wrong value in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.agedp import damaged_world
from tests.agedp.damaged_world import WAYS, World

FEBRUARY = "2013-02"
SILENT = {  # read by people alone, or written anew by every run before anybody reads it
    "confidential/forgetting/model.html",
    "confidential/quality.parquet",
    "confidential/quarantine_settled.parquet",
    "confidential/report.html",
    "confidential/store/quarantine/ID.parquet",
    "confidential/store/quarantine/month=MONTH/ID.parquet",
    "confidential/sums.parquet",
    "model/edges.parquet",
}
WARNED = {
    "confidential/alerts.jsonl",
    "confidential/alerts.1.jsonl",
    "confidential/counted_states.parquet",
    "confidential/coverage.parquet",
    "confidential/forgetting/model.parquet",
    "confidential/true_counts.parquet",
    "confidential/true_means.parquet",
    "model/households.parquet",
    "model/transitions.parquet",
}
MADE_ANEW = {
    "confidential/preflight.json",
    "confidential/store/days/month=MONTH/ID.parquet",
    "confidential/store/days/month=MONTH/ID.aside.parquet",
    "confidential/store/names.json",
}
REFUSED = {
    "confidential/released_rosters.parquet",
    "confidential/store/forgotten_before",
    "model/public.json",
    "model/public.sha256",
}
OF_INPUT_FILES = {  # made anew where the input file is still delivered, refused where it is not
    "confidential/store/files/ID.json",
    "confidential/store/month=MONTH/ID.parquet",
    "confidential/store/part_days/month=MONTH/ID.parquet",
}
KINDS = sorted(SILENT | WARNED | MADE_ANEW | REFUSED | OF_INPUT_FILES)


def _most_behind_long(kinds: list[str]) -> list:
    """Return kinds of files as parameters, every third of them without `long`."""
    return [pytest.param(kind, marks=[pytest.mark.long] if i % 3 else []) for i, kind in enumerate(kinds)]


class Sound(NamedTuple):
    """A world before its next night, and another one after it."""

    before: World
    after: World


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Sound]:
    """Worlds that read a new file in the next night, or (ready) that have stored it already."""
    worlds: dict[bool, Sound] = {}

    def world(ready: bool) -> Sound:
        if ready not in worlds:
            folder = tmp_path_factory.mktemp("sound")
            before = damaged_world.make(folder / "before", ready=ready)
            after = before.copied(folder / "after")
            end = after.next_night()
            assert (end.status, end.out, end.err) == (0, "", "")
            worlds[ready] = Sound(before, after)
        return worlds[ready]

    return world


def night(sound: Sound, world: World, path: Path) -> str:
    """Run the next night, and once more after following its advice if it ends with an error; return how it ended."""
    before = world.values()
    end = world.next_night()
    assert end.status in (0, 2, 3), (path, end)
    assert "Traceback" not in end.err
    assert end.err.count("\n") <= 1, end
    if end.status == 0:
        return "warning" if end.err else "silent"
    assert world.values() == before
    [advice, *_] = damaged_world.advice_of(end.err)
    damaged_world.follow(world, path, sound.before, advice)
    end = world.next_night()
    assert (end.status, "warning" in end.err) == (0, False), (path, end)
    return "refused"


def judge(sound: Sound, folder: Path, path: Path, way: str, *, nights: int = 1) -> str:
    """Spoil one file and run some nights, of which the first has a day to release; return how that one ended."""
    world = sound.before.copied(folder)
    damaged_world.spoil(world, path, way)
    endings = [night(sound, world, path) for _ in range(nights)]
    assert world.values() == sound.after.values(), (path, way)
    assert world.draws() == sound.after.draws()
    figures, true = world.true_figures(), sound.after.true_figures()
    let_go = {key for key in true if key[0].startswith(FEBRUARY)}  # their readings are gone
    assert figures.items() <= true.items(), (path, way)
    assert true.keys() - figures.keys() <= (let_go if path.name.startswith("true_") else set())
    return ", ".join(endings)


def expected(kind: str) -> set[str]:
    if kind in WARNED:
        return {"warning"}
    if kind in REFUSED:
        return {"refused"}
    return {"silent", "refused"} if kind in OF_INPUT_FILES else {"silent"}


def test_every_kind_of_file_is_listed(sound):
    assert sorted(damaged_world.kinds(sound(False).before)) == KINDS


@pytest.mark.parametrize("kind", _most_behind_long(KINDS))
def test_a_night_after_damage_is_right_or_says_what_helps(sound, tmp_path, kind):
    """Each kind once, in ways that take turns."""
    number = KINDS.index(kind)
    worlds = sound(number % 2 == 0)
    path = damaged_world.kinds(worlds.before)[kind][-1]
    judged = judge(worlds, tmp_path / "world", path, [*WAYS][number % len(WAYS)])
    assert judged in expected(kind)


@pytest.mark.parametrize("kind", _most_behind_long(sorted(REFUSED)))
def test_every_alternative_of_an_advice_helps(sound, tmp_path, kind):
    worlds = sound(False)
    [path] = damaged_world.kinds(worlds.before)[kind]
    spoiled = worlds.before.copied(tmp_path / "spoiled")
    damaged_world.spoil(spoiled, path, "half")
    advised = damaged_world.advice_of(spoiled.next_night().err)
    for number, advice in enumerate(advised):
        world = spoiled.copied(tmp_path / str(number))
        damaged_world.follow(world, path, worlds.before, advice)
        assert (world.next_night().status, world.values()) == (0, worlds.after.values()), advice
    assert advised


@pytest.mark.long
@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_every_file_spoiled_in_every_way(sound, tmp_path, ready, way):
    worlds = sound(ready)
    for number, path in enumerate(damaged_world.files(worlds.before)):
        judged = judge(worlds, tmp_path / str(number), path, way, nights=2)
        print(f"{way:8s} {judged:18s} {path}")
