"""READINGS (as DAYS) + roster -> SUMS: one exact integer vector per day and series; the clamp acts here.

Locality: what a household adds to a day is a function of its own rows of that day and of the run file. Its day
is usable if at most `max_missing` of the readings that the day can have are lacking; then it counts as its energy,
at most the clamp, never scaled up. Otherwise it counts as the public `missing_wh`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data import tables
from agedp_data.config.series import AnySeries
from agedp_data.errors import InputError
from agedp_data.readers.layout import Ints, Layout, expected_readings
from agedp_data.roster import Roster
from pipelines import folders
from pipelines.read import Delivery
from pipelines.readings.days import read_days
from pipelines.readings.store import Store, months_between

_EPOCH = date(1970, 1, 1)
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class Sum:
    """One day of one series, by group (confidential): the exact vector of each group's cells.

    Of the households of a group so many have a `usable` day, and so many of these are `clamped`.
    """

    series: AnySeries
    exact: dict[str, tuple[int, ...]]
    households: dict[str, int]
    usable: dict[str, int]
    clamped: dict[str, int]

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
) -> dict[tuple[date, str], Sum]:
    """Return the SUMS of these days by day and series, and leave a copy for the house.

    What is drawn over is what is returned: a file could be another run's.

    Raises:
        InputError: no roster household has a reading in the files, or those of a day have left the store.
    """
    if days and f"{days[0]:%Y-%m}" < store.forgotten_before():
        raise InputError(
            f"{days[0]} is due, but readings before {store.forgotten_before()} were let go (engine.keep_days); name "
            "another confidential folder to read them again"
        )
    summed: dict[tuple[date, str], Sum] = {}
    seen = False
    for month in months_between(days[0], days[-1]) if days else ():
        of_month = [day for day in days if f"{day:%Y-%m}" == month]
        energy, readings, found = matrices(store, delivery, roster, month)
        seen = seen or found
        for day in of_month:
            read = store.layout, energy[:, day.day - 1], readings[:, day.day - 1]
            summed |= {(day, name): _sum(one, roster, day, *read) for name, one in series.items()}
    if days and not seen and not _any_household(store, delivery, roster):
        raise InputError(
            "no household of the roster has a reading in the input files; are roster and files of the same homes?"
        )
    folders.write_table(path, tables.of_lines(tables.SUMS, [*_lines(summed)]))
    return summed


def matrices(store: Store, delivery: Delivery, roster: Roster, month: str) -> tuple[Ints, Ints, bool]:
    """Return (household, day of month) energy and number of readings of a month."""
    energy = np.zeros((len(roster.ids), 31), np.int64)
    readings = np.zeros((len(roster.ids), 31), np.int64)
    if month not in delivery.months:
        return energy, readings, False
    table = read_days(store, month, delivery.contents)
    code, on_roster = _codes(table, roster)
    first = (date.fromisoformat(f"{month}-01") - _EPOCH).days
    day = table["day"].cast(pa.int32()).to_numpy().astype(np.int64)[on_roster] - first
    energy[code, day] = table["energy_wh"].to_numpy()[on_roster]
    readings[code, day] = table["readings"].to_numpy()[on_roster]
    return energy, readings, bool(on_roster.any())


def _codes(table: pa.Table, roster: Roster) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    position = pc.index_in(column.dictionary, pa.array(roster.ids, pa.string()))
    lookup = pc.fill_null(position, _ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = lookup[column.indices.to_numpy(zero_copy_only=False)] if len(lookup) else np.zeros(0, np.int64)
    on_roster = codes != _ABSENT
    return codes[on_roster], on_roster


def _any_household(store: Store, delivery: Delivery, roster: Roster) -> bool:
    return any(len(_codes(read_days(store, month, delivery.contents), roster)[0]) for month in delivery.months)


def _sum(series: AnySeries, roster: Roster, day: date, layout: Layout, energy: Ints, readings: Ints) -> Sum:
    found = Sum(series, {}, {}, {}, {})
    for group, members in roster.members(day, series.by).items():
        usable = readings[members] >= max(1, expected_readings(layout, day) - series.max_missing)
        found.exact[group] = series.exact(series.counted(energy[members], usable))
        found.households[group], found.usable[group] = len(members), int(usable.sum())
        found.clamped[group] = int((usable & (energy[members] > series.clamp_wh)).sum())
    return found


def _lines(summed: Mapping[tuple[date, str], Sum]) -> Iterator[dict[str, Any]]:
    for (day, name), one in summed.items():
        for group, exact in one.exact.items():
            counts = {"households": one.households, "usable": one.usable, "clamped": one.clamped}
            of_group = {"day": day, "series": name, **{what: number[group] for what, number in counts.items()}}
            for cell, value in zip(one.series.cells(group), exact, strict=True):
                yield {**of_group, "cell": cell, "value": value}


def days_of(first: date, last: date) -> tuple[date, ...]:
    """Return the days of a period, both ends included."""
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))
