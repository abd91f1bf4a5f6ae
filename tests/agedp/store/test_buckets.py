"""A store of several household buckets has the readings and sums of one without; a damaged roster bucket is mended."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from agedp.compute import engine as engine_module
from agedp.compute.engine_settings import Engine
from agedp.local_files.atomic_files import FolderRemoved
from agedp.stage_values import Delivery
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.bucketed_roster import write_bucketed_roster
from agedp.store.daily_totals import read_daily_totals
from agedp.store.store import (
    FileOrder,
    Store,
    bucket_numbers,
    bucket_of,
    buckets_for,
    record_buckets,
    size_notice,
    store_buckets,
)
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import Roster, RosterRows, read_roster
from agedp_data.series.series import series_in
from tests.books import forget, spoil
from tests.exact_sums import as_values

INLINE = Engine("synchronous", 1, 20_000, 1)
HEADER = "LCLid,DateTime,KWH/hh (per half hour)\n"
FIRST = date(2013, 1, 29)
HOUSEHOLDS = [f"MAC{number:06}" for number in range(12)]
Readings = dict[tuple[str, datetime], int]


def write_rows(path: Path, rows: Iterable[tuple[str, datetime, int]]) -> None:
    lines = (f"{household},{end:%Y-%m-%d %H:%M:%S},{wh / 1000}\n" for household, end, wh in rows)
    path.write_text(HEADER + "".join(lines))


def write_deliveries(folder: Path) -> Readings:
    """Write four days of two months: some whole, a day of its own, corrections, duplicates; return what counts."""
    folder.mkdir()
    draw, counted = random.Random(28), Readings()  # noqa: S311
    ends = [datetime(2013, 1, 29) + timedelta(minutes=30 * slot) for slot in range(1, 4 * 48 + 1)]
    energies = {(household, end): draw.randrange(900) for household in HOUSEHOLDS for end in ends}
    rows = [(household, end, wh) for (household, end), wh in energies.items() if draw.random() < 0.97]
    days = sorted({end.date() for _, end, _ in rows})
    write_rows(folder / "a1.csv", [row for row in rows if row[1].date() < days[2]])
    write_rows(folder / "a2.csv", [row for row in rows if row[1].date() == days[2]])
    write_rows(folder / "a3.csv", [row for row in rows if row[1].date() > days[2]])
    again = draw.sample(rows, 140)
    repeated, corrected = again[:60], [(household, end, wh + 1000) for household, end, wh in again[60:]]
    write_rows(folder / "a4.csv", repeated + corrected)
    for household, end, wh in [*rows, *repeated, *corrected]:
        counted[household, end] = wh
    return counted


def day_of(end: datetime) -> date:
    return (end - timedelta(minutes=30)).date()


def totals_of(readings: Readings) -> dict[tuple[str, date], tuple[int, int]]:
    found: dict[tuple[str, date], list[int]] = defaultdict(list)
    for (household, end), wh in readings.items():
        found[household, day_of(end)].append(wh)
    return {key: (sum(energy), len(energy)) for key, energy in found.items()}


def stored_totals(store: Store, delivery: Delivery) -> dict[tuple[str, date], tuple[int, int]]:
    found = {}
    for month in delivery.months:
        for bucket in range(store.buckets):
            for row in read_daily_totals(store, month, delivery.contents, bucket).to_pylist():
                assert bucket_of(row["household_id"], store.buckets) == bucket
                assert (row["household_id"], row["day"]) not in found
                found[row["household_id"], row["day"]] = row["energy_wh"], row["readings"]
    return found


@pytest.fixture(scope="module")
def delivered(tmp_path_factory) -> tuple[Path, Readings]:
    folder = tmp_path_factory.mktemp("buckets")
    return folder / "in", write_deliveries(folder / "in")


def roster_in(folder: Path) -> Roster:
    path = folder / "roster.csv"
    rows = [f"{household},2013-01-01,,{'N' if i % 3 else 'S'}-{i % 2}" for i, household in enumerate(HOUSEHOLDS[1:])]
    path.write_text("household_id,from,to,area\n" + "\n".join(rows) + "\n")
    return read_roster(path)


SERIES = {
    "mean": series_in({"statistic": "mean", "clamp_kwh": 25, "by": "area", "max_missing": 4}),
    "counts": series_in(
        {"statistic": "distribution", "clamp_kwh": 30, "bins_kwh": [0, 20, 22, 30], "max_missing": 2, "by": "area"}
    ),
    "profile": series_in({"statistic": "profile", "clamp_kwh": 50, "half_hour_clamp_kwh": "0.8", "by": "area"}),
    "coverage": series_in({"statistic": "coverage"}),
}
DAYS = [FIRST + timedelta(days=number) for number in range(4)]


def sums_of(store: Store, delivery: Delivery, roster: Roster, engine: Engine) -> list[object]:
    return list(aggregate(store, delivery, roster, days=DAYS, series=SERIES, engine=engine).items())


@pytest.mark.parametrize("scheduler", ["threads", pytest.param("processes", marks=pytest.mark.long)])
def test_sums_are_the_same_in_buckets_processes_and_any_order(tmp_path, delivered, scheduler):
    folder, readings = delivered
    roster = roster_in(tmp_path)
    found = []
    for i, (buckets, engine) in enumerate([(1, INLINE), (7, Engine("threads", 3, 60_000)), (64, INLINE)]):
        shuffled = tmp_path / f"in{i}"
        shuffled.mkdir()
        names = sorted(path.name for path in folder.iterdir())
        for place, name in enumerate(random.Random(i).sample(names, len(names))):  # noqa: S311
            target = shuffled / str(place)
            target.mkdir()
            shutil.copy(folder / name, target / name)
        store = Store(tmp_path / f"c{i}" / "store", "london", ReadingRules(), FileOrder("name"), buckets)
        delivery = ingest(store, [str(shuffled / "*" / "*.csv")], engine=engine)
        found.append(sums_of(store, delivery, roster, replace(engine, scheduler=scheduler)))
    values = [[(key, as_values(one)) for key, one in sums] for sums in found]
    assert all(of == values[0] for of in values[1:])
    totals, members = totals_of(readings), set(roster.rows.ids)
    usable = [(household, day) for (household, day), (_, number) in totals.items() if number >= 44]
    for (day, name), daily_sum in found[0]:
        if name == "mean":
            counted = sum(min(totals[key][0], 25_000) for key in usable if key[1] == day and key[0] in members)
            assert int(daily_sum.exact.sum()) == counted
            assert [*daily_sum.parts] == sorted(daily_sum.parts)


def test_results_that_reach_the_client_do_not_grow_with_households(tmp_path, monkeypatch):
    """Every value that the engine returns is as long for 120 households as for 20."""
    sizes: list[list[int]] = []
    stream = engine_module.stream_items

    def observed(*args: Any, **keywords: Any) -> Iterator[Any]:
        for result in stream(*args, **keywords):
            sizes[-1].append(numbers_in(result))
            yield result

    monkeypatch.setattr(engine_module, "stream_items", observed)
    for households in (20, 120):
        folder = tmp_path / str(households)
        folder.mkdir()
        ids = [f"H{number}" for number in range(households)]
        ends = [datetime(2013, 1, 29, 0, 30) + timedelta(minutes=30 * slot) for slot in range(96)]
        write_rows(folder / "a.csv", [(one, end, 100) for one in ids for end in ends])
        write_rows(folder / "b.csv", [(one, end, 100 + (one == "H3")) for one in ids for end in ends[:48]])
        (folder / "roster").write_text("household_id,from,to\n" + "".join(f"{one},2013-01-01,\n" for one in ids))
        store = Store(folder / "c" / "store", "london", ReadingRules(), buckets=3)
        sizes.append([])
        delivery = ingest(store, [str(folder / "*.csv")], engine=INLINE)
        series = {name: SERIES[name] for name in ("coverage",)}
        series["mean"] = series_in({"statistic": "mean", "clamp_kwh": 25})
        aggregate(store, delivery, read_roster(folder / "roster"), days=DAYS, series=series, engine=INLINE)
    assert max(sizes[1]) <= max(sizes[0]) + 8


def numbers_in(value: object) -> int:
    """Return how many numbers and texts a result contains."""
    if isinstance(value, Mapping):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list | tuple | set):
        return sum(map(numbers_in, value))
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, pa.Table):
        return value.num_rows * value.num_columns
    names = getattr(value, "__dataclass_fields__", None)
    return sum(numbers_in(getattr(value, name)) for name in names) if names else 1


def test_a_store_keeps_its_number_of_buckets(tmp_path, delivered):
    assert [buckets_for(households) for households in (0, 50_000, 50_001, 30_000_000)] == [1, 1, 2, 600]
    assert store_buckets(tmp_path / "none", 120_000) == 3
    store = Store(tmp_path / "c" / "store", "london", ReadingRules(), FileOrder("name"), 7)
    ingest(store, [str(delivered[0])], engine=INLINE)
    for damage in (spoil, forget):
        damage(tmp_path / "c", "buckets")
        assert store_buckets(store.folder, 120_000) == 7
    with pytest.raises(ValueError, match="opened with 1 household buckets"):
        record_buckets(store.folder, 1)


def test_a_store_of_an_earlier_version_is_read_as_it_is(tmp_path, delivered):
    store = Store(tmp_path / "c" / "store", "london", ReadingRules(), FileOrder("name"))
    first = ingest(store, [str(delivered[0])], engine=INLINE)
    expected = stored_totals(store, first)
    forget(tmp_path / "c", "buckets")  # earlier versions wrote none
    assert store_buckets(store.folder, 10**6) == 1
    assert list(store.folder.glob("month=*/*.parquet"))
    notice = size_notice(store.folder, 1, 10**6)
    assert notice is not None
    assert not any(sign.isdigit() for sign in notice.public)  # it is shown to Prefect, and numbers tell of the roster
    assert "has 1 household bucket, and a new store for 1,000,000 roster rows would have 20;" in notice.private
    assert stored_totals(store, ingest(store, [str(delivered[0])], engine=INLINE)) == expected
    assert store.books.keys("buckets")


NEW_YEAR = date(2013, 1, 1)


def roster_of(rows: list[tuple[str, int, int, str]]) -> Roster:
    """Return a roster of (household, first and last day from FIRST on, group)."""
    ids = tuple(sorted({household for household, *_ in rows}))
    start = (NEW_YEAR - date(1970, 1, 1)).days
    household, first, last = (np.array(column, np.int64) for column in zip(
        *((ids.index(household), start + first, start + last) for household, first, last, _ in rows), strict=True
    ))  # fmt: skip
    return Roster(RosterRows(ids, household, first, last, {"area": tuple(group for *_, group in rows)}))


def some_rows(count: int) -> list[tuple[str, int, int, str]]:
    draw = np.random.default_rng(4)
    rows = []
    for i in range(count):
        first, length = (int(value) for value in draw.integers(0, 10, 2))
        rows.append((f"household é{i}", first, first + length, "nsw"[i % 3]))
        if i % 4 == 0:
            rows.append((f"household é{i}", first + length + 2, 40, "east"))
    return rows


@pytest.mark.parametrize("damage", ["one bit", "missing"])
def test_a_damaged_bucket_is_written_again_by_the_next_run(tmp_path, damage):
    roster = roster_of(some_rows(5))
    stored = write_bucketed_roster(tmp_path, roster, 2)
    path = stored.folder / "bucket=001.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.unlink()
    if damage == "one bit":
        path.write_bytes(content)
    with pytest.raises(FolderRemoved, match="run again"):
        stored.bucket(1)
    assert set(write_bucketed_roster(tmp_path, roster, 2).bucket(1).ids) == {
        household
        for household, number in zip(roster.rows.ids, bucket_numbers(roster.rows.ids, 2), strict=True)
        if number == 1
    }
