"""QUALITY and the quarantine of what settling set aside: which file holds what. For the house alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.errors import UnreadableFile
from agedp_data.readers.layout import Ints, RejectionReason
from pipelines import folders
from pipelines.readings.days import Aside
from pipelines.readings.manifest import Manifest
from pipelines.readings.opening import Identified
from pipelines.readings.store import Store


def by_reason(reason: Ints) -> dict[str, int]:
    """Return how many rows were set aside for each reason."""
    if len(reason) == 0:
        return {}
    codes, numbers = np.unique(reason, return_counts=True)
    return {RejectionReason(int(code)).words: int(number) for code, number in zip(codes, numbers, strict=True)}


def write_quality(
    store: Store,
    listed: Sequence[Identified],
    manifests: Mapping[str, Manifest],
    settled: Aside,
    unreadable: Mapping[str, UnreadableFile],
) -> None:
    """Write what every listed file holds, and which rows settling set aside.

    Args:
        store: the confidential store.
        listed: the input files, in order; of equal ones the first counts.
        manifests: of all files that count, in order.
        settled: rows that settling set aside; files by their place in `manifests`.
        unreadable: what is wrong with listed files that were set apart as a whole.
    """
    contents = list(manifests)
    place = {content: i for i, content in enumerate(contents)}
    file, row, reason = settled
    order = np.argsort(file, kind="stable")
    bounds = np.searchsorted(file[order], np.arange(len(contents) + 1))
    lines: list[tuple[str, str, str, str, int]] = []
    seen: set[str] = set()
    for one in listed:
        name = os.fsencode(one.source.location).decode("utf-8", "backslashreplace")  # a name need not be UTF-8
        if one.content in seen:
            lines.append((name, one.content, "same bytes as an earlier input, ignored", "rows read", 0))
            continue
        seen.add(one.content)
        if one.content in unreadable:
            note = f"cannot be understood, set apart as a whole: {unreadable[one.content]}"
            lines.append((name, one.content, note, "rows read", 0))
            continue
        at = place[one.content]
        extra = by_reason(reason[order[bounds[at] : bounds[at + 1]]])
        figures = _figures(manifests[one.content], extra)
        lines += [(name, one.content, manifests[one.content].variant, what, rows) for what, rows in figures.items()]
    names = tables.QUALITY.names
    table = tables.table_from_columns(
        tables.QUALITY, **{name: [line[i] for line in lines] for i, name in enumerate(names)}
    )
    folders.write_table(store.folder.parent / "quality.parquet", table)
    folders.write_table(store.folder.parent / "quarantine_settled.parquet", _quarantine(contents, file, row, reason))


def _figures(manifest: Manifest, extra: Mapping[str, int]) -> dict[str, int]:
    kept = manifest.kept - sum(extra.values())
    aside = dict(sorted([*manifest.aside.items(), *extra.items()]))
    return {"rows read": manifest.rows_read, "kept": kept, **aside, **dict(sorted(manifest.notes.items()))}


def _quarantine(contents: Sequence[str], file: Ints, row: Ints, reason: Ints) -> pa.Table:
    return tables.table_from_columns(
        tables.QUARANTINE,
        content=pa.array(contents, pa.string()).take(pa.array(file)),
        row=row,
        reason=pa.array([each.words for each in RejectionReason], pa.string()).take(pa.array(reason)),
        text=pa.array([""], pa.string()).take(pa.array(np.zeros(len(row), np.int64))),
    )
