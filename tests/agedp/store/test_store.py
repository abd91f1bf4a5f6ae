"""The confidential store: a second reading parses nothing, damage is noticed and mended, nobody else may look."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.stage_values import Delivery
from agedp.stages import ingest
from agedp.store import daily_totals, file_identity
from agedp.store.month_reader import load_month_readings
from agedp.store.store import Store, month_name, month_numbers, months_between
from agedp_data.datasets import file_listing
from agedp_data.datasets.ausgrid import AusgridKeys
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError

ONE = Engine("synchronous", 1)


@pytest.fixture(params=["london", pytest.param("ausgrid", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store with nothing in it and, beside it, the input files of its dataset in `input`."""
    (tmp_path / "input").mkdir()
    if request.param == "london":
        write_london(tmp_path / "input", households=4, first_day=date(2012, 12, 10), days=30, seed=1)
    else:
        write_ausgrid(
            tmp_path / "input", households=4, first_day=date(2012, 9, 20), days=20, seed=1, year_layout="2012-2013"
        )
    return Store(tmp_path / "out" / "confidential" / "store", request.param, ReadingRules())


def deliver(store: Store) -> Delivery:
    return ingest.ingest(store, [str(store.folder.parents[2] / "input")], engine=ONE)


def told(store: Store, delivery: Delivery) -> list[object]:
    """Return everything that a store says about a delivery, readings and days."""
    found: list[object] = []
    for month in delivery.months:
        settled = load_month_readings(store, month, delivery.contents)
        found += [settled.ids, settled.household.tolist(), settled.time.tolist(), settled.energy_wh.tolist()]
        found.append(daily_totals.read_daily_totals(store, month, delivery.contents).to_pylist())
    return found


def refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("was parsed again")


def test_a_second_reading_parses_nothing_and_says_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = deliver(store)
    said = told(store, first)
    monkeypatch.setattr(ingest, "parse_lines", refuse)
    monkeypatch.setattr(daily_totals, "index_month", refuse)
    second = deliver(store)
    assert second == replace(first, files_new=0)
    assert first.files_new == first.files
    monkeypatch.undo()
    assert told(store, second) == said


def a_part(store: Store) -> Path:
    return min(store.folder.glob("month=*/*.parquet"))


def some_days(store: Store) -> Path:
    return min(store.folder.glob("part_days/month=*/*.parquet"))


def a_manifest(store: Store) -> Path:
    return min(store.folder.glob("files/*.json"))


def edit_manifest(store: Store, change: Callable[[dict[str, object]], object]) -> None:
    path = a_manifest(store)
    found = json.loads(path.read_bytes())
    change(found)
    path.write_text(json.dumps(found))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def swap_parts(store: Store) -> None:
    one, other = sorted(store.folder.glob("month=*/*.parquet"))[:2]
    other.write_bytes(one.read_bytes())


DAMAGE: dict[str, Callable[[Store], object]] = {
    "part missing": lambda store: a_part(store).unlink(),
    "part cut off": lambda store: cut_off(a_part(store)),
    "part empty": lambda store: a_part(store).write_bytes(b""),
    "another part in its place": swap_parts,
    "days of a part missing": lambda store: some_days(store).unlink(),
    "days of a part cut off": lambda store: cut_off(some_days(store)),
    "manifest missing": lambda store: a_manifest(store).unlink(),
    "manifest cut off": lambda store: cut_off(a_manifest(store)),
    "manifest empty": lambda store: a_manifest(store).write_bytes(b""),
    "manifest no object": lambda store: a_manifest(store).write_bytes(b"[]"),
    "manifest of other types": lambda store: a_manifest(store).write_bytes(b'{"rows_read": 1, "kept": 1, "aside": 7}'),
    "manifest does not add up": lambda store: edit_manifest(store, lambda m: m["parts"][0].update(rows_read=1)),
    "manifest without months": lambda store: edit_manifest(store, lambda m: m["parts"][0].update(months={})),
    "manifest of a future": lambda store: edit_manifest(store, lambda m: m.update(more=1)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_noticed_and_mended_from_the_file(store: Store, damage: str) -> None:
    first = deliver(store)
    said = told(store, first)
    DAMAGE[damage](store)
    second = deliver(store)
    assert second == replace(first, files_new=1)
    assert told(store, second) == said


@pytest.mark.parametrize("harm", [Path.unlink, cut_off, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("pattern", ["days/*/*.aside.parquet", "days/*/*[0-9a-f].parquet"])
def test_damaged_days_are_made_anew_without_parsing(
    store: Store, pattern: str, harm: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = deliver(store)
    said = told(store, first)
    harm(min(path for path in store.folder.glob(pattern) if ".aside" in pattern or ".aside" not in path.name))
    monkeypatch.setattr(ingest, "parse_lines", refuse)
    assert deliver(store) == replace(first, files_new=0)
    assert told(store, first) == said


def test_a_flipped_byte_in_a_part_stops_with_one_line_and_the_next_run_mends_it(store: Store) -> None:
    first = deliver(store)
    said = told(store, first)
    part = a_part(store)
    content = bytearray(part.read_bytes())
    content[len(content) // 4] ^= 0xFF
    part.write_bytes(content)
    month = part.parent.name.removeprefix("month=")
    with pytest.raises(InputError, match="is missing or damaged; run again to rebuild it") as caught:
        load_month_readings(store, month, first.contents)
    assert part.stem not in str(caught.value)
    assert deliver(store) == replace(first, files_new=1)
    assert told(store, first) == said


def test_a_flipped_byte_in_settled_days_is_mended_at_once(store: Store) -> None:
    first = deliver(store)
    said = told(store, first)
    path = min(one for one in store.folder.glob("days/*/*[0-9a-f].parquet") if ".aside" not in one.name)
    sound = path.read_bytes()
    for place in range(0, len(sound), 293):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        assert deliver(store) == replace(first, files_new=0)
        assert told(store, first) == said
        assert path.read_bytes() == sound


def test_all_files_are_0600_and_all_folders_0700_whatever_the_umask(store: Store) -> None:
    before = os.umask(0)
    try:
        deliver(store)
    finally:
        os.umask(before)
    confidential = store.folder.parent
    everything = [confidential.parent, confidential, *confidential.rglob("*")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in everything if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in everything if path.is_dir()} == {0o700}


def test_a_folder_that_others_may_enter_is_closed_and_its_parents_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "a" / "b").chmod(0o755)
    atomic_files.make_private(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_a_full_disk_stops_with_one_line_leaves_no_half_file_and_the_next_run_is_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"^\[output\] cannot be written \(No space left on device\)"):
        deliver(store)
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []
    monkeypatch.undo()
    delivery = deliver(store)
    assert delivery.files_new == delivery.files


def test_what_a_killed_run_left_beside_a_file_does_not_stand_in_the_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as in a container
    path = atomic_files.make_private(store.folder) / "a"
    (path.parent / ".a.1-0.tmp").write_bytes(b"")
    atomic_files.write(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert [one.name for one in path.parent.iterdir() if one.suffix == ".tmp"] == [".a.1-0.tmp"]


def test_other_rules_another_dataset_or_other_bytes_are_another_content(tmp_path: Path) -> None:
    one = Store(tmp_path, "ausgrid", ReadingRules())
    others = [replace(one, dataset="london"), replace(one, rules=ReadingRules(max_half_hour_wh=1))]
    others.append(replace(one, rules=ReadingRules(layout_keys=AusgridKeys(categories=("GG",)))))
    assert len({one.content_id("a"), one.content_id("b"), *(other.content_id("a") for other in others)}) == 5


def test_months_are_named_by_the_calendar() -> None:
    names = [month_name(int(month)) for month in month_numbers(np.array([-1, 0, 15_705, 15_706]))]
    assert names == ["1969-12", "1970-01", "2012-12", "2013-01"]
    assert months_between(date(2012, 11, 30), date(2013, 2, 1)) == ("2012-11", "2012-12", "2013-01", "2013-02")
    assert months_between(date(2012, 2, 29), date(2012, 2, 29)) == ("2012-02",)


def test_a_run_that_is_stopped_keeps_the_digests_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "input").mkdir()
    for number in range(4):
        text = f"LCLid,tstp,energy(kWh/hh)\nA,2013-01-0{number + 1} 00:30:00,1\n"
        (tmp_path / "input" / f"{number}.csv").write_text(text)
    store = Store(tmp_path / "out" / "confidential" / "store", "london", ReadingRules())
    monkeypatch.setattr(file_identity, "_BATCH_FILES", 1)
    monkeypatch.setattr(file_identity, "_SETTLING_NS", 0)
    digest, hashed = file_listing.combine_digests, []

    def counted(leaves: list[bytes]) -> str:
        if len(hashed) == 2 and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        hashed.append(True)
        return digest(leaves)

    stopped: list[bool] = []
    monkeypatch.setattr(file_listing, "combine_digests", counted)
    with pytest.raises(KeyboardInterrupt):
        deliver(store)
    assert deliver(store).rows_read == 4
    assert len(hashed) == 4  # each file once
