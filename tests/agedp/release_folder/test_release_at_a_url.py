"""A release folder at a URL: the same bytes as on a disk, complete or known to be interrupted, read before a draw."""

from __future__ import annotations

import shutil
from datetime import date, timedelta

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from agedp.pipeline import sanitise
from agedp.release_folder.folder_files import SUMS
from agedp.release_folder.folder_writer import RemoteFolder
from agedp.release_verification import ReleaseFolder
from agedp.stages.publish import publish_release
from agedp_data.errors import InputError, LedgerBehind

FIRST = date(2013, 1, 1)


@pytest.fixture
def objects(house):
    """Let a population of three days be released to a URL; return its objects by name."""
    house.fill([FIRST + timedelta(days=i) for i in range(3)])
    house.write(FIRST, FIRST + timedelta(days=2))
    house.edit(('release = "release"', f'release = "memory://{house.folder.name}/open"'))
    system, root = fsspec.filesystem("memory"), f"/{house.folder.name}/open"
    return lambda: {name.rpartition("/")[2]: system.cat_file(name) for name in system.ls(root, detail=False)}


def test_it_has_the_bytes_of_a_folder_on_a_disk(house, objects):
    folder = sanitise(house.run_file)
    assert isinstance(folder, ReleaseFolder)
    folder.verify()
    before = objects()
    assert house.run().released == ()
    system, root = fsspec.filesystem("memory"), f"/{house.folder.name}/open"
    own = {"README.txt": b"mine", "daily_averages_mine.parquet": b"mine too"}
    for name, content in {**own, "daily_averages_daily_mean.parquet": before["daily_averages.parquet"]}.items():
        system.pipe_file(f"{root}/{name}", content)
    house.run()
    assert objects() == before | own  # the user's files stay, those of another release are removed
    house.edit((f"memory://{house.folder.name}/open", "release"))
    publish_release(house.session())
    assert house.files() == before


def test_an_older_ledger_is_refused_beside_it(house, objects):
    house.run(today=date(2013, 1, 2))
    shutil.copy(house.folder / "ledger.sqlite", house.folder / "older.sqlite")
    house.run()
    shutil.rmtree(house.folder / "confidential")  # another machine, without records and without a copy
    shutil.copy(house.folder / "older.sqlite", house.folder / "ledger.sqlite")
    before = objects()
    with pytest.raises(LedgerBehind, match="put back the newest copy"):
        house.run()
    (house.folder / "ledger.sqlite").unlink()
    with pytest.raises(LedgerBehind, match="from a ledger that is not there"):
        house.run()
    assert objects() == before


def test_an_interrupted_upload_fails_its_sums_until_the_next_run(house, objects, monkeypatch, tmp_path):
    house.run(today=date(2013, 1, 2))
    put, uploaded = MemoryFileSystem.pipe_file, []

    def interrupted(system, path, value, **more):
        if "trial" not in path:
            if len(uploaded) == after:
                raise ConnectionError("interrupted")
            uploaded.append(path)
        put(system, path, value, **more)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", interrupted)
    for attempt, after in enumerate((1, 3)):  # noqa: B007  (read by the stand-in)
        uploaded.clear()
        with pytest.raises(InputError):
            house.run(today=date(2013, 1, 4))
        copied = tmp_path / f"copied-{attempt}"
        copied.mkdir()
        for name, content in objects().items():
            (copied / name).write_bytes(content)
        with pytest.raises(InputError):
            ReleaseFolder(copied).verify()
    monkeypatch.undo()
    house.run(today=date(2013, 1, 4))
    assert len(house.rows()) == 3
    ReleaseFolder(house.folder / "confidential" / "release").verify()


def test_where_nothing_may_be_written_nothing_is_drawn(house, objects, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    with pytest.raises(InputError, match=r"\[output\] release: cannot be opened \(Permission denied\)"):
        house.run()
    assert not (house.folder / "ledger.sqlite").exists()


def test_a_run_that_is_overwritten_reads_the_ledger_again(house, objects, monkeypatch):
    put, uploaded = MemoryFileSystem.pipe_file, []

    def overwritten(system, path, value, **more):
        put(system, path, value, **more)
        if path.endswith(SUMS):
            uploaded.append(path)
            if len(uploaded) == 1:
                put(system, path.replace(SUMS, "statement.json"), b"{}")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", overwritten)
    house.run()
    assert len(uploaded) == 2
    RemoteFolder(f"memory://{house.folder.name}/open", house.folder / "fetched").fetch()
    ReleaseFolder(house.folder / "fetched").verify()
    assert {path.name for path in (house.folder / "fetched").iterdir()} == set(objects())
