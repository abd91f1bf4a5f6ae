"""Schemas of every table that is written, each declared once: columns, Arrow types, units and meaning.

`READINGS`, `DAYS`, `STATE_DAYS`, `QUALITY`, `QUARANTINE`, `PARSED_QUARANTINE`, `SUMS`, `TRUE_MEANS`, `TRUE_COUNTS`,
`COVERAGE`, `COUNTED_STATES`, `GOODNESS_OF_FIT` are confidential; `DAILY_AVERAGES`, `DAILY_AVERAGE_LAYERS`,
`DAILY_DISTRIBUTION`, `DAILY_PROFILE`, `DAILY_COVERAGE`, `PERIOD_RELEASES` and `PROFILE_RELEASES` are published, beside
tables derived from them (`derived_schemas`); `DAILY_AVERAGE_SMOOTHED` is computed from them by whoever has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data.datasets.layout import arrow_numbers
from agedp_data.datasets.validation import SLOTS

_TEXT = pa.string()
_IDS = pa.dictionary(pa.int32(), pa.string())


def schema_of(*columns: tuple[str, pa.DataType, str], nullable: frozenset[str] = frozenset()) -> pa.Schema:
    """Return the schema of columns: name, type, meaning."""
    fields = (
        pa.field(name, kind, nullable=name in nullable, metadata={"description": text}) for name, kind, text in columns
    )
    return pa.schema(fields)


READINGS = schema_of(
    ("household_id", _IDS, "household"),
    ("day", pa.date32(), "day of the layout (GMT for London, Sydney civil for Ausgrid)"),
    ("slot", pa.uint8(), "half-hour of the day, 0 to 47"),
    ("energy_wh", pa.int32(), "energy of the half-hour, Wh"),
    ("row", pa.int64(), "data row, from 0 at the beginning of the part"),
)
READINGS_CHANNELS = READINGS.append(
    schema_of(("channel", pa.uint8(), "which pass of a half-hour that the day has twice; 0: it has it once")).field(0)
)
_LABEL: pa.Field = schema_of(("label", pa.int64(), "tells the meters of the household that are added up apart")).field(
    0
)
READINGS_WIDE = schema_of(
    ("household_id", _IDS, "household"),
    ("channel", pa.uint8(), "series of the household that add up to its use"),
    ("day", pa.date32(), "day of the layout"),
    ("row", pa.int64(), "data row, from 0 at the beginning of the part"),
    *((f"energy_wh_{slot}", pa.int32(), "energy of the half-hour, Wh; -1: missing") for slot in range(SLOTS)),
)
DAYS = schema_of(
    ("household_id", _IDS, "household"),
    ("day", pa.date32(), "day of the layout"),
    ("energy_wh", pa.int64(), "energy of the readings that are there, Wh; never scaled up"),
    ("readings", pa.uint8(), "how many of the day's readings are there"),
)
STATE_DAYS = schema_of(
    ("household_id", _IDS, "household"),
    ("day", pa.date32(), "day of the layout"),
    ("counted_wh", pa.int64(), "sum of what stands for the states of the half-hours that are there, Wh"),
)
PART_DAYS = schema_of(
    ("household_id", _IDS, "household"),
    ("day", pa.date32(), "day of the layout"),
    ("energy_wh", pa.int64(), "energy of the readings that are there, Wh; 0 without one"),
    ("readings", pa.uint8(), "how many of the day's readings are there"),
    ("aside_row", pa.list_(pa.int64()), "rows of this household-day that its part alone sets aside"),
    ("aside_reason", pa.list_(pa.uint8()), "and why, one for each"),
)
SETTLED = schema_of(
    ("file", pa.int32(), "input file, by its place in the delivery"),
    ("row", pa.int64(), "data row of the input file, from 0"),
    ("reason", pa.uint8(), "why settling the month set it aside"),
)
QUALITY = schema_of(
    ("input", _TEXT, "name of the input file"),
    ("content", _TEXT, "content id: SHA-256 of the file and of the rules it was read under"),
    ("note", _TEXT, "header recognised, or why the file was passed over"),
    ("what", _TEXT, "rows read, kept, or set aside for this reason"),
    ("rows", pa.int64(), "number of input rows"),
)
QUARANTINE = schema_of(
    ("content", _TEXT, "content id of the input file"),
    ("row", pa.int64(), "data row of the input file, from 0"),
    ("reason", _TEXT, "why the row was set aside"),
    ("text", _TEXT, "the row as it stood there; empty for duplicates and disagreements"),
)
PARSED_QUARANTINE = pa.schema(
    [
        *QUARANTINE,
        *schema_of(
            ("household_id", _TEXT, "household that the row names; empty if it cannot be read"),
            ("day", pa.date32(), "day that the row names; empty if it names none"),
            ("slot", pa.uint8(), "first half-hour of the day that the row names, 0 to 47; empty if it names none"),
            nullable=frozenset(("household_id", "day", "slot")),
        ),
    ]
)
SUMS = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file"),
    ("cell", _TEXT, "all, or the group; of a distribution with its range of use, kWh"),
    ("households", pa.int64(), "households on the roster, of the group"),
    ("usable", pa.int64(), "of these with a usable day"),
    ("clamped", pa.int64(), "of these above the clamp"),
    ("value", pa.int64(), "what noise is added to: the sum of the clamped days, Wh, or the households in the range"),
)
RELEASED_ROSTERS = schema_of(
    ("population", _TEXT, "the people"),
    ("ledger", _TEXT, "id of the ledger that draws"),
    ("day", pa.date32(), "day of the data"),
    ("rehearsal", pa.bool_(), "whether the ledger is a rehearsal's"),
    ("members", _TEXT, "SHA-256 of who is counted; confidential"),
    ("groups", _TEXT, "by group column in use, SHA-256 of who is in which group, JSON; confidential"),
    ("released", pa.bool_(), "whether the ledger was seen to hold the day"),
)
TRUE_MEANS = schema_of(
    ("population", _TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file"),
    ("cell", _TEXT, "all, or the group"),
    ("households", pa.int64(), "households on the roster"),
    ("true_mean_kwh", pa.float64(), "mean before noise, kWh"),
    ("released_mean_kwh", pa.float64(), "mean as released, kWh"),
)
TRUE_COUNTS = schema_of(
    ("population", _TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file"),
    ("cell", _TEXT, "range of use, kWh, behind its group if there are groups"),
    ("households", pa.int64(), "households on the roster, of the group"),
    ("true_households", pa.int64(), "of these in the range, before noise"),
    ("released_households", pa.int64(), "of these in the range, as released"),
)
COVERAGE = schema_of(
    ("population", _TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file"),
    ("cell", _TEXT, "all, or the group"),
    ("households", pa.int64(), "households on the roster"),
    ("usable", pa.int64(), "of these with a usable day"),
    ("clamped", pa.int64(), "of these above the clamp"),
)
COUNTED_STATES = schema_of(
    ("population", _TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file"),
    ("cell", _TEXT, "all, or the group"),
    ("households", pa.int64(), "households on the roster"),
    ("readings_kwh", pa.float64(), "mean of the households' days by their readings, before noise, kWh"),
    ("states_kwh", pa.float64(), "mean of the same days by their states, before noise, kWh"),
)
GOODNESS_OF_FIT = schema_of(
    ("household_id", _IDS, "household"),
    ("figure", _TEXT, "chain of day totals; chain of half-hours"),
    ("days_apart", pa.int32(), "days from the one that was read to the one that is protected"),
    ("powers", pa.float64(), "largest total variation by powers of the chain [-]; NaN: none, or no chain"),
    ("direct", pa.float64(), "largest total variation, counted directly [-]; NaN: nothing to compare"),
    ("low", pa.float64(), "lower end of its interval (whole weeks drawn again) [-]; NaN: not computed"),
    ("high", pa.float64(), "upper end of its interval [-]; NaN: not computed"),
    ("floor", pa.float64(), "what such a count shows where nothing is remembered [-]; NaN: not computed"),
    ("checked", pa.bool_(), "whether powers and direct count were compared"),
    ("rejected", pa.bool_(), "whether the count exceeds the powers by more than the chain explains"),
)
DAILY_AVERAGES = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("revision", pa.int32(), "0: days are released once"),
    ("households", pa.int64(), "households on the roster that day"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped days plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / households / 1000, kWh"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
    ("published_on", pa.date32(), "UTC date of first publication"),
    ("epsilon", pa.float64(), "loss of the release about one household's day [-]"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
_LAYER_TEXTS = {
    "noisy_sum_wh": "what was drawn: sum of the parts of the days in the layer plus noise, Wh",
    "mean_kwh": "noisy_sum_wh / households / 1000, kWh; add to those below for the mean up to the layer's end",
}
DAILY_AVERAGE_LAYERS = pa.schema(
    [
        *(
            field.with_metadata({"description": _LAYER_TEXTS[field.name]}) if field.name in _LAYER_TEXTS else field
            for field in DAILY_AVERAGES
        ),
        *schema_of(("layer", pa.int32(), "which layer of the clamp, from 2; layer 1 is in the daily averages")),
    ]
)
LEVEL: pa.Field = schema_of(
    ("level", _TEXT, "group column that divides the groups, of which coarser ones begin the group's path; all: none")
).field(0)
"""A column of the table of each series with levels, after the group: coarser levels of a day come first."""
PERIOD_RELEASES = schema_of(
    ("day", pa.date32(), "last day of the week, month or year that the row covers"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("revision", pa.int32(), "0: periods are released once"),
    ("first_day", pa.date32(), "first day that the row covers"),
    ("household_days", pa.int64(), "households on the roster, added over the days that the row covers"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped days of all households plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / household_days / 1000: use of a household on a day, kWh"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
    ("published_on", pa.date32(), "UTC date of first publication"),
    ("epsilon", pa.float64(), "loss of the release about all days of one household that it covers [-]"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
DAILY_DISTRIBUTION = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("revision", pa.int32(), "0: days are released once"),
    ("bin_low_kwh", pa.float64(), "a household's use that day was at least this, kWh"),
    ("bin_high_kwh", pa.float64(), "and less than this, or just this where it is the clamp, kWh"),
    ("households_noisy", pa.int64(), "what was drawn: how many households, plus noise"),
    ("noise_sd", pa.float64(), "standard deviation of the noise of households_noisy, households"),
    ("published_on", pa.date32(), "UTC date of first publication"),
    ("epsilon", pa.float64(), "loss of the release, all its cells together, about one household's day [-]"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
DAILY_PROFILE = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("start_minute", pa.int32(), "when the half-hour begins: minutes after midnight by the clock of the day's zone"),
    ("minutes", pa.int32(), "how long it is: 30, or 60 for hourly readings; twice as long where the clock goes back"),
    ("revision", pa.int32(), "0: days are released once"),
    ("households", pa.int64(), "households on the roster that day, of the group"),
    ("noisy_sum_wh", pa.int64(), "what was drawn: sum of the clamped half-hours plus noise, Wh"),
    ("mean_kwh", pa.float64(), "noisy_sum_wh / households / 1000, kWh"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
    ("published_on", pa.date32(), "UTC date of first publication"),
    ("epsilon", pa.float64(), "loss of the release, all its half-hours together, about one household's day [-]"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
DAILY_COVERAGE = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("revision", pa.int32(), "0: days are released once"),
    ("households", pa.int64(), "households on the roster that day, of the group"),
    ("usable_noisy", pa.int64(), "what was drawn: how many of these have a usable day, plus noise"),
    ("noise_sd", pa.float64(), "standard deviation of the noise of usable_noisy, households"),
    ("coverage", pa.float64(), "usable_noisy / households, below 0 or above 1 where the noise is [-]"),
    ("low", pa.float64(), "lower end of the noise interval of coverage [-]"),
    ("high", pa.float64(), "upper end of the noise interval of coverage [-]"),
    ("published_on", pa.date32(), "UTC date of first publication"),
    ("epsilon", pa.float64(), "loss of the release about one household's day [-]"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
PROFILE_RELEASES = schema_of(
    ("day", pa.date32(), "last day of the month that the row covers"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("day_kind", _TEXT, "weekday: Monday to Friday, public holidays among them; or weekend: Saturday and Sunday"),
    ("start_minute", pa.int32(), "when the half-hour begins: minutes after midnight by the clock of the day's zone"),
    ("minutes", pa.int32(), "how long it is: 30, or 60 for hourly readings"),
    ("revision", pa.int32(), "0: months are released once"),
    ("first_day", pa.date32(), "first day that the row covers"),
    ("days_of_kind", pa.int32(), "days of this kind in the month"),
    ("minutes_in_period", pa.int32(), "how long the half-hour is on all these days together"),
    ("household_days", pa.int64(), "households on the roster, added over the days of this kind"),
    ("weight", pa.int32(), "how often a half-hour counts: 2 on weekdays, 5 on weekends"),
    ("noisy_weighted_wh", pa.int64(), "what was drawn: weight x sum of the clamped half-hours, plus noise, Wh"),
    (
        "mean_kwh",
        pa.float64(),
        "noisy_weighted_wh / weight / household_days / 1000 x days_of_kind x minutes / minutes_in_period, kWh",
    ),
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
    ("published_on", pa.date32(), "UTC date of first publication"),
    ("epsilon", pa.float64(), "loss of the release about all days of one household that it covers [-]"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)
DAILY_AVERAGE_SMOOTHED = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", _TEXT, "series of the run file"),
    ("group_column", _TEXT, "column of the roster, or all: all households"),
    ("group", _TEXT, "all, or the group of the roster"),
    ("households", pa.int64(), "households on the roster that day; empty if no value was published"),
    ("published_kwh", pa.float64(), "published value, of a series in layers their sum, kWh; empty if there is none"),
    ("noise_sd_kwh", pa.float64(), "standard deviation of its noise, kWh; empty if no value was published"),
    ("estimate_kwh", pa.float64(), "archive estimate, from all rows of the release, kWh per household"),
    ("low_kwh", pa.float64(), "lower end of its 90 % interval, if the model is right, kWh"),
    ("high_kwh", pa.float64(), "upper end of its 90 % interval, if the model is right, kWh"),
    ("live_kwh", pa.float64(), "live estimate, never revised by later rows, kWh per household; empty if there is none"),
    ("live_low_kwh", pa.float64(), "lower end of its 90 % interval, if the model is right, kWh; empty if live_kwh is"),
    ("live_high_kwh", pa.float64(), "upper end of its 90 % interval, if the model is right, kWh; empty if live_kwh is"),
    ("version", pa.int32(), "how many contracts this population had by then"),
    ("layers", pa.int32(), "layers of a clamped mean that the value adds up; 1: no layers"),
    ("based_on", _TEXT, "series whose published values enter the estimate"),
    nullable=frozenset(("households", "published_kwh", "noise_sd_kwh", "live_kwh", "live_low_kwh", "live_high_kwh")),
)


def readings_schema(*, width: int, channels: int, units_per_wh: int = 1, has_labels: bool = False) -> pa.Schema:
    """Return the schema of the readings of a layout.

    Args:
        width: readings per row; above 1 a row is a day.
        channels: number of channels of a household.
        units_per_wh: parts of a watt-hour in which energies are stored.
        has_labels: whether a label tells the meters of a household apart.
    """
    if width > 1:
        return READINGS_WIDE
    schema = READINGS if channels == 1 else READINGS_CHANNELS
    if units_per_wh > 1:
        parts = schema_of(("energy_wh", pa.int32(), f"energy of the reading, 1/{units_per_wh} Wh")).field(0)
        schema = schema.set(schema.get_field_index("energy_wh"), parts)
    return schema.append(_LABEL) if has_labels else schema


def table_from_columns(schema: pa.Schema, **values: Any) -> pa.Table:  # noqa: ANN401  (any Arrow input)
    """Return a table of this schema from one array or sequence per column.

    Raises:
        ValueError: a column is missing or unknown.
    """
    if set(values) != set(schema.names):
        raise ValueError(f"columns {sorted(set(values) ^ set(schema.names))} missing or unknown")
    arrays = [_to_arrow_array(values[field.name], field.type) for field in schema]
    return pa.table(arrays, schema=schema)


def table_from_rows(schema: pa.Schema, lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a table of this schema from its rows, each with every column.

    Raises:
        KeyError: a row has no value for a column.
    """
    return table_from_columns(schema, **{name: [line[name] for line in lines] for name in schema.names})


def _to_arrow_array(value: Any, kind: pa.DataType) -> pa.Array:  # noqa: ANN401
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value.cast(kind)
    if isinstance(value, np.ndarray) and (pa.types.is_date32(kind) or value.dtype.kind in "iuf"):
        return arrow_numbers(value.astype(np.int32) if pa.types.is_date32(kind) else value).cast(kind)
    return pa.array(value, kind)
