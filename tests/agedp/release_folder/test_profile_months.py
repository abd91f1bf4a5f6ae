"""Mean profiles of weekdays and weekends from made-up ledger rows: by pandas, by hand, only added to, verified."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from agedp.release_folder.result_tables import contract_terms, released_table
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns
from agedp_data.series.consistency import sum_interval
from agedp_data.series.profile import PROFILE_BY_MONTH, PROFILE_RELEASES, PROFILES, Profile, day_slots
from agedp_data.series.result_table import ContractTerms, Noise
from tests.agedp.release_folder.derived import COVERAGE, days, derived_from, row_of

PROFILE = {"statistic": "profile", "clamp_kwh": "50", "half_hour_clamp_kwh": "4", "share": "1"}
BY = {**PROFILE, "by": "area"}
ALL_DAY = tuple(f"{slot // 2:02d}:{slot % 2 * 3}0" for slot in range(48))
SYDNEY = Ausgrid()
SYDNEY_BY_HOUR = layout_of(
    "long", NamedColumns("id", "at", "iso", "start", "UTC", "Australia/Sydney", "wh", "Wh", ("",)), 60
)
KEYS = ["first_day", "series", "day_kind", "group", "start_minute"]


def released(day, values=None, households=None, cells=ALL_DAY, scale=2_000.0, **changed):
    values = tuple(range(1_000, 1_000 + len(cells)) if values is None else values)
    counts = (10,) * len(cells) if households is None else households
    return row_of(day, "profile", values=values, households=counts, cells=cells, scale=scale, **changed)


@pytest.fixture(scope="module")
def contract(contract):
    """A contract of one profile unless a test names another."""
    return lambda last=None, **keys: contract(last, **{"profile": PROFILE, **keys})


@pytest.fixture
def lines_of(statement):
    return lambda rows, *contracts: derived_from(PROFILE_BY_MONTH, statement, rows, contracts)


def sydney_rows(rng, first, number):
    """Days of groups that come and go, with the half-hours of Sydney's clock and two scales."""
    rows = []
    for day in days(first, number):
        groups = ["North End", *(["South"] if day.day < 25 else []), *(["West"] if day.day > 9 else [])]
        slots = day_slots(Ausgrid(), day)
        cells = tuple(f"{group} {ALL_DAY[slot]}" for group in groups for slot in slots)
        counts = tuple(np.repeat(rng.integers(5, 30, len(groups)), len(slots)).tolist())
        values = tuple(rng.integers(-(10**5), 10**7, len(cells)).tolist())
        at = str(day + timedelta(days=90))
        rows.append(released(day, values, counts, cells, scale=1_000.0 * (1 + day.day % 2), published_on=at))
    return rows


@pytest.mark.parametrize(("first", "number"), [(date(2012, 9, 1), 61), (date(2013, 4, 1), 30)])
def test_a_month_is_what_pandas_makes_of_the_daily_profile(lines_of, contract, first, number):
    """October 2012 has a day without 2:00 and 2:30, April 2013 one that has them twice, both Sundays."""
    rows = sydney_rows(np.random.default_rng(5), first, number)
    terms = contract(days(first, number)[-1], first=first, dataset="ausgrid", profile=BY)
    daily = released_table(PROFILES, rows, contract_terms([terms]), Noise(COVERAGE)).to_pandas()
    daily["scale"] = 1_000.0 * (1 + pd.to_datetime(daily["day"]).dt.day % 2)
    daily["first_day"] = pd.to_datetime(daily["day"]).dt.to_period("M").dt.start_time.dt.date
    weekend = pd.to_datetime(daily["day"]).dt.day_name().isin(["Saturday", "Sunday"])
    daily["day_kind"] = np.where(weekend, "weekend", "weekday")
    daily["series"] = "profile"
    lines = {tuple(line[key] for key in KEYS): line for line in lines_of(rows, terms)}
    by_cell = dict(list(daily.groupby(KEYS)))
    days_with = daily.groupby(["first_day", "day_kind", "start_minute"])["day"].nunique()  # all days are released
    assert set(by_cell) == set(lines)
    for key, of_cell in by_cell.items():
        line, passes = lines[key], of_cell["households"] * of_cell["minutes"] / 30
        mean, sd = of_cell["noisy_sum_wh"].sum() / passes.sum(), 0.0
        sd = np.sqrt(((of_cell["noise_sd_kwh"] * of_cell["households"]) ** 2).sum()) / passes.sum()
        assert line["mean_kwh"] * 1000 == pytest.approx(mean, rel=1e-12)
        assert line["noise_sd_kwh"] == pytest.approx(sd, rel=1e-12)
        assert line["household_minutes"] == 30 * passes.sum()
        assert line["days_released"] == len(of_cell)
        assert line["days_in_period"] == days_with[key[0], key[2], key[4]]
        assert line["is_complete"] == (line["days_released"] == line["days_in_period"])
        assert (line["fewest_households"], line["most_households"]) == (
            of_cell["households"].min(),
            of_cell["households"].max(),
        )
        assert line["published_on"] == of_cell["published_on"].max()
        width = sum_interval(of_cell["scale"].tolist(), COVERAGE) / 1000 / passes.sum()
        assert line["high_kwh"] - line["mean_kwh"] == pytest.approx(width, rel=1e-9)
        assert line["mean_kwh"] - line["low_kwh"] == pytest.approx(width, rel=1e-9)


def drawn_lines(last, cells, values, households, layout=SYDNEY):
    """The lines of a row that covers a whole month."""
    keys = {"clamp_kwh": Decimal(50), "half_hour_clamp_kwh": Decimal(4), "every": "weekday-month"}
    profile = Profile.model_validate({"statistic": "profile", **keys})
    row = released(last, values, households, cells, sensitivity=profile.row_sensitivity(last))
    of_contract = {"contract 1": ContractTerms({"profile": profile}, layout, 3)}
    return released_table(PROFILE_RELEASES, [row], of_contract, Noise(COVERAGE)).to_pylist()


@pytest.mark.parametrize(
    ("last", "days", "times"), [(date(2012, 10, 31), 8, 7), (date(2013, 4, 30), 8, 9), (date(2013, 5, 31), 8, 8)]
)
def test_a_clock_change_leaves_the_mean_of_a_half_hour(last, days, times):
    """Ten households use 300 Wh each half-hour: Sydney skips 2:00 on a Sunday of October, and repeats it in April."""
    cells = ("weekend 02:00", "weekend 12:00")
    lines = drawn_lines(last, cells, (5 * 10 * times * 300, 5 * 10 * days * 300), (10 * days,) * 2)
    assert [line["mean_kwh"] for line in lines] == pytest.approx([0.3, 0.3], rel=1e-12)
    assert [line["minutes_in_period"] for line in lines] == [30 * times, 30 * days]


@pytest.mark.parametrize(("last", "days", "times"), [(date(2012, 10, 31), 8, 7), (date(2013, 5, 31), 8, 8)])
def test_the_mean_of_an_hour_is_of_the_hour(last, days, times):
    """Ten households use 600 Wh each hour; Sydney skips the hour from 2:00 on a Sunday of October."""
    cells = ("weekend 02:00", "weekend 12:00")
    values = (5 * 10 * times * 600, 5 * 10 * days * 600)
    lines = drawn_lines(last, cells, values, (10 * days,) * 2, SYDNEY_BY_HOUR)
    assert [line["mean_kwh"] for line in lines] == pytest.approx([0.6, 0.6], rel=1e-12)
    assert [line["minutes_in_period"] for line in lines] == [60 * times, 60 * days]
    assert {line["minutes"] for line in lines} == {60}


def test_a_cell_of_a_day_has_no_line():
    with pytest.raises(ValueError, match="not one of the half-hours of this series"):
        drawn_lines(date(2013, 5, 31), ("18:30",), (1,), (2,))


FIRST = date(2013, 1, 1)


def columns_of(lines, *names):
    return {tuple(line[name] for name in names) for line in lines}


def test_a_month_with_two_clamps_has_two_parts(lines_of, contract):
    contracts = [contract(), contract(number=2, seq=40, profile={**PROFILE, "half_hour_clamp_kwh": "3"})]
    in_force = [contracts[0]] * 12 + [contracts[1]] * 20
    rows = [
        released(day, contract=terms.hash, seq=terms.seq + 1)
        for day, terms in zip(days(FIRST, 32), in_force, strict=True)
    ]
    lines = lines_of(rows, *contracts)
    assert columns_of(lines, "version", "half_hour_clamp_kwh", "day_kind", "days_released") == {
        (1, 4.0, "weekday", 9),
        (1, 4.0, "weekend", 3),
        (2, 3.0, "weekday", 14),
        (2, 3.0, "weekend", 5),
    }
