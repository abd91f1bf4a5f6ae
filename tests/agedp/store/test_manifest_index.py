"""The index of manifests says what they say, whatever happened to it or to them; parts are compared by size."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store import file_identity
from agedp.store import store as stores
from agedp.store.store import FileOrder, Store, StoredSizes, read_manifests, write_retained_from
from agedp_data.datasets.filesystem import list_input_files
from agedp_data.datasets.synthetic import write_london
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError


def deliver(store: Store) -> Delivery:
    return ingest(store, [str(store.folder.parents[1] / "input")], engine=Engine("synchronous", 1))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three input files and a store of them."""
    folder = tmp_path_factory.mktemp("filled")
    for number in range(3):
        first_day = date(2013, 1, 30 - number)
        written = write_london(folder / f"{number}", households=2, first_day=first_day, days=3, seed=number)
        (folder / "input").mkdir(exist_ok=True)
        written.files[0].rename(folder / "input" / f"{number}.csv")
    deliver(store_in(folder))
    return folder


def store_in(folder: Path) -> Store:
    return Store(folder / "confidential" / "store", "london", ReadingRules(), FileOrder(keeps_unlisted=True))


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Store:
    """A copy of the store, with the index that its second reading wrote."""
    store = store_in(Path(shutil.copytree(filled, tmp_path / "house")))
    read_manifests(store)
    return store


def manifest_paths(store: Store) -> list[Path]:
    return sorted((store.folder / "files").glob("*.json"))


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def test_a_second_delivery_reads_no_manifest_and_writes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = deliver(store)
    states = {path: path.stat().st_mtime_ns for path in store.folder.parent.rglob("*") if path.is_file()}
    monkeypatch.setattr(stores.Store, "manifest", lambda *_: pytest.fail("a manifest was parsed"))
    assert deliver(store) == first
    changed = {path.name for path, time in states.items() if path.stat().st_mtime_ns != time}
    assert changed <= {"quarantine_settled.parquet"}


@pytest.mark.parametrize(("seconds", "is_read"), [(1, True), (3, False)])
def test_a_file_that_changed_two_seconds_ago_may_change_again_unnoticed(store: Store, monkeypatch, seconds, is_read):
    [source] = list_input_files([str(store.folder.parents[1] / "input" / "0.csv")]).sources
    now_ns = source.touched_ns + seconds * 10**9
    monkeypatch.setattr(file_identity, "time", SimpleNamespace(time_ns=lambda: now_ns))
    found = [file_identity.identify_files(store, [source], engine=Engine("synchronous", 1)) for _ in range(2)]
    assert [file.is_read for [file] in found] == [True, is_read]


def test_a_renamed_file_counts_once_and_one_that_is_gone_still_counts(store: Store) -> None:
    first = deliver(store)
    folder = store.folder.parents[1] / "input"
    (folder / "0.csv").rename(folder / "again.csv")
    (folder / "1.csv").unlink()
    later = deliver(store)
    assert (later.rows_read, later.files_new, set(later.contents)) == (first.rows_read, 0, set(first.contents))


def test_parts_of_removed_months_are_not_expected(store: Store) -> None:
    manifests = read_manifests(store).manifests
    removed = [shutil.rmtree(folder) for folder in store.folder.glob("month=*") if folder.name[-7:] == "2013-01"]
    assert removed
    assert not all(StoredSizes(store).contains(*item) for item in manifests.items())
    write_retained_from(store.folder, "2013-02")
    assert all(StoredSizes(store).contains(*item) for item in manifests.items())


def test_unlisted_readings_that_are_lost_are_an_error(store: Store) -> None:
    deliver(store)
    shutil.rmtree(store.folder.parents[1] / "input")
    (store.folder.parents[1] / "input").mkdir()
    sorted((store.folder / "month=2013-01").glob("*.parquet"))[0].unlink()
    with pytest.raises(InputError, match="lacks readings of 1 files that are no longer delivered"):
        deliver(store)


def test_a_damaged_manifest_of_an_unlisted_file_is_an_error(store: Store) -> None:
    shutil.rmtree(store.folder.parents[1] / "input")
    (store.folder.parents[1] / "input").mkdir()
    spoil(manifest_paths(store)[0])
    with pytest.raises(InputError, match="the manifests of 1 stored files are damaged"):
        deliver(store)


def test_a_changed_file_is_read_again(store: Store) -> None:
    path = store.folder.parents[1] / "input" / "0.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    assert deliver(store).files_new == 1
    assert len(read_manifests(store).manifests) == 4
