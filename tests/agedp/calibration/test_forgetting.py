"""What is measured beside a model: household by household as plain loops find it, the same bytes however it is run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.calibration.household_memory import (
    MemoryRequest,
    PeriodReadings,
    _daily_totals_wh,
    parts_of_calendar,
    read_period,
)
from agedp.calibration.model_check import SAMPLE, GoodnessOfFit, MemoryCurves, measure_memory, report_name
from agedp.calibration.quantize import Period
from agedp.compute.engine_settings import Engine
from agedp.reports.model_check_report import write_memory_report
from agedp.stages.ingest import read_readings
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.synthetic import write_ausgrid, write_london

FIRST, LAST = date(2013, 1, 3), date(2013, 4, 12)
CLAMP_WH, MAX_MISSING = 17_000, 3
AGES = (1, 7, 20)


def asked(folder, **given):
    settings = {
        "source": "estimated", "assume": "markov", "file": str(folder.parent / "homes-a"),
        "period": (FIRST, LAST), "step": "half-hour", "states": 3, "edges": "quantile", "chain": "homogeneous",
        "min_visits": 5, "confidence": "plug-in", "ages_days": AGES, "publish": "envelope",
    }  # fmt: skip
    return MemoryRequest(EstimatedModel(**(settings | given)), CLAMP_WH, MAX_MISSING, 0.5)


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    house = houses(tmp_path_factory.mktemp("forgetting"))
    london = write_london(house.folder / "input", households=6, first_day=date(2013, 1, 1), days=106, seed=9)
    return house, london


def found_of(made, folder, *, store="store", block_bytes=2**24, engine=None, **given):
    house, london = made
    roster = house.roster([("ABSENT", FIRST, None), *((home, FIRST, None) for home in london.household_ids[:-1])])
    where, delivery = house.read(store=store, block_bytes=block_bytes)
    period = Period(where, delivery, roster, FIRST, LAST)
    return measured(period, asked(folder, **given), folder=folder, engine=engine or Engine())


def measured(*given, **more):
    curves = measure_memory(*given, **more)
    write_memory_report(curves)
    return curves


def rows_of(folder, figure):
    table = pq.read_table(folder / "forgetting" / "homes-a.parquet").to_pylist()
    return {(row["household_id"], row["days_apart"]): row for row in table if row["figure"] == figure}


def plain_days(house, home):
    """Clamped totals by day of a household, the days that lack more than three readings left out."""
    frame = read_readings([house.folder / "input" / "*.csv"], dataset="london")
    own = frame[(frame["household_id"] == home)]
    sums, counts = Counter(), Counter()
    for day, wh in zip(own["day"], own["energy_wh"], strict=True):
        sums[day.date()] += int(wh)
        counts[day.date()] += 1
    return {
        day: min(wh, CLAMP_WH) for day, wh in sums.items() if counts[day] >= 48 - MAX_MISSING and FIRST <= day <= LAST
    }


def plain_variation(state, lag):
    """Largest total variation between rows of the kernel to the state so many days before."""
    rows: dict[int, Counter[int]] = {}
    for day, now in state.items():
        if (then := state.get(day - timedelta(days=lag))) is not None:
            rows.setdefault(now, Counter())[then] += 1
    shares = [{x: n / sum(row.values()) for x, n in row.items()} for row in rows.values()]
    return max(sum(abs(a.get(x, 0) - b.get(x, 0)) for x in {*a, *b}) / 2 for a in shares for b in shares)


def quarters(days):
    """States by quartile cuts: the smallest value below which a share of i/4 lies."""
    values = sorted(days.values())
    cuts = [min(v for v in values if sum(w < v for w in values) >= i * len(values) / 4) for i in (1, 2, 3)]
    return {day: sum(value >= cut for cut in cuts) for day, value in days.items()}


def test_the_chain_of_day_totals_is_counted_as_by_hand(made, tmp_path):
    found = found_of(made, tmp_path)
    rows = rows_of(tmp_path, "chain of day totals")
    house, london = made
    assert {home for home, _ in rows} == set(london.household_ids[:-1])
    compared = clamped = 0
    for home in london.household_ids[:-1]:
        days = plain_days(house, home)
        if max(Counter(days.values()).values()) >= len(days) / 4:  # a value so frequent moves a cut
            continue
        compared += 1
        clamped += CLAMP_WH in days.values()
        for age in AGES:
            assert rows[home, age]["direct"] == pytest.approx(plain_variation(quarters(days), age), abs=1e-12)
            assert rows[home, age]["checked"]
        assert rows[home, 1]["powers"] == pytest.approx(rows[home, 1]["direct"], abs=1e-12)
    assert compared >= 3
    assert clamped
    direct = [rows[home, 7]["direct"] for home in london.household_ids[:-1]]
    assert found.median("chain of day totals", "direct")[1] == pytest.approx(np.median(direct))


def test_the_chain_of_half_hours_is_the_models(made, tmp_path):
    found_of(made, tmp_path, edges=[Decimal("0.1"), Decimal("0.3")])
    house, london = made
    rows = rows_of(tmp_path, "chain of half-hours")
    frame = read_readings([house.folder / "input" / "*.csv"], dataset="london")
    home = london.household_ids[0]
    own = frame[frame["household_id"] == home]
    state = {}
    for day, slot, wh in zip(own["day"], own["slot"], own["energy_wh"], strict=True):
        if FIRST <= day.date() <= LAST:
            state[48 * (day.date() - FIRST).days + slot] = (wh >= 100) + (wh >= 300)
    counts = np.zeros((3, 3))
    for at, now in state.items():
        if at - 7 * 48 in state:
            counts[now, state[at - 7 * 48]] += 1
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = max(np.abs(a - b).sum() / 2 for a in shares for b in shares)
    assert min(Counter(state.values()).values()) >= 5
    assert rows[home, 7]["direct"] == pytest.approx(expected, abs=1e-12)


def test_the_same_bytes_whatever_the_blocks_workers_and_scheduler(made, tmp_path):
    ways = [
        ({}, Engine()),
        ({"store": "other", "block_bytes": 6_000}, Engine(workers=1, scheduler="synchronous")),
        ({"store": "other", "block_bytes": 6_000}, Engine(workers=3)),
    ]
    files = []
    for number, (reading, engine) in enumerate(ways):
        folder = tmp_path / str(number)
        found_of(made, folder, engine=engine, **reading)
        files.append({path.name: path.read_bytes() for path in (folder / "forgetting").iterdir()})
    assert files[0].keys() == {"homes-a.parquet", "homes-a.html"}
    assert files[0] == files[1] == files[2]


def test_two_models_of_one_name_leave_two_reports_and_each_is_found_again(made, tmp_path):
    pages = [
        found_of(made, tmp_path / "confidential", file=str(tmp_path / place / "homes-a")).page
        for place in (".", "winter", "summer")
    ]
    assert len({*pages}) == 3
    assert all(page.is_file() for page in pages)
    assert pages[0].name == "homes-a.html"
    assert report_name(tmp_path / "summer" / "homes-a", tmp_path / "confidential") == pages[2].stem


@pytest.mark.long
def test_the_same_bytes_from_processes(made, tmp_path):
    for name in ("threads", "processes"):
        found_of(made, tmp_path / name, engine=Engine(scheduler=name))
    one, other = (
        (tmp_path / name / "forgetting" / "homes-a.parquet").read_bytes() for name in ("threads", "processes")
    )
    assert one == other


def test_a_household_without_readings_is_not_there_and_a_day_or_two_say_nothing(made, tmp_path):
    house, london = made
    roster = house.roster([("ABSENT", FIRST, None), (london.household_ids[0], FIRST, None)])
    where, delivery = house.read()
    for last in (FIRST, FIRST + timedelta(days=2)):
        period = Period(where, delivery, roster, FIRST, last)
        found = measured(period, asked(tmp_path), folder=tmp_path, engine=Engine())
        table = pq.read_table(tmp_path / "forgetting" / "homes-a.parquet")
        assert last > FIRST or not any(row["direct"] >= 0 for row in table.to_pylist())
        assert set(table["household_id"].to_pylist()) <= {london.household_ids[0]}
        assert not any(check.rejected for check in found.checks.values())
        assert "nothing to compare" in found.page.read_text()
    nobody = house.roster([("ABSENT", FIRST, None)])
    found = measured(Period(where, delivery, nobody, FIRST, LAST), asked(tmp_path), folder=tmp_path, engine=Engine())
    assert found.checks == {}
    assert "not tested" in found.page.read_text()


def test_a_half_hour_that_the_clock_passes_twice_counts_in_its_day_alone(house):
    day = date(2013, 4, 7)  # Sydney's clock goes back: 02:00 to 03:00 comes twice
    made = write_ausgrid(house.folder / "input", households=3, first_day=day - timedelta(days=1), days=3, seed=1)
    roster = house.roster([(home, day, None) for home in made.household_ids])
    where, delivery = house.read("ausgrid")
    held = read_period(
        Period(where, delivery, roster, day - timedelta(days=1), day + timedelta(days=1)), engine=Engine()
    )
    twice = where.layout.repeated_slots(day)
    assert len(twice) == 2
    missing = np.iinfo(np.uint16).max
    there = held.number[:, 1] == 48
    assert there.any()
    assert (held.readings[:, 1, list(twice)] == missing).all()
    once = np.where(held.readings[there, 1] == missing, 0, held.readings[there, 1].astype(int)).sum(axis=1)
    assert (held.total[there, 1] > once).all()
    np.testing.assert_array_equal(
        once + 0, held.readings[there, 1][:, [s for s in range(48) if s not in twice]].sum(axis=1)
    )


def test_only_a_sample_is_checked_half_hour_by_half_hour_evenly_over_the_roster(made, tmp_path, monkeypatch):
    monkeypatch.setattr("agedp.calibration.model_check.SAMPLE", 3)
    found = found_of(made, tmp_path)
    _, london = made
    homes = sorted(london.household_ids[:-1])
    assert {home for home, _ in rows_of(tmp_path, "chain of half-hours")} == {homes[0], homes[2], homes[4]}
    assert {home for home, _ in rows_of(tmp_path, "chain of day totals")} == set(homes)
    given = rows_of(tmp_path, "day, given the calendar")
    with_interval = {home for (home, _), row in given.items() if not math.isnan(row["low"])}
    assert with_interval <= {homes[0], homes[2], homes[4]}
    assert found.checks["chain of half-hours"].checked == 3
    assert SAMPLE >= 100


def test_hundreds_of_states_are_taken_together_before_they_are_compared(made, tmp_path, monkeypatch):
    # 48 states by twos are the 24 that are compared; all 48 would lie further apart.
    monkeypatch.setattr("agedp.calibration.household_memory._MAX_STATES", 48)
    found_of(made, tmp_path, states=48, min_visits=1)
    fine = rows_of(tmp_path, "chain of half-hours")
    monkeypatch.undo()
    found_of(made, tmp_path, states=48, min_visits=1)
    coarse = rows_of(tmp_path, "chain of half-hours")
    assert fine.keys() == coarse.keys()
    assert all(coarse[key]["direct"] <= fine[key]["direct"] + 1e-12 for key in fine)
    assert np.mean([fine[key]["direct"] - coarse[key]["direct"] for key in fine]) > 0.02


def test_a_chain_with_a_longer_memory_is_not_judged_by_one_without(made, tmp_path):
    found = found_of(made, tmp_path, memory="pair", step="day", states=2)
    assert list(found.checks) == ["chain of day totals"]
    assert found.median("chain of day totals", "direct")[0] > 0


@pytest.mark.parametrize(
    ("checked", "rejected", "contradicted"),
    [
        (5566, 313, False),
        (5566, 700, True),
        (40, 10, False),
        (40, 12, True),
        (6, 6, True),
        (2, 2, False),
        (0, 0, False),
    ],
)
def test_the_verdict_asks_for_clearly_more_than_twice_what_chance_explains(checked, rejected, contradicted):
    # Binomial(40, .1): 11 or more with probability .0015, 12 or more with .0004; Binomial(2, .1): both with .01.
    assert GoodnessOfFit(checked, rejected).contradicted is contradicted


def test_weekends_and_halves_of_the_year_are_what_the_calendar_says():
    for offset in range(0, 800, 13):
        day = date(2012, 1, 1) + timedelta(days=offset)
        number = (day - date(1970, 1, 1)).days
        expected = (day.weekday() >= 5) + 2 * (4 <= day.month <= 9)
        assert parts_of_calendar(np.array([number]))[0] == expected


def test_medians_are_over_those_that_have_a_value(tmp_path):
    values = np.array([[1.0, np.nan, 3.0], [2.0, np.nan, np.nan], [6.0, np.nan, 5.0]])
    found = MemoryCurves((1, 2, 3), 0.5, {"x": {"direct": values}}, tmp_path)
    np.testing.assert_array_equal(found.median("x", "direct"), [2.0, np.nan, 4.0])
    assert replace(found, loss=1.0).series_by_name is found.series_by_name


def test_a_day_counts_as_a_release_counts_it_clamped_and_missing_where_too_few_readings_are_there(tmp_path):
    days = np.arange(15706, 15711)
    total = np.array([[5_000, 20_000, 17_000, 9_000, 9_000]])
    number = np.array([[48, 48, 45, 44, 43]])
    expected = np.array([48, 48, 48, 48, 46])  # the last is the day on which the clock goes forward
    held = PeriodReadings(np.zeros((1, 5, 48), np.uint16), total, number, days, expected)
    assert _daily_totals_wh(np.array([0]), held, asked(tmp_path)).tolist() == [[5_000, CLAMP_WH, 17_000, -1, 9_000]]
    empty = PeriodReadings(held.readings, total, number * 0, days, expected)
    lenient = replace(asked(tmp_path), max_missing=48)
    assert (_daily_totals_wh(np.array([0]), empty, lenient) == -1).all()
