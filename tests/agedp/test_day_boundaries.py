"""Another time zone database: refused with a choice where it moves a coming day; else unnoticed."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from agedp.stages.amend import amend, preview_amendment
from agedp_data.config import contract
from agedp_data.datasets.timestamps import zone_changes
from agedp_data.errors import ContractChanged, Refused

FIRST = date(2014, 4, 3)
LIVE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 99\n'
ZONES = {
    # the instant at which the clock changes, by this database and by the one before it
    "Australia/Sydney": ("2014-04-05T16:00Z", "2014-04-12T16:00Z"),
    "Europe/London": ("2014-10-26T01:00Z", "2014-10-19T01:00Z"),
}
COLUMNS = (
    '[input.columns]\nhousehold = "home"\ntime = "at"\nstamp = "start"\nzone = "UTC"\nday_zone = "{}"\nenergy = "wh"\n'
    'unit = "Wh"\ntime_format = "%Y-%m-%d %H:%M"\n[output]\n'
)


def begun(house, monkeypatch, zone: str, until: date):
    """Release days under a database that has another clock change; return the house under the present one."""
    true, earlier = ZONES[zone]
    start = datetime(FIRST.year, FIRST.month, FIRST.day) - timedelta(days=1)
    stamps = [start + timedelta(minutes=30 * step) for step in range(48 * 14)]
    lines = [f"{home},{at:%Y-%m-%d %H:%M},100" for home in "AB" for at in stamps]
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text("\n".join(["home,at,wh", *lines]) + "\n")
    house.roster([(home, FIRST, None) for home in "AB"])
    house.write(FIRST, FIRST + timedelta(days=15), dataset="long", mode="live", promise=LIVE)
    house.edit(("[output]\n", COLUMNS.format(zone)))

    def of_before(zone: str, first: date, last: date | None) -> tuple[str, ...]:
        return tuple(line.replace(true, earlier) for line in zone_changes(zone, first, last))

    with monkeypatch.context() as patched:
        patched.setattr(contract, "zone_changes", of_before)
        house.run(today=until + timedelta(days=2))
    assert newest(house) == str(until)
    return house


def newest(house) -> str:
    return max(row.day for row in house.rows())


def test_a_change_that_moves_a_coming_day_needs_an_amendment(house, monkeypatch):
    begun(house, monkeypatch, "Australia/Sydney", FIRST)
    with pytest.raises(ContractChanged, match="days of Australia/Sydney from 2014-04-06 on are not those of"):
        house.run(today=date(2014, 4, 8))
    assert newest(house) == "2014-04-03"
    [change] = preview_amendment(house.session()).changes
    assert (change.key, change.new) == ("schedule.zone_changes", "other days from 2014-04-06 on")
    amend(house.context())
    house.run(today=date(2014, 4, 8))
    assert newest(house) == "2014-04-06"


def test_a_change_at_a_released_day_cannot_be_recorded(house, monkeypatch):
    """8 April would begin an hour later than the day before it ended."""
    begun(house, monkeypatch, "Australia/Sydney", date(2014, 4, 7))
    with pytest.raises(ContractChanged, match="from 2014-04-08 on"):
        house.run(today=date(2014, 4, 12))
    with pytest.raises(Refused, match="2014-04-08 would overlap the day released before it, or leave a gap"):
        amend(house.context())


def test_a_change_behind_the_last_day_is_not_noticed(house, monkeypatch):
    begun(house, monkeypatch, "Europe/London", date(2014, 4, 5))
    house.run(today=date(2014, 4, 8))
    assert newest(house) == "2014-04-06"
    assert preview_amendment(house.session()).changes == ()
