"""What is wrong with the London files as published, for made-up ones.

Exact duplicates, adjacent, at 00:00:00 every 31 days; one off-grid `Null` row per household at 12:3x:xx on
2012-12-19, or in the middle of a period without that day; gaps; households that stop early; float noise. The
second household lacks a whole day and the third stops early, whatever the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from agedp_data.readers.layout import SLOTS, Flags, Ints
from agedp_data.readers.synthetic.households import BATCH, draw_gaps, stream

NULL_SLOT = 24  # the half-hour that ends at 12:30
NULL_SECONDS = 540  # 12:31:00 to 12:39:59
_NULL_DAY = date(2012, 12, 19)
_NOISY = 1 / 2000
_STOPPING_A_YEAR = 0.09


@dataclass(frozen=True, slots=True, eq=False)
class LondonDefects:
    """The flaws of a batch: lost and noisy half-hours (batch, steps), doubled ones, `Null` rows by household.

    `null_seconds` (batch) is where behind 12:31:00 the `Null` row lies, -1 for a household without one.
    """

    lost: Flags
    noisy: Flags
    doubled: Flags
    null_seconds: Ints


def null_day(first_day: date, days: int) -> int:
    """Return the place in the period of the day with the `Null` rows.

    >>> null_day(date(2012, 12, 1), 31), null_day(date(2013, 1, 1), 31)
    (18, 15)
    """
    place = (_NULL_DAY - first_day).days
    return place if 0 <= place < days else days // 2


def sound(households: int, steps: int) -> LondonDefects:
    """Return the absence of flaws."""
    nothing = np.zeros((households, steps), bool)
    return LondonDefects(nothing, nothing, nothing, np.full(households, -1))


def draw_flaws(
    places: slice, energy_wh: Ints, *, first_day: date, duplicates: bool, seed: int, stops: bool = True
) -> LondonDefects:
    """Return the flaws of the households at these places; only what is there can be noisy or doubled.

    Without `stops` no household ends early.
    """
    households, steps = energy_wh.shape
    days = steps // SLOTS
    generator = stream(seed, "flaws", places.start // BATCH)
    lost = draw_gaps(households, steps, generator=generator)
    if stops:
        lost |= _stopped(places, households, days, generator)
    if places.start == 0 and days > 2:
        lost[1:2, days // 3 * SLOTS : (days // 3 + 1) * SLOTS] = True
    # as published, only readings of a kilowatt-hour and more carry float noise
    noisy = (generator.random(energy_wh.shape) < _NOISY) & (energy_wh >= 1000) & ~lost
    if places.start == 0:
        largest = int(np.where(lost[0], -1, energy_wh[0]).argmax())
        noisy[0, largest] = not lost[0, largest]
    step = null_day(first_day, days) * SLOTS + NULL_SLOT
    seconds = generator.integers(NULL_SECONDS, size=households)
    return LondonDefects(lost, noisy, _doubled(days) & ~lost & duplicates, np.where(lost[:, step], -1, seconds))


def _stopped(places: slice, households: int, days: int, generator: np.random.Generator) -> Flags:
    """Return (batch, steps), True behind a household's early end."""
    last = np.where(
        generator.random(households) < _STOPPING_A_YEAR * days / 365,
        generator.integers(1, days * SLOTS + 1, size=households),
        days * SLOTS,
    )
    if places.start == 0:
        last[2:3] = days * SLOTS * 7 // 10
    found: Flags = np.arange(days * SLOTS) >= last[:, None]
    return found


def _doubled(days: int) -> Flags:
    """Return (steps), True for the half-hours that end 8, 39, 70, ... days into the period."""
    found = np.zeros(days * SLOTS, bool)
    found[np.arange(min(8, days), days + 1, 31) * SLOTS - 1] = True
    return found
