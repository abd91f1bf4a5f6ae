"""A population in household buckets: calibration, nights and reports give what they give without, also after damage."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from agedp.calibration_pipeline import calibrate
from agedp.store import store as store_module
from tests.agedp.test_damaged_files import FEBRUARY, FIRST, PROMISE, REST, World

LIVE = FIRST + timedelta(days=1)
REPORTED = ("true_means", "true_counts", "coverage", "counted_states")


def calibrated(folder: Path) -> World:
    """Return a world after calibration, before its first night."""
    folder.mkdir()
    world = World(folder)
    world.write(FIRST, FIRST, mode="live", clamp="20\nshare = 0.5", promise=PROMISE, rest=REST)
    world.edit((f"last_day = {FIRST}\n", ""))
    world.roster([(home, date(2013, 2, 1), None) for home in "ABC"])
    world.deliver("february.csv", FEBRUARY, 12)
    calibrate(world.run_file)
    return world


def made(folder: Path) -> World:
    """Return a world after calibration and two nights."""
    world = calibrated(folder)
    for number in range(2):
        day = FIRST + timedelta(days=number)
        world.deliver(f"{day}.csv", day, 1, extra=(f"A,{day} 00:30:00,soon", "A"))
        assert world.night(day + timedelta(days=2)) in ("silent", "warning")
    return world


def report_of(world: World) -> list[object]:
    tables: list[object] = [world.records(name) for name in REPORTED]
    return [*tables, sorted((line["content"], line["what"], line["rows"]) for line in world.records("quality"))]


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> World:
    return made(tmp_path_factory.mktemp("plain") / "plain")


def test_a_store_with_another_number_of_buckets_uses_no_daily_totals_of_before(tmp_path, monkeypatch):
    sums = []
    for numbers in ((3, 2), (2, 2)):
        world = calibrated(tmp_path / f"{numbers[0]}")
        world.deliver(f"{FIRST}.csv", FIRST, 2)  # the second day is summed by the first night, and due in the second
        store = world.folder / "confidential" / "store"
        for night, number in enumerate(numbers):
            monkeypatch.setattr(store_module, "buckets_for", lambda _, number=number: number)
            for path in (store.parent / "books.sqlite", *store.glob("files/*.json")):
                path.unlink(missing_ok=True)
            assert world.night(FIRST + timedelta(days=2 + night)) in ("silent", "warning")
        assert store_module.stored_buckets(store) == 2
        sums.append(world.records("true_means"))
    assert sums[0] == sums[1]


@pytest.mark.long
def test_runs_in_buckets_release_and_report_the_same(tmp_path, plain, monkeypatch):
    monkeypatch.setattr(store_module, "_HOUSEHOLDS_PER_BUCKET", 1)
    world = made(tmp_path / "split")
    store = world.folder / "confidential" / "store"
    assert store_module.stored_buckets(store) == 3
    assert world.values() == plain.values()
    assert report_of(world) == report_of(plain)
    public = (world.folder / "model" / "public.json").read_text()
    assert public == (plain.folder / "model" / "public.json").read_text()
    world.deliver("next.csv", LIVE + timedelta(days=1), 1)
    [*rosters] = (world.folder / "confidential" / "roster").glob("*/*.parquet")
    for path in (*rosters, *store.glob("days/*/bucket=*/*.parquet")):
        path.write_bytes(b"spoilt")
    (min(store.glob("month=2013-03/*.parquet"))).unlink()  # buckets are row groups of a part
    assert world.night(LIVE + timedelta(days=3)) == "silent"
    plain.deliver("next.csv", LIVE + timedelta(days=1), 1)
    assert plain.night(LIVE + timedelta(days=3)) == "silent"
    assert world.values() == plain.values()
    assert report_of(world) == report_of(plain)
