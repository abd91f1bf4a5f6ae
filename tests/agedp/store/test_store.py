"""The confidential store: a second reading parses nothing, damage is noticed and mended, nobody else may look."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import group_names
from agedp.stage_values import Delivery
from agedp.stages import ingest
from agedp.store import daily_totals
from agedp.store.month_reader import load_month_readings
from agedp.store.retention import remove_old_months
from agedp.store.store import (
    FileOrder,
    Store,
    month_folder,
    months_folder,
    read_manifests,
    write_manifest,
)
from agedp_data import table_schemas
from agedp_data.datasets.synthetic import write_london
from agedp_data.datasets.validation import ReadingRules


def store_in(folder: Path) -> Store:
    return Store(folder / "out" / "confidential" / "store", "london", ReadingRules())


def deliver(store: Store) -> Delivery:
    return ingest.ingest(store, [str(store.folder.parents[2] / "input")], engine=Engine("synchronous", 1))


def content(store: Store, delivery: Delivery) -> list[object]:
    """Return everything that a store says about a delivery, readings and days."""
    found: list[object] = []
    for month in delivery.months:
        of = load_month_readings(store, month, delivery.contents)
        found += [of.ids, of.household.tolist(), of.time.tolist(), of.energy_wh.tolist()]
        found.append(daily_totals.read_daily_totals(store, month, delivery.contents).to_pylist())
    return found


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> tuple[Path, Delivery, list[object]]:
    """A folder with a store and its input files, the delivery that filled it, and all that it says."""
    folder = tmp_path_factory.mktemp("filled")
    write_london(folder / "input", households=4, first_day=date(2012, 12, 22), days=20, seed=1)
    first = deliver(store_in(folder))
    return folder, first, content(store_in(folder), first)


@pytest.fixture
def store(filled, tmp_path) -> Store:
    """A copy of the store; its input files are in `input`."""
    return store_in(Path(shutil.copytree(filled[0], tmp_path / "house")))


@pytest.fixture
def empty(store) -> Store:
    shutil.rmtree(store.folder.parents[1])
    return store


def refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("was parsed again")


def test_a_second_reading_parses_nothing_and_says_the_same(filled, store, monkeypatch):
    _, first, expected = filled
    assert first.files_new == first.files
    monkeypatch.setattr(ingest, "parse_lines", refuse)
    monkeypatch.setattr(daily_totals, "index_month", refuse)
    assert deliver(store) == replace(first, files_new=0)
    monkeypatch.undo()
    assert content(store, first) == expected


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def swap(path: Path) -> None:
    shutil.copy(max(path.parent.glob("*.parquet")), path)


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Return what changes a manifest."""

    def write(path: Path) -> None:
        found = json.loads(path.read_bytes())
        change(found)
        path.write_text(json.dumps(found))

    return write


PART, PART_DAYS, MANIFEST = "month=*/*.parquet", "part_days/month=*/*.parquet", "files/*.json"
DAYS, REJECTED = "days/*/*[0-9a-f].parquet", "days/*/*.aside.parquet"
DAMAGE = {
    "part missing": (PART, Path.unlink),
    "part cut off": (PART, cut_off),
    "part empty": (PART, make_empty),
    "another part in its place": (PART, swap),
    "days of a part missing": (PART_DAYS, Path.unlink),
    "days of a part cut off": (PART_DAYS, cut_off),
    "manifest missing": (MANIFEST, Path.unlink),
    "manifest cut off": (MANIFEST, cut_off),
    "manifest no object": (MANIFEST, lambda path: path.write_bytes(b"[]")),
    "manifest of other types": (MANIFEST, lambda path: path.write_bytes(b'{"rows_read": 1, "kept": 1, "aside": 7}')),
    "manifest does not add up": (MANIFEST, edit(lambda found: found["parts"][0].update(rows_read=1))),
    "manifest without months": (MANIFEST, edit(lambda found: found["parts"][0].update(months={}))),
    "manifest of a future": (MANIFEST, edit(lambda found: found.update(more=1))),
    **{f"{pattern} {harm.__name__}": (pattern, harm)
       for pattern in (DAYS, REJECTED) for harm in (Path.unlink, cut_off, make_empty)},
}  # fmt: skip


def first_path(store: Store, pattern: str) -> Path:
    return min(path for path in store.folder.glob(pattern) if pattern == REJECTED or ".aside" not in path.name)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_noticed_and_mended(filled, store, damage, monkeypatch):
    pattern, harm = DAMAGE[damage]
    harm(first_path(store, pattern))
    from_parts = pattern in (DAYS, REJECTED)
    if from_parts:
        monkeypatch.setattr(ingest, "parse_lines", refuse)
    assert deliver(store) == replace(filled[1], files_new=0 if from_parts else 1)
    assert content(store, filled[1]) == filled[2]


def rewrite_by_month(store: Store) -> None:
    """Store every part as version 0.2 did: in a file for each month, and for each bucket of it."""
    for manifest in read_manifests(store).manifests.values():
        parts = []
        for number, part in enumerate(manifest.parts):
            name, sizes = f"{manifest.content}-{number}.parquet", {}
            for folder, schema in ((store.folder, store.schema), (store.folder / "part_days", table_schemas.PART_DAYS)):
                path = folder / months_folder(part.months) / name
                tables = {group: atomic_files.read_table(path, schema, group=group) for group in group_names(path)}
                path.unlink()
                for group, table in tables.items():
                    own = atomic_files.make_private(folder / month_folder(group)) / name
                    sizes.setdefault(group, []).append(atomic_files.write_table(own, table))
            of_month = {month: [pair for group, pair in sizes.items() if group[:7] == month] for month in part.months}
            months = {
                month: (*part.months[month], *map(sum, zip(*of_month[month], strict=True))) for month in part.months
            }
            buckets = {
                month: {bucket: sizes[f"{month}/{bucket:0>3}"] for bucket in of} for month, of in part.buckets.items()
            }
            parts.append(replace(part, months=months, buckets=buckets, files=()))
        write_manifest(store.folder, replace(manifest, parts=tuple(parts)))


@pytest.mark.parametrize("buckets", [1, 3])
def test_a_store_with_a_file_for_each_month_is_read_as_it_stands(filled, tmp_path, monkeypatch, buckets):
    store = Store(tmp_path / "a" / "b" / "store", "london", ReadingRules(), FileOrder(keeps_unlisted=True), buckets)
    source = [str(filled[0] / "input")]
    first = ingest.ingest(store, source, engine=Engine("synchronous", 1, 2**14))
    expected = [load_month_readings(store, month, first.contents) for month in first.months]
    paths = sorted(path.relative_to(store.folder) for path in (store.folder / "days").rglob("*.parquet"))
    rewrite_by_month(store)
    for folder in store.folder.glob("**/month=*_*"):
        folder.rmdir()
    shutil.rmtree(store.folder / "days")
    store.books.path.unlink()
    monkeypatch.setattr(ingest, "parse_lines", refuse)
    assert ingest.ingest(store, source, engine=Engine("synchronous", 1)) == replace(first, files_new=0)
    for month, before in zip(first.months, expected, strict=True):
        after = load_month_readings(store, month, first.contents)
        assert all(np.array_equal(getattr(before, name), getattr(after, name)) for name in before.__slots__)
    assert paths == sorted(path.relative_to(store.folder) for path in (store.folder / "days").rglob("*.parquet"))
    remove_old_months(store, today=date(2013, 1, 31), keep_days=0, needed_from=date(2013, 1, 31))
    assert {path.name for path in store.folder.rglob("month=*")} == {"month=2013-01"}
    assert ingest.ingest(store, source, engine=Engine("synchronous", 1)).months == ("2013-01",)


def modes(paths) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}


def test_files_are_0600_and_folders_0700_whatever_the_umask(empty):
    before = os.umask(0)
    try:
        deliver(empty)
    finally:
        os.umask(before)
    confidential = empty.folder.parent
    everything = [confidential.parent, confidential, *confidential.rglob("*")]
    assert modes(path for path in everything if path.is_file()) == {0o600}
    assert modes(path for path in everything if path.is_dir()) == {0o700}


def test_a_folder_that_others_may_enter_is_closed_and_its_parent_is_not(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "a" / "b").chmod(0o755)
    atomic_files.make_private(tmp_path / "a" / "b")
    assert (modes([tmp_path / "a" / "b"]), modes([tmp_path / "a"])) == ({0o700}, {0o755})
