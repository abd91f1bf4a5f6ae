"""Another time zone database: refused with a choice where it moves a coming day; else unnoticed."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from agedp.stages.amend import amend, preview_amendment
from agedp_data.config import contract
from agedp_data.datasets.zone_changes import zone_changes
from agedp_data.errors import ContractChanged, Refused

FIRST = date(2014, 4, 3)
HOMES = "ABC"
LIVE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 99\n'
ZONES = {
    # the day on which the clock changes, by this database and by the one before it
    "Australia/Sydney": ("2014-04-05T16:00Z", "2014-04-12T16:00Z"),
    "Europe/London": ("2014-10-26T01:00Z", "2014-10-19T01:00Z"),
}


def table(zone: str) -> str:
    keys = {"household": "home", "time": "at", "stamp": "start", "zone": "UTC", "day_zone": zone}
    keys |= {"energy": "wh", "unit": "Wh", "time_format": "%Y-%m-%d %H:%M"}
    return "[input.columns]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items())


def begun(house, monkeypatch, zone: str, first: date, until: date):
    """Release days under a database that has another clock change; return the house under the present one."""
    true, earlier = ZONES[zone]
    start = datetime(first.year, first.month, first.day) - timedelta(days=1)
    stamps = [start + timedelta(minutes=30 * step) for step in range(48 * 20)]
    lines = [f"{home},{at:%Y-%m-%d %H:%M},100" for home in HOMES for at in stamps]
    (house.folder / "input").mkdir()
    (house.folder / "input" / "a.csv").write_text("\n".join(["home,at,wh", *lines]) + "\n")
    house.roster([(home, first, None) for home in HOMES])
    house.write(first, first + timedelta(days=15), dataset="long", mode="live", promise=LIVE)
    text = house.run_file.read_text()
    house.run_file.write_text(text.replace("[output]\n", table(zone) + "[output]\n", 1))

    def of_before(zone: str, first: date, last: date | None) -> tuple[str, ...]:
        return tuple(line.replace(true, earlier) for line in zone_changes(zone, first, last))

    with monkeypatch.context() as patched:
        patched.setattr(contract, "zone_changes", of_before)
        house.run(today=until + timedelta(days=2))
    return house


def newest(house) -> str:
    with house.ledger() as ledger:
        return max(row.day for row in ledger.rows())


def test_a_change_that_moves_a_coming_day_is_refused_and_may_be_recorded(house, monkeypatch):
    begun(house, monkeypatch, "Australia/Sydney", FIRST, FIRST)
    assert newest(house) == "2014-04-03"
    with pytest.raises(ContractChanged, match="days of Australia/Sydney from 2014-04-06 on are not those of"):
        house.run(today=date(2014, 4, 8))
    assert newest(house) == "2014-04-03"
    [change] = preview_amendment(house.session()).changes
    assert (change.key, change.new, change.verdict) == (
        "schedule.zone_changes",
        "other days from 2014-04-06 on",
        "allowed",
    )
    amend(house.context())
    house.run(today=date(2014, 4, 8))
    assert newest(house) == "2014-04-06"


def test_a_change_between_a_released_and_a_coming_day_cannot_be_recorded(house, monkeypatch):
    """8 April would begin an hour later than the day before it ended."""
    begun(house, monkeypatch, "Australia/Sydney", FIRST, date(2014, 4, 7))
    assert newest(house) == "2014-04-07"
    with pytest.raises(ContractChanged, match="from 2014-04-08 on"):
        house.run(today=date(2014, 4, 12))
    with pytest.raises(Refused, match="2014-04-08 would overlap the day released before it, or leave a gap"):
        amend(house.context())


@pytest.mark.parametrize(
    ("zone", "first", "until"),
    [
        ("Australia/Sydney", FIRST, date(2014, 4, 13)),  # all days that were moved are released
        ("Europe/London", date(2014, 4, 3), date(2014, 4, 5)),  # they lie behind the last day
    ],
)
def test_a_change_that_moves_no_coming_day_is_not_noticed(house, monkeypatch, zone, first, until):
    begun(house, monkeypatch, zone, first, until)
    house.run(today=until + timedelta(days=3))
    assert newest(house) == str(until + timedelta(days=1))
    assert preview_amendment(house.session()).changes == ()
