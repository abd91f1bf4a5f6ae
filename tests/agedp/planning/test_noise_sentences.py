"""What `agedp plan` warns of about levels and columns of the roster."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from agedp_data.errors import RunFileError
from agedp_flows.text.plan_text import plan_lines

FIRST = date(2013, 2, 1)
DAYS = [FIRST + timedelta(days=i) for i in range(28)]
TODAY = date(2013, 3, 10)
HOMES = {"A": "north,1", "B": "north,2", "C": "south,1", "D": "south,1", "E": "south,2"}


def fill(house, days=DAYS, *, first='clamp_kwh = 50\nshare = 0.6\nby = "area"', rest="", roster=HOMES):
    house.fill(days, households="".join(HOMES))
    rows = [f"{home},{FIRST},,{groups}" for home, groups in roster.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,area,feeder", *rows]) + "\n")
    house.write(days[0], days[-1], rest=rest, least=1)
    house.edit(("clamp_kwh = 50", first))
    return house


def test_reversed_levels_are_warned_of(houses, tmp_path):
    unique = {home: f"{groups.partition(',')[0]},{groups.replace(',', '-')}" for home, groups in HOMES.items()}

    def warnings(folder, by, roster):
        (tmp_path / folder).mkdir()
        levels = f"clamp_kwh = 50\nby = {json.dumps(by)}\nshare = [0.5, 0.5]"
        lines = plan_lines(fill(houses(tmp_path / folder), DAYS[:1], first=levels, roster=roster).session(today=TODAY))
        return [line for line in lines if line.startswith("warning: [series.")]

    [warned] = warnings("reversed", ["area", "feeder"], unique)
    assert warned.endswith("'area' has 2 groups and 'feeder' 4, but the finest column comes first. Reverse the order")
    assert warnings("sound", ["feeder", "area"], unique) == []
    assert warnings("labels used twice", ["feeder", "area"], HOMES) == []


@pytest.mark.parametrize(
    ("column", "advice"), [("aera", "; did you mean 'area'?"), ("tariff", "; its group columns are area, feeder")]
)
def test_an_unknown_column_names_those_of_the_roster(houses, tmp_path, column, advice):
    house = fill(houses(tmp_path), DAYS[:1], first=f'clamp_kwh = 50\nby = "{column}"')
    with pytest.raises(RunFileError) as error:
        house.session(today=TODAY)
    assert str(error.value).endswith(f"the roster has no such column{advice}")
