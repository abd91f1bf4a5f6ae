"""No room, no permission, nobody who listens: one line, nothing lost, and right again as soon as there is a way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.scenes import Scene
from tests.nights.keyed import draws

Scenes = Callable[[str], Scene]


def stopped_then_mended(trials: Scene, file_bytes: int) -> bool:
    """Run without room and again with it; return whether the first run was stopped."""
    trials.restore()
    end = trials.run(boundaries=False, file_bytes=file_bytes)
    rows = trials.after_death()
    if end.status:
        assert end.status in (2, 3), end
        assert end.line
        journals = [str(path) for path in trials.house.rglob("*-journal")]
        # what SQLite may not write to now, it rolls back when it may
        needless = [path for path in journals if Path(path.removesuffix("-journal")).stat().st_size <= file_bytes]
        assert not [*trials.house.rglob("*.tmp"), *needless]
    trials.mend()
    trials.require_drawn_once(rows)
    return bool(end.status)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("a night", (300, 24_000)),
        ("amend", (300,)),
        *(
            pytest.param(name, range(0, 80_000, 2048), marks=pytest.mark.long)
            for name in ("the first run", "a night", "publish", "amend", "import")
        ),
    ],
)
def test_without_room_it_stops_in_one_line_and_goes_on_when_there_is_some(
    scene: Scenes, name: str, sizes: tuple[int, ...]
) -> None:
    trials = scene(name)
    stopped = [stopped_then_mended(trials, size) for size in sizes]
    assert stopped[0]
    assert stopped == sorted(stopped, reverse=True)


def test_where_the_release_does_not_fit_nothing_is_drawn(scene: Scenes) -> None:
    trials = scene("a night")
    rows = trials.stored()
    end = trials.run(boundaries=False, file_bytes=60_000)
    assert (end.status, "File too large); nothing was drawn" in end.line) == (2, True), end
    assert trials.stored() == rows
    assert draws(trials.journal) == Counter()
    trials.mend()


def test_a_reader_that_hears_nothing_changes_nothing_of_what_is_released(scene: Scenes) -> None:
    trials = scene("a night")
    end = trials.run(out="/dev/full")
    assert (end.status, "standard output cannot be written" in end.line) == (2, True)
    trials.require_undisturbed()


FORBIDDEN = [
    ("a night", "release", 0o500, 2, "nothing was drawn"),
    ("publish", "release", 0o555, 2, "Permission denied"),
    ("a night", "confidential", 0o500, 2, "Permission denied"),
    ("a night", "confidential", 0o000, 2, "confidential: cannot be read (Permission denied)"),
    ("a night", "confidential/store", 0o000, 2, "store: cannot be read (Permission denied)"),
    ("a night", "confidential/store/files/*.json", 0o000, 2, ".json: cannot be read (Permission denied)"),
    ("a night", "confidential/store/month=*/*.parquet", 0o000, 2, ".parquet: cannot be read (Permission denied)"),
    ("a night", "confidential/books.sqlite", 0o000, 2, "books.sqlite: cannot be read (Permission denied)"),
    ("a night", "confidential/books.sqlite", 0o400, 2, "books.sqlite: cannot be written"),
    ("a night", "book", 0o000, 3, "cannot be checked (Permission denied)"),
    ("the first run", "book", 0o555, 3, "Permission denied"),
    ("a night", "book/ledger.sqlite", 0o000, 3, "permissions"),
    ("amend", "book", 0o555, 3, "permissions"),
    ("export", ".", 0o555, 2, "Permission denied"),
    ("a night", "incoming/2.csv", 0o000, 2, "Permission denied"),
    ("a night", "run.toml", 0o000, 2, "run.toml"),
    ("a night", "curve.csv", 0o000, 2, "Permission denied"),
    ("calibrate", ".", 0o555, 2, "Permission denied"),
]
"""Scene, place, its mode, and the exit status and message of a run that needs it; a third of them in every run."""


@pytest.mark.parametrize(
    ("name", "place", "mode", "status", "message"),
    [pytest.param(*row, marks=[pytest.mark.long] if number % 3 else []) for number, row in enumerate(FORBIDDEN)],
)
def test_where_nothing_may_be_written_or_read_it_stops_in_one_line_and_goes_on_when_it_may(
    scene: Scenes, name: str, place: str, mode: int, status: int, message: str
) -> None:
    trials = scene(name)
    path = trials.house if place == "." else next(trials.house.glob(place))
    rows, before = trials.stored(), path.stat().st_mode
    path.chmod(mode)
    end = trials.run(boundaries=False, bound=True)
    assert (end.status, message in end.line) == (status, True), end
    path.chmod(before)
    assert trials.after_death() == rows
    assert draws(trials.journal) == Counter()
    trials.mend()


def test_a_plan_is_made_where_nothing_may_be_written(scene: Scenes) -> None:
    trials = scene("a night")
    for place in ("release", "book"):
        (trials.house / place).chmod(0o500)
    end = trials.run("plan", "run.toml", boundaries=False, bound=True)
    assert (end.status, end.err, end.out.splitlines()[0]) == (0, "", "3 days, 6 releases are due:")
