"""Household-days as whole numbers, to sort and to look up: what everything nightly is counted by.

What a household-day comes to is a function of its own rows alone, so household-days can be settled apart.
"""

from __future__ import annotations

import numpy as np

from agedp_data.readers.layout import SLOTS, Flags, Ints
from agedp_data.readers.settle import Readings

_DAY_BITS = 17
"""Days since 1970 up to 2328; the readers stop at 2199."""


def household_day_key(household: Ints, day: Ints) -> Ints:
    """Return one number per (household code, day since 1970), in the order of both.

    >>> split_household_day_key(household_day_key(np.array([3]), np.array([15706])))
    (array([3]), array([15706]))
    """
    return (household << _DAY_BITS) | day


def split_household_day_key(key: Ints) -> tuple[Ints, Ints]:
    """Return household codes and days."""
    return key >> _DAY_BITS, key & ((1 << _DAY_BITS) - 1)


def distinct_keys(key: Ints) -> Ints:
    """Return the distinct keys, sorted; quick where they are sorted already."""
    if len(key) and not (key[1:] >= key[:-1]).all():
        return np.unique(key)
    return key[is_first_of_key(key)]


def is_first_of_key(key: Ints) -> Flags:
    """Return where sorted keys begin anew."""
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    return first


def is_in_sorted(key: Ints, sorted_keys: Ints) -> Flags:
    """Return which keys are among the `sorted_keys`, which are sorted."""
    if len(sorted_keys) == 0:
        return np.zeros(len(key), bool)
    is_in: Flags = sorted_keys[np.minimum(np.searchsorted(sorted_keys, key), len(sorted_keys) - 1)] == key
    return is_in


def daily_totals(deduplicated: Readings, keys: Ints) -> tuple[Ints, Ints]:
    """Return the energy (Wh) and the number of readings of each household-day in `keys`, which has them all."""
    key = household_day_key(deduplicated.household, deduplicated.time // SLOTS)
    starts = np.flatnonzero(is_first_of_key(key))
    energy, readings = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    if len(starts):
        position = np.searchsorted(keys, key[starts])
        energy[position] = np.add.reduceat(deduplicated.energy_wh, starts)
        readings[position] = np.diff([*starts, len(key)])
    return energy, readings
