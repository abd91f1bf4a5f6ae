"""Parts of a month that share no days are deduplicated apart: a new night costs its own rows, with the same result."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store import daily_totals
from agedp.store.month_reader import group_parts, stored_groups
from agedp.store.store import FileOrder, PartMonth, PartSpan, Store
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import ReadingRules
from tests.agedp.store.test_buckets import stored_totals, totals_of, write_rows

INLINE = Engine("synchronous", 1)
MARCH = day_number(date(2013, 3, 1))


def store_in(folder: Path, buckets: int = 1) -> Store:
    return Store(folder / "c" / "store", "london", ReadingRules(), FileOrder("name", keeps_unlisted=True), buckets)


def groups_of(bounds: list[tuple[int, int] | None]) -> list[tuple[tuple[int, ...], int, int, bool]]:
    """Return the groups of parts with these days of March, numbered from 0: parts, first and last day, whether cut."""
    parts = [PartMonth(i, f"{i}", 0, "month=2013-01", None) for i in range(len(bounds))]
    spans: dict[str, Any] = {
        f"{i}": [{} if days is None else {"2013-03": PartSpan(MARCH + days[0], MARCH + days[1], 0, 48)}]
        for i, days in enumerate(bounds)
    }
    return [
        (tuple(part.file_index for part in group.parts), group.first - MARCH, group.last - MARCH, group.is_cut)
        for group in group_parts(store_in(Path("unused")), "2013-03", parts, spans)
    ]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda days: (min(days), max(days))), min_size=1))
def test_each_day_of_a_part_is_in_exactly_one_of_its_groups(bounds):
    groups = groups_of(bounds)
    for part, (first, last) in enumerate(bounds):
        mine = [(low, high) for parts, low, high, _ in groups if part in parts]
        assert len(mine) <= 2
        covered = sorted(day for low, high in mine for day in range(low, high + 1))
        assert len(set(covered)) == len(covered)
        assert set(range(first, last + 1)) <= set(covered)
        assert len(mine) == 1 or last - first <= 1
    for parts, low, high, is_cut in groups:
        assert is_cut == any(bounds[part][0] < low or bounds[part][1] > high for part in parts)


def night(number: int, *, change: int = 0) -> list[tuple[str, datetime, int]]:
    """Return the rows of one nightly file, which begins with the last half-hour of the day before."""
    start = datetime(2013, 3, 1) + timedelta(days=number)
    ends = [start + timedelta(minutes=30 * slot) for slot in range(48)]
    return [(f"H{home}", end, 100 * home + end.hour + change) for home in range(5) for end in ends]


@pytest.mark.parametrize("buckets", [1, 3])
def test_a_new_night_opens_its_own_days_only(tmp_path, monkeypatch, buckets):
    folder, store, readings = tmp_path / "in", store_in(tmp_path, buckets), {}
    folder.mkdir()
    opened: list[tuple[int, int]] = []
    index_month = daily_totals.index_month

    def observed(*args: Any, days: Any = None, **keys: Any) -> Any:
        opened.append((0, 30) if days is None else (int(days.min()) - MARCH, int(days.max()) - MARCH))
        return index_month(*args, days=days, **keys)

    monkeypatch.setattr(daily_totals, "index_month", observed)
    for number in range(6):
        write_rows(folder / f"n{number}.csv", rows := night(number))
        readings |= {(home, end): wh for home, end, wh in rows}
        opened.clear()
        delivery = ingest(store, [str(folder)], engine=INLINE)
        if number > 1:
            assert set(opened) <= {(number - 1, number - 1), (number, number)}
    assert stored_totals(store, delivery) == totals_of(readings)
    opened.clear()
    monkeypatch.setattr(daily_totals, "deduplicate_group", None)  # nothing changed: no table is opened
    assert ingest(store, [str(folder)], engine=INLINE).rows_kept == delivery.rows_kept
    assert opened == []


def test_groups_of_a_file_in_other_parts_have_other_names(tmp_path):
    names: set[str] = set()
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.csv", [row for number in range(8) for row in night(number)])
    for size in (5_000, 17_000):
        store = store_in(tmp_path / f"{size}")
        delivery = ingest(store, [str(tmp_path / "in")], engine=Engine("synchronous", 1, size, 1))
        groups = {group.name for month in delivery.months for group in stored_groups(store, month, delivery.contents)}
        assert not names & groups
        names |= groups
    assert np.array(sorted(names)).size > 2
