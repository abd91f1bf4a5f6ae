"""What a caller of `agedp` is told: one line in the words of a call; dates as they come out of data frames."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import agedp
from agedp.pipeline import sanitise
from agedp.preflight.input_checks import CAUSES, in_python, judge
from agedp.preflight.rejection_findings import Touched
from agedp.setup.init_run_file import init
from agedp_data.errors import AgedpError, InputError, RunFileError

COLUMNS = {"household": "meter", "time": "at", "time_format": "iso", "stamp": "start", "zone": "UTC"}
COLUMNS |= {"day_zone": "UTC", "energy": "kwh", "unit": "kWh"}
TIMES = pd.date_range("2026-01-05", periods=48, freq="30min").astype(str)
TABLE = pd.DataFrame({"meter": "A", "at": TIMES, "kwh": 0.2})
RUN_FILE_WORDS = re.compile(r"\[input|\w+ = (\"|\[|\{|\d)|--|confidential folder|store/")


@pytest.mark.parametrize(
    "source", [None, 5, [5], {"a": 1}, TABLE["kwh"], TABLE.columns, pa.array([0.2]), pa.chunked_array([[0.2]])]
)
@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_what_is_no_table_is_refused_in_one_line(source, columns):
    for function in (agedp.read, agedp.findings):
        with pytest.raises(InputError, match=r"^readings: \w+ is no table; give a pandas or Dask data frame.*files$"):
            function(source, columns=columns)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"columns": ["meter"]}, 'columns=["meter"]: is no dict; give the meaning of the columns'),
        ({"columns": "meter"}, 'columns="meter": is no dict'),
        ({"interval_minutes": "30"}, "interval_minutes='30': is no interval.*a number, 5, 10, 15, 30 or 60 minutes"),
        ({"interval_minutes": 7}, "interval_minutes=7: is no interval of readings; give a number, 5, 10"),
        ({"interval_minutes": 0}, "interval_minutes=0: is no interval"),
        ({"days": "2026"}, "days='2026': are no two days; give the first and the last one"),
        ({"days": ("x", "y")}, "days="),
        ({"households": "A"}, "households='A': is no list of households"),
        ({"households": 5}, "households=5"),
        ({"columns": {**COLUMNS, "household": "file:*.csv"}}, r'"file:\*\.csv"}: a table has no file name\. Name the'),
        ({"columns": {**COLUMNS, "household": "line:2"}}, 'columns={"household": "line:2"}'),
        ({"columns": {**COLUMNS, "energy": "nope"}}, 'columns= needs the columns "meter", "at", "nope"'),
        ({"columns": None, "dataset": "long"}, "the first rows do not decide stamp, zone, day_zone. Give columns="),
        ({"columns": None}, 'Give columns={"stamp": ..., "zone": ..., "day_zone": ...}; the others are inferred'),
        ({"columns": {"zone": "UTC"}}, "the first rows do not decide stamp, day_zone. Give columns="),
    ],
)
def test_an_argument_that_is_wrong_is_named_as_in_the_call(arguments, line):
    for function in (agedp.read, agedp.findings):
        with pytest.raises(InputError, match=line.replace("[", r"\[").replace("{", r"\{")) as caught:
            function(TABLE, **{"columns": COLUMNS, **arguments})
        assert not RUN_FILE_WORDS.search(str(caught.value) + caught.value.private)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"unit": "MWh"}, 'columns={"unit": "MWh"}: is not known; write "kWh" | "Wh" | "W" | "kW"'),
        ({"househld": "x"}, "columns= has no key 'househld'; did you mean 'household'?"),
        ({"time_format": "%H"}, 'columns={"time_format": "%H"}: must be "iso"'),
        ({"ignore": ["x"]}, 'columns={"ignore": ["x"]}: is for a wide table only (columns={"household": "*"})'),
        ({"skip_lines": -1}, 'columns={"skip_lines": -1}: must be at least 0'),
        ({"first_period": 0}, 'columns={"first_period": 0}: is used with period_minutes only'),
        ({"where": 5}, 'columns={"where": "5"}: must be a table of columns and texts, such as { register'),
        ({"energy": "*"}, 'columns={"energy": "*"}: must be "*" for both'),
        ({"zone": "Mars", "stamp": 1}, 'columns={"stamp": 1}'),
    ],
)
def test_an_error_about_a_key_is_that_of_the_columns(changed, line):
    columns = {key: value for key, value in {**COLUMNS, **changed}.items() if value is not None}
    with pytest.raises(RunFileError) as caught:
        agedp.read(TABLE, columns=columns)
    assert line in str(caught.value)
    assert "[input" not in str(caught.value) + caught.value.private


@pytest.mark.parametrize("name", list(CAUSES))
def test_no_text_of_a_finding_has_words_of_a_run_file(name):
    [finding] = judge({name: Touched(1, {"all": 3}, 9)}, {"all": 200}, 50)
    text = in_python(finding.text)
    assert not RUN_FILE_WORDS.search(text.replace('corrections = "later-file" in a run file', "")), text
    assert f'accept=["{name}"]' in text
    assert in_python(text) == text


FIRST = date(2013, 1, 1)
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'


@pytest.fixture
def rehearsal(house):
    house.fill([FIRST + timedelta(days=i) for i in range(4)])
    return house.write(FIRST, FIRST + timedelta(days=3), mode="rehearsal", promise=CLASSICAL)


@pytest.mark.parametrize("moment", ["2013-01-04", datetime(2013, 1, 4, 17), pd.Timestamp("2013-01-04 23:59")])
def test_a_date_may_be_text_or_an_instant_of_a_data_frame(rehearsal, house, moment):
    # 1 and 2 January are due on the 3rd and on the 4th: each ends at midnight and is a day old then.
    made = sanitise(rehearsal, as_of=moment)
    assert made.table().day.tolist() == [pd.Timestamp("2013-01-01"), pd.Timestamp("2013-01-02")]
    house.release.verify()
    pd.testing.assert_frame_equal(made.table(), house.release.table())


@pytest.mark.parametrize(
    ("slip", "line"),
    [
        ({"as_of": "4/1/2013"}, r"^as_of = '4/1/2013': must be a date such as \"2026-04-01\"$"),
        ({"scheduler": "thread"}, r'scheduler.*must be "threads", "processes", "local-cluster" or the address'),
    ],
)
def test_a_slip_is_one_line_before_anything_is_read(rehearsal, house, slip, line):
    with pytest.raises(RunFileError, match=line):
        sanitise(rehearsal, **{"as_of": "2013-01-04", **slip})
    assert not (house.folder / "ledger.sqlite").exists()


def test_a_text_that_no_row_has_is_refused_with_those_that_there_are(tmp_path):
    texts = ["imp", "exp", "a", "b", "c", "d"]
    table = TABLE.assign(dir=[texts[i % 6] for i in range(48)])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    columns = {**COLUMNS, "where": {"dir": "Import"}}
    for source in (table, str(tmp_path / "a.csv"), str(tmp_path / "a.parquet")):
        with pytest.warns(agedp.InputWarning) as warned:
            read = agedp.read(source, columns=columns)
        assert "Import" not in str(warned[0].message)
        [finding] = agedp.findings(source, columns=columns)
        assert (finding.name, finding.verdict) == ("rows", "refused")
        assert 'columns["where"] asks for; in the first rows column dir has imp, exp, a, b, c' in finding.sentence
        assert read.empty
    assert agedp.findings(table, columns={**COLUMNS, "where": {"dir": "imp"}}) == ()
    with pytest.raises(InputError, match="no row has a reading, so there is no month"):
        agedp.read(table, columns=columns, as_dask=True)
    options = {("input.columns", key): f'"{value}"' for key, value in COLUMNS.items()}
    options[("input.columns", "where")] = '{ dir = "Import" }'
    with pytest.raises(InputError) as caught:
        init([str(tmp_path / "a.csv")], folder=tmp_path, options=options)
    assert "imp" not in str(caught.value)
    assert caught.value.private.endswith("column dir has imp, exp, a, b, c")


def test_a_population_begins_anew_in_a_ledger_in_which_another_has_days(tmp_path):
    times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    columns = {"household_id": np.repeat(["1", "2"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    readings = pd.DataFrame(columns)
    caps = {"max_day_epsilon": 0.5, "epsilon_total": 100, "accept": ["useless"]}
    keys = {"promise": agedp.Classical(epsilon_per_day=0.5, **caps), "clamp_kwh": 50, "min_households": 2}
    ledger = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    agedp.release(readings, population="one", ledger=ledger, last_day="2026-01-05", **keys)
    of_numbers = readings.astype({"household_id": "float64"})
    with pytest.raises(AgedpError, match="household ids are floating-point numbers"):
        agedp.release(of_numbers, population="two", ledger=ledger, **keys)
