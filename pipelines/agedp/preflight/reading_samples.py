"""Samples of READINGS: those that rise as a register does, half-hours that nobody has, and marks. Confidential.

A sample has the first parts, in the order of the files, of the first and the middle month.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.local_files.atomic_files import path_exists
from agedp.stage_values import Delivery
from agedp.store.month_reader import household_day_key, load_month_readings, load_table, split_household_day_key
from agedp.store.store import PartMonth, Store
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.layout import PASSES, Layout, slot_step
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import INTERVAL_MINUTES, MISSING, SLOTS, Flags, Ints

_DAY_MINUTES = 24 * 60
_SAMPLE_ROWS = 200_000
_MIN_ROWS, _MIN_RISES = 96, 8
_MIN_RISE_SHARE = 0.01
MAX_FALL_SHARE: Final = 0.05
"""A register falls in at most so many steps as a part of those in which it rises."""
_CLOCK_PARTS = 3
_MIN_HOUSEHOLDS, _ZERO_SHARE, _MAX_BESIDE = 5, 0.95, 0.5
_MIN_VALUES, _MIN_MARKS, _MARKED_HOUSEHOLDS = 20, 8, 3

Sample = tuple[Sequence[str], Ints, Ints, Ints]
"""Households; code among them, minutes since 1970, energy of the rows of one part, in the order of both.

A household of several meters is there once for each.
"""


def filter_days(table: pa.Table, day_filter: pa.Array | None) -> pa.Table:
    """Return the rows of these days; of all days if `day_filter` is None."""
    return table if day_filter is None else table.filter(pc.is_in(table["day"], value_set=day_filter))


def read_samples(
    store: Store, delivery: Delivery, months: Sequence[str], day_filter: pa.Array | None
) -> Iterator[Sample]:
    """Yield rows of the first and the middle month, part by part, about `_SAMPLE_ROWS` rows each."""
    for month in _sampled_months(months):
        rows = 0
        for part in _parts_of_buckets(store, month, delivery.contents):
            table = filter_days(_load_sample(store, month, part), day_filter)
            rows += table.num_rows
            yield _sort_sample(table, store)
            if rows >= _SAMPLE_ROWS:
                break


def _sampled_months(months: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*months[:1], *months[len(months) // 2 :][:1]]))


def _parts_of_buckets(store: Store, month: str, contents: Sequence[str]) -> list[PartMonth]:
    """Return the parts with rows of a month in any bucket, in the order of the files."""
    parts = {part for bucket in range(store.buckets) for part in store.month_parts(month, contents, bucket)}
    return sorted(parts, key=lambda part: (part.file_index, part.number))


def _load_sample(store: Store, month: str, part: PartMonth) -> pa.Table:
    """Return the rows of a part in a month, of all buckets."""
    paths = (store.month_folder(month, bucket) / part.name for bucket in range(store.buckets))
    tables = [
        load_table(path, store.schema, columns=_sample_columns(store))
        for path in paths
        if store.buckets == 1 or path_exists(path)
    ]
    return pa.concat_tables(tables) if len(tables) > 1 else tables[0]


def _sample_columns(store: Store) -> list[str]:
    """Return the columns of a part that a sample needs."""
    energies = ["energy_wh"] if store.layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    names = ["household_id", "day", *(["slot"] if store.layout.width == 1 else []), *energies]
    further = {"channel": store.layout.channels > 1, "label": store.layout.has_labels}
    return [*names, *(name for name, is_stored in further.items() if is_stored)]


def _sort_sample(table: pa.Table, store: Store) -> Sample:
    """Return the readings of a part by household and time; if a row is a day, by household, channel and time."""
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    # by id: the order of a dictionary depends on the household buckets
    names = sorted(column.dictionary.to_pylist())
    code = {name: i for i, name in enumerate(names)}
    household = np.array([code[name] for name in column.dictionary.to_pylist()], np.int64)[column.indices.to_numpy()]
    if store.layout.has_labels:  # each meter of a household by itself
        labels, label_code = np.unique(table["label"].to_numpy(), return_inverse=True)
        names = [name for name in names for _ in range(len(labels))]
        household = household * len(labels) + label_code
    minute = table["day"].cast(pa.int32()).to_numpy().astype(np.int64) * _DAY_MINUTES
    layout = store.layout
    channel = table["channel"].to_numpy().astype(np.int64) if layout.channels > 1 else np.zeros(len(minute), np.int64)
    if layout.width == 1:
        minute += table["slot"].to_numpy().astype(np.int64) * INTERVAL_MINUTES
        minute += channel // PASSES * min(layout.interval_minutes, INTERVAL_MINUTES)
        energy = table["energy_wh"].to_numpy().astype(np.int64)
    else:
        names = [name for name in names for _ in range(layout.channels)]
        household = np.repeat(household * layout.channels + channel, SLOTS)
        minute = (minute[:, None] + np.arange(SLOTS) * INTERVAL_MINUTES).ravel()
        energy = np.stack([table[f"energy_wh_{slot}"].to_numpy() for slot in range(SLOTS)], axis=1).ravel()
        is_present = energy != MISSING
        household, minute, energy = household[is_present], minute[is_present], energy[is_present].astype(np.int64)
    order = np.lexsort((minute, household))
    return names, household[order], minute[order], energy[order]


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What samples show.

    Attributes:
        rising: households whose readings rise like those of a register.
        households: number of households with enough rows to tell.
        zero_slots: slots that are 0 in most households on most days, and those beside them are not.
        marked: share of the household-days with a reading that seems to be a mark for a missing one, since several
            households share it; that of one may be a heater with a thermostat.
    """

    rising: frozenset[str]
    households: int
    zero_slots: tuple[int, ...]
    marked: float


def examine_samples(samples: Iterable[Sample]) -> SampleFacts:
    """Return what samples show, which are looked at one by one."""
    rising: set[str] = set()
    sampled: set[str] = set()
    zeros, counts, days = np.zeros(SLOTS, np.int64), np.zeros(SLOTS, np.int64), 0
    marks: dict[int, set[str]] = {}
    marked: Counter[int] = Counter()
    for names, household, minute, energy in samples:
        codes, flags = rising_households(household, minute, energy)
        sampled |= {names[code] for code in codes.tolist()}
        rising |= {names[code] for code in codes[flags].tolist()}
        slot, day = minute % _DAY_MINUTES // INTERVAL_MINUTES, household_day_key(household, minute // _DAY_MINUTES)
        counts += np.bincount(slot, minlength=SLOTS)
        zeros += np.bincount(slot, energy == 0, SLOTS).astype(np.int64)
        if (is_mark := are_marks(energy)).any():
            marked[value := int(energy[is_mark][0])] += len(np.unique(day[is_mark]))
            marks.setdefault(value, set()).update(names[code] for code in np.unique(household[is_mark]).tolist())
        days += len(np.unique(day))
    slots = lone_zeros(zeros, counts) if len(sampled) >= _MIN_HOUSEHOLDS else ()
    shared = sum(number for value, number in marked.items() if len(marks[value]) >= _MARKED_HOUSEHOLDS)
    return SampleFacts(frozenset(rising), len(sampled), slots, shared / max(days, 1))


def lone_zeros(zeros: Ints, counts: Ints) -> tuple[int, ...]:
    """Return the slots of which nearly all readings are 0, where at most half of those beside them are.

    >>> zeros = np.array([1, 10, 1, *[9] * 45])
    >>> lone_zeros(zeros, np.full(48, 10)), lone_zeros(np.full(48, 10), np.full(48, 10))
    ((1,), ())
    """
    used = np.flatnonzero(counts)
    share = zeros[used] / counts[used]
    beside = np.maximum(np.roll(share, 1), np.roll(share, -1))
    return tuple(used[(share >= _ZERO_SHARE) & (beside <= _MAX_BESIDE)].tolist())


def are_marks(energy: Ints) -> Flags:
    """Return which readings equal the largest, if it is frequent and more than twice the next one of many.

    >>> energy = np.array([*range(1, 101), *[9999] * 8])
    >>> int(are_marks(energy).sum()), int(are_marks(energy[:-1]).sum())
    (8, 0)
    """
    values, numbers = np.unique(energy, return_counts=True)
    is_mark = len(values) > _MIN_VALUES and numbers[-1] >= _MIN_MARKS and values[-1] > 2 * values[-2]
    flags: Flags = (energy == values[-1]) & is_mark if len(values) else np.zeros(0, bool)
    return flags


def rising_households(household: Ints, minute: Ints, energy: Ints) -> tuple[Ints, Flags]:
    """Return households, and whose readings rise within each day and almost never fall, like those of a register.

    Energy use rises and falls. Readings that rise in more than 1 % of the steps and 8 times or more, and fall in at
    most 5 % as many, are those of a register, cumulative over all time or over the day. Households with fewer than 96
    readings are left out.
    """
    codes, household_index = np.unique(household, return_inverse=True)
    day = minute // _DAY_MINUTES
    is_same_day = (household[1:] == household[:-1]) & (day[1:] == day[:-1])
    step = np.sign(np.diff(energy))[is_same_day]
    step_household = household_index[1:][is_same_day]
    rises, falls, steps = (
        np.bincount(step_household, weights=step_flags, minlength=len(codes))
        for step_flags in (step > 0, step < 0, np.ones(len(step)))
    )
    has_enough_rows = np.bincount(household_index, minlength=len(codes)) >= _MIN_ROWS
    flags: Flags = (rises > _MIN_RISE_SHARE * steps) & (rises >= _MIN_RISES) & (falls <= MAX_FALL_SHARE * rises)
    return codes[has_enough_rows], flags[has_enough_rows]


def find_absent_slots(store: Store, delivery: Delivery, months: Sequence[str]) -> tuple[int, ...]:
    """Return the slots that most households lack on most days: of the first bucket in the first and middle month.

    Days with a clock change and household-days without half of the readings do not count.

    Raises:
        FolderRemoved: a part of the store is damaged.
    """
    step, number = slot_step(store.layout.interval_minutes), 0
    counts = np.zeros(SLOTS, np.int64)
    for month in _sampled_months(months):
        readings = load_month_readings(store, month, delivery.contents, 0)
        number += count_by_slot(readings, counts, store.layout)
    return slots_of_few(counts, number, step)


def slots_of_few(counts: Ints, number: int, step: int) -> tuple[int, ...]:
    """Return the slots, every `step`-th of a day, that at most half of a number of household-days have.

    >>> slots_of_few(np.array([9, 5, *[9] * 46]), 10, 1), slots_of_few(np.zeros(48, np.int64), 0, 1)
    ((1,), ())
    """
    return tuple(slot for slot in range(0, SLOTS, step) if number and 2 * counts[slot] <= number)


def count_by_slot(readings: Readings, counts: Ints, layout: Layout) -> int:
    """Add the readings by slot to `counts`, and return the number of household-days; see `find_absent_slots`."""
    day = readings.time // SLOTS
    days = np.unique(day)
    changes = [number for number in days.tolist() if layout.absent_slots(date_of_day(number))]
    keys, index, numbers = np.unique(
        household_day_key(readings.household, day), return_inverse=True, return_counts=True
    )
    counted = (2 * numbers >= SLOTS // slot_step(layout.interval_minutes)) & ~np.isin(
        split_household_day_key(keys)[1], changes
    )
    counts += np.bincount((readings.time % SLOTS)[counted[index]], minlength=SLOTS)
    return int(counted.sum())


def repeats_no_half_hour(store: Store, delivery: Delivery, day: date) -> int:
    """Return the number of households with one row each in the half-hours of a day that the clock shows twice.

    Of the first parts with rows of the month; 0 if a household has two rows in one of these half-hours.
    """
    rows = _row_numbers(store, delivery, day, layout_slots(store.layout, day))
    return 0 if any(number > 1 for number in rows.values()) else len({household for household, *_ in rows})


def repeats_before_skip(store: Store, delivery: Delivery, day: date) -> int:
    """Return the number of households with two rows in the interval before a skipped hour, and not in the one before.

    A clock that skips no more than an interval does not show these rows to be of another zone. Of the first parts with
    rows of the month; 0 if they are not most households.
    """
    slot = before_skip(store.layout, day)
    if slot is None:
        return 0
    before = slot - slot_step(store.layout.interval_minutes)
    rows = _row_numbers(store, delivery, day, [slot] if before < 0 else [before, slot])
    doubled: dict[bool, set[object]] = {True: set(), False: set()}
    for (household, of_slot, *_), number in rows.items():
        if number > 1:
            doubled[of_slot == slot].add(household)
    number = len(doubled[True] - doubled[False])
    return number if 2 * number > len({household for household, *_ in rows}) else 0


def _row_numbers(store: Store, delivery: Delivery, day: date, slots: Sequence[int]) -> dict[tuple[object, ...], int]:
    """Return the number of rows in some slots of a day by household, slot, label and part of the slot.

    Of the first parts with rows of the month, each by itself; none of a layout whose rows are days.
    """
    month = f"{day:%Y-%m}"
    numbers: dict[tuple[object, ...], int] = {}
    if not slots or store.layout.width > 1 or month not in delivery.months:
        return numbers
    for number, part in enumerate(_parts_of_buckets(store, month, delivery.contents)[:_CLOCK_PARTS]):
        table = filter_days(_load_sample(store, month, part), pa.array([day], pa.date32()))
        table = table.filter(pc.is_in(table["slot"], value_set=pa.array(slots, pa.uint8())))
        names = ["household_id", "slot", *(["label"] if store.layout.has_labels else [])]
        passes = table.select(names)
        channel = (
            table["channel"].to_numpy().astype(np.int64) // PASSES
            if store.layout.channels > 1
            else np.zeros(len(table), np.int64)
        )
        grouped = passes.append_column("part", pa.array(channel)).group_by([*names, "part"])
        counted = grouped.aggregate([([], "count_all")])
        keys = zip(*(counted[name].to_pylist() for name in (*names, "part")), strict=True)
        numbers |= {(*key, number): rows for key, rows in zip(keys, counted["count_all"].to_pylist(), strict=True)}
    return numbers


def before_skip(layout: Layout, day: date) -> int | None:
    """Return the slot of `Long.slot_before_skip`, None of any other layout."""
    return layout.slot_before_skip(day) if isinstance(layout, Long) else None


def layout_slots(layout: Layout, day: date) -> list[int]:
    """Return the slots of a day that the clock shows twice, with two rows for each."""
    return (
        [] if getattr(getattr(layout, "columns", None), "repeated", "sum") == "sum" else [*layout.repeated_slots(day)]
    )
