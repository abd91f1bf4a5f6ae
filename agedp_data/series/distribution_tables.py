"""Published tables of distributions: households by range of use, and the quantiles that follow from the counts.

*Quantiles* and the peak of the households' daily use are functions of the released counts alone, so they add no privacy
loss, and verification computes them again. The mathematics is in `histogram_quantiles`: a least-squares fit, and ranges
that the counts do not contradict. Example: with 5,000 households, 10 ranges of use and noise of scale 20 the intervals
of the median and of the shares .9 and .99 are one or two ranges each.

Decisions:

* The shares are those of a box plot with the usual upper tail, .1 .25 .5 .75 .9 .95 .99, and 1: the largest use. Of the
  largest use only the lower end says something: so much was used by some household.
* The interval of each quantile has the coverage of the daily averages; all together hold less often.
* A row is a share, so that a plot or a query takes one column for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp_data import table_schemas
from agedp_data.series.histogram_quantiles import Integers, QuantileRanges, noisy_counts, quantile_ranges
from agedp_data.series.result_table import (
    NOISE_TEXT,
    Chart,
    Columns,
    ContractTerms,
    DerivedTable,
    Noise,
    PublishedRow,
    ResultTable,
    Terms,
    Unit,
    released,
)
from agedp_data.table_schemas import TEXT, released_schema, schema_of

SHARES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)

_DAILY_DISTRIBUTION = released_schema(
    ("bin_low_kwh", pa.float64(), "a household's use that day was at least this, kWh"),
    ("bin_high_kwh", pa.float64(), "and less than this, or just this where it is the clamp, kWh"),
    ("households_noisy", pa.int64(), "what was drawn: how many households, plus noise"),
    ("noise_sd", pa.float64(), "standard deviation of the noise of households_noisy, households"),
    loss="loss of the release, all its cells together, about one household's day",
)

_DAILY_QUANTILES = schema_of(
    ("day", pa.date32(), "day of the data"),
    ("series", TEXT, "series of the run file whose counts the value follows from"),
    ("group_column", TEXT, "column of the roster, or all: all households"),
    ("group", TEXT, "all, or the group of the roster"),
    ("share", pa.float64(), "share of the households that used this or less; 1: the largest use [-]"),
    ("households", pa.int64(), "households on the roster that day"),
    ("value_kwh", pa.float64(), "estimate, interpolated in a range of use, kWh"),
    ("low_kwh", pa.float64(), "lower end of the interval, the edge of a range of use, kWh"),
    ("high_kwh", pa.float64(), "upper end of the interval, the edge of a range of use, kWh; the clamp: this or more"),
    ("version", pa.int32(), "how many contracts this population had by then"),
)


def _lines(row: PublishedRow, terms: ContractTerms, noise: Noise) -> Columns:
    cells: Any = terms.series[row.series].read_cells(row.cells)
    return {
        "group": [cell.group for cell in cells],
        "bin_low_kwh": [float(cell.place[0]) for cell in cells],
        "bin_high_kwh": [float(cell.place[1]) for cell in cells],
        "households_noisy": row.values,
        "noise_sd": [noise.deviation(row.scale)] * len(cells),
    }


DISTRIBUTIONS: Final = ResultTable(
    "daily_distribution",
    _DAILY_DISTRIBUTION,
    "day, group and range of use",
    f"number of households by day and range of use, {NOISE_TEXT}",
    _lines,
    Chart("households_noisy", unit="households"),
)


def _units(rows: Sequence[PublishedRow], terms: Terms) -> list[Unit]:
    """Return each released row of counts, by day and series."""
    of_day = [(date.fromisoformat(row.day), row) for row, _ in released(rows, terms, QUANTILES)]
    units = [Unit(day, day, row.series, (), (row,)) for day, row in of_day]
    return sorted(units, key=lambda unit: (unit.first_day, unit.series))


def _quantiles(units: Sequence[Unit], terms: Terms, noise: Noise) -> pa.Table:
    """Return the quantiles of all releases: groups one after the other, each with its shares."""
    rows = [row for unit in units for row in unit.rows]
    series: list[Any] = [terms[row.contract].series[row.series] for row in rows]
    groups = [tuple(of.by_group(row.cells, row.households)) for row, of in zip(rows, series, strict=True)]
    ranges = [_ranges(*of, noise) for of in zip(rows, series, groups, strict=True)]
    lines = np.array([len(names) * len(SHARES) for names in groups], np.int64)
    names = [name for of_row in groups for name in of_row]
    return table_schemas.table_from_columns(
        _DAILY_QUANTILES,
        day=np.array([row.day for row in rows], "datetime64[D]").astype(np.int32).repeat(lines),
        series=_repeated([row.series for row in rows], lines),
        group_column=_repeated([of.level for of in series], lines),
        group=_repeated(names, np.full(len(names), len(SHARES))),
        share=np.tile(SHARES, len(names)),
        households=_joined([members for members, _ in ranges]).astype(np.int64).repeat(len(SHARES)),
        value_kwh=_joined([of.value_kwh for _, of in ranges]),
        low_kwh=_joined([of.low_kwh for _, of in ranges]),
        high_kwh=_joined([of.high_kwh for _, of in ranges]),
        version=np.array([terms[row.contract].version for row in rows], np.int32).repeat(lines),
    )


def _ranges(
    row: PublishedRow,
    distribution: Any,  # noqa: ANN401
    groups: Sequence[str],
    noise: Noise,
) -> tuple[Integers, QuantileRanges]:
    """Return the households of each group, shape (groups,), and the quantiles, shape (groups, shares)."""
    shape = len(groups), -1
    households = np.array(row.households, np.int64).reshape(shape)[:, 0]
    noisy = noisy_counts(
        np.array(row.values, np.int64).reshape(shape),
        households=households,
        edges_kwh=[float(edge) for edge in distribution.bins_kwh],
        scale=row.scale,
        form=distribution.form,
    )
    return households, quantile_ranges(noisy, SHARES, coverage=noise.coverage)


def _repeated(texts: Sequence[str], times: Integers) -> pa.Array:
    """Return texts, each repeated so many times."""
    codes = pa.array(texts, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array(codes.indices.to_numpy().repeat(times)), codes.dictionary)


def _joined(arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)


QUANTILES: Final = DerivedTable(
    "daily_quantiles",
    _DAILY_QUANTILES,
    of="quantiles of the released counts",
    about="quantiles of the households' daily use",
    description="quantiles of the households' daily use with an interval for the noise: computed from the released "
    "counts and nothing else; the share 1 is the largest use, of which only the lower end says something",
    source="distribution",
    span="day",
    units=_units,
    lines=_quantiles,
    order=("day", "series"),
    rounded=("value_kwh",),
)
