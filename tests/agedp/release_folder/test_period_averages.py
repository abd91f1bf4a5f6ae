"""Averages of periods from made-up ledger rows: by hand, only added to, verified; quantiles of exact counts."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from agedp.release_folder.result_tables import closed_units
from agedp_data import mechanisms
from agedp_data.errors import InputError
from agedp_data.series.consistency import sum_interval
from agedp_data.series.distribution import QUANTILES, SHARES
from agedp_data.series.mean import AVERAGES_BY, PERIODS
from agedp_data.series.series import series_in
from agedp_data.series.series_terms import period_of
from tests.agedp.release_folder.derived import (
    COVERAGE,
    check_published,
    days,
    derived_from,
    published_tables,
    row_of,
    skipped,
)
from tests.exact_sums import cells, vector

MEAN = {"statistic": "mean", "clamp_kwh": "50", "share": "1"}
FIRST = date(2013, 1, 1)
KEYS = {"number", "seq", "first"}
MONTH = "averages_by_month.parquet"


def released(day, values=(1_000,), households=(10,), cells=("all",), scale=2_000.0, series="daily_mean", **changed):
    return row_of(day, series, values=values, households=households, cells=cells, scale=scale, **changed)


@pytest.fixture(scope="module")
def contract(contract):
    """A contract of one mean unless a test names its series."""
    return lambda last=None, **keys: contract(last, **({} if keys.keys() - KEYS else {"daily_mean": MEAN}), **keys)


@pytest.fixture
def rows_of(statement):
    return lambda period, rows, *contracts: derived_from(AVERAGES_BY[period], statement, rows, contracts)


@pytest.mark.parametrize(
    ("day", "week"),
    [
        (date(2012, 12, 31), (date(2012, 12, 31), date(2013, 1, 6))),
        (date(2016, 1, 3), (date(2015, 12, 28), date(2016, 1, 3))),  # week 53 of 2015
        (date(2020, 2, 29), (date(2020, 2, 24), date(2020, 3, 1))),
    ],
)
def test_periods_are_those_of_the_calendar(day, week):
    assert period_of(day, "week") == week
    assert period_of(day, "year") == (date(day.year, 1, 1), date(day.year, 12, 31))
    assert period_of(date(2020, 2, 29), "month") == (date(2020, 2, 1), date(2020, 2, 29))
    assert period_of(date(2013, 2, 1), "month")[1] == date(2013, 2, 28)


def test_a_mean_is_energy_by_household_and_day(rows_of, contract):
    """By hand: 1,000 Wh of 10, 30 x 3,000 Wh of 20 households; noises of scale 2,000, and twice of 4,000 Wh."""
    rows = [released(FIRST), *(released(day, (3_000,), (20,)) for day in days(FIRST, 31)[1:])]
    rows[4:6] = [replace(row, scale=4_000.0, published_on="2026-02-02") for row in rows[4:6]]
    (month,) = rows_of("month", rows, contract(date(2013, 1, 31)))
    assert (month["first_day"], month["last_day"]) == (FIRST, date(2013, 1, 31))
    assert (month["series"], month["group_column"], month["group"]) == ("daily_mean", "all", "all")
    assert (month["days_released"], month["days_in_period"], month["is_complete"]) == (31, 31, 1)
    assert (month["fewest_households"], month["most_households"], month["household_days"]) == (10, 20, 610)
    assert month["mean_kwh"] == 91_000 / 610_000
    variance = 29 * mechanisms.standard_deviation(2_000.0) ** 2 + 2 * mechanisms.standard_deviation(4_000.0) ** 2
    assert month["noise_sd_kwh"] == pytest.approx(variance**0.5 / 610_000, rel=1e-12)
    width = sum_interval([2_000.0] * 29 + [4_000.0] * 2, COVERAGE)
    assert (month["low_kwh"], month["high_kwh"]) == ((91_000 - width) / 610_000, (91_000 + width) / 610_000)
    assert (month["version"], month["above_kwh"], month["clamp_kwh"]) == (1, 0.0, 50.0)
    assert month["published_on"] == date(2026, 2, 2)


def test_a_month_with_two_clamps_has_two_rows(rows_of, contract):
    contracts = [contract(), contract(number=2, seq=40, daily_mean={**MEAN, "clamp_kwh": "40"}), contract()]
    contracts[2] = replace(contracts[1], hash="contract 3", seq=80)
    contract_of_day = [contracts[0]] * 12 + [contracts[1]] * 10 + [contracts[2]] * 10
    rows = [
        released(day, contract=registered.hash, seq=registered.seq + 1)
        for day, registered in zip(days(FIRST, 32), contract_of_day, strict=True)
    ]
    months = rows_of("month", rows, *contracts)
    assert [(month["version"], month["clamp_kwh"], month["days_released"]) for month in months] == [
        (1, 50.0, 12),
        (2, 40.0, 19),
    ]
    assert {month["is_complete"] for month in months} == {0}


def test_rows_are_only_added(rows_of, contract):
    """Days 70 to 72 wait for their delivery until day 100 is released; a series ends and is continued later."""
    order = [*days(FIRST, 69), *days(FIRST, 100)[72:], *days(FIRST, 72)[69:], *days(FIRST, 130)[100:]]
    both = {"daily_mean": MEAN, "more": MEAN}
    contracts = [
        contract(**both),
        contract(number=2, seq=1_000, daily_mean=MEAN),
        contract(number=3, seq=2_000, **both),
    ]
    rows = []
    for number, day in enumerate(order):
        in_force = contracts[0] if number < 45 else contracts[1] if number < 50 else contracts[2]
        row = released(day, (number,), contract=in_force.hash, seq=in_force.seq + 2 * number + 1)
        rows += [row] if in_force.hash == "contract 2" else [row, replace(row, series="more", seq=row.seq + 1)]
    for period in PERIODS:
        before: set[tuple[object, ...]] = set()
        for end in range(1, len(rows) + 1, 3):
            known = [terms for terms in contracts if terms.seq < rows[end - 1].seq]
            lines = {tuple(line.values()) for line in rows_of(period, rows[:end], *known)}
            assert before <= lines
            before = lines
        assert len(before) == {"week": 2 * 18, "month": 2 * 4, "year": 0}[period]


def test_a_period_appears_once_its_last_day_is_decided(rows_of, contract):
    rows = [released(day) for day in days(FIRST, 30)]
    assert rows_of("month", rows, contract()) == []
    assert len(rows_of("month", [*rows, skipped(released(date(2013, 1, 31)))], contract())) == 1
    assert rows_of("month", [*rows[:5], *rows[6:], released(date(2013, 1, 31))], contract()) == []
    assert len(rows_of("month", rows, contract(date(2013, 1, 30)))) == 1


LAYERS = {
    "use/1": {**MEAN, "clamp_kwh": "30", "share": "0.7"},
    "use/2": {**MEAN, "clamp_kwh": "50", "above_kwh": "30", "share": "0.3"},
}


@pytest.fixture
def layered(contract):
    """A mean with one clamp until 10 January, then in two layers with the same last clamp; rows by day."""
    contracts = [contract(date(2013, 1, 31), use=MEAN), contract(date(2013, 1, 31), number=2, seq=50, **LAYERS)]
    rows = [released(day, series="use", seq=2 + day.day) for day in days(FIRST, 10)]
    for day in days(FIRST, 31)[10:]:
        later = {"contract": "contract 2", "seq": 50 + 2 * day.day}
        rows += [
            released(day, (700,), series="use/1", **later),
            released(day, (90,), series="use/2", scale=500.0, **later),
        ]
    return contracts, rows


def test_the_sum_of_layers_continues_the_mean(rows_of, layered):
    """By hand: 10 x 1,000 and 21 x (700 + 90) Wh of 10 households; noises of scale 2,000 31 times and 500 21 times."""
    contracts, rows = layered
    months = {month["series"]: month for month in rows_of("month", rows, *contracts)}
    assert list(months) == ["use", "use/1", "use/2"]
    month = months["use"]
    assert month["mean_kwh"] == (10 * 1_000 + 21 * 790) / 310_000
    assert (month["above_kwh"], month["clamp_kwh"], month["version"]) == (0.0, 50.0, 1)
    assert (month["days_released"], month["is_complete"], month["household_days"]) == (31, 1, 310)
    width = sum_interval([2_000.0] * 31 + [500.0] * 21, COVERAGE)
    assert month["high_kwh"] == (10 * 1_000 + 21 * 790 + width) / 310_000
    assert (months["use/2"]["mean_kwh"], months["use/2"]["days_released"]) == (90 / 10_000, 21)


def test_the_sum_waits_for_all_layers_and_lacks_days_without_one(rows_of, layered):
    contracts, rows = layered
    assert [month["series"] for month in rows_of("month", rows[:-1], *contracts)] == ["use/1"]
    rows[-1] = replace(rows[-1], state="skipped", cells=(), values=(), households=(), loss=0)
    use, first, second = rows_of("month", rows, *contracts)
    assert (use["days_released"], first["days_released"], second["days_released"]) == (30, 21, 20)
    assert (use["is_complete"], use["mean_kwh"]) == (0, (10 * 1_000 + 20 * 790) / 300_000)


def test_the_sum_of_layers_is_of_equal_households_and_dated_by_the_latest_layer(rows_of, layered):
    """On the 30th the layers have other numbers of households; the upper layer of the 31st came five days later."""
    contracts, rows = layered
    rows[-3], rows[-1] = replace(rows[-3], households=(9,)), replace(rows[-1], published_on="2026-01-06")
    use, *_ = rows_of("month", rows, *contracts)
    assert (use["days_released"], use["mean_kwh"]) == (30, (10 * 1_000 + 20 * 790) / 300_000)
    assert use["published_on"] == date(2026, 1, 6)


def test_sums_beyond_64_bits_are_exact(rows_of, contract):
    rows = [released(day, (2**62 - 1,), (1,), scale=2.0**50) for day in days(FIRST, 31)]
    (month,) = rows_of("month", rows, contract(date(2013, 1, 31)))
    assert month["mean_kwh"] == 31 * (2**62 - 1) / 31_000


@pytest.fixture
def published(statement, contract):
    """Tables by name, as read from their files, with the rows and contracts that they follow from."""
    rng = np.random.default_rng(9)
    rows = [
        released(day, (int(rng.integers(10**6)),), scale=1_000.0 + number, seq=2 + number)
        for number, day in enumerate(days(FIRST, 90))
    ]
    terms = contract(date(2013, 3, 31))
    return published_tables(statement, rows, [terms]), rows, [terms]


def test_an_interval_may_differ_by_a_watt_hour(statement, published):
    tables, rows, contracts = published
    table = tables[MONTH]
    for excess_wh, is_accepted in ((1, True), (2, False)):
        highs = [high + excess_wh / (1_000 * 310) for high in table["high_kwh"].to_pylist()]
        place = table.schema.get_field_index("high_kwh")
        changed = {**tables, MONTH: table.set_column(place, table.schema.field(place), pa.array(highs))}
        if is_accepted:
            check_published(changed, statement, rows, contracts)
        else:
            with pytest.raises(InputError, match="column high_kwh"):
                check_published(changed, statement, rows, contracts)


def test_a_month_closes_when_its_mean_covers_the_days_after_the_end_of_a_series(contract):
    months = {**MEAN, "every": "month"}
    contracts = [contract(daily_mean=MEAN, months=months), contract(number=2, seq=20, months=months)]
    daily = [released(day) for day in days(FIRST, 15)]
    january = released(date(2013, 1, 31), series="months", contract="contract 2", seq=21)
    assert closed_units(AVERAGES_BY["month"], daily, contracts) == []
    (unit,) = closed_units(AVERAGES_BY["month"], [*daily, january], contracts)
    assert (unit.series, len(unit.rows)) == ("daily_mean", 15)


TERMS = {"statistic": "distribution", "clamp_kwh": "50", "share": "0.5"}
TERMS |= {"bins_kwh": ["0", "2", "5", "9", "14", "20", "50"]}
SERIES = {"uses": TERMS, "below": {**TERMS, "form": "cumulative", "by": "tariff"}}
USES = {"Std": np.linspace(100, 19_900, 199).astype(int), "ToU": np.linspace(0, 30_000, 61).astype(int)}
"""Households' use, Wh."""
USES_OF = {"uses": {"all": np.concatenate([*USES.values()])}, "below": USES}


def counted(name):
    series, by_group = series_in(SERIES[name]), USES_OF[name]
    of_group = {group: (cells(series, group), vector(series, uses), uses.size) for group, uses in by_group.items()}
    names, values, sizes = (
        tuple(each for part in of_group.values() for each in (part[i] if i < 2 else [part[2]] * len(part[0])))
        for i in range(3)
    )
    return row_of(FIRST, name, cells=names, values=values, households=sizes, scale=0.01)


def test_the_household_of_each_share_is_in_its_range(statement, contract):
    rows = [counted("uses"), counted("below"), skipped(row_of("2013-01-02", "below"))]
    lines = derived_from(QUANTILES, statement, rows, [contract(**SERIES)])
    groups = [("below", "Std"), ("below", "ToU"), ("uses", "all")]
    assert [(line["series"], line["group"]) for line in lines[:: len(SHARES)]] == groups
    for line in lines:
        uses = np.sort(USES_OF[line["series"]][line["group"]]) / 1000
        use = uses[math.ceil(round(line["share"] * uses.size, 9)) - 1]
        assert line["low_kwh"] <= use <= line["high_kwh"]
        assert abs(line["value_kwh"] - use) < 0.2 * (line["high_kwh"] - line["low_kwh"]) or line["high_kwh"] == 50
        assert line["households"] == uses.size
        assert line["group_column"] == ("tariff" if line["series"] == "below" else "all")
        assert line["day"] == FIRST


def test_missing_days_are_marked_and_not_estimated(rows_of, contract):
    """A group below `min_households` on some days, a day without delivery, days after the end of the series."""
    rows = [
        released(day, (100, 900), (4, 6), ("A", "B")) if day.day % 2 else released(day, (700,), (6,), ("B",))
        for day in days(FIRST, 20)
    ]
    rows[6] = skipped(rows[6])
    first, second = rows_of("month", rows, contract(date(2013, 1, 20), daily_mean={**MEAN, "by": "tariff"}))
    assert [(group["group"], group["days_released"], group["is_complete"]) for group in (first, second)] == [
        ("A", 9, 0),
        ("B", 19, 0),
    ]
    assert (first["household_days"], first["mean_kwh"]) == (36, 900 / 36_000)
    assert (first["fewest_households"], first["most_households"]) == (4, 4)
    assert second["mean_kwh"] == (9 * 900 + 10 * 700) / (19 * 6_000)
    assert first["noise_sd_kwh"] == pytest.approx(3 * mechanisms.standard_deviation(2_000.0) / 36_000)
