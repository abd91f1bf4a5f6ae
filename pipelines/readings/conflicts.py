"""How many readings each day of a month loses because rows disagree about them. Confidential.

Only a month in which deduplication rejected such rows is looked at again, so that a month without conflicts costs
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa

from agedp_data.errors import InputError
from agedp_data.readers.layout import SLOTS, Ints, RejectionReason
from pipelines.readings.days import read_days, settle_month
from pipelines.readings.months import load
from pipelines.readings.store import PartMonth, Store, day_of

_TIME_BITS = 32


@dataclass(frozen=True, slots=True)
class LostReadings:
    """Readings of one day: how many conflicting rows cost, and how many were kept."""

    lost: int
    kept: int

    @property
    def share(self) -> float:
        """Return which share of the day's readings was lost.

        >>> LostReadings(5, 15).share
        0.25
        """
        return self.lost / (self.lost + self.kept) if self.lost else 0.0


def lost_to_conflicts(
    store: Store, month: str, contents: Sequence[str], households: Collection[str]
) -> dict[date, LostReadings]:
    """Return, for each day of a month that lost readings of these households to conflicts, how many."""
    file, row, reason = settle_month(store, month, contents)
    conflicting = reason == RejectionReason.CONFLICT
    if not conflicting.any():
        return {}
    place = {household: code for code, household in enumerate(sorted(households))}
    lost = [
        _keys(store, month, piece, row[conflicting & (file == piece.place)], place)
        for piece in store.pieces(month, contents)
    ]
    days, counts = np.unique((np.unique(np.concatenate(lost)) & (2**_TIME_BITS - 1)) // SLOTS, return_counts=True)
    kept = _kept(read_days(store, month, contents), place)
    width = store.layout.width
    return {
        day_of(day): LostReadings(int(count) * width, kept.get(int(day), 0))
        for day, count in zip(days.tolist(), counts.tolist(), strict=True)
    }


def _keys(store: Store, month: str, piece: PartMonth, rows: Ints, place: dict[str, int]) -> Ints:
    """Return one number per household and time of the rejected rows of a part."""
    if len(rows) == 0:
        return np.zeros(0, np.int64)
    manifest = store.manifest(piece.content)
    if manifest is None:
        raise InputError("the confidential store changed while it was read; run again")
    slots = ["slot"] if store.layout.width == 1 else []
    table = load(store.month(month) / piece.name, store.schema, columns=["household_id", "day", "row", *slots])
    number = table["row"].to_numpy() + manifest.first_row(piece.number)
    household = _codes(table, place)
    day = table["day"].cast(pa.int32()).to_numpy().astype(np.int64)
    slot = table["slot"].to_numpy().astype(np.int64) if slots else np.zeros(len(day), np.int64)
    wanted = np.isin(number, rows) & (household >= 0)
    keys: Ints = (household[wanted] << _TIME_BITS) | (day[wanted] * SLOTS + slot[wanted])
    return keys


def _codes(table: pa.Table, place: dict[str, int]) -> Ints:
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    known = np.array([place.get(household, -1) for household in column.dictionary.to_pylist()], np.int64)
    codes: Ints = known[column.indices.to_numpy()] if len(known) else np.zeros(0, np.int64)
    return codes


def _kept(days: pa.Table, place: dict[str, int]) -> dict[int, int]:
    """Return by day since 1970 how many readings of these households are kept."""
    known = _codes(days, place) >= 0
    day = days["day"].cast(pa.int32()).to_numpy().astype(np.int64)[known]
    readings = days["readings"].to_numpy().astype(np.int64)[known]
    distinct, where = np.unique(day, return_inverse=True)
    totals = np.bincount(where, weights=readings, minlength=len(distinct))
    return {int(each): int(total) for each, total in zip(distinct.tolist(), totals.tolist(), strict=True)}
