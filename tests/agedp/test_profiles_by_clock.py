"""Profiles of days on which the clock changes, and of hourly readings, equal a count by pandas before noise."""

from __future__ import annotations

from datetime import date, timedelta

import pandas as pd
import pytest

from agedp_data import mechanisms

ZONE = "Australia/Sydney"
COLUMNS = (
    '[input.columns]\nhousehold = "home"\ntime = "at"\nstamp = "start"\nzone = "UTC"\nday_zone = "Australia/Sydney"\n'
    'energy = "wh"\nunit = "Wh"\ntime_format = "%Y-%m-%d %H:%M"\n[output]\n'
)
SERIES = '[series.shape]\nstatistic = "profile"\nclamp_kwh = 500\nhalf_hour_clamp_kwh = 10\n'
MEAN = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'


def published(house, day, *, minutes):
    """The published profile of a day without noise, beside the readings by household and clock time."""
    stamps = pd.date_range(f"{day - timedelta(days=1)}", periods=3 * 1440 // minutes, freq=f"{minutes}min", tz="UTC")
    readings = pd.DataFrame({"at": stamps}).merge(pd.DataFrame({"home": list("AB"), "level": [70, 410]}), how="cross")
    readings["wh"] = readings["level"] + 13 * (readings.index % 37)
    (house.folder / "input").mkdir()
    table = readings.assign(at=readings["at"].dt.strftime("%Y-%m-%d %H:%M"))[["home", "at", "wh"]]
    table.to_csv(house.folder / "input" / "a.csv", index=False)
    house.roster([(home, day, None) for home in "AB"])
    house.write(day, day, dataset="long", rest=SERIES)
    house.edit(("[output]\n", f"interval_minutes = {minutes}\n{COLUMNS}"), (MEAN, ""))
    house.run(today=date(2014, 1, 1))
    house.release.verify()
    local = readings["at"].dt.tz_convert(ZONE)
    of_day = readings.assign(minute=60 * local.dt.hour + local.dt.minute)[local.dt.date == day]
    return house.release.table("daily_profile"), of_day.groupby("minute")["wh"].agg(["sum", "size"])


@pytest.mark.parametrize("minutes", [30, 60])
@pytest.mark.parametrize(("day", "hours"), [(date(2012, 10, 7), 23), (date(2013, 4, 7), 25)], ids=str)
def test_every_reading_is_in_the_half_hour_of_its_clock(house, monkeypatch, day, hours, minutes):
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: list(exact))
    table, counted = published(house, day, minutes=minutes)
    length = max(30, minutes)
    by_cell = counted.groupby(length * (counted.index // length)).sum()
    assert table["start_minute"].tolist() == by_cell.index.tolist()
    assert table["noisy_sum_wh"].tolist() == by_cell["sum"].tolist()
    assert table["minutes"].tolist() == (by_cell["size"] // 2 * minutes).tolist()
    assert table["minutes"].sum() == 60 * hours
