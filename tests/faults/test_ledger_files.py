"""A ledger that is cut, edited, put back from a copy, or none at all: found by `verify` and by the next run."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agedp.ledger_transfer import verify_against
from agedp.release_folder.release_folder import open_release
from agedp_data.errors import AgedpError
from agedp_data.ledger import Ledger
from agedp_data.ledger.records import Row
from tests.agedp_data.ledger.texts import promise
from tests.faults.scenes import Scene
from tests.nights.keyed import draws

Scenes = Callable[[str], Scene]


@pytest.fixture
def done(scene: Scenes) -> Scene:
    """A night that is done."""
    trials = scene("a night")
    assert trials.runs.one(trials.order()).status == 0
    return trials


def read_whole(path: Path, release: Path) -> tuple[Row, ...]:
    """Return the rows of a ledger that is sound and holds what was published from it."""
    with Ledger.open(f"sqlite:///{path}") as ledger:
        if ledger.verify():
            raise AgedpError("found")
        verify_against(open_release(release), ledger)
        return ledger.all_rows()


def refused_by_all(trials: Scene, said: str = "", *, also_verify: bool = True) -> None:
    """Require that run and verify stop with exit 3 and one line, that nothing is drawn, nothing changed."""
    before, drawn = trials.contents(), draws(trials.journal)
    words = [("run", "run.toml"), ("publish", "run.toml")]
    words += [("ledger", "verify", "run.toml")] if also_verify else []
    for order in words:
        end = trials.runs.one(trials.order(*order, boundaries=False))
        assert (end.status, end.out, said in end.line) == (3, "", True), end
    assert trials.contents() == before
    assert draws(trials.journal) == drawn


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0xFF
    return bytes(changed)


@pytest.mark.parametrize("step", [997, pytest.param(29, marks=pytest.mark.long)])
def test_every_flipped_byte_is_found_or_changes_no_row(done: Scene, step: int, tmp_path: Path) -> None:
    content = (done.house / done.ledger).read_bytes()
    path, found = tmp_path / "ledger.sqlite", 0
    places = range(step // 2, len(content), step)
    for place in places:
        path.write_bytes(flipped(content, place))
        try:
            rows = read_whole(path, done.house / "release")
        except AgedpError:  # and nothing else
            found += 1
        else:
            assert rows == done.rows, place
    assert found > len(places) / 4


@pytest.mark.parametrize("step", [4096, pytest.param(256, marks=pytest.mark.long)])
def test_every_lost_page_is_found(done: Scene, step: int, tmp_path: Path) -> None:
    content = (done.house / done.ledger).read_bytes()
    path = tmp_path / "ledger.sqlite"
    for length in {*range(0, len(content) - 4096, step), 1, 15, 16, 99, 100, 4095, 4097}:  # a page, or more, is gone
        path.write_bytes(content[:length])
        with pytest.raises(AgedpError) as caught:
            read_whole(path, done.house / "release")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [0, 100, *(pytest.param(cut, marks=pytest.mark.long) for cut in (1, 4096, 20_000))])
def test_a_ledger_that_was_cut_stops_the_run(done: Scene, cut: int) -> None:
    os.truncate(done.house / done.ledger, cut)
    refused_by_all(done, also_verify=cut > 0)


@pytest.mark.parametrize(
    "place", [0, 5000, *(pytest.param(place, marks=pytest.mark.long) for place in (20, 60, 100, 110, 20_000))]
)
def test_a_ledger_with_a_flipped_byte_stops_the_run_or_harms_nothing(done: Scene, place: int) -> None:
    path = done.house / done.ledger
    path.write_bytes(flipped(path.read_bytes(), place))
    end = done.runs.one(done.order(boundaries=False))
    if end.status:
        assert end.status == 3
        assert end.line
    else:
        assert done.everything() == done.rows
        assert done.contents() == done.files


EDITS = {
    "a value": "UPDATE release SET \"values\" = '[1]' WHERE seq = 8",
    "a loss": "UPDATE release SET loss = 0",
    "a day": "UPDATE release SET day = '2026-03-01' WHERE seq = 8",
    "a contract": "UPDATE contract SET promise = replace(promise, '0.4', '0.5')",
    "a model": "UPDATE model SET envelope = '{}'",
    "a claim": "UPDATE statement SET claim = '{}'",
    "a row taken out": "DELETE FROM release WHERE seq = 8",
    "a row put in": "INSERT INTO statement SELECT 99, at, population, claim, files, software, text, 'f' FROM statement"
    " LIMIT 1",
    "all releases taken out": "DELETE FROM release",
    "a table taken away": "DROP TABLE statement",
    "a column taken away": "ALTER TABLE release DROP COLUMN loss",
    "the version": "UPDATE meta SET content = '2'",
    "no version": "DELETE FROM meta",
}


@pytest.mark.parametrize(
    "edit", [pytest.param(edit, marks=[pytest.mark.long] if i % 3 else []) for i, edit in enumerate(EDITS)]
)
def test_a_ledger_that_was_edited_stops_the_run(done: Scene, edit: str) -> None:
    with closing(sqlite3.connect(done.house / done.ledger, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute(EDITS[edit])
    refused_by_all(done)


def test_an_older_copy_of_the_ledger_is_refused_beside_the_longer_folder(done: Scene) -> None:
    shutil.copy2(done.base / done.ledger, done.house / done.ledger)
    refused_by_all(done, "put back the newest copy", also_verify=False)
    end = done.runs.one(done.order("verify", "release", "--ledger", f"sqlite:///{done.house / done.ledger}"))
    assert (end.status, "shorter than the folder" in end.line) == (3, True)


def test_an_older_copy_is_refused_beside_a_folder_that_was_cut_off_before_its_checksums(scene: Scenes) -> None:
    trials = scene("a night")
    assert trials.runs.one(trials.order(like="os.rename .SHA256SUMS.*", kill_at=1)).killed
    shutil.copy2(trials.base / trials.ledger, trials.house / trials.ledger)
    refused_by_all(trials, "put back the newest copy", also_verify=False)


def test_another_ledger_is_refused_beside_the_folder(done: Scene, scene: Scenes) -> None:
    other = done.folder / "other.sqlite"
    Ledger.open(f"sqlite:///{other}", create=True).close()
    with Ledger.open(f"sqlite:///{other}") as ledger:
        ledger.register(promise("others"), at="2026-01-01")
    shutil.copy2(other, done.house / done.ledger)
    other.unlink()
    refused_by_all(done, "comes from another one", also_verify=False)


def test_an_empty_file_in_place_of_the_ledger_is_refused_beside_the_folder(done: Scene) -> None:
    (done.house / done.ledger).write_bytes(b"")
    refused_by_all(done, "put it back", also_verify=False)


def test_an_empty_file_where_nothing_was_released_becomes_the_ledger(scene: Scenes) -> None:
    trials = scene("the first run")
    (trials.house / trials.ledger).touch(mode=0o600)
    trials.mended()


def test_a_folder_or_a_text_in_place_of_the_ledger_is_refused(scene: Scenes) -> None:
    trials = scene("the first run")
    path = trials.house / trials.ledger
    path.mkdir()
    end = trials.runs.one(trials.order())
    assert (end.status, "is a folder" in end.line) == (3, True)
    path.rmdir()
    path.write_text("household_id,day\n" * 1000)
    end = trials.runs.one(trials.order())
    assert (end.status, "is not a ledger" in end.line) == (3, True)
    path.unlink()
    trials.mended()
