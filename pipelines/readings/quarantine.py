"""Rows that parsing set aside, as they stood in their files: for whoever asks a supplier to mend them.

    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet   rows of this month
    <confidential>/store/quarantine/<content>-<number>.parquet                 rows that do not say their month

They are readings too, so they lie by month and leave the store with it (`retention`): in one file they would stay as
long as the youngest row of a delivery that holds years.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from agedp_data import tables
from agedp_data.readers.layout import Reason
from agedp_data.readers.parse import Parsed
from pipelines import folders
from pipelines.readings.manifest import Part
from pipelines.readings.store import Store, month_name, month_of

UNDATED = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One row that was set aside: its month (`UNDATED` if it names none), its place in the part, why, its text."""

    month: str
    row: int
    reason: str
    text: str


def set_aside(block: Parsed, before: int) -> list[Line]:
    """Return the rows of a block that were set aside; `before` rows of the part come before it."""
    dated = block.aside_reason > Reason.DATE  # what comes before in precedence has no day that could be trusted
    months = [UNDATED] * len(dated)
    months_of = month_of(block.records.day[np.searchsorted(block.row, block.aside_row[dated])])
    names = {month: month_name(month) for month in np.unique(months_of).tolist()}
    for place, month in zip(np.flatnonzero(dated).tolist(), months_of.tolist(), strict=True):
        months[place] = names[month]
    rows = zip(months, block.aside_row.tolist(), block.aside_reason.tolist(), block.aside_text, strict=True)
    return [Line(month, row + before, Reason(reason).words, text) for month, row, reason, text in rows]


def write_quarantine(store: Store, content: str, number: int, lines: Sequence[Line]) -> None:
    """Write the rows of a part that were set aside, numbered from its beginning until `number_quarantined`."""
    by_month: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_month[line.month].append(line)
    for month, own in by_month.items():
        table = tables.columns(
            tables.QUARANTINE,
            content=[content] * len(own),
            row=[line.row for line in own],
            reason=[line.reason for line in own],
            text=[line.text for line in own],
        )
        folder = folders.make_private(store.quarantine(month))
        folders.write_table(folder / f"{content}-{number}.parquet", table)


def number_quarantined(store: Store, content: str, parts: Sequence[Part]) -> None:
    """Number the rows that were set aside from the beginning of the file, now that it is known what comes before."""
    before = 0
    for number, part in enumerate(parts):
        if before and part.aside:
            for path in _written(store, f"{content}-{number}.parquet"):
                table = folders.read_table(path, tables.QUARANTINE)
                row = pc.add(table["row"], before)
                folders.write_table(path, table.set_column(table.schema.get_field_index("row"), "row", row))
        before += part.rows_read


def _written(store: Store, name: str) -> list[Path]:
    undated = store.quarantine(UNDATED)
    return [path for folder in (undated, *undated.glob("month=*")) if (path := folder / name).exists()]
