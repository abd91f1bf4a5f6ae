"""The defects of the published London files, for synthetic files.

Exact duplicates, adjacent, at 00:00:00 every 31 days; one off-grid `Null` row per household at 12:3x:xx on
2012-12-19, or in the middle of a period without that day; gaps; households that stop early; float noise. With every
seed a day of the second household is missing and the third household stops early.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from agedp_data.readers.layout import SLOTS, Flags, Ints
from agedp_data.readers.synthetic.households import BATCH, draw_gaps, random_generator

NULL_SLOT = 24  # the half-hour that ends at 12:30
NULL_SECONDS = 540  # 12:31:00 to 12:39:59
_NULL_DAY = date(2012, 12, 19)
_NOISE_SHARE = 1 / 2000
_STOPS_PER_YEAR = 0.09


@dataclass(frozen=True, slots=True, eq=False)
class LondonDefects:
    """The defects of a batch: missing, noisy and duplicated half-hours (batch, steps), `Null` rows by household.

    `null_seconds` (batch) are the seconds of the `Null` row after 12:31:00, -1 for a household without one.
    """

    missing: Flags
    noisy: Flags
    duplicated: Flags
    null_seconds: Ints


def null_day_index(first_day: date, days: int) -> int:
    """Return the index in the period of the day with the `Null` rows.

    >>> null_day_index(date(2012, 12, 1), 31), null_day_index(date(2013, 1, 1), 31)
    (18, 15)
    """
    index = (_NULL_DAY - first_day).days
    return index if 0 <= index < days else days // 2


def no_defects(households: int, steps: int) -> LondonDefects:
    """Return a batch without defects."""
    nothing = np.zeros((households, steps), bool)
    return LondonDefects(nothing, nothing, nothing, np.full(households, -1))


def draw_defects(
    indices: slice, energy_wh: Ints, *, first_day: date, duplicates: bool, seed: int, stops: bool = True
) -> LondonDefects:
    """Return the defects of the households with these indices; only existing readings are noisy or duplicated.

    Without `stops` no household stops early.
    """
    households, steps = energy_wh.shape
    days = steps // SLOTS
    generator = random_generator(seed, "defects", indices.start // BATCH)
    missing = draw_gaps(households, steps, generator=generator)
    if stops:
        missing |= _draw_early_ends(indices, households, days, generator)
    if indices.start == 0 and days > 2:
        missing[1:2, days // 3 * SLOTS : (days // 3 + 1) * SLOTS] = True
    # as published, only readings of a kilowatt-hour and more carry float noise
    noisy = (generator.random(energy_wh.shape) < _NOISE_SHARE) & (energy_wh >= 1000) & ~missing
    if indices.start == 0:
        largest = int(np.where(missing[0], -1, energy_wh[0]).argmax())
        noisy[0, largest] = not missing[0, largest]
    step = null_day_index(first_day, days) * SLOTS + NULL_SLOT
    seconds = generator.integers(NULL_SECONDS, size=households)
    return LondonDefects(
        missing, noisy, _duplicated_steps(days) & ~missing & duplicates, np.where(missing[:, step], -1, seconds)
    )


def _draw_early_ends(indices: slice, households: int, days: int, generator: np.random.Generator) -> Flags:
    """Return (batch, steps), True after a household's early end."""
    last = np.where(
        generator.random(households) < _STOPS_PER_YEAR * days / 365,
        generator.integers(1, days * SLOTS + 1, size=households),
        days * SLOTS,
    )
    if indices.start == 0:
        last[2:3] = days * SLOTS * 7 // 10
    stopped: Flags = np.arange(days * SLOTS) >= last[:, None]
    return stopped


def _duplicated_steps(days: int) -> Flags:
    """Return (steps), True for the half-hours that end 8, 39, 70, ... days into the period."""
    duplicated = np.zeros(days * SLOTS, bool)
    duplicated[np.arange(min(8, days), days + 1, 31) * SLOTS - 1] = True
    return duplicated
