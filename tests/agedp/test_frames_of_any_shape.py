"""Frames of any columns and types under any [input.columns]: every row is accounted for, or one line says why not."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agedp
from agedp_data.errors import AgedpError

KEYS = {
    "household": "meter", "time": "at", "time_format": "iso", "stamp": "start", "zone": "Europe/London",
    "day_zone": "Europe/London", "energy": "kwh", "unit": "kWh",
}  # fmt: skip
SHAPES = [
    {}, {"time_format": "epoch"}, {"time_format": "epoch-ms"}, {"time_format": "%d/%m/%Y %H:%M"},
    {"time": ["at", "part"]}, {"time": ["at", "part"], "period_minutes": 30, "first_period": 0},
    {"where": {"part": "E1"}}, {"where": {"part": ["E1", "1"]}, "negative": "zero"}, {"negative": "net"},
    {"unit": "W", "thousands": ",", "decimal": "."}, {"unit": "kW", "decimal": ",", "thousands": "."},
    {"household": "*", "energy": "*"}, {"household": "*", "energy": "*", "time": "part", "ignore": ["kwh"]},
]  # fmt: skip
CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**63 - 1), st.floats(), st.text(max_size=6),
    st.sampled_from(["2024-01-08 00:30", "2024-01-08", "24:00", "1,5", "1.234", "E1", pd.NaT, pd.NA]),
    st.datetimes(), st.dates(), st.times(), st.just(Decimal("1.5")), st.just(b"\xff"), st.just([1]), st.just({"a": 1}),
)  # fmt: skip
COLUMNS = st.one_of(
    st.lists(CELLS, min_size=4, max_size=4),
    *(
        st.just(column)
        for column in (
            pd.date_range("2024-01-08", periods=4, freq="30min", tz="UTC"), pd.Categorical(["E1", "E1", None, "x"]),
            [date(2024, 1, 8)] * 4, [time(0, 30)] * 4, [datetime(2024, 1, 8, 0, 30)] * 4,
            [1704673800 + i for i in range(4)],
            ["2024-01-08 00:00", "2024-01-08 00:30", "2024-01-08 24:00", "2024-01-10"],
            [1, 2, 3, 4], [0.5, -1, None, 9],
            pd.array([1, None, 3, 4], dtype="Int64"), ["A", "A", "B", "B"], ["1,234", "987", "1.5", ""],
        )
    ),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
@pytest.mark.parametrize("examples", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_a_frame_ends_in_readings_or_in_one_line(examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(frame=st.tuples(*[COLUMNS] * 4), keys=st.sampled_from(SHAPES), minutes=st.sampled_from([5, 30, 60]))
    def check(frame, keys, minutes):
        table = pd.DataFrame(dict(zip(("meter", "at", "kwh", "part"), map(list, frame), strict=True)))
        try:
            readings, refusal = agedp.read(table, columns=KEYS | keys, interval_minutes=minutes), ""
        except AgedpError as error:
            readings, refusal = None, str(error)
        if readings is None:
            assert "\n" not in refusal
            return
        rows = readings.attrs["rows"]
        assert rows["read"] == rows["kept"] + sum(rows["rejected"].values())
        assert keys.get("household") == "*" or rows["read"] == len(table)

    check()
