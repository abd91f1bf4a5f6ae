"""Schemas of every table that is written, each declared once: columns, Arrow types, units and meaning.

`READINGS`, `DAYS`, `STATE_DAYS`, `QUALITY`, `QUARANTINE`, `PARSED_QUARANTINE`, `SUMS`, `TRUE_MEANS`, `TRUE_COUNTS`,
`COVERAGE`, `COUNTED_STATES`, `GOODNESS_OF_FIT` are confidential. Tables that are published are declared beside their
statistic, in `series`; `DAILY_AVERAGE_SMOOTHED` is computed from them by whoever has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp_data.datasets.layout import arrow_numbers
from agedp_data.datasets.validation import SLOTS

TEXT = pa.string()
_IDS = pa.dictionary(pa.int32(), pa.string())


def schema_of(*columns: tuple[str, pa.DataType, str], nullable: frozenset[str] = frozenset()) -> pa.Schema:
    """Return the schema of columns: name, type, meaning."""
    fields = (
        pa.field(name, kind, nullable=name in nullable, metadata={"description": text}) for name, kind, text in columns
    )
    return pa.schema(fields)


def released_schema(
    *columns: tuple[str, pa.DataType, str],
    places: tuple[tuple[str, pa.DataType, str], ...] = (),
    day: str = "day of the data",
    unit: str = "days",
    loss: str = "loss of the release about one household's day",
) -> pa.Schema:
    """Return the schema of a table of released rows: its own columns, and those that every such table has.

    Args:
        columns: what is released of a cell: name, type, meaning.
        places: columns that tell the cells of a group apart.
        day: meaning of the day.
        unit: what a row is released of, in the plural.
        loss: meaning of the loss.
    """
    return schema_of(
        ("day", pa.date32(), day),
        ("group", TEXT, "all, or the group of the roster"),
        *places,
        ("revision", pa.int32(), f"0: {unit} are released once"),
        *columns,
        ("published_on", pa.date32(), "UTC date of first publication"),
        ("epsilon", pa.float64(), f"{loss} [-]"),
        ("version", pa.int32(), "how many contracts this population had by then"),
    )


NOISE_COLUMNS: Final = (
    ("noise_sd_kwh", pa.float64(), "standard deviation of the noise of mean_kwh, kWh"),
    ("low_kwh", pa.float64(), "lower end of the noise interval, kWh"),
    ("high_kwh", pa.float64(), "upper end of the noise interval, kWh"),
)
"""Noise of a mean, in every table of means."""


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
    ("input", TEXT, "name of the input file"),
    ("content", TEXT, "content id: SHA-256 of the file and of the rules it was read under"),
    ("note", TEXT, "header recognised, or why the file was passed over"),
    ("what", TEXT, "rows read, kept, or set aside for this reason"),
    ("rows", pa.int64(), "number of input rows"),
)
QUARANTINE = schema_of(
    ("content", TEXT, "content id of the input file"),
    ("row", pa.int64(), "data row of the input file, from 0"),
    ("reason", TEXT, "why the row was set aside"),
    ("text", TEXT, "the row as it stood there; empty for duplicates and disagreements"),
)
PARSED_QUARANTINE = pa.schema(
    [
        *QUARANTINE,
        *schema_of(
            ("household_id", TEXT, "household that the row names; empty if it cannot be read"),
            ("day", pa.date32(), "day that the row names; empty if it names none"),
            ("slot", pa.uint8(), "first half-hour of the day that the row names, 0 to 47; empty if it names none"),
            nullable=frozenset(("household_id", "day", "slot")),
        ),
    ]
)
SUMS = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file"),
    ("cell", TEXT, "all, or the group; of a distribution with its range of use, kWh"),
    ("households", pa.int64(), "households on the roster, of the group"),
    ("usable", pa.int64(), "of these with a usable day"),
    ("clamped", pa.int64(), "of these above the clamp"),
    ("value", pa.int64(), "what noise is added to: the sum of the clamped days, Wh, or the households in the range"),
)
RELEASED_ROSTERS = schema_of(
    ("population", TEXT, "the people"),
    ("ledger", TEXT, "id of the ledger that draws"),
    ("day", pa.date32(), "day of the data"),
    ("rehearsal", pa.bool_(), "whether the ledger is a rehearsal's"),
    ("members", TEXT, "SHA-256 of who is counted; confidential"),
    ("groups", TEXT, "by group column in use, SHA-256 of who is in which group, JSON; confidential"),
    ("released", pa.bool_(), "whether the ledger was seen to hold the day"),
)
TRUE_MEANS = schema_of(
    ("population", TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file"),
    ("cell", TEXT, "all, or the group"),
    ("households", pa.int64(), "households on the roster"),
    ("true_mean_kwh", pa.float64(), "mean before noise, kWh"),
    ("released_mean_kwh", pa.float64(), "mean as released, kWh"),
)
TRUE_COUNTS = schema_of(
    ("population", TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file"),
    ("cell", TEXT, "range of use, kWh, behind its group if there are groups"),
    ("households", pa.int64(), "households on the roster, of the group"),
    ("true_households", pa.int64(), "of these in the range, before noise"),
    ("released_households", pa.int64(), "of these in the range, as released"),
)
COVERAGE = schema_of(
    ("population", TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file"),
    ("cell", TEXT, "all, or the group"),
    ("households", pa.int64(), "households on the roster"),
    ("usable", pa.int64(), "of these with a usable day"),
    ("clamped", pa.int64(), "of these above the clamp"),
)
COUNTED_STATES = schema_of(
    ("population", TEXT, "the people"),
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file"),
    ("cell", TEXT, "all, or the group"),
    ("households", pa.int64(), "households on the roster"),
    ("readings_kwh", pa.float64(), "mean of the households' days by their readings, before noise, kWh"),
    ("states_kwh", pa.float64(), "mean of the same days by their states, before noise, kWh"),
)
GOODNESS_OF_FIT = schema_of(
    ("household_id", _IDS, "household"),
    ("figure", TEXT, "chain of day totals; chain of half-hours"),
    ("days_apart", pa.int32(), "days from the one that was read to the one that is protected"),
    ("powers", pa.float64(), "largest total variation by powers of the chain [-]; NaN: none, or no chain"),
    ("direct", pa.float64(), "largest total variation, counted directly [-]; NaN: nothing to compare"),
    ("low", pa.float64(), "lower end of its interval (whole weeks drawn again) [-]; NaN: not computed"),
    ("high", pa.float64(), "upper end of its interval [-]; NaN: not computed"),
    ("floor", pa.float64(), "what such a count shows where nothing is remembered [-]; NaN: not computed"),
    ("checked", pa.bool_(), "whether powers and direct count were compared"),
    ("rejected", pa.bool_(), "whether the count exceeds the powers by more than the chain explains"),
)
LEVEL: pa.Field = schema_of(
    ("level", TEXT, "group column that divides the groups, of which coarser ones begin the group's path; all: none")
).field(0)
"""A column of the table of each series with levels, after the group: coarser levels of a day come first."""
DAILY_AVERAGE_SMOOTHED = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
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
    ("based_on", TEXT, "series whose published values enter the estimate"),
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
