"""READINGS (as DAYS) + roster -> SUMS: one exact integer vector per day and series; the clamp is applied here.

Locality: a household's contribution to a day is a function of its rows of that day and of the run file. A
household-day is usable if at most `max_missing` of its expected readings are missing; then it counts as its daily
total, at most the clamp, never scaled up. Otherwise it counts as the public `missing_wh`.

If a series counts states, each half-hour with a reading, or the daily total (depending on the model's `step`), counts
as the representative value of its state, before the clamp; missing readings count as above. A missing reading is not a
state: it is assumed to be independent of the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.compute.engine import Engine, map_items
from agedp.local_files import atomic_files
from agedp.stages.ingest import Delivery
from agedp.store.daily_totals import read_daily_totals, read_state_days, write_state_days
from agedp.store.store import Store
from agedp_data import table_schemas
from agedp_data.datasets.layout import Flags, Ints, Layout, expected_readings
from agedp_data.errors import InputError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.roster import Roster
from agedp_data.series.series import AnySeries

_EPOCH = date(1970, 1, 1)
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class DailySum:
    """One day of one series, by group (confidential): the exact vector of each group's cells.

    Counts by group: `households`, those with a `usable` day, and those of them that are `clamped`. If the series counts
    states, also the sums of the daily totals by readings and by states.
    """

    series: AnySeries
    exact: dict[str, tuple[int, ...]]
    households: dict[str, int]
    usable: dict[str, int]
    clamped: dict[str, int]
    readings_wh: dict[str, int] = field(default_factory=dict)
    states_wh: dict[str, int] = field(default_factory=dict)

    @property
    def sum_wh(self) -> dict[str, int]:
        """Return the sums of a mean by group, Wh."""
        return {group: exact[0] for group, exact in self.exact.items()}


def aggregate(
    store: Store,
    delivery: Delivery,
    roster: Roster,
    *,
    days: Sequence[date],
    series: Mapping[str, AnySeries],
    path: Path,
    states: RepresentativeValues | None = None,
) -> dict[tuple[date, str], DailySum]:
    """Return the SUMS of these days by day and series, and write a confidential copy.

    The release uses the returned value, never the file, which another run may have written. `states` are those that
    series count.

    Raises:
        InputError: readings of a day were removed from the store.
    """
    if days and f"{days[0]:%Y-%m}" < store.retained_from():
        raise InputError(
            f"{days[0]} is due, but readings before {store.retained_from()} were let go (engine.keep_days); name "
            "another confidential folder to read them again"
        )
    sums: dict[tuple[date, str], DailySum] = {}
    for month in sorted({f"{day:%Y-%m}" for day in days}):
        matrix = load_month_matrix(store, delivery, roster, month, states=states)
        for day in (day for day in days if f"{day:%Y-%m}" == month):
            sums |= {
                (day, name): _daily_sum(day_series, roster, day, store.layout, matrix)
                for name, day_series in series.items()
            }
    atomic_files.write_table(path, table_schemas.table_from_rows(table_schemas.SUMS, [*_table_rows(sums)]))
    return sums


@dataclass(frozen=True, slots=True)
class MonthMatrix:
    """(household, day of month): energy by readings, energy by states (if requested), number of readings."""

    energy_wh: Ints
    states_wh: Ints | None
    readings: Ints

    def energy_of(self, series: AnySeries) -> Ints:
        """Return the energy that a series counts.

        Raises:
            ValueError: it counts states, and the matrix has none.
        """
        if series.values == "readings":
            return self.energy_wh
        if self.states_wh is None:
            raise ValueError("a series counts states, and it was not said which")
        return self.states_wh


def compute_state_days(
    store: Store, delivery: Delivery, days: Iterable[date], states: RepresentativeValues | None, *, engine: Engine
) -> None:
    """Compute the STATE_DAYS of the months of these days in parallel, if a series counts states of half-hours."""
    if states is not None and states.step == "half-hour":
        months = sorted({f"{day:%Y-%m}" for day in days} & set(delivery.months))
        function = partial(write_state_days, store=store, contents=delivery.contents, states=states)
        map_items("states", months, function=function, engine=engine)


def load_month_matrix(
    store: Store, delivery: Delivery, roster: Roster, month: str, *, states: RepresentativeValues | None = None
) -> MonthMatrix:
    """Return the daily totals of the roster's households in a month, by readings and, if given, by states."""
    energy = np.zeros((len(roster.ids), 31), np.int64)
    readings, counted = np.zeros_like(energy), None if states is None else np.zeros_like(energy)
    if month not in delivery.months:
        return MonthMatrix(energy, counted, readings)
    table = read_daily_totals(store, month, delivery.contents)
    code, day, on_roster = _household_days_on_roster(table, roster, month)
    energy[code, day] = table["energy_wh"].to_numpy()[on_roster]
    readings[code, day] = table["readings"].to_numpy()[on_roster]
    if states is not None and states.step == "day":
        counted = np.where(readings > 0, states.represent(energy), 0)
    elif states is not None and counted is not None:
        table = read_state_days(store, month, delivery.contents, states)
        code, day, on_roster = _household_days_on_roster(table, roster, month)
        counted[code, day] = table["counted_wh"].to_numpy()[on_roster]
    return MonthMatrix(energy, counted, readings)


def _household_days_on_roster(table: pa.Table, roster: Roster, month: str) -> tuple[Ints, Ints, Flags]:
    """Return household code and day of month of the rows on the roster, and which rows these are."""
    code, on_roster = _codes(table, roster)
    first = (date.fromisoformat(f"{month}-01") - _EPOCH).days
    return code, table["day"].cast(pa.int32()).to_numpy().astype(np.int64)[on_roster] - first, on_roster


def _codes(table: pa.Table, roster: Roster) -> tuple[Ints, Flags]:
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    position = pc.index_in(column.dictionary, pa.array(roster.ids, pa.string()))
    lookup = pc.fill_null(position, _ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = lookup[column.indices.to_numpy(zero_copy_only=False)] if len(lookup) else np.zeros(0, np.int64)
    on_roster = codes != _ABSENT
    return codes[on_roster], on_roster


def _daily_sum(series: AnySeries, roster: Roster, day: date, layout: Layout, matrix: MonthMatrix) -> DailySum:
    daily_sum = DailySum(series, {}, {}, {}, {})
    energy, read_energy, readings = (
        values[:, day.day - 1] for values in (matrix.energy_of(series), matrix.energy_wh, matrix.readings)
    )
    for group, members in roster.members(day, series.by).items():
        usable = readings[members] >= max(1, expected_readings(layout, day) - series.max_missing)
        counted = series.counted(energy[members], usable)
        daily_sum.exact[group] = series.exact(counted)
        daily_sum.households[group], daily_sum.usable[group] = len(members), int(usable.sum())
        daily_sum.clamped[group] = int((usable & (energy[members] > series.clamp_wh)).sum())
        if series.values == "states":
            daily_sum.states_wh[group] = int(counted.sum())
            daily_sum.readings_wh[group] = int(series.counted(read_energy[members], usable).sum())
    return daily_sum


def _table_rows(sums: Mapping[tuple[date, str], DailySum]) -> Iterator[dict[str, Any]]:
    for (day, name), daily_sum in sums.items():
        for group, exact in daily_sum.exact.items():
            counts = {"households": daily_sum.households, "usable": daily_sum.usable, "clamped": daily_sum.clamped}
            of_group = {"day": day, "series": name, **{count: number[group] for count, number in counts.items()}}
            for cell, value in zip(daily_sum.series.cells(group), exact, strict=True):
                yield {**of_group, "cell": cell, "value": value}


def days_between(first: date, last: date) -> tuple[date, ...]:
    """Return the days of a period, both ends included."""
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))
