"""Weather table -> daily mean temperatures: a CSV or Parquet file, or a pandas table, each day once, degrees Celsius.

    day,temperature_c
    2013-01-01,4.2

Decisions:

* The date column is named day or date. The column of temperatures is the one that is named, or the only other column
  of numbers, if its name is that of a temperature and not of its minimum; nothing is guessed among several. A column
  without a name has the numbers of the rows, as pandas writes them.
* Nothing is filled in: a day of the release without a temperature is an error. So are a repeated day, a field that is
  no number, a temperature beyond -90 to 60 degrees, the same one on all of several days, and a median above 35.
* A file is known by the SHA-256 of its bytes, a table in memory by that of its days and temperatures as text.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data.arrays import Floats
from agedp_data.errors import InputError
from agedp_data.messages import escape_text, suggest_file, suggest_name

if TYPE_CHECKING:
    import pandas as pd

    WeatherSource = str | Path | pd.Series[Any] | pd.DataFrame

IN_MEMORY: Final = "a table in memory"
_DATE_NAMES: Final = ("day", "date")
_TEMPERATURE: Final = re.compile(r"temp.*|degrees?.*|celsius|t2m.*|t|tas|tg|tm|tmk|tmean|tavg|deg|degc|c")
"""A word of a name of temperatures; tas, tg and tmk are those of CMIP, ECA&D and the German weather service."""
_NO_MEAN: Final = re.compile(r".*(min|max|minimum|maximum)|low|lowest|high|highest|dew.*|soil|std")
_DECIMAL_COMMA: Final = re.compile(r"[-+]?\d+,\d+")
_NAME_IT: Final = "(temperature_column, --temperature-column)"
_ROW_NUMBERS: Final = ("", "Unnamed: 0", "__index_level_0__")
_UNITS: Final = "Is it in Fahrenheit, Kelvin or tenths of a degree? Convert it, or name another column " + _NAME_IT
_FEW_DAYS: Final = 3
_SEPARATORS: Final = ",;\t"
_HOT_C, _COLD_C = 60.0, -90.0
_USUAL_C = 35.0
_Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class WeatherTable:
    """Daily mean temperatures by day [degrees Celsius], the file and column that they come from, and its SHA-256."""

    file: str
    column: str
    digest: str
    temperature_c: Mapping[date, float]

    def over(self, days: Sequence[date]) -> Floats:
        """Return the temperatures of days, shape (T,) [degrees Celsius].

        Raises:
            InputError: days are missing; the message names the first and their number.
        """
        missing = [day for day in days if day not in self.temperature_c]
        if missing:
            more = f" and {len(missing) - 1} more of the {len(days)} days of the release" if len(missing) > 1 else ""
            raise InputError(
                f"{self.file}: no temperature for {missing[0]}{more}. Give a table with every day from {days[0]} to "
                f"{days[-1]}"
            )
        return np.array([self.temperature_c[day] for day in days])

    def source(self, days: Sequence[date]) -> dict[str, Any]:
        """Return file, column and SHA-256, and the lowest and highest temperature of days."""
        used = self.over(days)
        extremes = {"lowest_c": round(float(used.min()), 2), "highest_c": round(float(used.max()), 2)}
        return {"file": self.file, "column": self.column, "sha256": self.digest, **extremes}


def read_weather(source: WeatherSource, *, column: str | None = None) -> WeatherTable:
    """Return the temperatures in a file or a pandas table.

    Args:
        source: path of a CSV or Parquet file, a data frame, or a series with days as its index.
        column: column of the temperatures; None: the only column of numbers, or the series.

    Raises:
        InputError: no such file or column, or days or temperatures that are missing, repeated or impossible.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"{path}: no such file. Name the weather table{suggest_file(path)}") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        name = escape_text(path.name)
        is_parquet = path.suffix == ".parquet" or content.startswith(b"PAR1")
        columns = _parquet_columns(content, name) if is_parquet else _csv_columns(content, name)
        digest = hashlib.sha256(content).hexdigest()
        return _weather(columns, column, name, digest)
    columns = _frame_columns(source)
    if not hasattr(source, "columns"):
        column = next(name for name in columns if name != _DATE_NAMES[0])
    table = _weather(columns, column, IN_MEMORY, "")
    text = "".join(f"{day},{value!r}\n" for day, value in sorted(table.temperature_c.items()))
    return WeatherTable(table.file, table.column, hashlib.sha256(text.encode()).hexdigest(), table.temperature_c)


def _csv_columns(content: bytes, name: str) -> _Columns:
    if content.startswith(b"PK\x03\x04"):
        raise InputError(f"{name}: a workbook or archive, no CSV or Parquet file. Save the sheet as CSV")
    try:
        text = content.decode("utf-8-sig")
        header = text.partition("\n")[0]
        separator = max(_SEPARATORS, key=header.count)
        names, *rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator, strict=True) if row]
    except (ValueError, csv.Error):
        raise InputError(f"{name}: no CSV table of text in UTF-8. Give a CSV or Parquet file with a header") from None
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise InputError(
                f"{name}: row {number} has {len(row)} fields, the header {len(names)}. Correct or remove the row"
            )
    return {key.strip(): [row[i].strip() for row in rows] for i, key in enumerate(names)}


def _parquet_columns(content: bytes, name: str) -> _Columns:
    try:
        return pq.read_table(pa.BufferReader(content)).to_pydict()  # type: ignore[no-any-return]
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{name}: no Parquet file, or a damaged one. Give a CSV or Parquet file") from None


def _frame_columns(source: Any) -> _Columns:  # noqa: ANN401  (a pandas object)
    if not hasattr(source, "index") or not hasattr(source, "reset_index"):
        raise InputError(
            f"weather: {type(source).__name__} is no table. Give a pandas data frame or series, or the path of a file"
        )
    if not hasattr(source, "columns"):
        source = source.rename(source.name or "temperature_c").rename_axis("day").reset_index()
    elif not {str(name).lower() for name in source.columns} & {*_DATE_NAMES}:
        source = source.rename_axis("day").reset_index()
    return {str(name): source[name].tolist() for name in source.columns}


def _weather(columns: _Columns, column: str | None, name: str, digest: str) -> WeatherTable:
    named = [key for key in columns if key.lower() in _DATE_NAMES]
    if len(named) != 1:
        raise InputError(
            f"{name}: {'two columns' if named else 'no column'} named day or date, of {_listed(columns)}. Name the "
            f"column of the dates day{'' if len(columns) > 1 else '; columns end at a comma, semicolon or tab'}"
        )
    dates = named[0]
    chosen = _temperature_column(columns, column, dates, name)
    temperatures: dict[date, float | None] = {}
    for number, (day_value, value) in enumerate(zip(columns[dates], columns[chosen], strict=True), 2):
        day = _day(day_value)
        if day is None:
            raise InputError(f"{name}: row {number}: {_date_fault(day_value)}")
        if day in temperatures:
            raise InputError(f"{name}: {day} is there twice. Give each day once")
        temperatures[day] = _temperature(value, day, chosen, name)
    present = {day: value for day, value in temperatures.items() if value is not None}
    _check_celsius(present, chosen, name)
    return WeatherTable(name, chosen, digest, present)


def _temperature(value: object, day: date, column: str, name: str) -> float | None:
    """Return a temperature, None for an empty field: a day without one is missing, as one without a row is."""
    number = _number(value)
    if number is None and value not in (None, "") and not _is_nan(value):
        shown = escape_text(str(value), 40)
        if _DECIMAL_COMMA.fullmatch(str(value)):
            raise InputError(f"{name}: {day}: {column} = {shown!r} has a decimal comma. Write decimal points (4.5)")
        raise InputError(f"{name}: {day}: {column} = {shown!r} is not a number. Give a temperature, or leave it empty")
    return number


def _date_fault(value: object) -> str:
    shown = escape_text(str(value), 40)
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        return f"{shown!r} is not a date such as 2013-01-31. Correct the row"
    return f"{shown!r} is a time of a day. Give one row for each day, with the mean temperature of the day"


def _temperature_column(columns: _Columns, column: str | None, dates: str, name: str) -> str:
    if column is not None:
        if column not in columns or column == dates:
            raise InputError(
                f"{name}: no column {escape_text(column, 40)!r} of temperatures, of {_listed(columns)}. "
                f"Name another one{suggest_name(column, [*columns])}"
            )
        return column
    candidates = [key for key in columns if key != dates and key not in _ROW_NUMBERS]
    numeric = [key for key in candidates if any(_number(value) is not None for value in columns[key])]
    if not numeric and len(candidates) == 1:
        return candidates[0]  # its first field is refused, and shown
    if len(numeric) != 1:
        which = "several columns" if numeric else "no column"
        raise InputError(
            f"{name}: {which} of numbers, of {_listed(columns)}. Name the daily mean temperature {_NAME_IT}, or give a "
            "table of days and temperatures alone"
        )
    if not is_mean_temperature(numeric[0]):
        raise InputError(
            f"{name}: the column {escape_text(numeric[0], 40)!r} may not be daily mean temperatures. Name it if it is "
            f"{_NAME_IT}"
        )
    return numeric[0]


def is_mean_temperature(name: str) -> bool:
    """Return whether a column's name is that of a temperature, and not of its minimum or maximum.

    >>> [is_mean_temperature(name) for name in ("temperature_c", "tempMean", "T (°C)", "rain_mm", "temp_max")]
    [True, True, True, False, False]
    """
    words = re.findall(r"[a-z]+[0-9]*[a-z]*", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return any(map(_TEMPERATURE.fullmatch, words)) and not any(map(_NO_MEAN.fullmatch, words))


def _listed(columns: _Columns) -> str:
    return escape_text(", ".join(name or "(no name)" for name in columns) or "none", 120)


def _day(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date() if not _is_nan(value) and not (value.hour or value.minute) else None
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value)[:10]) if str(value)[10:] in ("", "T00:00:00", " 00:00:00") else None
    except ValueError:
        return None


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _is_nan(value: object) -> bool:
    """Return whether a value is NaN, also of a date, or none of pandas."""
    return str(value) in ("nan", "NaN", "NaT", "<NA>")


def _check_celsius(temperatures: Mapping[date, float], column: str, name: str) -> None:
    for day, value in temperatures.items():
        if not _COLD_C <= value <= _HOT_C:
            raise InputError(
                f"{name}: {day}: {column} = {value:g} is no daily mean temperature in degrees Celsius. {_UNITS}"
            )
    values = [*temperatures.values()]
    if values and float(np.median(values)) > _USUAL_C:
        raise InputError(
            f"{name}: {column} is above {_USUAL_C:g} on half of the days, too warm for degrees Celsius. {_UNITS}"
        )
    if len(values) > _FEW_DAYS and min(values) == max(values):
        raise InputError(
            f"{name}: {column} = {values[0]:g} on all of {len(values)} days is no measured temperature. Correct the "
            f"table, or name another column {_NAME_IT}"
        )
