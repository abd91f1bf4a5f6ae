"""Synthetic Ausgrid files: a row per customer, day and category in the publisher's wide layout.

The general consumption GC follows the known chains; the controlled load CL (6 of 13 customers) runs at night;
every customer has generation GG. Days are Sydney civil days: the two half-hours that do not exist on the spring day
are written as 0, both passes of the repeated autumn hour are added into its two columns.

The defects (`quirks`): Row Quality `NA` in some rows, including the first; a sixth of the period is missing for the
second customer; the controlled load of the sixth customer (of the first, if there are fewer) stops half-way; the
first customer has a day with CL and without GC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets.synthetic import households as made
from agedp_data.datasets.synthetic.households import BATCH, MAX_WH, ChunkFiles, DeliveryAccount, Households
from agedp_data.datasets.timestamps import ZoneDays
from agedp_data.datasets.validation import SLOTS, Flags, Ints, RejectionReason
from agedp_data.errors import RunFileError

_FILES = {
    "2010-2011": "2010-2011 Solar home electricity data.csv",
    "2011-2012": "2011-2012 Solar home electricity data v2.csv",
    "2012-2013": "2012-2013 Solar home electricity data v2.csv",
}
_TITLE = (
    '"{} Solar home electricity data - made-up households in the publisher\'s layout, see ""data/README.md"""'
    + "," * 53
    + "\r\n"
)
_LABELS = ",".join(f"{minute // 60 % 24}:{minute % 60:02d}" for minute in range(30, 24 * 60 + 1, 30))
_HEADER = f"Customer,Generator Capacity,Postcode,Consumption Category,date,{_LABELS}"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CAPACITIES_KW, _POSTCODES = (1.02, 1.5, 1.62, 2.04, 3.06, 4.5), (2040, 2076, 2110, 2261, 2290)
_CL, _GC, _GG = range(3)
_CATEGORIES = ("CL", "GC", "GG")
_MEAN_KWH, _COLDEST, _NA_SHARE = 14.5, date(2012, 7, 15), 0.01


@dataclass(frozen=True, slots=True, eq=False)
class _Calendar:
    """The existing half-hours (steps): their slot and their column in (days x 48)."""

    dates: tuple[date, ...]
    slot: Ints
    column: Ints
    readings: Ints

    def columns(self, energy_wh: Ints) -> Ints:
        """Return (n, days, 48) from (n, steps): 0 for absent half-hours, the sum of both passes of repeated ones."""
        cells = np.zeros((len(energy_wh), len(self.dates) * SLOTS), np.int64)
        _, first = np.unique(self.column, return_index=True)
        second = np.setdiff1d(np.arange(len(self.column)), first)
        cells[:, self.column[first]] = energy_wh[:, first]
        cells[:, self.column[second]] += energy_wh[:, second]
        return cells.reshape(len(energy_wh), -1, SLOTS)


def write_ausgrid(  # noqa: PLR0913  (independent properties of the files)
    folder: Path,
    *,
    households: int,
    first_day: date,
    days: int,
    seed: int,
    year_layout: str = "2012-2013",
    title: bool = True,
    quirks: bool = True,
    plain_chain: bool = False,
    profiles: Households | None = None,
) -> DeliveryAccount:
    """Write one synthetic Ausgrid file into a folder and return its exact contents.

    `year_layout` is one of 2010-2011 (53 columns, dates `1-Jul-10`), 2011-2012 and 2012-2013 (54 columns,
    dates `1/07/2012`); with `title` a title line precedes the header. `plain_chain` omits time of day, weather and
    controlled load, so that the readings themselves follow the known chains. `profiles` are the caller's households,
    as many as `households`.

    Raises:
        RunFileError: an unknown layout, no households or days, or a file of that name in the folder.
    """
    if year_layout not in _FILES:
        raise RunFileError(f"year_layout {year_layout!r} is not one of {', '.join(_FILES)}")
    if households < 1 or days < 1:
        raise RunFileError(f"{households} households, {days} days: each must be at least 1")
    calendar = _calendar(first_day, days)
    profiles = profiles or made.draw_households(households, mean_kwh=_MEAN_KWH, seed=seed)
    by_day = None if plain_chain else made.day_factors(first_day, days, seed=seed, coldest=_COLDEST)
    factors = None if by_day is None else by_day[calendar.column // SLOTS]
    texts, has_quality = pa.array(made.energy_texts(2 * MAX_WH)), year_layout != "2010-2011"
    header = (_TITLE.format(year_layout) if title else "") + _HEADER + ",Row Quality" * has_quality + "\r\n"
    use, readings = np.zeros((2, households, days), np.int64)
    rows = np.zeros(3, np.int64)
    marked = 0
    with ChunkFiles(folder, _FILES[year_layout], header=header, rows_per_file=3 * households * days) as files:
        for indices, general in made.draw_energies(profiles, slots=calendar.slot.tolist(), factors=factors, seed=seed):
            cells = _cells(indices, general, calendar, seed)
            written = _written_rows(indices, households, days, quirks=quirks)
            written[:, _CL] &= not plain_chain
            na_marks = _draw_na_marks(indices, days, seed) & written & quirks & has_quality
            counted = written[:, _GC]
            household = (cells.sum(axis=3) * written)[:, :_GG].sum(axis=1)
            use[indices] = np.where(counted, household, 0)
            readings[indices] = np.where(counted, calendar.readings, 0)
            rows += written.sum(axis=(0, 2))
            marked += int(na_marks.sum())
            for row, index in enumerate(range(indices.start, indices.stop)):
                before = _row_prefixes(index, calendar.dates, year_layout)
                after = [
                    (",NA\r\n" if is_na else ",\r\n") if has_quality else "\r\n" for is_na in na_marks[row].T.ravel()
                ]
                files.add(_format_rows(cells[row], written[row], before=before, after=after, texts=texts))
    return DeliveryAccount(
        files=tuple(files.files),
        rows_written=files.rows,
        rows_kept=int(rows[:_GG].sum()),
        rejected={RejectionReason.CATEGORY: int(rows[_GG])},
        household_ids=tuple(str(index + 1) for index in range(households)),
        kind=profiles.kind,
        first_day=first_day,
        energy_wh=use,
        readings=readings,
        notes={"row_quality_na": marked},
    )


def _calendar(first_day: date, days: int) -> _Calendar:
    sydney = ZoneDays("Australia/Sydney")
    dates = tuple(first_day + timedelta(days=i) for i in range(days))
    slots: list[int] = []
    columns: list[int] = []
    readings = np.full(days, SLOTS)
    for day_index, day in enumerate(dates):
        absent, repeated = sydney.absent_slots(day), sydney.repeated_slots(day)
        present = [slot for slot in range(SLOTS) if slot not in absent]
        position = present.index(repeated[-1]) + 1 if repeated else 0
        present[position:position] = repeated
        slots += present
        columns += [day_index * SLOTS + slot for slot in present]
        readings[day_index] -= len(absent)
    return _Calendar(dates, np.array(slots), np.array(columns), readings)


def _capacity_kw(index: int) -> float:
    return _CAPACITIES_KW[index * 5 % len(_CAPACITIES_KW)]


def _cells(indices: slice, general_wh: Ints, calendar: _Calendar, seed: int) -> Ints:
    """Return (batch, 3 categories, days, 48) watt-hours."""
    hour, number = (calendar.slot + 0.5) / 2, indices.start // BATCH
    generator = made.random_generator(seed, "controlled load", number)
    night = np.where((hour > 22) | (hour < 5), 0.45, 0.02)
    load = (generator.random(general_wh.shape) < night) * generator.integers(500, 1300, size=general_wh.shape)
    generator = made.random_generator(seed, "generation", number)
    sun = np.clip(np.cos((hour - 12) / 12 * np.pi * 1.1), 0, None) ** 1.5
    cloud = generator.uniform(0.2, 0.8, size=general_wh.shape)
    capacity = np.array([_capacity_kw(index) for index in range(indices.start, indices.stop)])
    solar = np.rint(capacity[:, None] * 500 * sun * cloud).astype(np.int64)
    return np.stack([calendar.columns(energy_wh) for energy_wh in (load, general_wh, solar)], axis=1)


def _written_rows(indices: slice, households: int, days: int, *, quirks: bool) -> Flags:
    """Return (batch, 3 categories, days): which rows are written."""
    written = np.ones((indices.stop - indices.start, 3, days), bool)
    written[:, _CL] = [[index * 6 % 13 < 6] for index in range(indices.start, indices.stop)]
    if quirks and indices.start == 0:
        written[1:2, :, days // 3 : days // 2] = False
        stopped_index = 5 if households > 5 else 0
        written[stopped_index, _CL, max(days // 2, 2) :] = False
        if days > 2:
            written[0, _GC, 1] = False
    return written


def _draw_na_marks(indices: slice, days: int, seed: int) -> Flags:
    shape = (indices.stop - indices.start, 3, days)
    marked: Flags = made.random_generator(seed, "defects", indices.start // BATCH).random(shape) < _NA_SHARE
    if indices.start == 0:
        marked[0, :, 0] = True
    return marked


def _row_prefixes(index: int, dates: tuple[date, ...], year_layout: str) -> list[str]:
    """Return the text before the readings of each row, by day and category."""
    customer = f"{index + 1},{_capacity_kw(index)},{_POSTCODES[index % len(_POSTCODES)]}"
    if year_layout == "2010-2011":
        days = [f"{day.day}-{_MONTHS[day.month - 1]}-{day.year % 100:02d}" for day in dates]
    else:
        days = [f"{day.day}/{day.month:02d}/{day.year}" for day in dates]
    return [f"{customer},{category},{day}," for day in days for category in _CATEGORIES]


def _format_rows(
    cells_wh: Ints, written: Flags, *, before: list[str], after: list[str], texts: pa.StringArray
) -> pa.StringArray:
    """Return a customer's rows by day and category; cells (3, days, 48), written (3, days)."""
    picked = written.T.ravel()
    starts, ends = (pa.array(texts_of_row).filter(pa.array(picked)) for texts_of_row in (before, after))
    cells = cells_wh.transpose(1, 0, 2).reshape(-1, SLOTS)[picked]
    offsets = pa.array(np.arange(len(cells) + 1, dtype=np.int32) * SLOTS)
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts.take(pa.array(cells.ravel()))), ",")
    return pc.binary_join_element_wise(starts, joined, ends, "")
