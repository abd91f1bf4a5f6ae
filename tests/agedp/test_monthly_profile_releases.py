"""Profiles of a month's weekdays and weekends on their whole way: counted from the CSV, drawn once, verified."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from agedp.stages.aggregate import aggregate, sum_periods
from agedp_data import mechanisms
from agedp_data.roster import read_roster
from agedp_data.series.profile import Profile
from tests.agedp.conftest import CLASSICAL

FIRST, LAST = date(2013, 1, 30), date(2013, 3, 3)
"""From a Wednesday to a Sunday; February, with 20 weekdays and 8 days of weekends, alone is a whole month."""
DAYS = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
FEBRUARY = [day for day in DAYS if day.month == 2]
TODAY = date(2013, 3, 10)
MOVES, LEAVES = date(2013, 2, 13), date(2013, 2, 10)
"""B moves from Std to ToU, E leaves."""
HALF_HOUR, CLAMP, MISSING = 500, 9_000, 4_800
SENSITIVITY = (2 * 20 + 5 * 8) * 2 * CLAMP
TABLES = """
[series.months]
statistic = "profile"
every = "weekday-month"
clamp_kwh = 9
half_hour_clamp_kwh = 0.5
missing_kwh = 4.8
share = {months}
by = "tariff"

[series.days]
statistic = "profile"
clamp_kwh = 9
half_hour_clamp_kwh = 0.5
missing_kwh = 4.8
share = {days}
by = "tariff"
"""


def wh(home, day, slot):
    """What a home uses [Wh]: C exceeds the clamp of its half-hours, and D that of its days; A lacks some days."""
    if (home, day.day) in {("A", 5), ("A", 16), ("B", 24)}:
        return None
    return {"A": 10 + slot, "B": 90 + day.day, "C": 40 * slot, "D": 400, "E": 3 * slot + day.day}[home]


def tariff(home, day):
    if home == "B":
        return "Std" if day < MOVES else "ToU"
    return "Std" if home in "AC" else "ToU"


def build(house, use=wh):
    cells = {
        (home, day, slot): use(home, day, slot)
        for home in "ABCDE"
        for day in (DAYS if use is wh else FEBRUARY)
        if home != "E" or day <= LEAVES
        for slot in range(48)
    }
    house.london({cell: value for cell, value in cells.items() if value is not None})
    spans = [f"{home},{FIRST},{LEAVES if home == 'E' else ''},{tariff(home, FIRST)}" for home in "ACDE"]
    spans += [f"B,{FIRST},{MOVES - timedelta(days=1)},Std", f"B,{MOVES},,ToU"]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *spans]) + "\n")
    house.write(FIRST, LAST, clamp="9\nshare = 0.5", promise=CLASSICAL, rest=TABLES.format(months=0.3, days=0.2))
    house.edit(("min_households = 2", "min_households = 1"))
    return house


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    """The homes, published by day and month without noise."""
    house = build(houses(tmp_path_factory.mktemp("months")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: np.asarray(exact))
        house.run(today=TODAY)
    return house


def counted_csv(path):
    """What each household-day of February counts, read from the CSV file: a line for each half-hour."""
    read = defaultdict(dict)
    with path.open() as lines:
        for home, stamp, kwh in list(csv.reader(lines))[1:]:
            begin = datetime.fromisoformat(stamp) - timedelta(minutes=30)
            read[home, begin.date()][2 * begin.hour + begin.minute // 30] = round(float(kwh) * 1000)
    lines = []
    for home in "ABCDE":
        for day in FEBRUARY:
            if home == "E" and day > LEAVES:
                continue
            values = read.get((home, day))
            clamped = [min(values[slot], HALF_HOUR) for slot in range(48)] if values else [MISSING // 48] * 48
            factor = min(Fraction(1), Fraction(CLAMP, max(1, sum(clamped))))
            kind = "weekend" if day.strftime("%A") in ("Saturday", "Sunday") else "weekday"
            group = tariff(home, day)
            lines += [(home, day, group, kind, 30 * i, math.floor(value * factor)) for i, value in enumerate(clamped)]
    return pd.DataFrame(lines, columns=["home", "day", "group", "day_kind", "start_minute", "wh"])


def test_a_month_is_counted_from_the_csv(kept):
    counted = counted_csv(kept.folder / "input" / "a.csv").groupby(["group", "day_kind", "start_minute"])["wh"]
    table = kept.release.table("profile_releases")
    assert len(table) == 2 * 2 * 48
    assert set(table["first_day"].dt.date) == {date(2013, 2, 1)}
    assert set(table["day"].dt.date) == {date(2013, 2, 28)}
    lines = table.set_index(["group", "day_kind", "start_minute"])
    assert set(counted.groups) == set(lines.index)
    for key, values in counted:
        line = lines.loc[key]
        assert line["household_days"] == len(values)
        assert line["noisy_weighted_wh"] == {"weekday": 2, "weekend": 5}[key[1]] * values.sum()
        assert line["mean_kwh"] == pytest.approx(values.mean() / 1000, rel=1e-12)


def test_months_drawn_and_months_derived_from_days_agree_without_noise(kept):
    keys = ["group", "day_kind", "start_minute"]
    drawn = kept.release.table("profile_releases").set_index(keys)
    derived = kept.release.profiles_by_month()
    february = derived[derived["first_day"].dt.month == 2].set_index(keys)
    assert (february["is_complete"] == 1).all()
    assert drawn["mean_kwh"].to_dict() == pytest.approx(february["mean_kwh"].to_dict(), rel=1e-12)


def test_the_noise_is_that_of_all_days_of_a_household(kept):
    [row] = [row for row in kept.rows("months") if row.state == "released"]
    assert row.sensitivity == SENSITIVITY
    assert row.loss == math.ceil(Fraction(SENSITIVITY) / Fraction(row.scale) * 10**9)
    assert row.scale == pytest.approx(SENSITIVITY / (0.3 * 0.5))
    table = kept.release.table("profile_releases")
    sd = mechanisms.standard_deviation(row.scale) / 1000 / table["weight"] / table["household_days"]
    assert table["noise_sd_kwh"].tolist() == pytest.approx(sd.tolist(), rel=1e-12)


def test_the_release_verifies_and_says_what_a_row_covers(kept):
    kept.release.verify()
    words = " ".join((kept.release.path / "STATEMENT.md").read_text().split())
    assert "(2 x weekdays + 5 x days of weekends) x sensitivity / epsilon" in words
    bounds = {bound.name: bound.epsilon for bound in kept.release.read_statement().bounds}
    assert bounds["day"] == "0.5"  # mean 0.25 and profile 0.1 of the day, 0.15 of its month
    assert float(bounds["total"]) == pytest.approx(33 * 0.35 + 0.15)


def vector_of(house, use, series):
    """The exact vector of February from the files, by group, kind of day and half-hour."""
    build(house, use)
    store, delivery = house.read("london")
    roster = read_roster(house.folder / "roster.csv")
    by_day = aggregate(store, delivery, roster, days=FEBRUARY, series={"months": series})
    month = sum_periods(by_day, {"months": series}, ())[FEBRUARY[-1], "months"]
    return month.exact.ravel()


def test_no_other_use_of_all_days_moves_the_row_further_and_one_as_far(houses, tmp_path_factory):
    """B uses 9 kWh in the night, or in the morning of all days, or something at random; or all its days are missing."""
    keys = {"clamp_kwh": Decimal(9), "half_hour_clamp_kwh": Decimal("0.5"), "missing_kwh": Decimal("4.8")}
    series = Profile.model_validate({"statistic": "profile", "every": "weekday-month", "by": "tariff", **keys})
    at_random = np.random.default_rng(4).integers(0, 700, (len(DAYS), 48))
    uses_of_b = {
        "night": lambda _, slot: 500 if slot < 18 else 0,
        "morning": lambda _, slot: 500 if 18 <= slot < 36 else 0,
        "random": lambda day, slot: int(at_random[DAYS.index(day), slot]),
        "missing": lambda *_: None,
    }
    vectors = {
        name: vector_of(
            houses(tmp_path_factory.mktemp(name)),
            lambda home, day, slot, of_b=of_b: of_b(day, slot) if home == "B" else wh(home, day, slot),
            series,
        )
        for name, of_b in uses_of_b.items()
    }
    moved = {(a, b): int(np.abs(vectors[a] - vectors[b]).sum()) for a in vectors for b in vectors}
    assert max(moved.values()) == moved["night", "morning"] == SENSITIVITY == series.row_sensitivity(FEBRUARY[0])
