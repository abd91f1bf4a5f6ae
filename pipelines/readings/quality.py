"""QUALITY, row counts by file and outcome, and the quarantine file of deduplication. Confidential."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.errors import UnreadableFile
from agedp_data.readers.layout import Ints, RejectionReason
from pipelines import folders
from pipelines.readings.days import RejectedRows
from pipelines.readings.manifest import Manifest
from pipelines.readings.opening import IdentifiedFile
from pipelines.readings.store import Store


def count_by_reason(reason: Ints) -> dict[str, int]:
    """Return the number of rejected rows for each reason."""
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
    names = tables.QUALITY.names
    table = tables.table_from_columns(
        tables.QUALITY, **{name: [line[i] for line in lines] for i, name in enumerate(names)}
    )
    folders.write_table(store.folder.parent / "quality.parquet", table)
    folders.write_table(
        store.folder.parent / "quarantine_settled.parquet", _quarantine_table(contents, file, row, reason)
    )


def _count_by_outcome(manifest: Manifest, extra: Mapping[str, int]) -> dict[str, int]:
    rows_kept = manifest.kept - sum(extra.values())
    rejected = dict(sorted([*manifest.rejected.items(), *extra.items()]))
    return {"rows read": manifest.rows_read, "kept": rows_kept, **rejected, **dict(sorted(manifest.notes.items()))}


def _quarantine_table(contents: Sequence[str], file: Ints, row: Ints, reason: Ints) -> pa.Table:
    return tables.table_from_columns(
        tables.QUARANTINE,
        content=pa.array(contents, pa.string()).take(pa.array(file)),
        row=row,
        reason=pa.array([rejection_reason.words for rejection_reason in RejectionReason], pa.string()).take(
            pa.array(reason)
        ),
        text=pa.array([""], pa.string()).take(pa.array(np.zeros(len(row), np.int64))),
    )
