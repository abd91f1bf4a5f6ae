"""Life over many nights: live mode, markers, catch-up, late and corrected rows, rosters, groups, series, models."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from agedp_data.errors import InputError
from agedp_flows.cli.options import end_run

FIRST = date(2026, 3, 1)
HOMES = ("A", "B", "C")
PROMISE = 'notion = "classical"\nage_days = 2\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = {}\n'


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


@pytest.fixture
def nights(house):
    """A live population whose files come day by day."""
    house.roster([(home, FIRST, None) for home in HOMES])
    for number in range(4):
        deliver(house, number)
    write(house)
    return house


def deliver(house, number: int, *, wh: int = 100, name: str | None = None) -> None:
    readings = {(home, day(number), slot): wh for home in HOMES for slot in range(48)}
    house.london(readings, name=name or f"night-{number}.csv")


def write(house, *, promise: str = PROMISE.format(9), rest: str = "", schedule: str = "") -> None:
    house.write(FIRST, FIRST + timedelta(days=60), mode="live", promise=promise, rest=rest)
    house.edit(("[series.daily_mean]", f"{schedule}\n[series.daily_mean]"))


def run_at(house, number: int, hour: int = 6):
    return house.run(today=day(number), hour=hour)


def days_of(rows) -> list[int]:
    return [(date.fromisoformat(row.day) - FIRST).days for row in rows if row.state == "released"]


def test_a_live_day_is_released_when_its_age_is_reached(nights):
    assert run_at(nights, 2).released == ()  # the first day ended at the start of day 1: it is two days old on day 3
    assert not (nights.folder / "release").exists()
    assert days_of(run_at(nights, 3, 0).released) == [0]
    assert run_at(nights, 3, 23).released == ()
    assert days_of(run_at(nights, 4).released) == [1]
    assert run_at(nights, 3).released == ()  # the clock was set back
    assert days_of(nights.rows()) == [0, 1]


def test_a_day_waits_for_its_marker_or_is_skipped(nights, capsys):
    write(nights, schedule='wait_for = "input/{day}.done"\ngive_up_days = 3')
    (nights.folder / "input" / f"{day(1)}.done").write_text("")
    work = run_at(nights, 4)
    assert days_of(work.released) == [1]  # the first day waits, the second does not wait for it
    assert work.due_days.waiting == (day(0),)
    work = run_at(nights, 6)
    assert [(row.day, row.state, row.loss, row.values) for row in work.released] == [(str(day(0)), "skipped", 0, ())]
    assert work.due_days.waiting == (day(2), day(3))
    end_run(work, list, as_json=False, quiet=True, warns=True)
    assert f"warning: 1 day skipped, first {day(0)}: its delivery never came" in capsys.readouterr().err
    (nights.folder / "input" / f"{day(0)}.done").write_text("")
    assert days_of(run_at(nights, 6).released) == []
    assert nights.release.statement["days"]["skipped"] == [str(day(0))]


def test_nothing_in_the_files_stops_a_series_that_has_begun(nights):
    good = (nights.folder / "input" / "night-1.csv").read_bytes()
    (nights.folder / "input" / "night-1.csv").write_bytes(b"<html>" + good)
    with pytest.raises(InputError, match="its columns are not those of dataset"):
        run_at(nights, 3)
    assert not (nights.folder / "ledger.sqlite").exists()
    (nights.folder / "input" / "night-1.csv").write_bytes(good)
    assert days_of(run_at(nights, 3).released) == [0]
    (nights.folder / "input" / "night-3.csv").write_bytes(b"<html>" + good)
    work = run_at(nights, 4)
    assert days_of(work.released) == [1]
    assert work.checked.sums.by_day[day(1), "daily_mean"].usable.tolist() == [3]
    assert [text.split(": ")[0] for text in work.delivery.unreadable] == [str(nights.folder / "input/night-3.csv")]
    for number in range(4):  # all is said again, and otherwise: the two set each other aside
        deliver(nights, number, wh=101, name=f"again-{number}.csv")
    work = run_at(nights, 5)
    assert (days_of(work.released), work.delivery.late_rows) == ([2], 2 * 48 * len(HOMES))
