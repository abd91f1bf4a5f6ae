"""Household-days as whole numbers, to sort and to look up: what everything nightly is counted by.

What a household-day comes to is a function of its own rows alone, so household-days can be settled apart.
"""

from __future__ import annotations

import numpy as np

from agedp_data.readers.layout import SLOTS, Flags, Ints
from agedp_data.readers.settle import Readings

_DAY_BITS = 17
"""Days since 1970 up to 2328; the readers stop at 2199."""


def packed(household: Ints, day: Ints) -> Ints:
    """Return one number per (household code, day since 1970), in the order of both.

    >>> unpacked(packed(np.array([3]), np.array([15706])))
    (array([3]), array([15706]))
    """
    return (household << _DAY_BITS) | day


def unpacked(key: Ints) -> tuple[Ints, Ints]:
    """Return household codes and days."""
    return key >> _DAY_BITS, key & ((1 << _DAY_BITS) - 1)


def distinct(key: Ints) -> Ints:
    """Return the distinct keys, sorted; quick where they are sorted already."""
    if len(key) and not (key[1:] >= key[:-1]).all():
        return np.unique(key)
    return key[firsts(key)]


def firsts(key: Ints) -> Flags:
    """Return where sorted keys begin anew."""
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    return first


def among(key: Ints, wanted: Ints) -> Flags:
    """Return which keys are among the `wanted`, which are sorted."""
    if len(wanted) == 0:
        return np.zeros(len(key), bool)
    found: Flags = wanted[np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)] == key
    return found


def totals(found: Readings, there: Ints) -> tuple[Ints, Ints]:
    """Return the energy (Wh) and the number of readings of each household-day in `there`, which has them all."""
    key = packed(found.household, found.time // SLOTS)
    starts = np.flatnonzero(firsts(key))
    energy, readings = np.zeros(len(there), np.int64), np.zeros(len(there), np.int64)
    if len(starts):
        place = np.searchsorted(there, key[starts])
        energy[place] = np.add.reduceat(found.energy_wh, starts)
        readings[place] = np.diff([*starts, len(key)])
    return energy, readings
