"""LEDGER rows of load profiles -> the published table of half-hours, a row for each day, group and half-hour.

A row of the ledger has all cells of a day: 19,200 of 400 groups. The table is therefore computed by columns, not by
rows: a year of such days has seven million lines and takes seconds.

Example: the cell "Std 18:30" of a release of 14 households with the noisy sum 5,600 Wh becomes the line
(day, Std, start_minute 1110, minutes 30, households 14, noisy_sum_wh 5600, mean_kwh 0.4, ...).

`minutes` follows from the layout of the contract: readings of hours have cells of 60 minutes, and when the clock goes
back a half-hour occurs twice, so that its cell contains an hour. The mean is of the cell, however long it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from agedp_data import mechanisms, table_schemas
from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Ints
from agedp_data.epsilon import to_float
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.load_profile import day_slots
from agedp_data.series.profile import Profile

_WH_PER_KWH: Final = 1000.0


@dataclass(frozen=True, slots=True)
class ProfileTerms:
    """What a contract says of a series of profiles: its terms, its layout, and the contract's number among all."""

    profile: Profile
    layout: Layout
    version: int


@dataclass(frozen=True, slots=True)
class _Places:
    """The cells (n) of a release: the distinct groups, and the group (an index into these) and slot of each cell."""

    groups: pa.Array
    group: Ints
    slot: Ints


def profile_table(rows: Sequence[ReleaseRecord], *, terms: Mapping[str, ProfileTerms], coverage: Decimal) -> pa.Table:
    """Return the half-hours of released rows by group; intervals cover only the noise of `mean_kwh`.

    Args:
        rows: released rows of one series, in any order.
        terms: by the hash of each contract that has the series.
        coverage: probability with which an interval covers the noise.

    Raises:
        ValueError: a cell is not a half-hour of the series.
    """
    noise_by_scale = {
        scale: (mechanisms.standard_deviation(scale), mechanisms.interval(scale, coverage))
        for scale in {row.scale for row in rows}
    }
    places: dict[tuple[str, tuple[str, ...]], _Places] = {}
    tables = []
    for row in sorted(rows, key=lambda row: (row.day, row.revision)):
        key = row.contract, row.cells
        if key not in places:
            places = {key: _places(terms[row.contract].profile, row.cells)}  # days repeat the cells of the day before
        tables.append(_day_table(row, places[key], terms[row.contract], noise_by_scale[row.scale]))
    return pa.concat_tables([table_schemas.DAILY_PROFILE.empty_table(), *tables])


def _places(profile: Profile, cells: Sequence[str]) -> _Places:
    groups: dict[str, int] = {}
    group, slot = np.zeros(len(cells), np.int64), np.zeros(len(cells), np.int64)
    for i, cell in enumerate(cells):
        name, slot[i] = profile.place(cell)
        group[i] = groups.setdefault(name, len(groups))
    return _Places(pa.array(groups, pa.string()), group, slot)


def _day_table(row: ReleaseRecord, places: _Places, terms: ProfileTerms, noise: tuple[float, int]) -> pa.Table:
    deviation, half_width = noise
    day = date.fromisoformat(row.day)
    noisy_wh, households = np.array(row.values, np.int64), np.array(row.households, np.int64)
    wh_per_kwh_mean = _WH_PER_KWH * households
    number = len(noisy_wh)
    return table_schemas.table_from_columns(
        table_schemas.DAILY_PROFILE,
        day=np.full(number, day_number(day)),
        group=places.groups.take(pa.array(places.group)),
        start_minute=places.slot * INTERVAL_MINUTES,
        minutes=cell_minutes(terms.layout, day)[places.slot],
        revision=np.full(number, row.revision),
        households=households,
        noisy_sum_wh=noisy_wh,
        mean_kwh=noisy_wh / wh_per_kwh_mean,
        noise_sd_kwh=deviation / wh_per_kwh_mean,
        low_kwh=(noisy_wh - half_width) / wh_per_kwh_mean,
        high_kwh=(noisy_wh + half_width) / wh_per_kwh_mean,
        published_on=np.full(number, day_number(date.fromisoformat(row.published_on))),
        epsilon=np.full(number, to_float(row.loss)),
        version=np.full(number, terms.version),
    )


def cell_minutes(layout: Layout, day: date) -> Ints:
    """Return how long the cell of each slot is, shape (48,) [minutes]; 0 where the day has no such cell.

    A repeated half-hour is in its cell twice. Of hourly readings every second slot has a cell.
    """
    step, cells = slot_step(layout.interval_minutes), list(day_slots(layout, day))
    passes = np.ones(SLOTS, np.int64)
    passes[list(layout.repeated_slots(day))] = 2
    minutes = np.zeros(SLOTS, np.int64)
    minutes[cells] = np.repeat(passes.reshape(-1, step).sum(axis=1), step)[cells] * INTERVAL_MINUTES
    return minutes
