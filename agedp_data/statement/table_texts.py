"""Section of STATEMENT.md on the published tables: file, rows and columns of each kind of series in the contract.

The columns and their descriptions are those of the schemas by which the tables are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from agedp_data import table_schemas
from agedp_data.config.contract_document import Contract, SeriesTerms
from agedp_data.roster import columns_of
from agedp_data.series.layers import layer_number
from agedp_data.statement.datapackage import table_dictionary

_MEANS: Final = "daily_averages", "day and group", table_schemas.DAILY_AVERAGES
_LAYERS: Final = "daily_average_layers", "day, group and upper layer", table_schemas.DAILY_AVERAGE_LAYERS
_PERIODS: Final = "period_releases", "period and group", table_schemas.PERIOD_RELEASES
_BY_STATISTIC: Final = {
    "distribution": ("daily_distribution", "day, group and range of use", table_schemas.DAILY_DISTRIBUTION),
    "profile": ("daily_profile", "day, group and time of day", table_schemas.DAILY_PROFILE),
    "coverage": ("daily_coverage", "day and group", table_schemas.DAILY_COVERAGE),
}
_PROFILE_MONTHS: Final = (
    "profile_releases",
    "month, group, kind of day and time of day",
    table_schemas.PROFILE_RELEASES,
)
_LEVEL: Final = "`level`: column of the roster that divides the groups; take one level before adding groups up."
_FURTHER: Final = (
    "Further series of the same kind have files that end with their name, such as `{file}_NAME.parquet`. In a folder "
    "by month each table is a folder whose name ends with the series. `datapackage.json` describes all files and "
    "columns. Tables of weeks, months, years, quantiles and consistent groups follow from the released values alone."
)


def table_paragraphs(contract: Contract) -> list[str]:
    """Return how to read each published table, and where the others are described."""
    kinds = {kind[0]: kind for name, series in sorted(contract.series.items()) for kind in _kinds(name, series)}
    has_levels = any(len(columns_of(series.by)) > 1 for series in contract.series.values())
    paragraphs = []
    for file, rows, schema in kinds.values():
        columns = [*_column_lines(schema), *([_LEVEL] if has_levels else [])]
        paragraphs.append(f"`{file}.parquet` has a row for each {rows}:\n\n" + "\n".join(f"* {c}" for c in columns))
    return [*paragraphs, _FURTHER.format(file=next(iter(kinds)))]


def _kinds(name: str, series: SeriesTerms) -> Iterator[tuple[str, str, pa.Schema]]:
    if series.every not in (None, "day"):
        yield _PROFILE_MONTHS if series.statistic == "profile" else _PERIODS
    elif layer_number(name) > 1:
        yield _LAYERS
    elif series.statistic == "mean":
        yield _MEANS
    else:
        yield _BY_STATISTIC[series.statistic]


def _column_lines(schema: pa.Schema) -> Iterator[str]:
    for field in table_dictionary(schema)["fields"]:
        unit = f" [{field['unit']}]" if field.get("unit", "1") != "1" else ""
        description = field["description"].removesuffix(" [-]").removesuffix(f", {field.get('unit')}")
        yield f"`{field['name']}`{unit}: {description}."
