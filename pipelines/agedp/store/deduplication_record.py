"""Months of all files -> deduplicated groups of parts, and the numbers of rejected rows; done once for each group.

    <confidential>/store/days/month=2013-03/deduplicated.json    by bucket and group: rejected rows by file and reason

Groups in the record are not opened: a month in which nothing changed costs the reading of its record. A damaged or
missing record is written again from the stored tables, and missing tables are computed when they are read.

Only numbers reach the client: tasks write DAYS and the rejected rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.local_files.checksums import checked_json, read_checked_json
from agedp.local_files.internal_files import FileKind, read_content
from agedp.store.daily_totals import deduplicate_group
from agedp.store.day_groups import DayGroup, group_parts, planned_parts
from agedp.store.manifest import Manifest, part_spans
from agedp.store.store import Store
from agedp_data import table_schemas
from agedp_data.datasets.validation import RejectionReason

RejectedCounts = tuple[tuple[str, str, int], ...]
"""Numbers of rows that deduplication rejected: content id of the file, reason, rows."""
QUARANTINE_FILE: Final = "quarantine_settled.parquet"
_RECORD: Final = "deduplicated.json"
_SOURCE: Final = b"agedp.groups"


@dataclass(frozen=True, slots=True)
class MonthGroup:
    """A group of parts in a month and bucket: the unit of deduplication."""

    month: str
    bucket: int
    group: DayGroup


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """The groups of all months, in order, with the numbers of rejected rows of each."""

    groups: tuple[tuple[MonthGroup, RejectedCounts], ...]

    @property
    def rejected(self) -> dict[str, dict[str, int]]:
        """Return the number of rejected rows by file, as its content id, and reason."""
        totals: dict[str, dict[str, int]] = {}
        for _, counts in self.groups:
            for content, reason, rows in counts:
                of_file = totals.setdefault(content, {})
                of_file[reason] = of_file.get(reason, 0) + rows
        return totals


def deduplicate_months(
    store: Store, manifests: Mapping[str, Manifest], months: Sequence[str], *, engine: Engine
) -> Deduplicated:
    """Deduplicate months as far as the record does not contain their groups.

    Args:
        store: the confidential store.
        manifests: the manifests of all files that count, in order.
        months: the months, ascending.
        engine: how groups are deduplicated.

    Raises:
        InputError: the manifest of a file disappeared in the meantime, or the system denies access.
    """
    recorded = {month: _read_record(store, month) for month in months}
    groups = _month_groups(store, manifests, months)
    fresh = [item for item in groups if item.group.name not in recorded[item.month].get(item.bucket, {})]
    function = partial(_deduplicate, store=store, contents=tuple(manifests))
    for item, counts in zip(fresh, map_items("days", fresh, function=function, engine=engine), strict=True):
        recorded[item.month].setdefault(item.bucket, {})[item.group.name] = counts
    for month in sorted({item.month for item in fresh}):
        _write_record(store, month, recorded[month], [item for item in groups if item.month == month])
    return Deduplicated(tuple((item, recorded[item.month][item.bucket][item.group.name]) for item in groups))


def _month_groups(store: Store, manifests: Mapping[str, Manifest], months: Sequence[str]) -> list[MonthGroup]:
    spans = {content: part_spans(manifest) for content, manifest in manifests.items()}
    contents_by_month: dict[str, list[tuple[int, str]]] = {month: [] for month in months}
    for i, (content, manifest) in enumerate(manifests.items()):
        for month in manifest.months & contents_by_month.keys():
            contents_by_month[month].append((i, content))
    return [
        MonthGroup(month, bucket, group)
        for month, contents in contents_by_month.items()
        for bucket in range(store.buckets)
        for group in group_parts(store, month, planned_parts(manifests, contents, (month, bucket), store), spans)
    ]


def _deduplicate(item: MonthGroup, *, store: Store, contents: Sequence[str]) -> RejectedCounts:
    """Deduplicate a group; the unit of work, whose result has only numbers."""
    file, _, reason = deduplicate_group(store, item.month, item.group, item.bucket)
    pairs, numbers = np.unique(np.stack([file, reason]), axis=1, return_counts=True)
    return tuple(
        (contents[index], RejectionReason(code).words, number)
        for (index, code), number in zip(pairs.T.tolist(), numbers.tolist(), strict=True)
    )


_Record = dict[int, dict[str, RejectedCounts]]


def _record_path(store: Store, month: str) -> Path:
    return store.folder / "days" / f"month={month}" / _RECORD


def _read_record(store: Store, month: str) -> _Record:
    def parse(path: Path) -> _Record:
        record: dict[str, Any] = read_checked_json(path.read_bytes())["buckets"]
        return {
            int(bucket): {
                name: tuple((str(content), str(reason), int(rows)) for content, reason, rows in counts)
                for name, counts in groups.items()
            }
            for bucket, groups in record.items()
        }

    return read_content(_record_path(store, month), parse, FileKind.DERIVED, advice="").value or {}


def _write_record(store: Store, month: str, record: _Record, groups: Iterable[MonthGroup]) -> None:
    """Write the record of a month, without groups that do not count any more."""
    buckets: dict[str, dict[str, RejectedCounts]] = {}
    for item in groups:
        buckets.setdefault(str(item.bucket), {})[item.group.name] = record[item.bucket][item.group.name]
    path = _record_path(store, month)
    atomic_files.make_private(path.parent)
    atomic_files.write(path, checked_json({"buckets": buckets}))


def write_quarantine_of_months(store: Store, deduplicated: Deduplicated, contents: Sequence[str]) -> None:
    """Write the rows that deduplication rejected into one file, group by group, unless it has them already.

    Args:
        store: the confidential store.
        deduplicated: the groups of all months.
        contents: the content ids of all files, in order.
    """
    path = store.folder.parent / QUARANTINE_FILE
    items = [item for item, counts in deduplicated.groups if counts]
    source = json.dumps([(item.month, item.bucket, item.group.name) for item in items]).encode()
    digest = hashlib.sha256(source).hexdigest().encode()
    if atomic_files.read_metadata(path).get(_SOURCE) != digest:
        schema = table_schemas.QUARANTINE.with_metadata({_SOURCE: digest})
        atomic_files.write_tables(path, schema, _quarantine_tables(store, items, contents))


def _quarantine_tables(store: Store, items: Iterable[MonthGroup], contents: Sequence[str]) -> Iterator[pa.Table]:
    words = pa.array([reason.words for reason in RejectionReason], pa.string())
    names = pa.array(contents, pa.string())
    for item in items:
        file, row, reason = deduplicate_group(store, item.month, item.group, item.bucket)
        yield table_schemas.table_from_columns(
            table_schemas.QUARANTINE,
            content=names.take(pa.array(file)),
            row=row,
            reason=words.take(pa.array(reason)),
            text=pa.repeat("", len(row)),
        )
