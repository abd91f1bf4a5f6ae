"""Household-days settled apart, part by part, say what all rows settled together say."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.daily_totals import deduplicate_month, read_daily_totals
from agedp.store.month_reader import load_month_readings
from agedp.store.store import FileOrder, Store
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.validation import ReadingRules, RejectionReason

HEADER = b"LCLid,DateTime,KWH/hh (per half hour)\n"
FIRST = datetime(2013, 1, 30, 23)

row = st.tuples(st.sampled_from("AB"), st.integers(0, 12), st.sampled_from(["0.1", "0.2", "Null", "x"]))
deliveries = st.lists(st.lists(row, max_size=14), min_size=1, max_size=4)


def text(rows: list[tuple[str, int, str]]) -> bytes:
    lines = (f"{home},{FIRST + timedelta(minutes=30 * step)},{kwh}\n" for home, step, kwh in rows)
    return HEADER + "".join(lines).encode()


def together(store: Store, files: list[bytes]) -> Readings:
    """Return all rows of all files settled at once."""
    layout = LAYOUTS["london"]
    found: list[tuple[str, int, int, int, int]] = []
    for number, data in enumerate(files):
        header = layout.recognise(data.decode().splitlines())
        assert header is not None
        whole = parse_lines(data[len(HEADER) :], layout=layout, header=header, rules=store.rules)
        records = whole.records
        for i in np.flatnonzero(records.reason == RejectionReason.KEPT):
            time = int(records.day[i] * 48 + records.slot[i])
            home = records.ids[records.household[i]]
            found.append((home, time, number, int(whole.row[i]), int(records.energy_wh[i, 0])))
    ids = tuple(sorted({one[0] for one in found}))
    household = np.array([ids.index(one[0]) for one in found], np.int64)
    time, file, place, energy = (np.array([one[i] for one in found], np.int64) for i in range(1, 5))
    rows = StoredRows(ids, household, np.zeros_like(time), time, file, place, energy.reshape(-1, 1))
    return deduplicate_rows(
        rows, complete_channels=layout.complete_channels(store.rules), later_wins=store.order.criterion is not None
    )


def told(store: Store, delivery: Delivery) -> list[set[tuple[object, ...]]]:
    """Return readings, days and rows set aside of all months."""
    readings: set[tuple[object, ...]] = set()
    days: set[tuple[object, ...]] = set()
    aside: set[tuple[object, ...]] = set()
    for month in delivery.months:
        of = load_month_readings(store, month, delivery.contents)
        readings |= {
            (of.ids[code], time, wh) for code, time, wh in zip(of.household, of.time, of.energy_wh, strict=True)
        }
        days |= {tuple(one.values()) for one in read_daily_totals(store, month, delivery.contents).to_pylist()}
        settled = deduplicate_month(store, month, delivery.contents)
        assert list(zip(*settled, strict=True)) == list(
            zip(of.rejected_file, of.rejected_row, of.rejected_reason, strict=True)
        )
        aside |= {tuple(int(one) for one in triple) for triple in zip(*settled, strict=True)}
    return [readings, days, aside]


@pytest.mark.parametrize("order", [FileOrder(), FileOrder("name")])
@given(rows=deliveries, size=st.sampled_from([1, 90, 300, 10**6]), blocks=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_parts_settled_apart_say_what_all_rows_settled_together_say(
    tmp_path_factory: pytest.TempPathFactory,
    order: FileOrder,
    rows: list[list[tuple[str, int, str]]],
    size: int,
    blocks: int,
) -> None:
    folder = tmp_path_factory.mktemp("months")
    files = list(dict.fromkeys(text(one) + b"\n" * (i == 0) for i, one in enumerate(rows)))
    for i, data in enumerate(files):
        (folder / f"{i}.csv").write_bytes(data)
    store = Store(folder / "c" / "store", "london", ReadingRules(), order)
    # random rows have no interval: as on a night after the first release
    delivery = ingest(store, [str(folder)], engine=Engine("synchronous", 1, size, blocks), has_begun=True)
    whole = together(store, files)
    readings = [
        (whole.ids[code], time, wh) for code, time, wh in zip(whole.household, whole.time, whole.energy_wh, strict=True)
    ]
    of_day: dict[tuple[str, date], list[int]] = {}
    for home, time, wh in readings:
        of_day.setdefault((home, date(1970, 1, 1) + timedelta(days=int(time) // 48)), []).append(int(wh))
    days = {(*key, sum(energy), len(energy)) for key, energy in of_day.items()}
    aside = set(
        zip(*(one.tolist() for one in (whole.rejected_file, whole.rejected_row, whole.rejected_reason)), strict=True)
    )
    assert told(store, delivery) == [set(readings), days, aside]


def test_only_contested_household_days_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nights = [[("A", 48 * day + slot, "0.1") for slot in range(3, 51)] for day in range(5)]
    corrected = [("A", 48 * 2 + 5, "0.2")]
    for i, rows in enumerate([*nights, corrected]):
        (tmp_path / f"{i}.csv").write_bytes(text(rows))
    store = Store(tmp_path / "c" / "store", "london", ReadingRules(), FileOrder("name"))
    asked: list[str] = []
    from agedp.store import month_reader

    original = month_reader.load_part_rows
    monkeypatch.setattr(month_reader, "load_part_rows", lambda *args: asked.append(args[2].content) or original(*args))
    delivery = ingest(store, [str(tmp_path)], engine=Engine("synchronous", 1))
    assert [delivery.contents.index(content) for content in asked] == [2, 5]
    energy = {row["day"]: row["energy_wh"] for m in delivery.months for row in
              read_daily_totals(store, m, delivery.contents).to_pylist()}  # fmt: skip
    assert sorted(energy.values()) == [4800, 4800, 4800, 4800, 4900]
