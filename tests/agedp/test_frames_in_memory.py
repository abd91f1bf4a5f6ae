"""States and chains of a table in memory are those of the same table in a store, bit by bit, and need no folder."""

from __future__ import annotations

import re
import tempfile
from dataclasses import astuple, replace
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import agedp
from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period, quantize
from agedp.chains import count_transitions
from agedp.store.daily_totals import days_with_readings
from agedp.workspace import StoredReadings
from agedp_data.errors import ChainError, InputError, PreflightFailed
from agedp_data.parameters import FindingName

ZONES = ["UTC", "Europe/London", "Australia/Sydney", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
FIRST_DAYS = ["2013-01-29", "2013-03-29", "2013-10-25", "2013-04-05", "2012-10-05", "2013-03-08", "2013-11-01"]
"""Near the ends of months, and near the clock changes of each zone."""
EDGES: list[tuple[Any, int]] = [("quantile", 4), ("equal-width", 3), ([120.0, 450.0], 3)]

pytestmark = pytest.mark.filterwarnings("ignore::agedp.InputWarning")


def random_table(rng: np.random.Generator) -> tuple[pd.DataFrame, int]:
    """Households of unequal length with gaps, duplicates, conflicts and impossible energies; rows in any order."""
    minutes = int(rng.choice([30, 30, 30, 60, 15]))
    begin = pd.Timestamp(str(rng.choice(FIRST_DAYS)), tz=str(rng.choice(ZONES)))
    frames = []
    for number in range(int(rng.integers(1, 5))):
        first = begin + pd.Timedelta(days=int(rng.integers(0, 3)))
        times = pd.date_range(first, periods=int(rng.integers(1, 7)) * 1440 // minutes, freq=f"{minutes}min")
        energies = rng.integers(0, int(rng.choice([3, 900])), len(times)).astype(float)
        frame = pd.DataFrame({"household_id": f"{number}", "interval_start": times, "energy_wh": energies})
        frames.append(frame[rng.random(len(frame)) > rng.choice([0, 0.02, 0.3])])
    table = pd.concat(frames, ignore_index=True)

    def rows(share: float) -> np.ndarray:
        return np.flatnonzero(rng.random(len(table)) < share * rng.integers(0, 2))

    table.loc[rows(0.05), "energy_wh"] = np.nan
    table.loc[rows(0.05), "energy_wh"] = -7.0
    table.loc[rows(0.02), "energy_wh"] = 1e9
    table = pd.concat([table, table.loc[rows(0.05)], table.loc[rows(0.05)].assign(energy_wh=33.0)], ignore_index=True)
    if rng.integers(0, 2):
        table = table.sample(frac=1, random_state=int(rng.integers(1000))).reset_index(drop=True)
    return table, minutes


class StreamedTable:
    """What polars, narwhals and DuckDB offer of a table: Arrow's stream of it."""

    def __init__(self, table: pa.Table) -> None:
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def as_kind(table: pd.DataFrame, kind: str) -> Any:
    """The table in another library, or with ids of another type."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    kinds = {
        "pandas": table,
        "arrow": arrow,
        "stream": StreamedTable(arrow),
        "category": table.astype({"household_id": "category"}),
        "integers": table.astype({"household_id": "int64"}),
        "index": table.set_index("interval_start"),
    }
    return kinds[kind]


def stored_period(table: Any, step: Any) -> Period:
    """The readings of a table as a run reads them: written to a file, ingested into a store, read by month."""
    stored = StoredReadings.of(table, accepted=get_args(FindingName))
    stored_periods.append(stored)  # its folder lasts as long as it does
    return Period(
        stored.store, stored.delivery, stored.roster.rows, *days_with_readings(stored.store, stored.delivery), step
    )


stored_periods: list[StoredReadings] = []


def require_same(table: Any, step: Any) -> None:
    """Require equal edges, states, counts, gaps and roster in memory and in a store, or the same refusal by both."""
    refusals = (InputError, PreflightFailed)
    try:
        period = stored_period(table, step)
    except refusals as error:
        with pytest.raises(refusals, match=f"^{re.escape(str(error))}$"):
            agedp.quantize(table, step=step)
        return
    engine = stored_periods[-1].engine
    for kind, number in EDGES:
        expected = quantize(period, edges=kind, n_states=number, engine=engine)
        states = agedp.quantize(table, states=number, edges=kind, step=step)
        assert states.edges.to_numpy().tobytes() == expected.tobytes()
        assert tuple(states.households) == tuple(period.roster.ids)
        assert states.days == (period.first, period.last)
        for phases, steps in ((1, (2,)), (48, (4,))) if step == "half-hour" else ((1, (2,)),):
            counted = estimate(period, expected, n_states=number, engine=engine, n_phases=phases, subsampling=steps)
            transitions = count_transitions(states, n_phases=phases, subsampling=steps)
            for one, other in zip(astuple(transitions)[:3], astuple(counted)[:3], strict=True):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(transitions.subsampled[steps[0]], counted.subsampled[steps[0]])
        in_store = replace(states, period=period)
        pd.testing.assert_frame_equal(states.frame, in_store.frame)
        pd.testing.assert_series_equal(states.readings_without_state, in_store.readings_without_state)
    roster = states.period.roster
    assert (roster.first.tolist(), roster.last.tolist()) == (period.roster.first.tolist(), period.roster.last.tolist())


KINDS = ["pandas", "arrow", "stream", "category", "integers", "index", "read"]


def check_seed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, minutes = random_table(rng)
    kind = KINDS[seed % len(KINDS)]
    if kind == "read":
        try:
            frame = agedp.read(table, interval_minutes=minutes)
        except PreflightFailed:
            return
    else:
        table.attrs |= {"interval_minutes": minutes, "negative": str(rng.choice(["net", "reject"]))}
        frame = as_kind(table, kind)
    require_same(frame, ["half-hour", "day"][seed // len(KINDS) % 2])


@pytest.mark.parametrize("seed", range(7))
def test_a_table_in_memory_is_that_of_the_store(seed):
    check_seed(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(7, 400))
def test_many_tables_in_memory_are_those_of_the_store(seed):
    check_seed(seed)


@pytest.fixture
def two_months() -> pd.DataFrame:
    times = pd.date_range("2026-01-05", periods=40 * 48, freq="30min", tz="UTC")
    energies = np.random.default_rng(3).integers(0, 900, 2 * len(times))
    return pd.DataFrame({"household_id": np.repeat(["A", "B"], len(times)), "interval_start": [*times] * 2,
                         "energy_wh": energies})  # fmt: skip


def test_states_of_a_table_in_memory_need_no_folder(two_months, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a folder is made")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    chains = agedp.estimate(agedp.quantize(two_months, states=4))
    assert chains.readings.tolist() == [40 * 48, 40 * 48]
    assert chains.counts.sum(axis=(1, 2)).tolist() == [40 * 48 - 1, 40 * 48 - 1]


def test_a_household_with_many_readings_is_counted_in_full():
    """Five years are more transitions between the same two states than 16 bits hold."""
    times = pd.date_range("2020-01-01", periods=1826 * 48, freq="30min", tz="UTC")
    table = pd.DataFrame({"household_id": "A", "interval_start": times, "energy_wh": 100})
    states = agedp.quantize(table, states=2, edges=[200])
    assert agedp.estimate(states).counts.tolist() == [[[1826 * 48 - 1, 0], [0, 0]]]
    by_phase = agedp.estimate(states, chain="cyclic").counts[0, :, 0, 0]
    assert by_phase.tolist() == [1826] * 47 + [1825]


def test_findings_are_of_the_chosen_households_and_days(two_months):
    """A has every second half-hour on 10 days; the days of B, and A's later ones, are complete."""
    start, household = two_months["interval_start"], two_months["household_id"]
    early = start < pd.Timestamp("2026-01-15", tz="UTC")
    table = two_months[~((household == "A") & early & (start.dt.minute == 30))]
    days = ("2026-01-05", "2026-01-14")
    assert [finding.name for finding in agedp.findings(table, households=["B"])] == []
    assert [finding.name for finding in agedp.findings(table, days=("2026-01-15", "2026-02-13"))] == []
    [found, *_] = agedp.findings(table, households=["A"], days=days)
    assert (found.name, found.number) == ("interval", 10)


def test_parts_are_some_households_each(two_months, monkeypatch):
    states = agedp.quantize(two_months, states=4)
    monkeypatch.setattr("agedp.calibration.quantize._PART_READINGS", 100)
    again = agedp.quantize(two_months, states=4)
    assert again.edges.equals(states.edges)
    assert len(list(again.period.parts("all"))) == 2
    assert (agedp.estimate(again).counts == agedp.estimate(states).counts).all()


def test_a_month_without_a_usable_day_has_no_states(two_months):
    """In January two half-hours of each day are left, in February all: the chain of days has the latter alone."""
    start = two_months["interval_start"]
    table = two_months[(start.dt.month == 2) | (start.dt.hour == 3)]
    states = agedp.quantize(table, states=2, edges=[10_000], step="day")
    assert states.frame["interval_start"].dt.month.unique().tolist() == [2]
    assert quantize(stored_period(table, "day"), edges="quantile", n_states=2, engine=stored_periods[-1].engine).shape


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"step": "hour"}, r'step = "hour": must be one of "half-hour", "day"'),
        ({"edges": "quantiles"}, r'edges = "quantiles": must be one of "quantile", "equal-width"'),
        ({"states": 1}, r"states = 1: must be a whole number of at least 2"),
        ({"states": 3.5}, r"states = 3\.5: must be a whole number"),
        ({"chain": "cyclical"}, r'chain = "cyclical": must be one of "homogeneous", "cyclic"'),
    ],
)
def test_a_word_that_no_parameter_knows_is_refused(two_months, words, line):
    """They were taken for another word, and named as what they were not."""
    states = {name: word for name, word in words.items() if name != "chain"}
    chain = {name: word for name, word in words.items() if name == "chain"}
    with pytest.raises(ChainError, match=line):
        agedp.estimate(agedp.quantize(two_months, **{"states": 4, **states}), **chain)
