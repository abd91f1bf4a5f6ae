"""Tables of a release folder with the layout "monthly" -> the tables that the layout "single" has, months together.

Rows, their order, columns and guarantee are the same. A series that got levels by an amendment has the column `level`
from then on; in the months before, it is filled in from their guarantees.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.release_folder.monthly_tables import DERIVED_TABLES
from agedp.release_folder.parquet_limits import read_limited_schema, read_limited_table
from agedp.release_folder.partitions import MONTH_KEY, partition_path
from agedp.release_folder.published_series import FILES
from agedp.release_folder.result_tables import METADATA_KEY, common_guarantee, read_guarantee
from agedp_data.foreign_files import regular_file
from agedp_data.roster import ALL
from agedp_data.statement.document import Statement
from agedp_data.table_schemas import LEVEL

_ORDER: Final = {
    "consistent_daily_averages": ("day",),
    "averages_by_week": ("first_day", "series", "version"),
    "averages_by_month": ("first_day", "series", "version"),
    "averages_by_year": ("first_day", "series", "version"),
    "profile_by_month": ("first_day", "series", "version"),
    "daily_quantiles": ("day", "series"),
}
_PERIOD_LINE: Final = ("first_day", "series", "group_column", "group", "version")
_PROFILE_LINE: Final = ("first_day", "series", "group_column", "group", "version", "day_kind", "start_minute")
_LINES: Final = {
    "averages_by_week": _PERIOD_LINE,
    "averages_by_month": _PERIOD_LINE,
    "averages_by_year": _PERIOD_LINE,
    "profile_by_month": _PROFILE_LINE,
}
"""What names a line of tables in which a later month may replace a line."""
_DEPTH: Final = "depth"
_MONTHLY_ONLY: Final = (MONTH_KEY, "first_row", "levels_by_version")


def kind_of(table: str) -> str | None:
    """Return the kind of the series that a folder of partitions is of, None for another name.

    >>> kind_of("daily_average_layers_use"), kind_of("daily_quantiles")
    ('daily_average_layers', None)
    """
    return next((file for file in FILES.values() if table.startswith(f"{file}_")), None)


def tables_by_file(folder: Path, months: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the folder of partitions of each table by the file that it has in the layout "single".

    Args:
        folder: the release folder.
        months: by folder of partitions.

    Raises:
        OSError, LookupError, TypeError, ValueError: a file is missing or damaged.
    """
    files = {f"{table}.parquet": table for table in DERIVED_TABLES if table in months}
    for kind in FILES.values():
        of_kind = sorted(table for table in months if kind_of(table) == kind)
        first_rows = {table: _first_row(folder, table, months[table]) for table in of_kind}
        of_kind.sort(key=lambda table: (first_rows[table] or np.inf, table))
        files |= {f"{kind}.parquet" if not i else f"{table}.parquet": table for i, table in enumerate(of_kind)}
    return files


def _first_row(folder: Path, table: str, months: Sequence[str]) -> int:
    """Return the number of the first ledger row of a series; 0 if it has none yet."""
    numbers = (int(read_guarantee(_schema(folder, table, month))["first_row"]) for month in months)
    return next(filter(None, numbers), 0)


def _schema(folder: Path, table: str, month: str) -> pa.Schema:
    path = partition_path(table, month)
    return read_limited_schema(regular_file(folder, path), path)


def read_months(folder: Path, table: str, months: Iterable[str], *, max_rows: int) -> dict[str, pa.Table]:
    """Return the stored tables of months.

    Raises:
        InputError: as `read_limited_table` and `regular_file`.
        OSError, pa.ArrowException: a missing or damaged file.
    """
    paths = {month: partition_path(table, month) for month in months}
    return {
        month: read_limited_table(regular_file(folder, path), path, max_rows=max_rows) for month, path in paths.items()
    }


def joined_table(table: str, parts: Mapping[str, pa.Table], statement: Statement) -> pa.Table:
    """Return the stored tables of months as the one that the layout "single" has.

    Args:
        table: name of the folder of partitions.
        parts: by month, at least one.
        statement: of the folder.

    Raises:
        LookupError, TypeError, ValueError: entries of a guarantee are missing.
    """
    ordered = [part for _, part in sorted(parts.items())]
    guarantees = [read_guarantee(part.schema) for part in ordered]
    if table in _ORDER:
        joined = _newest_lines(table, pa.concat_tables([part.replace_schema_metadata() for part in ordered]))
        joined = _sorted(joined, _ORDER[table])
    else:
        joined = _joined_series(ordered, guarantees)
    kept = {key: value for key, value in guarantees[-1].items() if key not in _MONTHLY_ONLY}
    guarantee = {**kept, **common_guarantee(statement)}
    return joined.replace_schema_metadata({METADATA_KEY: json.dumps(guarantee, sort_keys=True, ensure_ascii=True)})


def _joined_series(parts: Sequence[pa.Table], guarantees: Sequence[Mapping[str, Any]]) -> pa.Table:
    levels = {version: of for guarantee in guarantees for version, of in guarantee["levels_by_version"].items()}
    parts = [part.replace_schema_metadata() for part in parts]
    if not any(LEVEL.name in part.schema.names for part in parts):
        layer = ["layer"] if "layer" in parts[0].schema.names else []
        return _sorted(pa.concat_tables(parts), ["day", "revision", *layer])
    joined = pa.concat_tables([part if LEVEL.name in part.schema.names else _filled(part, levels) for part in parts])
    depths = {entry["level"]: entry["depth"] for of in levels.values() for entry in of.values()}
    codes = joined[LEVEL.name].to_pylist()
    joined = joined.append_column(_DEPTH, pa.array([depths[level] for level in codes], pa.int32()))
    return _sorted(joined, ["day", "revision", _DEPTH]).drop_columns(_DEPTH)


def _filled(part: pa.Table, levels: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> pa.Table:
    """Return a table of a series without levels with the column that it has since."""
    by_version = {version: next(iter(of.values()))["level"] for version, of in levels.items() if of}
    values = [by_version.get(str(version), ALL) for version in part["version"].to_pylist()]
    return part.add_column(part.schema.get_field_index("group") + 1, LEVEL, pa.array(values, LEVEL.type))


def _newest_lines(table: str, joined: pa.Table) -> pa.Table:
    """Return a table without the lines that a later month replaced."""
    if table not in _LINES or not joined.num_rows:
        return joined
    lines = joined.select(_LINES[table]).append_column("number", pa.array(np.arange(joined.num_rows)))
    newest = lines.group_by(list(_LINES[table])).aggregate([("number", "max")])["number_max"].to_numpy()
    return joined if len(newest) == joined.num_rows else joined.take(pa.array(np.sort(newest)))


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])  # stable: months stay in their order
