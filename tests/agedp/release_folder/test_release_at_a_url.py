"""A release folder at a URL holds what it would hold on a disk, is whole or known to be cut off, and is asked first."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from agedp.pipeline import sanitise
from agedp.release_folder.folder_writer import RemoteFolder
from agedp.release_folder.release_folder import SUMS, ReleaseFolder
from agedp.stages.publish import publish_release
from agedp_data.errors import InputError, LedgerBehind
from tests.agedp.conftest import House

FIRST = date(2013, 1, 1)


@pytest.fixture
def there(house: House) -> MemoryFileSystem:
    """The objects of a house that releases to a URL."""
    house.london(
        {(home, FIRST + timedelta(days=i), slot): 200 for home in "ABC" for i in range(3) for slot in range(48)}
    )
    house.roster([(home, FIRST, None) for home in "ABC"])
    house.write(FIRST, FIRST + timedelta(days=2))
    text = house.run_file.read_text()
    house.run_file.write_text(text.replace('release = "release"', f'release = "memory://{house.folder.name}/open"'))
    return fsspec.filesystem("memory")


def objects(house: House, there: MemoryFileSystem) -> dict[str, bytes]:
    root = f"/{house.folder.name}/open"
    return {name.rpartition("/")[2]: there.cat_file(name) for name in there.ls(root, detail=False)}


def test_it_holds_the_same_bytes_as_a_folder_on_a_disk(house: House, there: MemoryFileSystem) -> None:
    house.run()
    found = objects(house, there)
    house.run_file.write_text(house.run_file.read_text().replace(f"memory://{house.folder.name}/open", "release"))
    publish_release(house.session())
    assert house.files() == found
    assert {SUMS, "statement.json", "daily_averages.parquet", "report.html"} <= set(found)


def test_what_is_returned_is_verified_and_the_run_is_at_home_with_a_second_one(
    house: House, there: MemoryFileSystem
) -> None:
    folder = sanitise(house.run_file)
    assert isinstance(folder, ReleaseFolder)
    folder.verify()
    before = objects(house, there)
    assert house.run().released == ()
    assert objects(house, there) == before


def test_an_older_ledger_is_refused_beside_it(house: House, there: MemoryFileSystem) -> None:
    house.run(today=date(2013, 1, 2))
    shutil.copy(house.folder / "ledger.sqlite", house.folder / "older.sqlite")
    house.run()
    shutil.rmtree(house.folder / "confidential")  # another machine, that has neither notes nor a copy
    shutil.copy(house.folder / "older.sqlite", house.folder / "ledger.sqlite")
    before = objects(house, there)
    with pytest.raises(LedgerBehind, match="put back the newest copy"):
        house.run()
    (house.folder / "ledger.sqlite").unlink()
    with pytest.raises(LedgerBehind, match="from a ledger that is not there"):
        house.run()
    assert objects(house, there) == before


def test_cut_off_after_any_object_the_sums_do_not_match_until_the_next_run_has_mended_it(
    house: House, there: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    house.run(today=date(2013, 1, 2))
    put, done = MemoryFileSystem.pipe_file, []

    def cut_off(system: MemoryFileSystem, path: str, value: bytes, **more: object) -> None:
        if "trial" not in path:
            if len(done) == after:
                raise ConnectionError("cut off")
            done.append(path)
        put(system, path, value, **more)

    released = 0
    for after in range(12):
        done.clear()
        monkeypatch.setattr(MemoryFileSystem, "pipe_file", cut_off)
        try:
            house.run(today=date(2013, 1, 4))
        except InputError:
            copied = tmp_path / f"copied-{after}"
            copied.mkdir()
            for name, content in objects(house, there).items():
                (copied / name).write_bytes(content)
            if after:
                with pytest.raises(InputError):
                    ReleaseFolder(copied).verify()
        else:
            released = after
            break
    assert done[-1].endswith(SUMS)
    assert released > 2
    monkeypatch.undo()
    house.run(today=date(2013, 1, 4))
    with house.ledger() as ledger:
        assert len(ledger.rows()) == 3
    ReleaseFolder(house.folder / "confidential" / "release").verify()


def test_where_nothing_may_be_written_nothing_is_drawn(
    house: House, there: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    with pytest.raises(InputError, match=r"\[output\] release: cannot be opened \(Permission denied\)"):
        house.run()
    assert not (house.folder / "ledger.sqlite").exists()


def test_what_a_user_keeps_there_stays_and_files_of_another_release_go(house: House, there: MemoryFileSystem) -> None:
    root = f"/{house.folder.name}/open"
    house.run()
    before = objects(house, there)
    kept = {"README.txt": b"mine", "daily_averages_mine.parquet": b"mine too"}
    for name, content in {**kept, "daily_averages_daily_mean.parquet": before["daily_averages.parquet"]}.items():
        there.pipe_file(f"{root}/{name}", content)
    house.run()
    assert objects(house, there) == {**before, **kept}


def test_who_is_written_over_meanwhile_looks_at_the_ledger_again_and_puts_it_right(
    house: House, there: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, spoilt = MemoryFileSystem.pipe_file, []

    def with_another(system: MemoryFileSystem, path: str, value: bytes, **more: object) -> None:
        put(system, path, value, **more)
        if path.endswith(SUMS) and not spoilt:
            spoilt.append(path)
            put(system, path.replace(SUMS, "statement.json"), b"{}")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", with_another)
    house.run()
    assert spoilt
    outbox = RemoteFolder(f"memory://{house.folder.name}/open", house.folder / "fetched")
    outbox.fetch()
    ReleaseFolder(house.folder / "fetched").verify()
