"""What a night finds otherwise than the night before: days given up, a file sent again, files come or gone."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.stages.plan import list_due_days
from agedp.store.store import FileOrder, Store
from agedp_data.datasets.validation import ReadingRules

FIRST = date(2013, 1, 1)


def test_a_rehearsal_that_catches_up_gives_up_on_the_date_on_which_the_patience_ended(house):
    house.roster([(home, FIRST, None) for home in "abc"])
    promise = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
    path = house.write(FIRST, FIRST + timedelta(days=3), mode="rehearsal", promise=promise)
    waiting = 'wait_for = "{day}.done"\ngive_up_days = 2\n[series.daily_mean]'
    path.write_text(path.read_text().replace("[series.daily_mean]", waiting))
    for day in (2, 3, 4):
        (house.folder / f"2013-01-0{day}.done").touch()
    run = house.context(as_of=date(2013, 1, 9))
    found = list_due_days(run.run_file, run.roster, set(), until=run.until, not_before=date.min)
    # 1 January ends on the 2nd, is due on the 3rd and given up on the 5th: after two days that were due meanwhile,
    # on the same date as the third
    said = [(one.day.day, one.publish_on.day, one.given_up) for one in found.due]
    assert said == [(2, 4, False), (1, 5, True), (3, 5, False), (4, 6, False)]


def test_a_file_that_comes_again_under_a_later_name_keeps_its_place():
    store = Store(Path("store"), "london", ReadingRules(), FileOrder("name", keeps_unlisted=True))
    places = [("first", "9.csv", 5), ("corrected", "10.csv", 6), ("first", "11.csv", 7)]
    assert store.order_contents(places) == ("first", "corrected")
    assert store.order_contents(places[1:]) == ("corrected", "first")  # nothing is known of an earlier place


@pytest.mark.parametrize("first", ["a.csv", "c.csv"])
def test_rows_set_aside_stay_those_of_their_file_when_others_come_and_go(tmp_path, first):
    store = Store(tmp_path / "confidential" / "store", "london", ReadingRules())
    header, doubled = "LCLid,tstp,energy(kWh/hh)\n", "A,2013-02-05 00:30:00,0.1\n"
    (tmp_path / "b.csv").write_text(header + 2 * doubled)
    other = tmp_path / first
    for present in (True, False, True):
        if present:
            other.write_text(header + "A,2013-01-05 00:30:00,0.1\n")
        else:
            other.unlink()
        found = ingest(store, [str(tmp_path / "*.csv")], engine=Engine())
        assert found.rejected == {"exact duplicate": 1}
        quality = pq.read_table(tmp_path / "confidential" / "quality.parquet").to_pylist()
        kept = {Path(line["input"]).name: line["rows"] for line in quality if line["what"] == "kept"}
        assert kept == {"b.csv": 1, **({first: 1} if present else {})}
        assert pq.read_table(tmp_path / "confidential" / "quarantine_settled.parquet").num_rows == 1
