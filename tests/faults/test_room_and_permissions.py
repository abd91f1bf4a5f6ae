"""No room, no permission, nobody who listens: one line, nothing lost, and right again as soon as there is a way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.scenes import Scene

Scenes = Callable[[str], Scene]


def stopped_then_mended(trials: Scene, **how: object) -> bool:
    """Run under a fault and again without it; return whether the fault stopped the first run."""
    trials.restore()
    end = trials.runs.one(trials.order(boundaries=False, **how))
    rows = trials.after_death()
    if end.status:
        assert end.status in (2, 3), end
        assert end.line
        assert not list(trials.house.rglob("*.tmp"))
        assert not list(trials.house.rglob("*-journal"))
    trials.mended()
    trials.drawn_once(rows, trials.rows)
    return bool(end.status)


@pytest.mark.parametrize("name", ["the first run", "a night", "publish", "amend", "import"])
@pytest.mark.parametrize("sizes", [(300, 24_000), pytest.param(range(0, 80_000, 2048), marks=pytest.mark.long)])
def test_without_room_it_stops_in_one_line_and_goes_on_when_there_is_some(
    scene: Scenes, name: str, sizes: tuple[int, ...]
) -> None:
    trials = scene(name)
    stopped = [stopped_then_mended(trials, file_bytes=size) for size in sizes]
    assert stopped[0]
    assert stopped == sorted(stopped, reverse=True)


def test_a_reader_that_hears_nothing_changes_nothing_of_what_is_released(scene: Scenes) -> None:
    trials = scene("a night")
    end = trials.runs.one(trials.order(out="/dev/full"))
    assert end.status == 2
    assert "standard output cannot be written" in end.line
    assert trials.everything() == trials.rows
    assert trials.contents() == trials.files


@pytest.mark.parametrize(
    ("name", "place", "mode", "status", "said"),
    [
        ("a night", "release", 0o555, 2, "Permission denied"),
        ("publish", "release", 0o555, 2, "Permission denied"),
        ("a night", "confidential", 0o500, 2, "Permission denied"),
        ("a night", "confidential/store/files", 0o500, 2, "Permission denied"),
        ("a night", "book", 0o555, 3, "permissions"),
        ("the first run", "book", 0o555, 3, "Permission denied"),
        ("a night", "book/ledger.sqlite", 0o444, 3, "permissions"),
        ("a night", "book/ledger.sqlite", 0o000, 3, "permissions"),
        ("amend", "book", 0o555, 3, "permissions"),
        ("export", ".", 0o555, 2, "Permission denied"),
        ("a night", "incoming/2.csv", 0o000, 2, "Permission denied"),
        ("a night", "roster.csv", 0o000, 2, "roster"),
        ("a night", "run.toml", 0o000, 2, "run.toml"),
        ("calibrate", ".", 0o555, 2, "Permission denied"),
    ],
)
def test_where_nothing_may_be_written_or_read_it_stops_in_one_line_and_goes_on_when_it_may(
    scene: Scenes, name: str, place: str, mode: int, status: int, said: str
) -> None:
    trials = scene(name)
    before = (trials.house / place).stat().st_mode
    (trials.house / place).chmod(mode)
    end = trials.runs.one(trials.order(boundaries=False, bound=True))
    assert (end.status, said in end.line) == (status, True), end
    (trials.house / place).chmod(before)
    trials.after_death()
    trials.mended()
