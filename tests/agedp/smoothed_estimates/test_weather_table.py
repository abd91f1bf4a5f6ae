"""Weather tables: what is read, and what is refused in one line that helps."""

from __future__ import annotations

from datetime import date

import pandas as pd
import pytest

from agedp.smoothed_estimates.weather_table import is_mean_temperature, read_weather
from agedp_data.errors import InputError

DAYS = [date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 3)]
SOUND = ["day,temperature_c", "2013-01-01,4.5", "2013-01-02,-1", "2013-01-03,0.25"]
FRAME = pd.DataFrame({"day": pd.to_datetime(DAYS), "t": [4.5, -1.0, 0.25]})


def written(tmp_path, lines, name="weather.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize(
    "lines",
    [
        SOUND,
        ["\ufeffDate;mean_temp", "2013-01-03;0.25", "2013-01-01;4.5", "2013-01-02;-1"],
        ["station\tDAY\tt", "Heathrow\t2013-01-01T00:00:00\t4.5", "Heathrow\t2013-01-02\t-1", "x\t2013-01-03\t0.25"],
        [*SOUND, "2012-12-31,", "", "2013-02-01,9"],
        [",day,T (°C)", "0,2013-01-01,4.5", "1,2013-01-02,-1", "2,2013-01-03,0.25"],
    ],
)
def test_a_csv_table_gives_the_temperatures_of_its_days(lines, tmp_path):
    assert read_weather(written(tmp_path, lines)).over(DAYS).tolist() == [4.5, -1.0, 0.25]


def test_parquet_frames_and_series_give_the_same_temperatures(tmp_path):
    FRAME.to_parquet(tmp_path / "w.parquet")
    sources = [tmp_path / "w.parquet", FRAME, FRAME.set_index("day"), FRAME.set_index("day")["t"]]
    sources.append(pd.Series([4.5, -1.0, 0.25], index=DAYS))
    for source in sources:
        assert read_weather(source).over(DAYS).tolist() == [4.5, -1.0, 0.25]
    assert len({read_weather(source).digest for source in sources[1:]}) == 1


def test_a_file_is_known_by_the_hash_of_its_bytes(tmp_path):
    path = written(tmp_path, SOUND)
    assert read_weather(path).digest[:16] == "50ed93ded177a312"  # sha256sum of these four lines


REFUSED = {
    "a missing day": (
        [*SOUND[:2], SOUND[3]],
        "no temperature for 2013-01-02. Give a table with every day from 2013-01-01 to",
    ),
    "missing days": (SOUND[:2], "no temperature for 2013-01-02 and 1 more of the 3 days of the release"),
    "an empty field": ([*SOUND[:3], "2013-01-03,"], "no temperature for 2013-01-03. Give"),
    "a day twice": ([*SOUND, SOUND[1]], "2013-01-01 is there twice. Give each day once"),
    "no date": ([*SOUND, "3 Jan,4"], "row 5: '3 Jan' is not a date such as 2013-01-31"),
    "no number": ([*SOUND, "2013-01-04,mild"], "2013-01-04: temperature_c = 'mild' is not a number"),
    "infinite": ([*SOUND, "2013-01-04,inf"], "2013-01-04: temperature_c = 'inf' is not a number"),
    "Kelvin": (["day,t", "2013-01-01,277"], "t = 277 is no daily mean temperature in degrees Celsius"),
    "Fahrenheit": (
        ["day,t", "2013-01-01,40", "2013-01-02,38"],
        "t is above 35 on half of the days, too warm for degrees Celsius. Is it in Fahrenheit, Kelvin or tenths",
    ),
    "rain": (["day,rain_mm", "2013-01-01,4"], "the column 'rain_mm' may not be daily mean temperatures. Name it"),
    "warmest hours": (["day,temp_max", "2013-01-01,4"], "column 'temp_max' may not be daily mean temperatures"),
    "constant": (
        ["day,t", *(f"2013-01-{day:02},12" for day in range(1, 6))],
        "t = 12 on all of 5 days is no measured temperature. Correct the table",
    ),
    "hours": (
        ["day,t", "2013-01-01 00:00:00,4", "2013-01-01 01:00:00,4"],
        "row 3: '2013-01-01 01:00:00' is a time of a day. Give one row for each day, with the mean temperature",
    ),
    "decimal commas": (["day;t", "2013-01-01;4,5"], "2013-01-01: t = '4,5' has a decimal comma. Write decimal points"),
    "bars": (["day|t", "2013-01-01|4"], "of day|t. Name the column of the dates day; columns end at a comma, semi"),
    "a workbook": (["PK\x03\x04abc"], "a workbook or archive, no CSV or Parquet file. Save the sheet as CSV"),
    "no date column": (["when,t", "2013-01-01,4"], "no column named day or date, of when, t"),
    "two date columns": (["day,date,t", "2013-01-01,2013-01-01,4"], "two columns named day or date"),
    "several numbers": (["day,t,rain", "2013-01-01,4,1"], "several columns of numbers, of day, t, rain"),
    "no numbers": (["day,t,sky", "2013-01-01,mild,grey"], "no column of numbers, of day, t, sky"),
    "a short row": ([*SOUND, "2013-01-04"], "row 5 has 1 fields, the header 2"),
    "nothing": ([], "no CSV table"),
}


@pytest.mark.parametrize(("lines", "message"), REFUSED.values(), ids=REFUSED)
def test_a_table_without_usable_temperatures_is_refused(lines, message, tmp_path):
    with pytest.raises(InputError, match=r"^weather\.csv: ") as refused:
        read_weather(written(tmp_path, lines)).over(DAYS)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_only_column_must_have_the_name_of_a_mean_temperature():
    sound = "temperature temp t T tas tmean TG t2m t2m_mean meanTemp avg_temp_c Temperature(°C) celsius temp_mean"
    other = "rain_mm humidity mean tmin Tmax temp_min maxTemp dew_point_temperature low total wind_speed station"
    assert [name for name in sound.split() if not is_mean_temperature(name)] == []
    assert [name for name in other.split() if is_mean_temperature(name)] == []


def test_a_column_is_chosen_by_its_name(tmp_path):
    path = written(tmp_path, ["day,low,mean", "2013-01-01,1,4"])
    assert read_weather(path, column="mean").temperature_c == {DAYS[0]: 4.0}
    with pytest.raises(InputError, match=r"no column 'meen' of temperatures, of day, low, mean. Name another one; did"):
        read_weather(path, column="meen")


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "w.parquet").write_bytes(b"PAR1")
    sources = {"no such file": tmp_path / "none.csv", "no Parquet file": tmp_path / "w.parquet", "no table": [4, 5]}
    for message, source in sources.items():
        with pytest.raises(InputError, match=message):
            read_weather(source)
