"""Profiles of real homes, counted line by line, and their published noise."""

from __future__ import annotations

import csv
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from scipy.stats import kstest, laplace

from agedp.compute.engine_settings import Engine
from agedp.pipeline import run_stages
from agedp.run_context import RunContext
from agedp.stages.ingest import ingest
from agedp.store.half_hour_sums import sum_half_hours
from agedp.store.store import Store
from agedp_data import mechanisms
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.series_terms import days_of
from tests.exact_sums import by_group, profile_of
from tests.minimal import run_file

# Sums of half-hours of real households are those counted line by line: 40 of London, one year of Ausgrid.

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


# Profile, coverage and mean of 40 real households, published by a run: exact to the watt-hour, noise by its law.

FIRST, DAYS, SHARE = date(2013, 1, 1), 90, {"daily_mean": 0.5, "shape": 0.3, "usable": 0.2}
HALF_HOUR_WH, DAY_WH, EPSILON = 1_500, 12_000, 0.5
SENSITIVITY = {"daily_mean": DAY_WH, "shape": 2 * DAY_WH, "usable": 1}


@pytest.fixture(scope="module")
def published(kaggle, roster_text, tmp_path_factory):
    """The drawn values and the exact vectors of a run, by series: shape (days, cells)."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "roster.csv").write_text(roster_text)
    energy = {"clamp_kwh": DAY_WH // 1000}
    tables = {
        "series.daily_mean": energy | {"statistic": "mean"},
        "series.shape": energy | {"clamp_kwh": 12, "statistic": "profile", "half_hour_clamp_kwh": 1.5},
        "series.usable": {"clamp_kwh": None, "statistic": "coverage"},
    }
    text = run_file(
        input={"files": [str(kaggle / "*.csv")]},
        schedule={"first_day": FIRST, "last_day": FIRST + timedelta(days=DAYS - 1)},
        **{name: keys | {"share": SHARE[name.partition(".")[2]]} for name, keys in tables.items()},
    )
    (folder / "run.toml").write_text(text)
    drawn, sound = [], mechanisms.discrete_laplace

    def recorded(exact, *, sensitivity, loss):
        values = sound(exact, sensitivity=sensitivity, loss=loss)
        drawn.append((np.asarray(exact), np.asarray(values), sensitivity))
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", recorded)
        summary = run_stages(RunContext.load(folder / "run.toml"))
    summary.check_not_refused()
    by_series = {}
    for name, sensitivity in SENSITIVITY.items():
        of = [(exact, values) for exact, values, of in drawn if of == sensitivity]
        by_series[name] = tuple(np.stack(part) for part in zip(*of, strict=True))
    return by_series


def test_exact_vectors_are_those_counted_line_by_line(published, households):
    readings = np.stack(list(households.values()))[:, :DAYS]
    usable = (readings >= 0).sum(axis=2) >= 46
    present = np.where(readings >= 0, readings, 0)
    clipped = np.minimum(present, HALF_HOUR_WH)
    total = clipped.sum(axis=2, keepdims=True)
    shape = np.where(total > DAY_WH, clipped * DAY_WH // np.maximum(total, 1), clipped) * usable[..., None]
    days = np.minimum(present.sum(axis=2), DAY_WH) * usable
    assert published["daily_mean"][0].tolist() == days.sum(axis=0)[:, None].tolist()
    assert published["shape"][0].tolist() == shape.sum(axis=0).tolist()
    assert published["usable"][0].tolist() == usable.sum(axis=0)[:, None].tolist()


@pytest.mark.parametrize("name", SENSITIVITY)
def test_noise_follows_its_law_and_no_smaller_one(published, name):
    exact, values = published[name]
    noise, scale = (values - exact).ravel(), SENSITIVITY[name] / (EPSILON * SHARE[name])
    assert noise.size == DAYS * (48 if name == "shape" else 1)
    # a whole number is spread over its unit, so that the law of the discrete noise is nearly continuous
    spread = noise + np.random.default_rng(1).uniform(-0.5, 0.5, noise.size)
    assert kstest(spread, laplace(scale=scale).cdf).pvalue > 1e-6
    # the mean size of n draws has the deviation scale / sqrt(n): five of them are 7.6 % of 4,320 draws
    assert abs(np.abs(noise).mean() / scale - 1) < 5 / np.sqrt(noise.size)
