"""`agedp.read` infers what `agedp init` decides, asks what it asks, and reads the same readings."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import agedp
from agedp.setup.run_file_options import toml_value
from agedp.setup.sample import sample
from agedp_data.errors import InputError
from tests.agedp.test_first_lines import CASES, keys_of, shown

HALF_HOURS = pd.date_range("2026-03-02 00:30", periods=14 * 48, freq="30min")
ASKED = re.compile(r"readings: the first rows do not decide ([\w, ]+)\. Give columns=\{.*\}; the others are inferred")


def frame_of(times: pd.DatetimeIndex, homes: tuple[str, ...] = ("home-A", "home-B")) -> pd.DataFrame:
    table = pd.MultiIndex.from_product([homes, times], names=["meter", "read_at"]).to_frame(index=False)
    return table.assign(kwh=np.arange(len(table)) % 7 / 10)


def explicit_columns() -> dict[str, Any]:
    columns = {"household": "meter", "time": "read_at", "time_format": "iso", "stamp": "end", "zone": "UTC"}
    return columns | {"day_zone": "Europe/London", "energy": "kwh", "unit": "kWh"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if number % 4 == 1 else pytest.mark.long) for number, case in enumerate(CASES)]
)
@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
def test_a_file_is_read_as_init_reads_it_and_what_it_asks_is_asked(case, tmp_path):
    text, _ = CASES[case]
    path = tmp_path / "a.csv"
    path.write_text(text, "utf-8")
    proposed = {line.key: toml_value(line.toml) for line in shown(text).lines if not line.decided}
    if proposed:
        with pytest.raises(InputError) as caught:
            agedp.read(path)
        asked = ASKED.fullmatch(str(caught.value))
        assert asked is not None, str(caught.value)
        assert asked[1].split(", ") == list(proposed)
    found = agedp.read(path, columns=proposed or None)
    table = shown(text, **written_options(proposed))
    columns = {key: toml_value(toml) for key, toml in keys_of(table).items()} | proposed
    expected = agedp.read(path, columns=columns, interval_minutes=table.interval_minutes or 30)
    assert len(expected)
    pd.testing.assert_frame_equal(found, expected)
    assert found.attrs["inferred"]["columns"] == columns
    again = agedp.read(path, **found.attrs["inferred"])
    pd.testing.assert_frame_equal(again, expected)
    read_off = sorted(line.key for line in table.lines if line.read_off and line.key not in proposed)
    assert found.attrs.get("read_off", []) == again.attrs.get("read_off", []) == read_off
    assert "inferred" not in again.attrs


def written_options(answers: dict[str, Any]) -> dict[str, Any]:
    """Return answers as the command line has them."""
    options = {key: value for key, value in answers.items() if key != "where"}
    where = [f"{name}={text}" for name, texts in answers.get("where", {}).items() for text in texts]
    return options | ({"where": where} if where else {})


@pytest.mark.parametrize("as_table", [pd.DataFrame, pa.Table.from_pandas], ids=["pandas", "arrow"])
def test_a_table_with_typed_columns_needs_no_argument(as_table):
    table = frame_of(HALF_HOURS.tz_localize("UTC").tz_convert("Europe/London"))
    found = agedp.read(as_table(table))
    expected = agedp.read(table, columns=explicit_columns())
    pd.testing.assert_frame_equal(found, expected)
    assert (len(found), found.attrs["rows"]["rejected"]) == (len(table), {})
    assert found["energy_wh"].sum() == round(table["kwh"].sum() * 1000)
    assert str(found["interval_start"].dt.tz) == "Europe/London"
    as_text = {"time_format": "%Y-%m-%d %H:%M:%S%z"}  # not used: timestamps are no text
    assert found.attrs["inferred"]["columns"] == explicit_columns() | as_text
    assert found.attrs["read_off"] == ["stamp"]


@pytest.mark.parametrize(
    ("times", "keys"),
    [(HALF_HOURS, "zone, day_zone"), (HALF_HOURS.tz_localize("UTC"), "day_zone")],
    ids=["no zone", "UTC"],
)
def test_no_zone_of_days_is_read_off_a_table_without_one(times, keys):
    with pytest.raises(InputError) as caught:
        agedp.read(frame_of(times))
    assert f"do not decide {keys}. Give columns=" in str(caught.value)
    assert "home-" not in str(caught.value)
    assert '"household": "meter"' in caught.value.private
    given = dict.fromkeys(keys.split(", "), "Europe/London")
    found = agedp.read(frame_of(times), columns=given)
    expected = agedp.read(frame_of(times), columns={**explicit_columns(), **given})
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("dataset", ["london", "ausgrid"])
def test_files_and_tables_as_published_are_recognised(dataset, tmp_path):
    sample(dataset, tmp_path, households=3, days=5, seed=1)
    files = str(tmp_path / "input" / "*.csv")
    expected = agedp.read(files, dataset=dataset)
    found = agedp.read(files)
    pd.testing.assert_frame_equal(found, expected)
    assert found.attrs["inferred"] == {"dataset": dataset}
    assert agedp.findings(files) == agedp.findings(files, dataset=dataset)


def test_keys_that_readings_decide_are_listed_in_the_statement():
    table = frame_of(HALF_HOURS.tz_localize("Europe/London"))
    promise = agedp.Classical(epsilon_per_day=1, max_day_epsilon=1, epsilon_total=14, accept=["useless", "total"])
    terms: dict[str, Any] = {"promise": promise, "clamp_kwh": 20, "min_households": 2}
    notes = {
        name: " ".join(agedp.release(agedp.read(table, columns=columns), **terms).statement["notes"])
        for name, columns in (("inferred", None), ("given", explicit_columns()))
    }
    again = agedp.read(table, **agedp.read(table).attrs["inferred"])
    assert agedp.release(again, **terms).statement["contract"]["input"]["read_off"] == ["stamp"]
    assert "stamp" in notes["inferred"]
    assert "stamp" not in notes["given"]


def test_a_column_that_may_be_the_household_is_asked_for_by_its_key():
    table = frame_of(HALF_HOURS.tz_localize("Europe/London")).assign(site=lambda rows: rows["meter"])
    for function in (agedp.read, agedp.findings):
        with pytest.raises(InputError) as caught:
            function(table)
        assert str(caught.value).endswith('first rows leave open how to read it. Give columns["household"]')
        assert '("meter" or "site")' in caught.value.private
    found = agedp.read(table, columns={"household": "site"})
    assert found["household_id"].unique().tolist() == ["home-A", "home-B"]


def test_nothing_is_inferred_from_a_stream_that_is_read_once():
    table = pa.Table.from_pandas(frame_of(HALF_HOURS.tz_localize("Europe/London")))
    with pytest.raises(InputError, match=r"a stream is read once.*reader\.read_all"):
        agedp.read(table.to_reader())
    pd.testing.assert_frame_equal(agedp.read(table.to_reader().read_all()), agedp.read(table))
