"""What is older than `keep_days` leaves the confidential folder wholly, and what has left is not taken for zero."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.retention import remove_old_months
from agedp.store.store import FileOrder, Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError

PROMISE = 'notion = "classical"\nage_days = 2\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 60\n'
JANUARY, APRIL = date(2013, 1, 1), date(2013, 4, 1)
GOOD, NEGATIVE, NO_DATE, NO_FIELDS = (
    "{},2013-{:02}-05 00:30:00,0.1",
    "{},2013-{:02}-05 01:00:00,-1",
    "{},soon,0.1",
    "{}",
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store that remembers files."""
    return Store(tmp_path / "confidential" / "store", "london", ReadingRules(), FileOrder(keeps_unlisted=True))


def deliver(store: Store, *lines: str, name: str = "a.csv", modified: date | None = None) -> Delivery:
    """Write a file beside the confidential folder, as it was last changed on a day, and read all there are."""
    path = store.folder.parents[1] / name
    path.write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n")
    if modified:
        at = datetime(modified.year, modified.month, modified.day, tzinfo=UTC).timestamp()
        os.utime(path, (at, at))
    return ingest(store, [str(path.parent / "*.csv")], engine=Engine(), has_begun=True)


def let_go(store: Store, *, today: date, keep_days: int = 0) -> None:
    remove_old_months(store, today=today, keep_days=keep_days, needed_from=today)


def told(folder: Path, word: str) -> list[str]:
    """Return the files below a folder that hold a word, in whatever column."""
    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        text = str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_text()
        found += [str(path.relative_to(folder))] if word in text else []
    return found


def test_rows_set_aside_leave_with_their_own_month_though_their_file_has_younger_ones(store):
    deliver(store, GOOD.format("OLD", 1), NEGATIVE.format("OLD", 1), GOOD.format("NEW", 3), NEGATIVE.format("NEW", 3))
    assert len(told(store.folder.parent, "OLD")) == 4  # readings, their days, DAYS, the row set aside
    let_go(store, today=date(2013, 3, 9))
    assert told(store.folder.parent, "OLD") == []
    assert len(told(store.folder.parent, "NEW")) == 4


def test_rows_without_a_date_leave_with_the_last_month_of_their_file(store):
    deliver(store, GOOD.format("A", 1), GOOD.format("A", 3), NO_DATE.format("ODD"), NO_FIELDS.format("ODD"))
    let_go(store, today=date(2013, 3, 31))
    assert len(told(store.folder.parent, "ODD")) == 1
    let_go(store, today=APRIL)
    assert told(store.folder.parent, "ODD") == []


def test_rows_of_a_file_without_any_reading_are_as_old_as_the_file(store):
    deliver(store, NO_DATE.format("ODD"), modified=date(2013, 3, 5))
    let_go(store, today=date(2013, 3, 31))
    assert len(told(store.folder.parent, "ODD")) == 1
    let_go(store, today=APRIL)
    assert told(store.folder.parent, "ODD") == []


def test_a_file_that_comes_the_night_a_month_is_let_go_keeps_its_rows_set_aside(store):
    deliver(store, GOOD.format("A", 1))
    deliver(store, NO_DATE.format("ODD"), name="b.csv", modified=date(2013, 4, 1))
    let_go(store, today=APRIL)
    assert len(told(store.folder.parent, "ODD")) == 1


def test_rows_are_numbered_from_the_beginning_of_the_file_in_whatever_month_they_lie(store, tmp_path):
    lines = [f"A,2013-0{month}-0{number} 00:30:00,-1" for number in range(1, 10) for month in (1, 2)]
    (tmp_path / "a.csv").write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n")
    ingest(store, [str(tmp_path / "a.csv")], engine=Engine(chunk_bytes=40))
    for month in (1, 2):
        tables = (store.folder / "quarantine" / f"month=2013-0{month}").glob("*.parquet")
        rows = sorted((row["row"], row["text"]) for path in tables for row in pq.read_table(path).to_pylist())
        assert rows == [(i, line) for i, line in enumerate(lines) if f"-0{month}-" in line]


def test_what_was_let_go_stays_so_when_more_is_kept_later(store):
    deliver(store, GOOD.format("A", 2))
    let_go(store, today=APRIL)
    deliver(store, GOOD.format("A", 1), name="late.csv")
    let_go(store, today=APRIL, keep_days=30)  # January goes, of March nothing is there any more
    assert store.retained_from() == "2013-04"


def test_a_year_read_at_once_is_let_go_month_by_month_and_a_late_row_of_it_does_not_return(store):
    deliver(store, *(GOOD.format("A", month) for month in range(1, 13)))
    for month in range(2, 13):
        let_go(store, today=date(2013, month, 28))
        left = {path.name for path in store.folder.rglob("month=*")}
        assert left == {f"month=2013-{one:02}" for one in range(month, 13)}
    deliver(store, GOOD.format("LATE", 1), name="late.csv")
    let_go(store, today=date(2013, 12, 28))
    assert told(store.folder.parent, "LATE") == []


@pytest.fixture
def winter(house):
    """January to March of two homes, rehearsed with keep_days = 10."""
    house.roster([(home, JANUARY, None) for home in "AB"])
    days = [JANUARY + timedelta(days=number) for number in range(90)]
    house.london({(home, day, slot): 100 for home in "AB" for day in days for slot in range(48)})
    rest = "[engine]\nkeep_days = 10\n"
    house.write(JANUARY, APRIL - timedelta(days=1), mode="rehearsal", promise=PROMISE, rest=rest)
    assert len(house.run(as_of=date(2013, 3, 1)).released) == 57
    return house


def test_months_that_a_rehearsal_let_go_are_not_released_live_as_zeros(winter):
    text = winter.run_file.read_text().replace('"rehearsal"', '"live"').replace("ledger.sqlite", "live.sqlite")
    text = text.replace("[output]", 'corrections = "set-aside"\n[output]')
    winter.run_file.write_text(text.replace('release = "release"', 'release = "live"'))
    with pytest.raises(InputError, match=r"2013-01-01 is due, but readings before 2013-02 were deleted.*another confi"):
        winter.run(today=date(2013, 3, 2))
    assert not (winter.folder / "live.sqlite").exists()
    assert not (winter.folder / "live").exists()


def test_the_rehearsal_itself_goes_on_from_the_month_that_is_kept(winter):
    work = winter.run(as_of=date(2013, 3, 5))
    assert [row.day for row in work.released] == [f"2013-{of}" for of in ("02-27", "02-28", "03-01", "03-02")]
    assert {found.sum_wh["all"] for found in work.checked.sums.by_day.values()} == {2 * 48 * 100}
