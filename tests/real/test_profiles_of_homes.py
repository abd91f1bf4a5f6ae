"""Sums of half-hours of real households are those counted line by line: 40 of London, one year of Ausgrid."""

from __future__ import annotations

import csv
from datetime import date, datetime

import numpy as np
import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.half_hour_sums import sum_half_hours
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.series_terms import days_of
from tests.exact_sums import by_group, profile_of

WIDE, NARROW = (10**5, 10**6, 0, 2), (1_500, 12_000, 48 * 200, 2)


def sums_of(folder, files, dataset, roster_text, profiles, days):
    store = Store(folder / "store", dataset, ReadingRules())
    delivery = ingest(store, files, engine=Engine("threads", 2))
    (folder / "roster.csv").write_text(roster_text)
    roster = read_roster(folder / "roster.csv")
    return sum_half_hours(store, delivery, roster, days=days, series=profiles, engine=Engine("threads", 2))


def counted(readings, rule):
    """Return what household-days (n, 48), -1 where missing, add to a profile, and which of them are usable."""
    clipped = np.clip(readings, 0, rule.half_hour_clamp_wh)
    total = clipped.sum(axis=1, keepdims=True)
    reduced = np.where(total > rule.clamp_wh, clipped * rule.clamp_wh // np.maximum(total, 1), clipped)
    usable = (readings >= 0).sum(axis=1) >= 48 - rule.max_missing
    return np.where(usable[:, None], reduced, rule.missing_wh // 48), usable


def test_profiles_of_london_are_those_counted_by_hand(tmp_path, kaggle, households):
    days = days_of(date(2013, 1, 1), date(2013, 12, 31))
    areas = {household: f"area {i % 3}" for i, household in enumerate(sorted(households))}
    roster_text = "household_id,from,to,area\n" + "".join(
        f"{household},2013-01-01,,{area}\n" for household, area in areas.items()
    )
    profiles = {"wide": profile_of(*WIDE), "narrow": profile_of(*NARROW, by="area")}
    sums = sums_of(tmp_path, [str(kaggle / "*.csv")], "london", roster_text, profiles, days)
    for i, day in enumerate(days):
        for name, profile in profiles.items():
            groups = {household: areas[household] if profile.by else "all" for household in areas}
            for group in set(groups.values()):
                readings = np.stack([households[home][i] for home in sorted(groups) if groups[home] == group])
                energy_wh, usable = counted(readings, profile)
                assert [*by_group(sums[day, name])[group]] == energy_wh.sum(axis=0).tolist()
                assert by_group(sums[day, name], "usable")[group] == usable.sum()
                assert by_group(sums[day, name], "households")[group] == len(readings)
    assert sum(one.counts[:, 2].sum() for (_, name), one in sums.items() if name == "wide") == 0
    assert sum(one.counts[:, 2].sum() for (_, name), one in sums.items() if name == "narrow") > 1_000


@pytest.mark.parametrize("name", ["ausgrid-2011-2012-customer12.csv", "ausgrid-2012-2013-9rows.csv"])
def test_profiles_of_ausgrid_are_those_of_its_columns(tmp_path, real_data, name):
    """The clock goes forward on 2 October 2011: "2:30" and "3:00" are no half-hours. It goes back on 1 April 2012."""
    path = real_data / "ausgrid" / name
    use: dict[tuple[str, date], np.ndarray] = {}
    for row in csv.reader(path.read_text().splitlines()):
        if row[3:4] in (["GC"], ["CL"]):
            day = datetime.strptime(row[4], "%d/%m/%Y").date()
            energy_wh = np.array([round(float(cell) * 1000) for cell in row[5:53]])
            use[row[0], day] = use.get((row[0], day), 0) + energy_wh
    days = sorted({day for _, day in use})
    roster_text = "household_id,from,to\n" + "".join(f"{home},2011-01-01,\n" for home in {home for home, _ in use})
    profiles = {"wide": profile_of(*WIDE), "narrow": profile_of(*NARROW)}
    sums = sums_of(tmp_path, [str(path)], "ausgrid", roster_text, profiles, days)
    for (day, series), one in sums.items():
        slots = [slot for slot in range(48) if day != date(2011, 10, 2) or slot not in (4, 5)]
        assert one.slots == tuple(slots)
        rule, homes = profiles[series], {home for home, _ in use}
        expected = np.zeros(len(slots), np.int64)
        for home in homes:
            if (home, day) in use:
                expected += counted(use[home, day][None], rule)[0][0][slots]
            else:
                expected += rule.missing_wh // len(slots)
        assert one.exact[0].tolist() == expected.tolist()
    assert len(sums) == 2 * len(days)
