"""A roster that is read off the files follows from household ids and timestamps: no energy moves a published figure."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import get_args
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agedp
from agedp.compute.engine_settings import Engine
from agedp.one_off import release_files
from agedp.pipeline import run_stages
from agedp.run_context import RunContext
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.stages.ingest import ingest
from agedp.store.named_days import day_spans
from agedp.store.store import FileOrder, Store
from agedp.workspace import StoredReadings
from agedp_data import table_schemas
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import InputError
from agedp_data.parameters import FindingName

FIRST, DAYS, HOMES = date(2013, 1, 30), 3, 20
NOW = datetime(2013, 3, 1, 12, tzinfo=UTC)
VICTIM = 3
OPTIONS = toml_of(
    {
        "notion": "classical",
        "epsilon_per_day": "0.5",
        "max_day_epsilon": "0.5",
        "epsilon_total": "unlimited",
        "clamp_kwh": "50",
        "min_households": "2",
        "preflight": "report",
        "accept": ["useless"],
    }
)
PROMISE = agedp.Classical(
    epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100, accept=["useless", "no-credit", "total"]
)
ENDS = [f"{(slot + 1) // 2 % 24}:{(slot + 1) % 2 * 3}0" for slot in range(48)]
ENERGIES = [
    b"-0.1", b"1e9", b"NaN", b"inf", b"Null", b"", b"abc", b"0,5", b'"0.5', b"0.\x005", b"\xff", b"0\r1", b"0.2", b"",
]  # fmt: skip
Cells = dict[tuple[int, int, int], bytes]
"""The energy of each household, day and half-hour as a file contains it."""


def cells(homes: int = HOMES, days: int = DAYS) -> Cells:
    return {(home, day, slot): b"0.25" for home in range(homes) for day in range(days) for slot in range(48)}


def london_lines(energies: Cells) -> Iterator[bytes]:
    yield b"LCLid,tstp,energy(kWh/hh)"
    for (home, day, slot), energy in energies.items():
        end = datetime(FIRST.year, FIRST.month, FIRST.day) + timedelta(days=day, minutes=30 * (slot + 1))
        yield f"MAC{home:06d},{end},".encode() + energy


def ausgrid_lines(energies: Cells) -> Iterator[bytes]:
    header = ["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date", *ENDS]
    yield ",".join(header).encode()
    for home, day in dict.fromkeys((home, day) for home, day, _ in energies):
        on = FIRST + timedelta(days=day)
        yield b",".join([f"{11 + home},1,2000,GC,{on:%d/%m/%Y}".encode(), *(energies[home, day, s] for s in range(48))])


LINES: Mapping[str, Callable[[Cells], Iterator[bytes]]] = {"london": london_lines, "ausgrid": ausgrid_lines}


def write(folder: Path, dataset: str, energies: Cells, *extra: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "readings.csv").write_bytes(b"\n".join([*LINES[dataset](energies), *extra]) + b"\n")
    return folder


def begun_and_run(folder: Path, dataset: str, files: Path) -> Path:
    init([str(files)], folder=folder, options=OPTIONS)
    run_stages(RunContext.load(folder / "run.toml")).check_not_refused()
    return folder / "out" / "release"


def sanitised(folder: Path, dataset: str, files: Path) -> Path:
    release_files([str(files)], out=folder / "out", options=OPTIONS).run.check_not_refused()
    return folder / "out"


def released_frame(folder: Path, dataset: str, files: Path) -> Path:
    readings = agedp.read(files / "readings.csv", dataset=dataset)
    terms = {"promise": PROMISE, "clamp_kwh": 50, "min_households": 2, "accept": get_args(FindingName)}
    return agedp.sanitise(readings, folder=folder / "out", **terms).path


DOORS = {"init and run": begun_and_run, "sanitise": sanitised, "agedp.release": released_frame}


def published(door: str, dataset: str, folder: Path, energies: Cells, *extra: bytes) -> dict[str, bytes]:
    """Return the release folder of these readings, with noise that ignores the readings."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    files = write(folder / "in", dataset, energies, *extra)
    fixed_noise = mock.patch(
        "agedp_data.mechanisms.discrete_laplace", lambda values, **_: np.arange(len(values)) * 1000 + 5
    )
    with fixed_noise, mock.patch("agedp_data.clock.now", return_value=NOW):
        path = DOORS[door](folder, dataset, files)
    return {str(of.relative_to(path)): of.read_bytes() for of in sorted(path.rglob("*")) if of.is_file()}


def spoilt(random: Random, *, home: int = VICTIM) -> tuple[Cells, list[bytes]]:
    """Return readings that differ from `cells` in the energies of one household, and rows that contradict them."""
    energies = cells()
    own = [key for key in energies if key[0] == home]
    days = random.sample(range(DAYS), random.randint(1, DAYS))
    chosen = [key for key in own if key[1] in days and random.random() < random.choice([0.1, 0.5, 1.0])]
    energies |= {key: random.choice(ENERGIES) for key in chosen}
    contradicted = random.sample(own, random.choice([0, 10]))
    return energies, [*london_lines(dict.fromkeys(contradicted, b"0.75"))][1:]


def check_neighbours(door: str, dataset: str, folder: Path, neighbours: Iterable[tuple[Cells, list[bytes]]]) -> None:
    """Check that the release folders of readings and of their neighbours in energies of one household are equal."""
    expected = published(door, dataset, folder / "world", cells())
    averages = pq.read_table(pa.BufferReader(expected["daily_averages.parquet"]))
    assert averages["households"].to_pylist() == [HOMES] * DAYS
    for number, (energies, contradicting) in enumerate(neighbours):
        found = published(door, dataset, folder / "world", energies, *(contradicting if dataset == "london" else []))
        assert found.keys() == expected.keys()
        assert [name for name in expected if found[name] != expected[name]] == [], number


def three_negative_half_hours() -> tuple[Cells, list[bytes]]:
    return cells() | {(VICTIM, 0, slot): b"-0.1" for slot in (5, 6, 7)}, []


def test_three_negative_half_hours_change_nothing_that_sanitise_publishes(tmp_path):
    check_neighbours("sanitise", "london", tmp_path, [three_negative_half_hours()])


@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
@pytest.mark.parametrize(("door", "dataset"), [("init and run", "ausgrid"), ("agedp.release", "london")])
def test_neighbours_in_energies_publish_the_same_but_for_the_noise(tmp_path, door, dataset):
    check_neighbours(door, dataset, tmp_path, [spoilt(Random(door))])  # noqa: S311


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
@pytest.mark.parametrize("dataset", LINES)
@pytest.mark.parametrize("door", DOORS)
def test_two_hundred_neighbours_publish_the_same_but_for_the_noise(tmp_path, door, dataset):
    randoms = (Random(f"{door} {dataset} {seed}") for seed in range(200))  # noqa: S311
    check_neighbours(door, dataset, tmp_path, [three_negative_half_hours(), *map(spoilt, randoms)])


ENGINE = Engine("synchronous", 1)


def spans(folder: Path, dataset: str, lines: Iterable[bytes], **rules: object) -> dict[str, tuple[date, date]]:
    """Return the spans of the households of one file."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.csv").write_bytes(b"\n".join(lines) + b"\n")
    store = Store(folder / "c" / "store", dataset, ReadingRules(**rules))
    return day_spans(store, ingest(store, [str(folder / "in")], engine=ENGINE), engine=ENGINE)


@pytest.mark.parametrize("dataset", LINES)
def test_no_energy_moves_the_first_or_last_day(tmp_path, dataset):
    texts = list(dict.fromkeys([b"0.25", *ENERGIES]))
    energies = {key: texts[key[0]] for key in cells(len(texts))}
    found = spans(tmp_path / "world", dataset, LINES[dataset](energies))
    assert list(found.values()) == [(FIRST, FIRST + timedelta(days=DAYS - 1))] * len(texts)


def half_hours(home: str, day: date, number: int, energy: str = "0.1", *, seconds: int = 0) -> list[str]:
    start = datetime(day.year, day.month, day.day)
    ends = (start + timedelta(minutes=30 * (slot + 1), seconds=seconds) for slot in range(number))
    return [f"{home},{end},{energy}" for end in ends]


def test_a_day_counts_with_46_half_hours_and_any_day_if_there_is_none(tmp_path):
    day = [FIRST + timedelta(days=number) for number in range(4)]
    lines = ["LCLid,tstp,energy(kWh/hh)"]
    lines += half_hours("A", day[0], 45) + half_hours("A", day[1], 46, "-1") + half_hours("A", day[3], 46, "abc")
    lines += half_hours("B", day[0], 3) + half_hours("B", day[2], 45, "Null")
    lines += (
        half_hours("C", day[0], 45) + half_hours("C", day[0], 45) + half_hours("C", day[1], 46)
    )  # no half-hour twice
    lines += [line for number in range(4) for line in half_hours("E", day[number], 48)] * 3
    lines += half_hours("D", day[0], 20, seconds=60) + half_hours("D", day[1], 20, "Null", seconds=60)  # off the grid
    lines += [*half_hours("D", day[2], 1), "D,yesterday,0.1", ",2013-02-01 00:30:00,0.1"]
    found = spans(tmp_path, "london", map(str.encode, lines))
    expected = {"A": (day[1], day[3]), "B": (day[0], day[2]), "C": (day[1], day[1]), "D": (day[2], day[2])}
    assert found == expected | {"E": (day[0], day[3])}


def test_a_day_of_hours_counts_with_23_and_an_empty_cell_of_a_wide_table_names_its_hour(tmp_path):
    wide = NamedColumns("*", "at", "iso", "start", "UTC", "UTC", "*", "kWh", ("",))
    hours = [datetime(2013, 1, 30) + timedelta(hours=hour) for hour in range(2, 24 + 23)]
    lines = ["at,A,B", *(f"{hour},0.1,{'' if hour.day == 31 else 0.1}" for hour in hours)]
    found = spans(tmp_path, "long", map(str.encode, lines), columns=wide, interval_minutes=60)
    assert found == dict.fromkeys("AB", (date(2013, 1, 31), date(2013, 1, 31)))


def counts_by_day(table: object) -> list[int]:
    """Return the households on each day of the roster that is read off a table, from its first to its last day."""
    stored = StoredReadings.of(table, accepted=get_args(FindingName))
    first, last = stored.days
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    members = list(zip(stored.roster.rows.first.tolist(), stored.roster.rows.last.tolist(), strict=True))
    return [sum(start <= day_number(day) <= end for start, end in members) for day in days]


def test_a_table_counts_the_half_hours_without_an_energy():
    start = [datetime(2013, 1, 30, tzinfo=UTC) + timedelta(minutes=30 * step) for step in range(96)]
    energies = [str(200 + step % 7) for step in range(96)]
    texts = [["-5", "nan", "1e12", "no number", "inf"][step % 5] if step < 48 else "200" for step in range(96)]
    homes = [name for name in "ABCDEF" for _ in start]
    times = pa.array(start * 6, pa.timestamp("ns", "UTC"))
    counts = []
    for of_a in (energies, texts):
        table = pa.table({"household_id": homes, "interval_start": times, "energy_wh": of_a + energies * 5})
        counts.append(counts_by_day(table))
    assert counts == [[6, 6]] * 2


@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
def test_a_frame_with_some_of_its_rows_keeps_what_was_read_beside_them(tmp_path):
    energies = cells() | {(VICTIM, 1, slot): b"Null" for slot in range(48)}
    energies |= {(VICTIM + 1, day, slot): b"-1" for day in range(DAYS) for slot in range(48)}
    readings = agedp.read(write(tmp_path / "in", "london", energies) / "readings.csv", dataset="london")
    later = readings[readings["interval_start"] >= "2013-01-31"]
    renamed = later.reset_index(drop=True).assign(household_id=later["household_id"].to_numpy())
    counts = [counts_by_day(frame) for frame in (readings, later, renamed)]
    # nothing shows that one home has rows, once the frame is a part of what was read
    assert counts == [[HOMES] * 3, [HOMES - 1] * 2, [HOMES - 1] * 2]


def as_version_0_2_wrote(folder: Path) -> None:
    """Write the quarantine files of a store without what their rows name."""
    for path in folder.rglob("quarantine/**/*.parquet"):
        pq.write_table(pq.read_table(path, columns=table_schemas.QUARANTINE.names), path)


def test_a_store_of_0_2_is_read_again_for_a_roster_and_as_it_stands_for_a_run(tmp_path):
    energies = cells() | {(VICTIM, 0, slot): b"-1" for slot in range(48)}
    files = write(tmp_path / "in", "london", energies)
    store = Store(tmp_path / "c" / "store", "london", ReadingRules(), FileOrder(keeps_unlisted=True))
    expected = day_spans(store, ingest(store, [str(files)], engine=ENGINE), engine=ENGINE)
    assert expected == {f"MAC{home:06d}": (FIRST, FIRST + timedelta(days=2)) for home in range(HOMES)}
    as_version_0_2_wrote(tmp_path / "c")
    assert ingest(store, [str(files)], engine=ENGINE).files_new == 0
    delivery = ingest(store, [str(files)], engine=ENGINE, for_roster=True)
    assert (delivery.files_new, day_spans(store, delivery, engine=ENGINE)) == (1, expected)
    as_version_0_2_wrote(tmp_path / "c")
    files = write(tmp_path / "later", "london", {key: b"0.1" for key in cells() if key[1] == 2})
    delivery = ingest(store, [str(files)], engine=ENGINE, for_roster=True)
    with pytest.raises(InputError, match="put the files back"):
        day_spans(store, delivery, engine=ENGINE)
