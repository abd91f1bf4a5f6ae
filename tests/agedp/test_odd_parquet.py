"""What a Parquet file contains affects the household of its row alone, and after the first release stops no run."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.month_reader import load_month_readings
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import UnreadableFile

HOMES, STEPS = ("A", "B", "C"), 6
STAMPS = [datetime(2013, 1, 1, 0, 30) + timedelta(minutes=30 * step) for step in range(STEPS)]
ODD = 7
"""Row of household B."""


def text_of(cells: list[bytes]) -> pa.Array:
    """Return a column of text that nobody has checked to be UTF-8."""
    return pa.array(cells, pa.binary()).view(pa.string())


def columns(**odd: pa.Array) -> dict[str, pa.Array]:
    homes = [home.encode() for home in HOMES for _ in range(STEPS)]
    whole = {
        "LCLid": text_of(homes),
        "tstp": pa.array(STAMPS * len(HOMES), pa.timestamp("us")),
        "energy(kWh/hh)": pa.array([0.1 * (i % 5) for i in range(len(homes))]),
    }
    return whole | odd


def with_odd(cells: list[object], odd: object) -> list[object]:
    return [*cells[:ODD], odd, *cells[ODD + 1 :]]


WHOLE = {name: column.to_pylist() for name, column in columns().items()}
TEXTS = {name: [str(cell).encode() for cell in cells] for name, cells in WHOLE.items()}
MICROSECONDS = pa.array(STAMPS * len(HOMES), pa.timestamp("us")).cast(pa.int64()).to_pylist()
CASES: dict[str, dict[str, pa.Array]] = {
    "a year after 9999": {"tstp": pa.array(with_odd(MICROSECONDS, 2**62), pa.int64()).cast(pa.timestamp("us"))},
    "a year of text": {"tstp": text_of(with_odd(TEXTS["tstp"], b"99999-01-01 00:30:00"))},
    "a time that is not UTF-8": {"tstp": text_of(with_odd(TEXTS["tstp"], b"2013-01-01 00:30:00\xff"))},
    "a household that is not UTF-8": {"LCLid": text_of(with_odd(TEXTS["LCLid"], b"\xff\xfeB"))},
    "an energy that is not UTF-8": {"energy(kWh/hh)": text_of(with_odd(TEXTS["energy(kWh/hh)"], b"\xc3("))},
    "no number": {"energy(kWh/hh)": pa.array(with_odd(WHOLE["energy(kWh/hh)"], float("nan")))},
    "a great number": {"energy(kWh/hh)": pa.array(with_odd(WHOLE["energy(kWh/hh)"], 1e308))},
    "a quote": {"LCLid": text_of(with_odd(TEXTS["LCLid"], b'"B,\n\0'))},
    "nothing": {"LCLid": pa.array(with_odd(WHOLE["LCLid"], None))},
}  # fmt: skip


def packed(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content, compression="none")
    return content.getvalue()


def read(folder: Path, *, has_begun: bool = True) -> tuple[Store, Delivery]:
    store = Store(folder / "store", "london", ReadingRules())
    return store, ingest(store, [str(folder / "in")], engine=Engine("synchronous", 1), has_begun=has_begun)


def by_home(store: Store, delivery: Delivery) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for month in delivery.months:
        readings = load_month_readings(store, month, delivery.contents)
        for code, *reading in zip(readings.household, readings.time, readings.energy_wh, strict=True):
            found.setdefault(readings.ids[code], []).append(tuple(map(int, reading)))
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_cell_affects_the_household_of_its_row_alone(tmp_path, case):
    kept = []
    for name, odd in (("whole", {}), ("odd", CASES[case])):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "in" / "a.parquet").write_bytes(packed(pa.table(columns(**odd))))
        store, delivery = read(tmp_path / name)
        assert (delivery.rows_read, delivery.unreadable) == (len(HOMES) * STEPS, ())
        kept.append(by_home(store, delivery))
    assert {home: kept[1].get(home) for home in "AC"} == {home: kept[0][home] for home in "AC"}
    assert set(kept[1]["B"]) == set(kept[0]["B"]) - {kept[0]["B"][ODD - STEPS]}


ODD_COLUMNS = {
    "lists": pa.array([[b"\xff"]] * 18, pa.list_(pa.binary())),
    "times of day": pa.array([5] * 18, pa.time64("ns")),
    "durations": pa.array([2**62] * 18, pa.duration("s")),
    "views": pa.array(["x"] * 18, pa.string_view()),
}


@pytest.mark.parametrize("name", columns())
@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_a_column_of_any_type_rejects_rows_and_stops_no_run(tmp_path, name, kind):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(packed(pa.table(columns(**{name: ODD_COLUMNS[kind]}))))
    _, delivery = read(tmp_path)
    assert (delivery.rows_read, delivery.unreadable) == (18, ())
    assert delivery.rows_kept in (0, 18)


def out_of_range(content: bytes) -> Iterator[bytes]:
    """Yield files in which one changed byte lets an index lie outside its dictionary."""
    for at in range(4, len(content) - 8):
        for value in (0xFF, 0x07):
            changed = content[:at] + bytes([value]) + content[at + 1 :]
            with suppress(pa.ArrowException, OSError, ValueError):
                column = pq.ParquetFile(io.BytesIO(changed), read_dictionary=["LCLid"]).read()["LCLid"].chunk(0)
                if max(column.indices.to_pylist()) >= len(column.dictionary):
                    yield changed


@pytest.mark.parametrize("damage", ["an index", "a name"])
def test_a_damaged_file_stops_the_first_run_alone(tmp_path, damage):
    content = packed(pa.table(columns()))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.csv").write_text("LCLid,tstp,energy(kWh/hh)\nD,2013-01-01 00:30:00,0.1\n")
    changed = next(out_of_range(content)) if damage == "an index" else content.replace(b"tstp", b"ts\xffp")
    (tmp_path / "in" / "a.parquet").write_bytes(changed)
    with pytest.raises(UnreadableFile, match=r"^input 1 of 2: is not Parquet, or is cut off or damaged"):
        read(tmp_path, has_begun=False)
    store, delivery = read(tmp_path)
    assert (len(delivery.unreadable), delivery.rows_kept, set(by_home(store, delivery))) == (1, 1, {"D"})
