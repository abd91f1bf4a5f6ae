"""Tables of a release folder with the layout "monthly" -> the tables that the layout "single" has, months together.

Rows, their order, columns and guarantee are the same. A series that got levels by an amendment has the column `level`
from then on; in the months before, it is filled in from their guarantees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.release_folder.parquet_limits import read_limited_schema, read_limited_table
from agedp.release_folder.partitions import MONTH_KEY, partition_path
from agedp.release_folder.result_tables import common_guarantee, read_guarantee, with_guarantee
from agedp_data.foreign_files import regular_file
from agedp_data.roster import ALL
from agedp_data.series.result_table import ResultTable
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES
from agedp_data.statement.document import Statement
from agedp_data.table_schemas import LEVEL

_DERIVED: Final = {table.file: table for table in DERIVED_TABLES}
_DEPTH: Final = "depth"
_MONTHLY_ONLY: Final = (MONTH_KEY, "first_row", "levels_by_version")


def kind_of(table: str) -> ResultTable | None:
    """Return the kind of the series that a table of a release is of, by its name; None for another name.

    >>> kind_of("daily_average_layers_use").file, kind_of("daily_quantiles")
    ('daily_average_layers', None)
    """
    return next((kind for kind in RESULT_TABLES if re.fullmatch(rf"{kind.file}(_.+)?", table)), None)


def tables_by_file(folder: Path, months: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the folder of partitions of each table by the file that it has in the layout "single".

    Args:
        folder: the release folder.
        months: by folder of partitions.

    Raises:
        OSError, LookupError, TypeError, ValueError: a file is missing or damaged.
    """
    files = {f"{table}.parquet": table for table in _DERIVED if table in months}
    for kind in RESULT_TABLES:
        of_kind = sorted(table for table in months if kind_of(table) is kind)
        first_rows = {table: _first_row(folder, table, months[table]) for table in of_kind}
        of_kind.sort(key=lambda table: (first_rows[table] or np.inf, table))
        files |= {f"{kind.file}.parquet" if not i else f"{table}.parquet": table for i, table in enumerate(of_kind)}
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
    if (derived := _DERIVED.get(table)) is not None:
        joined = _newest_lines(derived.line, pa.concat_tables([part.replace_schema_metadata() for part in ordered]))
        joined = _sorted(joined, derived.order)
    else:
        joined = _joined_series(ordered, guarantees)
    kept = {key: value for key, value in guarantees[-1].items() if key not in _MONTHLY_ONLY}
    guarantee = {**kept, **common_guarantee(statement)}
    return with_guarantee(joined, guarantee)


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


def _newest_lines(line: Sequence[str], joined: pa.Table) -> pa.Table:
    """Return a table without the lines that a later month replaced; `line` are the columns that name one."""
    if not line or not joined.num_rows:
        return joined
    lines = joined.select(line).append_column("number", pa.array(np.arange(joined.num_rows)))
    newest = lines.group_by([*line]).aggregate([("number", "max")])["number_max"].to_numpy()
    return joined if len(newest) == joined.num_rows else joined.take(pa.array(np.sort(newest)))


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])  # stable: months stay in their order
