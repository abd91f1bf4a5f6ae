r"""Load profiles: how the half-hours of a household's day count in a sum by half-hour, and the sensitivity of that sum.

The idea: a profile is one vector a day with a cell for each half-hour. Two public clamps bound what a household adds to
it: one for a half-hour, one for the day. A half-hour above its clamp counts as the clamp. A day above its clamp is then
reduced in proportion, so that it keeps its shape.

Example: the clamps are 4 kWh for a half-hour and 6 kWh for the day. Half-hours of 5, 2 and 4 kWh count as 4, 2 and 4.
Their sum of 10 kWh is above 6, so they are reduced to 2.4, 1.2 and 2.4 kWh.

Decisions:

* A household can move its energy from some half-hours to others, and then both the cells that lose and the cells that
  gain change. The sensitivity is therefore twice the day's clamp, not once. It is not more than all half-hours at their
  clamp.
* The proportional reduction rounds each half-hour down to whole watt-hours. The day may then count a few watt-hours
  less than its clamp, never more.
* The cells of a day are the half-hours that its clock shows: 48, and 46 on a day when the clock goes forward by an
  hour. When the clock goes back, the readings have both passes of an hour in the same two half-hours: the day has 48
  cells, and two of them contain an hour each. Their clamp is that of any half-hour, so that no day has a larger
  sensitivity.
* A missing household-day counts as the same public vector everywhere. The vector obeys both clamps, so that the change
  from it to any day is bounded like the change between two days.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.datasets.layout import Layout, slot_step
from agedp_data.datasets.validation import SLOTS
from agedp_data.errors import ChainError
from agedp_data.series.periods import days_of
from agedp_data.series.sensitivity import Change

Wh = np.ndarray[Any, np.dtype[np.int64]]

_INT64_MAX: Final = 2**63 - 1
MISSING_HALF_HOUR: Final = -1
"""Energy of a half-hour without a reading; it counts as 0."""


def reduced_profile(half_hours_wh: ArrayLike, *, half_hour_clamp_wh: int, day_clamp_wh: int) -> Wh:
    r"""Return the half-hours of each household-day as they count in a profile; use it before any sum over households.

    .. math:: y_s = \min(\max(x_s, 0), U_h), \quad
       z_s = \begin{cases} y_s & \sum_r y_r \le U_d \\ \lfloor y_s U_d / \sum_r y_r \rfloor & \text{otherwise}
       \end{cases}

    so that each counted half-hour is at most U_h and their sum at most U_d. Source: elementary (clamping; scaling to a
    bounded sum). All numbers are exact integers: the largest product is U_h U_d.

    Args:
        half_hours_wh: energies x, shape (..., S), any integer type [Wh]; negative: missing, counts as 0.
        half_hour_clamp_wh: largest energy U_h of a half-hour, public, >= 1 [Wh].
        day_clamp_wh: largest energy U_d of a day, public, >= 1 [Wh].

    Returns:
        Counted energies z, shape (..., S), int64 [Wh].

    Raises:
        ChainError: energies that are not integers; a clamp below 1; clamps whose product exceeds 64 bits.

    >>> reduced_profile([5000, 2000, 4000], half_hour_clamp_wh=4000, day_clamp_wh=6000).tolist()
    [2400, 1200, 2400]
    """
    half_hours = np.asarray(half_hours_wh)
    if not np.issubdtype(half_hours.dtype, np.integer):
        raise ChainError("the half-hours of a profile are whole watt-hours")
    _check_clamps(half_hours.shape[-1], half_hour_clamp_wh, day_clamp_wh)
    counted: Wh = np.clip(half_hours.astype(np.int64, copy=False), 0, half_hour_clamp_wh)
    day_wh = counted.sum(axis=-1, keepdims=True)
    is_above = day_wh[..., 0] > day_clamp_wh
    if is_above.any():
        counted[is_above] = counted[is_above] * day_clamp_wh // day_wh[is_above]
    return counted


def day_slots(layout: Layout, day: date) -> tuple[int, ...]:
    """Return the half-hours of a day: slot s begins s x 30 minutes after midnight by the day's clock.

    Slots that the clock skips do not exist. Of hourly readings a slot begins an hour. `layout` is the dataset's.

    >>> from agedp_data.datasets.ausgrid import Ausgrid
    >>> len(day_slots(Ausgrid(), date(2012, 10, 6))), day_slots(Ausgrid(), date(2012, 10, 7))[:6]
    (48, (0, 1, 2, 3, 6, 7))
    """
    absent = layout.absent_slots(day)
    return tuple(slot for slot in range(0, SLOTS, slot_step(layout.interval_minutes)) if slot not in absent)


def period_slots(layout: Layout, first_day: date, last_day: date) -> tuple[int, ...]:
    """Return the half-hours that any day of a period has, ascending; see `day_slots`.

    >>> from agedp_data.datasets.ausgrid import Ausgrid
    >>> len(period_slots(Ausgrid(), date(2012, 10, 7), date(2012, 10, 8)))
    48
    """
    return tuple(sorted({slot for day in days_of(first_day, last_day) for slot in day_slots(layout, day)}))


def default_profile(missing_wh: int, *, slots: int, half_hour_clamp_wh: int, day_clamp_wh: int) -> Wh:
    r"""Return the public vector that counts for a missing household-day: its energy, spread evenly in whole watt-hours.

    .. math:: m_s = \lfloor (s + 1) M / S \rfloor - \lfloor s M / S \rfloor, \quad s = 0, ..., S - 1

    Source: elementary (differences of rounded running sums). The half-hours differ by at most 1 Wh and add up to M, as
    far as the clamps permit: the vector is reduced like any other (`reduced_profile`).

    Args:
        missing_wh: public energy M of a missing household-day, >= 0 [Wh].
        slots: number S of the day's half-hours, >= 0.
        half_hour_clamp_wh: largest energy of a half-hour, >= 1 [Wh].
        day_clamp_wh: largest energy of a day, >= 1 [Wh].

    Returns:
        Counted energies, shape (S,), int64 [Wh].

    Raises:
        ChainError: a negative energy; or as `reduced_profile`.

    >>> default_profile(7, slots=4, half_hour_clamp_wh=100, day_clamp_wh=100).tolist()
    [1, 2, 2, 2]
    """
    if missing_wh < 0:
        raise ChainError(f"a missing household-day counts as {missing_wh} Wh: must be at least 0")
    running = [step * missing_wh // max(slots, 1) for step in range(slots + 1)]
    spread = np.diff(np.array(running, np.int64))
    return reduced_profile(spread, half_hour_clamp_wh=half_hour_clamp_wh, day_clamp_wh=day_clamp_wh)


def profile_sensitivity(change: Change, *, slots: int, half_hour_clamp: int, day_clamp: int) -> int:
    r"""Return the L1 sensitivity of a profile to a change of one household's day.

    .. math:: \Delta_1 = \min(U_d, \lfloor S/2 \rfloor U_h) + \min(U_d, \lceil S/2 \rceil U_h)
       = \min(2 U_d, S U_h) \text{ for even } S, \quad
       \Delta_1 = \min(U_d, S U_h) \text{ for an arrival or departure}

    Proof. Let z and z' be counted vectors, and A the a slots with z > z'. The difference on A is at most the sum of z
    on A, hence at most f(a) = min(U_d, a U_h); on the S - a other slots it is at most f(S - a). Since f is concave, the
    sum is largest for a = floor(S/2). Two days attain it: U_h in each slot of the first half of the day, up to the sum
    U_d, and the same in the second half. The vector of a missing day obeys both clamps and is covered.

    A bounded change (`Move`) is of the day's total. These two days can have the same total, because energy above a
    clamp does not count: the bound is attained by a change of size 0, and no smaller one holds.

    Days with fewer slots have at most the sensitivity of days with more. Of hours in place of half-hours, with twice
    the clamp, it is at most the same. Source: L1 sensitivity of [DMNS].

    Args:
        change: "replacement", "arrival", "departure" or a `Move` of any size, which counts as a replacement.
        slots: number S of a day's half-hours, the largest of all days, >= 1.
        half_hour_clamp: largest energy U_h of a half-hour, integer >= 1 [any integer unit, e.g. Wh].
        day_clamp: largest energy U_d of a day, integer >= 1 [unit of `half_hour_clamp`].

    Returns:
        Sensitivity, integer [unit of `half_hour_clamp`].

    Raises:
        ChainError: a clamp or a number of slots below 1; clamps whose product exceeds 64 bits.

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> clamps = {"slots": 48, "half_hour_clamp": 4_000}
    >>> [profile_sensitivity("replacement", day_clamp=clamp, **clamps) for clamp in (50_000, 150_000)]
    [100000, 192000]
    """
    if slots < 1:
        raise ChainError(f"a profile of {slots} half-hours: must be at least 1")
    _check_clamps(0, half_hour_clamp, day_clamp)
    if change in ("arrival", "departure"):
        return min(day_clamp, slots * half_hour_clamp)
    half = slots // 2
    return min(day_clamp, half * half_hour_clamp) + min(day_clamp, (slots - half) * half_hour_clamp)


def _check_clamps(slots: int, half_hour_clamp: int, day_clamp: int) -> None:
    """Check that clamps are positive, and that a product of both, and a sum of all half-hours, fit into 64 bits."""
    for clamp in (half_hour_clamp, day_clamp):
        if clamp < 1:
            raise ChainError(f"a clamp of {clamp} Wh: must be at least 1")
    if half_hour_clamp * max(day_clamp, slots) > _INT64_MAX:
        raise ChainError("the clamps of a profile exceed 64-bit integers: take smaller ones")
