"""What is older than `keep_days` leaves the confidential folder wholly, and is never taken for zero."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agedp.compute.engine_settings import Engine
from agedp.local_files.atomic_files import group_names
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.retention import remove_old_months
from agedp.store.store import FileOrder, Store, read_retained_from
from agedp_data.datasets.validation import ReadingRules
from agedp_data.errors import InputError

PROMISE = 'notion = "classical"\nage_days = 2\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 60\n'
JANUARY, APRIL = date(2013, 1, 1), date(2013, 4, 1)
GOOD, NEGATIVE = "{},2013-{:02}-05 00:30:00,0.1", "{},2013-{:02}-05 01:00:00,-1"
NO_DATE, NO_FIELDS = "ODD,soon,0.1", "ODD"


@pytest.fixture
def store(tmp_path):
    """An empty store that keeps files that are no longer listed."""
    return Store(tmp_path / "confidential" / "store", "london", ReadingRules(), FileOrder("name", keeps_unlisted=True))


def deliver(
    store: Store, *lines: str, name: str = "a.csv", modified: date | None = None, size: int = 2**24
) -> Delivery:
    """Write a file beside the confidential folder, as it was last changed on a day, and read all there are."""
    path = store.folder.parents[1] / name
    path.write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *lines]) + "\n")
    if modified:
        at = datetime(modified.year, modified.month, modified.day, tzinfo=UTC).timestamp()
        os.utime(path, (at, at))
    return ingest(store, [str(path.parent / "*.csv")], engine=Engine("synchronous", 1, size), has_begun=True)


def let_go(store: Store, today: date, keep_days: int = 0) -> list[str]:
    """Remove what is old and return the names of all that is left."""
    remove_old_months(store, today=today, keep_days=keep_days, needed_from=today)
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*"))


def naming(store: Store, word: str) -> int:
    """Return how many confidential files contain a word, in whatever column."""
    paths = [path for path in store.folder.parent.rglob("*") if path.is_file()]
    texts = (
        str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_text(errors="replace")
        for path in paths
    )
    return sum(word in text for text in texts)


def test_rows_leave_with_their_own_month_though_their_file_has_younger_ones(store):
    deliver(store, GOOD.format("OLD", 1), NEGATIVE.format("OLD", 1), GOOD.format("NEW", 3), NEGATIVE.format("NEW", 3))
    assert naming(store, "OLD") == 4  # readings, their days, DAYS, the rejected row
    let_go(store, date(2013, 3, 9))
    assert (naming(store, "OLD"), naming(store, "NEW")) == (0, 4)


@pytest.mark.parametrize(
    ("lines", "modified"),
    [([GOOD.format("A", 1), GOOD.format("A", 3), NO_DATE, NO_FIELDS], None), ([NO_DATE], date(2013, 3, 5))],
)
def test_rows_without_a_date_leave_with_the_last_month_of_their_file(store, lines, modified):
    deliver(store, *lines, modified=modified)
    let_go(store, date(2013, 3, 31))
    assert naming(store, "ODD") == 1
    let_go(store, APRIL)
    assert naming(store, "ODD") == 0
    deliver(store, "ODD,later,0.1", name="b.csv", modified=APRIL)
    let_go(store, APRIL)
    assert naming(store, "ODD") == 1


def test_what_was_removed_stays_so_when_more_is_kept_later(store):
    deliver(store, GOOD.format("A", 2))
    let_go(store, APRIL)
    deliver(store, GOOD.format("A", 1), name="late.csv")
    let_go(store, APRIL, keep_days=30)  # January goes, nothing of March remains
    assert read_retained_from(store.folder) == "2013-04"


def test_a_year_is_removed_month_by_month_and_a_late_row_does_not_return(store):
    deliver(store, *(GOOD.format("A", month) for month in range(1, 13)))
    for month in range(2, 13):
        let_go(store, date(2013, month, 28))
        left = {path.name.removeprefix("month=") for path in (store.folder / "days").glob("month=*")}
        parts = list(store.folder.glob("**/month=*_*/*.parquet"))
        assert [set(group_names(path)) for path in parts] == [left, left]
        assert left == {f"2013-{each:02}" for each in range(month, 13)}
    deliver(store, GOOD.format("LATE", 1), name="late.csv")
    let_go(store, date(2013, 12, 28))
    assert naming(store, "LATE") == 0


class CutOff(BaseException):
    """The process ended here."""


def test_cut_off_before_any_removal_the_next_run_removes_the_rest(store, monkeypatch):
    deliver(store, GOOD.format("A", 1), GOOD.format("A", 2), NEGATIVE.format("A", 1), NO_DATE, name="old.csv")
    deliver(store, GOOD.format("B", 2), GOOD.format("B", 3), NO_DATE, name="both.csv")
    kept = shutil.copytree(store.folder, store.folder.parent / "kept")
    left, march = let_go(store, date(2013, 3, 2)), date(2013, 3, 2)
    assert [path.name for path in store.folder.glob("month=*")] == ["month=2013-02_2013-03"]
    assert {group_names(path) for path in store.folder.glob("**/month=*_*/*.parquet")} == {("2013-03",)}
    assert len(list(kept.glob("quarantine/**/*.parquet"))) == 3
    assert len(list(store.folder.glob("quarantine/**/*.parquet"))) == 1  # of the file that has readings of March
    cut, removals = 0, 1
    while removals > cut:
        shutil.rmtree(store.folder)
        shutil.copytree(kept, store.folder)
        cut, removals = cut + 1, 0

        def counted(call, last):
            def removing(*args: object, **kwargs: object) -> None:
                nonlocal removals
                removals += 1
                if removals == last:
                    raise CutOff
                call(*args, **kwargs)

            return removing

        with monkeypatch.context() as patch:
            for name in ("unlink", "rmdir", "replace"):
                patch.setattr(os, name, counted(getattr(os, name), cut))
            try:
                let_go(store, march)
            except CutOff:
                removals = cut + 1
        again = [str(path) for path in store.folder.parent.glob("../*.csv")]
        assert ingest(store, again, engine=Engine("synchronous", 1), has_begun=True).files_new == 0, cut
        assert let_go(store, march) == left, cut
    assert cut >= 15


@pytest.fixture(scope="module")
def rehearsed(houses, tmp_path_factory):
    """January and February of two homes, rehearsed until March with keep_days = 10."""
    house = houses(tmp_path_factory.mktemp("winter"))
    house.fill([JANUARY + timedelta(days=number) for number in range(64)], households="AB", wh=100)
    rest = "[engine]\nkeep_days = 10\n"
    house.write(JANUARY, APRIL - timedelta(days=1), mode="rehearsal", promise=PROMISE, rest=rest)
    assert len(house.run(as_of=date(2013, 3, 1)).released) == 57
    return house


@pytest.fixture
def winter(rehearsed, houses, tmp_path):
    return houses(Path(shutil.copytree(rehearsed.folder, tmp_path / "winter")))


def test_months_that_a_rehearsal_removed_are_not_released_live_as_zeros(winter):
    winter.edit(
        ('"rehearsal"\nrehearsal_on = "readings"', '"live"'),
        ("ledger.sqlite", "live.sqlite"),
        ('release = "release"', 'release = "live"'),
    )
    winter.edit(("[output]", 'corrections = "set-aside"\n[output]'))
    with pytest.raises(InputError, match=r"2013-01-01 is due, but readings before 2013-02 were deleted.*another confi"):
        winter.run(today=date(2013, 3, 2))
    assert not (winter.folder / "live.sqlite").exists()
    assert not (winter.folder / "live").exists()


def test_the_rehearsal_goes_on_from_the_month_that_is_kept(winter):
    work = winter.run(as_of=date(2013, 3, 5))
    assert [row.day for row in work.released] == [f"2013-{of}" for of in ("02-27", "02-28", "03-01", "03-02")]
    assert {int(found.exact.sum()) for found in work.checked.sums.by_day.values()} == {2 * 48 * 100}
