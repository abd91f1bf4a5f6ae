"""A ledger that is cut, edited, put back from a copy, or none at all: found by `verify` and by the next run.

Each edit of a row: tests/agedp_data/ledger/test_tampering.py.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agedp.ledger_transfer import verify_against
from agedp.release_verification import open_release
from agedp_data.errors import AgedpError
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import Row
from tests.agedp_data.ledger.conftest import promise
from tests.faults.scenes import Scene
from tests.nights.keyed import draws

Scenes = Callable[[str], Scene]


@pytest.fixture
def done(scene: Scenes) -> Scene:
    """A night that is done."""
    trials = scene("a night")
    assert trials.run().status == 0
    return trials


def read_whole(path: Path, release: Path) -> tuple[Row, ...]:
    """Return the rows of a ledger that is sound and contains what was published from it."""
    with Ledger.open(f"sqlite:///{path}") as ledger:
        if ledger.verify():
            raise AgedpError("a fault was found")
        verify_against(open_release(release), ledger)
        return ledger.all_rows()


def flip(path: Path, content: bytes, place: int) -> None:
    path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])


@pytest.mark.parametrize("step", [1997, pytest.param(29, marks=pytest.mark.long)])
def test_every_flipped_byte_is_found_or_changes_no_row(done: Scene, step: int, tmp_path: Path) -> None:
    content = (done.house / done.ledger).read_bytes()
    path, found = tmp_path / "ledger.sqlite", 0
    places = range(step // 2, len(content), step)
    for place in places:
        flip(path, content, place)
        try:
            rows = read_whole(path, done.house / "release")
        except AgedpError:  # and nothing else
            found += 1
        else:
            assert rows == done.rows, place
    assert found > len(places) / 4


@pytest.mark.parametrize("step", [16384, pytest.param(256, marks=pytest.mark.long)])
def test_every_lost_page_is_found(done: Scene, step: int, tmp_path: Path) -> None:
    content = (done.house / done.ledger).read_bytes()
    path = tmp_path / "ledger.sqlite"
    for length in {*range(0, len(content) - 4096, step), 1, 15, 16, 99, 100, 4095, 4097}:  # a page, or more, is gone
        path.write_bytes(content[:length])
        with pytest.raises(AgedpError) as caught:
            read_whole(path, done.house / "release")
        assert "\n" not in str(caught.value)


def edit(trials: Scene) -> None:
    with closing(sqlite3.connect(trials.house / trials.ledger, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE release SET \"values\" = '[1]' WHERE seq = 8")


def put_in_another(trials: Scene) -> None:
    (trials.house / trials.ledger).unlink()
    with Ledger.open(trials.shelf.url(trials.ledger), create=True) as ledger:
        ledger.register(promise("others"), at="2026-01-01")


def put_back(trials: Scene) -> None:
    shutil.copy2(trials.base / trials.ledger, trials.house / trials.ledger)


DAMAGES = {
    "cut to its header": (lambda trials: os.truncate(trials.house / trials.ledger, 100), ""),
    "emptied": (lambda trials: os.truncate(trials.house / trials.ledger, 0), "put it back"),
    "edited": (edit, ""),
    "an older copy": (put_back, "put back the newest copy"),
    "another ledger": (put_in_another, "comes from another one"),
}


def require_refused(trials: Scene, message: str) -> None:
    """Require that a run and a publication stop with exit 3 and one line, nothing drawn and nothing changed."""
    before, drawn = trials.contents(), draws(trials.journal)
    for words in ("run", "publish"):
        end = trials.run(words, "run.toml", boundaries=False)
        assert (end.status, end.out, message in end.line) == (3, "", True), end
    assert trials.contents() == before
    assert draws(trials.journal) == drawn


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_ledger_stops_the_run(done: Scene, damage: str) -> None:
    spoil, message = DAMAGES[damage]
    spoil(done)
    require_refused(done, message)
    if damage in ("cut to its header", "edited"):
        end = done.run("ledger", "verify", "run.toml", boundaries=False)
        assert (end.status, end.out, bool(end.line)) == (3, "", True)


def test_an_older_copy_is_refused_beside_a_folder_that_was_cut_off_before_its_checksums(scene: Scenes) -> None:
    trials = scene("a night")
    assert trials.run(like="os.rename .SHA256SUMS.*", kill_at=1).killed
    put_back(trials)
    require_refused(trials, "put back the newest copy")


def test_where_nothing_was_released_an_empty_file_becomes_the_ledger_and_nothing_else_does(scene: Scenes) -> None:
    trials = scene("the first run")
    path = trials.house / trials.ledger
    path.mkdir()
    end = trials.run()
    assert (end.status, "is a folder" in end.line) == (3, True)
    path.rmdir()
    path.write_text("household_id,day\n" * 1000)
    end = trials.run()
    assert (end.status, "is not a ledger" in end.line) == (3, True)
    path.unlink()
    path.touch(mode=0o600)
    trials.mend()
