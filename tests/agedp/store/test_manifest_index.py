"""The index of manifests says what they say, whatever happened to it or to them; parts are compared by size."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from agedp.compute.engine_settings import Engine
from agedp.local_files.atomic_files import checked_json
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store import store as stores
from agedp.store.store import FileOrder, Manifest, Store, StoredSizes, read_manifests
from agedp_data.datasets.synthetic import write_london
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError
from tests import books


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


def read_one_by_one(store: Store) -> dict[str, Manifest]:
    """Return what the manifests say without an index: each file is parsed."""
    manifests = {path.stem: store.manifest(path.stem) for path in manifest_paths(store)}
    return {content: manifest for content, manifest in manifests.items() if manifest is not None}


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def edit(path: Path) -> None:
    """Change a count and keep the checksum right: the rows no longer add up."""
    record = json.loads(path.read_bytes())
    record["parts"][0]["rows_read"] += 1
    path.write_bytes(checked_json({key: value for key, value in record.items() if key != "checksum"}))


def flip_and_keep_times(path: Path) -> None:
    """Change a byte; size and time of the last change of the content stay."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("damage", [spoil, edit, flip_and_keep_times, Path.unlink])
def test_the_manifest_is_the_truth(store: Store, damage: Callable[[Path], None]) -> None:
    first, *others = manifest_paths(store)
    damage(first)
    for _ in range(2):  # the second time from the index
        stored = read_manifests(store)
        assert stored.manifests == read_one_by_one(store)
        assert stored.manifests.keys() == {path.stem for path in others}
        assert stored.damaged == ({first.stem} if first.exists() else set())


@pytest.mark.parametrize(
    "damage",
    [
        lambda store: books.spoil(store.folder.parent, "manifests"),
        lambda store: books.forget(store.folder.parent, "manifests"),
        lambda store: store.books.put("manifests", dict.fromkeys(store.books.keys("manifests"), b"{}")),
        lambda store: store.books.put("manifests", dict.fromkeys(store.books.keys("manifests"), b'["", {}]')),
        lambda store: store.books.path.unlink(),
    ],
)
def test_a_damaged_index_is_written_again(store: Store, damage: Callable[[Store], object]) -> None:
    before = store.books.rows("manifests")
    damage(store)
    assert read_manifests(store).manifests == read_one_by_one(store)
    assert store.books.rows("manifests") == before


def test_a_manifest_of_a_later_version_counts_after_the_upgrade(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, first = read_one_by_one(store), manifest_paths(store)[0]
    books.forget(store.folder.parent, "manifests")
    parse = stores.Store.manifest
    monkeypatch.setattr(
        stores.Store, "manifest", lambda store, content: None if content == first.stem else parse(store, content)
    )
    for _ in range(2):
        assert read_manifests(store).damaged == {first.stem}
    monkeypatch.undo()
    assert read_manifests(store).manifests == expected


@pytest.mark.parametrize("damage", [spoil, flip_and_keep_times, Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_damaged_table_of_rows_is_written_again(store: Store, damage: Callable[[Path], object]) -> None:
    deliver(store)
    quality = store.folder.parent / "quality.parquet"
    before = quality.read_bytes()
    damage(quality)
    deliver(store)
    assert quality.read_bytes() == before


def test_a_renamed_file_counts_once_and_one_that_is_gone_still_counts(store: Store) -> None:
    first = deliver(store)
    folder = store.folder.parents[1] / "input"
    (folder / "0.csv").rename(folder / "again.csv")
    (folder / "1.csv").unlink()
    later = deliver(store)
    assert (later.rows_read, later.files_new, set(later.contents)) == (first.rows_read, 0, set(first.contents))


def test_a_changed_file_is_read_again(store: Store) -> None:
    path = store.folder.parents[1] / "input" / "0.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    assert deliver(store).files_new == 1
    assert len(read_manifests(store).manifests) == 4


@pytest.mark.parametrize("table", ["month=2013-01", "part_days/month=2013-01"])
@pytest.mark.parametrize("damage", [spoil, Path.unlink])
def test_a_part_of_another_size_is_not_stored(store: Store, table: str, damage: Callable[[Path], None]) -> None:
    manifests = read_manifests(store).manifests
    assert all(StoredSizes(store).contains(content, manifest) for content, manifest in manifests.items())
    part = sorted((store.folder / table).glob("*.parquet"))[0]
    damage(part)
    damaged = part.stem.rpartition("-")[0]
    sizes = StoredSizes(store)
    found = {content for content, manifest in manifests.items() if sizes.contains(content, manifest)}
    assert found == manifests.keys() - {damaged}
    assert not sizes.contains(damaged, None)


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
