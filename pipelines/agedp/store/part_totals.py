"""Kept rows of a part -> PART_DAYS: the daily totals of its household-days, and its repeated or contradicting rows.

Rows of one channel that are sorted by household and time, as most files have them, are summed without a further sort;
only rows with a repeated time are deduplicated. All others are deduplicated as a whole.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from agedp.store.month_reader import daily_totals, distinct_keys, household_day_key, split_household_day_key
from agedp.store.part_rows import ParsedRows
from agedp.store.store import Store
from agedp_data import table_schemas
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows, whole_watt_hours
from agedp_data.datasets.layout import SINGLE_CHANNEL, Layout, arrow_numbers
from agedp_data.datasets.validation import SLOTS, Ints

_TIME_BITS = 32


def part_daily_totals(store: Store, rows: ParsedRows, names: pa.Array) -> pa.Table:
    """Return the daily totals of one part's rows: one line for each household-day with a row, even without a reading.

    The total of a household-day is a function of its rows: if no further part has rows of it, this total is final.
    """
    layout = store.layout
    complete_channels = layout.complete_channels(store.rules)
    deduplicate = partial(deduplicate_rows, complete_channels=complete_channels, units_per_wh=layout.units_per_wh)
    repeated = _repeated_rows(layout, rows)
    if repeated is None or SINGLE_CHANNEL[0] not in complete_channels:
        repeated = np.arange(len(rows.row))
        deduplicated = deduplicate(_stored_rows(rows, repeated))
        row_keys = _household_day_keys(rows, repeated)
        keys = distinct_keys(row_keys)
        energy, readings = daily_totals(deduplicated, keys)
        rejected_keys = row_keys[deduplicated.rejected_row]
    else:
        deduplicated = deduplicate(_stored_rows(rows, repeated))
        keys, energy, readings = sorted_daily_totals(rows, deduplicated.rejected_row, units_per_wh=layout.units_per_wh)
        rejected = deduplicated.rejected_row
        rejected_keys = _household_day_keys(rows, rejected)
    order = np.argsort(rejected_keys, kind="stable")
    offsets = arrow_numbers(np.append(np.searchsorted(rejected_keys[order], keys), len(order)).astype(np.int32))
    rejected = deduplicated.rejected_row[order]
    household, day = split_household_day_key(keys)
    return table_schemas.table_from_columns(
        table_schemas.PART_DAYS,
        household_id=pa.DictionaryArray.from_arrays(arrow_numbers(household.astype(np.int32)), names),
        day=day,
        energy_wh=energy,
        readings=readings,
        aside_row=pa.ListArray.from_arrays(offsets, arrow_numbers(rows.row[rejected].astype(np.int64))),
        aside_reason=pa.ListArray.from_arrays(
            offsets, arrow_numbers(deduplicated.rejected_reason[order].astype(np.uint8))
        ),
    )


def _repeated_rows(layout: Layout, rows: ParsedRows) -> Ints | None:
    """Return the rows with the household and time of a further row; None unless all rows are sorted by these two.

    None as well for rows of a day, of several channels or of meters.
    """
    if layout.width > 1 or layout.has_labels or rows.channel.any():
        return None
    steps = time_steps(rows)
    if (least := steps.min(initial=1)) > 0:
        return np.zeros(0, np.int64)
    return None if least < 0 else _with_following(np.flatnonzero(steps == 0))


def time_steps(rows: ParsedRows) -> Ints:
    """Return the half-hours from each row to the next; beyond 2^31 in size between two households.

    Rows are sorted by household and time if none is negative, and a step of 0 is a repeated row.
    """
    key = (rows.household.astype(np.int64) << _TIME_BITS) | rows.time
    steps: Ints = key[1:] - key[:-1]
    return steps


def _household_day_keys(rows: ParsedRows, indices: Ints) -> Ints:
    household, time = (values[indices].astype(np.int64) for values in (rows.household, rows.time))
    return household_day_key(household, time // SLOTS)


def _with_following(rows: Ints) -> Ints:
    """Return these rows and the next one of each, ascending."""
    return np.unique(np.concatenate([rows, rows + 1]))


def _stored_rows(rows: ParsedRows, indices: Ints) -> StoredRows:
    """Return these rows of a part, numbered within it; without household ids."""
    part = rows.select(indices)
    household, channel, time, energy_wh = (
        values.astype(np.int64) for values in (part.household, part.channel, part.time, part.energy_wh)
    )
    return StoredRows((), household, channel, time, np.zeros(len(indices), np.int64), indices, energy_wh, part.label)


def sorted_daily_totals(rows: ParsedRows, rejected: Ints, *, units_per_wh: int = 1) -> tuple[Ints, Ints, Ints]:
    """Return the household-days of sorted rows of one channel, and the energy and number of their readings.

    `rejected` rows, by their index, count as no reading. A net export of a day counts as 0.
    """
    day = rows.time // np.int32(SLOTS)
    is_first = np.ones(len(day), bool)
    np.not_equal(day[1:], day[:-1], out=is_first[1:])
    is_first[1:] |= rows.household[1:] != rows.household[:-1]
    starts = np.flatnonzero(is_first)
    keys = _household_day_keys(rows, starts)
    energy_wh = whole_watt_hours(rows.energy_wh[:, 0], units_per_wh)
    if len(rejected):
        energy_wh = energy_wh.copy()
        energy_wh[rejected] = 0
    readings = np.diff(starts, append=len(day))
    readings -= np.bincount(np.searchsorted(starts, rejected, side="right") - 1, minlength=len(starts))
    return keys, np.maximum(np.add.reduceat(energy_wh, starts, dtype=np.int64), 0), readings
