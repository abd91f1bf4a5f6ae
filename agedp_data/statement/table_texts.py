"""Section of STATEMENT.md on the published tables: file, rows and columns of each kind of series in the contract.

The columns and their descriptions are those of the schemas by which the tables are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from agedp_data.config.contract_document import ContractDocument
from agedp_data.roster import columns_of
from agedp_data.statement.datapackage import table_dictionary

_LEVEL: Final = "`level`: column of the roster that divides the groups; take one level before adding groups up."
_FURTHER: Final = (
    "Further series of the same kind have files that end with their name, such as `{file}_NAME.parquet`. In a folder "
    "by month each table is a folder whose name ends with the series. `datapackage.json` describes all files and "
    "columns. Tables of weeks, months, years, quantiles and consistent groups follow from the released values alone."
)


def table_paragraphs(contract: ContractDocument) -> list[str]:
    """Return how to read each published table, and where the others are described."""
    kinds = {table.file: table for _, series in sorted(contract.series.items()) for table in [series.parse().table]}
    has_levels = any(len(columns_of(series.by)) > 1 for series in contract.series.values())
    paragraphs = []
    for file, table in kinds.items():
        columns = "\n".join(
            f"* {column}" for column in [*_column_lines(table.schema), *([_LEVEL] if has_levels else [])]
        )
        paragraphs.append(f"`{file}.parquet` has a row for each {table.line_of}:\n\n{columns}")
    return [*paragraphs, _FURTHER.format(file=next(iter(kinds)))]


def _column_lines(schema: pa.Schema) -> Iterator[str]:
    for field in table_dictionary(schema)["fields"]:
        unit = f" [{field['unit']}]" if field.get("unit", "1") != "1" else ""
        description = field["description"].removesuffix(" [-]").removesuffix(f", {field.get('unit')}")
        yield f"`{field['name']}`{unit}: {description}."
