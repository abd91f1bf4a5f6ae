"""Readings that each day of a month loses to conflicting rows. Confidential.

Only months in which deduplication rejected conflicting rows are read again; all other months cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa

from agedp.store.daily_totals import deduplicate_month, read_daily_totals
from agedp.store.month_reader import load_table
from agedp.store.store import PartMonth, Store
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import SLOTS, Ints, RejectionReason
from agedp_data.errors import InputError

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


def count_lost_to_conflicts(
    store: Store, month: str, contents: Sequence[str], households: Collection[str]
) -> dict[date, LostReadings]:
    """Return the lost readings of each day of a month on which households lose readings to conflicting rows.

    An alert about conflicts uses it. The month is deduplicated if it is not yet.

    Args:
        store: the confidential store.
        month: the month, as in its folder.
        contents: the content ids of the files, in order.
        households: the ids of the households that count, usually the roster's; rows of all others are ignored.

    Returns:
        The number of lost and of remaining readings of these households; a day without a conflict is absent.

    Raises:
        InputError: a file of the store disappeared in the meantime, or the system denies access.
    """
    file, row, reason = deduplicate_month(store, month, contents)
    conflicting = reason == RejectionReason.CONFLICT
    if not conflicting.any():
        return {}
    code_by_id = {household: code for code, household in enumerate(sorted(households))}
    lost = [
        _rejected_keys(store, month, part, row[conflicting & (file == part.file_index)], code_by_id)
        for part in store.month_parts(month, contents)
    ]
    days, counts = np.unique((np.unique(np.concatenate(lost)) & (2**_TIME_BITS - 1)) // SLOTS, return_counts=True)
    remaining = _count_readings(read_daily_totals(store, month, contents), code_by_id)
    width = store.layout.width
    return {
        date_of_day(day): LostReadings(int(count) * width, remaining.get(int(day), 0))
        for day, count in zip(days.tolist(), counts.tolist(), strict=True)
    }


def _rejected_keys(store: Store, month: str, part: PartMonth, rows: Ints, code_by_id: dict[str, int]) -> Ints:
    """Return one key per household and time of the rejected rows of a part."""
    if len(rows) == 0:
        return np.zeros(0, np.int64)
    manifest = store.manifest(part.content)
    if manifest is None:
        raise InputError("the confidential store changed while it was read; run again")
    slots = ["slot"] if store.layout.width == 1 else []
    table = load_table(
        store.month_folder(month) / part.name, store.schema, columns=["household_id", "day", "row", *slots]
    )
    number = table["row"].to_numpy() + manifest.first_row(part.number)
    household = _codes(table, code_by_id)
    day = table["day"].cast(pa.int32()).to_numpy().astype(np.int64)
    slot = table["slot"].to_numpy().astype(np.int64) if slots else np.zeros(len(day), np.int64)
    is_selected = np.isin(number, rows) & (household >= 0)
    keys: Ints = (household[is_selected] << _TIME_BITS) | (day[is_selected] * SLOTS + slot[is_selected])
    return keys


def _codes(table: pa.Table, code_by_id: dict[str, int]) -> Ints:
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    code_by_index = np.array([code_by_id.get(household, -1) for household in column.dictionary.to_pylist()], np.int64)
    codes: Ints = code_by_index[column.indices.to_numpy()] if len(code_by_index) else np.zeros(0, np.int64)
    return codes


def _count_readings(days: pa.Table, code_by_id: dict[str, int]) -> dict[int, int]:
    """Return the number of kept readings of these households by day since 1970."""
    on_roster = _codes(days, code_by_id) >= 0
    day = days["day"].cast(pa.int32()).to_numpy().astype(np.int64)[on_roster]
    readings = days["readings"].to_numpy().astype(np.int64)[on_roster]
    distinct_days, day_index = np.unique(day, return_inverse=True)
    totals = np.bincount(day_index, weights=readings, minlength=len(distinct_days))
    return {
        int(day_number): int(total) for day_number, total in zip(distinct_days.tolist(), totals.tolist(), strict=True)
    }
