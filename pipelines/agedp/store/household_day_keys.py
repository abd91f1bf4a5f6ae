"""Household-days as integer keys, to sort and to look up, and their daily totals.

The total of a household-day is a function of its rows alone, so household-days can be deduplicated independently.
"""

from __future__ import annotations

import numpy as np

from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.validation import SLOTS, Flags, Ints

_DAY_BITS = 17
"""Days since 1970 up to 2328; the readers accept days up to 2199."""


def household_day_key(household: Ints, day: Ints) -> Ints:
    """Return one integer per (household code, day since 1970); keys sort by household and day.

    >>> split_household_day_key(household_day_key(np.array([3]), np.array([15706])))
    (array([3]), array([15706]))
    """
    return (household << _DAY_BITS) | day


def split_household_day_key(key: Ints) -> tuple[Ints, Ints]:
    """Return the household codes and days since 1970 of keys; the inverse of `household_day_key`."""
    return key >> _DAY_BITS, key & ((1 << _DAY_BITS) - 1)


def distinct_keys(key: Ints) -> Ints:
    """Return the distinct keys, sorted; linear in time if `key` is sorted already.

    >>> distinct_keys(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    if len(key) and not (key[1:] >= key[:-1]).all():
        return np.unique(key)
    return key[is_first_of_key(key)]


def is_first_of_key(key: Ints) -> Flags:
    """Return which elements of sorted keys are the first with their key, shape (n,).

    >>> is_first_of_key(np.array([3, 3, 7])).tolist()
    [True, False, True]
    """
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    return first


def is_in_sorted(key: Ints, sorted_keys: Ints) -> Flags:
    """Return which keys are in `sorted_keys`, shape of `key`; binary search, so `sorted_keys` must ascend.

    >>> is_in_sorted(np.array([1, 3, 9]), np.array([3, 7])).tolist()
    [False, True, False]
    """
    if len(sorted_keys) == 0:
        return np.zeros(len(key), bool)
    is_in: Flags = sorted_keys[np.minimum(np.searchsorted(sorted_keys, key), len(sorted_keys) - 1)] == key
    return is_in


def daily_totals(deduplicated: Readings, keys: Ints) -> tuple[Ints, Ints]:
    """Return the energy [Wh] and the number of readings of each household-day in `keys`.

    Args:
        deduplicated: readings sorted by household and time.
        keys: sorted distinct keys, which contain every household-day of the readings.

    Returns:
        Two arrays of the shape of `keys`; 0 for a household-day without a reading.
    """
    key = household_day_key(deduplicated.household, deduplicated.time // SLOTS)
    starts = np.flatnonzero(is_first_of_key(key))
    energy, readings = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    if len(starts):
        position = np.searchsorted(keys, key[starts])
        energy[position] = np.add.reduceat(deduplicated.energy_wh, starts)
        readings[position] = np.diff([*starts, len(key)])
    return energy, readings
