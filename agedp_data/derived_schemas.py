"""Schemas of the published tables that are derived from released values, each declared once, as in `table_schemas`."""

from __future__ import annotations

import pyarrow as pa

from agedp_data.table_schemas import schema_of

_TEXT = pa.string()

CONSISTENT_AVERAGES = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file that the value is of"),
    ("group_column", _TEXT, "column of the roster, or all: all households"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("households", pa.int64(), "households on the roster that day"),
    ("mean_kwh", pa.float64(), "estimate, kWh per household; groups add up to the total in kWh of all households"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("based_on", _TEXT, "series whose released values of the day enter the estimate"),
    ("method", _TEXT, "least squares; or released value, with the reason why there is no estimate"),
)
PERIOD_AVERAGES = schema_of(
    ("first_day", pa.date32(), "first day of the period; a week begins on Monday"),
    ("last_day", pa.date32(), "last day of the period"),
    ("series", _TEXT, "series of the run file that the value is of"),
    ("group_column", _TEXT, "column of the roster, or all: all households"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("version", pa.int32(), "first of the contracts that the days were released under; they count a day alike"),
    (
        "above_kwh",
        pa.float64(),
        "a household's day counted as its energy above this, kWh; 0 unless it is an upper layer",
    ),
    ("clamp_kwh", pa.float64(), "a household's day counted up to this, kWh"),
    ("days_released", pa.int32(), "days of the period whose released values enter; missing days are not estimated"),
    ("days_in_period", pa.int32(), "days of the period"),
    ("is_complete", pa.int32(), "1 if all days of the period enter, otherwise 0"),
    ("fewest_households", pa.int64(), "smallest number of households on the roster on a day that enters"),
    ("most_households", pa.int64(), "largest number of households on the roster on a day that enters"),
    ("household_days", pa.int64(), "sum of the households on the roster over the days that enter"),
    ("mean_kwh", pa.float64(), "sum of noisy_sum_wh over the days / household_days / 1000: per household and day, kWh"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
    ("published_on", pa.date32(), "UTC date of first publication of the latest day that enters"),
)
PROFILE_BY_MONTH = schema_of(
    ("first_day", pa.date32(), "first day of the month"),
    ("last_day", pa.date32(), "last day of the month"),
    ("series", _TEXT, "series of the run file that the value is of"),
    ("group_column", _TEXT, "column of the roster, or all: all households"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("version", pa.int32(), "first of the contracts that the days were released under; they count a day alike"),
    ("half_hour_clamp_kwh", pa.float64(), "a household's half-hour counted up to this, kWh"),
    ("clamp_kwh", pa.float64(), "a household's day counted up to this, kWh"),
    ("day_kind", _TEXT, "weekday: Monday to Friday, public holidays among them; or weekend: Saturday and Sunday"),
    ("start_minute", pa.int32(), "when the half-hour begins: minutes after midnight by the clock of the day's zone"),
    ("minutes", pa.int32(), "how long it is: 30, or 60 for hourly readings"),
    ("days_released", pa.int32(), "days of this kind with this half-hour whose values enter; others are not estimated"),
    ("days_in_period", pa.int32(), "days of this kind in the month that have this half-hour"),
    ("is_complete", pa.int32(), "1 if all these days enter, otherwise 0"),
    ("fewest_households", pa.int64(), "smallest number of households on the roster on a day that enters"),
    ("most_households", pa.int64(), "largest number of households on the roster on a day that enters"),
    ("household_minutes", pa.int64(), "sum over the days that enter of households x minutes of the half-hour"),
    ("mean_kwh", pa.float64(), "sum of noisy_sum_wh / household_minutes x minutes / 1000: per household, kWh"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
    ("published_on", pa.date32(), "UTC date of first publication of the latest day that enters"),
)
DAILY_QUANTILES = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file whose counts the value follows from"),
    ("group_column", _TEXT, "column of the roster, or all: all households"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("share", pa.float64(), "share of the households that used this or less; 1: the largest use [-]"),
    ("households", pa.int64(), "households on the roster that day"),
    ("value_kwh", pa.float64(), "estimate, interpolated in a range of use, kWh"),
    ("low_kwh", pa.float64(), "lower end of the interval, the edge of a range of use, kWh"),
    ("high_kwh", pa.float64(), "upper end of the interval, the edge of a range of use, kWh; the clamp: this or more"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
