r"""Profiles of a month's weekdays and weekends released on their own: their exact vector, and its sensitivity.

The idea: one row a month has a cell for each kind of day and half-hour. It is a sum over all household-days of that
kind, without a sum of its own for each household, so that days are added one after another and nothing is kept of a
household. Dividing by household-days, which are public, gives the mean day of each kind.

Example: with days that count 100,000 Wh of change at most, January 2013 with 23 weekdays and 8 days of weekends has a
sensitivity of (2 x 23 + 5 x 8) x 100,000 = 8,600,000 Wh. With noise of scale 8,600,000 Wh and 5,000 households, the
mean of a half-hour of weekdays has noise of scale 8,600,000 / (2 x 23 x 5,000) = 37.4 Wh, of weekends 43 Wh.

Decisions:

* A half-hour of a weekday counts twice, one of a weekend five times: a week has five of the former and two of the
  latter. Both means then have nearly the same noise. Counted once each, the noise would be 3.9 day sensitivities for
  weekends and 1.3 for weekdays in this example, in place of 2.2 and 1.9. Published means divide the weights out.
* Sums are not divided per household before they are added. The mean day of each household, rounded down, has the
  sensitivity of a day for each kind, so 2 of them for both. That is the noise of the weights above, with errors of
  rounding, and a sum to be kept for each household of a month.
* A month without all its days is not released: `covered_days` are those of the calendar.
* A half-hour that the clock skips on a day adds nothing there. One that occurs twice is in its cell twice, as in a
  daily profile. Published means divide by how often the half-hour occurs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

import numpy as np

from agedp_data.series.day_kinds import DayKind, day_kind
from agedp_data.series.periods import days_of

Wh = np.ndarray[Any, np.dtype[np.int64]]

WEIGHTS: Final[Mapping[DayKind, int]] = {"weekday": 2, "weekend": 5}
"""How often a half-hour counts in the vector, by the kind of its day."""


def month_sensitivity(first_day: date, last_day: date, *, day_sensitivity: int) -> int:
    r"""Return the L1 sensitivity of the vector of a period to a change of all its days of one household.

    .. math:: \Delta_1 = S \sum_k w_k |\{d : d \in k\}|

    Proof. Let z_d and z'_d be what a household's day d counts under two accounts of its use, vectors over half-hours
    with L1 distance at most S (`load_profile.profile_sensitivity`). The household is in one group on each day, in any
    on different days, because the roster is fixed. It adds w_k z_d to the cells of that group and the kind k of the
    day. The distance of the vector of all groups is at most the sum over days of w_k times the distance of z_d and
    z'_d, by the triangle inequality. Days of one kind that all move from the same half-hours to the same others attain
    it, because nothing is rounded after the days are counted. Days with fewer half-hours have at most distance S.

    A smaller change of all days, or a change of one day only, is at most this. Source: L1 sensitivity of [DMNS].

    Args:
        first_day: first day that the row covers.
        last_day: last day that it covers.
        day_sensitivity: sensitivity S of one day's profile [Wh].

    Returns:
        Sensitivity, integer [weighted Wh].

    References:
        [DMNS] Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC 2006.
        https://doi.org/10.1007/11681878_14

    >>> month_sensitivity(date(2013, 1, 1), date(2013, 1, 31), day_sensitivity=100_000)
    8600000
    """
    return day_sensitivity * sum(WEIGHTS[day_kind(day)] for day in days_of(first_day, last_day))
