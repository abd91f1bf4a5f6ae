"""The project's own reading of one file, without the store: as records of blocks, settled, with every row counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agedp.store.file_identity import read_header
from agedp_data.datasets import file_listing
from agedp_data.datasets.chunking import read_lines, split_into_chunks
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.layout import Header, Layout
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import ReadingRules, RejectionReason


@dataclass
class Found:
    """Rows read, kept and set aside, and the readings."""

    rows: int
    rows_kept: int
    rows_aside: int
    kept: dict[tuple[str, int], int]


def found_in(path: Path, dataset: str, rules: ReadingRules, *, block_bytes: int) -> Found:
    """Read one file as the project does, in blocks."""
    layout = layout_of(dataset, rules.columns)
    source = file_listing.list_input_files([str(path)]).sources[0]
    header, data_start = read_header(source, layout)
    if header is None:
        return Found(0, 0, 0, {})
    blocks = split_into_chunks(source, start=data_start, chunk_bytes=block_bytes)
    return found_of(
        (data for block in blocks for data in read_lines(block, batch_bytes=block_bytes)), layout, header, rules
    )


def found_of(stretches: Iterable[bytes], layout: Layout, header: Header, rules: ReadingRules) -> Found:
    """Read stretches of whole lines as the project does, every row accounted for."""
    parts, rows, aside = [], 0, 0
    for data in stretches:
        found = parse_lines(data, layout=layout, header=header, rules=rules)
        assert len(found.rejected_text) == len(found.rejected_row) == len(found.rejected_reason)
        assert len(found.records.reason) == len(found.row)
        parts.append((rows, found))
        quiet = int((found.records.reason == RejectionReason.CATEGORY).sum())
        rows, aside = rows + found.rows_read, aside + len(found.rejected_row) + quiet
    stored = _stored(parts, layout.width)
    readings = deduplicate_rows(stored, complete_channels=layout.complete_channels(rules))
    triples = zip(readings.household.tolist(), readings.time.tolist(), readings.energy_wh.tolist(), strict=True)
    kept = {(readings.ids[code], time): wh for code, time, wh in triples}
    late = len(readings.rejected_row)
    return Found(rows, len(stored.time) - late, aside + late, kept)


def _stored(parts, width: int) -> StoredRows:
    """The kept rows of all blocks."""
    ids: dict[str, int] = {}
    columns: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(4)]
    energy = [np.zeros((0, width), np.int64)]
    for offset, found in parts:
        records = found.records
        kept = np.flatnonzero(records.reason == RejectionReason.KEPT)
        codes = np.array([ids.setdefault(text, len(ids)) for text in records.ids], np.int64)
        for column, values in zip(
            columns,
            (
                codes[records.household[kept]] if len(kept) else kept,
                records.channel[kept],
                records.day[kept] * 48 + records.slot[kept],
                found.row[kept] + offset,
            ),
            strict=True,
        ):
            column.append(values)
        energy.append(records.energy_wh[kept])
    household, channel, time, row = (np.concatenate(column) for column in columns)
    return StoredRows(tuple(ids), household, channel, time, np.zeros_like(row), row, np.concatenate(energy))
