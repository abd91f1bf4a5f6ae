"""Daily totals of some households -> the sums of one day and series; sums of household buckets -> those of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.stage_values import DailySum
from agedp.store.group_sums import add_groups, sort_groups
from agedp.store.month_matrix import MonthMatrix
from agedp_data import table_schemas
from agedp_data.datasets.layout import Layout, expected_readings
from agedp_data.datasets.validation import Ints
from agedp_data.series.coverage import Coverage
from agedp_data.series.series import Distribution, Mean

DailyTotals = Mean | Distribution | Coverage
"""Series of which a day's matrix has all numbers."""


def daily_sum(
    series: DailyTotals, members_by_group: Mapping[str, Ints], day: date, layout: Layout, matrix: MonthMatrix
) -> DailySum:
    """Return the exact vectors of one day and series by group; `members_by_group` are rows of the matrix."""
    sums = DailySum(series, {}, {}, {}, {})
    readings, least = matrix.readings[:, day.day - 1], max(1, expected_readings(layout, day) - series.max_missing)
    usable_by_group = {group: readings[members] >= least for group, members in members_by_group.items()}
    for group, usable in usable_by_group.items():
        sums.households[group], sums.usable[group] = len(usable), int(usable.sum())
    if isinstance(series, Coverage):
        sums.exact.update({group: series.exact(usable) for group, usable in usable_by_group.items()})
        sums.clamped.update(dict.fromkeys(usable_by_group, 0))
        return sums
    energy, read_energy = (values[:, day.day - 1] for values in (matrix.energy_of(series), matrix.energy_wh))
    for group, members in members_by_group.items():
        usable = usable_by_group[group]
        counted = series.clamp_energy(energy[members], usable)
        sums.exact[group] = series.exact(counted)
        sums.clamped[group] = int((usable & (energy[members] > series.clamp_wh)).sum())
        if series.counts_states:
            sums.states_wh[group] = int(counted.sum())
            sums.readings_wh[group] = int(series.clamp_energy(read_energy[members], usable).sum())
    return sums


def add_daily_sums(first: DailySum, second: DailySum) -> DailySum:
    """Return the sums of two sets of households on one day of one series."""
    exact = dict(first.exact)
    for group, values in second.exact.items():
        exact[group] = tuple(map(sum, zip(exact[group], values, strict=True))) if group in exact else values
    return replace(
        first,
        exact=exact,
        households=add_groups([first.households, second.households]),
        usable=add_groups([first.usable, second.usable]),
        clamped=add_groups([first.clamped, second.clamped]),
        readings_wh=add_groups([first.readings_wh, second.readings_wh]),
        states_wh=add_groups([first.states_wh, second.states_wh]),
    )


def sort_daily_sum(sums: DailySum) -> DailySum:
    """Return the same sums with the groups in the order of the roster."""
    by = sums.series.by
    return replace(
        sums,
        exact=sort_groups(sums.exact, by),
        households=sort_groups(sums.households, by),
        usable=sort_groups(sums.usable, by),
        clamped=sort_groups(sums.clamped, by),
        readings_wh=sort_groups(sums.readings_wh, by),
        states_wh=sort_groups(sums.states_wh, by),
    )


def write_sums(path: Path, sums: Mapping[tuple[date, str], DailySum]) -> None:
    """Write a confidential copy of the SUMS; a release uses the values in memory, never this file."""
    tables = [_sums_table(day, name, daily_sum) for (day, name), daily_sum in sums.items()]
    atomic_files.write_table(path, pa.concat_tables([table_schemas.SUMS.empty_table(), *tables]))


def _sums_table(day: date, name: str, daily_sum: DailySum) -> pa.Table:
    """Return the rows of one day and series, by columns: a profile has thousands."""
    sizes = [len(exact) for exact in daily_sum.exact.values()]
    counts = {"households": daily_sum.households, "usable": daily_sum.usable, "clamped": daily_sum.clamped}
    of_groups = {
        count: np.repeat([number[group] for group in daily_sum.exact], sizes) for count, number in counts.items()
    }
    return table_schemas.table_from_columns(
        table_schemas.SUMS,
        day=[day] * sum(sizes),
        series=[name] * sum(sizes),
        cell=[cell for group in daily_sum.exact for cell in daily_sum.cells(group)],
        **{count: values.astype(np.int64) for count, values in of_groups.items()},
        value=[value for exact in daily_sum.exact.values() for value in exact],
    )
