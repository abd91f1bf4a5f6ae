"""Household-days settled apart, part by part, say what all rows settled together say."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store import month_reader
from agedp.store.daily_totals import deduplicate_month, read_daily_totals
from agedp.store.store import FileOrder, Store
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.validation import ReadingRules, RejectionReason

HEADER = b"LCLid,DateTime,KWH/hh (per half hour)\n"
FIRST = datetime(2013, 1, 30, 23)
ROWS = st.lists(
    st.tuples(st.sampled_from("AB"), st.integers(0, 12), st.sampled_from(["0.1", "0.2", "Null", "x"])), max_size=14
)


def text(rows: list[tuple[str, int, str]]) -> bytes:
    lines = (f"{home},{FIRST + timedelta(minutes=30 * step)},{kwh}\n" for home, step, kwh in rows)
    return HEADER + "".join(lines).encode()


def together(store: Store, files: list[bytes]) -> Readings:
    """Return all rows of all files settled at once."""
    layout = LAYOUTS["london"]
    found: list[tuple[int, ...]] = []
    for number, data in enumerate(files):
        header = layout.recognise(data.decode().splitlines())
        chunk = parse_lines(data[len(HEADER) :], layout=layout, header=header, rules=store.rules)
        of = chunk.records
        for i in np.flatnonzero(of.reason == RejectionReason.KEPT):
            home, time = "AB".index(of.ids[of.household[i]]), of.day[i] * 48 + of.slot[i]
            found.append((home, 0, time, number, chunk.row[i], of.energy_wh[i, 0]))
    *columns, energy = np.array(found, np.int64).reshape(-1, 6).T
    rows = StoredRows(("A", "B"), *columns, energy.reshape(-1, 1))
    complete = layout.complete_channels(store.rules)
    return deduplicate_rows(rows, complete_channels=complete, later_wins=store.order.criterion is not None)


def rejected(of: Readings) -> list[tuple[int, ...]]:
    return list(zip(of.rejected_file.tolist(), of.rejected_row.tolist(), of.rejected_reason.tolist(), strict=True))


def readings(of: Readings) -> set[tuple[str, int, int]]:
    return {
        (of.ids[code], int(time), int(wh)) for code, time, wh in zip(of.household, of.time, of.energy_wh, strict=True)
    }


@pytest.mark.parametrize("order", [FileOrder(), FileOrder("name")])
@given(rows=st.lists(ROWS, min_size=1, max_size=4), size=st.sampled_from([1, 90, 300, 10**6]), parts=st.integers(1, 3))
@settings(max_examples=15)
def test_parts_settled_apart_say_what_all_rows_together_say(tmp_path_factory, order, rows, size, parts):
    folder = tmp_path_factory.mktemp("months")
    files = list(dict.fromkeys(text(one) + b"\n" * (i == 0) for i, one in enumerate(rows)))
    for i, data in enumerate(files):
        (folder / f"{i}.csv").write_bytes(data)
    store = Store(folder / "c" / "store", "london", ReadingRules(), order)
    # random rows have no interval: as on a night after the first release
    delivery = ingest(store, [str(folder)], engine=Engine("synchronous", 1, size, parts), has_begun=True)
    whole = together(store, files)
    found, days, refused = set(), set(), []
    for month in delivery.months:
        of = month_reader.load_month_readings(store, month, delivery.contents)
        found |= readings(of)
        days |= {tuple(row.values()) for row in read_daily_totals(store, month, delivery.contents).to_pylist()}
        assert list(zip(*deduplicate_month(store, month, delivery.contents), strict=True)) == rejected(of)
        refused += rejected(of)
    assert found == readings(whole)
    of_day: dict[tuple[str, date], list[int]] = {}
    for home, time, wh in found:
        of_day.setdefault((home, date(1970, 1, 1) + timedelta(days=time // 48)), []).append(wh)
    assert days == {(*key, sum(energy), len(energy)) for key, energy in of_day.items()}
    assert sorted(refused) == sorted(rejected(whole))
