"""Every statistic and length of its rows, by no column, one and several, from one CSV file to a verified folder."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta

import numpy as np
import pytest

from agedp_data import mechanisms
from agedp_data.errors import InputError
from agedp_data.series.series import DERIVED_TABLES
from tests.agedp.conftest import CLASSICAL

FIRST, LAST = date(2013, 1, 30), date(2013, 3, 2)  # February alone is a whole month
DAYS = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
TODAY = date(2013, 6, 1)
FEEDERS = {"A": "N/F1", "B": "N/F1", "C": "N/F2", "D": "S/F1"}
WH = {"A": 10, "B": 25, "C": 30, "D": 70}  # of each half-hour, below the clamps
STATISTICS = {
    "mean": 'statistic = "mean"\nclamp_kwh = 9\n',
    "month": 'statistic = "mean"\nevery = "month"\nclamp_kwh = 9\n',
    "counts": 'statistic = "distribution"\nclamp_kwh = 9\nbins_kwh = [0, 2, 9]\n',
    "profile": 'statistic = "profile"\nclamp_kwh = 9\nhalf_hour_clamp_kwh = 1\n',
    "kinds": 'statistic = "profile"\nevery = "weekday-month"\nclamp_kwh = 9\nhalf_hour_clamp_kwh = 1\n',
    "usable": 'statistic = "coverage"\n',
}
KINDS = {
    "mean": "averages",
    "month": "periods",
    "counts": "distributions",
    "profile": "profiles",
    "kinds": "profile_releases",
    "usable": "coverages",
}
BY = {"all": "", "one": 'by = "area"\n', "list": 'by = ["feeder", "area"]\n'}
LEVELS = {"all": ["all"], "one": ["area"], "list": ["area", "feeder"]}
GROUPS = {"all": ["all"], "area": ["N", "S"], "feeder": ["N/F1", "N/F2", "S/F1"]}
SERIES = ("all", "one", "list/area", "list/feeder")


def tables():
    """Of the shares, that of the first series is what the others leave."""
    share = {"all": "0.04", "one": "0.04", "list": "[0.04, 0.04]"}
    text = "".join(
        f"[series.{statistic}_{name}]\n{keys}{by}share = {share[name]}\n"
        for statistic, keys in STATISTICS.items()
        for name, by in BY.items()
    )
    return text.replace("share = 0.04", "share = 0.08", 1)


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """Four households of three feeders in two areas, all statistics released by all levels without noise."""
    house = houses(tmp_path_factory.mktemp("levels"))
    house.london({(home, day, slot): WH[home] for home in FEEDERS for day in DAYS for slot in range(48)})
    lines = [f"{home},{FIRST},,{','.join(reversed(path.split('/')))}" for home, path in FEEDERS.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,feeder,area", *lines]) + "\n")
    house.write(FIRST, LAST, least=1, promise=CLASSICAL, rest=tables())
    house.edit(("[population]", 'averages_by = ["week", "month", "year"]\n[population]'))
    house.edit(('[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n', ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: np.asarray(exact))
        house.run(today=TODAY)
    return house


def wh(group):
    """Return what a household of the group uses in a half-hour, on average."""
    return np.mean([WH[home] for home, path in FEEDERS.items() if group == "all" or f"{path}/".startswith(f"{group}/")])


@pytest.mark.parametrize("name", BY)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_table_has_the_groups_and_values_of_its_levels(kept, statistic, name):
    by_name = {
        json.loads(table.schema.metadata[b"agedp"])["of"]: table.to_pandas()
        for table in getattr(kept.release, KINDS[statistic])().values()
    }
    table = by_name[f"{statistic}_{name}"]
    assert set(table["day"]) == ({date(2013, 2, 28)} if statistic in ("month", "kinds") else set(DAYS))
    groups = {group: level for level in LEVELS[name] for group in GROUPS[level]}
    assert list(dict.fromkeys(table["group"])) == list(groups)
    assert ("level" in table) == (name == "list")
    if name == "list":
        assert dict(table[["group", "level"]].itertuples(index=False)) == groups
        assert set(table.groupby("level").size() / len(by_name[f"{statistic}_all"])) == {2.0, 3.0}
    if "mean_kwh" in table:
        half_hours = 1 if "start_minute" in table else 48
        expected = table["group"].map(wh) * half_hours / 1000
        assert table["mean_kwh"].tolist() == pytest.approx(expected.tolist(), rel=1e-12)
    if statistic == "usable":
        assert set(table["coverage"]) == {1.0}


@pytest.mark.parametrize("file", [table.file for table in DERIVED_TABLES])
def test_derived_tables_name_the_level_of_each_group(kept, file):
    table = kept.release.table(file)
    groups = {(level, group) for level, of_level in GROUPS.items() for group in of_level}
    assert set(table[["group_column", "group"]].itertuples(index=False, name=None)) == groups
    of = "counts" if "quantiles" in file else "profile" if "profile" in file else "mean"
    assert set(table["series"]) == {f"{of}_{name}" for name in SERIES}
    if "mean_kwh" in table:
        expected = table["group"].map(wh) * (1 if of == "profile" else 48) / 1000
        assert table["mean_kwh"].tolist() == pytest.approx(expected.tolist(), rel=1e-12)


def test_a_name_that_is_no_table_is_refused_with_those_there_are(kept):
    with pytest.raises(InputError, match=r"^total: the release has no such table; it has averages_by_month, .*"):
        kept.release.table("total")


LEVELLED = 'clamp_kwh = 9\nby = ["feeder", "area"]\nshare = [0.6, 0.4]'
LIVE = 'notion = "classical"\nage_days = 0\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'


def levelled(kept, house, mode, **keys):
    """The same households and roster, with one mean of two levels."""
    shutil.copytree(kept.folder / "input", house.folder / "input")
    shutil.copy(kept.folder / "roster.csv", house.folder / "roster.csv")
    house.write(FIRST, FIRST + timedelta(days=2), mode=mode, least=1, promise=LIVE, **keys)
    house.edit(("clamp_kwh = 50", LEVELLED))
    return house


def test_synthetic_households_are_the_same_ones_in_every_level(kept, house, monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: np.asarray(exact))
    levelled(kept, house, "rehearsal")
    house.edit(('rehearsal_on = "readings"', 'rehearsal_on = "synthetic"'))
    house.run(as_of=TODAY)
    table = house.release.table()
    by_level = {level: rows.set_index(["day", "group"])["noisy_sum_wh"] for level, rows in table.groupby("level")}
    sums = by_level["feeder"].groupby(lambda key: (key[0], key[1].rpartition("/")[0])).sum()
    assert sums.to_dict() == by_level["area"].to_dict()


def test_a_label_that_is_no_level_stops_before_a_draw(kept, house):
    levelled(kept, house, "live")
    roster = house.folder / "roster.csv"
    roster.write_text(roster.read_text().replace("F2", "F2/a", 1))
    with pytest.raises(InputError, match='a label in column feeder, a level of a hierarchy, contains "/"'):
        house.run(today=TODAY)
    assert not (house.folder / "ledger.sqlite").exists()
