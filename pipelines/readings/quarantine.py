"""Quarantine files: rows that parsing rejected, as text, so that their supplier can correct them.

A text is one line, at most its first 64 KiB; bytes that are not UTF-8 are replaced.

    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet   rows of this month
    <confidential>/store/quarantine/<content>-<number>.parquet                 rows without a valid month

They are readings too, so they are stored by month and removed with it (`retention`): in one file they would remain as
long as the newest row of a delivery that contains years.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data import tables
from agedp_data.readers.layout import RejectionReason
from agedp_data.readers.parse import ParsedChunk
from pipelines import folders
from pipelines.readings.manifest import Part
from pipelines.readings.store import Store, month_name, month_numbers

UNDATED = ""
_NO_MONTH = -1
_REJECTED = pa.schema([("month", pa.int64()), ("row", pa.int64()), ("reason", pa.int64()), ("text", pa.string())])


def rejected_rows(chunk: ParsedChunk, rows_before: int) -> pa.Table:
    """Return the rejected rows of a chunk: month (`UNDATED` without one), row, reason, text.

    Args:
        chunk: the parsed chunk.
        rows_before: number of rows of the part before it.
    """
    # reasons before CATEGORY, and LINE, mean that the row has no valid day
    dated = (chunk.rejected_reason > RejectionReason.DATE) & (chunk.rejected_reason != RejectionReason.LINE)
    months = np.full(len(dated), _NO_MONTH, np.int64)
    months[dated] = month_numbers(chunk.records.day[np.searchsorted(chunk.row, chunk.rejected_row[dated])])
    values = (months, chunk.rejected_row + rows_before, chunk.rejected_reason, chunk.rejected_text)
    arrays = [pa.array(value, kind) for value, kind in zip(values, _REJECTED.types, strict=True)]
    return pa.table(arrays, schema=_REJECTED)


def count_reasons(rejected: Sequence[pa.Table]) -> dict[str, int]:
    """Return the number of rejected rows for each reason."""
    counts = Counter(reason for table in rejected for reason in table["reason"].to_pylist())
    return {RejectionReason(reason).words: number for reason, number in counts.items()}


def write_quarantine(store: Store, content: str, number: int, rejected: Sequence[pa.Table]) -> None:
    """Write the rejected rows of a part, numbered from its beginning until `renumber_quarantine`."""
    rows = pa.concat_tables([_REJECTED.empty_table(), *rejected])
    words = pa.array([reason.words for reason in RejectionReason], pa.string())
    for month in pc.unique(rows["month"]).to_pylist():
        of_month = rows.filter(pc.equal(rows["month"], month))
        table = tables.table_from_columns(
            tables.QUARANTINE,
            content=pa.repeat(content, of_month.num_rows),
            row=of_month["row"],
            reason=words.take(of_month["reason"]),
            text=of_month["text"],
        )
        folder = folders.make_private(store.quarantine_folder(UNDATED if month == _NO_MONTH else month_name(month)))
        folders.write_table(folder / f"{content}-{number}.parquet", table)


def renumber_quarantine(store: Store, content: str, parts: Sequence[Part]) -> None:
    """Number the rejected rows from the beginning of the file, once the rows of all earlier parts are counted."""
    rows_before = 0
    for number, part in enumerate(parts):
        if rows_before and part.aside:
            for path in _part_files(store, f"{content}-{number}.parquet"):
                table = folders.read_table(path, tables.QUARANTINE)
                row = pc.add(table["row"], rows_before)
                folders.write_table(path, table.set_column(table.schema.get_field_index("row"), "row", row))
        rows_before += part.rows_read


def _part_files(store: Store, name: str) -> list[Path]:
    undated = store.quarantine_folder(UNDATED)
    return [path for folder in (undated, *undated.glob("month=*")) if (path := folder / name).exists()]
