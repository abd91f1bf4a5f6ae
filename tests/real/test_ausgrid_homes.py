"""The real Ausgrid rows, against hand counts and a plain reading of the file."""

from __future__ import annotations

import csv
from datetime import date
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages import ingest as reading
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules


@pytest.mark.parametrize("block_bytes", [2**24, 2**16, 1000])
def test_the_nine_rows_are_accounted_to_the_row(real_data: Path, tmp_path: Path, block_bytes: int) -> None:
    path = real_data / "ausgrid" / "ausgrid-2012-2013-9rows.csv"
    store = Store(tmp_path / "store", "ausgrid", ReadingRules())
    delivery = reading.ingest(store, [str(path)], engine=Engine(chunk_bytes=block_bytes))
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))[2:]
    generation = sum(row[3] == "GG" for row in rows)
    assert (delivery.rows_read, delivery.rows_kept) == (9, 9 - generation)
    assert delivery.rejected == {"consumption category not asked for": generation}


def test_a_real_customer_year_equals_a_plain_reading_and_its_clock_changes_are_right(real_data: Path) -> None:
    path = real_data / "ausgrid" / "ausgrid-2011-2012-customer12.csv"
    frame = reading.read_readings([path], dataset="ausgrid")
    sums = frame.groupby("day")["energy_wh"].sum()
    counts = frame.groupby("day")["energy_wh"].count()
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))[2:]
    expected = {}
    for row in rows:
        if row[3] in ("GC", "CL"):
            day, month, year = (int(part) for part in row[4].split("/"))
            total = sum(int(Decimal(cell) * 1000) for cell in row[5:53])
            expected[date(year, month, day)] = expected.get(date(year, month, day), 0) + total
    assert {day.date(): int(total) for day, total in sums.items()} == expected
    spring, autumn = pd.Timestamp(2011, 10, 2), pd.Timestamp(2012, 4, 1)
    assert counts[spring] == 46
    assert set(frame[frame.day == spring].slot) == set(range(48)) - {4, 5}
    assert counts[autumn] == 48
    assert set(counts.drop(spring)) == {48}
