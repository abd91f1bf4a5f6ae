"""Floating-point household ids: refused before a first release, kept with a warning by a running series."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agedp
from agedp.setup.init_run_file import init
from agedp.stages.report import format_report_warnings
from agedp_data.errors import InputError

FIRST = date(2026, 3, 1)
IDS = (1_200_000_000_000.0, 1_200_000_000_001.0, 1_200_000_000_002.0)
AS_TEXT = ("1.2e+12", "1.200000000001e+12", "1.200000000002e+12")
"""The ids as the text of these numbers."""
TERMS = {
    "promise": agedp.Classical(
        epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100, accept=["useless", "no-credit", "total"]
    ),
    "clamp_kwh": 50,
    "min_households": 2,
}


def night(number: int, ids: pa.DataType) -> pa.Table:
    """Return the readings of one day in the layout of London; the type of the ids is a parameter."""
    start = datetime(2026, 3, 1) + timedelta(days=number)
    ends = [start + timedelta(minutes=30 * (slot + 1)) for slot in range(48)]
    homes = pa.array(np.repeat(IDS, 48))
    value = ids.value_type if pa.types.is_dictionary(ids) else ids
    homes = homes.cast(pa.int64()).cast(value) if pa.types.is_string(value) else homes.cast(value)
    return pa.table(
        {
            "LCLid": homes.dictionary_encode() if pa.types.is_dictionary(ids) else homes,
            "tstp": pa.array(ends * 3, pa.timestamp("us")),
            "energy(kWh/hh)": pa.array([0.2] * 144),
        }
    )


def write(folder: Path, table: pa.Table, name: str = "a.parquet") -> Path:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / name)
    return folder


@pytest.mark.parametrize(
    ("ids", "is_refused"),
    [
        (pa.float64(), True),
        (pa.float32(), True),
        (pa.dictionary(pa.int32(), pa.float64()), True),
        (pa.int64(), False),
        (pa.string(), False),
    ],
)
def test_a_first_roster_is_not_read_off_floating_point_ids(tmp_path, ids, is_refused):
    files = write(tmp_path / "in", night(0, ids))
    if not is_refused:
        init([str(files)], folder=tmp_path / "begun")
        assert b"\n1200000000000,2026-03-01," in (tmp_path / "begun" / "roster.csv").read_bytes()
        return
    with pytest.raises(InputError, match=r"floating-point numbers.*cast the column to integers or to text") as caught:
        init([str(files)], folder=tmp_path / "begun")
    assert "\n" not in caught.value.private
    assert not (tmp_path / "begun" / "run.toml").exists()


def test_a_first_run_is_refused_and_a_running_series_keeps_its_ids_with_a_warning(house):
    house.roster([(home, FIRST, None) for home in AS_TEXT])
    house.write(FIRST, FIRST + timedelta(days=9), mode="live", promise=(
        'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
    ))  # fmt: skip
    house.edit(("input/*.csv", "input/*.parquet"))
    write(house.folder / "input", night(0, pa.float64()))
    with pytest.raises(InputError, match="floating-point"):
        house.run(today=FIRST + timedelta(days=3))
    assert not (house.folder / "ledger.sqlite").exists()
    write(house.folder / "input", night(0, pa.int64()))
    assert len(house.run(today=FIRST + timedelta(days=2)).released) == 1
    write(house.folder / "input", night(1, pa.float64()), "b.parquet")
    summary = house.run(today=FIRST + timedelta(days=3))
    assert len(summary.released) == 1
    assert [line for line in format_report_warnings(summary.notices, ()) if "b.parquet" in line and "floating" in line]
    assert "parquet" not in "".join(notice.public for notice in summary.notices)
    sums = summary.checked.sums.by_day
    assert sums[FIRST + timedelta(days=1), "daily_mean"].usable.tolist() == [3]  # their text, as 0.2 read them


def frame(ids: np.ndarray) -> pd.DataFrame:
    times = pd.date_range("2026-03-01", periods=96, freq="30min", tz="UTC")
    homes = {"household_id": np.repeat(ids, 96), "interval_start": [*times] * 3, "energy_wh": 200}
    return pd.DataFrame(homes)


def test_a_table_with_floating_point_ids_is_released_by_a_running_series_only(tmp_path, caplog):
    columns = {"household": "household_id", "time": "interval_start", "time_format": "iso", "stamp": "start"}
    columns |= {"zone": "UTC", "day_zone": "UTC", "energy": "energy_wh", "unit": "Wh"}
    with pytest.warns(agedp.InputWarning, match="agedp.findings says which") as warned:
        read = agedp.read(frame(np.array(IDS)), columns=columns)
    assert not caplog.text  # nothing about the ids beside the warning, whose text is public
    for found in (warned[0].message.findings, agedp.findings(read), agedp.findings(frame(np.array(IDS)))):
        assert [(finding.name, finding.verdict) for finding in found] == [("household ids", "refused")]
        assert "floating-point numbers" in found[0].sentence
        assert "cast the column" in found[0].remedy
    for table in (frame(np.array(IDS)), read):
        with pytest.raises(InputError, match="readings: the household ids are floating-point numbers"):
            agedp.release(table, **TERMS)
        with pytest.raises(InputError, match="floating-point"):
            agedp.plan(table, **TERMS)
    text = frame(np.array(AS_TEXT))
    for number, (first, later) in enumerate([(text, frame(np.array(IDS))), (agedp.read(text, columns=columns), read)]):
        terms = {**TERMS, "last_day": "2026-03-01", "ledger": f"sqlite:///{tmp_path}/{number}.sqlite"}
        expected = agedp.release(first, **terms).table
        caplog.clear()
        pd.testing.assert_frame_equal(agedp.release(later, **terms).table, expected)
        assert "they are kept, because the population has releases" in caplog.text
