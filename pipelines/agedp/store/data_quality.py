"""QUALITY, row counts by file and outcome, and the quarantine files of parsing. Confidential.

    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet   rows of this month that parsing rejected
    <confidential>/store/quarantine/<content>-<number>.parquet                 those without a valid month

Rows that parsing rejected are stored as text, so that their supplier can correct them. A text is one line, at most its
first 64 KiB; bytes that are not UTF-8 are replaced. Beside it are the household and the half-hour that the row names,
if both can be read: a first roster counts them as those of a kept row (`named_days`). A row without a half-hour names
its household, and its day if it lies between the half-hours or at a time that the zone skips: the preflight
counts them.

Decisions:

* Rows that parsing rejected are readings too, so they are stored by month and removed with it (`retention`): in one
  file they would remain as long as the newest row of a delivery that contains years.
* Readings that each day loses to conflicting rows: only months in which deduplication rejected conflicting rows
  are read again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.local_files import atomic_files
from agedp.store.daily_totals import deduplicate_month, words_of
from agedp.store.file_identity import IdentifiedFile
from agedp.store.month_reader import day_numbers, household_codes, load_part, rows_before
from agedp.store.store import Manifest, Part, PartMonth, Store, month_name, month_numbers
from agedp_data import table_schemas
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.layout import arrow_numbers
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Bytes, Flags, Ints, RejectionReason
from agedp_data.errors import UnreadableFile

_LINES: Final = b"agedp.lines"


def count_by_reason(reason: Ints | Bytes) -> dict[str, int]:
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
    rejected: Mapping[str, Mapping[str, int]],
    unreadable: Mapping[str, UnreadableFile],
) -> None:
    """Write the row counts of every listed file.

    Args:
        store: the confidential store.
        listed: the input files, in order; of equal files the first counts.
        manifests: the manifests of all files that count, in order.
        rejected: numbers of rows that deduplication rejected, by content id and reason.
        unreadable: the errors about listed files that were rejected as a whole.
    """
    lines: list[tuple[str, str, str, str, int]] = []
    seen: set[str] = set()
    for file in listed:
        content, rows_by_outcome = file.content, {"rows read": 0}
        name = os.fsencode(file.source.location).decode("utf-8", "backslashreplace")  # a name need not be UTF-8
        if content in seen:
            note = "same bytes as an earlier input, ignored"
        elif content in unreadable:
            note = f"cannot be understood, set apart as a whole: {unreadable[content]}"
        else:
            manifest, extra = manifests[content], rejected.get(content, {})
            note = manifest.variant
            rows_by_outcome = {
                "rows read": manifest.rows_read,
                "kept": manifest.rows_kept - sum(extra.values()),
                **dict(sorted([*manifest.rejected.items(), *extra.items()])),
                **dict(sorted(manifest.notes.items())),
            }
        seen.add(content)
        lines += [(name, content, note, outcome, rows) for outcome, rows in rows_by_outcome.items()]
    path, digest = store.folder.parent / "quality.parquet", hashlib.sha256(json.dumps(lines).encode()).hexdigest()
    if atomic_files.read_metadata(path).get(_LINES) == digest.encode():  # the table has these lines already
        return
    columns = {name: [line[i] for line in lines] for i, name in enumerate(table_schemas.QUALITY.names)}
    table = table_schemas.table_from_columns(table_schemas.QUALITY, **columns)
    atomic_files.write_table(path, table.replace_schema_metadata({_LINES: digest.encode()}))


UNDATED = ""
_NO_MONTH = -1
_NAMED = [table_schemas.PARSED_QUARANTINE.field(name) for name in ("household_id", "day", "slot")]
_REJECTED = pa.schema(
    [("month", pa.int64()), ("row", pa.int64()), ("reason", pa.int64()), ("text", pa.string()), *_NAMED]
)


def rejected_rows(chunk: ParsedChunk, rows_before: int) -> pa.Table:
    """Return the rejected rows of a chunk: month (`UNDATED` without one), row, reason, text, and what the row names.

    Args:
        chunk: the parsed chunk.
        rows_before: number of rows of the part before it.
    """
    records, rejected, is_named = chunk.records, chunk.rejected_row, chunk.names_half_hour
    day, slot = np.divmod(records.time[rejected], np.int32(SLOTS))
    reason = chunk.rejected_reason
    has_household = is_named | ((reason >= RejectionReason.DATE) & (reason != RejectionReason.LINE))
    # reasons up to DATE, and LINE, mean no valid day, unless the row names one, or a time that a clock skips
    has_day = is_named | (has_household & ((reason > RejectionReason.DATE) | (day > 1)))
    months = np.full(len(has_day), _NO_MONTH, np.int64)
    months[has_day] = month_numbers(day[has_day])
    numbers = (months, rejected + rows_before, chunk.rejected_reason.astype(np.int64))
    named_values = (has_household, records.household[rejected]), (has_day, day), (is_named, slot)
    household, day, slot = (
        pc.if_else(pc.equal(arrow_numbers(flags.astype(np.uint8)), 1), arrow_numbers(values), None)
        for flags, values in named_values
    )
    named = pa.array(records.ids, pa.string()).take(household), day.cast(pa.date32()), slot.cast(pa.uint8())
    texts = pa.array(chunk.rejected_text, pa.string())
    return pa.table([*map(arrow_numbers, numbers), texts, *named], schema=_REJECTED)


def rejected_rows_in_words(chunk: ParsedChunk) -> pa.Table:
    """Return the rejected rows of a chunk as a quarantine file has them."""
    rows = rejected_rows(chunk, 0)
    return rows.set_column(rows.schema.get_field_index("reason"), "reason", words_of(rows["reason"]))


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
    for month in pc.unique(rows["month"]).to_pylist():
        of_month = rows.filter(pc.equal(rows["month"], month))
        table = table_schemas.table_from_columns(
            table_schemas.PARSED_QUARANTINE,
            content=pa.repeat(content, of_month.num_rows),
            reason=words_of(of_month["reason"]),
            **{name: of_month[name] for name in ("row", "text", "household_id", "day", "slot")},
        )
        folder = atomic_files.make_private(
            store.quarantine_folder(UNDATED if month == _NO_MONTH else month_name(month))
        )
        atomic_files.write_table(folder / f"{content}-{number}.parquet", table)


def renumber_quarantine(store: Store, content: str, parts: Sequence[Part], *, written_as: str) -> None:
    """Number the rejected rows from the beginning of the file, once the rows of all earlier parts are counted.

    Call it exactly once for a file, before its manifest is written: a second call would add the numbers again.

    Args:
        store: the confidential store.
        content: the content id of the file.
        parts: the counts of all its parts, in order.
        written_as: the content id under which the rows were written: another one, if it was not known then.
    """
    rows_before = 0
    for number, part in enumerate(parts):
        if part.rejected and (rows_before or written_as != content):
            for path in rejected_rows_files(store, f"{written_as}-{number}.parquet"):
                rows = atomic_files.read_table(path, table_schemas.PARSED_QUARANTINE)
                values = {name: rows[name] for name in rows.column_names}
                values |= {"row": pc.add(rows["row"], rows_before), "content": pa.repeat(content, len(rows))}
                table = table_schemas.table_from_columns(table_schemas.PARSED_QUARANTINE, **values)
                atomic_files.write_table(path.with_name(f"{content}-{number}.parquet"), table)
                if written_as != content:
                    path.unlink()
        rows_before += part.rows_read


def rejected_rows_files(store: Store, name: str) -> list[Path]:
    """Return the files of this name with rejected rows without a month, and of those that parsing gave one."""
    undated = store.quarantine_folder(UNDATED)
    return [path for folder in (undated, *undated.glob("month=*")) if (path := folder / name).exists()]


_TIME_BITS = 32


@dataclass(frozen=True, slots=True)
class LostReadings:
    """Readings of one day: the number lost to conflicting rows, and the number that remain."""

    lost: int
    remaining: int

    @property
    def share(self) -> float:
        """Return the lost share of the day's readings.

        >>> LostReadings(5, 15).share
        0.25
        """
        return self.lost / (self.lost + self.remaining) if self.lost else 0.0

    def add(self, further: LostReadings) -> LostReadings:
        """Return the readings of these and of further households on the same day."""
        return LostReadings(self.lost + further.lost, self.remaining + further.remaining)


@dataclass(frozen=True, slots=True)
class ConflictingRows:
    """Half-hours (n) of households that they lose to conflicting rows.

    Attributes:
        household: code of each household.
        time: day since 1970 x 48 + slot; the first slot of a row of a day.
        in_one_file: whether rows of one file conflict.
    """

    household: Ints
    time: Ints
    in_one_file: Flags


def find_conflicting_rows(
    store: Store, month: str, contents: Sequence[str], code_by_id: Mapping[str, int], *, bucket: int = 0
) -> ConflictingRows:
    """Return the half-hours of a month and bucket that households lose to conflicting rows.

    The month is deduplicated if it is not yet.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order.
        code_by_id: codes of the households that count, usually the roster's; rows of all others are ignored.
        bucket: the household bucket.

    Raises:
        InputError: a file of the store disappeared in the meantime, or the system denies access.
    """
    file, row, reason = deduplicate_month(store, month, contents, bucket)
    conflicting = reason == RejectionReason.CONFLICT
    lost, of_files = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part in store.month_parts(month, contents, bucket) if conflicting.any() else ():
        rows = row[conflicting & (file == part.file_index)]
        lost.append(_rejected_keys(store, part, rows, code_by_id))
        of_files.append(np.full(len(lost[-1]), part.file_index))
    keys, of_file = np.concatenate(lost), np.concatenate(of_files)
    order = np.lexsort((of_file, keys))
    keys, of_file = keys[order], of_file[order]
    is_first = np.append(True, (keys[1:] != keys[:-1]) | (of_file[1:] != of_file[:-1]))[: len(keys)]
    starts = np.flatnonzero(is_first)
    rows_of_file = np.diff(np.append(starts, len(keys)))
    repeated = keys[starts][rows_of_file > max(1, INTERVAL_MINUTES // store.layout.interval_minutes)]
    distinct = np.unique(keys)
    return ConflictingRows(distinct >> _TIME_BITS, distinct & (2**_TIME_BITS - 1), np.isin(distinct, repeated))


def count_lost_readings(
    days: pa.Table, conflicts: ConflictingRows, code_by_id: Mapping[str, int], *, width: int
) -> dict[date, LostReadings]:
    """Return the readings that households lose to conflicting rows by day, also for days without a conflict.

    An alert about conflicts uses it.

    Args:
        days: the DAYS of a month and bucket.
        conflicts: the conflicting rows of both.
        code_by_id: codes of the households that count.
        width: readings of a row.
    """
    numbers, counts = np.unique(conflicts.time // SLOTS, return_counts=True)
    lost_by_day = dict(zip(numbers.tolist(), (counts * width).tolist(), strict=True))
    on_roster = household_codes(days, code_by_id) >= 0
    readings = days["readings"].to_numpy().astype(np.int64)[on_roster]
    distinct_days, day_index = np.unique(day_numbers(days)[on_roster], return_inverse=True)
    totals = np.bincount(day_index, weights=readings, minlength=len(distinct_days)).astype(int)
    remaining = dict(zip(distinct_days.tolist(), totals.tolist(), strict=True))
    return {
        date_of_day(day): LostReadings(lost_by_day.get(day, 0), remaining.get(day, 0))
        for day in sorted(lost_by_day | remaining)
    }


def _rejected_keys(store: Store, part: PartMonth, rows: Ints, code_by_id: Mapping[str, int]) -> Ints:
    """Return one key per household and time of the rejected rows of a part."""
    if len(rows) == 0:
        return np.zeros(0, np.int64)
    slots = ["slot"] if store.layout.width == 1 else []
    table = load_part(store, part, ["household_id", "day", "row", *slots])
    if store.meters is not None:
        table, _ = store.meters.households(table)
    number = table["row"].to_numpy() + rows_before(store, part)
    household, day = household_codes(table, code_by_id), day_numbers(table)
    slot = table["slot"].to_numpy().astype(np.int64) if slots else np.zeros(len(day), np.int64)
    is_selected = np.isin(number, rows) & (household >= 0)
    keys: Ints = (household[is_selected] << _TIME_BITS) | (day[is_selected] * SLOTS + slot[is_selected])
    return keys
