"""Lines of `agedp plan` and `agedp run` about profiles, coverage, periods and levels: noise as the tables have it."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta

import pytest

import agedp
from agedp.plan_facts import read_plan
from agedp_data.errors import RunFileError
from agedp_flows.text.plan_text import _shown_lines as shown_lines
from agedp_flows.text.plan_text import plan_lines
from agedp_flows.text.run_text import result_lines

FIRST = date(2013, 2, 1)
DAYS = [FIRST + timedelta(days=i) for i in range(28)]
TODAY = date(2013, 3, 10)
HOMES = {"A": "north,1", "B": "north,2", "C": "south,1", "D": "south,1", "E": "south,2"}
CLAMP = "clamp_kwh = 9\nhalf_hour_clamp_kwh = 0.5\n"
MONTHS = f"""
[series.months]
statistic = "profile"
every = "weekday-month"
{CLAMP}share = 0.2
by = "area"

[series.month_mean]
statistic = "mean"
every = "month"
clamp_kwh = 9
share = 0.2
by = "area"
"""
SHORT = f"""
[series.shape_of_the_whole_day]
statistic = "profile"
{CLAMP}share = 0.2
by = "area"

[series.usable]
statistic = "coverage"
share = 0.2
by = "area"
"""


def fill(house, days=DAYS, *, first='clamp_kwh = 50\nshare = 0.6\nby = "area"', rest="", roster=HOMES):
    house.fill(days, households="".join(HOMES))
    rows = [f"{home},{FIRST},,{groups}" for home, groups in roster.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,area,feeder", *rows]) + "\n")
    house.write(days[0], days[-1], rest=rest, least=1)
    house.edit(("clamp_kwh = 50", first))
    return house


def sentence(lines, start):
    [line] = [line for line in lines if line.startswith(f"{start}:") or line.startswith(f"{start}, smallest group ")]
    return line


@pytest.fixture(scope="module")
def month(houses, tmp_path_factory):
    house = fill(houses(tmp_path_factory.mktemp("month")), rest=MONTHS)
    session = house.session(today=TODAY)
    planned = plan_lines(session), read_plan(session).facts, agedp.plan(house.run_file).table
    return house, *planned, result_lines(house.run(today=TODAY))


def test_a_planned_month_has_the_noise_of_its_table(month):
    house, lines, planned, table, _ = month
    released = agedp.open_release(house.folder / "release")
    profile = released.table("profile_releases")
    drawn = profile.groupby(["group", "day_kind"])["noise_sd_kwh"].max()
    assert len(drawn) == 4
    of_plan = table[table["series"] == "months"].set_index("group")
    for (group, kind), noise in drawn.items():
        assert of_plan.loc[f"{group} {kind}", "noise_sd_kwh"] == pytest.approx(noise, rel=1e-12)
    [due] = [row for row in planned["due"] if row["series"] == "months"]
    assert due["households"] == {"north": 2, "south": 3}
    assert due["noise_sd_kwh"] == pytest.approx(drawn["north"].max(), rel=1e-12)
    [line] = [line for line in lines if " months " in line]
    weekday, weekend = (drawn["north"][kind] for kind in ("weekday", "weekend"))
    assert line.endswith(f"kWh per half-hour, weekday {weekday:.3g}, weekend {weekend:.3g}")
    means = released.table("period_releases").set_index("group")["noise_sd_kwh"]
    of_means = table[table["series"] == "month_mean"].set_index("group")
    assert of_means["noise_sd_kwh"].to_dict() == pytest.approx(means.to_dict(), rel=1e-12)
    assert of_means["households"].to_dict() == {"north": 2, "south": 3}


def test_the_smallest_group_of_each_series_is_shown(month):
    _, lines, *_ = month
    start = next(i for i, line in enumerate(lines) if line.startswith("day  "))
    assert "  households (smallest group)  groups  epsilon  noise sd" in lines[start]
    rows = [line for line in lines[start : start + 14] if line != "..."]
    assert sum(line.split()[3:5] == ["2", "2"] for line in rows) == 10  # of two groups the smaller one has 2
    assert any(" month_mean " in line for line in rows)


def test_periods_are_set_against_an_example_figure(month):
    _, lines, planned, _, ran = month
    noise = next(row["noise_sd_kwh"] for row in planned["due"] if row["series"] == "month_mean")
    expected = f"{100 * noise / 10:,.1f}% of a day of 10 kWh."
    for of in (lines, ran):
        assert sentence(of, "month_mean").startswith("month_mean, smallest group north of area (2 households): noise ")
        assert sentence(of, "month_mean").endswith(f" kWh per household and day of a month, {expected}")
        assert "each half-hour of weekdays and" in sentence(of, "months")
    assert sentence(lines, "daily_mean").startswith("daily_mean, smallest group north of area (2 households): Noise ")


def test_profiles_and_coverage_have_a_sentence_and_names(houses, tmp_path):
    house = fill(houses(tmp_path), DAYS[:2], rest=SHORT)
    name = "shape_of_the_whole_day"
    session = house.session(today=TODAY)
    planned, due = plan_lines(session), {row["series"]: row for row in read_plan(session).facts["due"]}
    ran = result_lines(house.run(today=TODAY))
    # a household moves a profile by twice its clamp of 9 kWh; 2 households of the smallest group
    noise = math.sqrt(2) * 18 / float(due[name]["epsilon"]) / 2
    counts = due["usable"]["noise_sd_households"]
    for lines in (planned, ran):
        text = sentence(lines, name)
        assert text.startswith(f"{name}, smallest group north of area (2 households): noise ")
        percent = float(text.partition(" kWh in each half-hour, ")[2].partition("%")[0].replace(",", ""))
        assert percent == pytest.approx(100 * noise / 0.3, rel=1e-4)
        assert text.endswith("% of a half-hour of 0.3 kWh. Single half-hours cannot be told from noise.")
        assert f" households, {100 * counts / 2:,.1f}% of them." in sentence(lines, "usable")
    newest = DAYS[1].isoformat()
    of_day = [line for line in ran if line.startswith(newest)]
    assert [line.rpartition("  ")[2] for line in of_day[:2]] == ["daily_mean, group north", "daily_mean, group south"]
    assert any(line.startswith(f"{name}, group north on {newest}: ") for line in ran)
    assert all(line.rpartition("  ")[2].startswith("usable, group ") for line in of_day[2:])
    house.release.verify()


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


def test_a_long_table_shows_every_series():
    lines = [("a", False)] * 30
    lines[12], lines[20] = ("b", True), ("b", False)
    assert shown_lines(lines) == [0, 1, 2, 3, 4, 20, 25, 26, 27, 28, 29]
