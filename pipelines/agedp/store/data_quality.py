"""QUALITY, row counts by file and outcome, and the quarantine files of deduplication and of parsing. Confidential.

    <confidential>/quarantine_settled.parquet                                  rows that deduplication rejected
    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet   rows of this month that parsing rejected
    <confidential>/store/quarantine/<content>-<number>.parquet                 those without a valid month

Rows that parsing rejected are stored as text, so that their supplier can correct them. A text is one line, at most its
first 64 KiB; bytes that are not UTF-8 are replaced.

Decisions:

* Rows that parsing rejected are readings too, so they are stored by month and removed with it (`retention`): in one
  file they would remain as long as the newest row of a delivery that contains years.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.local_files import atomic_files
from agedp.store.daily_totals import RejectedRows
from agedp.store.file_identity import IdentifiedFile
from agedp.store.manifest import Manifest, Part
from agedp.store.store import Store, month_name, month_numbers
from agedp_data import table_schemas
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.validation import Ints, RejectionReason
from agedp_data.errors import UnreadableFile


def count_by_reason(reason: Ints) -> dict[str, int]:
    """Return the number of rejected rows for each reason.

    >>> count_by_reason(np.array([RejectionReason.CONFLICT] * 2)) == {RejectionReason.CONFLICT.words: 2}
    True
    """
    if len(reason) == 0:
        return {}
    codes, numbers = np.unique(reason, return_counts=True)
    return {RejectionReason(int(code)).words: int(number) for code, number in zip(codes, numbers, strict=True)}


def write_quality(
    store: Store,
    listed: Sequence[IdentifiedFile],
    manifests: Mapping[str, Manifest],
    rejected: RejectedRows,
    unreadable: Mapping[str, UnreadableFile],
) -> None:
    """Write the row counts of every listed file, and the rows that deduplication rejected.

    Args:
        store: the confidential store.
        listed: the input files, in order; of equal files the first counts.
        manifests: the manifests of all files that count, in order.
        rejected: rows that deduplication rejected; files by their index in `manifests`.
        unreadable: the errors about listed files that were rejected as a whole.
    """
    contents = list(manifests)
    index_by_content = {content: i for i, content in enumerate(contents)}
    file, row, reason = rejected
    order = np.argsort(file, kind="stable")
    bounds = np.searchsorted(file[order], np.arange(len(contents) + 1))
    lines: list[tuple[str, str, str, str, int]] = []
    seen: set[str] = set()
    for file_listed in listed:
        name = os.fsencode(file_listed.source.location).decode("utf-8", "backslashreplace")  # a name need not be UTF-8
        if file_listed.content in seen:
            lines.append((name, file_listed.content, "same bytes as an earlier input, ignored", "rows read", 0))
            continue
        seen.add(file_listed.content)
        if file_listed.content in unreadable:
            note = f"cannot be understood, set apart as a whole: {unreadable[file_listed.content]}"
            lines.append((name, file_listed.content, note, "rows read", 0))
            continue
        index = index_by_content[file_listed.content]
        extra = count_by_reason(reason[order[bounds[index] : bounds[index + 1]]])
        count_by_outcome = _count_by_outcome(manifests[file_listed.content], extra)
        lines += [
            (name, file_listed.content, manifests[file_listed.content].variant, outcome, rows)
            for outcome, rows in count_by_outcome.items()
        ]
    names = table_schemas.QUALITY.names
    table = table_schemas.table_from_columns(
        table_schemas.QUALITY, **{name: [line[i] for line in lines] for i, name in enumerate(names)}
    )
    atomic_files.write_table(store.folder.parent / "quality.parquet", table)
    atomic_files.write_table(
        store.folder.parent / "quarantine_settled.parquet", _quarantine_table(contents, file, row, reason)
    )


def _count_by_outcome(manifest: Manifest, extra: Mapping[str, int]) -> dict[str, int]:
    rows_kept = manifest.rows_kept - sum(extra.values())
    rejected = dict(sorted([*manifest.rejected.items(), *extra.items()]))
    return {"rows read": manifest.rows_read, "kept": rows_kept, **rejected, **dict(sorted(manifest.notes.items()))}


def _quarantine_table(contents: Sequence[str], file: Ints, row: Ints, reason: Ints) -> pa.Table:
    return table_schemas.table_from_columns(
        table_schemas.QUARANTINE,
        content=pa.array(contents, pa.string()).take(pa.array(file)),
        row=row,
        reason=pa.array([rejection_reason.words for rejection_reason in RejectionReason], pa.string()).take(
            pa.array(reason)
        ),
        text=pa.array([""], pa.string()).take(pa.array(np.zeros(len(row), np.int64))),
    )


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
    """Write the rejected rows of a part to the quarantine folder, one file for each month.

    Rows are numbered from the beginning of the part: the number of earlier rows of the file is known only after all
    parts are parsed. `renumber_quarantine` then adds it.
    """
    rows = pa.concat_tables([_REJECTED.empty_table(), *rejected])
    words = pa.array([reason.words for reason in RejectionReason], pa.string())
    for month in pc.unique(rows["month"]).to_pylist():
        of_month = rows.filter(pc.equal(rows["month"], month))
        table = table_schemas.table_from_columns(
            table_schemas.QUARANTINE,
            content=pa.repeat(content, of_month.num_rows),
            row=of_month["row"],
            reason=words.take(of_month["reason"]),
            text=of_month["text"],
        )
        folder = atomic_files.make_private(
            store.quarantine_folder(UNDATED if month == _NO_MONTH else month_name(month))
        )
        atomic_files.write_table(folder / f"{content}-{number}.parquet", table)


def renumber_quarantine(store: Store, content: str, parts: Sequence[Part]) -> None:
    """Number the rejected rows from the beginning of the file, once the rows of all earlier parts are counted.

    Call it exactly once for a file, before its manifest is written: a second call would add the numbers again.

    Args:
        store: the confidential store.
        content: the content id of the file.
        parts: the counts of all its parts, in order.
    """
    rows_before = 0
    for number, part in enumerate(parts):
        if rows_before and part.rejected:
            for path in _part_files(store, f"{content}-{number}.parquet"):
                table = atomic_files.read_table(path, table_schemas.QUARANTINE)
                row = pc.add(table["row"], rows_before)
                atomic_files.write_table(path, table.set_column(table.schema.get_field_index("row"), "row", row))
        rows_before += part.rows_read


def _part_files(store: Store, name: str) -> list[Path]:
    undated = store.quarantine_folder(UNDATED)
    return [path for folder in (undated, *undated.glob("month=*")) if (path := folder / name).exists()]
