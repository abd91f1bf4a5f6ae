"""The check of the Markov model: household by household as plain loops find it, the same bytes however it is run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.calibration import model_check
from agedp.calibration.model_check import (
    GoodnessOfFit,
    MemoryRequest,
    PeriodReadings,
    daily_totals_wh,
    measure_memory,
)
from agedp.calibration.quantize import Period
from agedp.compute.engine_settings import Engine
from agedp.reports.model_check_report import write_memory_report
from agedp.stages.ingest import read_readings
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.synthetic import write_london

FIRST, LAST = date(2013, 1, 3), date(2013, 4, 12)
CLAMP_WH, MAX_MISSING = 17_000, 3
AGES = (1, 7, 20)


def request(folder, **given):
    settings = {
        "source": "estimated", "assume": "markov", "file": str(folder.parent / "homes-a"),
        "period": (FIRST, LAST), "step": "half-hour", "states": 3, "edges": "quantile", "chain": "homogeneous",
        "min_visits": 5, "confidence": "plug-in", "ages_days": AGES, "publish": "envelope",
    }  # fmt: skip
    return MemoryRequest(EstimatedModel(**(settings | given)), CLAMP_WH, MAX_MISSING)


@pytest.fixture(scope="module")
def delivered(houses, tmp_path_factory):
    house = houses(tmp_path_factory.mktemp("memory"))
    london = write_london(house.folder / "input", households=6, first_day=date(2013, 1, 1), days=106, seed=9)
    return house, london.household_ids


def measured(delivered, folder, *, households=None, last=LAST, store="store", block_bytes=2**24, engine=None, **given):
    """Write the report of all households but the last, and return its curves."""
    house, ids = delivered
    roster = house.roster([(household, FIRST, None) for household in households or ("ABSENT", *ids[:-1])])
    stored, delivery = house.read(store=store, block_bytes=block_bytes)
    period = Period(stored, delivery, roster.rows, FIRST, last)
    curves = measure_memory(period, request(folder, **given), folder=folder, engine=engine or Engine())
    write_memory_report(curves)
    return curves


@pytest.fixture(scope="module")
def plain(delivered, tmp_path_factory):
    """Return curves and folder of the plain request."""
    folder = tmp_path_factory.mktemp("plain")
    return measured(delivered, folder, edges=[Decimal("0.1"), Decimal("0.3")]), folder


def rows_of(folder, figure):
    table = pq.read_table(folder / "forgetting" / "homes-a.parquet").to_pylist()
    return {(row["household_id"], row["days_apart"]): row for row in table if row["figure"] == figure}


def readings_of(delivered, household):
    house, _ = delivered
    frame = read_readings([house.folder / "input" / "*.csv"], dataset="london")
    own = frame[frame["household_id"] == household]
    rows = zip(own["day"], own["slot"], own["energy_wh"], strict=True)
    return [(day.date(), slot, int(wh)) for day, slot, wh in rows if FIRST <= day.date() <= LAST]


def daily_totals(delivered, household):
    """Return clamped totals by day of a household, without days that lack more than three readings."""
    sums, counts = Counter(), Counter()
    for day, _, wh in readings_of(delivered, household):
        sums[day] += wh
        counts[day] += 1
    return {day: min(wh, CLAMP_WH) for day, wh in sums.items() if counts[day] >= 48 - MAX_MISSING}


def total_variation(state, lag):
    """Return the largest total variation between rows of the kernel to the state at a time so much before."""
    rows: dict[int, Counter[int]] = {}
    for time, now in state.items():
        if (then := state.get(time - lag)) is not None:
            rows.setdefault(now, Counter())[then] += 1
    shares = [{x: n / row.total() for x, n in row.items()} for row in rows.values()]
    return max(sum(abs(a.get(x, 0) - b.get(x, 0)) for x in {*a, *b}) / 2 for a in shares for b in shares)


def quarters(days):
    """Return states by quartile cuts: the smallest value below which a share of i/4 lies."""
    values = sorted(days.values())
    cuts = [min(v for v in values if sum(w < v for w in values) >= i * len(values) / 4) for i in (1, 2, 3)]
    return {day: sum(value >= cut for cut in cuts) for day, value in days.items()}


def test_a_large_roster_is_checked_on_a_sample_by_its_ids(delivered, tmp_path, monkeypatch):
    chosen = sorted(sorted(delivered[1][:-1], key=lambda household: sha256(household.encode()).hexdigest())[:3])
    expected = measured(delivered, tmp_path / "alone", households=chosen, last=date(2013, 2, 10))
    monkeypatch.setattr(model_check, "MAX_CHECKED", 3)
    curves = measured(delivered, tmp_path / "sampled", last=date(2013, 2, 10))
    rows = [pq.read_table(tmp_path / name / "forgetting/homes-a.parquet") for name in ("alone", "sampled")]
    assert str(rows[0].to_pylist()) == str(rows[1].to_pylist())  # as text: NaN differs from NaN
    assert {row["household_id"] for row in rows[1].to_pylist()} == set(chosen)
    np.testing.assert_array_equal(curves.regimes.direct, expected.regimes.direct)
    assert curves.sample.sentence.startswith("3 of 5 households with readings were checked")
    assert curves.sample.sentence in curves.page.read_text()
    assert expected.sample.sentence == "All 3 households with readings were checked."


def test_the_chain_of_day_totals_is_counted_as_by_hand(delivered, plain):
    curves, folder = plain
    rows = rows_of(folder, "chain of day totals")
    households = delivered[1][:-1]
    assert {household for household, _ in rows} == set(households)
    compared = clamped = 0
    for household in households:
        days = daily_totals(delivered, household)
        if max(Counter(days.values()).values()) >= len(days) / 4:  # a value so frequent moves a cut
            continue
        compared += 1
        clamped += CLAMP_WH in days.values()
        for age in AGES:
            expected = total_variation(quarters(days), timedelta(days=age))
            assert rows[household, age]["direct"] == pytest.approx(expected, abs=1e-12)
            assert rows[household, age]["checked"]
        assert rows[household, 1]["powers"] == pytest.approx(rows[household, 1]["direct"], abs=1e-12)
    assert compared >= 3
    assert clamped
    median = np.median([rows[household, 7]["direct"] for household in households])
    assert curves.median("chain of day totals", "direct")[1] == pytest.approx(median)


def test_chunks_and_schedulers_change_no_byte(delivered, plain, tmp_path):
    engine = Engine(workers=1, scheduler="synchronous")
    measured(
        delivered, tmp_path, store="other", block_bytes=20_000, engine=engine, edges=[Decimal("0.1"), Decimal("0.3")]
    )
    files = [
        {path.name: path.read_bytes() for path in (folder / "forgetting").iterdir()} for folder in (plain[1], tmp_path)
    ]
    assert files[0] == files[1]
    assert files[0].keys() == {"homes-a.parquet", "homes-a.html"}


@pytest.mark.parametrize("days", [0, 2])
def test_a_day_or_two_and_a_household_without_readings_are_not_tested(delivered, tmp_path, days):
    households = ("ABSENT", delivered[1][0])
    curves = measured(delivered, tmp_path, households=households, last=FIRST + timedelta(days=days))
    table = pq.read_table(tmp_path / "forgetting" / "homes-a.parquet").to_pylist()
    assert days or not any(row["direct"] >= 0 for row in table)
    assert {row["household_id"] for row in table} <= {delivered[1][0]}
    assert not any(check.rejected for check in curves.checks.values())
    assert ": no value." in curves.page.read_text()
    nobody = measured(delivered, tmp_path, households=("ABSENT",))
    assert nobody.checks == {}
    assert "not tested" in nobody.page.read_text()


@pytest.mark.parametrize(
    ("checked", "rejected", "is_significant"),
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
def test_a_rejection_needs_more_than_twice_what_chance_explains(checked, rejected, is_significant):
    # Binomial(40, .1): 11 or more with probability .0015, 12 or more with .0004; Binomial(2, .1): both with .01.
    assert GoodnessOfFit(checked, rejected).is_significant is is_significant


def test_a_day_is_clamped_and_missing_as_in_a_release(tmp_path):
    total = np.array([[5_000, 20_000, 17_000, 9_000, 9_000]])
    number = np.array([[48, 48, 45, 44, 43]])
    possible = np.array([48, 48, 48, 48, 46])  # the last is the day on which the clock goes forward
    readings = np.zeros((1, 5, 48), np.uint16)
    for present, most, expected in (
        (number, MAX_MISSING, [5_000, CLAMP_WH, 17_000, -1, 9_000]),
        (number * 0, 48, [-1] * 5),
    ):
        period = PeriodReadings(readings, total, present, np.arange(15706, 15711), possible)
        totals = daily_totals_wh(period, replace(request(tmp_path), max_missing=most))
        assert totals.tolist() == [expected]
