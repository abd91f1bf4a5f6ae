"""The project's own reading of lines, without the store: chunks parsed, settled together, every row accounted for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np

from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows, join_rows
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.validation import ReadingRules, RejectionReason

RULES = ReadingRules()


@dataclass
class Settled:
    """Rows read, kept and rejected, and Wh by household and half-hours since 1970."""

    rows: int
    rows_kept: int
    rows_rejected: int
    readings: dict[tuple[str, int], int]


def step(day: date, slot: int = 0) -> int:
    """Return the half-hours since 1970."""
    return (day - date(1970, 1, 1)).days * 48 + slot


def parse(layout: Layout, header: str, *rows: str | bytes, rules: ReadingRules = RULES) -> ParsedChunk:
    """Parse rows under a header line that the layout must recognise."""
    found = layout.recognise([header, *(row if isinstance(row, str) else row.decode("latin-1") for row in rows)])
    assert found is not None
    data = b"\n".join(row.encode() if isinstance(row, str) else row for row in rows)
    return parse_lines(data, layout=layout, header=found, rules=rules)


def reasons(parsed: ParsedChunk) -> list[RejectionReason]:
    return [RejectionReason(code) for code in parsed.records.reason.tolist()]


def settle(layout: Layout, rules: ReadingRules, *files: Iterable[ParsedChunk]) -> Settled:
    """Return what the chunks of files say together."""
    ids: dict[str, int] = {}
    parts, rows, rejected = [], 0, 0
    for file, chunks in enumerate(files):
        offset = 0
        for chunk in chunks:
            records = chunk.records
            assert len(chunk.rejected_text) == len(chunk.rejected_row) == len(chunk.rejected_reason)
            assert len(records.reason) == len(chunk.row)
            kept = np.flatnonzero(records.reason == RejectionReason.KEPT)
            codes = np.array([ids.setdefault(text, len(ids)) for text in records.ids] or [0], np.int64)
            time = records.day[kept] * 48 + records.slot[kept]
            who, number = codes[records.household[kept]], chunk.row[kept] + offset
            parts.append(
                StoredRows((), who, records.channel[kept], time, 0 * time + file, number, records.energy_wh[kept])
            )
            offset += chunk.rows_read
            rejected += len(chunk.rejected_row) + reasons(chunk).count(RejectionReason.CATEGORY)
        rows += offset
    stored = join_rows(tuple(ids), parts, width=layout.width)
    found = deduplicate_rows(stored, complete_channels=layout.complete_channels(rules))
    late = len(found.rejected_row)
    triples = zip(found.household.tolist(), found.time.tolist(), found.energy_wh.tolist(), strict=True)
    readings = {(found.ids[code], time): wh for code, time, wh in triples}
    return Settled(rows, len(stored.time) - late, rejected + late, readings)
