"""Made-up Ausgrid files: a row per customer, day and category in the publisher's wide layout.

The general consumption GC follows the known chains; the controlled load CL (6 of 13 customers) runs at night;
every customer has generation GG. Days are Sydney civil days: the two half-hours that the spring day does not
have are written as 0, both passes of the repeated autumn hour are summed into its two columns.

The flaws (`quirks`): Row Quality `NA` in some rows, among them the first; the second customer lacks a sixth
of the period; the controlled load of the sixth (of fewer: the first) stops half-way; the first has a day with
CL and without GC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.errors import RunFileError
from agedp_data.readers.civil import ZoneDays
from agedp_data.readers.layout import SLOTS, Flags, Ints, RejectionReason
from agedp_data.readers.synthetic.accounting import DeliveryAccount
from agedp_data.readers.synthetic.files import ChunkFiles, energy_texts
from agedp_data.readers.synthetic.households import BATCH, MAX_WH, Households, day_factors, draw_homes, energies, stream

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
    """The half-hours that there really are (steps): their slot and their column in (days x 48)."""

    dates: tuple[date, ...]
    slot: Ints
    column: Ints
    readings: Ints

    def columns(self, energy_wh: Ints) -> Ints:
        """Return (n, days, 48) from (n, steps): 0 where there is no half-hour, both passes of one added."""
        cells = np.zeros((len(energy_wh), len(self.dates) * SLOTS), np.int64)
        _, first = np.unique(self.column, return_index=True)
        again = np.setdiff1d(np.arange(len(self.column)), first)
        cells[:, self.column[first]] = energy_wh[:, first]
        cells[:, self.column[again]] += energy_wh[:, again]
        return cells.reshape(len(energy_wh), -1, SLOTS)


def write_ausgrid(  # noqa: PLR0913  (each says something else about the files)
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
    """Write one made-up Ausgrid file into a folder and say what is in it.

    `year_layout` is one of 2010-2011 (53 columns, dates `1-Jul-10`), 2011-2012 and 2012-2013 (54 columns,
    dates `1/07/2012`); `title` is whether the title line stands above the header. `plain_chain` leaves time of day,
    weather and controlled load out, so that the readings themselves follow the known chains; `profiles` brings
    households of the caller's own, as many as `households`.

    Raises:
        RunFileError: an unknown layout, no households or days, or a file of that name in the folder.
    """
    if year_layout not in _FILES:
        raise RunFileError(f"year_layout {year_layout!r} is not one of {', '.join(_FILES)}")
    if households < 1 or days < 1:
        raise RunFileError(f"{households} households, {days} days: each must be at least 1")
    calendar = _calendar(first_day, days)
    profiles = profiles or draw_homes(households, mean_kwh=_MEAN_KWH, seed=seed)
    by_day = None if plain_chain else day_factors(first_day, days, seed=seed, coldest=_COLDEST)
    factors = None if by_day is None else by_day[calendar.column // SLOTS]
    texts, header = pa.array(energy_texts(2 * MAX_WH)), _header(year_layout, title=title)
    use, there = np.zeros((2, households, days), np.int64)
    rows = np.zeros(3, np.int64)
    marked = 0
    with ChunkFiles(folder, _FILES[year_layout], header=header, rows_a_file=3 * households * days) as files:
        for places, general in energies(profiles, slots=calendar.slot.tolist(), factors=factors, seed=seed):
            cells = _cells(places, general, calendar, seed)
            written = _written(places, households, days, quirks=quirks)
            written[:, _CL] &= not plain_chain
            unsure = _unsure(places, days, seed) & written & quirks & (year_layout != "2010-2011")
            counted = written[:, _GC]
            household = (cells.sum(axis=3) * written)[:, :_GG].sum(axis=1)
            use[places] = np.where(counted, household, 0)
            there[places] = np.where(counted, calendar.readings, 0)
            rows += written.sum(axis=(0, 2))
            marked += int(unsure.sum())
            for row, place in enumerate(range(places.start, places.stop)):
                before = _before(place, calendar.dates, year_layout)
                after = _after(unsure[row], year_layout)
                files.add(_lines(cells[row], written[row], before=before, after=after, texts=texts))
    return DeliveryAccount(
        dataset="ausgrid",
        files=tuple(files.files),
        rows_written=files.rows,
        rows_kept=int(rows[:_GG].sum()),
        set_aside={RejectionReason.CATEGORY: int(rows[_GG])},
        household_ids=tuple(str(place + 1) for place in range(households)),
        kind=profiles.kind,
        first_day=first_day,
        energy_wh=use,
        readings=there,
        cut=files.cut,
        notes={"row_quality_na": marked},
    )


def _calendar(first_day: date, days: int) -> _Calendar:
    sydney = ZoneDays("Australia/Sydney")
    dates = tuple(first_day + timedelta(days=i) for i in range(days))
    slots: list[int] = []
    columns: list[int] = []
    readings = np.full(days, SLOTS)
    for place, day in enumerate(dates):
        absent, repeated = sydney.absent_slots(day), sydney.repeated_slots(day)
        there = [slot for slot in range(SLOTS) if slot not in absent]
        behind = there.index(repeated[-1]) + 1 if repeated else 0
        there[behind:behind] = repeated
        slots += there
        columns += [place * SLOTS + slot for slot in there]
        readings[place] -= len(absent)
    return _Calendar(dates, np.array(slots), np.array(columns), readings)


def _header(year_layout: str, *, title: bool) -> str:
    quality = "" if year_layout == "2010-2011" else ",Row Quality"
    return (_TITLE.format(year_layout) if title else "") + _HEADER + quality + "\r\n"


def _capacity_kw(place: int) -> float:
    return _CAPACITIES_KW[place * 5 % len(_CAPACITIES_KW)]


def _has_controlled_load(place: int) -> bool:
    return place * 6 % 13 < 6


def _cells(places: slice, general_wh: Ints, calendar: _Calendar, seed: int) -> Ints:
    """Return (batch, 3 categories, days, 48) watt-hours."""
    hour, number = (calendar.slot + 0.5) / 2, places.start // BATCH
    generator = stream(seed, "controlled load", number)
    night = np.where((hour > 22) | (hour < 5), 0.45, 0.02)
    load = (generator.random(general_wh.shape) < night) * generator.integers(500, 1300, size=general_wh.shape)
    generator = stream(seed, "generation", number)
    sun = np.clip(np.cos((hour - 12) / 12 * np.pi * 1.1), 0, None) ** 1.5
    cloud = generator.uniform(0.2, 0.8, size=general_wh.shape)
    capacity = np.array([_capacity_kw(place) for place in range(places.start, places.stop)])
    solar = np.rint(capacity[:, None] * 500 * sun * cloud).astype(np.int64)
    return np.stack([calendar.columns(one) for one in (load, general_wh, solar)], axis=1)


def _written(places: slice, households: int, days: int, *, quirks: bool) -> Flags:
    """Return (batch, 3 categories, days): which rows there are."""
    there = np.ones((places.stop - places.start, 3, days), bool)
    there[:, _CL] = [[_has_controlled_load(place)] for place in range(places.start, places.stop)]
    if quirks and places.start == 0:
        there[1:2, :, days // 3 : days // 2] = False
        stops = 5 if households > 5 else 0
        there[stops, _CL, max(days // 2, 2) :] = False
        if days > 2:
            there[0, _GC, 1] = False
    return there


def _unsure(places: slice, days: int, seed: int) -> Flags:
    shape = (places.stop - places.start, 3, days)
    marked: Flags = stream(seed, "flaws", places.start // BATCH).random(shape) < _NA_SHARE
    if places.start == 0:
        marked[0, :, 0] = True
    return marked


def _before(place: int, dates: tuple[date, ...], year_layout: str) -> list[str]:
    """Return what stands before the readings of each row, by day and category."""
    customer = f"{place + 1},{_capacity_kw(place)},{_POSTCODES[place % len(_POSTCODES)]}"
    return [f"{customer},{category},{_day(day, year_layout)}," for day in dates for category in _CATEGORIES]


def _after(unsure: Flags, year_layout: str) -> list[str]:
    if year_layout == "2010-2011":
        return ["\r\n"] * unsure.size
    return [",NA\r\n" if marked else ",\r\n" for marked in unsure.T.ravel()]


def _day(day: date, year_layout: str) -> str:
    if year_layout == "2010-2011":
        return f"{day.day}-{_MONTHS[day.month - 1]}-{day.year % 100:02d}"
    return f"{day.day}/{day.month:02d}/{day.year}"


def _lines(
    cells_wh: Ints, written: Flags, *, before: list[str], after: list[str], texts: pa.StringArray
) -> pa.StringArray:
    """Return a customer's rows by day and category; cells (3, days, 48), written (3, days)."""
    picked = written.T.ravel()
    starts, ends = (pa.array(texts_of_row).filter(pa.array(picked)) for texts_of_row in (before, after))
    cells = cells_wh.transpose(1, 0, 2).reshape(-1, SLOTS)[picked]
    offsets = pa.array(np.arange(len(cells) + 1, dtype=np.int32) * SLOTS)
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts.take(pa.array(cells.ravel()))), ",")
    return pc.binary_join_element_wise(starts, joined, ends, "")
