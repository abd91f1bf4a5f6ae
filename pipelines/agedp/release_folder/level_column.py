"""Tables of one series each -> the table of a hierarchy, whose column `level` says which level a row is of.

Example: use/area and use/feeder have the rows of a day one after the other, "north" with the level "area" before
"north/F12" with the level "feeder".

Decisions:

* The table of a series without levels lacks the column, so the tables of earlier versions stay as they are.
* A table has the column from its first level on, also for the days before an amendment that began levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from agedp.release_folder.published_series import PublishedSeries
from agedp_data.ledger import ReleaseRecord
from agedp_data.roster import ALL, columns_of
from agedp_data.series.levels import level_column
from agedp_data.table_schemas import LEVEL

_DEPTH = "depth"


def with_level_column(
    series: PublishedSeries, rows: Sequence[ReleaseRecord], table_of: Callable[[Sequence[ReleaseRecord]], pa.Table]
) -> pa.Table:
    """Return the table of released rows, with the column `level` if the series ever had levels.

    Args:
        series: the table of the run file.
        rows: its released rows.
        table_of: returns the table of the rows of one level.
    """
    if not any(level_column(name) for of_contract in series.terms.values() for name in of_contract):
        return table_of(rows)
    by_level: dict[tuple[int, str], list[ReleaseRecord]] = {}
    for row in rows:
        by_level.setdefault(_level(row.series, series.terms[row.contract][row.series]), []).append(row)
    parts = [_with_constants(table_of(of_level), level, depth) for (depth, level), of_level in sorted(by_level.items())]
    table = pa.concat_tables([_with_constants(table_of([]), "", 0), *parts])
    order = [(name, "ascending") for name in ("day", "revision", _DEPTH)]
    return table.sort_by(order).drop_columns(_DEPTH)  # stable: within a level rows keep their order


def _level(series: str, terms: Mapping[str, Any]) -> tuple[int, str]:
    """Return the number of coarser columns and the column of a row's groups."""
    columns = columns_of(terms.get("by"))
    return len(columns), level_column(series) or (*columns, ALL)[0]


def _with_constants(table: pa.Table, level: str, depth: int) -> pa.Table:
    levels = pa.array([level] * table.num_rows, LEVEL.type)
    depths = pa.array([depth] * table.num_rows, pa.int32())
    return table.add_column(table.schema.get_field_index("group") + 1, LEVEL, levels).append_column(_DEPTH, depths)
