"""READINGS (as DAYS) + roster -> SUMS: one exact integer vector per day and series; the clamp acts here.

Locality: what a household adds to a day is a function of its own rows of that day and of the run file. Its day
is usable if at most `max_missing` of the readings that the day can have are lacking; then it adds its energy,
at most the clamp, never scaled up. Otherwise it adds the public `missing_wh`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data import tables
from agedp_data.errors import InputError
from agedp_data.readers.layout import Ints, expected_readings
from agedp_data.roster import Roster
from pipelines import folders
from pipelines.days import read_days
from pipelines.read import Delivery
from pipelines.store import Store, months_between

_EPOCH = date(1970, 1, 1)
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class Counting:
    """How one series counts a household's day (public, from the run file)."""

    series: str
    clamp_wh: int
    missing_wh: int
    max_missing: int
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """One day of one series over named cells, each at most households x clamp_wh (confidential).

    Of the households of a cell so many have a `usable` day, and so many of these are `clamped`.
    """

    clamp_wh: int
    sum_wh: dict[str, int]
    households: dict[str, int]
    usable: dict[str, int]
    clamped: dict[str, int]


def aggregate(
    store: Store, delivery: Delivery, roster: Roster, *, days: Sequence[date], counting: Sequence[Counting], path: Path
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
    lines: list[tuple[int, str, str, int, int, int, int]] = []
    seen = False
    for month in months_between(days[0], days[-1]) if days else ():
        of_month = [day for day in days if f"{day:%Y-%m}" == month]
        energy, readings, found = matrices(store, delivery, roster, month)
        seen = seen or found
        for day in of_month:
            lines += _day(store, roster, day, energy[:, day.day - 1], readings[:, day.day - 1], counting)
    if days and not seen and not _any_household(store, delivery, roster):
        raise InputError(
            "no household of the roster has a reading in the input files; are roster and files of the same homes?"
        )
    names = tables.SUMS.names
    table = tables.columns(tables.SUMS, **{name: [line[i] for line in lines] for i, name in enumerate(names)})
    folders.write_table(path, table)
    clamps = {one.series: one.clamp_wh for one in counting}
    summed: dict[tuple[date, str], Sum] = {}
    for number, series, cell, households, usable, clamped, total in lines:
        of_day = summed.setdefault((_EPOCH + timedelta(days=number), series), Sum(clamps[series], {}, {}, {}, {}))
        of_day.sum_wh[cell], of_day.households[cell] = total, households
        of_day.usable[cell], of_day.clamped[cell] = usable, clamped
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


def _day(
    store: Store, roster: Roster, day: date, energy: Ints, readings: Ints, counting: Sequence[Counting]
) -> list[tuple[int, str, str, int, int, int, int]]:
    lines = []
    cells = ((one, cell, members) for one in counting for cell, members in roster.members(day, one.by).items())
    for one, cell, members in cells:
        usable = readings[members] >= max(1, expected_readings(store.layout, day) - one.max_missing)
        days_wh = np.where(usable, np.minimum(energy[members], one.clamp_wh), one.missing_wh)
        clamped = int((usable & (energy[members] > one.clamp_wh)).sum())
        number = (day - _EPOCH).days
        lines.append((number, one.series, cell, len(members), int(usable.sum()), clamped, int(days_wh.sum())))
    return lines


def days_of(first: date, last: date) -> tuple[date, ...]:
    """Return the days of a period, both ends included."""
    return tuple(first + timedelta(days=i) for i in range((last - first).days + 1))
